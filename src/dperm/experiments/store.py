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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

log = logging.getLogger(__name__)


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A name beside ``path``: renamed to it at the end, removed on failure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield beside
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; the kernel frees it however the process ends.

    Raises
    ------
    RuntimeError
        If another process writes there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RuntimeError(
                f"{folder}: another dperm process is writing here; wait or stop it"
            ) from None
        yield


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a Parquet file, whole or not at all."""
    with whole(path) as beside:
        table.to_parquet(beside, index=False)


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with whole(path) as beside:
        beside.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file, whole or not at all."""
    write_text(path, json.dumps(value, indent=1, sort_keys=True) + "\n")


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
    """A Parquet file; None, and it is gone, if it is missing or unreadable."""
    try:
        return pd.read_parquet(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:  # pyarrow's errors are of these kinds
        log.warning("%s is unreadable and dropped: %s", path, error)
        path.unlink(missing_ok=True)
        return None
