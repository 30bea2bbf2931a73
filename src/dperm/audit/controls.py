"""Positive controls: mechanisms that are broken on purpose, one slip each.

Each is a real solver with one thing wrong, and states the ledger of the right one. An
audit that lets one of them pass is worth nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator

from dperm.accountants.noisy_max import NoisyMax
from dperm.audit.families import LaneSubject, Shape, StreamSubject
from dperm.audit.registry import EPSILON, LANES, LOUD, choice, crowd, subjects
from dperm.audit.subjects import Subject
from dperm.core.calibrations import PAPER, STRICT
from dperm.core.lanes import Lanes, dp_cd
from dperm.core.privacy.ledger import Event, Ledger
from dperm.solvers.lanes import dp_cd_priv, dp_gcd, dp_sgd, dp_skgd
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
    name = module.__name__.rsplit(".", 1)[1]
    needs = LANES[name]
    given = (name, module, options or module.Options(), calibration)
    shape = shape or needs.shape
    quiet = LaneSubject(*given, needs.steps, shape, EPSILON, **changes)
    quiet.loud = LaneSubject(*given, 1, shape, LOUD * EPSILON, **changes)
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


def rebuilt(run: Any, change: Callable[..., tuple]) -> Any:
    """A Run that is made of what ``change`` makes of its arguments."""

    class Rebuilt(run):
        def __init__(self, *args: Any):
            super().__init__(*change(*args))

    return Rebuilt


def bent(run: Any, stream: Callable[[PCG64], Generator]) -> Any:
    """A Run whose noise comes from another stream."""

    def change(problem: Any, lanes: Any, generators: Any, *rest: Any) -> tuple:
        seed = int(generators.noise.integers(2**62))
        return problem, lanes, generators.replaced(noise=stream(PCG64(seed))), *rest

    return rebuilt(run, change)


def altered(
    run: Any, change: Callable[[Any], None] | None = None, **values: Callable
) -> Any:
    """A Run that is changed before its first step; values, by name, of the run."""

    class Altered(run):
        def __init__(self, *args: Any):
            super().__init__(*args)
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


def _equal_shares(run: Any) -> Array:
    p = run.problem.p
    return np.full(p, 1 / np.sqrt(p))


def _constant(which: int, factor: float) -> Callable[[Any], None]:
    def change(run: Any) -> None:
        run.constants[:, which] *= factor

    return change


class Forgetful(Lanes):
    """Settings whose noise forgets the 2 of every sensitivity."""

    def noise_scale(self, sensitivity: Array) -> Array:
        """The scale for half the sensitivity."""
        return super().noise_scale(sensitivity / 2)


def _without_two(problem: Any, lanes: Any, *rest: Any) -> tuple:
    return problem, Forgetful(**vars(lanes)), *rest


def _one_stream(problem: Any, lanes: Any, generators: Any, *rest: Any) -> tuple:
    """Records are read by the stream of the noise."""
    return problem, lanes, generators.replaced(sampling=generators.noise), *rest


def _spending(
    problem: Any, lanes: Any, generators: Any, options: Any, *rest: Any
) -> tuple:
    """Twice the share that the ledger states is spent."""
    options = replace(options, share=2 * options.share)
    return problem, lanes, generators, options, *rest


def _each(
    change: Callable[[Any], dict[str, Any]], kind: Any = Event
) -> Callable[[Ledger], Ledger]:
    """A ledger whose events of a kind have other fields."""

    def changed(event: Any) -> Event:
        return replace(event, **change(event)) if isinstance(event, kind) else event

    return lambda ledger: Ledger(tuple(map(changed, ledger.events)))


def _half(event: Any) -> dict[str, Any]:
    return {"sensitivity": event.sensitivity / 2}


def _again(subject: StreamSubject) -> None:
    subject.source = Again


def _without_dimension(subject: StreamSubject) -> None:
    if len(subject.ledger.events) == 1:
        change = _each(lambda event: {"kappa": event.order - 1})
        subject.ledger = change(subject.ledger)


def _shallow(subject: StreamSubject) -> None:
    """Half the noise from depth 3 of a tree on."""

    def halved(scale: Callable[[int, int, int], Array]) -> Any:
        return lambda t, depth, leaf: scale(t, depth, leaf) / (2 if depth >= 3 else 1)

    class Shallow(subject.kind):  # type: ignore[misc, name-defined]
        def __init__(self, *args: Any):
            super().__init__(*args)
            for part in self.parts:
                part.noise_scale = halved(part.noise_scale)

    subject.kind = Shallow


def _warm(run: Any) -> None:
    run.weights -= 0.01 * run.problem.gradient(np.zeros(run.problem.p))


def _by_gradient(run: Any) -> None:
    sizes = np.abs(run.problem.gradient(np.zeros(run.problem.p)))
    vars(run.sketch)["q"] = sizes / sizes.sum()


FULL = dp_skgd.Options(blocks=1)
IMPORTANCE = dp_skgd.Options(probabilities="importance")


def _in(
    module: ModuleType, slip: str, kind: Any = None, options: Any = None, **changes: Any
) -> Control:
    """A slip in a solver of lanes: another Run, or something else that is changed."""
    name = module.__name__.rsplit(".", 1)[1]
    return Control(slip, name, partial(lane, module, options, kind=kind, **changes))


def _of_stream(
    name: str, slip: str, which: int, change: Callable[[StreamSubject], None]
) -> Control:
    """A slip in one of the subjects of a stream's solver."""
    return Control(slip, name, partial(stream, name, which, change))


