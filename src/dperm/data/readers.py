"""Files of data sets: unpacked, then read by format into arrays X (n, p) and y (n,).

Whatever an archive holds is read into memory: nothing in it is written anywhere. A
reader takes the files and the declared columns; its keyword arguments are the options
of the format. Nothing is guessed: a missing value or a category is refused with its
line and column, unless the reader's section declares how to replace it.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import traceback
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from io import BytesIO, StringIO
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from dperm.config.schema import Count, Data, Flag, Reader, same
from dperm.data.arrays import Arrays, RefusedError, canonical, check_arrays
from dperm.data.tables import labels, parse_table, table_arrays, typed
from dperm.problems import door

MARK = b"\xef\xbb\xbf"  # byte order mark, which some editors write
MEMORY = 3 * 2**30  # bytes that reading may take, on a machine of 4 GB
MAX_FEATURES = MEMORY // 256  # of a sparse file, by the bytes of its columns
MAX_COLUMNS = 20_000  # of a table, each of which takes a millisecond
LINE = 2**24  # most bytes of a line of text
MEMBERS = 10_000  # most files in an archive
MAX_LISTED = 5  # of its members that a message names
CELL = 100  # bytes that a cell of a table takes while it is read as text
NUMBER = 24  # a number of Parquet, likewise
SEPARATORS = (b",", b";", b"\t", b"|")
WEB = (b"<!doctype", b"<html", b"<head", b"<?xml")
DAMAGED = (zlib.error, lzma.LZMAError)  # raised beside OSError and EOFError
PACKED: dict[bytes, Any] = {
    b"\x1f\x8b\x08": gzip,
    b"BZh": bz2,
    b"\xfd7z": lzma,
}


def _mark(text: str) -> None:
    if len(text) != 1 or text in '\r\n"':
        raise ValueError(
            f": expected one character, not a quote, found {text!r}"
        )


Mark = Annotated[str, same(_mark)]


class Content(NamedTuple):
    """What a file holds, unpacked."""

    name: str
    content: bytes


@contextmanager
def refusing(names: str, format_name: str) -> Iterator[None]:
    """Turn what a parser raises into a ``RefusedError`` of one line with names.

    Errors of the system, such as a full disk, pass.
    """
    try:
        yield
    except RefusedError as error:  # a quotation may hold line ends
        text = " ".join(str(error).split())
        is_named = any(text.startswith(name) for name in names.split(", "))
        raise RefusedError(text if is_named else f"{names}: {text}") from error
    except UnicodeError as error:
        raise RefusedError(
            f"{names} is not text in UTF-8: save it as UTF-8"
        ) from error
    except Exception as error:  # parsers raise anything on damaged files
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the system's: not permitted, a full disk
        text = " ".join(
            "".join(traceback.format_exception_only(error)).split()
        )
        raise RefusedError(
            f"{names} cannot be read as {format_name}: {text[:300]}"
        ) from error


def unpack(
    path: Path, wanted: Sequence[str] = (), max_bytes: int = Data.most_bytes
) -> list[Content]:
    """The content of a file; of an archive, those of its wanted members.

    Its first bytes tell how it is packed (gzip, bzip2, xz, zip, tar). ``wanted`` are
    members by path or base name, in this order; it may be empty if there is only one.

    Raises RefusedError if a content is empty, a web page, damaged or if all together
    have more than ``max_bytes``, or if a wanted member is missing.
    """
    with ExitStack() as opened:
        members = _members(path, opened, max_bytes)
        names = [*members]
        if wanted and names != [path.name]:
            names = [_chosen(members, name) for name in wanted]
        elif len(names) != 1:
            listed = _listed(names)
            raise RefusedError(
                f"it is an archive of {listed}: `members` names some"
            )
        contents = list[Content]()
        spare = max_bytes
        for name in names:
            stream = opened.enter_context(members[name]())
            content = stream.read(spare + 1)
            spare -= _unpacked(content)
            if spare < 0:
                raise RefusedError(
                    f"{name}: more than {max_bytes} bytes in all (data.most_bytes)"
                )
            contents.append(Content(name, content))
    for name, content in contents:
        start = content[:4096].lstrip(MARK + b" \t\r\n").lower()
        if not start:
            raise RefusedError(f"{name} is empty")
        if start.startswith(WEB):
            raise RefusedError(f"{name} is a web page (HTML or XML), not data")
        _check_text(name, content)
    return contents


def _unpacked(content: bytes) -> int:
    """Bytes of a content, and of the arrays that a zip archive in it holds."""
    if not content.startswith(b"PK"):
        return len(content)
    with zipfile.ZipFile(BytesIO(content)) as zipped:
        return len(content) + sum(
            member.file_size for member in zipped.infolist()
        )


def _check_text(name: str, content: bytes) -> None:
    """Refuse a text that would take more than ``MEMORY`` or many minutes to read.

    Zipped arrays are no text, and of Parquet the cells count. Raises RefusedError.
    """
    if content.startswith(b"PK"):
        return
    if content.startswith(b"PAR1"):
        from pyarrow.parquet import read_metadata

        metadata = read_metadata(BytesIO(content))
        fields = map(metadata.schema.column, range(metadata.num_columns))
        kinds = [field.physical_type for field in fields]
        texts = kinds.count("BYTE_ARRAY")
        width = CELL * texts + NUMBER * (len(kinds) - texts)
        _check_memory(name, metadata.num_rows * width)
        return
    for start in range(0, len(content) - LINE, LINE):
        if content.find(b"\n", start, start + LINE) < 0:
            raise RefusedError(f"{name} has a line of more than {LINE} bytes")
    first_line = content[: content.find(b"\n")]
    columns = 1 + max(first_line.count(mark) for mark in SEPARATORS)
    if columns > MAX_COLUMNS:
        raise RefusedError(
            f"{name} has {columns} columns, expected at most {MAX_COLUMNS}: save it as "
            "LIBSVM text, or as an .npz file with X and y"
        )
    cells = content.count(b"\n") + sum(map(content.count, SEPARATORS))
    _check_memory(name, 3 * len(content) + CELL * cells)


def _check_memory(name: str, needed: int) -> None:
    if needed > MEMORY:
        raise RefusedError(
            f"{name} would take {needed / 2**30:.1f} GiB to read, expected at most "
            f"{MEMORY / 2**30:.0f}: save it as an .npz file with X and y"
        )


def _listed(names: Sequence[str]) -> str:
    """The first of some names, and the number of the others, in a short text."""
    listing = ", ".join(name[:80] for name in names[:MAX_LISTED]) or "nothing"
    remainder = len(names) - MAX_LISTED
    return f"{listing} and {remainder} more" if remainder > 0 else listing


def _members(path: Path, opened: ExitStack, max_bytes: int) -> dict[str, Any]:
    """What opens each member, by name; a file that is no archive is its only one.

    Raises RefusedError for an archive of more than ``MEMBERS`` files, or a tar archive
    of more than ``max_bytes``, all of which have to be read.
    """
    with open(path, "rb") as handle:
        module = PACKED.get(handle.read(3), io)
    if zipfile.is_zipfile(path):
        zipped = opened.enter_context(zipfile.ZipFile(path))
        zip_infos = [info for info in zipped.infolist() if not info.is_dir()]
        _check_count(len(zip_infos))
        names = [info.filename for info in zip_infos]
        if not all(name.endswith(".npy") for name in names):  # else it is .npz
            opening = [partial(zipped.open, info) for info in zip_infos]
            return dict(zip(names, opening, strict=True))
        return {path.name: partial(open, path, "rb")}
    file = opened.enter_context(module.open(path, "rb"))
    stream = _Limited(file, 2 * max_bytes + LINE)
    try:
        tar = opened.enter_context(tarfile.TarFile(fileobj=stream))
    except (tarfile.TarError, OSError, EOFError, *DAMAGED):
        tar = None  # what is damaged is refused where it is read
    if tar is not None:
        files = dict[str, Any]()
        spare = max_bytes
        for member in tar:
            spare -= member.size
            if spare < 0 or member.size < 0:  # nor does one give back
                raise RefusedError(
                    f"more than {max_bytes} bytes in all (data.most_bytes)"
                )
            if member.isfile():
                files[member.name] = partial(tar.extractfile, member)
                _check_count(len(files))
        return files
    return {path.name: partial(module.open, path, "rb")}


class _Limited:
    """A file of which so many bytes are read at most: headers may be of any size."""

    def __init__(self, file: Any, spare: int):
        self.file = file
        self.spare = spare

    def read(self, size: int) -> bytes:
        self.spare -= size
        if size < 0 or self.spare < 0:
            raise RefusedError("an archive with headers of no sensible size")
        return self.file.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


def _check_count(count: int) -> None:
    if count > MEMBERS:
        raise RefusedError(f"an archive of more than {MEMBERS} files")


def _chosen(members: dict[str, Any], name: str) -> str:
    alike = [
        member
        for member in members
        if name in (member, PurePosixPath(member).name)
    ]
    if len(alike) != 1:
        listed = _listed([*members])
        raise RefusedError(f"{len(alike)} members {name!r}; it holds {listed}")
    return alike[0]


def read_table(path: Path | str, **options: Any) -> pd.DataFrame:
    """Read one file by ``parse_table``, with its options; it may be packed.

    Raises RefusedError as that does, in one line that names the file.
    """
    path = Path(path)
    with refusing(path.name, "a table"):
        (file,) = unpack(path)
        return parse_table(file.content, **options)


def read_files(
    paths: Sequence[Path],
    reader: Reader,
    members: Sequence[str] = (),
    max_bytes: int = Data.most_bytes,
) -> Arrays:
    """Read the files of a data set, in the order of the configuration.

    ``members`` names the files in archives that are read.

    Returns canonical, checked X (n, p), an ndarray or a scipy CSC array, and y (n,).

    Raises RefusedError, in one line that names the file, if one is a web page, damaged,
    of another format, not finite, or if all hold more than ``max_bytes`` or would
    take more than ``MEMORY``.
    """
    names = ", ".join(path.name for path in paths)
    with refusing(names, reader.format), warnings.catch_warnings():
        # numpy's: no data, division by zero
        for category in (UserWarning, RuntimeWarning):
            warnings.simplefilter("error", category)
        files = list[Content]()
        spare = max_bytes
        for path in paths:
            files += unpack(path, members, spare)
            spare = max_bytes - sum(len(file.content) for file in files)
        arrays = FORMATS[reader.format](files, reader, **reader.options)
        X, y = canonical(*arrays)
        check_arrays(X, y)
        return X, y


def _one(files: Sequence[Content]) -> bytes:
    if len(files) != 1:
        raise RefusedError(f"expected one file, found {len(files)}")
    return files[0].content


# --- formats --------------------------------------------------------------------------


def read_csv(
    files: Sequence[Content],
    reader: Reader,
    *,
    separator: Mark | None = None,
    decimal: Literal[".", ","] = ".",
    header: Flag | None = None,
) -> Arrays:
    """Read one table by ``parse_table``, with its options."""
    return _declared(
        parse_table(_one(files), separator, decimal, header), reader
    )


def read_arff(files: Sequence[Content], reader: Reader) -> Arrays:
    """Read an ARFF file by liac-arff; nominal columns are numeric or listed.

    Of a sparse one, what a row omits is filled in: 0, or a column's first category.
    """
    import arff

    text = StringIO(_one(files).decode("utf-8-sig"), newline=None)
    lines = [line.strip() for line in text.getvalue().split("\n")]
    start = [line.lower()[:5] for line in lines].index("@data") + 1
    rows = enumerate(lines[start:], start + 1)
    used = pd.Index(
        [j for j, row in rows if row[:1] not in ("", "%")], name="line"
    )
    content = arff.load(text)
    if not content["data"]:
        raise RefusedError("the file has no rows")
    names = [name for name, _ in content["attributes"]]
    table = pd.DataFrame(content["data"], used, names, dtype=object)
    return _declared(typed(table), reader)


def _declared(table: pd.DataFrame, reader: Reader) -> Arrays:
    """Arrays of a table, as the reader declares."""
    keys = ("target", "positive", "drop", "missing", "categories")
    X, y, _ = table_arrays(
        table, **{key: getattr(reader, key) for key in keys}
    )
    return X, y


def read_libsvm(
    files: Sequence[Content],
    reader: Reader,
    *,
    n_features: Count | None = None,
    zero_based: Flag | Literal["auto"] = "auto",
    dense: Flag = False,
) -> Arrays:
    """Read LIBSVM text by scikit-learn with its options, several parts stacked."""
    from sklearn.datasets import load_svmlight_files

    options = {"n_features": n_features, "zero_based": zero_based}
    texts = [BytesIO(file.content.removeprefix(MARK)) for file in files]
    try:
        loaded = load_svmlight_files(texts, **options)
    except ValueError as error:
        fault = _libsvm_fault(files, options) or str(error)
        raise RefusedError(fault) from error
    if loaded[0].shape[1] > MAX_FEATURES:
        raise RefusedError(
            f"found the feature {loaded[0].shape[1]}, expected at most {MAX_FEATURES}"
        )
    rows = sum(X.shape[0] for X in loaded[0::2])
    needed = 24 * rows * loaded[0].shape[1]
    if dense and needed > MEMORY:
        raise RefusedError(
            f"{rows} x {loaded[0].shape[1]} dense numbers would take "
            f"{needed / 2**30:.1f} GiB, expected at most {MEMORY / 2**30:.0f}"
        )
    X = sparse.vstack(loaded[0::2], format="csc")
    y = np.concatenate(loaded[1::2])
    if not (np.isfinite(X.data).all() and np.isfinite(y).all()):
        raise RefusedError(_libsvm_fault(files, options))
    y = y if reader.positive is None else labels(pd.Series(y), reader.positive)
    return (X.toarray() if dense else X), y


def _libsvm_fault(files: Sequence[Content], options: dict[str, Any]) -> str:
    """File and line of the first error in LIBSVM text; empty if no line has one."""
    from sklearn.datasets import load_svmlight_file

    for name, content in files:
        for number, line in enumerate(
            content.removeprefix(MARK).splitlines(), 1
        ):
            if not line.partition(b"#")[0].strip():
                continue
            where = f"{name}, line {number}: "
            try:
                X, y = load_svmlight_file(BytesIO(line), **options)
            except ValueError as error:
                return f"{where}expected label, index:value: {str(error)[:80]}"
            if not (np.isfinite(X.data).all() and np.isfinite(y).all()):
                return f"{where}expected finite numbers"
    return ""


def read_cal_housing(files: Sequence[Content], reader: Reader) -> Arrays:
    """Read StatLib's cal_housing.data into scikit-learn's eight features and target.

    The features are MedInc, HouseAge, AveRooms, AveBedrms, Population, AveOccup,
    Latitude and Longitude, the target is the median value in 100 000 dollars.
    """
    table = np.loadtxt(BytesIO(_one(files)), delimiter=",", ndmin=2)
    longitude, latitude, age, *counts, income, house_value = table.T
    rooms, bedrooms, population, households = counts
    features = [income, age, rooms / households, bedrooms / households]
    features += [population, population / households, latitude, longitude]
    return np.column_stack(features), house_value / 100000.0


def read_nips2003(
    files: Sequence[Content],
    reader: Reader,
    *,
    n_features: Count | None = None,
) -> Arrays:
    """Read pairs of .data and .labels files of the NIPS 2003 challenge, stacked.

    With ``n_features``, a line lists the 1-based indices of the features that are 1, as
    LIBSVM does with values; without it, a line holds all values.
    """
    if len(files) % 2:
        raise RefusedError(
            f"nips2003 reads pairs of data and labels, found {len(files)}"
        )
    matrices = files[0::2]
    signs = files[1::2]
    if n_features is None:
        X = np.vstack(
            [np.loadtxt(BytesIO(file.content), ndmin=2) for file in matrices]
        )
        y = np.hstack(
            [np.loadtxt(BytesIO(file.content), ndmin=1) for file in signs]
        )
    else:
        texts = [
            _as_libsvm(*pair) for pair in zip(matrices, signs, strict=True)
        ]
        X, y = read_libsvm(
            texts, Reader(), n_features=n_features, zero_based=False
        )
    if not np.isin(y, (-1.0, 1.0)).all():
        raise RefusedError("labels other than -1 and 1")
    return X, y


def _as_libsvm(data: Content, signs: Content) -> Content:
    """Lists of features in LIBSVM's format."""
    lines = zip(signs.content.split(), data.content.splitlines(), strict=True)
    rows = (
        b" ".join([y, *(j + b":1" for j in line.split())]) for y, line in lines
    )
    return Content(data.name, b"\n".join(rows))


def read_arrays(files: Sequence[Content], reader: Reader) -> Arrays:
    """Read one .npz file with X and y."""
    content = _one(files)
    if not content.startswith(b"PK"):
        raise RefusedError(
            "expected an .npz file, or a reader: {format: csv, target: ...} or of "
            "another format"
        )
    loaded = np.load(BytesIO(content), allow_pickle=False)
    if {"X", "y"} - {*loaded}:
        raise RefusedError(
            f"expected the arrays X and y, found {', '.join(loaded)}"
        )
    try:
        return door.table(loaded["X"]).values, door.numbers(loaded["y"]).values
    except ValueError as error:
        raise RefusedError(str(error)) from error


FORMATS: dict[str, Callable[..., Arrays]] = {
    "arff": read_arff,
    "csv": read_csv,
    "libsvm": read_libsvm,
    "cal_housing": read_cal_housing,
    "nips2003": read_nips2003,
    "arrays": read_arrays,
}
