"""DP-CD-priv-cst with the choices that the paper's text leaves open.

Equation 126 multiplies the Laplace scale by p and takes bounds b_j that Section 6.1
reads off the data as twice the largest value. Neither states how to treat an estimate
that is not positive. The module has the interface of
``dperm.solvers.lanes.dp_cd_priv``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dperm.core.calibrations import PAPER
from dperm.core.erm.problem import Problem
from dperm.core.lanes import Lanes, dp_cd
from dperm.core.lanes.dp_cd import lane_bytes, steps
from dperm.core.privacy.ledger import FEATURE_BOUNDS, Laplace, Ledger
from dperm.core.privacy.mechanisms import laplace
from dperm.core.solvers.options import one_of, positive
from dperm.solvers.lanes import dp_cd_priv
from dperm.solvers.lanes.dp_cd_priv import feature_bounds, stated_sensitivity

__all__ = ["Options", "Run", "lane_bytes", "ledger", "steps"]

NEGATIVE = ("raised", "reflected")


@dataclass(frozen=True)
class Options(dp_cd_priv.Options):
    """DP-CD-priv-cst's options and the reading of its text."""

    composed: bool = True  #: whether the noise has equation 126's factor p
    bound: float = 2.0  #: of a feature, as a multiple of its largest absolute value
    #: {"raised", "reflected"}; an estimate below the Laplace scale is raised to it, or
    #: its absolute value is taken
    negative: str = "raised"

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self, "bound")
        one_of("negative", self.negative, NEGATIVE)


def constants_event(problem: Problem, options: Options, calibration: str) -> Laplace:
    """The release of the constants, in units of b_j / n.

    Without the factor p the paper would still claim epsilon' for all of them.
    """
    stated, p = stated_sensitivity(calibration), problem.p
    times = p if options.composed else 1
    return Laplace(
        sensitivity=1.0,
        scale=stated * times / (options.share * problem.epsilon),
        count=p,
        unit="b_j / n: replace-one change of a mean of values in [0, b_j]",
        source="dpcd (Mangold et al. 2022), Appendix F, equation 126",
        published_sensitivity=stated * times / p,
    )


def ledger(
    problem: Problem,
    count: int,
    noise_multiplier: float,
    options: Options,
    calibration: str = PAPER,
) -> Ledger:
    """The constants' release, then DP-CD's."""
    first = constants_event(problem, options, calibration)
    after = dp_cd.ledger(problem, count, noise_multiplier, options)
    return Ledger((first, *after.events), given=(FEATURE_BOUNDS,))


class Run(dp_cd_priv.Run):
    """DP-CD that steps and clips by the constants of the chosen reading."""

    def smoothness(self, lanes: Lanes) -> np.ndarray:
        """Noisy M_j, one release for all lanes of the run; shape (p,)."""
        problem, options = self.problem, self.options
        if lanes.noise_multiplier == 0:
            return problem.smoothness
        bounds = feature_bounds(problem.known.A, problem.loss.curvature)
        bounds = bounds * (options.bound / 2) ** 2
        event = constants_event(problem, options, lanes.calibration)
        scales = event.scale * bounds / problem.n
        noisy = problem.smoothness + laplace(self.streams.smoothness, scales)
        if options.negative == "reflected":
            return np.abs(noisy)
        return np.maximum(noisy, scales)
