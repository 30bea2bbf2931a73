"""Published defects of private code, rebuilt in a few lines, each with a sound twin.

Every function is ``fit(X, y, seed)`` and claims (epsilon, delta)-privacy on its domain,
neighbours differing by one replaced record unless the case says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dperm.audit.blackbox import Claim
from dperm.audit.functions import Domain

EPSILON = 1.0
DELTA = 1e-6
SIGMA = 4.8  # of a Gaussian release of sensitivity 1: delta(1) is 0.7e-6
PURE, APPROXIMATE = Claim(EPSILON), Claim(EPSILON, DELTA)
UNIT = Domain(x=(0.0, 1.0), y=(-1.0, 1.0))
BALL = Domain(x=(-1.0, 1.0), norm="l2", y=(-1.0, 1.0))
LINE = Domain(p=1, x=(0.0, 1.0), y=(-1.0, 1.0))
ANY = Domain(y=(-1.0, 1.0))

Fit = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True)
class Case:
    """A defect, its twin, and what both claim."""

    name: str
    broken: Fit
    sound: Fit
    claim: Claim = PURE
    domain: Domain = UNIT


def rng(seed):
    return np.random.default_rng(seed)


def clipped(X, to=1.0):
    """Records of norm at most ``to``."""
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return X * np.minimum(1.0, to / np.maximum(norms, 1e-300))


# --- sensitivity ----------------------------------------------------------------------


def lower_bound_twice(X, y, seed):
    """The larger of two bounds, of which one is written twice (diffprivlib #105)."""
    sensitivity = max(abs(0.0), abs(0.0)) ** 2 / len(X)
    return (X**2).mean(axis=0) + rng(seed).laplace(0, 2 * sensitivity / EPSILON, 2)


def both_bounds(X, y, seed):
    sensitivity = max(abs(0.0), abs(1.0)) ** 2 / len(X)
    return (X**2).mean(axis=0) + rng(seed).laplace(0, 2 * sensitivity / EPSILON, 2)


def sensitivity_of_the_data(X, y, seed):
    """The largest entry that there is, for the largest that there can be."""
    return X.sum(axis=0) + rng(seed).laplace(0, 2 * X.max() / EPSILON, 2)


def sensitivity_of_the_domain(X, y, seed):
    return X.sum(axis=0) + rng(seed).laplace(0, 2 * 1.0 / EPSILON, 2)


def range_of_the_data(X, y, seed):
    """Bounds by min and max, as libraries do where none are given."""
    low, high = X.min(axis=0), X.max(axis=0)
    scale = 2 * (high - low) / len(X) / EPSILON
    return X.mean(axis=0) + np.random.laplace(0, scale)


def range_of_the_domain(X, y, seed):
    return X.mean(axis=0) + np.random.laplace(0, 2 * 1.0 / len(X) / EPSILON, 2)


def own_deviation(X, y, seed):
    """Standardised by the data's own deviation, then as if that were public."""
    mean = (X / (X.std() + 0.01)).clip(-1, 1).mean()
    return mean * (X.std() + 0.01) + rng(seed).laplace(0, 2 / len(X) / EPSILON)


def given_deviation(X, y, seed):
    mean = (X / 0.3).clip(-1, 1).mean() * 0.3
    return mean + 0.3 * rng(seed).laplace(0, 2 / len(X) / EPSILON)


def one_clip(X, y, seed):
    """A gradient clipped to C moves by 2 C under replacement, not by C."""
    total = clipped(X).sum(axis=0)
    return total + rng(seed).normal(0, SIGMA, 2)


def two_clips(X, y, seed):
    return clipped(X).sum(axis=0) + rng(seed).normal(0, 2 * SIGMA, 2)


def l2_for_laplace(X, y, seed):
    """Laplace noise for the Euclidean length: pure privacy needs the L1 length."""
    return X.sum(axis=0) + rng(seed).laplace(0, 2 / EPSILON, X.shape[1])


def l1_for_laplace(X, y, seed):
    scale = 2 * np.sqrt(X.shape[1]) / EPSILON
    return X.sum(axis=0) + rng(seed).laplace(0, scale, X.shape[1])


# --- clipping -------------------------------------------------------------------------


def clip_after_mean(X, y, seed):
    """The mean is clipped, not its terms, and gets the noise of clipped terms."""
    mean = clipped(X.mean(axis=0, keepdims=True))[0]
    return mean + rng(seed).normal(0, 2 * SIGMA / len(X), 2)


def clip_before_mean(X, y, seed):
    return clipped(X).mean(axis=0) + rng(seed).normal(0, 2 * SIGMA / len(X), 2)


def descent(gradient):
    """Four steps of noisy gradient descent, each with half the budget's square root."""

    def fit(X, y, seed):
        generator, w = rng(seed), np.zeros(X.shape[1])
        for _ in range(4):
            noise = generator.normal(0, 2 * SIGMA * np.sqrt(4) / len(X), len(w))
            w = w - 0.5 * (gradient(X, y, w) + noise)
        return w

    return fit


def _slopes(X, y, w):
    return ((X @ w - y)[:, None]) * X


per_batch = descent(lambda X, y, w: clipped(_slopes(X, y, w).mean(0, keepdims=True))[0])
per_record = descent(lambda X, y, w: clipped(_slopes(X, y, w)).mean(axis=0))


def nan_passes(X, y, seed):
    """A chance overflows to infinity over infinity, and no clip stops NaN."""
    with np.errstate(all="ignore"):
        chances = np.exp(X) / (1 + np.exp(X))
    return np.clip(chances, 0, 1).sum(axis=0) + rng(seed).laplace(0, 2 / EPSILON, 2)


def nan_does_not_arise(X, y, seed):
    chances = 0.5 * (1 + np.tanh(X / 2))
    return np.clip(chances, 0, 1).sum(axis=0) + rng(seed).laplace(0, 2 / EPSILON, 2)


# --- noise ----------------------------------------------------------------------------


def seed_reused(X, y, seed):
    """A generator with a constant seed: the noise is known to all."""
    return X.sum(axis=0) + np.random.default_rng(42).laplace(0, 2 / EPSILON, 2)


def one_number_for_all(X, y, seed):
    """Numpy broadcasts one draw over all coordinates."""
    return X.sum(axis=0) + rng(seed).laplace(0, 2 / EPSILON)


def a_number_each(X, y, seed):
    return X.sum(axis=0) + rng(seed).laplace(0, 2 / EPSILON, 2)


def scale_as_location(X, y, seed):
    """``normal(scale)``: a shifted standard normal."""
    return 100 * X.mean(axis=0) + rng(seed).normal(100 * SIGMA)


def scale_as_scale(X, y, seed):
    wide = 100 * np.sqrt(2) * SIGMA / len(X)
    return 100 * X.mean(axis=0) + rng(seed).normal(0, wide, 2)


def amplified_but_whole(X, y, seed):
    """Noise of a sample of one in eight, and the whole data set."""
    spent = np.log1p(8 * np.expm1(EPSILON))
    rng(seed).permutation(len(X))  # drawn, and not used
    return X.sum(axis=0) + rng(seed).laplace(0, 2 / spent, 2)


def amplified_and_sampled(X, y, seed):
    spent, generator = np.log1p(8 * np.expm1(EPSILON)), rng(seed)
    taken = generator.permutation(len(X))[: len(X) // 8]
    return X[taken].sum(axis=0) + generator.laplace(0, 2 / spent, 2)


def budget_spent_twice(X, y, seed):
    """Two releases with the whole budget each."""
    noise = rng(seed).laplace(0, [1 / EPSILON, 2 / EPSILON])
    return np.array([X[:, 0].sum(), y.sum()]) + noise


def budget_split(X, y, seed):
    noise = rng(seed).laplace(0, [2 / EPSILON, 4 / EPSILON])
    return np.array([X[:, 0].sum(), y.sum()]) + noise


# --- selection ------------------------------------------------------------------------


def noise_on_the_winner_only(X, y, seed):
    """The index is exact, its value noisy."""
    sums = X.sum(axis=0)
    j = int(np.argmax(sums))
    return j, sums[j] + rng(seed).laplace(0, 1 / EPSILON)


def noisy_maximum(X, y, seed):
    generator, sums = rng(seed), X.sum(axis=0)
    j = int(np.argmax(sums + generator.laplace(0, 4 / EPSILON, 2)))
    return j, sums[j] + generator.laplace(0, 2 / EPSILON)


def _exponential(factor):
    def fit(X, y, seed):
        scores = factor * EPSILON * X.sum(axis=0)
        return rng(seed).choice(X.shape[1], p=_softmax(scores))

    return fit


def _softmax(scores):
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def early_stopping(X, y, seed):
    """Stops by the exact loss, which no noise hides."""
    generator, w = rng(seed), 0.0
    for step in range(4):
        if ((X[:, 0] - w) ** 2).mean() < 0.05:
            return w, step
        w = X[:, 0].mean() + generator.laplace(0, 4 / len(X) / EPSILON)
    return w, 4


def fixed_stopping(X, y, seed):
    generator, w = rng(seed), 0.0
    for _ in range(4):
        w = X[:, 0].mean() + generator.laplace(0, 4 / len(X) / EPSILON)
    return w, 4


def loss_beside_the_weights(X, y, seed):
    """A diagnostic that is returned with the private result."""
    w = X.mean(axis=0) + rng(seed).laplace(0, 2 / len(X) / EPSILON, 2)
    return w, ((X - 0.5) ** 2).mean()


def weights_alone(X, y, seed):
    return X.mean(axis=0) + rng(seed).laplace(0, 2 / len(X) / EPSILON, 2)


# --- the sparse vector technique, numbered as by Lyu, Su and Li (2017) ----------------


# Scales of the threshold's and of the queries' noise, times epsilon over sensitivity.
SCALES = {1: (2.0, 4.0), 3: (2.0, 2.0), 4: (4.0, 4 / 3), 5: (2.0, 0.0), 6: (2.0, 2.0)}


def sparse_vector(variant, most=1, level=1.0):
    """Which of the counts are above a threshold, up to ``most`` of them."""
    edges, queries = SCALES[variant]
    queries *= most if variant in (1, 3) else 1

    def fit(X, y, seed):
        generator, counts = rng(seed), (X > 0.5).sum(axis=0)
        edge = level + generator.laplace(0, edges / EPSILON)
        noisy = counts + generator.laplace(0, 1, len(counts)) * queries / EPSILON
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
    clip = np.clip(X.mean() + generator.laplace(0, 2 / len(X) / EPSILON), 0.1, 1)
    mean = np.minimum(X, clip).mean()
    return clip, mean + generator.laplace(0, 2 * clip / len(X) / EPSILON)


def objective_perturbation(X, y, seed):
    """Logistic regression with a random linear term (Chaudhuri et al. 2011)."""
    generator, w, n = rng(seed), np.zeros(X.shape[1]), len(X)
    y, ridge = np.where(y > 0, 1.0, -1.0), 1.0
    direction = generator.standard_normal(X.shape[1])
    length = generator.standard_gamma(X.shape[1]) * 2 / _left(EPSILON, ridge, n)
    b = length * direction / np.linalg.norm(direction)
    for _ in range(12):
        chance = 1 / (1 + np.exp(y * (X @ w)))
        slope = -(chance * y) @ X / n + ridge * w + b / n
        curve = (X.T * (chance * (1 - chance))) @ X / n + ridge * np.eye(len(w))
        w = w - np.linalg.solve(curve, slope)
    return w


def _left(epsilon, ridge, n):
    return epsilon - 2 * np.log1p(0.25 / (n * ridge))


def geometric(X, y, seed):
    """Discrete Laplace noise on a count."""
    generator, stop = rng(seed), -np.expm1(-EPSILON)
    return (X[:, 0] > 0.5).sum() + generator.geometric(stop) - generator.geometric(stop)


def randomised_response(X, y, seed):
    """Every record says the truth with probability e / (1 + e)."""
    truth = rng(seed).random(len(X)) < 1 / (1 + np.exp(-EPSILON))
    return (X[:, 0] > 0.5) == truth


def inverse_of_uniform(X, y, seed):
    """Laplace noise by inversion, from the old global state."""
    u = np.random.random(2) - 0.5
    noise = -np.sign(u) * np.log1p(-2 * np.abs(u))
    return X.sum(axis=0) + noise * 2 / EPSILON


CASES = (
    Case("lower bound written twice", lower_bound_twice, both_bounds),
    Case("sensitivity of the data", sensitivity_of_the_data, sensitivity_of_the_domain),
    Case("range of the data", range_of_the_data, range_of_the_domain),
    Case("deviation of the data", own_deviation, given_deviation, domain=LINE),
    Case("C instead of 2 C", one_clip, two_clips, APPROXIMATE, BALL),
    Case(
        "Laplace noise for an L2 length", l2_for_laplace, l1_for_laplace,
        domain=Domain(p=4, x=(-1.0, 1.0), norm="l2", y=(0.0, 1.0)),
    ),
    Case("clip after the mean", clip_after_mean, clip_before_mean, APPROXIMATE, ANY),
    Case(
        "clip per batch", per_batch, per_record, APPROXIMATE,
        Domain(n=20, p=1, x=(-10.0, 10.0), y=(-10.0, 10.0)),
   ),
    Case("NaN passes a clip", nan_passes, nan_does_not_arise, domain=ANY),
    Case("constant seed", seed_reused, a_number_each),
    Case("one number for all coordinates", one_number_for_all, a_number_each),
    Case("scale passed as location", scale_as_location, scale_as_scale, APPROXIMATE),
    Case("amplified, but whole data", amplified_but_whole, amplified_and_sampled),
    Case("whole budget twice", budget_spent_twice, budget_split),
    Case("noise on the winner only", noise_on_the_winner_only, noisy_maximum),
    Case("exponential mechanism without its 2", _exponential(1.0), _exponential(0.5)),
    Case("early stopping by the loss", early_stopping, fixed_stopping),
    Case("loss returned with the weights", loss_beside_the_weights, weights_alone),
    Case(
        "sparse vector 3", sparse_vector(3, 1, 0.0), sparse_vector(1, 1, 0.0),
        domain=queries(6, 1),
    ),
    Case(
        "sparse vector 4", sparse_vector(4, 8), sparse_vector(1, 8), domain=queries(16)
    ),
    Case("sparse vector 5", sparse_vector(5), sparse_vector(1), domain=queries(2)),
    Case("sparse vector 6", sparse_vector(6), sparse_vector(1, 16), domain=queries(16)),
)  # fmt: skip

SOUND: dict[str, tuple[Fit, Claim, Domain]] = {
    "adaptive clip": (adaptive_clip, PURE, LINE),
    "objective perturbation": (objective_perturbation, PURE, BALL),
    "geometric": (geometric, PURE, UNIT),
    "randomised response": (randomised_response, PURE, UNIT),
    "inversion of a uniform": (inverse_of_uniform, PURE, UNIT),
}
