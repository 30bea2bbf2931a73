"""Lower bounds on epsilon from shifts of the noise, and a second accountant.

Both compose by dp_accounting, which shares no code with ours. A release on a pair of
data sets is Gaussian, sampled Gaussian, Laplace, or cells: chances of the same events
on D and on D'. Cells coarsen an output, which can only hide information, so that every
number is a lower bound up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import brentq

from dperm.accountants.generalised_gaussian import GeneralisedGaussian
from dperm.accountants.noisy_max import NoisyMax
from dperm.accountants.perturbed_objective import PerturbedObjective
from dperm.audit.mechanism import DELTA, LAWS, Array, Draw, Mechanism, Pair
from dperm.audit.replay import HUGE, Replay, Shift, raised
from dperm.core.privacy.ledger import (
    Event,
    Gaussian,
    Laplace,
    Ledger,
    SampledGaussian,
)

MANY = 8  # candidates of a selection, beyond which its chances are not computed
ALIKE = 1e-4  # relative, between shifts after different histories
STRETCH = 100  # times as many releases, of a tenth of the cost: accountants differ more
MOST = 3  # Laplace numbers of one release whose cells are multiplied
_GRID = 1e-4  # spacing of losses, or a share of the largest one of a release
_SHARE = 2000
_X = np.linspace(-45.0, 45.0, 20_001)  # of an integral over the winner's noise
_PLANE = np.linspace(-9.0, 9.0, 801)
_LOSS = 2e-3  # of a loss in the plane, within which cells are one
_FINE = 400  # cells of a number

Cells = tuple[Array, Array]  # chances of the same cells on D and on D'
Release = tuple[str, tuple]  # kind, and its numbers


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Delta of N(mu, 1) against N(0, 1) (Balle and Wang 2018, Theorem 8)."""
    up, down = (stats.norm.logcdf(s * mu / 2 - epsilon / mu) for s in (1, -1))
    return float(np.exp(up) - np.exp(epsilon + down))


def gaussian_epsilon(mu: float, delta: float = DELTA) -> float:
    """Exact epsilon of Gaussian releases whose squared shifts add up to mu^2."""
    if not mu or gaussian_delta(0.0, mu) <= delta:
        return 0.0
    most = mu**2 / 2 + mu * math.sqrt(2 * math.log(1 / delta))
    return float(brentq(lambda e: gaussian_delta(e, mu) - delta, 0.0, most, xtol=1e-13))


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
        with np.errstate(divide="ignore"):
            logs = [dict(enumerate(np.log(side))) for side in numbers]
        return pld.from_two_probability_mass_functions(*logs, **grid, symmetric=False)

    parts = []
    for (kind, numbers), count in _counted(rest):
        one = distribution(kind, numbers)
        parts.append(one.self_compose(count) if count > 1 else one)
    if mu:
        parts.append(pld.from_gaussian_mechanism(1 / mu, **dots))
    total = reduce(lambda one, two: one.compose(two), parts)
    return float(total.get_epsilon_for_delta(delta))


def _largest(release: Release) -> float:
    """About the largest loss of a release."""
    kind, numbers = release
    if kind == "cells":
        both = (numbers[0] > 0) & (numbers[1] > 0)
        logs = np.log(numbers[0][both] / numbers[1][both])
        return float(np.abs(logs).max(initial=0.0))
    return float(numbers[0]) * (8 if kind == "sampled" else 1)


def _counted(releases: Iterable[Release]) -> list[tuple[Release, int]]:
    """Equal releases once, with their number."""
    found: list[tuple[Release, int]] = []
    for one in releases:
        for k, (other, count) in enumerate(found):
            if alike(other, one):
                found[k] = other, count + 1
                break
        else:
            found.append((one, 1))
    return found


def alike(one: Release, two: Release) -> bool:
    """Whether two releases cost the same, up to rounding."""
    return (
        one[0] == two[0]
        and len(one[1]) == len(two[1])
        and all(
            np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=ALIKE, atol=1e-9)
            for a, b in zip(one[1], two[1], strict=True)
        )
    )


