"""Values read off the records and not yet hidden; no method can look into them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dperm.accountants.perturbed_objective import PerturbedObjective
from dperm.accountants.sketch import GaussianSketch
from dperm.accountants.top_k import TopK
from dperm.core.privacy.ledger import Event, Gaussian, Ledger, SampledGaussian
from dperm.core.privacy.mechanisms import gumbel
from dperm.solvers.exact_noise import Exact

ROUNDING = 1e-9  # relative excess of a sensitivity over the ledger's
NO_BOUND = "no bound on the error of doubles, which sums of all records alone have"
Normal = Callable[[Any, int], np.ndarray]  # Gaussian noise of a scale and size, (k, L)


class UndeclaredError(ValueError):
    """A run requests a release that its ledger does not state; it is not made."""


class Secret:
    """A value that replacing a record moves by at most a known distance.

    Parameters
    ----------
    value : float or ndarray, (), (p,), (1, L), (p, L), or symmetric (p, p)
        Or a callable without arguments, which returns it when it is released.
    sensitivity : float or ndarray (L,)
        In the Euclidean, or Frobenius, norm.
    batch : (int, int), optional
        Number of records drawn, and number of all records.
    error : float, optional
        Bound on the value's distance from the exact one, in that norm. Without it the
        value gets no exact noise.
    whole : bool
        Whether its entries are whole numbers.
    """

    __slots__ = (
        "__value", "batch", "error", "sensitivity", "symmetric", "whole",
    )  # fmt: skip

    def __init__(
        self,
        value: Any,
        sensitivity: Any,
        batch: tuple[int, int] | None = None,
        symmetric: bool = False,
        error: float | None = None,
        whole: bool = False,
    ):
        self.__value = value
        self.error, self.whole = error, whole
        self.sensitivity, self.batch, self.symmetric = sensitivity, batch, symmetric

    def __read(self) -> np.ndarray:
        if callable(self.__value):
            self.__value = self.__value()
        return np.asarray(self.__value, dtype=float)

    def sketched(self, rows: int, known: np.ndarray) -> Sketched:
        """Normal rows whose covariance is these second moments plus a ridge.

        Parameters
        ----------
        known : ndarray, shape (L,)
            Lower bound on the smallest eigenvalue of two data sets' shared moments.
        """
        reach = float(np.sqrt(self.sensitivity / np.sqrt(2)))
        return Sketched(self.__read(), reach, rows, known)

    def released(self, events: Iterator[Event], normal: Normal | Exact) -> np.ndarray:
        """The value with the noise of the next event, (k, L) or (L, k, k).

        Raises UndeclaredError if there is no further event, or it is one of another
        kind, of a smaller sensitivity, or of another batch.
        """
        event = taken(events, SampledGaussian if self.batch else Gaussian)
        require("sensitivity", self.sensitivity, event.sensitivity)
        if self.batch:
            require("batch", self.batch[0], event.batch)
            require("1 / records", 1 / self.batch[1], 1 / event.population)
        scale, found = event.scale, self.__read()
        if isinstance(normal, Exact):
            if self.error is None or self.batch:
                raise UndeclaredError(f"exact noise: {NO_BOUND}")
            how = (event.sensitivity, self.error, self.symmetric)
            return normal.added(found, scale, *how, self.whole)
        if self.symmetric:
            p = len(found)
            return found + symmetric_noise(normal(scale, p * (p + 1) // 2), p)
        value = found if found.ndim > 1 else found.reshape(-1, 1)
        return value + normal(scale, len(value))


class Sketched:
    """Second moments, released through normal rows that have them as covariance.

    Parameters
    ----------
    moments : ndarray, shape (p, p)
    reach : float
        R, the bound on a record.
    known : ndarray, shape (L,)
    """

    __slots__ = ("__moments", "known", "reach", "rows")

    def __init__(self, moments: np.ndarray, reach: float, rows: int, known: np.ndarray):
        self.__moments, self.reach, self.rows, self.known = moments, reach, rows, known

    def released(self, events: Iterator[Event], normal: Normal) -> np.ndarray:
        """Mean of y y^T over the rows y ~ N(0, moments + ridge), (L, p, p).

        Raises
        ------
        UndeclaredError
            As for ``Secret``.
        """
        event = taken(events, GaussianSketch)
        require("R", self.reach, event.sensitivity)
        require("rows", self.rows, event.rows)
        values, vectors = np.linalg.eigh(self.__moments)
        added = np.maximum(event.scale**2 - self.known, 0.0)
        sizes = np.sqrt(np.maximum(values, 0.0) + added[:, None])  # (L, p)
        p = len(values)
        drawn = normal(1.0, self.rows * p).T.reshape(-1, self.rows, p)
        rows = (drawn * sizes[:, None, :]) @ vectors.T
        found: np.ndarray = rows.mT @ rows / self.rows
        return found


class Tilted:
    """The minimiser of an objective with a random linear term, which hides it.

    Parameters
    ----------
    minimise : callable
        Maps linear terms (p, L) to the minimisers (p, L).
    size : int
        p.
    reach, curvature : float
        R, the bound on a record, and R^2 / Lambda.
    off : float
        Bound on the error of the computed minimiser, if noise of a second event hides
        it; 0 if it counts as exact.
    """

    __slots__ = ("__minimise", "curvature", "off", "reach", "size")

    def __init__(
        self,
        minimise: Callable[[np.ndarray], np.ndarray],
        size: int,
        reach: float,
        curvature: float,
        off: float = 0.0,
    ):
        self.__minimise, self.size = minimise, size
        self.reach, self.curvature, self.off = reach, curvature, off

    def released(self, events: Iterator[Event], normal: Normal) -> np.ndarray:
        """The minimiser with the next event's noise as linear term; (p, L).

        Raises
        ------
        UndeclaredError
            As for ``Secret``.
        """
        event = taken(events, PerturbedObjective)
        require("2 R", 2 * self.reach, event.sensitivity)
        require("R^2 / Lambda", self.curvature, event.curvature)
        found = self.__minimise(normal(event.scale, self.size))
        if not self.off:
            return found
        digits = taken(events, Gaussian)
        require("2 tau / Lambda", 2 * self.off, digits.sensitivity)
        return found + normal(digits.scale, self.size)


class Scores:
    """Scores of features, of which the places of the largest are released.

    Parameters
    ----------
    values : ndarray, shape (p,)
    sensitivity : float
        Of each score.
    """

    __slots__ = ("__values", "k", "sensitivity")

    def __init__(self, values: np.ndarray, sensitivity: float, k: int):
        self.__values, self.sensitivity, self.k = values, sensitivity, k

    def released(self, events: Iterator[Event], normal: Any) -> np.ndarray:
        """Places of the k largest scores with Gumbel noise, largest first, (k, L).

        Raises
        ------
        UndeclaredError
            As for ``Secret``.
        """
        event = taken(events, TopK)
        require("sensitivity", self.sensitivity, event.sensitivity)
        require("k", self.k, event.k)
        noise = normal(event.scale, len(self.__values), law=gumbel)
        order = np.argsort(-(self.__values[:, None] + noise), axis=0)
        return order[: self.k].astype(float)


def require(name: str, found: Any, stated: float) -> None:
    """Refuse a run that needs more than its ledger states.

    Raises
    ------
    UndeclaredError
    """
    if not np.all(found <= stated * (1 + ROUNDING)):
        raise UndeclaredError(
            f"{name}: the ledger states {stated:g}, the run has {np.max(found):g}"
        )


def taken(events: Iterator[Event], kind: type[Event]) -> Any:
    """Take the next event, which must be of a kind.

    Raises
    ------
    UndeclaredError
    """
    event = next(events, None)
    if type(event) is not kind:
        found = "no more" if event is None else f"a {type(event).__name__}"
        raise UndeclaredError(
            f"the run makes a release of kind {kind.__name__}, its ledger: {found}"
        )
    return event


def in_rounds(ledger: Ledger) -> Iterator[Event]:
    """Yield releases one by one: the events in order, repeated up to their counts."""
    for done in range(max(event.count for event in ledger.events)):
        yield from (event for event in ledger.events if event.count > done)


def symmetric_noise(drawn: np.ndarray, p: int) -> np.ndarray:
    """Symmetric matrices of noise that is isotropic in (q_ii, sqrt(2) q_ij).

    Off the diagonal the scale is 1 / sqrt(2) of that on it, so that privacy depends on
    the Frobenius norm of a change.

    Parameters
    ----------
    drawn : ndarray, shape (p (p + 1) / 2, L)

    Returns
    -------
    ndarray, shape (L, p, p)
    """
    rows, columns = np.triu_indices(p)
    scaled = np.where(rows == columns, 1.0, np.sqrt(0.5))[:, None] * drawn
    noise = np.zeros((drawn.shape[1], p, p))
    noise[:, rows, columns] = scaled.T
    noise[:, columns, rows] = scaled.T
    return noise


def isometric(whole: np.ndarray) -> np.ndarray:
    """Coordinates of symmetric matrices (L, p, p) with the Frobenius norm; (k, L)."""
    rows, columns = np.triu_indices(whole.shape[1])
    factors = np.where(rows == columns, 1.0, np.sqrt(2.0))
    return factors[:, None] * whole[:, rows, columns].T
