"""Exact racing: a setting that cannot be chosen any more is not run to the end.

The setting with the least mean objective over all replicates is chosen, and no
objective is below the minimum. So a setting whose sum over the replicates it has, with
the minimum for those it has not, exceeds the sum of another that has them all is beaten
whatever would come: the choice is that of the whole grid. In the table its missing
replicates are rows with the status ``cannot win`` and the bound.

First come all settings in one replicate, then the best of these in all others, which
gives the sum to be beaten, then the rest, replicate by replicate. A lane's numbers
depend on its setting and seed alone, so they are those of the whole grid too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import groupby

import numpy as np
import pandas as pd

from dperm.core.experiment.unit import Job, Unit, skipped

LEADERS = 16  # settings of the first replicate that are run in all
CANNOT_WIN = "cannot win"
_ROUNDING = 1e-9  # relative: sums are not compared to their last digits

Solve = Callable[[list[Unit]], Iterator[pd.DataFrame]]


class Race:
    """One calibration and number of passes.

    Parameters
    ----------
    units : list of Unit
        One for each replicate, with the same points.
    floor : float
        No objective is below it.
    """

    def __init__(self, units: list[Unit], floor: float):
        self.units, self.floor = units, floor
        self.objective = np.full((len(units), len(units[0].points)), np.nan)

    @property
    def best(self) -> float:
        """The least sum of a setting that has every replicate."""
        sums = self.objective.sum(axis=0)
        return float(np.where(np.isnan(sums), np.inf, sums).min())

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
        return self.bounds <= best + _ROUNDING * abs(best)

    def runs(self, turn: int) -> Iterator[tuple[int, np.ndarray]]:
        """Replicates and mask of settings of one turn, of as many as replicates + 1."""
        everything = np.ones(len(self.units[0].points), dtype=bool)
        if turn == 0:
            yield 0, everything
        elif turn == 1:
            leaders = np.zeros_like(everything)
            leaders[np.argsort(self.objective[0], kind="stable")[:LEADERS]] = True
            yield from ((k, leaders) for k in range(1, len(self.units)))
        else:
            replicate = turn - 1
            mask = self.alive & np.isnan(self.objective[replicate])
            if mask.any():
                yield replicate, mask

    def unit(self, replicate: int, mask: np.ndarray) -> Unit:
        """The unit of a replicate with some of its settings."""
        whole = self.units[replicate]
        points = [whole.points[place] for place in np.flatnonzero(mask)]
        return replace(whole, points=points)

    def record(self, replicate: int, mask: np.ndarray, table: pd.DataFrame) -> None:
        """Take in the rows of a unit; what diverged is never chosen."""
        value = table["objective"].where(table["status"] == "ok", np.inf)
        self.objective[replicate, mask] = value.to_numpy(dtype=float)

    def left_out(self, job: Job) -> Iterator[pd.DataFrame]:
        """Rows of what was not run, with the bound that makes it needless."""
        count, least = len(self.units), self.best / len(self.units)
        for replicate, mask in enumerate(np.isnan(self.objective)):
            if mask.any():
                reasons = [
                    f"mean objective at least {bound / count:.9g}, the best {least:.9g}"
                    for bound in self.bounds[mask]
                ]
                yield skipped(job, self.unit(replicate, mask), CANNOT_WIN, reasons)


def raced(
    job: Job, units: Iterable[Unit], floor: float, solve: Solve
) -> Iterator[pd.DataFrame]:
    """The tables of all units, with rows that say so for what could not win.

    Parameters
    ----------
    job : Job
    units : iterable of Unit
        Those of a calibration and number of passes one after the other.
    floor : float
        No objective is below it: the minimum, less its certificate.
    solve : callable
        Gives the rows of units, in their order.
    """
    by_kind = groupby(units, lambda unit: (unit.calibration.calibration, unit.passes))
    races = [Race(list(group), floor) for _, group in by_kind]
    for turn in range(1 + max(len(race.units) for race in races)):
        runs = [(race, at, mask) for race in races for at, mask in race.runs(turn)]
        tables = solve([race.unit(at, mask) for race, at, mask in runs])
        for (race, at, mask), table in zip(runs, tables, strict=True):
            race.record(at, mask, table)
            yield table
    for race in races:
        yield from race.left_out(job)
