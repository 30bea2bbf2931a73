"""What no single record may decide of a fit, whatever stands in it."""

import io
import re
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse

import dperm
from dperm.compare import estimators, frames
from dperm.compare.metrics import TWO
from dperm.core.privacy.ledger import EXACT_MINIMA
from dperm.solvers import hidden_number

N = 400
X = np.random.default_rng(0).uniform(-1.0, 1.0, (N, 2))
Y = (X[:, 0] > 0).astype(int)
GIVEN = {"epsilon": 5.0, "random_state": 0}


def classifier(solver="dp_gd", **known):
    return dperm.DPClassifier(solver, classes=(0, 1), **{**GIVEN, **known})


def in_parts(count):
    """X, whose first entry is stored as so many pieces of 1000 and one of the rest."""
    cells = sparse.coo_array(X)
    rows = np.append(cells.row, np.zeros(count, dtype=int))
    columns = np.append(cells.col, np.zeros(count, dtype=int))
    data = np.append(cells.data, np.full(count, 1e3))
    by = np.argsort(columns, kind="stable")
    ends = np.searchsorted(columns[by], [0, 1, 2])
    return sparse.csc_array((data[by], rows[by], ends), shape=(N, 2))


@pytest.mark.parametrize("known", [{}, {"bounds": (-1, 1)}, {"feature_scale": 1.0}])
def test_an_entry_in_many_parts_counts_as_their_sum(known):
    parts = in_parts(50_000)
    assert not parts.has_canonical_format
    whole = sparse.csc_array(parts.toarray())
    before = parts.nnz
    found, wanted = (classifier(**known).fit(one, Y) for one in (parts, whole))
    assert np.array_equal(found._over, wanted._over)
    assert np.array_equal(found.coef_, wanted.coef_)
    assert parts.nnz == before  # the user's array stays as it was


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_a_text_among_labels_in_a_list_is_a_record_of_no_class(neighbours):
    """NumPy makes texts of all labels then, so that none is of a declared class."""
    how = {"feature_scale": 1.0, "delta": 1e-6, "neighbours": neighbours}
    odd = ["a", *Y[1:].tolist()]
    found = classifier(**how).fit(X, odd)
    wanted = classifier(**how).fit(X, np.append(2, Y[1:]))
    assert np.array_equal(found.coef_, wanted.coef_)


@pytest.mark.parametrize(
    "odd", [Decimal("sNaN"), "x", None, pytest.param(10**5000, id="huge"), [1], 1j]
)
def test_a_label_of_any_kind_raises_nothing(odd):
    y = np.empty(N, dtype=object)
    y[:] = Y
    y[0] = odd
    found = classifier(feature_scale=1.0).fit(X, y)
    wanted = classifier(feature_scale=1.0).fit(X, np.append(2, Y[1:]))
    assert np.array_equal(found.coef_, wanted.coef_)
    y[1:] = X[1:, 0]
    model = dperm.DPRegressor("dp_gd", feature_scale=1.0, label_scale=1.0, **GIVEN)
    wanted = model.fit(X, np.append(np.nan, X[1:, 0])).coef_
    assert np.array_equal(model.fit(X, y).coef_, wanted)


