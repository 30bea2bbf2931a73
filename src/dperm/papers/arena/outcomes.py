"""Means of the arena's runs."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from dperm.compare import results
from dperm.core.experiment import schema
from dperm.core.experiment.plan import at_problem
from dperm.core.experiment.results import load_sweep, sweep_path
from dperm.data.fetching import describe
from dperm.pipeline import digests

DATA = "data"  # data set of a problem; intervals resample data sets
UNREAD = ("test_ci_low", "test_ci_high", "runs", "settings", "given")
COLUMNS = [*(one for one in results.COLUMNS if one not in UNREAD), DATA]
_KEPT: dict[tuple[str, int], pd.DataFrame] = {}


def means(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for every problem, method, epsilon, tuning and kind of scales."""
    return results.means(rows, label).reindex(columns=COLUMNS)


def label(solver: str) -> str:
    """Label of a solver, from its YAML."""
    return digests.solver_of(solver).label


def contest(config: schema.Config) -> pd.DataFrame:
    """The means of all methods on all problems, with the data set of every problem.

    The table is kept, because a drawing job makes ten products from it.
    """
    path = sweep_path(config, "contest")
    key = (str(path), path.stat().st_mtime_ns)
    if key not in _KEPT:
        table = means(load_sweep(config, "contest"))
        known = relatives(config, table["problem"].unique())
        _KEPT[key] = table.assign(**{DATA: table["problem"].map(known)})
    return _KEPT[key].copy()


def relatives(config: schema.Config, names: Iterable[str]) -> dict[str, str]:
    """Data set of each problem; the same files or generator have one name."""
    first: dict[str, str] = {}
    found = {}
    for name in names:
        dataset = at_problem(config, name).problem.dataset
        found[name] = first.setdefault(describe(dataset.sources[0]), dataset.name)
    return found
