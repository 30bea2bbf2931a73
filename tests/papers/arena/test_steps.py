"""Fits as users make them: their excess error, and what cannot be fitted."""

import numpy as np
import pandas as pd
import pytest

from dperm import DPRegressor
from dperm.papers.arena import outcomes, steps, sweeps

HOW = {"epsilons": [1.0, 1e4], "runs": 2, "most": 400}


@pytest.fixture
def fits(configured):
    """Rows of a solver on the diabetes data."""
    config = configured("scale=full", "paper=arena", "problem=diabetes")

    def run(solver, seed=1):
        point = {"problem": "diabetes", "solver": solver}
        return pd.DataFrame(sweeps.fits(config, point, seed, **HOW))

    return run


def test_a_fit_has_its_excess_over_the_best_constant_and_the_least_loss(fits):
    found = fits("moments")
    assert found["epsilon"].tolist() == [1.0, 1.0, 1e4, 1e4]
    assert (found["loss"] == "least squares").all() and (found["p"] == 11).all()
    assert (found["n"] == 320).all()  # four fifths of 400
    spent = found["true_epsilon"] / found["epsilon"]
    assert (
        spent.between(0.99, 1).all() and (found["given"] == "n; types of columns").all()
    )
    (mean, *_) = outcomes.means(
        found.assign(problem="a", solver="moments", seconds=0.0, status="ok")
    )["mean"]
    assert mean == pytest.approx(found["relative_error"][:2].mean())
    near = found["relative_error"][found["epsilon"] == 1e4]
    assert (near.abs() < 0.05).all() and found["relative_error"].iloc[0] > 0.05
    pd.testing.assert_frame_equal(found, fits("moments"))
    assert fits("moments", 2)["relative_error"].iloc[0] != found["relative_error"][0]


def test_a_method_of_another_loss_is_a_gap_with_its_reason(fits):
    (row,) = fits("objective_perturbation").to_dict("records")
    assert row["status"] == "gap" and "cannot do this" in row["reason"]


def test_the_ends_are_the_mean_and_least_squares():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X @ [1.0, 2.0, 0.0] + 5 + rng.normal(size=200)
    train = pd.DataFrame(X, columns=["a", "b", "c"])
    case = steps.Case(train, train, y, y, {}, False)
    constant, least, p = steps.ends(case)
    A = np.c_[X, np.ones(200)]
    exact = np.mean((A @ np.linalg.lstsq(A, y)[0] - y) ** 2) / 2
    assert constant == pytest.approx(np.var(y) / 2) and p == 4
    assert exact <= least < exact * 1.001
    assert isinstance(case.model(epsilon=1.0), DPRegressor)
