"""Events that tell D from D': chosen on some runs, counted on others.

A statistic is a function of the output that is larger where D is likelier. Many are
tried, since whoever judges on fresh runs may choose as freely as he likes.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from dperm.audit.bounds import ratio_bound

Array = np.ndarray
Statistic = Callable[[Array], Array]

RIDGE = 1e-9  # of a covariance, relative: directions with next to no noise stay
FEW = 2e-3  # share of runs that an exact value must have to be looked at
MANY = 64  # outputs whose histograms are added up
WIDE = 8  # outputs of which single ones and differences of two are looked at
EASE = 0.05  # of epsilon, for an event that is easier to read: simple ones come first
HASTE = 4.0  # the same, over the runs it is chosen on: few fit any histogram
CELLS = 24  # of the histogram of a statistic
NAN, INFINITE = 1e4, 9e3  # what stands for them, beyond arcsinh of any number


@dataclass(frozen=True)
class Event:
    """Outputs whose statistic is at least ``at``."""

    text: str  #: the event in words; a statistic that was fitted is only named
    statistic: Statistic  #: (m, k) outputs to (m,) numbers
    at: float
    bound: float  #: lower bound on epsilon on the runs it was chosen on; flatters
    swapped: bool  #: whether it is likelier on D' than on D

    def count(self, outputs: Array) -> int:
        """How many of the outputs are in it."""
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
    """Outputs on a scale on which no number is too large, (m, k)."""
    tame = np.arcsinh(outputs / scale)
    tame = np.where(
        np.isposinf(tame), INFINITE, np.where(np.isneginf(tame), -INFINITE, tame)
    )
    return np.where(np.isnan(tame), NAN, tame)


def scale_of(outputs: Array) -> Array:
    """Typical size of every output, (k,)."""
    finite = np.where(np.isfinite(outputs), np.abs(outputs), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no finite one
        sizes = np.nanmedian(finite, axis=0)
    return np.where(np.isfinite(sizes) & (sizes > 0), sizes, 1.0)


def statistics(first: Array, second: Array) -> Iterator[tuple[str, Statistic]]:
    """Statistics and what they are, learned on runs on D and on D'."""
    both = np.concatenate([first, second])
    scale = scale_of(both)
    yield "an output is no number", _some_no_number
    yield "the outputs that are no numbers", lambda w: (~np.isfinite(w)).sum(axis=1)
    yield from _constant(first, second)
    # one output, its distance from the middle, its histogram; the same of the sum
    for j in range(min(first.shape[1], WIDE)):
        yield from _one(f"output[{j}]", _entry(j), scale[j], first, second)
    if 1 < first.shape[1] <= WIDE:
        size = float(scale.max())
        yield from _one("the sum of |outputs|", _l1, size, first, second)
    if 1 < first.shape[1] <= MANY:
        tame = [plain(side, scale) for side in (first, second)]
        yield "the histograms of all outputs", _histograms(scale, *tame)
    for name, view in _views(scale):
        yield from _fitted(name, view, view(first), view(second))
    yield from _atoms(first, second)


def _some_no_number(w: Array) -> Array:
    return np.asarray(~np.isfinite(w).all(axis=1))


def _constant(first: Array, second: Array) -> Iterator[tuple[str, Statistic]]:
    """The output that came in most runs on one side, where there is one."""
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
    return lambda w: np.all(w == row, axis=1)


def _views(scale: Array) -> list[tuple[str, Statistic]]:
    return [
        ("", lambda w: np.clip(np.nan_to_num(w / scale, nan=1e6), -1e6, 1e6)),
        (" of arcsinh", lambda w: plain(w, scale)),
    ]


def _entry(j: int) -> Statistic:
    """An output in its own unit; what is no number counts as infinite."""
    return lambda w: np.nan_to_num(w[:, j], nan=np.inf, posinf=np.inf, neginf=-np.inf)


def _l1(w: Array) -> Array:
    return np.nan_to_num(np.abs(w), nan=np.inf, posinf=np.inf).sum(axis=1)


def _one(
    name: str, value: Statistic, scale: float, first: Array, second: Array
) -> Iterator[tuple[str, Statistic]]:
    yield name, value
    medians = [float(np.median(value(side))) for side in (first, second)]
    for middle in sorted({m for m in medians if np.isfinite(m)}):
        yield f"|{name} - {middle:.6g}|", _away(value, middle)
    tame = _histogram(lambda w: plain(value(w), scale), first, second)
    yield f"the histogram of {name}", tame


def _away(value: Statistic, middle: float) -> Statistic:
    return lambda w: np.abs(value(w) - middle)


def _histogram(value: Statistic, one: Array, two: Array) -> Statistic:
    """How much oftener a cell came on D than on D'."""
    sides = value(one), value(two)
    # edges of cells: what comes again exactly has its own, the rest equal shares
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


def _histograms(scale: Array, one: Array, two: Array) -> Statistic:
    """The same as if outputs were independent: the ratios of all histograms, summed."""
    each = [_histogram(_of_column(j), one, two) for j in range(one.shape[1])]

    def total(w: Array) -> Array:
        tame = plain(w, scale)
        return np.sum([ratio(tame) for ratio in each], axis=0)

    return total


def _of_column(j: int) -> Statistic:
    return lambda w: w[:, j]


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


def _atoms(first: Array, second: Array) -> Iterator[tuple[str, Statistic]]:
    """Values that come again exactly: of the whole output, and of each number."""
    yield from _rarity("the exact output", lambda w: w, first, second)
    if 1 < first.shape[1] <= WIDE:
        for j in range(first.shape[1]):
            yield from _rarity(f"the exact output[{j}]", _column(j), first, second)


def _column(j: int) -> Statistic:
    return lambda w: w[:, j : j + 1]


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
