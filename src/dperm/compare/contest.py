"""One method on one problem: tuned in four ways at every epsilon, then run afresh.

``default`` uses one setting for all problems. ``ten`` and ``grid`` take the setting
with the least tuning mean, of ten settings drawn from the grid and of the whole grid.
As in the papers, this tuning costs nothing. ``paid`` chooses privately, within the
target: a logarithmic number of runs with settings drawn from the grid, each with a
noisy score, of which the best is published (``accountants.private_choice``). The grids
are the same for every problem. (The rows contain more than the price covers: exact
errors, and the number of runs of a choice.)
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from dperm.accountants.private_choice import (
    calibrate_choice,
    choice_epsilon,
    drawn_runs,
)
from dperm.compare import TUNINGS
from dperm.compare.contestants import Contestant, Job, Setting
from dperm.compare.metrics import Split, clipped_loss, loss_bound
from dperm.core.calibrations import STRICT
from dperm.core.erm.problem import Problem
from dperm.core.lanes.trials import seeds_of
from dperm.core.privacy.calibration import UnreachableTargetError, calibrate, smallest
from dperm.core.privacy.ledger import Gaussian, Ledger, united
from dperm.core.privacy.mechanisms import gaussian, streams
from dperm.core.privacy.strict import gaussian_epsilon

DEFAULT = TUNINGS[0]
TEN = 10
FIRST, RACED = 1, 2  # seeds of all settings; further seeds of the best
KEPT = 4  # the race keeps a third of all settings, and at least four
SCORE = 0.2  # share of the target's mu with which a score is released
INNER = 0.6  # share of a choice's epsilon that one run has, roughly

Priced = tuple[float, float, tuple[str, ...]]  # noise multiplier, epsilon, given
Row = dict[str, Any]
T = TypeVar("T")
UNREACHABLE: Row = {
    "status": "unreachable",
    "reason": "no noise meets the target at any setting",
}


@dataclass(frozen=True)
class Seeds:
    """Seeds of a contest, each for one purpose."""

    tuning: list[int]
    fresh: list[int]
    held: list[int]
    drawing: int  #: draws the ten settings and the private choices

    @classmethod
    def of(cls, seed: int, fresh: int, held: int) -> Seeds:
        """Derive all seeds from one."""
        count = FIRST + RACED + fresh + held + 1
        drawn = seeds_of(seed, count)
        parts = np.cumsum([FIRST + RACED, fresh, held])
        return cls(
            drawn[: parts[0]],
            drawn[parts[0] : parts[1]],
            drawn[parts[1] : parts[2]],
            drawn[parts[2]],
        )


class Prices:
    """Noise multipliers of ledgers, each computed once."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def one(self, method: Contestant, setting: Setting) -> Priced | None:
        """Noise for a single run; None if no noise meets the target."""
        epsilon, delta = method.problem.epsilon, method.problem.delta
        key = ("one", epsilon, *shape(method, setting))
        if key not in self._known:
            ledger = partial(method.ledger, setting)
            try:
                at = calibrate(ledger, epsilon, delta, STRICT)
                given = method.public_information(at.ledger)
                self._known[key] = (at.noise_multiplier, at.true_epsilon, given)
            except UnreachableTargetError:
                self._known[key] = None
        return self._known[key]

    def paid(
        self, method: Contestant, grid: Sequence[Setting], epsilon: float
    ) -> tuple[list[Able], float, tuple[str, ...]]:
        """Settings that can be chosen from within epsilon.

        Also returns the cost of the choice and what that takes as public.
        """
        key = ("choice", epsilon, *(tuple(shape(method, one)) for one in grid))
        if key not in self._known:
            self._known[key] = _choice(method, grid, epsilon)
        priced, cost, given = self._known[key]
        able = zip(grid, priced, strict=True)
        return [Able(one, *at) for one, at in able if at is not None], cost, given


class Able(NamedTuple):
    """A setting that may be drawn for a run of a private choice."""

    setting: Setting
    noise_multiplier: float
    #: releases of such a run that the choice's price assumes, its score included
    ledger: Ledger


