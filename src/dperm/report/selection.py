"""Selection bias: what tuning promised, what fresh runs give, what the choice costs."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from scipy.optimize import brentq

from dperm.accountants.random_stopping import tuned_epsilon
from dperm.core.experiment import config as configuration
from dperm.core.experiment import files as store
from dperm.core.experiment import grid, plan, schema
from dperm.core.experiment.validation import number
from dperm.core.privacy.ledger import Gaussian, Ledger
from dperm.core.privacy.strict import gaussian_epsilon
from dperm.report.claims import papers
from dperm.report.evidence import read_or_empty

Row = dict[str, Any]
FRESH = ["fresh_mean", "fresh_ci_low", "fresh_ci_high"]
CELL = ["paper", "table", "calibration", "problem", "algorithm", "passes"]
SELECTION = [*CELL, "mean", *FRESH, "bias", "epsilon", "trials"]
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
        if not {*CELL[3:], "mean", *FRESH} <= set(table.columns):
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


def in_words(selected: pd.DataFrame) -> str:
    """What fresh runs and an honest choice change, in a sentence; empty without any."""
    bias = selected["bias"].dropna()
    if bias.empty:
        return ""
    text = (
        "Fresh runs have larger errors than the tuning runs in "
        f"{(bias > 1).mean():.0%} of {len(bias)} chosen settings, by a factor of "
        f"{bias.median():.3g} in the median and {bias.max():.3g} at most."
    )
    priced = selected.dropna(subset="tuned_epsilon")
    if len(priced):
        dearest = priced.loc[(priced["tuned_epsilon"] / priced["epsilon"]).idxmax()]
        text += (
            f" A private choice among {dearest['trials']:,g} settings, by random "
            "stopping (Papernot and Steinke 2022, Theorem 2), raises epsilon from "
            f"{dearest['epsilon']:g} to {dearest['tuned_epsilon']:.3g}."
        )
    return text
