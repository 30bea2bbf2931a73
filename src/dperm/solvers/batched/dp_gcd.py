"""DP-GCD: differentially private greedy coordinate descent (Mangold et al. 2023).

Algorithms 1 and 2. Each iteration selects a coordinate by report noisy max, releases
its clipped derivative with Laplace noise, and takes a proximal step there:

    j = arg max_k score_k(g),    w_j <- prox_{gamma_j psi_j}(w_j - gamma_j (g_j + eta)),
    gamma_j = step / M_j,   eta ~ Lap(lambda_j),   lambda_j = 2 C_j / (n epsilon').

Here g is the gradient of f with per-record derivatives clipped to [-C_j, C_j], and
C_j = sqrt(M_j / sum M) C. The rules (Appendix C) are:

    GS-s   dist(-g_k, d psi_k(w_k)) / sqrt(M_k)
    GS-r   sqrt(M_k) |prox_{psi_k / M_k}(w_k - g_k / M_k) - w_k|
    GS-q   sqrt(-2 min_a (g_k a + M_k a^2 / 2 + psi_k(w_k + a) - psi_k(w_k)))

Without penalty all equal |g_k| / sqrt(M_k). Their Lipschitz constants in g_k are

    1 / sqrt(M_k),    sqrt(M_k) / (M_k + l2),    1 / sqrt(M_k + l2)

under a ridge of l2, whatever other terms psi has. So replacing a record moves a score
by at most D = 2 C / (n sqrt(sum M)) x 1, M / (M + l2), sqrt(M / (M + l2)) at the
largest M (see ``steepest``).

Calibration ``published`` puts Lap(lambda_k) inside the rule, on g_k, as printed. This
is private for scores that follow the noise. With an L1 norm, however, a score does not
change while the proximal step stays put, and no bound can be proved. ``tight`` puts
noise of scale D / epsilon' on the score itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dperm.numerics.compiled import INLINE, KERNEL, clamp
from dperm.numerics.kernels import njit
from dperm.privacy.accountants import PUBLISHED
from dperm.privacy.events import SMOOTHNESS, Ledger
from dperm.privacy.mechanisms.noisy_max import ChosenValue, NoisyMax
from dperm.privacy.noise import gumbel, laplace
from dperm.problems.penalties import prox
from dperm.problems.problem import Problem
from dperm.solvers import batched as driver
from dperm.solvers.batched import BatchedSettings, mean_sensitivity, share
from dperm.solvers.batched.columns import (
    clipped_sums,
    moved_apart,
    setting_count,
    slopes,
)
from dperm.solvers.batched.dp_cd import bytes_per_setting as bytes_per_setting
from dperm.solvers.options import one_of

SPARSE = True
DEFAULT = {"passes": 5, "step": 1, "clip": 2}  # without tuning, as for DP-CD
GRID = {"passes": [2, 5], "step": [0.3, 1], "clip": [1, 2]}
RULES = ("GS-s", "GS-r", "GS-q")
NOISES = (
    "laplace",
    "gumbel",
)  # its own: settings do not depend on an accountant
_TILES_TOGETHER = 8  # dense tiles that share a column while it is in the cache


@dataclass(frozen=True)
class Options:
    """Choices that the paper leaves open."""

    #: {"GS-s", "GS-r", "GS-q"}; greedy rule; all are equal without penalty
    rule: str = "GS-r"
    #: {"laplace", "gumbel"}; Selection noise. The paper uses Laplace noise; Gumbel
    #: noise (exponential mechanism) is added to the score under every calibration.
    noise: str = "laplace"

    def __post_init__(self) -> None:
        one_of("rule", self.rule, RULES)
        one_of("noise", self.noise, NOISES)


def steps(problem: Problem, passes: float, options: Options) -> int:
    """Number of iterations: one per pass, because each reads all data."""
    return max(1, round(passes))


def is_inside(options: Options, calibration: str) -> bool:
    """Whether the selection noise is inside the rule, on the gradient, as printed."""
    return calibration == PUBLISHED and options.noise == "laplace"


def is_sound(problem: Problem, options: Options, calibration: str) -> bool:
    """Whether 2 epsilon' bounds a selection's cost: noise moves every score alike.

    Noise on the score always does. With noise inside the rule the score must be |g_k +
    noise + a| / c, where noise / c has the same scale for all k. This excludes an L1
    norm and a box.
    """
    if not is_inside(options, calibration):
        return True
    penalty = problem.penalty
    M = problem.smoothness
    if penalty.l1 > 0 or np.isfinite((penalty.lower, penalty.upper)).any():
        return False
    even = bool(np.ptp(M) <= 1e-9 * M.max())
    return penalty.l2 == 0 or options.rule == "GS-s" or even


def steepest(problem: Problem, rule: str) -> float:
    """The largest slope of a score times sqrt(M_k), which a ridge reduces.

    The proximal operator of a penalty with a ridge is 1/(1 + l2 / M)-Lipschitz (GS-r).
    The objective in GS-q is (M + l2)-strongly convex, so that its minimum lies at least
    (M + l2) a^2 / 2 below its value at 0.
    """
    largest = float(problem.smoothness.max())
    flat = largest / (largest + problem.penalty.l2) if largest > 0 else 1.0
    return {"GS-s": 1.0, "GS-r": flat, "GS-q": flat**0.5}[rule]


def ledger(
    problem: Problem,
    count: int,
    noise_multiplier: float,
    options: Options,
    calibration: str = PUBLISHED,
) -> Ledger:
    """A selection and a Laplace release per iteration; epsilon' = 1 / multiplier."""
    derivative = (
        "2 C_j / n, the replace-one change of a clipped mean derivative"
    )
    score = "2 C / (n sqrt(sum M)) x slope, the largest replace-one change of a score"
    claim = 1 / noise_multiplier if noise_multiplier else None
    selection = NoisyMax(
        sensitivity=1.0,
        scale=noise_multiplier,
        count=count,
        unit=derivative if is_inside(options, calibration) else score,
        source="Mangold et al. 2023, Algorithm 2, line 3; Theorem 4.2",
        noise=options.noise,
        published_pure=claim if options.noise == "laplace" else None,
        sound=is_sound(problem, options, calibration),
    )
    chosen_value = ChosenValue(
        sensitivity=1.0,
        scale=noise_multiplier,
        count=count,
        unit=derivative,
        source="Mangold et al. 2023, Algorithm 2, line 4",
    )
    return Ledger((selection, chosen_value), given=(SMOOTHNESS,))


