"""Data frames: what a fit makes of them, and that records decide nothing of it."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dperm
from dperm import PrivateSearch
from dperm.compare import choosing
from dperm.compare.estimators import DPClassifier, DPRegressor
from dperm.compare.frames import TYPES, expanded
from dperm.core.privacy.accounting import true_epsilon
from dperm.core.privacy.strict import gaussian_epsilon
from dperm.solvers import private_scales
from dperm.solvers.fits.secret import UndeclaredError

LEVELS = {"city": ["A", "B"], "code": [1, 2]}
BOUNDS = {"age": (20, 80), "size": (-1, 1)}
NAMES = "age age=missing city=A city=B city=other size code=1 code=2 code=other"
DECLARED = {"categories": LEVELS, "missing_columns": ["age"], "bounds": BOUNDS}


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    n = 400
    made = pd.DataFrame(
        {
            "age": rng.uniform(20, 80, n),
            "city": rng.choice(["A", "B", "C"], n),
            "size": rng.uniform(-1, 1, n),
            "code": rng.choice([1, 2, 3], n),
        }
    )
    made.loc[::10, "age"] = np.nan
    made.loc[::7, "city"] = None
    return made


def labels(frame):
    """Which declarations alone can bring out."""
    gap = 4.0 * frame["age"].isna()
    return (2.0 * (frame["city"] == "A") - (frame["code"] == 2) + gap).to_numpy()


def exact(**known):
    return DPRegressor(epsilon=np.inf, **{**DECLARED, "l2": 1e-8, **known})


def test_the_minimiser_is_that_of_the_columns_by_hand(frame):
    y = labels(frame)
    model = exact().fit(frame, y)
    by_name = dict(zip(model.names_, model.coef_, strict=True))
    assert [*by_name] == NAMES.split()
    assert by_name["city=A"] - by_name["city=B"] == pytest.approx(2, abs=1e-4)
    assert by_name["city=B"] == pytest.approx(by_name["city=other"], abs=1e-4)
    assert by_name["code=2"] - by_name["code=other"] == pytest.approx(-1, abs=1e-4)
    assert by_name["age=missing"] == pytest.approx(4, abs=1e-4)
    assert model.predict(frame) == pytest.approx(y, abs=1e-3)
    assert model.feature_names_in_.tolist() == [*frame.columns]
    assert model.n_features_in_ == 4
    odd = frame.assign(city="Z", age=np.nan, code=9)
    other = frame.assign(city=None, age=50.0, code=np.nan)
    gap = model.predict(odd) - model.predict(other)  # 50 is the middle of the range
    assert gap == pytest.approx(by_name["age=missing"])


def test_a_gap_without_bounds_is_zero(frame):
    made = exact(bounds=None)
    assert made._framed(frame)[::10, :2].tolist() == [[0.0, 1.0]] * 40
    assert exact()._framed(frame)[::10, :2].tolist() == [[50.0, 1.0]] * 40


ODD = [None, np.nan, pd.NA, "Z", "other", "", 7, -np.inf, [1], {}, object, ("A", [1])]


@pytest.mark.parametrize("value", ODD, ids=repr)
def test_no_record_decides_which_columns_there_are_or_what_others_become(frame, value):
    known = {**DECLARED, "missing_columns": ["age", "size"]}
    frame = frame.astype(object)
    changed = frame.copy()
    for column in frame:
        changed[column] = [value, *frame[column][1:]]
    assert changed.shape == frame.shape
    one, two = exact(**known), exact(**known)
    before, after = one._framed(frame), two._framed(changed)
    assert one.names_.tolist() == two.names_.tolist()
    assert before.shape == after.shape == (400, len(one.names_))
    assert np.array_equal(before[1:], after[1:])
    assert not np.isnan(after).any()


@pytest.mark.parametrize("known", [DECLARED, {**DECLARED, "bounds": None}])
def test_columns_are_the_same_for_any_data(frame, known):
    bare = frame.assign(age=30.0, city="A", size=0.0, code=1)
    gone = frame.assign(age=np.nan, city=None, size=np.nan, code=np.nan)
    y, fits = np.tile([0, 1], 200), []
    for one in (frame, bare, gone):
        model = DPClassifier("dp_gd", classes=(0, 1), random_state=0, **known)
        fits.append(model.fit(one, y))
    assert {tuple(one.names_) for one in fits} == {tuple(NAMES.split())}
    assert {one.coef_.shape for one in fits} == {(1, 9)}
    types = () if known["bounds"] else (TYPES,)  # bounds name the columns of numbers
    assert {one.epsilon_.given for one in fits} == {("n", *types)}


def test_a_declared_number_that_doubles_merge_is_refused(frame):
    for value in (2**53, -(2**53), 2.0**60):
        with pytest.raises(ValueError, match="2\\^53 on as text"):
            dperm.DPRegressor(categories={"city": [1, value]}).fit(frame, frame["age"])


def test_a_category_type_declares_nothing_unless_it_is_passed(frame):
    rare = frame["city"].where(frame.index != 1, "Z")  # one record's alone
    typed = frame.assign(city=rare.astype("category"))
    model = DPRegressor("dp_gd", epsilon=4.0, random_state=0).fit(typed, labels(frame))
    assert [*model.names_][2:6] == ["city=A", "city=B", "city=C", "city=other"]
    typed = frame.assign(city=frame["city"].astype("category"))
    declared = pd.CategoricalDtype(["A", "B"])
    one = exact(categories={**LEVELS, "city": declared}).fit(typed, labels(frame))
    two = exact().fit(frame, labels(frame))
    assert np.array_equal(one.coef_, two.coef_)


def test_what_is_neither_number_nor_text_is_refused_at_once(frame):
    frame["day"] = frame["hour"] = pd.Timestamp("2020-01-01")
    with pytest.raises(
        ValueError, match=r"neither numbers nor text .* day, hour; leave"
    ):
        dperm.fit(frame, labels(frame))
    with pytest.raises(ValueError, match="columns day, hour;"):
        exact().fit(frame, labels(frame))


@pytest.mark.parametrize(
    ("known", "match"),
    [
        ({"categories": ["city"]}, "expected values by column"),
        ({"categories": {"city": "AB"}}, "found 'AB' for city"),
        ({"categories": {"city": ["A", "other"]}}, "values .* that differ .* for city"),
        ({"categories": {"city": ["A", None]}}, "values .* that differ .* for city"),
        ({"categories": {"town": ["A"]}}, "categories: expected some .*; found town"),
        ({"missing_columns": ["city"]}, "expected some of .*size.*; found city"),
        ({"missing_columns": "age"}, "expected a list, a mapping .*or 'private'"),
        ({"missing_columns": {"age": "x"}}, "age: expected a number, found 'x'"),
        ({"bounds": {"age": (0, 1)}}, "each of age, size; wrong or left out: size"),
    ],
)
def test_declarations_that_do_not_fit_are_refused(frame, known, match):
    with pytest.raises(ValueError, match=match):
        exact(**known).fit(frame, labels(frame))


def test_declarations_need_a_frame_and_every_column(frame):
    with pytest.raises(ValueError, match="expected with a data frame, found ndarray"):
        exact().fit(np.zeros((20, 4)), np.zeros(20))
    with pytest.raises(ValueError, match=r"share a name: .*city=A, .*city=A"):
        exact(bounds=None).fit(frame.assign(**{"city=A": 1.0}), labels(frame))
    model = exact().fit(frame, labels(frame))
    with pytest.raises(ValueError, match="missing: age, city"):
        model.predict(frame[["size", "code"]])
    with pytest.raises(ValueError, match="expected a data frame"):
        model.predict(np.zeros((2, 4)))
    turned = frame[["code", "size", "city", "age"]]
    assert np.array_equal(model.predict(turned), model.predict(frame))


def test_an_undeclared_gap_makes_a_record_one_of_zeros(frame):
    y, known = labels(frame), {"l2": 0.1, "missing_columns": None}
    one = exact(**known).fit(frame, y)
    array = exact(**known)._framed(frame)
    assert np.isnan(array[::10, 0]).all()
    low, high = one._layout.bounds
    bare = DPRegressor(epsilon=np.inf, l2=0.1, bounds=(low, high)).fit(array, y)
    assert one.coef_ == pytest.approx(bare.coef_)


def test_fits_are_pickled_and_searched(frame):
    y, known = np.tile([0, 1], 200), {"classes": (0, 1), **DECLARED}
    model = DPClassifier("dp_gd", random_state=0, **known).fit(frame, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(frame), model.predict_proba(frame))
    search = PrivateSearch(
        DPClassifier("dp_gd", **known), {"l2": [0.01, 0.1]}, random_state=0
    )
    best = search.fit(frame, y).best_estimator_
    assert best.names_.tolist() == NAMES.split() and best.coef_.shape == (1, 9)
    assert search.predict(frame).shape == (400,)
    model.set_params(categories=None, missing_columns=None, bounds=(-1, 1))
    model.fit(np.zeros((20, 2)), y[:20])
    assert not hasattr(model, "names_") and model.coef_.shape == (1, 2)


# --- what a release finds -------------------------------------------------------------


OPEN = {
    "moments": (DPRegressor, {}),
    "dp_gd": (DPRegressor, {"label_bounds": (-2, 6), "bounds": BOUNDS}),
    "objective_perturbation": (DPClassifier, {"classes": (False, True)}),
}


def opened(frame, solver="moments", **more):
    """A fit to which nothing of the text and the gaps is declared."""
    (kind, known), y = OPEN[solver], labels(frame)
    y = y > 1 if kind is DPClassifier else y
    known = {"random_state": 0, "epsilon": 4.0, **known, **more}
    return kind(solver, **known).fit(frame[["age", "city", "size"]], y)


@pytest.mark.parametrize("solver", OPEN)
def test_releases_stand_in_their_order_and_cost_what_was_asked_for(frame, solver):
    model = opened(frame, solver, delta=1e-4)
    events, kinds = model.epsilon_.ledger.events, "StableCounts Gaussian Gaussian"
    units = [event.unit.split(",")[0] for event in events]
    assert units[0] == "sqrt(2 k + g)" and type(events[0]).__name__ in kinds
    before = units[1 : len(units) - 1 - (solver == "objective_perturbation")]
    assert before == ([] if solver == "dp_gd" else ["sqrt(2 k)", "6 sqrt(m)"])
    price = true_epsilon(model.epsilon_.ledger, 1e-4)
    assert 3.998 < price <= 4.0 == pytest.approx(model.epsilon_.high, abs=1e-3)
    doubt = events[0].doubt  # delta pays for it
    assert doubt == pytest.approx(1e-5, rel=1e-3)
    assert gaussian_epsilon(1 / events[0].noise_multiplier, 1e-4 - doubt) < 4.0
    assert model.epsilon_.given == ("n", TYPES) and model.solver_ == solver
    assert [*model.names_] == [
        "age",
        "age=missing",
        "city=A",
        "city=B",
        "city=C",
        "city=other",
        "size",
    ]


def test_noise_is_that_of_the_ledger(frame, monkeypatch):
    """Each release draws as many numbers as it has cells, of its event's scale."""
    drawn, real = [], private_scales.seeded

    def seeded(seed):
        normal = real(seed)

        def heard(scale, size):
            drawn.append((float(scale), size))
            return normal(scale, size)

        return heard

    monkeypatch.setattr(private_scales, "seeded", seeded)
    events = opened(frame).epsilon_.ledger.events
    cells = len(private_scales.OCTAVES)
    sizes = [3 + 2, 3 * cells, 1]  # levels and gaps; two columns and the label; age
    assert drawn == [(e.scale, k) for e, k in zip(events, sizes, strict=False)]


