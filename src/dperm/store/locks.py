"""Locks of folders and of the pipeline; each says which process has it."""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)
_HELD: list[Any] = []  # for as long as the process lives
_NODE = platform.node() or "here"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, after whoever has it.

    A job that outlived its Snakemake may hold it. When it is done its lanes are there,
    and whoever waited finds them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with held(folder / ".lock", folder):
        yield


@contextmanager
def held(path: Path, what: Path) -> Iterator[None]:
    """Hold the lock in a file, after whoever has it; ``what`` is what it guards."""
    from filelock import FileLock, Timeout  # which a fit needs not

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
    """Take a lock for as long as this process lives.

    Raises
    ------
    RuntimeError
        If another process has it.
    """
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    from filelock import FileLock, Timeout  # which a fit needs not

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
