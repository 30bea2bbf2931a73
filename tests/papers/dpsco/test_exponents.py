"""Exponents and their intervals on data of known law; Table 1 by hand."""

import math
from functools import partial

import numpy as np
import pandas as pd
import pytest

from dperm.config import schema
from dperm.experiments import results
from dperm.papers.dpsco import rates, tables

SIZES = 10.0 ** np.arange(3, 7)


def power_law(exponent, replicates=10, spread=0.2, seed=0, level=3.0):
    """Shares level * n^exponent times lognormal noise of its own in each replicate."""
    rng = np.random.default_rng(seed)
    rows = [
        {"n": n, "replicate": k, "share": level * n**exponent
         * math.exp(spread * rng.standard_normal())}
        for n in SIZES for k in range(replicates)
    ]  # fmt: skip
    return pd.DataFrame(rows)


@pytest.mark.parametrize("exponent", [-0.5, -1.0])
def test_intervals_cover_the_known_exponent(exponent):
    """95 % of them, within what 400 trials can tell."""
    found = [
        rates.of_risk(power_law(exponent, 5, seed=seed), "n")
        for seed in range(400)
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


def test_replicates_that_miss_a_size_are_left_out():
    table = power_law(-0.5, spread=0.0)
    table.loc[(table["replicate"] > 4), "share"] *= 7.0
    short = table[(table["n"] < 1e6) | (table["replicate"] <= 4)]
    found = rates.of_risk(short, "n")
    assert found["runs"] == 5
    assert found["exponent"] == pytest.approx(-0.5)


@pytest.mark.parametrize(("epsilon", "first"), [(1.0, 1e3), (0.2, 1e4)])
def test_corollary_72_is_fitted_where_it_applies(monkeypatch, epsilon, first):
    """At n = 1000 it is 16 log(n^2) / 0.04 > n."""
    known = {"method": "phased_sgd", "p": 4.0, "epsilon": epsilon, "d": 16}
    table = power_law(-0.75, 2, 1e-3).assign(
        **known, calibration="published", initial=1.0
    )
    table = table.rename(columns={"share": "excess"})
    monkeypatch.setattr(results, "load_sweep", lambda *_: table)
    product = schema.Product(sweeps=["hard"])
    (row,) = tables.corollary72_rates(None, product).to_dict("records")
    assert row["exponent"] == pytest.approx(-0.75, abs=0.01)
    assert (row["from"], row["bound_exponent"]) == (first, -0.5)


def test_exponent_of_time():
    table = power_law(1.0, spread=0.05).rename(columns={"share": "seconds"})
    table.loc[table["n"] < 1e4, "seconds"] = 1e6  # before the start of the fit
    power, low, high = rates.of_time(table)
    assert low < power < high and power == pytest.approx(1.0, abs=0.03)
    power, low, high = rates.of_time(table[table["replicate"] == 0])
    assert math.isnan(low) and math.isnan(high)


def test_table_1_is_printed_without_logarithms():
    bound = partial(rates.bound, n=100, printed=True)
    assert bound("poly_sfw", 1, 2.0, d=8) == math.log(8) / 20
    assert bound("poly_sfw", 1, math.inf, d=8) == math.log(8) / 10
    found = bound("noisy_sfw", 1.5, 2.0, d=16)
    assert found == pytest.approx(math.sqrt(2 / 100) + 2 * 4 / 200)
    assert bound("phased_sgd", math.inf, math.inf, d=16) == pytest.approx(0.4)
