"""Every container of records with every type of column and type of label, as a table.

Each combination of them is a fit. It has the coefficients of the same numbers as
doubles, or it is refused by a line that names the column, or the labels and classes,
and the cure. The table is a part of the audit of estimators (:func:`faults`) and of the
tests.
"""

from __future__ import annotations

import importlib.util
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dperm.estimators.estimators import DPClassifier

N = 40
_rng = np.random.default_rng(0)
FIRST, SECOND, THIRD = (_rng.integers(-8, 9, N) / 8 for _ in range(3))
INTEGERS = (8 * SECOND).astype(int)
SIDES = (FIRST > 0).astype(int)
WORD_LABELS = np.array(["no", "yes"])[SIDES]


def _objects(entries: Any) -> pd.Series:
    return pd.Series([*entries], dtype=object)


# A column b by its type: its entries, and the numbers that they are, if they are any.
COLUMN_CASES: dict[str, tuple[Any, np.ndarray | None]] = {
    "float64": (SECOND, SECOND),
    "float32": (SECOND.astype(np.float32), SECOND),
    "int8": (INTEGERS.astype(np.int8), INTEGERS),
    "int64": (INTEGERS, INTEGERS),
    "uint64": ((INTEGERS + 8).astype(np.uint64), INTEGERS + 8),
    "bool": (SECOND > 0, SECOND > 0),
    "Int64": (pd.array(INTEGERS, dtype="Int64"), INTEGERS),
    "decimals": (_objects(map(Decimal, INTEGERS.tolist())), None),
    "text": (_objects(WORD_LABELS), None),
    "string": (pd.array(WORD_LABELS, dtype="string"), None),
    "numbers as text": (_objects(map(str, INTEGERS.tolist())), None),
    "category": (pd.Categorical(WORD_LABELS), None),
    "date": (pd.date_range("2020-01-01", periods=N), None),
    "timedelta": (pd.to_timedelta(INTEGERS, unit="s"), None),
    "lists": (_objects([number] for number in INTEGERS.tolist()), None),
}
# Where a list has no types.
READ_AS_NUMBERS = {"decimals": INTEGERS, "numbers as text": INTEGERS}


class Exchanged:
    """A frame of a library that only has the dataframe protocol."""

    def __init__(self, frame: pd.DataFrame):
        self._frame = frame

    def __dataframe__(self, *of: Any, **more: Any) -> Any:
        """The interchange object of the frame."""
        return self._frame.__dataframe__(*of, **more)


def _rows(frame: pd.DataFrame) -> list[list[Any]]:
    entries = (frame[name].tolist() for name in frame)
    return [list(row) for row in zip(*entries, strict=True)]


def _polars(frame: pd.DataFrame) -> Any:
    import polars  # which starts threads

    columns = {name: frame[name].tolist() for name in frame}
    series = {
        name: polars.Series(name, entries, strict=False)
        for name, entries in columns.items()
    }
    return polars.DataFrame(series)


def _polars_series(y: pd.Series) -> Any:
    import polars

    return polars.Series(y.astype(object).tolist())


def _read_only(frame: pd.DataFrame) -> np.ndarray:
    grid = np.asfortranarray(frame.to_numpy())
    grid.setflags(write=False)
    return grid


Container = Callable[[pd.DataFrame], Any]
CONTAINERS: dict[str, Container] = {
    "array": lambda frame: frame.to_numpy(),
    "read-only array by columns": _read_only,
    "masked array": lambda frame: np.ma.masked_array(frame.to_numpy()),
    "structured array": lambda frame: frame.to_records(index=False),
    "list of lists": _rows,
    "list of tuples": lambda frame: [*map(tuple, _rows(frame))],
    "deque": lambda frame: deque(_rows(frame)),
    "pandas": lambda frame: frame,
    "pandas with types of its own": lambda frame: frame.convert_dtypes(),
    "pandas over Arrow": lambda frame: frame.convert_dtypes(
        dtype_backend="pyarrow"
    ),
    "polars": _polars,
    "pyarrow table": lambda frame: pa.Table.from_pandas(
        frame, preserve_index=False
    ),
    "pyarrow batch": lambda frame: pa.RecordBatch.from_pandas(frame),
    "mapping of lists": lambda frame: {
        name: frame[name].tolist() for name in frame
    },
    "mapping of series": lambda frame: {name: frame[name] for name in frame},
    "dataframe protocol": Exchanged,
}
GRIDS = ("array", "read-only array by columns", "masked array")
UNNAMED = ("list of lists", "list of tuples", "deque")
# Labels, their classes, and whether they are of one kind.
LABEL_CASES: dict[str, tuple[pd.Series, tuple[Any, Any], bool]] = {
    "whole numbers": (pd.Series(SIDES), (0, 1), True),
    "doubles": (pd.Series(SIDES.astype(float)), (0, 1), True),
    "truth values": (pd.Series(SIDES > 0), (False, True), True),
    "words": (_objects(WORD_LABELS), ("no", "yes"), True),
    "categories": (
        pd.Series(pd.Categorical(WORD_LABELS)),
        ("no", "yes"),
        True,
    ),
    "codes for words": (pd.Series(SIDES), ("no", "yes"), False),
    "words for codes": (pd.Series(WORD_LABELS, dtype="string"), (0, 1), False),
}
# of labels, beside a container
SERIES: dict[str, Callable[[pd.Series], Any]] = {
    "array": lambda y: y.to_numpy(),
    "list of lists": lambda y: y.tolist(),
    "list of tuples": lambda y: [(label,) for label in y.tolist()],
    "deque": lambda y: deque(y.tolist()),
    "polars": _polars_series,
    "pyarrow table": lambda y: pa.array(y.astype(object).tolist()),
    "pandas over Arrow": lambda y: y.convert_dtypes(dtype_backend="pyarrow"),
    "pandas with types of its own": lambda y: y.convert_dtypes(),
}
if importlib.util.find_spec("polars") is None:  # it is no dependency
    del CONTAINERS["polars"], SERIES["polars"]


