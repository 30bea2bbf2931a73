"""No single record, whatever numbers it holds, may decide what a run does.

Every solver of the configuration and both estimators with every solver, found by the
registries: a record of NaN, infinities, numbers whose squares overflow or underflow.
What is released moves within the ledger's bound, nothing raises or warns (a warning is
an error here), nothing is constant.
"""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

import dperm
from dperm.audit import registry
from dperm.audit.climbing import ROUNDING
from dperm.audit.replay import Replay
from dperm.compare import contestants as methods
from dperm.compare import estimators
from dperm.core.experiment.locate import available, conf_file
from subjects import subjects as every

NUMBERS = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-200, 5e-324, 0.0)
SLOW = {"DPRegressor(dp_bcfw)": 7, "DPClassifier(dp_bcfw)": 3}  # some records alone
LOUD = 1e6  # noise that takes the weights so far that products overflow


def subjects(name):
    return every(conf_file(f"solver/{name}.yaml"))


def records(subject):
    """Every number in all features, with every label that the loss takes."""
    p, bound = subject.base.X.shape[1], subject.bound
    for x, y in itertools.product(NUMBERS, NUMBERS if subject.real else (1.0,)):
        row = x * np.where(np.arange(p) % 2, -1.0, 1.0)  # infinity less infinity
        yield (row if bound is None else np.clip(row, -bound, bound)), y


def shifts(subject, first, second, history=()):
    at = subject.positions[0]
    views = len(subject.run(subject.base, 5).views)
    taken = [at] * views if subject.hidden else None
    return Replay(subject, first, second, 5, taken).couple(history).shifts


@pytest.mark.parametrize("name", available("solver"))
def test_an_extreme_record_moves_no_release_beyond_its_bound(name):
    """From small weights and from large ones, which a history of loud noise makes."""
    found = subjects(name)
    assert found or name in ("fw", "bcfw", *registry.BOXES)  # no shift of noise
    for subject in found:
        if subject.calibration != "strict":  # another noise, the same sums
            continue
        plain = subject.run(subject.base, 5)
        loud = [draw.moved(LOUD * np.ones(draw.unit.size)) for draw in plain.draws]
        stride = SLOW.get(subject.name.split(",")[0], 1)
        for k, (x, y) in [*enumerate(records(subject))][::stride]:
            other = subject.base.replaced(subject.positions[0], x, y)
            # of the 64 pairs with labels half have small weights, as on a chessboard
            both = [(), loud] if not subject.real else [((), loud)[(k // 8 + k) % 2]]
            for history in both:
                for shift in shifts(subject, other, subject.base, history):
                    assert shift.ratio <= 1 + ROUNDING, (subject.name, x, y)


def solvers_of_estimators():
    """Every solver that solves a composite problem; not its variants by options."""
    made = (methods.method(name) for name in methods.known())
    return sorted({one.section.algorithm for one in made} - {"fw", "bcfw"})


def data(n=24):
    rng = np.random.default_rng(4)
    X = rng.uniform(0.5, 1.5, (n, 4)) * rng.choice((-1.0, 1.0), (n, 4))
    return X, np.where(X[:, 0] + 0.3 * X[:, 1] > 0, 1.0, -1.0)


def priced(ledger, *target):
    """In place of a calibration, which does not know the data."""
    return SimpleNamespace(noise_multiplier=3.0, ledger=ledger(3.0), true_epsilon=0.5)


@pytest.mark.parametrize("solver", solvers_of_estimators())
@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "without"])
def test_an_estimator_neither_raises_nor_warns_nor_is_constant(
    solver, intercept, monkeypatch
):
    """On dense and sparse data; labels of another class, and of every number."""
    monkeypatch.setattr(estimators, "calibrate", priced)
    X, y = data()
    for make, kind in itertools.product((np.asarray, sparse.csr_array), (0, 1)):
        plain = {"epsilon": 0.5, "delta": 1e-3, "fit_intercept": intercept}
        if kind:
            plain["classes"] = (-1.0, 1.0)
        model = (dperm.DPRegressor, dperm.DPClassifier)[kind](solver, **plain)
        if not _able(model, make(X), y):
            continue
        for x, label in itertools.product(NUMBERS, (np.nan, -1e308, 1.0)):
            X[3], y[3] = x * np.array([1, -1, 1, -1]), label
            fits = [model.set_params(random_state=seed).fit(make(X), y).coef_.ravel()
                    for seed in (1, 2)]  # fmt: skip
            assert all(math.isfinite(w) for one in fits for w in one), (x, label)
            assert len({one.tobytes() for one in fits}) == 2, (x, label)


def _able(model, X, y):
    """Whether the method takes this loss and kind of matrix at all."""
    try:
        model.set_params(random_state=0).fit(X, y)
    except ValueError as error:
        assert "cannot do this" in str(error)
        return False
    return True
