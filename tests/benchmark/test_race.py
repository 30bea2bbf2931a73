"""The race: fits as users make them, fresh seeds, and two ends to measure by."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.metrics import r2_score

from dperm import DPClassifier
from dperm.benchmark import peers, race
from dperm.benchmark.race import Case
from dperm.estimators import methods
from dperm.numerics.intervals import student
from dperm.problems import losses
from dperm.problems.optimum import NotCertifiedError
from small_files import drawn

FEATURES = ["a", "b", "c"]


def case(real=False, name="mine", **told):
    table = pd.concat([drawn(real)] * 5)
    y = table["y"].to_numpy(float)
    loss = "least_squares" if real else "logistic"
    return Case.of(name, table[FEATURES].to_numpy(), y, loss, **told)


def one(name, **grid):
    return methods.method(name, grids={name: grid} if grid else None)


def test_excess_is_one_for_the_best_constant_and_zero_without_privacy():
    made = case(real=True)
    y = made.y
    assert made.excess(np.full(len(y), y.mean())) == pytest.approx(1.0)
    assert made.excess(least_squares(made, made.X)) == pytest.approx(
        0.0, abs=1e-12
    )
    signed = case()
    share = signed.y.mean()
    entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
    assert signed.reference.constant.mean() == pytest.approx(entropy)
    best = np.full(len(signed.y), np.log(share / (1 - share)))
    assert signed.excess(best) == pytest.approx(1.0)
    constant, free = signed.ends()
    assert (constant["excess"], constant["test"]) == (1.0, 0.5)
    assert free["excess"] == 0.0 and free["test"] > 0.9


def least_squares(made, X):
    """Scores of records X by numpy's least squares on the fitted ones."""
    ones = np.ones(len(made.y))
    slopes = np.linalg.lstsq(np.column_stack((made.X, ones)), made.y)[0]
    return X @ slopes[:-1] + slopes[-1]


def test_a_fifth_is_held_out_and_ranges_are_the_datas_unless_told():
    made = case()
    assert (len(made.y), len(made.y_held)) == (320, 80)
    whole = np.concatenate((made.X, made.X_held))
    assert np.array_equal(
        made.declared["bounds"], (whole.min(0), whole.max(0))
    )
    assert made.declared["classes"] == (0.0, 1.0)
    told = case(bounds=(-1, 1), classes=(1.0, 0.0))
    assert np.allclose(
        told.declared["bounds"] + told.origin, [[-1] * 3, [1] * 3]
    )
    assert told.declared["classes"] == (1.0, 0.0)
    real = case(real=True, label_bounds=(-9, 20))
    found = np.array(real.declared["label_bounds"]) + real.label_origin
    assert found == pytest.approx([-9, 20])
    low, high = race.ends(np.array([[1.0, 2.0], [1.0, 4.0]]))
    assert low.tolist() == [1.0, 2.0] and high.tolist() == [
        2.0,
        4.0,
    ]  # a constant
    low, high = race.ends(np.full((2, 1), -1e17))
    assert low < high
    X = sparse.csr_array(np.array([[0.0, 2.0], [0.0, -4.0]]))
    assert np.array_equal(race.ends(X), ([0, -4], [1, 2]))


def test_without_an_intercept_nothing_is_moved():
    table = drawn(True)
    how = {"fit_intercept": False}
    made = Case.of(
        "mine", table[FEATURES].to_numpy(), table["y"], "huber", **how
    )
    assert not made.origin.any() and made.label_origin == 0.0
    (row, _) = race.rows(made, one("dp_gd"), [2.0], 3, 2, tunings=["default"])
    assert row["status"] == "ok" and row["excess"] > 0


def fitted(made, epsilon, seed):
    """What a user fits who declares what the race declares."""
    model = DPClassifier(
        "dp_gd",
        epsilon=epsilon,
        random_state=seed,
        classes=(0.0, 1.0),
        bounds=made.declared["bounds"],
        setting={},
    )
    return model.fit(made.X, made.y)


