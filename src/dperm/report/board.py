"""Errors on fresh runs: the leaderboard, by data set and by method; selection bias.

Rows come from what the papers' products wrote: of several settings of a method the one
that tuning liked best, its fresh mean, and what its ledger costs under the strict
accountant. ``selection`` sets fresh means and an honest epsilon beside tuning means.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from scipy.optimize import brentq

from dperm.accountants.random_stopping import tuned_epsilon
from dperm.core.experiment import config as configuration
from dperm.core.experiment import files as store
from dperm.core.experiment import grid, plan, schema
from dperm.core.experiment.validation import number
from dperm.core.privacy.ledger import Gaussian, Ledger
from dperm.core.privacy.strict import gaussian_epsilon
from dperm.data.fetching import taken_as_it_came
from dperm.report.claims import papers
from dperm.report.evidence import read_or_empty

if TYPE_CHECKING:
    from dperm.report.page import Paper

Row = dict[str, Any]
RANKED = ["problem", "algorithm", "epsilon", "mean", "ci_low", "ci_high"]
COLUMNS = [*RANKED, "setting", "noise", "paper", "source", "ledger"]
FRESH = {"mean": "fresh_mean", "ci_low": "fresh_ci_low", "ci_high": "fresh_ci_high"}
TUNED = ["problem", "algorithm", "mean", *FRESH.values()]
PRICED = ["problem", "algorithm", "true_epsilon", "mean", "ci_low", "ci_high"]
SWEPT = "against_epsilon"  # the kind of figure whose x is a true epsilon


class Ledgers:
    """The ledgers of one paper, each read once.

    Attributes
    ----------
    solvers : dict
        Label of a method in the paper to the name of its solver.
    """

    def __init__(self, config: schema.Config) -> None:
        self._config = config
        self._read = functools.cache(functools.partial(store.read_json, kind=list))
        self.solvers = {plan.label(config, name): name for name in config.paper.runs}

    def path(self, problem: str, label: str) -> Path | None:
        """The ledger of a method on a problem; None where there is none."""
        if label not in self.solvers:
            return None
        names = (self._config.paper.name, problem, self.solvers[label])
        path = plan.results_folder(self._config, *names, "ledger.json")
        return path if path.is_file() else None

    def epsilon(self, row: Row, calibration: str) -> float | None:
        """True epsilon of the runs of a row: problem, algorithm, passes.

        The largest, if several settings of these passes differ in it; None where no
        ledger knows it.
        """
        path = self.path(row["problem"], row["algorithm"])
        costs = [
            entry["calibrated"]["true_epsilon"]
            for entry in (self._read(path) if path else [])
            if entry["calibrated"]["calibration"] == calibration
            and entry["passes"] == row.get("passes")
        ]
        return max(costs) if costs and None not in costs else None


def board(papers: list[tuple[schema.Config, Ledgers]]) -> pd.DataFrame:
    """All rows, ranked within data set and epsilon.

    Parameters
    ----------
    papers : list of (Config, Ledgers)

    Returns
    -------
    DataFrame
        ``COLUMNS``; ``at``, the epsilon to two digits, which is what rows are ranked
        within; ``place``, from 1; ``of``; ``tied``, whether the interval of the row
        meets that of the first (a row without one is tied where it is the first).
    """
    rows = [row for paper in papers for row in _rows(*paper)]
    table = pd.DataFrame(rows, columns=COLUMNS).dropna(subset=["mean", "epsilon"])
    if table.empty:
        return table.assign(at=[], place=[], of=[], tied=[])
    table = table[(table["epsilon"] > 0) & (table["epsilon"] < math.inf)]
    table["at"] = [float(f"{epsilon:.2g}") for epsilon in table["epsilon"]]
    table = table.drop_duplicates(["problem", "algorithm", "at", "mean"])  # two tables
    keys = ["problem", "at"]
    table = table.sort_values([*keys, "mean", "algorithm"], kind="stable")
    groups = table.groupby(keys, sort=False)
    table["place"] = groups.cumcount() + 1
    table["of"] = groups["mean"].transform("size")
    first = groups["ci_high"].transform("first")
    table["tied"] = (table["ci_low"] <= first) | (table["place"] == 1)
    return table.reset_index(drop=True)


def _rows(config: schema.Config, ledgers: Ledgers) -> Iterator[Row]:
    """What one paper knows of errors on fresh runs at a known epsilon."""
    paper = config.paper.name
    for name, product in config.paper.tables.items():
        path = plan.results_folder(config, paper, f"{name}.csv")
        data = read_or_empty(path)
        if set(TUNED) <= set(data.columns):
            rows = _tuned(data, ledgers, product.calibration)
        else:
            rows = _priced(data) if set(PRICED) <= set(data.columns) else iter(())
        yield from ({"paper": paper, "source": path, "ledger": None} | r for r in rows)
    for name, product in config.paper.figures.items():
        if product.kind == SWEPT:
            path = plan.figures_folder(config, paper, f"{name}.csv")
            renamed = {"panel": "problem", "x": "epsilon"}
            data = (
                read_or_empty(path)
                .rename(columns=renamed)
                .assign(
                    paper=paper,
                    source=path,
                    ledger=None,
                    noise="strict",
                    setting="tuned at each epsilon",
                )
            )
            yield from data.to_dict("records")


def _tuned(data: pd.DataFrame, ledgers: Ledgers, calibration: str) -> Iterator[Row]:
    """A row a problem and method, at the passes that tuning likes best, with its price.

    By its own column, or by its ledger.
    """
    known = data.dropna(subset=["mean", "fresh_mean"])
    best = known.groupby(["problem", "algorithm"], sort=False)["mean"].idxmin()
    for row in known.loc[best].to_dict("records"):
        passes, epsilon = row.get("passes"), row.get("true_epsilon")
        yield {
            "problem": row["problem"],
            "algorithm": row["algorithm"],
            "epsilon": ledgers.epsilon(row, calibration)
            if epsilon is None
            else epsilon,
            **{name: row[fresh] for name, fresh in FRESH.items()},
            "setting": "" if passes is None else f"{passes:g} passes",
            "ledger": ledgers.path(row["problem"], row["algorithm"]),
            "noise": calibration,
        }


def _priced(data: pd.DataFrame) -> Iterator[Row]:
    """Rows that bring their epsilon; with tuning over the whole grid where it says."""
    if "tuning" in data:
        data = data[data["tuning"] == "grid"]
    if "public_scales" in data:
        data = data[data["public_scales"].eq(True)]  # written as 1 where some have none
    known = data.dropna(subset=["mean", "ci_low"]).assign(setting="", noise="strict")
    renamed = known.rename(columns={"true_epsilon": "epsilon"})
    yield from renamed[[*RANKED, "setting", "noise"]].to_dict("records")


def data_sets(
    board: pd.DataFrame, papers: list[Paper], titles: dict[str, str]
) -> list[Row]:
    """Every problem with a row on the board or a panel of its own.

    Returns
    -------
    list of dict
        ``name``, ``title``; ``levels``, the leader at each epsilon with the number of
        rows that cannot be told from it; ``figures`` and ``ledgers``; ``claims``, how
        many name it.
    """
    sets = []
    for name, title in titles.items():
        rows = board[board["problem"] == name]
        figures = [f for paper in papers for f in paper.figures if name in f.problems]
        if len(rows) or figures:
            levels = [
                {**group.iloc[0].to_dict(), "ties": int(group["tied"].sum()) - 1}
                for _, group in rows.groupby("at")
            ]
            about = _about(rows, papers, "problems", name)
            data = configuration.read("problem", name).dataset
            more = {"title": title, "levels": levels, "figures": figures}
            more["unverified"] = taken_as_it_came(data)
            sets.append(about | more)
    return sets


def methods(board: pd.DataFrame, papers: list[Paper]) -> list[Row]:
    """Every method of the board: its rows, and the figures that draw it."""
    every = []
    for name, rows in board.groupby("algorithm", sort=True):
        rivals = rows[rows["of"] > 1]
        every.append(
            _about(rows, papers, "methods", str(name))
            | {
                "rows": rows.to_dict("records"),
                "wins": int((rivals["place"] == 1).sum()),
                "rivals": len(rivals),
                "figures": [
                    figure
                    for paper in papers
                    for figure in paper.figures
                    if name in figure.methods
                ],
            }
        )
    return every


def _about(rows: pd.DataFrame, papers: list[Paper], key: str, name: str) -> Row:
    """A data set or method with its ledgers, and how many claims name it."""
    known = rows.dropna(subset="ledger").drop_duplicates("ledger")
    ledgers = known[["paper", "problem", "algorithm", "ledger"]].to_dict("records")
    claims = sum(name in claim[key] for paper in papers for claim in paper.claims)
    return {"name": name, "ledgers": ledgers, "claims": claims}


# --- selection bias -------------------------------------------------------------------

CELL = ["paper", "table", "calibration", "problem", "algorithm", "passes"]
SELECTION = [*CELL, "mean", *FRESH.values(), "bias", "epsilon", "trials"]
SELECTION.append("tuned_epsilon")


def selection(config: schema.Config) -> pd.DataFrame:
    """One row for every tuned cell of every paper.

    ``bias`` is the fresh mean over the tuning mean, ``trials`` the size of the grid it
    was chosen from, ``tuned_epsilon`` the cost of choosing among that many by random
    stopping, ``epsilon`` the target that leaves this out.
    """
    rows = [row for paper in papers(config) for row in _cells(paper)]
    return pd.DataFrame(rows, columns=SELECTION)


def _cells(config: schema.Config) -> Iterator[Row]:
    paper = config.paper
    sizes = {  # points of every algorithm's grid, by number of passes
        plan.label(config, name): Counter(
            point["passes"]
            for point in grid.thin(grid.points(run.grid), config.scale.keep)
        )
        for name, run in paper.runs.items()
    }
    for name, product in paper.tables.items():
        table = read_or_empty(plan.results_folder(config, paper.name, f"{name}.csv"))
        if not {*TUNED, "passes"} <= set(table.columns):
            continue
        known = table.dropna(subset=["mean", "fresh_mean"])
        whole = not known.duplicated(["problem", "algorithm"]).any()
        for row in known.to_dict("records"):
            of = sizes.get(row["algorithm"], Counter())
            trials = of.total() if whole else of[row["passes"]]
            epsilon, delta = _target(row["problem"], config.data.dir)
            yield {
                **row,
                "paper": paper.name,
                "table": name,
                "calibration": product.calibration,
                "bias": row["fresh_mean"] / row["mean"] if row["mean"] > 0 else None,
                "epsilon": epsilon,
                "trials": trials,
                "tuned_epsilon": _cost(epsilon, delta, trials),
            }


@functools.cache
def _target(problem: str, folder: str) -> tuple[float, float | None]:
    """Epsilon and delta of a problem; no delta where it needs an n that is not here."""
    privacy = configuration.read("problem", problem).privacy
    meta = Path(folder, "prepared", problem, "meta.json")
    n = store.read_json(meta).get("n") if meta.is_file() else None
    if n is None and isinstance(privacy.delta, str):
        return privacy.epsilon, None
    return privacy.epsilon, number(privacy.delta, n or 1, f"{problem}: delta")


@functools.cache
def _cost(epsilon: float, delta: float | None, trials: int) -> float | None:
    """Epsilon of a choice among so many Gaussian releases of that epsilon."""
    if delta is None or math.isinf(epsilon) or trials < 1:
        return None
    if trials == 1:
        return epsilon
    mu = brentq(lambda x: gaussian_epsilon(x, delta) - epsilon, 1e-9, 1e3, xtol=1e-12)
    one = Ledger((Gaussian(1.0, 1 / mu, 1, "a run", "its target"),))
    return tuned_epsilon(one, delta, trials, "geometric")


def by_algorithm(selected: pd.DataFrame) -> pd.DataFrame:
    """By paper, noise, algorithm and target: how much higher fresh runs come out."""
    keys = ["paper", "calibration", "algorithm", "epsilon"]
    groups = selected.dropna(subset="bias").groupby(keys, sort=False)
    rows = [
        {
            "paper": paper,
            "noise": noise,
            "algorithm": algorithm,
            "cells": len(group),
            "higher on fresh runs": f"{(group['bias'] > 1).mean():.0%}",
            "median fresh / tuning": group["bias"].median(),
            "largest fresh / tuning": group["bias"].max(),
            "settings tried": int(group["trials"].max()),
            "epsilon counted": epsilon,
            "epsilon with an honest choice": group["tuned_epsilon"].max(),
        }
        for (paper, noise, algorithm, epsilon), group in groups
    ]
    return pd.DataFrame(rows)
