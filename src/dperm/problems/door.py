"""The one door through which records come, of whatever kind their container is.

X, y and declared classes are read here and nowhere else. What comes out are n records,
the names of columns, and what was taken as public. Three rules hold; that neighbours
stay neighbours under them is proved in docs/accounting.md.

a. *The type of a container or of a column is public*, and it alone decides what is
   refused: arrays of text, dates or objects, and such columns of a frame, of pandas,
   polars, pyarrow or a mapping. A list has no type, and neither have labels that are
   held as objects. Theirs is that of most entries: the width is the commonest among the
   rows, and what is refused is a column, or labels, of which more than half of the
   records hold something else than numbers (or than the classes). One record never
   decides that where the others agree. ``public`` names what a container makes public
   beside n.
b. *Then each record is cleaned by itself*, whatever it holds. No object in a record is
   asked anything: entries of known types are read by Python's own readers, text that
   reads as a number is that number, and an entry of any other type is no number. A row
   of another width has no numbers. A fit counts such a record as one in the middle of
   all ranges.
c. *Nothing else is refused, warned of or decided by records.* No message has a word or
   a number that stands in a record.

Frames of pandas, polars and pyarrow are recognised without importing these libraries.

The functions are:

- ``table(X)``, which gives a ``Table``: float64 (n, p), dense or CSC, with names;
- ``numbers(y)``, which gives ``Labels`` (n,) of float64, NaN for what is no number;
- ``classes(declared)``, which gives ``Classes``, and ``codes(y, classes)``, which gives
  ``Labels`` (n,) of indices into them, -1 for a label of no class.

All of them raise ValueError, with one line that names the column and the cure.
"""

from __future__ import annotations

import array
import math
import sys
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

TYPES = "types of columns"  # public by a frame, a mapping or a list
WIDTH = "width of rows"  # public by a list of rows
# Public by labels in anything but an array of one plain type.
LABEL_TYPE = "type of labels"

NUMBERS = "numbers"
TRUTH = "truth values"
WORDS = "words"
OBJECTS = "objects"
OTHER = "other"
# By NumPy's letters.
VALUE_TYPES = {"f": NUMBERS, "i": NUMBERS, "u": NUMBERS, "b": TRUTH}
VALUE_TYPES |= {"U": WORDS, "S": WORDS, "T": WORDS, "O": OBJECTS}
# The words of scikit-learn
COMPLEX = "real numbers: Complex data not supported"
TRUTHS = {"true": 1.0, "false": 0.0}
SCALAR_ROW = -1  # the width of what is no row
SHOWN = 200  # characters of what a user declared
RECIPE = (
    "Numbers held as objects need astype(float). Make text numbers by values that are "
    "public: ColumnTransformer([('text', OneHotEncoder(categories=[[...]], "
    "handle_unknown='ignore'), {columns})], remainder='passthrough'). "
    "SimpleImputer(strategy='constant', fill_value=..., keep_empty_features=True) "
    "fills gaps, and MissingIndicator(features='all') says where they were"
)


@dataclass(frozen=True)
class Table:
    """Records: n rows of p numbers."""

    values: Any  #: float64 (n, p), C order or CSC; NaN for no number
    names: (
        tuple[Any, ...] | None
    )  #: of the columns, as their container has them
    public: tuple[str, ...]  #: what is taken as public beside n


@dataclass(frozen=True)
class Labels:
    """One number for each record."""

    values: np.ndarray  #: float64, or int64 indices of classes, (n,)
    public: tuple[str, ...]  #: what is taken as public beside n


@dataclass(frozen=True)
class Classes:
    """The labels that are declared."""

    values: np.ndarray  #: as declared, (K,)
    keys: tuple[float | str, ...]  #: what a label has in common with its class
    value_types: frozenset[str]  #: of ``NUMBERS``, ``TRUTH`` and ``WORDS``

    def __str__(self) -> str:
        listed = ", ".join(map(repr, self.values.tolist()))
        return f"{' and '.join(sorted(self.value_types))} ({listed})"


