"""Minimisers of regularised logistic objectives with linear terms, many at a time.

    sum_i phi(V_i u) + n psi(u) + (ridge / 2) ||u||^2 + b . u,

one for each column b: by Newton's method where psi is smooth, by an accelerated
proximal gradient method where it is not. Both stop at a subgradient of norm at most the
tolerance; by strong convexity the minimiser is then within tolerance / ridge.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import linalg

from dperm.solvers.full_batch.public_view import PublicView
from dperm.solvers.records import Records, gram

_CHORDS = 60  # steps with a fixed Hessian
_NEWTON = 200
_HALVINGS = 200  # reductions of the error by e, sqrt(condition) steps each
_ROUNDING = 1e-15  # relative, of b
_MAX_DECOMPOSED = 2000  # wider moments are bounded, not decomposed
_LENGTHS = (0.05, 20.0)  # shortest and longest step, in Newton steps


def minimise(
    scaled: PublicView,
    records: Records,
    radius: float,
    ridge: float,
    b: np.ndarray,
    tolerance: float,
) -> np.ndarray:
    """Minimisers on records clipped to a radius, one for each column of b (p, L).

    The ``ridge`` is positive, in units of the sum over records. The tolerance counts as
    reached where rounding of b is larger, which needs noise of many thousand times its
    scale. Minimisers (p, L) are returned even if it is not reached, which only rounding
    can cause: refusing some data sets would distinguish them from others.
    """
    tolerances = np.maximum(tolerance, _ROUNDING * np.linalg.norm(b, axis=0))
    solve = _newton if scaled.is_smooth else _proximal
    return solve(scaled, records, radius, ridge, b, tolerances)


def _newton(
    scaled: PublicView,
    records: Records,
    radius: float,
    ridge: float,
    b: np.ndarray,
    tolerance: np.ndarray,
) -> np.ndarray:
    """Take steps with the Hessian at the minimiser for b = 0, or with their own."""
    weights = scaled.n * scaled.l2[:, 0] + ridge

    def gradient(u: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Gradients of the perturbed objectives at u; (p, L)."""
        return records.pull(u, radius) + weights[:, None] * u + b

    def centre() -> tuple[np.ndarray, Any]:
        """Minimum without perturbation, and its factored Hessian."""
        none = np.zeros(scaled.p)
        loosest = float(tolerance.max())
        u = _minimise_one(records, radius, weights, none, none, loosest)
        bent = records.hessian(u, radius) + np.diag(weights)
        return u[:, None], linalg.cho_factor(bent)

    start, factor = records.kept(("centre", radius, ridge), centre)
    u = np.repeat(start, b.shape[1], axis=1)
    unfinished = np.arange(b.shape[1])
    sizes = np.full(b.shape[1], np.inf)
    points = u.copy()
    length = np.ones(b.shape[1])
    slope = gradient(points, b)
    move = linalg.cho_solve(factor, slope)
    for _ in range(_CHORDS):
        u[:, unfinished] = points
        sizes[unfinished] = np.linalg.norm(slope, axis=0)
        is_unfinished = ~(sizes[unfinished] <= tolerance[unfinished])
        if not is_unfinished.any():
            return u
        unfinished = unfinished[is_unfinished]
        points = points[:, is_unfinished]
        length = length[is_unfinished]
        slope = slope[:, is_unfinished]
        move = move[:, is_unfinished]
        points = points - length * move
        following = gradient(points, b[:, unfinished])
        after = linalg.cho_solve(factor, following)
        # Barzilai and Borwein 1988, in the metric of the Hessian
        changed = following - slope
        bent = after - move
        length = -length * (move * changed).sum(axis=0)
        length = np.clip(length / (changed * bent).sum(axis=0), *_LENGTHS)
        length = np.where(np.isfinite(length), length, 1.0)  # nothing changed
        slope = following
        move = after
    for k in np.flatnonzero(~(sizes <= tolerance)):
        u[:, k] = _minimise_one(
            records, radius, weights, b[:, k], u[:, k], float(tolerance[k])
        )
    return u


def _minimise_one(
    records: Records,
    radius: float,
    weights: np.ndarray,
    b: np.ndarray,
    u: np.ndarray,
    tolerance: float,
) -> np.ndarray:
    """Newton's method with step halving, from u (p,)."""

    def slope_of(u: np.ndarray) -> np.ndarray:
        """Gradient of the perturbed objective at u; (p,)."""
        return records.pull(u, radius) + weights * u + b

    slope = slope_of(u)
    for _ in range(_NEWTON):
        size = np.linalg.norm(slope)
        if size <= tolerance:
            return u
        bent = records.hessian(u, radius) + np.diag(weights)
        move = linalg.solve(bent, slope, assume_a="pos")
        length = 1.0
        while length > 1e-6:
            following = slope_of(u - length * move)
            if np.linalg.norm(following) <= (1 - 0.25 * length) * size:
                break
            length /= 2
        else:  # rounding is all that is left
            return u
        u = u - length * move
        slope = following
    return u


def _proximal(
    scaled: PublicView,
    records: Records,
    radius: float,
    ridge: float,
    b: np.ndarray,
    tolerance: np.ndarray,
) -> np.ndarray:
    """Nesterov's method for strongly convex objectives, at a constant momentum.

    That of a smooth penalty counts too (Chambolle and Pock 2016, Algorithm 5).
    """
    curvature = scaled.n * float(scaled.l2.min()) if scaled.is_smooth else 0.0
    L = (
        records.kept(("top", radius), lambda: _top(scaled, records, radius))
        + ridge
    )
    root = np.sqrt((ridge + curvature) / (L + curvature))
    momentum = (1 - root) / (1 + root)
    step = 1.0 / L

    def smooth(u: np.ndarray) -> np.ndarray:
        """Gradient of the objective's smooth part at u; (p,)."""
        return records.pull(u, radius) + ridge * u + b

    u = np.zeros_like(b)
    y = u
    for _ in range(_most_steps(scaled, radius, ridge)):
        following = scaled.prox(y - step * smooth(y), step * scaled.n)
        # L (y - u) - grad f(y) + grad f(u) is a subgradient; grad f is L-Lipschitz
        sizes = 2 * L * np.linalg.norm(y - following, axis=0)
        if (sizes <= tolerance).all():
            return following
        y = following + momentum * (following - u)
        u = following
    return u


def _most_steps(scaled: PublicView, radius: float, ridge: float) -> int:
    """Steps that reach any tolerance above rounding, whatever the records are."""
    strong = ridge + scaled.n * float(scaled.l2.min())
    steepest = scaled.loss.curvature * scaled.n * radius**2 / strong
    return 1000 + math.ceil(_HALVINGS * math.sqrt(1 + steepest))


def _top(scaled: PublicView, records: Records, radius: float) -> float:
    """A bound on the Hessian of the loss: curvature times the largest eigenvalue."""
    if scaled.p <= _MAX_DECOMPOSED:
        moments = records.gram(radius)
    elif scaled.n <= _MAX_DECOMPOSED:
        moments = gram(records.clipped(radius).T)
    else:
        return scaled.loss.curvature * scaled.n * radius**2
    last_index = len(moments) - 1
    top = float(
        linalg.eigvalsh(moments, subset_by_index=[last_index, last_index])[0]
    )
    return 1.0001 * scaled.loss.curvature * top
