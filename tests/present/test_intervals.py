"""The intervals are those of scipy.stats, to the last digits."""

import numpy as np
import pytest
from scipy import stats

from dperm.present import intervals


@pytest.mark.parametrize("freedom", [1, 2, 4, 9, 3.7, 61.3, 1e4])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_quantiles_of_student(freedom, level):
    expected = stats.t.ppf((1 + level) / 2, freedom)
    assert intervals.t_quantile(freedom, level) == pytest.approx(expected, rel=1e-9)


def test_the_interval_of_a_mean():
    values = np.array([1.0, 2.0, 4.0])
    expected = stats.t.interval(0.95, 2, values.mean(), stats.sem(values))
    np.testing.assert_allclose(intervals.student(values), expected)
    assert intervals.student(np.array([3.0])) == (3.0, 3.0)


@pytest.mark.parametrize(("hits", "runs"), [(0, 10), (3, 10), (10, 10), (1, 1), (0, 1)])
def test_the_interval_of_a_probability(hits, runs):
    found = stats.binomtest(hits, runs).proportion_ci(0.95, "exact")
    np.testing.assert_allclose(
        intervals.clopper_pearson(hits, runs), (found.low, found.high), atol=1e-12
    )


def test_the_interval_of_an_exponent():
    rng = np.random.default_rng(0)
    x = np.geomspace(1, 100, 7)
    y = 3 * x**-0.6 * rng.lognormal(0, 0.2, 7)
    fit = stats.linregress(np.log(x), np.log(y))
    half = stats.t.ppf(0.975, 5) * fit.stderr
    expected = fit.slope, fit.slope - half, fit.slope + half
    np.testing.assert_allclose(intervals.power(x, y), expected, rtol=1e-9)