@dataclass(frozen=True)
class Column:
    """A column, or labels, as they stand in their container."""

    value_type: str
    entries: Any  #: float64 (n,) of numbers and truth values, else a list of n
    type_name: str
    public: tuple[str, ...] = ()
    is_category: bool = False  #: then it is no feature, but labels of classes
    is_list: bool = False  #: of objects in a list, which may be a feature

    @property
    def is_numeric(self) -> bool:
        """Whether its type is that of real numbers."""
        return self.value_type in (NUMBERS, TRUTH) and not self.is_category


@contextmanager
def silent() -> Iterator[None]:
    """Suppress warnings of other libraries, which would depend on the records."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


# --- what comes out -------------------------------------------------------------------


def table(X: Any, name: str = "X") -> Table:
    """The records of X (n, p) as numbers.

    Parameters
    ----------
    X : array, sparse array, list of rows, data frame or mapping of columns
        Of any library whose container is an array, a table or a sequence.
    name : str
        What X is called in messages.

    Raises
    ------
    ValueError
        For another shape, and for columns whose type is not of real numbers: all of
        them at once, by name, with the cure.
    """
    with silent():
        if is_sparse(X):  # one of its kinds is a mapping of its entries
            return _of_sparse(name, X)
        named = _named_columns(name, X)
        if named is not None:
            return _of_columns(name, *named)
        grid = _grid(name, X)
        if grid is not None:
            return _of_grid(name, grid)
        column = _typed_column(X)
        if column is not None:
            raise _wrong_shape(name, (len(column.entries),))
        rows = _list(X)
        if rows is not None:
            return _of_rows(name, rows)
    raise _no_container(
        name, X, "an array, a data frame or a list of rows (n, p)"
    )


def numbers(y: Any, name: str = "y") -> Labels:
    """Labels y (n,) as numbers; NaN for what is none.

    Raises ValueError for labels whose type is not of real numbers, with the cure.
    """
    column = labels(y, name)
    if column.is_numeric:
        return Labels(column.entries, column.public)
    read: list[float] = []
    strange = 0
    if column.value_type == OBJECTS and not column.is_category:
        read, strange = _read(iter(column.entries))
    if not read or 2 * strange > len(read):
        raise ValueError(
            f"{name}: expected an array of numbers, found {column.type_name}. Numbers "
            "held as text or objects need astype(float); labels of classes need "
            "DPClassifier and classes=(first, second, ...)"
        )
    return Labels(np.array(read, dtype=np.float64), column.public)


def codes(y: Any, declared: Classes, name: str = "y") -> Labels:
    """The index of each label's class, (n,); -1 for a label of no class.

    Raises ValueError for labels whose type (numbers, truth values, words) is not that
    of the classes; both are named.
    """
    column = labels(y, name)
    places: Any = {own: place for place, own in enumerate(declared.keys)}
    found = np.full(len(column.entries), -1)
    if column.value_type in (NUMBERS, TRUTH):
        for own, place in places.items():
            if not isinstance(own, str):
                found[column.entries == own] = place
        types = column.value_type
        is_right = _may_be(types, declared)
    else:
        entries = column.entries
        keys = [key(entry) for entry in entries]
        found[:] = [places.get(own, -1) for own in keys]
        value_types = [
            _value_type_of_entry(*pair)
            for pair in zip(entries, keys, strict=True)
        ]
        types = column.value_type
        is_right = _may_be(WORDS, declared)
        if types == OBJECTS:
            wrong = [
                one
                for one in value_types
                if one and not _may_be(one, declared)
            ]
            is_right = 2 * len(wrong) <= len(value_types)
            types = "others for the most part"
    if not is_right:
        raise ValueError(
            f"{name}: expected labels of the kind of the classes, which are {declared};"
            f" found {types} ({column.type_name}). Declare classes as the labels are: "
            "ensembles of scikit-learn, for one, hand over 0, 1, ... in place of words"
        )
    return Labels(found, column.public)


def classes(declared: Any, name: str = "classes") -> Classes:
    """The classes that a user declares: numbers, words or truth values that differ.

    Raises ValueError for fewer than two, for others, and for whole numbers of 2^53 or
    more, which doubles do not tell apart.
    """
    values = np.empty(0)
    if not isinstance(declared, str | bytes | Mapping | Set | Iterator):
        with silent():
            values = _asked(lambda: np.asarray(declared), values)
    entries = values.tolist() if values.ndim == 1 else []
    keys = [key(entry) for entry in entries]
    if any(isinstance(own, float) and abs(own) >= 2**53 for own in keys):
        raise ValueError(
            f"{name}: expected whole numbers below 2^53 in size, which doubles tell "
            f"apart, found {shown(declared)}"
        )
    if len(keys) < 2 or None in keys or len({*keys}) < len(keys):
        raise ValueError(
            f"{name}: expected two labels or more that differ, a list or an array "
            f"of numbers, words or truth values, found {shown(declared)}"
        )
    value_types = frozenset(_value_type_of_class(entry) for entry in entries)
    declared_types = value_types.union(
        map(_value_type_of_class, _declared_entries(declared))
    )
    if WORDS in declared_types and len(declared_types) > 1:
        raise ValueError(
            f"{name}: expected labels of one kind, found "
            f"{' and '.join(sorted(declared_types))} ({shown(declared)})"
        )
    return Classes(
        values, tuple(own for own in keys if own is not None), value_types
    )


def labels(y: Any, name: str = "y") -> Column:
    """Labels y (n,), or in a column (n, 1), as their container has them.

    Raises ValueError for another shape, and for a type of neither numbers nor words.
    """
    with silent():
        column, shape = _labels(name, y)
    if column is None and shape is not None:
        raise ValueError(
            f"{name}: expected labels (n,): {name} should be a 1d array, got an array "
            f"of shape {shape} instead"
        )
    if column is None:
        words = f"labels (n,): {name} should be a 1d array, a list or a series"
        raise _no_container(name, y, words)
    if column.value_type == OTHER:
        is_complex = "complex" in column.type_name
        cure = "Make labels numbers, or words of declared classes"
        raise ValueError(
            f"{name}: expected {COMPLEX if is_complex else 'numbers or words'}, found "
            f"{column.type_name}. {cure}"
        )
    if column.value_type == OBJECTS:
        column = replace(column, entries=_unnested(column.entries))
    if shape is not None:
        from sklearn.exceptions import DataConversionWarning

        said = (
            f"A column-vector {name} was passed when a 1d array was expected"
        )
        warnings.warn(said, DataConversionWarning, stacklevel=2)
    return column


def shown(declared: Any) -> str:
    """What a user declared, in one short line."""
    line = " ".join(
        _asked(lambda: repr(declared), type(declared).__name__).split()
    )
    return line if len(line) <= SHOWN else f"{line[:SHOWN]} ..."


def is_frame(X: Any) -> bool:
    """Whether X is a table whose columns have names."""
    with silent():
        return not is_sparse(X) and _named_columns("X", X) is not None


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse array of SciPy."""
    library = sys.modules.get("scipy.sparse")
    return library is not None and bool(library.issparse(X))


