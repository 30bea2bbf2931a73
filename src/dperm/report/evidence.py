"""Evidence, rows of result files as estimates with intervals, and verdicts on it.

``table2`` is ``results/<paper>/table2.csv``, ``figures/figure1`` a figure's data,
``sweeps/rates`` a Parquet file. What is not there raises ``AbsentError`` ("not yet
run"), what decides nothing ``MissingError``, what cannot be right ``FlawedError``.

With number and 95 % interval in its target, the interval at least in the looser one, a
claim is reproduced; with only the interval in the looser one there is a caveat; wholly
outside it is not reproduced; across its end nothing is decided.
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
FIGURE = ("mean", "ci_low", "ci_high")  # of the data behind a figure


class MissingError(RuntimeError):
    """A result that a rule asks for is of no use; the text says which, and why."""


class AbsentError(MissingError):
    """A result that a rule asks for was not made: the claim is not yet run."""


class FlawedError(MissingError):
    """A table that no run can have left; the text says why."""


Alteration = Callable[[pd.DataFrame, str], pd.DataFrame]  # of a table and its file
Where = dict[str, Any] | None  # column to its value, or several
Each = str | list[str] | None  # columns to group by


@dataclass(frozen=True)
class Estimate:
    """A number and its 95 % interval; both ends are the number where none is known.

    ``rate`` is the exponent that theory has for it, and ``less`` what was taken off the
    measured one to have the number.
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
        """Ratio of two independent estimates; half widths add up in logarithms.

        Raises MissingError if one of them is not positive.
        """
        if not (self.value > 0 and other.value > 0):
            raise MissingError(f"no ratio of {self.value:g} and {other.value:g}")
        ratio = self.value / other.value
        halves = ((each.high - each.low) / 2 / each.value for each in (self, other))
        spread = math.exp(math.hypot(*halves))
        return Estimate(ratio, ratio / spread, ratio * spread)


@dataclass
class Evidence:
    """Result files of one paper; ``used`` collects the names of those that were read.

    Parameters
    ----------
    config : schema.Config
        With the paper and the folders.
    altered : callable, optional
        What a control or a wrong world does to every table that is read.
    claim : schema.Claim, optional
        The claim that is judged: which groups it expects, and which cannot be had.
    siblings : list of schema.Claim
        All claims of the paper.
    trusted : bool
        Whether tables that no run can have left are taken as they are.
    """

    config: schema.Config
    used: list[str] = field(default_factory=list)
    altered: Alteration | None = None
    claim: schema.Claim | None = None
    siblings: list[schema.Claim] = field(default_factory=list)
    trusted: bool = False

    def path(self, file: str) -> Path:
        """The file behind a name."""
        paper = self.config.paper.name
        if file.startswith("figures/"):
            name = file.removeprefix("figures/")
            return plan.figures_folder(self.config, paper, f"{name}.csv")
        suffix = "parquet" if file.startswith("sweeps/") else "csv"
        return plan.results_folder(self.config, paper, f"{file}.{suffix}")

    def table(self, file: str) -> pd.DataFrame:
        """All rows of a file.

        Raises MissingError if it is not there.
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
        """Names of the groups that must be there; why, of one that cannot be had.

        They are what ``where`` lists of each column, or the claim's ``expects``, whose
        keys may join columns ("problem, algorithm"); empty if neither says.
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
        """Values that ``where`` lists, of columns without groups, that have no row."""
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
    """The authors' own numbers in the place of ours, as far as they print them."""

    def table(self, file: str) -> pd.DataFrame:
        """A printed table, with the columns of ours.

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
    """One value or several, as a list; none for None or a text within a value."""
    if value is None or isinstance(value, dict):
        return []
    return value if isinstance(value, list) else [value]


def intervals(table: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Columns of the ends of every interval that a sample has; privacy has none."""
    for low in table.columns:
        high = f"{low.removesuffix('low')}high"
        if low.endswith("_low") and high in table and "epsilon" not in low:
            yield low, high
    if {"q0.025", "q0.975"} <= set(table.columns):
        yield "q0.025", "q0.975"