@pytest.mark.parametrize(
    "odd", [Decimal("sNaN"), pytest.param(10**5000, id="huge"), (1, 2), b"u", np.nan]
)
def test_a_value_of_any_kind_in_a_text_column_raises_nothing(odd):
    words = pd.Series(["u", "v"] * (N // 2), dtype=object)
    words.iat[0] = odd
    model = classifier().fit(pd.DataFrame({"a": X[:, 0], "t": words}), Y)
    assert [*model.names_] == ["a", "t=u", "t=v", "t=other"]


def test_a_warning_does_not_follow_the_records():
    frame = pd.DataFrame(X.copy(), columns=["a", "b"])
    frame.loc[5:200] = np.nan
    frame.loc[0, "a"] = 1e308
    how = {"feature_scale": 1e-3, "missing_columns": "private", "epsilon": 50.0}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = classifier(**how).fit(frame, Y)
    assert "a=missing" in model.names_


def test_types_of_columns_are_named_unless_all_are_declared():
    frame = pd.DataFrame({"a": X[:, 0], "t": ["u", "v"] * (N // 2)})
    ends, levels = {"a": (-1, 1)}, {"t": ["u", "v"]}
    found = classifier().fit(frame, Y)
    assert (
        found.epsilon_.given == ("n", frames.TYPES) and not found.epsilon_.unconditional
    )
    assert classifier().fit(frame[["a"]], Y).epsilon_.given == ("n", frames.TYPES)
    named = classifier(bounds=ends, categories=levels).fit(frame, Y)
    assert named.epsilon_.given == ("n",)
    assert classifier(bounds=ends).fit(frame[["a"]], Y).epsilon_.given == ("n",)


def test_bounds_by_name_declare_a_column_of_numbers():
    """A word in it, of which pandas makes a column of objects, is one gap."""
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    bounds, odd = {"a": (-1, 1), "b": (-1, 1)}, frame.astype(object)
    frame.loc[0, "b"], odd.loc[0, "b"] = np.nan, "n/a"
    models = [classifier(bounds=bounds).fit(one, Y) for one in (frame, odd)]
    assert np.array_equal(models[0].coef_, models[1].coef_)
    assert [*models[0].names_] == [*models[1].names_] == ["a", "b"]


@pytest.mark.parametrize("odd", [2.5, True, np.nan, 2**60, "w", np.float32(0.1)])
def test_a_number_among_categories_does_not_rename_the_others(odd):
    """Pandas keeps categories of numbers as one type: 1 becomes 1.0, or True."""
    grades = [odd, *[1, 2] * N][:N]
    frame = pd.DataFrame({"a": X[:, 0], "t": pd.Categorical(grades)})
    model = classifier(epsilon=50.0).fit(frame, Y)
    assert [*model.names_] == ["a", "t=1", "t=2", "t=other"]
    levels = model.decision_function(frame.assign(a=0.0))
    assert len({*levels[1:].round(9)}) == 2


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("odd", ["\ud800", (1,), "w"])
def test_a_category_of_any_kind_raises_nothing(odd, neighbours):
    values = pd.Series(["u", "v"] * (N // 2), dtype=object)
    values.iat[0] = odd
    frame = pd.DataFrame({"a": X[:, 0], "t": values.astype("category")})
    model = classifier(epsilon=50.0, delta=1e-6, neighbours=neighbours).fit(frame, Y)
    assert [*model.names_] == ["a", "t=u", "t=v", "t=other"]


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("gaps", [None, ["a"], "private"])
@pytest.mark.parametrize(
    "kind", [pd.ArrowDtype(pa.decimal128(10, 3)), "Int64", "boolean", "float[pyarrow]"]
)
def test_a_gap_in_a_column_of_any_type_raises_nothing(kind, gaps, neighbours):
    whole = [Decimal(int(one)) for one in Y] if "decimal" in str(kind) else Y
    column = pd.Series(whole).astype(kind)
    frame = pd.DataFrame({"a": column, "b": X[:, 1]})
    frame.loc[0, "a"] = pd.NA
    how = {"delta": 1e-6, "neighbours": neighbours, "missing_columns": gaps}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "the noise hides")  # is of what was released
        assert classifier(**how).fit(frame, Y).coef_.any()


def test_no_cast_of_a_record_warns():
    """NumPy warns where it drops the imaginary part of a number."""
    odd = pd.Series(X[:, 0], dtype=object)
    odd.iat[0] = np.complex128(1j)
    frame = pd.DataFrame({"a": odd, "b": X[:, 1]})
    ends = {"bounds": {"a": (-1, 1), "b": (-1, 1)}}
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")  # an error would be a number that is missing
        classifier(**ends).fit(frame, Y)
        plain = {"bounds": (-1, 1), "label_bounds": (-1, 1)}
        dperm.DPRegressor("dp_gd", **plain, **GIVEN).fit(X, odd.to_numpy())
    assert not heard


@pytest.mark.parametrize(
    "odd", [Decimal("sNaN"), pytest.param(10**5000, id="huge"), 1j, "x", [1]]
)
def test_a_label_of_any_kind_raises_nothing_in_blocks(odd, monkeypatch):
    y = X[:, 0].astype(object)
    y[0] = odd
    how = {"feature_scale": 1.0, "label_scale": 1.0, **GIVEN}
    wanted = dperm.DPRegressor("dp_gd", **how).fit(X, y)
    monkeypatch.setattr(estimators, "LARGE", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = dperm.DPRegressor("dp_gd", **how).fit(X, y)
    assert found.coef_ == pytest.approx(wanted.coef_, rel=1e-9)


def test_a_missing_label_of_a_file_leaves_the_others_as_they_are(tmp_path):
    """Whole numbers with a gap among them come as doubles, which merge large ones."""
    first, second = 2**53, 2**53 + 1
    labels = [first, second] * (N // 2)
    known = {"classes": (first, second), "feature_scale": 1.0, **GIVEN}
    found = []
    for odd in (None, 7):
        table = pa.table({"a": X[:, 0], "y": pa.array([odd, *labels[1:]], pa.int64())})
        parquet.write_table(table, tmp_path / "one.parquet")
        model = dperm.DPClassifier("dp_gd", **known).fit(tmp_path / "one.parquet", "y")
        found.append(model.coef_)
    assert np.array_equal(*found)


@pytest.mark.parametrize("y", [Y, X[:, 0]])
def test_an_error_says_nothing_of_an_entry(y):
    secret = "Jane Doe"
    with pytest.raises(ValueError, match="X: expected numbers, found text") as found:
        dperm.fit(np.array([[secret, "1"]] * N), y)
    assert secret not in str(found.value) and found.value.__suppress_context__
    with pytest.raises(ValueError, match="Reshape your data") as found:
        dperm.fit(np.full(N, 1.2345), y)
    assert "1.2345" not in str(found.value)
    for make in (np.asarray, sparse.csr_array, lambda some: pd.DataFrame(some)):
        with pytest.raises(ValueError, match=r"X: (expected real|neither)") as found:
            dperm.fit(make(np.full((N, 2), 1.2345 + 1j)), y)
        assert "1.2345" not in str(found.value)
    with pytest.raises(ValueError, match="y: expected numbers") as found:
        dperm.DPRegressor().fit(X, np.array([secret] * N))
    assert secret not in str(found.value)


def test_a_budget_names_all_that_its_fits_take_as_public():
    ends = {"bounds": (-1, 1)}
    with dperm.Budget(10.0, 0.1) as budget:
        dperm.fit(X, Y, **ends)
    assert TWO in budget.given
    exact = {"setting": {"minima": "exact"}, "delta": 1e-6, **ends}
    model = classifier("objective_perturbation", neighbours="add_remove", **exact)
    with dperm.Budget(10.0, 0.1) as budget:
        model.fit(X, Y)
    assert EXACT_MINIMA in budget.given
    assert budget.spent_epsilon == 5.0 and budget.spent_delta == 1e-6


@pytest.mark.filterwarnings("ignore:X. 3 records")
def test_records_come_in_an_order_that_is_drawn(monkeypatch):
    """One record more in front would shift all batches of a method that cuts them."""
    monkeypatch.setattr(hidden_number, "noisy", lambda n, *_: n)
    rows, seen = np.array([[0.1], [0.2], [0.3]]), {}
    model = dperm.DPRegressor(
        "dp_gd", bounds=(-1, 1), label_bounds=(-1, 1), delta=1e-6, epsilon=1.0,
        fit_intercept=False, neighbours="add_remove",
    )  # fmt: skip
    real = type(model)._problem

    def kept(self, *given):
        problem = real(self, *given)
        seen.setdefault(tuple(np.ravel(problem.A)), 0)
        seen[tuple(np.ravel(problem.A))] += 1
        assert np.array_equal(-problem.offset, np.ravel(problem.A))  # y goes along
        return problem

    monkeypatch.setattr(type(model), "_problem", kept)
    for seed in range(120):
        monkeypatch.setattr(estimators, "noise_seed", lambda _, seed=seed: seed)
        model.fit(rows, rows[:, 0])
    counts = np.array([*seen.values()])
    assert len(seen) == 6 and counts.max() <= 2.5 * counts.min()
    assert model._order is None


def read_csv(cells, column):
    lines = [
        f"{column},b",
        *(f"{one},{b:.3f}" for one, b in zip(cells, X[:, 1], strict=True)),
    ]
    return pd.read_csv(io.StringIO("\n".join(lines)))


@pytest.mark.parametrize(
    ("cells", "known"),
    [
        ([1, 2, 3], {"categories": {"a": [1, 2]}}),
        ([1, 2, 3], {"categories": {"a": ["1", "2"]}}),
        ([0.5, 2.25, 3.0], {"categories": {"a": [0.5, 2.25]}}),
        (["True", "False"], {"categories": {"a": [True, False]}}),
        (["True", "False"], {}),
        ([7, 8, 9], {}),
    ],
)
def test_a_word_in_a_file_changes_its_own_record_alone(cells, known):
    """pandas reads all cells of a column as text because of it."""
    every = np.resize(cells, N).tolist()
    ends = {name: (0, 9) for name in "ab" if name not in known.get("categories", {})}
    found = []
    for first in (every[0], "oops"):
        frame = read_csv([first, *every[1:]], "a")
        model = classifier(bounds=ends, **known).fit(frame, Y)
        assert model.epsilon_.given == ("n",)
        known_types = frames.as_numbers(frame, ends)
        by = frames.layout(known_types, known.get("categories"), None, ends)
        found.append(frames.expanded(known_types, by))
    assert np.array_equal(found[0][1:], found[1][1:], equal_nan=True)
    assert len(np.unique(found[0][:, 0])) > 1  # the cells are told apart


@pytest.mark.parametrize("classes", [(0, 1), ("0", "1"), (False, True)])
@pytest.mark.parametrize("cells", [[0, 1], ["False", "True"], [0.0, 1.0]])
def test_a_word_among_labels_of_a_file_is_a_record_of_no_class(classes, cells):
    every = [cells[one] for one in Y]
    given = {"feature_scale": 1.0, **GIVEN}
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


def test_labels_of_text_are_refused_by_their_type_in_blocks_too(monkeypatch):
    how = {"bounds": (-1, 1), "label_bounds": (-1, 1), **GIVEN}
    monkeypatch.setattr(estimators, "LARGE", 10)
    for first in ("0.5", "HIV+"):
        y = np.array([first, *map(str, X[1:, 0])])
        with pytest.raises(ValueError, match="found an array of text") as found:
            dperm.DPRegressor("dp_gd", **how).fit(X, y)
        assert first not in str(found.value)


def test_errors_under_hidden_n_have_no_number_of_records():
    how = {"feature_scale": 1.0, "delta": 1e-6, "neighbours": "add_remove"}
    for y in (np.zeros((N, 2)), Y[:-1]):
        with pytest.raises(ValueError, match="one label") as found:
            classifier(**how).fit(X, y)
        assert not re.search(r"\d{2}", str(found.value))


@pytest.mark.parametrize(
    "odd", [pd.NA, pytest.param(10**400, id="huge"), None, Decimal("sNaN")]
)
def test_an_entry_that_no_double_holds_is_missing(odd):
    Z = X.astype(object)
    Z[0, 0] = odd
    found = classifier(feature_scale=1.0).fit(Z, Y)
    Z[0, 0] = np.nan
    wanted = classifier(feature_scale=1.0).fit(Z, Y)
    assert np.array_equal(found.coef_, wanted.coef_)
