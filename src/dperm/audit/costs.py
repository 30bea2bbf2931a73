"""Lower bounds on epsilon from shifts of the noise, and a second accountant.

Both compose by dp_accounting, which shares no code with ours. A release on a pair of
data sets is Gaussian, sampled Gaussian, Laplace, or cells: chances of the same events
on D and on D'. Cells coarsen an output, which can only hide information, so that every
number is a lower bound up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import takewhile
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import brentq

from dperm.accountants.noisy_max import NoisyMax
from dperm.audit.mechanism import DELTA, Array, Mechanism, Pair
from dperm.audit.replay import Coupling, Replay, Shift
from dperm.core.privacy.ledger import Event, Gaussian, Laplace, Ledger, SampledGaussian

ALIKE = 1e-4  # relative, between shifts after different histories
STRETCH = 100  # times as many releases, of a tenth of the cost: accountants differ more
MOST = 3  # Laplace numbers of one release whose cells are multiplied
CELLS = 24  # of a Laplace number
_GRID = 1e-4  # spacing of losses, or a share of the largest one of a release
_SHARE = 2000

Release = tuple[str, tuple]  # kind, and its numbers


def gaussian_epsilon(mu: float, delta: float = DELTA) -> float:
    """Exact epsilon of Gaussian releases whose squared shifts add up to mu^2.

    Balle and Wang 2018, Theorem 8.
    """

    def excess(epsilon: float) -> float:
        up, down = (stats.norm.logcdf(s * mu / 2 - epsilon / mu) for s in (1, -1))
        return float(np.exp(up) - np.exp(epsilon + down)) - delta

    if not mu or excess(0.0) <= 0:
        return 0.0
    most = mu**2 / 2 + mu * math.sqrt(2 * math.log(1 / delta))
    return float(brentq(excess, 0.0, most, xtol=1e-13))


def composed(
    releases: Sequence[Release], delta: float = DELTA, up: bool = False
) -> float:
    """A bound from below, or above, on the epsilon of independent releases."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    mu = math.sqrt(sum(n[0] ** 2 for kind, n in releases if kind == "gaussian"))
    rest = [one for one in releases if one[0] != "gaussian"]
    if not rest:
        return gaussian_epsilon(mu, delta)
    interval = max(_GRID, max(map(_largest, rest)) / _SHARE)
    grid = {"pessimistic_estimate": up, "value_discretization_interval": interval}
    dots = {"use_connect_dots": up, **grid}

    def distribution(kind: str, numbers: tuple) -> Any:
        if kind == "laplace":
            return pld.from_laplace_mechanism(1 / numbers[0], **dots)
        if kind == "sampled":
            rate = {"sampling_prob": numbers[1]}
            return pld.from_gaussian_mechanism(1 / numbers[0], **rate, **dots)
        logs = [dict(enumerate(np.log(side))) for side in numbers]
        return pld.from_two_probability_mass_functions(*logs, **grid, symmetric=False)

    parts = []
    while rest:
        count = sum(alike(rest[0], one) for one in rest)
        one = distribution(*rest[0])
        parts.append(one.self_compose(count) if count > 1 else one)
        rest = [other for other in rest if not alike(rest[0], other)]
    if mu:
        parts.append(pld.from_gaussian_mechanism(1 / mu, **dots))
    total = reduce(lambda one, two: one.compose(two), parts)
    return float(total.get_epsilon_for_delta(delta))


def _largest(release: Release) -> float:
    """About the largest loss of a release."""
    kind, numbers = release
    if kind == "cells":
        return float(np.abs(np.log(numbers[0] / numbers[1])).max(initial=0.0))
    return float(numbers[0]) * (8 if kind == "sampled" else 1)


def alike(one: Release, two: Release) -> bool:
    """Whether two releases cost the same, up to rounding."""
    return (
        one[0] == two[0]
        and [np.shape(a) for a in one[1]] == [np.shape(b) for b in two[1]]
        and all(
            np.allclose(a, b, rtol=ALIKE, atol=1e-9)
            for a, b in zip(one[1], two[1], strict=True)
        )
    )


# --- a second accountant --------------------------------------------------------------


def ledger_bounds(ledger: Ledger, delta: float = DELTA) -> tuple[float, float]:
    """Lower and upper bound on a ledger's epsilon by the second accountant.

    It knows some of the events: the upper bound is infinite where others, or sampling
    or Gumbel noise, are in the ledger, and the lower one leaves those out.
    """
    below = [one for e in ledger.events for one in _stated(e, up=False)]
    above = [one for e in ledger.events for one in _stated(e, up=True)]
    low = composed(below, delta) if below else 0.0
    whole = len(above) == sum(event.count for event in ledger.events)
    return low, composed(above, delta, up=True) if whole else math.inf


