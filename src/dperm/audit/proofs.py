"""Evidence that distinguishes neighbours: exact laws of outputs, or counted events.

An output that is affine in its noise has a law whose slopes are measured by moving one
number of the noise at a time, and checked on fresh noise and other seeds. Then its
density is known on D and on D', and with it the privacy loss, or that of Gaussians
beyond a delta. Otherwise an event is chosen on some runs and counted on others, which
is valid whatever the choice. A statistic is a function of the output that is larger
where D is likelier.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from scipy import stats

from dperm.audit.draws import RecordedRun
from dperm.audit.functions import AuditedFit, Neighbours
from dperm.audit.mechanism import LAWS, Array, AuditData
from dperm.numerics.intervals import binomial_bounds
from dperm.privacy.accountants.tight import gaussian_epsilon

Statistic = Callable[[Array], Any]  # (m, k) outputs to (m,) numbers

# Numbers drawn in a run, beyond which slopes are not measured
MAX_SLOPE_DRAWS = 64
CHECKS = 12  # runs on fresh noise that an affine output must reproduce
SLOPE_ERROR = 1e-7  # relative error of those
ZERO = 1e-12  # relative size below which a slope is rounding
MOVED = 1e-6  # relative size of a move that is no rounding
DIGITS = 9  # of a privacy loss: rounding tells the data sets
SAMPLES = 20000  # outputs of either law at which the privacy loss is computed

# Level of chances from which the event of many more runs is chosen
BELIEVED = 0.02
RANKING_LEVEL = 0.5  # level of bounds that only rank events
# Of a covariance, relative: directions with next to no noise stay
RIDGE = 1e-9
# Runs for each different output, of which frequencies are compared
RUNS_PER_OUTPUT = 4
MAX_SINGLE_OUTPUTS = 8  # most outputs of which single ones are tried
EASE = 0.05  # of epsilon, given up for a simpler event: simple ones come first
HASTE = 4.0  # the same, divided by the runs it is chosen on: rare values overfit few
NAN = 1e4  # their substitutes, beyond arcsinh of any number
INFINITE = 9e3


# --- exact laws -----------------------------------------------------------------------


@dataclass(frozen=True)
class Law:
    """An output centre + slopes @ z, z with independent entries of these laws."""

    centre: Array  #: shape (k,)
    slopes: Array  #: shape (k, m)
    laws: tuple[str, ...]

    def seen(self, directions: Array) -> Law:
        """The law of the products of the output with some directions, (k, j)."""
        return Law(
            directions.T @ self.centre, directions.T @ self.slopes, self.laws
        )

    @property
    def used(self) -> Law:
        """The law with as few numbers as reach the output, or as a Gaussian needs."""
        if set(self.laws) == {"normal"}:
            root = np.linalg.cholesky(self.slopes @ self.slopes.T)
            return Law(self.centre, root, ("normal",) * len(root))
        reached = (
            np.abs(self.slopes).max(axis=0) > ZERO * np.abs(self.slopes).max()
        )
        laws = tuple(
            name for name, keep in zip(self.laws, reached, strict=True) if keep
        )
        return Law(self.centre, self.slopes[:, reached], laws)

    def drawn(self, z: Array) -> Array:
        """Outputs for noise (m, s), shape (k, s)."""
        return self.centre[:, None] + self.slopes @ z

    def density(self, outputs: Array) -> Array:
        """Log density at outputs (k, s), where the slopes are square; (s,)."""
        z = np.linalg.solve(self.slopes, outputs - self.centre[:, None])
        size = np.linalg.slogdet(self.slopes)[1]
        rows = zip(self.laws, z, strict=True)
        return (
            np.sum([LAWS[name].logpdf(row) for name, row in rows], axis=0)
            - size
        )


@dataclass(frozen=True)
class Bound:
    """What laws or counts prove about a pair."""

    epsilon: (
        float  #: lower bound; infinite where no noise hides the difference
    )
    text: str  #: the event and its counts, or what the laws are


def law(target: AuditedFit, data: AuditData, seed: int) -> Law | None:
    """The law of the output on these data; None if it is not affine in known noise."""
    plain = target(data, seed)
    size = sum(draw.unit.size for draw in plain.draws)
    if plain.raised or plain.others or not 0 < size <= MAX_SLOPE_DRAWS:
        return None
    still = [np.zeros_like(draw.unit) for draw in plain.draws]
    centre = target(data, seed, still).output
    columns = []
    for k, unit in enumerate(still):
        for place in range(unit.size):
            moved = [u.copy() for u in still]
            moved[k].flat[place] = 1.0
            columns.append(target(data, seed, moved).output)
    if (
        any(c.shape != centre.shape for c in columns)
        or not np.isfinite(columns).all()
    ):
        return None
    laws: list[str] = []
    for draw in plain.draws:
        laws += [draw.law] * draw.unit.size
    fitted = Law(
        centre, np.column_stack(columns) - centre[:, None], tuple(laws)
    )
    return fitted if _holds(target, data, seed, fitted, plain) else None


def _holds(
    target: AuditedFit,
    data: AuditData,
    seed: int,
    fitted: Law,
    plain: RecordedRun,
) -> bool:
    """Whether the law predicts the outputs of runs on fresh noise with other seeds."""
    rng = np.random.Generator(np.random.PCG64([seed, 5]))
    for k in range(CHECKS):
        draws = plain.draws
        units = [(1 + k % 3) * sample(d.law, rng, d.unit.shape) for d in draws]
        run = target(data, seed + 1 + k, units)
        z = np.concatenate([np.ravel(unit) for unit in units])
        if run.others or run.output.shape != fitted.centre.shape:
            return False
        error = np.abs(run.output - fitted.centre - fitted.slopes @ z)
        reach = np.abs(fitted.centre) + np.abs(fitted.slopes) @ np.abs(z)
        if not (error <= SLOPE_ERROR * reach.max(initial=1e-300)).all():
            return False
    return True


def sample(
    name: str, rng: np.random.Generator, shape: tuple[int, ...]
) -> Array:
    """Draw noise of unit scale from a law."""
    return np.asarray(LAWS[name].rvs(size=shape, random_state=rng))


def compare_laws(
    target: AuditedFit, pair: Neighbours, seed: int, delta: float
) -> Bound | None:
    """The epsilon that the laws of a pair prove; None where they are not known.

    Outputs are taken in units of their size, which tells differences from rounding.
    """
    law_d = law(target, pair.first, seed)
    law_d_prime = law(target, pair.second, seed) if law_d is not None else None
    if (
        law_d is None
        or law_d_prime is None
        or law_d.centre.shape != law_d_prime.centre.shape
    ):
        return None
    magnitudes = [
        np.abs(np.column_stack([a.centre, a.slopes])).sum(axis=1)
        for a in (law_d, law_d_prime)
    ]
    sizes = np.max(magnitudes, axis=0)
    units = np.diag(1 / np.where(sizes > 0, sizes, 1.0))
    law_d = law_d.seen(units)
    law_d_prime = law_d_prime.seen(units)
    for a, b in ((law_d, law_d_prime), (law_d_prime, law_d)):
        bare = _no_noise(a, b)
        if bare is not None:
            return bare
    # in coordinates that noise reaches; the others are equal
    span = _split(law_d.slopes)[1]
    if not span.shape[1]:
        return Bound(0.0, "the output has the same law on both")
    try:
        return _losses(
            law_d.seen(span).used, law_d_prime.seen(span).used, delta
        )
    except np.linalg.LinAlgError:
        return None


def _split(slopes: Array) -> tuple[Array, Array]:
    """Directions of the output without noise and with it."""
    directions, singular, _ = np.linalg.svd(slopes)
    rank = int((singular > ZERO * max(singular.max(initial=0.0), ZERO)).sum())
    return directions[:, rank:], directions[:, :rank]


def _no_noise(law_d: Law, law_d_prime: Law) -> Bound | None:
    """Infinite bound where a part of the output has no noise and differs; else None."""
    free, _ = _split(law_d.slopes)
    if not free.shape[1]:
        return None
    moved = np.abs(free.T @ (law_d_prime.centre - law_d.centre))
    shaken = np.abs(free.T @ law_d_prime.slopes).max(axis=1, initial=0.0)
    worst = int(np.argmax(np.maximum(moved, shaken)))
    if max(moved[worst], shaken[worst]) <= MOVED:
        return None
    weights = free[:, worst]
    places = np.flatnonzero(np.abs(weights) > MOVED)[:4]
    names = "+".join(f"{weights[j]:.3g}*output[{j}]" for j in places)
    text = f"with the same noise {names} moved by {moved[worst]:.4g}, in units of the"
    return Bound(
        math.inf, f"{text} outputs' sizes, where one data set has no noise"
    )


def _losses(law_d: Law, law_d_prime: Law, delta: float) -> Bound | None:
    """Epsilon from the privacy losses of outputs: their ratio on D and on D'."""
    square = (
        law_d.slopes.shape
        == law_d_prime.slopes.shape
        == (len(law_d.slopes),) * 2
    )
    if law_d.laws != law_d_prime.laws or not square:
        return None
    apart = np.abs(law_d.slopes - law_d_prime.slopes).max()
    if (
        set(law_d.laws) == {"normal"}
        and apart < MOVED * np.abs(law_d.slopes).max()
    ):
        return _gaussian(law_d, law_d_prime, delta)
    if delta:
        return None
    rng = np.random.Generator(np.random.PCG64(5))
    largest = 0.0
    for side_law in (law_d, law_d_prime):
        z = np.array([sample(name, rng, (SAMPLES,)) for name in law_d.laws])
        # any points of the support will do
        z *= 10.0 ** rng.uniform(0, 1.5, SAMPLES)
        outputs = side_law.drawn(z)
        ratios = law_d.density(outputs) - law_d_prime.density(outputs)
        largest = max(largest, float(np.abs(ratios).max().round(DIGITS)))
    text = "the output's density on both data sets: their ratio at one output"
    return Bound(largest, text)


