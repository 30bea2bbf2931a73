"""Private models from Python, by scikit-learn's conventions and checks."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import ElasticNet
from sklearn.utils.estimator_checks import parametrize_with_checks

import dperm
from commands import python
from dperm import DPClassifier, DPRegressor
from dperm.estimators import estimators, methods, ranges
from dperm.estimators.methods import SolverAdapter
from dperm.privacy.accounting import true_epsilon
from dperm.privacy.events import Ledger
from dperm.problems import door

FEW = "asks for R^2 > 0.5, of 200 records at epsilon 1"
DECLARED = (
    "classes are declared, and a label of none is a record in the middle"
)
TELLS = "whether a fit raises must not tell what one record holds"
RAISING = ("check_dtype_object", "check_estimators_nan_inf")
RANGES = {"bounds": (-6, 6)}
CLASSES = {**RANGES, "classes": ("no", "yes")}
SIGNS = {**RANGES, "classes": (False, True)}
WHOLE = {**RANGES, "label_bounds": (-20, 20)}


class Told(DPClassifier):
    """A classifier whose user knows the classes of every data set of a check."""

    _label = "bounds=(low, high)"  # all that it needs to be told

    def _declared(self, y):
        if y is None:
            return (0, 1)
        found = np.unique(np.asarray(y))
        if len(found) < 2:
            raise ValueError(
                "y: expected two classes or more, found one class"
            )
        return found


def failing(estimator):
    """Checks that are expected to fail, with reasons; one that passes is a failure."""
    reasons = dict.fromkeys(RAISING, TELLS)
    if isinstance(estimator, DPClassifier):
        reasons["check_classifiers_regression_target"] = DECLARED
        return reasons
    reasons["check_supervised_y_no_nan"] = TELLS
    if estimator.epsilon == 1.0:
        reasons["check_regressors_train"] = FEW
    return reasons


@parametrize_with_checks(
    [
        Told(bounds=(-4, 4)),
        Told(bounds=(-4, 4), epsilon=100.0),
        DPRegressor(bounds=(-4, 4), label_bounds=(-4, 4)),
        DPRegressor(bounds=(-4, 4), label_bounds=(-4, 4), epsilon=100.0),
    ],
    expected_failed_checks=failing,
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own(estimator, check):
    check(estimator)


@pytest.fixture
def data():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 3)) * [1.0, 2.0, 0.5]
    return X, X @ [1.0, -0.5, 2.0] + 0.3 + 0.2 * rng.standard_normal(300)


# --- what is minimised ----------------------------------------------------------------


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_without_noise_and_with_many_steps_it_is_the_minimiser(data, make):
    X, y = data
    setting = {"passes": 300, "step": 1, "clip": 1e6}
    model = DPRegressor("dp_cd", epsilon=np.inf, l1=0.05, l2=0.1, setting=setting,
                        random_state=0, **WHOLE)  # fmt: skip
    model.fit(make(X), y)
    units, label = model._ranges[0].scale, model._ranges[1]
    if make is np.asarray:  # without noise these are the data's own
        assert units == pytest.approx(X.std(axis=0))
        assert label.scale == pytest.approx(y.std())
    best = ElasticNet(alpha=0.15, l1_ratio=1 / 3, tol=1e-14, max_iter=100_000)
    best.fit(X / units, (y - label.centre) / label.scale)
    best.coef_ = best.coef_ * label.scale / units
    best.intercept_ = best.intercept_ * label.scale + label.centre
    assert model.coef_ == pytest.approx(best.coef_, abs=1e-6)
    assert model.intercept_ == pytest.approx(best.intercept_, abs=1e-6)
    assert model.predict(make(X[:5])) == pytest.approx(
        best.predict(X[:5]), abs=1e-5
    )


def test_classes_scores_and_probabilities_agree(data):
    X, y = data
    names = np.where(y > 0, "yes", "no")
    model = DPClassifier("dp_cd", epsilon=50.0, random_state=0, **CLASSES).fit(
        X, names
    )
    assert (
        model.classes_.tolist() == ["no", "yes"]
        and model.score(X, names) > 0.9
    )
    scores = X @ model.coef_[0] + model.intercept_[0]
    assert model.decision_function(X) == pytest.approx(scores)
    assert model.predict_proba(X)[:, 1] == pytest.approx(
        1 / (1 + np.exp(-scores))
    )
    assert not hasattr(DPClassifier(loss="smoothed_hinge"), "predict_proba")
    bare = DPClassifier(fit_intercept=False, random_state=0, **CLASSES).fit(
        X, names
    )
    assert bare.intercept_.tolist() == [0.0] and bare.coef_.shape == (1, 3)
    assert bare.epsilon_.given == ("n",)


def test_a_constant_column_may_be_declared_and_gets_no_weight(data):
    X, y = data
    X = np.column_stack((X, np.full(len(X), 7.0)))
    ends = (X.min(axis=0), X.max(axis=0))
    model = DPClassifier(classes=(False, True), bounds=ends, random_state=0)
    model.fit(X, y > 0)
    assert model.coef_[0, -1] == 0 and model.coef_[0, :-1].all()


def test_predictions_are_within_the_range_of_labels(data):
    X, y = data
    model = DPRegressor(bounds=(-6, 6), label_bounds=(-1, 2), random_state=0)
    found = model.fit(X, y).predict(100 * X)
    assert {found.min(), found.max()} == {-1.0, 2.0}


def test_where_noise_hides_all_a_fit_is_nearly_the_best_constant():
    """It would be right half of the time if noise were taken for weights."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (300, 20)), np.arange(300) % 10 == 0
    known = {"bounds": (-1, 1), "classes": (False, True), "epsilon": 0.3}
    fits = [
        DPClassifier(random_state=seed, **known).fit(X, y) for seed in range(8)
    ]
    assert np.mean([model.score(X, y) for model in fits]) > 0.87