def test_a_row_is_the_fit_that_a_user_gets():
    made = case()
    (row, _) = race.rows(made, one("dp_gd"), [2.0], 3, 2, tunings=["default"])
    model = fitted(made, 2.0, row["run_seed"])
    excess = made.excess(model.decision_function(made.X))
    assert row["excess"] == pytest.approx(excess, rel=1e-12)
    assert row["true_epsilon"] == model.epsilon_.high <= 2.0
    assert row["given"] == "n" and row["metric"] == "AUC"
    assert row["test"] == made.held_out_metric(
        model.decision_function(made.X_held)
    )


def test_seeds_that_choose_do_not_judge_and_the_least_is_chosen(monkeypatch):
    made, method = case(), one("dp_gd", steps=[3], step=[1e-6, 1.0])
    found = pd.DataFrame(race.rows(made, method, [5.0], seed=3, fresh=4))
    by = found.groupby("tuning")
    # fresh, and common
    assert by["run_seed"].unique().map(tuple).nunique() == 1
    assert len({*found["run_seed"]}) == 4
    assert {*by.get_group("grid")["setting"]} == {"steps 3, step 1, clip 0.5"}
    seen, real = set(), Case.fit

    def fit(self, method, epsilon, setting, seed):
        seen.add(seed)
        return real(self, method, epsilon, setting, seed)

    monkeypatch.setattr(Case, "fit", fit)
    race.rows(made, method, [5.0], 3, 4, tunings=["grid"])
    assert (
        len(seen - {*found["run_seed"]})
        == race.TUNING_RUNS
        == race.tries(made)
    )


def test_every_setting_that_was_tried_has_rows(monkeypatch):
    """The least mean of them is chosen; a setting that is refused has its reason."""
    made = case()
    grid = {"curvature": [0.1, 1.0, 1000.0]}
    method = one("objective_perturbation", **grid)
    rows = race.rows(made, method, [1.0], 3, 2, keeps_tried=True)
    found = pd.DataFrame(rows)
    tried = found[found["tuning"] == race.TRIED]
    ran = tried[tried["status"] == "ok"].groupby("setting")["excess"]
    assert (ran.count() == race.TUNING_RUNS).all() and len(ran) == 2
    (gap,) = tried[tried["status"] == "gap"].to_dict("records")
    assert gap["setting"] == "curvature 1000" and gap["reason"]
    assert {*found[found["tuning"] == "grid"]["setting"]} == {
        ran.mean().idxmin()
    }
    assert not {*tried["run_seed"]} & {
        *found[found["tuning"] != race.TRIED]["run_seed"]
    }
    kept = race.rows(made, method, [1.0], 3, 2)
    assert [row["excess"] for row in kept] == [
        row["excess"] for row in rows if row["tuning"] != race.TRIED
    ]
    monkeypatch.setattr(race, "SLOW", 10)
    few = pd.DataFrame(race.rows(made, method, [1.0], 3, 2, keeps_tried=True))
    assert (few["tuning"] == race.TRIED).sum() == 3 and race.tries(made) == 1


def test_accuracy_is_the_share_of_held_out_labels_that_are_right():
    made = case()
    share = made.y.mean()
    constant, free = made.ends()
    assert constant["accuracy"] == np.mean(made.y_held == (share > 0.5))
    assert free["accuracy"] > constant["accuracy"]
    (row,) = race.rows(made, one("dp_gd"), [9.0], 3, 1, tunings=["default"])
    model = fitted(made, 9.0, row["run_seed"])
    assert row["accuracy"] == np.mean(
        model.predict(made.X_held) == made.y_held
    )
    assert np.isnan(case(real=True).ends()[1]["accuracy"])


