"""Compare two trees of results row by row: ``dperm compare A B``.

Every Parquet and CSV file below A and B is compared, in all columns except seconds and
provenance. Products made of timings are left out. Two tables agree

- in bits: everything is equal;
- in rounding: numbers differ by ``--rtol`` at most, everything else is equal;
- in statistics: no setting's replicates have significantly different means (Welch's
  test at 0.1 % over all settings of a table, Bonferroni), or the intervals of every row
  overlap.

Two trees agree as their worst tables do. If a table does not agree at all, the trees
may still agree in verdicts: those of all claims are the same. The exit code is 0, 10,
20 or 30 for these levels, and 40 without agreement. With ``--level`` it is 0 from that
level on, and only tables that fall short of it are listed.
"""

from __future__ import annotations

import argparse
import functools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from tabulate import tabulate

from dperm.core.experiment import config as configuration
from dperm.core.experiment import files as store
from dperm.core.experiment.files import DIGITS
from dperm.core.experiment.locate import available
from dperm.core.experiment.results import best
from dperm.core.experiment.unit import IDENTITY, PROVENANCE
from dperm.pipeline.racing import CANNOT_WIN

RTOL = 1e-9
LAST = 10.0 ** (1 - DIGITS)  # a unit of the last digit of a CSV, relative
CHANCE = 1e-3  # of a false alarm for a table whose laws are equal
CHOSEN = ["calibration", "passes", "step", "clip"]  # a setting that tuning chooses
CLAIM = ["paper", "place", "claim"]  # the key of a claim


class Level(IntEnum):
    """Level of agreement of two tables; the value is the command's exit code."""

    BITS = 0
    ROUNDING = 10
    STATISTICS = 20
    VERDICTS = 30
    NOTHING = 40


@dataclass(frozen=True)
class Agreement:
    """Level of agreement of two tables of one name, with one line per difference."""

    name: str
    level: Level
    lines: tuple[str, ...] = ()


def agreements(
    one: Path, other: Path, shared: bool = False, rtol: float = RTOL
) -> Iterator[Agreement]:
    """Compare two trees of results, table by table.

    Parameters
    ----------
    one, other : Path
        Folders such as ``results``, ``results/dpcd`` or ``figures/dpcd``.
    shared : bool
        Leave out tables that only one tree has, and judge only the columns that both
        tables have; other columns are still listed.
    rtol : float
        Relative difference that counts as rounding.

    Raises
    ------
    ValueError
        If a folder holds no table, or a table is damaged.
    """
    ours, theirs = _tables(one), _tables(other)
    every = ours.keys() & theirs.keys() if shared else ours.keys() | theirs.keys()
    if not every:
        raise ValueError(f"{one} and {other} have no table in common")
    for name in sorted(every):
        lone = [side for side, has in ((one, ours), (other, theirs)) if name in has]
        if len(lone) == 1:
            yield Agreement(name, Level.NOTHING, (f"only in {lone[0]}",))
            continue
        # Nearly equal numbers may have been rounded to two neighbours in a CSV file.
        near = rtol + LAST if name.endswith(".csv") else rtol
        yield agreement(name, ours[name], theirs[name], near, shared)


def agreement(
    name: str, one: Path, other: Path, rtol: float, shared: bool = False
) -> Agreement:
    """Compare two tables, in ``shared`` columns or in all."""
    pair = _read(one), _read(other)
    lines = tuple(_differing(*pair))
    if shared:
        names = pair[0].columns.intersection(pair[1].columns, sort=False)
        pair = pair[0][names], pair[1][names]
    return Agreement(name, _level(*pair, rtol), lines)


