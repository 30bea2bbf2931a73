"""Neighbours by adding or removing: n is released first, and nothing else tells it."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats

import dperm
from dperm import Budget, BudgetError
from dperm.accountants.stable_counts import StableCounts
from dperm.compare import estimators
from dperm.compare.estimators import DPClassifier, DPRegressor
from dperm.compare.frames import TYPES
from dperm.core.privacy.accounting import true_epsilon
from dperm.core.privacy.ledger import ADD_REMOVE, Laplace, Ledger, RelationError
from dperm.solvers import hidden_number
from dperm.solvers.hidden_number import emptied, event, noisy, resized

KINDS = {
    "array": np.asarray,
    "sparse": sparse.csr_array,
    "frame": lambda X: pd.DataFrame(X, columns=[*"abc"]).assign(
        b=lambda one: one["b"] > 0, c=lambda one: one["c"].round().astype(int)
    ),
}
DECLARED = {"delta": 1e-6, "neighbours": "add_remove"}


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 3))
    return X, X @ [1.0, -2.0, 0.5] + 0.1 * rng.standard_normal(2000)


# --- the number -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", [7, None], ids=["doubles", "exact"])
def test_the_number_has_laplace_noise_of_its_share(seed):
    stated = event(0.5)
    assert stated.sensitivity == 1.0 and stated.scale == 1 / (0.02 * 0.5)
    found = np.array([
        noisy(10_000, stated, None if seed is None else seed + k) for k in range(4000)
    ])  # fmt: skip
    apart = np.abs(found - 10_000)
    assert abs(np.median(found) - 10_000) < 10
    assert abs(apart.mean() / stated.scale - 1) < 5 / math.sqrt(4000)
    assert len({*found}) > 300


def test_at_least_two_records_are_left():
    assert noisy(0, Laplace(1.0, 1e-9, 1, "", ""), 0) == 2


# --- neighbours after resizing --------------------------------------------------------


def rows(X, y, m):
    """Records as a multiset; of nothing there is one kind."""
    made, labels, more = resized(X, y, m)
    made = emptied(made, more)
    assert made.shape[0] == len(labels) == m
    return sorted(map(tuple, np.column_stack((made, np.nan_to_num(labels, nan=-9.0)))))


@pytest.mark.parametrize("place", [0, 3, 8])
@pytest.mark.parametrize("m", [2, 7, 8, 9, 12])
def test_neighbours_differ_in_one_record_whatever_the_number(place, m):
    X, y = np.arange(24.0).reshape(8, 3), np.arange(8.0)
    more = np.insert(X, place, 99.0, axis=0), np.insert(y, place, 99.0)
    one, two = rows(X, y, m), rows(*more, m)
    left = [*two]
    for row in one:
        if row in left:
            left.remove(row)
    assert len(left) <= 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [5, 8, 11])
def test_kinds_of_columns_do_not_tell_whether_records_were_added(kind, m):
    X = KINDS[kind](np.random.default_rng(0).standard_normal((8, 3)))
    made, y, more = resized(X, np.arange(8), m)
    assert type(made) in (type(X), sparse.csc_array) and made.shape == (m, 3)
    assert more == max(m - 8, 0) and y.dtype == float
    if kind == "frame":
        assert (made.dtypes == X.dtypes).all() and [*made.columns] == [*"abc"]
    words = resized(X, np.array([*"abababab"]), m)[1]
    assert words.dtype == object and (words[: min(m, 8)] != "").all()


# --- fits -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "solver", ["auto", "moments", "dp_gd", "dp_cd", "dp_minibatch"]
)
def test_a_fit_costs_what_was_asked_for_and_takes_nothing_as_public(data, solver):
    model = DPRegressor(solver, epsilon=0.8, random_state=1, **DECLARED).fit(*data)
    cost = model.epsilon_
    assert cost.relation == ADD_REMOVE == cost.ledger.relation
    assert cost.given == () and cost.unconditional and cost.delta == 1e-6
    number, *rest = cost.ledger.events
    assert type(number) is Laplace and number == event(0.8)
    price = true_epsilon(Ledger(tuple(rest)), 1e-6)
    assert cost.high == pytest.approx(0.02 * 0.8 + price) and 0.79 < cost.high <= 0.8
    assert str(cost).endswith("one record added or removed, given nothing")
    assert solver == "dp_cd" or model.score(*data) > 0.5


@pytest.mark.parametrize("release", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_classes_and_frames_are_fitted_too(data, kind, release):
    X = KINDS[kind](data[0])
    y = np.where(data[1] > 0, "up", "down")
    given = {"categories": {}, "missing_columns": []} if kind == "frame" else {}
    model = DPClassifier(epsilon=3.0, classes=("down", "up"), release=release,
                         **given, **DECLARED).fit(X, y)  # fmt: skip
    assert model.score(X, y) > 0.6
    assert model.epsilon_.given == ((TYPES,) if kind == "frame" else ())


def test_added_records_move_no_gradient(data, monkeypatch):
    """Whatever is added, weights are those of fewer records and a stronger penalty."""
    fitted = []
    for m in (2000, 3000):
        monkeypatch.setattr(hidden_number, "noisy", lambda *given, m=m: m)
        ends = {"bounds": (-1, 1), "label_bounds": (-6, 6), "random_state": 0}
        model = DPRegressor("moments", epsilon=1e6, l2=1e-9, **ends, **DECLARED)
        fitted.append(model.fit(data[0], data[1] + 1))
    assert fitted[1].coef_ == pytest.approx(fitted[0].coef_, rel=0.02)
    assert fitted[1].intercept_ == pytest.approx(fitted[0].intercept_, abs=0.01)


def test_nothing_that_is_kept_tells_the_number(data, monkeypatch):
    """The same of 2000 and of 1500 records, if the noisy number is the same."""
    monkeypatch.setattr(hidden_number, "noisy", lambda *given: 1800)
    said = []
    for n in (2000, 1500):
        X, y = data[0][:n], data[1][:n]
        model = DPRegressor("moments", random_state=0, **DECLARED).fit(X, y)
        said.append((model.epsilon_.ledger, model.solver_, model._delta))
        assert not {n, n - 1800, 1800 - n} & {
            one for one in pickle.loads(pickle.dumps(model)).__dict__.values()
            if isinstance(one, int) and not isinstance(one, bool)
        }  # fmt: skip
    assert said[0] == said[1]


@pytest.mark.parametrize(("given", "said"), [
    ({"delta": None}, "delta: expected a number with neighbours"),
    ({"feature_scale": "data"}, "not 'data'"),
    ({"neighbours": "add"}, "neighbours: expected one of replace, add_remove"),
])  # fmt: skip
def test_what_would_tell_the_number_is_refused(data, given, said):
    with pytest.raises(ValueError, match=said):
        DPRegressor(**{**DECLARED, **given}).fit(*data)


def test_undeclared_classes_are_refused(data):
    with pytest.raises(ValueError, match="expects classes"):
        DPClassifier(**DECLARED).fit(data[0], data[1] > 0)


def test_what_kind_of_labels_there_are_is_to_be_declared(data):
    """A third label, of one record, would decide whether there is a fit."""
    X, y = data
    for labels in (y, y > 0):
        with pytest.raises(ValueError, match=r"expects classes=.* or loss="):
            dperm.fit(X, labels, neighbours="add_remove", delta=1e-6)


def test_a_budget_is_of_one_kind_of_neighbours(data):
    with Budget(3.0, 1e-3) as budget:
        DPRegressor("moments", **DECLARED).fit(*data)
        assert budget.spent_epsilon == 1.0 and budget.given == ()
        with pytest.raises(BudgetError, match="neighbours"):
            DPRegressor("moments").fit(*data)


def test_another_relation_is_none():
    with pytest.raises(RelationError):
        Ledger((), relation="zero_out")


RUNS = 400  # of a whole fit


@pytest.mark.filterwarnings(
    "ignore:delta. 0.4 is more than 1/n", "ignore:X. \\d+ records"
)
def test_a_value_of_one_record_more_is_found_as_seldom_as_delta_pays_for(monkeypatch):
    """Its neighbour cannot publish it: all of that chance is the threshold's delta."""
    n, delta = 40, 0.4
    words = np.array(["u", "v"] * (n // 2), dtype=object)
    frame = pd.DataFrame({"s": words, "t": words[::-1]})
    more = pd.concat((pd.DataFrame({"s": ["Jane"], "t": ["Doe"]}), frame))
    how = {"epsilon": 5.0, "delta": delta, "neighbours": "add_remove"}
    model = DPClassifier("dp_gd", classes=(0, 1), fit_intercept=False, **how)
    monkeypatch.setattr(
        estimators, "weights", lambda on, *_: np.zeros(on.problem.p)
    )  # columns are found before
    found = 0
    for seed in range(RUNS):
        model.set_params(random_state=seed).fit(more, np.arange(n + 1) % 2)
        found += any(name in ("s=Jane", "t=Doe") for name in model.names_)
    number, counts = model.epsilon_.ledger.events[:2]
    assert isinstance(number, Laplace) and isinstance(counts, StableCounts)
    doubt = 0.1 * delta  # half of it a column
    chance = stats.norm.sf((counts.threshold - 1) / counts.scale)
    assert counts.alone * chance == pytest.approx(doubt, rel=1e-6)
    assert model.epsilon_.rest.high <= 4.9 * (1 + 1e-6)  # at delta, doubt included
    low, high = stats.binom.ppf([1e-4, 1 - 1e-4], RUNS, doubt)
    assert low <= found <= high
