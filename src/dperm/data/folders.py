"""Arrays on disk: folders that appear whole or not at all."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from dperm.data.arrays import array_parts


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder; the kernel frees it if the process dies."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / f".{folder.name}.lock", "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        _tidy(folder)
        yield


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Fill a folder beside the one meant; it takes its place when all is written.

    Parameters
    ----------
    folder : Path
        Replaced as a whole. The caller holds its lock.

    Yields
    ------
    Path
        Where to write. Removed if the block raises.
    """
    new = _beside(folder, "new")
    new.mkdir(parents=True)
    try:
        yield new
        if folder.exists():
            folder.replace(_beside(folder, "old"))
        new.replace(folder)
    finally:
        _tidy(folder)


def _beside(folder: Path, suffix: str) -> Path:
    return folder.with_name(f".{folder.name}.{os.getpid()}.{suffix}")


def _tidy(folder: Path) -> None:
    """Clear what lies beside a folder; put the old one back if no new one came."""
    for old in folder.parent.glob(f".{folder.name}.*.old"):
        if folder.exists():
            shutil.rmtree(old)
        else:
            old.replace(folder)
    for new in folder.parent.glob(f".{folder.name}.*.new"):
        shutil.rmtree(new)


def save_arrays(folder: Path, X: Any, y: np.ndarray) -> None:
    """Write X (n, p), dense in its own order or as CSC parts, and y (n,) as .npy."""
    for name, part in (*array_parts(X).items(), ("y", y)):
        np.save(folder / f"{name}.npy", part)


def load_arrays(folder: Path) -> tuple[Any, np.ndarray]:
    """Read what ``save_arrays`` wrote.

    Returns
    -------
    X : ndarray or scipy CSC array, shape (n, p)
    y : ndarray, shape (n,)

    Raises
    ------
    OSError, ValueError, EOFError
        If a file is missing or damaged.
    """
    y = _load(folder, "y")
    if (folder / "X.npy").exists():
        return _load(folder, "X"), y
    parts = [_load(folder, f"X_{name}") for name in ("data", "indices", "indptr")]
    shape = tuple(int(size) for size in _load(folder, "X_shape"))
    return sparse.csc_array(tuple(parts), shape=shape), y


def _load(folder: Path, name: str) -> np.ndarray:
    return np.load(folder / f"{name}.npy", mmap_mode=None, allow_pickle=False)


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a dictionary as indented JSON."""
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def read_json(path: Path) -> dict[str, Any] | None:
    """Read a JSON dictionary; None when the file is missing or damaged."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