# --- one entry ------------------------------------------------------------------------


def number(entry: Any) -> float | None:
    """The number that an entry of a record is; None if it is none.

    Only entries of known types are read, and by the readers of these types, so that no
    entry runs code of its own.
    """
    entry_type = type(entry)
    reader = READERS.get(id(entry_type))
    if reader is None:
        bases = [
            base for base in (float, int, str) if issubclass(entry_type, base)
        ]
        reader = BASES[bases[0]] if bases else None
    if reader is None:
        return None
    try:
        return reader(entry)
    except (ValueError, ArithmeticError):  # words, a signalling NaN, too large
        return None


def key(entry: Any) -> float | str | None:
    """What a declared class and a label have in common if they are the same.

    Text that reads as a number, or as True or False, is that number: one word makes a
    reader of files take all other numbers of a column for text.
    """
    text = _text(entry)
    size = number(entry)
    if text is not None:
        size = TRUTHS.get(text.casefold(), number(text))
    if size is not None and math.isfinite(size):
        return size
    return text


def _text(entry: Any) -> str | None:
    entry_type = type(entry)
    if issubclass(entry_type, str):
        return str.__str__(entry)
    if entry_type is bytes or entry_type is np.bytes_:
        return bytes.decode(entry, errors="replace")
    return None


