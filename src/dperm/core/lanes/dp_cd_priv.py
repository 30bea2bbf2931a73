"""DP-CD-priv-cst: DP-CD with privately estimated smoothness constants.

A fraction of epsilon buys M_1, ..., M_p by the Laplace mechanism (Mangold et al. 2022,
Section 5.2 and Appendix F); the rest, with all of delta, pays for Algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dperm.accountants.smoothness import (
    feature_bounds,
    private_smoothness,
    smoothness_event,
)
from dperm.core.erm.problem import Problem
from dperm.core.lanes import Lanes, dp_cd
from dperm.core.lanes.dp_cd import lane_bytes, refuses, steps
from dperm.core.privacy.given import FEATURE_BOUNDS
from dperm.core.privacy.ledger import Ledger
from dperm.core.privacy.mechanisms import Streams
from dperm.core.solvers import options as checks

__all__ = ["SPARSE", "Options", "Run", "lane_bytes", "ledger", "refuses", "steps"]

SPARSE = True


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
    calibration: str = "paper",
) -> Ledger:
    """P Laplace releases for the constants, then DP-CD's Gaussian releases.

    M_j is paid for; the bounds that its noise is made for are not.
    """
    first = smoothness_event(problem.p, options.share * problem.epsilon, calibration)
    steps = dp_cd.ledger(problem, count, noise_multiplier, options)
    return Ledger((first, *steps.events), given=(FEATURE_BOUNDS,))


class Run(dp_cd.Run):
    """DP-CD that steps and clips by the private constants."""

    def smoothness(
        self, problem: Problem, lanes: Lanes, streams: Streams, options: dp_cd.Options
    ) -> np.ndarray:
        """Noisy M_j, one release for all lanes of the run; shape (p,)."""
        assert isinstance(options, Options)
        self.constants = self._constants(problem, lanes, streams, options)
        return self.constants

    @property
    def released(self) -> np.ndarray:
        """The weights, and the constants, known from the start; (L, 2 p)."""
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
