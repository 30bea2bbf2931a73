"""Evidence (rows of result files as estimates with intervals) and verdicts on it.

The name ``table2`` means ``results/<paper>/table2.csv``, ``figures/figure1`` a figure's
data, and ``sweeps/rates`` a Parquet file. A missing result raises ``AbsentError`` ("not
yet run"), a result that decides nothing ``MissingError``, and an impossible one
``FlawedError``.

A claim has a target range, and possibly a looser one around it; otherwise both are the
same. If the 95 % interval lies in the looser range, the claim is reproduced if the
number lies in the target, else with a caveat. If the interval lies wholly outside the
looser range, the claim is not reproduced. If it crosses an end, nothing is decided.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import pandas as pd

from dperm.core.experiment import files as store
from dperm.core.experiment import plan, results, schema
from dperm.present.intervals import student
from dperm.present.tables import number

TUNED = "tuned"  # the table of the best of all numbers of passes
FIGURE = ("mean", "ci_low", "ci_high")  # columns of a figure's data


class MissingError(RuntimeError):
    """A result that a rule needs decides nothing; the text has the reason."""


class AbsentError(MissingError):
    """A result that a rule needs does not exist: the claim is not yet run."""


class FlawedError(MissingError):
    """A table that no run can have written; the text has the reason."""


Alteration = Callable[[pd.DataFrame, str], pd.DataFrame]  # of a table and its file
Where = dict[str, Any] | None  # column to its value or list of values
Each = str | list[str] | None  # columns to group by


@dataclass(frozen=True)
class Estimate:
    """A number and its 95 % interval; both ends equal the number if none is known.

    For an exponent, ``rate`` is its value in theory, and ``less`` was subtracted from
    the measured exponent.
    """

    value: float
    low: float
    high: float
    rate: float | None = None
    less: float = 0.0

    @classmethod
    def exactly(cls, value: float) -> Estimate:
        """A number without an interval."""
        return cls(value, value, value)

    def over(self, other: Estimate) -> Estimate:
        """Ratio of two independent estimates; half widths in logarithms add up.

        A numerator that may be 0 leaves the ratio without a lower end, a denominator
        that may be 0 without an upper one. Raises MissingError if one is not positive.
        """
        if not (self.value > 0 and other.value > 0):
            raise MissingError(f"no ratio of {self.value:g} and {other.value:g}")
        ratio = self.value / other.value
        halves = (
            math.log(each.high / each.low) / 2
            if each.low > 0
            else (each.high - each.low) / 2 / each.value
            for each in (self, other)
        )
        spread = math.exp(math.hypot(*halves))
        low = ratio / spread if self.low > 0 else 0.0
        return Estimate(ratio, low, ratio * spread if other.low > 0 else math.inf)


@dataclass
class Evidence:
    """Result files of one paper; ``used`` collects the names of the files read.

    Parameters
    ----------
    config : schema.Config
        With the paper and the folders.
    altered : callable, optional
        Change that a control makes to every table that is read.
    claim : schema.Claim, optional
        The claim to judge: it names the groups it expects, and those not available.
    siblings : list of schema.Claim
        All claims of the paper.
    trusted : bool
        Whether to accept tables that no run can have written.
    """

    config: schema.Config
    used: list[str] = field(default_factory=list)
    altered: Alteration | None = None
    claim: schema.Claim | None = None
    siblings: list[schema.Claim] = field(default_factory=list)
    trusted: bool = False

    def path(self, file: str) -> Path:
        """Path of the file that a name means."""
        paper = self.config.paper.name
        if file.startswith("figures/"):
            name = file.removeprefix("figures/")
            return plan.figures_folder(self.config, paper, f"{name}.csv")
        suffix = "parquet" if file.startswith("sweeps/") else "csv"
        return plan.results_folder(self.config, paper, f"{file}.{suffix}")

    def table(self, file: str) -> pd.DataFrame:
        """All rows of a file.

        Raises MissingError if it does not exist.
        """
        path = self.path(file)
        if str(path) not in self.used:
            self.used.append(str(path))
        table = read(path)
        table = table if self.altered is None else self.altered(table, file)
        if not self.trusted and (flaw := flaw_of(table)):
            raise FlawedError(f"{path}: {flaw}")
        return table

    def rows(self, file: str, where: dict[str, Any] | None = None) -> pd.DataFrame:
        """Rows of a file that match.

        Raises MissingError if none does.
        """
        table = matching(self.table(file), where or {}, str(self.path(file)))
        if table.empty:
            named = ", ".join(f"{key} {value}" for key, value in (where or {}).items())
            text = f"{self.path(file)} has no row with {named}"
            problem = (where or {}).get("problem", (where or {}).get("panel"))
            problems = problem if isinstance(problem, list) else [problem]
            if all(each in self.config.paper.problems for each in problems):
                raise MissingError(f"{text}, though it has other problems")
            raise AbsentError(text)
        return table

    def expected(self, each: Each, where: Where) -> dict[str, str]:
        """Names of the groups that must exist, with the reason if one is not available.

        They come from the claim's ``expects``, whose keys may join columns ("problem,
        algorithm"), and for other columns from the lists of ``where``. The result is
        empty if a column is in neither.
        """
        columns = several(each)
        where, expects = where or {}, self.claim.expects if self.claim else {}
        listed = [
            [
                dict(zip(names, one if len(names) > 1 else [one], strict=True))
                for one in values
            ]
            for key, values in expects.items()
            if set(names := key.split(", ")) <= set(columns)
        ]
        covered = {column for values in listed for column in values[0]}
        for column in columns:
            if column not in covered:
                listed.append([{column: each} for each in several(where.get(column))])
        groups = [
            {k: v for one in combined for k, v in one.items()}
            for combined in itertools.product(*listed)
        ]
        without = self.claim.without if self.claim else {}
        return {
            worded(group[column] for column in columns): "; ".join(
                without[str(one)] for one in group.values() if str(one) in without
            )
            for group in groups
            if columns
            and all(
                group[column] in several(where.get(column, group[column]))
                for column in columns
                if not isinstance(where.get(column), dict)
            )
        }

    def lost(self, rows: pd.DataFrame, where: Where, each: Each = None) -> list[str]:
        """Values without a row, of lists in ``where`` for columns outside ``each``."""
        columns = several(each)
        without = self.claim.without if self.claim else {}
        return [
            f"{column} {one}"
            for column, value in (where or {}).items()
            if isinstance(value, list) and column not in columns
            for one in value
            if str(one) not in without and not (rows[column] == one).any()
        ]


@dataclass
class Printed(Evidence):
    """The authors' printed numbers instead of ours, where there are any."""

    def table(self, file: str) -> pd.DataFrame:
        """A printed table, with the column names of our table.

        Raises MissingError if the paper does not print it.
        """
        for claim in self.siblings:
            given = claim.options
            if claim.rule != "cells":
                continue
            tuned = any(how["kind"] == "law" for how in given["cells"].values())
            if file in (given["file"], given["published"]) or (tuned and file == TUNED):
                names = {
                    column: how.get("value", "mean")
                    for column, how in given["cells"].items()
                }
                table = results.published(self.config, given["published"])
                table = table.rename(columns=names | given.get("renamed", {}))
                self.used.append(given["published"])
                if file == TUNED:
                    return table.groupby(["problem", "algorithm"], as_index=False).min()
                return table
        raise MissingError(f"the paper does not print {file}")