@njit(**INLINE)
def _moved(w, gradient, step, l1, l2, lower, upper):
    return prox(
        w - step * gradient, step * l1, 1.0 / (1.0 + step * l2), lower, upper
    )


@njit(**INLINE)
def _score(rule, g, w, M, l1, l2, lower, upper):
    """The greedy rule of one coordinate; see the module's docstring."""
    if rule == 0:
        pull = -g - l2 * w
        if w > 0.0:
            pull -= l1
        elif w < 0.0:
            pull += l1
        else:
            pull -= clamp(pull, l1)
        if (w >= upper and pull > 0.0) or (w <= lower and pull < 0.0):
            pull = 0.0  # the box's normal cone cancels it
        return abs(pull) / np.sqrt(M)
    a = _moved(w, g, 1.0 / M, l1, l2, lower, upper) - w
    if rule == 1:
        return np.sqrt(M) * abs(a)
    gain = g * a + 0.5 * M * a * a + 0.5 * l2 * a * (2.0 * w + a)
    gain += l1 * (abs(w + a) - abs(w))
    return np.sqrt(max(-2.0 * gain, 0.0))


@njit(**KERNEL)
def _steps(
    A, selection, value_noise, rule, M, share, together, shape, psi, constants, tiles
):  # fmt: skip
    """Iterations of Algorithm 2; so many tiles ``together`` share a column."""
    n, p = shape
    l1, l2, lower, upper = psi
    settings = setting_count(tiles)
    total = np.empty(settings)
    move = np.empty(settings)
    width = min(together, len(tiles))
    best, gradient = np.empty((2, width, settings))
    chosen = np.empty((width, settings), dtype=np.int64)
    d = np.empty((width, n, settings))
    for tile in range(0, tiles.shape[0], width):
        size = min(width, tiles.shape[0] - tile)
        for k in range(value_noise.shape[0]):
            best[:] = -np.inf
            chosen[:] = 0
            for u in range(size):
                slopes(tiles[tile + u, p : n + p], d[u])
            for j in range(p):
                noise = selection[k, j]
                M_j = M[j]
                share_j = share[j]
                for u in range(size):
                    t = tile + u
                    clipped_sums(A, j, d[u], constants[t, 1], share_j, total)
                    for setting in range(settings):
                        g = total[setting] / n
                        w = tiles[t, j, setting]
                        noisy = g + constants[t, 3, setting] * share_j * noise
                        score = _score(
                            rule, noisy, w, M_j, l1, l2, lower, upper
                        )
                        score += constants[t, 4, setting] * noise
                        if score > best[u, setting]:
                            # never if it is NaN: M_j = 0
                            best[u, setting] = score
                            gradient[u, setting] = g
                            chosen[u, setting] = j
            for u in range(size):
                setting_constants = constants[tile + u]
                W = tiles[tile + u]
                for setting in range(settings):
                    j = chosen[u, setting]
                    noisy = (
                        gradient[u, setting]
                        + setting_constants[2, setting]
                        * share[j]
                        * value_noise[k]
                    )
                    old = W[j, setting]
                    step = setting_constants[0, setting] / M[j]
                    W[j, setting] = _moved(
                        old, noisy, step, l1, l2, lower, upper
                    )
                    W[n + p, setting] = j
                    move[setting] = W[j, setting] - old
                moved_apart(A, chosen[u], move, tiles[tile + u, p : n + p])


