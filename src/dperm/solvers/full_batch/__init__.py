"""Methods that fit a model by a few releases on all records, not by passes.

A solver module of this family has

- ``Options``, a dataclass of the keys under ``options`` in its YAML: the whole setting,
- ``refuses(options, at) -> str``, why it cannot handle a problem; empty if it can,
- ``ledger(at, noise_multiplier, options) -> Ledger``, a run's releases, listed before
  anything runs,
- ``Run``, a :class:`Fit`. Several runs of one setting advance together, each with its
  own noise.

A method sees only public quantities (:class:`~dperm.solvers.full_batch.scaled.Scaled`).
What it needs from the records it yields as a secret, and it receives the release that
the next event of its ledger makes of it. So a run cannot release what its ledger does
not state, and cannot use what it did not release.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np

from dperm.privacy.events import Ledger
from dperm.privacy.noise import Streams, gaussian
from dperm.solvers.exact_noise import Exact
from dperm.solvers.full_batch.scaled import Scaled
from dperm.solvers.full_batch.secret import Secret, in_rounds, isometric

# Features up to which a p x p matrix is released or inverted
MOST_SQUARE = 512

# yields secrets, receives releases
Steps = Generator[Secret, np.ndarray, None]


class Fit(ABC):
    """Runs of one setting on one problem, side by side, each with its own stream.

    The ledger states the runs' releases and the scales of their noise. ``u`` (p, L) are
    the current weights of each run, in units of the scales.
    """

    exact: Exact | None = None  # noise for release; of a single run only

    def __init__(
        self,
        scaled: Scaled,
        ledger: Ledger,
        streams: Sequence[Streams],
        options: Any,
    ):
        self.scaled = scaled
        self.ledger = ledger
        self.options = options
        self.streams = streams
        self.u = np.zeros((scaled.p, len(streams)))

    @property
    def weights(self) -> np.ndarray:
        """The runs' weights, shape (L, p)."""
        return np.ascontiguousarray(self.u.T) / self.scaled.S

    @abstractmethod
    def steps(self) -> Steps:
        """Run the algorithm: yield each secret, receive its release."""

    def releases(self) -> Iterator[np.ndarray]:
        """Make the runs; yield each release as it is made, (k, L).

        Raises UndeclaredError if the algorithm requests a release that the ledger does
        not state, or one that noise for release has no proof for.
        """
        steps = self.steps()
        events = in_rounds(self.ledger)
        release = None
        noise: Any = self.exact or self.normal
        while True:
            with np.errstate(all="ignore"):
                # no warning may depend on the records
                try:
                    secret = (
                        next(steps) if release is None else steps.send(release)
                    )
                except StopIteration:
                    return
                release = secret.released(events, noise)
            yield isometric(release) if release.ndim == 3 else release

    def solve(self) -> np.ndarray:
        """Make the runs and return their weights, shape (L, p)."""
        for _ in self.releases():
            pass
        return self.weights

    def normal(self, scale: Any, size: int, law: Any = gaussian) -> np.ndarray:
        """Draw noise of a scale and law, each column from its run's own stream."""
        drawn = [law(stream.noise, size) for stream in self.streams]
        return scale * np.stack(drawn, axis=1)


def too_wide(scaled: Scaled) -> str:
    """Return why a p x p matrix is too large; empty if it is not."""
    if scaled.p <= MOST_SQUARE:
        return ""
    return (
        f"it handles a {scaled.p} x {scaled.p} matrix: "
        f"{MOST_SQUARE} features at most"
    )
