"""Sweeps of the arena: methods on problems, floors and ceiling, price."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dperm import data
from dperm.compare import TUNINGS
from dperm.compare.contest import Prices, Row, Seeds, contest_rows
from dperm.compare.contestants import Contestant, contestant
from dperm.compare.metrics import split
from dperm.core.erm.optimum import solve
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import Problem, build
from dperm.core.experiment import plan, schema
from dperm.core.experiment.grid import points
from dperm.data.synthetic import dialled_classification, dialled_regression
from dperm.papers.arena import protocols, steps
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


def knobs(
    config: schema.Config,
    point: dict[str, Any],
    seed: int,
    n: int,
    epsilons: list[float],
    grids: Mapping[str, Any],
    defaults: Mapping[str, Any],
    fresh: int,
    draw: int,
) -> list[Row]:
    """A method on a synthetic problem with chosen knobs.

    Parameters
    ----------
    config, seed, epsilons, grids, defaults, fresh
        As for ``contest``, without private choices and held-out metrics.
    point : dict
        solver, family (logistic or lasso), p, imbalance, active (share), correlation.
    n : int
        Records.
    draw : int
        Seed of the data.
    """
    problem = dialled(point, n, draw)
    optimum = solve(problem).value
    zero = float(problem.objective(np.zeros((1, problem.p)))[0])
    of = (problem, optimum, [*points(dict(grids), axes=None)], defaults)
    seeds, tunings = Seeds.of(seed, fresh, 0), ("default", "grid")
    rows = contest_rows(_on(point["solver"], True), *of, seeds, epsilons, tunings)
    return [{"zero": (zero - optimum) / optimum, **row} for row in rows]


def dialled(point: Mapping[str, Any], n: int, draw: int) -> Problem:
    """The synthetic problem of a point."""
    p = int(point["p"])
    active = max(1, round(point["active"] * p))
    given = (n, p, float(point["imbalance"]), active, float(point["correlation"]), draw)
    if point["family"] == "logistic":
        X, y = dialled_classification(*given)
        loss, penalty = "logistic", Penalty(l2=1 / n)
    else:
        X, y = dialled_regression(*given)
        loss, penalty = (
            "least_squares",
            Penalty(l1=0.1 / float(point["imbalance"]) ** 0.25),
        )
    made = build("dialled", X, y, loss, penalty, 1.0, 1 / n**2)
    return replace(made, digest=repr(sorted(point.items())))


def price(
    config: schema.Config,
    point: dict[str, Any],
    seed: int,
    frames: Mapping[str, Any],
    epsilons: list[float],
    runs: int,
    most: int,
) -> list[Row]:
    """Cost of a step towards an honest fit on a data frame, one row per fit.

    Parameters
    ----------
    config : schema.Config
    point : dict
        frame, step (of ``steps.STEPS``, or diffprivlib).
    seed : int
    frames : mapping
        How each frame is read (:mod:`.steps`).
    epsilons : list of float
    runs : int
        Fits at each epsilon.
    most : int
        Largest number of records taken from a frame.

    Returns
    -------
    list of dict
        ``excess`` is the mean loss minus the least one, over the gain of the least one
        on the best constant. ``test`` is the metric on the held-out fifth.
    """
    case = steps.case(config, frames[point["frame"]], most)
    if isinstance(case, str):
        return [{"status": "unavailable", "reason": case}]
    constant, least, p = steps.ends(case)
    known = {"n": len(case.y), "p": p, "test_metric": "auc" if case.signed else "rmse"}
    seeds = [plan.seed_of(seed, "price", point["frame"], "", 0, k) for k in range(runs)]

    def row(epsilon: float, parts: list[np.ndarray], solver: str) -> Row:
        train, test = parts
        excess = (case.loss(train) - least) / (constant - least)
        made = {"epsilon": epsilon, "excess": excess, "test": case.metric(test)}
        return {**known, **made, "solver": solver, "status": "ok", "reason": ""}

    rows = []
    if point["step"] == steps.PEER:
        every, reason = steps.of_peer(config, case, epsilons, seeds)
        if reason:
            return [{**known, "status": "left out", "reason": reason}]
        for epsilon, some in zip(epsilons, every, strict=True):
            both = (np.split(one, [len(case.y)]) for one in some)
            rows += [row(epsilon, parts, steps.PEER) for parts in both]
        return rows
    for epsilon in epsilons:
        for one in seeds:
            try:
                model = steps.fitted(case, point["step"], epsilon, one)
            except ValueError as error:
                more = {"epsilon": epsilon, "status": "left out", "reason": str(error)}
                rows.append({**known, **more})
                break
            parts = [steps.scores(model, part) for part in (case.train, case.test)]
            rows.append(row(epsilon, parts, model.solver_))
    return rows
