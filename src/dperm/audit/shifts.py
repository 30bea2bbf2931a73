"""How far noise has to be moved, and which event of the ledger answers for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dperm.audit.subjects import Subject, Transcript
from dperm.audit.taps import Draw
from dperm.privacy.generalised_gaussian import GeneralisedGaussian
from dperm.privacy.ledger import Event, Gaussian, Laplace, SampledGaussian
from dperm.privacy.noisy_max import NoisyMax
from dperm.privacy.perturbed_objective import PerturbedObjective

Array = np.ndarray
Script = list[Draw]

SAME = 1e-9  # of the noise's unit: what is as good as no shift
_HIDES: dict[str, tuple[type[Event], ...]] = {  # events by the noise that hides them
    "gaussian": (Gaussian, SampledGaussian, PerturbedObjective),
    "generalised_gaussian": (GeneralisedGaussian,),
    "laplace": (Laplace,),
}


@dataclass(frozen=True)
class Shift:
    """What one draw behind view t has to be moved by, in units of its scale."""

    step: int
    event: Event
    units: Array

    @property
    def declared(self) -> float:
        """The bound that the ledger states; infinity where it says there is none."""
        event = self.event
        if not event.sound:
            return math.inf
        if isinstance(event, NoisyMax):
            return event.pure
        if not event.scale:
            return 0.0
        bound = event.sensitivity / event.scale
        if isinstance(event, GeneralisedGaussian) and event.order > 2:
            # the noise's own norm has regularity order - 1, see ``size``
            bound *= math.sqrt(event.kappa / (event.order - 1))
        return bound

    @property
    def published(self) -> float:
        """The bound that the paper states, where it is another one."""
        pure = getattr(self.event, "published_pure", None)
        if pure is not None:
            return pure
        stated = getattr(self.event, "published_sensitivity", None)
        if not self.event.sound:
            return math.inf
        return stated / self.event.scale if stated else self.declared

    @property
    def size(self) -> float:
        """The shift in the norm of the noise's density."""
        units = np.abs(self.units)
        if not np.isfinite(units).all():
            return math.inf
        if isinstance(self.event, GeneralisedGaussian):
            order = self.event.order
            return float((units**order).sum() ** (1 / order))
        if isinstance(self.event, _HIDES["gaussian"]):
            return float(np.sqrt((units**2).sum()))
        return float(units.max(initial=0.0))

    @property
    def ratio(self) -> float:
        """Shift over the declared bound: at most 1 where the ledger is right."""
        if self.size <= SAME:
            return 0.0
        return self.size / self.declared if self.declared else math.inf


def additive(subject: Subject, seen: Transcript, t: int) -> list[tuple[int, Event]]:
    """Draws behind view t that are added to something, with their events."""
    places = seen.draws_of(t)[1 if selects(subject, seen, t) else 0 :]
    if subject.drawn:
        return [(place, subject.drawn[place]) for place in places]
    left = [e for e in subject.ledger.events if not isinstance(e, NoisyMax)]
    found: list[tuple[int, Event]] = []
    for place in reversed(places):
        kinds = _HIDES.get(seen.draws[place].kind, ())
        able = [k for k, event in enumerate(left) if isinstance(event, kinds)]
        if able:
            found.insert(0, (place, left[able[-1]]))
            if len(able) > 1:
                left.pop(able[-1])
    return found


def is_bent(subject: Subject) -> bool:
    """Whether views are no affine functions of their noise, which changes densities."""
    events = subject.ledger.events
    return any(isinstance(event, PerturbedObjective) for event in events)


def selects(subject: Subject, seen: Transcript, t: int) -> bool:
    """Whether view t tells a selection, whose noise is then its first draw."""
    return subject.selects and bool(seen.draws_of(t))


def selection(subject: Subject) -> NoisyMax:
    """The costliest kind of selection."""
    events = (e for e in subject.ledger.events if isinstance(e, NoisyMax))
    return max(events, key=lambda event: event.pure)


def raised(script: Sequence[Draw], place: int, entry: int, by: float) -> Script:
    """The script with one number of one draw raised."""
    moved, changed = np.zeros(script[place].unit.size), list(script)
    moved[entry] = by
    changed[place] = script[place].moved(moved)
    return changed
