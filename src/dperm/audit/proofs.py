"""Evidence that distinguishes neighbours: exact laws of outputs, or counted events.

An output that is affine in its noise has a law whose slopes are measured by moving one
number of the noise at a time, and checked on fresh noise and other seeds. Then its
density is known on D and on D', and with it the privacy loss: only an expectation is
estimated. Otherwise an event is chosen on some runs and counted on others. A statistic
is a function of the output that is larger where D is likelier. Many are tried: counts
on fresh runs are valid whatever the choice.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dperm.audit.bounds import losses_bound, ratio_bound
from dperm.audit.functions import Pair, Run, Target
from dperm.audit.mechanism import LAWS, Array, Records
from dperm.core.privacy.strict import gaussian_epsilon

Statistic = Callable[[Array], Any]  # (m, k) outputs to (m,) numbers

MOST = 64  # numbers drawn in a run, beyond which slopes are not measured
CHECKS = 12  # runs on fresh noise that an affine output must reproduce
EXACT = 1e-7  # relative error of those
ZERO = 1e-12  # relative size below which a slope is rounding
SAMPLES = 20000  # outputs at which the privacy loss is computed

RIDGE = 1e-9  # of a covariance, relative: directions with next to no noise stay
FEW = 2e-3  # least share of runs with an exact value, for that to be tried
MANY = 64  # most outputs whose histograms are added up
WIDE = 8  # most outputs of which single ones and differences of two are tried
EASE = 0.05  # of epsilon, given up for a simpler event: simple ones come first
HASTE = 4.0  # the same, divided by the runs it is chosen on: histograms overfit few
CELLS = 24  # of the histogram of a statistic
NAN, INFINITE = 1e4, 9e3  # their substitutes, beyond arcsinh of any number


# --- exact laws -----------------------------------------------------------------------


@dataclass(frozen=True)
class Law:
    """An output centre + slopes @ z, z with independent entries of these laws."""

    centre: Array  #: shape (k,)
    slopes: Array  #: shape (k, m)
    laws: tuple[str, ...]


@dataclass(frozen=True)
class Exact:
    """The bound that the laws of a pair prove."""

    epsilon: float  #: lower bound; infinite where no noise hides the difference
    text: str
    certain: bool = True  #: whether nothing was estimated from samples


def law(target: Target, data: Records, seed: int) -> Law | None:
    """The law of the output on these data; None if it is not affine in known noise."""
    plain = target(data, seed, careful=True)
    size = sum(draw.unit.size for draw in plain.record.draws)
    if plain.raised or plain.record.others or not 0 < size <= MOST:
        return None
    still = [np.zeros_like(draw.unit) for draw in plain.record.draws]
    centre = target(data, seed, still).output
    columns = []
    for k, unit in enumerate(still):
        for entry in range(unit.size):
            moved = [u.copy() for u in still]
            moved[k].flat[entry] = 1.0
            columns.append(target(data, seed, moved).output)
    if any(c.shape != centre.shape for c in columns) or not np.isfinite(columns).all():
        return None
    laws = tuple(d.kind for d in plain.record.draws for _ in range(d.unit.size))
    fitted = Law(centre, np.column_stack(columns) - centre[:, None], laws)
    return fitted if _holds(target, data, seed, fitted, plain) else None


def _holds(target: Target, data: Records, seed: int, fitted: Law, plain: Run) -> bool:
    """Whether the law predicts the outputs of runs on fresh noise with other seeds."""
    rng = np.random.Generator(np.random.PCG64([seed, 5]))
    for k in range(CHECKS):
        units = [sample(draw.kind, rng, draw.unit.shape) for draw in plain.record.draws]
        units = [(1 + k % 3) * unit for unit in units]
        run = target(data, seed + 1 + k, units, careful=True)
        z = np.concatenate([np.ravel(unit) for unit in units])
        if run.record.others or run.output.shape != fitted.centre.shape:
            return False
        error = np.abs(run.output - fitted.centre - fitted.slopes @ z)
        reach = np.abs(fitted.centre) + np.abs(fitted.slopes) @ np.abs(z)
        if not (error <= EXACT * reach.max(initial=1e-300)).all():
            return False
    return True


def sample(name: str, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw noise of unit scale from a law."""
    return np.asarray(LAWS[name].rvs(size=shape, random_state=rng))


