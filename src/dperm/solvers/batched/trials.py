"""Trials of a solver on a problem in memory: calibrate, tune a grid, run fresh seeds.

The pipeline runs a paper's grids unit by unit and stores them. Sweeps use this module,
which does the same in memory, with the same calibration and the same engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

from dperm.privacy.calibration import Calibration, calibrate
from dperm.privacy.events import Ledger
from dperm.privacy.noise import seeds_of as seeds_of
from dperm.problems.problem import Problem
from dperm.solvers.batched import BatchedSettings
from dperm.solvers.batched.engine import run_batched

IN_KEYS = "names"  # serves tuning, sweeps and figures
POINT = ("step", "clip", "passes")
KEPT_POINTS = 16  # points of a coarse grid that are kept


class DivergedError(ValueError):
    """No setting of a grid ended at a finite objective."""


Point = Mapping[str, float]  # the values of ``POINT``


def noise(
    problem: Problem,
    module: ModuleType,
    options: Any,
    passes: float,
    calibration: str,
) -> Calibration:
    """The least noise with which the passes cost at most the problem's target.

    Its ledger takes as public what the solver and the problem declare as given.

    Raises UnreachableTargetError if no noise reaches the target.
    """
    count = module.steps(problem, passes, options)

    def ledger(noise: float) -> Ledger:
        """The releases at a noise multiplier, with what is taken as public."""
        releases: Ledger = module.ledger(
            problem, count, noise, options, calibration
        )
        return releases.assuming(*problem.given)

    return calibrate(ledger, problem.epsilon, problem.delta, calibration)


def batched(
    step: np.ndarray, clip: np.ndarray, calibration: Calibration
) -> BatchedSettings:
    """Settings under calibrated noise; step and clip (L,)."""
    return BatchedSettings(
        step, clip, calibration.noise_multiplier, calibration.calibration
    )


@dataclass(frozen=True)
class TunedRuns:
    """A chosen setting, and its results on seeds that were not used to choose it."""

    point: dict[str, float]  #: step, clip and passes
    noise: Calibration
    objective: np.ndarray  #: shape (fresh,)


@dataclass(frozen=True, eq=False)
class Trials:
    """A solver on a problem under one calibration."""

    problem: Problem
    module: ModuleType  #: of the solver
    options: Any  #: the solver's
    calibration: (
        str  #: name of a calibration, such as ``published`` or ``tight``
    )

    @cached_property
    def noise(self) -> Callable[[float], Calibration]:
        """The noise for a number of passes, calibrated once per number."""
        arguments = (self.problem, self.module, self.options)
        calibration = self.calibration  # the function has no reference to self
        return cache(lambda passes: noise(*arguments, passes, calibration))

    def best(
        self,
        points: Iterable[Point],
        seeds: Sequence[int],
        count: int = KEPT_POINTS,
    ) -> list[dict[str, float]]:
        """The ``count`` points of a grid of least mean objective over the seeds.

        Points with equally many passes run together, on common random numbers. Ties go
        to the smaller step, then the smaller clip, then fewer passes.

        Raises DivergedError if every point diverged.
        """
        table = pd.DataFrame(points, dtype=float)[[*POINT]]
        for passes, rows in table.groupby("passes"):
            step = rows["step"].to_numpy()
            clip = rows["clip"].to_numpy()
            ended = self._ended(
                batched(step, clip, self.noise(passes)), passes, seeds
            )
            table.loc[rows.index, "mean"] = ended.mean(axis=0)
        table = table[np.isfinite(table["mean"])].sort_values(["mean", *POINT])
        if table.empty:
            name = self.problem.name
            raise DivergedError(
                f"problem {name}: every setting of the grid diverged"
            )
        settings: list[dict[str, float]] = (
            table[[*POINT]].head(count).to_dict("records")
        )
        return settings

    def fresh(self, point: Point, seeds: Sequence[int]) -> np.ndarray:
        """Final objective of one setting, run alone on each seed; (len(seeds),)."""
        step, clip = (np.full(1, point[key]) for key in ("step", "clip"))
        side = batched(step, clip, self.noise(point["passes"]))
        return self._ended(side, point["passes"], seeds)[:, 0]

    def tried(
        self, points: Iterable[Point], seed: int, counts: tuple[int, int]
    ) -> TunedRuns:
        """Choose from a grid on some seeds, and run the choice on others.

        All seeds are derived from one; ``counts`` are those of tuning seeds and of
        fresh seeds.

        Raises DivergedError if every point diverged.
        """
        tuning_seeds, later = counts
        seeds = seeds_of(seed, tuning_seeds + later)
        best = self.best(points, seeds[:tuning_seeds])[0]
        return TunedRuns(
            best,
            self.noise(best["passes"]),
            self.fresh(best, seeds[tuning_seeds:]),
        )

    def refined(
        self,
        coarse: Iterable[Point],
        finer: Iterable[Mapping[str, float]],
        seed: int,
        counts: tuple[int, int],
    ) -> TunedRuns:
        """As ``tried``, on the settings around the best of a coarse grid.

        The coarse grid is run on one seed. Its best points run again on all tuning
        seeds, because the best of hundreds on one seed is best partly by chance.
        ``finer`` holds factors for the best step and clip.
        """
        near = self.best(self.best(coarse, [seed]), seeds_of(seed, counts[0]))[
            0
        ]
        around = [
            near | {key: near[key] * factors[key] for key in factors}
            for factors in finer
        ]
        return self.tried(around, seed, counts)

    def _ended(
        self, side: BatchedSettings, passes: float, seeds: Sequence[int]
    ) -> np.ndarray:
        """Final objectives, infinite where one diverged, shape (len(seeds), L)."""
        count = self.module.steps(self.problem, passes, self.options)
        arguments = (self.module, self.options, self.problem, side, [count])
        ends = [run_batched(*arguments, int(seed))[-1] for seed in seeds]
        return np.array(
            [np.where(end.diverged, np.inf, end.objective) for end in ends]
        )
