r"""Feature selection, then DP-GD: for more features than n epsilon.

The k features with the largest scores after Gumbel noise are released. Scores are rank
statistics, robust to scales and outliers: Kendall's for real labels, Wilcoxon's for
signs, where records are multiplied by their labels (``Scaled.relevance``). Then DP-GD
(:mod:`.dp_gd`) runs on these features alone, with a clip C for k features.

*Privacy.* Replacing a record moves every score by at most 2: each of the record's n - 1
pairs (n with itself) changes by at most 2, divided by n - 1 (n). So the places are k
exponential mechanisms of range 2 (2 / b) (:mod:`dperm.privacy.mechanisms.noisy_max`),
each step is a Gaussian release of sensitivity 2 C, and all compose adaptively. ∎ (Dick,
Gillenwater and Joseph 2023, arXiv:2306.00920, under adding or removing a record; their
term for features that repeat each other is left out.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dperm.privacy.events import Gaussian, Ledger
from dperm.privacy.mechanisms.noisy_max import TopK
from dperm.solvers.full_batch import Steps, dp_gd
from dperm.solvers.full_batch.dp_gd import refuses, threshold
from dperm.solvers.full_batch.scaled import Scaled
from dperm.solvers.full_batch.secret import Secret
from dperm.solvers.options import at_least, share

__all__ = ["Options", "Run", "ledger", "refuses"]

#: Values that a search tries, in their product; ``Options`` has the default.
GRID = {"features": [3, 10], "steps": [10, 30], "step": [0.3, 1]}


@dataclass(frozen=True)
class Options(dp_gd.Options):
    """Options of DP-GD, and of the selection."""

    step: float = 0.3
    features: int = 5  #: k; all if there are fewer
    share: float = 0.5  #: of the squared budget, for the selection

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, 1, "features")
        share(self, "share")


def chosen(scaled: Scaled, options: Options) -> tuple[int, float]:
    """Number of features k, and C for them."""
    k = min(options.features, scaled.p)
    return k, threshold(scaled, options.clip) * float(np.sqrt(k / scaled.p))


def ledger(
    scaled: Scaled, noise_multiplier: float, options: Options
) -> Ledger:
    """The features, then T Gaussian releases."""
    (k, C) = chosen(scaled, options)
    T = options.steps
    # a selection of range 4 / b costs about as much as a Gaussian of mu = 2 / b
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
    return Ledger((selection, gradient), given=scaled.given)


class Run(dp_gd.Run):
    """Selections and descents with independent noise."""

    def steps(self) -> Steps:
        """Features, then noisy gradients."""
        scaled = self.scaled
        k, C = chosen(scaled, self.options)
        selected = (yield scaled.relevance(k)).astype(int)

        def placed(chosen_gradient: np.ndarray) -> np.ndarray:
            """A gradient of the chosen coordinates, zero elsewhere; (p, L)."""
            g = np.zeros_like(self.u)
            np.put_along_axis(g, selected, chosen_gradient, axis=0)
            return g

        def ask() -> Secret:
            """The sum of clipped gradients of the chosen coordinates."""
            return scaled.chosen_gradient_sum(self.u, C, selected)

        yield from self.descent(ask, scaled.n, k, placed)
