"""A ledger in the terms of dp_accounting, for its accountants."""

from __future__ import annotations

from functools import singledispatch

from dp_accounting import dp_event

from dperm.privacy.accounting import UnsupportedEventError
from dperm.privacy.ledger import (
    Event,
    Gaussian,
    Laplace,
    Ledger,
    NonPrivate,
    SampledGaussian,
)


def to_dp_event(ledger: Ledger) -> dp_event.DpEvent:
    """Return the composition of a ledger's releases.

    Sensitivities are replace-one sensitivities: of dp_accounting's accountants, those
    under ADD_OR_REMOVE_ONE compose them as they stand (:mod:`.accounting`). An empty
    ledger is a ``NoOpDpEvent``.

    Raises
    ------
    UnsupportedEventError
        If dp_accounting has no such release (report noisy max, generalised Gaussian).
    """
    if not ledger.events:
        return dp_event.NoOpDpEvent()
    return dp_event.ComposedDpEvent(
        [
            dp_event.SelfComposedDpEvent(release(event), event.count)
            for event in ledger.events
        ]
    )


@singledispatch
def release(event: Event) -> dp_event.DpEvent:
    """Return one release of an event."""
    kind = type(event).__name__
    raise UnsupportedEventError(f"dp_accounting has no event for {kind}")


@release.register
def _(event: Gaussian) -> dp_event.DpEvent:
    return dp_event.GaussianDpEvent(event.noise_multiplier)


@release.register
def _(event: SampledGaussian) -> dp_event.DpEvent:
    return dp_event.SampledWithoutReplacementDpEvent(
        event.population, event.batch, dp_event.GaussianDpEvent(event.noise_multiplier)
    )


@release.register
def _(event: Laplace) -> dp_event.DpEvent:
    return dp_event.LaplaceDpEvent(event.noise_multiplier)


@release.register
def _(event: NonPrivate) -> dp_event.DpEvent:
    return dp_event.NonPrivateDpEvent()
