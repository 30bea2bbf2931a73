"""Quadratics with penalties: what is left to minimise once the moments are noisy.

Everything here is post-processing: it reads released matrices and public penalties.
"""

from __future__ import annotations

import numpy as np

from dperm.solvers.fits.scaled import Scaled

_STEPS = 2000
_STILL = 1e-9  # of the weights, a step that ends the search


def floored(Q: np.ndarray, least: float) -> np.ndarray:
    """Symmetric matrices (L, p, p) with eigenvalues no smaller than a positive floor.

    Without one a penalised quadratic may be unbounded below.
    """
    values, vectors = np.linalg.eigh(Q)
    return (vectors * np.maximum(values, least)[:, None, :]) @ vectors.mT


def minimised(
    at: Scaled, Q: np.ndarray, q: np.ndarray, records: float, u: np.ndarray
) -> np.ndarray:
    """Minimiser of u.Q u / 2 - q.u + records psi(u) for each run, from u.

    Parameters
    ----------
    at : Scaled
        Whose penalty psi is.
    Q : ndarray, shape (L, p, p)
        Positive definite.
    q, u : ndarray, shape (p, L)
    records : float
        What the penalty is multiplied with.

    Returns
    -------
    ndarray, shape (p, L)
    """
    if at.is_smooth:
        whole = Q + records * np.diag(at.l2[:, 0])
        found: np.ndarray = np.linalg.solve(whole, q.T[:, :, None])[:, :, 0].T
        return found
    L = np.linalg.norm(Q, ord=2, axis=(1, 2))[None, :]
    y, t = u, 1.0
    for _ in range(_STEPS):
        slope = np.einsum("lij,jl->il", Q, y) - q
        following = at.prox(y - slope / L, records / L)
        moved = following - u
        if np.abs(moved).max() <= _STILL * max(np.abs(following).max(), 1e-30):
            return following
        later = (1 + np.sqrt(1 + 4 * t * t)) / 2
        uphill = ((y - following) * moved).sum(axis=0) > 0
        y = following + np.where(uphill, 0.0, (t - 1) / later) * moved
        u, t = following, later
    return u
