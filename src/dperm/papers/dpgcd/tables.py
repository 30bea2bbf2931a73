"""Tables of Mangold et al. 2023 (DP-GCD), the published cells beside ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from dperm.core.calibrations import PAPER
from dperm.core.experiment import grid, plan, results
from dperm.core.experiment.results import Result
from dperm.core.experiment.schema import Config, Product
from dperm.kinds.tables import FRESH, noise_row, strict_noise
from dperm.papers.dpgcd import growing
from dperm.pipeline import inputs
from dperm.present.intervals import clopper_pearson
from dperm.present.tables import Rows, Table, groups, number, readable, with_interval

_MISSING = "not available"


def sizes(config: Config, product: Product, problems: list[str]) -> Table:
    """Table 1: records and features, counted in the data, and facts of the optimum."""
    return _table([_size(config, name) for name in problems])


def _table(rows: Rows | pd.DataFrame) -> Table:
    """A table of rows, whole numbers without decimals to read."""
    data = pd.DataFrame(rows)
    return Table(data, readable(data, _short))


def _short(value: float) -> str:
    if np.isfinite(value) and value == round(value) and abs(value) < 1e6:
        return f"{value:.0f}"
    return number(value)


def _size(config: Config, name: str) -> dict[str, Any]:
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


def grids(config: Config, product: Product, problems: list[str]) -> Table:
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
    data = pd.DataFrame(rows)
    return Table(data, data)


def _load(config: Config, product: Product, problems: list[str]) -> list[Result]:
    """Results of the wanted solvers, problem by problem."""
    found = results.load(config, problems, solvers=product.options.get("solvers"))
    return [each for name in problems for each in found[name]]


def support(config: Config, product: Product, problems: list[str]) -> Table:
    """Table 3: coordinates correctly and wrongly non-zero, and the relative error."""
    rows: Rows = []
    for result in _load(config, product, problems):
        if result.ran(product.calibration):
            tuned = result.tuning(product.calibration)
            fresh = result.final(product.calibration)
            wrong = int((fresh["false_positives"] > 0).sum())
            low, high = clopper_pearson(wrong, len(fresh))
            composed = plan.at_problem(config, result.problem)
            rows.append(
                {
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
            )
        elif not result.available:
            rows.append({"problem": result.problem, "algorithm": _MISSING})
    printed = results.published(config, "table3").drop(columns="support_size")
    printed = printed.rename(
        columns={name: f"published_{name}" for name in printed.columns[2:]}
    )
    keys = ["problem", "algorithm"]
    return _table(pd.DataFrame(rows).merge(printed, on=keys, how="left"))


def settings(config: Config, product: Product, problems: list[str]) -> Table:
    """Table 4: passes, step and clip with the lowest tuning mean."""
    return _table(
        [
            _known(result, best, "passes", "step", "clip")
            | _errors(result, best, product)
            for result, best in _best(config, product, problems)
        ]
    )


def _best(
    config: Config, product: Product, problems: list[str]
) -> Iterator[tuple[Result, pd.Series]]:
    """Every job that was run under the product's calibration, and its best setting."""
    for result in _load(config, product, problems):
        if result.ran(product.calibration):
            yield result, result.best(product.calibration)


def _known(result: Result, best: pd.Series, *keys: str) -> dict[str, Any]:
    known = {"problem": result.problem, "algorithm": result.label}
    return known | {key: best[key] for key in keys}


def _errors(result: Result, best: pd.Series, product: Product) -> dict[str, float]:
    """Tuning mean and deviation of the best setting, and its mean on fresh seeds."""
    fresh = result.final(product.calibration)["relative_error"].to_numpy()
    tuned = {"mean": best["mean"], "std": best["std"]}
    return tuned | with_interval(fresh, *FRESH)


def noise(config: Config, product: Product, problems: list[str]) -> Table:
    """What the published noise costs, and the noise its epsilon really needs."""
    from dperm.papers.dpgcd.proofs import epsilon_as_claimed

    rows: Rows = []
    for result in _load(config, product, problems):
        for passes, kinds in results.calibrated(config, result).items():
            if PAPER not in kinds:
                continue
            paper = kinds[PAPER]
            row = noise_row(result, passes, paper, ("target_epsilon",))
            row["epsilon_if_claim_held"] = epsilon_as_claimed(paper)
            rows.append(row | strict_noise(kinds))
    data = pd.DataFrame(rows)
    shown = readable(data.drop(columns="epsilon_if_claim_held"), _short)
    shown["true_epsilon"] = [_cost(row) for row in rows]
    return Table(data, shown)


def _cost(row: dict[str, Any]) -> str:
    if np.isfinite(row["true_epsilon"]):
        return number(row["true_epsilon"])
    return f"no sound bound ({number(row['epsilon_if_claim_held'])})"


def mechanisms(config: Config, product: Product, problems: list[str]) -> Table:
    """Utility of the three selection noises, each at the same true epsilon."""
    rows: Rows = []
    for result, best in _best(config, product, problems):
        tuned = result.tuning(product.calibration).iloc[0]
        kinds = results.calibrated(config, result)[best["passes"]]
        row = _known(result, best, "passes") | {"true_epsilon": tuned["true_epsilon"]}
        row |= results.proved(kinds[product.calibration])
        row["noise_multiplier"] = tuned["noise_multiplier"]
        rows.append(row | _errors(result, best, product))
    return _table(rows)


def lead(config: Config, product: Product, problems: list[str]) -> Table:
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
    return _table(rows)


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


def dimension(config: Config, product: Product, problems: list[str]) -> Table:
    """Exponents of the excess in p and in log p, for every algorithm and n."""
    swept = results.load_sweep(config, product.sweeps[0])
    rows = growing.exponents(swept, "p", ["tau", "n"])
    return _table(pd.DataFrame(rows).rename(columns={"tau": "sparsity"}))


def selection(config: Config, product: Product, problems: list[str]) -> Table:
    """Exponents in p and in log p where the selection fails, by range of p."""
    swept = results.load_sweep(config, product.sweeps[0])
    return _table(growing.selected(swept, product.options["ranges"]))


def sparsity(config: Config, product: Product, problems: list[str]) -> Table:
    """Exponents of the excess in the number of coefficients that are not zero."""
    swept = results.load_sweep(config, product.sweeps[0])
    return _table(growing.exponents(swept, "tau", ["p", "n"]))


def coordinates(config: Config, product: Product, problems: list[str]) -> Table:
    """Which coordinates the chosen runs of DP-GCD take, and how often (Remark 4.1)."""
    swept = results.load_sweep(config, product.sweeps[0])
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
    return _table(rows)
