"""Locks that name their process, and folders written whole.

The kernel releases a lock when its process ends, however it ends.
"""

from __future__ import annotations

import functools
import logging
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dperm.core.experiment.files import file_digest

log = logging.getLogger(__name__)
_HELD: list[Any] = []  # locks held until the process ends
_NODE = platform.node() or "here"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, waiting for any other process that holds it.

    A job that outlived its Snakemake may hold it. When that job ends, its lanes are
    stored, and the waiting job reuses them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with held(folder / ".lock", folder):
        yield


@contextmanager
def held(path: Path, what: Path) -> Iterator[None]:
    """Hold the lock of a file, waiting for other processes; it guards ``what``."""
    from filelock import FileLock, Timeout  # an extra, not needed by fits

    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        log.warning("%s: waiting for another dperm process%s", what, _who(path))
        lock.acquire()
    try:
        _sign(path)
        yield
    finally:
        lock.release()


def refuse_second(name: str) -> None:
    """Take a lock until this process ends.

    Raises
    ------
    RuntimeError
        If another process holds the lock.
    """
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    from filelock import FileLock, Timeout  # an extra, not needed by fits

    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise RuntimeError(
            f"another pipeline runs in {path.absolute().parent.parent}{_who(path)}: "
            "wait for it, or run in another folder with --directory"
        ) from None
    _sign(path)
    _HELD.append(lock)


def _sign(path: Path) -> None:
    path.write_text(f"{os.getpid()} on {_NODE}", encoding="utf-8")


def _who(path: Path) -> str:
    owner = path.read_text(encoding="utf-8")[:200]
    return f" (process {owner})" if owner else ""


# --- folders --------------------------------------------------------------------------


@contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder that is replaced as a whole; the lock lies next to it.

    Temporary folders of dead processes are removed. If one died between moving the old
    folder away and moving the new one in, the old folder is restored.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with held(folder.parent / f".{folder.name}.lock", folder):
        _tidy_folder(folder)
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
    """Remove temporary folders; restore the old folder if no new one replaced it."""
    for old in folder.parent.glob(f".{folder.name}.*.old"):
        if folder.exists():
            shutil.rmtree(old)
        else:
            old.replace(folder)
    for new in folder.parent.glob(f".{folder.name}.*.new"):
        shutil.rmtree(new)


def stamp(path: Path) -> tuple[int, ...]:
    """Times, size and inode of a file, which change when it is written."""
    at = path.stat()
    return at.st_mtime_ns, at.st_ctime_ns, at.st_size, at.st_ino


def digest_of(path: Path) -> str:
    """The SHA-256 of a file, cached until the file changes."""
    return _digest_at(path.absolute(), *stamp(path))


@functools.lru_cache(4096)
def _digest_at(path: Path, *_: int) -> str:
    return file_digest(path)
