"""Tables of Mangold et al. 2022 (DP-CD), the published cells beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from dperm.core.experiment import plan, results, schema
from dperm.papers.dpcd import bounds, parts
from dperm.pipeline import inputs
from dperm.present.tables import Rows, Table, groups, made_of, number, with_interval

LEAD = ("lead", "lead_low", "lead_high")


def utility(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Table 1 in numbers: the terms that the utility bounds compare."""
    rows: Rows = []
    for name in problems:
        at = plan.at_problem(config, name)
        problem = inputs.load_problem(at)
        rows += (
            [{"problem": name, "algorithm": "not available"}]
            if problem is None
            else bounds.terms(problem, inputs.load_optimum(at))
        )
    return made_of(rows)


def runtime(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Table 3: seconds of a lone run for each number of passes."""
    left_out = product.options.get("leave_out", ())
    found = results.load(config, problems, left_out, timed=product.timed)
    rows = [
        {
            "problem": name,
            "algorithm": result.label,
            "passes": passes,
            "mean": seconds.mean(),
            "std": seconds.std(ddof=0),
        }
        for name in problems
        for result in found[name]
        if result.available
        for passes in result.chosen(product.calibration)["passes"]
        for runs in (result.clocked(product.calibration, passes),)
        for seconds in (runs.loc[runs["checkpoint"] == passes, "seconds"],)
    ]
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
                row: dict[str, Any] = {"problem": name, "calibration": calibration}
                for label, key in (("DP-CD", "cd"), ("DP-SGD", "sgd")):
                    result = by_label[label]
                    fresh = result.final(calibration)["relative_error"]
                    row[f"{key}_mean"] = result.best(calibration)["mean"]
                    row[f"{key}_fresh_mean"] = fresh.mean()
                row["lead"] = row["sgd_mean"] / row["cd_mean"]
                row["fresh_lead"] = row["sgd_fresh_mean"] / row["cd_fresh_mean"]
                rows.append(row)
    return made_of(rows)


def ablation(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Fresh errors of DP-CD by what it is made of, beside DP-SGD's.

    A row for each problem, calibration, order, iterate and kind of thresholds.
    """
    swept = results.load_sweep(config, product.sweeps[0])
    rows = [
        {
            **dict(zip(parts.KEYS, key, strict=True)),
            **parts.mean(group),
            **{name: group[name].iloc[0] for name in ("passes", "step", "clip")},
        }
        for key, group in parts.of(swept, problems).groupby(parts.KEYS, sort=False)
    ]
    return made_of(rows)


def gain(config: schema.Config, product: schema.Product, problems: list[str]) -> Table:
    """DP-CD's lead over DP-SGD as a product of factors, one part of it at a time.

    ``factor`` is the error before over the error after, with its 95 % interval; that
    of all steps is their product. ``alone`` is what the part is worth on average over
    all other choices (geometric mean).
    """
    swept = parts.of(results.load_sweep(config, product.sweeps[0]), problems)
    found = results.load(config, problems)
    rows: Rows = []
    for name in problems:
        ran = {result.label: result for result in found[name] if result.available}
        for calibration in config.paper.calibrations if "DP-SGD" in ran else ():
            start = ran["DP-SGD"].final(calibration)["relative_error"].to_numpy()
            part = swept[
                (swept["problem"] == name) & (swept["calibration"] == calibration)
            ]
            rows += [
                {"problem": name, "calibration": calibration, **row}
                for row in parts.chain(start, part)
            ]
    return made_of(rows)


def thresholds(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Section 5.1: one threshold for all coordinates beside adapted ones."""
    return _variants(config, product, problems, parts.THRESHOLDS)


def algorithm1(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Algorithm 1 as printed, uniform draws and averages, beside DP-SGD."""
    return _variants(config, product, problems, parts.PRINTED, ["DP-SGD"])


def _variants(
    config: schema.Config,
    product: schema.Product,
    problems: list[str],
    wanted: dict[str, dict[str, str]],
    solvers: Sequence[str] = (),
) -> Table:
    """Fresh errors of variants of the sweep, and of solvers that were evaluated."""
    swept = parts.of(results.load_sweep(config, product.sweeps[0]), problems)
    calibration = product.calibration
    rows: Rows = []
    for name in problems:
        runs = {
            label: parts.chosen(
                swept, {"problem": name, "calibration": calibration, **choice}
            )
            for label, choice in wanted.items()
        }
        for result in results.load(config, [name])[name]:
            if result.label in solvers and result.available:
                runs[result.label] = result.final(calibration)
        rows += [
            {
                "problem": name,
                "algorithm": label,
                **parts.mean(found),
                "passes": found["passes"].iloc[0],
            }
            for label, found in runs.items()
            if len(found)
        ]
    return made_of(rows)


def lower_bound(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Theorem 4.1: excess over that of w = 0, and over the bound without a constant."""
    rows: Rows = []
    keys = ["p", "n", "epsilon", "constant", "calibration"]
    for at, group in groups(results.load_sweep(config, product.sweeps[0]), keys):
        share, over = (group["excess"] / group[key] for key in ("start", "bound"))
        row = at | with_interval(share, "share", "share_low", "share_high")
        row |= with_interval(over, "over_bound", "over_bound_low", "over_bound_high")
        rows.append(row | {"excess": group["excess"].mean()})
    return made_of(rows)


def private_constants(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Section 5.2 by how the constants are come by, after DP-SGD itself.

    ``lead`` is DP-SGD's error over that of the row, with its 95 % interval; ``given``,
    what the true epsilon takes as public.
    """
    swept = parts.of(results.load_sweep(config, product.sweeps[0]), problems)
    found, keys = results.load(config, problems), ["problem", "calibration"]
    rows: Rows = []
    for (name, calibration), part in swept.groupby(keys, sort=False):
        ran = {result.label: result for result in found[name] if result.available}
        if "DP-SGD" not in ran:
            continue
        known = {"problem": name, "calibration": calibration}
        start = ran["DP-SGD"].final(calibration)
        rows.append(known | {"constants": "DP-SGD"} | parts.mean(start))
        for label, group in part.groupby("constants", sort=False):
            both = (one["relative_error"].to_numpy() for one in (start, group))
            lead = dict(zip(LEAD, parts.ratio(*both), strict=True))
            paid = group.iloc[0][["true_epsilon", "given"]].to_dict()
            rows.append(known | {"constants": label} | parts.mean(group) | lead | paid)
    return made_of(rows)
