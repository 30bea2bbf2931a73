"""The worst of a class of biases, and the rows that runs on it give."""

import math

import numpy as np
import pandas as pd
import pytest

from dperm.papers.dpsco import sweeps
from dperm.papers.dpsco.rates import EASY, KINDS, biases, worst
from dperm.solvers.streams.sources import hard

TARGETS = [1.0, math.inf]


@pytest.mark.parametrize("kind", ["all", "one a record"])
@pytest.mark.parametrize("n", [1000, 4096, 10**5])
def test_biases_go_from_what_can_just_be_told_to_one(kind, n):
    found = biases(kind, n, 16)
    least = math.sqrt((16 if kind == "one a record" else 1) / n)
    assert found[0] == pytest.approx(least) and found[-1] == 1.0
    ratios = np.array(found[1:]) / np.array(found[:-1])
    assert (ratios > 1).all() and (ratios[:-1] == 2).all() and ratios[-1] <= 2


def test_few_records_leave_the_largest_bias_alone():
    assert biases("one a record", 10, 16) == [1.0]


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


@pytest.mark.parametrize(
    ("solver", "p"), [("noisy_sfw", 1.5), ("poly_sfw", 1.0), ("phased_sgd", 4.0)]
)
def test_hard_rows_know_their_instance(solver, p):
    point = {"solver": solver, "n": 600, "d": 4}
    table = pd.DataFrame(sweeps.hard(None, point, 1, {solver: [p]}, TARGETS))
    kind, name = KINDS[solver]
    assert set(table["instance"]) == {name} != {EASY}
    assert sorted(table["bias"].unique()) == pytest.approx(biases(kind, 600, 4))
    assert len(table) == 3 * len(biases(kind, 600, 4))
    shown = 4 ** (-1 / p) if kind == "one a record" else 1.0
    np.testing.assert_allclose(table["initial"], table["bias"] * shown)
    assert (table["excess"] <= 2 * table["initial"] + 1e-12).all()
    free = table[table["calibration"] == "none"]
    assert free.loc[free["bias"] == 1.0, "excess"].item() < 0.5 * shown


def test_every_bias_reads_records_of_its_own_law():
    means = [
        hard("all", 6, 2, bias).take(4000).rows.mean(axis=0) for bias in (0.2, 0.8)
    ]
    np.testing.assert_array_equal(*np.sign(means))
    assert np.abs(means[1]).min() > 2 * np.abs(means[0]).max()
