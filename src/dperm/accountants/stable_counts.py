r"""Counts of cells above a threshold with Gaussian noise; no list of cells is needed.

Empty cells are not counted, so that the set of cells depends on the records. Let two
data sets differ in one record. Cells that are filled in both move by the `sensitivity`
at most. At most *a* cells (`alone`) are filled in one of the two and hold that record
alone; with noise of scale *s* one of them passes the threshold *T* with a chance of at
most :math:`\beta = a \Phi(-(T - 1)/s)`.

*Proof.* Let R be a run that publishes the noisy counts of at least T and then goes on,
and C the same run on the cells that both data sets fill, which is a Gaussian mechanism
and what follows: :math:`C(D) \le e^\epsilon C(D') + \delta` on every event. With p and
p' the chances that a lone cell passes, :math:`R(D) \le (1 - p) C(D) + p` and :math:`(1
- p') C(D') \le R(D')`. So :math:`R(D) \le e^\epsilon R(D')/(1 - \beta) + \delta +
\beta`: the price is that of the Gaussian mechanism at :math:`\delta - \beta`, and
:math:`-\log(1 - \beta)` more. ∎

It is the stability histogram of Korolova, Kenthapadi, Mishra and Ntoulas 2009 (see also
Balcer and Vadhan 2018, arXiv:1709.05396, Section 6) with Gaussian noise.
"""

from __future__ import annotations

from dataclasses import dataclass

from scipy.special import ndtr

from dperm.core.privacy.ledger import Gaussian


@dataclass(frozen=True)
class StableCounts(Gaussian):
    """Counts of filled cells that are at least a threshold."""

    threshold: float  #: T; more than 1
    alone: int  #: cells that hold one record alone and that a neighbour does not fill

    @property
    def doubt(self) -> float:
        """Bound on the chance that such a cell is published."""
        if not self.scale:
            return 0.0
        return self.alone * float(ndtr((1 - self.threshold) / self.scale))
