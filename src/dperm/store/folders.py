"""Locks that name their process.

The kernel releases a lock when its process ends, however it ends.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dperm.core.experiment.files import NODE

log = logging.getLogger(__name__)
_HELD: list[Any] = []  # locks held until the process ends


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, waiting for any other process that holds it.

    A job that outlived its Snakemake may hold it. When that job ends, its lanes are
    stored, and the waiting job reuses them.
    """
    path = folder / ".lock"
    lock = _taken(path)
    if lock is None:
        log.warning("%s: waiting for another dperm process%s", folder, _who(path))
        lock = _taken(path, timeout=-1)
    try:
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
    lock = _taken(path)
    if lock is None:
        raise RuntimeError(
            f"another pipeline runs in {path.absolute().parent.parent}{_who(path)}: "
            "wait for it, or run in another folder with --directory"
        )
    _HELD.append(lock)


def _taken(path: Path, timeout: float = 0) -> Any:
    """The lock of a file, signed; None if another process holds it."""
    from filelock import FileLock, Timeout  # an extra, not needed by fits

    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=timeout)
    except Timeout:
        return None
    path.write_text(f"{os.getpid()} on {NODE}", encoding="utf-8")
    return lock


def _who(path: Path) -> str:
    owner = path.read_text(encoding="utf-8")[:200]
    return f" (process {owner})" if owner else ""
