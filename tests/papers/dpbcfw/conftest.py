"""A small problem."""

from __future__ import annotations

import pytest

from dperm.papers.dpbcfw.runs import synthetic

SIZES = {"n": 40, "d": 90, "density": 0.2, "active": 0.1}


@pytest.fixture(scope="session")
def instance():
    return synthetic(SIZES, 7)
