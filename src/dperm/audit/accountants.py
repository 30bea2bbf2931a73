"""Accountants against each other: the one that calibrates, and an independent one.

The other composes the same events with dp_accounting, rounded down and up, or by closed
forms of its own; it shares no formula with ours. An epsilon outside is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from dperm.accountants.generalised_gaussian import GeneralisedGaussian
from dperm.accountants.noisy_max import NoisyMax
from dperm.accountants.perturbed_objective import PerturbedObjective
from dperm.audit import laws
from dperm.audit.climbing import Finding, Ladder
from dperm.audit.laws import gaussian_delta, gaussian_epsilon
from dperm.core.calibrations import STRICT
from dperm.core.privacy.accounting import epsilon as epsilon_of
from dperm.core.privacy.ledger import Event, Gaussian, Laplace, Ledger, SampledGaussian

Array = np.ndarray

CELLS = 2000  # of the grid, over the losses of the loudest release
NEAR = 3e-3  # relative, what rounding on grids may make
MOST = 10_000_000  # cells that a Gaussian release beside others may take
ORDERS = 1 + np.geomspace(1e-2, 1e4, 1200)  # of Rényi curves


def accountants(ladder: Ladder) -> Finding:
    """Our epsilon, as calibration has it, between the bounds of another accountant."""
    subject = ladder.subject
    ours = epsilon_of(subject.ledger, subject.delta, STRICT)
    if not math.isfinite(ours):
        return Finding("accountants", ours, ours, False, "no bound is stated")
    low, high = bounds(subject.ledger, subject.delta)
    caught = not low * (1 - NEAR) <= ours <= high * (1 + NEAR)
    note = f"{low:.4g} at least, {high:.4g} at most"
    if subject.calibration == STRICT and ours > subject.epsilon * (1 + NEAR):
        caught, note = True, f"{note}, {subject.epsilon:g} asked for"
    return Finding("accountants", ours, high, caught, note)


def bounds(ledger: Ledger, delta: float) -> tuple[float, float]:
    """What an independent accountant makes of a ledger, from below and from above.

    Sampling without replacement has, among others, the pair of Poisson sampling, which
    bounds it from below; from above the curve of Balle, Barthe and Gaboardi 2018. No
    attack on a tilted minimum comes near its bound, which is held to be no lower.
    """
    events = ledger.events
    gaussians = (event for event in events if isinstance(event, Gaussian))
    mu = math.sqrt(sum(e.count / e.noise_multiplier**2 for e in gaussians))
    if all(isinstance(event, Gaussian) for event in events):
        exact = gaussian_epsilon(mu, delta)
        return exact, exact
    tilts = [event for event in events if isinstance(event, PerturbedObjective)]
    if tilts:
        tilted = _tilted(tilts, mu, delta)
        return tilted if math.isfinite(tilted) else 0.0, tilted
    renyi = _renyi_epsilon(events, delta)
    others = [event for event in events if not isinstance(event, Gaussian)]
    if any(_has_no_curve(event) for event in others):
        return renyi, renyi
    if mu * (mu / 2 + 8) > MOST * _interval(others):  # with others it costs no less
        return gaussian_epsilon(mu, delta), math.inf
    low, high = (_composed(others, mu, delta, up) for up in (False, True))
    sampled = [event for event in others if isinstance(event, SampledGaussian)]
    if sampled == others:
        parts = [laws.losses(laws.gaussian_cells(mu))] if mu else []
        for event in sampled:
            one = event.sensitivity / event.scale
            top = 8 * one + one**2 / 2
            once = laws.curve_losses(partial(_sampled_deltas, event), top)
            parts += [once] * event.count
        high = laws.composed(parts).epsilon(delta)
    return min(low, renyi), min(high, renyi)


def _has_no_curve(event: Event) -> bool:
    """Whether only its Rényi curve is known."""
    return isinstance(event, GeneralisedGaussian) and event.order > 2


def _tilted(tilts: Sequence[PerturbedObjective], mu: float, delta: float) -> float:
    """One tilted minimum beside Gaussian releases; infinity for several.

    From the fixed shifts a v - a' v' of the proof, no finer than twentieths in a.
    """
    if len(tilts) != 1 or tilts[0].count != 1:
        return math.inf
    M = tilts[0].sensitivity / tilts[0].scale / 2
    K = tilts[0].curvature

    def grid(epsilon: float) -> float:
        total = 0.0
        for k in range(21):
            ends = [t for t in (k - 1, k, k + 1, 10) if max(k - 1, 0) <= t <= k + 1]
            J = max(math.log1p(K * t * (20 - t) / 400) for t in ends if t <= 20)
            total += sum(
                _at(epsilon - J, math.hypot((k / 20 + b) * M, mu)) for b in (0, 1)
            )
        return total

    def joint(epsilon: float) -> float:
        left = _at(epsilon, math.hypot(2 * M, mu)) + _at(epsilon, math.hypot(M, mu))
        return left + sum(_at(epsilon - K, math.hypot(b * M, mu)) for b in (0, 1))

    ends = [1e-9, 1.0]
    while min(grid(ends[1]), joint(ends[1])) > delta:
        ends[1] *= 2
    for _ in range(80):
        middle = sum(ends) / 2
        is_above = min(grid(middle), joint(middle)) > delta
        ends[0 if is_above else 1] = middle
    return ends[1]


def _at(epsilon: float, mu: float) -> float:
    """The Gaussian curve; 1 where epsilon is not positive."""
    if epsilon <= 0:
        return 1.0
    return float(gaussian_delta(epsilon, mu)) if mu else 0.0


def _composed(events: Sequence[Event], mu: float, delta: float, up: bool) -> float:
    from dp_accounting.pld import privacy_loss_distribution as pld

    interval = _interval(events)
    grid = {"pessimistic_estimate": up, "value_discretization_interval": interval}
    dots = {"use_connect_dots": up, **grid}

    def distribution(event: Event) -> Any:
        if isinstance(event, NoisyMax):
            pure = _pure(event)
            true, false = -math.log1p(math.exp(-pure)), -math.log1p(math.exp(pure))
            pair = ({0: true, 1: false}, {0: false, 1: true})  # randomised response
            return pld.from_two_probability_mass_functions(*pair, **grid)
        noise = event.noise_multiplier
        if isinstance(event, Laplace):
            return pld.from_laplace_mechanism(noise, **dots)
        if isinstance(event, GeneralisedGaussian):
            return pld.from_gaussian_mechanism(noise, sampling_prob=1.0, **dots)
        if isinstance(event, SampledGaussian):
            rate = event.batch / event.population
            return pld.from_gaussian_mechanism(noise, sampling_prob=rate, **dots)
        raise TypeError(f"{type(event).__name__}: no loss distribution")

    parts = [distribution(event) for event in events]
    counts = [event.count for event in events]
    if mu:
        parts.append(pld.from_gaussian_mechanism(1 / mu, sampling_prob=1.0, **dots))
        counts.append(1)
    composed = [
        part.self_compose(count) if count > 1 else part
        for part, count in zip(parts, counts, strict=True)
    ]
    total = reduce(lambda one, two: one.compose(two), composed)
    return float(total.get_epsilon_for_delta(delta))


def _interval(events: Sequence[Event]) -> float:
    return max(map(_top, events)) / CELLS


def _top(event: Event) -> float:
    """About the largest loss of one release."""
    if isinstance(event, NoisyMax):
        return _pure(event)
    multiplier = event.noise_multiplier
    return 1 / multiplier if isinstance(event, Laplace) else 8 / multiplier


def _pure(event: NoisyMax) -> float:
    """Of one selection: two scores may move, one up and the other down."""
    return 2 * event.sensitivity / event.scale


def _sampled_deltas(event: SampledGaussian, epsilons: Array) -> Array:
    """Q delta'(log(1 + (e^epsilon - 1) / q)), delta' without sampling (Theorem 9)."""
    q, mu = event.batch / event.population, event.sensitivity / event.scale
    return q * gaussian_delta(np.log1p(np.expm1(epsilons) / q), mu)


def _renyi_epsilon(events: Sequence[Event], delta: float) -> float:
    """By Rényi curves in closed form; infinity where one is not known."""
    from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon

    curves = [_curve(event) for event in events]
    if any(curve is None for curve in curves):
        return math.inf
    return float(compute_epsilon(ORDERS, np.sum(curves, axis=0), delta)[0])


def _curve(event: Event) -> Any:
    """The Rényi curve of an event's releases; None where none is known.

    Of Laplace noise: Mironov 2017, Table II; of generalised Gaussian noise: Bassily,
    Guzmán and Nandi 2021, Proposition 3.2 (c); of a selection: randomised response, or
    a range of losses (Cesar and Rogers 2021, Lemma 3).
    """
    a = ORDERS
    if isinstance(event, NoisyMax):
        pure = _pure(event)
        p = 1 / (1 + math.exp(-pure))
        pairs = ((p, 1 - p), (1 - p, p))
        logs = [a * math.log(x) + (1 - a) * math.log(y) for x, y in pairs]
        curve = np.logaddexp(*logs) / (a - 1)
        if event.noise == "gumbel":
            curve = np.minimum(curve, a * pure**2 / 8)
        return event.count * curve
    if isinstance(event, Laplace):
        pure = event.sensitivity / event.scale
        weights = a / (2 * a - 1), (a - 1) / (2 * a - 1)
        terms = (a - 1) * pure, -a * pure
        logs = [np.log(w) + t for w, t in zip(weights, terms, strict=True)]
        return event.count * np.logaddexp(*logs) / (a - 1)
    if not isinstance(event, Gaussian | GeneralisedGaussian):
        return None
    square = 1 / event.noise_multiplier**2
    if isinstance(event, GeneralisedGaussian) and event.order != 2:
        return event.count * event.kappa * a**2 * square / (2 * (a - 1))
    return event.count * a / 2 * square
