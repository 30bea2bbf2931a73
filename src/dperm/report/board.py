"""The leaderboard: data set x algorithm x true epsilon, error on fresh runs.

Rows come from what the papers' products wrote, never from tuning means: of several
settings of a method the one that TUNING liked best is taken and its fresh mean shown.
The epsilon is what a ledger costs under the strict accountant, so rows of printed noise
stand where that noise puts them, and not at the target.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.report.evidence import read_or_empty

COLUMNS = ["problem", "algorithm", "epsilon", "mean", "ci_low", "ci_high", "setting",
           "noise", "paper", "source", "ledger"]  # fmt: skip
_TUNED = {"problem", "algorithm", "mean", "fresh_mean", "fresh_ci_low", "fresh_ci_high"}
_PRICED = {"problem", "algorithm", "true_epsilon", "mean", "ci_low", "ci_high"}
_SWEPT = "against_epsilon"  # the kind of figure whose x is a true epsilon


class Ledgers:
    """The ledgers of one paper, each read once.

    Attributes
    ----------
    solvers : dict
        Label of a method in the paper to the name of its solver.
    """

    def __init__(self, config: schema.Config) -> None:
        self._config = config
        self._known: dict[Path, list[dict[str, Any]]] = {}
        self.solvers = {plan.label(config, name): name for name in config.paper.runs}

    def path(self, problem: str, label: str) -> Path | None:
        """The ledger of a method on a problem; None where there is none."""
        if label not in self.solvers:
            return None
        names = (self._config.paper.name, problem, self.solvers[label])
        path = plan.results_folder(self._config, *names, "ledger.json")
        return path if path.is_file() else None

    def epsilon(self, row: dict[str, Any], calibration: str) -> float | None:
        """True epsilon of the runs of a row: problem, algorithm, passes.

        The largest, if several settings of these passes differ in it; None where no
        ledger knows it.
        """
        path = self.path(row["problem"], row["algorithm"])
        if path is None:
            return None
        if path not in self._known:
            self._known[path] = store.read_json(path)
        costs = [
            entry["calibrated"]["true_epsilon"]
            for entry in self._known[path]
            if entry["calibrated"]["calibration"] == calibration
            and entry["passes"] == row.get("passes")
        ]
        return max(costs) if costs and None not in costs else None


def board(papers: list[tuple[schema.Config, Ledgers]]) -> pd.DataFrame:
    """All rows of all papers, ranked within data set and epsilon.

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


def leaders(table: pd.DataFrame) -> pd.DataFrame:
    """The first of every data set and epsilon at which there are others."""
    return table[(table["place"] == 1) & (table["of"] > 1)]


def _rows(config: schema.Config, ledgers: Ledgers) -> Iterator[dict[str, Any]]:
    """What one paper knows of errors on fresh runs at a known epsilon."""
    paper = config.paper
    for name, product in paper.tables.items():
        path = plan.results_folder(config, paper.name, f"{name}.csv")
        data = read_or_empty(path)
        of = {"paper": paper.name, "source": path, "ledger": None}
        if set(data.columns) >= _TUNED:
            of |= {"noise": product.calibration}
            yield from (of | row for row in _tuned(data, ledgers, product.calibration))
        elif set(data.columns) >= _PRICED:
            yield from (of | row for row in _priced(data))
    for name, product in paper.figures.items():
        if product.kind == _SWEPT:
            path = plan.figures_folder(config, paper.name, f"{name}.csv")
            data = read_or_empty(path).rename(
                columns={"panel": "problem", "x": "epsilon"}
            )
            of = {"paper": paper.name, "source": path, "ledger": None,
                  "noise": "strict", "setting": "tuned at each epsilon"}  # fmt: skip
            yield from (row | of for row in data.to_dict("records"))


def _tuned(
    data: pd.DataFrame, ledgers: Ledgers, calibration: str
) -> Iterator[dict[str, Any]]:
    """A row a problem and method, at the passes that tuning likes best, with its price.

    By its own column, or by its ledger.
    """
    known = data.dropna(subset=["mean", "fresh_mean"])
    best = known.groupby(["problem", "algorithm"], sort=False)["mean"].idxmin()
    for row in known.loc[best].to_dict("records"):
        passes, epsilon = row.get("passes"), row.get("true_epsilon")
        if epsilon is None:
            epsilon = ledgers.epsilon(row, calibration)
        yield {
            "problem": row["problem"], "algorithm": row["algorithm"],
            "epsilon": epsilon, "mean": row["fresh_mean"],
            "ci_low": row["fresh_ci_low"], "ci_high": row["fresh_ci_high"],
            "setting": "" if passes is None else f"{passes:g} passes",
            "ledger": ledgers.path(row["problem"], row["algorithm"]),
        }  # fmt: skip


def _priced(data: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Rows that bring their epsilon; with tuning over the whole grid where it says."""
    if "tuning" in data:
        data = data[data["tuning"] == "grid"]
    if "public_scales" in data:
        data = data[data["public_scales"].eq(True)]  # written as 1 where some have none
    keys = ("problem", "algorithm", "mean", "ci_low", "ci_high")
    for row in data.dropna(subset=["mean", "ci_low"]).to_dict("records"):
        same = {key: row[key] for key in keys}
        yield {**same, "epsilon": row["true_epsilon"], "setting": "", "noise": "strict"}