# --- a pair ---------------------------------------------------------------------------


def compare_laws(
    target: Target, pair: Pair, seed: int, delta: float, level: float
) -> Exact | None:
    """The epsilon that the laws of a pair prove; None where they are not known."""
    one = law(target, pair.first, seed)
    two = law(target, pair.second, seed) if one is not None else None
    if one is None or two is None or one.centre.shape != two.centre.shape:
        return None
    bare = _no_noise(one, two) or _no_noise(two, one)
    if bare is not None:
        return bare
    # both laws in coordinates that noise reaches; the others are equal
    scales = _scales(one, two)
    _, span = _split(one.slopes, scales)
    one, two = (
        Law(span.T @ _over(a.centre, scales), span.T @ _over(a.slopes, scales), a.laws)
        for a in (one, two)
    )
    if not one.centre.size:
        return Exact(0.0, "the output has the same law on both")
    known = [_losses(a, b, delta, level) for a, b in ((one, two), (two, one))]
    return max(
        (e for e in known if e is not None), key=lambda e: e.epsilon, default=None
    )


def _scales(one: Law, two: Law) -> Array:
    """Size of every output, which separates differences from rounding."""
    centres = [np.abs(law.centre) for law in (one, two)]
    return np.max(
        [*centres, *(np.abs(law.slopes).sum(axis=1) for law in (one, two))], axis=0
    )


def _no_noise(one: Law, two: Law) -> Exact | None:
    """Infinite bound where a part of the output has no noise and differs; else None."""
    scales = _scales(one, two)
    free, _ = _split(one.slopes, scales)
    if not free.shape[1]:
        return None
    moved = np.abs(free.T @ _over(two.centre - one.centre, scales))
    shaken = np.abs(free.T @ _over(two.slopes, scales)).max(axis=1, initial=0.0)
    worst = int(np.argmax(np.maximum(moved, shaken)))
    if max(moved[worst], shaken[worst]) <= 1e-6:
        return None
    weights = _over(free[:, worst], scales)
    weights /= np.abs(weights).max()
    places = np.flatnonzero(np.abs(free[:, worst]) > 1e-6)
    by = abs(float(weights @ (two.centre - one.centre)))
    names = "+".join(f"{weights[j]:.3g}*output[{j}]" for j in places[:4])
    return Exact(
        math.inf,
        f"with the same noise {names} moved by {by:.4g} while the scale of its noise is"
        f" {np.abs(weights @ one.slopes).max(initial=0.0):.3g}"
        f" and {np.abs(weights @ two.slopes).max(initial=0.0):.3g}",
    )


def _over(values: Array, scales: Array) -> Array:
    safe = np.where(scales > 0, scales, 1.0)
    return values / (safe[:, None] if values.ndim == 2 else safe)


def _split(slopes: Array, scales: Array) -> tuple[Array, Array]:
    """Directions of the output, in units of its size, without noise and with it."""
    left, values, _ = np.linalg.svd(_over(slopes, scales))
    rank = int((values > ZERO * max(values.max(initial=0.0), ZERO)).sum())
    return left[:, rank:], left[:, :rank]


def _losses(one: Law, two: Law, delta: float, level: float) -> Exact | None:
    """Epsilon from the privacy losses of outputs on the first data."""
    if set(one.laws) == set(two.laws) == {"normal"}:
        return _gaussian(one, two, delta, level)
    one, two = _used(one), _used(two)
    square = one.slopes.shape[0] == one.slopes.shape[1]
    if one.laws != two.laws or not square or two.slopes.shape != one.slopes.shape:
        return None
    z = _noise(one.laws, delta)
    other = np.linalg.solve(
        two.slopes, one.slopes @ z + (one.centre - two.centre)[:, None]
    )
    sizes = [np.linalg.slogdet(a.slopes)[1] for a in (two, one)]
    losses = _density(one.laws, z) - _density(one.laws, other) + sizes[0] - sizes[1]
    return _bound(losses, delta, level, "the output's density on both data sets")


