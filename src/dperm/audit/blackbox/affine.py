"""The exact law of an output that is affine in its noise, and the epsilon of a pair.

Slopes are measured by moving one number of the noise at a time, and checked on fresh
noise and other seeds. Then the output's density is known on D and on D', and with it
the privacy loss: nothing is estimated but an expectation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dperm.audit.blackbox.domain import Data, Pair
from dperm.audit.blackbox.recording import Run, Target
from dperm.audit.bounds import losses_bound
from dperm.audit.subjects import LAWS
from dperm.core.privacy.strict import gaussian_epsilon

Array = np.ndarray

MOST = 64  # numbers drawn in a run, beyond which slopes are not measured
CHECKS = 12  # runs on fresh noise that an affine output must reproduce
EXACT = 1e-7  # relative error of those
ZERO = 1e-12  # relative size below which a slope is rounding
SAMPLES = 20000  # outputs at which the privacy loss is computed


@dataclass(frozen=True)
class Law:
    """An output centre + slopes @ z, z with independent entries of these laws."""

    centre: Array  #: shape (k,)
    slopes: Array  #: shape (k, m)
    laws: tuple[str, ...]

    @property
    def size(self) -> Array:
        """How far noise of unit size carries every output, (k,)."""
        return np.abs(self.slopes).sum(axis=1)


@dataclass(frozen=True)
class Exact:
    """What the laws of a pair say."""

    epsilon: float  #: lower bound; infinite where no noise hides the difference
    text: str
    certain: bool = True  #: whether nothing was estimated from samples


def law(target: Target, data: Data, seed: int) -> Law | None:
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


def _holds(target: Target, data: Data, seed: int, fitted: Law, plain: Run) -> bool:
    """Whether runs on fresh noise, with other seeds, end where the law says."""
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
    """Noise of unit scale of a law."""
    return np.asarray(LAWS[name].rvs(size=shape, random_state=rng))


# --- a pair ---------------------------------------------------------------------------


def compare(
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
    """Size of every output, for what is large and what is rounding."""
    reach = np.maximum(one.size, two.size)
    return np.maximum(np.maximum(np.abs(one.centre), np.abs(two.centre)), reach)


def _no_noise(one: Law, two: Law) -> Exact | None:
    """Say where a part of the output has no noise and differs."""
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
    """Where losses are looked at; without delta any point of the support will do."""
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