def stretched(ledger: Ledger) -> Ledger:
    """The ledger with more and quieter releases, where accountants differ more."""
    quieter = math.sqrt(STRETCH)
    events = (
        replace(  # type: ignore[type-var]
            event, count=STRETCH * event.count, scale=quieter * event.scale
        )
        for event in ledger.events
    )
    return replace(ledger, events=tuple(events))


def _stated(event: Event, up: bool) -> list[Release]:
    """An event's releases at its stated sensitivity; none where no law is known."""
    if not event.scale:
        return []
    size, count = 1 / event.noise_multiplier, event.count
    one: Release | None = None
    if isinstance(event, NoisyMax):
        # the worst of pure privacy; with Gumbel noise, losses have half of that range
        gumbel, count = event.noise == "gumbel", event.selections
        one = None if gumbel and up else _response(size if gumbel else 2 * size)
    elif isinstance(event, Laplace):
        one = "laplace", (size,)
    elif isinstance(event, SampledGaussian):
        one = None if up else ("sampled", (size, event.sampling_rate))
    elif isinstance(event, Gaussian):
        one = "gaussian", (size,)
    return [one] * count if one else []


def _response(pure: float) -> Release:
    """Randomised response, the worst mechanism of a pure epsilon."""
    true = 1 / (1 + math.exp(-pure))
    return "cells", (np.array([true, 1 - true]), np.array([1 - true, true]))


# --- a run on a pair ------------------------------------------------------------------


def run_epsilon(m: Mechanism, pair: Pair, seeds: Sequence[int]) -> float:
    """Lower bound on the epsilon of a run on a pair, from its first releases.

    As far as the noise of each needs the same shift after the histories of all seeds:
    then releases cost what independent ones do. What follows a selection, a tilted
    minimum or noise of a norm other than the Euclidean one does not count.
    """
    if m.hidden and not _others_are_alike(m, pair, seeds[0]):
        return 0.0
    found: list[tuple[int, Release]] | None = None
    for seed in seeds:
        coupling = Replay(m, pair, seed).couple()
        if coupling.other is None:
            return math.inf
        known = list(_known(m, coupling))
        same = takewhile(
            lambda two: two[0][0] == two[1][0] and alike(two[0][1], two[1][1]),
            zip(known, known if found is None else found, strict=False),
        )
        found = [one for one, _ in same]
    return composed([release for _, release in found]) if found else 0.0


def _known(m: Mechanism, coupling: Coupling) -> Iterator[tuple[int, Release]]:
    """Views and their releases, up to the first whose law is not known."""
    seen = coupling.seen
    chosen = (t for t in range(len(seen.views)) if m.selects(seen, t))
    end = next(chosen, len(seen.views)) if not m.bent else 0
    for shift in coupling.shifts:
        release = release_of(shift)
        if release is None or shift.step >= end:
            return
        yield shift.step, release


def _others_are_alike(m: Mechanism, pair: Pair, seed: int) -> bool:
    """Whether it makes no difference on D' which record is read."""
    n, script = len(pair.first.y), m.run(pair.first, seed).draws
    views = [
        np.concatenate(m.run(pair.second, seed, script, (pair.at + k) % n).views)
        for k in (0, 1, n - 1)
    ]
    return all(np.allclose(views[0], one, rtol=1e-12, atol=0) for one in views[1:])


def release_of(shift: Shift) -> Release | None:
    """The release behind a shift; None where its law is not known."""
    event, size = shift.event, shift.size
    if isinstance(event, SampledGaussian):
        return "sampled", (size, event.sampling_rate)
    if isinstance(event, Laplace):
        moved = [abs(float(one)) for one in shift.units if abs(one) > 1e-9]
        if len(moved) == 1:
            return "laplace", (size,)
        if len(moved) > MOST:
            return None
        return "cells", reduce(_times, map(laplace_cells, moved))
    if isinstance(event, Gaussian) or getattr(event, "order", 0) == 2:
        return "gaussian", (size,)
    return None


def _times(one: tuple, two: tuple) -> tuple:
    return tuple(np.outer(a, b).ravel() for a, b in zip(one, two, strict=True))


def laplace_cells(shift: float) -> tuple[Array, Array]:
    """Chances of cells of a Laplace number that is moved, and of one that is not."""
    edges = np.linspace(0.0, shift, CELLS)
    ends = [stats.laplace.cdf(edges - by) for by in (shift, 0.0)]
    one, two = (np.diff(np.concatenate([[0.0], end, [1.0]])) for end in ends)
    return one, two
