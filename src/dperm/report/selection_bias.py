"""Selection bias: what the best of a grid looked like, and what it is on fresh runs.

The papers print the best mean of a grid over the very runs it was chosen by, and count
the epsilon of one run. Beside every such mean stand the mean of fresh runs and the
epsilon of an honest choice by random stopping, if a trial is as private as the Gaussian
release of the same target.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable, Iterator
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

KEYS = ["paper", "table", "calibration", "problem", "algorithm", "passes"]
MEANS = ["mean", "fresh_mean", "fresh_ci_low", "fresh_ci_high"]
COLUMNS = [*KEYS, *MEANS, "bias", "epsilon", "trials", "tuned_epsilon"]


def selection(config: schema.Config) -> pd.DataFrame:
    """One row for every tuned cell of every paper.

    ``bias`` is the fresh mean over the tuning mean, ``trials`` the size of the grid it
    was chosen from, ``tuned_epsilon`` the cost of choosing among that many by random
    stopping, ``epsilon`` the target that leaves this out.
    """
    rows = [row for paper in papers(config) for row in _paper(paper)]
    return pd.DataFrame(rows, columns=COLUMNS)


def _paper(config: schema.Config) -> Iterator[dict[str, Any]]:
    paper = config.paper
    for name, product in paper.tables.items():
        table = read_or_empty(plan.results_folder(config, paper.name, f"{name}.csv"))
        if not {*KEYS[3:], *MEANS} <= set(table.columns):
            continue
        sizes = _sizes(config, table["algorithm"].unique())
        known = table.dropna(subset=MEANS[:2])
        whole = not known.duplicated(["problem", "algorithm"]).any()
        for row in known.to_dict("records"):
            of = sizes.get(row["algorithm"], Counter())
            trials = of.total() if whole else of[row["passes"]]
            epsilon, delta = _target(row["problem"], config.data.dir)
            yield {
                "paper": paper.name, "table": name,
                "calibration": product.calibration,
                **{key: row[key] for key in (*KEYS[3:], *MEANS)},
                "bias": row["fresh_mean"] / row["mean"] if row["mean"] > 0 else None,
                "epsilon": epsilon, "trials": trials,
                "tuned_epsilon": _cost(epsilon, delta, trials),
            }  # fmt: skip


def _sizes(config: schema.Config, labels: Iterable[str]) -> dict[str, Counter]:
    """Points of every algorithm's grid, by number of passes."""
    found = {}
    for name, run in config.paper.runs.items():
        title = plan.label(config, name)
        if title in labels:
            points = grid.thin(grid.points(run.grid), config.scale.keep)
            found[title] = Counter(point["passes"] for point in points)
    return found


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
    if delta is None or math.isinf(epsilon) or trials < 1:
        return None
    if trials == 1:
        return epsilon
    mu = brentq(lambda x: gaussian_epsilon(x, delta) - epsilon, 1e-9, 1e3, xtol=1e-12)
    one = Ledger((Gaussian(1.0, 1 / mu, 1, "a run", "its target"),))
    return tuned_epsilon(one, delta, trials, "geometric")


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """By paper, noise, algorithm and target: how much higher fresh runs come out."""
    rows = []
    keys = ["paper", "calibration", "algorithm", "epsilon"]
    for names, group in table.dropna(subset="bias").groupby(keys, sort=False):
        row = dict(zip(keys, names, strict=True))
        rows.append(
            {"paper": row["paper"], "noise": row["calibration"],
             "algorithm": row["algorithm"], "cells": len(group),
             "higher on fresh runs": f"{(group['bias'] > 1).mean():.0%}",
             "median fresh / tuning": group["bias"].median(),
             "largest fresh / tuning": group["bias"].max(),
             "settings tried": int(group["trials"].max()),
             "epsilon counted": row["epsilon"],
             "epsilon with an honest choice": group["tuned_epsilon"].max()}
        )  # fmt: skip
    return pd.DataFrame(rows)