CONTROLS = (
    _in(dp_cd, "half noise", altered(dp_cd.Run, scale=lambda run: run.scale / 2)),
    _in(dp_sgd, "half noise", altered(dp_sgd.Run, _constant(2, 0.5))),
    _in(dp_cd, "no noise", altered(dp_cd.Run, scale=lambda run: 0 * run.scale)),
    _in(dp_cd, "scale passed as location", bent(dp_cd.Run, Located)),
    _in(dp_cd, "clip skipped", altered(dp_cd.Run, clip=lambda run: run.clip + np.inf)),
    _in(dp_sgd, "clip skipped", altered(dp_sgd.Run, _constant(1, np.inf))),
    _in(dp_skgd, "sensitivity without its 2", rebuilt(dp_skgd.Run, _without_two), FULL),
    _in(dp_gcd, "noisy max without its 2", claim=_each(_half, NoisyMax)),
    _in(dp_skgd, "noise shared between coordinates", bent(dp_skgd.Run, Shared), FULL),
    _in(dp_cd, "noise shared between steps", bent(dp_cd.Run, Repeated)),
    _in(dp_sgd, "seed reused", bent(dp_sgd.Run, lambda _: Generator(PCG64(4)))),
    _in(dp_sgd, "sampling and noise on one stream", rebuilt(dp_sgd.Run, _one_stream)),
    _of_stream("phased_sgd", "batches overlapping", 0, _again),
    _in(dp_cd, "composition counted once", claim=_each(lambda _: {"count": 1})),
    _in(
        dp_skgd,
        "one release not counted",
        options=FULL,
        claim=_each(lambda event: {"count": max(event.count - 1, 1)}),
    ),
    _in(dp_sgd, "wrong neighbouring relation", claim=_each(_half)),
    _in(
        dp_gcd,
        "selection noise inside an L1 rule",
        calibration=PAPER,
        shape=crowd(),
        view=choice,
        claim=_each(lambda _: {"sound": True}, NoisyMax),
    ),
    _in(
        dp_gcd,
        "unequal sensitivities under noisy max",
        altered(dp_gcd.Run, share=_equal_shares),
    ),
    _in(
        dp_cd_priv,
        "constants spend twice their share",
        rebuilt(dp_cd_priv.Run, _spending),
    ),
    _in(dp_cd, "start at a gradient", altered(dp_cd.Run, _warm)),
    _in(
        dp_skgd,
        "importance by a private gradient",
        altered(dp_skgd.Run, _by_gradient),
        IMPORTANCE,
    ),
    _of_stream("noisy_sfw", "regularity without the dimension", 2, _without_dimension),
    _of_stream("noisy_sfw", "half noise deep in the tree", 2, _shallow),
)
