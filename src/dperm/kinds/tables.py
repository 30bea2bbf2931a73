"""Tables that any paper may name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dperm.core.experiment import plan, results
from dperm.core.experiment.schema import Config, Product
from dperm.kinds import law
from dperm.present.intervals import power, skewed
from dperm.present.tables import Rows, groups, interval, named, where, with_interval

FRESH = ("fresh_mean", "fresh_ci_low", "fresh_ci_high")


def relative_error(
    config: Config,
    product: Product,
    problems: list[str],
    published: str = "",
    best: bool = False,
) -> pd.DataFrame:
    """Best relative error for each number of passes, tuned and fresh.

    With ``best`` that of the best number alone, where there is one. ``published`` names
    the paper's table of these errors, with columns relative_error_mean and
    relative_error_std. ``p_std`` is that of a printed deviation
    (``dperm.kinds.law.of_deviations``), ``p_std_thrice`` that of one thrice as large.
    """
    found = results.load(config, problems)
    rows: Rows = []
    runs = 0
    for result in (each for name in problems for each in found[name]):
        known = {"problem": result.problem, "algorithm": result.label}
        if not result.available:
            rows += [] if best else [known]
            continue
        settings = result.chosen(product.calibration)
        settings = settings.nsmallest(1, "mean") if best else settings
        for chosen in settings.to_dict("records"):
            fresh = result.final(product.calibration, chosen["passes"])
            row = known | {key: chosen[key] for key in ("passes", "mean", "std")}
            errors = fresh["relative_error"].to_numpy()
            row |= with_interval(errors, *FRESH, interval=skewed)
            row |= {
                "fresh_runs": len(errors),
                "fresh_std": fresh["relative_error"].std(),
            }
            rows.append(row | {key: chosen[key] for key in ("step", "clip")})
            runs = len(fresh)
    data = pd.DataFrame(rows)
    if not published:
        return data
    keys = ["problem", "algorithm", "passes"]
    names = {f"relative_error_{key}": f"published_{key}" for key in ("mean", "std")}
    printed = results.published(config, published).rename(columns=names)
    if "passes" not in data:  # nothing is available
        data = data.reindex(columns=[*keys, "mean"])
    data = data.merge(printed[[*keys, *names.values()]], on=keys, how="left")
    if runs > 1:
        ours, counts = data["fresh_std"], data["fresh_runs"]
        for name, times in (("p_std", 1), ("p_std_thrice", 3)):
            stated = data["published_std"]
            data[name] = law.of_deviations(stated, ours / times, counts)
    return data


def tuning_law(
    config: Config,
    product: Product,
    problems: list[str],
    by_passes: bool,
    published: str,
    column: str,
    spread: float,
    redrawn: Mapping[str, float],
    decimals: int = 0,
    digits: int | None = None,
) -> pd.DataFrame:
    """Quantiles of the law of what is printed after a tuning with five transcripts.

    ``by_passes`` says whether each number of passes was tuned separately.
    ``published`` is the paper's table and ``column`` its means, printed to so many
    ``decimals`` or ``digits``. ``spread`` is as for ``law.of_means``; ``redrawn`` has
    that of problems whose data are another draw.

    Columns: ``prints``, one of ``law.PRINTS``; ``start``, the error of w = 0; ``half``,
    the median with half as many settings over the median; ``printed``, the paper's
    mean, with the p of ``law.of_means``.
    """
    swept = swept_errors(config, product.sweeps[0], problems)
    ran = results.load(config, problems, solvers=swept["solver"].unique())
    solvers = {(one.problem, one.solver): one for each in ran.values() for one in each}
    keys = ["problem", "solver", *(["passes"] if by_passes else [])]
    rows: Rows = []
    for at, part in groups(swept, keys):
        result = solvers[at["problem"], at["solver"]]
        at_zero = where(result.evaluated, checkpoint=0)["relative_error"]
        at |= {"algorithm": result.label, "start": float(at_zero.iloc[0])}
        rows += [at | row for row in _law_rows(law.by_passes(part))]
    data = pd.DataFrame(rows)
    if len(data):
        of = [key for key in ("problem", "algorithm", "passes") if key in data]
        printed = results.published(config, published)[[*of, column]]
        printed = printed.rename(columns={column: "printed"})
        data = data.merge(printed, on=of, how="left")
        parts = []
        for _, part in data.dropna(subset="printed").groupby("prints", sort=False):
            half = [law.half_unit(one, digits, decimals) for one in part["printed"]]
            wide = part["problem"].map(redrawn).fillna(spread)
            parts.append(law.of_means(part, part["printed"], pd.Series(half), wide))
        data = data.join(pd.concat(parts)) if parts else data
    front = (*keys, "algorithm", "prints", "printed", "p", "p_holm", "p_start")
    first = [key for key in front if key in data]
    return data[[*first, *(key for key in data if key not in first)]]


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
        yield row | dict(zip(law.COLUMNS, found.quantiles, strict=True))


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
    """Rows of the product's sweeps, one below the other."""
    tables = [results.load_sweep(config, name) for name in product.sweeps]
    return pd.concat(tables, ignore_index=True)


