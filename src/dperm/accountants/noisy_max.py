r"""Report noisy max: releasing which of many noisy scores is the largest.

The index of :math:`\max_j u_j + b\,\xi_j` is released, nothing else. Replacing a
record moves every score by at most :math:`\Delta`. Without monotonicity one selection
costs at most :math:`2\Delta/b`, pure, for both kinds of noise:

- Laplace (Dwork and Roth 2014, Claim 3.9, whose factor two is for counting queries
  only),
- Gumbel, the exponential mechanism (McSherry and Talwar 2007), which is moreover
  :math:`2\Delta/b`-bounded range and so :math:`(2\Delta/b)^2/8`-zCDP (Dong, Durfee and
  Rogers 2020, arXiv:1909.13830; Cesar and Rogers 2021, arXiv:2004.07223).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dperm.core.privacy.ledger import (
    CountError,
    Event,
    Gaussian,
    Laplace,
    Ledger,
    LedgerError,
    ScaleError,
)
from dperm.core.privacy.pld import Profile
from dperm.core.privacy.published import PublishedCost, published_cost
from dperm.core.privacy.strict import beside_gaussians, profile, renyi, renyi_epsilon

Array = NDArray[np.float64]

NOISES = ("laplace", "gumbel")


class SelectionNoiseError(LedgerError):
    """A kind of selection noise other than Laplace and Gumbel."""


@dataclass(frozen=True)
class NoisyMax(Event):
    r"""Index of the largest of many scores, each with independent noise.

    `sensitivity` is that of EACH score (all may move at once), `scale` is the noise's
    *b*.
    """

    sensitivity: float
    scale: float
    count: int
    unit: str
    source: str
    noise: str = "laplace"  #: {"laplace", "gumbel"}; kind of noise
    #: what the paper claims one selection costs; None: the sound cost
    published_pure: float | None = None
    #: false where the noise is not on the score, so that no bound can be proved: the
    #: strict cost is then infinite, and `published_pure` and `pure` keep the claims
    sound: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise not in NOISES:
            known = ", ".join(NOISES)
            raise SelectionNoiseError(f"noise {self.noise!r}; known: {known}")
        if self.published_pure is not None:
            if not self.published_pure > 0:
                raise ScaleError(
                    f"published_pure must be positive, got {self.published_pure}"
                )
            self._plain("published_pure", float)

    @property
    def selections(self) -> int:
        """How many selections it costs."""
        return self.count

    @property
    def pure(self) -> float:
        """Pure epsilon 2 sensitivity / scale of one selection, noise on the score."""
        return 2 * self.sensitivity / self.scale if self.scale else math.inf

    @property
    def bounded_range(self) -> float | None:
        """Range of the privacy loss over the outputs; known for Gumbel noise only."""
        return self.pure if self.noise == "gumbel" else None


@dataclass(frozen=True)
class TopK(NoisyMax):
    """The places of the *k* largest of many scores with Gumbel noise, in their order.

    They have the law of k selections, each without those before it (Durfee and Rogers
    2019, arXiv:1905.04273). With Gaussian releases they are priced by the Rényi curve
    of bounded range, which is fast.
    """

    noise: str = "gumbel"  #: the only kind for which this law holds
    k: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise != "gumbel":
            raise SelectionNoiseError(f"noise {self.noise!r}; expected gumbel")
        if self.k < 1:
            raise CountError(f"k must be at least 1, got {self.k}")

    @property
    def selections(self) -> int:
        """How many selections it costs."""
        return self.count * self.k


@dataclass(frozen=True)
class ChosenValue(Laplace):
    """Laplace release of the value at a selected index.

    It costs what a Laplace release costs; papers that select compose it together with
    the selections by advanced composition.
    """


def pure_delta(epsilon: Array | float, pure: float) -> Array:
    r"""Return the worst delta(epsilon) of any pure-DP mechanism, epsilon >= 0.

    .. math:: \delta(\epsilon) = \max(0, (e^a - e^\epsilon) / (1 + e^a))

    Parameters
    ----------
    epsilon : array or float
        Privacy losses, not negative.
    pure : float
        a, the pure epsilon.

    Notes
    -----
    The curve of randomised response (Kairouz, Oh and Viswanath 2017, arXiv:1311.0776).
    """
    gap = np.minimum(np.asarray(epsilon, dtype=float) - pure, 0.0)
    return -np.expm1(gap) / (1 + math.exp(-pure))


def pure_renyi(orders: Array, pure: float) -> Array:
    """Return the largest Rényi divergences of any pure-DP mechanism, orders > 1.

    Parameters
    ----------
    pure : float
        Pure epsilon.

    Notes
    -----
    Randomised response: Mironov 2017, arXiv:1702.07476, Proposition 5.
    """
    log_true = -math.log1p(math.exp(-pure))
    log_false = -math.log1p(math.exp(pure))
    total = np.logaddexp(
        orders * log_true + (1 - orders) * log_false,
        orders * log_false + (1 - orders) * log_true,
    )
    return total / (orders - 1)


@published_cost.register
def _(event: NoisyMax) -> PublishedCost:
    pure = event.pure if event.published_pure is None else event.published_pure
    return PublishedCost(advanced=((pure, event.selections),))


@published_cost.register
def _(event: ChosenValue) -> PublishedCost:
    sensitivity = event.published_sensitivity or event.sensitivity
    return PublishedCost(advanced=((sensitivity / event.scale, event.count),))


@profile.register
def _(event: NoisyMax) -> Profile:
    pure = event.pure
    return Profile(lambda losses: pure_delta(losses, pure), event.selections, pure)


@renyi.register
def _(event: NoisyMax, orders: Array) -> Any:
    divergence = pure_renyi(orders, event.pure)
    if event.bounded_range is not None:
        divergence = np.minimum(divergence, orders * event.bounded_range**2 / 8)
    return event.selections * divergence


@beside_gaussians.register
def _(event: TopK, mu: float, delta: float) -> float:
    if not event.scale:
        return math.inf
    gaussians = (Gaussian(1.0, 1 / mu, 1, "", ""),) if mu else ()
    return renyi_epsilon(Ledger((*gaussians, event)), delta)
