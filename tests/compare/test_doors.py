"""The door through which records come: what comes in, what is refused, what leaks."""

from collections import deque
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

import dperm
from dperm.compare import doors
from dperm.core.erm import door

try:
    import polars
except ImportError:  # it is not in the lock file
    polars = None

N = 40
rng = np.random.default_rng(0)
A, B, C = (rng.integers(-8, 9, N) / 8 for _ in range(3))
WHOLE = (8 * B).astype(int)
SIDES = (A > 0).astype(int)
NAMES = np.array(["no", "yes"])[SIDES]


def objects(values):
    return pd.Series([*values], dtype=object)


# A column b by its type: its entries, and the numbers that they are, if they are any.
COLUMNS = {
    "float64": (B, B),
    "float32": (B.astype(np.float32), B),
    "int8": (WHOLE.astype(np.int8), WHOLE),
    "int64": (WHOLE, WHOLE),
    "uint64": ((WHOLE + 8).astype(np.uint64), WHOLE + 8),
    "bool": (B > 0, B > 0),
    "Int64": (pd.array(WHOLE, dtype="Int64"), WHOLE),
    "decimals": (objects(map(Decimal, WHOLE.tolist())), None),
    "text": (objects(NAMES), None),
    "string": (pd.array(NAMES, dtype="string"), None),
    "numbers as text": (objects(map(str, WHOLE.tolist())), None),
    "category": (pd.Categorical(NAMES), None),
    "date": (pd.date_range("2020-01-01", periods=N), None),
    "timedelta": (pd.to_timedelta(WHOLE, unit="s"), None),
    "lists": (objects([value] for value in WHOLE.tolist()), None),
}
READ = {"decimals": WHOLE, "numbers as text": WHOLE}  # where a list has no types


class Exchanged:
    """A frame of a library that only has the dataframe protocol."""

    def __init__(self, frame):
        self._frame = frame

    def __dataframe__(self, *of, **more):
        return self._frame.__dataframe__(*of, **more)


def rows(frame):
    return [list(row) for row in zip(*(frame[c].tolist() for c in frame), strict=True)]


def columns(frame):
    return {name: frame[name].tolist() for name in frame}


def polars_frame(frame):
    return polars.DataFrame(
        {
            name: polars.Series(name, frame[name].tolist(), strict=False)
            for name in frame
        }
    )


def masked(frame):
    return np.ma.masked_array(frame.to_numpy())


def read_only(frame):
    grid = np.asfortranarray(frame.to_numpy())
    grid.setflags(write=False)
    return grid


CONTAINERS = {
    "array": lambda frame: frame.to_numpy(),
    "read-only array by columns": read_only,
    "masked array": masked,
    "structured array": lambda frame: frame.to_records(index=False),
    "list of lists": rows,
    "list of tuples": lambda frame: [*map(tuple, rows(frame))],
    "deque": lambda frame: deque(rows(frame)),
    "pandas": lambda frame: frame,
    "pandas with types of its own": lambda frame: frame.convert_dtypes(),
    "pandas over Arrow": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "polars": polars_frame,
    "pyarrow table": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "pyarrow batch": lambda frame: pa.RecordBatch.from_pandas(frame),
    "mapping of lists": columns,
    "mapping of series": lambda frame: {name: frame[name] for name in frame},
    "dataframe protocol": Exchanged,
}
UNTYPED = ("list of lists", "list of tuples", "deque", "mapping of lists")
# Labels, their classes, and whether they are of one kind.
LABELS = {
    "whole numbers": (pd.Series(SIDES), (0, 1), True),
    "doubles": (pd.Series(SIDES.astype(float)), (0, 1), True),
    "truth values": (pd.Series(SIDES > 0), (False, True), True),
    "words": (objects(NAMES), ("no", "yes"), True),
    "categories": (pd.Series(pd.Categorical(NAMES)), ("no", "yes"), True),
    "codes for words": (pd.Series(SIDES), ("no", "yes"), False),
    "words for codes": (pd.Series(NAMES, dtype="string"), (0, 1), False),
}
SERIES = {
    "array": lambda y: y.to_numpy(),
    "list of lists": lambda y: y.tolist(),
    "list of tuples": lambda y: [(value,) for value in y.tolist()],
    "deque": lambda y: deque(y.tolist()),
    "polars": lambda y: polars.Series(y.astype(object).tolist()),
    "pyarrow table": lambda y: pa.array(y.astype(object).tolist()),
    "pandas over Arrow": lambda y: y.convert_dtypes(dtype_backend="pyarrow"),
    "pandas with types of its own": lambda y: y.convert_dtypes(),
}


