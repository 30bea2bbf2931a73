"""Plain numpy twins of the DP-SCO solvers, written from the paper's pseudocode.

They take all records, the noise already drawn, and share no code with the solvers.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit


def gradient(loss, x, y, w, bound):
    v = x @ w
    slope = {"least_squares": v - y, "logistic": -y * expit(-y * v),
             "linear": -np.ones_like(v)}[loss]  # fmt: skip
    return np.clip(slope, -bound, bound) @ x


def best(g, p, radius):
    """The point of the l_p ball with the least inner product."""
    if p == 1:
        j = np.abs(g).argmax()
        return -radius * np.sign(g[j]) * np.eye(len(g))[j]
    if math.isinf(p):
        return -radius * np.sign(g)
    q = p / (p - 1)
    return -radius * np.sign(g) * (np.abs(g) / np.linalg.norm(g, q)) ** (q - 1)


def noisy_sfw(x, y, loss, p, radius, L0, T, b, scales, draw, consecutive=False):
    """Algorithm 1; ``scales(t, depth, leaf)`` and ``draw()`` give the noise."""
    w, position = np.zeros(x.shape[1]), 0

    def batch(count):
        nonlocal position
        position += count
        return x[position - count : position], y[position - count : position]

    for t in range(1, T + 1):

        def visit(depth, leaf, estimate, at, t=t):
            """The subtree whose first leaf is ``leaf``; its node is entered already."""
            nonlocal w
            if depth == t:
                eta = (
                    2 / (2**t + leaf) if consecutive else 2 / (2 ** (t - 1) + leaf + 1)
                )
                w = (1 - eta) * w + eta * best(estimate, p, radius)
                return
            visit(depth + 1, leaf, estimate, at)
            right = leaf + 2 ** (t - depth - 1)
            X, Y = batch(b // 2 ** (depth + 1))
            change = gradient(loss, X, Y, w, L0) - gradient(loss, X, Y, at, L0)
            noise = scales(t, depth + 1, right) * draw()
            visit(depth + 1, right, estimate + change / len(Y) + noise, w.copy())

        X, Y = batch(b)
        root = gradient(loss, X, Y, w, L0) / b + scales(t, 0, 0) * draw()
        visit(0, 0, root, w.copy())
    return w, position


def poly_sfw(x, y, loss, vertices, centre, L0, eta, scales, noise):
    """Algorithm 2 over the vertices (K, d); noise (steps + 1, K)."""
    n, w, before = len(y), centre.copy(), None
    half = n // 2
    d = gradient(loss, x[:half], y[:half], w, L0) / half
    estimates, chosen = [d], []
    for t in range(n - half + 1):
        if t:
            z, label = x[half + t - 1 : half + t], y[half + t - 1 : half + t]
            new, old = (gradient(loss, z, label, at, L0) for at in (w, before))
            d = (1 - eta) * (d + new - old) + eta * new
            estimates.append(d)
        scores = (vertices - centre) @ d + scales[min(t, 1)] * noise[t]
        chosen.append(scores.argmin())
        before, w = w, (1 - eta) * w + eta * vertices[chosen[-1]]
    return w, estimates, chosen


def phased_sgd(x, y, loss, project, L0, eta, scale, noise):
    """Feldman et al. 2020, Algorithm 2; noise (phases, d)."""
    n, w, position = len(y), np.zeros(x.shape[1]), 0
    averages = []
    for i in range(1, int(math.log2(n)) + 1):
        size, step, iterates = n // 2**i, eta / 4**i, []
        for k in range(position, position + size):
            w = project(w - step * gradient(loss, x[k : k + 1], y[k : k + 1], w, L0))
            iterates.append(w)
        position += size
        averages.append(np.mean(iterates, axis=0))
        w = averages[-1] + scale / 4**i * noise[i - 1]
    return project(w), averages, position
