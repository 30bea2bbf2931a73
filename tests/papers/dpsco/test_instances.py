"""The worst of a class of biases, and the rows that runs on it give."""

import math

import numpy as np
import pandas as pd
import pytest

from dperm.papers.dpsco.rates import biases, worst

TARGETS = [1.0, math.inf]


@pytest.mark.parametrize("kind", ["all", "one a record"])
@pytest.mark.parametrize("n", [1000, 4096, 10**5])
def test_biases_go_from_what_can_just_be_told_to_one(kind, n):
    found = biases(kind, n, 16)
    least = math.sqrt((16 if kind == "one a record" else 1) / n)
    assert found[0] == pytest.approx(least) and found[-1] == 1.0
    ratios = np.array(found[1:]) / np.array(found[:-1])
    assert (ratios > 1).all() and (ratios[:-1] == 2).all() and ratios[-1] <= 2


def rows(excess):
    """Two replicates of excess(bias, replicate) at each of three biases."""
    return pd.DataFrame(
        {"method": "m", "p": 2.0, "epsilon": 1.0, "calibration": "paper",
         "instance": "i", "d": 4, "n": n, "bias": bias, "replicate": k,
         "excess": excess(bias, k), "initial": bias}
        for n in (10, 20) for bias in (0.1, 0.5, 1.0) for k in range(2)
    )  # fmt: skip


def test_the_worst_bias_is_that_of_the_largest_mean():
    """0.5: its mean is the largest, though not in each replicate."""
    found = worst(rows(lambda bias, k: (bias == 0.5) * 0.3 + (bias == 1) * 0.5 * k))
    assert len(found) == 4 and set(found["bias"]) == {0.5}
    assert (found["initial"] == 1.0).all()  # that of the largest bias
