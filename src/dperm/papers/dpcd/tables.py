"""Tables of Mangold et al. 2022 (DP-CD), with the published cells next to ours."""

from __future__ import annotations

import math
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd

from dperm.config.schema import Paper, Product
from dperm.experiments import results
from dperm.experiments.inputs import Inputs, UnavailableError, titles
from dperm.numerics.intervals import student, t_quantile
from dperm.papers.dpcd import theory
from dperm.papers.shared.sweeps import problem_of
from dperm.papers.shared.tables import swept_errors
from dperm.plotting.tables import Rows, groups, named, where
from dperm.privacy.accountants import PUBLISHED

SHIPPED = {"order": "cyclic", "iterate": "last", "thresholds": "scaled"}
VARIANTS = {
    "DP-CD": SHIPPED,
    "DP-CD, one threshold": SHIPPED | {"thresholds": "equal"},
    "DP-CD, Algorithm 1": SHIPPED
    | {"order": "uniform", "iterate": "ten averages"},
}


def utility(inputs: Inputs, problems: list[str]) -> pd.DataFrame:
    """Table 1 in numbers: the terms that the utility bounds compare."""
    rows: Rows = []
    for name in problems:
        try:
            rows += theory.compared(*problem_of(inputs, name))
        except UnavailableError:
            rows.append({"problem": name, "algorithm": "not available"})
    return pd.DataFrame(rows)


def runtime(
    paper: Paper, folder: Path, product: Product, problems: list[str]
) -> pd.DataFrame:
    """Table 3: seconds of a lone run for each number of passes."""
    solver_results = results.load(paper, folder, problems, timed=product.timed)
    rows: Rows = []
    for run in chain.from_iterable(solver_results[name] for name in problems):
        chosen = run.chosen(product.calibration) if run.available else {}
        for passes in chosen.get("passes", ()):
            runs = run.clocked(product.calibration, passes)
            seconds = runs.loc[runs["checkpoint"] == passes, "seconds"]
            row = {"problem": run.problem, "algorithm": run.label}
            row |= {"passes": passes, "mean": seconds.mean()}
            rows.append(row | {"std": seconds.std(ddof=0)})
    printed = results.published(paper, "table3").rename(
        columns={
            "seconds_mean": "published_mean",
            "seconds_std": "published_std",
        }
    )
    keys = ["problem", "algorithm", "passes"]
    table = pd.DataFrame(rows, columns=[*keys, "mean", "std"])
    return table.merge(printed, on=keys, how="left")


def ratio(before: np.ndarray, after: np.ndarray) -> tuple[float, float, float]:
    """Ratio of two means with its 95 % interval, by their logarithms (delta method).

    The ratio is 0 where a run of ``after`` diverged.
    """
    if not np.isfinite(after).all():
        return 0.0, 0.0, math.nan
    logs = math.log(before.mean() / after.mean())
    freedom = len(before) + len(after) - 2
    variance = sum(
        v.var(ddof=1) / len(v) / v.mean() ** 2 for v in (before, after)
    )
    half = t_quantile(freedom) * math.sqrt(variance)
    return math.exp(logs), math.exp(logs - half), math.exp(logs + half)


def thresholds(swept: pd.DataFrame, problems: list[str]) -> pd.DataFrame:
    """Section 5.1: one threshold against adapted ones, and Algorithm 1 as printed."""
    rows: Rows = []
    errors = swept_errors(swept, problems)
    for group_keys, problem_rows in groups(errors, ["problem"]):
        for label, variant in VARIANTS.items():
            variant_rows = where(problem_rows, **variant)
            if len(variant_rows):
                row = group_keys | {"algorithm": label} | _mean(variant_rows)
                rows.append(row | {"passes": variant_rows["passes"].iloc[0]})
    return pd.DataFrame(rows)


def _mean(rows: pd.DataFrame) -> dict[str, float]:
    """Mean of the relative error, its 95 % interval and the number of runs."""
    errors = rows["relative_error"].to_numpy()
    low, high = (
        student(errors) if np.isfinite(errors).all() else (math.nan, math.inf)
    )
    return {
        "mean": errors.mean(),
        "ci_low": low,
        "ci_high": high,
        "runs": len(errors),
    }


def private_constants(
    paper: Paper,
    folder: Path,
    inputs: Inputs,
    product: Product,
    problems: list[str],
) -> pd.DataFrame:
    """Section 5.2 by source of the constants, with DP-SGD first.

    With the published noise DP-SGD is that of its grid, at equal true epsilon that of
    the product's second sweep. ``lead`` is its error over that of the row, with its 95
    % interval. ``given`` lists what the true epsilon takes as public.
    """
    own, equal = (
        swept_errors(results.load_sweep(folder, name), problems)
        for name in product.sweeps
    )
    rows: Rows = []
    for group_keys, group in groups(own, ["problem", "calibration"]):
        name = group_keys["problem"]
        if group_keys["calibration"] == PUBLISHED:
            (dp_sgd,) = results.load(
                paper, folder, [name], solvers=["dp_sgd"]
            )[name]
            start = dp_sgd.final(PUBLISHED)
        else:
            target = titles(inputs, [name])[name].privacy.epsilon
            start = where(equal, problem=name, solver="dp_sgd", epsilon=target)
        rows.append(group_keys | {"constants": "DP-SGD"} | _mean(start))
        for source_keys, source_rows in groups(group, ["constants"]):
            errors = (
                runs["relative_error"].to_numpy()
                for runs in (start, source_rows)
            )
            lead = named("lead", ratio(*errors))
            paid = source_rows.iloc[0][["true_epsilon", "given"]].to_dict()
            rows.append(
                group_keys | source_keys | _mean(source_rows) | lead | paid
            )
    return pd.DataFrame(rows)
