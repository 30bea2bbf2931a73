"""A search that is paid for inside epsilon."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from conftest import make_problem
from dperm import Budget, BudgetError, DPClassifier, DPRegressor, PrivateSearch
from dperm.estimators import search
from dperm.estimators.methods import method
from dperm.estimators.search import (
    clipped_loss,
    loss_bound,
    score_event,
    scored,
)
from dperm.privacy.accountants.tight import gaussian_epsilon
from dperm.privacy.accounting import true_epsilon
from dperm.privacy.noise import gaussian, listening, streams
from dperm.privacy.private_selection import choice_epsilon
from dperm.problems.door import TYPES
from dperm.problems.losses import bounded

X = np.random.default_rng(0).uniform(-1.0, 1.0, (500, 2))
Y = X @ [1.0, -2.0]
GRID = [{"solver": ["dp_gd"], "l2": [0.01, 100.0]}, {"solver": ["moments"]}]


ENDS = {"bounds": (-1, 1), "label_bounds": (-3, 3)}


def searched(grid=GRID, model=None, X=X, y=Y, **given):
    model = model or DPRegressor(**ENDS)
    return PrivateSearch(model, grid, **{"random_state": 0, **given}).fit(X, y)


def test_the_whole_search_costs_its_epsilon(monkeypatch):
    seen = []

    def listening(on, setting, noise, seeds, epsilon):
        ledger = on.ledger(setting, noise)
        seen.append(ledger + search.Ledger((score_event(epsilon, 2e-6),)))
        return scored(on, setting, noise, seeds, epsilon)

    monkeypatch.setattr(search, "scored", listening)
    found = searched(epsilon=2.0)
    cost = found.epsilon_
    assert (
        1.9 < cost.high <= 2.0 and cost.delta == 4e-6 and cost.given == ("n",)
    )
    sums = found.best_estimator_.epsilon_.ledger.events[0]
    assert sums.unit.startswith("2 sqrt(k)")
    first = true_epsilon(search.Ledger((sums,)), 2e-6)
    assert first == pytest.approx(0.2, rel=1e-5)
    assert choice_epsilon(seen, 2e-6) + first <= cost.high * (1 + 1e-9)
    assert found.predict(X[:3]).shape == (3,) and found.best_params_["solver"]


def test_the_run_with_the_least_noisy_loss_is_published():
    """Whatever the seed, at a large epsilon the absurd penalty is not chosen."""
    grid, scores = {"solver": ["dp_gd"], "l2": [0.0, 100.0]}, []
    for seed in range(6):
        one = searched(grid, epsilon=50.0, random_state=seed)
        scores.append((one.best_params_["l2"], one.score(X, Y)))
    assert np.mean([l2 == 0.0 for l2, _ in scores]) > 0.5
    assert all(score > 0.5 for l2, score in scores if l2 == 0.0)


def test_a_huge_penalty_does_not_swallow_the_noise_of_a_score():
    """A penalty of 2^53 would round the sum of loss and noise to even numbers."""
    setting = {"steps": 1, "step": 1.7e21, "momentum": 0}
    model = DPRegressor("dp_gd", l2=1.5e-24, setting=setting, **ENDS)
    found = PrivateSearch(model, {"l2": [1.5e-24]}, epsilon=0.2)
    (model,), *data = found._prepared(X, Y)
    ((on, setting),) = model._runs(*data)
    runs = [scored(on, setting, 1.0, (7, seed), 0.2) for seed in range(9)]
    losses, weights = zip(*runs, strict=True)
    assert on.problem.penalty.value(weights[0])[0] > 2.0**53
    most = loss_bound(on.problem)
    clean = clipped_loss(on.problem, most, weights[0])
    scale = score_event(0.2, 2e-6).scale * most / len(Y)
    noise = [gaussian(streams(seed).noise, ()) for seed in range(9)]
    assert losses == pytest.approx(clean + scale * np.array(noise), rel=1e-12)


def test_the_data_have_no_say_in_what_is_run(monkeypatch):
    """Points and seeds of all runs are the same on a data set with one other record."""
    monkeypatch.setattr(search, "scored", lambda on, *drawn: made.append(str(drawn))
                        or (0.0, np.zeros(2)))  # fmt: skip
    model = DPRegressor(
        bounds=(-9, 9), label_bounds=(-3, 3), fit_intercept=False
    )
    other, every = X.copy(), []
    other[0] = 9.0
    for data in (X, other):
        made = []
        for seed in range(20):
            PrivateSearch(model, GRID, epsilon=2.0, random_state=seed).fit(
                data, Y
            )
        every.append(made)
    assert every[0] == every[1] and len(every[0]) > 20


@pytest.mark.parametrize("bad", [0, 1])
def test_runs_have_an_order_though_a_loss_is_no_number(monkeypatch, bad):
    """A loss and a penalty that are both infinite lose, whenever their run is made."""
    both = [(np.inf, np.full(3, 1e200)), (0.5, np.ones(3))]
    monkeypatch.setattr(search, "drawn_runs", lambda rng: 2)
    runs = iter(both if bad == 0 else both[::-1])
    monkeypatch.setattr(search, "scored", lambda *_: next(runs))
    assert 0 < abs(searched(epsilon=2.0).best_estimator_.coef_).max() < 100


def test_types_of_columns_are_named():
    frame, ends = (
        pd.DataFrame(X, columns=["a", "b"]),
        {"a": (-1, 1), "b": (-1, 1)},
    )
    for bounds in ((-1, 1), ends):
        model = DPRegressor("dp_gd", **{**ENDS, "bounds": bounds})
        found = searched({"l2": [0.1]}, model, frame)
        assert found.epsilon_.given == ("n", TYPES)


def test_a_budget_counts_a_search_once():
    with Budget(2.5, 1e-3) as budget:
        searched(epsilon=2.0)
        assert budget.spent_epsilon == pytest.approx(2.0, rel=0.05)
        with pytest.raises(BudgetError, match="epsilon"):
            searched(epsilon=2.0, random_state=1)


CLASSES = DPClassifier("dp_gd", bounds=(-1, 1), classes=(0, 1, 2))
REFUSED = [  # what a search is given, what is said
    ({"grid": {"bounds": [(0, 1)]}}, "param_grid: expected some of solver, .* bounds"),
    ({"grid": {1: [2]}}, "param_grid: expected some of .*, found 1"),
    ({"grid": None}, "param_grid: .*None"),
    ({"epsilon": -1}, "epsilon: expected a positive"),
    ({"epsilon": np.inf}, "epsilon: expected a finite"),
    ({"model": CLASSES, "grid": {"l2": [0.1]}, "y": np.arange(500) % 3},
     "a search takes two classes"),
    ({"model": DPRegressor(label_bounds=(-3, 3))}, r"Declare bounds=\(low, high\)"),
    ({"model": DPRegressor(bounds=(-1, 1))}, r"Declare label_bounds=\(low, high\)"),
    ({"model": DPRegressor(**ENDS, release=True)}, "no release=True"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "said"), REFUSED)
def test_what_cannot_be_searched_is_refused(given, said):
    with pytest.raises(ValueError, match=said):
        searched(**given)


def test_a_search_that_was_not_fitted_says_so():
    search = PrivateSearch(DPRegressor(), GRID)
    for use in (search.predict, lambda X: search.score(X, Y)):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            use(X)


# --- scores ---------------------------------------------------------------------------

EXTREMES = (0.0, 5e-324, 1e-200, 1.0, 1e200, 1e308, np.inf)
SIZES = [sign * size for size in EXTREMES for sign in (1, -1)] + [np.nan]


@pytest.mark.parametrize("loss", bounded())
@pytest.mark.filterwarnings("ignore")
def test_no_record_moves_a_score_by_more(loss):
    """Features, label and weights at the ends of what doubles hold."""
    base = make_problem(loss, "l2", n=20)
    most = loss_bound(base)
    assert loss != "logistic" or most == pytest.approx(3 * math.log(2))
    W = np.array([np.full(base.p, size) for size in SIZES])
    W = np.concatenate([W, W * [1, 0, -1, 0, 1], np.eye(base.p)])
    found = []
    for x, label in itertools.product(
        SIZES, SIZES if base.offset.any() else [0.0]
    ):
        A, offset = base.A.copy(order="F"), base.offset.copy()
        A[0], offset[0] = x, label
        one = replace(base, A=A, offset=offset, public=base)
        assert loss_bound(one) == most
        found.append([clipped_loss(one, most, w) for w in W])
    moved = np.ptp(found, axis=0).max()  # nan if any of them is
    assert 0.9 * most / base.n < moved <= most / base.n * (1 + 1e-12)


def test_a_score_spends_a_fifth_of_the_root():
    event = score_event(1.0, 1e-6)
    whole = gaussian_epsilon(1 / (search.SCORE * event.noise_multiplier), 1e-6)
    assert whole == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("name", ["dp_gd", "objective_perturbation", "dp_cd"])
def test_a_score_is_the_clipped_loss_with_the_noise_that_is_priced(name):
    """A run draws as many numbers as its ledger has, and one more, none twice."""
    problem = make_problem("logistic", "l2", n=300)
    on = method(name).on(problem)
    setting = (
        {"passes": 2, "step": 1.0, "clip": 1.0} if name == "dp_cd" else {}
    )
    numbers = []

    def listen(law, unit, order):
        assert law == "gaussian"
        numbers.extend(np.ravel(unit))
        return unit

    with listening(listen):
        loss, w = scored(on, setting, 2.0, (5, 6), 0.2)
    most = loss_bound(problem)
    plain = clipped_loss(problem, most, w)
    scale = score_event(0.2, problem.delta).scale * most / problem.n
    noise = streams(6).noise.standard_normal()
    assert (
        loss == pytest.approx(plain + scale * noise) and noise == numbers[-1]
    )
    width = 1 if name == "dp_cd" else problem.p
    count = sum(event.count for event in on.ledger(setting, 2.0).events)
    assert len(numbers) == len({*numbers}) == width * count + 1
