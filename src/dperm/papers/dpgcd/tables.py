"""Tables of Mangold et al. 2023 (DP-GCD), the published cells beside ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from dperm import config as configuration
from dperm import grid, schema
from dperm.pipeline import inputs, results
from dperm.pipeline.results import Result
from dperm.present.tables import Table, number
from dperm.privacy.accounting import true_epsilon
from dperm.privacy.ledger import Ledger
from dperm.privacy.noisy_max import NoisyMax

_MISSING = "not available"
Rows = list[dict[str, Any]]


def sizes(config: schema.Config, product: schema.Product, problems: list[str]) -> Table:
    """Table 1: records and features, counted in the data, and facts of the optimum."""
    data = pd.DataFrame([_size(config, name) for name in problems])
    return Table(data, _readable(data, 1))


def _size(config: schema.Config, name: str) -> dict[str, Any]:
    composed = inputs.at_problem(config, name)
    problem = inputs.load_problem(composed)
    if problem is None:
        return {"problem": name, "status": inputs.unavailable_reason(composed)}
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
        label = configuration.compose([f"solver={name}"]).solver.label
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
    wanted = product.options.get("solvers", list(config.paper.runs))
    found = results.load(config, problems)
    return [each for name in problems for each in found[name] if each.solver in wanted]


def _best(result: Result, calibration: str) -> tuple[Any, pd.DataFrame, pd.DataFrame]:
    """The best setting over all passes, its tuning runs and its fresh runs."""
    chosen = result.chosen(calibration)
    row = chosen.loc[chosen["mean"].idxmin()]
    tuned = result.tuned
    same = (tuned["calibration"] == calibration) & np.all(
        [tuned[key] == row[key] for key in ("passes", "step", "clip")], axis=0
    )
    return row, tuned[same], result.final(calibration, float(row["passes"]))


def _ran(result: Result, calibration: str) -> bool:
    return result.available and len(result.chosen(calibration)) > 0


def support(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Table 3: coordinates correctly and wrongly non-zero, and the relative error."""
    rows: Rows = []
    for result in _load(config, product, problems):
        if _ran(result, product.calibration):
            rows.append(_support_row(config, result, product.calibration))
        elif not result.available:
            rows.append({"problem": result.problem, "algorithm": _MISSING})
    printed = results.published(config, "table3").drop(columns="support_size")
    printed = printed.rename(
        columns={name: f"published_{name}" for name in printed.columns[2:]}
    )
    keys = ["problem", "algorithm"]
    data = pd.DataFrame(rows).merge(printed, on=keys, how="left")
    return Table(data, _readable(data, 2))


def _support_row(
    config: schema.Config, result: Result, calibration: str
) -> dict[str, Any]:
    _, tuned, fresh = _best(result, calibration)
    wrong = int((fresh["false_positives"] > 0).sum())
    low, high = clopper_pearson(wrong, len(fresh))
    composed = inputs.at_problem(config, result.problem)
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


def clopper_pearson(hits: int, runs: int, level: float = 0.95) -> tuple[float, float]:
    """Exact confidence interval of a probability, from so many hits in so many runs."""
    found = stats.binomtest(hits, runs).proportion_ci(level, "exact")
    return float(found.low), float(found.high)


