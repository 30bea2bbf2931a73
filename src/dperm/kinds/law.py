"""The law of printed results of a tuned setting, which are means over five runs.

A printed mean is one of two things. It may be the least mean that the tuning compared;
this is biased, because the setting was chosen for it. Or it is the mean of new runs of
the chosen setting. The law of each is drawn from many transcripts of all settings near
the optimum (``dperm.kinds.sweeps.tuning_law``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

RUNS = 5  # transcripts behind a printed mean
DRAWS = 4000
TIED = 0.01  # settings whose means are as close as this are chosen at random
SEED = 20261121  # of the draws; no noise of a run depends on it
TAILS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25)
LEVELS = (*TAILS, 0.5, *(1 - level for level in reversed(TAILS)))
PRINTS = ("least", "fresh")  # the least mean of the tuning, or new runs of its choice
COUNTS = ("true_positives", "false_positives")

Errors = tuple[np.ndarray, dict[str, np.ndarray]]  # and counts, see ``arrays``


@dataclass(frozen=True)
class Means:
    """Draws of a printed mean, with the mean counts of the same runs."""

    errors: np.ndarray  #: shape (D,)
    #: shape (D,); mean numbers of coordinates in the same runs
    counts: dict[str, np.ndarray]
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
class Law:
    """Draws of the results of a tuning."""

    #: least, fresh: the mean by which the setting was chosen, and that of its new runs
    least: Means
    fresh: Means
    tied: float  #: share of draws in which another setting is as good, within ``TIED``
    settings: int  #: how many compete


def law(
    tables: list[Errors],
    most: int | None = None,
    again: int | None = RUNS,
) -> Law:
    """Draw the law from the transcripts of settings, each with draws of its own.

    Parameters
    ----------
    tables : list
        What ``by_passes`` makes of the rows.
    most : int
        Number of competing settings, the best by all transcripts; None for all.
    again : int
        Number of new runs of the chosen setting. None takes as many as there are
        transcripts, so that their mean is as uncertain as the setting's known mean.
    """
    rng = np.random.default_rng(SEED)
    centres = [errors.mean(axis=1) for errors, _ in tables]
    ranked = np.sort(np.concatenate(centres))
    limit = ranked[-1] if most is None else ranked[min(most, len(ranked)) - 1]
    kept = [np.flatnonzero(each <= limit) for each in centres]
    runs, means, picks = [], [], []
    for (errors, counts), keep in zip(tables, kept, strict=True):
        if not len(keep):
            continue
        shape = (len(keep), DRAWS, RUNS)  # of indices of transcripts
        picks.append(rng.integers(errors.shape[1], size=shape))
        row = keep[:, np.newaxis]
        means.append(sum(errors[row, picks[-1][:, :, k]] for k in range(RUNS)) / RUNS)
        runs.append(np.stack([errors, *(counts[key] for key in COUNTS)])[:, keep])
    every = np.concatenate(means)
    least = every.min(axis=0)
    at = (every * (1 + TIED * rng.random(every.shape))).argmin(axis=0)
    tied = ((every <= least * (1 + TIED)).sum(axis=0) > 1).mean()
    numbers = np.concatenate(runs, axis=1)  # (numbers, settings, transcripts)
    size = numbers.shape[2]
    first = np.concatenate(picks)[at, range(DRAWS)]
    later = rng.integers(size, size=(DRAWS, again or size))
    fresh = _means(numbers, at, later)
    # of equally good settings, the least mean is printed
    printed = replace(_means(numbers, at, first), errors=least)
    return Law(printed, fresh, float(tied), len(every))


def _means(numbers: np.ndarray, at: np.ndarray, picked: np.ndarray) -> Means:
    """Means of errors and counts (K, S, T) at settings (D) over transcripts (D, R)."""
    taken = np.ascontiguousarray(numbers[:, at[:, np.newaxis], picked])
    errors, *counts = taken.mean(axis=2)
    return Means(errors, dict(zip(COUNTS, counts, strict=True)), numbers.shape[2])


def by_passes(rows: pd.DataFrame) -> list[Errors]:
    """``arrays`` for each number of passes."""
    return [arrays(part) for _, part in rows.groupby("passes", sort=True)]


def arrays(part: pd.DataFrame) -> Errors:
    """Errors and counts, (settings, transcripts); infinity for runs that diverged."""
    keys = ["step", "clip"]
    ordered = part.sort_values([*keys, "transcript"])
    shape = (-1, ordered["transcript"].nunique())
    lost = ordered["status"].to_numpy() != "ok"
    errors = np.where(lost, np.inf, ordered["relative_error"].to_numpy())
    counts = {name: ordered[name].to_numpy(float).reshape(shape) for name in COUNTS}
    return errors.reshape(shape), counts


def quantile_columns() -> list[str]:
    """Columns of a table that hold a law."""
    return [f"q{level:g}" for level in LEVELS]
