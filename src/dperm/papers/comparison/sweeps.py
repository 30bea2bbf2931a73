"""Sweeps that compare methods over data sets, and the baselines that they lie between.

A point has a problem, whose data are taken as they were fetched, and a solver: one of
``conf/solver`` that fits a linear model. With an axis ``records`` so many records are
drawn of the data, the same for all methods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dperm import data
from dperm.benchmark.race import SPLIT, TUNINGS, Case, Row, rows
from dperm.config.config import read
from dperm.data.fetching import load_fetched
from dperm.estimators import methods
from dperm.experiments.inputs import Inputs, UnavailableError

# a problem's methods run one after another
_LAST: dict[tuple[Any, ...], Case] = {}


def case_of(inputs: Inputs, point: Mapping[str, Any]) -> Case:
    """A point's data set as it was fetched, or so many ``records`` of it.

    Ranges are those of the data, which tells all methods as much. Raises
    UnavailableError, for which a sweep has a row, if there is none, too few records, or
    nothing in it to learn.
    """
    name = point["problem"]
    count = point.get("records")
    key = (name, count, inputs.data.dir, *inputs.overrides)
    if key not in _LAST:
        problem = read("problem", name, inputs.overrides)
        record = data.read_record(problem.dataset.name, inputs.data)
        if record is None or not record.available:
            reason = "not fetched" if record is None else record.reason
            raise UnavailableError(reason)
        X, y = load_fetched(problem.dataset.name, inputs.data)
        try:
            if count is not None:
                chosen = drawn(len(y), count)
                X = X[chosen]
                y = y[chosen]
            case = Case.of(name, X, y, problem.loss)
            case.reference  # noqa: B018 - found once for all methods
        except ValueError as error:
            raise UnavailableError(str(error)) from error
        _LAST.clear()
        _LAST[key] = case
    return _LAST[key]


def drawn(n: int, count: int) -> np.ndarray:
    """The places of ``count`` of n records; of fewer, a part of the same.

    Raises ValueError if there are not so many.
    """
    if not 0 < count <= n:
        raise ValueError(f"records: expected at most {n}, found {count}")
    return np.random.default_rng(SPLIT).permutation(n)[: int(count)]


def race(
    point: dict[str, Any],
    seed: int,
    inputs: Inputs,
    epsilons: list[float],
    fresh: int,
    defaults: Mapping[str, Any] | None = None,
    grids: Mapping[str, Any] | None = None,
    tunings: Sequence[str] = TUNINGS,
) -> list[Row]:
    """Runs of a solver on a problem at every true epsilon, with and without tuning.

    Fresh runs of both, and those of every setting of the grid that chose. ``tunings``
    are ``default`` and ``grid``. Columns: ``excess``, which is 0 without privacy and 1
    for the best constant; ``test``, AUC or R2 on held-out records; ``n`` and ``p``.

    ``defaults`` and ``grids`` replace what the solver declares beside itself.
    """
    section = read("solver", point["solver"])
    solver_section = (section.name, section.algorithm, section.options)
    tuning_options = (
        {section.name: defaults or {}},
        {section.name: grids or {}},
    )
    method = methods.configured(*solver_section, *tuning_options)
    case = case_of(inputs, point)
    return rows(case, method, epsilons, seed, fresh, tunings, keeps_tried=True)


def baselines(point: dict[str, Any], inputs: Inputs) -> list[Row]:
    """The best constant and the fit without privacy.

    They are solvers named ``constant`` and ``no privacy``, of no epsilon.
    """
    return case_of(inputs, point).ends()
