"""A record's contribution: cleaned, scaled, clipped, and checked.

Every sum over records that the family ``full_batch`` releases is computed here. A
user's own solver should compute its sums here too. No single record may decide whether
a sum is a number. So a record that is not finite counts as a record of zeros, norms
neither overflow nor underflow, and a slope that is NaN counts as one at the end of its
range.

The bound behind the sensitivity is checked on every contribution. The check uses the
record's largest entry and not the norm used for clipping, so that a mistake in the
clipping stops the run and leaks nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from scipy import sparse

from dperm.numerics.compiled import KERNEL, clamp
from dperm.numerics.kernels import njit
from dperm.problems.cleaning import MAX_NORM, cleaned, lengths
from dperm.problems.problem import Problem

# Share of non-zero entries below which rows are stored sparse
SPARSE_SHARE = 0.2
_BLOCK = 1024  # columns that are made dense at a time
MANY_ROWS = 2**14  # rows of a Gram matrix that are weighted at a time
ROUNDING = 1e-9  # relative excess over its bound that a contribution may have
STEEP = 1e300  # largest slope; records of norm below C / STEEP contribute less than C


class ContributionError(ArithmeticError):
    """A record's contribution exceeds its bound: a defect of the clipping."""

    def __init__(self) -> None:
        super().__init__(
            "a record's contribution exceeds the bound that its sensitivity rests on: "
            "this is a defect of dperm; nothing was released"
        )


