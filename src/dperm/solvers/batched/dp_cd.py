"""DP-CD: differentially private proximal coordinate descent (Mangold et al. 2022).

Algorithm 1. Each step releases one coordinate of the gradient of f, a mean of
per-record derivatives clipped to [-C_j, C_j], with Gaussian noise, and takes a proximal
step:

    w_j <- prox_{gamma_j psi_j}(w_j - gamma_j (g_j + eta_j)),   gamma_j = step / M_j,
    C_j = sqrt(M_j / sum M) C  (Section 5.1),   eta_j ~ N(0, (sigma 2 C_j / n)^2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dperm.numerics.compiled import KERNEL
from dperm.numerics.kernels import njit
from dperm.privacy.accountants import PUBLISHED
from dperm.privacy.events import SMOOTHNESS, Gaussian, Ledger
from dperm.problems.penalties import prox
from dperm.problems.problem import Problem
from dperm.solvers import batched as driver
from dperm.solvers.batched import BatchedSettings, mean_sensitivity, share
from dperm.solvers.batched.columns import (
    moved,
    setting_count,
    slopes,
    sums_after,
)
from dperm.solvers.options import at_least, one_of

SPARSE = True
#: The setting without tuning, and the values that a search tries. A step of 1 is 1 /
#: M_j, and a clip of 1 the size of a record at the public scales.
DEFAULT = {"passes": 10, "step": 1, "clip": 2}
GRID = {"passes": [2, 10], "step": [0.3, 1], "clip": [1, 2]}
SAMPLINGS = ("cyclic", "uniform")
THRESHOLDS = ("scaled", "equal")


@dataclass(frozen=True)
class Options:
    """Choices that Algorithm 1 leaves open."""

    #: {"cyclic", "uniform"}; the algorithm draws uniformly, its published numbers come
    #: from a cycle
    sampling: str = "cyclic"
    first: int = 1  #: first coordinate of the cycle, counted from 0
    #: T of Algorithm 1, the number of periods whose iterates are averaged, of nearly
    #: equal lengths; 0 returns the last iterate, as the experiments do
    periods: int = 0
    #: {"scaled", "equal"}; C_j = sqrt(M_j / sum M) C, or C / sqrt(p) for every
    #: coordinate, which Section 5.1 warns of
    thresholds: str = "scaled"

    def __post_init__(self) -> None:
        one_of("sampling", self.sampling, SAMPLINGS)
        one_of("thresholds", self.thresholds, THRESHOLDS)
        at_least(self, 0, "first", "periods")


def steps(problem: Problem, passes: float, options: Options) -> int:
    """Coordinate steps in a number of passes: a pass is p steps."""
    return max(1, round(passes * problem.p))


def ledger(
    problem: Problem,
    count: int,
    noise_multiplier: float,
    options: Options,
    calibration: str = PUBLISHED,
) -> Ledger:
    """One Gaussian release per step (Appendix B); the order is public."""
    event = Gaussian(
        sensitivity=1.0,
        scale=noise_multiplier,
        count=count,
        unit="2 C_j / n, the replace-one change of a clipped mean derivative",
        source="Mangold et al. 2022, Algorithm 1, line 7; Lemma B.7",
    )
    return Ledger((event,), given=(SMOOTHNESS,))


def bytes_per_setting(problem: Problem) -> int:
    """Bytes of margins (n), weights and averages (p) of a setting, held twice."""
    return 16 * (problem.n + problem.p)


@njit(**KERNEL)
def _steps(
    A, order, noise, since, inverse, share, shape, psi, constants, tiles
):
    """Algorithm 1, lines 3 to 8; a move reaches the margins in the next step's sums."""
    n, p = shape
    l1, l2, lower, upper = psi
    settings = setting_count(tiles)
    total = np.empty(settings)
    move = np.zeros(settings)
    d = np.empty((n, settings))
    drift = n + p
    is_averaged = tiles.shape[1] > n + p
    for t in range(tiles.shape[0]):
        step = constants[t, 0]
        clip = constants[t, 1]
        scale = constants[t, 2]
        W = tiles[t]
        V = tiles[t, p : n + p]
        previous = order[0]
        slopes(V, d)
        move[:] = 0.0
        for k in range(order.shape[0]):
            j = order[k]
            sums_after(A, previous, move, V, d, j, clip, share[j], total)
            for setting in range(settings):
                gamma = step[setting] * inverse[j]
                old = W[j, setting]
                released = (
                    total[setting] / n + scale[setting] * share[j] * noise[k]
                )
                shrink = 1.0 / (1.0 + gamma * l2)
                new = prox(
                    old - gamma * released, gamma * l1, shrink, lower, upper
                )
                W[j, setting] = new
                move[setting] = new - old
            if is_averaged:  # iterates of the period so far lack this move
                for setting in range(settings):
                    W[drift + j, setting] += (since + k) * move[setting]
            previous = j
        moved(A, previous, move, V)