def flaw_of(table: pd.DataFrame) -> str:
    """Why no run can have left such a table; empty if one can.

    Independent runs of a private method neither repeat the tuning's nor agree to the
    last digit; a relative error is not below that of the optimum.
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
    """A CSV or Parquet file.

    Raises MissingError if it is not there, empty or unreadable.
    """
    if not path.is_file():
        raise AbsentError(f"{path} is not there")
    try:
        stat = path.stat()
        return _read(path, (stat.st_mtime_ns, stat.st_size)).copy()
    except (ValueError, OSError) as error:  # pandas and pyarrow: also empty files
        raise MissingError(f"{path} cannot be read: {error}") from error


def read_or_empty(path: Path) -> pd.DataFrame:
    """The same, for what is only shown: nothing where there is nothing."""
    try:
        return read(path)
    except MissingError:
        return pd.DataFrame()


def matching(table: pd.DataFrame, where: dict[str, Any], name: str) -> pd.DataFrame:
    """Rows whose columns have a value, one of several, or a text within them.

    Raises MissingError if a column is not there.
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
    """How an estimate is read off the rows that match."""

    #: column; None takes ``fresh_mean``, or ``mean`` where there is none
    value: str | None = None
    #: best, last: keep the row with the least, or the largest, value of this column
    best: str | None = None
    last: str | None = None
    per: str | None = None  #: column to divide by
    #: what an empty cell stands for; None makes it a missing result
    missing: float | None = None

    def of(self, rows: pd.DataFrame) -> Estimate:
        """The estimate; several rows without interval columns are runs, and averaged.

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
            raise MissingError(str(rows["reason"].iloc[0]))  # the table says why
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
        """The value's column and those of its interval, which stand right after it."""
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
    """(name, rows) of each group; the whole without columns to group by."""
    if each is None:
        yield "", rows
        return
    for keys, group in rows.groupby(several(each), sort=False):
        yield worded(keys), group