def _noise(names: Sequence[str], delta: float) -> Array:
    """Where losses are computed; at delta 0 any points of the support will do."""
    rng = np.random.Generator(np.random.PCG64(5))
    z = np.array([sample(name, rng, (SAMPLES,)) for name in names])
    return z if delta else z * 10.0 ** rng.uniform(0, 1.5, SAMPLES)


def _used(fitted: Law) -> Law:
    used = np.abs(fitted.slopes).max(axis=0) > ZERO * np.abs(fitted.slopes).max()
    laws = tuple(name for name, keep in zip(fitted.laws, used, strict=True) if keep)
    return Law(fitted.centre, fitted.slopes[:, used], laws)


def _density(names: Sequence[str], z: Array) -> Array:
    return np.sum(
        [LAWS[n].logpdf(row) for n, row in zip(names, z, strict=True)], axis=0
    )


def _gaussian(one: Law, two: Law, delta: float, level: float) -> Exact:
    """Two Gaussians: closed form where their covariances agree."""
    root = np.linalg.cholesky(one.slopes @ one.slopes.T)
    shift = np.linalg.solve(root, two.centre - one.centre)
    slopes = np.linalg.solve(root, two.slopes)
    covariance = slopes @ slopes.T
    if np.abs(covariance - np.eye(len(shift))).max() < 1e-6:
        mu = float(np.linalg.norm(shift))
        found = gaussian_epsilon(mu, delta) if mu > 0 and delta > 0 else math.inf * mu
        return Exact(
            float(np.nan_to_num(found, nan=0.0, posinf=math.inf)),
            f"the output is Gaussian and moved by {mu:.4g} of its standard deviations",
        )
    z = _noise(("normal",) * len(shift), delta)
    away = np.linalg.solve(np.linalg.cholesky(covariance), z - shift[:, None])
    half = 0.5 * np.linalg.slogdet(covariance)[1]
    losses = 0.5 * ((away**2).sum(axis=0) - (z**2).sum(axis=0)) + half
    return _bound(losses, delta, level, "two Gaussians of different spread")


def _bound(losses: Array, delta: float, level: float, text: str) -> Exact:
    if delta == 0:
        return Exact(float(losses.max()), f"{text}: their ratio at one output")
    found = losses_bound(losses, delta, level, 1)
    return Exact(found, f"{text}, at {SAMPLES} outputs", certain=False)


# --- events ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Event:
    """Outputs whose statistic is at least ``at``."""

    text: str  #: the event in words; a statistic that was fitted is only named
    statistic: Statistic  #: (m, k) outputs to (m,) numbers
    at: float
    bound: float  #: lower bound on epsilon on the runs it was chosen on; optimistic
    swapped: bool  #: whether it is likelier on D' than on D

    def count(self, outputs: Array) -> int:
        """How many of the outputs are in the event."""
        return int((self.statistic(outputs) >= self.at).sum())


@dataclass(frozen=True)
class Judged:
    """An event, counted on fresh runs."""

    event: Event
    on_first: int
    on_second: int
    runs: int
    level: float
    raw: float  # the bound, which may be negative

    @property
    def epsilon(self) -> float:
        """The bound on epsilon, at least 0."""
        return max(self.raw, 0.0)

    @property
    def text(self) -> str:
        """The event and its counts in words."""
        return (
            f"{self.event.text}: {self.on_first} of {self.runs} runs on D,"
            f" {self.on_second} of {self.runs} on D'"
        )


def judge(
    event: Event, first: Array, second: Array, level: float, delta: float
) -> Judged:
    """Lower bound on epsilon from fresh runs (Clopper and Pearson on both sides)."""
    counts = event.count(first), event.count(second)
    under, over = counts[::-1] if event.swapped else counts
    hits = (np.array(under), np.array(over))
    found = float(ratio_bound(*hits, len(first), level, delta))
    return Judged(event, *counts, len(first), level, found)


