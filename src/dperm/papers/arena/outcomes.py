"""The arena's runs, put together: means of the sweep ``contest``."""

from __future__ import annotations

import pandas as pd

from dperm.compare import results
from dperm.core.experiment import schema
from dperm.core.experiment.plan import at_problem
from dperm.core.experiment.results import load_sweep
from dperm.pipeline import digests

DATA = "data"  # the data set of a problem: what is drawn again for intervals
COLUMNS = [*results.COLUMNS, DATA]


def means(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for every problem, method, epsilon, tuning and kind of scales."""
    return results.means(rows, label).reindex(columns=COLUMNS)


def label(solver: str) -> str:
    """What a solver's YAML calls it."""
    return digests.solver_of(solver).label


def contest(config: schema.Config) -> pd.DataFrame:
    """The means of the sweep ``contest``, with the data set of every problem."""
    table = means(load_sweep(config, "contest"))
    known = {
        name: at_problem(config, name).problem.dataset.name
        for name in table["problem"].unique()
    }
    return table.assign(**{DATA: table["problem"].map(known)})