@dataclass(frozen=True)
class Combination:
    """A container with a type of column and a type of label."""

    container: str
    column: str
    label: str

    @property
    def name(self) -> str:
        """The combination in words."""
        return f"{self.container}, {self.column}, {self.label}"

    def records(self) -> Any:
        """X in the container. Raises what the container's library does of the type."""
        entries, _ = COLUMN_CASES[self.column]
        frame = pd.DataFrame({"a": FIRST, "b": entries, "c": THIRD})
        return CONTAINERS[self.container](frame)

    def labels(self) -> Any:
        """The labels in what goes with the container."""
        series, _, _ = LABEL_CASES[self.label]
        return SERIES.get(self.container, lambda y: y)(series)


def combinations() -> Iterator[Combination]:
    """All combinations of which there is such a container."""
    for container in CONTAINERS:
        for column in COLUMN_CASES:
            try:
                Combination(container, column, "whole numbers").records()
            except (TypeError, ValueError):  # ArrowInvalid is one
                continue
            for label in LABEL_CASES:
                yield Combination(container, column, label)


def coefficients(X: Any, y: Any, classes: Sequence[Any]) -> np.ndarray:
    """Coefficients of a fit with one seed."""
    model = DPClassifier("dp_gd", classes=tuple(classes), bounds=(-1, 1))
    model.set_params(random_state=0, epsilon=5.0)
    fitted: np.ndarray = model.fit(X, y).coef_
    return fitted


def of_doubles() -> dict[str, np.ndarray]:
    """The coefficients of the numbers of each column as doubles."""
    numbers = {name: numeric for name, (_, numeric) in COLUMN_CASES.items()}
    numbers |= READ_AS_NUMBERS
    return {
        name: coefficients(
            np.column_stack([FIRST, numeric, THIRD]).astype(float),
            SIDES,
            (0, 1),
        )
        for name, numeric in numbers.items()
        if numeric is not None
    }


def fault_of(combination: Combination, wanted: dict[str, np.ndarray]) -> str:
    """What is wrong with a combination; empty if nothing is."""
    _, classes, is_right = LABEL_CASES[combination.label]
    X = combination.records()
    try:
        fitted = coefficients(X, combination.labels(), classes)
    except ValueError as error:
        return _fault_of_refusal(combination, X, str(error))
    except Exception as error:  # whatever it is, it is no refusal
        return f"{type(error).__name__}: {error}"
    if not is_right:
        return "labels of another kind than the classes are taken"
    if combination.column not in wanted:
        return "what is no number is taken"
    if not np.array_equal(fitted, wanted[combination.column]):
        return "other coefficients than those of doubles"
    return ""


def _fault_of_refusal(combination: Combination, X: Any, message: str) -> str:
    _, classes, is_right = LABEL_CASES[combination.label]
    if message.startswith("X: "):
        _, numeric = COLUMN_CASES[combination.column]
        is_object = combination.container in GRIDS and X.dtype == object
        if numeric is not None and not is_object:
            return f"numbers are refused: {message}"
        name = "object" if combination.container in GRIDS else "b ("
        name = "column 2" if combination.container in UNNAMED else name
        is_told = name in message and "OneHotEncoder(categories" in message
        return "" if is_told else f"no name or no cure: {message}"
    if is_right or not message.startswith("y: "):
        return f"refused: {message}"
    is_told = all(repr(name) in message for name in classes)
    is_told &= "Declare classes as the labels are" in message
    return "" if is_told else f"no classes or no cure: {message}"


def faults() -> tuple[list[str], int]:
    """The combinations with something wrong, and how many there are."""
    wanted = of_doubles()
    tried = [*combinations()]
    found = [
        (combination.name, fault_of(combination, wanted))
        for combination in tried
    ]
    return [f"{name}: {fault}" for name, fault in found if fault], len(tried)
