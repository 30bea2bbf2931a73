"""Evidence that distinguishes neighbours: exact laws of outputs, or counted events.

An output that is affine in its noise has a law whose slopes are measured by moving one
number of the noise at a time, and checked on fresh noise and other seeds. Where the
slopes on D and on D' agree, D' moves the noise, and the move has a price. Otherwise an
event is chosen on some runs and counted on others, which is valid whatever the choice.
A statistic is a function of the output that is larger where D is likelier.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dperm.audit.functions import Target
from dperm.audit.mechanism import Array, Pair, Records
from dperm.core.privacy.strict import gaussian_epsilon
from dperm.present.intervals import binomial_bounds

Statistic = Callable[[Array], Any]  # (m, k) outputs to (m,) numbers

MOST = 64  # numbers drawn in a run, beyond which slopes are not measured
CHECKS = 12  # runs on fresh noise that an affine output must reproduce
EXACT = 1e-7  # relative error of those
ZERO = 1e-12  # relative size below which a slope is rounding
MOVED = 1e-6  # relative size of a move that is no rounding

RIDGE = 1e-9  # of a covariance, relative: directions with next to no noise stay
WIDE = 8  # most outputs of which single ones are tried
EASE = 0.05  # of epsilon, given up for a simpler event: simple ones come first
HASTE = 4.0  # the same, divided by the runs it is chosen on: rare values overfit few
NAN, INFINITE = 1e4, 9e3  # their substitutes, beyond arcsinh of any number


# --- exact laws -----------------------------------------------------------------------


@dataclass(frozen=True)
class Law:
    """An output centre + slopes @ z, z with independent entries of these laws."""

    centre: Array  #: shape (k,)
    slopes: Array  #: shape (k, m)
    laws: tuple[str, ...]

    def seen(self, directions: Array) -> Law:
        """The law of the products of the output with some directions, (k, j)."""
        return Law(directions.T @ self.centre, directions.T @ self.slopes, self.laws)


@dataclass(frozen=True)
class Bound:
    """What laws or counts prove about a pair."""

    epsilon: float  #: lower bound; infinite where no noise hides the difference
    text: str  #: the event and its counts, or how far the noise moved


def law(target: Target, data: Records, seed: int) -> Law | None:
    """The law of the output on these data; None if it is not affine in known noise."""
    plain = target(data, seed)
    laws = tuple(draw.kind for draw in plain.draws for _ in range(draw.unit.size))
    if not plain.known or not 0 < len(laws) <= MOST:
        return None

    ends = np.cumsum([draw.unit.size for draw in plain.draws])[:-1]

    def output(z: Array, seed: int = seed) -> Array:
        """What this noise leads to; NaN where the run draws other noise."""
        parts = zip(plain.draws, np.split(z, ends), strict=True)
        script = [replace(d, unit=unit.reshape(d.unit.shape)) for d, unit in parts]
        run = target(data, seed, script)
        same = run.known and run.output.shape == plain.output.shape
        return run.output if same else np.full(plain.output.shape, np.nan)

    centre = output(np.zeros(len(laws)))
    slopes = [output(one) - centre for one in np.eye(len(laws))]
    found = Law(centre, np.column_stack(slopes), laws)
    rng = np.random.Generator(np.random.PCG64([seed, 5]))
    for k in range(CHECKS):  # on fresh noise, and with other seeds
        z = (1 + k % 3) * rng.standard_normal(len(laws))
        error = np.abs(output(z, seed + 1 + k) - centre - found.slopes @ z)
        reach = np.abs(centre) + np.abs(found.slopes) @ np.abs(z)
        if not (error <= EXACT * reach.max(initial=1e-300)).all():
            return None
    return found


def compare_laws(target: Target, pair: Pair, seed: int, delta: float) -> Bound | None:
    """The epsilon that the laws of a pair prove; None where they do not tell.

    Outputs are taken in units of their size, which tells differences from rounding.
    """
    one = law(target, pair.first, seed)
    two = law(target, pair.second, seed) if one is not None else None
    if one is None or two is None or one.centre.shape != two.centre.shape:
        return None
    both = [
        np.abs(np.column_stack([a.centre, a.slopes])).sum(axis=1) for a in (one, two)
    ]
    sizes = np.max(both, axis=0)
    units = np.diag(1 / np.where(sizes > 0, sizes, 1.0))
    one, two = one.seen(units), two.seen(units)
    for a, b in ((one, two), (two, one)):
        bare = _no_noise(a, b)
        if bare is not None:
            return bare
    # in coordinates that noise reaches; the others are equal
    span = _split(one.slopes)[1]
    if not span.shape[1]:
        return Bound(0.0, "the output has the same law on both")
    try:
        return _moved(one.seen(span), two.seen(span), delta)
    except np.linalg.LinAlgError:  # noise of D' does not reach all that noise of D does
        return None


def _split(slopes: Array) -> tuple[Array, Array]:
    """Directions of the output without noise and with it."""
    left, values, _ = np.linalg.svd(slopes)
    rank = int((values > ZERO * max(values.max(initial=0.0), ZERO)).sum())
    return left[:, rank:], left[:, :rank]


def _no_noise(one: Law, two: Law) -> Bound | None:
    """Infinite bound where a part of the output has no noise and differs; else None."""
    free, _ = _split(one.slopes)
    if not free.shape[1]:
        return None
    moved = np.abs(free.T @ (two.centre - one.centre))
    shaken = np.abs(free.T @ two.slopes).max(axis=1, initial=0.0)
    worst = int(np.argmax(np.maximum(moved, shaken)))
    if max(moved[worst], shaken[worst]) <= MOVED:
        return None
    weights = free[:, worst]
    places = np.flatnonzero(np.abs(weights) > MOVED)[:4]
    names = "+".join(f"{weights[j]:.3g}*output[{j}]" for j in places)
    text = f"with the same noise {names} moved by {moved[worst]:.4g}, in units of the"
    return Bound(math.inf, f"{text} outputs' sizes, where one data set has no noise")


def _moved(one: Law, two: Law, delta: float) -> Bound | None:
    """The price of a move of noise: all of it Gaussian, or one number an output.

    Noise that D' must move by z costs what its Gaussian numbers do, and what its
    Laplace numbers do: with a delta, what the one that moves furthest does.
    """
    if one.laws != two.laws:
        return None
    gaussian = np.array([name == "normal" for name in one.laws])
    A, B, by = one.slopes, two.slopes, two.centre - one.centre
    if gaussian.all():
        A, B = np.linalg.cholesky(A @ A.T), np.linalg.cholesky(B @ B.T)
        gaussian = np.ones(len(A), dtype=bool)
    else:
        used = np.abs(A).max(axis=0) > ZERO * np.abs(A).max()
        A, B, gaussian = A[:, used], B[:, used], gaussian[used]
    if A.shape[0] != A.shape[1] or np.abs(A - B).max() > MOVED * np.abs(A).max():
        return None
    z = np.abs(np.linalg.solve(A, by))
    laplace, mu, cost = z[~gaussian], float(np.linalg.norm(z[gaussian])), 0.0
    if mu:
        cost = gaussian_epsilon(mu, delta) if delta else math.inf
    pure = laplace.max(initial=0.0) + 2 * math.log1p(-delta) if delta else laplace.sum()
    cost = max(cost, float(pure))
    sizes = "+".join(f"{size:.4g}" for size in z[:WIDE])
    return Bound(
        cost, f"on D' the same output takes noise moved by {sizes} of its scale"
    )


# --- events ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Event:
    """Outputs whose statistic is at least ``at``."""

    text: str  #: the event in words; a statistic that was fitted is only named
    statistic: Statistic  #: (m, k) outputs to (m,) numbers
    at: float
    swapped: bool  #: whether it is likelier on D' than on D


def judge(
    event: Event, first: Array, second: Array, level: float, delta: float
) -> Bound:
    """Lower bound on epsilon from fresh runs (Clopper and Pearson on both sides)."""
    runs = len(first)
    hits = [int((event.statistic(side) >= event.at).sum()) for side in (first, second)]
    under, over = map(np.array, hits[::-1] if event.swapped else hits)
    counts = f"{hits[0]} of {runs} runs on D, {hits[1]} of {runs} on D'"
    found = float(ratio_bound(under, over, runs, level, delta))
    return Bound(found, f"{event.text}: {counts}")


def ratio_bound(
    under: Array, over: Array, trials: int, level: float, delta: float
) -> Array:
    """Lower bounds on epsilon from numbers of hits of events on D and on D'.

    (epsilon, delta)-privacy means P(E | D) <= e^epsilon P(E | D') + delta.
    """
    low, _ = binomial_bounds(under, trials, level / 2)
    _, high = binomial_bounds(over, trials, level / 2)
    none = -math.expm1(math.log(level / 2) / trials)  # 1 - level loses its digits
    high = np.where(over == 0, none, high)
    return np.log(np.maximum(low - delta, 1e-300) / high)


def learn(first: Array, second: Array, level: float, delta: float) -> Event:
    """The event with the largest lower bound on these runs, or a simpler one."""
    runs = len(first)
    best, ease = -math.inf, max(EASE, HASTE / runs)
    found: tuple[str, Statistic, float, float, bool] | None = None
    places = np.append(np.geomspace(2, 2 * runs, 24).astype(int), runs)
    for text, statistic in statistics(first, second):
        for sign in (1.0, -1.0):
            one, two = (np.sort(sign * statistic(side)) for side in (first, second))
            ats = np.unique(np.sort(np.concatenate([one, two]))[2 * runs - places])
            hits = [runs - np.searchsorted(side, ats) for side in (one, two)]
            for swapped in (False, True):
                under, over = hits[::-1] if swapped else hits
                bounds = ratio_bound(under, over, runs, level, delta)
                k = int(np.argmax(bounds))
                if bounds[k] > best + ease:
                    best, found = bounds[k], (text, statistic, sign, ats[k], swapped)
    assert found is not None
    text, statistic, sign, at, swapped = found
    name = f"{text} {'>=' if sign > 0 else '<='} {sign * at + 0.0:.6g}"
    if statistic(first[:1]).dtype == bool:
        name = text if sign > 0 else f"not ({text})"
    return Event(name, lambda w: sign * statistic(w), at, swapped)


# --- statistics -----------------------------------------------------------------------


def tame(outputs: Array, scale: Array | float) -> Array:
    """Outputs on an arcsinh scale, NaN and infinity as large numbers, (m, k)."""
    small = np.arcsinh(outputs / scale)
    return np.nan_to_num(small, nan=NAN, posinf=INFINITE, neginf=-INFINITE)


def scale_of(outputs: Array) -> Array:
    """Typical size of every output, (k,)."""
    finite = np.where(np.isfinite(outputs), np.abs(outputs), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no finite one
        sizes = np.nanmedian(finite, axis=0)
    return np.where(np.isfinite(sizes) & (sizes > 0), sizes, 1.0)


def statistics(first: Array, second: Array) -> Iterator[tuple[str, Statistic]]:
    """Statistics and their names, learned on runs on D and on D'; simple ones first."""
    yield "an output is no number", lambda w: ~np.isfinite(w).all(axis=1)
    for j in range(min(first.shape[1], WIDE)):
        value = partial(_output, j)
        yield f"output[{j}]", value
        for middle in sorted({float(np.median(value(w))) for w in (first, second)}):
            if math.isfinite(middle):
                name = f"|output[{j}] - {middle:.6g}|"
                yield name, partial(_away, value, middle)
    view = partial(tame, scale=scale_of(np.concatenate([first, second])))
    one, two = view(first), view(second)  # for Fisher's linear function
    spread = np.atleast_2d(np.cov(one, rowvar=False) + np.cov(two, rowvar=False))
    size = max(float(np.trace(spread)) / len(spread), 1e-12)
    ridged = spread + RIDGE * size * np.eye(len(spread))
    normal = np.linalg.solve(ridged, one.mean(axis=0) - two.mean(axis=0))
    if np.isfinite(normal).all():
        yield "a linear function", lambda w: view(w) @ normal


def _output(j: int, w: Array) -> Array:
    """An output in its own unit; NaN counts as infinite."""
    finite = np.nan_to_num(w[:, j], nan=np.inf, posinf=np.inf, neginf=-np.inf)
    return np.asarray(finite)


def _away(value: Statistic, middle: float, w: Array) -> Array:
    return np.abs(np.asarray(value(w)) - middle)
