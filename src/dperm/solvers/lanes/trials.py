"""Trials of a solver on a problem in memory: calibrate, tune a grid, run afresh.

What the pipeline does of a paper's runs, unit by unit and stored, a sweep does here at
once, with the same calibration and the same engine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from dperm.erm.problem import Problem
from dperm.privacy.calibration import Calibration, calibrate
from dperm.privacy.ledger import Ledger
from dperm.solvers.lanes import Lanes
from dperm.solvers.lanes.engine import run_lanes

Point = Mapping[str, float]  # passes, step, clip


def noise(
    problem: Problem, module: ModuleType, options: Any, passes: float, calibration: str
) -> Calibration:
    """The least noise with which so many passes cost the problem's target at most.

    Its ledger takes as public what the solver says and what the problem does.

    Raises
    ------
    UnreachableTargetError
        If no noise reaches it.
    """
    count = module.steps(problem, passes, options)

    def ledger(noise: float) -> Ledger:
        made: Ledger = module.ledger(problem, count, noise, options, calibration)
        return made.assuming(*problem.given)

    return calibrate(
        ledger,
        problem.epsilon,
        problem.delta,
        calibration,
    )


def lanes(step: np.ndarray, clip: np.ndarray, at: Calibration) -> Lanes:
    """Settings side by side under calibrated noise; step and clip (L,)."""
    return Lanes(step, clip, at.noise_multiplier, at.calibration)


def tuned(
    problem: Problem,
    module: ModuleType,
    options: Any,
    points: Iterable[Point],
    seeds: Sequence[int],
    calibration: str,
) -> dict[str, float]:
    """The point of a grid with the least mean objective over the seeds.

    Points with equally many passes run side by side, on common random numbers; ties go
    to the smaller step, then the smaller clip, then fewer passes.

    Raises
    ------
    ValueError
        If every point diverged.
    """
    found: list[tuple[float, float, float, float]] = []
    for passes, rows in _by_passes(points).items():
        at = noise(problem, module, options, passes, calibration)
        step, clip = np.array(rows, dtype=float).T.copy()
        ended = _ended(problem, module, options, lanes(step, clip, at), passes, seeds)
        found += zip(ended.mean(axis=0).tolist(), step.tolist(), clip.tolist(),
                     [passes] * len(rows), strict=True)  # fmt: skip
    least, *best = min(found)
    if not math.isfinite(least):
        raise ValueError(f"problem {problem.name}: every setting of the grid diverged")
    return dict(zip(("step", "clip", "passes"), best, strict=True))


def fresh(
    problem: Problem,
    module: ModuleType,
    options: Any,
    point: Point,
    noise: Calibration,
    seeds: Sequence[int],
) -> np.ndarray:
    """Final objective of one setting, run alone on each seed; shape (len(seeds),)."""
    step, clip = (np.full(1, point[key]) for key in ("step", "clip"))
    side = lanes(step, clip, noise)
    return _ended(problem, module, options, side, point["passes"], seeds)[:, 0]


@dataclass(frozen=True)
class Tried:
    """A setting that was chosen, and how it did on seeds that did not choose it.

    Attributes
    ----------
    point : dict
        step, clip and passes.
    noise : Calibration
    objective : ndarray, shape (fresh,)
    """

    point: dict[str, float]
    noise: Calibration
    objective: np.ndarray


def tried(
    problem: Problem,
    module: ModuleType,
    options: Any,
    points: Iterable[Point],
    seed: int,
    counts: tuple[int, int],
    calibration: str,
) -> Tried:
    """Choose from a grid on some seeds, and run the choice on others.

    Parameters
    ----------
    problem, module, options, points, calibration
        As for ``tuned``.
    seed : int
        All others are made of it.
    counts : tuple of int
        How many seeds choose, and how many are fresh.

    Raises
    ------
    ValueError
        If every point diverged.
    """
    first, fresh_ones = counts
    made = np.random.SeedSequence(seed).generate_state(first + fresh_ones, np.uint64)
    seeds = made.tolist()
    best = tuned(problem, module, options, points, seeds[:first], calibration)
    at = noise(problem, module, options, best["passes"], calibration)
    return Tried(best, at, fresh(problem, module, options, best, at, seeds[first:]))


def refined(
    problem: Problem,
    module: ModuleType,
    options: Any,
    coarse: Iterable[Point],
    finer: Iterable[Mapping[str, float]],
    seed: int,
    counts: tuple[int, int],
    calibration: str,
) -> Tried:
    """As ``tried``, on the settings around the best of a coarse grid.

    Parameters
    ----------
    coarse : iterable of mapping
        Tried on one transcript.
    finer : iterable of mapping
        Multiples of its best step and clip.
    """
    near = tuned(problem, module, options, coarse, [seed], calibration)
    around = [near | {key: near[key] * at[key] for key in at} for at in finer]
    return tried(problem, module, options, around, seed, counts, calibration)


def _by_passes(points: Iterable[Point]) -> dict[float, list[tuple[float, float]]]:
    found: dict[float, list[tuple[float, float]]] = {}
    for point in points:
        found.setdefault(point["passes"], []).append((point["step"], point["clip"]))
    return found


def _ended(
    problem: Problem,
    module: ModuleType,
    options: Any,
    side: Lanes,
    passes: float,
    seeds: Sequence[int],
) -> np.ndarray:
    """Final objectives, infinite where a lane diverged, shape (len(seeds), L)."""
    count = module.steps(problem, passes, options)
    given = (module, options, problem, side, [count])
    ends = [run_lanes(*given, int(seed), _nothing)[-1] for seed in seeds]
    return np.array([np.where(end.diverged, np.inf, end.objective) for end in ends])


def _nothing(weights: np.ndarray) -> dict[str, np.ndarray]:
    """Nothing else is measured."""
    return {}
