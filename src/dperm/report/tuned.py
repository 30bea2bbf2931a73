"""Printed means of tuned settings, judged by the law of what a tuning prints.

``law.csv`` has the quantiles of that law (``dperm.kinds.law``). A printed mean has a
place in it, two-sided, with Holm's correction over the table; all cells of a problem
together are a test of the noise, whose power is measured on laws with other noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import chdtrc, ndtr, ndtri

from dperm.kinds.law import PRINTS
from dperm.report.evidence import AbsentError, Estimate, Evidence
from dperm.report.verdicts import CAVEAT, CLOSE, NOT, REPRODUCED, Verdict

PUBLISHED = 1.0  # the noise factor of what is printed
FACTORS = (0.7, 0.8, 1.25, 1.4)
FAR = (0.5, 2.0)  # not of every table
LEAST, FRESH = PRINTS
EXTREME = 40.0  # standard deviations; as good as impossible
LEVELS = 200  # at which a law is read to compare it with others
Key = tuple[Any, ...]
Change = Callable[[pd.DataFrame], pd.DataFrame]


@dataclass(frozen=True)
class Cell:
    """A printed mean beside its law."""

    key: Key  #: problem, algorithm, and passes if there are any
    #: printed, half: the number, and half a unit of its last digit
    printed: float
    half: float
    logs: np.ndarray  #: of the law's quantiles
    scores: np.ndarray  #: standard normal scores of the same levels
    moves: float  #: how much the logarithm of the error moves with that of the noise
    start: float  #: the error at w = 0

    @property
    def median(self) -> float:
        """Of the law, in logarithms."""
        return float(self.logs[len(self.logs) // 2])

    @property
    def deviation(self) -> float:
        """Of the law, in logarithms; from its 95 % range."""
        return _deviation(self.logs, self.scores)

    @property
    def printed_deviation(self) -> float:
        """Of the printed number, in logarithms: that of the law, and its rounding."""
        return math.hypot(self.deviation, self.half / self.printed / math.sqrt(3))

    def score(self, value: float) -> float:
        """The normal score of a value in the law; the tails are continued."""
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
        """Of a printed number at least as far out, two-sided."""
        below = float(ndtr(self.score(self.printed + self.half)))
        above = float(ndtr(-self.score(self.printed - self.half)))
        return min(1.0, 2 * min(below, above))

    @property
    def law(self) -> Estimate:
        """Median and 95 % range of what a tuning prints."""
        low, high = np.interp(ndtri([0.025, 0.975]), self.scores, self.logs)
        return Estimate(*(math.exp(each) for each in (self.median, low, high)))


def cells(
    evidence: Evidence,
    printed: pd.DataFrame,
    options: dict[str, Any],
    change: Change | None = None,
) -> dict[Key, Cell]:
    """The cells of a printed table that have a law.

    Parameters
    ----------
    printed : DataFrame
        The published table.
    options : dict
        ``file``, ``keys`` (the problem first), ``column``; ``draws``, whether settings
        shared their draws, or had their own; ``prints``, whether the ``least`` mean of
        the tuning was printed (by default), or that of ``fresh`` runs; ``decimals``
        that were printed after the point, or ``digits`` in all; ``spread``, the
        standard deviation, in logarithms, of differences that no tuning accounts for:
        another machine's arithmetic, another optimum; ``redrawn``, problem to its own
        spread, where the data are another draw of the same law.
    change : callable, optional
        Made to the table of laws.

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
            found[key] = Cell(
                key,
                row[column],
                half_unit(row[column], options),
                _wider(logs, scores, spread),
                scores,
                _moves(known, key),
                float(law["start"]),
            )
    return found


def half_unit(value: float, options: dict[str, Any]) -> float:
    """Half a unit of the last digit of a printed number."""
    decimals = options.get("decimals")
    if decimals is None:
        decimals = (options.get("digits") or 1) - 1 - math.floor(math.log10(abs(value)))
    return 0.5 * 10.0**-decimals


def _deviation(logs: np.ndarray, scores: np.ndarray) -> float:
    low, high = np.interp(ndtri([0.025, 0.975]), scores, logs)
    return float(high - low) / (2 * ndtri(0.975))


