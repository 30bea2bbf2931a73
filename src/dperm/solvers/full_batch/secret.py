"""Values read off the records and not yet hidden; no method can look into them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence

from dperm.privacy.accountants import TIGHT
from dperm.privacy.calibration import calibrate
from dperm.privacy.events import Event, Gaussian, Ledger, SampledGaussian
from dperm.privacy.mechanisms.perturbed_objective import PerturbedObjective
from dperm.privacy.noise import STREAMS, gaussian, gumbel
from dperm.solvers.exact_noise import Exact

ROUNDING = 1e-9  # relative excess of a sensitivity over the ledger's
# Gaussian noise of a scale and size, (k, L)
Normal = Callable[..., np.ndarray]


class UndeclaredError(ValueError):
    """A run requests a release that its ledger does not state; it is not made."""


class Secret:
    """A value that nobody can read, and how the ledger's next event releases it.

    Parameters
    ----------
    event_type : type of Event
        The event that hides it.
    needs : mapping
        What the event must state at least, by the event's attributes.
    release : callable
        Makes the release of the event and the noise. It alone holds the value.
    then : callable, optional
        Makes of that release another secret, which is released in its place.
    exact : bool
        Whether noise for release can hide it.
    """

    __slots__ = ("__release", "__then", "event_type", "exact", "needs")

    def __init__(
        self,
        event_type: type[Event],
        needs: Mapping[str, Any],
        release: Callable[[Any, Any], np.ndarray],
        then: Callable[[np.ndarray], Secret] | None = None,
        exact: bool = False,
    ):
        self.event_type = event_type
        self.needs = needs
        self.exact = exact
        self.__release = release
        self.__then = then

    def released(
        self, events: Iterator[Event], normal: Normal | Exact
    ) -> np.ndarray:
        """The value as the next event hides it, (k, L) or (L, k, k).

        Raises UndeclaredError if there is no further event, if it is of another kind or
        states less than is needed, or if noise for release has no proof for the value.
        """
        event = next(events, None)
        if type(event) is not self.event_type:
            expected = (
                "no more" if event is None else f"a {type(event).__name__}"
            )
            raise UndeclaredError(
                f"the run makes a release of kind {self.event_type.__name__}, "
                "its ledger: "
                f"{expected}"
            )
        for name, need in self.needs.items():
            bound = getattr(event, name)
            if not np.all(need <= bound * (1 + ROUNDING)):
                largest = np.max(need)
                raise UndeclaredError(
                    f"{name}: the ledger states {bound:g}, the run has {largest:g}"
                )
        if isinstance(normal, Exact) and not self.exact:
            raise UndeclaredError(
                "exact noise: no bound on the error of doubles, which sums of all "
                "records alone have"
            )
        release = self.__release(event, normal)
        if self.__then is None:
            return release
        return self.__then(release).released(events, normal)


def noisy(
    value: Any,
    sensitivity: Any,
    rate: float | None = None,
    symmetric: bool = False,
    error: float | None = None,
) -> Secret:
    """A value that replacing a record moves by at most a known distance.

    The value is (), (p,), (1, L), (p, L), or symmetric (p, p). The sensitivity, a
    number or (L,), is in the Euclidean, or Frobenius, norm. ``rate`` is the share of
    the records that was drawn, if not all. ``error`` bounds the value's distance from
    the exact one, in that norm; without it the value gets no exact noise.
    """
    needs = {"sensitivity": sensitivity}

    def release(event: Gaussian, normal: Normal | Exact) -> np.ndarray:
        exact_sum = np.asarray(value, dtype=float)
        if isinstance(normal, Exact):
            assert error is not None
            return normal.added(
                exact_sum, event.scale, event.sensitivity, error, symmetric
            )
        if symmetric:
            p = len(exact_sum)
            drawn = normal(event.scale, p * (p + 1) // 2)
            return np.asarray(exact_sum + symmetric_noise(drawn, p))
        columns = exact_sum if exact_sum.ndim > 1 else exact_sum.reshape(-1, 1)
        return np.asarray(columns + normal(event.scale, len(columns)))

    if rate is None:
        return Secret(Gaussian, needs, release, exact=error is not None)
    return Secret(SampledGaussian, {**needs, "sampling_rate": rate}, release)


def sketched(
    moments: np.ndarray, reach: float, rows: int, known: np.ndarray
) -> Secret:
    """Moments (p, p), released as the mean of y y^T of rows y ~ N(0, moments + ridge).

    ``reach`` is R, the bound on a record; ``known`` (L,) is a lower bound on the
    smallest eigenvalue of two data sets' shared moments.
    """
    # most fits need none
    from dperm.privacy.mechanisms.sketch import GaussianSketch

    def release(event: GaussianSketch, normal: Normal) -> np.ndarray:
        eigenvalues, vectors = np.linalg.eigh(moments)
        added = np.maximum(event.scale**2 - known, 0.0)
        # (L, p)
        sizes = np.sqrt(np.maximum(eigenvalues, 0.0) + added[:, None])
        p = len(eigenvalues)
        drawn = normal(1.0, rows * p).T.reshape(-1, rows, p)
        mixed = (drawn * sizes[:, None, :]) @ vectors.T
        second_moments: np.ndarray = mixed.swapaxes(-1, -2) @ mixed / rows
        return second_moments

    return Secret(
        GaussianSketch, {"sensitivity": reach, "rows": rows}, release
    )


def tilted(
    minimise: Callable[[np.ndarray], np.ndarray],
    p: int,
    reach: float,
    curvature: float,
    off: float = 0.0,
) -> Secret:
    """The minimiser of an objective with a random linear term, which hides it; (p, L).

    ``minimise`` maps linear terms (p, L) to minimisers. ``reach`` and ``curvature`` are
    R, the bound on a record, and R^2 / Lambda. ``off`` bounds the error of the computed
    minimiser, which noise of a second event hides; 0 if it counts as exact.
    """

    def release(event: PerturbedObjective, normal: Normal) -> np.ndarray:
        return minimise(normal(event.scale, p))

    def digits(minimum: np.ndarray) -> Secret:
        return noisy(minimum, 2 * off)

    needs = {"sensitivity": 2 * reach, "curvature": curvature}
    return Secret(PerturbedObjective, needs, release, digits if off else None)


def largest(scores: np.ndarray, sensitivity: float, k: int) -> Secret:
    """Places of the k largest scores (p,) with Gumbel noise, largest first, (k, L)."""
    from dperm.privacy.mechanisms.noisy_max import TopK  # most fits need none

    def release(event: TopK, normal: Normal) -> np.ndarray:
        noise = normal(event.scale, len(scores), law=gumbel)
        return np.argsort(-(scores[:, None] + noise), axis=0)[:k].astype(float)

    return Secret(TopK, {"sensitivity": sensitivity, "k": k}, release)


def in_rounds(ledger: Ledger) -> Iterator[Event]:
    """Yield releases one by one: the events in order, repeated up to their counts."""
    for done in range(max(event.count for event in ledger.events)):
        yield from (event for event in ledger.events if event.count > done)


def symmetric_noise(drawn: np.ndarray, p: int) -> np.ndarray:
    """Noise (L, p, p), isotropic in (q_ii, sqrt(2) q_ij), of (p (p + 1) / 2, L) draws.

    Off the diagonal the scale is 1 / sqrt(2) of that on it, so that privacy depends on
    the Frobenius norm of a change.
    """
    rows, columns = np.triu_indices(p)
    scaled = np.where(rows == columns, 1.0, np.sqrt(0.5))[:, None] * drawn
    noise = np.zeros((drawn.shape[1], p, p))
    noise[:, rows, columns] = scaled.T
    noise[:, columns, rows] = scaled.T
    return noise


def isometric(matrices: np.ndarray) -> np.ndarray:
    """Coordinates of symmetric matrices (L, p, p) with the Frobenius norm; (k, L)."""
    rows, columns = np.triu_indices(matrices.shape[1])
    factors = np.where(rows == columns, 1.0, np.sqrt(2.0))
    return factors[:, None] * matrices[:, rows, columns].T


def seeded(seed: int) -> Normal:
    """Noise for a first release from a fit's seed, independent of its solver's."""
    rng = Generator(PCG64(SeedSequence(seed, spawn_key=(len(STREAMS),))))

    def normal(scale: Any, size: int) -> np.ndarray:
        """Normal noise of a scale; (size, 1)."""
        return scale * gaussian(rng, (size, 1))

    return normal


@functools.cache
def whole(epsilon: float, delta: float) -> float:
    """Noise multiplier of one Gaussian release that spends the whole budget."""

    def one(multiplier: float) -> Ledger:
        return Ledger((Gaussian(1.0, multiplier, 1, "", ""),))

    return calibrate(one, epsilon, delta, TIGHT).noise_multiplier
