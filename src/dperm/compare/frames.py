"""What a fit takes of data frames and of labels that are not numbers.

Columns are refused by their type alone. No value of a record decides whether a fit
raises.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral, Number
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_complex_dtype, is_numeric_dtype
from scipy import sparse

NUMERIC = "fiub"  # kinds of types of arrays
COMPLEX = "Complex data not supported"  # the words of scikit-learn
TRUTHS = {"true": 1.0, "false": 0.0}
TYPES = "types of columns"  # assumed by the guarantee of a fit of a data frame


def checked(X: Any) -> Any:
    """X as numbers: entries of a list or of an array of objects that are none are NaN.

    Columns of pandas' own numbers become doubles, as their gaps may have no cast.

    Raises
    ------
    ValueError
        For an array of a type that is not numeric, and for columns of a data frame that
        are not, all of them at once and with the cure.
    """
    if not isinstance(X, pd.DataFrame):
        return _typed(X, NUMERIC) if sparse.issparse(X) else _array(X)
    refuse_others(X)
    frame = X.copy(deep=False)
    for k, kind in enumerate(X.dtypes):
        is_own = isinstance(kind, pd.api.extensions.ExtensionDtype)
        if is_own and not isinstance(kind, pd.SparseDtype):
            frame.isetitem(k, numbers(X.iloc[:, k]))
    return frame


def _array(X: Any) -> np.ndarray:
    """An array of a numeric type; no entry decides whether this raises."""
    found = _plain(X)
    if found.dtype.kind not in NUMERIC and isinstance(X, list | tuple):
        found = np.array(X, dtype=object)
    if _typed(found, NUMERIC + "O").dtype.kind == "O":
        with silent():
            every = [_number(value) for value in found.ravel()]
        return np.array(every).reshape(found.shape)
    return found


def _typed(X: Any, kinds: str) -> Any:
    """X, refused by its type unless that is of one of the kinds."""
    if X.dtype.kind == "c":
        raise ValueError(f"X: expected real numbers: {COMPLEX}")
    if X.dtype.kind not in kinds:
        raise ValueError(f"X: expected an array of numbers, found {X.dtype}")
    return X


def _plain(X: Any) -> np.ndarray:
    """An array of any type; of objects where lists are ragged."""
    try:
        return np.asarray(X)
    except ValueError:
        return np.array(X, dtype=object)


def _number(value: Any) -> float:
    """A number as a double; NaN for what is none, text that reads as one included."""
    is_text = isinstance(value, str | bytes)
    return float("nan") if is_text else read(float, value, float("nan"))


def refuse_others(frame: pd.DataFrame) -> None:
    """Refuse all columns that are not of real numbers, by their types."""
    other = {
        str(name): kind
        for name, kind in frame.dtypes.items()
        if not is_numeric_dtype(kind) or is_complex_dtype(kind)
    }
    if other:
        found = ", ".join(f"{name} ({kind})" for name, kind in other.items())
        raise ValueError(
            f"X: expected columns of numbers, found {found}. Numbers held as objects "
            "need astype(float). Make text numbers by values that are public: "
            "ColumnTransformer([('text', OneHotEncoder("
            f"categories=[[...]], handle_unknown='ignore'), {[*other]})], "
            "remainder='passthrough'). SimpleImputer(strategy='constant', "
            "fill_value=..., add_indicator=True) fills gaps"
        )


def assumed(X: Any) -> tuple[str, ...]:
    """What a guarantee takes as public of X beside n: its columns' types."""
    return (TYPES,) if isinstance(X, pd.DataFrame) else ()


def shared(value: Any) -> Any:
    """What a declared class and a record's label have in common if they are the same.

    Text that reads as a number, or as True or False, equals that number: one word makes
    a reader of files take all other numbers of a column for text. None for what is not
    finite.
    """
    if isinstance(value, str):
        number = read(int, value, read(_double, value, None))
        if number is None:
            return str.__str__(value)
    elif isinstance(value, Number | np.bool_):
        number = value if isinstance(value, Integral) else read(float, value, np.nan)
    else:
        return value
    if isinstance(number, Integral) or number.is_integer():
        return str(int(number))  # exact, as a file may have whole numbers beyond 2^53
    return f"{number:.15g}" if np.isfinite(number) else None


def is_merged(key: Any) -> bool:
    """Whether doubles may merge a class with others; ``key`` is what it shares."""
    return isinstance(key, str) and abs(read(int, key, 0)) >= 2**53


def matched(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Labels (n,) as objects: the class that is the same, None for no class."""
    known = {shared(one): one for one in classes.tolist()}
    same = [read(lambda one: known.get(shared(one)), one, None) for one in labels]
    return np.array(same, dtype=object)


@contextmanager
def silent() -> Iterator[None]:
    """Suppress warnings of other libraries, which would depend on the records."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@silent()
def numbers(column: pd.Series) -> np.ndarray:
    """The column as doubles; NaN for values that are not numbers."""
    if not is_numeric_dtype(column.dtype):
        return np.array([read(_double, value, np.nan) for value in column])
    return column.to_numpy(dtype=float, na_value=np.nan)


def _double(value: Any) -> float:
    truth = TRUTHS.get(value.casefold()) if isinstance(value, str) else None
    return float(value) if truth is None else truth


def read(function: Callable[[Any], Any], value: Any, otherwise: Any) -> Any:
    """The function's result for a value, or ``otherwise`` if it raises anything."""
    try:
        return function(value)
    except Exception:  # a record may hold anything, and may raise anything
        return otherwise