# --- a second accountant --------------------------------------------------------------


def ledger_bounds(ledger: Ledger, delta: float = DELTA) -> tuple[float, float]:
    """Lower and upper bound on a ledger's epsilon by the second accountant.

    The upper one is infinite where it knows only some of the events: sampling without
    replacement, Gumbel selections, generalised Gaussians, sketches. For a tilted
    minimum both ends are the proof's bound, so that ours may not be lower either.
    """
    tilts = [e for e in ledger.events if isinstance(e, PerturbedObjective)]
    if tilts:
        gaussians = (e for e in ledger.events if isinstance(e, Gaussian))
        mu = math.sqrt(sum(e.count / e.noise_multiplier**2 for e in gaussians))
        high = _tilted(tilts, mu, delta)
        return high if math.isfinite(high) else 0.0, high
    below = [one for e in ledger.events for one in _stated(e, False)]
    above = [one for e in ledger.events for one in _stated(e, True)]
    low = composed(below, delta) if below else 0.0
    whole = len(above) == sum(event.count for event in ledger.events)
    return low, composed(above, delta, up=True) if whole else math.inf


def _tilted(tilts: Sequence[PerturbedObjective], mu: float, delta: float) -> float:
    """Bound on one tilted minimum with Gaussian releases; infinity for several minima.

    From the fixed shifts a v - a' v' of the proof, with a in twentieths.
    """
    if len(tilts) != 1 or tilts[0].count != 1:
        return math.inf
    M, K = 1 / tilts[0].noise_multiplier / 2, tilts[0].curvature

    def grid(epsilon: float) -> float:
        total = 0.0
        for k in range(21):
            ends = [t for t in (k - 1, k, k + 1, 10) if max(k - 1, 0) <= t <= k + 1]
            J = max(math.log1p(K * t * (20 - t) / 400) for t in ends if t <= 20)
            shifts = (math.hypot((k / 20 + b) * M, mu) for b in (0, 1))
            total += sum(_at(epsilon - J, shift) for shift in shifts)
        return total

    def joint(epsilon: float) -> float:
        left = _at(epsilon, math.hypot(2 * M, mu)) + _at(epsilon, math.hypot(M, mu))
        return left + sum(_at(epsilon - K, math.hypot(b * M, mu)) for b in (0, 1))

    def excess(epsilon: float) -> float:
        return min(grid(epsilon), joint(epsilon)) - delta

    low, high = 1e-9, 1.0
    if excess(low) <= 0:
        return low
    while excess(high) > 0:
        high *= 2
    return float(brentq(excess, low, high, xtol=1e-13))


def _at(epsilon: float, mu: float) -> float:
    """The Gaussian curve; 1 where epsilon is not positive."""
    if epsilon <= 0:
        return 1.0
    return gaussian_delta(epsilon, mu) if mu else 0.0


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
    size = 1 / event.noise_multiplier
    one: Release | None = None
    if isinstance(event, NoisyMax):
        # the worst of pure privacy; with Gumbel noise, losses have half of that range
        gumbel = event.noise == "gumbel"
        one = None if gumbel and up else _response(size if gumbel else 2 * size)
    elif isinstance(event, Laplace):
        one = "laplace", (size,)
    elif isinstance(event, SampledGaussian):
        one = None if up else ("sampled", (size, event.sampling_rate))
    elif isinstance(event, Gaussian):
        one = "gaussian", (size,)
    count = event.selections if isinstance(event, NoisyMax) else event.count
    return [one] * count if one else []


def _response(pure: float) -> Release:
    """Randomised response, the worst mechanism of a pure epsilon."""
    true = 1 / (1 + math.exp(-pure))
    return "cells", (np.array([true, 1 - true]), np.array([1 - true, true]))


# --- a run on a pair ------------------------------------------------------------------


