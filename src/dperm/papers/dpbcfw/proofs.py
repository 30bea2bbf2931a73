"""Proofs and formulas of Lou and Cheung 2020, evaluated in numbers.

They are the privacy of Lemmas 2 and 3, Propositions 2 to 4, Table V and Corollary 1.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
from scipy import stats

from dperm.papers.dpbcfw.theory import (
    box_curvature,
    correlated,
    pair_chances,
    pair_sums,
)
from dperm.papers.shared.proofs import Argument
from dperm.privacy.accountants.published import advanced_epsilon
from dperm.privacy.accountants.tight import gaussian_epsilon
from dperm.solvers.frank_wolfe.dp_bcfw_noise import equation17

# --- privacy --------------------------------------------------------------------------


def node_selections(
    epsilon: float, delta: float, nodes: float, iterations: float
) -> Argument:
    """Lou and Cheung 2020, Lemma 3: all K T selections compose.

    A record is on all nodes. The Laplace scale is 8 G eta sqrt(2 T log(2/delta)) /
    (n epsilon) on scores that move by 2 G eta / n: the K of the printed scale cancels.
    """
    pure = _selection(epsilon, delta, iterations)
    spent = advanced_epsilon([(pure, int(nodes * iterations))], delta / 2)
    return Argument(
        spent, epsilon / 2, "advanced composition of all nodes' selections"
    )


def node_selections_noise(
    epsilon: float, delta: float, nodes: float, iterations: float
) -> Argument:
    """Least cost of these selections, if G bounds one record's gradient.

    Each node has two candidates, +i and -i, and one record reverses the signs of their
    scores. The K T answers are binary, and their exact profile is that of two
    binomials.
    """
    # over the Laplace scale
    moved = _selection(epsilon, delta, iterations) / 2
    count = int(nodes * iterations)
    right = 1 - math.exp(-moved) * (1 + moved / 2) / 2
    k = np.arange(count + 1)
    p, q = (stats.binom.pmf(k, count, chance) for chance in (right, 1 - right))
    low = 0.0
    high = count * math.log(right / (1 - right))
    for _ in range(60):
        middle = (low + high) / 2
        spent = np.maximum(p - math.exp(middle) * q, 0.0).sum()
        low, high = (middle, high) if spent > delta / 2 else (low, middle)
    return Argument(
        low, epsilon / 2, "exact composition of K T noisy maxima of two"
    )


def _selection(epsilon: float, delta: float, iterations: float) -> float:
    """Epsilon of one selection: 2 (2 G eta / n) over the Laplace scale."""
    return epsilon / (2 * math.sqrt(2 * iterations * math.log(2 / delta)))


def sketched_features(
    epsilon: float,
    delta: float,
    n: float,
    length: float,
    nodes: float,
    iterations: float,
) -> Argument:
    """Lou and Cheung 2020, Lemma 2: a sketched feature moves by ||J_:i|| for every n.

    J is (length, n) with entries N(0, 1/length). Its columns have norm about 1, and its
    largest singular value is about 1 + sqrt(n / length). An entry of the data changes
    by 1.
    """
    noise = _sketch_noise(epsilon, delta, n, length, nodes * iterations)
    spent = gaussian_epsilon(math.sqrt(nodes * iterations) / noise, delta)
    return Argument(
        spent, epsilon / 2, "exact composition of K T Gaussian releases"
    )


def sketched_features_noise(
    epsilon: float,
    delta: float,
    n: float,
    length: float,
    nodes: float,
    iterations: float,
    share: float,
) -> Argument:
    """Least cost of a run: that of its first sketched feature alone.

    At x = 0 no score depends on the features of a record with label 0. So the choice of
    the feature reveals nothing, and sending it is one Gaussian release.

    Parameters
    ----------
    share : float
        Share of epsilon and delta that is claimed to be enough.
    """
    noise = _sketch_noise(epsilon, delta, n, length, nodes * iterations)
    spent = gaussian_epsilon(1 / noise, share * delta)
    return Argument(
        spent, share * epsilon, "one release, exactly; all others for nothing"
    )


def _sketch_noise(
    epsilon: float, delta: float, n: float, length: float, count: float
) -> float:
    """Equation 17's noise; a leading singular value is about 1 + sqrt(n / length)."""
    leading = 1 + math.sqrt(n / length)
    return equation17(int(n), leading, count, epsilon / 2, delta)


