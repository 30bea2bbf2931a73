"""The words of which a claim's number is made.

An expression has numbers, texts, lists, ``+ - * /``, comparisons, names and the words
below. A name is a column of the claim's table or of its groups; in ``null``,
``estimate`` is the claim's own number. Nothing else is let in, and nothing else of
Python is there when an expression is evaluated.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from types import CodeType
from typing import Any

import numpy as np
import pandas as pd

from dperm.claims.number import Missing, MissingRow, Number, Undefined
from dperm.config.validation import one_of
from dperm.numerics.intervals import power, student

Tables = Callable[[str], pd.DataFrame]  # name to table; raises Missing
BOUND = "true_epsilon"  # what is proved at most: its interval begins at 0
# column to a value, a list of values, or {contains: text}
Point = dict[str, Any]
TARGETS = ("epsilon", "pure")  # targets that an argument of a proof may take
PROOFS = "proofs"  # stands for a table whose columns are arguments
MAX_ENTRIES = 6  # of a column that a message lists
EQUAL = 1e-9  # relative difference of equal numbers
ALLOWED = (
    ast.Expression,
    ast.Constant,
    ast.Name,
    ast.Load,
    ast.List,
    ast.Dict,
    ast.Call,
    ast.keyword,
    ast.BinOp,
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.Div,
    ast.UnaryOp,
    ast.USub,
    ast.BoolOp,
    ast.And,
    ast.Or,
    ast.Compare,
    ast.Lt,
    ast.LtE,
    ast.Gt,
    ast.GtE,
)


# --- rows -----------------------------------------------------------------------------


def matching(table: pd.DataFrame, where: Point) -> pd.DataFrame:
    """The rows whose columns have a value, one of a list, or text that contains some.

    Raises Missing if a column, or a value of a list, does not occur.
    """
    is_kept = np.ones(len(table), dtype=bool)
    for column, condition in where.items():
        if column not in table:
            raise Missing(f"no column {column}")
        entries = table[column]
        if isinstance(condition, dict):
            text = entries.astype(str).str
            has_text = text.contains(condition["contains"], regex=False)
            is_kept &= has_text.to_numpy()
            continue
        is_listed = isinstance(condition, list)
        allowed = condition if is_listed else [condition]
        is_kept &= entries.isin(allowed).to_numpy()
        if not is_listed:
            continue
        missing = [
            str(entry)
            for entry in condition
            if not (entries == entry).to_numpy()[is_kept].any()
        ]
        if missing:
            raise MissingRow(f"no row of {column} {', '.join(missing)}")
    return table if is_kept.all() else table[is_kept]


def unlike(table: pd.DataFrame, where: Point) -> str:
    """What a column has instead of a value that no row has; empty if each occurs."""
    for column, condition in where.items():
        is_plain = column in table and not isinstance(condition, dict | list)
        if is_plain and not (table[column] == condition).any():
            entries = map(
                repr, table[column].drop_duplicates().tolist()[:MAX_ENTRIES]
            )
            return (
                f" of {column} {condition!r}, which has {', '.join(entries)}"
            )
    return ""


def filled(rows: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """The rows, if there are any and none of these columns has an empty cell.

    Raises Missing otherwise, or Idle if the rows say the reason.
    """
    for column in columns:
        if column not in rows:
            raise Missing(f"no column {column}")
    if rows.empty:
        raise MissingRow("no row")
    # column by column: of a frame it takes ten times as long
    if any(rows[column].isna().any() for column in columns):
        if "reason" in rows and rows["reason"].notna().any():
            raise Undefined(str(rows["reason"].dropna().iloc[0]))
        raise Missing("an empty cell")
    return rows


def ends(columns: list[str], column: str) -> list[str]:
    """Columns of the interval of a number: x_low and x_high, or those of a mean."""
    place = columns.index(column)
    after = columns[place + 1 : place + 3]
    if {f"{column}_low", f"{column}_high"} <= set(columns):
        return [f"{column}_low", f"{column}_high"]
    if [name[-6:] for name in after] == ["ci_low", "i_high"]:
        return after
    is_figure = column == "mean" and {"x", "ci_low", "ci_high"} <= set(columns)
    return ["ci_low", "ci_high"] if is_figure else []


# --- words ----------------------------------------------------------------------------


@dataclass
class Words:
    """The words, for one group of rows of a claim's table."""

    tables: Tables
    within: Point  #: the rows that the claim is about
    point: Point  #: the group
    rows: pd.DataFrame  #: of the group
    arguments: dict[str, Callable[..., Any]] = field(default_factory=dict)
    number: Number | None = None  #: the claim's own, for its null
    #: how far from the claim's range a number is, of several that stand for one
    badness: Callable[[Number], Any] = lambda found: found.value
    exact: Sequence[str] = ()  #: columns that are computed, counted or printed

    def __getitem__(self, name: str) -> Any:
        if name in CLAIM_WORDS:
            return getattr(self, name)
        if name == "estimate":
            return self.number
        return self.point[name] if name in self.point else self.at(name)

    def at(
        self,
        column: str = "",
        best: str = "",
        last: str = "",
        of: str = "",
        rows: pd.DataFrame | None = None,
        **where: Any,
    ) -> Number:
        """A cell with its interval; several rows without one are runs, and averaged.

        Without a column it is the mean of fresh runs, or the mean. ``best`` and
        ``last`` keep the row with the least, or the largest, value of a column; ``of``
        reads the same group of another table.
        """
        if rows is None:
            rows = self._same_group(of) if of else self.rows
        rows = matching(rows, where)
        for key, pick in ((best, "idxmin"), (last, "idxmax")):
            if key:
                rows = filled(rows, key)
                rows = rows.loc[[getattr(rows[key], pick)()]]
        column = column or ("fresh_mean" if "fresh_mean" in rows else "mean")
        filled(rows, column)
        columns = [column, *ends(list(rows.columns), column)]
        filled(rows, *columns)
        estimates = np.column_stack(
            [rows[name].to_numpy(float) for name in columns]
        )
        if column == BOUND and estimates.shape == (1, 1):
            return Number(estimates[0, 0], 0.0, estimates[0, 0])
        if len(columns) == 1:
            low, high = student(estimates[:, 0])
            bare = len(estimates) == 1 and column not in self.exact
            return Number(
                float(estimates.mean()), float(low), float(high), bare=bare
            )
        if len(rows) > 1:
            raise Undefined(f"{len(rows)} rows where one was expected")
        return Number(*estimates[0].tolist())

    def _same_group(self, name: str, **changed: Any) -> pd.DataFrame:
        table = self.tables(name)
        keys = self.within | self.point | changed
        return matching(table, {k: v for k, v in keys.items() if k in table})

    def slope(self, x: str, y: str) -> Number:
        """Exponent of a power law of y in x, by least squares of logarithms."""
        points = filled(self.rows, x, y)
        points = points[(points[x] > 0) & (points[y] > 0)]
        if points[x].nunique() < 3:
            raise Undefined(
                f"fewer than three positive points ({len(points)})"
            )
        return Number(*power(points[x].to_numpy(), points[y].to_numpy()))

    def shape(self, per: Point, of: str) -> Number:
        """Exponent in x of a curve of a figure over another one.

        ``per`` names the other curve in the figure ``of``. Points where the curve is
        above half of its largest mean do not count: little was learnt there.
        """
        reference_curve = self._same_group(of, **per)[["x", "mean"]]
        joined = self.rows.merge(
            reference_curve, on="x", suffixes=("", "_per")
        )
        points = joined[joined["mean"] < joined["mean"].max() / 2]
        if len(points) < 3:
            raise Undefined(f"{len(points)} points where anything was learnt")
        ratio = points["mean"] / points["mean_per"]
        return Number(*power(points["x"].to_numpy(), ratio.to_numpy()))

    def _curve(self, along: str, where: Any = None, **how: Any) -> Any:
        points = filled(matching(self.rows, where or {}), along)
        return {
            key: self.at(rows=rows, **how)
            for key, rows in points.groupby(along, sort=False)
        }

    def fewer(
        self, along: str, ours_where: Point, theirs_where: Point, **how: Any
    ) -> Number:
        """How many times less of something the first needs to be as good as the second.

        The second needs what it has at its best. The first needs the least at which it
        is no worse; the number is 0 if there is none. For the lower end of the interval
        the first is taken at the high ends of its intervals and the second at its low
        one, for the upper end the other way round.
        """
        ours, theirs = (
            self._curve(along, number, **how)
            for number in (ours_where, theirs_where)
        )
        start = theirs.pop(0.0, None)
        ours.pop(0.0, None)
        if not ours or not theirs:
            raise Undefined("no row of one of the two")
        best = min(sorted(theirs), key=lambda key: theirs[key].value)
        goal = theirs[best]
        if start and not goal.value < start.value * (1 - EQUAL):
            raise Undefined("the other one made no progress")

        def times(level: float, end: str) -> float:
            enough = [
                key
                for key, number in ours.items()
                if getattr(number, end) <= level
            ]
            return best / min(enough) if enough else 0.0

        ratio = times(goal.value, "value")
        low = times(goal.low, "high")
        bare = any(
            number.bare for number in [*ours.values(), *theirs.values()]
        )
        return Number(ratio, low, times(goal.high, "low"), bare=bare)

    def worst_step(
        self, along: str, order: list[Any], falling: bool = True, **how: Any
    ) -> Number:
        """The worst ratio of a value to the one before it, or of the last to the first.

        Values that fall (or rise) in the given order have ratios below 1.
        """
        curve = self._curve(along, **how)
        missing = [str(key) for key in order if key not in curve]
        if missing:
            raise MissingRow(f"no row of {along} {', '.join(missing)}")
        numbers = [curve[key] for key in order]
        pairs = [*itertools.pairwise(numbers), (numbers[0], numbers[-1])]
        steps = (b / a if falling else a / b for a, b in pairs)
        return max(steps, key=self.badness)

    def most(self, along: str, **how: Any) -> Number:
        """The largest number along a column."""
        return max(
            self._several(along, **how), key=lambda estimate: estimate.value
        )

    def least(self, along: str, **how: Any) -> Number:
        """The least number along a column."""
        return min(
            self._several(along, **how), key=lambda estimate: estimate.value
        )

    def _several(self, along: str, **how: Any) -> list[Number]:
        numbers = list(self._curve(along, **how).values())
        if len(numbers) < 2:
            raise Undefined(f"fewer than two numbers along {along}")
        return numbers

    def spread(self, along: str, start: Number | float, **how: Any) -> Number:
        """The largest less the least number along a column, over the drop from a start.

        Curves along which nothing was learnt are not flat: they decide nothing.
        """
        high = self.most(along, **how)
        low = self.least(along, **how)
        drop = Number.of_any(start).value - low.value
        if not drop > (low.high - low.low) / 2:
            raise Undefined(
                f"nothing was learnt: the drop from the start is {drop:.3g}"
            )
        apart = high - low
        return replace(apart, low=max(0.0, apart.low)) / drop

    def inside(self, column: str, level: float = 0.05) -> Number:
        """The share of a table's cells whose p is not below a level."""
        rows = (
            self.rows.dropna(subset=column)
            if column in self.rows
            else self.rows
        )
        chances = filled(rows, column)[column]
        share = float((chances >= level).mean())
        return Number(share, share, share, len(chances))

    def standing_out(self) -> Number:
        """Share of a histogram that lies above half the largest value.

        x is the middle of a bin, ``mean`` its count and ``max`` its upper edge.
        """
        bins = filled(self.rows, "x", "mean", "max")
        large = bins["x"] > bins["max"].max() / 2
        return Number.of_any(bins["mean"][large].sum() / bins["mean"].sum())

    @staticmethod
    def exactly(number: Number) -> Number:
        """A number without its interval."""
        return Number.of_any(number.value)

    @staticmethod
    def outside(number: Any, low: Any, high: Any) -> Number:
        """How far a number is outside of two others; negative inside."""
        estimate = Number.of_any(number).value
        lower, upper = (Number.of_any(end).value for end in (low, high))
        return Number.of_any(max(lower - estimate, estimate - upper))

    @staticmethod
    def widened(number: Number, factor: Number) -> Number:
        """A number whose interval is at least a factor wide on both sides."""
        low = number.value / factor.value
        high = number.value * factor.value
        return replace(
            number, low=min(low, number.low), high=max(high, number.high)
        )

    def proof(self, argument: str, times: float = 1.0) -> Number:
        """What an argument yields over what it claims; the group is its case.

        With ``times`` the formula is computed for that multiple of its target but
        compared with the target; without one the claimed value is divided.
        """
        arguments = {
            k: float(v) for k, v in self.point.items() if k != "argument"
        }
        for key in {*TARGETS} & {*arguments}:
            arguments[key] *= times
        share = float(self.arguments[argument](**arguments).share) * times
        if math.isnan(share):
            raise Undefined("the argument yields no number")
        return Number.of_any(
            1.0 if math.isclose(share, 1.0, rel_tol=EQUAL) else share
        )


