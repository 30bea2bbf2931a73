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
          first=1, periods=0, M=None):  # fmt: skip
    """Algorithm 1 of Mangold et al. 2022."""
    n, p = X.shape
    M = smoothness(loss, X) if M is None else M
    C = np.sqrt(M / M.sum()) * clip
    theta, iterates = np.zeros(p), []
    K = count // periods if periods else count + 1
    for k in range(count):
        j = (first + k) % p
        if sampling == "uniform":
            j = streams.sampling.integers(0, p)
        gradients = phi_prime(loss, X, y, theta) * X[:, j]
        noise = sigma * 2 * C[j] / n * streams.noise.standard_normal()
        released = np.clip(gradients, -C[j], C[j]).mean() + noise
        theta = theta.copy()
        theta[j] = prox(theta[j] - step / M[j] * released, step / M[j], penalty)
        iterates.append(theta)
        if len(iterates) == K:
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