def _gaussian(law_d: Law, law_d_prime: Law, delta: float) -> Bound:
    """Two Gaussians of one covariance, in closed form."""
    mu = float(
        np.linalg.norm(
            np.linalg.solve(law_d.slopes, law_d_prime.centre - law_d.centre)
        )
    )
    text = f"the output is Gaussian and moved by {mu:.4g} of its deviations"
    if mu == 0:
        return Bound(0.0, text)
    if delta > 0:
        return Bound(gaussian_epsilon(mu, delta), text)
    return Bound(math.inf, text)


# --- events ---------------------------------------------------------------------------


@dataclass(frozen=True)
class OutputEvent:
    """Outputs whose statistic is at least ``at``."""

    text: str  #: the event in words; a statistic that was fitted is only named
    statistic: Statistic  #: (m, k) outputs to (m,) numbers
    at: float
    swapped: bool  #: whether it is likelier on D' than on D


def judge(
    event: OutputEvent, first: Array, second: Array, level: float, delta: float
) -> Bound:
    """Lower bound on epsilon from fresh runs (Clopper and Pearson on both sides)."""
    runs = len(first)
    hits = [
        int((event.statistic(side) >= event.at).sum())
        for side in (first, second)
    ]
    counts = f"{hits[0]} of {runs} runs on D, {hits[1]} of {runs} on D'"
    if event.swapped:
        hits.reverse()
    under, over = map(np.array, hits)
    bound = float(ratio_bound(under, over, runs, level, delta))
    return Bound(bound, f"{event.text}: {counts}")


