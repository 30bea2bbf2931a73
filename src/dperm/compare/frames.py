"""What a fit takes of arrays, lists and data frames.

Arrays and columns are refused by their type alone. No value of a record decides whether
a fit raises.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
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
    """X as numbers; entries of a list or of an array of objects that are none are NaN.

    Columns of pandas' own numbers become doubles, as their gaps may have no cast.

    Raises
    ------
    ValueError
        For an array of a type that is not numeric, and for columns of a data frame that
        are not, all of them at once and with the cure.
    """
    if not isinstance(X, pd.DataFrame):
        found = typed("X", X if sparse.issparse(X) else _array(X))
        is_mixed = found.dtype.kind == "O"
        return numbers(found.ravel()).reshape(found.shape) if is_mixed else found
    refuse_others(X)
    frame = X.copy(deep=False)
    for k, kind in enumerate(X.dtypes):
        is_own = isinstance(kind, pd.api.extensions.ExtensionDtype)
        if is_own and not isinstance(kind, pd.SparseDtype):
            with silent():
                column = X.iloc[:, k].to_numpy(dtype=float, na_value=np.nan)
            frame.isetitem(k, column)
    return frame


def _array(X: Any) -> np.ndarray:
    """An array; of objects where a list is ragged or does not hold numbers alone."""
    try:
        found = np.asarray(X)
    except ValueError:
        return np.array(X, dtype=object)
    is_list = isinstance(X, list | tuple) and found.dtype.kind not in NUMERIC
    return np.array(X, dtype=object) if is_list else found


def typed(name: str, values: Any) -> Any:
    """An array of numbers or of objects; any other is refused by its type."""
    if values.dtype.kind == "c":
        raise ValueError(f"{name}: expected real numbers: {COMPLEX}")
    if values.dtype.kind not in (*NUMERIC, "O"):
        raise ValueError(f"{name}: expected an array of numbers, found {values.dtype}")
    return values


@contextmanager
def silent() -> Iterator[None]:
    """Suppress warnings of other libraries, which would depend on the records."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@silent()
def numbers(values: Iterable[Any]) -> np.ndarray:
    """Objects (n,) as doubles; NaN for text and for what no double holds."""
    nothing = float("nan")
    texts = (str, bytes)
    return np.array([
        nothing if isinstance(one, texts) else read(float, one, nothing)
        for one in values
    ])  # fmt: skip


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
            "fill_value=..., keep_empty_features=True) fills gaps, and "
            "MissingIndicator(features='all') says where they were"
        )


def matched(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Labels (n,) as objects: the class that is the same, None for no class."""
    known = {shared(one): one for one in classes.tolist()}
    same = [read(lambda one: known.get(shared(one)), one, None) for one in labels]
    return np.array(same, dtype=object)


def shared(value: Any) -> Any:
    """What a declared class and a record's label have in common if they are the same.

    Text that reads as a number, or as True or False, is that number: one word makes a
    reader of files take all other numbers of a column for text.
    """
    if isinstance(value, str):
        number = TRUTHS.get(value.casefold(), read(float, value, np.nan))
        return number if np.isfinite(number) else value
    return value


def read(function: Callable[[Any], Any], value: Any, otherwise: Any) -> Any:
    """The function's result for a value, or ``otherwise`` if it raises anything."""
    try:
        return function(value)
    except Exception:  # a record may hold anything, and may raise anything
        return otherwise