# --- what it costs --------------------------------------------------------------------


@pytest.mark.parametrize(
    "slip", [False, True], ids=["", "a share counted twice"]
)
@pytest.mark.parametrize(
    "solver", ["dp_cd", "dp_gd", "objective_perturbation"]
)
def test_epsilon_is_the_price_of_all_noise_that_is_drawn(
    data, solver, slip, monkeypatch
):
    """Of the sums and of the solver's run, whatever the ledger says."""
    runs, sums, real, drawn = [], [], SolverAdapter.weights, ranges.released

    def spent(on, setting, noise, seed):
        runs.append(on.ledger(setting, noise))
        return real(on, setting, noise, seed)

    def released(every, ts, given, normal):
        sums.append(given)
        return drawn(every, ts, given, normal)

    monkeypatch.setattr(SolverAdapter, "weights", spent)
    monkeypatch.setattr(ranges, "released", released)
    if slip:
        calibrated = estimators.calibrated
        monkeypatch.setattr(estimators, "calibrated", lambda ledger, *goal: calibrated(
            lambda noise: Ledger(ledger(noise).events[1:]), *goal))  # fmt: skip
    X, y = data
    given = {"epsilon": 0.7, "delta": 1e-4, "random_state": 0, **SIGNS}
    cost = DPClassifier(solver, **given).fit(X, y > 0).epsilon_
    price = true_epsilon(sums[0] + runs[0], 1e-4)
    assert (0.69 < price <= 0.7 and cost.high == pytest.approx(price)) != slip
    assert cost.delta == 1e-4 and f"epsilon at most {cost.high:.6g}" in str(
        cost
    )


def test_the_noise_has_the_spread_that_the_ledger_says(data, monkeypatch):
    """One step of DP-GD from 0: its weights are affine in the noise."""
    X, y = data
    setting = {"steps": 1, "step": 1.0, "clip": 1.0}
    given = {"solver": "dp_gd", "setting": setting, "l2": 0.0, **WHOLE}
    real = ranges.seeded
    # one release for all
    monkeypatch.setattr(ranges, "seeded", lambda seed: real(0))
    fits = [DPRegressor(random_state=k, **given).fit(X, y) for k in range(300)]
    sums, event = fits[0].epsilon_.ledger.events
    units = fits[0]._ranges[0].scale / fits[0]._ranges[1].scale
    spread = np.array([model.coef_ for model in fits]).std(axis=0) * units
    assert spread == pytest.approx(
        np.full(3, event.scale / (4 * len(y))), rel=0.15
    )
    assert event.count == sums.count == 1


