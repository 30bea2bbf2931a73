"""Tables that any paper may name."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from dperm.core.calibrations import PAPER, STRICT
from dperm.core.experiment import plan, results, schema
from dperm.core.experiment.results import Result
from dperm.kinds import law, regret
from dperm.present.intervals import student
from dperm.present.tables import Rows, Table, made_of, number, readable


def relative_error(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Best relative error for each number of passes, tuned and fresh.

    ``options``: ``leave_out`` names solvers; ``published`` names the paper's table of
    it, with columns relative_error_mean and relative_error_std.
    """
    options = product.options
    found = results.load(config, problems, options.get("leave_out", ()))
    rows: Rows = []
    for name in problems:
        for result in found[name]:
            rows += _error_rows(result, product.calibration)
    data = pd.DataFrame(rows)
    if "published" in options:
        printed = results.published(config, options["published"]).rename(
            columns={"relative_error_mean": "published_mean",
                     "relative_error_std": "published_std"}
        )  # fmt: skip
        keys = ["problem", "algorithm", "passes"]
        if "passes" not in data:  # nothing is available
            data = data.reindex(columns=[*keys, "mean"])
        data = data.merge(printed, on=keys, how="left")
    return Table(data, _best_in_bold(data))


def _error_rows(result: Result, calibration: str) -> Rows:
    if not result.available:
        return [{"problem": result.problem, "algorithm": result.label}]
    rows = []
    for chosen in result.chosen(calibration).itertuples():
        fresh = result.final(calibration, chosen.passes)["relative_error"].to_numpy()
        low, high = student(fresh)
        rows.append(
            {"problem": result.problem, "algorithm": result.label,
             "passes": chosen.passes, "mean": chosen.mean, "std": chosen.std,
             "fresh_mean": fresh.mean(), "fresh_ci_low": low, "fresh_ci_high": high,
             "step": chosen.step, "clip": chosen.clip}
        )  # fmt: skip
    return rows


def _best_in_bold(data: pd.DataFrame) -> pd.DataFrame:
    """One line an algorithm, one column a number of passes; the lowest in bold."""
    lines = []
    for (problem, algorithm), group in data.groupby(
        ["problem", "algorithm"], sort=False
    ):
        line = {"problem": problem, "algorithm": algorithm}
        least = group["mean"].min() if "mean" in group else None
        for row in group.to_dict("records"):
            if pd.isna(row.get("passes")):
                continue
            cell = number(row["mean"])
            cell = f"**{cell}**" if row["mean"] == least else cell
            cell += f"; fresh {number(row['fresh_mean'])}"
            if not pd.isna(row.get("published_mean")):
                cell += f"; paper {number(row['published_mean'])}"
            line[f"{row['passes']:g} passes"] = cell
        lines.append(line)
    return pd.DataFrame(lines)


def noise(config: schema.Config, product: schema.Product, problems: list[str]) -> Table:
    """What the published noise costs, and the noise its epsilon really needs."""
    rows: Rows = []
    found = results.load(config, problems)
    for result in (each for name in found for each in found[name]):
        for passes, kinds in results.calibrated(config, result).items():
            if set(kinds) == {PAPER, STRICT}:
                rows.append(_noise_row(result, passes, **kinds))
    return made_of(rows)


def _noise_row(
    result: Result, passes: float, paper: dict[str, Any], strict: dict[str, Any]
) -> dict[str, Any]:
    return {
        "problem": result.problem,
        "algorithm": result.label,
        "passes": passes,
        "target_epsilon": paper["target_epsilon"],
        "delta": paper["delta"],
        "paper_noise": paper["noise_multiplier"],
        "true_epsilon": paper["true_epsilon"],
        **results.proved(paper),
        "strict_noise": strict["noise_multiplier"],
        "ratio": strict["noise_multiplier"] / paper["noise_multiplier"],
    }


