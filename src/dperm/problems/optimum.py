"""The non-private optimum w*, F*, with a certificate.

SciPy's L-BFGS-B solves the problem with w split into positive and negative parts and
columns scaled to equal smoothness. Newton steps on the free coordinates refine the
solution. The certificate is the duality gap of the composite problem: F(w) - F* <= gap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # it imports its parts when they are first used
from scipy import sparse

from dperm.problems.penalties import Penalty
from dperm.problems.problem import Problem

PRECISION = 1e-10  # of the gap, relative to F*
_NEWTON_STEPS = 50
_MANY = 10_000_000  # entries of A above which a gap of _ENOUGH is not refined further
_ENOUGH = 1e-12  # of the gap, relative to F
_FEW = 200  # iterations of L-BFGS-B where Newton steps by conjugate gradients follow
_DENSE = 4000  # free coordinates up to which the Hessian is a dense matrix
# Norm assumed of an unpenalised minimiser, in units of that of w
_REACH = 10.0
_LARGE_MARGIN = 15.0  # below it no record's loss is near its infimum


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
    """The optimum could not be certified to the required precision."""


def solve(problem: Problem) -> Optimum:
    """Minimise F and certify the result.

    Raises NotCertifiedError if F has no finite minimiser, or its minimum is 0, so that
    no error relative to it is defined, or if the gap stays above 1e-10 of the minimum.
    """
    if not problem.loss.bounded:
        raise NotCertifiedError(
            f"problem {problem.name}: loss {problem.loss.name} is not bounded below: "
            "there is no optimum to certify"
        )
    w = _polish(problem, _lbfgsb(problem))
    _check_attained(problem, w)
    start, objective = problem.objective(np.array([np.zeros(problem.p), w]))
    if not objective > PRECISION * start:
        raise NotCertifiedError(
            f"problem {problem.name}: the minimum is 0 (F = {objective:.2g}, and "
            f"{start:.6g} at w = 0): no error relative to it is defined; expected a "
            "penalty, or fewer features than records"
        )
    gap = duality_gap(problem, w)
    if not gap <= PRECISION * objective:
        raise NotCertifiedError(
            f"problem {problem.name}: duality gap {gap:.2e} at F = {objective:.6g}, "
            f"expected at most {PRECISION:g} of it"
        )
    return Optimum(w, float(objective), gap)


def duality_gap(problem: Problem, w: np.ndarray) -> float:
    """Upper bound on F(w) - F* by Fenchel duality.

    The dual point is phi'(v) / n, shrunk until the conjugate of an L1 norm is finite.
    Without a penalty it would have to be orthogonal to every free column, which holds
    up to rounding. The remaining correlation is charged for a minimiser of up to ten
    times the norm of w, with coordinates in units of 1 / sqrt(M_j).

    Parameters
    ----------
    w : ndarray, shape (p,)
    """
    penalty = problem.penalty
    charged = 0.0
    theta = problem.derivatives(problem.A @ w + problem.offset)
    correlation = problem.A.T @ theta / problem.n
    low, high = _finite_conjugate(penalty)
    if penalty.l1 > 0 and penalty.l2 == 0:
        top = max(_largest(-correlation, -low), _largest(correlation, high))
        shrink = min(1.0, penalty.l1 / top) if top > 0 else 1.0
        theta = shrink * theta
        correlation = shrink * correlation
    inside = np.clip(correlation, low, high)
    if penalty.l1 == penalty.l2 == 0:
        unit = np.sqrt(np.maximum(problem.smoothness, 1e-300))
        residual = np.abs(correlation - inside) / unit
        charged = float(residual.sum() * _REACH * np.linalg.norm(unit * w))
    loss = problem.loss.conjugate(theta, problem.offset).mean()
    dual = -loss - penalty.conjugate(-inside)
    return float(problem.objective(w)[0] - dual) + charged


def _finite_conjugate(penalty: Penalty) -> tuple[float, float]:
    """Interval of correlations on which the penalty's conjugate is finite."""
    if penalty.l2 > 0:
        return -np.inf, np.inf
    low = -penalty.l1 if np.isinf(penalty.upper) else -np.inf
    high = penalty.l1 if np.isinf(penalty.lower) else np.inf
    return low, high


def _largest(values: np.ndarray, limit: float) -> float:
    """The largest value if the limit is finite, else 0."""
    return float(values.max()) if np.isfinite(limit) else 0.0


def _check_attained(problem: Problem, w: np.ndarray) -> None:
    """Refuse separable data, on which an unpenalised logistic loss has no minimiser.

    Raises NotCertifiedError if a direction increases no record's loss and decreases at
    least one (Albert and Anderson 1984).
    """
    penalty = problem.penalty
    if problem.loss.attained or penalty.l1 > 0 or penalty.l2 > 0:
        return
    is_far = np.abs(problem.A @ w).max(initial=0.0) > _LARGE_MARGIN
    if is_far and _is_separable(problem):
        raise NotCertifiedError(
            f"problem {problem.name}: no finite minimiser: a hyperplane separates the "
            f"labels, and {problem.loss.name} loss falls for ever along its normal; "
            "expected a penalty"
        )


