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

from dperm.audit.lanes import LaneSubject, Shape
from dperm.audit.registry import EPSILON, LANES, LOUD, choice, crowd, subjects
from dperm.audit.sequences import StreamSubject
from dperm.audit.subjects import Subject
from dperm.core.calibrations import PAPER, STRICT
from dperm.core.lanes import Lanes, dp_cd, dp_gcd, dp_sgd, dp_skgd
from dperm.core.privacy.ledger import Event, Ledger
from dperm.core.privacy.noisy_max import NoisyMax
from dperm.solvers.lanes import dp_cd_priv
from dperm.solvers.streams.sources import Batch, Rows

Array = np.ndarray
Maker = Callable[[], Subject]


@dataclass(frozen=True)
class Control:
    """A slip and the solver it is made in."""

    slip: str
    solver: str
    make: Maker


def lane(
    module: ModuleType,
    options: Any = None,
    calibration: str = STRICT,
    shape: Shape | None = None,
    **changes: Any,
) -> Subject:
    """A subject that runs lanes, with something changed, and its loud step."""
    options = options or module.Options()
    name = module.__name__.rsplit(".", 1)[1]
    needs = LANES[name]
    quiet, loud = (
        LaneSubject(
            name, module, options, calibration, steps,
            shape or needs.shape, epsilon, **changes,
        )
        for epsilon, steps in ((EPSILON, needs.steps), (LOUD * EPSILON, 1))
    )  # fmt: skip
    quiet.loud = loud
    return quiet


def stream(name: str, which: int, change: Callable[[StreamSubject], None]) -> Subject:
    """A strict stream subject, with something changed, and its loud step."""
    strict = [s for s in subjects(name, name, {}) if s.calibration == STRICT]
    for subject in (strict[which], strict[which].loud):
        assert isinstance(subject, StreamSubject)
        change(subject)
    return strict[which]


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
            own = streams.replaced(noise=stream(seed))
            super().__init__(problem, lanes, own, *rest)

    return Bent


def altered(
    run: Any, change: Callable[[Any], None] | None = None, **values: Callable
) -> Any:
    """A Run that is changed before its first step; values, by name, of the run."""

    class Altered(run):
        def __init__(self, *given: Any):
            super().__init__(*given)
            self.__dict__.update({name: value(self) for name, value in values.items()})
            if change is not None:
                change(self)

    return Altered


class Again(Rows):
    """Records that are handed out again: every batch starts at the first."""

    def take(self, count: int) -> Batch:
        """The first records, whatever was taken before."""
        self.taken = 0
        return super().take(count)


# --- what is changed in a run or in a ledger ------------------------------------------


def _half_noise_sgd(run: Any) -> None:
    run.constants[:, 2] /= 2


def _equal_shares(run: Any) -> Array:
    p = run.problem.p
    return np.full(p, 1 / np.sqrt(p))


def _no_clip_sgd(run: Any) -> None:
    run.constants[:, 1] = np.inf


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


def _half_sensitivity(event: Any) -> Event:
    return replace(event, sensitivity=event.sensitivity / 2)


def _half_selection(event: Any) -> Event:
    return _half_sensitivity(event) if isinstance(event, NoisyMax) else event


def _one_less(event: Any) -> Event:
    return replace(event, count=max(event.count - 1, 1))


def _called_sound(event: Any) -> Event:
    return replace(event, sound=True) if isinstance(event, NoisyMax) else event


def _claiming(change: Callable[[Any], Event]) -> Callable[[StreamSubject], None]:
    def changed(subject: StreamSubject) -> None:
        if len(subject.ledger.events) == 1:
            subject.ledger = _each(change)(subject.ledger)

    return changed


def _shallow(subject: StreamSubject) -> None:
    """Half the noise from depth 3 of a tree on."""

    def halved(scale: Callable[[int, int, int], Array]) -> Any:
        return lambda t, depth, leaf: scale(t, depth, leaf) / (2 if depth >= 3 else 1)

    class Shallow(subject.kind):  # type: ignore[misc, name-defined]
        def __init__(self, *given: Any):
            super().__init__(*given)
            for part in self.parts:
                part.noise_scale = halved(part.noise_scale)

    subject.kind = Shallow


def _one_stream(run: Any) -> Any:
    """A Run that reads records by the stream of its noise."""

    class Sharing(run):
        def __init__(self, problem: Any, lanes: Any, streams: Any, *rest: Any):
            own = streams.replaced(sampling=streams.noise)
            super().__init__(problem, lanes, own, *rest)

    return Sharing


