"""Tables of Mangold et al. 2023 (DP-GCD), with the published cells next to ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from dperm.core.experiment import grid, plan, results
from dperm.core.experiment.results import Result
from dperm.core.experiment.schema import Config, Product
from dperm.kinds.sweeps import problem_of
from dperm.kinds.tables import FRESH, noises, swept_of
from dperm.papers.dpgcd import growing
from dperm.pipeline import inputs
from dperm.present.intervals import clopper_pearson
from dperm.present.tables import Rows, groups, with_interval

_MISSING = "not available"


def sizes(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """Table 1: records and features, counted in the data, and facts of the optimum."""
    rows: Rows = []
    for name in problems:
        known = problem_of(config, name)
        if known is None:
            rows.append({"problem": name, "status": _MISSING})
            continue
        problem, optimum = known
        start = float(problem.objective(np.zeros(problem.p))[0])
        entries = problem.A.nnz if problem.is_sparse else np.count_nonzero(problem.A)
        row = {"problem": name, "records": problem.n, "features": problem.p}
        row |= {"non_zeros": int(entries), "epsilon": problem.epsilon}
        row |= {"delta": problem.delta, "optimum": optimum.value}
        row |= {"relative_error_at_zero": (start - optimum.value) / optimum.value}
        rows.append(row | {"support_size": int(optimum.support.sum()), "status": "ok"})
    return pd.DataFrame(rows)


def grids(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """Table 2: the grid of every solver, as configured."""
    rows = []
    for name, run in config.paper.runs.items():
        label = plan.label(config, name)
        points = pd.DataFrame(grid.points(run.grid))
        for axis in ("passes", "step", "clip"):
            values = np.sort(points[axis].unique())
            text = ", ".join(f"{value:g}" for value in values)
            if len(values) > 9:
                text = f"{values[0]:g} to {values[-1]:g}, logarithmic"
            row = {"algorithm": label, "parameter": axis, "number": len(values)}
            rows.append(row | {"values": text})
    return pd.DataFrame(rows)


def _load(
    config: Config, problems: list[str], solvers: Sequence[str] | None = None
) -> list[Result]:
    """Results of the wanted solvers, problem by problem."""
    found = results.load(config, problems, solvers)
    return [each for name in problems for each in found[name]]


def support(
    config: Config,
    product: Product,
    problems: list[str],
    solvers: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Table 3: coordinates correctly and wrongly non-zero, and the relative error."""
    rows: Rows = []
    columns = ["true_positives", "false_positives", "relative_error"]
    for result in _load(config, problems, solvers):
        row: dict[str, Any] = {"problem": result.problem, "algorithm": result.label}
        if result.ran(product.calibration):
            tuned = result.tuning(product.calibration)
            fresh = result.final(product.calibration)
            wrong = int((fresh["false_positives"] > 0).sum())
            low, high = clopper_pearson(wrong, len(fresh))
            composed = plan.at_problem(config, result.problem)
            row["support_size"] = int(inputs.load_optimum(composed).support.sum())
            row |= tuned[columns].mean().to_dict()
            row |= fresh[columns].mean().add_prefix("fresh_").to_dict()
            row |= {"fresh_runs": len(fresh), "fresh_runs_with_a_wrong_one": wrong}
            rows.append(row | {"wrong_ci_low": low, "wrong_ci_high": high})
        elif not result.available:
            rows.append(row | {"algorithm": _MISSING})
    keys = ["problem", "algorithm"]
    printed = results.published(config, "table3").drop(columns="support_size")
    printed = printed.set_index(keys).add_prefix("published_").reset_index()
    return pd.DataFrame(rows).merge(printed, on=keys, how="left")


def settings(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """Table 4: passes, step and clip with the lowest tuning mean, and its errors.

    The mean and deviation are those of the tuning; the mean on fresh seeds follows.
    """
    rows: Rows = []
    for result in _load(config, problems):
        if result.ran(product.calibration):
            best = result.best(product.calibration)
            row = {"problem": result.problem, "algorithm": result.label}
            row |= best[["passes", "step", "clip", "mean", "std"]].to_dict()
            fresh = result.final(product.calibration)["relative_error"].to_numpy()
            rows.append(row | with_interval(fresh, *FRESH))
    return pd.DataFrame(rows)


def noise(
    config: Config,
    product: Product,
    problems: list[str],
    solvers: Sequence[str] | None = None,
) -> pd.DataFrame:
    """True cost of the published noise, and the noise that its epsilon needs."""
    from dperm.papers.dpgcd.proofs import epsilon_as_claimed

    rows: Rows = []
    for result in _load(config, problems, solvers):
        for paper, cost, needed in noises(config, result, ("target_epsilon",)):
            claimed = {"epsilon_if_claim_held": epsilon_as_claimed(paper)}
            rows.append(cost | claimed | needed)
    return pd.DataFrame(rows)


def selection(
    config: Config,
    product: Product,
    problems: list[str],
    ranges: dict[str, list[float]],
) -> pd.DataFrame:
    """Exponents in p and in log p where the selection fails, by range of p."""
    return pd.DataFrame(growing.by_dimension(swept_of(config, product), ranges))


def sparsity(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """Exponents of the excess in the number of coefficients that are not zero."""
    return pd.DataFrame(growing.by_sparsity(swept_of(config, product)))


def coordinates(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """Which coordinates the chosen runs of DP-GCD take, and how often (Remark 4.1)."""
    swept = swept_of(config, product)
    known = swept.dropna(subset="support") if "support" in swept else swept.iloc[:0]
    rows: Rows = []
    for row, group in groups(known, ["problem"]):
        first = group.iloc[0]
        row |= {"p": int(first["p"]), "passes": float(first["passes"])}
        row["runs"] = len(group)
        for name in ("chosen_once", "support"):
            names = (name, f"{name}_low", f"{name}_high")
            row |= with_interval(group[name].to_numpy(float), *names)
        rows.append(row)
    return pd.DataFrame(rows)