def overall(agreed: Iterable[Agreement], one: Path, other: Path) -> Level:
    """Level of agreement of two trees: that of their worst tables, or of verdicts."""
    worst = max((each.level for each in agreed), default=Level.BITS)
    if worst <= Level.STATISTICS:
        return worst
    paths = (one / "claims.csv", other / "claims.csv")
    if not all(path.is_file() for path in paths):
        return Level.NOTHING
    tables = [pd.read_csv(path) for path in paths]
    if not all({*CLAIM, "verdict"} <= {*table} for table in tables):
        return Level.NOTHING  # a paper's own table of that name
    ours, theirs = (table.set_index(CLAIM)["verdict"] for table in tables)
    return Level.VERDICTS if ours.equals(theirs) else Level.NOTHING


# --- agreement of two tables ----------------------------------------------------------


def _level(one: pd.DataFrame, other: pd.DataFrame, rtol: float) -> Level:
    if not any(_differing(one, other)):
        return Level.BITS
    if set(one.columns) != set(other.columns):
        return Level.NOTHING
    one, other = _keyed(one, other)
    if set(one.index) != set(other.index):
        return Level.NOTHING
    other = other.loc[one.index, one.columns]
    if is_near(one, other, rtol):
        return Level.ROUNDING
    if {"replicate", "relative_error"} <= {*one.index.names, *one.columns}:
        return _level_of_means(one, other)
    return _level_of_intervals(one, other, rtol)


def is_near(one: pd.DataFrame, other: pd.DataFrame, rtol: float) -> bool:
    """Whether two tables of the same columns are equal except for rounding."""
    return all(_is_near(one[name], other[name], rtol) for name in one)


def _is_near(one: pd.Series, other: pd.Series, rtol: float) -> bool:
    if not all(pd.api.types.is_numeric_dtype(column) for column in (one, other)):
        return bool(((one == other) | (one.isna() & other.isna())).all())
    pair = one.to_numpy(float), other.to_numpy(float)
    return bool(np.isclose(*pair, rtol=rtol, atol=0.0, equal_nan=True).all())


def _level_of_means(one: pd.DataFrame, other: pd.DataFrame) -> Level:
    """Whether no setting's replicates have significantly different mean errors."""
    keys = [key for key in IDENTITY if key != "replicate"]
    groups = [side.reset_index().groupby(keys) for side in (one, other)]
    ours, theirs = (group["relative_error"] for group in groups)
    least = 1.0
    for key, values in ours:
        least = min(
            least, _p_value(values.to_numpy(), theirs.get_group(key).to_numpy())
        )
    is_one = least * len(ours) >= CHANCE
    return Level.STATISTICS if is_one else Level.NOTHING


def _p_value(one: np.ndarray, other: np.ndarray) -> float:
    """P-value of Welch's test; infinite errors equal only each other."""
    one, other = one[np.isfinite(one)], other[np.isfinite(other)]
    if len(one) != len(other):
        return 0.0
    if len(one) < 2 or max(np.ptp(one), np.ptp(other)) == 0:
        return float(np.allclose(one, other, rtol=RTOL, atol=0.0))
    return float(stats.ttest_ind(one, other, equal_var=False).pvalue)


def _level_of_intervals(one: pd.DataFrame, other: pd.DataFrame, rtol: float) -> Level:
    """Whether all intervals overlap, and text and the columns that name a row agree."""
    ends = [(f"{stem}ci_low", f"{stem}ci_high") for stem in ("", "fresh_")]
    ends = [pair for pair in ends if set(pair) <= set(one.columns)]
    if not ends:
        return Level.NOTHING
    for low, high in ends:
        apart = (one[low] > other[high]) | (other[low] > one[high])
        if apart.any():
            return Level.NOTHING
    measured = min(one.columns.get_loc(low) for low, _ in ends)
    labels = {*one.select_dtypes(exclude="number"), *_key(one.iloc[:, :measured])}
    same = all(_is_near(one[name], other[name], rtol) for name in labels)
    return Level.STATISTICS if same else Level.NOTHING


def _key(*tables: pd.DataFrame) -> list[str]:
    """The fewest leading columns that name a row in each table; else none."""
    columns = list(tables[0].columns)
    for names in (columns[: count + 1] for count in range(len(columns))):
        if not all({*names} <= {*table.columns} for table in tables):
            return []
        if not any(table.duplicated(names).any() for table in tables):
            return names
    return []


