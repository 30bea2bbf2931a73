"""No single record, whatever numbers it holds, decides what a fit does.

Both estimators with every solver: a record of NaN, infinities, numbers whose squares
overflow or underflow. Nothing raises or warns (a warning is an error here), nothing is
constant. The audit's mechanisms show that no release moves too far.
"""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

import dperm
from dperm.estimators import estimators, methods
from weekly import variants

NUMBERS = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-200, 5e-324, 0.0)


def solvers_of_estimators():
    """Every solver that solves a composite problem; not its variants by options."""
    made = (methods.method(name) for name in methods.known())
    return sorted({one.algorithm for one in made} - {"fw", "bcfw"})


def data(n=24):
    rng = np.random.default_rng(4)
    X = rng.uniform(0.5, 1.5, (n, 4)) * rng.choice((-1.0, 1.0), (n, 4))
    return X, np.where(X[:, 0] + 0.3 * X[:, 1] > 0, 1.0, -1.0)


def priced(ledger, *target):
    """In place of a calibration, which does not know the data."""
    return SimpleNamespace(
        noise_multiplier=3.0, ledger=ledger(3.0), true_epsilon=0.5
    )


BY_DAY = (  # a spread of solvers, half of them without an intercept
    "intercept-ada_ssp",
    "intercept-dp_cd",
    "intercept-objective_perturbation",
    "without-dp_bcfw",
    "without-dp_sgd",
    "without-dp_gram",
    "without-moments",
)
CASES = [
    f"{start}-{solver}"
    for solver in solvers_of_estimators()
    for start in ("intercept", "without")
]


@pytest.mark.parametrize("case", variants(CASES, BY_DAY))
def test_an_estimator_neither_raises_nor_warns_nor_is_constant(
    case, monkeypatch
):
    """On dense and sparse data; labels of another class, and of every number."""
    monkeypatch.setattr(estimators, "calibrated", priced)
    start, _, solver = case.partition("-")
    intercept = start == "intercept"
    X, y = data()
    for make, kind in itertools.product(
        (np.asarray, sparse.csr_array), (0, 1)
    ):
        plain = {"epsilon": 0.5, "delta": 1e-3, "fit_intercept": intercept}
        plain["bounds"] = (-2.0, 2.0)
        plain |= (
            {"classes": (-1.0, 1.0)} if kind else {"label_bounds": (-2.0, 2.0)}
        )
        model = (dperm.DPRegressor, dperm.DPClassifier)[kind](solver, **plain)
        try:
            model.set_params(random_state=0).fit(make(X), y)
        except ValueError as error:
            # of a method without this loss, or sparse data
            assert "cannot do this" in str(error)
            continue
        for x, label in itertools.product(NUMBERS, (np.nan, -1e308, 1.0)):
            X[3], y[3] = x * np.array([1, -1, 1, -1]), label
            fits = [model.set_params(random_state=seed).fit(make(X), y).coef_.ravel()
                    for seed in (1, 2)]  # fmt: skip
            assert all(math.isfinite(w) for one in fits for w in one), (
                x,
                label,
            )
            assert len({one.tobytes() for one in fits}) == 2, (x, label)