def test_a_value_of_one_record_is_not_found_and_the_order_tells_nothing(frame):
    changed = frame.copy()
    changed.loc[5, "city"] = "a name that nobody else has"
    one, two = opened(frame), opened(changed)
    turned = opened(frame.iloc[::-1].reset_index(drop=True))
    assert one.names_.tolist() == two.names_.tolist() == turned.names_.tolist()
    rare = frame["city"].where(frame.index >= 30, "D")
    found = opened(frame.assign(city=rare), epsilon=50.0)
    assert "city=D" in found.names_
    assert "city=D" not in opened(frame.assign(city=rare), epsilon=0.5).names_


def test_gaps_are_filled_with_a_released_mean_or_what_is_declared(frame):
    model = opened(frame, epsilon=50.0)
    assert model._layout.fills["age"] == pytest.approx(50, abs=5)
    at = model.predict(frame.assign(age=model._layout.fills["age"])[:9])
    flag = model.coef_[[*model.names_].index("age=missing")]
    assert model.predict(frame.assign(age=np.nan)[:9]) == pytest.approx(at + flag)
    assert opened(frame, "dp_gd")._layout.fills["age"] == 50.0
    known = exact(missing_columns={"age": 33.0}).fit(frame, labels(frame))
    assert known._layout.fills == {"age": 33.0}
    numbers = frame[["age", "size"]]
    made = DPRegressor("dp_gd", epsilon=4.0, missing_columns="private", random_state=0)
    made.fit(numbers, labels(frame))
    assert [*made.names_] == ["age", "age=missing", "size"]
    plain = DPRegressor("dp_gd", random_state=0).fit(numbers, labels(frame))
    assert [*plain.names_] == ["age", "size"]


