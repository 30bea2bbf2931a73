"""The exact law of a selection among any number of features, by closed forms."""

import numpy as np
import pytest
from scipy import integrate, stats

from dperm.papers.dpgcd import largest, sweeps


def test_the_largest_of_many_has_its_law():
    rng = np.random.default_rng(1)
    drawn = largest.largest_laplace(rng.random(4000), 300, 0.2)
    law = stats.laplace(0, 0.2)
    assert stats.kstest(law.cdf(drawn) ** 300, "uniform").pvalue > 1e-4
    one = largest.largest_laplace(rng.random(4000), 1, 0.2)
    assert stats.kstest(one, law.cdf).pvalue > 1e-4


def test_the_median_of_the_largest_grows_with_the_logarithm_of_the_number():
    counts = 10.0 ** np.array([6, 9, 12, 15])
    middles = [
        float(largest.largest_laplace(np.array(0.5), m, 2.0)) for m in counts
    ]
    expected = 2.0 * np.log(counts / (2 * np.log(2)))
    np.testing.assert_allclose(middles, expected, rtol=1e-5)


def one_step(p, tau, scale):
    """The mean share after one step, by quadrature of the law of its choice."""
    true = 1 / np.arange(1, tau + 1)
    scores = stats.laplace(true, scale)
    zero = stats.laplace(0.0, scale)
    reach = scale * (np.log(p) + 40)
    grid = np.linspace(-10 * scale, 1 + reach, 400_001)[:, None]
    logs = scores.logcdf(grid)
    log_chances = (
        logs.sum(axis=1, keepdims=True) - logs + (p - tau) * zero.logcdf(grid)
    )
    density = scores.pdf(grid) * np.exp(log_chances)
    chosen = integrate.trapezoid(density, grid, axis=0)
    start = (true**2).sum()
    return float((start - chosen @ true**2 + 2 * scale**2) / start)


@pytest.mark.parametrize("p", [8, 1e3, 1e12])
def test_one_step_has_the_mean_of_its_closed_form(p):
    tau, scale, runs = 6, 0.15, 40_000
    shares = largest.shares(p, tau, scale, 1, runs, np.random.default_rng(2))
    error = shares.std() / np.sqrt(runs)
    assert abs(shares.mean() - one_step(p, tau, scale)) < 4 * error


def test_the_law_is_that_of_the_solver_on_the_instance():
    given = {"epsilon": 1.0, "delta": 1e-6, "tau": 20, "records": 200}
    point = {"p": 60, "iterations": 5, "algorithm": "DP-GCD"}
    runs = sweeps.selection(point, 3, **given, counts=[5], fresh=300)
    ran = np.array([row["share"] for row in runs])
    exact = sweeps.selection_law(point, 4, **given, fresh=20_000)
    drawn = np.array([row["share"] for row in exact])
    error = np.hypot(ran.std() / np.sqrt(300), drawn.std() / np.sqrt(20_000))
    assert abs(ran.mean() - drawn.mean()) < 4 * error