def _choice(
    method: Contestant, grid: Sequence[Setting], epsilon: float
) -> tuple[list[tuple[float, Ledger] | None], float, tuple[str, ...]]:
    """Noise and ledger of each setting, the choice's cost and its assumptions."""
    delta = method.problem.delta
    score = Ledger((score_event(epsilon, delta),))
    ways: dict[Any, Any] = {}
    for one in grid:
        ways.setdefault(
            repr(shape(method, one)),
            lambda noise, one=one: method.ledger(one, noise) + score,
        )
    found = calibrate_choice([*ways.values()], epsilon, delta)
    noise = dict(zip(ways, found, strict=True))
    able = {key: (z, ways[key](z)) for key, z in noise.items() if z is not None}
    if not able:
        return [None] * len(grid), math.inf, ()
    ledgers = [ledger for _, ledger in able.values()]
    cost = choice_epsilon(ledgers, delta)
    each = [able.get(repr(shape(method, one))) for one in grid]
    return each, cost, united(*map(method.public_information, ledgers))


def shape(method: Contestant, setting: Setting) -> list[Any]:
    """All that a ledger's price depends on: events in units of their sensitivities."""
    made = [method.ledger(setting, noise) for noise in (1.0, 2.0)]
    found: list[Any] = [method.public_information(made[0])]
    for event in (event for one in made for event in one.events):
        plain = {**event.to_dict(), "sensitivity": 1.0, "scale": event.noise_multiplier}
        found.append(tuple(sorted((k, str(v)) for k, v in plain.items())))
    return [method.problem.delta, *found]


@cache
def score_event(epsilon: float, delta: float) -> Gaussian:
    """The release of a score, in units of its sensitivity."""
    unit = "b / n, the replace-one change of a mean of losses in [0, b]"
    noise = smallest(lambda z: gaussian_epsilon(1 / z, delta), epsilon, 1e-6)
    return Gaussian(1.0, noise / SCORE, 1, unit, "a private choice's score")


class Drawn(NamedTuple):
    """A run of a private choice."""

    choice: int  #: index of its choice
    job: Job
    scored: int  #: seed of the score's noise, independent of the run's other draws


def draws(rng: np.random.Generator, able: Sequence[T]) -> Iterator[tuple[T, int, int]]:
    """The runs of a private choice: an element, and seeds of the run and its score."""
    for _ in range(drawn_runs(rng)):
        one = able[int(rng.integers(len(able)))]
        own, scored = (int(seed) for seed in rng.integers(2**62, size=2))
        yield one, own, scored