def test_without_privacy_every_value_is_found(frame):
    one = frame.assign(city=frame["city"].where(frame.index != 3, "Z"))
    model = DPRegressor(epsilon=np.inf, l2=1e-8).fit(one[["age", "city"]], labels(one))
    assert {"city=Z", "age=missing"} <= {*model.names_}


def test_a_method_whose_price_hangs_on_found_columns_is_not_taken(frame):
    y = labels(frame) > 1
    known = {"classes": (False, True), "random_state": 0, "fit_intercept": False}
    chosen = DPClassifier(l2=10.0, epsilon=2.0, **known).fit(frame, y).solver_
    order = choosing.order(400, 8, False, 2.0)
    assert "objective_perturbation" in order[: order.index(chosen)]
    for name in order[: order.index(chosen)]:
        with pytest.raises(ValueError, match="price hangs on columns that were found"):
            DPClassifier(name, l2=10.0, epsilon=2.0, **known).fit(frame, y)
    with pytest.raises(ValueError, match="a search needs all declared"):
        model = DPClassifier("dp_gd", feature_scale=1.0, **known)
        PrivateSearch(model, {"l2": [0.1]}).fit(frame, y)


def test_pipelines_that_hand_on_data_frames_keep_their_names(frame):
    """``set_output`` is of transformers: a model behind them sees their frames."""
    y = labels(frame)
    numbers = frame[["size", "code"]]
    pipe = make_pipeline(StandardScaler(), DPRegressor("moments", random_state=0))
    pipe.set_output(transform="pandas").fit(numbers, y)
    assert pipe[-1].names_.tolist() == ["size", "code"]
    assert pipe.predict(numbers).shape == (400,)
    made = pipe[-1].intervals()
    assert [*made.index] == ["size", "code", "intercept"]
    mixed = ColumnTransformer(
        [("numbers", StandardScaler(), ["age", "size"])],
        remainder="passthrough",
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    pipe = make_pipeline(mixed, DPRegressor("dp_gd", epsilon=4.0, random_state=0))
    pipe.fit(frame[["age", "size", "city"]], y)
    assert {"age=missing", "city=A"} <= {*pipe[-1].names_}
    assert pipe.predict(frame[["age", "size", "city"]][:3]).shape == (3,)


# --- scales of declared levels --------------------------------------------------------


def test_a_record_moves_the_counts_of_a_category_as_those_of_one_column(frame):
    known = {"categories": LEVELS, "missing_columns": ["age"]}
    model = DPRegressor("moments", epsilon=1.0, random_state=0, **known)
    y = labels(frame)
    model.fit(frame, y)
    moved = len(frame.columns) + 1  # a record is in each, or in "age=missing"
    event = model.epsilon_.ledger.events[0]
    assert event.sensitivity == pytest.approx(np.sqrt(2 * (moved + 1)))  # and the label
    rng, distances = np.random.default_rng(1), []
    counts = private_scales.histogram(expanded(frame, model._layout))
    for _ in range(100):
        other = frame.copy()
        city = rng.choice(["A", "B", "D"])
        other.loc[3] = [10.0 ** rng.uniform(-30, 30), city, rng.normal(), 2]
        found = private_scales.histogram(expanded(other, model._layout))
        distances.append(np.linalg.norm(found - counts))
    assert np.sqrt(2 * moved) * 0.8 < max(distances) <= np.sqrt(2 * moved)


def test_fewer_columns_than_a_record_is_in_are_refused(frame):
    with pytest.raises(UndeclaredError):
        X = np.ones((5, 3))
        stated = private_scales.ledger(2, 5, 1.0, 0.01)
        private_scales.noisy_counts([X], stated, private_scales.seeded(0), 3)


def test_scales_of_declared_levels_are_near_their_shares(frame):
    model = DPClassifier(epsilon=5.0, random_state=0, categories=LEVELS, classes=(0, 1))
    model.fit(
        pd.concat([frame[["city", "code"]]] * 20), np.tile(frame["code"] == 2, 20)
    )
    shares = [np.mean(frame["city"] == value) for value in ("A", "B")]
    assert model._over[:2] ** 2 == pytest.approx(shares, rel=0.1)