def tuning_law(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """What a tuning with five transcripts prints: quantiles of its law.

    ``options``: ``by_passes``, whether each number of passes was tuned for itself.
    Columns: ``draws``, whether settings share their draws; ``start``, the error of
    w = 0; ``half``, the median with half as many settings over the median.
    """
    (name,) = product.sweeps
    swept = results.load_sweep(config, name)
    swept = swept[swept["problem"].isin(problems)]
    if "relative_error" in swept:
        swept = swept.dropna(subset="relative_error")
    ran = results.load(config, problems, solvers=swept["solver"].unique())
    solvers = {
        (each.problem, each.solver): each for found in ran.values() for each in found
    }
    keys = ["problem", "solver", *(["passes"] if product.options["by_passes"] else [])]
    rows = [
        {**dict(zip([*keys, "noise_factor"], at, strict=True)),
         "algorithm": solvers[at[0], at[1]].label,
         "start": _start(solvers[at[0], at[1]]), **found}
        for at, part in swept.groupby([*keys, "noise_factor"], sort=False)
        for found in _law_rows(part)
    ]  # fmt: skip
    data = pd.DataFrame(rows)
    front = [key for key in (*keys, "algorithm", "draws", "noise_factor")
             if key in data]  # fmt: skip
    data = data[[*front, *(key for key in data if key not in front)]]
    return Table(data, readable(data.drop(columns=law.quantile_columns())))


def _start(result: Result) -> float:
    """The relative error at w = 0."""
    at_zero = result.evaluated[result.evaluated["checkpoint"] == 0]
    return float(at_zero["relative_error"].iloc[0])


def _law_rows(part: pd.DataFrame) -> Rows:
    """The law with draws that settings share, and with draws of their own."""
    return [{"draws": name, **_law_row(part, own)} for name, own in law.DRAWN.items()]


def _law_row(part: pd.DataFrame, own: bool) -> dict[str, Any]:
    found = law.law(part, own=own)
    half = law.law(part, most=math.ceil(found.settings / 2), own=own)
    ends = {
        f"{name}_{end}": float(np.quantile(found.counts[name], level))
        for name in law.COUNTS
        for end, level in (("low", 0.025), ("high", 0.975))
    }
    middle = float(np.median(found.errors))
    return {
        "settings": found.settings, "transcripts": found.transcripts,
        "median": middle, "half": float(np.median(half.errors)) / middle, **ends,
        "tied": found.tied,
        **dict(zip(law.quantile_columns(), found.quantiles, strict=True)),
    }  # fmt: skip


def tuning_runs(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """What a choice on few transcripts loses, by solver and size of the grid."""
    swept = _published_law(config, product, problems)
    labels = {name: plan.label(config, name) for name in swept["solver"].unique()}
    rows = [
        {"problem": problem, "algorithm": labels[solver], **found}
        for (problem, solver), part in swept.groupby(["problem", "solver"], sort=False)
        for share in regret.SHARES
        for found in regret.curve(part, share)
    ]
    return made_of(rows)


def headline(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """A paper's table of errors as tuned on few transcripts, and on many.

    ``options``: ``published`` and ``column``, the paper's cells; ``by_passes``, whether
    each number of passes was tuned for itself; ``transcripts``.
    """
    options, swept = product.options, _published_law(config, product, problems)
    keys = ["problem", "solver", *(["passes"] if options["by_passes"] else [])]
    rows: Rows = []
    for at, part in swept.groupby(keys, sort=False):
        found = dict(zip(keys, at, strict=True))
        found["algorithm"] = plan.label(config, found.pop("solver"))
        rows += [{**found, "transcripts": runs, **regret.printed(part, runs)}
                 for runs in options["transcripts"]]  # fmt: skip
    cells = results.published(config, options["published"])
    column = options["column"]
    keys = [*(key for key in keys if key != "solver"), "algorithm"]
    cells = cells[[*keys, column]].rename(columns={column: "published"})
    data = pd.DataFrame(rows)
    data = data.merge(cells, on=keys, how="left") if rows else data
    return made_of(data.to_dict("records"))


def rankings(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """How often so many transcripts rank two methods as many do."""
    swept = _published_law(config, product, problems)
    rows: Rows = []
    for problem, part in swept.groupby("problem", sort=False):
        for pair in combinations(part["solver"].unique(), 2):
            one, other = (part[part["solver"] == name] for name in pair)
            first, second = (plan.label(config, name) for name in pair)
            rows += [{"problem": problem, "first": first, "second": second, **found}
                     for found in regret.agreement(one, other)]  # fmt: skip
    return made_of(rows)


def _published_law(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> pd.DataFrame:
    """Rows of the sweep ``tuning_law`` with the published noise."""
    swept = results.load_sweep(config, product.sweeps[0])
    swept = swept[swept["problem"].isin(problems) & (swept["noise_factor"] == 1.0)]
    return swept.dropna(subset="relative_error") if "relative_error" in swept else swept


def theorem(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """A theorem with its constants: the measured excess beside the bound.

    ``options``: ``shown``, columns of the sweep that do not change with the run,
    ``start`` and ``bound`` among them. Without runs the excess is missing.
    """
    swept = results.load_sweep(config, product.sweeps[0])
    known = swept[swept["problem"].isin(problems)]
    rows: Rows = []
    if "start" in known:
        for (name, case), group in known.dropna(subset="start").groupby(
            ["problem", "case"], sort=False
        ):
            excess = group.get("excess", pd.Series(dtype=float)).dropna().to_numpy()
            fixed = group.iloc[0][product.options["shown"]].to_dict()
            rows.append({"problem": name, "case": case, **fixed, **_excess(excess)})
    return made_of(rows)


def _excess(runs: np.ndarray) -> dict[str, float]:
    """Mean of the runs, its 95 % interval and the largest; missing without any."""
    low, high = student(runs) if len(runs) else (math.nan, math.nan)
    mean, most = (runs.mean(), runs.max()) if len(runs) else (math.nan, math.nan)
    return {"excess": mean, "excess_low": low, "excess_high": high, "excess_max": most}
