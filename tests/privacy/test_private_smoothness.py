"""Private smoothness constants of DP-CD: their bounds, noise and price."""

import numpy as np
import pytest
from scipy import sparse

from conftest import make_problem
from dperm.core.lanes import Lanes
from dperm.core.privacy.accounting import epsilon, true_epsilon
from dperm.core.privacy.ledger import Laplace, Ledger
from dperm.core.privacy.mechanisms import streams
from dperm.solvers.lanes import dp_cd_priv
from dperm.solvers.lanes.dp_cd_priv import feature_bounds, smoothness_event


@pytest.mark.parametrize("factor", [1.0, 0.25])
def test_bounds_of_dense_and_sparse_features(factor):
    X = streams(0).sampling.standard_normal((500, 8)) * 10.0 ** np.arange(-4, 4)
    X[np.abs(X) < 1e-4] = 0.0
    bounds = feature_bounds(X, factor)
    assert bounds == pytest.approx(factor * (2 * np.abs(X).max(axis=0)) ** 2)
    assert feature_bounds(sparse.csc_array(X), factor) == pytest.approx(bounds)


@pytest.mark.parametrize(("calibration", "stated"), [("paper", 2.0), ("strict", 1.0)])
def test_constants_have_the_noise_of_their_release_and_never_fall_below_it(
    calibration, stated
):
    problem, options = make_problem("least_squares"), dp_cd_priv.Options(share=0.1)
    lanes = Lanes(np.ones(1), np.ones(1), 1.0, calibration)
    b = (2 * np.abs(problem.A).max(axis=0)) ** 2
    scale, found = stated * b * problem.p / (problem.n * 0.1), []
    for seed in range(400):
        run = dp_cd_priv.Run(problem, lanes, streams(seed), options)
        found.append((run.M - problem.smoothness) / scale)
    found = np.array(found)
    least = 1 - problem.smoothness / scale
    assert (found >= least * (1 - 1e-9)).all() and (np.isclose(found, least)).any()
    above = np.exp(-least) / 2  # chance that Laplace noise exceeds what is raised to
    error = np.sqrt(above * (1 - above) / 400)
    assert (np.abs((found > least + 1e-9).mean(axis=0) - above) < 4 * error).all()


def test_what_the_release_costs():
    paper, strict = (smoothness_event(8, 0.1, name) for name in ("paper", "strict"))
    assert isinstance(paper, Laplace) and paper.count == strict.count == 8
    assert paper.scale == pytest.approx(2 * strict.scale) == pytest.approx(160.0)
    assert epsilon(Ledger((paper,)), 1e-9, "paper") == pytest.approx(0.1)
    assert epsilon(Ledger((strict,)), 1e-9, "paper") == pytest.approx(0.1)
    assert true_epsilon(Ledger((paper,)), 1e-9) == pytest.approx(0.05, rel=0.02)
    assert true_epsilon(Ledger((strict,)), 1e-9) == pytest.approx(0.1, rel=0.02)