@pytest.mark.parametrize("solver", ["dp_cd", "dp_gd", "moments", "dp_fw"])
def test_what_a_fit_knows_does_not_move_with_a_record(
    data, solver, monkeypatch
):
    """Noise, clips and steps are the same on a neighbour of another size."""
    X, y = data
    known = []

    def seen(on, setting, noise_multiplier, seed):
        ledger, problem = on.ledger(setting, noise_multiplier), on.problem
        public = SolverAdapter.public_information(on, ledger)
        smoothness = (problem.smoothness.tolist(), problem.global_smoothness)
        known.append((noise_multiplier, ledger, *smoothness, public))
        return np.zeros(problem.p)

    monkeypatch.setattr(SolverAdapter, "weights", seen)
    for size in (1.0, 1e3):
        X[0], y[0] = size, size
        cost = DPRegressor(solver, random_state=0, **WHOLE).fit(X, y).epsilon_
        assert cost.given == ("n",) and cost.unconditional
    assert known[0] == known[1]


@pytest.mark.parametrize(
    "slip", ["", "labels centred", "classes read off the data"]
)
def test_but_for_the_sums_no_record_moves_what_is_seen_of_others(
    data, slip, monkeypatch
):
    X, y = data
    seen = []

    def kept(on, setting, noise, seed):
        seen.append((on.problem.A[1:], on.problem.offset[1:]))
        return np.zeros(on.problem.p)

    monkeypatch.setattr(SolverAdapter, "weights", kept)
    monkeypatch.setattr(
        ranges, "released", lambda every, ts, *_: ([*every], np.zeros(8))
    )
    if slip.startswith("labels"):
        real = door.numbers
        monkeypatch.setattr(door, "numbers", lambda y: real(y - y.mean()))
    if slip.startswith("classes"):
        monkeypatch.setattr(
            DPClassifier, "_declared", lambda _, y: np.unique(y)
        )
    found = []
    for label in (1.0, 7.0):
        y[0], seen[:] = label, []
        DPRegressor("dp_gd", random_state=0, **WHOLE).fit(X, y)
        signs = np.where(y > 0, 1.0, 0.0)
        signs[0] = label
        DPClassifier("dp_gd", classes=(0, 1), random_state=0, **RANGES).fit(
            X, signs
        )
        found.append([part for one in seen for part in one])
    same = [np.array_equal(a, b) for a, b in zip(*found, strict=False)]
    assert (all(same) and len(found[0]) == len(found[1])) != bool(slip)


def test_noise_is_secret_unless_a_seed_is_given(data):
    X, y = data
    fits = []
    for seed in (0, 0, None, None):
        np.random.seed(0)
        fits.append(DPRegressor(random_state=seed, **WHOLE).fit(X, y).coef_)
    assert np.array_equal(fits[0], fits[1]) and not np.array_equal(
        fits[2], fits[3]
    )