def ratio_bound(
    under: Array, over: Array, trials: int, level: float, delta: float
) -> Array:
    """Lower bounds on epsilon from numbers of hits of events on D and on D'.

    (epsilon, delta)-privacy means P(E | D) <= e^epsilon P(E | D') + delta. Each of the
    two chances lies outside of its one-sided Clopper-Pearson bound in at most level / 2
    of all cases, for an event that does not depend on these runs. Nothing else is
    assumed of the function, so that n runs never prove more than about log(n / 8).
    """
    low, _ = binomial_bounds(under, trials, level / 2)
    _, high = binomial_bounds(over, trials, level / 2)
    # 1 - level loses its digits
    none = -math.expm1(math.log(level / 2) / trials)
    high = np.where(over == 0, none, high)
    return np.log(np.maximum(low - delta, 1e-300) / high)


def learn(
    first: Array,
    second: Array,
    level: float,
    delta: float,
    trials: int | None = None,
) -> OutputEvent:
    """The event with the largest lower bound on these runs, or on more like them.

    Parameters
    ----------
    first, second : (m, k) array
        Outputs on D and on D'.
    trials : int, optional
        The runs on which it will be counted, if more than m.
    """
    tried: list[tuple[str, Statistic, float, float]] = []
    hits: list[Array] = []
    for text, statistic in statistics(first, second):
        numbers_d = statistic(first)
        numbers_d_prime = statistic(second)
        for sign in (1.0, -1.0):
            sorted_d = np.sort(sign * numbers_d)
            sorted_d_prime = np.sort(sign * numbers_d_prime)
            ats, counts = _thresholds(sorted_d, sorted_d_prime)
            tried += [(text, statistic, sign, threshold) for threshold in ats]
            hits.append(counts)
    under, over = np.concatenate(hits, axis=1)
    runs = len(first)
    ways: tuple[tuple[Array, Array], ...] = ((under, over), (over, under))
    count = max(runs, trials or 0)
    if count > runs:
        # What these runs make believable, so that no event looks good by luck.
        one_low, one_high = binomial_bounds(under, runs, BELIEVED)
        two_low, two_high = binomial_bounds(over, runs, BELIEVED)
        ways = (
            (count * one_low, count * two_high),
            (count * two_low, count * one_high),
        )
    bounds = np.array(
        [ratio_bound(a, b, count, level, delta) for a, b in ways]
    )
    good = bounds >= bounds.max() - max(EASE, HASTE / runs)
    k = int(np.argmax(good.any(axis=0)))
    swapped = int(np.argmax(good[:, k]))
    text, statistic, sign, threshold = tried[k]
    name = f"{text} {'>=' if sign > 0 else '<='} {sign * threshold + 0.0:.6g}"
    if statistic(first[:1]).dtype == bool:
        name = text if sign > 0 else f"not ({text})"
    return OutputEvent(
        name, lambda w: sign * statistic(w), threshold, bool(swapped)
    )


