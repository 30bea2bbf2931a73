"""Composition on grids: above what is exact, and hardly."""

import math
from itertools import pairwise

import numpy as np
import pytest

from dperm.privacy.accountants.pld import (
    NODES,
    Profile,
    chorded,
    chords,
    composed_epsilon,
    discretise,
    epsilon_on_grid,
    largest_losses,
)
from dperm.privacy.accountants.tight import (
    gaussian_delta,
    gaussian_epsilon,
    laplace_delta,
    sampled_gaussian_delta,
)
from dperm.privacy.mechanisms.noisy_max import pure_delta

from .laws import DELTA, coins


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


@pytest.mark.parametrize("count", [1, 7, 300])
@pytest.mark.parametrize("pure", [0.03, 1.0])
def test_randomised_response_has_its_binomial_tail(pure, count):
    """Where the losses are atoms, which every grid contains, nothing is lost."""
    exact = coins(pure, count)
    atoms = Profile(lambda e: pure_delta(e, pure), count, pure)
    plain = Profile(lambda e: pure_delta(e, pure), count)
    assert exact * (1 - 1e-9) <= composed_epsilon([atoms], DELTA)
    assert composed_epsilon([atoms], DELTA) <= exact * (1 + 3e-4)
    assert (
        exact * (1 - 1e-9)
        <= composed_epsilon([plain], DELTA)
        <= exact * (1 + 2e-3)
    )


@pytest.mark.parametrize("count", [1, 5])
def test_what_is_revealed_at_times_is_paid_for(count):
    """A Gaussian that says all with a chance of 1e-7; and too often."""
    often = 1e-7

    def curve(losses):
        return often + (1 - often) * gaussian_delta(losses, 0.3)

    def plain(losses):
        return gaussian_delta(losses, 0.3)

    told = composed_epsilon([Profile(curve, count)], DELTA)
    left = 1 - (1 - DELTA) / (1 - often) ** count
    kept = composed_epsilon([Profile(plain, count)], left)
    assert told == pytest.approx(kept, rel=5e-3)
    assert composed_epsilon([Profile(curve, 11)], DELTA) == math.inf
    assert (
        composed_epsilon([Profile(lambda e: np.ones_like(e))], DELTA)
        == math.inf
    )


def test_chords_of_nodes_lie_above_the_curve_and_hardly():
    """Also where some bounds at nodes are loose, unless their neighbours are too."""
    losses = np.linspace(0.0, 3.0, 997)
    exact, bounds = gaussian_delta(losses, 0.8), gaussian_delta(NODES, 0.8)
    loose = np.where(np.arange(NODES.size) % 7, 1.1, 1.0)
    for given, above in ((bounds, 3e-4), (loose * bounds, 1e-2)):
        found = chorded(given, 1).delta(losses)
        assert (found >= exact * (1 - 1e-9)).all()
        assert (found <= exact * (1 + above)).all()


@pytest.mark.parametrize("width", [2, 7, 100])
def test_masses_on_nodes_keep_their_mean_and_raise_convex_means(width):
    masses = np.random.default_rng(0).dirichlet(np.ones(100))
    nodes, at = chords(masses, width), np.arange(100)
    places = width * np.arange(len(nodes))
    assert (nodes >= 0).all() and nodes.sum() == pytest.approx(1)
    assert nodes @ places == pytest.approx(masses @ at)
    assert nodes @ np.exp(0.1 * places) > masses @ np.exp(0.1 * at)


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
    # the first grid
    bound = composed_epsilon([release], 1e-6, tolerance=math.inf)
    assert bound / grid - 1 == pytest.approx(margin, rel=1e-3)


def test_masses_are_a_symmetric_distribution():
    one = discretise(sgd(1000, 1, 0.7), 6.0, 1e-2)
    losses = 1e-2 * np.arange(-600, 601)
    assert one.masses.min() >= 0
    assert one.masses[::-1] == pytest.approx(
        one.masses * np.exp(-losses), rel=1e-9
    )
    assert one.masses.sum() + one.infinite == pytest.approx(1, abs=1e-12)


def test_nothing_to_lose():
    assert (
        composed_epsilon([Profile(lambda e: gaussian_delta(e, 1e-9))], 1e-3)
        == 0.0
    )
