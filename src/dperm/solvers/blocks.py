r"""Sums over records that are read in blocks, here or by the workers of a Dask cluster.

Full-batch methods release sums over records. A record's contribution depends on that
record alone, within a bound C. Data are cut into parts, and parts into blocks:

    s = sum_k s_k,   s_k = sum of the contributions of the records of part k.

*Sensitivity.* Each record is in one part and one block. Replacing it changes its own
contribution and no other. So s moves as far as that contribution, 2 C for gradients
clipped to C, however records are cut and whichever process adds them. This requires
each part to be added exactly once. ``added`` takes the first sum that arrives for a
part. It refuses a missing part, and a sum of more or fewer records than the part has.
Parts are added in their order, so that the bits are those of one process. ∎

*Trust.* Workers read raw records and send sums without noise to the process that fits.
That process reads raw records too, a sample of about 2^22 numbers. It draws the noise
of each release once, after the parts are added. So this is central privacy: all of
these processes, their disks and the network between them are trusted, and only the
output of the fit is private. A lost worker has released nothing; its parts are added
up again from the same records.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numba import njit

from dperm.core.compiled import KERNEL
from dperm.core.erm.cleaning import FAR, lengths
from dperm.core.erm.losses import Loss, named
from dperm.core.erm.problem import Problem
from dperm.data.blocks import Part, Source
from dperm.solvers.records import Records

LARGE = 1 << 23  # entries above which an array is read in blocks
SAMPLE = 1 << 22  # entries of a sample, about


@dataclass(frozen=True)
class Blocks:
    """Records in blocks, with the clipping and scaling that a solver requires.

    A record that is not finite, or of no class, becomes one of zeros and the constant.
    """

    source: Source
    loss: str
    columns: Any  # Units: ranges to which features are clipped, and centres
    labels: Any  # the same for numeric labels
    scale: np.ndarray  # divisors of the clipped features, (p,)
    label_scale: float = 1.0
    classes: np.ndarray | None = None  # classes of other labels
    positive: Any = None  # the class coded as +1
    constant: float = 0.0  # value of a last column; 0 if there is none
    unit: float = 1.0  # scale of ``Records.labels``
    apart: bool = False  # as in ``Records``

    @property
    def shape(self) -> tuple[int, int]:
        """(n, p), the constant column included."""
        n, p = self.source.shape
        return n, p + bool(self.constant)

    def over(self, S: np.ndarray, label: float = 1.0) -> Blocks:
        """The same records, divided by further scales S, one for each column."""
        p, last = len(self.scale), self.constant
        return replace(
            self,
            scale=self.scale * S[:p],
            label_scale=self.label_scale * label,
            constant=last / float(S[p]) if last else 0.0,
        )

    def block(self, X: np.ndarray, y: np.ndarray) -> Block:
        """Records (m, p) and labels (m,) as the solver sees them."""
        loss, p = named(self.loss), len(self.scale)
        if self.classes is None:
            with np.errstate(all="ignore"):
                y = self.labels.applied(y.astype(float)) / self.label_scale
            keep = np.isfinite(y)
        else:
            keep = np.isin(y, self.classes)
            y = np.where((y == self.positive) | ~keep, 1.0, -1.0)
        signs, offset = loss.signs(y), np.where(keep, loss.offset(y), 0.0)
        rows = np.empty((len(X), p + bool(self.constant)))
        squares, largest = np.empty((2, len(X)))
        of, X = self.columns, np.ascontiguousarray(X, dtype=np.float64)
        ends = (of.low, of.high, of.centre, 1 / self.scale)
        _prepare(X, *ends, signs, rows, squares, largest)
        if not (keep.all() and (squares < FAR**2).all()):
            keep &= np.isfinite(rows[:, :p]).all(axis=1)
            rows[~keep, :p] = squares[~keep] = largest[~keep] = offset[~keep] = 0.0
            signs = np.where(keep, signs, 1.0)
        if self.constant:
            rows[:, p] = self.constant * signs
            squares += self.constant**2
            largest = np.maximum(largest, abs(self.constant))
        taken = (rows, offset, lengths(rows, squares), largest, self.unit)
        return Block(loss, self.apart, *taken)

    def each(self, function: Any, *args: Any) -> Iterator[Found]:
        """Apply a function to every part; yields part index, records read and value.

        The workers of the current Dask client do so if there is one, for data in files.
        """
        parts, client = self.source.parts, self.workers()
        if client is None:
            for k, part in enumerate(parts):
                yield k, *function(self, part, *args)
            return
        futures = {
            client.submit(function, self, part, *args, pure=False): k
            for k, part in enumerate(parts)
        }
        found = sys.modules["distributed"].as_completed([*futures], with_results=True)
        for future, (n, value) in found:
            yield futures[future], n, value

    def workers(self) -> Any:
        """The open Dask client; None if there is none, or data are in memory."""
        dask = sys.modules.get("distributed")
        if dask is not None and self.source.parts[0].path:
            with suppress(ValueError):
                return dask.Client.current()
        return None

    def total(self, function: Callable[..., Any], *args: Any) -> np.ndarray:
        """Sum of a function of a :class:`Block` over all blocks."""
        parts = self.source.parts
        found: np.ndarray = added(parts, self.each(_of_part, function, *args))
        return found


Found = tuple[int, int, Any]  # index of a part, records read, value


def added(parts: Sequence[Part], found: Iterable[Found]) -> Any:
    """The sum of the values of all parts in their order, each taken once.

    Raises OSError if a part is missing, or its number of records has changed.
    """
    values = dict[int, Any]()
    for k, n, value in found:
        if n != parts[k].n:
            raise OSError(
                f"{parts[k].path}: expected {parts[k].n} records in a part, found {n}: "
                "the data must not change during a fit; nothing was released"
            )
        values.setdefault(k, value)
    if len(values) < len(parts):
        raise OSError(f"{len(parts) - len(values)} parts of {len(parts)} are missing")
    return sum((values[k] for k in range(1, len(parts))), start=values[0])


def _of_part(
    blocks: Blocks, part: Part, function: Callable[..., Any], *args: Any
) -> tuple[int, Any]:
    """Number of records of a part, and the sum of a function over its blocks."""
    n, total = 0, 0.0
    for X, y in blocks.source.read(part):
        n, total = n + len(y), total + function(blocks.block(X, y), *args)
    return n, total


def _some_of_part(blocks: Blocks, part: Part, every: int) -> tuple[int, Any]:
    """About one in ``every`` blocks of a part, as read; small parts often have none."""
    n, kept = 0, []
    first = blocks.source.parts.index(part)
    for k, (X, y) in enumerate(blocks.source.read(part), first):
        n += len(y)
        if k % every == 0:
            kept.append((np.array(X), np.array(y)))
    return n, kept


@njit(**KERNEL)
def _prepare(X, low, high, centre, factor, signs, rows, squares, largest):
    """Write records X (m, p), clipped and scaled, squared norms and largest entries."""
    for i in range(X.shape[0]):
        total, top, sign = 0.0, 0.0, signs[i]
        for j in range(X.shape[1]):
            x = X[i, j]
            x = low[j] if x < low[j] else x
            x = high[j] if x > high[j] else x
            x = (x - centre[j]) * factor[j]
            rows[i, j] = sign * x
            total += x * x
            top = max(top, abs(x))
        squares[i], largest[i] = total, top


class Block(Records):
    """The records of one block."""

    def __init__(self, loss: Loss, apart: bool, *taken: Any):
        self.loss, self.apart, self._kept = loss, apart, {}
        self._take(*taken)


def of_rows(records: Records, function: Callable[[Any], np.ndarray]) -> np.ndarray:
    """Apply a function to the rows of a block."""
    return function(records.rows)


def of_labels(records: Records, function: Callable[[Any], np.ndarray]) -> np.ndarray:
    """Apply a function to the labels of a block, as a column."""
    return function(records.labels[:, None])


class Blocked(Records):
    """All records; their sums are taken block by block."""

    def __init__(self, blocks: Blocks):
        self.loss, self._kept, self.blocks = named(blocks.loss), {}, blocks
        self.apart = blocks.apart

    @property
    def n(self) -> int:
        """Number of records."""
        return self.blocks.shape[0]

    def gradient(self, u: np.ndarray, C: float, some: Any = ...) -> np.ndarray:
        """Sum of gradients clipped to C at u (p,) or (p, L), of all records.

        Raises ValueError if only some records are requested.
        """
        if some is not ...:
            raise ValueError("records in blocks have no batches")
        return self.blocks.total(Records.gradient, u, C)

    def gradients(self, u: np.ndarray, C: np.ndarray) -> np.ndarray:
        """See :class:`Records`; one column at a time."""
        return np.hstack([self.gradient(u[:, [k]], c) for k, c in enumerate(C)])

    def pull(self, u: np.ndarray, radius: float) -> np.ndarray:
        """See :class:`Records`."""
        return self.blocks.total(Records.pull, u, radius)

    def hessian(self, u: np.ndarray, radius: float) -> np.ndarray:
        """See :class:`Records`."""
        return self.blocks.total(Records.hessian, u, radius)

    def gram(self, radius: float) -> np.ndarray:
        """See :class:`Records`."""
        return self.blocks.total(Records.gram, radius)

    def moments(self, C: float, weight: float) -> np.ndarray:
        """See :class:`Records`."""
        return self.blocks.total(Records.moments, C, weight)

    def sample(self) -> Records:
        """Evenly spaced blocks, of about 2^22 entries in all."""
        blocks, (n, p) = self.blocks, self.blocks.shape
        every = -(-n * p // SAMPLE)
        pairs = added(blocks.source.parts, blocks.each(_some_of_part, every))
        X, y = (np.concatenate(some) for some in zip(*pairs, strict=True))
        return blocks.block(X, y)


class Large(Problem):
    """A problem whose A is :class:`Blocks`, for full-batch methods."""

    def __post_init__(self) -> None:
        """Skip cleaning: records are cleaned when they are read."""