def run_epsilon(m: Mechanism, pair: Pair, seeds: Sequence[int]) -> float | None:
    """Epsilon of a run on a pair; None where its law is not known.

    It is known where the noise of every release needs the same shift after the
    histories of all seeds: then releases cost what independent ones do.
    """
    if m.hidden and not _others_are_alike(m, pair, seeds[0]):
        return None
    found = [_releases(Replay(m, pair, seed)) for seed in seeds]
    first = found[0]
    if first is None or any(other is None for other in found):
        return None
    if any(other == [APART] for other in found):
        return math.inf
    for other in found[1:]:
        assert other is not None
        if len(other) != len(first) or not all(map(alike, first, other)):
            return None
    back = [(kind, n[::-1] if kind == "cells" else n) for kind, n in first]
    return max(composed(first), composed(back)) if first else 0.0


def _others_are_alike(m: Mechanism, pair: Pair, seed: int) -> bool:
    """Whether it makes no difference on D' which record is read."""
    n, script = len(pair.first.y), m.run(pair.first, seed).draws
    views = [
        np.concatenate(m.run(pair.second, seed, script, (pair.at + k) % n).views)
        for k in (0, 1, n - 1)
    ]
    return all(np.allclose(views[0], one, rtol=1e-12, atol=0) for one in views[1:])


APART: Release = ("apart", ())


def _releases(replay: Replay) -> list[Release] | None:
    """The releases of a run; None where one has no known law."""
    m, coupling = replay.m, replay.couple()
    if coupling.other is None:
        return [APART]
    if m.bent:
        return None
    found: list[Release] = []
    for t in range(len(coupling.seen.views)):
        if m.selects(coupling.seen, t):
            cells = chosen(replay, coupling.seen.draws, coupling.script, t)
            if cells is None:
                return None
            if not np.allclose(*cells, rtol=0, atol=1e-14):
                found.append(("cells", cells))
            continue
        for shift in coupling.at(t):
            one = release_of(shift)
            if one is None:
                return None
            found.append(one)
    return found


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
        return "cells", reduce(_times, map(_laplace, moved))
    if isinstance(event, Gaussian) or getattr(event, "order", 0) == 2:
        return "gaussian", (size,)
    if isinstance(event, GeneralisedGaussian) and shift.units.size == 2:
        return "cells", _planar(shift.units, event.order)
    return None


def _times(one: Cells, two: Cells) -> Cells:
    first, second = (np.outer(a, b).ravel() for a, b in zip(one, two, strict=True))
    return first, second


def _cells(law: Any, edges: Array, shift: float) -> Cells:
    """A number moved by a shift against one that is not, between edges and beyond."""
    sides = []
    for s in (shift, 0.0):
        low = np.concatenate([[0.0], law.cdf(edges - s), [1.0]])
        high = np.concatenate([[1.0], law.sf(edges - s), [0.0]])
        left = np.concatenate([[True], edges < s])
        sides.append(np.where(left, np.diff(low), -np.diff(high)))
    return sides[0], sides[1]


def _laplace(shift: float) -> Cells:
    return _cells(stats.laplace, np.linspace(0.0, shift, 24), shift)


def _powers(shift: Array, order: float) -> tuple[Array, Array]:
    one, two = (np.abs(_PLANE - by) ** order for by in shift)
    return one, two


def _planar(shift: Array, order: float) -> Cells:
    """Density exp(-||z||_r^2 / 2) in two dimensions, cut into cells of equal loss."""
    first, second = (
        np.exp(-0.5 * np.add.outer(*_powers(moved, order)) ** (2 / order))
        for moved in (shift, np.zeros(2))
    )
    first, second = (side.ravel() / side.sum() for side in (first, second))
    keep = (first > 1e-300) & (second > 1e-300)
    place = np.round(np.log(first[keep] / second[keep]) / _LOSS).astype(int)
    place -= place.min()
    sides = [np.bincount(place, side[keep]) for side in (first, second)]
    some = (sides[0] > 0) & (sides[1] > 0)
    return sides[0][some], sides[1][some]


# --- selections -----------------------------------------------------------------------


