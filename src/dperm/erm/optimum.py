"""The non-private optimum w*, F*, with a certificate.

SciPy's L-BFGS-B solves the problem with w split into positive and negative parts,
columns scaled to equal smoothness; Newton steps on the coordinates that are free polish
it. The certificate is the duality gap of the composite problem: F(w) - F* <= gap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg, optimize

from dperm.erm.problem import Problem

PRECISION = 1e-10  # of the gap, relative to F*
_NEWTON_STEPS = 50


@dataclass(frozen=True)
class Optimum:
    """Minimiser w (p,), minimum F(w), and gap with F(w) - F* <= gap."""

    w: np.ndarray
    value: float
    gap: float

    @property
    def support(self) -> np.ndarray:
        """Mask of the non-zero coordinates, shape (p,)."""
        return self.w != 0


class NotCertifiedError(ArithmeticError):
    """The optimum could not be certified to the precision asked for."""


def solve(problem: Problem) -> Optimum:
    """Minimise F and certify the result.

    Raises
    ------
    NotCertifiedError
        If the loss is not bounded below, or the duality gap stays above 1e-10 of the
        objective.
    """
    if not problem.loss.bounded:
        raise NotCertifiedError(
            f"problem {problem.name}: loss {problem.loss.name} is not bounded below: "
            "there is no optimum to certify"
        )
    w = _polish(problem, _lbfgsb(problem))
    value = float(problem.objective(w)[0])
    gap = duality_gap(problem, w)
    if not gap <= PRECISION * max(abs(value), 1e-300):
        raise NotCertifiedError(
            f"problem {problem.name}: duality gap {gap:.2e} at F = {value:.6g}, "
            f"expected at most {PRECISION:g} of it"
        )
    return Optimum(w, value, gap)


def duality_gap(problem: Problem, w: np.ndarray) -> float:
    """Upper bound on F(w) - F* by Fenchel duality.

    The dual point is phi'(v) / n, shrunk until the penalty's conjugate is finite.

    Parameters
    ----------
    w : ndarray, shape (p,)
    """
    penalty = problem.penalty
    theta = problem.derivatives(problem.A @ w + problem.offset)
    correlation = problem.A.T @ theta / problem.n
    bounded = penalty.l2 > 0 or np.isfinite(penalty.upper - penalty.lower)
    if not bounded:
        top = np.abs(correlation).max()
        shrink = min(1.0, penalty.l1 / top) if top > 0 else 1.0
        theta, correlation = shrink * theta, shrink * correlation
        correlation = np.clip(correlation, -penalty.l1, penalty.l1)
    loss = problem.loss.conjugate(theta, problem.offset).mean()
    dual = -loss - penalty.conjugate(-correlation)
    return float(problem.objective(w)[0] - dual)


def _lbfgsb(problem: Problem) -> np.ndarray:
    """A minimiser to about eight digits; shape (p,)."""
    p, penalty = problem.p, problem.penalty
    scale = 1.0 / np.sqrt(np.maximum(problem.smoothness, 1e-300))

    def split(z: np.ndarray) -> tuple[float, np.ndarray]:
        w = scale * (z[:p] - z[p:])
        value = problem.objective(w)[0] - penalty.l1 * np.abs(w).sum()
        value += penalty.l1 * (scale * (z[:p] + z[p:])).sum()
        slope = scale * (problem.gradient(w) + penalty.l2 * w)
        weight = scale * penalty.l1
        return value, np.concatenate((slope + weight, weight - slope))

    high = np.full(p, penalty.upper) / scale
    low = np.full(p, -penalty.lower) / scale
    bounds = optimize.Bounds(np.zeros(2 * p), np.concatenate((high, low)))
    options = {"maxiter": 20000, "maxfun": 40000, "ftol": 1e-16, "gtol": 1e-12}
    found = optimize.minimize(
        split,
        np.zeros(2 * p),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options=options,
    )
    return scale * (found.x[:p] - found.x[p:])


def _polish(problem: Problem, w: np.ndarray) -> np.ndarray:
    """The point of smallest duality gap along a few Newton steps from w."""
    best, gap = w, duality_gap(problem, w)
    for _ in range(_NEWTON_STEPS):
        following = _newton_step(problem, w)
        if np.array_equal(following, w):
            break
        w, reached = following, duality_gap(problem, following)
        if reached < gap:
            best, gap = w, reached
    return best


def _newton_step(problem: Problem, w: np.ndarray) -> np.ndarray:
    """One Newton step on the coordinates that neither rest at zero nor at a bound."""
    penalty = problem.penalty
    gradient = problem.gradient(w) + penalty.l2 * w
    resting = (np.abs(w) * problem.smoothness < 1e-9) & (np.abs(gradient) <= penalty.l1)
    at_bound = (w <= penalty.lower) | (w >= penalty.upper)
    free = (
        np.flatnonzero(~resting & ~at_bound)
        if penalty.l1
        else np.flatnonzero(~at_bound)
    )
    candidate = np.where(resting & (penalty.l1 > 0), 0.0, w)
    if len(free) == 0:
        return candidate
    slope = (problem.gradient(candidate) + penalty.l2 * candidate)[free]
    sign = np.sign(np.where(candidate[free] != 0, candidate[free], -slope))
    hessian = _hessian(problem, candidate, free)
    move = linalg.lstsq(hessian, slope + penalty.l1 * sign)[0]
    moved = candidate[free] - move
    crossed = (np.sign(moved) != sign) & (penalty.l1 > 0)
    candidate[free] = np.where(crossed, 0.0, moved)
    return np.clip(candidate, penalty.lower, penalty.upper)


def _hessian(problem: Problem, w: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Hessian of the smooth part and the L2 penalty on the free coordinates."""
    columns = problem.A[:, free]
    if hasattr(columns, "toarray"):
        columns = columns.toarray()
    weights = problem.loss.second(problem.A @ w + problem.offset)
    hessian = columns.T @ (weights[:, None] * columns) / problem.n
    return hessian + problem.penalty.l2 * np.eye(len(free))
