"""Tables of the arena: cells, ranks, choices and recommendations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from dperm.compare.race import TUNINGS, means
from dperm.core.experiment import grid
from dperm.core.experiment.plan import at_problem
from dperm.core.experiment.results import load_sweep, sweep_path
from dperm.core.experiment.schema import Config, Product
from dperm.data.fetching import describe
from dperm.papers.arena import ranking
from dperm.pipeline import digests

SHOWN = [
    "problem",
    "algorithm",
    "epsilon",
    "tuning",
    "mean",
    "ci_low",
    "ci_high",
    "metric",
    "test",
    "true_epsilon",
    "seconds",
    "n",
    "p",
    "loss",
    "data",
    "status",
    "reason",
]


def outcomes(config: Config, *sweeps: str) -> pd.DataFrame:
    """Means of all runs, with the label of every method and the data of every problem.

    Unavailable problems have no row.
    """
    tables = [load_sweep(config, name) for name in sweeps or ("race",)
              if not sweeps or sweep_path(config, name).is_file()]  # fmt: skip
    rows = pd.concat(tables, ignore_index=True)
    rows = rows[rows["status"] != "unavailable"]
    points = grid.points(config.paper.sweeps["race"].grid, axes=None)
    solvers = grid.values(points, "solver")
    table = means(rows, {name: digests.solver_of(name).label for name in solvers})
    data_sets = relatives(config, [*table["problem"].unique()])
    return table.assign(data=table["problem"].map(data_sets))


def relatives(config: Config, names: list[str]) -> dict[str, str]:
    """Data set of each problem; the same files or generator have one name."""
    first_names: dict[str, str] = {}
    data_sets = {}
    for name in names:
        dataset = at_problem(config, name).problem.dataset
        data_sets[name] = first_names.setdefault(
            describe(dataset.sources[0]), dataset.name
        )
    return data_sets


def arena(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """Every cell with its interval, and both ends of every problem."""
    table = outcomes(config, *product.sweeps).reindex(columns=SHOWN)
    numbers = table.select_dtypes("float").columns
    return table.assign(**{key: table[key].map(_rounded) for key in numbers})


def _rounded(value: float) -> float:
    """Four digits, which an interval of ten runs does not exceed."""
    return float(f"{value:.4g}")


def ranks(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """Mean shares of rank with intervals, under both tunings."""
    table = outcomes(config)
    rows = []
    for tuning, outcomes_of_tuning in table.groupby("tuning", sort=False):
        standing = ranking.standing(ranking.cells(table, str(tuning)))
        seconds = outcomes_of_tuning.groupby("algorithm")["seconds"].mean()
        standing = standing.assign(
            seconds=standing["algorithm"].map(seconds), tuning=tuning
        )
        rows.append(standing)
    return pd.concat(rows, ignore_index=True)


def choices(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """Dependence of the ranking on each choice that was made."""
    return pd.DataFrame([*ranking.changes(outcomes(config))])


def advice(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """Recommended method for each kind of problem, under both tunings."""
    return _by_tuning(config, ranking.advice)


def model(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """Regret of the choice on data sets that were left out, under both tunings."""
    return _by_tuning(config, ranking.model)


def _by_tuning(
    config: Config, summarise: Callable[[pd.DataFrame], list[dict[str, Any]]]
) -> pd.DataFrame:
    table = outcomes(config)
    rows = []
    for tuning in TUNINGS:
        summary = summarise(ranking.cells(table, tuning))
        rows += [{"tuning": tuning, **row} for row in summary]
    return pd.DataFrame(rows)
