"""Racing: a setting that cannot be chosen any more is not run to the end.

First come all settings in one replicate, then the best of these in all others, then the
rest, replicate by replicate. The setting with the least mean objective over all
replicates is chosen. A lane's numbers depend on its setting and seed alone, so those of
what is left are the whole grid's. In the table a missing replicate is a row with the
status ``cannot win`` and the reason, which is one of three:

- Certainty. No objective is below the minimum. So a setting whose sum over the
  replicates it has, with the minimum for those it has not, exceeds the sum of another
  that has them all is beaten whatever would come.
- Chance. After two replicates the mean excess of a setting over the best, on the same
  draws, is compared to its standard deviation. Two replicates say little of that, so
  it is pooled, relative to the excess, over the settings whose excess is nearest: in
  this race, and in all of the tuning. The largest of these two and of the setting's own
  counts. The setting stops above ``MULTIPLE`` of it, if the chance of winning after
  all is at most ``ERROR`` over all settings of the tuning. That chance is one of a
  model: excesses are normal, neighbours have one relative variance, and their number
  is its degrees of freedom. Neighbours share draws, so that there are fewer, which is
  what the multiple makes up for; docs/performance.md has what whole grids say of it.
- A tie at w = 0. Whether a proximal step leaves 0 depends on the clip and the noise,
  not on the step size. So of the settings of one clip that ended at 0 twice the least
  step, which ties would choose, runs for all; if it leaves 0 later, all do run.
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

LEADERS = 16  # settings of the first replicate that are run in all
PAIR = 2  # replicates after which settings may stop by chance
POOLED = 32  # settings whose squared relative gaps have one mean, at least
MULTIPLE = 20.0  # of the pooled standard deviation, whose law has heavy tails
ERROR = 1e-6  # chance that a tuning loses a winner, all settings together
NEAR = 1e-4  # relative to the best: what is as near runs to the end
CANNOT_WIN = "cannot win"
_ROUNDING = 1e-9  # relative: sums are not compared to their last digits


class Race:
    """One calibration and number of passes.

    Parameters
    ----------
    units : list of Unit
        One for each replicate, with the same points.
    floor : float
        No objective is below it.

    Attributes
    ----------
    objective : ndarray, shape (replicates, L)
        Infinite where a lane diverged, NaN where it did not run.
    at_zero : ndarray of bool, shape (replicates, L)
        Lanes that ended at w = 0.
    stopped : ndarray of str, shape (L,)
        Why a setting does not run on, by chance or as a tie; else empty.
    like : ndarray of int, shape (L,)
        The setting that runs for it.
    """

    def __init__(self, units: list[Unit], floor: float):
        self.units, self.floor = units, floor
        self.objective = np.full((len(units), len(units[0].points)), np.nan)
        self.at_zero = np.zeros(self.objective.shape, dtype=bool)
        self.like = np.arange(self.objective.shape[1])
        self.stopped = np.full(len(self.like), "", dtype=object)

    @property
    def sums(self) -> np.ndarray:
        """The sum of each setting, infinite without every replicate; shape (L,)."""
        sums: np.ndarray = self.objective.sum(axis=0)
        return np.where(np.isnan(sums), np.inf, sums)

    @property
    def best(self) -> float:
        """The least sum of a setting that has every replicate."""
        return float(self.sums.min())

    @property
    def bounds(self) -> np.ndarray:
        """What the sum of each setting is at least, shape (L,)."""
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
        """Replicates and mask of settings of one turn, of as many as replicates + 2."""
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
        """The unit of a replicate with some of its settings."""
        whole = self.units[replicate]
        points = [whole.points[place] for place in np.flatnonzero(mask)]
        return replace(whole, points=points)

    def record(self, replicate: int, mask: np.ndarray, table: pd.DataFrame) -> None:
        """Take in the rows of a unit; what diverged is never chosen."""
        ok = (table["status"] == "ok").to_numpy()
        value = np.where(ok, table["objective"].to_numpy(dtype=float), np.inf)
        self.objective[replicate, mask] = value
        self.at_zero[replicate, mask] = ok & (table["support_size"] == 0).to_numpy()

    # --- what two replicates tell -----------------------------------------------------

    def behind(self) -> pd.DataFrame:
        """Settings behind the best in the mean of two replicates, by their excess.

        Returns
        -------
        DataFrame
            place; excess, relative to the best; gap, an estimate of its relative
            variance; pooled, the mean of that over neighbours, and freedom, their
            number.
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
        """Of the settings of a clip that ended at 0 twice only the least step runs."""
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
        """Ties run after all where the setting that ran for them left 0."""
        left = ~self.at_zero[:, self.like].all(axis=0)
        self.stopped[left & (self.like != np.arange(len(self.like)))] = ""

    def left_out(self, job: Job) -> Iterator[pd.DataFrame]:
        """Rows of what was not run, with what makes it needless."""
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
    """Of every number: mean and size of a block of neighbours, so many at least."""
    blocks = np.arange(len(gaps)) * max(1, len(gaps) // size) // max(1, len(gaps))
    grouped = gaps.groupby(blocks)
    return pd.DataFrame({key: grouped.transform(key) for key in ("mean", "size")})


def winning(z: pd.Series, freedom: pd.Series, count: int) -> pd.Series:
    """The chance that settings win which are z deviations behind in two replicates.

    They win in R = ``count`` replicates only if the R - 2 others make up for the two.
    Whatever the excess is expected to be, that takes a normal number of mean 0, which
    compares the two with the others, to exceed z sqrt(2 R / (R - 2)) times its
    deviation, and that for one of the settings that may have led.
    """
    return LEADERS * stdtr(freedom, -z * math.sqrt(2 * count / (count - PAIR)))


def stop_by_chance(races: list[Race]) -> None:
    """Stop, in all races of a tuning, what two replicates put too far behind."""
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
    """The tables of all units, with rows that say so for what could not win.

    Parameters
    ----------
    units : iterable of Unit
        Those of a calibration and number of passes one after the other.
    solve : callable
        Gives the rows of units, in their order.
    exact : bool
        Nothing stops by chance or as a tie.
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
    """The race that a paper's ``race`` names: by default, ``exact``, or none."""
    return partial(raced, exact=how == "exact") if how else None
