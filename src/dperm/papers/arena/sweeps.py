"""Sweeps of the arena: methods on problems, both ends, and a peer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dperm import data
from dperm.benchmark import peers as libraries
from dperm.benchmark.race import Case, Row, rows
from dperm.config.config import read
from dperm.data.fetching import load_fetched
from dperm.estimators import methods
from dperm.experiments.inputs import Inputs, UnavailableError
from dperm.solvers.batched.trials import seeds_of

_LAST: dict[tuple[str, str], Case] = {}  # a problem's methods run one after another


def _case(inputs: Inputs, name: str) -> Case:
    """A problem's data set as it was fetched.

    Ranges are those of the data, which tells all methods as much. Raises
    UnavailableError, for which a sweep has a row, if there is none, or nothing in it to
    learn.
    """
    key = (name, inputs.data.dir)
    if key not in _LAST:
        problem = read("problem", name, inputs.overrides)
        record = data.read_record(problem.dataset.name, inputs.data)
        if record is None or not record.available:
            reason = "not fetched" if record is None else record.reason
            raise UnavailableError(reason)
        X, y = load_fetched(problem.dataset.name, inputs.data)
        try:
            case = Case.of(name, X, y, problem.loss)
            case.reference  # noqa: B018 - found once for all methods
        except ValueError as error:
            raise UnavailableError(str(error)) from error
        _LAST.clear()
        _LAST[key] = case
    return _LAST[key]


def race(
    point: dict[str, Any],
    seed: int,
    inputs: Inputs,
    epsilons: list[float],
    fresh: int,
    defaults: Mapping[str, Any] | None = None,
    grids: Mapping[str, Any] | None = None,
) -> list[Row]:
    """Runs of a solver on a problem at every epsilon, with and without tuning.

    Fresh runs of both, and those of every setting of the grid that chose.

    ``defaults`` and ``grids`` replace what the solver declares beside itself.
    """
    section = read("solver", point["solver"])
    solver_section = (section.name, section.algorithm, section.options)
    tuning_options = ({section.name: defaults or {}}, {section.name: grids or {}})
    method = methods.configured(*solver_section, *tuning_options)
    case = _case(inputs, point["problem"])
    return rows(case, method, epsilons, seed, fresh, keeps_tried=True)


def ends(point: dict[str, Any], inputs: Inputs) -> list[Row]:
    """The best constant and the fit without privacy."""
    return _case(inputs, point["problem"]).ends()


def peers(
    point: dict[str, Any], seed: int, inputs: Inputs, epsilons: list[float], fresh: int
) -> list[Row]:
    """Fits of other libraries at every epsilon, or the reason why there are none."""
    case = _case(inputs, point["problem"])
    drawn = [run_seed % 2**31 for run_seed in seeds_of(seed, fresh)]
    table = []
    for library in libraries.LIBRARIES.values():
        python, reason = libraries.environment(Path(inputs.data.dir), library)
        if reason:
            gap = {**case.known(library.name), "status": "gap", "reason": reason}
            table.append(gap)
        else:
            table += libraries.rows(case, python, epsilons, drawn, library)
    return table