# --- refusals -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"solver": "dp_gdd"}, r"did you mean dp_gd\?"),
        (
            {"solver": "objective_perturbation"},
            "cannot do this: loss least_squares",
        ),
        (
            {"loss": "logistic"},
            "loss: expected one of huber, least_squares, found",
        ),
        (
            {"epsilon": 0},
            "epsilon: expected a positive number or inf, found 0",
        ),
        (
            {"epsilon": "1"},
            "epsilon: expected a positive number or inf, found '1'",
        ),
        (
            {"epsilon": None},
            "epsilon: expected a positive number or inf, found None",
        ),
        (
            {"epsilon": True},
            "epsilon: expected a positive number or inf, found True",
        ),
        ({"delta": 1.0}, r"delta: expected a number in \(0, 1\), found 1.0"),
        ({"l2": -1.0}, "l2: expected a finite number from 0, found -1.0"),
        ({"l1": "a"}, "l1: expected a finite number from 0, found 'a'"),
        ({"l1": None}, "l1: expected a finite number from 0, found None"),
        ({"l2": [1.0]}, r"l2: expected a finite number from 0, found \[1.0\]"),
        ({"solver": None}, "solver: expected a name, .*, found None"),
        ({"solver": "dp-gd"}, r"^solver dp-gd .did you mean dp_gd\?"),
        ({"delta": 1e-310}, "delta: expected at least 2.2e-308"),
        ({"epsilon": 10**400}, "epsilon: expected a positive number or inf"),
        ({"epsilon": np.eye(2)}, r"epsilon: expected .*, found array\(\[\[1"),
        (
            {"delta": pd.Series([0.1, 0.2])},
            "delta: expected .*, found 0 0.1 1 0.2",
        ),
        ({"l1": np.zeros((2, 2))}, "l1: expected a finite number"),
        ({"l2": np.inf}, "l2: expected a finite number from 0, found inf"),
        ({"epsilon": 5e-324}, "epsilon: expected at least 1e-300"),
        ({"release": np.zeros(2)}, "release: expected True or False"),
        ({"solver": pd.DataFrame([1, 2])}, "solver: expected a name"),
        (
            {"solver": "dp_gd", "setting": {"clip": np.inf}},
            "clip: expected a finite",
        ),
        (
            {"loss": np.array(["huber", "huber"])},
            "loss: expected one of huber",
        ),
        (
            {"fit_intercept": np.array([True, False])},
            "fit_intercept: expected True",
        ),
        *(
            ({"bounds": ends}, "^bounds: .*expected")
            for ends in (
                (),
                (-1j, 1j),
                np.array(["2020", "2021"], dtype="M8[D]"),
                np.ma.masked_array([-1.0, 1.0], mask=[True, False]),
                pd.DataFrame({"low": [-1, -1], "high": [1, 1]}),
                [[None], [1, 2]],
            )
        ),
        *(
            ({"random_state": seed}, "^random_state: expected")
            for seed in (1.5, "a", -1, 2**32, np.random.default_rng(0), [1.5])
        ),
        ({"label_bounds": ()}, "label_bounds: expected .*, found ()"),
        ({"solver": "dp_gd", "setting": {1: 2}}, "setting 1: expected one of"),
        (
            {"release": True, "solver": "dp_gd", "epsilon": 100},
            "epsilon: .* at most",
        ),
        *(
            (
                {"solver": solver, "setting": {"steps": steps}},
                f"steps: expected a {kind}",
            )
            for solver, kinds in (
                ("dp_gd", ("whole", "number", "number")),
                ("dp_fw", ("whole", "positive", "positive")),
            )
            for steps, kind in zip((1.5, "10", True), kinds, strict=True)
        ),
        ({"solver": "fw"}, "solver fw: .* adds no noise; expected one of"),
        (
            {"fit_intercept": "no"},
            "fit_intercept: expected True or False, found 'no'",
        ),
        ({"release": "no"}, "release: expected True or False, found 'no'"),
        (
            {"solver": "dp_cd", "setting": 5},
            "setting: expected values by name",
        ),
        (
            {"setting": {"step": 1}},
            "setting: expected with a solver that is named",
        ),
        ({"bounds": (1, 0)}, "bounds: expected low <= high"),
        ({"bounds": ([0, 1], 2)}, "bounds: expected"),
        ({"bounds": [(0, 1), (0, 1)]}, "a list of 3 such pairs"),
        ({"bounds": {"a": (0, 1)}}, "bounds: columns have no names"),
        ({"bounds": (0, 1e101)}, "of a size up to 1e.100"),
        ({"bounds": (0, "a")}, "bounds: expected"),
        ({"label_bounds": (0, np.inf)}, "label_bounds: expected"),
        ({"solver": "dp_cd", "setting": {"stpe": 1}}, r"did you mean step\?"),
        (
            {"solver": "dp_gd", "setting": {"momentum": 1.0}},
            "momentum: expected in",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(data, given, said):
    with pytest.raises(ValueError, match=said) as refusal:
        DPRegressor(**{**WHOLE, **given}).fit(*data)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("x", "label"), [(np.nan, 1.0), (2.0, 7.0),
                                          (2.0, np.nan), (np.inf, 7.0)])  # fmt: skip
