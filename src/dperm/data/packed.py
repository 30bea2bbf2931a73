"""Files as they come: damaged ones are refused in one line, packed ones unpacked."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from dperm.core.experiment.schema import Data
from dperm.data.arrays import RefusedError

WEB = (b"<!doctype", b"<html", b"<head", b"<?xml")
PACKED: dict[bytes, Any] = {b"\x1f\x8b\x08": gzip, b"BZh": bz2, b"\xfd7z": lzma}


@contextmanager
def refusing(names: str, kind: str) -> Iterator[None]:
    """Turn what a parser raises into a ``RefusedError`` of one line with names.

    Errors of the system, such as a full disk, pass.
    """
    try:
        yield
    except RefusedError as error:  # a quotation may hold line ends
        text = " ".join(str(error).split())
        is_named = any(text.startswith(name) for name in names.split(", "))
        raise RefusedError(text if is_named else f"{names}: {text}") from error
    except UnicodeError as error:
        raise RefusedError(f"{names} is not text in UTF-8: save it as UTF-8") from error
    except Exception as error:  # parsers raise anything on damaged files
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the system's: not permitted, a full disk
        try:
            text = " ".join(str(error).split())[:300]
        except Exception:  # arff formats its messages with the content of the file
            text = "no message"
        reason = f"{type(error).__name__}: {text}"
        raise RefusedError(f"{names} cannot be read as {kind}: {reason}") from error


def check_start(path: Path) -> None:
    """Refuse an empty file, and a web page in place of data."""
    with open(path, "rb") as handle:
        start = handle.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if not start:
        raise RefusedError(f"{path.name} is empty")
    if start.startswith(WEB):
        raise RefusedError(f"{path.name} is a web page (HTML or XML), not data")


@contextmanager
def members(path: Path) -> Iterator[dict[str, Callable[[], Any]]]:
    """What opens each packed file, by its name; nothing if ``path`` is not packed.

    Its first bytes tell how it is packed. One that is packed by itself, not in an
    archive, has no name. Raises RefusedError if it is damaged, or an
    archive with links, devices or names that point outside.
    """
    if path.suffix == ".npz":
        yield {}
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as zipped:
            listed = [one for one in zipped.infolist() if not one.is_dir()]
            _check_names(one.filename for one in listed)
            yield {one.filename: partial(zipped.open, one) for one in listed}
    elif tarfile.is_tarfile(path):
        with tarfile.open(path) as archive:
            held = [one for one in archive if not one.isdir()]
            _check_names(one.name if one.isfile() else ".." for one in held)
            yield {one.name: partial(archive.extractfile, one) for one in held}
    else:
        with open(path, "rb") as handle:
            module = PACKED.get(handle.read(3))
        yield {"": partial(module.open, path)} if module else {}


def _check_names(names: Iterator[str]) -> None:
    for name in names:
        inside = PurePosixPath(name.replace("\\", "/"))
        if inside.is_absolute() or ".." in inside.parts or ":" in name:
            raise RefusedError("it has a link, a device or a name that points outside")


def unpack(
    path: Path, folder: Path, wanted: Sequence[str] = (), most: int = Data.most_bytes
) -> list[Path]:
    """Unpack a file into a folder; leave it if it is not packed.

    ``wanted`` are members of an archive, by path or base name, in this order; it may
    be empty if the archive holds one file.

    Raises RefusedError if it is damaged, unpacks to more than ``most`` bytes, or lacks
    a wanted member.
    """
    unpacked, left = [], most
    with refusing(path.name, "an archive"), members(path) as packed:
        if not packed:
            return [path]
        wanted = [""] if "" in packed else wanted
        if not wanted and len(packed) != 1:
            raise RefusedError(
                f"it is an archive of {', '.join(packed) or 'nothing'}: name the "
                "wanted members in the source"
            )
        for position, name in enumerate(wanted or packed):
            alike = [one for one in packed if name in (one, PurePosixPath(one).name)]
            if len(alike) != 1:
                held = ", ".join(packed)
                raise RefusedError(f"{len(alike)} members {name!r}; it holds {held}")
            target = (
                folder / str(position) / (PurePosixPath(alike[0]).name or path.stem)
            )
            target.parent.mkdir(parents=True, exist_ok=True)
            with packed[alike[0]]() as stream, open(target, "wb") as out:
                while chunk := stream.read(1 << 20):
                    left -= len(chunk)
                    if left < 0:
                        raise RefusedError(
                            f"it unpacks to more than {most} bytes (data.most_bytes)"
                        )
                    out.write(chunk)
            unpacked.append(target)
    return unpacked
