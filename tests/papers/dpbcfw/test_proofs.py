from __future__ import annotations

import numpy as np
import pytest

from dperm.papers.dpbcfw import proofs


def test_selections_of_all_nodes_compose():
    shares = [proofs.node_selections(1.0, 1 / 800, k, 100).share for k in (1, 4, 16)]
    assert shares[0] > 1
    assert shares[2] / shares[1] == pytest.approx(2.1, abs=0.1)  # like sqrt(K)


def test_the_least_that_selections_cost_is_below_what_they_are_composed_to():
    case = (1.0, 1 / 800, 16, 100)
    least, most = proofs.node_selections_noise(*case), proofs.node_selections(*case)
    assert 1 < least.share < most.share
    one = proofs.node_selections_noise(1.0, 1e-12, 1, 1)  # a single answer: its ratio
    moved = 1 / (4 * np.sqrt(2 * np.log(2e12)))
    right = 1 - np.exp(-moved) * (1 + moved / 2) / 2
    assert one.found == pytest.approx(np.log(right / (1 - right)), rel=1e-6)


def test_a_sketched_feature_moves_whatever_the_records():
    assert proofs.sketched_features(1.0, 1 / 800, 800, 80, 4, 100).share > 100


def test_one_release_costs_less_than_all_and_more_than_the_target():
    case = (1.0, 1 / 800, 800, 80, 4, 100)
    one = proofs.sketched_features_noise(*case, share=1.0)
    assert 4 < one.found < proofs.sketched_features(*case).found / 50
    assert one.claimed == 1.0


@pytest.mark.parametrize("common", [0.0, 0.9])
def test_the_mean_of_the_largest_is_no_less_than_the_largest_mean(common):
    assert proofs.set_curvature(40, 8, 3, common).share <= 1 + 1e-12
    assert proofs.set_curvature(40, 8, 1, common).share == pytest.approx(1)
    assert proofs.set_curvature(40, 8, 8, common).share == pytest.approx(1)


def test_sums_over_pairs_bound_the_curvature_and_are_nearly_attained():
    for nodes in (1, 2):
        loose, close = (proofs.pair_bound(40, 8, 2, nodes, c).share for c in (0, 0.99))
        assert loose < close <= 1


def test_printed_gradients_lack_the_number_of_records():
    for gradient in (proofs.logistic_gradient, proofs.hinge_gradient):
        assert gradient(50).found == pytest.approx(50, rel=1e-6)


def test_the_count_outgrows_the_printed_logarithm_and_not_the_right_one():
    near, far = proofs.uplink(1e6, 1e3).found, proofs.uplink(1e12, 1e3).found
    assert 1.2 < near < far
    assert far < (np.log(1e12) / np.log(1e3)) ** (2 / 3)