CLAIM_WORDS = (
    "at",
    "slope",
    "shape",
    "fewer",
    "worst_step",
    "most",
    "least",
    "spread",
    "inside",
    "standing_out",
    "exactly",
    "outside",
    "widened",
    "proof",
)


# --- expressions ----------------------------------------------------------------------


@dataclass(frozen=True)
class Expression:
    """The code of an expression, and the columns that it reads."""

    code: CodeType
    #: columns, each with its table; "" is the claim's own table, or the whole table.
    #: Arguments of proofs are in the table ``PROOFS``
    reads: tuple[tuple[str, str], ...]
    #: arguments of words that are texts, and the names in their places
    unquoted: tuple[tuple[str, str], ...] = ()


def evaluated(expression: str | float, words: Words) -> Any:
    """The number, or the truth, of an expression that ``compiled`` lets in."""
    code = compiled(str(expression)).code
    return eval(code, {"__builtins__": {}}, words)  # type: ignore[arg-type]  # noqa: S307


@cache
def compiled(expression: str) -> Expression:
    """The code of an expression.

    Raises ValueError if it is none, or has an unknown word or argument of a word.
    """
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except SyntaxError as error:
        raise ValueError(
            f"{expression!r} is no expression: {error.msg}"
        ) from None
    reads: list[tuple[str, str]] = []
    unquoted: list[tuple[str, str]] = []
    words = set()
    for node in ast.walk(tree):
        if not isinstance(node, ALLOWED):
            raise ValueError(
                f"{ast.unparse(node)!r} is no part of an expression"
            )
        if isinstance(node, ast.Call):
            words.add(node.func)
            reads += _called(node)
            unquoted += _unquoted(node)
        elif isinstance(node, ast.Name) and node not in words:
            reads.append((node.id, ""))
    code = compile(tree, expression, "eval")
    return Expression(code, tuple(reads), tuple(unquoted))


