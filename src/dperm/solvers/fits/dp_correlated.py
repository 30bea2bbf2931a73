r"""DP-GD with correlated noise: a matrix mechanism for full batches.

Step t releases a weighted sum of all gradients so far,

    h_t = sum_{s <= t} c_{t - s} g_s + N(0, sigma^2 I),  g_s a sum of clipped gradients,

and descends along sum_s d_{t - s} h_s, where c and d are the coefficients of (1 -
z)^-nu and (1 - z)^nu. These sums are the gradients with noise whose sum over the steps
grows more slowly than that of independent noise. nu = 1/2 is the square-root
factorisation of prefix sums (Fichtenberger, Henzinger and Upadhyay 2023,
arXiv:2202.11205; Denisov et al. 2022, arXiv:2202.08312), nu = 0 is DP-GD.

*Privacy.* Given what came before, g_s depends on the records through a sum of vectors
in the ball of radius C: replacing a record, which takes part in every step, moves h_t
by at most 2 C (|c_0| + ... + |c_t|). Given the earlier releases h_t is a Gaussian
release of that sensitivity, so that all of them compose exactly to mu^2 = sum_t (2 C
sum_{k <= t} |c_k|)^2 / sigma^2 (Dong, Roth and Su 2019, Corollary 3.3). ∎ The sums grow
as t^nu, the price of a record that takes part in every step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dperm.accountants.chained import coefficients
from dperm.core.privacy.ledger import Gaussian, Ledger
from dperm.solvers.fits import Fit, Steps, dp_gd
from dperm.solvers.fits.dp_gd import Descent, refuses, threshold
from dperm.solvers.fits.scaled import Scaled
from dperm.solvers.fits.secret import Secret

__all__ = ["Options", "Run", "ledger", "refuses"]


@dataclass(frozen=True)
class Options(dp_gd.Options):
    """Options of DP-GD, and the power."""

    power: float = 0.5  #: nu, in [0, 1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.power < 1:
            raise ValueError(f"options.power: expected in [0, 1), found {self.power}")


def ledger(at: Scaled, noise_multiplier: float, options: Options) -> Ledger:
    """One Gaussian release per step, all of one scale."""
    sums = np.cumsum(np.abs(coefficients(-options.power, options.steps)))
    moved = 2 * threshold(at, options.clip) * sums
    scale = noise_multiplier * float(np.linalg.norm(moved))
    events = tuple(
        Gaussian(
            float(one),
            scale,
            1,
            "2 C (|c_0| + ... + |c_t|), the replace-one change of weighted sums",
            "Denisov et al. 2022; Fichtenberger, Henzinger and Upadhyay 2023",
        )
        for one in moved
    )
    return Ledger(events, given=at.given)


class Run(Fit):
    """Descents with independent noise."""

    def steps(self) -> Steps:
        """Weighted sums of the gradients so far."""
        at, options, T = self.at, self.options, self.options.steps
        C = threshold(at, options.clip)
        c, d = (coefficients(nu, T) for nu in (-options.power, options.power))
        descent = Descent(at, options, self.u, T)
        gradients: list[Secret] = []
        found: list[np.ndarray] = []
        for t in range(T):
            gradients.append(at.gradient_sum(self.u, C))
            weighted = gradients[t]
            for k in range(1, t + 1):
                weighted = weighted.plus(gradients[t - k], c[k])
            found.append((yield weighted))
            g = sum(d[k] * found[t - k] for k in range(t + 1))
            self.u = descent.along(g, at.n)
        if options.average:
            self.u = descent.mean