# The readers of types that only hold real numbers or text, by identity: a type may have
# a hash, a comparison or a metaclass of its own.
READERS: dict[int, Callable[[Any], float]] = {
    id(number_type): float
    for number_type in (
        float,
        int,
        bool,
        str,
        Decimal,
        Fraction,
        *(np.dtype(letter).type for letter in "?bBhHiIlLqQefdg"),
    )
}
BASES: dict[type, Callable[[Any], float]] = {
    float: float.__float__,
    int: int.__float__,
    str: lambda entry: float(str.__str__(entry)),
}


def _is_gap(entry: Any) -> bool:
    """Whether an entry says that there is nothing; also pandas' NA and NaT."""
    pandas = sys.modules.get("pandas")
    if entry is None or entry is np.ma.masked:
        return True
    return pandas is not None and (
        entry is getattr(pandas, "NA", None)
        or entry is getattr(pandas, "NaT", None)
    )


def _read(entries: Iterator[Any]) -> tuple[list[float], int]:
    """Entries as numbers, NaN for others; how many are neither numbers nor gaps."""
    values, strange = [], 0
    for entry in entries:
        size = number(entry)
        strange += size is None and not _is_gap(entry)
        values.append(math.nan if size is None else size)
    return values, strange


def _is_list_of_one(entry: Any) -> bool:
    entry_type = type(entry)
    return (entry_type is list or entry_type is tuple) and len(entry) == 1


def _unnested(entries: list[Any]) -> list[Any]:
    """Entries of a list, or of its lists of one, as JSON has them, where most are."""
    nested = [_is_list_of_one(entry) for entry in entries]
    if 2 * sum(nested) <= len(entries):
        return entries
    pairs = zip(entries, nested, strict=True)
    return [entry[0] if is_nested else entry for entry, is_nested in pairs]


# --- types of labels ------------------------------------------------------------------


def _declared_entries(declared: Any) -> list[Any]:
    """The classes before NumPy gives them one type, as of a list with words."""
    is_list = isinstance(declared, list | tuple)
    return [*declared] if is_list else []


def _value_type_of_class(entry: Any) -> str:
    if isinstance(entry, bool | np.bool_):
        return TRUTH
    return NUMBERS if _text(entry) is None else WORDS


def _value_type_of_entry(entry: Any, own: float | str | None) -> str:
    """The type of an entry among objects; empty for a gap."""
    if own is None:
        # NaN, infinity
        is_number = _is_gap(entry) or number(entry) is not None
        return "" if is_number else OTHER
    return WORDS if isinstance(own, str) else NUMBERS


def _may_be(value_type: str, declared: Classes) -> bool:
    """Whether labels of a type can be of the classes.

    Classes of text that reads as numbers are numbers: otherwise one word in a file
    would decide by the type of its column whether a fit raises.
    """
    sizes = {own for own in declared.keys if not isinstance(own, str)}
    if value_type == TRUTH:
        return bool(sizes) and sizes <= {0.0, 1.0}
    if value_type == NUMBERS:
        return bool(sizes)
    return value_type == WORDS and WORDS in declared.value_types


# --- tables ---------------------------------------------------------------------------