def test_the_number_of_fits_that_is_announced_is_that_of_the_fits(monkeypatch):
    made, method = case(), one("dp_gd", steps=[2, 3], step=[1.0, 0.1])
    seen, real = [], Case.fit

    def fit(self, method, epsilon, setting, seed):
        seen.append(seed)
        return real(self, method, epsilon, setting, seed)

    monkeypatch.setattr(Case, "fit", fit)
    for tunings in (["default"], ["default", "grid"]):
        seen.clear()
        race.rows(made, method, [1.0], 3, 4, tunings)
        assert len(seen) == race.fits(made, method, 4, tunings)
    seen.clear()
    (seconds,) = race.expected(made, [method], [1.0, 3.0], 4, ["default"])
    assert len(seen) == 2 and 0 < seconds < 60
    assert race.expected(made, [one("moments")], [1.0], 4, ["default"]) == [
        0.0
    ]
    assert [race.duration(s) for s in (0.2, 61, 300, 7200)] == [
        "1 s",
        "61 s",
        "5 minutes",
        "2.0 hours",
    ]


def test_the_race_is_the_same_for_any_name_and_number_of_workers():
    chosen = [one("dp_gd"), one("dp_cd")]
    how = {"fresh": 2, "tunings": ["default"]}
    found = []
    for name, workers in (("mine", 1), ("other", 1), ("mine", 2)):
        runs = race.race(case(name=name), chosen, [1.0], 7, workers, **how)
        found.append(runs.drop(columns=["problem", "seconds"]))
        pd.testing.assert_frame_equal(found[0], found[-1])
    other = race.race(case(), chosen, [1.0], 8, **how)
    assert not np.allclose(other["excess"][:4], found[0]["excess"][:4])


def test_more_epsilon_helps():
    found = race.rows(case(real=True), one("moments"), [0.3, 3.0, 30.0], 1, 6)
    means = pd.DataFrame(found).groupby("epsilon")["excess"].mean()
    assert means.is_monotonic_decreasing and means.iloc[-1] < 0.1


def test_what_a_method_cannot_do_is_a_gap_with_a_reason():
    (row,) = race.rows(case(), one("moments"), [1.0, 3.0], 1)
    assert row["status"] == "gap" and "cannot do this" in row["reason"]
    far = one("objective_perturbation", curvature=[1000.0])
    rows = race.rows(case(), far, [0.01], 1, 2)
    gaps = [row for row in rows if row["status"] == "gap"]
    assert [row["tuning"] for row in gaps] == ["grid"] and len(rows) == 3


# --- the reference --------------------------------------------------------------------

LOSSES = ("least_squares", "huber", "logistic", "smoothed_hinge")
CLEAR = ("moments", "dp_gram", "objective_perturbation", "dp_gd")