def settings(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Table 4: passes, step and clip with the lowest tuning mean."""
    rows: Rows = []
    for result in _load(config, product, problems):
        if not _ran(result, product.calibration):
            continue
        row, _, fresh = _best(result, product.calibration)
        low, high = results.interval(fresh["relative_error"].to_numpy())
        rows.append(
            {"problem": result.problem, "algorithm": result.label,
             "passes": row["passes"], "step": row["step"], "clip": row["clip"],
             "mean": row["mean"], "std": row["std"],
             "fresh_mean": fresh["relative_error"].mean(),
             "fresh_ci_low": low, "fresh_ci_high": high}
        )  # fmt: skip
    data = pd.DataFrame(rows)
    return Table(data, _readable(data, 2))


def noise(config: schema.Config, product: schema.Product, problems: list[str]) -> Table:
    """What the published noise costs, and the noise its epsilon really needs."""
    rows: Rows = []
    for result in _load(config, product, problems):
        entries = results.ledgers(config, result.problem, result.solver)
        found = {
            (entry["passes"], entry["calibrated"]["calibration"]): entry["calibrated"]
            for entry in entries
        }
        for passes, kind in sorted(found):
            if kind == "paper":
                strict = found.get((passes, "strict"))
                rows.append(_noise_row(result, passes, found[passes, kind], strict))
    data = pd.DataFrame(rows)
    shown = _readable(data.drop(columns="epsilon_if_claim_held"), 2)
    shown["true_epsilon"] = [_cost(row) for row in rows]
    return Table(data, shown)


def _noise_row(
    result: Result, passes: float, paper: dict, strict: dict | None
) -> dict[str, Any]:
    ledger = Ledger.from_dict(paper["ledger"])
    needed = strict["noise_multiplier"] if strict else np.nan
    return {
        "problem": result.problem,
        "algorithm": result.label,
        "passes": passes,
        "target_epsilon": paper["target_epsilon"],
        "paper_noise": paper["noise_multiplier"],
        "true_epsilon": paper["true_epsilon"],
        "epsilon_if_claim_held": true_epsilon(_as_claimed(ledger), paper["delta"]),
        "strict_noise": needed,
        "ratio": needed / paper["noise_multiplier"],
    }


def _as_claimed(ledger: Ledger) -> Ledger:
    """The ledger if two epsilon' bounded every selection, noise on the score or not."""
    from dataclasses import replace

    return Ledger(
        tuple(
            replace(event, sound=True) if isinstance(event, NoisyMax) else event
            for event in ledger.events
        )
    )


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
        if not _ran(result, product.calibration):
            continue
        row, tuned, fresh = _best(result, product.calibration)
        low, high = results.interval(fresh["relative_error"].to_numpy())
        rows.append(
            {"problem": result.problem, "algorithm": result.label,
             "passes": row["passes"], "true_epsilon": tuned["true_epsilon"].iloc[0],
             "noise_multiplier": tuned["noise_multiplier"].iloc[0],
             "mean": row["mean"], "std": row["std"],
             "fresh_mean": fresh["relative_error"].mean(),
             "fresh_ci_low": low, "fresh_ci_high": high}
        )  # fmt: skip
    data = pd.DataFrame(rows)
    return Table(data, _readable(data, 2))


def lead(config: schema.Config, product: schema.Product, problems: list[str]) -> Table:
    """Best relative errors side by side, and whether DP-GCD is ahead of both others."""
    rows: Rows = []
    found = _load(config, product, problems)
    for name in problems:
        for calibration in config.paper.calibrations:
            shown = {
                each.label: each
                for each in found
                if each.problem == name and _ran(each, calibration)
            }
            if "DP-GCD" in shown:
                rows.append(_lead_row(name, calibration, shown))
    data = pd.DataFrame(rows)
    return Table(data, _readable(data, 2))


def _lead_row(
    name: str, calibration: str, by_label: dict[str, Result]
) -> dict[str, Any]:
    row: dict[str, Any] = {"problem": name, "calibration": calibration}
    means, fresh_means = {}, {}
    for label, result in by_label.items():
        chosen, _, fresh = _best(result, calibration)
        means[label] = row[f"{label} mean"] = chosen["mean"]
        fresh_means[label] = fresh["relative_error"].mean()
        row[f"{label} fresh_mean"] = fresh_means[label]
    for kind, found in (("", means), ("fresh ", fresh_means)):
        others = [value for label, value in found.items() if label != "DP-GCD"]
        if others:
            row[f"{kind}best other / DP-GCD"] = min(others) / found["DP-GCD"]
            row[f"{kind}ahead"] = found["DP-GCD"] < min(others)
    return row


def _readable(data: pd.DataFrame, names: int) -> pd.DataFrame:
    """Numbers with three digits, after so many columns of names."""
    shown = data.copy()
    for column in data.columns[names:]:
        if data[column].dtype.kind == "f":
            shown[column] = [_short(value) for value in data[column]]
    return shown


def _short(value: float) -> str:
    if np.isfinite(value) and value == round(value) and abs(value) < 1e6:
        return f"{value:.0f}"
    return number(value)
