"""Every cell of a published table as a claim, judged by the kind of its number.

A tuning run again would print other means. ``law.csv`` has the quantiles of their
distribution, the law of a cell (``dperm.kinds.law``). A printed mean of a tuned setting
is tested against its law, two-sided and with Holm's correction over the table. All
cells of a problem together test the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import chdtrc, fdtr, fdtrc, ndtr, ndtri

from dperm.kinds.law import PRINTS
from dperm.present.intervals import t_quantile
from dperm.report.evidence import (
    CAVEAT,
    CLOSE,
    INCOMPARABLE,
    NOT,
    NOTHING,
    PENDING,
    REPRODUCED,
    ROUGH,
    UNDECIDED,
    UNTESTED,
    AbsentError,
    Estimate,
    Evidence,
    Finding,
    MissingError,
    Verdict,
    interval,
    matching,
    p_value,
    rounded,
    worded,
)

PUBLISHED = 1.0  # the noise factor of the printed numbers
FACTORS = (0.7, 0.8, 1.25, 1.4)
LEAST, FRESH = PRINTS
ALONE = 0.05  # level of one test, which needs no correction
EXTREME = 40.0  # standard deviations; practically impossible
LEVELS = 200  # quantiles of a law that are compared with other laws
Key = tuple[Any, ...]
Row = dict[str, Any]  # of a table, as ``to_dict`` gives it, or options
Change = Callable[[pd.DataFrame], pd.DataFrame]


@dataclass(frozen=True)
class Cell:
    """A printed mean with its law."""

    key: Key  #: problem, algorithm, and passes if there are any
    #: printed, half: the printed number, and half a unit of its last digit
    printed: float
    half: float
    logs: np.ndarray  #: logarithms of the law's quantiles
    scores: np.ndarray  #: standard normal scores of the same levels
    moves: float  #: derivative of the error's logarithm by the noise's logarithm
    start: float  #: the error at w = 0

    @property
    def median(self) -> float:
        """Median of the law, as a logarithm."""
        return float(self.logs[len(self.logs) // 2])

    @property
    def deviation(self) -> float:
        """Standard deviation of the law, in logarithms; from its 95 % range."""
        return _deviation(self.logs, self.scores)

    @property
    def printed_deviation(self) -> float:
        """Standard deviation of the printed number, in logarithms, with rounding."""
        return math.hypot(self.deviation, self.half / self.printed / math.sqrt(3))

    def score(self, value: float) -> float:
        """The normal score of a value in the law, with extrapolated tails."""
        log = math.log(max(value, 1e-300))
        inner = slice(0, 2) if log < self.median else slice(-2, None)
        if self.logs[0] <= log <= self.logs[-1]:
            return float(np.interp(log, self.logs, self.scores))
        (a, b), (x, y) = self.logs[inner], self.scores[inner]
        end, at = (a, x) if log < self.median else (b, y)
        slope = (y - x) / (b - a) if b > a else math.inf
        return float(np.clip(at + slope * (log - end), -EXTREME, EXTREME))

    @property
    def probability(self) -> float:
        """Probability of a printed number at least as far out, two-sided."""
        below = float(ndtr(self.score(self.printed + self.half)))
        above = float(ndtr(-self.score(self.printed - self.half)))
        return min(1.0, 2 * min(below, above))

    @property
    def law(self) -> Estimate:
        """Median and 95 % range of the law."""
        low, high = np.interp(ndtri([0.025, 0.975]), self.scores, self.logs)
        return Estimate(*(math.exp(each) for each in (self.median, low, high)))


def with_laws(
    evidence: Evidence,
    printed: pd.DataFrame,
    options: Row,
    change: Change | None = None,
) -> dict[Key, Cell]:
    """The cells of a printed table that have a law.

    Parameters
    ----------
    printed : DataFrame
        The published table.
    options : dict
        ``file``, ``keys`` (the problem first), ``column``; ``draws``, whether settings
        shared their draws or had their own; ``prints``, whether the ``least`` mean of
        the tuning was printed (the default) or that of ``fresh`` runs; ``decimals``,
        the printed digits after the point, or ``digits``, all of them; ``spread``, the
        standard deviation, in logarithms, of differences that tuning does not explain,
        such as another machine's arithmetic or another optimum; ``redrawn``, problem to
        its own spread, if the data are another draw of the same law.
    change : callable, optional
        Change to the table of laws.

    Raises
    ------
    AbsentError
        If there are no laws.
    """
    read = {"draws": options["draws"], "prints": options.get("prints", LEAST)}
    table = evidence.rows(options["file"], read)
    table = table if change is None else change(table)
    keys, column = list(options["keys"]), options["column"]
    quantiles = [name for name in table if name.startswith("q0.")]
    if not quantiles or "noise_factor" not in table:
        raise AbsentError(f"{evidence.path(options['file'])} has no quantiles")
    scores = ndtri([float(name[1:]) for name in quantiles])
    known = table.dropna(subset=[*quantiles, "start"])
    known = known.set_index([*keys, "noise_factor"]).sort_index()
    found = {}
    for row in printed.to_dict("records"):
        key = tuple(row[name] for name in keys)
        if (*key, PUBLISHED) in known.index:
            law = known.loc[(*key, PUBLISHED)]
            logs = np.log(law[quantiles].to_numpy(float))
            spread = options.get("redrawn", {}).get(key[0], options["spread"])
            middle, own = logs[len(logs) // 2], _deviation(logs, scores)
            wider = middle + spread * scores  # a law of no width: the spread alone
            if own >= spread / 100:
                wider = middle + math.hypot(1.0, spread / own) * (logs - middle)
            found[key] = Cell(
                key,
                row[column],
                half_unit(row[column], options),
                wider,
                scores,
                _moves(known, key),
                float(law["start"]),
            )
    return found


def half_unit(value: float, options: Row) -> float:
    """Half a unit of the last digit of a printed number."""
    decimals = options.get("decimals")
    if decimals is None:
        decimals = (options.get("digits") or 1) - 1 - math.floor(math.log10(abs(value)))
    return 0.5 * 10.0**-decimals


def _deviation(logs: np.ndarray, scores: np.ndarray) -> float:
    low, high = np.interp(ndtri([0.025, 0.975]), scores, logs)
    return float(high - low) / (2 * ndtri(0.975))


def _moves(known: pd.DataFrame, key: Key) -> float:
    """Exponent of the error in the noise, from the least to the largest factor."""
    at = [
        (f, known.loc[(*key, f)]["median"]) for f in FACTORS if (*key, f) in known.index
    ]
    if len(at) < 2:
        return math.nan
    (low, first), (high, last) = at[0], at[-1]
    return max(0.0, math.log(last / first) / math.log(high / low))


def holm(probabilities: dict[Key, float]) -> dict[Key, float]:
    """Probabilities of a table's cells after Holm's correction."""
    worst, found = 0.0, {}
    for rank, key in enumerate(sorted(probabilities, key=probabilities.__getitem__)):
        worst = max(worst, probabilities[key] * (len(probabilities) - rank))
        found[key] = min(1.0, worst)
    return found


def verdicts_by_law(found: dict[Key, Cell], level: float) -> dict[Key, Verdict]:
    """Reproduced inside the law, else with a caveat within ``CLOSE`` of its median."""
    corrected = holm({key: cell.probability for key, cell in found.items()})
    verdicts: dict[Key, Verdict] = {}
    for key, cell in found.items():
        log = math.log(cell.printed) if cell.printed > 0 else math.inf
        close = abs(log - cell.median) <= math.log(CLOSE)
        outside = CAVEAT if close else NOT
        verdicts[key] = REPRODUCED if corrected[key] >= level else outside
    return verdicts


def least(found: dict[Key, Cell]) -> dict[Key, float]:
    """Probability that each of some independent cells prints the least number."""
    levels = ndtri((np.arange(LEVELS) + 0.5) / LEVELS)
    chances = {}
    for key, cell in found.items():
        values = np.exp(np.interp(levels, cell.scores, cell.logs))
        others = [other for name, other in found.items() if name != key]
        above = [[ndtr(-other.score(value)) for other in others] for value in values]
        chances[key] = float(np.prod(above, axis=1).mean())
    return chances


# --- changes that a table should notice -----------------------------------------------


def scaled(factor: float) -> Change:
    """Multiply every error by a factor."""
    return lambda table: table.assign(
        **{name: factor * table[name] for name in _errors(table)}
    )


def nothing_learnt(table: pd.DataFrame) -> pd.DataFrame:
    """Replace every error by that of w = 0."""
    return table.assign(**dict.fromkeys(_errors(table), table["start"]))


def _errors(table: pd.DataFrame) -> list[str]:
    return ["median", *(name for name in table if name.startswith("q0."))]


def noisier(factor: float) -> Change:
    """Replace laws by those of another noise factor."""

    def change(table: pd.DataFrame) -> pd.DataFrame:
        taken = table[table["noise_factor"] == factor]
        rest = table[table["noise_factor"] != PUBLISHED]
        return pd.concat([taken.assign(noise_factor=PUBLISHED), rest])

    return change


def next_passes(table: pd.DataFrame) -> pd.DataFrame:
    """Label every number of passes as the next larger one; drop the largest.

    Raises AbsentError if the table has no passes.
    """
    if "passes" not in table or table["passes"].isna().all():
        raise AbsentError("the laws are of no number of passes")
    known = sorted(table["passes"].dropna().unique())
    following = dict(zip(known, [*known[1:], np.nan], strict=True))
    moved = table.assign(passes=table["passes"].map(following))
    return moved.dropna(subset=["passes"])


CHANGES: dict[str, Change] = {
    "w = 0": nothing_learnt,
    "passes off by one": next_passes,
    "errors x 0.5": scaled(0.5),
    "errors x 0.7": scaled(0.7),
    "errors x 1.4": scaled(1.4),
    **{f"noise x {factor:g}": noisier(factor) for factor in (0.5, 0.7, 1.4, 2.0)},
}


@dataclass(frozen=True)
class Pooled:
    """The pooled ratio of the printed numbers to the medians of their laws.

    The weights are those of a test of the noise: how much a cell moves with the noise,
    over the variance of its law. ``log`` and ``deviation`` are the pooled log-ratio and
    its standard deviation.
    """

    log: float
    deviation: float

    @property
    def ratio(self) -> Estimate:
        """The pooled ratio with its 95 % interval."""
        half = ndtri(0.975) * self.deviation
        ends = (self.log, self.log - half, self.log + half)
        return Estimate(*(math.exp(each) for each in ends))

    @property
    def probability(self) -> float:
        """Probability of a pooled ratio as far from 1, two-sided."""
        return float(2 * ndtr(-abs(self.log) / self.deviation))


def pooled(found: list[Cell]) -> Pooled:
    """Pool the printed numbers.

    Raises AbsentError if no cell moves with the noise, or if that is unknown.
    """
    deviations = np.array([cell.printed_deviation for cell in found])
    moves = np.array([cell.moves for cell in found])
    if not np.isfinite(moves).all() or not moves.sum() > 0:
        raise AbsentError("no law with other noise, or no cell that moves with it")
    weights = moves / deviations**2
    weights /= weights.sum()
    logs = np.array([math.log(max(cell.printed, cell.half)) for cell in found])
    apart = logs - np.array([cell.median for cell in found])
    return Pooled(float(weights @ apart), float(np.linalg.norm(weights * deviations)))


def apart(found: list[Cell]) -> float:
    """Probability of cells as far from their laws as these (Fisher's method).

    Cells above and below their laws cancel in the pooled ratio, but add up here.
    """
    logs = sum(math.log(max(cell.probability, 1e-300)) for cell in found)
    return float(chdtrc(2 * len(found), -2 * logs))


def grouped(found: dict[Key, Cell]) -> dict[str, list[Cell]]:
    """Group cells by problem."""
    groups: dict[str, list[Cell]] = {}
    for key, cell in found.items():
        groups.setdefault(str(key[0]), []).append(cell)
    return groups


# --- cells by their kind --------------------------------------------------------------


class Judged(NamedTuple):
    """A cell with its finding; ``other`` marks cells that no run of ours can test."""

    row: Row
    column: str
    finding: Finding
    other: bool = False


def count(row: Row, ours: Row, published: str, value: str) -> Finding:
    """A mean number of coordinates, printed as a whole number.

    Reproduced if the printed number is in the central 95 % of its law, rounded. If
    settings are equally good to 1 %, so that chance decides among them, the cell is
    untestable if they lead to different numbers or learn nothing.
    """
    low, high = (round(ours[f"{value}_{end}"]) for end in ("low", "high"))
    found = Estimate((low + high) / 2, low, high)
    idle = ours["median"] > 0.99 * ours["start"]
    verdict = REPRODUCED if low <= row[published] <= high else NOT
    reason = f"{PRINTING[ours['prints']]} {low} to {high} (95 %)"
    if ours["tied"] > 0.5 and (low < high or idle):
        verdict = UNTESTED
        reason = (
            f"a tie: in {ours['tied']:.0%} of tunings another setting is as good to 1 %"
            f"{', and none learns anything' if idle else ''}; the number is {low} to "
            f"{high} by chance"
        )
    return Finding(verdict, reason, found, rounded(row[published]))


def seconds(
    row: Row, ours: Row, published: str, spread: str, value: str, std: str, runs: int
) -> Finding:
    """Seconds of a run on another machine: shown, but not comparable."""
    half = t_quantile(runs - 1) * ours[std] / math.sqrt(runs - 1)
    found = Estimate(ours[value], ours[value] - half, ours[value] + half)
    text = (
        f"{interval(found)} s here, {rounded(row[published])} s printed, of other code "
        "on another machine"
    )
    return Finding(INCOMPARABLE, text, found, _text(row, published, spread))


def deviation(
    row: Row, ours: Row, published: str, value: str, of: int, level: float, runs: int
) -> Finding:
    """A standard deviation of ``of`` runs, printed to one digit.

    It may be normalised by n or by n - 1. The F-test compares it with that of our
    ``runs`` fresh runs. If p is below ``level``, the cell is not reproduced, or has a
    caveat if both agree within ``ROUGH``. If p is only below ``ALONE``, it is
    undecided. A test that would miss three times the deviation and a third of it says
    nothing.
    """
    half = (ours["fresh_ci_high"] - ours["fresh_ci_low"]) / 2
    text = _text(row, published)
    if not half > 0:
        reason = "our runs all end at w = 0, so that nothing varies"
        return Finding(UNTESTED, reason, published=text)
    fresh, printed = half * math.sqrt(runs) / t_quantile(runs - 1), row[published]
    unit = half_unit(printed, {"digits": 1})
    ends = (printed - unit, (printed + unit) * math.sqrt(of / (of - 1)))

    def chance(factor: float) -> float:
        low, high = ((factor * end / fresh) ** 2 for end in ends)
        free = (of - 1, runs - 1)
        return float(min(1.0, 2 * min(fdtr(*free, high), fdtrc(*free, low))))

    seen, close = chance(1.0), ends[0] / ROUGH <= fresh <= ends[1] * ROUGH
    outside = UNDECIDED if seen >= level else CAVEAT if close else NOT
    verdict = REPRODUCED if seen >= ALONE else outside
    control = ""
    if verdict == REPRODUCED and min(chance(3.0), chance(1 / 3)) >= ALONE:
        verdict, control = NOTHING, "holds for deviations x 3 and / 3"
    reason = (
        f"{text} printed; {fresh:.2g} of {runs} fresh runs, "
        f"{ours[value]:.2g} of the tuning's {of}; {p_value(seen)}, level {level:g}"
    )
    return Finding(verdict, reason, Estimate.exactly(fresh), text, control)


def exact(row: Row, ours: Row, published: str, value: str) -> Finding:
    """A number that must be equal to the digit."""
    printed, found = row[published], ours[value]
    reason = f"{rounded(found)} here, {rounded(printed)} printed"
    return _exactly(found == printed, reason, found, rounded(printed))


def formula(row: Row, ours: Row, published: str, value: str, limit: float) -> Finding:
    """A printed formula: the relative error of its values."""
    found = ours[value]
    reason = (
        f"relative error {rounded(found)} of the formula as printed, at most {limit:g}"
    )
    return _exactly(found <= limit, reason, found, str(row[published]))


def mark(row: Row, ours: Row, published: str, at_most: float, means: str) -> Finding:
    """A tick in a table: its number is at most ``at_most`` if and only if ticked."""
    found = ours["value"]
    reason = f"{means} {rounded(found)}, a tick being at most {at_most:g}"
    held = (found <= at_most) == (row[published] == "yes")
    return _exactly(held, reason, found, str(row[published]))


def _exactly(held: bool, reason: str, found: float, published: str) -> Finding:
    verdict: Verdict = REPRODUCED if held else NOT
    return Finding(verdict, reason, Estimate.exactly(found), published)


def _text(row: Row, published: str, spread: str | None = None) -> str:
    text = f"{row[published]:.4g}"
    return text if spread is None else f"{text} ± {row[spread]:.1g}"


_ALL = (count, seconds, deviation, exact, formula, mark)
KINDS = {each.__name__: each for each in _ALL}
LAW = "law"  # a mean of a tuned setting, judged with all others of its table
STAR = "star"  # a mark of the least of several means, 1 in its column
PRINTING = {
    LEAST: "a tuning with five transcripts prints",
    FRESH: "five new runs of what a tuning chose print",
}
ERRORS = ["errors x 0.7", "errors x 1.4"]  # a law must notice at least one


def judged(evidence: Evidence, printed: pd.DataFrame, options: Row) -> Iterator[Judged]:
    """Judge every cell of a published table.

    Parameters
    ----------
    printed : DataFrame
        The published table.
    options : dict
        ``file`` of our table; ``keys`` that name a row in both tables; ``also``, other
        columns that our row must match; ``cells``: column to its kind, its own file if
        needed, and the options of its kind.
    """
    for column, how in options["cells"].items():
        if how["kind"] == LAW:
            yield from _by_law(evidence, printed, law_options(column, how, options))
            continue
        if how["kind"] == STAR:
            how = law_options(column, how, options)
            yield from _by_star(evidence, printed, column, how)
            continue
        for row in printed.to_dict("records"):
            yield _one(evidence, row, column, how, options)


def law_options(column: str, how: Row, options: Row) -> Row:
    """Options of ``with_laws`` for a column of a table."""
    names = {"file": options["file"], "keys": options["keys"], "column": column}
    return {"prints": options.get("prints", LEAST), **names, **how}


def _laws(
    evidence: Evidence, printed: pd.DataFrame, how: Row
) -> tuple[dict[Key, Cell], str]:
    """Cells of ``with_laws``, and the reason for cells without a law."""
    try:
        found = with_laws(evidence, printed, how)
    except AbsentError as error:
        return {}, str(error)
    return found, f"{evidence.path(how['file'])} has no law for it"


def _by_law(evidence: Evidence, printed: pd.DataFrame, how: Row) -> Iterator[Judged]:
    column, level = how["column"], how["level"]
    says = PRINTING[how["prints"]]
    found, missing = _laws(evidence, printed, how)
    verdicts = verdicts_by_law(found, level)
    corrected = holm({key: cell.probability for key, cell in found.items()})
    altered = {  # each is a single test, without correction
        name: with_laws(evidence, printed, how, CHANGES[name])
        for name in ("w = 0", *ERRORS)
        if found
    }
    for row in printed.to_dict("records"):
        key = tuple(row[name] for name in how["keys"])
        text = _text(row, column, how.get("std"))
        if key not in found:
            yield Judged(row, column, Finding(PENDING, missing, published=text))
            continue
        cell, verdict = found[key], verdicts[key]
        unnoticed = [
            name for name, seen in altered.items() if seen[key].probability >= level
        ]
        control = f"not noticed: {', '.join(unnoticed)}" if unnoticed else ""
        blind = ["w = 0"] if "w = 0" in unnoticed else ERRORS
        if verdict == REPRODUCED and set(blind) <= set(unnoticed):
            verdict, control = NOTHING, f"holds for {' and '.join(blind)}"
        reason = (
            f"printed {rounded(cell.printed)}; {says} "
            f"{interval(cell.law)}; {p_value(cell.probability)}, "
            f"{p_value(corrected[key])} after Holm's correction"
        )
        finding = Finding(verdict, reason, cell.law, text, control)
        yield Judged(row, column, finding)


def _by_star(
    evidence: Evidence, printed: pd.DataFrame, star: str, how: Row
) -> Iterator[Judged]:
    """Judge every star: whether that cell prints the least of its row, by the laws.

    Reproduced if it does so in 95 % of tunings, not reproduced if in fewer than
    ``level``, and a tie in between. ``column`` of the options is that of the means.
    """
    found, missing = _laws(evidence, printed, how)
    for row in printed[printed[star] == 1].to_dict("records"):
        *of, mine = key = tuple(row[name] for name in how["keys"])
        chances = least({k: c for k, c in found.items() if [*k[:-1]] == of})
        if key not in chances:
            yield Judged(row, star, Finding(PENDING, missing, published=str(mine)))
            continue
        best = max(chances, key=chances.__getitem__)
        chance = Estimate.exactly(chances[key])
        reason = f"the least of its row in {chances[key]:.1%} of tunings"
        reason += "" if best == key else f"; {best[-1]} in {chances[best]:.1%}"
        verdict = REPRODUCED if chance.value >= 1 - ALONE else UNTESTED
        if verdict == UNTESTED:
            reason = f"a tie: {reason}"
        if chance.value < how["level"]:
            verdict = NOT
        yield Judged(row, star, Finding(verdict, reason, chance, str(mine)))


def _one(
    evidence: Evidence,
    row: Row,
    column: str,
    how: Row,
    options: Row,
) -> Judged:
    given = dict(how)
    kind, only = given.pop("kind"), given.pop("only", None)
    printed, config = row[column], evidence.config
    text = _text(row, column) if isinstance(printed, float) else str(printed)
    if only and any(row[key] not in each for key, each in only["where"].items()):
        finding = Finding(UNTESTED, only["otherwise"], published=text)
        return Judged(row, column, finding, other=True)
    names = {key: row[key] for key in options["keys"]}
    if kind in ("seconds", "deviation"):
        given["runs"] = config.scale.fresh or config.paper.fresh
    try:
        if kind == "mark":
            ours = {"value": _largest(evidence, names, given, options["file"])}
        else:
            where = {key: given.pop(key) for key in ("file", "also") if key in given}
            if kind == "count":  # of the runs behind the printed mean
                prints = options.get("prints", LEAST)
                where["also"] = where.get("also", {}) | {"prints": prints}
            ours = _ours(evidence, names, options | where)
        return Judged(row, column, KINDS[kind](row, ours, column, **given))
    except MissingError as error:
        verdict = PENDING if isinstance(error, AbsentError) else UNTESTED
        return Judged(row, column, Finding(verdict, str(error), published=text))
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        reason = f"{evidence.path(options['file'])} cannot be judged: {error!r}"
        return Judged(row, column, Finding(UNTESTED, reason, published=text))


def _largest(evidence: Evidence, names: Row, given: Row, file: str) -> float:
    """The largest number of the rows behind a tick; removes options from ``given``."""
    file = given.pop("file", file)
    value, per = given.pop("value"), given.pop("per", None)
    rows = evidence.rows(file, given.pop("where", names))
    found = rows[value] / rows[per] if per else rows[value]
    if found.isna().any():
        raise MissingError(f"{evidence.path(file)} has no {value}")
    return float(found.max())


def _ours(evidence: Evidence, names: Row, options: Row) -> Row:
    """Our row for a published one.

    Raises AbsentError if there is none, MissingError if it is empty.
    """
    file = options["file"]
    renamed = {
        options.get("renamed", {}).get(key, key): each for key, each in names.items()
    }
    table = matching(evidence.table(file), renamed | options.get("also", {}), file)
    known = table.dropna(axis=1, how="all")
    if len(table) != 1 or not set(renamed) < set(known.columns):
        text = worded(names.values(), " ")
        raise AbsentError(f"{evidence.path(file)} has no result for {text}")
    found = table.iloc[0].to_dict()
    numbers = [each for each in found.values() if isinstance(each, float)]
    if numbers and np.isnan(numbers).all():
        raise MissingError(f"{evidence.path(file)} has empty cells only")
    return found
