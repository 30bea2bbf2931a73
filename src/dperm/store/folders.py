"""Locks that name their process, and folders written whole.

The kernel releases a lock when its process ends, however it ends.
"""

from __future__ import annotations

import logging
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)
_HELD: list[Any] = []  # locks held until the process ends
_NODE = platform.node() or "here"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, waiting for any other process that holds it.

    A job that outlived its Snakemake may hold it. When that job ends, its lanes are
    stored, and the waiting job reuses them.
    """
    with _held(folder / ".lock", folder):
        yield


@contextmanager
def _held(path: Path, what: Path) -> Iterator[None]:
    """Hold the lock of a file, waiting for other processes; it guards ``what``."""
    try:
        lock = _taken(path)
    except BlockingIOError:
        log.warning("%s: waiting for another dperm process%s", what, _who(path))
        lock = _taken(path, timeout=-1)
    try:
        yield
    finally:
        lock.release()


def _taken(path: Path, timeout: float = 0) -> Any:
    """The lock of a file, signed; BlockingIOError if another process holds it."""
    from filelock import FileLock, Timeout  # an extra, not needed by fits

    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=timeout)
    except Timeout as error:
        raise BlockingIOError from error
    path.write_text(f"{os.getpid()} on {_NODE}", encoding="utf-8")
    return lock


def _who(path: Path) -> str:
    owner = path.read_text(encoding="utf-8")[:200]
    return f" (process {owner})" if owner else ""


def refuse_second(name: str) -> None:
    """Take a lock until this process ends.

    Raises
    ------
    RuntimeError
        If another process holds the lock.
    """
    path = Path(name)
    try:
        _HELD.append(_taken(path))
    except BlockingIOError:
        raise RuntimeError(
            f"another pipeline runs in {path.absolute().parent.parent}{_who(path)}: "
            "wait for it, or run in another folder with --directory"
        ) from None


# --- folders --------------------------------------------------------------------------


@contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder that is replaced as a whole; the lock lies next to it.

    What a dead process left is removed. If it died between moving the old folder away
    and moving the new one in, the old folder is restored.
    """
    with _held(folder.parent / f".{folder.name}.lock", folder):
        _tidy(folder)
        yield


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Fill a temporary folder that replaces ``folder`` when the block ends.

    Parameters
    ----------
    folder : Path
        Replaced as a whole. The caller is its ``sole_writer``.

    Yields
    ------
    Path
        The temporary folder; removed if the block raises.
    """
    new, old = _beside(folder)
    new.mkdir(parents=True)
    try:
        yield new
        if folder.exists():
            folder.replace(old)
        new.replace(folder)
    finally:
        _tidy(folder)


def _beside(folder: Path) -> tuple[Path, Path]:
    """Names of the new folder and of the old one during a replacement."""
    name = f".{folder.name}"
    return folder.with_name(f"{name}.new"), folder.with_name(f"{name}.old")


def _tidy(folder: Path) -> None:
    """Remove both; restore the old folder if no new one replaced it."""
    new, old = _beside(folder)
    if old.exists() and not folder.exists():
        old.replace(folder)
    for left in (new, old):
        shutil.rmtree(left, ignore_errors=True)
