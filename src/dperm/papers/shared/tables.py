"""Tables that any paper may name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dperm.config.config import read
from dperm.config.schema import Paper, Product
from dperm.experiments import plan, results
from dperm.experiments.inputs import Inputs
from dperm.numerics.intervals import power, skewed
from dperm.papers.shared import law
from dperm.plotting.tables import (
    Rows,
    groups,
    interval,
    named,
    where,
    with_interval,
)

FRESH = ("fresh_mean", "fresh_ci_low", "fresh_ci_high")


def relative_error(
    paper: Paper,
    folder: Path,
    product: Product,
    problems: list[str],
    best: bool = False,
) -> pd.DataFrame:
    """Best relative error for each number of passes, tuned and fresh.

    With ``best`` that of the best number alone, where there is one.
    """
    solver_results = results.load(paper, folder, problems)
    rows: Rows = []
    for run in chain.from_iterable(solver_results[name] for name in problems):
        method_row = {"problem": run.problem, "algorithm": run.label}
        if not run.available:
            if not best:
                rows.append(method_row)
            continue
        settings = run.chosen(product.calibration)
        settings = settings.nsmallest(1, "mean") if best else settings
        for chosen in settings.to_dict("records"):
            fresh = run.final(product.calibration, chosen["passes"])
            row = method_row | {
                key: chosen[key] for key in ("passes", "mean", "std")
            }
            errors = fresh["relative_error"].to_numpy()
            row |= with_interval(errors, *FRESH, interval=skewed)
            row |= {
                "fresh_runs": len(errors),
                "fresh_std": fresh["relative_error"].std(),
            }
            rows.append(row | {key: chosen[key] for key in ("step", "clip")})
    return pd.DataFrame(rows)


def printed_error(
    swept: pd.DataFrame,
    paper: Paper,
    folder: Path,
    product: Product,
    inputs: Inputs,
    problems: list[str],
    published: str,
) -> pd.DataFrame:
    """Relative errors as a paper prints them after a tuning, beside its own.

    ``mean`` is the median of what tunings print whose settings have draws of their own
    (``dperm.papers.shared.sweeps.tuning_law``), and ``draws`` is "own". Where they were
    not swept it is the mean of one tuning, whose settings share their draws ("shared").

    ``published`` names the paper's table of these errors, with columns
    relative_error_mean and relative_error_std. ``p_std`` is that of a printed deviation
    (``dperm.papers.shared.law.of_deviations``), ``p_std_thrice`` that of one thrice as
    large.
    """
    table = relative_error(paper, folder, product, problems)
    keys = ["problem", "algorithm", "passes"]
    names = {
        f"relative_error_{key}": f"published_{key}" for key in ("mean", "std")
    }
    printed = results.published(paper, published).rename(columns=names)
    if "passes" not in table:  # nothing is available
        table = table.reindex(columns=[*keys, "mean"])
    medians = _own_draws(swept, paper, inputs, problems)
    table = table.merge(medians, on=keys, how="left")
    own_mean = table.pop("own_mean")
    table["mean"] = own_mean.fillna(table["mean"])
    table.insert(4, "draws", np.where(own_mean.notna(), "own", "shared"))
    table = table.merge(printed[[*keys, *names.values()]], on=keys, how="left")
    if table.get("fresh_runs", pd.Series(dtype=float)).max() > 1:
        ours = table["fresh_std"]
        counts = table["fresh_runs"]
        for name, times in (("p_std", 1), ("p_std_thrice", 3)):
            published_std = table["published_std"]
            table[name] = law.of_deviations(
                published_std, ours / times, counts
            )
    return table


def _own_draws(
    swept: pd.DataFrame, paper: Paper, inputs: Inputs, problems: list[str]
) -> pd.DataFrame:
    """The median mean that tunings print for each number of passes, ``own_mean``."""
    rows: Rows = []
    errors = swept_errors(swept, problems)
    for row, group in groups(errors, ["problem", "solver", "passes"]):
        solver = read("solver", row.pop("solver"), inputs.overrides)
        row["algorithm"] = plan.label(paper, solver)
        printed = law.law(law.by_passes(group)).least
        rows.append(row | {"own_mean": float(np.median(printed.errors))})
    return pd.DataFrame(
        rows, columns=["problem", "algorithm", "passes", "own_mean"]
    )


def tuning_law(
    swept: pd.DataFrame,
    paper: Paper,
    folder: Path,
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
    errors = swept_errors(swept, problems)
    ran = results.load(
        paper, folder, problems, solvers=errors["solver"].unique()
    )
    runs = chain.from_iterable(ran.values())
    solvers = {(run.problem, run.solver): run for run in runs}
    keys = ["problem", "solver", *(["passes"] if by_passes else [])]
    rows: Rows = []
    for group_keys, group in groups(errors, keys):
        run = solvers[group_keys["problem"], group_keys["solver"]]
        at_zero = where(run.evaluated, checkpoint=0)["relative_error"]
        group_keys |= {"algorithm": run.label, "start": float(at_zero.iloc[0])}
        rows += [group_keys | row for row in _law_rows(law.by_passes(group))]
    table = pd.DataFrame(rows)
    if len(table):
        join_keys = [
            key for key in ("problem", "algorithm", "passes") if key in table
        ]
        printed = results.published(paper, published)[[*join_keys, column]]
        printed = printed.rename(columns={column: "printed"})
        table = table.merge(printed, on=join_keys, how="left")
        tests = []
        for _, group in table.dropna(subset="printed").groupby(
            "prints", sort=False
        ):
            half = [
                law.half_unit(mean, digits, decimals)
                for mean in group["printed"]
            ]
            wide = group["problem"].map(redrawn).fillna(spread)
            tests.append(
                law.of_means(group, group["printed"], pd.Series(half), wide)
            )
        table = table.join(pd.concat(tests)) if tests else table
    front = (*keys, "algorithm", "prints", "printed", "p", "p_holm", "p_start")
    leading = [key for key in front if key in table]
    return table[[*leading, *(key for key in table if key not in leading)]]


def _law_rows(errors: list[law.Errors]) -> Iterator[dict[str, Any]]:
    full_law = law.law(errors)
    half = law.law(errors, most=math.ceil(full_law.settings / 2))
    for prints in law.PRINTS:
        printed, fewer = (
            getattr(drawn_law, prints) for drawn_law in (full_law, half)
        )
        middle = float(np.median(printed.errors))
        row: dict[str, Any] = {"prints": prints, "settings": full_law.settings}
        row |= {"transcripts": printed.transcripts, "median": middle}
        row["half"] = float(np.median(fewer.errors)) / middle
        for name in law.COUNTS:
            for end, level in (("low", 0.025), ("high", 0.975)):
                row[f"{name}_{end}"] = float(
                    np.quantile(printed.counts[name], level)
                )
        row["tied"] = full_law.tied
        yield row | dict(zip(law.LAW_COLUMNS, printed.quantiles, strict=True))


def tuned(
    swept: pd.DataFrame, paper: Paper, inputs: Inputs, problems: list[str]
) -> pd.DataFrame:
    """Errors of fresh runs of a tuned method, with the luck of the tuning.

    A tuning on five transcripts chooses among settings of all numbers of passes. Its
    choice is run again as often as there are transcripts, and averaged. Columns are the
    mean over such tunings and the range of 95 % of them.
    """
    rows: Rows = []
    for row, group in groups(
        swept_errors(swept, problems), ["problem", "solver"]
    ):
        errors = law.law(law.by_passes(group), again=None).fresh.errors
        low, high = np.quantile(errors, [0.025, 0.975])
        solver = read("solver", row.pop("solver"), inputs.overrides)
        row["algorithm"] = plan.label(paper, solver)
        rows.append(
            row | {"mean": errors.mean(), "ci_low": low, "ci_high": high}
        )
    return pd.DataFrame(rows)


def swept_errors(swept: pd.DataFrame, problems: list[str]) -> pd.DataFrame:
    """The rows of sweeps with an error, for some problems."""
    ran = "relative_error" in swept  # missing if no data set is available
    rows = swept.dropna(subset="relative_error") if ran else swept.iloc[:0]
    return rows[rows["problem"].isin(problems)]


def slopes(table: pd.DataFrame, x: str, y: str) -> np.ndarray:
    """Exponent of y in x of each replicate that has all values of x.

    Rows of a replicate at one x are averaged; NaN if a y is not positive.
    """
    wide = table.pivot_table(index="replicate", columns=x, values=y).dropna()
    logs = np.log(wide.where(wide > 0).to_numpy())
    along = np.log(wide.columns.to_numpy(float))
    along = along - along.mean()
    return np.array([along @ (run - run.mean()) for run in logs]) / (
        along @ along
    )


def powers(
    swept: pd.DataFrame,
    axes: Mapping[str, Mapping[str, Any]],
    keys: Sequence[str],
    values: Sequence[str],
) -> pd.DataFrame:
    """Exponents of a sweep's columns along an axis, with 95 % intervals.

    They are fitted to the means over the runs, so that an interval includes their noise
    and any departure from a power law. ``axes`` has each axis with the values at which
    others are held, ``keys`` are columns that make a group, ``values`` those to fit.
    """
    keys = list(keys)
    measures = list(values)
    rows: Rows = []
    for axis, fixed in axes.items():
        for group_keys, group in groups(where(swept, **fixed), keys):
            means = group.groupby(axis)[measures].mean()
            row = (
                {"axis": axis}
                | group_keys
                | {"from": means.index[0], "to": means.index[-1]}
            )
            for name in measures:
                fit = power(
                    means.index.to_numpy(float), means[name].to_numpy()
                )
                row |= named(name, fit)
            rows.append(row | {"runs": int(group.groupby(axis).size().min())})
    return pd.DataFrame(rows)


def columns(swept: pd.DataFrame, shown: Sequence[str]) -> pd.DataFrame:
    """Columns of a sweep whose replicates are alike: rows of the first one."""
    rows = where(swept, status="ok", replicate=swept["replicate"].min())
    return rows[list(shown)].reset_index(drop=True)


SHOWN: dict[str, Callable[[str, pd.Series], dict[str, Any]]] = {
    "first": lambda name, values: {name: values.iloc[0]},
    "mean": lambda name, values: {name: values.mean()},
    "max": lambda name, values: {name: values.max()},
    "interval": interval,
    "runs": lambda name, values: {"runs": values.count()},
}


def summary(
    swept: pd.DataFrame,
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
    swept = where(swept, status="ok")
    if "problem" in swept:  # synthetic data have none
        swept = swept[swept["problem"].isin([*problems, np.nan])]
    swept = swept.query(only) if only else swept
    measures = []
    for form, names in show.items():
        measures += [(form, name) for name in names]
    derived = derived or {}
    absent = [name for _, name in measures if name not in {*swept, *derived}]
    swept = swept.assign(**dict.fromkeys(absent, math.nan))
    swept = swept.assign(
        **{name: swept.eval(derived[name]) for name in derived}
    )
    rows: Rows = []
    for row, group in groups(swept, list(keys)):
        for form, name in measures:
            row |= SHOWN[form](name, group[name])
        rows.append(row)
    return pd.DataFrame(rows)
