"""Scales of a problem's features and labels, and data-free ones in their place.

A method that clips needs to know what is large. The root mean square of each column,
which M_j is up to the loss's curvature, and that of the labels are read off the data;
they are public by declaration, or they are declared without a look at the data.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dperm.core.erm.problem import Problem


def column_scales(problem: Problem) -> np.ndarray:
    """S_j, the root mean square of column j, by the public M_j; shape (p,).

    1 where a column is zero.
    """
    S = np.sqrt(problem.smoothness / problem.loss.curvature)
    return np.where(S > 0, S, 1.0)


def label_scale(problem: Problem) -> float:
    """Root mean square of the labels, where the loss has residuals; 1 elsewhere."""
    offset = problem.known.offset
    size = float(np.sqrt(np.mean(offset**2))) if offset.any() else 0.0
    return size or 1.0


def declared(
    problem: Problem, scales: np.ndarray | float = 1.0, label: float = 1.0
) -> Problem:
    """The problem with constants that no data stand behind.

    They are those of a single record of the scales: M_j = sup phi'' S_j^2, and the
    largest beta that goes with them, sup phi'' sum_j S_j^2.

    Parameters
    ----------
    scales : float or ndarray, shape (p,)
        S_j, what the root mean square of column j is taken for.
    label : float
        What the root mean square of the labels is taken for; residual losses alone.
    """
    record = np.full((1, problem.p), scales, dtype=np.float64, order="F")
    offset = problem.loss.offset(np.array([label]))
    known = replace(problem, A=record, offset=offset, public=None)
    return replace(problem, public=known)


def is_declared(problem: Problem) -> bool:
    """Whether no data stand behind its public constants."""
    return problem.public is not None and problem.public.n == 1
