"""The p of printed cells: uniform under the law, small away from it."""

import math

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from dperm.kinds import cells

LEVELS = (0.001, 0.01, 0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975, 0.99, 0.999)


def laws(count, deviation=0.2, start=50.0):
    """Laws of numbers whose logarithm is normal."""
    scores = scipy.stats.norm.ppf(LEVELS)
    row = {
        f"q{x:g}": math.exp(deviation * z) for x, z in zip(LEVELS, scores, strict=True)
    }
    return pd.DataFrame([row | {"start": start}] * count)


def probed(values, spread=1e-6, half=0.0, **law):
    values = pd.Series(values)
    same = pd.Series(half, values.index), pd.Series(spread, values.index)
    return cells.of_means(laws(len(values), **law), values, *same)


def test_p_is_that_of_the_normal_law_of_logarithms():
    found = probed([math.exp(0.2 * z) for z in (-3.5, -1.0, 0.0, 1.96, 5.0)])
    expected = 2 * scipy.stats.norm.sf([3.5, 1.0, 0.0, 1.96, 5.0])
    assert found["p"].to_numpy() == pytest.approx(expected, rel=0.02)


def test_p_is_uniform_for_what_the_law_prints():
    drawn = np.exp(0.2 * np.random.default_rng(0).standard_normal(2000))
    found = probed(drawn)["p"]
    assert scipy.stats.kstest(found, "uniform").pvalue > 0.01


def test_a_spread_that_tuning_does_not_explain_widens_a_law():
    wide = probed([math.exp(0.4)], spread=0.2)["p"][0]
    deviation = 0.2 * math.sqrt(2)
    assert wide == pytest.approx(2 * scipy.stats.norm.sf(0.4 / deviation), rel=0.01)
    narrow = probed([math.exp(0.4)], deviation=0.0, spread=0.2)["p"][0]
    assert narrow == pytest.approx(2 * scipy.stats.norm.sf(2.0), rel=0.01)


def test_rounding_makes_a_number_possible():
    assert probed([1.05], deviation=1e-4)["p"][0] < 1e-6
    assert probed([1.05], deviation=1e-4, half=0.05)["p"][0] > 0.9


def test_a_printed_zero_is_its_rounded_interval():
    found = probed([0.0], half=0.9)
    assert 0 < found["p"][0] < 1


def test_w_zero_is_noticed_where_something_was_learnt():
    assert probed([1.0])["p_start"][0] < 1e-6
    assert probed([1.0], start=1.0, spread=0.01)["p_start"][0] == pytest.approx(1.0)


def test_holm_multiplies_the_least_by_the_number_of_cells():
    found = cells.holm(pd.Series([0.01, 0.04, 0.03, 0.5]))
    assert found.to_list() == pytest.approx([0.04, 0.09, 0.09, 0.5])


def test_half_units():
    assert cells.half_unit(0.77, digits=2) == 0.005
    assert cells.half_unit(1200.0, digits=2) == 50
    assert cells.half_unit(0.0145, decimals=4) == 5e-5


def test_deviations_are_tested_by_f():
    rng = np.random.default_rng(1)
    ours = rng.standard_normal((2000, 10)).std(axis=1, ddof=1)
    theirs = rng.standard_normal((2000, 5)).std(axis=1, ddof=1)
    printed = pd.Series([float(f"{one:.1g}") for one in theirs])
    found = cells.of_deviations(printed, pd.Series(ours), 10, 5)
    assert (found < 0.05).mean() < 0.06  # the two ways to normalise make it wide
    far = cells.of_deviations(pd.Series([9.0, 0.02]), pd.Series([1.0, 1.0]), 10, 5)
    assert far.max() < 1e-3
    assert np.isnan(cells.of_deviations(pd.Series([1.0]), pd.Series([0.0]), 10, 5)[0])


def test_the_deviation_behind_an_interval():
    runs = np.random.default_rng(2).standard_normal(10)
    low, high = scipy.stats.t.interval(0.95, 9, runs.mean(), scipy.stats.sem(runs))
    found = cells.deviation(pd.Series([low]), pd.Series([high]), 10)
    assert found[0] == pytest.approx(runs.std(ddof=1))
