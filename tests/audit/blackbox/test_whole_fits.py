"""Fits as users make them, and fits with a slip."""

import warnings
from dataclasses import replace

import numpy as np

from dperm import DPRegressor, PrivateSearch
from dperm.audit.blackbox import Claim, audit
from dperm.audit.functions import Domain
from dperm.compare import search

CLAIM = Claim(epsilon=1.0, delta=0.01, seconds=1e9, runs=240)
STEP = {"setting": {"steps": 1}, "delta": 0.01}
DECLARED = {"bounds": (-1, 1), "label_bounds": (-1, 1)}


def published(model, X, y):
    """Coefficients and intercept."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return np.r_[np.ravel(model.coef_), np.ravel(model.intercept_)]


def fitting(X, y, seed):
    return published(DPRegressor("dp_gd", random_state=seed, **DECLARED, **STEP), X, y)


def searching(X, y, seed):
    model = DPRegressor("dp_gd", fit_intercept=False, **DECLARED, **STEP)
    found = PrivateSearch(model, {"l2": [0.1, 1.0]}, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.ravel(found.fit(X, y).best_estimator_.coef_)


def verdict(fit, claim=CLAIM):
    return audit(fit, claim, Domain(12, 1, None, "linf", None, False, "replace"))


def test_a_fit_is_not_refuted():
    found = verdict(fitting)
    assert not found.refuted, found


def test_a_search_is_not_refuted():
    found = verdict(searching)
    assert not found.refuted, found


def test_a_search_of_loud_runs_is_refuted(monkeypatch):
    """Far below the noise that a choice asks of its runs."""
    monkeypatch.setattr(
        search, "calibrate_choice", lambda ways, epsilon, delta: [0.15] * len(ways)
    )
    monkeypatch.setattr(search, "choice_epsilon", lambda ledgers, delta: 0.9)
    assert verdict(searching, claim=replace(CLAIM, runs=1200)).refuted
