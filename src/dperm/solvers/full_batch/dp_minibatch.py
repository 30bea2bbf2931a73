r"""DP-SGD with large batches, momentum and public scales.

As DP-GD (:mod:`.dp_gd`), but each step reads a batch of b records, drawn uniformly
without replacement:

    g = (n / b) (sum_{i in batch} clip_C(grad l_i(u)) + N(0, (sigma 2 C)^2 I)).

One release obeys, in both directions, the curve of ``SampledGaussian`` with q = b / n
(Balle, Barthe and Gaboardi 2018, Theorem 11: a batch that holds the replaced record
differs in one record from a batch that does not); steps compose as privacy loss
distributions. The curve of Poisson sampling under adding a record is different and is
no bound here.
"""

from __future__ import annotations

from dataclasses import dataclass

from dperm.privacy.events import Ledger, SampledGaussian
from dperm.solvers.full_batch import Steps, dp_gd
from dperm.solvers.full_batch.dp_gd import refuses, threshold
from dperm.solvers.full_batch.scaled import Scaled

__all__ = ["Options", "Run", "batch", "ledger", "refuses"]

#: Values that a search tries, in their product; ``Options`` has the default.
DEFAULT = {
    "steps": 60,
    "step": 0.1,
    "clip": 0.5,
}  # least excess over data sets
GRID = {"steps": [20, 60], "step": [0.1, 0.3], "clip": [0.5, 1]}


@dataclass(frozen=True)
class Options(dp_gd.Options):
    """Options of DP-GD, and the size of a batch."""

    steps: int = 60  #: T
    step: float = 1.0
    #: b / n, rounded to a whole number of records, one at least
    share: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.share <= 1:
            raise ValueError(
                f"options.share: expected in (0, 1], found {self.share}"
            )


def batch(scaled: Scaled, options: Options) -> int:
    """Number of records in a batch."""
    return max(1, round(options.share * scaled.n))


def ledger(
    scaled: Scaled, noise_multiplier: float, options: Options
) -> Ledger:
    """T Gaussian releases, each on a random batch."""
    moved = 2 * threshold(scaled, options.clip)
    event = SampledGaussian(
        sensitivity=moved,
        scale=moved * noise_multiplier,
        count=options.steps,
        batch=batch(scaled, options),
        population=scaled.n,
        unit="2 C, the replace-one change of a sum of clipped gradients",
        source="Abadi et al. 2016; Balle, Barthe and Gaboardi 2018",
    )
    return Ledger((event,), given=scaled.given)


class Run(dp_gd.Run):
    """Descents on independent batches."""

    def steps(self) -> Steps:
        """Noisy gradients of batches."""
        scaled = self.scaled
        options = self.options
        streams = self.streams
        size = batch(scaled, options)
        C = threshold(scaled, options.clip)
        yield from self.descent(
            lambda: scaled.batch_gradient_sum(self.u, C, size, streams), size
        )
