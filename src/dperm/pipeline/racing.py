"""Racing: a setting that can no longer be chosen is not run to the end.

First all settings run in one replicate, then the best of these in all others, then the
rest, replicate by replicate. The setting with the least mean objective over all
replicates is chosen. A lane's numbers depend on its setting and seed alone, so the
lanes that run give the same numbers as in the whole grid. In the table a missing
replicate is a row with the status ``cannot win`` and one of three reasons:

- Certainty. No objective is below the minimum. A lower bound of a setting's sum takes
  the minimum for its missing replicates. If that bound exceeds the sum of another
  setting that has all replicates, the setting is beaten whatever would come.
- Chance. After two replicates the mean excess of a setting over the best, on the same
  draws, is compared with its standard deviation. Two replicates estimate that poorly,
  so it is pooled, relative to the excess, over the settings whose excess is nearest:
  once in this race and once in the whole tuning. The largest of these two and of the
  setting's own estimate counts. The setting stops above ``MULTIPLE`` of it, if the
  chance of winning after all is at most ``ERROR`` over all settings of the tuning. This
  chance assumes a model: excesses are normal, neighbours have one relative variance,
  and their number is its degrees of freedom. Neighbours share draws, so the true number
  is smaller; ``MULTIPLE`` compensates for this. docs/performance.md compares the
  result with whole grids.
- A tie at w = 0. Whether a proximal step leaves 0 depends on the clip and the noise,
  not on the step size. Of the settings of one clip that ended at 0 twice, only the one
  with the least step, which ties would choose, runs on. If it leaves 0 later, all run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import groupby

import numpy as np
import pandas as pd
from scipy.special import stdtr

from dperm.core.experiment.tune import Solve
from dperm.core.experiment.unit import Job, Unit, skipped

LEADERS = 16  # best settings of the first replicate, which run in all replicates
PAIR = 2  # replicates after which settings may stop by chance
POOLED = 32  # least number of settings that share one mean squared relative gap
MULTIPLE = 20.0  # of the pooled standard deviation, whose law has heavy tails
ERROR = 1e-6  # chance that a tuning loses a winner, all settings together
NEAR = 1e-4  # relative excess over the best up to which settings run to the end
CANNOT_WIN = "cannot win"
_ROUNDING = 1e-9  # relative: sums are not compared to their last digits


class Race:
    """The race of one calibration and number of passes.

    Parameters
    ----------
    units : list of Unit
        One for each replicate, with the same points.
    floor : float
        Lower bound of all objectives.

    Attributes
    ----------
    objective : ndarray, shape (replicates, L)
        Infinite where a lane diverged, NaN where it did not run.
    at_zero : ndarray of bool, shape (replicates, L)
        Lanes that ended at w = 0.
    stopped : ndarray of str, shape (L,)
        Reason why a setting was stopped, by chance or as a tie; else empty.
    like : ndarray of int, shape (L,)
        The setting that runs in its place; itself if it is no tie.
    """

    def __init__(self, units: list[Unit], floor: float):
        self.units, self.floor = units, floor
        self.objective = np.full((len(units), len(units[0].points)), np.nan)
        self.at_zero = np.zeros(self.objective.shape, dtype=bool)
        self.like = np.arange(self.objective.shape[1])
        self.stopped = np.full(len(self.like), "", dtype=object)

    @property
    def sums(self) -> np.ndarray:
        """The sum of each setting, shape (L,); infinite if a replicate is missing."""
        sums: np.ndarray = self.objective.sum(axis=0)
        return np.where(np.isnan(sums), np.inf, sums)

    @property
    def best(self) -> float:
        """The least sum of a setting that has every replicate."""
        return float(self.sums.min())

    @property
    def bounds(self) -> np.ndarray:
        """Lower bounds of the sums of the settings, shape (L,)."""
        return np.where(np.isnan(self.objective), self.floor, self.objective).sum(
            axis=0
        )

    @property
    def alive(self) -> np.ndarray:
        """Mask of the settings that may still be chosen, shape (L,)."""
        best = self.best
        alive: np.ndarray = self.bounds <= best + _ROUNDING * abs(best)
        return alive & (self.stopped == "")

    def runs(self, turn: int) -> Iterator[tuple[int, np.ndarray]]:
        """Replicates and masks of settings in one turn, of replicates + 2 turns."""
        everything = np.ones(len(self.like), dtype=bool)
        if turn == 0:
            yield 0, everything
        elif turn == 1:
            leaders = np.zeros_like(everything)
            leaders[np.argsort(self.objective[0], kind="stable")[:LEADERS]] = True
            yield from ((k, leaders) for k in range(1, len(self.units)))
        elif turn <= len(self.units):
            yield from self._open([turn - 1])
        else:
            self._reopen()
            yield from self._open(range(PAIR, len(self.units)))

    def _open(self, replicates: Iterable[int]) -> Iterator[tuple[int, np.ndarray]]:
        alive = self.alive
        for replicate in replicates:
            mask = alive & np.isnan(self.objective[replicate])
            if mask.any():
                yield replicate, mask

    def unit(self, replicate: int, mask: np.ndarray) -> Unit:
        """The unit of a replicate, restricted to some settings."""
        whole = self.units[replicate]
        points = [whole.points[place] for place in np.flatnonzero(mask)]
        return replace(whole, points=points)

    def record(self, replicate: int, mask: np.ndarray, table: pd.DataFrame) -> None:
        """Record the rows of a unit; a diverged lane is never chosen."""
        ok = (table["status"] == "ok").to_numpy()
        value = np.where(ok, table["objective"].to_numpy(dtype=float), np.inf)
        self.objective[replicate, mask] = value
        self.at_zero[replicate, mask] = ok & (table["support_size"] == 0).to_numpy()

    # --- after two replicates ---------------------------------------------------------

    def behind(self) -> pd.DataFrame:
        """Settings behind the best in the mean of two replicates, by their excess.

        Returns
        -------
        DataFrame
            place; excess, relative to the best; gap, an estimate of its relative
            variance; pooled, the mean of gap over neighbours; freedom, their number.
        """
        pair = self.objective[:PAIR]
        best = pair[:, [self.sums.argmin()]] if self.best < math.inf else np.nan
        with np.errstate(invalid="ignore", divide="ignore"):  # diverged, or the best
            excess = pair - best
            mean = excess.mean(axis=0)
            gap = excess.var(axis=0, ddof=1) / mean**2
        found = pd.DataFrame({"excess": mean / np.mean(best), "gap": gap})
        found = found[np.isfinite(mean) & (mean > 0)].rename_axis("place").reset_index()
        found = found.sort_values("excess", kind="stable", ignore_index=True)
        pooled = _pooled(found["gap"], POOLED)
        return found.assign(pooled=pooled["mean"], freedom=pooled["size"])

    def stop_ties(self) -> None:
        """Stop settings that ended at 0 twice, except the least step of every clip."""
        resting = self.at_zero[:PAIR].all(axis=0) & (self.stopped == "")
        first: dict[float, int] = {}
        points = self.units[0].points
        places: list[int] = np.flatnonzero(resting).tolist()
        for place in sorted(places, key=lambda place: points[place]["step"]):
            like = self.like[place] = first.setdefault(points[place]["clip"], place)
            if like != place:
                step = points[like]["step"]
                self.stopped[place] = f"at w = 0 as step {step:.9g} in every replicate"

    def _reopen(self) -> None:
        """Reopen ties if the setting that ran in their place left 0."""
        left = ~self.at_zero[:, self.like].all(axis=0)
        self.stopped[left & (self.like != np.arange(len(self.like)))] = ""

    def left_out(self, job: Job) -> Iterator[pd.DataFrame]:
        """Rows of the lanes that were not run, with the reasons."""
        count, least = len(self.units), self.best / len(self.units)
        bounds = [
            f"mean objective at least {bound / count:.9g}, the best {least:.9g}"
            for bound in self.bounds
        ]
        reasons = np.where(self.stopped == "", bounds, self.stopped)
        for replicate, mask in enumerate(np.isnan(self.objective)):
            if mask.any():
                unit = self.unit(replicate, mask)
                yield skipped(job, unit, CANNOT_WIN, reasons[mask].tolist())


def _pooled(gaps: pd.Series, size: int) -> pd.DataFrame:
    """Mean and size of every number's block of neighbours; ``size`` is the least."""
    blocks = np.arange(len(gaps)) * max(1, len(gaps) // size) // max(1, len(gaps))
    grouped = gaps.groupby(blocks)
    return pd.DataFrame({key: grouped.transform(key) for key in ("mean", "size")})


def winning(z: pd.Series, freedom: pd.Series, count: int) -> pd.Series:
    """Chance that settings z deviations behind after two replicates still win.

    They win in R = ``count`` replicates only if the R - 2 others make up for the two.
    Consider the normal number of mean 0 that compares the two with the others. Whatever
    the expected excess, it must exceed z sqrt(2 R / (R - 2)) times its deviation, for
    one of the ``LEADERS`` that may have led.
    """
    return LEADERS * stdtr(freedom, -z * math.sqrt(2 * count / (count - PAIR)))


def stop_by_chance(races: list[Race]) -> None:
    """Stop settings that are too far behind after two replicates, in all races."""
    count, settings = len(races[0].units), sum(len(race.like) for race in races)
    found = pd.concat([race.behind().assign(race=k) for k, race in enumerate(races)])
    if found.empty:
        return
    found = found.sort_values("excess", kind="stable", ignore_index=True)
    everywhere = _pooled(found["gap"], POOLED * len(races))["mean"]
    variance = np.maximum(found[["gap", "pooled"]].max(axis=1), everywhere)
    with np.errstate(divide="ignore"):
        z = 1 / np.sqrt(variance)
    chance = winning(z, found["freedom"], count)
    is_out = (z > MULTIPLE) & (chance <= ERROR / settings) & (found["excess"] > NEAR)
    for row in found.assign(z=z, chance=chance)[is_out].itertuples():
        races[row.race].stopped[row.place] = (
            f"{row.z:.3g} standard deviations above the best in two replicates, "
            f"chance of winning at most {row.chance:.1g}"
        )


def raced(
    job: Job, units: Iterable[Unit], solve: Solve, exact: bool = False
) -> Iterator[pd.DataFrame]:
    """Yield the tables of all units, then rows of the lanes that could not win.

    Parameters
    ----------
    units : iterable of Unit
        Units of one calibration and number of passes must be adjacent.
    solve : callable
        Returns the rows of units, in their order.
    exact : bool
        Whether no setting stops by chance or as a tie.
    """
    floor = job.optimum.value - abs(job.optimum.gap)
    by_kind = groupby(units, lambda unit: (unit.calibration.calibration, unit.passes))
    races = [Race(list(group), floor) for _, group in by_kind]
    count = max(len(race.units) for race in races)
    for turn in range(count + 2):
        if turn == PAIR + 1 <= count and not exact:
            stop_by_chance(races)
            for race in races:
                race.stop_ties()
        runs = [(race, at, mask) for race in races for at, mask in race.runs(turn)]
        tables = solve([race.unit(at, mask) for race, at, mask in runs])
        for (race, at, mask), table in zip(runs, tables, strict=True):
            race.record(at, mask, table)
            yield table
    for race in races:
        yield from race.left_out(job)


def chosen(how: bool | str) -> Callable[..., Iterator[pd.DataFrame]] | None:
    """The race of a paper's ``race``: true, ``exact``, or None for false."""
    return partial(raced, exact=how == "exact") if how else None
