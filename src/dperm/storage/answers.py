"""Answers that are kept from run to run in the user's folder of caches.

An answer follows from the arguments of a function alone. Its file is named by a digest
of them, of the source of the function's module and of the version of Python, so that
nothing in the folder can be outdated. A file that is damaged or cannot be read counts
as none; where none can be written, every process finds its answers itself.
"""

from __future__ import annotations

import functools
import hashlib
import marshal
import os
import sys
import tempfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

IN_KEYS = "nothing"  # the answers are those of the functions
MAX_FILES = 4000  # files in the folder; older ones are removed


class StoredAnswers:
    """A function of plain values with a plain answer, which is kept.

    It calls only what its module holds, and what Python's own library does.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        """Read the source of the function's module, which was just imported."""
        self.function = function
        source = Path(function.__code__.co_filename).read_bytes()
        self.made_by = (
            f"{sys.version}\n{function.__qualname__}\n".encode() + source
        )

    def __call__(self, *arguments: Any) -> Any:
        """The answer, from the folder if it is there."""
        name = hashlib.sha256(
            self.made_by + repr(arguments).encode()
        ).hexdigest()
        folder = _folder()
        answer = folder and _read(folder / name)
        if answer is None:
            answer = self.function(*arguments)
            if folder is not None:
                _write(folder / name, answer)
        return answer


@functools.cache
def _folder() -> Path | None:
    """The folder, made if need be and cleared of its oldest files; None without one."""
    from dperm.numerics.kernels import cache_folder  # imports Numba

    try:
        folder = cache_folder() / "dperm" / "code"
        folder.mkdir(parents=True, exist_ok=True)
        files = [*folder.iterdir()]
        if len(files) > MAX_FILES:
            files.sort(key=lambda path: path.stat().st_mtime)
            for path in files[: -MAX_FILES // 2]:
                path.unlink()
    except (
        OSError,
        RuntimeError,
    ):  # read-only, cleared by another, or without a home
        return None
    return folder


def _read(path: Path) -> Any:
    """The answer in a file; None if there is no file, or its content was changed."""
    try:
        stored = path.read_bytes()
    except OSError:
        return None
    signature = stored[: hashlib.sha256().digest_size]
    content = stored[len(signature) :]
    if _signed(path.name, content) != signature:
        return None
    return marshal.loads(zlib.decompress(content))  # noqa: S302  # as we wrote it


def _write(path: Path, answer: Any) -> None:
    """Write an answer, whole or not at all, beside others who write the same."""
    content = zlib.compress(marshal.dumps(answer), 1)
    with suppress(OSError):
        number, beside = tempfile.mkstemp(dir=path.parent)
        try:
            with open(number, "wb") as file:
                file.write(_signed(path.name, content) + content)
            os.replace(beside, path)  # noqa: PTH105
        except OSError:
            Path(beside).unlink(missing_ok=True)


def _signed(name: str, content: bytes) -> bytes:
    return hashlib.sha256(name.encode() + content).digest()
