"""Tables of Mangold et al. 2022 (DP-CD), the published cells beside ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dperm import schema
from dperm.erm.bounds import record_slopes
from dperm.erm.problem import Problem
from dperm.pipeline import inputs, results
from dperm.pipeline.results import Result
from dperm.present.tables import Table, number

_MISSING = "not available"


def utility(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Table 1 in numbers: the terms that the utility bounds compare.

    DP-CD: ||L||_{M^-1} R_M and ||L||^2_{M^-1} / mu_M. DP-SGD and DP-SVRG: Lambda R_I
    and Lambda^2 / mu_I. Logarithms and constants are left out, as in the paper;
    ``bound`` is the term times sqrt(p log(1/delta)) / (n epsilon), or its square.
    """
    rows = [row for name in problems for row in _utility_rows(config, name)]
    data = pd.DataFrame(rows)
    shown = data.copy()
    for column in data.columns[2:-1]:
        shown[column] = [number(value) for value in data[column]]
    return Table(data, shown)


def _utility_rows(config: schema.Config, name: str) -> list[dict[str, Any]]:
    config = inputs.at_problem(config, name)
    problem = inputs.load_problem(config)
    if problem is None:
        return [{"problem": name, "algorithm": _MISSING}]
    optimum = inputs.load_optimum(config)
    gap = float(problem.objective(np.zeros(problem.p))[0]) - optimum.value
    M, w = problem.smoothness, optimum.w
    components, overall, which = lipschitz(problem, w)
    weighted = float(np.sqrt((components**2 / M).sum()))
    mu_M, mu_I = strong_convexity(problem)
    R_M = max(np.sqrt(gap), float(np.sqrt((M * w * w).sum())))
    R_I = max(np.sqrt(gap), float(np.linalg.norm(w)))
    rate = np.sqrt(problem.p * np.log(1 / problem.delta)) / (
        problem.n * problem.epsilon
    )
    terms = {
        "DP-CD": (weighted, R_M, mu_M),
        "DP-SGD, DP-SVRG": (overall, R_I, mu_I),
    }
    return [
        {
            "problem": name,
            "algorithm": algorithm,
            "lipschitz": constant,
            "radius": radius,
            "strong_convexity": mu,
            "convex_term": constant * radius,
            "strongly_convex_term": constant**2 / mu if mu > 0 else np.inf,
            "convex_bound": rate * constant * radius,
            "strongly_convex_bound": (rate * constant) ** 2 / mu if mu > 0 else np.inf,
            "lipschitz_bound": which,
        }
        for algorithm, (constant, radius, mu) in terms.items()
    ]


def lipschitz(problem: Problem, w: np.ndarray) -> tuple[np.ndarray, float, str]:
    """Component Lipschitz constants L (p,), the global one, and how they were bounded.

    The derivative of the logistic loss is at most 1. That of least squares has no
    bound; the largest residual at 0 and at w* takes its place, for each record.
    """
    rows = np.abs(problem.rows)
    slopes, everywhere = record_slopes(problem, w)
    components = (rows * slopes[:, None]).max(axis=0)
    overall = float((problem.row_norms * slopes).max())
    how = "global" if everywhere else "largest residual at 0 and at w*"
    return components, overall, how


def strong_convexity(problem: Problem) -> tuple[float, float]:
    """mu_M and mu_I of F: by the Gram matrix where f is quadratic, else the L2 term."""
    M, l2 = problem.smoothness, problem.penalty.l2
    if not problem.loss.quadratic:
        return l2 / float(M.max()), l2
    gram = problem.A.T @ problem.A / problem.n
    root = 1.0 / np.sqrt(M)
    scaled = np.linalg.eigvalsh(root[:, None] * gram * root)[0] + l2 / M.max()
    plain = np.linalg.eigvalsh(gram)[0] + l2
    floor = 1e-10  # eigenvalues of a singular matrix come out as rounding errors
    return (float(scaled) if scaled > floor else 0.0,
            float(plain) if plain > floor * np.trace(gram) else 0.0)  # fmt: skip


