"""Algorithms 1 and 2 in plain numpy, from the paper's text, sharing no code.

The generators are those of the run, so that both see the same noise.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from solvers.twins import loudest


def slope(loss, v):
    """phi'(v) of a margin."""
    if loss == "least_squares":
        return v
    if loss == "logistic":
        return -expit(-v)
    return -np.maximum(0.0, 1.0 - v)


def bcfw_box(A, offset, loss, radius, sets, p_min):
    x, n = np.zeros(A.shape[1]), len(offset)
    for t, S in enumerate(sets):
        gamma = 2 / (p_min * t + 2)
        g = A.T @ slope(loss, A @ x + offset) / n
        s = np.where(g > 0, -radius, radius)
        x[S] += gamma * (s[S] - x[S])
    return x


def bcfw_ball(A, offset, loss, radius, sets, p_min, blocks, vertices):
    x, n = np.zeros(A.shape[1]), len(offset)
    for t, S in enumerate(sets):
        gamma = 2 / (p_min * t + 2)
        g = A.T @ slope(loss, A @ x + offset) / n
        s = np.zeros_like(x)
        groups = [S] if vertices == "one" else [np.intersect1d(S, b) for b in blocks]
        for group in groups:
            j = group[np.argmax(np.abs(g[group]))]
            s[j] -= radius * np.sign(g[j])
        if vertices == "feasible":
            s /= len(groups)
        x = (1 - gamma) * x + gamma * s
    return x


def dp_bcfw(A, offset, loss, blocks, J, T, vertex, factor, scales, bounds, streams):
    """Algorithm 2; ``vertex`` is eta, or eta / K for the feasible update."""
    n, p = A.shape
    B, Y, R = bounds
    A, offset = np.clip(A, -B, B), np.clip(offset, -Y, Y)
    x, q, sent = np.zeros(p), np.zeros(len(J)), {}
    for t in range(T):
        gamma, s, added = 2 / (t + 2), np.zeros(p), np.zeros(len(J))
        for block, stream in zip(blocks, streams, strict=True):
            estimates = np.clip(n * (J.T @ q), -R, R)
            g = A[:, block].T @ slope(loss, estimates + offset) / n
            k, sign = loudest(factor * g, scales[0], stream.noise)
            j = block[k]
            if j not in sent:
                xi = stream.sampling.standard_normal(len(J))
                sent[j] = J @ A[:, j] + scales[1] * xi
            s[j] -= sign * vertex
            added -= sign * vertex / n * sent[j]
        x = (1 - gamma) * x + gamma * s
        q = (1 - gamma) * q + gamma * added
    return x, q