def _called(call: ast.Call) -> Iterator[tuple[str, str]]:
    """What the call of a word reads; refuse it if it cannot be called so."""
    word = ast.unparse(call.func)
    one_of("word", word, CLAIM_WORDS)
    keywords: dict[Any, ast.expr] = {
        argument.arg: argument.value for argument in call.keywords
    }
    is_static = isinstance(inspect.getattr_static(Words, word), staticmethod)
    takes = inspect.signature(getattr(Words, word))
    try:
        takes.bind(*() if is_static else (None,), *call.args, **keywords)
    except TypeError as error:
        raise ValueError(f"{word}: {error}") from None
    table_name = str(getattr(keywords.get("of"), "value", ""))
    texts = [
        str(argument.value)
        for argument in call.args
        if isinstance(argument, ast.Constant)
    ]
    if word == "at":
        names = (
            name
            for name in [*texts, *keywords]
            if name not in takes.parameters
        )
        yield from ((name, table_name) for name in names)
    elif word == "proof":
        yield from ((name, PROOFS) for name in texts)
    if table_name:
        yield "", table_name


def _unquoted(call: ast.Call) -> Iterator[tuple[str, str]]:
    """Names where the call of a word takes a text; a group may have one of each."""
    word = ast.unparse(call.func)
    takes = inspect.signature(getattr(Words, word)).parameters
    names = [name for name in takes if name != "self"]
    keywords = {
        str(argument.arg): argument.value for argument in call.keywords
    }
    for name, argument in {
        **dict(zip(names, call.args, strict=False)),
        **keywords,
    }.items():
        is_text = name in takes and takes[name].annotation == "str"
        if is_text and isinstance(argument, ast.Name):
            yield f"{word}: {name}", argument.id
