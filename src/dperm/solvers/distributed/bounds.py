"""Public bounds on the data, without which no sensitivity is finite."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from dperm.problems.losses import Loss
from dperm.problems.problem import Problem


def by_entries(A: Any) -> Any:
    """A as a csc_array; a dense A without zeros, in Fortran order, is not copied."""
    if sparse.issparse(A) or not A.all():
        return sparse.csc_array(A)
    n, p = A.shape
    # scipy wants one for both
    index_type = np.int32 if n * p < 2**31 else np.int64
    rows = np.tile(np.arange(n, dtype=index_type), p)
    starts = np.arange(p + 1, dtype=index_type) * n
    return sparse.csc_array((A.ravel(order="F"), rows, starts), shape=A.shape)


def clip_entries(matrix: Any, bound: float) -> Any:
    """A sparse matrix with its entries clipped to [-bound, bound]."""
    clipped = np.clip(matrix.data, -bound, bound)
    return sparse.csc_array(
        (clipped, matrix.indices, matrix.indptr), shape=matrix.shape
    )


def clip_problem(
    problem: Problem, entry_bound: float, label_bound: float
) -> Problem:
    """The problem on clipped data, as the private methods see it."""
    matrix = clip_entries(by_entries(problem.A), entry_bound)
    offset = np.clip(problem.offset, -label_bound, label_bound)
    return replace(problem, A=matrix, offset=offset)


def record_bound(
    loss: Loss, entry_bound: float, label_bound: float, prediction_bound: float
) -> float:
    """Bound G on the partial derivatives a_ij phi'(v_i) of every record.

    The bounds are those on |a_ij|, |y_i| and |A_i x|.
    """
    reach = loss.reach(prediction_bound, label_bound)
    return entry_bound * loss.lipschitz(reach)
