from __future__ import annotations

import pytest

from dperm.papers.dpbcfw import proofs


def test_selections_of_all_nodes_compose():
    shares = [proofs.node_selections(1.0, 1 / 800, k, 100).share for k in (1, 4, 16)]
    assert shares[0] > 1
    assert shares[2] / shares[1] == pytest.approx(2.1, abs=0.1)  # like sqrt(K)


def test_a_sketched_feature_moves_whatever_the_records():
    assert proofs.sketched_features(1.0, 1 / 800, 800, 80, 4, 100).share > 100
