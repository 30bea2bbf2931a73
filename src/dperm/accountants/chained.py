r"""Gaussian noise in many steps, priced as a whole: last iterates, and streams.

Either event costs exactly as much as one Gaussian release of a larger sensitivity,
``growth`` times that of a step.

**Last iterate.** :math:`Y_k = G(P(Y_{k-1})) + N(0, s^2 I)` for *T* steps from a common
start, of which :math:`Y_T` alone is released. For every data set *G* is nonexpansive,
neighbours' *G* differ by at most :math:`\Delta` everywhere, and *P*, which uses no
record, is *c*-Lipschitz with values in a set of diameter *D*. With
:math:`B_K = c^{K-1} D + \Delta \sum_{j<K} c^j`, without the term in *D* for *K* = *T*,
the release is :math:`\mu`-GDP for

.. math:: \mu^2 = \min_{K \le T} B_K^2 \Big/ \Big(s^2 \sum_{j<K} c^{2j}\Big)

(Bok, Su and Altschuler 2024, arXiv:2403.00278, shifted interpolation).

*Proof.* Let Y run on D and Y' on D', from the step T - K on; what came before may be
revealed, as independent copies of both runs. Start :math:`\tilde Y` at Y', and let
:math:`\tilde Y_k = G'(P(\tilde Y_{k-1})) + w_k + Z_k`, with Y's noise and a
:math:`w_k` towards :math:`G(P(Y_{k-1}))` of length at most :math:`a_k`. Then
:math:`\|Y_k - \tilde Y_k\| \le z_k = \max(0, c z_{k-1} + \Delta - a_k)`, with D for
the first :math:`c z_{k-1}` (0 if K = T). For :math:`a_k = c^{T-k} B_K / \sum_j
c^{2j}` the last is 0: the increasing :math:`a_k - \Delta` have a sum, weighted by
:math:`c^{T-k}`, of at least 0 over every last part of the steps. So :math:`\tilde Y_T =
Y_T`. Now :math:`w_k` follows from :math:`\tilde Y_0, \dots, \tilde Y_{k-1}`, which
determine the noise and so Y: without the :math:`w_k` the same recursion is Y'. Adaptive
Gaussian releases that are :math:`a_k` apart compose to :math:`\mu^2 = \sum_k
a_k^2/s^2` (Dong, Roth and Su 2019, Corollary 3.3), of which the last is
post-processing. ∎ The bound is attained where G moves by a constant and P(y) = c y.

**Stream.** :math:`h_t = \sum_{s \le t} c_{t-s} g_s + N(0, s^2 I)`, :math:`t < T`, with
:math:`c_k \ge 0` the coefficients of :math:`(1 - z)^{-\nu}`. Batches of records are
read in turn, *b* of them in an epoch, and :math:`g_s` moves by at most :math:`\Delta`
where the batch of step *s* holds the record. With :math:`e_t = \sum_{j b \le t}
c_{t - j b}` all releases together are :math:`\mu`-GDP, :math:`\mu = \Delta \|e\| / s`.

*Proof.* A record of batch *r* is read in the steps r, r + b, ... and moves :math:`g`
there by :math:`\delta_j`, whatever was released before. The releases move by
:math:`\|\sum_j C_j \delta_j\|^2 = \sum_{i,j} \langle C_i, C_j \rangle \langle \delta_i,
\delta_j\rangle \le \Delta^2 \|\sum_j C_j\|^2` in total, :math:`C_j` the columns of the
coefficients, whose products are not negative. The sum is largest for r = 0, where it is
e. Gaussian releases whose squared shifts, adaptive as they are, never sum to more
compose to that :math:`\mu` (Denisov et al. 2022, arXiv:2202.08312, Theorem 2.1;
Choquette-Choo et al. 2023, arXiv:2211.06530, for several epochs). ∎ A record that moves
all its gradients by one vector attains it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

import numpy as np
from scipy.linalg import toeplitz

from dperm.accountants.attained import gaussian_mu
from dperm.core.privacy.ledger import Gaussian


@dataclass(frozen=True)
class Chained(Gaussian):
    """Steps with separate noise, priced as one release; ``count`` is 1."""

    @property
    def growth(self) -> float:
        """The sensitivity of all steps over that of one."""
        return 1.0

    @property
    def noise_multiplier(self) -> float:
        """The noise multiplier of the one Gaussian release that costs as much."""
        return self.scale / (self.sensitivity * self.growth)

    def louder(self, noise_multiplier: float) -> Self:
        """The event with the scale that gives this noise multiplier."""
        scale = noise_multiplier * self.sensitivity * self.growth
        return replace(self, scale=scale)


@dataclass(frozen=True)
class LastIterate(Chained):
    """The last of noisy iterates."""

    steps: int = 1  #: T
    contraction: float = 1.0  #: c, in (0, 1]
    #: D, in the unit of the sensitivity; None: the set is unbounded
    diameter: float | None = None

    @property
    def growth(self) -> float:
        """Mu s / Delta."""
        D = math.inf if self.diameter is None else self.diameter / self.sensitivity
        return _last(self.steps, self.contraction, D)


@lru_cache(maxsize=4096)
def _last(steps: int, c: float, width: float) -> float:
    powers = c ** np.arange(steps)
    before = width * powers if width < math.inf else np.full(steps, math.inf)
    before[-1] = 0.0  # from the common start on
    found = (before + np.cumsum(powers)) / np.sqrt(np.cumsum(powers**2))
    return float(found.min())


@gaussian_mu.register
def _(event: LastIterate) -> float:
    return 0.0 if event.diameter is not None else 1 / event.noise_multiplier


@dataclass(frozen=True)
class Stream(Chained):
    """Weighted sums of the gradients of batches so far."""

    steps: int = 1  #: T
    batches: int = 1  #: b, of an epoch
    power: float = 0.0  #: nu, in [0, 1)

    @property
    def growth(self) -> float:
        """The norm of e."""
        return _stream(self.steps, self.batches, self.power)


@lru_cache(maxsize=4096)
def _stream(steps: int, batches: int, power: float) -> float:
    once = coefficients(-power, steps)
    every = np.zeros(steps)
    for start in range(0, steps, batches):
        every[start:] += once[: steps - start]
    return float(np.linalg.norm(every))


def coefficients(power: float, steps: int) -> np.ndarray:
    """The first ``steps`` coefficients of (1 - z)^power; shape (steps,)."""
    k = np.arange(1, steps)
    return np.cumprod(np.append(1.0, (k - 1 - power) / k))


def triangle(power: float, steps: int) -> np.ndarray:
    """Their lower triangular matrix, (steps, steps); that of -power is its inverse."""
    found: np.ndarray = toeplitz(coefficients(power, steps), np.zeros(steps))
    return found