class Run(driver.Run):
    """A batch of DP-GCD. Its rows: weights (p), margins (n), coordinate taken last."""

    kernel = staticmethod(_steps)

    def set_up(self, settings: BatchedSettings) -> None:
        """Lay settings side by side where A is sparse and they are not few."""
        self.width = (
            64 if self.problem.is_sparse and len(settings.step) > 3 else 1
        )
        self.step_draws = self.problem.p
        self.share = share(self.problem.smoothness)  # C_j / C, shape (p,)

    def setting_constants(
        self, settings: BatchedSettings
    ) -> tuple[np.ndarray, ...]:
        """Step, clip; noise scales: of a value, within the rule, on the score.

        The scales of a value and within the rule are those for a share of 1.
        """
        M = self.problem.smoothness
        rule = self.options.rule
        scale = settings.noise_scale(
            mean_sensitivity(settings.clip, self.problem.n)
        )
        on_score = (
            scale * steepest(self.problem, rule) / float(np.sqrt(M.sum()))
        )
        nothing = np.zeros_like(scale)
        if is_inside(self.options, settings.calibration):
            return settings.step, settings.clip, scale, scale, nothing
        return settings.step, settings.clip, scale, nothing, on_score

    def start(self) -> np.ndarray:
        """The margins at w = 0, and no coordinate."""
        return np.append(self.problem.offset, -1.0)

    @property
    def chosen(self) -> np.ndarray:
        """The coordinate that each setting selected last, -1 before; shape (L,)."""
        return self.rows(slice(-1, None))[:, 0].astype(int)

    @property
    def released(self) -> np.ndarray:
        """The weights, and a one-hot vector of the coordinate taken; (L, 2 p)."""
        indicator = np.arange(self.problem.p) == self.chosen[:, None]
        return np.concatenate((self.weights, indicator), axis=1)

    def draw(self, count: int) -> tuple[Any, ...]:
        """Noise of scores (count, p) and of values (count,); the rule and constants."""
        shape = (count, self.problem.p)
        rng = self.streams.sampling
        if self.options.noise == "laplace":
            selection = laplace(rng, np.ones(shape))
        else:
            selection = gumbel(rng, shape)
        value_noise = laplace(self.streams.noise, np.ones(count))
        rule = RULES.index(self.options.rule)
        together = _TILES_TOGETHER // self.width or 1
        return (
            selection,
            value_noise,
            rule,
            self.problem.smoothness,
            self.share,
            together,
        )
