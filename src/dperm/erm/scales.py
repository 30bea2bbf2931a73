"""Scales of a problem's features and labels, and data-free ones in their place.

A method that clips needs to know what is large. The root mean square of each column,
which M_j is up to the loss's curvature, and that of the labels are read off the data;
they are public by declaration, or they are declared without a look at the data.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dperm.erm.problem import Problem


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


def declared(problem: Problem) -> Problem:
    """The problem with constants that no data stand behind: every scale is 1.

    Its public constants are those of a single record of ones, with the label 1: M_j =
    sup phi'', and the largest beta that goes with them, p times that.
    """
    ones = np.ones((1, problem.p), order="F")
    offset = problem.loss.offset(np.ones(1))
    return replace(problem, public=replace(problem, A=ones, offset=offset, public=None))


def is_declared(problem: Problem) -> bool:
    """Whether no data stand behind its public constants."""
    return problem.public is not None and problem.public.n == 1
