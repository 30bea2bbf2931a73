"""Intervals that contain the epsilon of a ledger, both ends proved.

The upper end is that of the strict accountant: no mechanism that the ledger describes
costs more. The lower end is the cost of one such mechanism, by a pair of distributions
that it attains: no accountant that knows the ledger alone can state less. Numbers that
are not in the ledger, such as those of records and features, may be arbitrary. Events
without a known attained pair are left out of the lower end (0 if there are no others).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from dperm.accountants.attained import (
    LOUDEST,
    Pair,
    gaussian_mu,
    gaussian_pair,
    least_epsilon,
    pair,
)
from dperm.accountants.noisy_max import ChosenValue, NoisyMax
from dperm.core.privacy.accounting import Interval, true_epsilon
from dperm.core.privacy.ledger import Event, Laplace, Ledger, SampledGaussian
from dperm.core.privacy.pld import TAIL, Profile, largest_loss, refined
from dperm.core.privacy.strict import gaussian_delta, gaussian_epsilon, profile

# Kinds whose pair depends on sensitivity and scale by their ratio alone.
RELATIVE = (SampledGaussian, Laplace, ChosenValue, NoisyMax)
GAPS = (0.0, 0.5, 2.0, 5.0, 12.0)  # leads of the best score, in noise scales
HOPELESS = 0.8  # share of the best at which a direction or gap is given up
USELESS = 100.0  # a finite epsilon beyond which the lower end prices Gaussians alone
FEW = 200  # selections, up to which other gaps than 0 are tried


def epsilon_interval(ledger: Ledger, delta: float) -> Interval:
    """Proved lower and upper bound on the epsilon of a ledger.

    Parameters
    ----------
    delta : float
        In (0, 1).

    Raises
    ------
    DeltaError, UnsupportedEventError
        From the accountant.
    """
    high = true_epsilon(ledger, delta)
    if any(event.scale == 0 for event in ledger.events):
        return Interval(math.inf, math.inf)
    if USELESS < high < math.inf:
        mu = _attained_mu(ledger.events)
        return Interval(gaussian_epsilon(mu, delta) if mu else 0.0, high)
    low = lower_epsilon(ledger.events, delta)
    return Interval(min(low, high), high)


def lower_epsilon(events: tuple[Event, ...], delta: float) -> float:
    """Lower end of an epsilon, over both directions and several gaps of selections."""
    mu = _attained_mu(events)
    others = [event for event in events if not gaussian_mu(event)]
    known = [event for event in others if pair(event, 0.0) is not None]
    if not known:
        return gaussian_epsilon(mu, delta) if mu else 0.0
    rounded = float(f"{mu * (1 - 5e-10):.10g}")
    return _lower_epsilon(tuple(map(_relative, known)), rounded, delta)


def _relative(event: Event) -> Event:
    """The event with a sensitivity of one, its noise rounded up to ten digits."""
    if type(event) not in RELATIVE:
        return event
    multiplier = float(f"{event.noise_multiplier * (1 + 5e-10):.10g}")
    one: Any = event
    return replace(one, sensitivity=1.0, scale=multiplier, unit="", source="")


@lru_cache(maxsize=1024)
def _lower_epsilon(known: tuple[Event, ...], mu: float, delta: float) -> float:
    """The same for events with a pair and Gaussian releases of that mu; cached."""
    mu = min(mu, LOUDEST)
    ways = [_way(known, mu, delta, *each) for each in _ways(known)]

    def on_grid(interval: float) -> tuple[float, int]:
        ends = [least_epsilon(way, interval, delta) for way in ways]
        best = max(each for each, _ in ends)
        ways[:] = [
            way
            for way, (each, _) in zip(ways, ends, strict=True)
            if each >= HOPELESS * best
        ]
        return best, max(points for _, points in ends)

    return refined(on_grid, max(top for _, _, top in ways[0]), 5e-3, max)


def _attained_mu(events: tuple[Event, ...]) -> float:
    """The mu of all releases with a Gaussian pair, which compose to one."""
    return math.hypot(*(gaussian_mu(one) * math.sqrt(one.count) for one in events))


def _ways(events: Sequence[Event]) -> Iterator[tuple[bool, float]]:
    """Directions, and gaps of selections, worth trying."""
    chosen = sum(event.count for event in events if isinstance(event, NoisyMax))
    for gap in GAPS if 0 < chosen <= FEW else GAPS[:1]:
        yield from ((False, gap), (True, gap))


def _way(
    events: Sequence[Event], mu: float, delta: float, turned: bool, gap: float
) -> list[tuple[Pair, int, float]]:
    """A pair, count and largest loss for every event, the Gaussians as one."""
    profiles = [profile(event) for event in events]
    pairs = [(pair(event, gap), event.count) for event in events]
    if mu:
        profiles.append(Profile(lambda losses: gaussian_delta(losses, mu)))
        pairs.append((gaussian_pair(mu), 1))
    return [
        (one.turned() if turned else one, count, _top(curve, delta / len(profiles)))
        for (one, count), curve in zip(pairs, profiles, strict=True)
        if one is not None
    ]


def _top(curve: Profile, delta: float) -> float:
    """Largest loss worth a cell."""
    known = curve.top
    return largest_loss(curve, TAIL * delta / curve.count) if known is None else known
