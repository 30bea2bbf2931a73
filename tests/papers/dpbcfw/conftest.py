"""A small problem, and the numpy twin of Algorithm 2."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import build
from dperm.papers.dpbcfw.runs import synthetic

SIZES = {"n": 40, "d": 90, "density": 0.2, "active": 0.1}


@pytest.fixture(scope="session")
def instance():
    return synthetic(SIZES, 7)


@pytest.fixture(params=["least_squares", "logistic", "smoothed_hinge"])
def problem(request, instance):
    X, y = instance.problem.A, -instance.problem.offset
    if request.param != "least_squares":
        y = np.where(y >= 0, 1.0, -1.0)
    return build("small", X, y, request.param, Penalty())


def dense(problem):
    A = problem.A
    return A.toarray() if sparse.issparse(A) else A
