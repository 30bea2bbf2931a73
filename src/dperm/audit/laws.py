"""Lower bounds on what a run's releases cost on one pair of data sets, by their laws.

A release is a pair of probability vectors over the same cells, on D and on D'. Cells
coarsen the output, which can only hide information: every number is a lower bound up to
rounding. Losses log P / Q are rounded down to a grid and convolved.

An independent accountant prices a whole ledger. It composes the same events with
dp_accounting, rounded down and up, or by its own closed forms, and shares no formula
with ours: an epsilon outside its bounds is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from scipy.signal import fftconvolve

from dperm.accountants.generalised_gaussian import GeneralisedGaussian
from dperm.accountants.noisy_max import NoisyMax
from dperm.accountants.perturbed_objective import PerturbedObjective
from dperm.core.privacy.ledger import Event, Gaussian, Laplace, Ledger, SampledGaussian

Array = np.ndarray

GRID = 2e-4  # spacing of losses
_CELLS = 2000  # for one number
_WIDTH = 9.0  # standard deviations of a normal number that are cut into cells
_TAIL = 40.0  # the same in scales of a Laplace number
_FINE = 1200  # cells per side, for two numbers
_NOTHING = 1e-14  # a chance that is not counted where the other is zero
_LOUDEST_CELLS = 2000  # of the library's grid, over the largest loss of a release
_MOST = 10_000_000  # cells that Gaussian releases composed with others may take
_ORDERS = 1 + np.geomspace(1e-2, 1e4, 1200)  # of Rényi curves


@dataclass(frozen=True)
class Cells:
    """Chances of the same cells on D and on D', each (K,)."""

    first: Array
    second: Array

    @property
    def reverse(self) -> Cells:
        """D and D' exchanged."""
        return Cells(self.second, self.first)

    def times(self, other: Cells) -> Cells:
        """Both releases together, if independent."""
        return Cells(
            np.outer(self.first, other.first).ravel(),
            np.outer(self.second, other.second).ravel(),
        )

    def coarse(self, most: int) -> Cells:
        """Merge adjacent cells so that at most ``most`` are left."""
        at = np.arange(0, len(self.first), -(-len(self.first) // max(most, 1)))
        return Cells(np.add.reduceat(self.first, at), np.add.reduceat(self.second, at))

    def is_like(self, other: Cells, tolerance: float) -> bool:
        """Whether all chances agree up to a relative tolerance."""
        if self.first.shape != other.first.shape:
            return False
        pairs = ((self.first, other.first), (self.second, other.second))
        return all(np.allclose(a, b, rtol=tolerance, atol=1e-9) for a, b in pairs)

    def loses(self) -> bool:
        """Whether the release distinguishes D and D' at all."""
        return bool(np.abs(self.first - self.second).max() > _NOTHING)


def mixed(parts: Iterable[tuple[float, float, Cells]]) -> Cells:
    """A selection with its release: chances on D and D', and cells, of each choice."""
    every = list(parts)
    return Cells(
        np.concatenate([p * cells.first for p, _, cells in every]),
        np.concatenate([q * cells.second for _, q, cells in every]),
    )


CERTAIN = Cells(np.ones(1), np.ones(1))
APART = Cells(np.array([1.0, 0.0]), np.array([0.0, 1.0]))


def gaussian_cells(shift: float, rate: float = 1.0) -> Cells:
    """N(shift, 1) with probability ``rate``, else N(0, 1), against N(0, 1)."""
    count = _CELLS * math.ceil(min(max(shift, 1.0), 50.0))
    edges = np.linspace(-_WIDTH, _WIDTH + shift, count)
    plain, moved = (_between(stats.norm, edges - s) for s in (0.0, shift))
    return Cells((1 - rate) * plain + rate * moved, plain)


def laplace_cells(shift: float) -> Cells:
    """Lap(shift, 1) against Lap(0, 1); an edge at either kink."""
    inner = np.linspace(0.0, shift, _CELLS // 4)
    outer = np.array([-_TAIL, _TAIL + shift])
    edges = np.concatenate([outer[:1], inner, outer[1:]])
    moved, plain = (_between(stats.laplace, edges - s) for s in (shift, 0.0))
    return Cells(moved, plain)


def _between(law: Any, edges: Array) -> Array:
    """Chances of the cells between edges and beyond, small ones to full precision."""
    low = np.concatenate([[0.0], law.cdf(edges), [1.0]])
    high = np.concatenate([[1.0], law.sf(edges), [0.0]])
    left = np.concatenate([[True], edges < 0])
    return np.where(left, np.diff(low), -np.diff(high))


def norm_cells(shift: Array, order: float) -> Cells:
    r"""Density exp(-\|z - shift\|_r^2 / 2), against that without a shift.

    In two dimensions, or with a shift along one axis, where the other coordinates
    matter through their norm only.

    Raises
    ------
    ValueError
        For other shifts.
    """
    d, moved = shift.size, np.flatnonzero(np.abs(shift) > 1e-9 * np.abs(shift).max())
    if d > 2 and len(moved) > 1:
        raise ValueError(f"shift {shift}: expected one axis, or two dimensions")
    # the number along the axis; the norm of the others, or the other of two
    along, other = (shift[moved[0]], 0.0) if d > 2 or len(moved) == 1 else shift
    x = np.linspace(-_WIDTH, _WIDTH, _FINE)
    y = x if d == 2 else np.linspace(0.0, _WIDTH, _FINE)
    first, second = (
        np.exp(-0.5 * _powers(x - a, y - b, order)) * np.abs(y) ** max(d - 2, 0)
        for a, b in ((along, other), (0.0, 0.0))
    )
    return Cells(first.ravel() / first.sum(), second.ravel() / second.sum())


def _powers(x: Array, y: Array, order: float) -> Array:
    """Squared l_r norm on a grid."""
    sums = (np.abs(x) ** order)[:, None] + (np.abs(y) ** order)[None, :]
    return sums ** (2 / order)


@dataclass(frozen=True)
class Losses:
    """Distribution on D of the loss log P / Q, rounded down."""

    lowest: int  #: loss of the first mass, in units of ``GRID``
    masses: Array
    finite: float  #: chance that the loss is finite

    def delta(self, epsilon: float) -> float:
        """E (1 - e^(epsilon - loss))_+."""
        losses = (self.lowest + np.arange(len(self.masses))) * GRID
        spent = -np.expm1(np.minimum(epsilon - losses, 0.0))
        return float(self.masses @ spent) + 1 - self.finite

    def epsilon(self, delta: float) -> float:
        """The epsilon that is needed at delta; infinity if none is enough."""
        if self.delta(0.0) <= delta:
            return 0.0
        if 1 - self.finite >= delta:
            return math.inf
        most = (self.lowest + len(self.masses)) * GRID
        root = brentq(lambda e: self.delta(e) - delta, 0.0, most, xtol=1e-12)
        return float(root)


def losses(cells: Cells) -> Losses:
    """Loss distribution of one release."""
    known = (cells.second > 0) & (cells.first > 0)
    logs = np.log(cells.first[known] / cells.second[known])
    places = np.floor(logs / GRID + 1e-9).astype(int)
    lowest = int(places.min(initial=0))
    lost = float(cells.first[(cells.second == 0) & (cells.first > _NOTHING)].sum())
    return Losses(
        lowest, np.bincount(places - lowest, cells.first[known]), max(1 - lost, 0.0)
    )


def curve_losses(delta: Callable[[Array], Array], top: float) -> Losses:
    """Loss distribution of a symmetric pair whose curve has chords between grid values.

    Parameters
    ----------
    delta : callable
        Maps epsilons from 0 to the deltas of one release.
    top : float
        Larger losses count as infinite.

    Notes
    -----
    delta = P(L > epsilon) - x E[e^-L; L > epsilon] is linear in x = e^epsilon between
    losses, so that changes of slope are their masses.
    """
    epsilons = np.arange(0.0, top, GRID)
    values = delta(epsilons)
    slopes = np.append(np.diff(values) / np.diff(np.exp(epsilons)), 0.0)
    positive = np.exp(epsilons[1:]) * np.maximum(np.diff(slopes), 0.0)
    negative = np.exp(-epsilons[1:]) * positive
    zero = 1 - positive.sum() - negative.sum() - values[-1]
    masses = np.concatenate([negative[::-1], [max(zero, 0.0)], positive])
    return Losses(1 - len(epsilons), masses, 1 - float(values[-1]))


def composed(parts: Sequence[Losses]) -> Losses:
    """Loss distribution of independent releases."""
    lowest, masses, finite = 0, np.ones(1), 1.0
    for part in parts:
        lowest += part.lowest
        masses = np.maximum(fftconvolve(masses, part.masses), 0.0)
        finite *= part.finite
    return Losses(lowest, masses, finite)


def cells_epsilon(releases: Sequence[Cells], delta: float) -> float:
    """Epsilon of independent releases at delta, the worse of both directions."""
    forth = composed([losses(cells) for cells in releases])
    back = composed([losses(cells.reverse) for cells in releases])
    return max(forth.epsilon(delta), back.epsilon(delta))


def gaussian_delta(epsilon: Array | float, mu: float) -> Array:
    """Delta of N(mu, 1) against N(0, 1) (Balle and Wang 2018, Theorem 8)."""
    up, down = (stats.norm.logcdf(s * mu / 2 - epsilon / mu) for s in (1, -1))
    return np.exp(up) - np.exp(epsilon + down)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Exact epsilon of Gaussian releases whose squared shifts add up to mu^2."""
    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    most = mu**2 / 2 + mu * math.sqrt(2 * math.log(1 / delta))
    root = brentq(lambda e: gaussian_delta(e, mu) - delta, 0.0, most, xtol=1e-13)
    return float(root)


# --- an independent accountant --------------------------------------------------------


def ledger_bounds(ledger: Ledger, delta: float) -> tuple[float, float]:
    """Lower and upper bound on a ledger's epsilon by an independent accountant.

    For sampling without replacement the lower bound is from the pair of Poisson
    sampling, which it attains too; the upper one is from the curve of Balle, Barthe and
    Gaboardi 2018. For a tilted minimum both ends are the upper bound, so that ours may
    not be lower either.
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
    if any(isinstance(e, GeneralisedGaussian) and e.order > 2 for e in others):
        return renyi, renyi  # only its Rényi curve is known
    if mu * (mu / 2 + 8) > _MOST * _interval(others):  # with others it costs no less
        return gaussian_epsilon(mu, delta), math.inf
    low, high = (_composed_by_library(others, mu, delta, up) for up in (False, True))
    sampled = [event for event in others if isinstance(event, SampledGaussian)]
    if sampled == others:
        parts = [losses(gaussian_cells(mu))] if mu else []
        for event in sampled:
            one = event.sensitivity / event.scale
            top = 8 * one + one**2 / 2
            once = curve_losses(partial(_sampled_deltas, event), top)
            parts += [once] * event.count
        high = composed(parts).epsilon(delta)
    return min(low, renyi), min(high, renyi)


def _tilted(tilts: Sequence[PerturbedObjective], mu: float, delta: float) -> float:
    """Bound on one tilted minimum with Gaussian releases; infinity for several minima.

    From the fixed shifts a v - a' v' of the proof, with a in twentieths.
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


def _composed_by_library(
    events: Sequence[Event], mu: float, delta: float, up: bool
) -> float:
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
    return max(map(_top, events)) / _LOUDEST_CELLS


def _top(event: Event) -> float:
    """About the largest loss of one release."""
    if isinstance(event, NoisyMax):
        return _pure(event)
    multiplier = event.noise_multiplier
    return 1 / multiplier if isinstance(event, Laplace) else 8 / multiplier


def _pure(event: NoisyMax) -> float:
    """Pure epsilon of one selection: one score may move up and another one down."""
    return 2 * event.sensitivity / event.scale


def _sampled_deltas(event: SampledGaussian, epsilons: Array) -> Array:
    """Q delta'(log(1 + (e^epsilon - 1) / q)), delta' without sampling (Theorem 9)."""
    q, mu = event.batch / event.population, event.sensitivity / event.scale
    return q * gaussian_delta(np.log1p(np.expm1(epsilons) / q), mu)


def _renyi_epsilon(events: Sequence[Event], delta: float) -> float:
    """Epsilon by Rényi curves in closed form; infinity where one is not known."""
    from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon

    curves = [_curve(event) for event in events]
    if any(curve is None for curve in curves):
        return math.inf
    return float(compute_epsilon(_ORDERS, np.sum(curves, axis=0), delta)[0])


def _curve(event: Event) -> Any:
    """The Rényi curve of an event's releases; None where none is known.

    Of Laplace noise: Mironov 2017, Table II; of generalised Gaussian noise: Bassily,
    Guzmán and Nandi 2021, Proposition 3.2 (c); of a selection: randomised response, or
    a range of losses (Cesar and Rogers 2021, Lemma 3).
    """
    a = _ORDERS
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
