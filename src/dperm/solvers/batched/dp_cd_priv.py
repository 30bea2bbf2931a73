"""DP-CD-priv-cst: DP-CD with privately estimated smoothness constants.

A share of epsilon pays for noisy M_1, ..., M_p from the Laplace mechanism (Mangold et
al. 2022, Section 5.2 and Appendix F). The rest, and all of delta, pay for Algorithm 1.

The bounds b_j = sup phi'' (2 max_i |x_ij|)^2 on a record's share ("twice their maximal
absolute value", Section 6.1) are read off the data and taken as public, as the paper
does. It prints the sensitivity 2 b_j / n of a mean of values in [0, b_j], and does not
say what to do with constants that are not positive: they are raised to the noise's
scale, which is post-processing with public numbers. Options have other readings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dperm.privacy import accountants
from dperm.privacy.accountants import PUBLISHED
from dperm.privacy.events import FEATURE_BOUNDS, Laplace, Ledger
from dperm.privacy.noise import laplace
from dperm.problems.problem import Problem
from dperm.solvers import options as checks
from dperm.solvers.batched import BatchedSettings, dp_cd
from dperm.solvers.batched.dp_cd import bytes_per_setting, steps

__all__ = ["SPARSE", "Options", "Run", "bytes_per_setting", "ledger", "steps"]

SPARSE = True


@dataclass(frozen=True)
class Options(dp_cd.Options):
    """DP-CD's options, the cost of the constants and the reading of the text."""

    share: float = 0.1  #: of epsilon, spent on the constants
    composed: bool = True  #: whether the noise has equation 126's factor p
    #: of a feature, as a multiple of its largest absolute value
    bound: float = 2.0
    #: {"raised", "reflected"}; an estimate below the Laplace scale is raised to it, or
    #: its absolute value is taken
    negative: str = "raised"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.share(self, "share")
        checks.at_least(self, 1, "bound")
        checks.one_of("negative", self.negative, ("raised", "reflected"))


def ledger(
    problem: Problem,
    count: int,
    noise_multiplier: float,
    options: Options,
    calibration: str = PUBLISHED,
) -> Ledger:
    """Laplace releases of the p constants, then DP-CD's Gaussian releases."""
    spent = options.share * problem.epsilon
    smoothness_release = smoothness_event(
        problem.p, spent, calibration, options.composed
    )
    later = dp_cd.ledger(problem, count, noise_multiplier, options)
    return Ledger((smoothness_release, *later.events), given=(FEATURE_BOUNDS,))


def smoothness_event(
    p: int, epsilon: float, calibration: str, composed: bool = True
) -> Laplace:
    """The release of p constants for a pure epsilon on all, in units of b_j / n.

    Unless ``composed`` each costs epsilon, and the paper would still claim it for all.

    Raises ValueError if there is no such calibration.
    """
    bound = stated_sensitivity(calibration)
    times = p if composed else 1
    return Laplace(
        sensitivity=1.0,
        scale=bound * times / epsilon if epsilon else math.nan,
        count=p,
        unit="b_j / n: replace-one change of a mean of values in [0, b_j]",
        source="dpcd (Mangold et al. 2022), Appendix F, equation 126",
        published_sensitivity=bound * times / p,
    )


def stated_sensitivity(calibration: str) -> float:
    """Sensitivity of M_j in units of b_j / n: dpcd prints 2, but 1 is enough."""
    accountants.place(calibration)
    return 2.0 if calibration == PUBLISHED else 1.0


def feature_bounds(X: Any, factor: float) -> np.ndarray:
    """Bounds b_j = factor (2 max_i |x_ij|)^2 on a record's smoothness, shape (p,).

    Parameters
    ----------
    X : ndarray or sparse array, shape (n, p)
    factor : float
        The supremum of phi'': 1 for least squares, 1/4 for the logistic loss.
    """
    largest = abs(X).max(axis=0)
    largest = largest.toarray() if hasattr(largest, "toarray") else largest
    return factor * (2 * np.asarray(largest, dtype=float).ravel()) ** 2


class Run(dp_cd.Run):
    """DP-CD with steps and clipping thresholds from the private constants."""

    def smoothness(self, settings: BatchedSettings) -> np.ndarray:
        """Noisy M_j, one release for all settings of the run; shape (p,)."""
        problem = self.problem
        options = self.options
        if settings.noise_multiplier == 0:
            return problem.smoothness
        bounds = feature_bounds(problem.known.A, problem.loss.curvature)
        bounds = bounds * (options.bound / 2) ** 2
        spent = options.share * problem.epsilon
        event = smoothness_event(
            problem.p, spent, settings.calibration, options.composed
        )
        scales = event.scale * bounds / problem.n
        noisy = problem.smoothness + laplace(self.streams.smoothness, scales)
        if options.negative == "reflected":
            return np.abs(noisy)
        return np.maximum(noisy, scales)

    @property
    def released(self) -> np.ndarray:
        """The weights, and the constants, released at the start; (L, 2 p)."""
        return np.concatenate(
            (self.weights, np.tile(self.M, (self.size, 1))), axis=1
        )
