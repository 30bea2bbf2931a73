"""Plain numpy twins of the kernels, written to read like the papers' pseudocode.

They take X, y and the streams, and share no code with the kernels.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit


def phi_prime(loss, x, y, w):
    """Derivative of a record's loss in x.w."""
    if loss == "least_squares":
        return x @ w - y
    return -y * expit(-y * (x @ w))


def smoothness(loss, X):
    return (X**2).mean(axis=0) * (0.25 if loss == "logistic" else 1.0)


def prox(v, step, penalty):
    v = np.sign(v) * np.maximum(np.abs(v) - step * penalty.l1, 0.0)
    v = v / (1.0 + step * penalty.l2)
    return np.clip(v, penalty.lower, penalty.upper)


def dp_cd(X, y, loss, penalty, step, clip, sigma, count, streams, sampling="cyclic",
          first=1, periods=0, M=None, thresholds="scaled"):  # fmt: skip
    """Algorithm 1 of Mangold et al. 2022."""
    n, p = X.shape
    M = smoothness(loss, X) if M is None else M
    C = np.sqrt(M / M.sum()) * clip
    if thresholds == "equal":
        C = np.full(p, clip / np.sqrt(p))
    theta, iterates = np.zeros(p), []
    ends = {count * t // periods for t in range(1, periods + 1)}
    for k in range(count):
        j = (first + k) % p
        if sampling == "uniform":
            j = streams.sampling.integers(0, p)
        if sampling == "reshuffled":
            if k % p == 0:
                cycle = streams.sampling.permutation(p)
            j = cycle[k % p]
        gradients = phi_prime(loss, X, y, theta) * X[:, j]
        noise = sigma * 2 * C[j] / n * streams.noise.standard_normal()
        released = np.clip(gradients, -C[j], C[j]).mean() + noise
        theta = theta.copy()
        theta[j] = prox(theta[j] - step / M[j] * released, step / M[j], penalty)
        iterates.append(theta)
        if k + 1 in ends:
            theta, iterates = np.mean(iterates, axis=0), []
    return theta


def dp_sgd(X, y, loss, penalty, step, clip, sigma, count, streams, batch=1):
    """Proximal DP-SGD; step as a multiple of 1 / beta."""
    n, p = X.shape
    curvature = 0.25 if loss == "logistic" else 1.0
    gamma = step / (curvature * np.linalg.norm(X, 2) ** 2 / n)
    w = np.zeros(p)
    for _ in range(count):
        if batch == 1:
            records = [streams.sampling.integers(0, n)]
        else:
            records = streams.sampling.choice(n, batch, replace=False)
        total = np.zeros(p)
        for i in records:
            g = phi_prime(loss, X[i], y[i], w) * X[i]
            norm = np.linalg.norm(g)
            total += g * clip / norm if norm > clip else g
        noise = sigma * 2 * clip * streams.noise.standard_normal(p)
        w = prox(w - gamma * (total + noise) / batch, gamma, penalty)
    return w


def greedy_score(rule, g, w, M, penalty):
    """One coordinate's score under GS-s, GS-r or GS-q (Mangold et al. 2023, App. C)."""
    if rule == "GS-s":
        low = penalty.l2 * w + penalty.l1 * (np.sign(w) if w else -1)
        high = penalty.l2 * w + penalty.l1 * (np.sign(w) if w else 1)
        low = -np.inf if w <= penalty.lower else low
        high = np.inf if w >= penalty.upper else high
        return max(low + g, -g - high, 0.0) / np.sqrt(M)
    a = prox(w - g / M, 1 / M, penalty) - w
    if rule == "GS-r":
        return np.sqrt(M) * abs(a)

    def psi(v):
        return penalty.l1 * abs(v) + penalty.l2 / 2 * v**2

    return np.sqrt(max(-2 * (g * a + M / 2 * a**2 + psi(w + a) - psi(w)), 0))


def dp_gcd(X, y, loss, penalty, step, clip, multiplier, count, streams, rule,
           inside, noise="laplace"):  # fmt: skip
    """Algorithm 2 of Mangold et al. 2023; epsilon' = 1 / multiplier."""
    n, p = X.shape
    M = smoothness(loss, X)
    C = np.sqrt(M / M.sum()) * clip
    w = np.zeros(p)
    for _ in range(count):
        if noise == "laplace":
            chi = streams.sampling.laplace(size=p)
        else:
            chi = streams.sampling.standard_exponential(p)
            chi = -np.log(chi) if noise == "gumbel" else chi
        derivatives = [phi_prime(loss, X[i], y[i], w) for i in range(n)]
        g = np.clip(np.array(derivatives)[:, None] * X, -C, C).mean(axis=0)
        seen = g + multiplier * 2 * C / n * chi if inside else g
        scores = [greedy_score(rule, seen[k], w[k], M[k], penalty) for k in range(p)]
        if not inside:
            ridge = M / (M + penalty.l2)
            slopes = {"GS-s": 1.0, "GS-r": ridge, "GS-q": np.sqrt(ridge)}[rule]
            scores += multiplier * 2 * np.max(C / np.sqrt(M) * slopes) / n * chi
        j = int(np.argmax(scores))
        released = g[j] + multiplier * 2 * C[j] / n * streams.noise.laplace()
        w[j] = prox(w[j] - step / M[j] * released, step / M[j], penalty)
    return w