def chosen(
    replay: Replay, script: Sequence[Draw], other: Sequence[Draw], t: int
) -> Cells | None:
    """Chances of a selection on D and on D', with the release that follows each."""
    scripts, place = (list(script), list(other)), replay.place(0, list(script), t)
    if script[place].unit.size > MANY:
        return None
    one, two = (chances(replay, k, scripts[k], t) for k in (0, 1))
    if one.keys() != two.keys():
        return None
    first, second = list[Array](), list[Array]()
    for name in one:
        value = _value(replay, scripts, t, name)
        if value is None:
            return None
        first.append(one[name] * value[0])
        second.append(two[name] * value[1])
    return np.concatenate(first), np.concatenate(second)


def _value(
    replay: Replay, scripts: tuple[list[Draw], list[Draw]], t: int, name: tuple
) -> Cells | None:
    """Cells of the release that follows a selection, forced on D and on D'."""
    both = np.ones(1), np.ones(1)
    if not replay.added(replay.run(0, scripts[0], t), t):
        return both
    place, forced = replay.place(0, scripts[0], t), list(scripts[0])
    entry, sign = next(replay.ways(0, scripts[0], t, name))
    forced[place] = raised(forced[place], entry, sign * HUGE)
    again = [*scripts[1][:place], *forced[place:]]
    seen, now = replay.run(0, forced), replay.run(1, again)
    if len(now.views) <= t or seen.ends[: t + 2] != now.ends[: t + 2]:
        return None
    moved = replay.release(seen, now, again, t)
    if moved is None:
        return None
    for shift in moved[0]:
        release = release_of(shift)
        if release is None or release[0] == "sampled":
            return None
        both = _times(both, _as_cells(*release))
    return both


def _as_cells(kind: str, numbers: tuple) -> Cells:
    if kind == "laplace":
        return _laplace(numbers[0])
    if kind == "gaussian":
        edges = np.linspace(-8.0, 8.0 + numbers[0], _FINE)
        return _cells(stats.norm, edges, numbers[0])
    return numbers[0], numbers[1]


def chances(
    replay: Replay, which: int, script: list[Draw], t: int
) -> dict[tuple, float]:
    """Probabilities of what is selected, from the noise that makes each entry win.

    Noise is inside an absolute value if entries also win when it is very negative.
    """
    place, bare = replay.place(which, script, t), list(script)
    kind, size = script[place].kind, script[place].unit.size
    bare[place] = Draw(kind, np.zeros_like(script[place].unit))
    select = partial(replay.selected, which, bare, t)
    names = {s: [select(k, s * HUGE) for k in range(size)] for s in (1.0, -1.0)}
    sign = 1.0 if len(set(names[1.0])) == size else -1.0
    two_sided, top = names[1.0] == names[-1.0], select(0, 0.0)
    up, down = np.zeros(size), np.zeros(size)
    for k, name in enumerate(names[sign]):
        if name != top:
            up[k] = replay.threshold(which, bare, t, k, name, sign)
            if two_sided:
                down[k] = replay.threshold(which, bare, t, k, name, -sign, abs(up[k]))
    if two_sided:
        wins = _two_sided(up, down, names[sign].index(top), kind)
    else:
        wins = _one_sided(np.abs(up), kind)
    return dict(zip(names[sign], (wins / wins.sum()).tolist(), strict=True))


def _one_sided(behind: Array, kind: str) -> Array:
    """Chances that noise less how far an entry is behind is largest, not normed."""
    if kind == "gumbel":
        return np.exp(-behind)
    low = _X + behind[:, None]
    return _winning(LAWS[kind].pdf(low), LAWS[kind].cdf(low))


def _two_sided(up: Array, down: Array, best: int, kind: str) -> Array:
    """The same of absolute values, from thresholds above and below."""
    values, law = -0.5 * (up + down), LAWS[kind]
    other = 0 if best else 1
    values[best] = 0.5 * abs(up[other] - down[other])
    x = _X[_X >= 0]
    low, high = x - values[:, None], x + values[:, None]
    return _winning(law.pdf(low) + law.pdf(high), law.cdf(low) - law.cdf(-high))


def _winning(densities: Array, below: Array) -> Array:
    chance = [
        float((densities[k] * np.prod(np.delete(below, k, axis=0), axis=0)).sum())
        for k in range(len(densities))
    ]
    return np.array(chance)
