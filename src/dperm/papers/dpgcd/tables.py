"""Tables of Mangold et al. 2023 (DP-GCD), the published cells beside ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dperm.core.experiment import grid, plan, results, schema
from dperm.core.experiment.results import Result
from dperm.papers.dpgcd import growing
from dperm.papers.dpgcd import noise as prices
from dperm.pipeline import inputs
from dperm.present.intervals import clopper_pearson, student
from dperm.present.tables import Rows, Table, number, readable

_MISSING = "not available"


def sizes(config: schema.Config, product: schema.Product, problems: list[str]) -> Table:
    """Table 1: records and features, counted in the data, and facts of the optimum."""
    data = pd.DataFrame([_size(config, name) for name in problems])
    return Table(data, readable(data, _short))


def _size(config: schema.Config, name: str) -> dict[str, Any]:
    composed = plan.at_problem(config, name)
    problem = inputs.load_problem(composed)
    if problem is None:
        return {"problem": name, "status": _MISSING}
    optimum = inputs.load_optimum(composed)
    start = float(problem.objective(np.zeros(problem.p))[0])
    entries = problem.A.nnz if problem.is_sparse else np.count_nonzero(problem.A)
    return {
        "problem": name,
        "records": problem.n,
        "features": problem.p,
        "non_zeros": int(entries),
        "epsilon": problem.epsilon,
        "delta": problem.delta,
        "optimum": optimum.value,
        "relative_error_at_zero": (start - optimum.value) / optimum.value,
        "support_size": int(optimum.support.sum()),
        "status": "ok",
    }


def grids(config: schema.Config, product: schema.Product, problems: list[str]) -> Table:
    """Table 2: the grid of every solver, as configured."""
    rows = []
    for name, run in config.paper.runs.items():
        label = plan.label(config, name)
        points = pd.DataFrame(grid.points(run.grid))
        for axis in ("passes", "step", "clip"):
            values = np.sort(points[axis].unique())
            rows.append({"algorithm": label, "parameter": axis, "number": len(values),
                         "values": _listed(values)})  # fmt: skip
    data = pd.DataFrame(rows)
    return Table(data, data)


def _listed(values: np.ndarray) -> str:
    if len(values) <= 9:
        return ", ".join(f"{value:g}" for value in values)
    return f"{values[0]:g} to {values[-1]:g}, logarithmic"


def _load(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> list[Result]:
    """Results of the wanted solvers, problem by problem."""
    found = results.load(config, problems, solvers=product.options.get("solvers"))
    return [each for name in problems for each in found[name]]


def support(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Table 3: coordinates correctly and wrongly non-zero, and the relative error."""
    rows: Rows = []
    for result in _load(config, product, problems):
        if result.ran(product.calibration):
            rows.append(_support_row(config, result, product.calibration))
        elif not result.available:
            rows.append({"problem": result.problem, "algorithm": _MISSING})
    printed = results.published(config, "table3").drop(columns="support_size")
    printed = printed.rename(
        columns={name: f"published_{name}" for name in printed.columns[2:]}
    )
    keys = ["problem", "algorithm"]
    data = pd.DataFrame(rows).merge(printed, on=keys, how="left")
    return Table(data, readable(data, _short))


def _support_row(
    config: schema.Config, result: Result, calibration: str
) -> dict[str, Any]:
    tuned, fresh = result.tuning(calibration), result.final(calibration)
    wrong = int((fresh["false_positives"] > 0).sum())
    low, high = clopper_pearson(wrong, len(fresh))
    composed = plan.at_problem(config, result.problem)
    return {
        "problem": result.problem,
        "algorithm": result.label,
        "support_size": int(inputs.load_optimum(composed).support.sum()),
        "true_positives": tuned["true_positives"].mean(),
        "false_positives": tuned["false_positives"].mean(),
        "relative_error": tuned["relative_error"].mean(),
        "fresh_true_positives": fresh["true_positives"].mean(),
        "fresh_false_positives": fresh["false_positives"].mean(),
        "fresh_relative_error": fresh["relative_error"].mean(),
        "fresh_runs": len(fresh),
        "fresh_runs_with_a_wrong_one": wrong,
        "wrong_ci_low": low,
        "wrong_ci_high": high,
    }


