"""The least loss without privacy and that of the best constant, on the same records.

Both are least losses over affine functions of the columns, with and without slopes. No
penalty takes part, so that no affine score of these records has a smaller loss, and an
excess is never negative. Columns are centred, scaled, and turned into orthonormal ones
(the left singular vectors), so that neither units nor origins of columns matter.
Singular values below 1e-12 of the largest are collinear columns, and count as none. The
affine function that is returned leaves out those below 1e-6, if any, too: a fit to what
is left of columns after rounding lowers the loss, and foretells nothing of others.

Levenberg-Marquardt steps minimise the loss. They also follow the labels that a
hyperplane separates, for which the loss falls for ever, to within 1e-13 of its infimum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from dperm.problems.losses import Loss
from dperm.problems.optimum import NotCertifiedError

COLLINEAR = 1e-12  # of the largest singular value
RESOLVED = 1e-6
ENOUGH = 1e-15  # of the loss at the start: a smaller decrease ends the search
ROUNDING = 1e3  # times this: a smaller decrease may be lost in rounding
STEPS = 2000
# Of a step, over the loss's curvature: at first, at least, and for a search's last.
DAMPING = 1e-3
LEAST_DAMPING = 1e-15
UNDAMPED = 1e-9
# Of the best constant's loss, which an affine function must gain
LEAST_GAIN = 1e-12


@dataclass(frozen=True)
class Reference:
    """Losses of each record (n,), and the affine function without privacy."""

    constant: np.ndarray  #: losses under the best constant
    least: np.ndarray  #: losses under the best affine function
    slopes: np.ndarray  #: shape (p,)
    intercept: float

    @property
    def gain(self) -> float:
        """What the affine function gains on the constant, in mean loss."""
        return float((self.constant - self.least).mean())


def reference(X: np.ndarray, y: np.ndarray, loss: Loss) -> Reference:
    """The reference of dense X (n, p) and y (n,): centred labels, or signs.

    Raises
    ------
    NotCertifiedError
        If the search does not end.
    ValueError
        If no affine function of the columns has a smaller loss than the best constant.
    """
    n = len(y)
    centre = X.mean(axis=0)
    is_constant = X.max(axis=0) == X.min(axis=0)
    centred = np.where(is_constant, 0.0, X - centre)
    deviation = np.sqrt((centred * centred).mean(axis=0))
    deviation[deviation == 0] = 1.0
    U, sizes, rotation = scipy.linalg.svd(
        centred / deviation, full_matrices=False, check_finite=False
    )
    is_used = sizes > COLLINEAR * max(sizes.max(initial=0.0), 1e-300)
    ones = np.ones((n, 1))
    directions = np.hstack((ones, np.sqrt(n) * U[:, is_used]))
    constant = _minimiser(ones, y, loss, np.zeros(1))
    start = np.zeros(directions.shape[1])
    start[0] = constant[0]
    weights = _minimiser(directions, y, loss, start)
    losses = losses_of(directions @ weights, y, loss)
    clear = sizes > RESOLVED * max(sizes.max(initial=0.0), 1e-300)
    if not clear[is_used].all():
        is_used = clear
        directions = directions[:, : 1 + int(clear.sum())]
        weights = _minimiser(
            directions, y, loss, weights[: directions.shape[1]]
        )
    slopes = (
        (np.sqrt(n) * weights[1:] / sizes[is_used])
        @ rotation[is_used]
        / deviation
    )
    intercept = float(weights[0] - slopes @ centre)
    best = Reference(
        losses_of(np.full(n, constant[0]), y, loss),
        losses,
        slopes,
        intercept,
    )
    if not best.gain > LEAST_GAIN * best.constant.mean():
        raise ValueError(
            "no linear function of the features fits better than the best constant: "
            "there is nothing to learn"
        )
    return best


def losses_of(scores: np.ndarray, y: np.ndarray, loss: Loss) -> np.ndarray:
    """The loss of each record, for its score and its label or sign; shape (n,)."""
    return loss.values(loss.signs(y) * scores + loss.offset(y))


def _minimiser(
    directions: np.ndarray, y: np.ndarray, loss: Loss, start: np.ndarray
) -> np.ndarray:
    """Weights (k,) of orthonormal directions (n, k) with the least mean loss."""
    n, k = directions.shape
    signs = loss.signs(y)
    offset = loss.offset(y)
    weights = start
    damping = 0.0 if loss.quadratic else DAMPING
    margins = signs * (directions @ weights) + offset
    losses = loss.values(margins)
    enough = ENOUGH * float(losses.mean())
    for _ in range(STEPS):
        slope = directions.T @ (signs * loss.derivatives(margins)) / n
        bends = loss.second(margins)[:, None]
        hessian = directions.T @ (bends * directions) / n
        step = _damped(hessian + damping * loss.curvature * np.eye(k), slope)
        if step is None:
            damping = max(10 * damping, LEAST_DAMPING)
            continue
        promise = float(slope @ step)  # twice the decrease of a quadratic
        trial = weights - step
        trial_margins = signs * (directions @ trial) + offset
        trial_losses = loss.values(trial_margins)
        is_less = (trial_losses - losses).mean() < 0
        if is_less:
            weights = trial
            margins = trial_margins
            losses = trial_losses
        if abs(losses.mean()) <= ROUNDING * enough:
            return weights  # labels that the columns separate or interpolate
        if promise <= enough and damping <= UNDAMPED:
            return weights
        if is_less or promise <= enough:
            damping = max(damping / 10, LEAST_DAMPING)
        elif promise <= ROUNDING * enough:
            return weights
        else:
            damping = max(10 * damping, LEAST_DAMPING)
    raise NotCertifiedError(
        f"the least loss without privacy was not reached in {STEPS} steps"
    )


def _damped(hessian: np.ndarray, slope: np.ndarray) -> np.ndarray | None:
    """The step; None where rounding leaves the Hessian no inverse."""
    try:
        factors = scipy.linalg.cho_factor(hessian, check_finite=False)
    except scipy.linalg.LinAlgError:
        return None
    step: np.ndarray = scipy.linalg.cho_solve(
        factors, slope, check_finite=False
    )
    return step