# --- reading --------------------------------------------------------------------------


def _tables(folder: Path) -> dict[str, Path]:
    timed = functools.cache(_timed)
    tables = {
        str(path.relative_to(folder)): path
        for kind in ("*.parquet", "*.csv")
        for path in sorted(folder.rglob(kind))
        if "lanes" not in path.parts
        and not path.name.startswith(".")
        and path.stem not in timed(path.absolute().parent.name)
    }
    if not tables:
        raise ValueError(
            f"{folder}: expected Parquet or CSV files below it, found none"
        )
    return tables


def _timed(name: str) -> set[str]:
    """Figures and tables of a paper that show timings; empty for other names."""
    if name not in available("paper"):
        return set()
    paper = configuration.read("paper", name)
    slow = {sweep for sweep, each in paper.sweeps.items() if each.timed}
    products = {**paper.figures, **paper.tables}.items()
    return {key for key, each in products if each.timed or slow & {*each.sweeps}}


def _read(path: Path) -> pd.DataFrame:
    if path.suffix == ".parquet":
        table = store.read_table(path)
    else:  # a table without rows may have no columns either
        table = pd.read_csv(path) if path.read_text("utf-8").strip() else pd.DataFrame()
    left_out = [name for name in table if name in PROVENANCE or "seconds" in name]
    return table.drop(columns=left_out)


def _differing(one: pd.DataFrame, other: pd.DataFrame) -> Iterator[str]:
    """Yield one line for each difference of columns, rows and values."""
    for name in one.columns.symmetric_difference(other.columns, sort=False):
        yield f"column {name}: only in {'A' if name in one else 'B'}"
    one, other = _keyed(one, other)
    for side, table, against in (("A", one, other), ("B", other, one)):
        lost = table.index.difference(against.index, sort=False)
        if len(lost):
            yield f"{len(lost)} rows only in {side}, first {_place(table, lost[0])}"
    shared = one.index.intersection(other.index, sort=False)
    one, other = one.loc[shared], other.loc[shared]
    for name in one.columns.intersection(other.columns, sort=False):
        line = _column(one[name], other[name])
        if line:
            yield f"{name}: {line}"


