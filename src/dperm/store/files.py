"""Files that appear whole or not at all, one writer a folder, and lanes that are kept.

A finished block of lanes is a part, ``lanes/<context>-<points>.parquet``, where the
context is a digest of everything that determines the rows but the grid point. A stage
that is killed, or whose grid has grown, finds its parts again and computes the rest.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pandas as pd

log = logging.getLogger(__name__)
_NODE = platform.node() or "here"
_HELD: list[IO[str]] = []  # open for as long as the process lives


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
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, after whoever has it; the kernel frees it at any end.

    A job that outlived its Snakemake may hold it. When it is done its lanes are there,
    and whoever waited finds them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a+") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.warning("%s: waiting for another dperm process%s", folder, _who(handle))
            fcntl.flock(handle, fcntl.LOCK_EX)
        _sign(handle)
        try:
            yield
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)  # also for copies in forked processes


def refuse_second(name: str) -> None:
    """Take a lock for as long as this process lives.

    Raises
    ------
    RuntimeError
        If another process has it.
    """
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = path.open("a+")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        who = _who(handle)
        handle.close()
        raise RuntimeError(
            f"another pipeline runs in {path.absolute().parent.parent}{who}: wait for "
            "it, or run in another folder with --directory"
        ) from None
    _sign(handle)
    _HELD.append(handle)


def _sign(handle: IO[str]) -> None:
    handle.seek(0)
    handle.truncate()
    handle.write(f"{os.getpid()} on {_NODE}")
    handle.flush()


def _who(handle: IO[str]) -> str:
    handle.seek(0)
    owner = handle.read(200)
    return f" (process {owner})" if owner else ""


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
        return pd.read_parquet(path, page_checksum_verification=True)
    except (OSError, ValueError) as error:  # pyarrow's errors are of these kinds
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the system's: missing, not permitted, a failing disk
        reason = " ".join(str(error).split())[:200]
        raise ValueError(
            f"{path} is damaged ({reason}): delete it and run again; finished lanes "
            "are kept"
        ) from error


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with whole(path) as beside:
        beside.write_text(text, encoding="utf-8")


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


def digest(value: Any) -> str:
    """A short SHA-256 of a JSON value."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


class Parts:
    """The parts of one (paper, problem, solver)."""

    def __init__(self, folder: Path):
        self.folder = folder / "lanes"

    def read(self, context: str) -> pd.DataFrame | None:
        """All rows of a context, or None; an unreadable part is dropped."""
        tables = [
            table
            for path in sorted(self.folder.glob(f"{context}-*.parquet"))
            if (table := read_or_drop(path)) is not None
        ]
        return pd.concat(tables, ignore_index=True) if tables else None

    def write(self, context: str, rows: pd.DataFrame) -> None:
        """Keep the rows of a finished block."""
        points = rows[["step", "clip"]].drop_duplicates().to_numpy().tolist()
        write_table(self.folder / f"{context}-{digest(points)}.parquet", rows)


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
