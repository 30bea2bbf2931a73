"""Positive controls: mechanisms that are broken on purpose, one slip each.

Each is a real solver with one thing wrong, and states the ledger of the right one. An
audit that lets one of them pass is worth nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator

from dperm.audit.lanes import LaneSubject, small_problem
from dperm.audit.registry import EPSILON, LOUD, choice, crowd, subjects
from dperm.audit.sequences import StreamSubject
from dperm.audit.subjects import Subject
from dperm.erm.problem import Problem
from dperm.privacy.ledger import Event, Ledger
from dperm.privacy.noisy_max import NoisyMax
from dperm.solvers.lanes import Lanes, dp_cd, dp_gcd, dp_sgd, dp_skgd
from dperm.solvers.streams.sources import Batch, Rows

Array = np.ndarray
Made = Callable[[], Subject]


@dataclass(frozen=True)
class Control:
    """A slip and the solver it is made in."""

    slip: str
    solver: str
    make: Made


def lane(
    module: ModuleType,
    options: Any = None,
    calibration: str = "strict",
    problem: Callable[[float], Problem] = small_problem,
    **changes: Any,
) -> Subject:
    """A subject that runs lanes, with something changed, and its loud step."""
    options = options or module.Options()
    name = module.__name__.rsplit(".", 1)[1]
    quiet, loud = (
        LaneSubject(
            name, module, options, calibration, steps,
            problem(epsilon), **changes,
        )
        for epsilon, steps in ((EPSILON, 4), (LOUD, 1))
    )  # fmt: skip
    quiet.loud = loud
    return quiet


def _narrow(epsilon: float) -> Problem:
    return small_problem(epsilon, p=2)


# --- streams that are no good ---------------------------------------------------------


class Located(Generator):
    """The scale passed as the location: no noise, only a constant."""

    def standard_normal(self, size: Any = None, *_: Any, **__: Any) -> Any:
        """The scale itself, in its own units."""
        return np.ones(() if size is None else size)


class Shared(Generator):
    """One number for all coordinates."""

    def standard_normal(self, size: Any = None, *_: Any, **__: Any) -> Any:
        """A constant vector, or matrix of constant rows."""
        shape = np.shape(np.empty(() if size is None else size))
        one = super().standard_normal((*shape[:-1], 1))
        return np.broadcast_to(one, shape).copy()


class Repeated(Generator):
    """The same numbers in every call: every step has the noise of the first."""

    def standard_normal(self, size: Any = None, *_: Any, **__: Any) -> Any:
        """What a fresh generator would draw first."""
        return Generator(PCG64(self.integers(1))).standard_normal(size)


def bent(run: Any, stream: Callable[[int], Generator]) -> Any:
    """A Run whose noise comes from another stream."""

    class Bent(run):
        def __init__(self, problem: Any, lanes: Any, streams: Any, *rest: Any):
            seed = int(streams.noise.integers(2**62))
            own = streams._replace(noise=stream(seed))
            super().__init__(problem, lanes, own, *rest)

    return Bent


def altered(run: Any, change: Callable[[Any], None]) -> Any:
    """A Run that is changed before its first step."""

    class Altered(run):
        def __init__(self, *given: Any):
            super().__init__(*given)
            change(self)

    return Altered


class Again(Rows):
    """Records that are handed out again: every batch starts at the first."""

    def take(self, count: int) -> Batch:
        """The first records, whatever was taken before."""
        self.taken = 0
        return super().take(count)


# --- what is changed in a run or in a ledger ------------------------------------------


def _half_noise(run: Any) -> None:
    run.scale = run.scale / 2


def _half_noise_sgd(run: Any) -> None:
    run.constants[:, 2] /= 2


def _no_noise(run: Any) -> None:
    run.scale = np.zeros_like(run.scale)


def _no_clip(run: Any) -> None:
    run.clip = np.full_like(run.clip, np.inf)


def _no_clip_sgd(run: Any) -> None:
    run.constants[:, 1] = np.inf


def _equal_clips(run: Any) -> None:
    p = run.problem.p
    run.share = np.full(p, 1 / np.sqrt(p))


class Forgetful(Lanes):
    """Settings whose noise forgets the 2 of every sensitivity."""

    def noise_scale(self, sensitivity: Array) -> Array:
        """The scale for half the sensitivity."""
        return super().noise_scale(sensitivity / 2)


def _without_two(run: Any) -> Any:
    """A Run that forgets the 2 of its sensitivity."""

    class Halved(run):
        def __init__(self, problem: Any, lanes: Any, *rest: Any):
            super().__init__(problem, Forgetful(**vars(lanes)), *rest)

    return Halved


def _each(change: Callable[[Any], Event]) -> Callable[[Ledger], Ledger]:
    return lambda ledger: Ledger(tuple(change(event) for event in ledger.events))


def _once(event: Any) -> Event:
    return replace(event, count=1)


def _half_sensitivity(event: Any) -> Event:
    return replace(event, sensitivity=event.sensitivity / 2)


def _half_selection(event: Any) -> Event:
    return _half_sensitivity(event) if isinstance(event, NoisyMax) else event


def _called_sound(event: Any) -> Event:
    return replace(event, sound=True) if isinstance(event, NoisyMax) else event


def _overlapping() -> Subject:
    sound = subjects("phased_sgd", "phased_sgd", {})[1]
    for subject in (sound, sound.loud):
        assert isinstance(subject, StreamSubject)
        subject.source = Again
    return sound


FULL = dp_skgd.Options(blocks=1)

CONTROLS = (
    Control(
        "half noise", "dp_cd", lambda: lane(dp_cd, kind=altered(dp_cd.Run, _half_noise))
    ),
    Control(
        "half noise",
        "dp_sgd",
        lambda: lane(dp_sgd, kind=altered(dp_sgd.Run, _half_noise_sgd)),
    ),
    Control(
        "no noise", "dp_cd", lambda: lane(dp_cd, kind=altered(dp_cd.Run, _no_noise))
    ),
    Control(
        "scale passed as location",
        "dp_cd",
        lambda: lane(dp_cd, kind=bent(dp_cd.Run, lambda seed: Located(PCG64(seed)))),
    ),
    Control(
        "clip skipped", "dp_cd", lambda: lane(dp_cd, kind=altered(dp_cd.Run, _no_clip))
    ),
    Control(
        "clip skipped",
        "dp_sgd",
        lambda: lane(dp_sgd, kind=altered(dp_sgd.Run, _no_clip_sgd)),
    ),
    Control(
        "sensitivity without its 2",
        "dp_skgd",
        lambda: lane(dp_skgd, FULL, kind=_without_two(dp_skgd.Run)),
    ),
    Control(
        "noisy max without its 2",
        "dp_gcd",
        lambda: lane(dp_gcd, problem=_narrow, claim=_each(_half_selection)),
    ),
    Control(
        "noise shared between coordinates",
        "dp_skgd",
        lambda: lane(
            dp_skgd, FULL, kind=bent(dp_skgd.Run, lambda seed: Shared(PCG64(seed)))
        ),
    ),
    Control(
        "noise shared between steps",
        "dp_cd",
        lambda: lane(dp_cd, kind=bent(dp_cd.Run, lambda seed: Repeated(PCG64(seed)))),
    ),
    Control(
        "seed reused",
        "dp_sgd",
        lambda: lane(dp_sgd, kind=bent(dp_sgd.Run, lambda seed: Generator(PCG64(4)))),
    ),
    Control("batches overlapping", "phased_sgd", _overlapping),
    Control(
        "composition counted once", "dp_cd", lambda: lane(dp_cd, claim=_each(_once))
    ),
    Control(
        "wrong neighbouring relation",
        "dp_sgd",
        lambda: lane(dp_sgd, claim=_each(_half_sensitivity)),
    ),
    Control(
        "selection noise inside an L1 rule",
        "dp_gcd",
        lambda: lane(
            dp_gcd,
            calibration="paper",
            problem=crowd,
            view=choice,
            claim=_each(_called_sound),
        ),
    ),
    Control(
        "unequal sensitivities under noisy max",
        "dp_gcd",
        lambda: lane(dp_gcd, problem=_narrow, kind=altered(dp_gcd.Run, _equal_clips)),
    ),
)
