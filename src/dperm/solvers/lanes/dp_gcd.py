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

Calibration ``paper`` puts Lap(lambda_k) inside the rule, on g_k, as printed. This is
private for scores that follow the noise. With an L1 norm, however, a score does not
change while the proximal step stays put, and no bound can be proved. ``strict`` puts
noise of scale D / epsilon' on the score itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from dperm.accountants.noisy_max import NOISES, ChosenValue, NoisyMax
from dperm.core.calibrations import PAPER
from dperm.core.compiled import FEW, INLINE, KERNEL, PASTED, WIDE, clamp, fold, running
from dperm.core.erm.losses import derivative
from dperm.core.erm.penalties import prox
from dperm.core.erm.problem import Problem
from dperm.core.lanes import Block, Lanes
from dperm.core.lanes.clipping import mean_sensitivity, share
from dperm.core.parallel import spread
from dperm.core.privacy.ledger import SMOOTHNESS, Ledger
from dperm.core.privacy.mechanisms import Streams, exponential, gumbel, laplace
from dperm.core.solvers.options import one_of

SPARSE = True  # A may be sparse
RULES = ("GS-s", "GS-r", "GS-q")
_GROUP = 8  # lanes that share a column while it is in the cache
_FEW = 4  # least number of sparse lanes that are laid out side by side
_TILE = 64  # lanes side by side, at most
_LANE_ARRAYS = ("step", "clip", "weights", "margins", "chosen")


@dataclass(frozen=True)
class Options:
    """Choices that the paper leaves open."""

    #: {"GS-s", "GS-r", "GS-q"}; greedy rule; all are equal without penalty
    rule: str = "GS-r"
    #: {"laplace", "gumbel", "exponential"}; Selection noise. The paper uses
    #: Laplace noise; the others are added to the score under every calibration
    #: (exponential mechanism, permute-and-flip).
    noise: str = "laplace"

    def __post_init__(self) -> None:
        one_of("rule", self.rule, RULES)
        one_of("noise", self.noise, NOISES)


def steps(problem: Problem, passes: float, options: Options) -> int:
    """Number of iterations: one per pass, because each reads all data."""
    return max(1, round(passes))


def is_inside(options: Options, calibration: str) -> bool:
    """Whether the selection noise is inside the rule, on the gradient, as printed."""
    return calibration == PAPER and options.noise == "laplace"


def is_sound(problem: Problem, options: Options, calibration: str) -> bool:
    """Whether 2 epsilon' bounds a selection's cost: noise moves every score alike.

    Noise on the score always does. With noise inside the rule the score must be |g_k +
    noise + a| / c, where noise / c has the same scale for all k. This excludes an L1
    norm and a box.
    """
    if not is_inside(options, calibration):
        return True
    penalty, M = problem.penalty, problem.smoothness
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
    calibration: str = PAPER,
) -> Ledger:
    """A selection and a Laplace release per iteration; epsilon' = 1 / multiplier."""
    inside = is_inside(options, calibration)
    unit = _DERIVATIVE if inside else _SCORE
    sound = is_sound(problem, options, calibration)
    made = releases(count, noise_multiplier, options.noise, unit, sound)
    return made.assuming(SMOOTHNESS)


_DERIVATIVE = "2 C_j / n, the replace-one change of a clipped mean derivative"
_SCORE = "2 C / (n sqrt(sum M)) x slope, the largest replace-one change of a score"


def releases(
    count: int, noise_multiplier: float, noise: str, unit: str, sound: bool
) -> Ledger:
    """The ledger of ``count`` iterations on any problem; see ``ledger``."""
    claim = 1 / noise_multiplier if noise_multiplier else None
    selection = NoisyMax(
        sensitivity=1.0,
        scale=noise_multiplier,
        count=count,
        unit=unit,
        source="Mangold et al. 2023, Algorithm 2, line 3; Theorem 4.2",
        noise=noise,
        published_pure=claim if noise == "laplace" else None,
        sound=sound,
    )
    value = ChosenValue(
        sensitivity=1.0,
        scale=noise_multiplier,
        count=count,
        unit=_DERIVATIVE,
        source="Mangold et al. 2023, Algorithm 2, line 4",
    )
    return Ledger((selection, value))


def lane_bytes(problem: Problem) -> int:
    """Margins and derivatives (n), weights and gradient (p) of one lane."""
    return 16 * (problem.n + problem.p)


