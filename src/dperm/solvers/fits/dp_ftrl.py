r"""DP-FTRL for streams: batches of records in their order, and correlated noise.

    h_t = sum_{s <= t} c_{t - s} g_s + N(0, sigma^2 I),  g_s the sum of clip_C(grad l_i)
                                                         over the batch of step s,

and a descent along sum_s d_{t - s} h_s, with c and d as in :mod:`.dp_correlated`: it
follows prefix sums of gradients, whose noise grows slowly (Kairouz et al. 2021,
arXiv:2103.00039, with a tree; Denisov et al. 2022, arXiv:2202.08312, with a matrix).
Records are read in their stored order, each once per epoch. Nothing is drawn at random,
so that privacy does not rely on sampling.

*Privacy.* All releases together are one Gaussian release
(:mod:`dperm.accountants.chained`, with the proof), since a record is in one batch of
an epoch. The order, and so a record's place, must not depend on the records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dperm.accountants.chained import Stream, triangle
from dperm.core.privacy.ledger import Ledger
from dperm.core.solvers.options import share
from dperm.solvers.fits import Fit, Steps, dp_correlated
from dperm.solvers.fits.dp_gd import Descent, refuses, threshold
from dperm.solvers.fits.scaled import Scaled

__all__ = ["Options", "Run", "ledger", "refuses"]


@dataclass(frozen=True)
class Options(dp_correlated.Options):
    """Options of correlated noise; ``steps`` counts epochs."""

    steps: int = 3
    step: float = 0.3
    share: float = 0.1  #: of the records, in one batch

    def __post_init__(self) -> None:
        super().__post_init__()
        share("share", self.share)


def stated(at: Scaled, options: Options) -> Stream:
    """The event of all releases, without its scale."""
    batches = min(max(1, round(1 / options.share)), at.n)
    return Stream(
        sensitivity=2 * threshold(at, options.clip),
        scale=0.0,
        count=1,
        unit="2 C, the replace-one change of a sum of clipped gradients",
        source="Denisov et al. 2022, Theorem 2.1; Choquette-Choo et al. 2023",
        steps=options.steps * batches,
        batches=batches,
        power=options.power,
    )


def ledger(at: Scaled, noise_multiplier: float, options: Options) -> Ledger:
    """One release, whose noise is drawn in all steps."""
    return Ledger((stated(at, options).louder(noise_multiplier),), given=at.given)


class Run(Fit):
    """Passes over the records with independent noise."""

    def steps(self) -> Steps:
        """The weighted sums, and the descent along the gradients they imply."""
        at, options, runs = self.at, self.options, self.u.shape[1]
        needs = stated(at, options)
        C, T = threshold(at, options.clip), needs.steps

        def follow() -> Callable[[np.ndarray], np.ndarray]:
            self.descent = Descent(at, options, np.zeros_like(self.u), T)
            return lambda g: self.descent.along(g, at.n / needs.batches)

        found = yield at.stream(C, needs, follow, runs)
        sums, move = triangle(options.power, T) @ found.reshape(T, -1), follow()
        for g in sums.reshape(T, at.p, runs):
            self.u = move(g)
        if options.average:
            self.u = self.descent.mean
