"""The door through which records come: what comes in, what is refused, what leaks."""

from collections import deque

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

import dperm
from dperm.estimators import containers, doors
from dperm.estimators.containers import INTEGERS, SIDES, N
from dperm.problems import door

A, B, C = containers.FIRST, containers.SECOND, containers.THIRD
NAMES = containers.WORD_LABELS


def coefficients(X):
    return containers.coefficients(X, SIDES, (0, 1))


# --- every container, type of column and type of label --------------------------------

COMBINATIONS = [*containers.combinations()]


@pytest.fixture(scope="module")
def wanted():
    return containers.of_doubles()


def test_the_table_is_large():
    shape = [
        len({getattr(combination, axis) for combination in COMBINATIONS})
        for axis in vars(COMBINATIONS[0])
    ]
    assert shape[0] >= 12 and shape[1] >= 14 and shape[2] >= 6


@pytest.mark.parametrize("container", containers.CONTAINERS)
@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_every_combination_is_its_numbers_or_refused_by_name(
    container, wanted
):
    tried = [
        combination
        for combination in COMBINATIONS
        if combination.container == container
    ]
    faults = {
        combination.name: containers.fault_of(combination, wanted)
        for combination in tried
    }
    assert (
        tried
        and {name: fault for name, fault in faults.items() if fault} == {}
    )


@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_the_table_sees_a_word_that_becomes_a_number(monkeypatch, wanted):
    """And labels whose kind is not compared with that of the classes."""
    combination = containers.Combination("pandas", "text", "whole numbers")
    monkeypatch.setitem(containers.COLUMN_CASES, "text", (B, None))
    assert (
        containers.fault_of(combination, wanted)
        == "what is no number is taken"
    )
    monkeypatch.setitem(
        containers.LABEL_CASES, "doubles", (pd.Series(SIDES), (0, 1), False)
    )
    combination = containers.Combination("pandas", "float64", "doubles")
    assert "another kind" in containers.fault_of(combination, wanted)


# --- other formats --------------------------------------------------------------------

SPARSE = ["csr_array", "csc_array", "coo_array", "lil_array", "dok_array", "dia_array",
          "bsr_array", "csr_matrix", "dok_matrix", "lil_matrix"]  # fmt: skip


@pytest.mark.parametrize("kind", SPARSE)
@pytest.mark.parametrize("dtype", [np.float32, np.int8, bool, np.longdouble])
def test_a_sparse_array_of_any_format_is_its_numbers(kind, dtype):
    grid = np.column_stack([A > 0.3, INTEGERS > 4, C > 0.2])
    wanted = coefficients(sparse.csc_array(grid.astype(float)))
    assert np.array_equal(
        coefficients(getattr(sparse, kind)(grid.astype(dtype))), wanted
    )
    with pytest.raises(ValueError, match=r"^X: expected real numbers"):
        coefficients(getattr(sparse, kind)(grid.astype(complex)))


@pytest.mark.parametrize("make", [
    lambda y: y.tolist(), lambda y: [[value] for value in y.tolist()],
    lambda y: pd.Series(y), lambda y: pd.Series(map(str, y.tolist())),
    lambda y: pd.Series(y, dtype="float[pyarrow]"), pa.array,
    lambda y: pa.chunked_array([y[:5], y[5:]]), pd.Index, lambda y: pd.array(y),
    lambda y: y.astype(object), lambda y: memoryview(y), lambda y: deque(y.tolist()),
])  # fmt: skip
def test_labels_that_are_numbers_are_these_numbers(make):
    known = {"label_bounds": (-1, 1), "bounds": (-1, 1), "random_state": 0}
    X = np.column_stack([A, C])
    fits = [dperm.fit(X, y, "dp_gd", **known) for y in (B, make(B))]
    assert np.array_equal(fits[0].coef_, fits[1].coef_)


@pytest.mark.parametrize(("y", "kind"), [
    (pd.Series(NAMES), "object"), (pd.Series(NAMES, dtype="string"), "string"),
    (pd.Categorical(NAMES), "category"), (NAMES, "<U3"), (NAMES.tolist(), "list"),
    (pa.array(NAMES.tolist()), "string"),
    (pd.Series(pd.date_range("2020", periods=N)), "datetime64"), ({1.0, 2.0}, "set"),
    (pd.Series([pd.NaT] * N, dtype="period[D]"), "period"),
    (pd.Series([None] * N, dtype="interval[float]"), "interval"),
    (iter(B), "iterator"), (B.astype(complex), "complex"),
    (sparse.csr_array(B[:, None]), "csr"),
    (b"abc", "bytes"), (None, "NoneType"), ({"y": B}, "dict"),
])  # fmt: skip
def test_labels_that_are_no_numbers_are_refused_by_their_type(y, kind):
    known = {"label_bounds": (-1, 1), "bounds": (-1, 1)}
    with pytest.raises(ValueError, match=f"^y: .*{kind}") as found:
        dperm.fit(np.column_stack([A, C]), y, "dp_gd", **known)
    assert found.value.__context__ is None


ATTACKS = [*doors.attacks()]


def test_no_record_decides_what_others_become_nor_what_is_said():
    places = {attack.place for attack in ATTACKS}
    assert len(ATTACKS) > 300 and {0, doors.N - 1} < places
    assert doors.faults(ATTACKS) == []
    outcomes = {
        doors.seen(one.model, *one.neighbour, one.place).outcome
        for one in ATTACKS[::9]
    }
    assert "fitted" in outcomes and not any(
        doors.TOLD in one for one in outcomes
    )


def erased(entries):
    """What was read before: a word makes numbers of a file text, and then nothing."""
    read = [door.number(entry) for entry in entries]
    if any(isinstance(entry, str) for entry in entries):
        return [np.nan] * len(read), 0
    return [np.nan if size is None else size for size in read], 0


def as_numpy_has_it(name, listed):
    grid = np.array(listed, dtype=object)
    if grid.ndim != 2:
        raise ValueError(
            f"{name}: expected the shape (n, p), found {grid.shape}"
        )
    return door.Table(grid.astype(float), None, ())


@pytest.mark.parametrize(("name", "slip", "title"), [
    ("_read", lambda entries: erased([*entries]), "y of DPRegressor"),
    ("_of_rows", as_numpy_has_it, "X, list, row"),
    ("_is_gap", lambda entry: entry.no_such_thing, "X, list of lists"),
    ("number", float, "X, list of lists"),
])  # fmt: skip
def test_the_attacks_see_what_is_wrong(name, slip, title, monkeypatch):
    tried = [one for one in ATTACKS if one.name.startswith(title)]
    monkeypatch.setattr(door, name, slip)
    assert len(doors.faults(tried)) > 0
