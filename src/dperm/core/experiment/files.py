"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from dperm.core.experiment import locks

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)
DIGITS = 10  # of a real number in a CSV file
_NODE = platform.node() or "here"


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A name beside ``path``: renamed to it at the end, removed on failure.

    What a process of this machine that has died left beside ``path`` is removed.

    Raises
    ------
    OSError
        If it cannot be written; the text names ``path``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _tidy(path)
    beside = path.with_name(f".{path.stem}.{_NODE}.{os.getpid()}{path.suffix}")
    try:
        yield beside
        beside.replace(path)
    except OSError as error:
        raise OSError(f"{path} cannot be written: {error}") from error
    finally:
        beside.unlink(missing_ok=True)


def _tidy(path: Path) -> None:
    start = f".{path.stem}.{_NODE}."
    for beside in path.parent.glob(f"{start}*{path.suffix}"):
        owner = beside.name.removeprefix(start).removesuffix(path.suffix)
        if owner.isdigit() and not _alive(int(owner)):
            beside.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True


@contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder that is replaced as a whole; the lock lies beside it.

    What a process that has died left beside the folder is removed, and the folder put
    back if it died between taking the old one away and putting the new one there.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locks.held(folder.parent / f".{folder.name}.lock", folder):
        _tidy_folder(folder)
        yield


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Fill a folder beside the one meant; it takes its place when all is written.

    Parameters
    ----------
    folder : Path
        Replaced as a whole. The caller is its ``sole_writer``.

    Yields
    ------
    Path
        Where to write. Removed if the block raises.
    """
    new = _sibling(folder, "new")
    new.mkdir(parents=True)
    try:
        yield new
        if folder.exists():
            folder.replace(_sibling(folder, "old"))
        new.replace(folder)
    finally:
        _tidy_folder(folder)


def _sibling(folder: Path, suffix: str) -> Path:
    return folder.with_name(f".{folder.name}.{os.getpid()}.{suffix}")


def _tidy_folder(folder: Path) -> None:
    """Clear what lies beside a folder; put the old one back if no new one came."""
    for old in folder.parent.glob(f".{folder.name}.*.old"):
        if folder.exists():
            shutil.rmtree(old)
        else:
            old.replace(folder)
    for new in folder.parent.glob(f".{folder.name}.*.new"):
        shutil.rmtree(new)


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a Parquet file, whole or not at all."""
    with whole(path) as beside:
        table.to_parquet(beside, index=False, write_page_checksum=True)


def read_table(path: Path) -> pd.DataFrame:
    """Read a Parquet file and check its checksums.

    Raises
    ------
    FileNotFoundError
        If it is not there.
    ValueError
        If it is damaged.
    """
    try:
        return unthreaded(path)
    except (OSError, ValueError) as error:  # pyarrow's errors are of these kinds
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the system's: missing, not permitted, a failing disk
        reason = " ".join(str(error).split())[:200]
        raise ValueError(
            f"{path} is damaged ({reason}): delete it and run again; finished lanes "
            "are kept"
        ) from error


def unthreaded(source: Path | BinaryIO) -> pd.DataFrame:
    """Read a Parquet file without Arrow's threads.

    One that is still alive when Python exits aborts the process (3 of 40 did under
    load), and the results of its job with it.
    """
    from pyarrow.parquet import ParquetFile  # half a second not every command needs

    options = {"page_checksum_verification": True, "pre_buffer": False}
    with ParquetFile(source, **options) as stored:
        return stored.read(use_threads=False).to_pandas(use_threads=False)


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with whole(path) as beside:
        beside.write_text(text, encoding="utf-8")


def write_csv(path: Path, table: pd.DataFrame) -> None:
    """Write a CSV file of ``DIGITS`` digits, whole or not at all.

    Another machine's last bits are none of its digits, but where a number lies between
    two neighbours: then they differ by one unit of the last.
    """

    def cut(cell: Any) -> Any:  # of a column that holds texts or gaps as well
        is_number = isinstance(cell, float) and cell == cell
        return f"{cell:.{DIGITS}g}" if is_number else cell

    mixed = table.select_dtypes(include="object").columns
    shown = table.assign(**{name: table[name].map(cut) for name in mixed})
    write_text(path, shown.to_csv(index=False, float_format=f"%.{DIGITS}g"))


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file, whole or not at all."""
    write_text(path, json.dumps(value, indent=1, sort_keys=True) + "\n")


def read_json(path: Path, remedy: str = "delete it and run again") -> Any:
    """Read a JSON file.

    Raises
    ------
    FileNotFoundError
        If it is not there.
    ValueError
        If it is damaged; the text names it and says ``remedy``.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error}): {remedy}") from error


def known_json(path: Path) -> dict[str, Any] | None:
    """Read a JSON dictionary; None if the file is missing, damaged or another value."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def digest(value: Any) -> str:
    """A short SHA-256 of a JSON value."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def file_digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def read_or_drop(path: Path) -> pd.DataFrame | None:
    """A Parquet file; None, and it is gone, if it is missing or damaged."""
    try:
        return read_table(path)
    except FileNotFoundError:
        return None
    except ValueError as error:
        log.warning("dropped: %s", error)
        path.unlink(missing_ok=True)
        return None
