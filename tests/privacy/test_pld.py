import math
from itertools import pairwise

import numpy as np
import pytest

from dperm.accountants.noisy_max import pure_delta
from dperm.core.privacy.pld import (
    Profile,
    composed_epsilon,
    discretise,
    epsilon_on_grid,
    largest_losses,
)
from dperm.core.privacy.strict import (
    gaussian_delta,
    gaussian_epsilon,
    laplace_delta,
    sampled_gaussian_delta,
)


def sgd(n, passes, sigma):
    curve = lambda losses: sampled_gaussian_delta(losses, 1 / n, 1 / sigma)  # noqa: E731
    return Profile(curve, passes * n)


@pytest.mark.parametrize("mu", [0.05, 0.5, 4.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-10])
@pytest.mark.parametrize("count", [1, 30, 10**6])
def test_gaussian_grid_meets_the_closed_form_from_above(mu, delta, count):
    each = mu / math.sqrt(count)
    grid = composed_epsilon(
        [Profile(lambda losses: gaussian_delta(losses, each), count)], delta
    )
    exact = gaussian_epsilon(mu, delta)
    assert exact <= grid * (1 + 1e-9)
    assert grid == pytest.approx(exact, rel=2e-3)


def test_one_pure_release_costs_its_pure_epsilon():
    release = Profile(lambda losses: laplace_delta(losses, 0.5))
    for delta in (1e-3, 1e-9):
        expected = 0.5 + 2 * math.log1p(-delta)
        assert composed_epsilon([release], delta) == pytest.approx(expected, rel=1e-3)


def test_randomised_response_has_its_binomial_tail():
    """Exactly on the grid: k coins of bias e^a / (1 + e^a)."""
    from scipy.stats import binom

    a, k, delta = 0.1, 40, 1e-4
    heads = math.exp(a) / (1 + math.exp(a))

    def curve(losses):
        return np.maximum(heads - np.exp(losses) * (1 - heads), 0.0)

    losses = a * (2 * np.arange(k + 1) - k)
    masses = binom.pmf(np.arange(k + 1), k, heads)

    def divergence(value):
        return (masses * np.maximum(-np.expm1(value - losses), 0)).sum()

    bound = composed_epsilon([Profile(curve, k)], delta)
    assert divergence(bound) <= delta
    assert divergence(bound * (1 - 2e-3)) > delta


def test_finer_grids_never_cost_more():
    release = sgd(1000, 5, 0.6)
    bounds = [
        epsilon_on_grid([release], [6.0], 1e-6, 6.0 / cells)[0]
        for cells in (8, 32, 128, 512, 2048, 8192)
    ]
    assert all(b >= c * (1 - 1e-6) for b, c in pairwise(bounds))


@pytest.mark.parametrize(
    ("release", "margin"),
    [
        (sgd(1000, 5, 0.6), 1e-4),
        (Profile(lambda losses: laplace_delta(losses, 0.5), 9), 1e-4),
        (Profile(lambda losses: pure_delta(losses, 0.1), 40, 0.1), 1e-9),
    ],
)
def test_the_bound_of_a_grid_has_a_margin_for_rounding(release, margin):
    """A hardly visible one where all losses are atoms on the grid."""
    tops = largest_losses([release], 1e-6)
    grid, _ = epsilon_on_grid([release], tops, 1e-6, tops[0] / 32)
    bound = composed_epsilon([release], 1e-6, tolerance=math.inf)  # the first grid
    assert bound / grid - 1 == pytest.approx(margin, rel=1e-3)


def test_a_coarse_grid_misleads_at_a_million_compositions():
    release = sgd(45_312, 50, 0.9568)
    coarse, _ = epsilon_on_grid([release], [0.12], 45_312**-2, 1e-3)
    fine, _ = epsilon_on_grid([release], [0.12], 45_312**-2, 1e-5)
    assert coarse > 1.05
    assert fine == pytest.approx(0.33, abs=0.01)
    assert composed_epsilon([release], 45_312**-2) == pytest.approx(0.330, abs=1e-3)


def test_the_grid_meets_dp_accounting():
    """Same symmetric curve, same interval, their Connect the Dots and convolution."""
    from dp_accounting.pld import pld_pmf

    release, delta, interval, cells = sgd(1000, 2, 0.4458), 1e-6, 1e-2, 1200
    losses = interval * np.arange(cells + 1)
    upper = release.delta(losses)
    lower = (-np.expm1(-losses) + np.exp(-losses) * upper)[:0:-1]
    theirs = (
        pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(
            interval, -cells, cells, np.concatenate([lower, upper])
        )
        .self_compose(release.count)
        .get_epsilon_for_delta(delta)
    )
    ours, _ = epsilon_on_grid([release], [cells * interval], delta, interval)
    assert ours == pytest.approx(theirs, rel=1e-4)


def test_rounding_of_millions_of_steps_is_relative_to_delta():
    """Untilted, as dp_accounting composes, it moves epsilon by about two percent.

    By how much depends on the order in which a processor sums.
    """
    from dp_accounting.pld import pld_pmf

    release, delta, interval = sgd(45_312, 50, 0.6506), 45_312**-2, 7.3671e-5
    one = discretise(release, 2.4140625, interval)
    cells = one.masses.size // 2
    untilted = (
        pld_pmf.DensePLDPmf(interval, -cells, one.masses, one.infinite, True)
        .self_compose(release.count, 1e-4 * delta)
        .get_epsilon_for_delta(delta)
    )
    tilted, _ = epsilon_on_grid([release], [2.4140625], delta, interval)
    assert tilted == pytest.approx(1.003, abs=2e-3)
    assert abs(untilted - 1.003) > 0.01


def test_masses_are_a_symmetric_distribution():
    one = discretise(sgd(1000, 1, 0.7), 6.0, 1e-2)
    losses = 1e-2 * np.arange(-600, 601)
    assert one.masses.min() >= 0
    assert one.masses[::-1] == pytest.approx(one.masses * np.exp(-losses), rel=1e-9)
    assert one.masses.sum() + one.infinite == pytest.approx(1, abs=1e-12)


def test_nothing_to_lose():
    assert composed_epsilon([Profile(lambda e: gaussian_delta(e, 1e-9))], 1e-3) == 0.0