def _spending(run: Any) -> Any:
    """A Run that spends twice the share that its ledger states."""

    class Spending(run):
        def __init__(self, problem: Any, lanes: Any, own: Any, options: Any, *r: Any):
            options = replace(options, share=2 * options.share)
            super().__init__(problem, lanes, own, options, *r)

    return Spending


def _warm(run: Any) -> None:
    run.weights -= 0.01 * run.problem.gradient(np.zeros(run.problem.p))


def _by_gradient(run: Any) -> None:
    sizes = np.abs(run.problem.gradient(np.zeros(run.problem.p)))
    vars(run.sketch)["q"] = sizes / sizes.sum()


FULL = dp_skgd.Options(blocks=1)
IMPORTANCE = dp_skgd.Options(probabilities="importance")

CONTROLS = (
    Control("half noise", "dp_cd",
            lambda: lane(dp_cd,
                         kind=altered(dp_cd.Run, scale=lambda run: run.scale / 2))),
    Control("half noise", "dp_sgd",
            lambda: lane(dp_sgd, kind=altered(dp_sgd.Run, _half_noise_sgd))),
    Control("no noise", "dp_cd",
            lambda: lane(dp_cd,
                         kind=altered(dp_cd.Run, scale=lambda run: 0 * run.scale))),
    Control("scale passed as location", "dp_cd",
            lambda: lane(dp_cd, kind=bent(dp_cd.Run, lambda s: Located(PCG64(s))))),
    Control("clip skipped", "dp_cd",
            lambda: lane(dp_cd,
                         kind=altered(dp_cd.Run, clip=lambda run: run.clip + np.inf))),
    Control("clip skipped", "dp_sgd",
            lambda: lane(dp_sgd, kind=altered(dp_sgd.Run, _no_clip_sgd))),
    Control("sensitivity without its 2", "dp_skgd",
            lambda: lane(dp_skgd, FULL, kind=_without_two(dp_skgd.Run))),
    Control("noisy max without its 2", "dp_gcd",
            lambda: lane(dp_gcd, claim=_each(_half_selection))),
    Control("noise shared between coordinates", "dp_skgd",
            lambda: lane(dp_skgd, FULL,
                         kind=bent(dp_skgd.Run, lambda s: Shared(PCG64(s))))),
    Control("noise shared between steps", "dp_cd",
            lambda: lane(dp_cd, kind=bent(dp_cd.Run, lambda s: Repeated(PCG64(s))))),
    Control("seed reused", "dp_sgd",
            lambda: lane(dp_sgd,
                         kind=bent(dp_sgd.Run, lambda _: Generator(PCG64(4))))),
    Control("sampling and noise on one stream", "dp_sgd",
            lambda: lane(dp_sgd, kind=_one_stream(dp_sgd.Run))),
    Control("batches overlapping", "phased_sgd",
            lambda: stream("phased_sgd", 0,
                           lambda subject: vars(subject).update(source=Again))),
    Control("composition counted once", "dp_cd",
            lambda: lane(dp_cd, claim=_each(lambda event: replace(event, count=1)))),
    Control("one release not counted", "dp_skgd",
            lambda: lane(dp_skgd, FULL, claim=_each(_one_less))),
    Control("wrong neighbouring relation", "dp_sgd",
            lambda: lane(dp_sgd, claim=_each(_half_sensitivity))),
    Control("selection noise inside an L1 rule", "dp_gcd",
            lambda: lane(dp_gcd, calibration=PAPER, shape=crowd(), view=choice,
                         claim=_each(_called_sound))),
    Control("unequal sensitivities under noisy max", "dp_gcd",
            lambda: lane(dp_gcd,
                         kind=altered(dp_gcd.Run, share=_equal_shares))),
    Control("constants spend twice their share", "dp_cd_priv",
            lambda: lane(dp_cd_priv, kind=_spending(dp_cd_priv.Run))),
    Control("start at a gradient", "dp_cd",
            lambda: lane(dp_cd, kind=altered(dp_cd.Run, _warm))),
    Control("importance by a private gradient", "dp_skgd",
            lambda: lane(dp_skgd, IMPORTANCE,
                         kind=altered(dp_skgd.Run, _by_gradient))),
    Control("regularity without the dimension", "noisy_sfw",
            lambda: stream("noisy_sfw", 2, _claiming(
                lambda event: replace(event, kappa=event.order - 1)))),
    Control("half noise deep in the tree", "noisy_sfw",
            lambda: stream("noisy_sfw", 2, _shallow)),
)  # fmt: skip