def relative_error(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Table 2: best relative error for each number of passes, tuned and fresh."""
    found = results.load(config, problems, product.options.get("leave_out", ()))
    rows: list[dict[str, Any]] = []
    for name in problems:
        for result in found[name]:
            rows += _error_rows(result, product.calibration)
    printed = results.published(config, "table2").rename(
        columns={"relative_error_mean": "published_mean",
                 "relative_error_std": "published_std"}
    )  # fmt: skip
    keys = ["problem", "algorithm", "passes"]
    data = pd.DataFrame(rows)
    if "passes" not in data:  # nothing is available
        data = data.reindex(columns=[*keys, "mean"])
    data = data.merge(printed, on=keys, how="left")
    return Table(data, _readable(data))


def _error_rows(result: Result, calibration: str) -> list[dict[str, Any]]:
    if not result.available:
        return [{"problem": result.problem, "algorithm": result.label}]
    rows = []
    for chosen in result.chosen(calibration).itertuples():
        fresh = result.final(calibration, chosen.passes)["relative_error"].to_numpy()
        low, high = results.interval(fresh)
        rows.append(
            {"problem": result.problem, "algorithm": result.label,
             "passes": chosen.passes, "mean": chosen.mean, "std": chosen.std,
             "fresh_mean": fresh.mean(), "fresh_ci_low": low, "fresh_ci_high": high,
             "step": chosen.step, "clip": chosen.clip}
        )  # fmt: skip
    return rows


def _readable(data: pd.DataFrame) -> pd.DataFrame:
    """One line an algorithm, one column a number of passes; the lowest in bold."""
    lines = []
    for (problem, algorithm), group in data.groupby(
        ["problem", "algorithm"], sort=False
    ):
        line = {"problem": problem, "algorithm": algorithm}
        least = group["mean"].min()
        for row in group.itertuples():
            if pd.isna(row.passes):
                continue
            tuned = number(row.mean)
            tuned = f"**{tuned}**" if row.mean == least else tuned
            cell = f"{tuned}; fresh {number(row.fresh_mean)}"
            if not pd.isna(row.published_mean):
                cell += f"; paper {number(row.published_mean)}"
            line[f"{row.passes:g} passes"] = cell
        lines.append(line)
    return pd.DataFrame(lines)


def runtime(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Table 3: seconds of a lone run for each number of passes."""
    found = results.load(config, problems, product.options.get("leave_out", ()))
    rows = [
        {"problem": name, "algorithm": result.label, "passes": passes,
         "mean": seconds.mean(), "std": seconds.std(ddof=0)}
        for name in problems
        for result in found[name]
        if result.available
        for passes in result.chosen(product.calibration)["passes"]
        for seconds in (result.final(product.calibration, passes)["seconds"],)
    ]  # fmt: skip
    printed = results.published(config, "table3").rename(
        columns={"seconds_mean": "published_mean", "seconds_std": "published_std"}
    )
    columns = ["problem", "algorithm", "passes", "mean", "std"]
    data = pd.DataFrame(rows, columns=columns)
    data = data.merge(printed, on=columns[:3], how="left")
    shown = data[columns[:3]].copy()
    shown["passes"] = [f"{passes:g}" for passes in data["passes"]]
    shown["seconds"] = [number(value) for value in data["mean"]]
    shown["paper"] = [number(value) for value in data["published_mean"]]
    ratio = data["published_mean"] / data["mean"]
    shown["times faster"] = [number(value, 2) for value in ratio]
    return Table(data, shown)


def lead(config: schema.Config, product: schema.Product, problems: list[str]) -> Table:
    """How far DP-CD is ahead of DP-SGD under the published and the strict accountant.

    Each at its best number of passes; tuning means as the paper reports them, and fresh
    means. Part of a lead under ``paper`` may be the accountant's.
    """
    found = results.load(config, problems)
    rows = []
    for name in problems:
        by_label = {result.label: result for result in found[name] if result.available}
        if {"DP-CD", "DP-SGD"} <= set(by_label):
            for calibration in config.paper.calibrations:
                rows.append(_lead_row(name, calibration, by_label))
    data = pd.DataFrame(rows)
    shown = data.copy()
    for column in data.columns[2:]:
        shown[column] = [number(value) for value in data[column]]
    return Table(data, shown)


def _lead_row(
    name: str, calibration: str, by_label: dict[str, Result]
) -> dict[str, Any]:
    row: dict[str, Any] = {"problem": name, "calibration": calibration}
    for label, key in (("DP-CD", "cd"), ("DP-SGD", "sgd")):
        result = by_label[label]
        passes = result.best_passes(calibration)
        chosen = result.chosen(calibration).set_index("passes").loc[passes]
        fresh = result.final(calibration, passes)["relative_error"]
        row |= {f"{key}_mean": chosen["mean"], f"{key}_fresh_mean": fresh.mean()}
    row["lead"] = row["sgd_mean"] / row["cd_mean"]
    row["fresh_lead"] = row["sgd_fresh_mean"] / row["cd_fresh_mean"]
    return row