def _named_columns(
    name: str, X: Any
) -> tuple[list[Any], list[Column], int] | None:
    """Names, columns and n of a table with names; None for any other container."""
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    pyarrow = sys.modules.get("pyarrow")
    if pandas and isinstance(X, pandas.DataFrame):
        parts = [_of_pandas(X.iloc[:, place]) for place in range(X.shape[1])]
        return [*X.columns], parts, len(X)
    if polars and isinstance(X, polars.DataFrame):
        return (
            [*X.columns],
            [_of_polars(part) for part in X.get_columns()],
            X.height,
        )
    if pyarrow and isinstance(X, pyarrow.Table | pyarrow.RecordBatch):
        parts = [_of_arrow(part) for part in X.columns]
        return [*X.schema.names], parts, X.num_rows
    if isinstance(X, np.ndarray) and X.dtype.names:
        parts = [_of_array(X[field]) for field in X.dtype.names]
        return [*X.dtype.names], parts, len(X) if X.ndim else 0
    if isinstance(X, Mapping):
        return _of_mapping(name, X)
    if hasattr(type(X), "__dataframe__"):
        return _asked(lambda: _exchanged(X), None)
    if hasattr(type(X), "__arrow_c_stream__") and not hasattr(
        type(X), "__array__"
    ):
        import pyarrow as arrow

        frame = _asked(lambda: arrow.table(X), None)
        return None if frame is None else _named_columns(name, frame)
    return None


def _exchanged(X: Any) -> tuple[list[Any], list[Column], int]:
    """Columns of an object of the dataframe protocol, each by itself."""
    from pandas.api.interchange import from_dataframe

    exchange = X.__dataframe__()
    names = [*exchange.column_names()]
    parts = []
    for title in names:
        column = exchange.select_columns_by_name([title])
        frame = _asked(partial(from_dataframe, column), None)
        if frame is None:  # of a type that the protocol does not have
            parts.append(Column(OTHER, [], "of no type that is exchanged"))
        else:
            parts.append(_of_pandas(frame.iloc[:, 0]))
    return names, parts, exchange.num_rows()


def _of_mapping(
    name: str, X: Mapping[Any, Any]
) -> tuple[list[Any], list[Column], int]:
    """The columns of a mapping, which have one length."""
    parts = []
    for title, values in X.items():
        column = _column(values)
        if column is None:
            type_name = type(values).__name__
            raise ValueError(
                f"{name}: expected a column (n,) for {title!r}, found {type_name}"
            )
        parts.append(column)
    sizes = {len(column.entries) for column in parts}
    if len(sizes) > 1:
        named = ", ".join(
            f"{title} ({len(column.entries)})"
            for title, column in zip(X, parts, strict=True)
        )
        raise ValueError(
            f"{name}: expected columns of one length, found {named}"
        )
    return [*X], parts, max(sizes, default=0)


def _of_columns(
    name: str, names: list[Any], parts: list[Column], n: int
) -> Table:
    """A table of typed columns, which are refused all at once."""
    values = np.empty((n, len(parts)))
    other = {}
    for place, column in enumerate(parts):
        is_right = column.is_numeric
        if is_right:
            values[:, place] = column.entries
        elif column.value_type == OBJECTS and column.is_list:
            read, strange = _read(iter(column.entries))
            values[:, place] = read
            is_right = 2 * strange <= n
        if not is_right:
            other[str(names[place])] = column.type_name
    if other:
        raise _no_numbers(name, other)
    return Table(values, tuple(names), (TYPES,))


def _no_numbers(name: str, other: Mapping[str, str]) -> ValueError:
    """The refusal of columns by name, with their types."""
    named = ", ".join(
        f"{title} ({type_name})" for title, type_name in other.items()
    )
    recipe = RECIPE.format(columns=[*other])
    return ValueError(
        f"{name}: expected columns of numbers, found {named}. {recipe}"
    )


def _of_sparse(name: str, X: Any) -> Table:
    letter = X.dtype.kind
    if X.ndim != 2:
        raise _wrong_shape(name, X.shape)
    if letter not in "fiub":
        words = COMPLEX if letter == "c" else "an array of numbers"
        raise ValueError(f"{name}: expected {words}, found {X.dtype}")
    from scipy import sparse

    return Table(sparse.csc_array(X.tocsc(), dtype=np.float64), None, ())


