"""Proposition 1: the expected curvature over a box, and its bound by eigenvalues.

For least squares the bracket of definition 3, with 2 / gamma^2 before all of it, is
||A_T (s - x)_T||^2 / n, so that the expected curvature is the largest value of
v^T (P o A^T A / n) v over boxes |v_j| <= D, with P the chances of pairs. It is attained
at a corner: all of them are tried, for few features.
"""

from __future__ import annotations

from typing import Any

import numpy as np

SAMPLINGS = ("elementary", "uniform serial", "tau-nice", "(K, tau)-distributed")
MOST = 18  # features whose corners are all tried


def pair_chances(sampling: str, d: int, tau: int, nodes: int) -> np.ndarray:
    """P (d, d): chances of pairs, and on the diagonal of single coordinates.

    Nodes are of equal size.
    """
    if sampling == "elementary":
        return np.ones((d, d))
    if sampling == "uniform serial":
        return np.eye(d) / d
    if sampling == "tau-nice":
        return _nice(d, tau)
    size = d // nodes
    P = np.full((d, d), (tau / size) ** 2)
    for k in range(nodes):
        block = slice(k * size, (k + 1) * size)
        P[block, block] = _nice(size, tau)
    return P


def _nice(d: int, tau: int) -> np.ndarray:
    P = np.full((d, d), tau * (tau - 1) / (d * max(1, d - 1)))
    np.fill_diagonal(P, tau / d)
    return P


def normalised(M: np.ndarray) -> float:
    """The largest eigenvalue of M (d, d) scaled to a diagonal of ones."""
    root = np.sqrt(np.diag(M))
    return float(np.linalg.eigvalsh(M / np.outer(root, root))[-1])


def curvature(M: np.ndarray, width: float) -> float:
    """The largest v^T M v over the corners of |v_j| <= width; M (d, d), d <= 18."""
    d = len(M)
    if d > MOST:
        raise ValueError(f"{d} features: all corners of at most {MOST} are tried")
    signs = np.ones((2 ** (d - 1), d))  # v and -v are the same
    numbers = np.arange(2 ** (d - 1))
    for j in range(1, d):
        signs[:, j] = 1 - 2 * ((numbers >> (j - 1)) & 1)
    return width**2 * float(np.einsum("ij,ij->i", signs @ M, signs).max())


def bound(P: np.ndarray, G: np.ndarray, width: float) -> float:
    """Proposition 1: sum_i p_i beta_i D^2, beta_i the smaller eigenvalue times G_ii."""
    beta = min(normalised(P), normalised(G)) * np.diag(G)
    return width**2 * float(np.diag(P) @ beta)


def features(rng: np.random.Generator, n: int, d: int, common: float) -> np.ndarray:
    """A (n, d) of normal features that share so much of one direction."""
    shared = rng.standard_normal((n, 1))
    own = rng.standard_normal((n, d))
    return np.sqrt(common) * shared + np.sqrt(1 - common) * own


def rows(
    seed: int, n: int, d: int, common: float, tau: int, nodes: int, width: float
) -> list[dict[str, Any]]:
    """Curvature and bound of every sampling for one draw of the features."""
    A = features(np.random.default_rng(seed), n, d, common)
    G = A.T @ A / n
    found = []
    for sampling in SAMPLINGS:
        P = pair_chances(sampling, d, tau, nodes)
        found.append({"sampling": sampling, "curvature": curvature(P * G, width),
                      "bound": bound(P, G, width)})  # fmt: skip
    return found