if polars is None:
    del CONTAINERS["polars"], SERIES["polars"]


def frame_of(column):
    return pd.DataFrame({"a": A, "b": column, "c": C})


def coefficients(X, y=SIDES, classes=(0, 1)):
    known = {"classes": classes, "bounds": (-1, 1), "random_state": 0, "epsilon": 5.0}
    return dperm.fit(X, y, "dp_gd", **known).coef_


@pytest.fixture(scope="module")
def wanted():
    """The coefficients of each column's numbers as doubles."""
    numeric = {name: known for name, (_, known) in COLUMNS.items()} | READ
    return {
        name: coefficients(np.column_stack([A, known, C]).astype(float))
        for name, known in numeric.items()
        if known is not None
    }


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_every_column_is_its_numbers_or_refused_by_name(container, column, wanted):
    """With every kind of label, in the container that goes with it."""
    entries, numeric = COLUMNS[column]
    try:
        X = CONTAINERS[container](frame_of(entries))
    except (TypeError, ValueError, pa.ArrowInvalid):
        pytest.skip("no such container")
    of_labels = SERIES.get(container, lambda y: y)
    for labels, classes, is_right in LABELS.values():
        y = of_labels(labels)
        try:
            fitted = coefficients(X, y, classes)
        except ValueError as error:
            said = str(error)
            if said.startswith("X: "):
                grids = ("array", "read-only array by columns", "masked array")
                is_object = container in grids and X.dtype == object
                assert numeric is None or is_object
                name = "object" if container in grids else "b ("
                name = "column 2" if container in UNTYPED[:3] else name
                assert name in said and "OneHotEncoder(categories" in said
                continue
            assert not is_right and said.startswith("y: ")
            assert all(repr(name) in said for name in classes)
            assert "Declare classes as the labels are" in said
            continue
        assert is_right and column in wanted
        assert np.array_equal(fitted, wanted[column])


SPARSE = ["csr_array", "csc_array", "coo_array", "lil_array", "dok_array", "dia_array",
          "bsr_array", "csr_matrix", "dok_matrix", "lil_matrix"]  # fmt: skip


@pytest.mark.parametrize("kind", SPARSE)
@pytest.mark.parametrize("dtype", [np.float32, np.int8, bool, np.longdouble])
def test_a_sparse_array_of_any_format_is_its_numbers(kind, dtype):
    grid = np.column_stack([A > 0.3, WHOLE > 4, C > 0.2])
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
    (iter(B), "iterator"), (B.astype(complex), "complex"), (sparse.csr_array(B), "csr"),
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
        doors.seen(one.model, *one.neighbour, one.place).outcome for one in ATTACKS[::9]
    }
    assert "fitted" in outcomes and not any(doors.TOLD in one for one in outcomes)


def erased(entries):
    """What was read before: a word makes numbers of a file text, and then nothing."""
    read = [door.number(entry) for entry in entries]
    if any(isinstance(entry, str) for entry in entries):
        return [np.nan] * len(read), 0
    return [np.nan if size is None else size for size in read], 0


def as_numpy_has_it(name, listed):
    grid = np.array(listed, dtype=object)
    if grid.ndim != 2:
        raise ValueError(f"{name}: expected the shape (n, p), found {grid.shape}")
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
