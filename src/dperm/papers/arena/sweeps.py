"""Sweeps of the arena: methods on problems, both ends, a peer, a published lead.

A statement "X consistently outperforms Y" depends on the noise that each author's
accountant allows, and on whether labels are centred. So ``lead`` runs both methods on
the same data under each of these readings. There are two controls: the second method
again with other seeds, and the better of w = 0 and the labels' mean, which learns
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dperm import data
from dperm.compare import methods
from dperm.compare import peers as libraries
from dperm.compare.methods import Contestant
from dperm.compare.race import Case, Row, rows
from dperm.core.calibrations import STRICT
from dperm.core.erm.optimum import solve
from dperm.core.erm.problem import Problem
from dperm.core.experiment import plan, schema
from dperm.core.lanes.trials import seeds_of
from dperm.core.privacy.calibration import calibrate
from dperm.data.fetching import load_fetched
from dperm.papers.arena.published import published
from dperm.papers.arena.ranking import AGAIN
from dperm.pipeline import inputs

READINGS = {  # published noise, centred labels
    "published noise, labels as they are": (True, False),
    "published noise": (True, True),
    "one epsilon": (False, True),
}
_LAST: dict[tuple[str, str], Case] = {}  # a problem's methods run one after another


def _case(config: schema.Config, name: str) -> Case:
    """A problem's data set as it was fetched.

    Ranges are those of the data, which tells all methods as much. Raises
    UnavailableError, for which a sweep has a row, if there is none.
    """
    key = (name, config.data.dir)
    if key not in _LAST:
        at = plan.at_problem(config, name).problem
        record = data.read_record(at.dataset.name, config.data)
        if record is None or not record.available:
            reason = "not fetched" if record is None else record.reason
            raise inputs.UnavailableError(reason)
        X, y = load_fetched(at.dataset.name, config.data)
        _LAST.clear()
        _LAST[key] = Case.of(name, X, y, at.loss)
    return _LAST[key]


def race(
    config: schema.Config,
    point: dict[str, Any],
    seed: int,
    epsilons: list[float],
    fresh: int,
    defaults: Mapping[str, Any],
    grids: Mapping[str, Any],
) -> list[Row]:
    """A method on a problem at every epsilon, with and without tuning.

    Parameters
    ----------
    config : schema.Config
    point : dict
        problem, solver.
    seed : int
        Of everything that is drawn.
    epsilons : list of float
    fresh : int
        Runs of a setting.
    defaults, grids : mapping
        Of the point's solver.

    Returns
    -------
    list of dict
        Of ``compare.race.rows``.
    """
    name = point["solver"]
    method = methods.method(name, {name: defaults}, {name: grids})
    return rows(_case(config, point["problem"]), method, epsilons, seed, fresh)


def ends(config: schema.Config, point: dict[str, Any], seed: int) -> list[Row]:
    """The best constant and the fit without privacy."""
    return _case(config, point["problem"]).ends()


def peers(
    config: schema.Config,
    point: dict[str, Any],
    seed: int,
    epsilons: list[float],
    fresh: int,
) -> list[Row]:
    """Fits of diffprivlib at every epsilon, or the reason why it cannot be had."""
    case = _case(config, point["problem"])
    python, reason = libraries.environment(Path(config.data.dir))
    if reason:
        return [{**case.known(libraries.NAME), "status": "gap", "reason": reason}]
    drawn = [one % 2**31 for one in seeds_of(seed, fresh)]
    return libraries.rows(case, python, epsilons, drawn)


def lead(
    config: schema.Config,
    point: dict[str, Any],
    seed: int,
    epsilons: list[float],
    methods: list[str],
    fresh: int,
) -> list[Row]:
    """Runs of two methods, and of the second again, under every reading.

    Parameters
    ----------
    point : dict
        problem.
    methods : list of str
        The method published as ahead, and the other.
    """
    at = plan.at_problem(config, point["problem"])
    centred = inputs.load_problem(at)
    y = load_fetched(at.problem.dataset.name, config.data)[1]
    found: list[Row] = []
    for reading, (is_published, is_centred) in READINGS.items():
        moved = 0.0 if is_centred else float(y.mean())
        problem = replace(centred, offset=centred.offset - moved, public=None)
        best = solve(problem).value
        zero = float(problem.objective(np.zeros(problem.p))[0])
        floor = (min(zero, float(np.var(y)) / 2) - best) / best
        for epsilon in epsilons:
            for k, name in enumerate((*methods, methods[1])):
                of_epsilon = replace(problem, epsilon=epsilon)
                on, noise = _priced(name, of_epsilon, is_published)
                W = [on.weights({}, noise, one) for one in seeds_of(seed + k, fresh)]
                who = name if k < 2 else AGAIN
                known: Row = {"reading": reading, "method": who}
                known |= {"floor": floor, "epsilon": epsilon, "status": "ok"}
                errors = (problem.objective(np.array(W)) - best) / best
                found += [{**known, "relative_error": float(one)} for one in errors]
    return found


def _priced(
    name: str, problem: Problem, is_published: bool
) -> tuple[Contestant, float]:
    """A method on a problem, and the noise multiplier of its default setting."""
    if is_published:
        return published(name, problem), 1.0
    on = methods.method(name).on(problem)
    target = (problem.epsilon, problem.delta, STRICT)
    return on, calibrate(partial(on.ledger, {}), *target).noise_multiplier