def learn_shift(
    first: Array, second: Array, trials: int
) -> OutputEvent | None:
    """The event that shows the largest mu of Gaussian noise; None if none shows any."""
    best = None
    largest = 0.0
    runs = len(first)
    for text, statistic in statistics(first, second):
        numbers_d = statistic(first)
        numbers_d_prime = statistic(second)
        if numbers_d.dtype == bool:
            continue
        for sign in (1.0, -1.0):
            ats, counts = _thresholds(
                np.sort(sign * numbers_d), np.sort(sign * numbers_d_prime)
            )
            hits = counts * (trials / runs)
            for swapped in (False, True):
                under, over = hits[::-1] if swapped else hits
                mus = _shifts(under, over, trials, RANKING_LEVEL)
                k = int(np.argmax(mus))
                if mus[k] > largest + EASE:
                    name = f"{text} {'>=' if sign > 0 else '<='} {sign * ats[k]:.6g}"
                    signed = partial(_signed, statistic, sign)
                    best = OutputEvent(name, signed, float(ats[k]), swapped)
                    largest = float(mus[k])
    return best


def _signed(statistic: Statistic, sign: float, outputs: Array) -> Array:
    return sign * np.asarray(statistic(outputs))


def trade_off(
    event: OutputEvent, first: Array, second: Array, level: float
) -> tuple[float, str]:
    r"""The mu below which no trade-off is Gaussian, from fresh runs; and the counts.

    A function is mu-GDP if :math:`P(E | D) \le \Phi(\Phi^{-1}(P(E | D')) + \mu)` for
    all events (Dong, Roth and Su 2022, arXiv:1905.02383). One event, fixed before its
    runs, with one-sided Clopper-Pearson bounds of level / 2 on both chances, so refutes
    every smaller mu, whatever the function. It is worth :math:`\epsilon(\mu, \delta)`
    only for a function whose trade-off is Gaussian: another one may agree with it at
    the threshold, and cost less in the tail that no count reaches (Nasr et al. 2023,
    arXiv:2302.07956, Section 4, who assume it too).
    """
    hits = [
        int((event.statistic(side) >= event.at).sum())
        for side in (first, second)
    ]
    runs = len(first)
    counts = f"{hits[0]} of {runs} runs on D, {hits[1]} of {runs} on D'"
    if event.swapped:
        hits.reverse()
    under, over = map(np.array, hits)
    mu = float(_shifts(under, over, runs, level))
    return max(mu, 0.0), f"{event.text}: {counts}, so that mu >= {mu:.4g}"


def _shifts(under: Array, over: Array, trials: int, level: float) -> Array:
    """Lower bounds on mu from numbers of hits on D and on D'."""
    low, _ = binomial_bounds(under, trials, level / 2)
    _, high = binomial_bounds(over, trials, level / 2)
    high = np.where(over <= 0, -math.expm1(math.log(level / 2) / trials), high)
    shifts = stats.norm.ppf(low) - stats.norm.ppf(high)
    return np.nan_to_num(shifts, nan=-np.inf, posinf=-np.inf, neginf=-np.inf)