def settings(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Table 4: passes, step and clip with the lowest tuning mean."""
    rows: Rows = []
    for result in _load(config, product, problems):
        if not result.ran(product.calibration):
            continue
        row = result.best(product.calibration)
        fresh = result.final(product.calibration)["relative_error"].to_numpy()
        low, high = student(fresh)
        rows.append(
            {"problem": result.problem, "algorithm": result.label,
             "passes": row["passes"], "step": row["step"], "clip": row["clip"],
             "mean": row["mean"], "std": row["std"],
             "fresh_mean": fresh.mean(),
             "fresh_ci_low": low, "fresh_ci_high": high}
        )  # fmt: skip
    data = pd.DataFrame(rows)
    return Table(data, readable(data, _short))


def noise(config: schema.Config, product: schema.Product, problems: list[str]) -> Table:
    """What the published noise costs, and the noise its epsilon really needs."""
    found = _load(config, product, problems)
    rows = [row for result in found for row in prices.costs(config, result)]
    data = pd.DataFrame(rows)
    shown = readable(data.drop(columns="epsilon_if_claim_held"), _short)
    shown["true_epsilon"] = [_cost(row) for row in rows]
    return Table(data, shown)


def _cost(row: dict[str, Any]) -> str:
    if np.isfinite(row["true_epsilon"]):
        return number(row["true_epsilon"])
    return f"no sound bound ({number(row['epsilon_if_claim_held'])})"


def mechanisms(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Utility of the three selection noises, each at the same true epsilon."""
    rows: Rows = []
    for result in _load(config, product, problems):
        if not result.ran(product.calibration):
            continue
        row, tuned = (
            each(product.calibration) for each in (result.best, result.tuning)
        )
        fresh = result.final(product.calibration)["relative_error"].to_numpy()
        low, high = student(fresh)
        made = results.calibrated(config, result)[row["passes"]][product.calibration]
        rows.append(
            {"problem": result.problem, "algorithm": result.label,
             "passes": row["passes"], "true_epsilon": tuned["true_epsilon"].iloc[0],
             **results.proved(made),
             "noise_multiplier": tuned["noise_multiplier"].iloc[0],
             "mean": row["mean"], "std": row["std"],
             "fresh_mean": fresh.mean(),
             "fresh_ci_low": low, "fresh_ci_high": high}
        )  # fmt: skip
    data = pd.DataFrame(rows)
    return Table(data, readable(data, _short))


def lead(config: schema.Config, product: schema.Product, problems: list[str]) -> Table:
    """Best relative errors side by side, and whether DP-GCD is ahead of both others."""
    rows: Rows = []
    found = _load(config, product, problems)
    for name in problems:
        for calibration in config.paper.calibrations:
            shown = {
                each.label: each
                for each in found
                if each.problem == name and each.ran(calibration)
            }
            if "DP-GCD" in shown:
                rows.append(_lead_row(name, calibration, shown))
    data = pd.DataFrame(rows)
    return Table(data, readable(data, _short))


def _lead_row(
    name: str, calibration: str, by_label: dict[str, Result]
) -> dict[str, Any]:
    row: dict[str, Any] = {"problem": name, "calibration": calibration}
    means, fresh_means = {}, {}
    for label, result in by_label.items():
        means[label] = row[f"{label} mean"] = result.best(calibration)["mean"]
        fresh_means[label] = result.final(calibration)["relative_error"].mean()
        row[f"{label} fresh_mean"] = fresh_means[label]
    for kind, found in (("", means), ("fresh ", fresh_means)):
        others = [value for label, value in found.items() if label != "DP-GCD"]
        if others:
            row[f"{kind}best other / DP-GCD"] = min(others) / found["DP-GCD"]
            row[f"{kind}ahead"] = found["DP-GCD"] < min(others)
    return row


def _short(value: float) -> str:
    if np.isfinite(value) and value == round(value) and abs(value) < 1e6:
        return f"{value:.0f}"
    return number(value)


def dimension(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Exponents of the excess in p and in log p, for every algorithm and n."""
    swept = results.load_sweep(config, product.sweeps[0])
    rows = growing.exponents(swept, "p", ["tau", "n"])
    data = pd.DataFrame(rows).rename(columns={"tau": "sparsity"})
    return Table(data, readable(data, _short))


def sparsity(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Exponents of the excess in the number of coefficients that are not zero."""
    swept = results.load_sweep(config, product.sweeps[0])
    data = pd.DataFrame(growing.exponents(swept, "tau", ["p", "n"]))
    return Table(data, readable(data, _short))


def coordinates(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Which coordinates the chosen runs of DP-GCD take, and how often (Remark 4.1)."""
    swept = results.load_sweep(config, product.sweeps[0])
    known = swept.dropna(subset="support") if "support" in swept else swept.iloc[:0]
    rows = [
        {"problem": name, "p": int(group["p"].iloc[0]),
         "passes": float(group["passes"].iloc[0]), "runs": len(group),
         **_with_interval("chosen_once", group["chosen_once"].to_numpy()),
         **_with_interval("support", group["support"].to_numpy(float))}
        for name, group in known.groupby("problem", sort=False)
    ]  # fmt: skip
    data = pd.DataFrame(rows)
    return Table(data, readable(data, _short))


def _with_interval(name: str, values: np.ndarray) -> dict[str, float]:
    low, high = student(values)
    return {name: values.mean(), f"{name}_low": low, f"{name}_high": high}