def grid_data(n=200):
    """Features and labels that offsets of whole numbers up to 1e12 leave exact."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 4)) * [1.0, 3.0, 0.2, 0.0] + [0.0, 5.0, 1.0, 7.0]
    X[:, 2] += rng.integers(0, 2, n)
    scores = (X - X.mean(axis=0)) @ [1.0, -0.5, 4.0, 0.0] + rng.normal(size=n)
    return np.round(X * 2**10) / 2**10, np.round(scores * 2**10) / 2**10


def affine(rng, shape):
    """Offsets up to 1e12, exact where the scale is, and scales from 1e-6 to 1e6."""
    offset = np.round(10 ** rng.uniform(-3, 12, shape)) * rng.choice(
        [-1, 1], shape
    )
    exact = 2.0 ** rng.integers(-19, 20, shape)
    return offset, exact, 10 ** rng.uniform(-6, 6, shape)


@pytest.mark.parametrize(
    ("loss", "name", "maps"),
    [("least_squares", "moments", 100), ("huber", "dp_gram", 10),
     pytest.param("logistic", "objective_perturbation", 100,
                  marks=pytest.mark.long)],
)  # fmt: skip
def test_origins_and_units_move_no_excess(loss, name, maps):
    """Two maps of features and labels at a time; labels of classes become others."""
    X, scores = grid_data()
    is_signed = loss == "logistic"
    y = np.where(scores > 0, 1.0, -1.0) if is_signed else scores
    method = one(name)

    def excess(X, y):
        made = Case.of("mine", X, y, loss)
        (row,) = race.rows(made, method, [1.0], 3, 1, tunings=["default"])
        constant, free = made.ends()
        return row["excess"], constant["test"], free["test"]

    expected = excess(X, y)
    rng = np.random.default_rng(8)
    for _ in range(maps):
        offset, exact, scale = affine(rng, 4)
        label_offset, label_exact, label_scale = affine(rng, 1)
        shifted = (X + offset) * exact
        labels = (y + label_offset) * label_exact
        assert excess(shifted, labels) == pytest.approx(expected, abs=1e-9)
        assert excess(X * scale, y * label_scale) == pytest.approx(
            expected, abs=1e-9
        )


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    "case_name", ["plain", "collinear", "wide", "separable", "bounded"]
)
def test_no_affine_scores_are_below_the_least_loss(loss, case_name):
    """Not even of minimisers by SciPy, or of labels that clipping would favour."""
    rng = np.random.default_rng(5)
    n, p = (60, 90) if case_name == "wide" else (300, 4)
    X = rng.normal(size=(n, p)) + 3.0
    X = (
        np.column_stack((X, X[:, 0] + X[:, 1]))
        if case_name == "collinear"
        else X
    )
    scores = (X - 3.0)[:, :4] @ [1.0, -1.0, 0.5, 2.0]
    scores += rng.normal(size=n) * (case_name != "separable")
    is_signed = loss in ("logistic", "smoothed_hinge")
    y = (
        np.where(scores > 0, 1.0, -1.0)
        if is_signed or case_name == "bounded"
        else scores
    )
    made = Case.of("mine", X, y, loss)
    kind_of_loss = losses.named(loss)
    target = made.y if made.signed else made.y / made.unit

    def mean(w):
        scores = made.X @ w[:-1] + w[-1]
        return race.losses_of(scores, target, kind_of_loss).mean()

    w = minimize(mean, np.zeros(made.X.shape[1] + 1), method="BFGS").x
    found = made.excess(made.unit * (made.X @ w[:-1] + w[-1]))
    assert -1e-9 <= found < 1e-3
    free = made.reference
    scores = made.unit * (made.X @ free.slopes + free.intercept)
    assert made.excess(scores) == pytest.approx(0.0, abs=1e-9)
    for solver in CLEAR:
        rows = race.rows(made, one(solver), [1e4], 3, 1, tunings=["default"])
        assert all(
            row["status"] == "gap" or row["excess"] >= -1e-9 for row in rows
        )


def test_without_privacy_is_least_squares():
    for offset in (0.0, 1.7e9, 1e11):
        table = pd.concat([drawn(True)] * 5)
        y = table["y"].to_numpy() * 100 + offset
        made = Case.of("mine", table[FEATURES].to_numpy(), y, "least_squares")
        expected = r2_score(made.y_held, least_squares(made, made.X_held))
        assert made.ends()[1]["test"] == pytest.approx(expected, abs=1e-9)


def test_a_reference_that_is_not_the_least_is_noticed():
    made = case(real=True)
    worse = replace(made.reference, least=made.reference.least * 1.1)
    made.__dict__["reference"] = worse
    with pytest.raises(NotCertifiedError, match="mine: found an excess of -"):
        made.excess(least_squares(made, made.X))


def test_nothing_to_learn_is_said():
    X, y = np.ones((50, 2)), np.arange(50.0)
    with pytest.raises(ValueError, match="there is nothing to learn"):
        _ = Case.of("mine", X, y, "least_squares").reference
    wide = sparse.csr_array((2**14, 2**14))
    with pytest.raises(
        ValueError, match=r"wide: expected at most .* 16384 x 16384"
    ):
        Case.of("wide", wide, np.arange(2.0**14), "least_squares")


def test_what_is_listed_twice_runs_once():
    made = case()
    twice = {"steps": [3, 3.0], "step": [1.0, 0.1, 1, 1.0, 0.5]}
    once = {"steps": [3], "step": [1.0, 0.1, 0.5]}
    found = [
        race.rows(made, one("dp_gd", **grid), epsilons, 3, 2, tunings)
        for grid, epsilons, tunings in (
            (once, [1.0], ["grid"]),
            (twice, [1, 1.0], ["grid", "grid"]),
        )
    ]
    same = [[row["excess"] for row in rows] for rows in found]
    assert same[0] == same[1] and len(same[0]) == 2


# --- results --------------------------------------------------------------------------

EXCESSES = {
    ("A", "default"): [0.5, 0.7, 0.6],
    ("A", "grid"): [0.2, 0.3, 0.25],
    ("B", "default"): [np.inf, 1.0, 1.0],
    ("C", "default"): [0.9, 1.5, 0.8],
}


@pytest.fixture
def table():
    rows = [
        {"problem": "mine", "solver": name, "epsilon": 1.0, "tuning": tuning, "n": 9,
         "p": 3, "accuracy": 0.5,
         "excess": excess, "seconds": 0.5, "metric": "AUC", "test": 0.7 + 0.1 * k,
         "true_epsilon": 1.0 if k == 0 else np.nan, "given": "n", "setting": "step 1",
         "status": "ok", "reason": ""}
        for (name, tuning), excesses in EXCESSES.items()
        for k, excess in enumerate(excesses)
    ]  # fmt: skip
    gap = {
        "problem": "mine",
        "solver": "D",
        "status": "gap",
        "reason": "it cannot",
    }
    return race.means(pd.DataFrame([*rows, gap]), {})


def test_means_have_students_interval(table):
    first = table.iloc[0]
    known = student(np.array(EXCESSES["A", "default"]))
    assert (first["ci_low"], first["ci_high"]) == pytest.approx(known)
    assert first["mean"] == pytest.approx(0.6) and first["true_epsilon"] == 1.0
    assert first["test"] == pytest.approx(0.8)
    assert (
        np.isinf(table.iloc[2]["mean"])
        and table.iloc[4]["reason"] == "it cannot"
    )


def test_whom_to_take_and_that_none_beats_the_constant(table):
    default, grid = race.recommended(table)
    assert default.startswith("epsilon 1, default: take A, excess 0.6 [0.35")
    assert (
        default.endswith("not significantly worse: C") and "worse" not in grid
    )
    (alone, *_) = race.recommended(table[table["solver"] == "C"])
    assert (
        "none beats the best constant; least is C" in alone
        and "take" not in alone
    )
    text = race.words(table)
    assert text.startswith(
        "At epsilon 1 with 9 records and 3 features expect to keep "
    )
    assert "it cannot" in text and "epsilon of A, B, C holds given: n" in text


def test_the_answer_is_one_sentence_an_epsilon(table):
    """Of methods without tuning, which no epsilon pays for."""
    (sentence,) = race.answers(table)
    assert sentence == (
        "At epsilon 1 with 9 records and 3 features expect to keep 40 % [15, 65] of "
        "what can be learned; take A."
    )
    (none,) = race.answers(table[table["solver"] == "C"])
    assert none.endswith(
        "expect to learn nothing; no method beats the best constant."
    )
    (free,) = race.answers(table[table["tuning"] != "default"])
    assert free.endswith("take A, tuned for free.")


# --- a peer ---------------------------------------------------------------------------

FAKE = """
import sys
import numpy as np
given = np.load(sys.argv[1])
X, low, high = (given[k] for k in ("X", "low", "high"))
assert (X >= low).all() and (X <= high).all() and {*given["y"]} == {0.0, 1.0}
shape = len(given["epsilons"]), len(given["seeds"])
share = given["y"].mean()
best = np.log(share / (1 - share))
np.savez(sys.argv[2], scores=np.full((*shape, len(X)), best),
         held_out=np.full((*shape, len(given["X_held"])), best), seconds=np.ones(shape))
