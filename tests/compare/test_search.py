"""A search that is paid for inside epsilon."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from dperm import Budget, BudgetError, DPClassifier, DPRegressor, PrivateSearch
from dperm.accountants.private_choice import choice_epsilon
from dperm.compare import search
from dperm.compare.frames import TYPES
from dperm.compare.metrics import clipped_loss, loss_bound
from dperm.core.privacy.accounting import true_epsilon
from dperm.core.privacy.mechanisms import gaussian, streams

X = np.random.default_rng(0).uniform(-1.0, 1.0, (500, 2))
Y = X @ [1.0, -2.0]
GRID = [{"solver": ["dp_gd"], "l2": [0.01, 100.0]}, {"solver": ["moments"]}]


def searched(grid=GRID, **given):
    model = DPRegressor(bounds=(-1, 1), label_bounds=(-3, 3))
    return PrivateSearch(model, grid, **{"random_state": 0, **given}).fit(X, Y)


def test_the_whole_search_costs_its_epsilon(monkeypatch):
    seen, real = [], search.scored

    def scored(on, drawn, epsilon):
        ledger = on.ledger(drawn.job.setting, drawn.job.noise_multiplier)
        seen.append(ledger + search.Ledger((search.score_event(epsilon, 2e-6),)))
        return real(on, drawn, epsilon)

    monkeypatch.setattr(search, "scored", scored)
    found = searched(epsilon=2.0)
    cost = found.epsilon_
    assert 1.9 < cost.high <= 2.0 and cost.delta == 4e-6 and cost.given == ("n",)
    sums = found.best_estimator_.epsilon_.ledger.events[0]
    assert sums.unit.startswith("2 sqrt(k)")
    first = true_epsilon(search.Ledger((sums,)), 2e-6)
    assert first == pytest.approx(0.2, rel=1e-5)
    assert choice_epsilon(seen, 2e-6) + first <= cost.high * (1 + 1e-9)
    assert found.predict(X[:3]).shape == (3,) and found.best_params_["solver"]


def test_the_run_with_the_least_noisy_loss_is_published():
    """Whatever the seed, at a large epsilon the absurd penalty is not chosen."""
    model = DPRegressor("dp_gd", bounds=(-1, 1), label_bounds=(-3, 3))
    scores = []
    for seed in range(6):
        one = PrivateSearch(model, {"l2": [0.0, 100.0]}, epsilon=50.0,
                            random_state=seed).fit(X, Y)  # fmt: skip
        scores.append((one.best_params_["l2"], one.score(X, Y)))
    assert np.mean([l2 == 0.0 for l2, _ in scores]) > 0.5
    assert all(score > 0.5 for l2, score in scores if l2 == 0.0)


def test_a_huge_penalty_does_not_swallow_the_noise_of_a_score():
    """A penalty of 2^53 would round the sum of loss and noise to even numbers."""
    setting = {"steps": 1, "step": 1.7e21, "momentum": 0}
    ends = {"bounds": (-1, 1), "label_bounds": (-3, 3)}
    model = DPRegressor("dp_gd", l2=1.5e-24, setting=setting, **ends)
    found = PrivateSearch(model, {"l2": [1.5e-24]}, epsilon=0.2)
    ((on, setting),) = found._runs([model], *found._cleaned([model], X, Y))
    job = search.Job(setting, 1.0, 7)
    drawn = [search.Drawn(0, job, seed) for seed in range(9)]
    losses, weights = zip(*(search.scored(on, one, 0.2) for one in drawn), strict=True)
    assert on.problem.penalty.value(weights[0])[0] > 2.0**53
    most = loss_bound(on.problem)
    clean = clipped_loss(on.problem, most, weights[0][None])[0]
    scale = search.score_event(0.2, 2e-6).scale * most / len(Y)
    noise = [gaussian(streams(one.scored).noise, ()) for one in drawn]
    assert losses == pytest.approx(clean + scale * np.array(noise), rel=1e-12)


def test_the_data_have_no_say_in_what_is_run(monkeypatch):
    """Points and seeds of all runs are the same on a data set with one other record."""
    monkeypatch.setattr(search, "scored", lambda on, drawn, *_: made.append(drawn)
                        or (0.0, np.zeros(2)))  # fmt: skip
    model = DPRegressor(bounds=(-9, 9), label_bounds=(-3, 3), fit_intercept=False)
    other, every = X.copy(), []
    other[0] = 9.0
    for data in (X, other):
        made = []
        for seed in range(20):
            PrivateSearch(model, GRID, epsilon=2.0, random_state=seed).fit(data, Y)
        every.append(made)
    assert every[0] == every[1] and len(every[0]) > 20


@pytest.mark.parametrize("bad", [0, 1])
def test_runs_have_an_order_though_a_loss_is_no_number(monkeypatch, bad):
    """A loss and a penalty that are both infinite lose, whenever their run is made."""
    both = [(np.inf, np.full(3, 1e200)), (0.5, np.ones(3))]
    drawn = [search.Drawn(1, search.Job({}, 1.0, 0), 0)] * 2
    model = DPRegressor(bounds=(-1, 1), label_bounds=(-3, 3), l2=1.0)
    chosen = PrivateSearch(model, GRID)
    monkeypatch.setattr(chosen, "_drawn", lambda *_: drawn)
    runs = iter(both if bad == 0 else both[::-1])
    monkeypatch.setattr(search, "scored", lambda *_: next(runs))
    on = model._runs(*model._cleaned(*model._arrays(X, Y)))[0]
    assert np.array_equal(chosen._best([(on[0], {})] * 2, [], 0)[1], np.ones(3))


def test_types_of_columns_are_named():
    frame, ends = pd.DataFrame(X, columns=["a", "b"]), {"a": (-1, 1), "b": (-1, 1)}
    for bounds in ((-1, 1), ends):
        model = DPRegressor("dp_gd", bounds=bounds, label_bounds=(-3, 3))
        found = PrivateSearch(model, {"l2": [0.1]}, random_state=0).fit(frame, Y)
        assert found.epsilon_.given == ("n", TYPES)


def test_a_budget_counts_a_search_once():
    with Budget(2.5, 1e-3) as budget:
        searched(epsilon=2.0)
        assert budget.spent_epsilon == pytest.approx(2.0, rel=0.05)
        with pytest.raises(BudgetError, match="epsilon"):
            searched(epsilon=2.0, random_state=1)


@pytest.mark.parametrize(("grid", "given", "said"), [
    ({"bounds": [(0, 1)]}, {}, "param_grid: expected some of solver, .* found bounds"),
    (GRID, {"epsilon": -1}, "epsilon: expected a positive"),
    (GRID, {"epsilon": np.inf}, "epsilon: expected a finite"),
])  # fmt: skip
def test_what_cannot_be_searched_is_refused(grid, given, said):
    with pytest.raises(ValueError, match=said):
        searched(grid, **given)


def test_a_search_that_was_not_fitted_says_so():
    search = PrivateSearch(DPRegressor(), GRID)
    for use in (
        search.predict,
        lambda X: search.score(X, Y),
        lambda _: search.epsilon_,
    ):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            use(X)


def test_more_than_two_classes_are_refused():
    model = DPClassifier("dp_gd", bounds=(-1, 1), classes=(0, 1, 2))
    with pytest.raises(ValueError, match="a search takes two classes"):
        PrivateSearch(model, {"l2": [0.1]}).fit(X, np.arange(500) % 3)


@pytest.mark.parametrize(("given", "said"), [
    ({"bounds": None}, r"Declare bounds=\(low, high\)"),
    ({"label_bounds": None}, r"Declare label_bounds=\(low, high\)"),
    ({"release": True}, "no release=True"),
])  # fmt: skip
def test_no_scale_comes_from_nowhere(given, said):
    model = DPRegressor(**{"bounds": (-1, 1), "label_bounds": (-3, 3), **given})
    with pytest.raises(ValueError, match=said):
        PrivateSearch(model, GRID).fit(X, Y)