def _is_separable(problem: Problem) -> bool:
    """Whether some direction that stays in the box has margins >= 0, not all 0."""
    n = problem.n
    penalty = problem.penalty
    away = (
        0.0 if np.isfinite(penalty.lower) else None,
        0.0 if np.isfinite(penalty.upper) else None,
    )
    program = scipy.optimize.linprog(
        np.concatenate((np.zeros(problem.p), -np.ones(n))),
        A_ub=sparse.hstack(
            (-sparse.csr_array(problem.A), sparse.eye_array(n))
        ),
        b_ub=np.zeros(n),
        bounds=[away] * problem.p + [(0.0, 1.0)] * n,
        method="highs",
    )
    return bool(program.status == 0 and -program.fun > 0.5)


def _lbfgsb(problem: Problem) -> np.ndarray:
    """A minimiser to about eight digits; shape (p,)."""
    p = problem.p
    penalty = problem.penalty
    scale = 1.0 / np.sqrt(np.maximum(problem.smoothness, 1e-300))

    def split(z: np.ndarray) -> tuple[float, np.ndarray]:
        """Objective and gradient at z = (w+, w-), smooth where both are positive."""
        w = scale * (z[:p] - z[p:])
        objective = problem.objective(w)[0] - penalty.l1 * np.abs(w).sum()
        objective += penalty.l1 * (scale * (z[:p] + z[p:])).sum()
        slope = scale * (problem.gradient(w) + penalty.l2 * w)
        weight = scale * penalty.l1
        return objective, np.concatenate((slope + weight, weight - slope))

    high = np.full(p, penalty.upper) / scale
    low = np.full(p, -penalty.lower) / scale
    bounds = scipy.optimize.Bounds(
        np.zeros(2 * p), np.concatenate((high, low))
    )
    # Newton steps do the rest
    count = _FEW if penalty.is_smooth and p > _DENSE else 20000
    options = {
        "maxiter": count,
        "maxfun": 2 * count,
        "ftol": 1e-16,
        "gtol": 1e-12,
    }
    minimum = scipy.optimize.minimize(
        split,
        np.zeros(2 * p),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options=options,
    )
    return scale * (minimum.x[:p] - minimum.x[p:])


def _polish(problem: Problem, w: np.ndarray) -> np.ndarray:
    """The point of smallest duality gap along Newton steps from w."""
    best = w
    gap = duality_gap(problem, w)
    is_large = getattr(problem.A, "size", 0) > _MANY
    enough = _ENOUGH * problem.objective(w)[0] if is_large else -np.inf
    for _ in range(_NEWTON_STEPS):
        following = w if gap <= enough else _newton_step(problem, w)
        if np.array_equal(following, w):
            break
        w = following
        reached = duality_gap(problem, following)
        if reached < gap:
            best = w
            gap = reached
    return best


def _newton_step(problem: Problem, w: np.ndarray) -> np.ndarray:
    """One Newton step on the coordinates that are neither fixed at 0 nor at a bound."""
    penalty = problem.penalty
    gradient = problem.gradient(w) + penalty.l2 * w
    resting = (np.abs(w) * problem.smoothness < 1e-9) & (
        np.abs(gradient) <= penalty.l1
    )
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
    move = _newton_move(problem, candidate, free, slope + penalty.l1 * sign)
    moved = candidate[free] - move
    crossed = (np.sign(moved) != sign) & (penalty.l1 > 0)
    candidate[free] = np.where(crossed, 0.0, moved)
    return np.clip(candidate, penalty.lower, penalty.upper)


def _newton_move(
    problem: Problem, w: np.ndarray, free: np.ndarray, slope: np.ndarray
) -> np.ndarray:
    """The slope times the inverse Hessian of f and the L2 term, on free coordinates.

    Conjugate gradients are used where the Hessian would be too large.
    """
    weights = problem.loss.second(problem.A @ w + problem.offset)
    if len(free) > _DENSE:
        return _by_products(problem, weights / problem.n, free, slope)
    columns = problem.A[:, free]
    l2 = problem.penalty.l2
    if hasattr(columns, "toarray"):
        columns = columns.toarray()
    hessian = columns.T @ (weights[:, None] * columns) / problem.n
    move: np.ndarray = scipy.linalg.lstsq(
        hessian + l2 * np.eye(len(free)), slope
    )[0]
    return move


def _by_products(
    problem: Problem, weights: np.ndarray, free: np.ndarray, slope: np.ndarray
) -> np.ndarray:
    """As ``_newton_move``, by conjugate gradients; ``weights`` are phi'' / n."""
    A = problem.A
    l2 = problem.penalty.l2
    size = len(free)

    def product(x: np.ndarray) -> np.ndarray:
        """The Hessian of the free coordinates times a vector."""
        filled = np.zeros(problem.p)
        filled[free] = x
        return (A.T @ (weights * (A @ filled)))[free] + l2 * x

    operator = scipy.sparse.linalg.LinearOperator(
        (size, size), matvec=product, dtype=np.float64
    )
    move: np.ndarray = scipy.sparse.linalg.cg(
        operator, slope, rtol=1e-12, maxiter=1000
    )[0]
    return move
