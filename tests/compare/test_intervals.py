"""Intervals of a private fit: they cover what they say, and cost nothing."""

import numpy as np
import pandas as pd
import pytest

from dperm import DPClassifier, DPRegressor
from dperm.compare import intervals

BETA, SIZE = np.array([0.8, -0.4, 0.1]), 2000
RANGES = {"bounds": (-1, 1), "label_bounds": (-4, 4)}
WHOLE = {"setting": {"radius": 2.0}}  # clips next to no record


def drawn(seed, n=SIZE, unit=1.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X * unit, unit * (X @ BETA + 0.3 + rng.normal(0, 0.5, n))


METRIC = {"setting": {"steps": 10, "radius": 3.0, "clip": 5.0}}


def covered(known, epsilon, unit=1.0, runs=120, solver="moments"):
    """Shares of coefficients, expectations and labels that intervals cover."""
    Z, labels = drawn(10_000, 20, unit)
    truth, mean = np.append(BETA, 0.3 * unit), unit * (Z / unit @ BETA + 0.3)
    found = []
    for seed in range(runs):
        model = DPRegressor(solver, epsilon=epsilon, random_state=seed, **known)
        model.fit(*drawn(seed, unit=unit))
        ways = model.intervals(), model.intervals(Z), model.intervals(Z, labels=True)
        each = zip(ways, (truth, mean, labels), strict=True)
        found.append([((w["low"] <= t) & (t <= w["high"])).mean() for w, t in each])
    return np.mean(found, axis=0)


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_they_cover_as_often_as_they_say(epsilon, monkeypatch):
    coefficients, means, labels = covered({**RANGES, **WHOLE}, epsilon)
    assert 0.92 < coefficients < 0.98 and 0.92 < means < 0.98 and 0.9 < labels < 0.99
    real = intervals.Spread

    def narrow(covariance, residual, weak):
        return real(0.5 * covariance, residual, weak)

    monkeypatch.setattr(intervals, "Spread", narrow)  # a spread that is too small shows
    assert covered({**RANGES, **WHOLE}, epsilon, runs=60)[0] < 0.88


def test_those_of_a_private_metric_cover_at_least_what_they_say(monkeypatch):
    how = {**RANGES, **METRIC}
    for epsilon in (1.0, 10.0):
        assert min(covered(how, epsilon, 1.0, 60, "dp_gram")) > 0.93
    for part in ("A", "sampling"):  # without either they are too narrow
        monkeypatch.setattr(intervals, "_joined", without(part, intervals._joined))
        found = covered(how, 2.0 if part == "A" else 300.0, 1.0, 60, "dp_gram")
        monkeypatch.undo()
        assert found[0] < 0.85


def without(part, real):
    """What joins the parts of a covariance, less the gradients' noise or sampling."""

    def joined(at, raw, s, Q, residual, noise):
        if part == "A":
            return real(at, raw, s, Q, residual, 0 * noise)
        return real(at, raw, s, Q, 0.0, noise)

    return joined


def test_they_are_in_the_units_of_the_columns_under_private_scales():
    coefficients, means, _ = covered(WHOLE, 3.0, unit=1e3)
    assert 0.92 < coefficients < 0.985 and 0.92 < means < 0.985


def test_they_cost_nothing_and_have_names():
    X, y = drawn(0)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = DPRegressor("moments", random_state=0, **RANGES).fit(frame, y)
    before = str(model.epsilon_)
    made = model.intervals(level=0.9)
    assert [*made.index] == ["a", "b", "c", "intercept"]
    assert made["estimate"].to_numpy()[:3] == pytest.approx(model.coef_)
    assert (made["low"] < made["estimate"]).all()
    wide, at = model.intervals(level=0.99), model.intervals(frame[:5])
    assert (wide["high"] > made["high"]).all() and str(model.epsilon_) == before
    assert at["estimate"].to_numpy() == pytest.approx(model.predict(frame[:5]))
    single = model.intervals(frame[:5], labels=True)
    assert (single["high"] > at["high"]).all()
    bare = DPRegressor("moments", fit_intercept=False, random_state=0).fit(X, y)
    assert [*bare.intervals().index] == ["x0", "x1", "x2", "intercept"]
    assert bare.intervals().loc["intercept"].tolist() == [0.0, 0.0, 0.0]


def test_what_has_none_is_refused():
    X, y = drawn(0)
    short = ({"steps": 4}, {"radius": 2.0}, {"clip": 4.0})  # the latter clip too much
    narrow = [
        {"solver": "dp_gram", "setting": METRIC["setting"] | one} for one in short
    ]
    for known in ({"solver": "dp_gd"}, {"solver": "moments", "l1": 0.1}, *narrow):
        model = DPRegressor(random_state=0, **known).fit(X, y)
        with pytest.raises(
            ValueError, match="expected a fit by solver moments with l1=0"
        ):
            model.intervals()
    fitted = DPRegressor("moments", random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="level: expected a number in"):
        fitted.intervals(level=95)
    assert not hasattr(DPClassifier(), "intervals")


def test_a_direction_that_the_noise_hides_makes_them_wide():
    X, y = drawn(0)
    twice = np.column_stack((X, X[:, 0]))
    known = {"random_state": 0, **RANGES, **WHOLE}
    one = DPRegressor("moments", epsilon=10.0, **known).fit(X, y).intervals()
    two = DPRegressor("moments", epsilon=10.0, **known).fit(twice, y).intervals()
    width = two["high"] - two["low"]
    assert one.attrs["weak"] == 0 and two.attrs["weak"] == 1
    assert min(width["x0"], width["x3"]) > 10 * (one["high"] - one["low"])["x0"]
    assert width["x1"] < 2 * (one["high"] - one["low"])["x1"]
