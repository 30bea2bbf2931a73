"""Tables of the arena: cells, ranks, choices and recommendations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from dperm.benchmark import peers
from dperm.benchmark.race import REFERENCES, TRIED, TUNINGS
from dperm.config.locate import available
from dperm.data.fetching import describe
from dperm.estimators import methods
from dperm.experiments import digests
from dperm.experiments.inputs import Inputs, titles
from dperm.papers.arena import defaults, ranking
from dperm.papers.arena.ranking import LEFT_OUT

SHOWN = [
    "problem",
    "algorithm",
    "epsilon",
    "tuning",
    "setting",
    "mean",
    "ci_low",
    "ci_high",
    "metric",
    "test",
    "accuracy",
    "true_epsilon",
    "seconds",
    "n",
    "p",
    "loss",
    "data",
    "status",
    "reason",
]
ALL_TUNINGS = (LEFT_OUT, *TUNINGS)
METRIC = "dp_gram"  # the method in a private metric
TILTED = "objective_perturbation"


def outcomes(swept: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
    """Means of runs, with the label of every method and the data of every problem.

    Rows of the tuning ``LEFT_OUT`` have the setting that other data sets choose.
    Unavailable problems have no row.
    """
    runs = swept[swept["status"] != "unavailable"]
    labels = _labels(runs)
    table = defaults.means(runs[runs["tuning"] != TRIED], labels)
    fair = defaults.left_out(
        _with_data(inputs, defaults.settings(runs, labels))
    )
    return pd.concat([_with_data(inputs, table), fair], ignore_index=True)


def settings(swept: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
    """Means of every setting of every method on every problem."""
    runs = swept[swept["status"] != "unavailable"]
    return _with_data(inputs, defaults.settings(runs, _labels(runs)))


def counted(swept: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
    """The outcomes on data sets on which there is something to learn."""
    table = outcomes(swept, inputs)
    return table[~table["data"].isin(unlearnable(table))]


def unlearnable(table: pd.DataFrame) -> list[str]:
    """Data sets on which the fit without privacy is no better than the constant.

    By the metric of held-out records, on all of the data set's problems.
    """
    is_end = table["algorithm"].isin([*REFERENCES.values()])
    tests = table[is_end].pivot_table(
        index=["data", "problem"],
        columns="algorithm",
        values="test",
        sort=False,
    )
    if tests.empty:
        return []
    is_better = tests[REFERENCES["no privacy"]] > tests[REFERENCES["constant"]]
    is_learnable = is_better.groupby(level="data", sort=False).any()
    return [str(name) for name in is_learnable.index[~is_learnable]]


def _labels(runs: pd.DataFrame) -> dict[str, str]:
    solvers = {*runs["solver"]} & {*available("solver")}
    ours = {name: digests.solver_of(name).label for name in solvers}
    return {**peers.PEER_LABELS, **ours}


def _with_data(inputs: Inputs, table: pd.DataFrame) -> pd.DataFrame:
    data_sets = relatives(inputs, [*table["problem"].unique()])
    return table.assign(data=table["problem"].map(data_sets))


def relatives(inputs: Inputs, names: list[str]) -> dict[str, str]:
    """Data set of each problem; the same files or generator have one name."""
    first_names: dict[str, str] = {}
    data_sets = {}
    for name, section in titles(inputs, names).items():
        dataset = section.dataset
        data_sets[name] = first_names.setdefault(
            describe(dataset.sources[0]), dataset.name
        )
    return data_sets


def arena(swept: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
    """Every cell with its interval, and both ends of every problem."""
    table = outcomes(swept, inputs).reindex(columns=SHOWN)
    numbers = table.select_dtypes("float").columns
    return table.assign(**{key: table[key].map(_rounded) for key in numbers})


def _rounded(value: float) -> float:
    """Four digits, which an interval of ten runs does not exceed."""
    return float(f"{value:.4g}")


def ranks(swept: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
    """Mean shares of rank with intervals, under every tuning."""
    table = counted(swept, inputs)
    rows = []
    for tuning in ALL_TUNINGS:
        outcomes_of_tuning = table[table["tuning"] == tuning]
        standing = ranking.standing(ranking.cells(table, tuning))
        seconds = outcomes_of_tuning.groupby("algorithm")["seconds"].mean()
        standing = standing.assign(
            seconds=standing["algorithm"].map(seconds), tuning=tuning
        )
        rows.append(standing)
    return pd.concat(rows, ignore_index=True)


def choices(swept: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
    """Dependence of the ranking on each choice that was made."""
    return pd.DataFrame([*ranking.changes(counted(swept, inputs))])


def advice(swept: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
    """Recommended method for each kind of problem, under every tuning."""
    return _by_tuning(counted(swept, inputs), ranking.advice)


def model(swept: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
    """Regret of every rule, most of them on data sets that were left out."""
    table = counted(swept, inputs)
    labels = dict(zip(table["solver"], table["algorithm"], strict=True))
    rules = {
        loss: [labels.get(name, name) for name in names]
        for loss, names in shipped().items()
    }
    return _by_tuning(table, lambda errors: ranking.model(errors, rules))


def shipped() -> dict[str, list[str]]:
    """Names of the methods that ``dperm.fit`` takes, by loss and range."""
    return {
        loss: [
            methods.usual(loss == "least_squares", 1, low)[0]
            for low, _ in ranking.BUDGETS
        ]
        for loss in ranking.LOSSES
    }


def bins(swept: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
    """What every method loses, by loss and range of n epsilon / p."""
    return pd.DataFrame(ranking.curves(fair(swept, inputs)))


def fair(swept: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
    """Excesses in every cell under defaults that others choose, and of peers."""
    table = counted(swept, inputs)
    ours = ranking.cells(table, LEFT_OUT)
    theirs = ranking.cells(table).reindex(ours.index)
    return ours.join(theirs[theirs.columns.difference(ours.columns)])


def nothing(swept: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
    """Cells in which no method beats the constant, by n epsilon / p, and left-out data.

    A row of no range names the data sets on which there is nothing to learn.
    """
    table = outcomes(swept, inputs)
    excluded = unlearnable(table)
    kept = table[~table["data"].isin(excluded)]
    rows = []
    for tuning in ALL_TUNINGS:
        for problem_class, group in ranking.groups(
            ranking.cells(kept, tuning)
        ):
            is_lost = ~(group.min(axis=1) < 1)
            names = group.index.get_level_values("problem")[is_lost]
            counts = {"cells": len(group), "none": int(is_lost.sum())}
            lost = ", ".join(dict.fromkeys(names))
            rows.append(
                {"tuning": tuning, **problem_class, **counts, "problems": lost}
            )
    rows.append({"none": len(excluded), "problems": ", ".join(excluded)})
    return pd.DataFrame(rows)


def tuned(swept: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
    """Every setting of every method: its mean, and how many data sets take it."""
    return defaults.summary(settings(swept, inputs))


def tried(swept: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
    """Mean excess of every setting on every problem, a column for each epsilon."""
    table = defaults.by_epsilon(settings(swept, inputs))
    numbers = table.select_dtypes("float").columns
    return table.assign(**{key: table[key].map(_rounded) for key in numbers})


def balance(swept: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
    """Private metric beside objective perturbation, by width and balance of classes.

    One row a cell of two classes under fair defaults: AUC, accuracy and excess of both,
    and ``smaller``, the share of held-out labels that a constant has wrong.
    """
    table = counted(swept, inputs)
    ends = table[table["algorithm"] == REFERENCES["constant"]].set_index(
        "problem"
    )
    signed = table[
        (table["loss"] == "logistic") & (table["tuning"] == LEFT_OUT)
    ]
    names = ["problem", "epsilon"]
    solvers = {"metric": METRIC, "tilted": TILTED}
    both = {
        name: signed[signed["solver"] == solver].set_index(names)
        for name, solver in solvers.items()
    }
    rows = []
    for cell in both["tilted"].index.intersection(
        both["metric"].index, sort=False
    ):
        row = dict(zip(names, cell, strict=True))
        row |= {key: both["tilted"].loc[cell, key] for key in ("n", "p")}
        row["smaller"] = 1 - ends.loc[cell[0], "accuracy"]
        for name, table_of_solver in both.items():
            row[f"auc_{name}"] = table_of_solver.loc[cell, "test"]
            row[f"accuracy_{name}"] = table_of_solver.loc[cell, "accuracy"]
            row[f"excess_{name}"] = table_of_solver.loc[cell, "mean"]
        rows.append(row)
    return pd.DataFrame(rows)


def _by_tuning(
    table: pd.DataFrame,
    summarise: Callable[[pd.DataFrame], list[dict[str, Any]]],
) -> pd.DataFrame:
    rows = []
    for tuning in ALL_TUNINGS:
        summary = summarise(ranking.cells(table, tuning))
        rows += [{"tuning": tuning, **row} for row in summary]
    return pd.DataFrame(rows)
