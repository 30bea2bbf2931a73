"""Methods that fit a model in a few releases on all records, without numbers of passes.

A solver module of this family is a :class:`Solver`; its ``Run`` derives from
:class:`Fit`. All of a setting stands in its ``Options``. Several runs of one setting
advance together, each with noise of its own.

A method sees public quantities alone (:class:`~dperm.solvers.fits.scaled.Scaled`). What
it wants to know of the records it yields as a secret, and is sent what the next event
of its ledger makes of that: a run cannot release what its ledger does not state, and
cannot use what it did not release.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from itertools import zip_longest
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dperm.core.privacy.ledger import Ledger
from dperm.core.privacy.mechanisms import Streams, gaussian
from dperm.solvers.exact_noise import Exact
from dperm.solvers.fits.scaled import Scaled
from dperm.solvers.fits.secret import (
    Inside,
    Scores,
    Secret,
    Sketched,
    Tilted,
    in_rounds,
    isometric,
)

MOST_SQUARE = 512  # features up to which a p x p matrix is released or inverted

Wanted = Inside | Scores | Secret | Sketched | Tilted
Steps = Generator[Wanted, np.ndarray, None]  # yields secrets, is sent releases


class Fit(ABC):
    """Runs of one setting on one problem, side by side.

    Parameters
    ----------
    ledger : Ledger
        What the runs release, with the scales of its noise.
    streams : sequence of Streams
        One a run.

    Attributes
    ----------
    u : ndarray, shape (p, L)
        What each run has reached, in units of the scales.
    """

    exact: Exact | None = None  # noise for release, of a single run

    def __init__(
        self,
        at: Scaled,
        ledger: Ledger,
        streams: Sequence[Streams],
        options: Any,
    ):
        self.at, self.ledger, self.options = at, ledger, options
        self.streams = streams
        self.u = np.zeros((at.p, len(streams)))

    @property
    def weights(self) -> np.ndarray:
        """The runs' weights, shape (L, p)."""
        return np.ascontiguousarray(self.u.T) / self.at.S

    @abstractmethod
    def steps(self) -> Steps:
        """The algorithm: yields what it wants released, and is sent the releases."""

    def releases(self) -> Iterator[np.ndarray]:
        """Make the runs; each release as it is made, (k, L).

        Raises UndeclaredError if the ledger does not state a release that the algorithm
        asks for.
        """
        for found in self.stepwise():
            if found is not None:
                yield isometric(found) if found.ndim == 3 else found

    def stepwise(self) -> Iterator[np.ndarray | None]:
        """The same; None before a release, so that runs side by side ask together."""
        steps, events, found = self.steps(), in_rounds(self.ledger), None
        noise: Any = self.exact or self.normal
        while True:
            with np.errstate(all="ignore"):  # no warning may follow the records
                try:
                    wanted = next(steps) if found is None else steps.send(found)
                except StopIteration:
                    return
            yield None
            with np.errstate(all="ignore"):
                found = wanted.released(events, noise)
            yield found

    def solve(self) -> np.ndarray:
        """Make the runs; their weights, shape (L, p)."""
        side_by_side([self])
        return self.weights

    def normal(self, scale: Any, size: int, law: Any = gaussian) -> np.ndarray:
        """Noise of that scale and law, each column from a run's own stream."""
        drawn = [law(one.noise, size) for one in self.streams]
        return scale * np.stack(drawn, axis=1)


def side_by_side(runs: Sequence[Fit]) -> None:
    """Make runs, of any settings, one release of each at a time."""
    for _ in zip_longest(*(run.stepwise() for run in runs)):
        pass


@runtime_checkable
class Solver(Protocol):
    """What a module of this family offers.

    ``Options`` is a dataclass of the keys its YAML may hold under ``options``, ``Run``
    a :class:`Fit`.
    """

    Options: type
    Run: type[Fit]

    def refuses(self, options: Any, at: Scaled) -> str:
        """Why it cannot work on a problem; empty if it can."""

    def ledger(self, at: Scaled, noise_multiplier: float, options: Any) -> Ledger:
        """What a run releases, as data, before anything runs."""


def too_wide(at: Scaled) -> str:
    """Why a p x p matrix is too much, if it is."""
    if at.p <= MOST_SQUARE:
        return ""
    return f"it handles a {at.p} x {at.p} matrix: {MOST_SQUARE} features at most"