def _thresholds(
    numbers_d: Array, numbers_d_prime: Array
) -> tuple[Array, Array]:
    """Values of a statistic, sorted on both sides, and how many reach each."""
    sorted_numbers = np.sort(np.concatenate([numbers_d, numbers_d_prime]))
    places = np.append(
        np.geomspace(2, len(sorted_numbers), 24).astype(int), len(numbers_d)
    )
    ats = np.unique(sorted_numbers[len(sorted_numbers) - places])
    return ats, np.array(
        [
            len(s) - np.searchsorted(s, ats)
            for s in (numbers_d, numbers_d_prime)
        ]
    )


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
    p = first.shape[1]
    yield "an output is no number", lambda w: ~np.isfinite(w).all(axis=1)
    for side in (first, second):  # the output of most runs, where there is one
        row = np.median(side, axis=0)
        if np.isfinite(row).all() and 2 * (side == row).all(
            axis=1
        ).sum() > len(side):
            yield _exactly(row), partial(_equal, row)
    for j in range(min(p, MAX_SINGLE_OUTPUTS)):
        yield from _number(
            f"output[{j}]", itemgetter(np.s_[:, j]), first, second
        )
    yield from _rows(first, second)
    if 1 < p <= MAX_SINGLE_OUTPUTS:
        total: Statistic = lambda w: abs(w).sum(axis=1)  # noqa: E731
        yield from _number("the sum of |outputs|", total, first, second)
    view = partial(tame, scale=scale_of(np.concatenate([first, second])))
    yield from _fitted(view, view(first), view(second))


def _rows(first: Array, second: Array) -> Iterator[tuple[str, Statistic]]:
    """The frequencies of outputs that come again and again, on D against D'."""
    outputs = np.concatenate([first, second]) + 0.0
    rows, places = np.unique(outputs, axis=0, return_inverse=True)
    if first.shape[1] < 2 or not 2 < len(rows) <= len(first) / RUNS_PER_OUTPUT:
        return
    counts = [
        np.bincount(side_places, minlength=len(rows))
        for side_places in np.split(np.ravel(places), [len(first)])
    ]
    # Of a row that was never seen, nothing is known.
    log_ratios = {
        row.tobytes(): float(np.log((count_d + 0.5) / (count_d_prime + 0.5)))
        for row, count_d, count_d_prime in zip(rows, *counts, strict=True)
    }

    def ratio(w: Array) -> Array:
        """Log-ratio of the frequencies of rows; 0 for one that was not seen."""
        return np.array(
            [log_ratios.get(row.tobytes(), 0.0) for row in w + 0.0]
        )

    yield "the frequency of the outputs", ratio


def _exactly(row: Array) -> str:
    if (row == row[0]).all():
        return f"all outputs exactly {row[0]:.6g}"
    texts = [f"{number:.6g}" for number in row[:MAX_SINGLE_OUTPUTS]]
    texts += ["..."] if len(row) > MAX_SINGLE_OUTPUTS else []
    return f"outputs exactly {', '.join(texts)}"


def _number(
    name: str, statistic: Statistic, first: Array, second: Array
) -> Iterator[tuple[str, Statistic]]:
    """A number, and its distance from the middle on either side."""

    def value(w: Array) -> Array:
        """In its own unit; NaN counts as infinite."""
        finite = np.nan_to_num(w, nan=np.inf, posinf=np.inf, neginf=-np.inf)
        return np.asarray(statistic(finite))

    yield name, value
    for middle in sorted(
        {float(np.median(value(side))) for side in (first, second)}
    ):
        if math.isfinite(middle):
            yield f"|{name} - {middle:.6g}|", partial(_away, value, middle)


def _equal(row: Array, w: Array) -> Array:
    return np.asarray((w == row).all(axis=1))


def _away(value: Statistic, middle: float, w: Array) -> Array:
    return np.abs(np.asarray(value(w)) - middle)


def _fitted(
    view: Statistic, view_d: Array, view_d_prime: Array
) -> Iterator[tuple[str, Statistic]]:
    """Fisher's linear function, and the likelihood ratio of two fitted Gaussians."""
    centres = view_d.mean(axis=0), view_d_prime.mean(axis=0)
    spreads = [
        np.atleast_2d(np.cov(s, rowvar=False)) for s in (view_d, view_d_prime)
    ]
    normal = np.linalg.solve(
        _ridged(spreads[0] + spreads[1]), centres[0] - centres[1]
    )
    if np.isfinite(normal).all():
        yield "a linear function", lambda w: view(w) @ normal
    inverses = [np.linalg.inv(_ridged(s)) for s in spreads]

    def ratio(w: Array) -> Array:
        """Difference of the squared Mahalanobis distances to both centres."""
        away = [view(w) - centre for centre in centres]
        terms = zip(away, inverses, strict=True)
        sizes = [
            np.einsum("ij,jk,ik->i", a, inverse, a) for a, inverse in terms
        ]
        return sizes[1] - sizes[0]

    if np.isfinite(inverses).all():
        yield "the ratio of fitted Gaussians", ratio


def _ridged(spread: Array) -> Array:
    size = max(float(np.trace(spread)) / len(spread), 1e-12)
    return spread + RIDGE * size * np.eye(len(spread))