def _of_grid(name: str, grid: np.ndarray) -> Table:
    letter = grid.dtype.kind
    if letter == "c":
        raise ValueError(f"{name}: expected {COMPLEX}, found {grid.dtype}")
    if letter not in "fiub":
        raise ValueError(
            f"{name}: expected an array of numbers, found {grid.dtype}. A data frame "
            f"has a type for each column. {RECIPE.format(columns=['...'])}"
        )
    if grid.ndim != 2:
        raise _wrong_shape(name, grid.shape)
    return Table(_filled(grid), None, ())


def _of_rows(name: str, rows: list[Any]) -> Table:
    """A list of rows; one of another width than most has no numbers."""
    read = [_row(row) for row in rows]
    widths = Counter(
        SCALAR_ROW if row is None else len(row)
        for row, original in zip(read, rows, strict=True)
        if original is not None
    )
    p = max(
        widths, key=lambda width: (widths[width], width), default=SCALAR_ROW
    )
    if p == SCALAR_ROW:
        raise _wrong_shape(name, (len(rows),))
    if 2 * widths[p] <= len(rows) and len(rows) > 2:
        raise ValueError(
            f"{name}: expected rows of one width, found no width that most rows have. "
            "Fill short rows with None: a gap is one record in the middle"
        )
    values, strange = np.full((len(rows), p), np.nan), np.zeros(p, dtype=int)
    for place, row in enumerate(read):
        if row is None or len(row) != p:
            continue
        if isinstance(row, np.ndarray) and row.dtype.kind != "O":
            values[place] = row
            continue
        for column, entry in enumerate(row):
            size = number(entry)
            strange[column] += size is None and not _is_gap(entry)
            values[place, column] = np.nan if size is None else size
    wrong = np.flatnonzero(2 * strange > len(rows))
    if wrong.size:
        raise _no_numbers(
            name,
            {f"column {place + 1}": "mostly no numbers" for place in wrong},
        )
    return Table(values, None, (WIDTH, TYPES))


def _row(row: Any) -> Sequence[Any] | np.ndarray | None:
    """The entries of a row by the methods of its known type; None for any other."""
    row_type = type(row)
    if issubclass(row_type, list):
        return list.__getitem__(row, slice(None))
    if issubclass(row_type, tuple):
        return tuple.__getitem__(row, slice(None))
    if row_type is np.ndarray:
        return row if row.ndim == 1 and row.dtype.kind in "fiubO" else None
    is_plain = row_type is deque or row_type is array.array
    return [*row] if is_plain else None  # a range may be of any length


# --- columns and labels ---------------------------------------------------------------


def _labels(name: str, y: Any) -> tuple[Column | None, tuple[int, ...] | None]:
    """Labels, and the shape of an array or a table if it is not (n,)."""
    if isinstance(y, Mapping) or is_sparse(y):
        return None, None
    named = _named_columns(name, y)
    if named is not None:
        _, parts, n = named
        column = parts[0] if len(parts) == 1 else None
        return column, (n, len(parts))
    grid = _grid(name, y)
    if grid is None or grid.ndim == 1:
        return _column(y), None
    if grid.ndim == 2 and grid.shape[1] == 1:
        return _of_array(grid[:, 0]), grid.shape
    return None, grid.shape


def _column(values: Any) -> Column | None:
    """A column in a container (n,); None for any other."""
    typed = _typed_column(values)
    if typed is not None:
        return typed
    if isinstance(values, Mapping) or is_sparse(values):
        return None
    grid = _grid("", values)
    if grid is not None:
        return _of_array(grid) if grid.ndim == 1 else None
    entries = _list(values)
    if entries is None:
        return None
    type_name = type(values).__name__
    return Column(OBJECTS, entries, type_name, (LABEL_TYPE,), is_list=True)


