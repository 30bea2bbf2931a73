"""What no single record may decide of a fit, whatever stands in it."""

import io
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.ensemble import BaggingClassifier

import dperm
from dperm.privacy.events import EXACT_MINIMA

N = 400
X = np.random.default_rng(0).uniform(-1.0, 1.0, (N, 2))
Y = (X[:, 0] > 0).astype(int)
GIVEN = {"epsilon": 5.0, "random_state": 0, "bounds": (-1, 1)}


def classifier(solver="dp_gd", **known):
    return dperm.DPClassifier(solver, **{"classes": (0, 1), **GIVEN, **known})


def regressor():
    return dperm.DPRegressor("dp_gd", label_bounds=(-1, 1), **GIVEN)


def test_an_entry_in_many_parts_counts_as_their_sum():
    """The first entry is stored as 50 000 pieces of 1000 and one of the rest."""
    pieces, first = np.full(50_000, 1e3), np.zeros(50_000, dtype=int)
    data = np.concatenate((pieces, *X.T))
    rows = np.concatenate((first, np.arange(N), np.arange(N)))
    ends = [0, len(pieces) + N, len(data)]
    parts = sparse.csc_array((data, rows, ends), shape=(N, 2))
    assert not parts.has_canonical_format
    whole = sparse.csc_array(parts.toarray())
    before = parts.nnz
    found, wanted = (classifier().fit(one, Y) for one in (parts, whole))
    assert np.array_equal(found._ranges[0].scale, wanted._ranges[0].scale)
    assert np.array_equal(found.coef_, wanted.coef_)
    assert parts.nnz == before  # the user's array stays as it was


GAPPY = pd.DataFrame(X.copy(), columns=["a", "b"])
GAPPY.loc[5:200] = np.nan
GAPPY.loc[0, "a"] = 1e308


