"""What DP-CD's noise scales alone reveal of a record, where M_j is not public."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dperm import schema
from dperm.config import with_paper
from dperm.pipeline import inputs, plan
from dperm.present import tables as writing
from dperm.privacy.scales import epsilons

log = logging.getLogger(__name__)

PASSES = (20, 50)
DELTA = 1e-3  # beside 1 / n^2
RECORDS = 3  # looked at closely: those whose loss varies most
MOST_FEATURES = 600
RULE = "set to zero; gradients equal"
CAPTION = (
    "What the scales of DP-CD's noise alone tell of a record, if M_j is not public:"
    " gradients are taken to be equal, and one real record is replaced by zeros, the"
    f" worst of the {RECORDS} whose loss has the largest variance. The epsilon of that"
    " pair lies between the two numbers; it is no bound for other pairs. No epsilon of"
    " a calibration includes it. Columns are as prepared, their standardisation fixed."
)
Array = NDArray[np.float64]


def table(config: schema.Config) -> writing.Table:
    """A row for each data set, number of passes and delta; prepared data only."""
    rows = [row for name, squares in _sets(config) for row in _rows(name, squares)]
    return writing.made_of(rows)


def _sets(config: schema.Config) -> Iterator[tuple[str, Array]]:
    """Names and squared features (n, p): those scikit-learn carries, then ours."""
    from sklearn import datasets

    for name in ("breast_cancer", "diabetes", "wine"):
        X, _ = getattr(datasets, f"load_{name}")(return_X_y=True)
        yield f"{name}, as scikit-learn has it", X**2
    seen = set()
    for paper in ("dpcd", "dpgcd"):
        for problem, solver in plan.runs(with_paper(config, paper)):
            if solver == "dp_cd" and problem not in seen:
                seen.add(problem)
                squares = _squares(config, problem)
                if squares is not None:
                    yield problem, squares


def _squares(config: schema.Config, name: str) -> Array | None:
    from dperm import config as configuration

    own = replace(config, problem=configuration.read("problem", name))
    try:
        problem = inputs.load_problem(own)
    except (ValueError, FileNotFoundError) as error:
        log.info("%s: left out (%s)", name, error)
        return None
    if problem is None or problem.is_sparse or problem.p > MOST_FEATURES:
        log.info("%s: left out: unavailable, sparse or too wide", name)
        return None
    return np.asarray(problem.A) ** 2


def _rows(name: str, squares: Array) -> Iterator[dict[str, Any]]:
    n, p = squares.shape
    ratios = worst(squares)
    for passes in PASSES:
        counts = np.full(p, float(passes))
        for delta in (n**-2.0, DELTA):
            ends = np.array([epsilons(each, counts, delta) for each in ratios])
            low, high = ends[ends[:, 0].argmax()]
            yield {
                "data set": name, "n": n, "p": p, "passes": passes, "delta": delta,
                "record": RULE, "epsilon_low": low, "epsilon_high": high,
            }  # fmt: skip


def worst(squares: Array) -> Array:
    """s_j over what it is without a record, for the records that tell most; (k, p).

    The curvature of the loss and the clip cancel in s_j^2 = C^2 M_j / sum M.
    """
    sums = squares.sum(axis=0)
    left = np.maximum(sums - squares, 0.0)  # of every record, (n, p)
    with np.errstate(divide="ignore", invalid="ignore"):
        squared = (sums / sums.sum()) / (left / left.sum(axis=1, keepdims=True))
        change = np.where(np.isfinite(squared), squared - 1, math.inf)
        told = np.minimum((change**2).sum(axis=1), 1e300)
    chosen = np.argsort(-told, kind="stable")[:RECORDS]
    return np.sqrt(squared[chosen])
