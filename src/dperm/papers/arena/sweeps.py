"""Sweeps of the arena: methods on problems, both ends, a peer, a published lead."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dperm import data
from dperm.compare import methods
from dperm.compare import peers as libraries
from dperm.compare.race import Case, Row, end_rows, rows
from dperm.core.experiment import plan, schema
from dperm.core.lanes.trials import seeds_of
from dperm.data.fetching import load_fetched
from dperm.papers.arena import published

_LAST: dict[tuple[str, str], Case] = {}  # a problem's methods run one after another


def case(config: schema.Config, name: str) -> Case | str:
    """A problem's data set as it was fetched, or why there is none.

    Ranges are those of the data, which tells all methods as much.
    """
    key = (name, config.data.dir)
    if key not in _LAST:
        made = _case(config, name)
        if isinstance(made, str):
            return made
        _LAST.clear()
        _LAST[key] = made
    return _LAST[key]


def _case(config: schema.Config, name: str) -> Case | str:
    at = plan.at_problem(config, name)
    record = data.read_record(at.problem.dataset.name, config.data)
    if record is None or not record.available:
        return "not fetched" if record is None else record.reason
    X, y = load_fetched(at.problem.dataset.name, config.data)
    return Case.of(name, X, y, at.problem.loss)


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
    made, name = case(config, point["problem"]), point["solver"]
    if isinstance(made, str):
        return [{"status": "unavailable", "reason": made}]
    method = methods.method(name, {name: defaults}, {name: grids})
    return rows(made, method, epsilons, seed, fresh)


def ends(config: schema.Config, point: dict[str, Any], seed: int) -> list[Row]:
    """The best constant and the fit without privacy."""
    made = case(config, point["problem"])
    if isinstance(made, str):
        return [{"status": "unavailable", "reason": made}]
    return end_rows(made)


def peers(
    config: schema.Config,
    point: dict[str, Any],
    seed: int,
    epsilons: list[float],
    fresh: int,
) -> list[Row]:
    """Fits of diffprivlib at every epsilon, or the reason why it cannot be had."""
    made = case(config, point["problem"])
    if isinstance(made, str):
        return [{"status": "unavailable", "reason": made}]
    python, reason = libraries.environment(Path(config.data.dir))
    if reason:
        return [{**made.known(libraries.NAME), "status": "gap", "reason": reason}]
    drawn = [one % 2**31 for one in seeds_of(seed, fresh)]
    return libraries.rows(made, python, epsilons, drawn)


def lead(
    config: schema.Config,
    point: dict[str, Any],
    seed: int,
    epsilons: list[float],
    methods: list[str],
    fresh: int,
) -> list[Row]:
    """A published lead on one problem, under every reading (``published``)."""
    return published.lead(config, point, seed, epsilons, methods, fresh)
