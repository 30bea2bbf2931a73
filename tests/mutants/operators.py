"""Slips at the seams of a mechanism: they need no text of any solver.

A slip changes what a mechanism states (its ledger), the noise that it gets, what it
publishes, or the records that it reads. The audit must catch each in every mechanism in
which it is one, new ones included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from dperm.accountants.noisy_max import NoisyMax
from dperm.accountants.perturbed_objective import PerturbedObjective
from dperm.audit.mechanism import Array, Mechanism, Records, Started
from dperm.core.privacy import mechanisms
from dperm.core.privacy.ledger import Event
from dperm.core.privacy.mechanisms import Streams

Slip = Callable[[Mechanism], Mechanism]


def stating(change: Callable[[Any], Event | None]) -> Slip:
    """The ledger states other events; None: it leaves the event out."""

    def slip(m: Mechanism) -> Mechanism:
        events = tuple(filter(None, map(change, m.ledger.events)))
        ledger = replace(m.ledger, events=events)
        own = tuple(change(event) or event for event in m.events)
        return _changed(m, ledger=ledger, events=own) if events else m

    return slip


def _changed(m: Mechanism, **changes: Any) -> Mechanism:
    """A copy without what was computed of the old one."""
    return replace(m, **changes)


def noise(change: Callable[[str, Array], Array]) -> Slip:
    """The mechanism gets other numbers than are recorded."""

    def slip(m: Mechanism) -> Mechanism:
        def start(data: Records, own: Streams) -> Started:
            releases, weights = m.start(data, own)
            return _bent(releases, change), weights

        return _changed(m, start=start, together=None)

    return slip


def _bent(
    releases: Iterator[Array], change: Callable[[str, Array], Array]
) -> Iterator[Array]:
    """The releases, each made with noise that is changed on its way."""
    tap = mechanisms._listeners[-1] if mechanisms._listeners else None

    def bent(kind: str, unit: Array, order: float) -> Array:
        return change(kind, tap(kind, unit, order) if tap else unit)

    while True:
        with mechanisms.heard(bent):
            release = next(releases, None)
        if release is None:
            return
        yield release


def publishing(change: Callable[[Records, Array], Array]) -> Slip:
    """The published weights read the records once more."""

    def slip(m: Mechanism) -> Mechanism:
        def start(data: Records, own: Streams) -> Started:
            releases, weights = m.start(data, own)
            return releases, lambda: change(data, np.ravel(weights()))

        return _changed(m, start=start, together=None)

    return slip


def reading(change: Callable[[Records], Records]) -> Slip:
    """The mechanism works on other records than it was given."""

    def slip(m: Mechanism) -> Mechanism:
        def start(data: Records, own: Streams) -> Started:
            return m.start(change(data), own)

        return _changed(m, start=start, together=None)

    return slip


# --- what changes ---------------------------------------------------------------------


def _one_less(event: Any) -> Event:
    return replace(event, count=max(event.count - 1, 1))


def _half(event: Any) -> Event:
    return replace(event, sensitivity=event.sensitivity / 2)


def _half_selection(event: Any) -> Event:
    return _half(event) if isinstance(event, NoisyMax) else event


def _without_selections(event: Any) -> Event | None:
    return None if isinstance(event, NoisyMax) else event


def _same(kind: str, unit: Array) -> Array:
    """One number for all coordinates."""
    return np.broadcast_to(np.ravel(unit)[:1], unit.shape).copy()


def _twice(data: Records) -> Records:
    """The first record stands in the place of another one too."""
    X, y = data.X.copy(), data.y.copy()
    X[-1], y[-1] = X[0], y[0]
    X[len(y) // 2], y[len(y) // 2] = X[0], y[0]
    return Records(X, y)


def _leak(data: Records, w: Array) -> Array:
    """A last look at the data."""
    return w + 1e-2 * np.abs(w).max() * np.nan_to_num(np.tanh(data.X.sum()))


def _tells(data: Records, w: Array) -> Array:
    """An extreme record gives zeros."""
    return w if np.isfinite(data.X).all() and np.abs(data.X).max() < 1e300 else 0 * w


def _raises(data: Records) -> Records:
    """A record that is not finite stops the run."""
    if not np.isfinite(data.X).all():
        raise ValueError("expected finite numbers")
    return data


SLIPS: dict[str, Slip] = {
    "half of the noise": noise(lambda kind, unit: unit / 2),
    "no noise": noise(lambda kind, unit: 0 * unit),
    "one number for all coordinates": noise(_same),
    "noise cut at one deviation": noise(lambda kind, unit: np.clip(unit, -1.0, 1.0)),
    "the noise of the first number again": noise(lambda kind, unit: 0 * unit + 1.0),
    "half of the sensitivity": stating(_half),
    "half of a selection's sensitivity": stating(_half_selection),
    "one release is not counted": stating(_one_less),
    "selections are free": stating(_without_selections),
    "a last look at the records": publishing(_leak),
    "an extreme record gives zeros": publishing(_tells),
    "an extreme record raises": reading(_raises),
    "a record counts twice": reading(_twice),
}


def planted(name: str, m: Mechanism) -> Mechanism | None:
    """A mechanism with a slip; None where the slip is none in it.

    Noise that multiplies records, or is drawn one number at a time, is not the same for
    all coordinates; a ledger without repeated releases cannot count one less; bounded
    records are never extreme; no record of an estimator moves a score to its bound.
    """
    broken = SLIPS[name](m)
    numbers = max(draw.unit.size for draw in m.run(m.base, 0).draws)
    if broken.ledger == m.ledger and name.startswith(("half of", "one rel", "select")):
        return broken if name == "half of the noise" else None
    if name == "one number for all coordinates" and numbers == 1:
        return None
    if name == "half of a selection's sensitivity" and m.name.startswith("DP"):
        return None
    if m.bound is not None and name.startswith("an extreme record"):
        return None
    tilted = any(isinstance(e, PerturbedObjective) for e in m.ledger.events)
    return None if tilted and name == "a record counts twice" else broken
