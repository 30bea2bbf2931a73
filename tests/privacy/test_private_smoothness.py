"""Private smoothness constants of DP-CD: their bounds, noise and price."""

import numpy as np
import pytest
from scipy import sparse

from dperm.core.privacy.accounting import epsilon, true_epsilon
from dperm.core.privacy.ledger import Laplace, Ledger
from dperm.core.privacy.mechanisms import streams
from dperm.solvers.lanes.dp_cd_priv import feature_bounds, smoothness_event


@pytest.mark.parametrize("factor", [1.0, 0.25])
def test_bounds_of_dense_and_sparse_features(factor):
    X = streams(0).sampling.standard_normal((500, 8)) * 10.0 ** np.arange(-4, 4)
    X[np.abs(X) < 1e-4] = 0.0
    bounds = feature_bounds(X, factor)
    assert bounds == pytest.approx(factor * (2 * np.abs(X).max(axis=0)) ** 2)
    assert feature_bounds(sparse.csc_array(X), factor) == pytest.approx(bounds)


def test_what_the_release_costs():
    paper, strict = (smoothness_event(8, 0.1, name) for name in ("paper", "strict"))
    assert isinstance(paper, Laplace) and paper.count == strict.count == 8
    assert paper.scale == pytest.approx(2 * strict.scale) == pytest.approx(160.0)
    assert epsilon(Ledger((paper,)), 1e-9, "paper") == pytest.approx(0.1)
    assert epsilon(Ledger((strict,)), 1e-9, "paper") == pytest.approx(0.1)
    assert true_epsilon(Ledger((paper,)), 1e-9) == pytest.approx(0.05, rel=0.02)
    assert true_epsilon(Ledger((strict,)), 1e-9) == pytest.approx(0.1, rel=0.02)