def few(names: Sequence[str], most: int = 2, between: str = ", ") -> str:
    """Some of the names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return between.join(names[:most]) + more


def worded(keys: Iterable[Any], between: str = ", ") -> str:
    """Values of keys as a name."""
    return between.join(f"{k:g}" if isinstance(k, float) else str(k) for k in keys)


def by_group(
    rows: pd.DataFrame, each: Each, measure: Callable[[pd.DataFrame], Estimate]
) -> dict[str, Estimate | MissingError]:
    """What ``measure`` finds in every group, or why it finds nothing."""
    numbers: dict[str, Estimate | MissingError] = {}
    for name, part in groups(rows, each):
        try:
            numbers[name] = measure(part)
        except MissingError as error:
            numbers[name] = error
    return numbers


def filled(rows: pd.DataFrame, *columns: str | None) -> pd.DataFrame:
    """The rows, if none of these columns has an empty cell.

    Raises AbsentError, naming the first that has one, or is not there.
    """
    for column in columns:
        if column is not None and (column not in rows or rows[column].isna().any()):
            raise AbsentError(f"an empty cell of {column}")
    return rows


# --- verdicts -------------------------------------------------------------------------


class Verdict(StrEnum):
    """What is passed on a claim, as ``claims.csv`` has it."""

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
# In this order, where several groups are judged; a group that is missing is pending.
WORSE = (REPRODUCED, CAVEAT, UNDECIDED, PENDING, NOT)

CLOSE = 1.25  # factor within which two errors count as the same
ROUGH = 2.0  # factor within which they count as alike


@dataclass(frozen=True)
class Finding:
    """A verdict, the number it was passed on, why, and how its controls went."""

    verdict: Verdict
    reason: str
    reproduced: Estimate | None = None
    published: str = ""
    control: str = ""
    missing: tuple[str, ...] = ()  # groups that were expected
    slopes: tuple[Slope, ...] = ()  # where the numbers are exponents


@dataclass(frozen=True)
class Range:
    """A target and the looser one around it."""

    low: float = -math.inf
    high: float = math.inf
    loose_low: float = -math.inf
    loose_high: float = math.inf

    @classmethod
    def of(
        cls,
        at_least: float | None = None,
        at_most: float | None = None,
        nearly: list[float] | float | None = None,
        above: float | None = None,
        below: float | None = None,
    ) -> Range:
        """From a claim's options; ``nearly`` is the looser end, or both of them.

        ``above`` and ``below`` leave out the end itself: a tie is no lead.
        """
        if above is not None:
            at_least = math.nextafter(above, math.inf)
        if below is not None:
            at_most = math.nextafter(below, -math.inf)
        low = -math.inf if at_least is None else at_least
        high = math.inf if at_most is None else at_most
        if nearly is None:
            return cls(low, high, low, high)
        if isinstance(nearly, list):
            return cls(low, high, nearly[0], nearly[1])
        ends = (nearly, high) if at_least is not None else (low, nearly)
        return cls(low, high, *ends)

    def verdict(self, found: Estimate) -> Verdict:
        """Where an estimate lies."""
        inside = self.loose_low <= found.low and found.high <= self.loose_high
        if inside:
            held = self.low <= found.value <= self.high
            return REPRODUCED if held else CAVEAT
        outside = found.high < self.loose_low or found.low > self.loose_high
        return NOT if outside else UNDECIDED

    def __str__(self) -> str:
        if math.isinf(self.low):
            return f"at most {rounded(self.high)}"
        if math.isinf(self.high):
            return f"at least {rounded(self.low)}"
        return f"{rounded(self.low)} to {rounded(self.high)}"


def rounded(value: float) -> str:
    """A number for a reason."""
    if not math.isfinite(value) or value == int(value):
        return f"{value:g}"
    return number(value)


def interval(found: Estimate) -> str:
    """A number with its interval for a reason; without one where there is none."""
    if found.low == found.high:
        return rounded(found.value)
    return f"{rounded(found.value)} [{rounded(found.low)}, {rounded(found.high)}]"


# --- several groups -------------------------------------------------------------------

LISTED = 2  # groups that a reason lists


def together(
    found: dict[str, Estimate | MissingError], target: Range, need: str | float
) -> Finding:
    """One finding for several groups.

    Parameters
    ----------
    found : dict
        Group to its estimate, or to why there is none.
    need : "all", "any" or a share
        How many groups the claim speaks of. A group that is not there keeps "all" from
        being reproduced, and so does one that decides nothing, with a caveat.

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
    dull = CAVEAT if need == "all" else UNDECIDED  # there, and decides nothing
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
        listed = few(names)
        yield f"missing {listed}: {text}" if listed else text


def _listed(
    known: dict[str, Estimate], verdicts: dict[str, Verdict], total: int
) -> Iterator[str]:
    """How many hold, and the groups; of many, those that fail and the range."""

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
        yield f"from {named(least)} to {named(most)}"


def _decisive(
    known: dict[str, Estimate],
    verdicts: dict[str, Verdict],
    need: str | float,
    target: Range,
) -> Estimate:
    """The estimate that decided: the worst for "all", best for "any", else middle."""

    def badness(name: str) -> tuple[int, float]:
        value = known[name].value
        over, under = value - target.high, target.low - value
        return WORSE.index(verdicts[name]), max(over, under)

    ordered = sorted(known, key=badness)
    place = {"all": -1, "any": 0}.get(str(need), (len(ordered) - 1) // 2)
    return known[ordered[place]]


WRONG = {"half": 0.5, "twice": 2.0, "none": 0.0}  # times the claimed one
NEARLY = 0.1  # of the rate, by which an interval may miss it


@dataclass(frozen=True)
class Slope:
    """What the interval of one exponent tells apart."""

    group: str
    excluded: tuple[str, ...]  #: names of ``WRONG`` that lie outside the interval
    #: ``tight`` where the interval reaches the claimed rate, to a tenth of it;
    #: ``beaten`` where it lies below it, ``exceeded`` where above
    place: str


def slope_of(group: str, found: Estimate) -> Slope | None:
    """The slope of a group; None for a number that is no exponent."""
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
    """How many groups exclude which rate, and where the claimed one is reached.

    Of a claim that ``holds`` and is beaten everywhere it says that it is not tight.
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
