"""Tables that any paper may name."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dperm.core.calibrations import PAPER, STRICT
from dperm.core.experiment import plan, results
from dperm.core.experiment.results import Result
from dperm.core.experiment.schema import Config, Product
from dperm.core.lanes import trials
from dperm.core.privacy.calibration import UnreachableTargetError
from dperm.kinds import cells, law
from dperm.kinds.sweeps import job_of
from dperm.present.intervals import power
from dperm.present.tables import (
    Rows,
    Table,
    groups,
    made_of,
    number,
    readable,
    where,
    with_interval,
)

FRESH = ("fresh_mean", "fresh_ci_low", "fresh_ci_high")
PRINTED = ("printed", "p", "p_holm", "p_start")  # columns of a law


def relative_error(config: Config, product: Product, problems: list[str]) -> Table:
    """Best relative error for each number of passes, tuned and fresh.

    ``options``: ``published`` names the paper's table of these errors, with columns
    relative_error_mean and relative_error_std.
    ``p_std`` is that of a printed deviation (``dperm.kinds.cells.of_deviations``).
    """
    options = product.options
    found = results.load(config, problems)
    rows: Rows = []
    runs = 0
    for result in (each for name in problems for each in found[name]):
        known = {"problem": result.problem, "algorithm": result.label}
        if not result.available:
            rows.append(known)
            continue
        for chosen in result.chosen(product.calibration).to_dict("records"):
            fresh = result.final(product.calibration, chosen["passes"])
            row = known | {key: chosen[key] for key in ("passes", "mean", "std")}
            row |= with_interval(fresh["relative_error"].to_numpy(), *FRESH)
            rows.append(row | {key: chosen[key] for key in ("step", "clip")})
            runs = len(fresh)
    data = pd.DataFrame(rows)
    if "published" in options:
        names = {f"relative_error_{key}": f"published_{key}" for key in ("mean", "std")}
        printed = results.published(config, options["published"]).rename(columns=names)
        keys = ["problem", "algorithm", "passes"]
        if "passes" not in data:  # nothing is available
            data = data.reindex(columns=[*keys, "mean"])
        printed = printed[[*keys, *names.values()]]
        data = data.merge(printed, on=keys, how="left")
        if runs > 1:
            data = with_p_of_deviations(data, runs)
    # one line per algorithm, one column per number of passes; the lowest in bold
    lines = []
    for line, group in groups(data, ["problem", "algorithm"]):
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
    return Table(data, pd.DataFrame(lines))


def with_p_of_deviations(data: pd.DataFrame, runs: int) -> pd.DataFrame:
    """A table of errors with the p of printed deviations, and of thrice as large ones.

    ``runs`` fresh runs stand behind every interval.
    """
    fresh = cells.deviation(data["fresh_ci_low"], data["fresh_ci_high"], runs)
    found = {
        name: cells.of_deviations(data["published_std"], fresh / times, runs, law.RUNS)
        for name, times in (("p_std", 1), ("p_std_thrice", 3))
    }
    return data.assign(**found)


def noise(config: Config, product: Product, problems: list[str]) -> Table:
    """The cost of the published noise, and the noise that its epsilon needs."""
    loaded = results.load(config, problems)
    return made_of(
        [
            cost | needed
            for name in loaded
            for result in loaded[name]
            for _, cost, needed in noises(config, result, ("target_epsilon", "delta"))
        ]
    )


def noises(
    config: Config, result: Result, targets: Sequence[str]
) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, float]]]:
    """The published noise of a job at each number of passes, and the least sound one.

    Yields
    ------
    tuple of dict
        The calibration of the published noise; a row with its multiplier, its cost and
        the keys ``targets``; the multiplier that the target needs and its ratio to the
        published one, which are missing if no noise reaches the target.
    """
    kinds = results.calibrated(config, result)
    published = {passes: made[PAPER] for passes, made in kinds.items() if PAPER in made}
    if not published:
        return
    job = job_of(config, {"problem": result.problem, "solver": result.solver})
    assert job is not None  # it has run
    given = (job.problem, job.module, job.options)
    for passes, paper in published.items():
        row = {"problem": result.problem, "algorithm": result.label, "passes": passes}
        row |= {key: paper[key] for key in targets}
        row |= {"paper_noise": paper["noise_multiplier"]}
        row |= {"true_epsilon": paper["true_epsilon"]} | results.public(paper)
        try:
            least = trials.noise(*given, passes, STRICT).noise_multiplier
        except UnreachableTargetError:
            least = math.nan
        ratio = least / paper["noise_multiplier"]
        yield paper, row, {"strict_noise": least, "ratio": ratio}


def tuning_law(config: Config, product: Product, problems: list[str]) -> Table:
    """Quantiles of the law of what is printed after a tuning with five transcripts.

    ``options``: ``by_passes``, whether each number of passes was tuned separately.
    ``published`` and ``column``, the paper's table and its column of means, to which
    ``decimals`` or ``digits`` are printed; ``spread``, the deviation, in logarithms,
    of differences that tuning does not explain, and ``redrawn``, that of problems whose
    data are another draw.
    Columns: ``prints``, the least mean of the tuning or that of five new runs of its
    choice; ``start``, the error of w = 0; ``half``, the median with half as many
    settings over the median; ``printed``, the paper's mean, with the p of
    ``dperm.kinds.cells.of_means``.
    """
    swept = swept_errors(config, product.sweeps[0], problems)
    ran = results.load(config, problems, solvers=swept["solver"].unique())
    solvers = {
        (each.problem, each.solver): each for found in ran.values() for each in found
    }
    keys = ["problem", "solver", *(["passes"] if product.options["by_passes"] else [])]
    rows: Rows = []
    for at, part in groups(swept, keys):
        result = solvers[at["problem"], at["solver"]]
        at_zero = where(result.evaluated, checkpoint=0)["relative_error"]
        at |= {"algorithm": result.label, "start": float(at_zero.iloc[0])}
        rows += [at | row for row in _law_rows(law.by_passes(part))]
    data = pd.DataFrame(rows)
    if len(data) and "published" in product.options:
        data = _tested(config, product.options, data)
    names = (*keys, "algorithm", "prints", *PRINTED)
    front = [key for key in names if key in data]
    data = data[[*front, *(key for key in data if key not in front)]]
    return Table(data, readable(data.drop(columns=law.quantile_columns())))


def _tested(
    config: Config, options: dict[str, Any], laws: pd.DataFrame
) -> pd.DataFrame:
    """Laws with the printed mean of each, and its p; empty where none is printed."""
    keys = [key for key in ("problem", "algorithm", "passes") if key in laws]
    known = results.published(config, options["published"])
    known = known[[*keys, options["column"]]]
    known = known.rename(columns={options["column"]: "printed"})
    merged = laws.merge(known, on=keys, how="left")
    digits = {key: options[key] for key in ("decimals", "digits") if key in options}
    parts = []
    for _, part in merged.dropna(subset="printed").groupby("prints", sort=False):
        half = part["printed"].map(lambda value: cells.half_unit(value, **digits))
        spread = part["problem"].map(options["redrawn"]).fillna(options["spread"])
        parts.append(cells.of_means(part, part["printed"], half, spread))
    return merged.join(pd.concat(parts)) if parts else merged


def _law_rows(errors: list[law.Errors]) -> Iterator[dict[str, Any]]:
    whole = law.law(errors)
    half = law.law(errors, most=math.ceil(whole.settings / 2))
    for prints in law.PRINTS:
        found, fewer = (getattr(each, prints) for each in (whole, half))
        middle = float(np.median(found.errors))
        row: dict[str, Any] = {"prints": prints, "settings": whole.settings}
        row |= {"transcripts": found.transcripts, "median": middle}
        row["half"] = float(np.median(fewer.errors)) / middle
        for name in law.COUNTS:
            for end, level in (("low", 0.025), ("high", 0.975)):
                row[f"{name}_{end}"] = float(np.quantile(found.counts[name], level))
        row["tied"] = whole.tied
        yield row | dict(zip(law.quantile_columns(), found.quantiles, strict=True))


def tuned(config: Config, product: Product, problems: list[str]) -> Table:
    """Errors of fresh runs of a tuned method, with the luck of the tuning.

    A tuning on five transcripts chooses among settings of all numbers of passes. Its
    choice is run again as often as there are transcripts, and averaged. Columns are the
    mean over such tunings and the range of 95 % of them.
    """
    rows: Rows = []
    swept = swept_errors(config, product.sweeps[0], problems)
    for at, part in groups(swept, ["problem", "solver"]):
        errors = law.law(law.by_passes(part), again=None).fresh.errors
        low, high = np.quantile(errors, [0.025, 0.975])
        at["algorithm"] = plan.label(config, at.pop("solver"))
        rows.append(at | {"mean": errors.mean(), "ci_low": low, "ci_high": high})
    return made_of(rows)


def swept_errors(config: Config, sweep: str, problems: list[str]) -> pd.DataFrame:
    """The rows with an error of a sweep, for some problems."""
    swept = results.load_sweep(config, sweep)
    ran = "relative_error" in swept  # missing if no data set is available
    known = swept.dropna(subset="relative_error") if ran else swept.iloc[:0]
    return known[known["problem"].isin(problems)]


def powers(config: Config, product: Product, problems: list[str]) -> Table:
    """Exponents of a sweep's columns along an axis, with 95 % intervals.

    They are fitted to the means over the runs, so that an interval includes their noise
    and any departure from a power law. ``options``: ``axes``, each with the values at
    which others are held; ``keys``, columns that make a group; ``values``, columns to
    fit.
    """
    swept, options = results.load_sweep(config, product.sweeps[0]), product.options
    rows: Rows = []
    for axis, held in options["axes"].items():
        for at, group in groups(where(swept, **(held or {})), options["keys"]):
            means = group.groupby(axis)[options["values"]].mean()
            row = {"axis": axis} | at | {"from": means.index[0], "to": means.index[-1]}
            for name in options["values"]:
                names = (name, f"{name}_low", f"{name}_high")
                found = power(means.index.to_numpy(float), means[name].to_numpy())
                row |= dict(zip(names, found, strict=True))
            rows.append(row | {"runs": int(group.groupby(axis).size().min())})
    return made_of(rows)


def theorem(config: Config, product: Product, problems: list[str]) -> Table:
    """A theorem with its constants: the measured excess next to the bound.

    ``options``: ``shown``, columns of the sweep that do not change with the run, with
    ``start`` and ``bound`` among them. Without runs the excess is missing.
    """
    swept = results.load_sweep(config, product.sweeps[0])
    known = swept[swept["problem"].isin(problems)]
    rows, names = list[dict[str, Any]](), ("excess", "excess_low", "excess_high")
    known = known.dropna(subset="start") if "start" in known else known.iloc[:0]
    for at, group in groups(known, ["problem", "case"]):
        row = at | group.iloc[0][product.options["shown"]].to_dict()
        row |= dict.fromkeys([*names, "excess_max"], math.nan)
        runs = group.get("excess", pd.Series(dtype=float)).dropna().to_numpy()
        if len(runs):
            row |= with_interval(runs, *names) | {"excess_max": runs.max()}
        rows.append(row)
    return made_of(rows)
