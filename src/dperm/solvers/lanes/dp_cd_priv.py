"""DP-CD-priv-cst: DP-CD with privately estimated smoothness constants.

A share of epsilon pays for noisy M_1, ..., M_p from the Laplace mechanism (Mangold et
al. 2022, Section 5.2 and Appendix F). The rest, and all of delta, pay for Algorithm 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from dperm.core import calibrations
from dperm.core.calibrations import PAPER
from dperm.core.erm.problem import Problem
from dperm.core.lanes import Lanes, dp_cd
from dperm.core.lanes.dp_cd import lane_bytes, refuses, steps
from dperm.core.privacy.ledger import FEATURE_BOUNDS, Laplace, Ledger
from dperm.core.privacy.mechanisms import Streams, laplace
from dperm.core.solvers import options as checks

__all__ = ["SPARSE", "Options", "Run", "lane_bytes", "ledger", "refuses", "steps"]

SPARSE = True

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Options(dp_cd.Options):
    """DP-CD's options and the share of epsilon spent on the constants."""

    share: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.share("share", self.share)


def ledger(
    problem: Problem,
    count: int,
    noise_multiplier: float,
    options: Options,
    calibration: str = PAPER,
) -> Ledger:
    """Laplace releases of the p constants, then DP-CD's Gaussian releases.

    The M_j are released with noise; the bounds that set this noise are given.
    """
    first = smoothness_event(problem.p, options.share * problem.epsilon, calibration)
    steps = dp_cd.ledger(problem, count, noise_multiplier, options)
    return Ledger((first, *steps.events), given=(FEATURE_BOUNDS,))


class Run(dp_cd.Run):
    """DP-CD with steps and clipping thresholds from the private constants."""

    def smoothness(
        self, problem: Problem, lanes: Lanes, streams: Streams, options: dp_cd.Options
    ) -> np.ndarray:
        """Noisy M_j, one release for all lanes of the run; shape (p,)."""
        assert isinstance(options, Options)
        self.constants = self._constants(problem, lanes, streams, options)
        return self.constants

    @property
    def released(self) -> np.ndarray:
        """The weights, and the constants, released at the start; (L, 2 p)."""
        constants = np.tile(self.constants, (len(self.weights), 1))
        return np.concatenate((self.weights, constants), axis=1)

    def _constants(
        self, problem: Problem, lanes: Lanes, streams: Streams, options: Options
    ) -> np.ndarray:
        if lanes.noise_multiplier == 0:
            return problem.smoothness
        bounds = feature_bounds(problem.known.A, problem.loss.curvature)
        return private_smoothness(
            problem.smoothness,
            bounds,
            options.share * problem.epsilon,
            problem.n,
            streams.smoothness,
            lanes.calibration,
        )[0]


# --- the release of the constants -----------------------------------------------------


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
    """Return noisy smoothness constants and the events of their release.

    Every M_j gets Laplace noise of scale s_j and is raised to s_j where it falls below.
    The paper does not state how to treat constants that are not positive. The floor is
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
        If there is no such calibration.
    ScaleError
        If epsilon_prime is not positive.
    """
    event = smoothness_event(np.size(M), epsilon_prime, calibration)
    M, bounds = _checked(M, bounds)
    scales = event.scale * bounds / n
    return np.maximum(M + laplace(rng, scales), scales), (event,)


def smoothness_event(p: int, epsilon_prime: float, calibration: str) -> Laplace:
    """Return the event of releasing p smoothness constants, in units of b_j / n.

    Parameters
    ----------
    p : int
        Number of constants.
    epsilon_prime : float
        Pure epsilon spent on all of them, by basic composition.
    calibration : {"paper", "strict"}
        See :func:`private_smoothness`.
    """
    stated = stated_sensitivity(calibration)
    return Laplace(
        sensitivity=1.0,
        scale=stated * p / epsilon_prime if epsilon_prime else math.nan,
        count=p,
        unit="b_j / n: replace-one change of a mean of values in [0, b_j]",
        source="dpcd (Mangold et al. 2022), Appendix F, equation 126",
        published_sensitivity=stated,
    )


def stated_sensitivity(calibration: str) -> float:
    """Sensitivity of M_j in units of b_j / n: dpcd prints 2, but 1 is enough.

    Raises UnknownCalibrationError if there is no such calibration.
    """
    calibrations.place(calibration)
    return 2.0 if calibration == PAPER else 1.0


def _checked(M: ArrayLike, bounds: ArrayLike) -> tuple[Array, Array]:
    M, bounds = np.asarray(M, dtype=float), np.asarray(bounds, dtype=float)
    if M.shape != bounds.shape or M.ndim != 1:
        raise BoundsError(f"M and bounds must be (p,): got {M.shape}, {bounds.shape}")
    if not (np.isfinite(M).all() and np.isfinite(bounds).all()):
        raise BoundsError("M and bounds must be finite")
    if (M < 0).any() or (bounds * (1 + 1e-12) < M).any():
        raise BoundsError("every M_j must lie in [0, b_j]")
    return M, bounds