class Records:
    """The records of a problem in units of public scales: x / S.

    Parameters
    ----------
    problem : Problem
    S : ndarray, shape (p,), optional
        Public scales of the features; 1 if there are none.
    label : float
        Public scale of the labels.
    apart : bool
        Whether the bits of a record's slope are independent of its position and of the
        other records, as noise for release requires. Slower.

    Attributes
    ----------
    rows : ndarray (n, p) in C order, or CSR array where most entries are zero
        Records over S, with zeros for a record that is not finite then.
    norms, largest : ndarray, shape (n,)
        Their Euclidean norms, and their largest absolute entries.
    offset : ndarray, shape (n, 1)
        Margins at 0.
    labels : ndarray, shape (n,)
        Labels over their scale.
    """

    def __init__(
        self,
        problem: Problem,
        S: np.ndarray | None = None,
        label: float = 1.0,
        apart: bool = False,
        own: bool = False,
    ):
        self.loss = problem.loss
        self.apart = apart
        self.own = own
        self._kept = dict[Any, Any]()
        with np.errstate(all="ignore"):
            rows = _scaled(problem, S, apart, own)
            self.rows, offset = cleaned(rows, problem.offset)
            self.norms = norms(self.rows)
            self.largest = _largest(self.rows)
            if apart:
                self.entries = _entries(self.rows)
                self.norms = _norms_apart(self.largest, *self.entries)
            self.labels = bounded(-offset / label, STEEP)
        self.offset = offset[:, None]

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.norms)

    def kept(self, key: Any, make: Callable[[], Any]) -> Any:
        """The value stored under a key, made now if there is none."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def clipped(self, radius: float) -> Any:
        """Records in the ball of a radius; see ``contributions``."""

        def clip() -> Any:
            return contributions(self.rows, self.norms, radius, self.largest)

        return self.kept(("clipped", radius), clip)

    def hold_clipped(self, radius: float) -> None:
        """Hold records clipped to a radius alone, in place of the rows if they are own.

        For methods that read nothing else: there are no other rows afterwards.
        """
        key = ("clipped", radius)
        if (
            self.own
            and key not in self._kept
            and not sparse.issparse(self.rows)
        ):
            rows = self.rows
            del self.rows
            self._kept[key] = contributions(
                rows, self.norms, radius, self.largest, own=True
            )

    def slopes(self, margins: np.ndarray) -> np.ndarray:
        """Slopes phi' at margins of any shape, within the loss's bound if any."""
        flat = self.loss.derivatives(np.ascontiguousarray(margins).ravel())
        slopes = flat.reshape(margins.shape)
        steepest = self.loss.lipschitz(np.inf)
        return bounded(slopes, steepest) if steepest < np.inf else slopes

    def second(self, margins: np.ndarray) -> np.ndarray:
        """Second derivatives phi'' at margins of any shape, in [0, sup phi'']."""
        curvatures = self.loss.second(np.ascontiguousarray(margins).ravel())
        inside = np.where(
            curvatures > 0, np.minimum(curvatures, self.loss.curvature), 0.0
        )
        return inside.reshape(margins.shape)

    def clipped_slopes(
        self, u: np.ndarray, C: Any, chosen: Any = ..., rows: Any = None
    ) -> np.ndarray:
        """Slopes a_i with ||a_i x_i|| <= C at u (p,) or (p, L), of some records.

        ``rows`` are the rows of these records, if they are known already.

        Raises
        ------
        ContributionError
        """
        rows = self._some(chosen) if rows is None else rows
        with np.errstate(all="ignore"):
            if self.apart:  # all records
                products = _products(
                    *self.entries, u.ravel(), np.empty(self.n)
                )
                products = products.reshape(-1, *u.shape[1:])
            else:
                products = rows @ u
            margins = products + self._offset(u)[chosen]
        return self._within(
            margins, np.full(margins.size // len(margins), C), chosen
        )

    def _within(
        self, margins: np.ndarray, C: np.ndarray, chosen: Any
    ) -> np.ndarray:
        """Slopes at margins, clipped to C (L,), of some records."""
        slopes = self.loss.derivatives(np.ascontiguousarray(margins).ravel())
        sizes = (self.norms[chosen], self.largest[chosen])
        if not _clip(
            slopes.reshape(len(margins), -1), *sizes, C, STEEP, 1 + ROUNDING
        ):
            raise ContributionError
        return slopes.reshape(margins.shape)

    def gradient(self, u: np.ndarray, C: Any, chosen: Any = ...) -> np.ndarray:
        """Sum of gradients clipped to C at u (p,) or (p, L), of some records.

        C is one number, or has one for each run, (L,).
        """
        rows = self._some(chosen)
        gradient: np.ndarray = rows.T @ self.clipped_slopes(u, C, chosen, rows)
        return gradient

    def _some(self, chosen: Any) -> Any:
        return self.rows if chosen is ... else self.rows[chosen]

    def pull(self, u: np.ndarray, radius: float) -> np.ndarray:
        """Sum of gradients at u (p,) or (p, L) of records clipped to a radius."""
        V = self.clipped(radius)
        pull: np.ndarray = V.T @ self.slopes(V @ u + self._offset(u))
        return pull

    def hessian(self, u: np.ndarray, radius: float) -> np.ndarray:
        """Sum of Hessians at u (p,) of records clipped to a radius; (p, p)."""
        V = self.clipped(radius)
        return gram(V, self.second(V @ u + self._offset(u)))

    def curvature(self, u: np.ndarray, radius: float) -> np.ndarray:
        """Trace of the Hessians at u (p, L) of records clipped to a radius; (1, L)."""
        V = self.clipped(radius)
        bends = self.second(V @ u + self._offset(u))
        squares = np.minimum(self.norms, radius)[:, None] ** 2
        trace: np.ndarray = (bends * squares).sum(axis=0, keepdims=True)
        return trace

    def gradient_norms(self, u: np.ndarray) -> np.ndarray:
        """Norms of the records' gradients at u (p, L); (n, L), NaN if unknown."""
        sizes: np.ndarray = np.abs(
            self.slopes(self.rows @ u + self._offset(u))
        )
        return sizes * self.norms[:, None]

    def gram(self, radius: float) -> np.ndarray:
        """Sum of x x^T over records clipped to a radius; (p, p)."""
        return gram(self.clipped(radius))

    def _offset(self, u: np.ndarray) -> np.ndarray:
        """Margins at 0, for u (p,) or (p, L)."""
        return self.offset if u.ndim > 1 else self.offset[:, 0]

    def of_columns(self, columns: np.ndarray) -> Records:
        """The same records with some of their features."""

        def narrow() -> Records:
            """The records with the chosen columns alone."""
            narrowed = copy(self)
            narrowed._kept = {}
            narrowed.rows = np.ascontiguousarray(filled(self.rows[:, columns]))
            narrowed.norms = norms(narrowed.rows)
            narrowed.largest = _largest(narrowed.rows)
            return narrowed

        return self.kept(("columns", *columns.tolist()), narrow)

    def moments(self, C: float, weight: float) -> np.ndarray:
        """Sum of t t^T with t = (x, weight y) clipped to C; shape (p + 1, p + 1)."""
        rows = self.rows
        y = weight * self.labels
        p = self.rows.shape[1]
        with np.errstate(all="ignore"):
            size = np.hypot(self.norms, y)
            if not (size <= MAX_NORM).all():
                # their squares might overflow: clip them first
                drawn_in = np.where(size <= MAX_NORM, 1.0, C / size)
                rows = _weighted(rows, drawn_in)
                y = drawn_in * y
                size = np.hypot(norms(rows), y)
            inside = np.minimum(1.0, C / np.maximum(size, 1 / STEEP))
        check(np.maximum(_largest(rows), np.abs(y)), inside, C)
        squares = inside**2
        moments = np.empty((p + 1, p + 1))
        moments[:p, :p] = gram(rows, squares)
        moments[:p, p] = moments[p, :p] = rows.T @ (squares * y)
        moments[p, p] = squares @ y**2
        return moments


