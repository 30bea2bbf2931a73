"""Records read in blocks, from arrays or from Parquet files.

Every record belongs to one part and to one block of it. The data alone determine parts
and blocks. So sums over blocks, and then over parts, have one order on any number of
processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from dperm import extras

CELLS = 1 << 17  # entries of a block, which fits into a core's cache
BATCH = 1 << 20  # entries that a Parquet file yields at once
PART = 1 << 24  # entries of a part: 128 MB of doubles


class Part(NamedTuple):
    """A number of records and their location."""

    n: int
    path: str = ""
    groups: tuple[int, ...] = ()


class Source(Protocol):
    """Yields the records of a part, X (m, p) and y (m,) at a time."""

    @property
    def shape(self) -> tuple[int, int]:
        """The shape (n, p)."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts; each record is in exactly one."""

    def read(self, part: Part) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The blocks of a part, in order."""


class Held:
    """Arrays X (n, p) and y (n,): one part."""

    def __init__(self, X: np.ndarray, y: np.ndarray):
        self.X, self.y, self.shape = X, y, (X.shape[0], X.shape[1])
        self.parts = (Part(len(y)),)

    def read(self, part: Part) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The blocks of the one part."""
        return _cut(self.X, self.y)


@dataclass(frozen=True)
class Parquet:
    """A Parquet file, or a folder of them, with one column as the label."""

    target: str
    names: tuple[str, ...]  #: the other columns, in the order of the first file
    #: neighbouring row groups of a file, joined until they have 2^24 entries
    parts: tuple[Part, ...]
    has_numbers: bool = True  #: whether the label's type is numeric

    @property
    def shape(self) -> tuple[int, int]:
        """The shape (n, p)."""
        return sum(part.n for part in self.parts), len(self.names)

    def read(self, part: Part) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The blocks of a part; a missing number is NaN."""
        import pyarrow as pa
        from pyarrow import parquet

        size = max(1, BATCH // len(self.names))
        with parquet.ParquetFile(part.path) as file:
            for batch in file.iter_batches(
                size, list(part.groups), [*self.names, self.target]
            ):
                X = np.empty((len(batch), len(self.names)))
                for j, name in enumerate(self.names):
                    column = batch.column(name).cast(pa.float64(), safe=False)
                    X[:, j] = column.to_numpy(zero_copy_only=False)
                y = batch.column(self.target)
                y = y.dictionary_decode() if hasattr(y, "dictionary_decode") else y
                # Whole numbers stay whole even if the column has a gap.
                yield from _cut(X, y.to_pandas(integer_object_nulls=True).to_numpy())


def parquet(path: str | Path, target: Any) -> Parquet:
    """The records of a Parquet file, or of all ``*.parquet`` files of a folder.

    Raises ValueError if there are none, if files have different columns or non-numeric
    ones, or if a link names a file twice: its records would count twice.
    """
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(extras.explained(error), name=error.name) from error

    top = Path(path)
    files = sorted(top.glob("*.parquet")) if top.is_dir() else [top]
    if not files or not files[0].is_file():
        raise ValueError(f"X: {path}: expected a Parquet file or a folder of them")
    names, parts, seen = tuple[str, ...](), list[Part](), dict[Any, Path]()
    has_numbers = True
    for file in files:
        found = file.stat()
        other = seen.setdefault((found.st_dev, found.st_ino), file)
        if other is not file:
            raise ValueError(
                f"X: {file} is the same file as {other}: its records would count twice"
            )
        try:
            with ParquetFile(file) as opened:
                schema, about = opened.schema_arrow, opened.metadata
        except pa.ArrowInvalid as error:
            raise ValueError(f"X: {file}: expected a Parquet file: {error}") from error
        if target not in schema.names:
            raise ValueError(
                f"y: {target!r}: expected a column of {file}: {', '.join(schema.names)}"
            )
        own = tuple(name for name in schema.names if name != target)
        names = names or own
        if {*own} != {*names}:
            strange = ", ".join(sorted({*own} ^ {*names}))
            raise ValueError(f"X: {file}: not the columns of {files[0]}: {strange}")
        kinds = {name: schema.field(name).type for name in own}
        text = [name for name, kind in kinds.items() if not _is_number(pa.types, kind)]
        if text:
            raise ValueError(f"X: {file}: no numbers in columns {', '.join(text)}")
        has_numbers &= _is_number(pa.types, schema.field(target).type)
        parts += _parts(str(file.resolve()), about, max(1, len(own)))
    return Parquet(target, names, tuple(parts), has_numbers)


def _is_number(types: Any, kind: Any) -> bool:
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(test(kind) for test in tests)


def _parts(path: str, about: Any, p: int) -> Iterator[Part]:
    """Join neighbouring row groups of a file into parts."""
    n, groups = 0, tuple[int, ...]()
    for group in range(about.num_row_groups):
        n, groups = n + about.row_group(group).num_rows, (*groups, group)
        if n * p >= PART:
            yield Part(n, path, groups)
            n, groups = 0, ()
    if n:
        yield Part(n, path, groups)


def _cut(X: np.ndarray, y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    size = max(1, CELLS // X.shape[1])
    for low in range(0, len(y), size):
        yield X[low : low + size], y[low : low + size]
