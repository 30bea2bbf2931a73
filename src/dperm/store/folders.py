"""Folders that appear whole or not at all, and archives of files."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dperm.store.locks import held

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same bytes whenever it is packed


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