class Run(driver.Run):
    """A batch of DP-CD. Its rows: weights (p), margins (n), and drift (p) of averages.

    The drift is what all iterates of a period lack of its last one, summed up.

    Attributes
    ----------
    M : ndarray, shape (p,)
        Smoothness constants, by which coordinates step and are clipped.
    divisor, share : ndarray, shape (p,)
        gamma_j is a setting's step over the divisor; C_j is its clip times the share.
    """

    kernel = staticmethod(_steps)

    def set_up(self, settings: BatchedSettings) -> None:
        """Begin the first period, with the step and threshold rules."""
        if self.problem.is_sparse:
            self.width = 64
            self.step_draws = 32
        count = self.options.periods
        total = self.total
        self.ends = sorted(
            {total * k // count for k in range(1, count + 1)} - {0}
        )
        self.began = 0  # step at which the period began
        self.M = self.divisor = self.smoothness(settings)
        self.share = self.shares(self.M)

    def smoothness(self, settings: BatchedSettings) -> np.ndarray:
        """M_j of the problem, taken as public (as the paper does); shape (p,)."""
        return self.problem.smoothness

    def shares(self, M: np.ndarray) -> np.ndarray:
        """Ratios C_j / C, shape (p,)."""
        if self.options.thresholds == "scaled":
            return share(M)
        return share(np.ones_like(M))

    def setting_constants(
        self, settings: BatchedSettings
    ) -> tuple[np.ndarray, ...]:
        """Step, clip and noise scale of each setting, for a share of 1."""
        scale = settings.noise_scale(
            mean_sensitivity(settings.clip, self.problem.n)
        )
        return settings.step, settings.clip, scale

    def start(self) -> np.ndarray:
        """The margins at w = 0; the drift, if iterates are averaged."""
        size = self.problem.p if self.options.periods else 0
        drift = np.zeros(size)
        return np.concatenate((self.problem.offset, drift))

    def draw(self, count: int) -> tuple[Any, ...]:
        """Order and noise (count,) each, steps of the period so far, 1 / M and shares.

        The latter two are those of the step and threshold rules, (p,) each.
        """
        order = self.order(count)
        since = self.drawn - self.began
        return order, self.noise(count), since, 1.0 / self.divisor, self.share

    def order(self, count: int) -> np.ndarray:
        """The next coordinates, shape (count,)."""
        p = self.problem.p
        if self.options.sampling == "uniform":
            return self.streams.sampling.integers(0, p, count)
        return (self.options.first + self.drawn + np.arange(count)) % p

    def until_event(self) -> int:
        """Steps up to the end of the period, if iterates are averaged."""
        return self.ends[0] - self.done if self.ends else 0

    def at_event(self) -> None:
        """Line 9 of Algorithm 1: continue from the mean of the period's iterates."""
        problem = self.problem
        end = self.ends.pop(0)
        n = problem.n
        p = problem.p
        self.tiles[:, :p] -= self.tiles[:, n + p :] / (end - self.began)
        self.tiles[:, n + p :] = 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            for tile in self.tiles:
                tile[p : n + p] = (
                    problem.A @ tile[:p] + problem.offset[:, None]
                )
        self.began = end
