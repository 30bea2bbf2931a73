"""Columns of A, as kernels of coordinate methods read them.

A kernel is written once, for a tile of settings with margins V (n, settings), and calls
the functions of the first section: those of dense columns. :func:`compiled` pastes
those of the problem's storage and loss in their place. A dense column is read for one
setting, whose records are the vectors; an entry of a sparse one is read once for all
settings of a tile.
"""

from __future__ import annotations

import functools
from typing import Any

from dperm.numerics.compiled import (
    LAST_SUMS,
    PASTED,
    RUNNING_SUMS,
    clamp,
    filled,
    fold,
    fused,
    running,
)
from dperm.numerics.kernels import njit
from dperm.problems.losses import derivative
from dperm.problems.problem import Problem

# --- dense columns, one setting in a tile ---------------------------------------------


@njit(**PASTED)
def setting_count(values):
    """Settings of an array whose last axis they are; a constant where there is one."""
    return 1


@njit(**PASTED)
def slopes(V, d):
    """Write phi' at the margins V to d, both (n, settings)."""
    v = V.reshape(V.size)
    derivatives = d.reshape(d.size)
    for i in range(v.shape[0]):
        derivatives[i] = derivative(v[i])


@njit(**PASTED)
def clipped_sums(A, j, d, clip, share, totals):
    """Write each setting's sum over records of phi' x_ij to out (settings,).

    A record's term is clipped to the setting's clip * share; d (n, settings) is phi'.
    """
    column = A[0][:, j]
    steep = d.reshape(d.size)
    bound = clip[0] * share
    partial_sums = running()
    n = steep.shape[0]
    for start in range(0, n & -RUNNING_SUMS, RUNNING_SUMS):
        for u in range(RUNNING_SUMS):
            partial_sums[u] += clamp(
                column[start + u] * steep[start + u], bound
            )
    for start in range(n & -RUNNING_SUMS, n & -LAST_SUMS, LAST_SUMS):
        for u in range(LAST_SUMS):
            partial_sums[u] += clamp(
                column[start + u] * steep[start + u], bound
            )
    for i in range(n & -LAST_SUMS, n):
        partial_sums[0] += clamp(column[i] * steep[i], bound)
    totals[0] = fold(partial_sums)


@njit(**PASTED)
def moved(A, j, move, V):
    """Add each setting's move * column j to its margins."""
    # move[0] is read before the loop, which has no vectors otherwise
    column = A[0][:, j]
    v = V.reshape(V.size)
    by = move[0]
    for i in range(v.shape[0]):
        v[i] = fused(by, column[i], v[i])


@njit(**PASTED)
def moved_apart(A, columns, move, V):
    """As ``moved``, with a column of its own in each setting."""
    moved(A, columns[0], move, V)


@njit(**PASTED)
def sums_after(A, previous, move, V, d, j, clip, share, totals):
    """``moved`` by column ``last``, then ``clipped_sums`` of j at the new margins.

    Here one pass over the records, which neither reads nor writes d.
    """
    before = A[0][:, previous]
    column = A[0][:, j]
    v = V.reshape(V.size)
    by = move[0]
    bound = clip[0] * share
    partial_sums = running()
    n = V.size
    for start in range(0, n & -RUNNING_SUMS, RUNNING_SUMS):
        for u in range(RUNNING_SUMS):
            partial_sums[u] += _term(before, by, column, v, bound, start + u)
    for start in range(n & -RUNNING_SUMS, n & -LAST_SUMS, LAST_SUMS):
        for u in range(LAST_SUMS):
            partial_sums[u] += _term(before, by, column, v, bound, start + u)
    for i in range(n & -LAST_SUMS, n):
        partial_sums[0] += _term(before, by, column, v, bound, i)
    totals[0] = fold(partial_sums)


@njit(**PASTED)
def _term(before, by, column, v, bound, i):
    v[i] = fused(by, before[i], v[i])
    return clamp(column[i] * derivative(v[i]), bound)


# --- sparse columns, several settings in a tile ---------------------------------------


@njit(**PASTED)
def _settings(values):
    return values.shape[-1]


@njit(**PASTED)
def _slopes(V, d):
    for i in range(V.shape[0]):
        for setting in range(setting_count(V)):
            d[i, setting] = derivative(V[i, setting])


@njit(**PASTED)
def _sums(A, j, d, clip, share, totals):
    """Entries that are zero have a term of zero, which clipping does not change."""
    entries, rows, starts = A
    if setting_count(totals) == 1:
        # in a register, which takes a third of the time
        clipped_sum = 0.0
        bound = clip[0] * share
        for e in range(starts[j], starts[j + 1]):
            clipped_sum += clamp(entries[e] * d[rows[e], 0], bound)
        totals[0] = clipped_sum
        return
    totals[:] = 0.0
    for e in range(starts[j], starts[j + 1]):
        x = entries[e]
        steep = d[rows[e]]
        for setting in range(setting_count(totals)):
            totals[setting] += clamp(x * steep[setting], clip[setting] * share)


@njit(**PASTED)
def _moved(A, j, move, V):
    entries, rows, starts = A
    for e in range(starts[j], starts[j + 1]):
        x = entries[e]
        margins = V[rows[e]]
        for setting in range(setting_count(move)):
            margins[setting] += x * move[setting]


@njit(**PASTED)
def _apart(A, columns, move, V):
    entries, rows, starts = A
    for setting in range(setting_count(move)):
        for e in range(starts[columns[setting]], starts[columns[setting] + 1]):
            V[rows[e], setting] += move[setting] * entries[e]


@njit(**PASTED)
def _after(A, previous, move, V, d, j, clip, share, totals):
    """Slopes change in the rows of the column only, and only if a setting moved."""
    entries, rows, starts = A
    farthest = 0.0
    for setting in range(setting_count(move)):
        farthest = max(farthest, abs(move[setting]))
    if farthest != 0.0:
        for e in range(starts[previous], starts[previous + 1]):
            x = entries[e]
            margins = V[rows[e]]
            steep = d[rows[e]]
            for setting in range(setting_count(move)):
                margins[setting] += x * move[setting]
                steep[setting] = derivative(margins[setting])
    _sums(A, j, d, clip, share, totals)


# --- the storages ---------------------------------------------------------------------

_ONE = {  # setting of a sparse problem
    slopes: _slopes,
    clipped_sums: _sums,
    moved: _moved,
    moved_apart: _apart,
    sums_after: _after,
}
_STORAGES: dict[str, dict[Any, Any]] = {
    "dense": {},
    "one": _ONE,
    "sparse": {**_ONE, setting_count: _settings},
}


def compiled(problem: Problem, kernel: Any, settings: int) -> Any:
    """A copy of a kernel for the problem's storage and loss, and settings of a tile."""
    several = "one" if settings == 1 else "sparse"
    return _compiled(
        problem.loss, several if problem.is_sparse else "dense", kernel
    )


@functools.cache
def _compiled(loss: Any, storage: str, kernel: Any) -> Any:
    pieces = {**loss.pieces, **_STORAGES[storage]}
    return filled(kernel, f"{loss.name}_{storage}", pieces)


def matrix(problem: Problem, by_rows: bool) -> tuple[Any, ...]:
    """A as kernels take it: (A,), or values, places and pointers of columns or rows."""
    A = problem.rows if by_rows else problem.A
    return (A.data, A.indices, A.indptr) if problem.is_sparse else (A,)
