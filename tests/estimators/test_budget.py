"""Budgets that several fits share."""

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import joblib
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import dperm
from dperm import Budget, BudgetError, DPClassifier
from dperm.estimators import processes
from dperm.estimators.methods import SolverAdapter
from weekly import variants

X = np.linspace(-1.0, 1.0, 400)[:, None]
Y = X[:, 0] > 0


def fitted(**given):
    plain = {"bounds": (-1, 1), "classes": (False, True)}
    return DPClassifier("dp_gd", delta=1e-4, **plain, **given).fit(X, Y)


def test_what_is_left_is_counted_and_more_is_refused(monkeypatch):
    with Budget(1.0, 1e-3) as budget:
        fitted(epsilon=0.6)
        fitted(epsilon=0.3)
        with monkeypatch.context() as patch:
            patch.setattr(SolverAdapter, "weights", None)  # no noise is drawn
            for epsilon, said in ((0.2, r"0.1\d* of the budget of 1 is"),
                                  (np.inf, "costs inf")):  # fmt: skip
                with pytest.raises(BudgetError, match=f"epsilon: .*{said}"):
                    fitted(epsilon=epsilon)
        fitted(epsilon=0.1)
    assert budget.spent_epsilon == pytest.approx(1.0, rel=1e-5)
    assert budget.spent_delta == pytest.approx(3e-4) and budget.given == ("n",)
    fitted(epsilon=5.0)  # outside of it


def test_deltas_add_up_and_outer_budgets_count_too():
    with (
        Budget(10.0, 1.5e-4),
        pytest.raises(BudgetError, match=r"^delta: 5e-05 of"),
    ):
        fitted(epsilon=1.0)
        fitted(epsilon=1.0)
    with Budget(1.0, 1e-3) as outer, outer, Budget(9.0, 1e-3) as inner:
        fitted(epsilon=0.5)
        with pytest.raises(BudgetError):
            fitted(epsilon=0.9)
        assert (
            outer.spent_epsilon
            == inner.spent_epsilon
            == pytest.approx(0.5, rel=1e-5)
        )


def test_budgets_that_are_equal_are_two():
    """Whichever is left first, the other goes on to count."""
    with Budget(3.0, 1e-2) as outer:
        with Budget(3.0, 1e-2) as inner:
            fitted(epsilon=1.0)
        fitted(epsilon=1.5)
        with pytest.raises(BudgetError, match=r"epsilon: 0\.5"):
            fitted(epsilon=1.0)
    assert outer.spent_epsilon == pytest.approx(2.5, rel=1e-5)
    assert inner.spent_epsilon == pytest.approx(1.0, rel=1e-5)


def test_every_fit_of_scikit_learns_search_counts():
    model = DPClassifier("dp_gd", bounds=(-1, 1), classes=(False, True))
    with Budget(5.0, 1e-2) as budget:
        GridSearchCV(model, {"l2": [0.1, 1.0]}, cv=2, refit=False).fit(X, Y)
    assert budget.spent_epsilon == pytest.approx(4.0, rel=1e-3)


def test_noise_that_two_fits_share_would_cancel():
    """Two fits of one seed have the same noise, so that their difference has none."""
    search = dperm.PrivateSearch(
        DPClassifier("dp_gd", bounds=(-1, 1), classes=(False, True)),
        {"l2": [0.1]},
        random_state=5,
    )
    rng = np.random.RandomState(7)
    with Budget(20.0, 1e-1) as outer:
        fitted(random_state=5)
        with (
            Budget(20.0, 1e-1),
            pytest.raises(BudgetError, match="random_state: exp"),
        ):
            fitted(random_state=5)
        with pytest.raises(
            BudgetError, match="random_state: expected None or another"
        ):
            search.fit(X, Y)
        fitted(random_state=6)
        fitted(random_state=rng)
        fitted(random_state=rng)  # goes on where it was
    assert outer.spent_epsilon == pytest.approx(4.0, rel=1e-5)
    fitted(random_state=5)


def refit(queue):
    try:
        fitted(epsilon=0.1)
        queue.put("fitted")
    except BudgetError as error:
        queue.put(str(error))


