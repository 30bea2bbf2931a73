"""The largest of many scores at once, composed with Gaussian releases."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dperm.accountants.noisy_max import NoisyMax, SelectionNoiseError
from dperm.core.privacy.ledger import CountError, Gaussian, Ledger
from dperm.core.privacy.strict import beside_gaussians, renyi_epsilon


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


@beside_gaussians.register
def _(event: TopK, mu: float, delta: float) -> float:
    if not event.scale:
        return math.inf
    gaussians = (Gaussian(1.0, 1 / mu, 1, "", ""),) if mu else ()
    return renyi_epsilon(Ledger((*gaussians, event)), delta)
