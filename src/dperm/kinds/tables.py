"""Tables that any paper may name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
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
    groups,
    where,
    with_interval,
)

FRESH = ("fresh_mean", "fresh_ci_low", "fresh_ci_high")
PRINTED = ("printed", "p", "p_holm", "p_start")  # columns of a law


def relative_error(
    config: Config, product: Product, problems: list[str], published: str = ""
) -> pd.DataFrame:
    """Best relative error for each number of passes, tuned and fresh.

    ``published`` names the paper's table of these errors, with columns
    relative_error_mean and relative_error_std.
    ``p_std`` is that of a printed deviation (``dperm.kinds.cells.of_deviations``).
    """
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
    if published:
        names = {f"relative_error_{key}": f"published_{key}" for key in ("mean", "std")}
        printed = results.published(config, published).rename(columns=names)
        keys = ["problem", "algorithm", "passes"]
        if "passes" not in data:  # nothing is available
            data = data.reindex(columns=[*keys, "mean"])
        printed = printed[[*keys, *names.values()]]
        data = data.merge(printed, on=keys, how="left")
        if runs > 1:
            data = with_p_of_deviations(data, runs)
    return data


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


def noise(
    config: Config,
    product: Product,
    problems: list[str],
    solvers: Sequence[str] | None = None,
) -> pd.DataFrame:
    """The cost of the published noise, and the noise that its epsilon needs."""
    found = results.load(config, problems, solvers=solvers)
    listed = [result for name in problems for result in found[name]]
    keys = ("target_epsilon", "delta")
    return pd.DataFrame(
        [
            cost | needed
            for result in listed
            for _, cost, needed in noises(config, result, keys)
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


def tuning_law(
    config: Config,
    product: Product,
    problems: list[str],
    by_passes: bool,
    published: str,
    column: str,
    spread: float,
    redrawn: Mapping[str, float],
    decimals: int | None = None,
    digits: int | None = None,
) -> pd.DataFrame:
    """Quantiles of the law of what is printed after a tuning with five transcripts.

    Parameters
    ----------
    by_passes : bool
        Whether each number of passes was tuned separately.
    published, column : str
        The paper's table and its column of means, printed to so many ``decimals`` or
        ``digits``.
    spread : float
        Deviation, in logarithms, of differences that tuning does not explain;
        ``redrawn`` has that of problems whose data are another draw.

    Returns
    -------
    DataFrame
        ``prints``, the least mean of the tuning or that of five new runs of its
        choice; ``start``, the error of w = 0; ``half``, the median with half as many
        settings over the median; ``printed``, the paper's mean, with the p of
        ``dperm.kinds.cells.of_means``.
    """
    swept = swept_errors(config, product.sweeps[0], problems)
    ran = results.load(config, problems, solvers=swept["solver"].unique())
    solvers = {
        (each.problem, each.solver): each for found in ran.values() for each in found
    }
    keys = ["problem", "solver", *(["passes"] if by_passes else [])]
    rows: Rows = []
    for at, part in groups(swept, keys):
        result = solvers[at["problem"], at["solver"]]
        at_zero = where(result.evaluated, checkpoint=0)["relative_error"]
        at |= {"algorithm": result.label, "start": float(at_zero.iloc[0])}
        rows += [at | row for row in _law_rows(law.by_passes(part))]
    data = pd.DataFrame(rows)
    if len(data):
        known = _printed(config, data, published, column)
        half = partial(cells.half_unit, digits=digits, decimals=decimals or 0)
        data = _tested(known, half, known["problem"].map(redrawn).fillna(spread))
    names = (*keys, "algorithm", "prints", *PRINTED)
    front = [key for key in names if key in data]
    return data[[*front, *(key for key in data if key not in front)]]


def _printed(
    config: Config, laws: pd.DataFrame, published: str, column: str
) -> pd.DataFrame:
    """Laws with the printed mean of each; empty where none is printed."""
    keys = [key for key in ("problem", "algorithm", "passes") if key in laws]
    known = results.published(config, published)[[*keys, column]]
    return laws.merge(known.rename(columns={column: "printed"}), on=keys, how="left")


def _tested(
    laws: pd.DataFrame, half: Callable[[float], float], spread: pd.Series
) -> pd.DataFrame:
    """The p of each printed mean, for each kind of what is printed."""
    parts = [
        cells.of_means(part, part["printed"], part["printed"].map(half), spread[at])
        for _, part in laws.dropna(subset="printed").groupby("prints", sort=False)
        for at in (part.index,)
    ]
    return laws.join(pd.concat(parts)) if parts else laws


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


def tuned(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
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
    return pd.DataFrame(rows)


def swept_of(config: Config, product: Product) -> pd.DataFrame:
    """Rows of the product's sweep."""
    return results.load_sweep(config, product.sweeps[0])


def swept_errors(config: Config, sweep: str, problems: list[str]) -> pd.DataFrame:
    """The rows with an error of a sweep, for some problems."""
    swept = results.load_sweep(config, sweep)
    ran = "relative_error" in swept  # missing if no data set is available
    known = swept.dropna(subset="relative_error") if ran else swept.iloc[:0]
    return known[known["problem"].isin(problems)]


def powers(
    config: Config,
    product: Product,
    problems: list[str],
    axes: Mapping[str, Mapping[str, Any]],
    keys: Sequence[str],
    values: Sequence[str],
) -> pd.DataFrame:
    """Exponents of a sweep's columns along an axis, with 95 % intervals.

    They are fitted to the means over the runs, so that an interval includes their noise
    and any departure from a power law.

    Parameters
    ----------
    axes : mapping
        Each axis with the values at which others are held.
    keys : sequence of str
        Columns that make a group.
    values : sequence of str
        Columns to fit.
    """
    swept, keys, values = swept_of(config, product), list(keys), list(values)
    rows: Rows = []
    for axis, held in axes.items():
        for at, group in groups(where(swept, **held), keys):
            means = group.groupby(axis)[values].mean()
            row = {"axis": axis} | at | {"from": means.index[0], "to": means.index[-1]}
            for name in values:
                names = (name, f"{name}_low", f"{name}_high")
                found = power(means.index.to_numpy(float), means[name].to_numpy())
                row |= dict(zip(names, found, strict=True))
            rows.append(row | {"runs": int(group.groupby(axis).size().min())})
    return pd.DataFrame(rows)


def theorem(
    config: Config, product: Product, problems: list[str], shown: Sequence[str]
) -> pd.DataFrame:
    """A theorem with its constants: the measured excess next to the bound.

    ``shown`` are columns of the sweep that do not change with the run, with ``start``
    and ``bound`` among them. Without runs the excess is missing.
    """
    swept = swept_of(config, product)
    known = swept[swept["problem"].isin(problems)]
    rows, names = list[dict[str, Any]](), ("excess", "excess_low", "excess_high")
    known = known.dropna(subset="start") if "start" in known else known.iloc[:0]
    for at, group in groups(known, ["problem", "case"]):
        row = at | group.iloc[0][list(shown)].to_dict()
        row |= dict.fromkeys([*names, "excess_max"], math.nan)
        runs = group.get("excess", pd.Series(dtype=float)).dropna().to_numpy()
        if len(runs):
            row |= with_interval(runs, *names) | {"excess_max": runs.max()}
        rows.append(row)
    return pd.DataFrame(rows)