def test_a_record_outside_the_domain_counts_as_one_in_the_middle(
    data, make, x, label
):
    """It neither raises nor warns, and the fit is the same to the bit."""
    X, y = data
    y = np.where(y > 0, 1.0, 0.0)

    def fitted(row, label, other):
        X[5], y[5] = row, label
        plain = {"solver": "dp_gd", "random_state": 0, **RANGES}
        found = [
            DPClassifier(classes=(0, 1), **plain).fit(make(X), y).coef_.ravel()
        ]
        y[5] = other
        if label != 7.0:
            model = DPRegressor(label_bounds=(0, 1), **plain)
            found.append(model.fit(make(X), y).coef_)
        return np.concatenate(found)

    found = fitted(np.array([1.0, x, 1.0]), label, label)
    middle = fitted(np.zeros(3), 1.0, 0.5)
    assert np.array_equal(found, middle[: len(found)])


def test_what_is_no_target_is_refused(data):
    X, _ = data
    with pytest.raises(
        ValueError, match="classes: expected two labels or more that"
    ):
        DPClassifier(classes=(1, 1), **RANGES).fit(X, np.arange(300) % 3)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        DPClassifier().predict(X)
    with pytest.raises(ValueError, match="1d array"):
        dperm.fit(X, "label", classes=(0, 1), **RANGES)
    with pytest.raises(TypeError, match="sample_weight"):
        DPClassifier(**SIGNS).fit(X, X[:, 0] > 0, sample_weight=np.ones(300))


def test_all_that_is_not_declared_is_asked_for_at_once(data):
    X, y = data
    frame = pd.DataFrame(X, columns=["age", "size", "it's"])
    wanted = """bounds={'age': (low, high), 'size': (low, high), "it's": (low, high)}"""
    with pytest.raises(ValueError, match="not from these data") as found:
        DPRegressor().fit(frame, y)
    assert f"{wanted}, and label_bounds=(low, high)" in str(found.value)
    with pytest.raises(
        ValueError, match=r"Declare classes=\(first, second, ...\)$"
    ):
        DPClassifier(**RANGES).fit(frame, y > 0)
    with pytest.raises(ValueError, match="found neither") as found:
        dperm.fit(frame, y)
    assert wanted in str(found.value) and "label_bounds=(low, high)" in str(
        found.value
    )
    with pytest.raises(ValueError, match=r"found classes and label_bounds$"):
        dperm.fit(X, y, classes=(0, 1), **WHOLE)
    ends = {"age": (0, 1), "Size": (0, 1)}
    with pytest.raises(
        ValueError, match="range of size, it's; no column Size"
    ) as on:
        DPRegressor(bounds=ends, label_bounds=(0, 1)).fit(frame, y)
    assert wanted in str(on.value)


@pytest.mark.parametrize(("rows", "delta", "said"), [
    (300, 0.01, "delta: 0.01 is more than 1/n"),
    (9, 1e-3, "X: 9 records, expected 10 or more"),
])  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_what_is_weak_is_warned_of_whatever_the_data_are(
    data, rows, delta, said
):
    """The same words for other data of the same shape, and none without a reason."""
    X, y = data[0][:rows], data[1][:rows]
    plain = {"random_state": 0, **WHOLE}
    for size in (0.0, 1e6):
        with pytest.warns(UserWarning, match=said) as heard:
            DPRegressor("dp_gd", delta=delta, **plain).fit(size * X, size * y)
        assert len(heard) == 1
    DPRegressor("dp_gd", **plain, delta=1e-3).fit(*data)


def test_a_run_that_diverged_is_told_and_zero(data):
    far = {"passes": 300, "step": 1e6, "clip": 1e300}
    with pytest.warns(RuntimeWarning, match="diverged"):
        model = DPRegressor("dp_cd", setting=far, random_state=0, **WHOLE).fit(
            *data
        )
    assert (model.coef_ == 0).all()


# --- ranges, choices and conventions --------------------------------------------------


