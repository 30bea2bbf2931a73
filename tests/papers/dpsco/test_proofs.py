from __future__ import annotations

import math

import numpy as np
import pytest

from dperm.accountants import generalised_gaussian as gg
from dperm.core.privacy.mechanisms import streams
from dperm.papers.dpsco import proofs
from dperm.solvers.streams import noisy_sfw
from dperm.solvers.streams.setup import Setup


def test_a_cited_conversion_costs_more_than_the_corollary_says():
    for kappa in (1, 4):
        found = proofs.generalised_gaussian(1.0, 1e-6, kappa).found
        assert found == pytest.approx(1.0368, 1e-4)


def test_a_second_term_of_advanced_composition_is_lost():
    assert proofs.single_pass_selections(1.0, 1e-6, 1000).share > 1.03


@pytest.mark.parametrize(("m", "d"), [(1, 1), (2, 5), (4, 5)])
def test_moments_of_the_noise_are_those_of_draws(m, d):
    drawn = gg.generalised_gaussian(streams(3).noise, 3.0, (20_000, d))
    lengths = (np.abs(drawn) ** 3).sum(axis=1) ** (1 / 3)
    case = proofs.noise_moment(m, d)
    assert case.found == pytest.approx(case.claimed, rel=1e-9)
    assert (lengths**m).mean() == pytest.approx(case.found, rel=0.05)


def test_an_exponential_moment_is_beyond_its_bound_for_a_small_nu():
    assert proofs.noise_exponential(10, 4).found == pytest.approx((10 / 8) ** 2)
    assert proofs.noise_exponential(2.5, 4).share < 1
    for square in (0.5, 1.9):
        assert proofs.noise_exponential(square, 4).share > 2
    assert proofs.noise_tail(4).claimed == pytest.approx(math.e)


def test_a_divergence_in_the_plane_is_the_gaussian_one_at_order_2():
    for alpha in (2, 16):
        found = proofs.noise_divergence(alpha, 2).found
        assert found == pytest.approx(alpha * (4 / alpha) ** 2 / 2, rel=1e-6)
    assert 0.3 < proofs.noise_divergence(2, 3).share < 0.5


def test_records_and_sensitivities_are_those_of_the_solver():
    options, setup = noisy_sfw.Options(), Setup("least_squares", 2.0, 4)
    assert proofs.records_read(256).found == noisy_sfw.tree(256, options).records
    printed = noisy_sfw.printed_sensitivity(setup, 1)
    worst = max(
        noisy_sfw.child_sensitivity(setup, 1, t, depth, leaf, options)
        for t in range(1, 5)
        for depth in range(1, t + 1)
        for leaf in range(2 ** (t - depth), 2**t, 2 ** (t - depth + 1))
    )
    assert proofs.inner_sensitivity(4).share == pytest.approx(worst / printed)
