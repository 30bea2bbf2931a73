r"""Root mean squares of columns, and of labels, from one noisy histogram.

Every number that is not zero falls into a cell: that of the power of two which is the
nearest in its logarithm, from :math:`2^{-48}` to :math:`2^{48}`; what lies beyond falls
into the last cell on its side. The counts of all cells of all :math:`k` columns are
released together with Gaussian noise. They are whole numbers, so that no rounding moves
them.

*Sensitivity.* A record is in one cell of each column, or in none of it. Replacing it
takes 1 from one cell of each column and adds 1 to one other, which moves the counts by
:math:`\sqrt{2k}` at most in the Euclidean norm. Adding or removing it moves at most one
cell of each column by 1, together :math:`\sqrt{k}`. Both are attained. ∎ So the release
is a Gaussian mechanism, and composes exactly with the others. The levels of a category
count as one column: a record is 1 in one of them and 0 in the others.

The columns' root mean squares are post-processing of the counts. A column is *seen*
where three neighbouring cells hold more than the noise of all cells of all columns
explains: a rare column that is taken for one of :math:`2^{-40}` would have a weight of
:math:`10^{12}`. Another gets the largest scale that was seen. At equal cost this comes
nearer to the root mean square than the exponential mechanism for the median, which
cannot see a column that is zero in half of the records.

A fit divides columns and labels by what is released, and goes on as if 1 had been
declared: what its solver releases, and what that costs, does not depend on the scales.
Adaptive composition needs that.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit
from numpy.random import PCG64, Generator, SeedSequence
from scipy import sparse, stats

from dperm.core.calibrations import STRICT
from dperm.core.compiled import KERNEL
from dperm.core.privacy.calibration import calibrate
from dperm.core.privacy.ledger import Gaussian, Ledger
from dperm.core.privacy.mechanisms import STREAMS, gaussian
from dperm.solvers.exact_noise import Exact
from dperm.solvers.fits.secret import Normal, Secret

OCTAVES = np.arange(-48, 49)  # the exponents of the cells
SHARES = (0.01, 0.3)  # of the squared budget, the least and the most
CLEAR = 40.0  # n / (sqrt(k) times the noise of a count over its sensitivity) to pay for
FALSE = 1e-3  # chance that any cell of a fit's features, or labels, stands out by noise
_LOWEST = int(OCTAVES[0])
_SIZE = 2**63 - 1  # the bits of a double but for its sign
_CARRY = 2**52 - (int(np.float64(2 * math.sqrt(0.5)).view(np.int64)) & (2**52 - 1))


def share(k: int, n: int, epsilon: float, delta: float) -> float:
    """Of the squared budget, what the scales of k columns of n records cost.

    As little as makes the noise 40 times smaller than n, between 0.01 and 0.3: nothing
    but public numbers decides it.
    """
    multiplier = whole(epsilon, delta)
    return float(np.clip((CLEAR * math.sqrt(k) * multiplier / n) ** 2, *SHARES))


def ledger(k: int, n: int, epsilon: float, delta: float) -> Ledger:
    """The release of k columns' counts, within a target that others share."""
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


def whole(epsilon: float, delta: float) -> float:
    """Noise multiplier of one Gaussian release with the whole budget."""

    def one(multiplier: float) -> Ledger:
        return Ledger((Gaussian(1.0, multiplier, 1, "", ""),))

    return calibrate(one, epsilon, delta, STRICT).noise_multiplier


def noisy_counts(
    columns: Sequence[Any], stated: Ledger, normal: Normal | Exact, k: int | None = None
) -> np.ndarray:
    """Counts of the cells of all columns with a ledger's noise, (k, cells).

    Parameters
    ----------
    columns : sequence of arrays (n, p), dense or sparse
        Finite.
    stated : Ledger
        Of ``ledger``.
    normal : callable
        Gaussian noise of a scale and size, (size, 1); or noise for release.
    k : int, optional
        Columns that a record is in, the levels of a category as one; None: all.

    Raises
    ------
    UndeclaredError
        If the ledger states a smaller sensitivity.
    """
    counts = np.concatenate([histogram(each) for each in columns])
    k = len(counts) if k is None else k
    secret = Secret(counts.reshape(-1, 1), math.sqrt(2 * k), error=0.0)
    return secret.released(iter(stated.events), normal).reshape(len(counts), -1)


def seeded(seed: int) -> Normal:
    """Noise for the counts from a fit's seed, apart from that of its solver."""
    rng = Generator(PCG64(SeedSequence(seed, spawn_key=(len(STREAMS),))))

    def normal(scale: Any, size: int) -> np.ndarray:
        return scale * gaussian(rng, (size, 1))

    return normal


def divided(X: Any, scales: np.ndarray) -> Any:
    """X (n, k), dense or sparse, with each column over its scale."""
    if sparse.issparse(X):
        return sparse.csc_array(X @ sparse.diags_array(1 / scales))
    return X / scales


def histogram(columns: Any) -> np.ndarray:
    """Numbers of entries in the cells, (k, cells); zeros are in none.

    Parameters
    ----------
    columns : ndarray (n, k), sparse array, or a function that adds up histograms
        Finite.
    """
    if callable(columns):
        total: np.ndarray = columns(histogram)
        return total
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
    """Add numbers (n, k), of which these are the bits, to the counts of their cells."""
    for i in range(bits.shape[0]):
        for j in range(bits.shape[1]):
            size = bits[i, j] & _SIZE
            if size:  # the exponent, one more from sqrt(2) on
                cell = ((size + _CARRY) >> 52) - 1023 - _LOWEST
                found[j, min(max(cell, 0), found.shape[1] - 1)] += 1


def scales(
    noisy: np.ndarray, stated: Ledger, n: int, label: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Root mean squares of n records' columns by noisy counts, and which were seen.

    Where no three neighbouring cells stand out it is the largest that was seen, which
    cannot give the column too much weight, or 1 if none was. With ``label`` the last
    row is the labels', which have a unit of their own. Both have shape (k,).
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


def shares(noisy: np.ndarray, stated: Ledger, n: int) -> np.ndarray:
    """Root mean squares of n records' columns of zeros and ones, (k,).

    At least that of as many ones as the noise has as its standard deviation, so that
    a level that the noise hides does not count as one without records.
    """
    ones = noisy[:, OCTAVES == 0][:, 0]
    return np.sqrt(np.clip(ones, stated.events[0].scale, n) / n)
