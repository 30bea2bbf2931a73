"""Private smoothness constants: DP-CD-priv-cst (dpcd, Section 5.2 and Appendix F)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from dperm.core.privacy.accounting import UnknownCalibrationError
from dperm.core.privacy.ledger import Laplace
from dperm.core.privacy.mechanisms import laplace

Array = NDArray[np.float64]

# sensitivity of M_j in units of b_j / n: dpcd prints 2, but values lie in [0, b_j]
SENSITIVITY = {"paper": 2.0, "strict": 1.0}


class BoundsError(ValueError):
    """Bounds or constants that are negative, not finite or of the wrong shape."""


def feature_bounds(X: Any, factor: float) -> Array:
    """Return b_j = factor (2 max_i abs(x_ij))^2, bounds on a record's smoothness.

    Parameters
    ----------
    X : (n, p) array or scipy.sparse matrix
        Features; CSC is read column by column, other formats are converted by scipy.
    factor : float
        Bound on the loss's second derivative: 1 for least squares, 1/4 for logistic.

    Returns
    -------
    (p,) array

    Notes
    -----
    dpcd, Section 6.1: "twice their maximal absolute value". The bounds are read off the
    data and are treated as public knowledge, as the paper does; they are not private.
    """
    largest = abs(X).max(axis=0)
    if hasattr(largest, "toarray"):
        largest = largest.toarray()
    return factor * (2 * np.asarray(largest, dtype=float).ravel()) ** 2


def private_smoothness(
    M: ArrayLike,
    bounds: ArrayLike,
    epsilon_prime: float,
    n: int,
    rng: Generator,
    calibration: str,
) -> tuple[Array, tuple[Laplace, ...]]:
    """Return noisy smoothness constants and what their release costs.

    Every M_j gets Laplace noise of scale s_j and is raised to s_j where it falls below.
    The paper does not say what to do with constants that are not positive; the floor is
    post-processing with public numbers and costs nothing.

    Parameters
    ----------
    M : (p,) array_like
        Smoothness constants, means over the records of values in [0, b_j].
    bounds : (p,) array_like
        b_j, taken to be public (see :func:`feature_bounds`).
    epsilon_prime : float
        Pure epsilon spent on all p constants; inf returns M itself.
    n : int
        Number of records.
    rng : numpy.random.Generator
        Stream to draw from.
    calibration : {"paper", "strict"}
        ``paper``: s_j = 2 b_j p / (n epsilon') (dpcd, Appendix F, equation 126).
        ``strict``: half of it, because replacing a record moves a mean of values in
        [0, b_j] by b_j / n.

    Returns
    -------
    M_priv : (p,) array
    events : tuple of Laplace
        One event with p releases, in units of each feature's b_j / n.

    Raises
    ------
    BoundsError
        If M or bounds are negative or not finite, differ in shape, or M exceeds bounds.
    UnknownCalibrationError
        If the calibration is neither of the two.
    ScaleError
        If epsilon_prime is not positive.
    """
    event = smoothness_event(np.size(M), epsilon_prime, calibration)
    M, bounds = _checked(M, bounds)
    scales = event.scale * bounds / n
    return np.maximum(M + laplace(rng, scales), scales), (event,)


def smoothness_event(p: int, epsilon_prime: float, calibration: str) -> Laplace:
    """Return what the release of p smoothness constants costs, in units of b_j / n.

    Parameters
    ----------
    p : int
        Number of constants.
    epsilon_prime : float
        Pure epsilon spent on all of them, by basic composition.
    calibration : {"paper", "strict"}
        See :func:`private_smoothness`.
    """
    if calibration not in SENSITIVITY:
        known = ", ".join(SENSITIVITY)
        raise UnknownCalibrationError(f"calibration {calibration!r}; known: {known}")
    stated = SENSITIVITY[calibration]
    return Laplace(
        sensitivity=1.0,
        scale=stated * p / epsilon_prime if epsilon_prime else math.nan,
        count=p,
        unit="b_j / n: replace-one change of a mean of values in [0, b_j]",
        source="dpcd (Mangold et al. 2022), Appendix F, equation 126",
        published_sensitivity=stated,
    )


def _checked(M: ArrayLike, bounds: ArrayLike) -> tuple[Array, Array]:
    M, bounds = np.asarray(M, dtype=float), np.asarray(bounds, dtype=float)
    if M.shape != bounds.shape or M.ndim != 1:
        raise BoundsError(f"M and bounds must be (p,): got {M.shape}, {bounds.shape}")
    if not (np.isfinite(M).all() and np.isfinite(bounds).all()):
        raise BoundsError("M and bounds must be finite")
    if (M < 0).any() or (bounds * (1 + 1e-12) < M).any():
        raise BoundsError("every M_j must lie in [0, b_j]")
    return M, bounds
