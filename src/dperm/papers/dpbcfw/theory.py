"""Formulas of Lou and Cheung 2020, and the quantities that they bound.

They are Theorem 1, Table III, and Propositions 1 to 4.
"""

from __future__ import annotations

import numpy as np

SAMPLINGS = {  # of Algorithm 1, with their names in ``bcfw.Options``
    "elementary": "elementary",
    "uniform serial": "uniform_serial",
    "tau-nice": "tau_nice",
    "(K, tau)-distributed": "distributed",
}

# --- Theorem 1 and Table III ----------------------------------------------------------


def bound(t: int, p_min: float, start: float, curvature: float) -> float:
    """Theorem 1: 2 (h_0 + C / p_min) / (p_min t + 2); h_0 is at most f(0)."""
    return 2 * (start + curvature / p_min) / (p_min * t + 2)


def printed_column(
    p_min: float, t: int, d: int, start: float, curvature: float
) -> float:
    """Printed column of Table III, (2 d) (s h_0 + C) / (s^2 t + 2 d s), s = p_min d.

    Theorem 1 with the same p_min has d C in place of C. The row of p_min = 1 is that of
    the theorem.
    """
    if p_min == 1.0:
        return bound(t, p_min, start, curvature)
    s = p_min * d
    return 2 * d * (s * start + curvature) / (s * s * t + 2 * d * s)


def pair_sums(
    mu1: float, mu2: float, mu3: float, tau: int, nodes: int
) -> tuple[float, float]:
    """Propositions 3 and 4: sums over the tau features of a set and their pairs.

    ``mu1`` bounds ||a_i||^2, ``mu2`` and ``mu3`` |a_i . a_j| within and across nodes.
    """
    nice = tau * mu1 + tau * (tau - 1) * max(mu2, mu3)
    within = nodes * tau * (mu1 + (tau - 1) * mu2)
    return nice, within + nodes * (nodes - 1) * tau**2 * mu3


# --- expected curvature of least squares over the box |v_j| <= D ----------------------
#
# The bracket of definition 3, with 2 / gamma^2 before all of it, is
# ||A_T (s - x)_T||^2 / n. So the expected curvature is the largest value of
# v^T (P o A^T A / n) v over the box, with P the chances of pairs. It is attained at a
# corner; with few features, all corners are tried.

CORNERS = 18  # largest number of features for which all corners are tried


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


def box_curvature(M: np.ndarray, width: float) -> float:
    """The largest v^T M v over the corners of |v_j| <= width; M (d, d), d <= 18."""
    d = len(M)
    if d > CORNERS:
        raise ValueError(
            f"{d} features: all corners of at most {CORNERS} are tried"
        )
    signs = np.ones((2 ** (d - 1), d))  # v and -v are the same
    numbers = np.arange(2 ** (d - 1))
    for j in range(1, d):
        signs[:, j] = 1 - 2 * ((numbers >> (j - 1)) & 1)
    return width**2 * float(np.einsum("ij,ij->i", signs @ M, signs).max())


def eigenvalue_bound(P: np.ndarray, G: np.ndarray, width: float) -> float:
    """Proposition 1: sum_i p_i beta_i D^2, beta_i the smaller eigenvalue times G_ii.

    The eigenvalues are the largest of P and of G (d, d) scaled to diagonals of ones.
    """
    tops = []
    for M in (P, G):
        root = np.sqrt(np.diag(M))
        tops.append(float(np.linalg.eigvalsh(M / np.outer(root, root))[-1]))
    return width**2 * float(np.diag(P) @ (min(tops) * np.diag(G)))


def correlated(seed: int, n: int, d: int, common: float) -> np.ndarray:
    """G = A^T A / n (d, d) of n normal records with correlation ``common``."""
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((n, 1))
    single = rng.standard_normal((n, d))
    A = np.sqrt(common) * shared + np.sqrt(1 - common) * single
    return A.T @ A / n