@pytest.mark.parametrize(
    ("solver", "records", "end", "epsilon"),
    [
        ("dp_gd", GAPPY, 1e-3, 50.0),
        # SciPy's warning of an ill-conditioned matrix has a number of theirs in it
        ("objective_perturbation", X, 1e-12, 1.0),
        ("approximate_minima", X, 1e-12, 1.0),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_warning_does_not_follow_the_records(solver, records, end, epsilon):
    model = classifier(solver, bounds=(-end, end), epsilon=epsilon)
    model.fit(records, Y)


def test_no_cast_of_a_record_warns():
    """NumPy warns where it drops the imaginary part of a number."""
    odd = pd.Series(X[:, 0], dtype=object)
    odd.iat[0] = np.complex128(1j)
    with warnings.catch_warnings(record=True) as heard:
        # an error would be a number that is missing
        warnings.simplefilter("always")
        regressor().fit(X, odd.to_numpy())
    assert not heard


COMPLEX = np.full((N, 2), 7 + 1j)
REFUSED = [  # X, y or all kinds of it, what is said
    (np.full((N, 2), "Jane 7"), None, "X: expected an array of numbers"),
    (np.full((N, 2), b"7"), None, "X: expected an array of numbers"),
    (
        np.full((N, 2), 7, dtype="M8[s]"),
        None,
        "X: expected an array of numbers",
    ),
    (np.full(N, 7.5), None, "Reshape your data"),
    (COMPLEX, None, "X: expected real numbers"),
    (sparse.csr_array(COMPLEX), None, "X: expected real numbers"),
    (pd.DataFrame(COMPLEX), None, "X: expected columns of numbers"),
    (X, np.full(N, "Jane 7"), "y: expected an array of numbers"),
    (
        X,
        pd.Series([7.5, *[1.0] * (N - 2), 1 + 2j]),
        "y: expected real numbers",
    ),
]


@pytest.mark.parametrize(("records", "labels", "said"), REFUSED)
def test_an_error_says_nothing_of_an_entry(records, labels, said):
    models = [(regressor(), X[:, 0]), (classifier(), Y)]
    for model, y in models if labels is None else [(regressor(), labels)]:
        with pytest.raises(ValueError, match=said) as found:
            model.fit(records, y)
        assert "7" not in str(found.value) and found.value.__context__ is None


def test_a_budget_names_all_that_its_fits_take_as_public():
    exact = {"setting": {"minima": "exact"}, "delta": 1e-6}
    model = classifier("objective_perturbation", **exact)
    with dperm.Budget(10.0, 0.1) as budget:
        model.fit(X, Y)
    assert EXACT_MINIMA in budget.given
    assert (
        budget.spent_epsilon == pytest.approx(5.0)
        and budget.spent_delta == 1e-6
    )


@pytest.mark.parametrize("classes", [(0, 1), ("0", "1"), (False, True)])
@pytest.mark.parametrize("cells", [[0, 1], ["False", "True"], [0.0, 1.0]])
def test_a_word_among_labels_of_a_file_is_a_record_of_no_class(classes, cells):
    every = [cells[one] for one in Y]
    fits = []
    for first in (7 if cells[0] == 0 else every[0], "oops"):
        lines = map(str, ["y", first, *every[1:]])
        read = pd.read_csv(io.StringIO("\n".join(lines)))["y"].to_numpy()
        fits.append(classifier(classes=classes).fit(X, read))
    assert [*fits[0].classes_] == [*classes]
    if cells[0] == 0:  # a number that is no class and a word are the same
        assert np.array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[1].coef_ == pytest.approx(fits[0].coef_, abs=0.2)
    assert fits[1].coef_[0, 0] > 0.1


class Odd:
    """A value that says a secret when it is read."""

    def __repr__(self):
        return "Odd()"  # the same name of a test in every worker

    def __float__(self):
        raise RuntimeError("secret")


HUGE = pytest.param(10**400, id="huge")
ODD = ["abc", b"u", HUGE, pd.NA, None, pd.Timestamp("2020-01-01"), {"a": 1}, [1], 1j,
       Decimal("sNaN"), Odd()]  # fmt: skip


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_an_entry_of_any_kind_is_a_record_of_zeros(odd):
    Z = X.astype(object)
    Z[0, 0] = odd
    wanted = X.copy()
    wanted[0, 0] = np.nan
    models = [classifier().fit(one, Y) for one in (Z.tolist(), wanted)]
    assert np.array_equal(models[0].coef_, models[1].coef_)


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize("make", ["list", "array of objects", "series"])
def test_a_label_of_any_kind_is_a_record_of_zeros(odd, make):
    """NumPy makes texts of all labels of a list with one, none of a declared class."""
    for labels, gap, model in (
        (Y, 2, classifier()),
        (X[:, 0], np.nan, regressor()),
    ):
        y = np.empty(N, dtype=object)
        y[0], y[1:] = odd, labels[1:]
        given = {"list": y.tolist(), "series": pd.Series(y, dtype=object)}.get(
            make, y
        )
        found = model.fit(X, given).coef_
        assert np.array_equal(
            found, model.fit(X, np.append(gap, labels[1:])).coef_
        )


@pytest.mark.parametrize(
    "classes",
    [(0, 2**53), (0, 2**53 + 1), (-(2**60), 1), ("0", str(2**53 + 1))],
)
def test_classes_that_doubles_may_merge_are_refused(classes):
    """One missing label turns an array of whole numbers into one of doubles."""
    with pytest.raises(ValueError, match=r"classes: .* below 2"):
        classifier(classes=classes).fit(X, Y)


# --- what is no record at all, and what is declared in another way --------------------

MANY = np.random.default_rng(1).uniform(-1.0, 1.0, (3000, 3))
SIDES = np.where(MANY[:, 0] > 0, "yes", "no")
DOUBTS = [  # X, y, what is declared, and what the released sums show
    (MANY, SIDES, {"classes": ("No", "Yes")}, "X"),
    (MANY, SIDES, {"classes": ("No", "Yes"), "fit_intercept": False}, "X"),
    (MANY, SIDES, {"classes": ("No", "Yes", "Maybe")}, "X"),
    (MANY, np.full(3000, np.nan), {"label_bounds": (-1, 1)}, "X"),
    (np.full((3000, 3), np.nan), MANY[:, 0], {"label_bounds": (-1, 1)}, "X"),
    (MANY / 100, MANY[:, 0], {"label_bounds": (-1, 1)}, "X"),
    (MANY, (MANY[:, 0] > 0) * 1, {"classes": (-1, 1)}, "y"),
    (MANY, SIDES, {"classes": ("no", "yes")}, ""),
    (MANY, SIDES, {"classes": ("no", "yes"), "fit_intercept": False}, ""),
    (MANY / 3, MANY[:, 0], {"label_bounds": (-1, 1)}, ""),
    (
        MANY[:40],
        SIDES[:40],
        {"classes": ("No", "Yes")},
        "",
    ),  # hidden by the noise
]


@pytest.mark.parametrize(("X", "y", "declared", "name"), DOUBTS)
def test_released_sums_tell_that_records_hold_nothing(X, y, declared, name):
    known = {"bounds": (-1, 1), "random_state": 0, "delta": 1e-5, **declared}
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        dperm.fit(X, y, "dp_gd", **known)
    said = [str(one.message).partition(":")[0] for one in heard]
    assert said == [name] * bool(name)


def test_an_ensemble_of_words_is_refused_and_one_of_codes_fitted():
    how = {"bounds": (-1, 1), "delta": 1e-5}
    words = dperm.DPClassifier("dp_gd", classes=("no", "yes"), **how)
    with pytest.raises(
        ValueError, match=r"words .'no', 'yes'.*numbers .int64"
    ):
        BaggingClassifier(words, n_estimators=2).fit(MANY, SIDES)
    codes = dperm.DPClassifier("dp_gd", classes=(0, 1), **how)
    ensemble = BaggingClassifier(codes, n_estimators=2, random_state=0)
    assert ensemble.fit(MANY, SIDES).score(MANY, SIDES) > 0.9


def test_a_column_has_a_pair_of_ends():
    frame = pd.DataFrame(X, columns=["a", "b"])
    for pair in (1, (1,), (0, 1, 2), {"low": 0, "high": 1}, "01"):
        with pytest.raises(
            ValueError, match=r"bounds: expected a pair .* for b"
        ):
            classifier(bounds={"a": (0, 1), "b": pair}).fit(frame, Y)


@pytest.mark.parametrize("labels", [(0, "a"), [True, "a"], [1.5, b"a"]])
def test_classes_are_of_one_kind(labels):
    with pytest.raises(
        ValueError, match=r"^classes: expected labels of one kind"
    ):
        classifier(classes=labels).fit(X, Y)


def test_rows_without_a_common_width_are_refused():
    rows = [[1.0] * (1 + place % 3) for place in range(N)]
    with pytest.raises(ValueError, match=r"^X: expected rows of one width"):
        classifier().fit(rows, Y)


@pytest.mark.parametrize(
    "solver", ["objective_perturbation", "approximate_minima"]
)
def test_no_hessian_is_made_of_many_columns(solver):
    wide = sparse.random(
        N, 100_000, density=1e-5, format="csc", random_state=0
    )
    with pytest.raises(
        ValueError, match="100001 x 100001 matrix: 5000 features"
    ):
        classifier(solver).fit(wide, Y)
    assert classifier("auto").fit(wide, Y).solver_ == "dp_gd"


def test_objective_perturbation_without_noise_needs_a_ridge():
    with pytest.raises(
        ValueError, match="cannot do this: epsilon=inf needs l2"
    ):
        classifier("objective_perturbation", epsilon=np.inf, l2=0.0).fit(X, Y)
    model = classifier("auto", epsilon=np.inf, l2=0.0).fit(X, Y)
    assert model.solver_ == "dp_gram" and np.isfinite(model.coef_).all()


def test_lengths_that_differ_name_y():
    with pytest.raises(
        ValueError, match=r"^y: expected a label for each of the 400"
    ):
        classifier().fit(X, Y[:5])


def test_a_parameter_that_there_is_not_is_named():
    with pytest.raises(
        TypeError, match=r"no parameter epsilom .did you mean epsilon"
    ):
        dperm.fit(X, Y, epsilom=1.0, classes=(0, 1), bounds=(-1, 1))