def test_ranges_move_and_scale_as_declared(data):
    """A fit in other units is the same fit, with every unit declared."""
    X, y = data
    ends = (np.array([-4.0, -8.0, -2.0]), np.array([4.0, 8.0, 2.0]))
    fixed = {"solver": "dp_gd", "random_state": 0, "l2": 0.0}
    one = DPRegressor(bounds=ends, label_bounds=(-20, 20), **fixed).fit(X, y)
    a, b = np.array([1e9, 1e-9, 3.0]), np.array([1e12, -5.0, 7.0])
    moved = tuple(a * end + b for end in ends)
    two = DPRegressor(bounds=moved, label_bounds=(-39, 41), **fixed)
    two.fit(a * X + b, 2 * y + 1)
    assert two.coef_ * a == pytest.approx(2 * one.coef_, rel=1e-3)
    assert two.predict(a * X + b) == pytest.approx(
        2 * one.predict(X) + 1, rel=1e-3
    )
    names = dict(zip("abc", zip(*moved, strict=True), strict=True))
    three = DPRegressor(bounds=names, label_bounds=(-39, 41), **fixed)
    three.fit(pd.DataFrame(a * X + b, columns=list("abc")), 2 * y + 1)
    assert np.array_equal(three.coef_, two.coef_)
    assert three.feature_names_in_.tolist() == ["a", "b", "c"]


def test_a_record_outside_its_ranges_is_one_at_their_ends(data):
    X, y = data
    ends = {"bounds": (-3, 3), "label_bounds": (-5, 5), "random_state": 0}
    X[0], y[0] = [1e30, -np.inf, 4.0], -1e9
    one = DPRegressor(**ends).fit(X, y).coef_
    X[0], y[0] = [3.0, -3.0, 3.0], -5.0
    assert np.array_equal(one, DPRegressor(**ends).fit(X, y).coef_)


@pytest.mark.parametrize("solver", ["auto", "dp_cd", "dp_gd", "moments"])
def test_the_intercept_is_not_penalised(data, solver):
    """The strongest penalty leaves the labels' mean, where nothing is clipped."""
    X, y = data
    setting = {"solver": solver, "random_state": 0, **WHOLE}
    if solver != "auto":
        wide = {"moments": "radius", "dp_gd": "clip", "dp_cd": "clip"}[solver]
        setting["setting"] = {wide: 10.0}
    model = DPRegressor(epsilon=1e6, l2=1e6, **setting).fit(X, y + 2.0)
    assert abs(model.coef_).max() < 1e-3
    assert model.intercept_ == pytest.approx(np.mean(y + 2.0), abs=0.1)


@pytest.mark.filterwarnings("ignore:X. columns hardly leave")  # they are zeros
def test_the_choice_is_by_n_p_loss_and_epsilon_alone(data):
    X, y = data
    for epsilon in (0.01, 1.0, 10.0):
        for kind, labels in ((DPRegressor, y), (DPClassifier, y > 0)):
            plain = {"epsilon": epsilon, "random_state": 0}
            plain |= SIGNS if kind is DPClassifier else WHOLE
            known = [
                kind(**plain).fit(size * X, scale * labels).solver_
                for size, scale in ((1.0, 1.0), (0.0, 0.0), (1e6, 1.0))
            ]
            assert len({*known}) == 1


@pytest.mark.filterwarnings("ignore:X. columns hardly leave")  # they are zeros
def test_where_the_first_method_cannot_it_is_the_next():
    """Second moments of 600 columns are too wide, and no squares for objectives."""
    X, order = np.zeros((20, 600)), methods.usual(True, 600, 1e6)
    found = DPRegressor(epsilon=1e6, **WHOLE).fit(X, np.zeros(20)).solver_
    assert found in order[1:]
    for name in order[: order.index(found)]:
        with pytest.raises(ValueError, match="cannot do this"):
            DPRegressor(name, epsilon=1e6, **WHOLE).fit(X, np.zeros(20))


