"""What a fit takes of arrays, lists and data frames.

Arrays and columns are refused by their type alone. No value of a record decides whether
a fit raises.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
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


@contextmanager
def silent() -> Iterator[None]:
    """Suppress warnings of other libraries, which would depend on the records."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def array(name: str, values: Any) -> Any:
    """An array, dense or sparse; a list becomes one of objects.

    Raises ValueError for an array of complex numbers, by its type.
    """
    if isinstance(values, list | tuple):
        return np.array(values, dtype=object)  # one text would turn all into text
    found = values if sparse.issparse(values) else np.asarray(values)
    if found.dtype.kind == "c":
        raise ValueError(f"{name}: expected real numbers: {COMPLEX}")
    return found


@silent()
def numbers(name: str, values: Any) -> Any:
    """An array of numbers, dense or sparse; NaN for objects that no double holds.

    Raises ValueError for an array of another type, whatever it holds.
    """
    found = array(name, values)
    if found.dtype.kind in NUMERIC:
        return found
    if found.dtype.kind != "O":
        raise ValueError(f"{name}: expected an array of numbers, found {found.dtype}")
    each = [
        math.nan if isinstance(one, str | bytes) else read(float, one, math.nan)
        for one in found.ravel()
    ]
    return np.array(each).reshape(found.shape)


@silent()
def matrix(X: Any) -> Any:
    """X (n, p) as numbers, dense, sparse or a data frame of doubles.

    Raises
    ------
    ValueError
        For another shape, an array of another type, and for columns of a data frame
        that are not of real numbers: all of them at once and with the cure.
    """
    if not isinstance(X, pd.DataFrame):
        found = numbers("X", X)
        if found.ndim != 2:
            raise ValueError(
                f"X: expected the shape (n, p), found {found.shape}. Reshape your data"
            )
        return found
    other = {
        str(name): kind
        for name, kind in X.dtypes.items()
        if not is_numeric_dtype(kind) or is_complex_dtype(kind)
    }
    if other:
        named = ", ".join(f"{name} ({kind})" for name, kind in other.items())
        raise ValueError(
            f"X: expected columns of numbers, found {named}. Numbers held as objects "
            "need astype(float). Make text numbers by values that are public: "
            "ColumnTransformer([('text', OneHotEncoder(categories=[[...]], "
            f"handle_unknown='ignore'), {[*other]})], remainder='passthrough'). "
            "SimpleImputer(strategy='constant', fill_value=..., "
            "keep_empty_features=True) fills gaps, and "
            "MissingIndicator(features='all') says where they were"
        )
    return pd.DataFrame(X.to_numpy(dtype=float, na_value=np.nan), columns=X.columns)


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
