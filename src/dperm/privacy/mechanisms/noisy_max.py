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

from dperm.privacy.accountants.pld import Profile
from dperm.privacy.accountants.published import published_cost
from dperm.privacy.accountants.tight import (
    RENYI_ORDERS,
    beside_gaussians,
    converted,
    profile,
    renyi,
)
from dperm.privacy.events import (
    Event,
    Laplace,
    LedgerError,
    require_one,
    require_positive,
)

Array = NDArray[np.float64]

NOISES = ("laplace", "gumbel")


@dataclass(frozen=True)
class NoisyMax(Event):
    r"""Index of the largest of many scores, each with independent noise.

    `sensitivity` is that of EACH score (all may move at once), `scale` is the noise's
    *b*.
    """

    noise: str = "laplace"  #: {"laplace", "gumbel"}; kind of noise
    #: what the paper claims one selection costs; None: the sound cost
    published_pure: float | None = None
    #: false where the noise is not on the score, so that no bound can be proved: the
    #: tight cost is then infinite, and `published_pure` and `pure` keep the claims
    sound: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise not in NOISES:
            names = ", ".join(NOISES)
            raise LedgerError(f"noise {self.noise!r}; known: {names}")
        if self.published_pure is not None:
            require_positive("published_pure", self.published_pure)

    @property
    def selections(self) -> int:
        """How many selections it costs."""
        return self.count

    @property
    def pure(self) -> float:
        """Pure epsilon 2 sensitivity / scale of one selection, noise on the score.

        With Gumbel noise it is also the range of the privacy loss over the outputs.
        """
        return 2 * self.sensitivity / self.scale if self.scale else math.inf


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
            raise LedgerError(f"noise {self.noise!r}; expected gumbel")
        require_one("k", self.k)

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
    r"""Return the worst delta(epsilon) of a mechanism of that pure epsilon.

    .. math:: \delta(\epsilon) = \max(0, (e^a - e^\epsilon) / (1 + e^a))

    for epsilon >= 0, the curve of randomised response (Kairouz, Oh and Viswanath 2017,
    arXiv:1311.0776).
    """
    gap = np.minimum(np.asarray(epsilon, dtype=float) - pure, 0.0)
    return -np.expm1(gap) / (1 + math.exp(-pure))


def pure_renyi(orders: Array, pure: float) -> Array:
    """Return the largest Rényi divergences of a mechanism of that pure epsilon.

    Those of randomised response, at orders above 1 (Mironov 2017, arXiv:1702.07476,
    Proposition 5).
    """
    log_true = -math.log1p(math.exp(-pure))
    log_false = log_true - pure
    total = np.logaddexp(
        orders * log_true + (1 - orders) * log_false,
        orders * log_false + (1 - orders) * log_true,
    )
    return total / (orders - 1)


@published_cost.register
def _(event: NoisyMax) -> tuple[str, Any]:
    pure = event.pure if event.published_pure is None else event.published_pure
    return "advanced", (pure, event.selections)


@published_cost.register
def _(event: ChosenValue) -> tuple[str, Any]:
    sensitivity = event.published_sensitivity or event.sensitivity
    return "advanced", (sensitivity / event.scale, event.count)


@profile.register
def _(event: NoisyMax) -> Profile:
    pure = event.pure
    return Profile(
        lambda losses: pure_delta(losses, pure), event.selections, pure
    )


@renyi.register
def _(event: NoisyMax, orders: Array) -> Array:
    divergence = pure_renyi(orders, event.pure)
    if event.noise == "gumbel":
        divergence = np.minimum(divergence, orders * event.pure**2 / 8)
    return event.selections * divergence


@beside_gaussians.register
def _(event: TopK, mu: float, delta: float) -> float:
    curve = renyi(event, RENYI_ORDERS) + RENYI_ORDERS * mu**2 / 2
    return converted(curve, RENYI_ORDERS, delta)
