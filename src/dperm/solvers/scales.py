"""Scales of a problem's features and labels: read off the data, or declared.

A method that clips needs to know what is large. For each column this is its root mean
square, whose square is M_j up to the loss's curvature; for labels it is theirs. Scales
are public: they are read off the data, or declared without a look at the data.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dperm.problems.problem import Problem


def column_scales(problem: Problem) -> np.ndarray:
    """S_j, the root mean square of column j, from the public M_j; shape (p,).

    1 where a column is zero.
    """
    S = np.sqrt(problem.smoothness / problem.loss.curvature)
    return np.where(S > 0, S, 1.0)


def label_scale(problem: Problem) -> float:
    """Root mean square of the labels if the loss has residuals, else 1."""
    offset = problem.known.offset
    size = float(np.sqrt(np.mean(offset**2))) if offset.any() else 0.0
    return size or 1.0


def declared(
    problem: Problem, scales: np.ndarray | float = 1.0, label: float = 1.0
) -> Problem:
    """The problem with declared constants in place of those read off the data.

    They are those of a single record with the scales as entries: M_j = sup phi'' S_j^2,
    and the largest beta that fits them, sup phi'' sum_j S_j^2.

    Parameters
    ----------
    scales : float or ndarray, shape (p,)
        S_j, taken for the root mean square of column j.
    label : float
        Taken for the root mean square of the labels; used by residual losses only.
    """
    record = np.full((1, problem.p), scales, dtype=np.float64, order="F")
    offset = problem.loss.offset(np.array([label]))
    constants = replace(problem, A=record, offset=offset, public=None)
    return replace(problem, public=constants)


def is_declared(problem: Problem) -> bool:
    """Whether the public constants are declared, not read off the data."""
    return problem.public is not None and problem.public.n == 1