def _keyed(one: pd.DataFrame, other: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Index the rows by a unique key, or by their position if there is none.

    The key is a lane's identity or, if the tables differ in length, the fewest leading
    columns that are unique: keys come first in every table.
    """
    names = list(IDENTITY)
    known = all({*names} <= {*table.columns} for table in (one, other))
    if not known or any(table.duplicated(names).any() for table in (one, other)):
        names = _key(one, other) if len(one) != len(other) else []
    if names:
        return one.set_index(names), other.set_index(names)
    return one.rename_axis("row"), other.rename_axis("row")


def _place(table: pd.DataFrame, key: object) -> str:
    values = key if isinstance(key, tuple) else (key,)
    return " ".join(
        f"{name}={value}" for name, value in zip(table.index.names, values, strict=True)
    )


def _column(one: pd.Series, other: pd.Series) -> str:
    """Describe how two columns with the same index differ; empty if they do not."""
    equal = (one == other) | (one.isna() & other.isna())
    if equal.all():
        return ""
    where = np.flatnonzero(~equal.to_numpy(dtype=bool))
    first = where[0]
    text = f"{len(where)} of {len(one)} rows differ"
    if all(pd.api.types.is_numeric_dtype(column) for column in (one, other)):
        text += _by_how_much(*(c.to_numpy(float)[where] for c in (one, other)))
    place = _place(one.to_frame(), one.index[first])
    return f"{text}, first {place}: {one.iloc[first]!r} against {other.iloc[first]!r}"


def _by_how_much(one: np.ndarray, other: np.ndarray) -> str:
    both = np.isfinite(one) & np.isfinite(other)
    if not both.any():
        return ""
    gap = np.abs(one[both] - other[both])
    size = np.maximum(np.abs(one[both]), np.abs(other[both]))
    relative = np.divide(gap, size, out=np.zeros_like(gap), where=size > 0)
    return f", by at most {gap.max():.3g} (relative {relative.max():.3g})"


# --- choices of tunings ---------------------------------------------------------------


def choices(one: Path, other: Path) -> pd.DataFrame:
    """Compare, for every tuning in both trees, the settings it chose and ran.

    Parameters
    ----------
    one, other : Path
        Folders of results; ``dperm tune paper.race=false`` leaves whole grids.

    Returns
    -------
    DataFrame
        tuning, chosen (number of settings), same (number that both trees chose), and
        the share of the lanes' passes that each tree ran: ran_a, ran_b.
    """
    rows = []
    for path in sorted(one.rglob("tune.parquet")):
        name = path.relative_to(one)
        if (other / name).is_file():
            pair = store.read_table(path), store.read_table(other / name)
            ours, theirs = (best(table)[CHOSEN] for table in pair)
            count = max(len(ours), len(theirs)), len(ours.merge(theirs))
            rows.append([str(name.parent), *count, *map(_share_run, pair)])
    return pd.DataFrame(rows, columns=["tuning", "chosen", "same", "ran_a", "ran_b"])


def _share_run(table: pd.DataFrame) -> float:
    """Share of a tuning's passes that were run, over all lanes."""
    passes = table["passes"].to_numpy(dtype=float)
    ran = np.nansum(passes[table["status"] != CANNOT_WIN])
    return float(ran / (np.nansum(passes) or 1.0))  # 0 without data


def _choices_text(table: pd.DataFrame) -> str:
    same, chosen = table["same"].sum(), table["chosen"].sum()
    ran = ", ".join(f"{table[key].mean():.0%}" for key in ("ran_a", "ran_b"))
    text = tabulate(table, "keys", "pipe", showindex=False, floatfmt=".3f")
    return (
        f"{text}\n\n{same} of {chosen} chosen settings are the same in {len(table)} "
        f"tunings; of the lanes' passes A and B ran {ran} (mean of the tunings)"
    )


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``dperm compare``."""
    parser.add_argument("A", type=Path, help="folder, such as results/dpcd")
    parser.add_argument("B", type=Path, help="another one")
    parser.add_argument(
        "--shared",
        action="store_true",
        help="judge the tables and columns that both have; Git has no Parquet",
    )
    parser.add_argument(
        "--rtol",
        type=float,
        default=RTOL,
        help=f"relative difference that counts as rounding ({RTOL:g})",
    )
    parser.add_argument(
        "--level",
        choices=[level.name.lower() for level in Level][:-1],
        help="exit with 0 from this level of agreement on, and list the other tables",
    )
    parser.add_argument(
        "--chosen",
        action="store_true",
        help="compare only the settings that tunings chose and ran",
    )


def main(options: argparse.Namespace) -> None:
    """Print the differences and the level of agreement, and exit with its code."""
    if options.chosen:
        settings = choices(options.A, options.B)
        print(_choices_text(settings))
        raise SystemExit(int((settings["same"] < settings["chosen"]).any()))
    found = list(agreements(options.A, options.B, options.shared, options.rtol))
    level = overall(found, options.A, options.B)
    enough = Level[options.level.upper()] if options.level else Level.BITS
    for each in found:
        if each.level > enough or not options.level:
            print(*(f"{each.name}: {line}\n" for line in each.lines), sep="", end="")
    print(_summary(found, level))
    raise SystemExit(0 if level <= enough else int(level))


def _summary(tables: list[Agreement], level: Level) -> str:
    if not any(each.lines for each in tables):
        return "no difference"
    counts = Counter(each.level for each in tables)
    parts = [f"{counts[one]} in {one.name.lower()}" for one in Level if counts[one]]
    return f"agree in {level.name.lower()}: of {len(tables)} tables {', '.join(parts)}"
