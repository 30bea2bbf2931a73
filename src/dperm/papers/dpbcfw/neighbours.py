"""A search for the neighbouring data that move a release most.

Replacing record r changes one entry of each feature and one label. A score's change is
largest where the record's entries and label sit at their bounds and its estimated
prediction at its own; the search tries such records and random ones, against the
server's message of a real run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from dperm.core.erm.problem import Problem
from dperm.core.privacy.mechanisms import streams
from dperm.papers.dpbcfw.instances import Instance
from dperm.papers.dpbcfw.runs import Setting, noise_of, options_of
from dperm.solvers.distributed.node import Node
from dperm.solvers.distributed.parts import in_memory
from dperm.solvers.frank_wolfe import dp_bcfw, silent
from dperm.solvers.frank_wolfe.dp_bcfw_noise import sensitivities, sketch_of

Record = tuple[np.ndarray, float]


def search(
    at: Instance, setting: Setting, seed: int, trials: int
) -> list[dict[str, Any]]:
    """Changes found over changes declared, for scores and for sketched features.

    Returns
    -------
    list of dict
        ``release`` (score, feature), ``found`` (largest change), ``strict`` (declared
        replace-one sensitivity) and ``published`` (what the printed noise is made for).
    """
    options, noise = options_of(at, setting), noise_of(at, setting)
    made = dp_bcfw.Run(at.problem, streams(seed), options, noise)
    made.advance(5)
    aggregates = [made.q, *_extremes(at.problem.n, options)]
    declared = sensitivities(at.problem, options, noise.scores)
    factor = options.score_factor(noise.scores)
    score = feature = 0.0
    for first, second in _pairs(at, options, seed, trials):
        nodes = [_node(at.problem, options, record) for record in (first, second)]
        for q in aggregates:
            moved = [factor * node.gradient(node.slopes(q)) for node in nodes]
            score = max(score, float(np.abs(moved[0] - moved[1]).max()))
        feature = max(feature, _feature_change(nodes, made))
    G = at.published_lipschitz
    published = 2 * options.radius * G / (options.nodes * at.problem.n)
    return [
        {"release": "score", "found": score, "strict": declared[0],
         "published": published},
        {"release": "feature", "found": feature, "strict": declared[1],
         "published": sketch_of(at.problem.n, options).leading_singular_value
         / at.problem.n},
    ]  # fmt: skip


def _extremes(n: int, options: dp_bcfw.Options) -> Iterator[np.ndarray]:
    """Aggregates that drive estimates to their bounds."""
    worst = sketch_of(n, options).feature(np.array([_worst(n, options)]), np.ones(1))
    for sign in (1.0, -1.0):
        yield sign * 1e6 * worst


def _worst(n: int, options: dp_bcfw.Options) -> int:
    """The record whose column of J is longest."""
    return int(np.argmax(sketch_of(n, options).column_norms))


def _pairs(
    at: Instance, options: dp_bcfw.Options, seed: int, trials: int
) -> Iterator[tuple[Record, Record]]:
    """A record and its replacement: at the bounds first, then at random, far beyond."""
    rng, p = np.random.default_rng(seed), at.problem.p
    B, Y = options.entry_bound, options.label_bound
    for label in (Y, -Y):
        yield (np.full(p, B), label), (np.full(p, -B), label)
        yield (np.full(p, B), label), (np.full(p, B), -label)
    for _ in range(trials):
        entries = 10 * B * rng.standard_normal((2, p))
        labels = 10 * Y * rng.standard_normal(2)
        yield (entries[0], labels[0]), (entries[1], labels[1])


def _node(problem: Problem, options: dp_bcfw.Options, record: Record) -> Node:
    """One node with all columns; the record that J stretches most is replaced."""
    entries, label = record
    i = _worst(problem.n, options)
    A = problem.A.tolil()
    A[[i], :] = entries
    A = sparse.csc_array(A)
    offset = problem.offset.copy()
    offset[[i]] = problem.loss.offset(np.array([label]))
    other = replace(problem, A=A, offset=offset)
    public = dp_bcfw.public_of(problem, options, silent(1))
    return Node(in_memory(other, 1)[0], public, 0)


def _feature_change(nodes: list[Node], made: dp_bcfw.Run) -> float:
    """The largest change of any noiseless sketched feature of the first columns."""
    first, second = (
        [node.sketched_without_noise(j) for j in range(min(20, node.columns.p))]
        for node in nodes
    )
    return max(float(np.linalg.norm(a - b)) for a, b in zip(first, second, strict=True))
