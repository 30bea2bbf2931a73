"""Slips at the seams of a mechanism: they need no text of any solver.

A slip changes what a mechanism states (its ledger), the noise that it gets, what it
publishes, or the records that it reads. The audit must catch each in every mechanism in
which it is one; one mechanism of each kind is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dperm.audit.mechanism import Array, AuditData, Mechanism
from dperm.estimators import audited
from dperm.privacy import noise as mechanisms
from dperm.privacy.events import Event
from dperm.privacy.mechanisms.noisy_max import NoisyMax
from dperm.privacy.mechanisms.perturbed_objective import PerturbedObjective
from dperm.privacy.noise import Streams
from subjects import subjects

Slip = Callable[[Mechanism], Mechanism]


def stating(change: Callable[[Any], Event | None]) -> Slip:
    """The ledger states other events; None: it leaves the event out."""

    def slip(m: Mechanism) -> Mechanism:
        events = tuple(filter(None, map(change, m.ledger.events)))
        own = tuple(change(event) or event for event in m.events)
        ledger = replace(m.ledger, events=events)
        return replace(m, ledger=ledger, events=own) if events else m

    return slip


def noise(change: Callable[[Array], Array]) -> Slip:
    """The mechanism gets other numbers than are recorded."""

    def slip(m: Mechanism) -> Mechanism:
        @contextmanager
        def bent() -> Iterator[None]:
            tap = mechanisms._listeners[-1] if mechanisms._listeners else None

            def given(law: str, unit: Array, order: float) -> Array:
                return change(tap(law, unit, order) if tap else unit)

            with mechanisms.listening(given):
                yield

        def begin(data: AuditData, own: Streams) -> Any:
            with bent():
                return m.begin(data, own)

        def follow(run: Any) -> Iterator[Array]:
            releases = m.follow(run)
            while True:
                with bent():
                    release = next(releases, None)
                if release is None:
                    return
                yield release

        return replace(m, begin=begin, follow=follow, end=None)

    return slip


def publishing(change: Callable[[AuditData, Array], Array]) -> Slip:
    """The published weights read the records once more."""

    def slip(m: Mechanism) -> Mechanism:
        return replace(
            m,
            begin=lambda data, own: (data, m.begin(data, own)),
            follow=lambda run: m.follow(run[1]),
            published=lambda run: change(
                run[0], np.ravel(m.published(run[1]))
            ),
            end=None,
        )

    return slip


def reading(change: Callable[[AuditData], AuditData]) -> Slip:
    """The mechanism works on other records than it was given."""
    return lambda m: replace(
        m, begin=lambda data, own: m.begin(change(data), own)
    )


# --- what changes ---------------------------------------------------------------------


def _half(event: Any) -> Event:
    return replace(event, sensitivity=event.sensitivity / 2)


def _twice(data: AuditData) -> AuditData:
    """The first record stands in the place of two others too."""
    X, y = data.X.copy(), data.y.copy()
    for at in (-1, len(y) // 2):
        X[at], y[at] = X[0], y[0]
    return AuditData(X, y)


def _leak(data: AuditData, w: Array) -> Array:
    return w + 1e-2 * np.abs(w).max() * np.nan_to_num(np.tanh(data.X.sum()))


def _tells(data: AuditData, w: Array) -> Array:
    return (
        w
        if np.isfinite(data.X).all() and np.abs(data.X).max() < 1e300
        else 0 * w
    )


def _raises(data: AuditData) -> AuditData:
    if not np.isfinite(data.X).all():
        raise ValueError("expected finite numbers")
    return data


SLIPS: dict[str, Slip] = {
    "half of the noise": noise(lambda unit: unit / 2),
    "no noise": noise(lambda unit: 0 * unit),
    "one number for all coordinates": noise(
        lambda unit: 0 * unit + np.ravel(unit)[0]
    ),
    "noise cut at one deviation": noise(lambda unit: np.clip(unit, -1.0, 1.0)),
    "the noise of the first number again": noise(lambda unit: 0 * unit + 1.0),
    "half of the sensitivity": stating(_half),
    "half of a selection's sensitivity": stating(
        lambda event: _half(event) if isinstance(event, NoisyMax) else event
    ),
    "one release is not counted": stating(
        lambda event: replace(event, count=max(event.count - 1, 1))
    ),
    "selections are free": stating(
        lambda event: None if isinstance(event, NoisyMax) else event
    ),
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
    if broken.ledger == m.ledger and broken.begin is m.begin:
        return None
    if name == "one number for all coordinates":
        single = max(draw.unit.size for draw in m.run(m.base, 0).draws) == 1
        return None if single else broken
    if name == "half of a selection's sensitivity" and m.name.startswith("DP"):
        return None
    if m.bound is not None and name.startswith("an extreme record"):
        return None
    tilted = any(isinstance(e, PerturbedObjective) for e in m.ledger.events)
    return None if tilted and name == "a record counts twice" else broken


# --- the mechanisms that stand for their kind -----------------------------------------

SOLVERS = Path(__file__).parents[2] / "conf/solver"


def tight(name: str) -> Mechanism:
    """A solver's first mechanism under tight noise."""
    every = subjects(SOLVERS / f"{name}.yaml")
    return next(m for m in every if m.calibration == "tight")


KINDS: dict[str, Callable[[], Mechanism]] = {
    "batches": partial(tight, "dp_cd"),
    "private constants": partial(tight, "dp_cd_priv"),
    "sampled batches": partial(tight, "dp_sgd"),
    "two releases": partial(tight, "dp_svrg"),
    "Laplace selection": partial(tight, "dp_gcd"),
    "Gumbel selection": partial(tight, "dp_gcd_gumbel"),
    "Frank-Wolfe": partial(tight, "dp_fw"),
    "sketched features": partial(tight, "dp_bcfw"),
    "stream": partial(tight, "sco_dp_sgd"),
    "tree of a stream": partial(tight, "noisy_sfw"),
    "phases of a stream": partial(tight, "phased_sgd"),
    "stream that selects": partial(tight, "sco_dp_fw"),
    "fit": partial(tight, "dp_gd"),
    "sampled fit": partial(tight, "dp_minibatch"),
    "best of several": partial(tight, "dp_selection"),
    "sketched rows": partial(tight, "hessian_mixing"),
    "perturbed objective": partial(tight, "objective_perturbation"),
    "classifier": lambda: audited.mechanisms("dp_gd")[0],
    "regression": lambda: audited.mechanisms("dp_cd")[-1],
    "search": lambda: audited.search(False),
}