def learn(first: Array, second: Array, level: float, delta: float) -> Event:
    """The event with the largest lower bound on these runs."""
    tried: list[tuple[str, Statistic, float, float]] = []
    hits: list[Array] = []
    for text, statistic in statistics(first, second):
        one, two = statistic(first), statistic(second)
        for sign in (1.0, -1.0):
            ats, counts = _thresholds(*(np.sort(sign * side) for side in (one, two)))
            tried += [(text, statistic, sign, at) for at in ats]
            hits.append(counts)
    under, over = np.concatenate(hits, axis=1)
    runs, ways = len(first), ((under, over), (over, under))
    bounds = np.array([ratio_bound(a, b, runs, level, delta) for a, b in ways])
    good = bounds >= bounds.max() - max(EASE, HASTE / runs)
    k = int(np.argmax(good.any(axis=0)))
    swapped = int(np.argmax(good[:, k]))
    text, statistic, sign, at = tried[k]
    name = f"{text} {'>=' if sign > 0 else '<='} {sign * at + 0.0:.6g}"
    if statistic(first[:1]).dtype == bool:
        name = text if sign > 0 else f"not ({text})"
    best = float(bounds[swapped, k])
    return Event(name, lambda w: sign * statistic(w), at, best, bool(swapped))


def _thresholds(one: Array, two: Array) -> tuple[Array, Array]:
    """Values of a statistic, sorted on both sides, and how many reach each."""
    both = np.sort(np.concatenate([one, two]))
    places = np.append(np.geomspace(2, len(both), 24).astype(int), len(one))
    ats = np.unique(both[len(both) - places])
    return ats, np.array([len(s) - np.searchsorted(s, ats) for s in (one, two)])


# --- statistics -----------------------------------------------------------------------


def plain(outputs: Array, scale: Array | float) -> Array:
    """Outputs on an arcsinh scale, NaN and infinity as large numbers, (m, k)."""
    tame = np.arcsinh(outputs / scale)
    return np.nan_to_num(tame, nan=NAN, posinf=INFINITE, neginf=-INFINITE)