# --- expected curvature ---------------------------------------------------------------
#
# It is computed exactly (``theory.box_curvature``), for least squares over the box
# |v_j| <= 1, on features with correlation ``common``.


def set_curvature(n: float, d: float, tau: float, common: float) -> Argument:
    """Proposition 2: tau-nice sampling has at most the mean curvature of its sets.

    tau = 1 is uniform serial sampling, with a d-th of the product curvature; tau = d is
    elementary sampling, with the global curvature.
    """
    size = int(tau)
    features = int(d)
    G = correlated(0, int(n), features, common)
    sets = [
        list(subset)
        for subset in itertools.combinations(range(features), size)
    ]
    mean = float(np.mean([box_curvature(G[np.ix_(S, S)], 1.0) for S in sets]))
    largest_mean = box_curvature(
        pair_chances("tau-nice", features, size, 1) * G, 1.0
    )
    return Argument(
        largest_mean, mean, "the largest mean against the mean of the largest"
    )


def pair_bound(
    n: float, d: float, tau: float, nodes: float, common: float
) -> Argument:
    """Propositions 3 (one node) and 4: a bound by a sum over features and pairs."""
    K = int(nodes)
    size = int(tau)
    features = int(d)
    G = correlated(0, int(n), features, common)
    owner = np.arange(features) // (features // K)
    same = owner[:, None] == owner
    pairs = np.abs(G) * (1 - np.eye(features))
    within = float(pairs[same].max())
    across = float(pairs[~same].max(initial=0.0))
    limit = pair_sums(float(np.diag(G).max()), within, across, size, K)[1]
    P = pair_chances("(K, tau)-distributed", features, size, K)
    return Argument(
        box_curvature(P * G, 1.0), limit, "exact curvature against the sum"
    )


# --- formulas -------------------------------------------------------------------------


def logistic_gradient(n: float) -> Argument:
    """Table V: the printed partial gradient of the mean logistic loss."""
    return _gradient(
        int(n), lambda m: np.log1p(np.exp(-m)), lambda m: 1 / (1 + np.exp(m))
    )


def hinge_gradient(n: float) -> Argument:
    """Table V: the printed partial gradient of the mean smoothed hinge loss."""
    return _gradient(
        int(n),
        lambda m: np.maximum(0, 1 - m) ** 2 / 2,
        lambda m: np.maximum(0, 1 - m),
    )


def _gradient(
    n: int,
    loss: Callable[[np.ndarray], np.ndarray],
    weight: Callable[[np.ndarray], np.ndarray],
) -> Argument:
    """-sum_j y_j a_j weight_j, as printed, against the slope of the printed mean loss.

    One feature, labels +1 and margins a_j x; the slope is a central difference.
    """
    a = np.random.default_rng(0).standard_normal(n) + 1.0
    x = 0.1
    step = 1e-6
    slope = float(
        (loss(a * (x + step)) - loss(a * (x - step))).mean() / (2 * step)
    )
    printed = -float(a @ weight(a * x))
    return Argument(
        printed / slope, 1.0, "printed over the derivative of the printed loss"
    )


def uplink(n: float, least: float) -> Argument:
    """Corollary 1: K T m numbers over log(n)^(1/3) n^(2/3), relative to n = ``least``.

    With delta = 1/n T grows like n^(2/3) / log(n)^(1/3) (Theorem 4, whose C_g and C_l
    hold the root of log(1/delta)), m like log(2 T / delta) (Table IV). A ratio that
    grows contradicts the printed order; it grows like log(n)^(1/3).
    """

    def ratio(size: float) -> float:
        T = size ** (2 / 3) / math.log(size) ** (1 / 3)
        return math.log(2 * T * size) / math.log(size) ** (2 / 3)

    return Argument(
        ratio(n) / ratio(least), 1.0, "the count over the printed order"
    )