def test_no_fit_leaves_the_process_while_a_budget_is_open():
    """Neither an estimator that is not fitted, nor a process that was forked."""
    model = DPClassifier("dp_gd", bounds=(-1, 1), classes=(False, True))
    search = dperm.PrivateSearch(model, {"l2": [0.1]})
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    answers = []
    with Budget(5.0, 1e-2) as budget:
        for unfitted in (model, search, make_pipeline(model)):
            with pytest.raises(BudgetError, match="n_jobs=None"):
                pickle.dumps(unfitted)
        copied = copy.deepcopy(copy.copy(model)).fit(X, Y)
        assert pickle.loads(pickle.dumps(copied)).coef_ == copied.coef_
        process = context.Process(target=refit, args=(queue,))
        process.start()
        answers.append(queue.get(timeout=60))
        process.join()
        with Budget(1.0, 1e-3):
            pass
        assert processes.marked() and budget.spent_epsilon == pytest.approx(
            1.0
        )
    assert not processes.marked()
    process = context.Process(target=refit, args=(queue,))
    process.start()
    answers.append(queue.get(timeout=60))
    process.join()
    assert "has a Budget open" in answers[0] and answers[1] == "fitted"
    pickle.dumps(model)


GRANDCHILD = """
import subprocess, sys
if sys.argv[1] == "0":
    import numpy as np, dperm
    X = np.linspace(-1.0, 1.0, 400)[:, None]
    try:
        dperm.fit(X, X[:, 0] > 0, "dp_gd", classes=(0, 1), bounds=(-1, 1))
        print("fitted")
    except dperm.BudgetError as error:
        print(error)
else:
    below = [sys.executable, "-c", sys.argv[2], str(int(sys.argv[1]) - 1), sys.argv[2]]
    subprocess.run(below, check=True)
"""


@pytest.mark.parametrize("between", variants([0, 1, 2], by_day=[2]))
def test_no_process_below_fits_however_many_are_between(between):
    command = [sys.executable, "-c", GRANDCHILD, str(between), GRANDCHILD]
    answers = []
    for is_open in (True, False):
        with Budget(5.0, 1e-2) if is_open else nullcontext():
            done = subprocess.run(
                command, capture_output=True, text=True, check=True
            )
        answers.append(done.stdout)
    assert f"process {os.getpid()} has a Budget open" in answers[0]
    assert answers[1] == "fitted\n"


# of scikit-learn, about fits that failed
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("given", [{}, {"error_score": "raise"}])
def test_a_search_in_several_processes_is_refused_in_our_words(given):
    model = DPClassifier("dp_gd", bounds=(-1, 1), classes=(False, True))
    search = GridSearchCV(model, {"l2": [0.1, 1.0]}, cv=3, n_jobs=2, **given)
    said = f"(?s)process {os.getpid()} has a Budget open.*n_jobs=None"
    with (
        Budget(3.0, 1e-2) as budget,
        pytest.raises(ValueError, match=said) as refusal,
    ):
        search.fit(X, Y)
    assert isinstance(refusal.value, BudgetError) == bool(given)
    assert budget.spent_epsilon == 0.0


LOADED = """
import pickle, sys
from sklearn.base import clone
model = pickle.loads(bytes.fromhex(sys.argv[1]))
try:
    clone(model).fit([[0.0], [1.0]] * 10, [0, 1] * 10)
    print("fitted")
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""


def test_an_estimator_that_left_by_another_thread_is_fitted_at_home_alone():
    """Also after the budget, and in a process that no budget is above."""
    model = make_pipeline(DPClassifier("dp_gd", bounds=(0, 1), classes=(0, 1)))
    with Budget(5.0, 1e-1) as budget, ThreadPoolExecutor(1) as threads:
        sent = threads.submit(pickle.dumps, model).result()
        pickle.loads(sent).fit([[0.0], [1.0]] * 10, [0, 1] * 10)
    assert budget.spent_epsilon == pytest.approx(1.0, rel=1e-3)
    command = [sys.executable, "-c", LOADED, sent.hex()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(
        f"BudgetError: process {os.getpid()} has a Budget"
    )


def test_threads_of_a_search_are_counted():
    model = DPClassifier("dp_gd", bounds=(-1, 1), classes=(False, True))
    search = GridSearchCV(
        model, {"l2": [0.1, 1.0]}, cv=2, n_jobs=2, refit=False
    )
    with Budget(5.0, 1e-2) as budget, joblib.parallel_backend("threading"):
        search.fit(X, Y)
    assert budget.spent_epsilon == pytest.approx(4.0, rel=1e-3)


@pytest.mark.parametrize(("given", "said"), [
    ((0.0, 1e-5), "epsilon: expected a positive"), ((1.0, 0.0), "delta: expected"),
])  # fmt: skip
def test_what_is_no_budget_is_refused(given, said):
    with pytest.raises(ValueError, match=said):
        Budget(*given)