@dataclass
class Contest:
    """A method on a problem under declared scales."""

    base: Contestant
    optimum: float  #: F*
    grid: Sequence[Setting]
    default: Setting  #: the setting without tuning
    seeds: Seeds
    prices: Prices
    #: a held-out split, and the same method on its training part
    split: Split | None = None
    trained: Contestant | None = None

    def rows(self, epsilon: float, tunings: Sequence[str] = TUNINGS) -> Iterator[Row]:
        """Fresh runs for every tuning at one epsilon."""
        method = self.base.aiming(epsilon)
        self._known: dict[Any, list[Row]] = {}
        chosen: dict[str, Setting] = {}
        if "default" in tunings:
            chosen["default"] = self.default
        if {"ten", "grid"} & {*tunings}:
            chosen |= self._tuned(method)
        for tuning in tunings:
            if tuning == "paid":
                found = self._paid(epsilon)
            else:
                found = self._fresh(method, chosen.get(tuning))
            for row in found:
                yield {"epsilon": epsilon, "tuning": tuning, **row}

    # --- tuned without cost -----------------------------------------------------------

    def _tuned(self, method: Contestant) -> dict[str, Setting]:
        """The best of ten settings and the best of all, by a race."""
        rng = np.random.default_rng(self.seeds.drawing)
        some = rng.choice(len(self.grid), min(TEN, len(self.grid)), replace=False)
        runs = {
            k: priced
            for k, one in enumerate(self.grid)
            if (priced := self.prices.one(method, one)) is not None
        }
        if not runs:
            return {}
        first = self._errors(method, runs, list(runs), self.seeds.tuning[:FIRST])
        groups = {"ten": [k for k in some.tolist() if k in runs], "grid": list(runs)}
        ahead = {
            name: sorted(group, key=lambda k: first[k].mean())[
                : max(KEPT, len(group) // 3)
            ]
            for name, group in groups.items()
        }
        last = sorted({k for group in ahead.values() for k in group})
        later = self._errors(method, runs, last, self.seeds.tuning[FIRST:])
        means = {k: float(np.append(first[k], later[k]).mean()) for k in last}
        return {
            name: self.grid[min(group, key=means.__getitem__)]
            for name, group in ahead.items()
            if group
        }

    def _errors(
        self,
        method: Contestant,
        runs: dict[int, Priced],
        places: list[int],
        seeds: Sequence[int],
    ) -> dict[int, np.ndarray]:
        """Errors of settings of the grid, one per seed."""
        jobs = [Job(self.grid[k], runs[k][0], seed) for k in places for seed in seeds]
        found = self._relative(method.run(jobs, nothing)["objective"])
        return dict(zip(places, found.reshape(len(places), len(seeds)), strict=True))

    def _relative(self, objective: np.ndarray) -> np.ndarray:
        found = (objective - self.optimum) / self.optimum
        return np.where(np.isfinite(found), found, math.inf)

    # --- run afresh -------------------------------------------------------------------

    def _fresh(self, method: Contestant, setting: Setting | None) -> list[Row]:
        priced = None if setting is None else self.prices.one(method, setting)
        if setting is None or priced is None:
            return [UNREACHABLE]
        key = repr(sorted(setting.items()))
        if key in self._known:
            return self._known[key]
        jobs = [Job(setting, priced[0], seed) for seed in self.seeds.fresh]
        start = time.perf_counter()
        errors = self._relative(method.run(jobs, nothing)["objective"])
        seconds = (time.perf_counter() - start) / len(jobs)
        known = {
            "true_epsilon": priced[1],
            "given": "; ".join(priced[2]),
            "setting": setting_text(setting),
            "seconds": seconds,
        }
        self._known[key] = [
            {**known, "fresh": k, "run_seed": job.seed, "relative_error": float(error)}
            for k, (job, error) in enumerate(zip(jobs, errors, strict=True))
        ] + self._held(method.problem.epsilon, setting)
        return self._known[key]

    def _held(self, epsilon: float, setting: Setting) -> list[Row]:
        """Runs on the training part alone, measured by the held-out metric."""
        if self.split is None or self.trained is None:
            return []
        method, measure = self.trained.aiming(epsilon), self.split.measure
        priced = self.prices.one(method, setting)
        if priced is None:
            return []
        jobs = [Job(setting, priced[0], seed) for seed in self.seeds.held]
        tests = method.run(jobs, lambda W: {"test": measure(W)})["test"]
        return self._tested(tests, jobs)

    def _tested(self, tests: np.ndarray, jobs: Sequence[Job]) -> list[Row]:
        assert self.split is not None
        return [
            {
                "fresh": k,
                "run_seed": job.seed,
                "test_metric": self.split.metric,
                "test": float(value),
            }
            for k, (job, value) in enumerate(zip(jobs, tests, strict=True))
        ]

    # --- tuned inside the target ------------------------------------------------------

    def _paid(self, epsilon: float) -> list[Row]:
        """Independent choices, each with its own runs and scores."""
        method = self.base.aiming(INNER * epsilon)
        choices, cost = self._choices(method, epsilon, self.seeds.fresh)
        if not choices:
            return [UNREACHABLE]
        found = self._chosen(method, choices, cost, epsilon)
        if self.split is not None and self.trained is not None:
            other = self.trained.aiming(INNER * epsilon)
            again, cost = self._choices(other, epsilon, self.seeds.held)
            if again:
                found += self._chosen(other, again, cost, epsilon, self.split)
        return found

    def _choices(
        self, method: Contestant, epsilon: float, seeds: Sequence[int]
    ) -> tuple[list[Drawn], Priced]:
        """The runs of every choice, and the cost of one choice."""
        able, cost, given = self.prices.paid(method, self.grid, epsilon)
        found = []
        for number, seed in enumerate(seeds if able else ()):
            rng = np.random.default_rng([seed, 1])
            for (setting, noise, _), own, scored in draws(rng, able):
                found.append(Drawn(number, Job(setting, noise, own), scored))
        return found, (math.nan, cost, given)

    def _chosen(
        self,
        method: Contestant,
        choices: list[Drawn],
        cost: Priced,
        epsilon: float,
        test: Split | None = None,
    ) -> list[Row]:
        """The run of each choice with the best noisy score."""
        count, jobs = choices[-1].choice + 1, [drawn.job for drawn in choices]
        start = time.perf_counter()
        seen = run_and_score(method, choices, epsilon, test)
        seconds = (time.perf_counter() - start) / count
        errors = self._relative(seen["objective"])
        rows = []
        for number in range(count):
            own = [k for k, drawn in enumerate(choices) if drawn.choice == number]
            best = min(own, key=lambda k: seen["score"][k])
            if test is not None:
                rows += self._tested(seen["test"][[best]], [jobs[best]])
                continue
            rows.append(
                {
                    "fresh": number,
                    "run_seed": jobs[best].seed,
                    "runs": len(own),
                    "relative_error": float(errors[best]),
                    "seconds": seconds,
                    "true_epsilon": cost[1],
                    "given": "; ".join(cost[2]),
                    "setting": setting_text(jobs[best].setting),
                }
            )
        return rows


def contest_rows(
    on: Callable[[Problem], Contestant],
    problem: Problem,
    optimum: float,
    grid: Sequence[Setting],
    default: Setting,
    seeds: Seeds,
    epsilons: Sequence[float],
    tunings: Sequence[str] = TUNINGS,
    split: Split | None = None,
    work: float = math.inf,
    prices: Prices | None = None,
) -> list[Row]:
    """Rows of one method on one problem at every epsilon, or one row with the reason.

    Parameters
    ----------
    on : callable
        Applies the method to a problem, under the scales that it may know.
    optimum : float
        F*.
    grid, default, seeds, prices
        As for ``Contest``.
    split : Split, optional
        For held-out metrics.
    work : float
        Settings that read more entries of the data are left out; the default is
        shortened.
    """
    method = on(problem)
    reason = method.obstacle()
    if reason:
        return [{"status": "gap", "reason": reason}]
    settings = [setting for setting in grid if method.work(setting) <= work]
    shortened = method.within(default, work)
    if not settings or shortened is None:
        return [
            {
                "status": "gap",
                "reason": f"a run on {problem.n} x {problem.p} takes "
                "longer than the rule on work allows",
            }
        ]
    trained = None if split is None else on(split.train)
    contest = Contest(
        method, optimum, settings, shortened, seeds, prices or Prices(), split, trained
    )
    return [row for epsilon in epsilons for row in contest.rows(epsilon, tunings)]


def nothing(W: np.ndarray) -> dict[str, np.ndarray]:
    """Measure nothing besides the objective."""
    return {}


def run_and_score(
    method: Contestant, choices: Sequence[Drawn], epsilon: float, test: Split | None
) -> dict[str, np.ndarray]:
    """Releases of runs of choices within epsilon, and measures.

    ``loss`` is the clipped loss with noise, ``score`` that and the penalty.
    """
    problem = method.problem
    most = loss_bound(problem)
    measure = partial(_scored, problem, most, test)
    seen = method.run([drawn.job for drawn in choices], measure)
    scale = score_event(epsilon, problem.delta).scale * most / problem.n
    noise = [gaussian(streams(drawn.scored).noise, ()) for drawn in choices]
    loss = seen["loss"] + scale * np.array(noise)
    return {**seen, "loss": loss, "score": _score(loss, seen.pop("penalty"))}


def _score(loss: np.ndarray, penalty: np.ndarray) -> np.ndarray:
    """Noisy losses with the penalties of released weights, which cost nothing more.

    A penalty from 2^53 on would round the noise away, were it added before the noise.
    Scores must have an order: one that is no number is infinite.
    """
    score = loss + penalty
    return np.where(np.isnan(score), np.inf, score)


def _scored(
    problem: Problem, most: float, split: Split | None, W: np.ndarray
) -> dict[str, np.ndarray]:
    """Clipped loss of a run before its noise, and its penalty."""
    loss = clipped_loss(problem, most, W)
    found = {"loss": loss, "penalty": problem.penalty.value(W)}
    return found if split is None else found | {"test": split.measure(W)}


def setting_text(setting: Setting) -> str:
    """A setting as text."""
    return ", ".join(f"{key} {value:g}" for key, value in setting.items()) or DEFAULT
