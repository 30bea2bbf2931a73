"""Accountants against each other: ours, and dp_accounting on a grid of equal width."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce, singledispatch
from typing import Any

from dperm.privacy.accounting import profile, renyi_epsilon
from dperm.privacy.dp_events import to_dp_event
from dperm.privacy.generalised_gaussian import GeneralisedGaussian
from dperm.privacy.ledger import Event, Gaussian, Laplace, Ledger, SampledGaussian
from dperm.privacy.noisy_max import NoisyMax
from dperm.privacy.pld import epsilon_on_grid

CELLS = 2000  # of the grid, over the losses of the loudest release
TAIL = 1e-6  # share of delta beyond the grid


def compared(ledger: Ledger, delta: float) -> tuple[float, float, float]:
    """Epsilon of a ledger three times, on grids of one interval.

    Returns
    -------
    ours : float
    low, high : float
        Of dp_accounting: rounded down, and rounded up. Where it has no curve for an
        event, ``low`` is 0 and ``high`` the Rényi bound, or infinity. Sampling without
        replacement it knows in Rényi terms only (``high``); ``low`` is then that of
        Poisson sampling, the worse direction.
    """
    profiles = [profile(event) for event in ledger.events]
    tops = [
        p.top or _top(p, TAIL * delta / (len(profiles) * p.count)) for p in profiles
    ]
    interval = max(tops) / CELLS
    ours, _ = epsilon_on_grid(profiles, tops, delta, interval)
    low, high = (_theirs(ledger.events, delta, interval, up) for up in (False, True))
    sampled = [e for e in ledger.events if isinstance(e, SampledGaussian)]
    if sampled:
        high = _without_replacement(ledger.events, delta)
    if low is None or high is None:
        return ours, 0.0, max(ours, renyi_epsilon(ledger, delta))
    return ours, low, high


def _top(curve: Any, mass: float) -> float:
    top = 1.0
    while float(curve.delta(top)) > mass:
        top *= 1.25
    return top


def _theirs(
    events: Iterable[Event], delta: float, interval: float, up: bool
) -> float | None:
    given = {"pessimistic_estimate": up, "value_discretization_interval": interval}
    made = [_distribution(event, given) for event in events]
    if any(one is None for one in made):
        return None
    repeated = [
        one.self_compose(event.count) if event.count > 1 else one
        for one, event in zip(made, events, strict=True)
    ]
    total = reduce(lambda a, b: a.compose(b), repeated)
    return float(total.get_epsilon_for_delta(delta))


@singledispatch
def _distribution(event: Event, given: dict[str, Any]) -> Any:
    return None


@_distribution.register
def _(event: Gaussian, given: dict[str, Any]) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as pld

    return pld.from_gaussian_mechanism(
        event.noise_multiplier, use_connect_dots=given["pessimistic_estimate"], **given
    )


@_distribution.register
def _(event: SampledGaussian, given: dict[str, Any]) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as pld

    return pld.from_gaussian_mechanism(
        event.noise_multiplier,
        sampling_prob=event.sampling_rate,
        use_connect_dots=given["pessimistic_estimate"],
        **given,
    )


@_distribution.register
def _(event: Laplace, given: dict[str, Any]) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as pld

    return pld.from_laplace_mechanism(
        event.noise_multiplier, use_connect_dots=given["pessimistic_estimate"], **given
    )


@_distribution.register
def _(event: NoisyMax, given: dict[str, Any]) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as pld

    true, false = -math.log1p(math.exp(-event.pure)), -math.log1p(math.exp(event.pure))
    pair = ({0: true, 1: false}, {0: false, 1: true})  # randomised response
    return pld.from_two_probability_mass_functions(*pair, **given)


@_distribution.register
def _(event: GeneralisedGaussian, given: dict[str, Any]) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as pld

    if event.order != 2:
        return None
    return pld.from_gaussian_mechanism(
        event.noise_multiplier, use_connect_dots=given["pessimistic_estimate"], **given
    )


def _without_replacement(events: Iterable[Event], delta: float) -> float:
    from dp_accounting import NeighboringRelation
    from dp_accounting.rdp import RdpAccountant

    if not all(isinstance(event, Gaussian | SampledGaussian) for event in events):
        return math.inf
    relation = NeighboringRelation.REPLACE_ONE
    accountant = RdpAccountant(neighboring_relation=relation)
    accountant.compose(to_dp_event(Ledger(tuple(events))))
    return float(accountant.get_epsilon(delta))