def scale_of(outputs: Array) -> Array:
    """Typical size of every output, (k,)."""
    finite = np.where(np.isfinite(outputs), np.abs(outputs), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no finite one
        sizes = np.nanmedian(finite, axis=0)
    return np.where(np.isfinite(sizes) & (sizes > 0), sizes, 1.0)


def statistics(first: Array, second: Array) -> Iterator[tuple[str, Statistic]]:
    """Statistics and their names, learned on runs on D and on D'."""
    p, scale = first.shape[1], scale_of(np.concatenate([first, second]))
    yield "an output is no number", lambda w: ~np.isfinite(w).all(axis=1)
    yield "the outputs that are no numbers", lambda w: (~np.isfinite(w)).sum(axis=1)
    yield from _constant(first, second)
    # one output, its distance from the middle, its histogram; the same of the sum
    for j in range(min(p, WIDE)):
        yield from _one(f"output[{j}]", _column(j), scale[j], first, second)
    if 1 < p <= WIDE:
        given = (float(scale.max()), first, second)
        yield from _one("the sum of |outputs|", lambda w: abs(w).sum(axis=1), *given)
    if 1 < p <= MANY:
        yield "the histograms of all outputs", _histograms(scale, first, second)
    views: list[tuple[str, Statistic]] = [
        ("", lambda w: np.clip(np.nan_to_num(w / scale, nan=1e6), -1e6, 1e6)),
        (" of arcsinh", lambda w: plain(w, scale)),
    ]
    for name, view in views:
        yield from _fitted(name, view, view(first), view(second))
    # values that recur exactly: of the whole output, and of each number
    yield from _rarity("the exact output", lambda w: w, first, second)
    for j in range(p if 1 < p <= WIDE else 0):
        number = _column(slice(j, j + 1))
        yield from _rarity(f"the exact output[{j}]", number, first, second)


def _column(j: int | slice) -> Statistic:
    return lambda w: w[:, j]


def _constant(first: Array, second: Array) -> Iterator[tuple[str, Statistic]]:
    """The output of most runs on one side, where there is one."""
    for side in (first, second):
        row = np.median(side, axis=0)
        if np.isfinite(row).all() and 2 * (side == row).all(axis=1).sum() > len(side):
            values = [f"{value:.6g}" for value in row[:WIDE]]
            values += ["..."] if len(row) > WIDE else []
            same = f"all outputs exactly {values[0]}"
            each = f"outputs exactly {', '.join(values)}"
            text = same if (row == row[0]).all() else each
            yield text, _equal(row)


def _equal(row: Array) -> Statistic:
    return lambda w: (w == row).all(axis=1)


def _one(
    name: str, part: Statistic, scale: float, first: Array, second: Array
) -> Iterator[tuple[str, Statistic]]:
    def value(w: Array) -> Array:
        """In its own unit; NaN counts as infinite."""
        finite = np.nan_to_num(w, nan=np.inf, posinf=np.inf, neginf=-np.inf)
        return np.asarray(part(finite))

    def away(middle: float) -> Statistic:
        return lambda w: np.abs(value(w) - middle)

    yield name, value
    medians = [float(np.median(value(side))) for side in (first, second)]
    for middle in sorted({m for m in medians if np.isfinite(m)}):
        yield f"|{name} - {middle:.6g}|", away(middle)
    tame = _histogram(lambda w: plain(value(w), scale), first, second)
    yield f"the histogram of {name}", tame


def _histogram(value: Statistic, one: Array, two: Array) -> Statistic:
    """Log ratio of how often a cell occurs on D and on D'."""
    sides = value(one), value(two)
    # edges of cells: values that recur have their own cells, the rest equal shares
    values = np.concatenate(sides)
    unique, often = np.unique(values, return_counts=True)
    again = often >= max(3, FEW * len(values))
    atoms, rest = unique[again], values[~np.isin(values, unique[again])]
    shares = np.quantile(rest, np.linspace(0, 1, CELLS)) if rest.size else rest
    edges = np.unique(np.concatenate([atoms, np.nextafter(atoms, np.inf), shares]))
    counts = [
        np.bincount(np.searchsorted(edges, s, side="right"), minlength=len(edges) + 1)
        for s in sides
    ]
    ratio = np.log((counts[0] + 1) / (counts[1] + 1))
    return lambda w: ratio[np.searchsorted(edges, value(w), side="right")]


def _histograms(scale: Array, first: Array, second: Array) -> Statistic:
    """The same for all outputs: the sum over their histograms, as if independent."""
    tame = [plain(side, scale) for side in (first, second)]
    each = [_histogram(_column(j), *tame) for j in range(len(scale))]

    def total(w: Array) -> Array:
        tame = plain(w, scale)
        return np.sum([ratio(tame) for ratio in each], axis=0)

    return total


def _fitted(
    name: str, view: Statistic, one: Array, two: Array
) -> Iterator[tuple[str, Statistic]]:
    """Fisher's linear function, and the likelihood ratio of two fitted Gaussians."""
    centres = one.mean(axis=0), two.mean(axis=0)
    spreads = [np.atleast_2d(np.cov(s, rowvar=False)) for s in (one, two)]
    normal = np.linalg.solve(_ridged(spreads[0] + spreads[1]), centres[0] - centres[1])
    if np.isfinite(normal).all():
        yield f"a linear function{name}", lambda w: view(w) @ normal
    inverses = [np.linalg.inv(_ridged(s)) for s in spreads]

    def ratio(w: Array) -> Array:
        away = [view(w) - centre for centre in centres]
        sizes = [
            np.einsum("ij,jk,ik->i", a, inverse, a)
            for a, inverse in zip(away, inverses, strict=True)
        ]
        return sizes[1] - sizes[0]

    if all(np.isfinite(inverse).all() for inverse in inverses):
        yield f"the ratio of fitted Gaussians{name}", ratio


def _ridged(spread: Array) -> Array:
    size = max(float(np.trace(spread)) / len(spread), 1e-12)
    return spread + RIDGE * size * np.eye(len(spread))


def _rarity(
    name: str, part: Statistic, first: Array, second: Array
) -> Iterator[tuple[str, Statistic]]:
    counts = [
        Counter(map(bytes, np.ascontiguousarray(part(s)))) for s in (first, second)
    ]
    least = max(3, FEW * len(first))
    known = {key for count in counts for key, often in count.items() if often >= least}
    if not known:
        return
    ratios = {key: np.log((counts[0][key] + 1) / (counts[1][key] + 1)) for key in known}

    def rarity(w: Array) -> Array:
        rows = map(bytes, np.ascontiguousarray(part(w)))
        return np.array([ratios.get(row, 0.0) for row in rows])

    yield f"how rare {name} is", rarity
