"""The arena on one problem of the reader's own: ``dperm arena problem=mine``.

Every method, at the problem's own epsilon, tuned in every way; a table, a figure, and
what to take, by a rule that looks at the intervals.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from joblib import Parallel
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from dperm import schema
from dperm.locate import ConfigError
from dperm.papers.arena import outcomes, sweeps
from dperm.parallel import away
from dperm.pipeline import inputs, plan, problems, seeds
from dperm.pipeline.sweep import options_of
from dperm.present import drawing
from dperm.present.tables import made_of, save

log = logging.getLogger(__name__)

SHOWN = ("default", "paid")  # tunings that cost nothing beyond the target
WORDS = {"default": "without tuning", "ten": "best of ten settings, for free",
         "grid": "best of the grid, for free", "paid": "grid paid for"}  # fmt: skip


def recommend(config: schema.Config) -> list[Path]:
    """Run every method on ``problem=...`` and say which one to take.

    Raises
    ------
    ConfigError
        If its data cannot be had.
    """
    problems.fetch(config)
    problems.prepare(config)
    if inputs.load_problem(config) is None:
        raise ConfigError(
            f"problem={config.problem.name}: {inputs.unavailable_reason(config)}"
        )
    problems.optimum(config)
    table = outcomes.means(_rows(config))
    record = inputs.load_optimum_record(config, config.problem.name)
    zero = float(record["relative_error_at_zero"])
    for line in sentences(table, zero):
        log.info("%s", line)
    return _written(config, table, zero)


def _rows(config: schema.Config) -> pd.DataFrame:
    """Runs of every method of the arena on the problem."""
    what = config.paper.sweeps["contest"]
    names = dict.fromkeys(
        point["solver"]
        for point in plan.sweep_points(config, replace(what, small=None))
    )
    jobs = (away(_one, config, what, name) for name in names)
    found: list[pd.DataFrame] = []
    for made in Parallel(config.workers, return_as="generator")(jobs):
        log.info("%-24s %s", made["solver"].iloc[0], brief(made))
        found.append(made)
    return pd.concat(found, ignore_index=True)


def _one(config: schema.Config, what: schema.Sweep, solver: str) -> pd.DataFrame:
    point = {"problem": config.problem.name, "solver": solver}
    epsilon = float(config.problem.privacy.epsilon)
    options = {**options_of(what, point), "epsilons": [epsilon], "declared_at": []}
    seed = seeds.seed(config.seed, "arena", point["problem"], solver, 0, 0)
    with threadpool_limits(1):  # in a process of its own, too
        rows = pd.DataFrame(sweeps.contest(config, point, seed, **options))
    for key, value in (("status", "ok"), ("reason", "")):
        rows[key] = rows[key].fillna(value) if key in rows else value
    return rows.assign(**point, seed=seed)


def brief(rows: pd.DataFrame) -> str:
    """Means of a method, by tuning, or why there are none."""
    if "relative_error" not in rows:
        return str(rows["reason"].iloc[0])
    means = rows.groupby("tuning", sort=False)["relative_error"].mean()
    return ", ".join(f"{name} {value:.3g}" for name, value in means.items())


# --- what to take ---------------------------------------------------------------------


def sentences(
    table: pd.DataFrame, zero: float, shown: tuple[str, ...] = SHOWN
) -> list[str]:
    """What the table says, by rule: whom to take, who is as good, if any is good.

    Parameters
    ----------
    table : DataFrame
        Of ``outcomes.means``.
    zero : float
        Relative error of w = 0.
    shown : tuple of str
        Tunings, a sentence each.
    """
    found = []
    for tuning in shown:
        some = table[(table["tuning"] == tuning) & (table["status"] == "ok")]
        some = some[np.isfinite(some["mean"])].sort_values("mean")
        if some.empty:
            found.append(f"{WORDS[tuning]}: no method meets the target")
            continue
        found.append(f"{WORDS[tuning]}: {_taken(some, zero)}")
    return found


def _taken(some: pd.DataFrame, zero: float) -> str:
    first = some.iloc[0]
    level = f"relative error {first['mean']:.3g} [{first['ci_low']:.3g}, "
    level += f"{first['ci_high']:.3g}], true epsilon {first['true_epsilon']:.3g}"
    if not first["ci_high"] < zero:
        return f"none is surely better than w = 0 ({zero:.3g}); least, {level}: " + str(
            first["algorithm"]
        )
    level += f" (w = 0: {zero:.3g})"
    near = some[some["ci_low"] <= first["ci_high"]]["algorithm"].tolist()[1:]
    equal = f"; not surely worse: {', '.join(near)}" if near else ""
    return f"take {first['algorithm']}, {level}{equal}"


# --- what is written ------------------------------------------------------------------


def _written(config: schema.Config, table: pd.DataFrame, zero: float) -> list[Path]:
    name = config.problem.name
    stem = plan.results_folder(config, config.paper.name, "own", name) / "arena"
    caption = f"Every method on {name}; w = 0 has relative error {zero:.4g}."
    written = save(made_of(table.to_dict("records")), stem, caption)
    figure, rows = drawn(table, zero, name)
    at = plan.figures_folder(config, config.paper.name) / f"own_{name}"
    written += drawing.save(figure, rows, at)
    for path in written:
        log.info("%s", path)
    return written


def drawn(table: pd.DataFrame, zero: float, title: str) -> tuple[Figure, drawing.Rows]:
    """Errors of the methods with intervals, a mark a tuning; w = 0 is a line."""
    some = table[(table["status"] == "ok") & np.isfinite(table["mean"])]
    order = some.groupby("algorithm")["mean"].min().sort_values().index.tolist()
    figure, at = plt.subplots(figsize=(6.0, 1.2 + 0.28 * len(order)))
    rows: list[dict[str, Any]] = []
    for shift, (tuning, own) in enumerate(some.groupby("tuning", sort=False)):
        y = [order.index(name) + 0.15 * (shift - 1.5) for name in own["algorithm"]]
        wide = np.array([own["mean"] - own["ci_low"], own["ci_high"] - own["mean"]])
        wide[0] = np.minimum(wide[0], 0.99 * own["mean"])
        at.errorbar(own["mean"], y, xerr=wide,
                    fmt="osD^"[shift % 4], markersize=3.5, linewidth=0.9,
                    label=WORDS[str(tuning)])  # fmt: skip
        rows += [
            {"panel": tuning, "algorithm": one.algorithm, "x": one.epsilon,
             "mean": one.mean_, "min": one.ci_low, "max": one.ci_high,
             "ci_low": one.ci_low, "ci_high": one.ci_high}
            for one in own.rename(columns={"mean": "mean_"}).itertuples()
        ]  # fmt: skip
    at.axvline(zero, color="0.4", linestyle=":", label="w = 0")
    at.set_xscale("log")
    at.set_yticks(range(len(order)), order)
    at.invert_yaxis()
    at.set_xlabel("relative error")
    at.set_title(title)
    at.legend(loc="best", fontsize=7)
    return figure, rows
