"""NoisySFW on linear losses of biased coins, at any number of records.

A batch of a linear loss enters a run only through the sum of its records, whose entry
in a column of coins is one binomial draw. The gradient does not depend on the point, so
that right children add neither a change nor noise, and all leaves of a phase step
towards the same vertex: the phase is one convex combination, whose weight is a product
in closed form. A run on 10^10 records costs what one on 10^3 does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.random import SFC64, Generator, SeedSequence

from dperm.privacy.noise import Streams
from dperm.solvers.single_pass import Target, noisy_sfw
from dperm.solvers.single_pass.setup import Setup
from dperm.solvers.single_pass.sources import Coins


class BinomialRun(noisy_sfw.Run):
    """All targets of Algorithm 1 on sums of coins; no record is drawn.

    Raises ValueError for a loss that is not linear, or coins of which a record shows
    one only.
    """

    def __init__(
        self,
        setup: Setup,
        targets: Sequence[Target],
        streams: Streams,
        source: Coins,
        n: int,
        options: noisy_sfw.Options,
        seed: int,
    ):
        if setup.loss != "linear" or source.single:
            raise ValueError(
                "expected a linear loss of records that show all coins"
            )
        super().__init__(setup, targets, streams, source, n, options)
        self.coins = source
        self.tallies = Generator(SFC64(SeedSequence([seed, 5])))

    def estimate(self, t: int, depth: int, leaf: int) -> np.ndarray:
        """The noisy gradient at a node (L, d); below a root it is the root's."""
        if depth > 0:
            return self.estimates[depth - 1]
        batch = self.tree.batch
        setup = self.setup
        heads = self.tallies.binomial(batch, (1 + self.coins.means) / 2)
        size = setup.d ** (-1 / setup.q)
        gradient = -setup.lipschitz * size * (2 * heads / batch - 1)
        noise = noisy_sfw.generalised_gaussian(
            self.streams.noise, self.order, (1, setup.d)
        )
        return gradient + self.noise_scale(t, 0, 0)[:, None] * noise

    def releases(self) -> Iterator[np.ndarray]:
        """Yield the estimate of every root; each phase is one step."""
        for t in range(1, self.tree.phases + 1):
            gradient = self.estimate(t, 0, 0)
            stay = kept(t, self.options)
            vertex = self.setup.ball.oracle(gradient)
            self.x = stay * self.x + (1 - stay) * vertex
            yield gradient.flatten()


def kept(t: int, options: noisy_sfw.Options) -> float:
    """Weight of a phase's first point in its last one: the product of 1 - eta.

    With eta = 2 / (a + l + 1) at leaf l the product over 2^t leaves telescopes to
    (a - 1) a / ((a + 2^t - 1) (a + 2^t)).
    """
    first_point = 2 ** (t - 1) if options.steps == "sawtooth" else 2**t - 1
    last_point = first_point + 2**t
    return (first_point - 1) * first_point / ((last_point - 1) * last_point)
