r"""DP-GD: full-batch noisy gradient descent with momentum, in units of public scales.

    g = sum_i clip_C(grad l_i(u)) + N(0, (sigma 2 C)^2 I),
    V <- beta V + g / n,   u <- prox_{eta / (1 - beta) psi}(u - eta V),   t < T,

with eta = ``step`` / (sup phi'' p). If S are the columns' own scales, the mean of ||x /
S||^2 is p, so that no eigenvalue of the Hessian exceeds sup phi'' p. Without noise the
descent then cannot diverge for ``step`` below 2 (1 + beta). Declared scales may be too
small for that.

T Gaussian releases of sensitivity 2 C compose to one exactly (Dong, Roth and Su 2019,
Corollary 3.3). Momentum, scales, the proximal operator and averaging are
post-processing. (V settles at g / (1 - beta) / n: with a threshold of eta alone the
penalty would have 1 - beta times its weight.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dperm.privacy.events import Gaussian, Ledger
from dperm.solvers.full_batch import Fit, Steps
from dperm.solvers.full_batch.scaled import Scaled
from dperm.solvers.full_batch.secret import Secret
from dperm.solvers.options import at_least, positive

#: Values that a search tries, in their product; ``Options`` has the default.
DEFAULT = {
    "steps": 30,
    "step": 0.3,
    "clip": 0.5,
}  # least excess over data sets
GRID = {"steps": [10, 30], "step": [0.3, 1], "clip": [0.5, 1]}


@dataclass(frozen=True)
class Options:
    """Steps, step size, momentum and clip."""

    steps: int = 30  #: T
    step: float = 3.0  #: eta in units of 1 / (sup phi'' p)
    momentum: float = 0.8  #: beta, in [0, 1)
    #: C as a multiple of sqrt(p) times the largest slope, or the label's scale
    clip: float = 1.0
    #: whether to publish the mean of the last half of the iterates, not the last one
    average: bool = False

    def __post_init__(self) -> None:
        at_least(self, 1, "steps")
        positive(self, "step", "clip")
        if not 0 <= self.momentum < 1:
            raise ValueError(
                f"options.momentum: expected in [0, 1), found {self.momentum}"
            )


def refuses(options: Options, scaled: Scaled) -> str:
    """Accept every loss and penalty."""
    return ""


def threshold(scaled: Scaled, clip: float) -> float:
    """C: a multiple of sqrt(p), and of the label's scale where slopes have no bound."""
    slope = min(scaled.loss.lipschitz(np.inf), scaled.label)
    return clip * slope * scaled.radius


def ledger(
    scaled: Scaled, noise_multiplier: float, options: Options
) -> Ledger:
    """T Gaussian releases, each with sqrt(T) times the noise of one alone."""
    moved = 2 * threshold(scaled, options.clip)
    event = Gaussian(
        sensitivity=moved,
        scale=moved * float(np.sqrt(options.steps)) * noise_multiplier,
        count=options.steps,
        unit="2 C, the replace-one change of a sum of clipped gradients",
        source="Bassily, Smith and Thakurta 2014; Dong, Roth and Su 2019",
    )
    return Ledger((event,), given=scaled.given)


class Run(Fit):
    """Descents with independent noise."""

    def steps(self) -> Steps:
        """Noisy gradients."""
        C = threshold(self.scaled, self.options.clip)
        yield from self.descent(
            lambda: self.scaled.gradient_sum(self.u, C), self.scaled.n
        )

    def descent(
        self,
        ask: Callable[[], Secret],
        count: int,
        width: int = 0,
        placed: Callable[[np.ndarray], np.ndarray] = np.asarray,
    ) -> Steps:
        """Steps along noisy sums over ``count`` records, with momentum and the penalty.

        ``width`` features may move, or all p; ``placed`` makes a sum (p, L) of what is
        released. In the end the last half of the iterates is averaged, if asked for.
        """
        scaled = self.scaled
        options = self.options
        T = self.options.steps
        eta = options.step / (scaled.loss.curvature * (width or scaled.p))
        settled = eta / (1 - options.momentum)
        velocity = np.zeros_like(self.u)
        total = np.zeros_like(self.u)
        for t in range(T):
            g = placed((yield ask()))
            velocity = options.momentum * velocity + g / count
            self.u = scaled.prox(self.u - eta * velocity, settled)
            total += self.u if t >= T // 2 else 0.0
        if options.average:
            self.u = total / (T - T // 2)
