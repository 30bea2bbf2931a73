r"""Features first, then DP-GD on these: for more features than n epsilon.

The k features of the largest scores with Gumbel noise are told, scores being rank
statistics, which no scale or outlier moves: Kendall's for numbers, Wilcoxon's for
signs, whose records come times their labels (``Scaled.relevance``). Then DP-GD
(:mod:`.dp_gd`) runs on records of these features alone, clipped to C as large as k
features need.

*Privacy.* Replacing a record moves every score by at most 2: of the n - 1 pairs with
that record (n with itself) each changes by 2 at most, over n - 1 (n). So the places are
k exponential mechanisms of range 2 (2 / b) (:mod:`dperm.accountants.noisy_max`), each
step is a Gaussian release of sensitivity 2 C, and all compose adaptively. ∎ (Dick,
Gillenwater and Joseph 2023, arXiv:2306.00920, under adding or removing a record; their
term for features that repeat each other is left out.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dperm.accountants.top_k import TopK
from dperm.core.privacy.ledger import Gaussian, Ledger
from dperm.core.solvers.options import at_least, share
from dperm.solvers.fits import Fit, Steps, dp_gd
from dperm.solvers.fits.dp_gd import Descent, refuses, threshold
from dperm.solvers.fits.scaled import Scaled

__all__ = ["Options", "Run", "ledger", "refuses"]


@dataclass(frozen=True)
class Options(dp_gd.Options):
    """Those of DP-GD, and how features are chosen."""

    step: float = 0.3
    features: int = 5  #: k; all where there are fewer
    share: float = 0.5  #: of the squared budget, the selection's

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("features", self.features, 1)
        share("share", self.share)


def chosen(at: Scaled, options: Options) -> tuple[int, float]:
    """k, and C for so many features."""
    k = min(options.features, at.p)
    return k, threshold(at, options.clip) * float(np.sqrt(k / at.p))


def ledger(at: Scaled, noise_multiplier: float, options: Options) -> Ledger:
    """The features, then T Gaussian releases."""
    (k, C), T = chosen(at, options), options.steps
    # a selection of range 4 / b costs about as a Gaussian release of mu = 2 / b
    scale = 2.0 * noise_multiplier * float(np.sqrt(k / options.share))
    selection = TopK(
        sensitivity=2.0,
        scale=scale,
        count=1,
        k=k,
        unit="2, the replace-one change of a sum over pairs by its records",
        source="Dick, Gillenwater and Joseph 2023, with replace-one constants",
        noise="gumbel",
    )
    gradient = Gaussian(
        2 * C,
        2 * C * noise_multiplier * float(np.sqrt(T / (1 - options.share))),
        T,
        "2 C, the replace-one change of a sum of clipped gradients",
        "Bassily, Smith and Thakurta 2014; Dong, Roth and Su 2019",
    )
    return Ledger((selection, gradient), given=at.given)


class Run(Fit):
    """Selections and descents with noise of their own."""

    def steps(self) -> Steps:
        """Features, then noisy gradients."""
        at, options = self.at, self.options
        k, C = chosen(at, options)
        told = (yield at.relevance(k)).astype(int)
        descent = Descent(at, options, self.u, options.steps, k)
        for _ in range(options.steps):
            g = np.zeros_like(self.u)
            some = yield at.chosen_gradient_sum(self.u, C, told)
            np.put_along_axis(g, told, some, axis=0)
            self.u = descent.along(g, at.n)
        if options.average:
            self.u = descent.mean
