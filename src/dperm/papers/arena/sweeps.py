"""Sweeps of the arena: methods on problems, floors and ceiling, a published lead."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dperm import data
from dperm.compare import TUNINGS
from dperm.compare.contest import Prices, Row, Seeds, contest_rows
from dperm.compare.contestants import Contestant, contestant
from dperm.compare.metrics import split
from dperm.core.erm.optimum import solve
from dperm.core.erm.problem import Problem
from dperm.core.experiment import plan, schema
from dperm.core.experiment.grid import points
from dperm.papers.arena import protocols
from dperm.papers.arena.protocols import constant  # a kind of sweep
from dperm.pipeline import digests, inputs
from dperm.solvers.scales import declared


def contest(
    config: schema.Config,
    point: dict[str, Any],
    seed: int,
    epsilons: list[float],
    grids: Mapping[str, Any],
    defaults: Mapping[str, Any],
    fresh: int,
    held: int,
    declared_at: list[float],
    work: float,
) -> list[Row]:
    """A method on a problem at every epsilon, tuned in every way.

    Parameters
    ----------
    config : schema.Config
    point : dict
        problem, solver.
    seed : int
        Of everything that is drawn.
    epsilons : list of float
    grids, defaults : mapping
        Axes of the solver's grid; its default setting.
    fresh, held : int
        Runs of a setting, and runs on the training part for held-out metrics.
    declared_at : list of float
        Epsilons that are also run with scales declared, not read off the data.
    work : float
        Settings that read more entries of the data are left out, since they take long;
        the default setting is shortened.

    Returns
    -------
    list of dict
        One row per run, with ``relative_error`` or ``test``, or one row with the reason
        for none.
    """
    at = plan.at_problem(config, point["problem"])
    problem = inputs.load_problem(at)
    if problem is None:
        return [{"status": "unavailable", "reason": inputs.unavailable_reason(at)}]
    labels = data.load_prepared(problem.name, config.data).y
    known = split(problem, labels)
    optimum = inputs.load_optimum(at).value
    seeds, prices = Seeds.of(seed, fresh, held), Prices()
    of = (problem, optimum, [*points(dict(grids), axes=None)], defaults)
    rows = []
    for public, targets in ((True, epsilons), (False, declared_at)):
        on = _on(point["solver"], public)
        aim = (seeds, targets, TUNINGS, known)
        made = contest_rows(on, *of, *aim, work=work, prices=prices)
        rows += [{"public_scales": public, **row} for row in made]
    return rows


def _on(solver: str, public: bool) -> Callable[[Problem], Contestant]:
    """A function that puts a solver on a problem, under its own or declared scales."""
    section = digests.solver_of(solver)

    def on(problem: Problem) -> Contestant:
        scaled = problem if public else declared(problem)
        return contestant(section.algorithm, section.options, scaled)

    return on


def ends(config: schema.Config, point: dict[str, Any], seed: int) -> list[Row]:
    """The floors, w = 0 and the labels' mean, and the ceiling, the minimiser."""
    at = plan.at_problem(config, point["problem"])
    problem = inputs.load_problem(at)
    if problem is None:
        return [{"status": "unavailable", "reason": inputs.unavailable_reason(at)}]
    best = inputs.load_optimum(at)
    y = data.load_prepared(problem.name, config.data).y
    known = split(problem, y)
    zero = np.zeros((1, problem.p))
    start = float(problem.objective(zero)[0])
    size = {"n": problem.n, "p": problem.p, "support": int(best.support.sum())}
    return [
        {
            "end": end,
            "relative_error": error,
            "test_metric": known.metric,
            "test": test,
            **size,
        }
        for end, error, test in (
            ("zero", (start - best.value) / best.value, float(known.measure(zero)[0])),
            ("mean", (constant(y, problem) - best.value) / best.value, math.nan),
            ("optimum", 0.0, float(known.measure(solve(known.train).w[None])[0])),
        )
    ]


def lead(
    config: schema.Config,
    point: dict[str, Any],
    seed: int,
    epsilons: list[float],
    methods: list[str],
    fresh: int,
    work: float,
) -> list[Row]:
    """A published lead on one problem, under every reading (``protocols``)."""
    return protocols.lead(config, point, seed, epsilons, methods, fresh, work)
