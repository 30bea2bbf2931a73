r"""Root mean squares of columns, and of labels, from one noisy histogram.

Every number that is not zero falls into a cell, that of the power of two nearest in its
logarithm, from :math:`2^{-48}` to :math:`2^{48}`. Numbers beyond fall into the last
cell on their side. The counts of all cells of all :math:`k` columns are released
together with Gaussian noise. They are whole numbers, which doubles hold exactly.

*Sensitivity.* A record is in one cell of each column, or in none of it. Replacing it
takes 1 from one cell of each column and adds 1 to one other, which moves the counts by
:math:`\sqrt{2k}` at most in the Euclidean norm. This is attained. ∎ So the release is a
Gaussian mechanism, and composes exactly with the others.

The columns' root mean squares are post-processing of the counts. A column is *seen*
where three neighbouring cells hold more than the noise of all cells of all columns
explains. Otherwise a rare column could be taken for one of scale :math:`2^{-40}`, and
get a weight of :math:`10^{12}`. A column that is not seen gets the largest scale that
was seen. At equal cost this comes nearer to the root mean square than the exponential
mechanism for the median, which cannot see a column that is zero in half of the records.

A run of ``dperm try`` divides columns and labels by the released scales, and proceeds
as if scales of 1 had been declared. So neither its solver's releases nor their cost
depend on the scales, which adaptive composition requires.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit
from scipy import sparse, stats

from dperm.core.compiled import KERNEL
from dperm.core.privacy.ledger import Gaussian, Ledger
from dperm.solvers.exact_noise import Exact
from dperm.solvers.fits.secret import Normal, noisy
from dperm.solvers.fits.secret import seeded as seeded
from dperm.solvers.fits.secret import whole as whole

OCTAVES = np.arange(-48, 49)  # the exponents of the cells
SHARES = (0.01, 0.3)  # least and largest share of the squared budget
CLEAR = 40.0  # target of n over sqrt(k) times the noise multiplier
FALSE = 1e-3  # chance that noise alone lifts any cell of features, or of labels
_LOWEST = int(OCTAVES[0])
_SIZE = 2**63 - 1  # mask: the bits of a double without its sign
_CARRY = 2**52 - (int(np.float64(2 * math.sqrt(0.5)).view(np.int64)) & (2**52 - 1))


def share(k: int, n: int, epsilon: float, delta: float) -> float:
    """Share of the squared budget for the scales of k columns of n records.

    The least, between 0.01 and 0.3, for which n is 40 sqrt(k) times the release's noise
    multiplier. It depends on public numbers only.
    """
    multiplier = whole(epsilon, delta)
    return float(np.clip((CLEAR * math.sqrt(k) * multiplier / n) ** 2, *SHARES))


def ledger(k: int, n: int, epsilon: float, delta: float) -> Ledger:
    """The release of the counts of k columns, for its share of the budget."""
    moved = math.sqrt(2 * k)
    part = math.sqrt(share(k, n, epsilon, delta))
    event = Gaussian(
        sensitivity=moved,
        scale=moved * whole(epsilon, delta) / part,
        count=1,
        unit="sqrt(2 k), the replace-one change of counts of k columns",
        source="proved in dperm.solvers.private_scales",
    )
    return Ledger((event,))


def noisy_counts(
    columns: Sequence[Any], stated: Ledger, normal: Normal | Exact
) -> np.ndarray:
    """Counts of the cells of all columns with a ledger's noise, (k, cells).

    Parameters
    ----------
    columns : sequence of arrays (n, p), dense or sparse
        Finite.
    stated : Ledger
        Made by ``ledger``.
    normal : callable
        From a scale and size to Gaussian noise, (size, 1); or noise for release.

    Raises
    ------
    UndeclaredError
        If the ledger states a smaller sensitivity.
    """
    counts = np.concatenate([histogram(each) for each in columns])
    moved = math.sqrt(2 * len(counts))
    secret = noisy(counts.reshape(-1, 1), moved, error=0.0)
    return secret.released(iter(stated.events), normal).reshape(len(counts), -1)


def divided(X: Any, scales: np.ndarray) -> Any:
    """X (n, k), dense or sparse, with each column divided by its scale."""
    if sparse.issparse(X):
        return sparse.csc_array(X @ sparse.diags_array(1 / scales))
    return X / scales


def histogram(columns: Any) -> np.ndarray:
    """Number of entries in each cell, (k, cells); zeros are in none.

    Parameters
    ----------
    columns : ndarray (n, k) or sparse array
        Finite.
    """
    found = np.zeros((columns.shape[1], len(OCTAVES)))
    if sparse.issparse(columns):
        columns = sparse.csc_array(columns)
        for j, (low, high) in enumerate(itertools.pairwise(columns.indptr)):
            _count(columns.data[low:high, None].view(np.int64), found[j : j + 1])
    else:
        values = np.ascontiguousarray(columns, dtype=np.float64)
        _count(values.view(np.int64), found)
    return found


@njit(**KERNEL)
def _count(bits, found):
    """Add numbers (n, k), passed as bits, to the counts of their cells."""
    for i in range(bits.shape[0]):
        for j in range(bits.shape[1]):
            size = bits[i, j] & _SIZE
            if size:  # the exponent, rounded up from sqrt(2) on
                cell = ((size + _CARRY) >> 52) - 1023 - _LOWEST
                found[j, min(max(cell, 0), found.shape[1] - 1)] += 1


def scales(
    noisy: np.ndarray, stated: Ledger, n: int, label: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Root mean squares of n records' columns by noisy counts, and which were seen.

    A column without three neighbouring cells that stand out gets the largest that was
    seen, or 1 if none was; this cannot give the column too much weight. With ``label``
    the last row is that of the labels, which have their own unit. Both results have
    shape (k,).
    """
    chance = np.full((len(noisy), 1), FALSE / noisy.size)
    if label:
        chance[-1] = FALSE / noisy.shape[1]
    clear = stated.events[0].scale * stats.norm.isf(chance)
    wide = np.pad(noisy, ((0, 0), (1, 1)))
    three = wide[:, :-2] + wide[:, 1:-1] + wide[:, 2:]
    top = three.argmax(axis=1)[:, None]
    near = np.abs(np.arange(len(OCTAVES)) - top) <= 1
    kept = np.where(near | (noisy >= clear), np.maximum(noisy, 0.0), 0.0)
    found = np.sqrt(kept @ 4.0**OCTAVES / n)
    found[three.max(axis=1) <= math.sqrt(3) * clear[:, 0]] = 0.0
    seen = found > 0
    for unit in np.split(found, [len(found) - label]):
        unit[unit == 0] = unit.max(initial=0.0) or 1.0
    return found, seen
