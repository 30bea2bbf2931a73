"""Exponents and their intervals, and the worst of a class, on data of known law."""

import math

import numpy as np
import pandas as pd
import pytest

from dperm.papers.dpsco import rates

SIZES = 10.0 ** np.arange(3, 7)


def power_law(exponent, replicates=10, spread=0.2, seed=0, level=3.0, axis="n"):
    """Shares level * n^exponent times lognormal noise of its own in each replicate."""
    rng = np.random.default_rng(seed)
    rows = [
        {axis: n, "replicate": k, "share": level * n**exponent
         * math.exp(spread * rng.standard_normal())}
        for n in SIZES for k in range(replicates)
    ]  # fmt: skip
    return pd.DataFrame(rows)


@pytest.mark.parametrize("exponent", [-0.5, -1.0])
def test_intervals_cover_the_known_exponent(exponent):
    """95 % of them, within what 400 trials can tell."""
    found = [
        rates.of_risk(power_law(exponent, 5, seed=seed), "n") for seed in range(400)
    ]
    covered = [one["ci_low"] <= exponent <= one["ci_high"] for one in found]
    assert 0.91 <= np.mean(covered) <= 0.99
    centre = np.mean([one["exponent"] for one in found])
    assert centre == pytest.approx(exponent, abs=0.005)


def test_what_cannot_be_fitted_says_why():
    high = rates.of_risk(power_law(-0.5, level=100.0), "n")
    assert high["exponent"] is None and high["reason"] == "2 of 4 below half"
    alone = rates.of_risk(power_law(-0.5, replicates=1), "n")
    assert alone["exponent"] is None and alone["reason"] == "1 run"


def test_sizes_above_half_are_left_out():
    """A plateau above half the initial excess does not flatten the slope."""
    table = power_law(-1.0, level=4e3, spread=0.0)
    found = rates.of_risk(table.assign(share=table["share"].clip(upper=0.9)), "n")
    assert (found["from"], found["exponent"]) == (1e4, pytest.approx(-1.0))


def test_replicates_that_miss_a_size_are_left_out():
    table = power_law(-0.5, spread=0.0)
    table.loc[(table["replicate"] > 4), "share"] *= 7.0
    short = table[(table["n"] < 1e6) | (table["replicate"] <= 4)]
    found = rates.of_risk(short, "n")
    assert found["runs"] == 5
    assert found["exponent"] == pytest.approx(-0.5)


def test_exponent_of_time():
    table = power_law(1.0, spread=0.05).rename(columns={"share": "seconds"})
    table.loc[table["n"] < 1e4, "seconds"] = 1e6  # before the start of the fit
    power, low, high = rates.of_time(table)
    assert low < power < high and power == pytest.approx(1.0, abs=0.03)
    power, low, high = rates.of_time(table[table["replicate"] == 0])
    assert math.isnan(low) and math.isnan(high)


def test_dimensions_come_from_the_largest_size_that_has_three():
    parts = [
        power_law(0.5, level=1e-3, spread=0.01, axis="d").assign(n=1e5),
        power_law(0.5, level=1e-4, spread=0.01, axis="d").assign(n=1e6),
    ]
    table = pd.concat(parts)
    assert rates.of_dimension(table)["n"] == 1e6
    lost = table.assign(share=table["share"] * 1e4)
    assert rates.of_dimension(lost)["reason"] == "0 of 4 below half"


def biased(excess):
    """Two replicates of excess(bias, replicate) at each of three biases."""
    return pd.DataFrame(
        {"method": "m", "p": 2.0, "epsilon": 1.0, "calibration": "paper",
         "instance": "i", "d": 4, "n": n, "bias": bias, "replicate": k,
         "excess": excess(bias, k), "initial": bias}
        for n in (10, 20) for bias in (0.1, 0.5, 1.0) for k in range(2)
    )  # fmt: skip


def test_the_worst_bias_is_that_of_the_largest_mean():
    """0.5: its mean is the largest, though not in each replicate."""
    found = rates.worst(
        biased(lambda bias, k: (bias == 0.5) * 0.3 + (bias == 1) * 0.5 * k)
    )
    assert len(found) == 4 and set(found["bias"]) == {0.5}
    assert (found["initial"] == 1.0).all()  # that of the largest bias