def contributions(
    rows: Any,
    sizes: np.ndarray,
    radius: float,
    largest: np.ndarray | None = None,
    own: bool = False,
) -> Any:
    """Clip finite rows, dense or CSR, of known Euclidean norms to a radius.

    A row whose norm overflows, and so is infinite, becomes 0. ``largest`` are the rows'
    largest entries, where they are known. ``own`` dense rows are clipped in place.

    Raises ContributionError if a clipped row is still longer than the radius.
    """
    inside = np.minimum(1.0, radius / np.maximum(sizes, 1 / STEEP))
    check(_largest(rows) if largest is None else largest, inside, radius)
    if own and not sparse.issparse(rows):
        return np.multiply(rows, inside[:, None], out=rows)
    return _weighted(rows, inside)


def _weighted(rows: Any, factors: np.ndarray) -> Any:
    """Rows (n, p) times their factors (n,)."""
    if sparse.issparse(rows):
        return (sparse.diags_array(factors) @ rows).tocsr()
    return rows * factors[:, None]


def norms(rows: Any) -> np.ndarray:
    """Euclidean norms of the rows, (n,)."""
    if sparse.issparse(rows):
        return lengths(
            rows, np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        )
    return lengths(rows, np.einsum("ij,ij->i", rows, rows))


def bounded(slopes: np.ndarray, most: float) -> np.ndarray:
    """Slopes clamped to a bound; NaN becomes minus the bound."""
    return np.clip(np.where(np.isnan(slopes), -most, slopes), -most, most)


def check(largest: np.ndarray, factors: np.ndarray, bound: float) -> None:
    """Refuse factors (n,) that take a record's largest entry over the bound.

    Raises
    ------
    ContributionError
    """
    if not (np.abs(factors) * largest <= bound * (1 + ROUNDING)).all():
        raise ContributionError


@njit(**KERNEL)
def _clip(slopes, norms, largest, bounds, most, margin):
    """Clip slopes (n, L) in place to each setting's bound; whether that worked."""
    within = True
    for i in range(slopes.shape[0]):
        for setting in range(slopes.shape[1]):
            steepest = bounds[setting] / norms[i]
            slope = clamp(
                slopes[i, setting], steepest if steepest < most else most
            )
            slopes[i, setting] = slope
            within &= abs(slope) * largest[i] <= bounds[setting] * margin
    return within


def gram(V: Any, weights: np.ndarray | None = None) -> np.ndarray:
    """V^T diag(weights) V as a dense array; shape (p, p)."""
    if weights is None:
        return filled(V.T @ V)
    if sparse.issparse(V) or len(V) <= MANY_ROWS:
        return filled(V.T @ _weighted(V, weights))
    total = np.zeros((V.shape[1], V.shape[1]))
    for start in range(0, len(V), MANY_ROWS):  # no second copy of all rows
        some = slice(start, start + MANY_ROWS)
        total += V[some].T @ _weighted(V[some], weights[some])
    return total


