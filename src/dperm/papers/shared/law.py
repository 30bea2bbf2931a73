"""The law of printed results of a tuned setting, and the p of a printed cell in it.

A printed mean is one of two things. It may be the least mean that the tuning compared;
this is biased, because the setting was chosen for it. Or it is the mean of five new
runs of the chosen setting. The law of each is drawn from many transcripts of all
settings near the optimum (``dperm.papers.shared.sweeps.tuning_law``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.special import fdtr, fdtrc, ndtr, ndtri

RUNS = 5  # transcripts behind a printed mean
DRAWS = 4000
TIED = 0.01  # settings whose means are as close as this are chosen at random
SEED = 20261121  # of the draws; no noise of a run depends on it
TAILS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25)
LEVELS = (*TAILS, 0.5, *(1 - level for level in reversed(TAILS)))
# of a table that holds a law
LAW_COLUMNS = [f"q{level:g}" for level in LEVELS]
PRINTS = (
    "least",
    "fresh",
)  # the least mean of the tuning, or new runs of its choice
COUNTS = ("true_positives", "false_positives")
IMPOSSIBLE_DEVIATIONS = 40.0  # standard deviations; practically impossible

# and counts, see ``by_passes``
Errors = tuple[np.ndarray, dict[str, np.ndarray]]


@dataclass(frozen=True)
class Means:
    """Draws of a printed mean, with the mean counts of the same runs."""

    errors: np.ndarray  #: shape (D,)
    counts: dict[str, np.ndarray]  #: shape (D,); mean numbers of coordinates
    transcripts: int  #: number that the draws are taken from

    @property
    def quantiles(self) -> np.ndarray:
        """Quantiles at ``LEVELS``, widened because few transcripts determine the law.

        The centre of a mean over ``RUNS`` of T transcripts is itself uncertain, by RUNS
        / T of the variance of that mean. The quantiles are spread about the median in
        logarithms.
        """
        logs = np.log(np.quantile(self.errors, LEVELS))
        middle = logs[len(LEVELS) // 2]
        wider = np.sqrt(1 + RUNS / self.transcripts)
        return np.exp(middle + wider * (logs - middle))


@dataclass(frozen=True)
class TuningDraws:
    """Draws of the results of a tuning."""

    #: least, fresh: the mean by which the setting was chosen, and that of its new runs
    least: Means
    fresh: Means
    tied: float  #: share of draws in which another setting is as good, within ``TIED``
    settings: int  #: how many compete


def law(
    tables: list[Errors], most: int | None = None, again: int | None = RUNS
) -> TuningDraws:
    """Draw the law from the transcripts of settings, each with draws of its own.

    ``tables`` are what ``by_passes`` makes of the rows; ``most`` is the number of
    competing settings, the best by all transcripts, or None for all. ``again`` is the
    number of new runs of the chosen setting; None takes as many as there are
    transcripts, so that their mean is as uncertain as the setting's known mean.
    """
    rng = np.random.default_rng(SEED)
    centres = [errors.mean(axis=1) for errors, _ in tables]
    ranked = np.sort(np.concatenate(centres))
    limit = ranked[-1] if most is None else ranked[min(most, len(ranked)) - 1]
    runs = []
    means = []
    picks = []
    for (errors, counts), centre in zip(tables, centres, strict=True):
        keep = np.flatnonzero(centre <= limit)
        if not len(keep):
            continue
        shape = (len(keep), DRAWS, RUNS)  # of indices of transcripts
        picks.append(rng.integers(errors.shape[1], size=shape))
        row = keep[:, np.newaxis]
        means.append(
            sum(errors[row, picks[-1][:, :, k]] for k in range(RUNS)) / RUNS
        )
        runs.append(
            np.stack([errors, *(counts[key] for key in COUNTS)])[:, keep]
        )
    all_means = np.concatenate(means)
    least_mean = all_means.min(axis=0)
    best = (all_means * (1 + TIED * rng.random(all_means.shape))).argmin(
        axis=0
    )
    tied = ((all_means <= least_mean * (1 + TIED)).sum(axis=0) > 1).mean()
    numbers = np.concatenate(runs, axis=1)  # (numbers, settings, transcripts)
    size = numbers.shape[2]
    picked = np.concatenate(picks)[best, range(DRAWS)]
    later = rng.integers(size, size=(DRAWS, again or size))
    # of equally good settings, the least mean is printed
    printed = replace(_means(numbers, best, picked), errors=least_mean)
    return TuningDraws(
        printed, _means(numbers, best, later), float(tied), len(all_means)
    )


def _means(numbers: np.ndarray, at: np.ndarray, picked: np.ndarray) -> Means:
    """Means of errors and counts (K, S, T) at settings (D) over transcripts (D, R)."""
    chosen = np.ascontiguousarray(numbers[:, at[:, np.newaxis], picked])
    errors, *counts = chosen.mean(axis=2)
    return Means(
        errors, dict(zip(COUNTS, counts, strict=True)), numbers.shape[2]
    )


def by_passes(rows: pd.DataFrame) -> list[Errors]:
    """Errors and counts by number of passes, (settings, transcripts).

    Errors of runs that diverged are infinite.
    """
    errors_by_passes = []
    for _, rows_of_passes in rows.groupby("passes", sort=True):
        ordered = rows_of_passes.sort_values(["step", "clip", "transcript"])
        shape = (-1, ordered["transcript"].nunique())
        errors = ordered["relative_error"].mask(
            ordered["status"] != "ok", np.inf
        )
        counts = {
            name: ordered[name].to_numpy(float).reshape(shape)
            for name in COUNTS
        }
        errors_by_passes.append(
            (errors.to_numpy(float).reshape(shape), counts)
        )
    return errors_by_passes


# --- the p of printed cells -----------------------------------------------------------


def of_means(
    laws: pd.DataFrame, printed: pd.Series, half: pd.Series, spread: pd.Series
) -> pd.DataFrame:
    """Test printed means against their laws, two-sided.

    ``laws`` (k,) has columns ``q0.5`` and other quantiles, and ``start``, the error of
    w = 0. ``half`` is half a unit of the last printed digits. ``spread`` is the
    standard deviation, in logarithms, of differences that tuning does not explain, such
    as another machine's arithmetic, another optimum or another draw of data.

    Returns ``p``; ``p_holm`` after Holm's correction over all; ``p_start``, that of a
    law where nothing is learnt, which a table should notice.
    """
    names = [name for name in laws if name.startswith("q0.")]
    scores = ndtri([float(name[1:]) for name in names])
    logs = np.log(laws[names].to_numpy(float))
    start = np.log(laws["start"].to_numpy(float))[:, np.newaxis]
    cells = list(zip(printed, half, spread, strict=True))

    def chances(tables: np.ndarray) -> list[float]:
        """P-values of the printed cells under a law for each cell."""
        return [
            _two_sided(cell, near, _wider(row, scores, apart), scores)
            for row, (cell, near, apart) in zip(tables, cells, strict=True)
        ]

    tests = pd.DataFrame({"p": chances(logs)}, index=laws.index)
    return tests.assign(
        p_holm=holm(tests["p"]), p_start=chances(start + 0 * logs)
    )


def _wider(logs: np.ndarray, scores: np.ndarray, spread: float) -> np.ndarray:
    """A law with more spread; one without any width has that alone."""
    middle = logs[len(logs) // 2]
    low, high = np.interp(ndtri([0.025, 0.975]), scores, logs)
    width = (high - low) / (2 * ndtri(0.975))
    if width < spread / 100:
        return np.asarray(middle + spread * scores)
    return np.asarray(
        middle + math.hypot(1.0, spread / width) * (logs - middle)
    )


def _two_sided(
    value: float, half: float, logs: np.ndarray, scores: np.ndarray
) -> float:
    above, below = (
        _score(end, logs, scores) for end in (value - half, value + half)
    )
    return float(min(1.0, 2 * min(ndtr(below), ndtr(-above))))


def _score(value: float, logs: np.ndarray, scores: np.ndarray) -> float:
    """The normal score of a value in a law, with tails extrapolated."""
    low, high = (np.diff(logs) / np.diff(scores))[[0, -1]]
    ends = (
        logs[0] - low * (IMPOSSIBLE_DEVIATIONS + scores[0]),
        logs[-1] + high * (IMPOSSIBLE_DEVIATIONS - scores[-1]),
    )
    places = np.array([ends[0], *logs, ends[1]])
    log = math.log(max(value, 1e-300))
    extended = [-IMPOSSIBLE_DEVIATIONS, *scores, IMPOSSIBLE_DEVIATIONS]
    return float(np.interp(log, places, extended))


def holm(chances: pd.Series) -> pd.Series:
    """Probabilities of a table's cells after Holm's correction."""
    ordered = chances.sort_values(kind="stable")
    times = np.arange(len(ordered), 0, -1)
    return (ordered * times).cummax().clip(upper=1.0).reindex(chances.index)


def half_unit(
    value: float, digits: int | None = None, decimals: int = 0
) -> float:
    """Half a unit of the last digit of a number, of ``digits`` or after the point.

    >>> half_unit(0.0145, decimals=4), half_unit(0.77, digits=2)
    (5e-05, 0.005)
    """
    if digits is not None:
        decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return float(f"{0.5 * 10.0**-decimals:.6g}")


def of_deviations(
    printed: pd.Series, fresh: pd.Series, runs: Sequence[int], of: int = RUNS
) -> pd.Series:
    """Test deviations of ``of`` runs, printed to one digit, against ``fresh`` of ours.

    ``runs`` are the numbers of ours. By Fisher's F; they may be normalised by ``of`` or
    by ``of`` - 1. NaN where nothing varies here.
    """

    def chance(value: float, ours: float, count: int) -> float:
        """P-value of a printed deviation, by Fisher's law of variance ratios."""
        half = half_unit(value, digits=1)
        low = ((value - half) / ours) ** 2
        high = ((value + half) / ours) ** 2 * of / (of - 1)
        free = (of - 1, count - 1)
        return float(min(1.0, 2 * min(fdtr(*free, high), fdtrc(*free, low))))

    cells = zip(printed, fresh, runs, strict=True)
    chances = [
        chance(*cell) if all(x > 0 for x in cell) else math.nan
        for cell in cells
    ]
    return pd.Series(chances, index=printed.index)