def swept_errors(config: Config, sweep: str, problems: list[str]) -> pd.DataFrame:
    """The rows with an error of a sweep, for some problems."""
    swept = results.load_sweep(config, sweep)
    ran = "relative_error" in swept  # missing if no data set is available
    known = swept.dropna(subset="relative_error") if ran else swept.iloc[:0]
    return known[known["problem"].isin(problems)]


def slopes(table: pd.DataFrame, x: str, y: str) -> np.ndarray:
    """Exponent of y in x of each replicate that has all values of x.

    Rows of a replicate at one x are averaged; NaN if a y is not positive.
    """
    wide = table.pivot_table(index="replicate", columns=x, values=y).dropna()
    logs = np.log(wide.where(wide > 0).to_numpy())
    along = np.log(wide.columns.to_numpy(float))
    along = along - along.mean()
    return np.array([along @ (run - run.mean()) for run in logs]) / (along @ along)


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
    and any departure from a power law. ``axes`` has each axis with the values at which
    others are held, ``keys`` are columns that make a group, ``values`` those to fit.
    """
    swept, keys, values = swept_of(config, product), list(keys), list(values)
    rows: Rows = []
    for axis, held in axes.items():
        for at, group in groups(where(swept, **held), keys):
            means = group.groupby(axis)[values].mean()
            row = {"axis": axis} | at | {"from": means.index[0], "to": means.index[-1]}
            for name in values:
                found = power(means.index.to_numpy(float), means[name].to_numpy())
                row |= named(name, found)
            rows.append(row | {"runs": int(group.groupby(axis).size().min())})
    return pd.DataFrame(rows)


def columns(
    config: Config, product: Product, problems: list[str], shown: Sequence[str]
) -> pd.DataFrame:
    """Columns of a sweep whose replicates are alike: rows of the first one."""
    swept = swept_of(config, product)
    kept = where(swept, status="ok", replicate=swept["replicate"].min())
    return kept[list(shown)].reset_index(drop=True)


SHOWN: dict[str, Callable[[str, pd.Series], dict[str, Any]]] = {
    "first": lambda name, values: {name: values.iloc[0]},
    "mean": lambda name, values: {name: values.mean()},
    "max": lambda name, values: {name: values.max()},
    "interval": interval,
    "runs": lambda name, values: {"runs": values.count()},
}


def summary(
    config: Config,
    product: Product,
    problems: list[str],
    keys: Sequence[str],
    show: Mapping[str, Sequence[str]],
    derived: Mapping[str, str] | None = None,
    only: str = "",
) -> pd.DataFrame:
    """A sweep by groups of rows that differ only in their draws.

    ``keys`` are columns that make a group, of the rows that ``only`` selects, a
    condition of pandas. ``show`` has, by a key of ``SHOWN``, the columns to summarise:
    the first value of a group, its mean, its largest value, its mean with a 95 %
    interval, or the number of runs that have one. ``derived`` are columns that follow
    from others, as expressions of pandas. A column that no row has, as where no run was
    made, is empty.
    """
    swept = where(swept_of(config, product), status="ok")
    if "problem" in swept:  # synthetic data have none
        swept = swept[swept["problem"].isin([*problems, np.nan])]
    swept = swept.query(only) if only else swept
    shown, derived = [(how, x) for how in show for x in show[how]], derived or {}
    lost = [name for _, name in shown if name not in {*swept, *derived}]
    swept = swept.assign(**dict.fromkeys(lost, math.nan))
    swept = swept.assign(**{name: swept.eval(derived[name]) for name in derived})
    rows: Rows = []
    for row, group in groups(swept, list(keys)):
        for how, name in shown:
            row |= SHOWN[how](name, group[name])
        rows.append(row)
    return pd.DataFrame(rows)
