"""Whole fits tell nothing but releases, draw no number twice, and keep to targets."""

import logging
import warnings
from dataclasses import replace

import numpy as np
import pytest

from dperm import DPClassifier, PrivateSearch
from dperm.audit.checks import Audit
from dperm.audit.mechanism import DELTA
from dperm.audit.solvers import mechanisms
from dperm.estimators import audited, containers, doors, estimators, guarantee
from dperm.privacy.accountants import tight as accountant
from dperm.problems import door
from dperm.solvers.single_pass import phased_sgd

BRIEF = {"neighbours": 4, "runs": 12}
GIVEN = {
    "bounds": (-2, 2),
    "epsilon": 1.0,
    "delta": DELTA,
    "setting": {"steps": 2},
}


def classifier(classes=(-1.0, 1.0)):
    return Audit(
        audited.estimator(DPClassifier("dp_gd", classes=classes, **GIVEN))
    )


@pytest.fixture
def fitted_with(monkeypatch):
    """Fits that also do something with the columns as they clean them."""

    def plant(deed):
        sound = DPClassifier._cleaned

        def cleaned(model, X, y):
            t, every = sound(model, X, y)
            deed(model, np.asarray(t))
            return t, every

        monkeypatch.setattr(DPClassifier, "_cleaned", cleaned)

    return plant


def keeps(model, t):
    model.largest_ = float(t[:, 0].max())


def warns(model, t):
    if (t == 0).all(axis=1).any():
        warnings.warn("a record counts as none", stacklevel=1)


def logs(model, t):
    logging.getLogger("dperm.test").info("%g", t.sum())


def prints(model, t):
    print(t.sum())


def raises(model, t):
    if (t == 1).all(axis=1).any():
        raise ValueError("a record at the upper bounds")


@pytest.mark.parametrize("deed", [keeps, warns, logs, prints, raises])
def test_whatever_a_fit_tells_besides_is_seen(fitted_with, deed):
    assert not classifier().told().caught
    audit = classifier()
    fitted_with(deed)
    assert audit.told().caught


def test_classes_that_share_noise_are_seen(monkeypatch):
    audit = classifier((-1.0, 0.0, 1.0))
    assert not audit.parts().caught
    monkeypatch.setattr(
        estimators, "seeds_of", lambda seed, count: [seed] * count
    )
    assert "drawn before" in audit.parts().note


def test_runs_of_a_search_that_share_noise_are_seen(monkeypatch):
    audit = Audit(audited.search(False))
    assert not audit.parts().caught
    sound = PrivateSearch._tried

    def tried(search, runs, paid, seed):
        yield from sound(search, runs, paid, seed)
        yield from sound(search, runs, paid, seed)

    monkeypatch.setattr(PrivateSearch, "_tried", tried)
    assert "drawn before" in audit.parts().note


@pytest.mark.parametrize("forgotten", ["epsilon", "delta"])
def test_a_saved_price_with_too_short_a_key_is_seen(monkeypatch, forgotten):
    kept = {}

    def calibrated(ledger_of, epsilon, delta):
        target = {"epsilon": epsilon, "delta": delta}
        del target[forgotten]
        key = (ledger_of(1.0), *target.values())
        if key not in kept:
            kept[key] = guarantee.calibrated(ledger_of, epsilon, delta)
        return kept[key]

    audit = classifier()
    assert not audit.target().caught
    monkeypatch.setattr(estimators, "calibrated", calibrated)
    assert audit.target().caught


def test_a_budget_that_forgets_is_seen(monkeypatch):
    audit = classifier()
    assert not audit.parts().caught
    monkeypatch.setattr(estimators, "charge", lambda *cost: None)
    assert "a budget" in audit.parts().note


def test_every_solver_has_other_noise_for_another_target():
    (m,) = mechanisms("dp_cd", "dp_cd", {}, ("tight",), varied=False)
    assert not Audit(m).target().caught
    sound = m.calibrated
    stale = replace(m, calibrated=lambda epsilon, delta: sound(epsilon, DELTA))
    assert Audit(stale).target().caught


def test_a_price_that_forgets_delta_is_seen(monkeypatch):
    (m,) = mechanisms("dp_cd", "dp_cd", {}, ("tight",), varied=False)
    assert not Audit(m, **BRIEF).epsilon().caught
    right = accountant.epsilon
    stale = replace(m)
    monkeypatch.setattr(
        accountant, "epsilon", lambda ledger, delta: right(ledger, DELTA)
    )
    monkeypatch.setattr(
        accountant.epsilon, "cache_clear", right.cache_clear, False
    )
    assert Audit(stale, **BRIEF).epsilon().caught


def test_a_step_above_its_bound_is_seen(monkeypatch):
    def curved():
        every = mechanisms("phased_sgd", "phased_sgd", {}, ("tight",))
        return next(m for m in every if m.name.endswith("long steps"))

    assert not Audit(curved(), **BRIEF).sensitivity().caught
    sound = phased_sgd.step
    monkeypatch.setattr(phased_sgd, "step", lambda *of: 8 * sound(*of))
    assert Audit(curved(), **BRIEF).sensitivity().caught


def test_the_audit_attacks_the_door(monkeypatch):
    """A door that reads a number off an object by asking it tells neighbours apart."""
    monkeypatch.setattr(doors, "PLACES", (0,))
    first = audited.mechanisms("dp_gd")[0]
    assert first.name == "DPClassifier(dp_gd)"
    sound = Audit(first).told()
    assert not sound.caught and int(sound.note.split()[0]) > 1000
    # doors see it alone
    monkeypatch.setattr(containers, "faults", lambda: ([], 0))
    monkeypatch.setattr(door, "number", float)
    assert Audit(first).told().caught
