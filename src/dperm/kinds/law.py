"""The law of what a tuning prints: the least, over settings, of means over five runs.

A printed mean of a tuned setting is no mean of that setting: it was chosen for being
small. So it is compared with its own law, drawn from many transcripts of all settings
near the optimum (``dperm.kinds.sweeps.tuning_law``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

RUNS = 5  # transcripts behind a printed mean
DRAWS = 4000
TIED = 0.01  # settings whose means are as near as this are chosen by chance
SEED = 20261121  # of the draws; no noise of a run depends on it
TAILS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25)
LEVELS = (*TAILS, 0.5, *(1 - level for level in reversed(TAILS)))
DRAWN = {"shared": False, "own": True}  # whether each setting has draws of its own
COUNTS = ("true_positives", "false_positives")


@dataclass(frozen=True)
class Law:
    """Draws of what a tuning prints.

    Attributes
    ----------
    errors : ndarray, shape (D,)
    counts : dict of ndarray, shape (D,)
        Mean numbers of the chosen setting.
    tied : float
        Share of draws in which another setting is as good, to ``TIED``.
    settings : int
        How many compete.
    transcripts : int
    """

    errors: np.ndarray
    counts: dict[str, np.ndarray]
    tied: float
    settings: int
    transcripts: int

    @property
    def quantiles(self) -> np.ndarray:
        """At ``LEVELS``, as wide as a law must be that is known from few transcripts.

        The centre of a mean over ``RUNS`` of T transcripts is itself uncertain, by
        RUNS / T of the variance of that mean; spread about the median in logarithms.
        """
        logs = np.log(np.quantile(self.errors, LEVELS))
        middle = logs[len(LEVELS) // 2]
        wider = np.sqrt(1 + RUNS / self.transcripts)
        return np.exp(middle + wider * (logs - middle))


def law(rows: pd.DataFrame, most: int | None = None, own: bool = False) -> Law:
    """Draw the law from the transcripts of settings.

    Parameters
    ----------
    rows : DataFrame
        As the sweep leaves them, of one noise factor.
    most : int
        Settings that compete, the best by all transcripts; None for all.
    own : bool
        Whether every setting has transcripts of its own. As a grid is run here, and by
        default, all settings of one number of passes share their draws.
    """
    rng = np.random.default_rng(SEED)
    tables = [arrays(part) for _, part in rows.groupby("passes", sort=True)]
    kept = _best([errors.mean(axis=1) for errors, _ in tables], most)
    means, counts = [], []
    for (errors, numbers), keep in zip(tables, kept, strict=True):
        if not len(keep):
            continue
        picked = _picked(rng, errors.shape[1], len(keep) if own else 1)
        means.append(_means(errors[keep], picked))
        counts.append({name: _means(each[keep], picked) for name, each in
                       numbers.items()})  # fmt: skip
    every = np.concatenate(means)
    least = every.min(axis=0)
    at = (every * (1 + TIED * rng.random(every.shape))).argmin(axis=0)
    joined = {name: np.concatenate([each[name] for each in counts])[at, range(DRAWS)]
              for name in COUNTS}  # fmt: skip
    tied = ((every <= least * (1 + TIED)).sum(axis=0) > 1).mean()
    size = min(errors.shape[1] for errors, _ in tables)
    return Law(least, joined, float(tied), len(every), size)


def arrays(part: pd.DataFrame) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Errors and counts, (settings, transcripts); infinity for what diverged."""
    keys = ["step", "clip"]
    ordered = part.sort_values([*keys, "transcript"])
    shape = (-1, ordered["transcript"].nunique())
    lost = ordered["status"].to_numpy() != "ok"
    errors = np.where(lost, np.inf, ordered["relative_error"].to_numpy())
    counts = {name: ordered[name].to_numpy(float).reshape(shape) for name in COUNTS}
    return errors.reshape(shape), counts


def _best(means: list[np.ndarray], most: int | None) -> list[np.ndarray]:
    """Of each table the rows that are among the best of all."""
    every = np.sort(np.concatenate(means))
    limit = every[-1] if most is None else every[min(most, len(every)) - 1]
    return [np.flatnonzero(table <= limit) for table in means]


def _picked(rng: np.random.Generator, size: int, sets: int) -> np.ndarray:
    """Which transcripts are drawn, shape (sets, D, RUNS)."""
    return rng.integers(size, size=(sets, DRAWS, RUNS))


def _means(values: np.ndarray, picked: np.ndarray) -> np.ndarray:
    """Means over what was drawn, shape (settings, D)."""
    chosen = np.broadcast_to(picked, (len(values), *picked.shape[1:]))
    return np.stack([row[at].mean(axis=1) for row, at in
                     zip(values, chosen, strict=True)])  # fmt: skip


def quantile_columns() -> list[str]:
    """Columns of a table that hold a law."""
    return [f"q{level:g}" for level in LEVELS]
