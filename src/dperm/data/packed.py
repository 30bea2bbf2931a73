"""Files as they come: packed ones are unpacked, damaged ones refused in one line.

Whatever an archive holds is read into memory: nothing in it is written anywhere.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from dperm.core.experiment.schema import Data
from dperm.data.arrays import RefusedError

WEB = (b"<!doctype", b"<html", b"<head", b"<?xml")
PACKED: dict[bytes, Any] = {b"\x1f\x8b\x08": gzip, b"BZh": bz2, b"\xfd7z": lzma}


class Content(NamedTuple):
    """What a file holds, unpacked."""

    name: str
    content: bytes


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


def unpack(
    path: Path, wanted: Sequence[str] = (), most: int = Data.most_bytes
) -> list[Content]:
    """The content of a file; of an archive, those of its wanted members.

    Its first bytes tell how it is packed (gzip, bzip2, xz, zip, tar). ``wanted`` are
    members by path or base name, in this order; it may be empty if there is only one.

    Raises RefusedError if a content is empty, a web page, damaged or of more than
    ``most`` bytes, or if a wanted member is missing.
    """
    with ExitStack() as opened:
        held = _members(path, opened)
        names = [*held]
        if wanted and names != [path.name]:
            names = [_chosen(held, name) for name in wanted]
        elif len(names) != 1:
            listed = ", ".join(names) or "nothing"
            raise RefusedError(f"it is an archive of {listed}: `members` names some")
        streams = {name: opened.enter_context(held[name]()) for name in names}
        found = [Content(name, one.read(most + 1)) for name, one in streams.items()]
    for name, content in found:
        start = content[:4096].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
        if not start:
            raise RefusedError(f"{name} is empty")
        if start.startswith(WEB):
            raise RefusedError(f"{name} is a web page (HTML or XML), not data")
        if len(content) > most:
            raise RefusedError(f"{name} has more than {most} bytes (data.most_bytes)")
    return found


def _members(path: Path, opened: ExitStack) -> dict[str, Any]:
    """What opens each member, by name; a file that is no archive is its only one."""
    with open(path, "rb") as handle:
        module = PACKED.get(handle.read(3), io)
    if zipfile.is_zipfile(path):
        zipped = opened.enter_context(zipfile.ZipFile(path))
        held = [one for one in zipped.infolist() if not one.is_dir()]
        if not all(one.filename.endswith(".npy") for one in held):  # else it is .npz
            return {one.filename: partial(zipped.open, one) for one in held}
    elif tarfile.is_tarfile(path):
        tar = opened.enter_context(tarfile.TarFile.open(path))
        return {one.name: partial(tar.extractfile, one) for one in tar if one.isfile()}
    return {path.name: partial(module.open, path, "rb")}


def _chosen(held: dict[str, Any], name: str) -> str:
    alike = [one for one in held if name in (one, PurePosixPath(one).name)]
    if len(alike) != 1:
        raise RefusedError(f"{len(alike)} members {name!r}; it holds {', '.join(held)}")
    return alike[0]