def test_classes_share_one_epsilon(data):
    X, y = data
    classes = np.digitize(y, [-1.0, 1.0])
    model = DPClassifier(
        epsilon=2.0, classes=(0, 1, 2), random_state=0, **RANGES
    )
    cost = model.fit(X, classes).epsilon_
    two = DPClassifier(model.solver_, epsilon=2.0, **SIGNS).fit(X, classes > 1)
    alone = len(two.epsilon_.ledger.events) - 1
    assert len(cost.ledger.events) == 1 + 3 * alone and 1.99 < cost.high <= 2.0
    assert cost.given == ("n",) and model.coef_.shape == (3, 3)
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(np.ones(300))
    assert {*model.predict(X)} <= {0, 1, 2} and model.score(X, classes) > 0.4
    assert not np.array_equal(model.coef_[0], model.coef_[1])


def test_a_method_whose_steps_are_counted_by_the_data_is_refused(data):
    X, y = data
    many = np.tile(X, 2)  # as many columns as it has blocks
    for one in (many, np.where(many > 2, 1e300, many)):
        model = DPRegressor(
            "dp_skgd_blocks2_importance", random_state=0, **WHOLE
        )
        with pytest.raises(
            ValueError, match="its number of steps follows from"
        ):
            model.fit(one, y)
    options = {"blocks": 4, "probabilities": "importance"}
    own = methods.configured("mine", "dp_skgd", options)
    model = DPRegressor(own, fit_intercept=False, random_state=0, **WHOLE)
    with pytest.raises(ValueError, match="its number of steps follows from"):
        model.fit(X, y)


# --- the package ----------------------------------------------------------------------


def test_classes_or_a_range_of_labels_decide_what_is_fitted(data):
    """Whatever the labels are: two numbers may be either."""
    X, y = data
    signs = np.sign(y)
    assert isinstance(
        dperm.fit(X, signs, classes=(-1, 1), **RANGES), DPClassifier
    )
    words = np.array(["a", "b", "c"])[np.digitize(y, [-1.0, 1.0])]
    three = dperm.fit(X, words, classes=("a", "b", "c"), **RANGES)
    assert three.coef_.shape == (3, 3) and three.solver_ == "dp_gram"
    assert isinstance(dperm.fit(X, signs, "dp_gd", 2.0, **WHOLE), DPRegressor)


@pytest.mark.parametrize("labels", ["classes", "label_bounds"])
def test_a_fit_holds_at_most_two_copies_of_its_records(labels):
    X = np.random.default_rng(0).uniform(-1, 1, (60_000, 50))
    y = X[:, 0] if labels == "label_bounds" else np.where(X[:, 0] > 0, 1, -1)
    ends = {"bounds": (-1, 1), labels: (-1, 1), "random_state": 0}
    dperm.fit(X[:100], y[:100], **ends)
    tracemalloc.start()
    try:
        dperm.fit(X, y, **ends)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2.2 * X.nbytes, f"{peak / X.nbytes:.2f} times the records"


@pytest.mark.parametrize(
    ("solver", "labels"),
    [
        ("objective_perturbation", "classes"),
        ("dp_gram", "classes"),
        ("dp_gd", "label_bounds"),
        ("moments", "label_bounds"),
    ],
)
def test_what_is_done_in_place_has_the_bits_of_copies(
    solver, labels, monkeypatch
):
    """Of records whose norms are beyond the clip."""
    X = np.random.default_rng(0).standard_t(2, (400, 3)).clip(-50, 50)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    ends = {"bounds": (-50, 50), labels: (-1, 1), "random_state": 0}
    model = dperm.fit(X, y, solver, **ends)
    monkeypatch.setattr(
        SolverAdapter, "own", property(lambda _: False, lambda *_: None)
    )
    copies = dperm.fit(X, y, solver, **ends)
    assert np.array_equal(model.coef_, copies.coef_)
    assert np.array_equal(model.intercept_, copies.intercept_)


def test_the_package_alone_stays_light():
    code = (
        "import sys, dperm; heavy = ('numpy', 'numba', 'sklearn', 'scipy', 'pandas')\n"
        "print([m for m in heavy if m in sys.modules]); dperm.fit\n"
        "print('sklearn' in sys.modules)\n"
        "try: dperm.fti\nexcept AttributeError as error: print(error)"
    )
    done = python("-c", code)
    assert done.stdout.splitlines() == [
        "[]", "True", "module 'dperm' has no attribute 'fti'"
    ], done.stderr  # fmt: skip
