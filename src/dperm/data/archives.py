"""Unpacked downloads.

Only regular files are unpacked, and never outside the target folder.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any

from dperm.core.experiment.schema import Data
from dperm.data.arrays import RefusedError

BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError)
Opener = Callable[[], IO[bytes] | None]


def unpack(
    path: Path,
    folder: Path,
    wanted: Sequence[str] = (),
    key: str = "files",
    most: int = Data.most_bytes,
) -> list[Path]:
    """Unpack a .gz, .bz2, .zip or tar file; leave any other file as it is.

    A ZIP archive of .npy files is a file of arrays, which numpy reads itself. It is
    left as it is unless members are requested.

    Parameters
    ----------
    path : Path
        The file. Its first bytes decide its type, not its name.
    folder : Path
        Where unpacked files are written, under their base names.
    wanted : sequence of str
        Members to take out of an archive, by path or base name, in this order.
        May be empty if the archive holds one file.
    key : str
        The source's key that names the members; for messages.
    most : int
        Most bytes of one unpacked file.

    Raises
    ------
    RefusedError
        If it is damaged, has unsafe members, or lacks a wanted one.
    """
    try:
        with _refuse_broken(path):
            path = _decompress(path, folder, most)
            if zipfile.is_zipfile(path):
                with zipfile.ZipFile(path) as archive:
                    zipped = _zip_members(archive)
                    if not wanted and all(name.endswith(".npy") for name in zipped):
                        return [path]
                    return _take(zipped, folder, wanted, key, most)
            if tarfile.is_tarfile(path):
                with tarfile.open(path) as tar:
                    return _take(_tar_members(tar), folder, wanted, key, most)
    except RuntimeError as error:  # an encrypted zip
        raise RefusedError(f"{path.name} cannot be unpacked: {error}") from error
    return [path]


@contextmanager
def _refuse_broken(path: Path) -> Iterator[None]:
    try:
        yield
    except (*BROKEN, EOFError, gzip.BadGzipFile) as error:
        raise RefusedError(f"{path.name} is a damaged archive: {error}") from error
    except OSError as error:
        if error.errno is None:  # bz2 has no own exception
            raise RefusedError(f"{path.name} is a damaged archive: {error}") from error
        raise


def _decompress(path: Path, folder: Path, most: int) -> Path:
    with open(path, "rb") as handle:
        magic = handle.read(3)
    if magic[:2] != b"\x1f\x8b" and magic != b"BZh":
        return path
    is_named = path.suffix in (".gz", ".bz2", ".tgz")
    target = folder / (path.stem if is_named else f"{path.name}.unpacked")
    with bz2.open(path) if magic == b"BZh" else gzip.open(path) as stream:
        return _copy(stream, target, most)


def _tar_members(archive: tarfile.TarFile) -> dict[str, Opener]:
    every = archive.getmembers()
    odd = [one.name for one in every if not (one.isreg() or one.isdir())]
    _check([one.name for one in every], odd)
    return {one.name: partial(archive.extractfile, one) for one in every if one.isreg()}


def _zip_members(archive: zipfile.ZipFile) -> dict[str, Opener]:
    every = archive.infolist()
    odd = [one.filename for one in every if stat.S_ISLNK(one.external_attr >> 16)]
    _check([one.filename for one in every], odd)
    return {
        one.filename: partial(archive.open, one) for one in every if not one.is_dir()
    }


def _check(names: Sequence[str], odd: Sequence[str]) -> None:
    """Refuse members that point outside the archive, or are neither file nor folder."""
    for name in names:
        path = PurePosixPath(name.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts or ":" in name:
            raise RefusedError(f"member {name!r} points outside the archive")
    for name in odd:
        raise RefusedError(f"member {name!r} is not a regular file")


def _take(
    members: dict[str, Opener],
    folder: Path,
    wanted: Sequence[str],
    key: str,
    most: int,
) -> list[Path]:
    if not wanted and len(members) != 1:
        raise RefusedError(
            f"the archive holds {', '.join(sorted(members)) or 'nothing'}: "
            f"name the wanted members under `{key}`"
        )
    return [_extract(members, name, folder, most) for name in wanted or members]


def _extract(members: dict[str, Opener], name: str, folder: Path, most: int) -> Path:
    alike = [m for m in members if name in (m, PurePosixPath(m).name)]
    if len(alike) != 1:
        held = ", ".join(sorted(members)) or "nothing"
        raise RefusedError(
            f"the archive has {len(alike)} members {name!r}; it holds {held}"
        )
    stream = members[alike[0]]()
    assert stream is not None  # regular files have one
    target = folder / "unpacked" / PurePosixPath(name).name
    with stream:
        return _copy(stream, target, most)


def _copy(stream: Any, target: Path, most: int) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with open(target, "wb") as out:
        while chunk := stream.read(1 << 20):
            written += len(chunk)
            if written > most:
                raise RefusedError(f"{target.name} unpacks to more than {most} bytes")
            out.write(chunk)
    return target
