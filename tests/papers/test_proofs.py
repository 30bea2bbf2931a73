"""Arguments of proofs: their numbers, by hand, by simulation or by the solver's own."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dperm.papers.dpbcfw import proofs as dpbcfw
from dperm.papers.dpcd import proofs as dpcd
from dperm.papers.dpgcd import proofs as dpgcd
from dperm.papers.dpsco import proofs as dpsco
from dperm.papers.dpskgd import proofs as dpskgd
from dperm.papers.shared import proofs as shared
from dperm.privacy.mechanisms import generalised_gaussian as gg
from dperm.privacy.noise import streams
from dperm.solvers.single_pass import noisy_sfw
from dperm.solvers.single_pass.setup import Setup

ORDERS = np.linspace(1.01, 200, 9999)
RENYI = (ORDERS / 6 / math.log(1e6) + math.log(1e6) / (ORDERS - 1)).min()
RUN = (1.0, 1 / 800, 800, 80, 4, 100)  # epsilon, delta, n, m, K, T
LESS, MORE = (-math.inf, 1 + 1e-12), (1 + 1e-12, math.inf)


@pytest.mark.parametrize(
    ("case", "number", "expected"),
    [
        (
            shared.theorem_gaussian(1.0, 1e-6),
            "found",
            (RENYI * (1 - 1e-4), RENYI),
        ),
        (shared.theorem_gaussian_noise(1.0, 1e-6), "found", (0.5, RENYI)),
        # the better bound of an imbalanced problem is as said where one dominates
        *(
            (dpcd.imbalance(1e3, at, 0.0), "share", LESS)
            for at in (0.01, 1.0, 100.0)
        ),
        (dpcd.imbalance(10.0, 1.0, 0.0), "share", MORE),
        # the steps to it lack a square and a root
        (dpcd.imbalance(1e5, 1.0, 1.0), "found", (2.97, 3.03)),
        (dpcd.imbalance(1e5, 0.01, 1.0), "found", 10.0),
        (dpcd.inexact(0.01, 0.0), "share", 1.0),
        (dpcd.inexact(0.01, 1.0), "share", 4.0),
        (dpcd.sensitivity(2.0), "found", np.ptp([2.0, -2.0])),
        (dpgcd.noisy_max_step(200, 0.1), "share", (1.985, 1.995)),
        # the closed form of greedy descent is enough noise
        (dpgcd.greedy_noise(1.0, 1 / 2600**2, 1), "found", (0.18, 0.2)),
        (dpgcd.greedy_noise(1.0, 1 / 2600**2, 20), "found", (0.58, 0.6)),
        # the appendix halves the excess; K = 2 (1 + 1 / (0.1 x 10)) = 4 does not
        (dpskgd.halving(0.1, 10.0, 0.0), "share", 1.0),
        (dpskgd.halving(0.1, 10.0, 1.0), "found", 101 / 4),
        (dpskgd.convex_length(3.0, 0.2), "found", 13 * 0.6),
        (dpskgd.convex_length(3.0, 0.2), "share", 13 / (2 * 12**0.5)),
        (dpskgd.dominating_block(100.0, 1.25), "share", 8.0),
        (dpskgd.dominating_block(0.25, 1.25), "found", 2.0),
        # the selections of all nodes compose; a single answer costs its ratio
        (dpbcfw.node_selections(1.0, 1 / 800, 1, 100), "share", MORE),
        (dpbcfw.node_selections_noise(1.0, 1 / 800, 16, 100), "share", MORE),
        # a sketched feature moves whatever the number of records
        (dpbcfw.sketched_features(*RUN), "share", (100, math.inf)),
        (dpbcfw.sketched_features_noise(*RUN, share=1.0), "found", (4, 20)),
        *(
            (dpbcfw.set_curvature(40, 8, 3, c), "share", LESS)
            for c in (0.0, 0.9)
        ),
        *(
            (dpbcfw.set_curvature(40, 8, tau, 0.9), "share", 1.0)
            for tau in (1, 8)
        ),
        *(
            (dpbcfw.pair_bound(40, 8, 2, K, 0.99), "share", LESS)
            for K in (1, 2)
        ),
        (dpbcfw.logistic_gradient(50), "found", 50.0),
        (dpbcfw.hinge_gradient(50), "found", 50.0),
        (dpbcfw.uplink(1e6, 1e3), "found", (1.2, 2 ** (2 / 3))),
        (dpbcfw.uplink(1e12, 1e3), "found", (1.2, 4 ** (2 / 3))),
        *(
            (
                dpsco.generalised_gaussian(1.0, 1e-6, k),
                "found",
                (1.0367, 1.0369),
            )
            for k in (1, 4)
        ),
        (dpsco.single_pass_selections(1.0, 1e-6, 1000), "share", (1.03, 2)),
        (dpsco.noise_exponential(10, 4), "found", (10 / 8) ** 2),
        (dpsco.noise_exponential(2.5, 4), "share", LESS),
        (dpsco.noise_exponential(1.9, 4), "share", (2, math.inf)),
        (dpsco.noise_tail(4), "claimed", math.e),
        # Gaussian
        *((dpsco.noise_divergence(a, 2), "found", 8 / a) for a in (2, 16)),
        (dpsco.noise_divergence(2, 3), "share", (0.3, 0.5)),
    ],
)
def test_an_argument_gives_its_number(case, number, expected):
    found = getattr(case, number)
    if isinstance(expected, tuple):
        assert expected[0] <= found <= expected[1]
    else:
        assert found == pytest.approx(expected, rel=1e-6)


def test_noisy_max_by_simulation_costs_nearly_twice():
    """Chances of the lower of two scores before and after both move by one."""
    rng = np.random.default_rng(3)
    gap, pure = 4.0, 0.5
    draws = rng.laplace(size=(2, 4_000_000))
    difference = draws[1] - draws[0]
    before, after = (
        (difference > gap).mean(),
        (difference > gap - 2 * pure).mean(),
    )
    case = dpgcd.noisy_max_step(gap, pure)
    assert case.found == pytest.approx(math.log(after / before), abs=0.01)
    assert case.share > 1.6


def test_selections_cost_like_the_root_of_the_nodes_and_a_single_one_its_ratio():
    four, many = (
        dpbcfw.node_selections(1.0, 1 / 800, k, 100).share for k in (4, 16)
    )
    assert many / four == pytest.approx(2.1, abs=0.1)
    assert dpbcfw.node_selections_noise(1.0, 1 / 800, 16, 100).share < many
    one = dpbcfw.node_selections_noise(1.0, 1e-12, 1, 1)
    moved = 1 / (4 * np.sqrt(2 * np.log(2e12)))
    right = 1 - np.exp(-moved) * (1 + moved / 2) / 2
    assert one.found == pytest.approx(np.log(right / (1 - right)), rel=1e-6)


@pytest.mark.parametrize(("m", "d"), [(1, 1), (2, 5), (4, 5)])
def test_moments_of_the_noise_are_those_of_draws(m, d):
    drawn = gg.generalised_gaussian(streams(3).noise, 3.0, (20_000, d))
    lengths = (np.abs(drawn) ** 3).sum(axis=1) ** (1 / 3)
    case = dpsco.noise_moment(m, d)
    assert case.found == pytest.approx(case.claimed, rel=1e-9)
    assert (lengths**m).mean() == pytest.approx(case.found, rel=0.05)


def test_records_and_sensitivities_are_those_of_the_solver():
    options, setup = noisy_sfw.Options(), Setup("least_squares", 2.0, 4)
    assert (
        dpsco.records_read(256).found == noisy_sfw.tree(256, options).records
    )
    printed = noisy_sfw.printed_sensitivity(setup, 1)
    worst = max(
        noisy_sfw.child_sensitivity(setup, 1, t, depth, leaf, options)
        for t in range(1, 5)
        for depth in range(1, t + 1)
        for leaf in range(2 ** (t - depth), 2**t, 2 ** (t - depth + 1))
    )
    assert dpsco.inner_sensitivity(4).share == pytest.approx(worst / printed)
