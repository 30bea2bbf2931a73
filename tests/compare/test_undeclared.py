"""What no single record may decide of a fit, whatever stands in it."""

import functools
import io
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

import dperm
from dperm.core.privacy.ledger import EXACT_MINIMA

N = 400
X = np.random.default_rng(0).uniform(-1.0, 1.0, (N, 2))
Y = (X[:, 0] > 0).astype(int)
GIVEN = {"epsilon": 5.0, "random_state": 0}
ENDS = {"bounds": (-1, 1), "label_bounds": (-1, 1)}


def classifier(solver="dp_gd", **known):
    ends = {"classes": (0, 1), "bounds": (-1, 1)}
    return dperm.DPClassifier(solver, **{**ends, **GIVEN, **known})


def in_parts(count):
    """X, whose first entry is stored as so many pieces of 1000 and one of the rest."""
    cells = sparse.coo_array(X)
    rows = np.append(cells.row, np.zeros(count, dtype=int))
    columns = np.append(cells.col, np.zeros(count, dtype=int))
    data = np.append(cells.data, np.full(count, 1e3))
    by = np.argsort(columns, kind="stable")
    ends = np.searchsorted(columns[by], [0, 1, 2])
    return sparse.csc_array((data[by], rows[by], ends), shape=(N, 2))


def test_an_entry_in_many_parts_counts_as_their_sum():
    parts = in_parts(50_000)
    assert not parts.has_canonical_format
    whole = sparse.csc_array(parts.toarray())
    before = parts.nnz
    found, wanted = (classifier().fit(one, Y) for one in (parts, whole))
    assert np.array_equal(found._ranges[0].scale, wanted._ranges[0].scale)
    assert np.array_equal(found.coef_, wanted.coef_)
    assert parts.nnz == before  # the user's array stays as it was


def test_a_warning_does_not_follow_the_records():
    frame = pd.DataFrame(X.copy(), columns=["a", "b"])
    frame.loc[5:200] = np.nan
    frame.loc[0, "a"] = 1e308
    how = {"bounds": (-1e-3, 1e-3), "epsilon": 50.0}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier(**how).fit(frame, Y)


@pytest.mark.parametrize(
    "kind", [pd.ArrowDtype(pa.decimal128(10, 3)), "Int64", "boolean", "float[pyarrow]"]
)
def test_a_gap_in_a_column_of_any_type_raises_nothing(kind):
    whole = [Decimal(int(one)) for one in Y] if "decimal" in str(kind) else Y
    column = pd.Series(whole).astype(kind)
    frame = pd.DataFrame({"a": column, "b": X[:, 1]})
    frame.loc[0, "a"] = pd.NA
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert classifier().fit(frame, Y).coef_.any()


def test_no_cast_of_a_record_warns():
    """NumPy warns where it drops the imaginary part of a number."""
    odd = pd.Series(X[:, 0], dtype=object)
    odd.iat[0] = np.complex128(1j)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")  # an error would be a number that is missing
        plain = {"bounds": (-1, 1), "label_bounds": (-1, 1)}
        dperm.DPRegressor("dp_gd", **plain, **GIVEN).fit(X, odd.to_numpy())
    assert not heard


@pytest.mark.parametrize("y", [Y, X[:, 0]])
def test_an_error_says_nothing_of_an_entry(y):
    secret = "Jane Doe"
    told = {"classes": (0, 1)} if y is Y else {"label_bounds": (-1, 1)}
    fitted = functools.partial(dperm.fit, bounds=(-1, 1), **told)
    with pytest.raises(ValueError, match="X: expected an array of numbers") as found:
        fitted(np.array([[secret, "1"]] * N), y)
    assert secret not in str(found.value)
    with pytest.raises(ValueError, match="Reshape your data") as found:
        fitted(np.full(N, 1.2345), y)
    assert "1.2345" not in str(found.value)
    for make in (np.asarray, sparse.csr_array, lambda some: pd.DataFrame(some)):
        with pytest.raises(ValueError, match=r"X: expected (real|columns)") as found:
            fitted(make(np.full((N, 2), 1.2345 + 1j)), y)
        assert "1.2345" not in str(found.value)
    with pytest.raises(ValueError, match="y: expected an array of num") as found:
        dperm.DPRegressor(**ENDS).fit(X, np.array([secret] * N))
    assert secret not in str(found.value)