def several(value: Any) -> list[Any]:
    """A value or a list, as a list; empty for None and for ``contains``."""
    if value is None or isinstance(value, dict):
        return []
    return value if isinstance(value, list) else [value]


def intervals(table: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Yield the pairs of end columns of sampling intervals, without epsilons."""
    for low in table.columns:
        high = f"{low.removesuffix('low')}high"
        if low.endswith("_low") and high in table and "epsilon" not in low:
            yield low, high
    if {"q0.025", "q0.975"} <= set(table.columns):
        yield "q0.025", "q0.975"


def flaw_of(table: pd.DataFrame) -> str:
    """Reason why no run can have written such a table; empty if one can.

    Independent runs of a private method neither repeat the tuning runs nor agree to the
    last digit. No relative error is below that of the optimum, which is 0.
    """
    if {"mean", "fresh_mean"} <= set(table.columns):
        if _repeated(table, "mean", "fresh_mean"):
            return "the fresh runs repeat the tuning runs"
        if (table[["mean", "fresh_mean"]] < 0).any(axis=None):
            return "a relative error is negative, so the optimum is none"
    ends = list(intervals(table))
    of_one_run = {"min", "max"} <= set(table.columns) and _repeated(table, "min", "max")
    if ends and all(_repeated(table, *pair) for pair in ends) and not of_one_run:
        return "no interval has a width, as if all runs were the same"
    return ""


def _repeated(table: pd.DataFrame, one: str, other: str) -> bool:
    known = table[[one, other]].dropna()
    return len(known) > 0 and bool((known[one] == known[other]).all())


@functools.lru_cache(maxsize=256)
def _read(path: Path, stamp: tuple[int, int]) -> pd.DataFrame:
    reader = store.unthreaded if path.suffix == ".parquet" else pd.read_csv
    return reader(path)


def read(path: Path) -> pd.DataFrame:
    """Read a CSV or Parquet file.

    Raises MissingError if it does not exist, is empty or is unreadable.
    """
    if not path.is_file():
        raise AbsentError(f"{path} is not there")
    try:
        stat = path.stat()
        return _read(path, (stat.st_mtime_ns, stat.st_size)).copy()
    except (ValueError, OSError) as error:  # pandas and pyarrow: also empty files
        raise MissingError(f"{path} cannot be read: {error}") from error


def read_or_empty(path: Path) -> pd.DataFrame:
    """Read a file that is only shown; an empty table if it cannot be read."""
    try:
        return read(path)
    except MissingError:
        return pd.DataFrame()


def matching(table: pd.DataFrame, where: dict[str, Any], name: str) -> pd.DataFrame:
    """Rows whose columns have a value, one of a list, or text that ``contains`` some.

    Raises MissingError if a column does not exist.
    """
    for column, value in where.items():
        if column not in table:
            raise AbsentError(f"{name} has no column {column}")
        if isinstance(value, dict):
            text = table[column].astype(str)
            table = table[text.str.contains(str(value["contains"]), regex=False)]
        else:
            values = value if isinstance(value, list) else [value]
            table = table[table[column].isin(values)]
    return table


@dataclass(frozen=True)
class Reading:
    """How to read an estimate off the rows that match."""

    #: column; None takes ``fresh_mean``, or ``mean`` without it
    value: str | None = None
    #: best, last: keep the row with the least, or the largest, value of this column
    best: str | None = None
    last: str | None = None
    per: str | None = None  #: column to divide by
    #: value of an empty cell; None makes it a missing result
    missing: float | None = None

    def of(self, rows: pd.DataFrame) -> Estimate:
        """The estimate; several rows without interval columns are averaged as runs.

        Raises MissingError if the rows hold no such number, or more than one.
        """
        if rows.empty:
            raise MissingError("no row")
        for column, pick in ((self.best, "idxmin"), (self.last, "idxmax")):
            if column is not None:
                rows = filled(rows, column)
                rows = rows.loc[[getattr(rows[column], pick)()]]
        value, low, high = self._columns(rows)
        if "reason" in rows and (rows[value].isna() & rows["reason"].notna()).all():
            raise MissingError(str(rows["reason"].iloc[0]))  # the table's reason
        scale = 1.0 if self.per is None else float(rows[self.per].iloc[0])
        if low is None:
            runs = rows[value].astype(float)
            mean = float(runs.mean()) / scale
            if len(runs) == 1 or runs.isna().all():
                return self._checked(Estimate.exactly(mean))
            if runs.isna().any():
                raise AbsentError("an empty cell")
            return Estimate(mean, *student(runs.to_numpy() / scale))
        if len(rows) != 1:
            raise MissingError(f"{len(rows)} rows where one was expected")
        numbers = [float(rows[name].iloc[0]) / scale for name in (value, low, high)]
        return self._checked(Estimate(*numbers))

    def _columns(self, rows: pd.DataFrame) -> tuple[str, str | None, str | None]:
        """The value's column and its two interval columns, which must follow it."""
        columns = list(rows.columns)
        value = self.value or ("fresh_mean" if "fresh_mean" in columns else "mean")
        if value not in columns:
            raise AbsentError(f"no column {value}")
        place = columns.index(value)
        after = [*columns[place + 1 : place + 3], "", ""][:2]
        if after == [f"{value}_low", f"{value}_high"] or (
            after[0].endswith("ci_low") and after[1].endswith("ci_high")
        ):
            return value, after[0], after[1]
        is_mean = value == "mean" and "fresh_mean" not in columns
        if is_mean and set(FIGURE) < set(columns):
            return FIGURE
        return value, None, None

    def _checked(self, estimate: Estimate) -> Estimate:
        if not math.isnan(estimate.value + estimate.low + estimate.high):
            return estimate
        if self.missing is None:
            raise AbsentError("an empty cell")
        return Estimate.exactly(self.missing)


def groups(rows: pd.DataFrame, each: Each) -> Iterator[Any]:
    """(name, rows) of each group; all rows without columns to group by."""
    if each is None:
        yield "", rows
        return
    for keys, group in rows.groupby(several(each), sort=False):
        yield worded(keys), group


def few(names: Sequence[str], most: int = 2, between: str = ", ") -> str:
    """The first of the names, and the number of the others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return between.join(names[:most]) + more


def worded(keys: Iterable[Any], between: str = ", ") -> str:
    """Values of keys as a name."""
    return between.join(f"{k:g}" if isinstance(k, float) else str(k) for k in keys)


def by_group(
    rows: pd.DataFrame, each: Each, measure: Callable[[pd.DataFrame], Estimate]
) -> dict[str, Estimate | MissingError]:
    """The estimate of ``measure`` in every group, or the error that it raised."""
    numbers: dict[str, Estimate | MissingError] = {}
    for name, part in groups(rows, each):
        try:
            numbers[name] = measure(part)
        except MissingError as error:
            numbers[name] = error
    return numbers


def filled(rows: pd.DataFrame, *columns: str | None) -> pd.DataFrame:
    """The rows, if none of these columns has an empty cell.

    Raises AbsentError, naming the first that has one or does not exist.
    """
    for column in columns:
        if column is not None and (column not in rows or rows[column].isna().any()):
            raise AbsentError(f"an empty cell of {column}")
    return rows


# --- verdicts -------------------------------------------------------------------------


class Verdict(StrEnum):
    """Verdict on a claim, as written in ``claims.csv``."""

    REPRODUCED = "reproduced"
    CAVEAT = "reproduced with a caveat"
    NOT = "not reproduced"
    UNDECIDED = "undecided"
    NOTHING = "says nothing"
    INCOMPARABLE = "not comparable"
    UNTESTED = "could not be tested"
    PENDING = "not yet run"


VERDICTS = tuple(Verdict)
REPRODUCED, CAVEAT, NOT, UNDECIDED, NOTHING, INCOMPARABLE, UNTESTED, PENDING = VERDICTS
OUT_OF_SCOPE = "out of scope"
SHORT = {  # the five verdicts of a report
    REPRODUCED: "confirmed",
    CAVEAT: "in part",
    NOT: "contradicted",
    **dict.fromkeys((UNDECIDED, NOTHING, UNTESTED, PENDING), "not decidable"),
    INCOMPARABLE: OUT_OF_SCOPE,
}
HELD = (REPRODUCED, CAVEAT)
# From best to worst, to judge several groups; a missing group is pending.
WORSE = (REPRODUCED, CAVEAT, UNDECIDED, PENDING, NOT)

CLOSE = 1.25  # factor within which two errors count as the same
ROUGH = 2.0  # factor within which two deviations count as similar


@dataclass(frozen=True)
class Finding:
    """A verdict with its reason, the decisive number and the outcome of controls."""

    verdict: Verdict
    reason: str
    reproduced: Estimate | None = None
    published: str = ""
    control: str = ""
    missing: tuple[str, ...] = ()  # expected groups without an estimate
    slopes: tuple[Slope, ...] = ()  # if the numbers are exponents


@dataclass(frozen=True)
class Range:
    """A target and the looser one around it."""

    low: float = -math.inf
    high: float = math.inf
    loose_low: float = -math.inf
    loose_high: float = math.inf
    above: float | None = None  #: an end that the target excludes, as are its ties
    below: float | None = None

    @classmethod
    def of(
        cls,
        at_least: float | None = None,
        at_most: float | None = None,
        nearly: list[float] | float | None = None,
        above: float | None = None,
        below: float | None = None,
    ) -> Range:
        """The range of a claim's options; ``nearly`` is the looser end, or both.

        ``above`` and ``below`` exclude the end itself: a tie is no lead.
        """
        if above is not None:
            at_least = math.nextafter(above, math.inf)
        if below is not None:
            at_most = math.nextafter(below, -math.inf)
        low = -math.inf if at_least is None else at_least
        high = math.inf if at_most is None else at_most
        if nearly is None:
            return cls(low, high, low, high, above, below)
        if isinstance(nearly, list):
            return cls(low, high, nearly[0], nearly[1], above, below)
        ends = (nearly, high) if at_least is not None else (low, nearly)
        return cls(low, high, *ends, above, below)

    def verdict(self, found: Estimate) -> Verdict:
        """Verdict on an estimate, by where its interval lies."""
        inside = self.loose_low <= found.low and found.high <= self.loose_high
        if inside:
            held = self.low <= found.value <= self.high
            return REPRODUCED if held else CAVEAT
        outside = found.high < self.loose_low or found.low > self.loose_high
        return NOT if outside else UNDECIDED

    def __str__(self) -> str:
        ends = []
        if not math.isinf(self.low):
            least = f"at least {rounded(self.low)}"
            ends.append(least if self.above is None else f"above {rounded(self.above)}")
        if not math.isinf(self.high):
            most = f"at most {rounded(self.high)}"
            ends.append(most if self.below is None else f"below {rounded(self.below)}")
        return " and ".join(ends)


def rounded(value: float) -> str:
    """A number as text, for the reason of a verdict."""
    if not math.isfinite(value) or value == int(value):
        return f"{value:g}"
    return number(value)


def p_value(chance: float) -> str:
    """A p-value as text; below 0.001 a law's tail would be extrapolated."""
    return f"p = {chance:.2g}" if chance >= 1e-3 else "p < 0.001"


def interval(found: Estimate) -> str:
    """A number with its interval, if any, as text for the reason of a verdict."""
    if found.low == found.high:
        return rounded(found.value)
    return f"{rounded(found.value)} [{rounded(found.low)}, {rounded(found.high)}]"


# --- several groups -------------------------------------------------------------------

LISTED = 2  # most groups that a reason lists


def together(
    found: dict[str, Estimate | MissingError], target: Range, need: str | float
) -> Finding:
    """One finding for several groups.

    Parameters
    ----------
    found : dict
        Group to its estimate, or to the error that left it without one.
    need : "all", "any" or a share
        How many groups must hold. With "all", a claim that holds elsewhere is pending
        if a group is missing; it has a caveat if a group decides nothing, and is
        undecided if more than half of them decide nothing.

    Raises
    ------
    AbsentError, MissingError
        If no group has an estimate.
    """
    known = {n: each for n, each in found.items() if isinstance(each, Estimate)}
    lost = {n: each for n, each in found.items() if isinstance(each, MissingError)}
    absent = [n for n, each in lost.items() if isinstance(each, AbsentError)]
    if not known:
        text = "; ".join(_missing(lost)) or "no group to judge"
        raise AbsentError(text) if absent else MissingError(text)
    verdicts = {name: target.verdict(each) for name, each in known.items()}
    few_dull = need == "all" and 2 * len(lost) <= len(found)
    dull = CAVEAT if few_dull else UNDECIDED  # exists but decides nothing
    others = [PENDING if name in absent else dull for name in lost]
    ordered = sorted([*verdicts.values(), *others], key=WORSE.index)
    at = {"any": 0, "all": len(ordered) - 1}.get(str(need))
    if at is None:  # the worst that a share reaches
        at = max(math.ceil(float(need) * len(ordered)), 1) - 1
    verdict = ordered[at] if at < len(ordered) else NOT
    parts = [
        f"expected {target}",
        *_missing(lost),
        *_listed(known, verdicts, len(found)),
    ]
    decisive = _decisive(known, verdicts, need if verdict != NOT else "all", target)
    missing = tuple(name or "all" for name in lost)
    near = tuple(filter(None, (slope_of(name, each) for name, each in known.items())))
    return Finding(verdict, "; ".join(parts), decisive, "", "", missing, near)


def _missing(lost: dict[str, MissingError]) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for name, error in lost.items():
        reasons.setdefault(str(error), []).append(name)
    for text, names in reasons.items():
        listed = few([f"({name})" if ", " in name else name for name in names])
        yield f"missing {listed}: {text}" if listed else text


def _listed(
    known: dict[str, Estimate], verdicts: dict[str, Verdict], total: int
) -> Iterator[str]:
    """Number of groups that hold, and the groups; of many, only failures or range."""

    def named(name: str) -> str:
        text = interval(known[name])
        return f"{name}: {text}" if name else text

    every = list(verdicts.values())
    if total > 1:
        counts = [f"{every.count(REPRODUCED)} of {total} hold"]
        for kind, word in ((CAVEAT, "nearly"), (UNDECIDED, "undecided")):
            if kind in every:
                counts.append(f"{every.count(kind)} {word}")
        yield ", ".join(counts)
    failing = [name for name in known if verdicts[name] != REPRODUCED]
    if len(known) <= LISTED:
        yield from map(named, known)
    elif failing:
        yield from map(named, failing[:LISTED])
        if len(failing) > LISTED:
            yield f"and {len(failing) - LISTED} more that do not hold"
    else:
        least, most = (pick(known, key=lambda n: known[n].value) for pick in (min, max))
        same = known[least] == known[most]
        yield (
            f"all {interval(known[least])}"
            if same
            else f"from {named(least)} to {named(most)}"
        )


def _decisive(
    known: dict[str, Estimate],
    verdicts: dict[str, Verdict],
    need: str | float,
    target: Range,
) -> Estimate:
    """The decisive estimate: the worst for "all", the best for "any", else median."""

    def badness(name: str) -> tuple[int, float]:
        value = known[name].value
        over, under = value - target.high, target.low - value
        return WORSE.index(verdicts[name]), max(over, under)

    ordered = sorted(known, key=badness)
    place = {"all": -1, "any": 0}.get(str(need), (len(ordered) - 1) // 2)
    return known[ordered[place]]


WRONG = {"half": 0.5, "twice": 2.0, "none": 0.0}  # multiples of the claimed rate
NEARLY = 0.1  # share of the rate by which an interval may miss it


@dataclass(frozen=True)
class Slope:
    """Rates that the interval of one exponent excludes, and where it lies."""

    group: str
    excluded: tuple[str, ...]  #: names of ``WRONG`` that lie outside the interval
    #: ``tight`` if the interval reaches the claimed rate, within a tenth of it;
    #: ``beaten`` if it lies below, ``exceeded`` if above
    place: str


def slope_of(group: str, found: Estimate) -> Slope | None:
    """The slope of a group; None if its number has no claimed rate."""
    if found.rate is None:
        return None
    low, high = (end + found.less for end in (found.low, found.high))
    near = {name: factor * found.rate for name, factor in WRONG.items()}
    excluded = tuple(name for name, at in near.items() if not low <= at <= high)
    slack = NEARLY * abs(found.rate)
    beaten, over = high < found.rate - slack, low > found.rate + slack
    return Slope(
        group, excluded, "beaten" if beaten else "exceeded" if over else "tight"
    )


def slopes_worded(slopes: tuple[Slope, ...], holds: bool) -> str:
    """Numbers of groups that exclude each rate, and groups that reach the claimed one.

    A claim that ``holds`` and is beaten in all groups is called not tight.
    """
    if not slopes:
        return ""
    total = len(slopes)
    counts = (
        f"{name} {sum(name in each.excluded for each in slopes)}" for name in WRONG
    )
    text = f"{', '.join(counts)} of {total}"
    tight = [each.group for each in slopes if each.place == "tight"]
    if not tight and all(each.place == "beaten" for each in slopes):
        tightness = "holds, not tight here; tight on none known"
        return f"{text}; {tightness if holds else 'beaten in all'}"
    if len(tight) == total:
        return f"{text}; tight in all"
    places = (
        f"{place} {sum(each.place == place for each in slopes)}"
        for place in ("tight", "beaten", "exceeded")
    )
    named = f" (tight: {tight[0]})" if tight else ""
    return f"{text}; {', '.join(places)}{named}"