class Run(Block):
    """A block of DP-GCD lanes under way.

    ``chosen`` holds the coordinate each lane selected last, shape (L,).
    """

    names = _LANE_ARRAYS

    def __init__(
        self,
        problem: Problem,
        lanes: Lanes,
        streams: Streams,
        options: Options,
        workers: int = 1,
        total: int = 0,
    ):
        self.problem, self.options, self.workers = problem, options, workers
        self.streams = streams
        self.inside = is_inside(options, lanes.calibration)
        self.multiplier = lanes.noise_multiplier
        self.step, self.clip = lanes.step, lanes.clip
        M = problem.smoothness
        self.share, self.total = share(M), float(np.sqrt(M.sum()))
        self.slope = steepest(problem, options.rule)
        self.weights = np.zeros((len(lanes.step), problem.p))
        self.margins = np.tile(problem.offset, (len(lanes.step), 1))
        self.chosen = np.full(len(lanes.step), -1)

    def advance(self, count: int) -> None:
        """Take ``count`` more iterations in every lane."""
        for _ in range(count):
            self._step(*self._draw())

    @property
    def released(self) -> np.ndarray:
        """The weights, and a one-hot vector of the coordinate taken; (L, 2 p)."""
        taken = np.zeros_like(self.weights)
        taken[np.arange(len(taken)), self.chosen] = 1.0
        return np.concatenate((self.weights, taken), axis=1)

    def _draw(self) -> tuple[np.ndarray, float]:
        """Selection noise of every coordinate (p,) and noise of the released value."""
        p, rng = self.problem.p, self.streams.sampling
        selection = {
            "laplace": lambda: laplace(rng, np.ones(p)),
            "gumbel": lambda: gumbel(rng, p),
            "exponential": lambda: exponential(rng, p),
        }[self.options.noise]()
        return selection, float(laplace(self.streams.noise, 1.0))

    def _scales(self) -> np.ndarray:
        """Scale of a derivative's noise in each lane, without share_j; (L,)."""
        if self.multiplier == 0:
            return np.zeros_like(self.clip)
        return self.multiplier * mean_sensitivity(self.clip, self.problem.n)

    def _selection_scales(self) -> tuple[np.ndarray, np.ndarray]:
        """Scale inside the rule (times share_j) and on the score, for each lane."""
        scales = self._scales()
        nothing = np.zeros_like(scales)
        if self.inside:
            return scales, nothing
        return nothing, scales * self.slope / self.total

    def _step(self, selection: np.ndarray, value: float) -> None:
        problem, penalty = self.problem, self.problem.penalty
        kernels = (_dense_step, _dense_step)
        data: tuple[Any, ...] = (problem.A,)
        if problem.is_sparse:
            data = (problem.A.data, problem.A.indices, problem.A.indptr)
            kernels = (_sparse_step, _sparse_tiles)
        psi = (penalty.l1, penalty.l2, penalty.lower, penalty.upper)
        shared = (problem.smoothness, self.share, *psi)
        drawn = (RULES.index(self.options.rule), selection, value)

        def run(*lanes: np.ndarray) -> None:
            kernel = kernels[len(lanes[0]) >= _FEW]
            problem.loss.compiled(kernel)(*data, *shared, *drawn, *lanes)

        scales = (self._scales(), *self._selection_scales())
        lanes = (getattr(self, name) for name in _LANE_ARRAYS)
        spread(run, *scales, *lanes, workers=self.workers)


@njit(**KERNEL)
def _dense_step(
    A, M, share, l1, l2, lower, upper, rule, selection, value,
    scale, inside, outside, step, clip, W, V, chosen,
):  # fmt: skip
    """One iteration of every lane; changes W, V and chosen in place."""
    n, p = A.shape
    G, D = np.empty((_GROUP, p)), np.empty((_GROUP, n))
    for first in range(0, W.shape[0], _GROUP):
        size = min(_GROUP, W.shape[0] - first)
        for k in range(size):
            v, d = V[first + k], D[k]
            for i in range(n):
                d[i] = derivative(v[i])
        for j in range(p):
            column = A[:, j]
            for k in range(size):
                bound = clip[first + k] * share[j]
                G[k, j] = _clipped_sum(column, D[k], bound) / n
        for k in range(size):
            lane = first + k
            w, v = W[lane], V[lane]
            j = _select(
                G[k], w, M, share, l1, l2, lower, upper, rule,
                inside[lane], outside[lane], selection,
            )  # fmt: skip
            noisy = G[k, j] + scale[lane] * share[j] * value
            move = _moved(w[j], noisy, step[lane] / M[j], l1, l2, lower, upper) - w[j]
            w[j] += move
            chosen[lane] = j
            for i in range(n):
                v[i] += move * A[i, j]


