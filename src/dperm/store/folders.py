"""Locks that say which process has them, folders that appear whole, archives."""

from __future__ import annotations

import functools
import logging
import os
import platform
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dperm.core.experiment.files import file_digest

log = logging.getLogger(__name__)
_HELD: list[Any] = []  # for as long as the process lives
_NODE = platform.node() or "here"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same bytes whenever it is packed


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


# --- folders and archives -----------------------------------------------------------


@contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder that is replaced as a whole; the lock lies beside it.

    What a process that has died left beside the folder is removed, and the folder put
    back if it died between taking the old one away and putting the new one there.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with held(folder.parent / f".{folder.name}.lock", folder):
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


def stamp(path: Path) -> tuple[int, ...]:
    """What changes with a file."""
    at = path.stat()
    return at.st_mtime_ns, at.st_ctime_ns, at.st_size, at.st_ino


def digest_of(path: Path) -> str:
    """The SHA-256 of a file, which is read once in each state: many may ask for it."""
    return _digest_at(path.absolute(), *stamp(path))


@functools.lru_cache(4096)
def _digest_at(path: Path, *_: int) -> str:
    return file_digest(path)


def write_archive(
    path: Path, heads: Mapping[str, str], files: Mapping[str, Path]
) -> None:
    """Write a ZIP archive; the same files give the same bytes.

    Parameters
    ----------
    heads : mapping of str to str
        The first members: their names, and their texts.
    files : mapping of str to Path
        The other members by name, in this order.
    """
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in heads.items():
            archive.writestr(_member(name), text)
        for name, file in files.items():
            with (
                open(file, "rb") as source,
                archive.open(_member(name), "w", force_zip64=True) as target,
            ):
                shutil.copyfileobj(source, target, 1 << 20)


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    return info
