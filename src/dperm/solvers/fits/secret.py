"""What was read off the records and is not yet hidden: no method can look into it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dperm.accountants.chained import Chained
from dperm.accountants.perturbed_objective import PerturbedObjective
from dperm.accountants.sketch import GaussianSketch
from dperm.accountants.top_k import TopK
from dperm.core.privacy.ledger import Event, Gaussian, Ledger, SampledGaussian
from dperm.core.privacy.mechanisms import gumbel
from dperm.solvers.exact_noise import Exact

ROUNDING = 1e-9  # relative, by which a sensitivity may exceed the ledger's
Normal = Callable[[Any, int], np.ndarray]  # Gaussian noise of a scale and size, (k, L)


class UndeclaredError(ValueError):
    """A run releases what its ledger does not state: nothing of it is released."""


class Secret:
    """A value that replacing a record moves by a known distance at most.

    Parameters
    ----------
    value : float or ndarray, (), (p,), (1, L), (p, L), or symmetric (p, p)
        Or a callable without arguments, which is called when it is released.
    sensitivity : float or ndarray (L,)
        In the Euclidean, or Frobenius, norm.
    batch : (int, int), optional
        Records that were drawn, of how many.
    error : float, optional
        How far the value may be from the exact one, in that norm. Without a bound it
        gets no exact noise.
    """

    __slots__ = ("__value", "batch", "error", "sensitivity", "symmetric", "unit")

    def __init__(
        self,
        value: Any,
        sensitivity: Any,
        batch: tuple[int, int] | None = None,
        symmetric: bool = False,
        error: float | None = None,
    ):
        self.__value = value
        self.error = error
        self.sensitivity, self.batch, self.symmetric = sensitivity, batch, symmetric
        self.unit: Any = 1.0

    def __read(self) -> np.ndarray:
        if callable(self.__value):
            self.__value = self.__value()
        return np.asarray(self.__value, dtype=float)

    def in_its_unit(self) -> Secret:
        """The same, for an event of sensitivity 1 in units of the secret's own."""
        self.unit = self.sensitivity
        return self

    def plus(self, other: Secret, weight: float) -> Secret:
        """The sum with a multiple of another, which a record moves as well."""

        def value() -> np.ndarray:
            found: np.ndarray = self.__read() + weight * other.__read()
            return found

        return Secret(value, self.sensitivity + abs(weight) * other.sensitivity)

    def sketched(self, rows: int, known: np.ndarray) -> Sketched:
        """Normal rows with these second moments as covariance, and what they lack.

        Parameters
        ----------
        known : ndarray, shape (L,)
            Below the smallest eigenvalue of the moments that two data sets share.
        """
        reach = float(np.sqrt(self.sensitivity / np.sqrt(2)))
        return Sketched(self.__read(), reach, rows, known)

    def released(self, events: Iterator[Event], normal: Normal | Exact) -> np.ndarray:
        """The value with the noise of the next event, (k, L) or (L, k, k).

        Raises UndeclaredError if there is no further event, or it is one of another
        kind, of a smaller sensitivity, or of another batch.
        """
        event = taken(events, SampledGaussian if self.batch else Gaussian)
        require("sensitivity", self.sensitivity / self.unit, event.sensitivity)
        if self.batch:
            require("batch", self.batch[0], event.batch)
            require("1 / records", 1 / self.batch[1], 1 / event.population)
        scale, found = event.scale * self.unit, self.__read()
        if isinstance(normal, Exact):
            if self.error is None or self.batch:
                raise UndeclaredError("exact noise: no bound on the error of doubles")
            how = (event.sensitivity * self.unit, self.error, self.symmetric)
            return normal.added(found, scale, *how)
        if self.symmetric:
            p = len(found)
            return found + symmetric_noise(normal(scale, p * (p + 1) // 2), p)
        value = found if found.ndim > 1 else found.reshape(-1, 1)
        return value + normal(scale, len(value))


class Sketched:
    """Second moments as seen through normal rows, whose covariance they are.

    Parameters
    ----------
    moments : ndarray, shape (p, p)
    reach : float
        R on a record.
    known : ndarray, shape (L,)
    """

    __slots__ = ("__moments", "known", "reach", "rows")

    def __init__(self, moments: np.ndarray, reach: float, rows: int, known: np.ndarray):
        self.__moments, self.reach, self.rows, self.known = moments, reach, rows, known

    def released(self, events: Iterator[Event], normal: Normal) -> np.ndarray:
        """Mean of y y^T over the rows y ~ N(0, moments + what is added), (L, p, p).

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
        Of the linear terms (p, L) and their scale; the minimisers (p, L), and how far
        beyond ``off`` what is computed may be from those for continuous terms.
    size : int
        p.
    reach, curvature : float
        R on a record, and R^2 / Lambda.
    off : float
        How far from the minimiser what is computed may be, if noise of a second event
        hides that; 0 if it is taken for the minimiser.
    certified : bool
        Whether that is certified, so that it may get noise for release.
    """

    __slots__ = ("__minimise", "certified", "curvature", "off", "reach", "size")

    def __init__(
        self,
        minimise: Callable[[np.ndarray, float], tuple[np.ndarray, float]],
        size: int,
        reach: float,
        curvature: float,
        off: float = 0.0,
        certified: bool = False,
    ):
        self.__minimise, self.size, self.certified = minimise, size, certified
        self.reach, self.curvature, self.off = reach, curvature, off

    def released(self, events: Iterator[Event], normal: Normal | Exact) -> np.ndarray:
        """The minimiser for a linear term of the next event's noise; (p, L).

        Raises
        ------
        UndeclaredError
            As for ``Secret``.
        """
        event = taken(events, PerturbedObjective)
        require("2 R", 2 * self.reach, event.sensitivity)
        require("R^2 / Lambda", self.curvature, event.curvature)
        exact = isinstance(normal, Exact)
        if exact and not (self.off and self.certified):
            raise UndeclaredError("exact noise: no bound on the error of the minimiser")
        term = normal.tilt if isinstance(normal, Exact) else normal
        found, error = self.__minimise(term(event.scale, self.size), event.scale)
        if not self.off:
            return found
        digits = taken(events, Gaussian)
        require("2 tau / Lambda", 2 * self.off, digits.sensitivity)
        if isinstance(normal, Exact):
            how = (digits.scale, digits.sensitivity, error, False)
            return normal.added(found, *how)
        return found + normal(digits.scale, self.size)


class Inside:
    """Steps that draw noise of their own, and of which the end alone is released.

    Parameters
    ----------
    run : callable
        Of the noise of all steps (k, L); what is released, (m, L).
    size : int
        k.
    needs : Chained
        What the steps cost, but for the scale.
    """

    __slots__ = ("__run", "needs", "size")

    def __init__(
        self, run: Callable[[np.ndarray], np.ndarray], size: int, needs: Chained
    ):
        self.__run, self.size, self.needs = run, size, needs

    def released(self, events: Iterator[Event], normal: Normal) -> np.ndarray:
        """The end of the steps, with noise of the next event's scale in each.

        Raises
        ------
        UndeclaredError
            As for ``Secret``.
        """
        event = taken(events, type(self.needs))
        require("sensitivity", self.needs.sensitivity, event.sensitivity)
        require("growth over the steps", self.needs.growth, event.growth)
        return self.__run(normal(event.scale, self.size))


class Scores:
    """Scores of features, of which the places of the largest are told.

    Parameters
    ----------
    values : ndarray, shape (p,)
    sensitivity : float
        Of each.
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
    """The next event, of a kind.

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
    """The releases one by one: the events in their order, again while any is left."""
    for done in range(max(event.count for event in ledger.events)):
        yield from (event for event in ledger.events if event.count > done)


def symmetric_noise(drawn: np.ndarray, p: int) -> np.ndarray:
    """Symmetric matrices of noise that is isotropic in (q_ii, sqrt(2) q_ij).

    Off the diagonal the scale is 1 / sqrt(2) of that on it, so that the noise is hidden
    by the Frobenius norm of a change.

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
    """Coordinates of symmetric matrices (L, p, p) whose norm is Frobenius'; (k, L)."""
    rows, columns = np.triu_indices(whole.shape[1])
    factors = np.where(rows == columns, 1.0, np.sqrt(2.0))
    return factors[:, None] * whole[:, rows, columns].T