def test_a_budget_names_all_that_its_fits_take_as_public():
    exact = {"setting": {"minima": "exact"}, "delta": 1e-6}
    model = classifier("objective_perturbation", **exact)
    with dperm.Budget(10.0, 0.1) as budget:
        model.fit(X, Y)
    assert EXACT_MINIMA in budget.given
    assert budget.spent_epsilon == pytest.approx(5.0) and budget.spent_delta == 1e-6


def read_csv(cells, column):
    lines = [
        f"{column},b",
        *(f"{one},{b:.3f}" for one, b in zip(cells, X[:, 1], strict=True)),
    ]
    return pd.read_csv(io.StringIO("\n".join(lines)))


@pytest.mark.parametrize("classes", [(0, 1), ("0", "1"), (False, True)])
@pytest.mark.parametrize("cells", [[0, 1], ["False", "True"], [0.0, 1.0]])
def test_a_word_among_labels_of_a_file_is_a_record_of_no_class(classes, cells):
    every = [cells[one] for one in Y]
    given = {"bounds": (-1, 1), **GIVEN}
    fits = [
        dperm.DPClassifier("dp_gd", classes=classes, **given).fit(
            X, read_csv([first, *every[1:]], "y")["y"].to_numpy()
        )
        for first in (7 if cells[0] == 0 else every[0], "oops")
    ]
    assert [*fits[0].classes_] == [*classes]
    if cells[0] == 0:  # a number that is no class and a word are the same
        assert np.array_equal(fits[0].coef_, fits[1].coef_)
    assert (
        fits[1].coef_ == pytest.approx(fits[0].coef_, abs=0.2)
        and fits[1].coef_[0, 0] > 0.1
    )


class Odd:
    """A value that says a secret when it is read."""

    def __repr__(self):
        return "Odd()"  # the same name of a test in every worker

    def __float__(self):
        raise RuntimeError("secret")


ODD = [
    "abc",
    b"u",
    pytest.param(10**400, id="huge"),
    pd.NA,
    None,
    pd.Timestamp("2020-01-01"),
    {"a": 1},
    [1],
    1j,
    Decimal("sNaN"),
    Odd(),
]


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize("kind", ["list", "array of objects"])
def test_an_entry_of_any_kind_is_a_record_of_zeros(odd, kind):
    Z = X.astype(object)
    Z[0, 0] = odd
    wanted = X.copy()
    wanted[0, 0] = np.nan
    rows = Z.tolist() if kind == "list" else Z
    models = [classifier(bounds=(-1, 1)).fit(one, Y) for one in (rows, wanted)]
    assert np.array_equal(models[0].coef_, models[1].coef_)


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize("make", ["list", "array of objects", "series"])
def test_a_label_of_any_kind_is_a_record_of_zeros(odd, make):
    """NumPy makes texts of all labels of a list with one, none of a declared class."""
    for labels, gap, model in (
        (Y, 2, classifier()),
        (X[:, 0], np.nan, dperm.DPRegressor("dp_gd", **ENDS, **GIVEN)),
    ):
        y = np.empty(N, dtype=object)
        y[0], y[1:] = odd, labels[1:]
        given = {"list": y.tolist(), "series": pd.Series(y, dtype=object)}.get(make, y)
        found = model.fit(X, given).coef_
        assert np.array_equal(found, model.fit(X, np.append(gap, labels[1:])).coef_)


def test_an_error_says_nothing_of_a_complex_label():
    y = pd.Series([41000.0, 52000.0] + [1.0] * (N - 3) + [1 + 2j])
    with pytest.raises(ValueError, match="y: expected real numbers") as found:
        dperm.DPRegressor("dp_gd", bounds=(-1, 1), label_bounds=(0, 9)).fit(X, y)
    assert "41000" not in str(found.value) and found.value.__context__ is None


@pytest.mark.parametrize("dtype", ["U9", "S9", "M8[s]", "c16"])
def test_an_array_of_no_numbers_is_refused_by_its_type(dtype):
    Z = np.full((N, 2), "7" if dtype[0] in "US" else 0).astype(dtype)
    with pytest.raises(ValueError, match=r"X: expected .*numbers") as found:
        classifier(bounds=(-1, 1)).fit(Z, Y)
    assert "7" not in str(found.value)


@pytest.mark.parametrize(
    "classes", [(0, 2**53), (0, 2**53 + 1), (-(2**60), 1), ("0", str(2**53 + 1))]
)
def test_classes_that_doubles_may_merge_are_refused(classes):
    """One missing label turns an array of whole numbers into one of doubles."""
    with pytest.raises(ValueError, match=r"classes: .* below 2"):
        dperm.DPClassifier("dp_gd", classes=classes, bounds=(-1, 1)).fit(X, Y)
