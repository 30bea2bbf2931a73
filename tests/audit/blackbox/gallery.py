"""Published defects of private code, rebuilt in a few lines, each with a sound twin.

Every function is ``fit(X, y, seed)`` and claims (epsilon, delta)-privacy on its domain,
neighbours differing by one replaced record unless the case says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dperm.audit.blackbox import PrivacyClaim
from dperm.audit.functions import Domain

EPSILON = 1.0
DELTA = 1e-6
SIGMA = 4.8  # of a Gaussian release of sensitivity 1: delta(1) is 0.7e-6
PURE, APPROXIMATE = PrivacyClaim(EPSILON), PrivacyClaim(EPSILON, DELTA)
UNIT = Domain(x=(0.0, 1.0), y=(-1.0, 1.0))
BALL = Domain(x=(-1.0, 1.0), norm="l2", y=(-1.0, 1.0))
LINE = Domain(p=1, x=(0.0, 1.0), y=(-1.0, 1.0))
ANY = Domain(y=(-1.0, 1.0))

Fit = Callable[[Any, Any, Any], Any]


class Case(NamedTuple):
    """A defect, its twin, and what both claim."""

    name: str
    broken: Fit
    sound: Fit
    claim: PrivacyClaim = PURE
    domain: Domain = UNIT


def rng(seed):
    return np.random.default_rng(seed)


def noisy(value, scale, law="laplace"):
    """A statistic with noise; ``scale`` is a number, or a function of the records."""

    def fit(X, y, seed):
        released = np.atleast_1d(value(X, y))
        size = scale(X) if callable(scale) else scale
        return released + getattr(rng(seed), law)(0, size, len(released))

    return fit


def total(X, y):
    return X.sum(axis=0)


def mean(X, y):
    return X.mean(axis=0)


def clipped(X, to=1.0):
    """Records of norm at most ``to``."""
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return X * np.minimum(1.0, to / np.maximum(norms, 1e-300))


# --- sensitivity and clipping ---------------------------------------------------------


def largest_bound(low, high):
    """The larger of two bounds, of which one is written twice (diffprivlib #105)."""
    sensitivity = max(abs(low), abs(high)) ** 2 / 8
    return noisy(lambda X, y: (X**2).mean(axis=0), 2 * sensitivity / EPSILON)


def own_deviation(X, y, seed):
    """Standardised by the data's own deviation, then as if that were public."""
    inner = (X / (X.std() + 0.01)).clip(-1, 1).mean()
    return inner * (X.std() + 0.01) + rng(seed).laplace(
        0, 2 / len(X) / EPSILON
    )


def given_deviation(X, y, seed):
    inner = (X / 0.3).clip(-1, 1).mean() * 0.3
    return inner + 0.3 * rng(seed).laplace(0, 2 / len(X) / EPSILON)


def descent(gradient):
    """Four steps of noisy gradient descent, each with half the budget's square root."""

    def fit(X, y, seed):
        generator, w = rng(seed), np.zeros(X.shape[1])
        for _ in range(4):
            noise = generator.normal(
                0, 2 * SIGMA * np.sqrt(4) / len(X), len(w)
            )
            w = w - 0.5 * (gradient(X, y, w) + noise)
        return w

    return fit


def _slopes(X, y, w):
    return ((X @ w - y)[:, None]) * X


per_batch = descent(
    lambda X, y, w: clipped(_slopes(X, y, w).mean(0, keepdims=True))[0]
)
per_record = descent(lambda X, y, w: clipped(_slopes(X, y, w)).mean(axis=0))


def overflowing(X, y):
    """A chance overflows to infinity over infinity, and no clip stops NaN."""
    with np.errstate(all="ignore"):
        return np.clip(np.exp(X) / (1 + np.exp(X)), 0, 1).sum(axis=0)


def tame(X, y):
    return np.clip(0.5 * (1 + np.tanh(X / 2)), 0, 1).sum(axis=0)


# --- noise ----------------------------------------------------------------------------


def seed_reused(X, y, seed):
    """A generator with a constant seed: the noise is known to all."""
    return X.sum(axis=0) + np.random.default_rng(42).laplace(0, 2 / EPSILON, 2)


def one_number_for_all(X, y, seed):
    """Numpy broadcasts one draw over all coordinates."""
    return X.sum(axis=0) + np.random.RandomState(seed).laplace(0, 2 / EPSILON)


def scale_as_location(X, y, seed):
    """``normal(scale)``: a shifted standard normal."""
    return 100 * X.mean(axis=0) + rng(seed).normal(100 * SIGMA)


def amplified(sampled):
    """Noise of a sample of one in eight, and that sample or the whole data set."""

    def fit(X, y, seed):
        spent, generator = np.log1p(8 * np.expm1(EPSILON)), rng(seed)
        taken = generator.permutation(len(X))[: len(X) // 8]
        used = X[taken] if sampled else X
        return used.sum(axis=0) + generator.laplace(0, 2 / spent, 2)

    return fit


def two_sums(X, y):
    return np.array([X[:, 0].sum(), y.sum()])


# --- selection ------------------------------------------------------------------------


def noise_on_the_winner_only(X, y, seed):
    """The index is exact, its value noisy."""
    j = int(np.argmax(X.sum(axis=0)))
    return j, X[:, j].sum() + rng(seed).laplace(0, 1 / EPSILON)


def noisy_maximum(X, y, seed):
    generator, sums = rng(seed), X.sum(axis=0)
    j = int(np.argmax(sums + generator.laplace(0, 4 / EPSILON, 2)))
    return j, sums[j] + generator.laplace(0, 2 / EPSILON)


def exponential(factor):
    def fit(X, y, seed):
        scores = factor * EPSILON * X.sum(axis=0)
        weights = np.exp(scores - scores.max())
        return rng(seed).choice(X.shape[1], p=weights / weights.sum())

    return fit


def stopping(early):
    """Four noisy means; or fewer, by the exact loss, which no noise hides."""

    def fit(X, y, seed):
        generator, w = rng(seed), 0.0
        for step in range(4):
            if early and ((X[:, 0] - w) ** 2).mean() < 0.05:
                return w, step
            w = X[:, 0].mean() + generator.laplace(0, 4 / len(X) / EPSILON)
        return w, 4

    return fit


def loss_beside_the_weights(X, y, seed):
    """A diagnostic that is returned with the private result."""
    w = X.mean(axis=0) + rng(seed).laplace(0, 2 / len(X) / EPSILON, 2)
    return w, ((X - 0.5) ** 2).mean()


# --- the sparse vector technique, numbered as by Lyu, Su and Li (2017) ----------------


# Scales of the threshold's and of the queries' noise, times epsilon over sensitivity.
SCALES = {
    1: (2.0, 4.0),
    3: (2.0, 2.0),
    4: (4.0, 4 / 3),
    5: (2.0, 0.0),
    6: (2.0, 2.0),
}


def sparse_vector(variant, most=1, level=1.0):
    """Which of the counts are above a threshold, up to ``most`` of them."""
    edges, queries = SCALES[variant]
    queries *= most if variant in (1, 3) else 1

    def fit(X, y, seed):
        generator, counts = rng(seed), (X > 0.5).sum(axis=0)
        edge = level + generator.laplace(0, edges / EPSILON)
        noisy = (
            counts + generator.laplace(0, 1, len(counts)) * queries / EPSILON
        )
        answers = np.where(noisy >= edge, noisy if variant == 3 else 1.0, 0.0)
        if variant in (1, 3, 4):  # the others never stop
            answers[np.cumsum(noisy >= edge) - (noisy >= edge) >= most] = -1.0
        return answers

    return fit


def queries(count, n=2):
    return Domain(n=n, p=count, x=(0.0, 1.0), y=(0.0, 1.0))


# --- sound ones that are easy to suspect ----------------------------------------------


def adaptive_clip(X, y, seed):
    """The scale of the second draw depends on the data, through the first alone."""
    generator = rng(seed)
    clip = np.clip(
        X.mean() + generator.laplace(0, 2 / len(X) / EPSILON), 0.1, 1
    )
    inner = np.minimum(X, clip).mean()
    return clip, inner + generator.laplace(0, 2 * clip / len(X) / EPSILON)


def objective_perturbation(X, y, seed):
    """Logistic regression with a random linear term (Chaudhuri et al. 2011)."""
    generator, w, n = rng(seed), np.zeros(X.shape[1]), len(X)
    y, ridge = np.where(y > 0, 1.0, -1.0), 1.0
    left = EPSILON - 2 * np.log1p(0.25 / (n * ridge))
    direction = generator.standard_normal(X.shape[1])
    length = generator.standard_gamma(X.shape[1]) * 2 / left
    b = length * direction / np.linalg.norm(direction)
    for _ in range(12):
        chance = 1 / (1 + np.exp(y * (X @ w)))
        slope = -(chance * y) @ X / n + ridge * w + b / n
        curve = (X.T * (chance * (1 - chance))) @ X / n + ridge * np.eye(
            len(w)
        )
        w = w - np.linalg.solve(curve, slope)
    return w


def geometric(X, y, seed):
    """Discrete Laplace noise on a count."""
    generator, stop = rng(seed), -np.expm1(-EPSILON)
    return (
        (X[:, 0] > 0.5).sum()
        + generator.geometric(stop)
        - generator.geometric(stop)
    )


def randomised_response(X, y, seed):
    """Every record says the truth with probability e / (1 + e)."""
    truth = rng(seed).random(len(X)) < 1 / (1 + np.exp(-EPSILON))
    return (X[:, 0] > 0.5) == truth


def inverse_of_uniform(X, y, seed):
    """Laplace noise by inversion, from the old global state.

    Its last bits tell the data (Mironov 2012); the audit compares sizes only.
    """
    u = np.random.random(2) - 0.5
    noise = -np.sign(u) * np.log1p(-2 * np.abs(u))
    return X.sum(axis=0) + noise * 2 / EPSILON


L1 = Domain(p=4, x=(-1.0, 1.0), norm="l2", y=(0.0, 1.0))
STEEP = Domain(n=20, p=1, x=(-10.0, 10.0), y=(-10.0, 10.0))
SUM = noisy(total, 2 / EPSILON)
MEAN = noisy(mean, 2 / 8 / EPSILON)


def of_sums(scale):
    return noisy(lambda X, y: clipped(X).sum(axis=0), scale, "normal")


CASES = (
    Case(
        "lower bound written twice", largest_bound(0, 0), largest_bound(0, 1)
    ),
    Case(
        "sensitivity of the data",
        noisy(total, lambda X: 2 * X.max() / EPSILON),
        SUM,
    ),
    Case(
        "range of the data",  # as libraries take it where none is given
        noisy(mean, lambda X: 2 * np.ptp(X, axis=0) / 8 / EPSILON),
        MEAN,
    ),
    Case("deviation of the data", own_deviation, given_deviation, domain=LINE),
    Case(
        "C instead of 2 C",
        of_sums(SIGMA),
        of_sums(2 * SIGMA),
        APPROXIMATE,
        BALL,
    ),
    Case(
        "Laplace noise for an L2 length",
        SUM,
        noisy(total, 4 / EPSILON),
        domain=L1,
    ),
    Case(
        "clip after the mean",
        noisy(
            lambda X, y: clipped(mean(X, y)[None])[0], 2 * SIGMA / 8, "normal"
        ),
        noisy(lambda X, y: clipped(X).mean(axis=0), 2 * SIGMA / 8, "normal"),
        APPROXIMATE,
        ANY,
    ),
    Case("clip per batch", per_batch, per_record, APPROXIMATE, STEEP),
    Case(
        "NaN passes a clip",
        noisy(overflowing, 2 / EPSILON),
        noisy(tame, 2),
        domain=ANY,
    ),
    Case("constant seed", seed_reused, SUM),
    Case("one number for all coordinates", one_number_for_all, SUM),
    Case(
        "scale passed as location",
        scale_as_location,
        noisy(
            lambda X, y: 100 * mean(X, y), 100 * 2**0.5 * SIGMA / 8, "normal"
        ),
        APPROXIMATE,
    ),
    Case("amplified, but whole data", amplified(False), amplified(True)),
    Case(
        "whole budget twice",
        noisy(two_sums, np.array([1, 2]) / EPSILON),
        noisy(two_sums, np.array([2, 4]) / EPSILON),
    ),
    Case("noise on the winner only", noise_on_the_winner_only, noisy_maximum),
    Case(
        "exponential mechanism without its 2",
        exponential(1.0),
        exponential(0.5),
    ),
    Case("early stopping by the loss", stopping(True), stopping(False)),
    Case("loss returned with the weights", loss_beside_the_weights, MEAN),
    Case(
        "sparse vector 3",
        sparse_vector(3, 1, 0.0),
        sparse_vector(1, 1, 0.0),
        domain=queries(6, 1),
    ),
    Case(
        "sparse vector 4",
        sparse_vector(4, 8),
        sparse_vector(1, 8),
        domain=queries(16),
    ),
    Case(
        "sparse vector 5",
        sparse_vector(5),
        sparse_vector(1),
        domain=queries(2),
    ),
    Case(
        "sparse vector 6",
        sparse_vector(6),
        sparse_vector(1, 16),
        domain=queries(16),
    ),
)

SOUND: dict[str, tuple[Fit, PrivacyClaim, Domain]] = {
    "adaptive clip": (adaptive_clip, PURE, LINE),
    "objective perturbation": (objective_perturbation, PURE, BALL),
    "geometric": (geometric, PURE, UNIT),
    "randomised response": (randomised_response, PURE, UNIT),
    "inversion of a uniform": (inverse_of_uniform, PURE, UNIT),
}