def relevance(records: Records, real: bool) -> np.ndarray:
    """Rank statistics of features and labels, (p,): Kendall's, or Wilcoxon's for signs.

    These are the sums over pairs of records of ``Scaled.relevance``.
    """
    from scipy import stats  # other fits need none of it

    n, p = records.rows.shape
    relevances = np.empty(p)
    for start in range(0, p, _BLOCK):
        block = filled(records.rows[:, start : start + _BLOCK])
        if real:
            sums = [
                _concordant(x, records.labels) / max(n - 1, 1) for x in block.T
            ]
        else:
            ranks = stats.rankdata(np.abs(block), axis=0)
            sums = (np.sign(block) * ranks).sum(axis=0) / n
        relevances[start : start + _BLOCK] = np.abs(sums)
    return relevances


def _concordant(x: np.ndarray, y: np.ndarray) -> float:
    """Sum over pairs of sign(x_i - x_k) sign(y_i - y_k), as in Kendall's tau."""
    from scipy import stats

    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    if len(x) == 2:  # SciPy divides by their number less two
        return float(np.sign(x[1] - x[0]) * np.sign(y[1] - y[0]))
    tau = stats.kendalltau(x, y, method="asymptotic").statistic
    return float(np.rint(tau * np.sqrt(_untied_pairs(x) * _untied_pairs(y))))


def _untied_pairs(x: np.ndarray) -> float:
    """How many pairs of entries differ."""
    _, counts = np.unique(x, return_counts=True)
    tied = (counts * (counts - 1) / 2).sum()
    return float(len(x) * (len(x) - 1) / 2 - tied)


def filled(rows: Any) -> np.ndarray:
    """Rows as a dense array."""
    dense: np.ndarray = rows.toarray() if sparse.issparse(rows) else rows
    return dense


@njit(**KERNEL)
def _products(data, places, starts, u, out):
    """Write the product of each row with u (p,) to out (n,), summed by itself."""
    for i in range(out.shape[0]):
        out[i] = 0.0
        for k in range(starts[i], starts[i + 1]):
            out[i] += data[k] * u[places[k]]
    return out


def _norms_apart(
    largest: np.ndarray,
    data: np.ndarray,
    places: np.ndarray,
    starts: np.ndarray,
) -> np.ndarray:
    """Norms whose bits do not depend on a record's place, in units of its largest."""
    units = np.repeat(np.where(largest > 0, largest, 1.0), np.diff(starts))
    ones = np.ones(places.max(initial=0) + 1)
    squares = (data / units) ** 2
    return largest * np.sqrt(
        _products(squares, places, starts, ones, 0 * largest)
    )


def _entries(rows: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Entries of rows (n, p), their columns, and where each row begins and ends."""
    if sparse.issparse(rows):
        return rows.data, rows.indices, rows.indptr
    n, p = rows.shape
    places = np.tile(np.arange(p, dtype=np.int32), n)
    return np.ascontiguousarray(rows).ravel(), places, np.arange(n + 1) * p


def _scaled(
    problem: Problem, S: np.ndarray | None, as_given: bool, own: bool
) -> Any:
    """Rows over S, stored sparse if most entries are zero, unless ``as_given``.

    The choice would depend on all records. ``own`` lets them take the problem's place.
    """
    is_kept = problem.is_sparse or "rows" in vars(problem)
    rows = problem.rows if is_kept else np.ascontiguousarray(problem.A)
    filled = isinstance(rows, np.ndarray) and not as_given
    if filled and np.count_nonzero(rows) < SPARSE_SHARE * rows.size:
        rows = sparse.csr_array(rows)
    if sparse.issparse(rows):
        return (
            rows if S is None else (rows @ sparse.diags_array(1 / S)).tocsr()
        )
    if S is None:
        return rows
    is_copy = not is_kept and rows is not problem.A
    return np.divide(rows, S, out=rows if own or is_copy else None)


def _largest(rows: Any) -> np.ndarray:
    """The largest absolute entry of each row; shape (n,)."""
    if not sparse.issparse(rows):
        # no -0.0
        return np.abs(np.maximum(rows.max(axis=1), -rows.min(axis=1)))
    largest = np.zeros(rows.shape[0])
    filled = np.diff(rows.indptr) > 0
    if filled.any():
        starts = rows.indptr[:-1][filled]
        largest[filled] = np.maximum.reduceat(np.abs(rows.data), starts)
    return largest
