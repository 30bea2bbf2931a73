"""Functions that bound their own input: any record may come, of any size.

Gradient descent as dperm.fit once had it, with either of its traps and with neither, on
least squares through the origin; and others that a review put before the audit.
"""

from __future__ import annotations

import random
import secrets

import numpy as np

from .gallery import EPSILON, SIGMA, rng

STEPS, CLIP = 10, 1.0


# --- gradient descent with clipped gradients ------------------------------------------


def squared_norms(X):
    """Lengths of records; of tiny ones the squares underflow."""
    return np.sqrt((X**2).sum(axis=1))


def scaled_norms(X):
    """Lengths of records, without underflow, and infinite where they overflow."""
    sizes = np.abs(X).max(axis=1)
    units = np.where(sizes > 0, sizes, 1.0)
    return sizes * np.sqrt(((X / units[:, None]) ** 2).sum(axis=1))


def any_clip(slopes, most):
    """Hands NaN on."""
    return np.clip(slopes, -most, most)


def safe_clip(slopes, most):
    """NaN becomes -most."""
    return np.minimum(np.where(slopes > -most, slopes, -most), most)


def descent(norms, clip):
    """Noisy gradient descent from zero; where it ends at no number, zeros."""

    def fit(X, y, seed):
        generator, w = rng(seed), np.zeros(X.shape[1])
        usable = np.isfinite(X).all(axis=1) & np.isfinite(y)
        X, y = np.where(usable[:, None], X, 0.0), np.where(usable, y, 0.0)
        most = CLIP / np.maximum(norms(X), 1e-300)
        for _ in range(STEPS):
            slopes = clip((X * w).sum(axis=1) - y, most)  # no fused products
            noise = generator.normal(
                0, 2 * CLIP * SIGMA * np.sqrt(STEPS), len(w)
            )
            w = w - 2.0 * (X.T @ slopes + noise) / len(X)
        return np.where(np.isfinite(w), w, 0.0)

    return fit


as_it_was = descent(squared_norms, any_clip)
nan_trap = descent(scaled_norms, any_clip)
underflow_trap = descent(squared_norms, safe_clip)
mended = descent(scaled_norms, safe_clip)


# --- others ---------------------------------------------------------------------------


def quantile_clip(X, y, seed):
    """Descent whose clip is a quantile of the gradients' lengths, as if public."""
    state, w = np.random.RandomState(seed), np.zeros(X.shape[1])
    for _ in range(4):
        slopes = (X @ w - y)[:, None] * X
        norms = np.linalg.norm(slopes, axis=1, keepdims=True) + 1e-9
        most = np.quantile(norms, 0.9)
        total = (slopes * np.minimum(1.0, most / norms)).sum(axis=0)
        noise = state.normal(0, 4 * most * SIGMA, X.shape[1])
        w = w - 0.5 * (total + noise) / len(X)
    return w


def stopping_count(X, y, seed):
    """Stops by the exact slope, and says when."""
    generator, w, X = rng(seed), 0.0, np.clip(X[:, 0], -1, 1)
    step = 0
    while step < 8 and abs((w - X).mean()) >= 0.1:
        step += 1
        w = w - 0.5 * (
            (w - X).mean() + generator.laplace(0, 16 / len(X) / EPSILON)
        )
    return w, step


def _laplace(scale):
    return random.expovariate(1 / scale) - random.expovariate(1 / scale)


def laplace_of_random(enough):
    """A clipped sum with noise of Python's own, ``enough`` times what it needs."""

    def fit(X, y, seed):
        random.seed(seed)
        return np.clip(X[:, 0], -1, 1).sum() + _laplace(enough * 2 / EPSILON)

    return fit


def secret_response(X, y, seed):
    """Randomised response with the system's entropy."""
    entropy, lie = secrets.SystemRandom(), 1 / (1 + np.exp(EPSILON))
    return [(x > 0) != (entropy.random() < lie) for x in X[:, 0]]


def refuses_nan(X, y, seed):
    """Sound on all finite numbers; raises on others, as most libraries do."""
    if not (np.isfinite(X).all() and np.isfinite(y).all()):
        raise ValueError("Input contains NaN or infinity")
    return np.clip(X, -1, 1).sum(axis=0) + rng(seed).laplace(
        0, 2 * X.shape[1], 2
    )


def refuses_large(X, y, seed):
    """Sound on what it takes; raises where a square overflows."""
    if not np.isfinite(X**2).all():
        raise OverflowError("a square overflows")
    return np.clip(X, -1, 1).sum(axis=0) + rng(seed).laplace(
        0, 2 * X.shape[1], 2
    )


# --- what is no number but shows a record ---------------------------------------------


def label_table(X, y, seed):
    """A number for each label that occurs."""
    return rng(seed).laplace(0, 1.0, len(np.unique(y)))


def signed_key(X, y, seed):
    """A mapping, with the sign of the first record for its key."""
    return {str(X[0, 0] > 0): rng(seed).laplace()}


def imaginary_sum(X, y, seed):
    """A complex number, of which one part has no noise."""
    return rng(seed).laplace() + 1j * np.tanh(X).sum()