@njit(**KERNEL)
def _sparse_step(
    data, rows, starts, M, share, l1, l2, lower, upper, rule, selection, value,
    scale, inside, outside, step, clip, W, V, chosen,
):  # fmt: skip
    """One iteration of every lane on CSC columns; changes W, V and chosen in place.

    Entries that are zero have derivative zero, which clipping does not change.
    """
    n, p = V.shape[1], W.shape[1]
    d = np.empty(n)
    for lane in range(W.shape[0]):
        w, v, best, found, taken = W[lane], V[lane], -np.inf, 0, 0.0
        for i in range(n):
            d[i] = derivative(v[i])
        for j in range(p):
            bound, total = clip[lane] * share[j], 0.0
            for e in range(starts[j], starts[j + 1]):
                total += clamp(data[e] * d[rows[e]], bound)
            gradient = total / n
            noisy = gradient + inside[lane] * share[j] * selection[j]
            score = _score(rule, noisy, w[j], M[j], l1, l2, lower, upper)
            score += outside[lane] * selection[j]
            if score > best:
                best, found, taken = score, j, gradient
        j = chosen[lane] = found
        noisy = taken + scale[lane] * share[j] * value
        move = _moved(w[j], noisy, step[lane] / M[j], l1, l2, lower, upper) - w[j]
        w[j] += move
        for e in range(starts[j], starts[j + 1]):
            v[rows[e]] += move * data[e]


@njit(**KERNEL)
def _sparse_tiles(
    data, rows, starts, M, share, l1, l2, lower, upper, rule, selection, value,
    scale, inside, outside, step, clip, W, V, chosen,
):  # fmt: skip
    """``_sparse_step`` with many lanes side by side; the bits are the same.

    Each entry is read once for all lanes of a tile.
    """
    n, p = V.shape[1], W.shape[1]
    for first in range(0, W.shape[0], _TILE):
        size = min(_TILE, W.shape[0] - first)
        part = slice(first, first + size)
        d, total, w = np.empty((n, size)), np.empty(size), np.empty(size)
        best, taken = np.full(size, -np.inf), np.zeros(size)
        found, bounds = np.zeros(size), clip[part]
        within, beyond = inside[part], outside[part]
        for i in range(n):
            for k in range(size):
                d[i, k] = derivative(V[first + k, i])
        for j in range(p):
            total[:] = 0.0
            for k in range(size):
                w[k] = W[first + k, j]
            for e in range(starts[j], starts[j + 1]):
                x, slopes = data[e], d[rows[e]]
                for k in range(size):
                    total[k] += clamp(x * slopes[k], bounds[k] * share[j])
            for k in range(size):
                gradient = total[k] / n
                noisy = gradient + within[k] * share[j] * selection[j]
                score = _score(rule, noisy, w[k], M[j], l1, l2, lower, upper)
                score += beyond[k] * selection[j]
                better = score > best[k]
                best[k] = score if better else best[k]
                taken[k] = gradient if better else taken[k]
                found[k] = j if better else found[k]
        for k in range(size):
            lane, j = first + k, int(found[k])
            chosen[lane] = j
            old, noisy = W[lane, j], taken[k] + scale[lane] * share[j] * value
            move = _moved(old, noisy, step[lane] / M[j], l1, l2, lower, upper) - old
            W[lane, j] += move
            for e in range(starts[j], starts[j + 1]):
                V[lane, rows[e]] += move * data[e]


@njit(**PASTED)
def _clipped_sum(column, d, bound):
    sums, n = running(), d.shape[0]
    for start in range(0, n & -WIDE, WIDE):
        for u in range(WIDE):
            sums[u] += clamp(column[start + u] * d[start + u], bound)
    for start in range(n & -WIDE, n & -FEW, FEW):
        for u in range(FEW):
            sums[u] += clamp(column[start + u] * d[start + u], bound)
    for i in range(n & -FEW, n):
        sums[0] += clamp(column[i] * d[i], bound)
    return fold(sums)


@njit(**INLINE)
def _moved(w, gradient, step, l1, l2, lower, upper):
    return prox(w - step * gradient, step * l1, 1.0 / (1.0 + step * l2), lower, upper)


@njit(**PASTED)
def _select(g, w, M, share, l1, l2, lower, upper, rule, inside, outside, selection):
    """Coordinate of the largest noisy score; the first among equal scores.

    A score that is NaN (M_j = 0) is never taken.
    """
    best, found = -np.inf, 0
    for j in range(g.shape[0]):
        gradient = g[j] + inside * share[j] * selection[j]
        score = _score(rule, gradient, w[j], M[j], l1, l2, lower, upper)
        score += outside * selection[j]
        if score > best:
            best, found = score, j
    return found


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