def _wider(logs: np.ndarray, scores: np.ndarray, spread: float) -> np.ndarray:
    """Quantiles of the law with a normal spread besides."""
    middle, own = logs[len(logs) // 2], _deviation(logs, scores)
    if own < spread / 100:
        return middle + spread * scores
    return middle + math.hypot(1.0, spread / own) * (logs - middle)


def _moves(known: pd.DataFrame, key: Key) -> float:
    """Exponent of the error in the noise, from the least to the most noise there is."""
    at = [
        (f, known.loc[(*key, f)]["median"]) for f in FACTORS if (*key, f) in known.index
    ]
    if len(at) < 2:
        return math.nan
    (low, first), (high, last) = at[0], at[-1]
    return max(0.0, math.log(last / first) / math.log(high / low))


def holm(probabilities: dict[Key, float]) -> dict[Key, float]:
    """Holm's correction over a table."""
    worst, found = 0.0, {}
    for rank, key in enumerate(sorted(probabilities, key=probabilities.__getitem__)):
        worst = max(worst, probabilities[key] * (len(probabilities) - rank))
        found[key] = min(1.0, worst)
    return found


def verdicts(found: dict[Key, Cell], level: float) -> dict[Key, Verdict]:
    """Inside the law, outside but within ``CLOSE`` of its median, or outside."""
    corrected = holm({key: cell.probability for key, cell in found.items()})
    verdicts: dict[Key, Verdict] = {}
    for key, cell in found.items():
        log = math.log(cell.printed) if cell.printed > 0 else math.inf
        close = abs(log - cell.median) <= math.log(CLOSE)
        outside = CAVEAT if close else NOT
        verdicts[key] = REPRODUCED if corrected[key] >= level else outside
    return verdicts


def least(found: dict[Key, Cell]) -> dict[Key, float]:
    """How often each of some cells prints the least, all independent."""
    levels = ndtri((np.arange(LEVELS) + 0.5) / LEVELS)
    chances = {}
    for key, cell in found.items():
        values = np.exp(np.interp(levels, cell.scores, cell.logs))
        others = [other for name, other in found.items() if name != key]
        above = [[ndtr(-other.score(value)) for other in others] for value in values]
        chances[key] = float(np.prod(above, axis=1).mean())
    return chances


# --- changes that a table ought to notice ---------------------------------------------


def scaled(factor: float) -> Change:
    """Every error times a factor."""
    return lambda table: table.assign(
        **{name: factor * table[name] for name in _errors(table)}
    )


def nothing_learnt(table: pd.DataFrame) -> pd.DataFrame:
    """What w = 0 would print."""
    return table.assign(**dict.fromkeys(_errors(table), table["start"]))


def _errors(table: pd.DataFrame) -> list[str]:
    return ["median", *(name for name in table if name.startswith("q0."))]


def noisier(factors: dict[str, float] | float) -> Change:
    """What another noise would print, for all algorithms or for each its own."""

    def change(table: pd.DataFrame) -> pd.DataFrame:
        several = isinstance(factors, dict)
        factor = table["algorithm"].map(factors) if several else factors
        taken = table[table["noise_factor"] == factor]
        rest = table[table["noise_factor"] != PUBLISHED]
        return pd.concat([taken.assign(noise_factor=PUBLISHED), rest])

    return change


def exchanged(first: str, second: str) -> Change:
    """Two algorithms under each other's names."""
    names = {first: second, second: first}
    return lambda table: table.assign(algorithm=table["algorithm"].replace(names))


CHANGES: dict[str, Change] = {
    "w = 0": nothing_learnt,
    "errors x 0.5": scaled(0.5),
    "errors x 0.7": scaled(0.7),
    "errors x 1.4": scaled(1.4),
    **{f"noise x {factor:g}": noisier(factor) for factor in (*FACTORS, *FAR)},
}


@dataclass(frozen=True)
class Pooled:
    """The printed numbers over the medians of their laws, pooled.

    Cells are weighted as a test of the noise would: by how much they move with it over
    the variance of their law. ``log`` and ``deviation`` are of the pooled log-ratio.
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
        """Of a pooled ratio as far from 1, two-sided."""
        return float(2 * ndtr(-abs(self.log) / self.deviation))


def pooled(found: list[Cell], others: list[Cell] | None = None) -> Pooled:
    """Pool the printed numbers, or what other laws would print in their place.

    Raises AbsentError if no cell moves with the noise, or that is not known.
    """
    deviations = np.array([cell.printed_deviation for cell in found])
    moves = np.array([cell.moves for cell in found])
    if not np.isfinite(moves).all() or not moves.sum() > 0:
        raise AbsentError("no law with other noise, or no cell that moves with it")
    weights = moves / deviations**2
    weights /= weights.sum()
    if others is None:
        logs = np.array([math.log(max(cell.printed, cell.half)) for cell in found])
    else:
        logs = np.array([cell.median for cell in others])
        deviations = np.array([cell.deviation for cell in others])
    apart = logs - np.array([cell.median for cell in found])
    return Pooled(float(weights @ apart), float(np.linalg.norm(weights * deviations)))


def apart(found: list[Cell]) -> float:
    """Chance of cells as far from their laws as these, either way (Fisher's method).

    Cells above and below their laws cancel in the pooled ratio, and add up here.
    """
    logs = sum(math.log(max(cell.probability, 1e-300)) for cell in found)
    return float(chdtrc(2 * len(found), -2 * logs))


def power(found: list[Cell], others: list[Cell]) -> float:
    """How often a table with other laws would be noticed at 5 %."""
    null, other = pooled(found), pooled(found, others)
    limit = ndtri(0.975) * null.deviation
    return float(
        ndtr((other.log - limit) / other.deviation)
        + ndtr((-limit - other.log) / other.deviation)
    )


def grouped(found: dict[Key, Cell]) -> dict[str, list[Cell]]:
    """The cells of every problem."""
    groups: dict[str, list[Cell]] = {}
    for key, cell in found.items():
        groups.setdefault(str(key[0]), []).append(cell)
    return groups