def _typed_column(values: Any) -> Column | None:
    """A column of pandas, polars or pyarrow; None for any other."""
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    pyarrow = sys.modules.get("pyarrow")
    if pandas and isinstance(values, pandas.Series | pandas.Index):
        return _of_pandas(values)
    if pandas and isinstance(values, pandas.api.extensions.ExtensionArray):
        return _of_pandas(pandas.Series(values))
    if polars and isinstance(values, polars.Series):
        return _of_polars(values)
    if pyarrow and isinstance(values, pyarrow.Array | pyarrow.ChunkedArray):
        return _of_arrow(values)
    return None


def _of_array(values: np.ndarray) -> Column:
    """A column (n,) of NumPy."""
    name = str(values.dtype)
    value_type = VALUE_TYPES.get(values.dtype.kind, OTHER)
    if values.ndim != 1:
        return Column(OTHER, values, f"{name} of shape {values.shape}")
    if value_type in (NUMBERS, TRUTH):
        return Column(value_type, _filled(values), name)
    entries = values.tolist()  # None where it is masked
    public = (LABEL_TYPE,) if value_type == OBJECTS else ()
    return Column(value_type, entries, name, public)


def _of_pandas(values: Any) -> Column:
    """A series or an index of pandas."""
    import pandas
    from pandas.api import types

    dtype = values.dtype
    public = (LABEL_TYPE,)
    if isinstance(dtype, pandas.CategoricalDtype):
        inner = _of_pandas(dtype.categories)
        places = np.asarray(pandas.Series(values).cat.codes)
        return _of_categories(inner, places, str(dtype))
    if isinstance(dtype, pandas.ArrowDtype):
        import pyarrow

        column = _of_arrow(pyarrow.array(values.array))
        return Column(
            column.value_type,
            column.entries,
            str(dtype),
            public,
            column.is_category,
        )
    if isinstance(dtype, pandas.StringDtype):
        words = values.to_numpy(dtype=object, na_value=None).tolist()
        # what pandas 3 makes of any text
        is_read = dtype.na_value is not pandas.NA
        return Column(OBJECTS if is_read else WORDS, words, str(dtype), public)
    is_number = types.is_numeric_dtype(dtype) and not types.is_complex_dtype(
        dtype
    )
    if types.is_bool_dtype(dtype) or is_number:
        filled = values.to_numpy(dtype=np.float64, na_value=np.nan)
        value_type = TRUTH if types.is_bool_dtype(dtype) else NUMBERS
        return Column(value_type, filled, str(dtype), public)
    if isinstance(dtype, np.dtype) and dtype.kind == "O":
        # as periods' types say too
        return Column(
            OBJECTS, [*values.to_numpy(dtype=object)], str(dtype), public
        )
    return Column(OTHER, values, str(dtype), public)


def _of_categories(
    inner: Column, places: np.ndarray, type_name: str
) -> Column:
    """A column of indices into declared categories, -1 for a gap."""
    known = [*inner.entries, None]
    entries: Any = [known[place] for place in places.tolist()]
    if inner.value_type in (NUMBERS, TRUTH):
        filled = [math.nan if entry is None else entry for entry in entries]
        entries = np.array(filled, dtype=np.float64)
    return Column(
        inner.value_type, entries, type_name, (LABEL_TYPE,), is_category=True
    )


def _of_polars(values: Any) -> Column:
    """A series of polars."""
    import polars

    dtype = values.dtype
    public = (LABEL_TYPE,)
    if dtype.is_numeric() or dtype == polars.Boolean:
        filled = values.cast(polars.Float64, strict=False).to_numpy()
        value_type = TRUTH if dtype == polars.Boolean else NUMBERS
        return Column(
            value_type, np.array(filled, dtype=np.float64), str(dtype), public
        )
    if dtype == polars.String:
        return Column(WORDS, values.to_list(), str(dtype), public)
    if dtype in (polars.Categorical, polars.Enum):
        words = values.cast(polars.String).to_list()
        return Column(WORDS, words, str(dtype), public, is_category=True)
    return Column(OTHER, values, str(dtype), public)