"""


@pytest.fixture
def library(tmp_path):
    (tmp_path / "fake.py").write_text(FAKE)
    return peers.Library(
        "fake", (), tmp_path / "fake.py", "its own", is_slow=True
    )


def test_another_library_is_measured_like_ours(library, monkeypatch):
    found = pd.DataFrame(
        peers.rows(case(), sys.executable, [1.0, 3.0], [1, 2], library)
    )
    assert found["epsilon"].tolist() == [1.0, 1.0, 3.0, 3.0]
    assert found["excess"].to_numpy() == pytest.approx(1.0)
    assert (found["test"] == 0.5).all() and (found["given"] == "its own").all()
    monkeypatch.setattr(peers, "SLOW", 10)
    assert (
        len(peers.rows(case(), sys.executable, [1.0, 3.0], [1, 2], library))
        == 2
    )


def test_scores_that_are_not_affine_may_be_below_the_least_loss(library):
    made = case()
    sure = np.where(made.y == made.declared["classes"][1], 50.0, -50.0)
    with pytest.raises(NotCertifiedError):
        made.measured(sure, made.y_held)
    assert made.measured(sure, made.y_held, is_affine=False)["excess"] < 0
    assert not peers.INTERPRET.is_affine and peers.DIFFPRIVLIB.is_affine


def test_a_library_that_cannot_be_had_is_a_gap_with_a_reason(
    tmp_path, monkeypatch
):
    absent = peers.Library(
        "no_such_library_at_all", ("x==1",), tmp_path / "absent.py", ""
    )
    (row,) = peers.rows(case(), sys.executable, [1.0], [1], absent)
    assert row["status"] == "gap" and "absent.py" in row["reason"]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    failed, steps = peers.failed, iter(["0", "1/0"])
    step = lambda _: failed([sys.executable, "-c", next(steps)])  # noqa: E731
    monkeypatch.setattr(peers, "failed", step)
    python, reason = peers.environment(absent)
    assert python == "" and "cannot be made: ZeroDivisionError" in reason
    assert not (peers.environment_folder(absent) / "environment").exists()


@pytest.mark.skipif(
    sys.platform != "linux", reason="the user's cache is elsewhere"
)
def test_an_environment_is_made_once_and_anew_where_it_is_broken(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    library = peers.Library(
        "no_such_library", ("x==1",), tmp_path / "x.py", ""
    )
    commands = []

    def failed(command):
        """Make what the tools would make; a Python works where it is not empty."""
        commands.append(command[1:3])
        python = Path(command[0])
        if "venv" in command:
            python = Path(command[-1], "bin", "python")
            python.parent.mkdir(parents=True)
            python.write_text("works")
        return (
            ""
            if python == Path(sys.executable) or python.read_text()
            else "broken"
        )

    def made():
        """The Python that another process gets, and how often one was made."""
        peers._python.cache_clear()
        return peers.environment(library), commands.count(["-m", "venv"])

    monkeypatch.setattr(peers, "failed", failed)
    (python, reason), count = made()
    assert (reason, count) == ("", 1) and Path(python).is_relative_to(tmp_path)
    unfinished = peers.environment_folder(library) / "unfinished" / "lib"
    unfinished.mkdir(parents=True)  # of a process that was killed
    assert made() == ((python, ""), 1) == (peers.environment(library), 1)
    Path(python).write_text("")
    unfinished.mkdir(exist_ok=True)
    assert made() == ((python, ""), 2)
    other = replace(library, requires=("x==2",))
    assert peers.environment_folder(other) != peers.environment_folder(library)