def _of_arrow(values: Any) -> Column:
    """An array, chunked or not, of pyarrow."""
    import pyarrow
    from pyarrow import types

    arrow_type = values.type
    public = (LABEL_TYPE,)
    parts = (
        values.chunks if isinstance(values, pyarrow.ChunkedArray) else [values]
    )
    if types.is_dictionary(arrow_type):
        plain = [part.dictionary_decode() for part in parts]
        column = _of_arrow(pyarrow.chunked_array(plain, arrow_type.value_type))
        name = str(arrow_type)
        return Column(
            column.value_type, column.entries, name, public, is_category=True
        )
    is_number = types.is_integer(arrow_type) or types.is_floating(arrow_type)
    if (
        is_number
        or types.is_decimal(arrow_type)
        or types.is_boolean(arrow_type)
    ):
        step = pyarrow.int8() if types.is_boolean(arrow_type) else arrow_type
        double = pyarrow.float64()
        filled = [
            part.cast(step)
            .cast(double, safe=False)
            .to_numpy(zero_copy_only=False)
            for part in parts
        ]
        value_type = TRUTH if types.is_boolean(arrow_type) else NUMBERS
        whole = np.concatenate([np.empty(0), *filled])
        return Column(value_type, whole, str(arrow_type), public)
    if types.is_string(arrow_type) or types.is_large_string(arrow_type):
        return Column(WORDS, values.to_pylist(), str(arrow_type), public)
    return Column(OTHER, values, str(arrow_type), public)


# --- containers -----------------------------------------------------------------------


def _grid(name: str, X: Any) -> np.ndarray | None:
    """An array of NumPy, masked or not, of what is one by its type; else None.

    Raises ValueError where a library does not give one.
    """
    if isinstance(X, np.ndarray):
        return X if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
    container_type = type(X)
    is_plain = container_type in (range, array.array, memoryview)
    is_array = is_plain or hasattr(container_type, "__array__")
    if not is_array or _typed_column(X) is not None:
        return None
    grid: np.ndarray | None = _asked(lambda: np.asarray(X), None)
    if grid is None:
        raise ValueError(
            f"{name or container_type.__name__}: NumPy makes no array of this "
            f"{container_type.__name__}; pass an array"
        )
    return grid


def _filled(values: np.ndarray) -> np.ndarray:
    """An array of real numbers as float64, NaN where it is masked."""
    filled = np.asarray(values).astype(np.float64, order="C", copy=False)
    if isinstance(values, np.ma.MaskedArray):
        filled = np.where(np.ma.getmaskarray(values), np.nan, filled)
    return filled


def _list(values: Any) -> list[Any] | None:
    """The entries of a list, or of a sequence like one; None for any other."""
    is_list = isinstance(values, list | tuple | deque)
    if isinstance(values, str | bytes | bytearray | memoryview):
        return None
    if not is_list and not isinstance(values, Sequence):
        return None
    return _asked(lambda: [*values], None)


def _asked(function: Callable[[], Any], otherwise: Any) -> Any:
    """What a library makes of a container, or ``otherwise`` if it raises anything."""
    try:
        return function()
    except Exception:  # its words may be of a record
        return otherwise


def _wrong_shape(name: str, shape: tuple[int, ...]) -> ValueError:
    return ValueError(
        f"{name}: expected the shape (n, p), found {shape}. Reshape your data, by "
        "reshape(-1, 1) if it is one column; of mappings make a pandas.DataFrame"
    )


def _no_container(name: str, container: Any, expected: str) -> ValueError:
    """The refusal of a container by its type."""
    type_name = type(container).__name__
    cure = ""
    if isinstance(container, Iterator | Set):
        cure = f"; make a list of it: list({name})"
    elif hasattr(type(container), "collect"):
        cure = f"; {name}.collect() makes it one"
    elif is_sparse(container):
        cure = f"; {name}.toarray().ravel() makes it one"
    return ValueError(f"{name}: expected {expected}, found {type_name}{cure}")
