"""Downloads: files by pooch, data sets of OpenML by the package openml; unpacking."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import queue
import re
import shutil
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from dperm.core.experiment.schema import Data
from dperm.data.arrays import RefusedError, SourceError
from dperm.data.tables import refusing

CHUNK = 1 << 14  # bytes between two looks at the limits
PACKED: dict[bytes, Any] = {b"\x1f\x8b\x08": gzip, b"BZh": bz2, b"\xfd7z": lzma}


def download(url: str, folder: Path, data: Data) -> Path:
    """Download one file by pooch, whole or not at all, within the limits of ``data``.

    Raises SourceError if the file is not available.
    """
    import pooch
    from requests.exceptions import RequestException

    name = re.sub(r"[^A-Za-z0-9._-]", "_", urlsplit(url).path.rsplit("/", 1)[-1])
    name = name.lstrip(".") or "download"
    by = pooch.HTTPDownloader(_Limits(data), CHUNK, timeout=data.timeout)
    site = pooch.create(
        folder,
        "",
        registry={name: None},
        urls={name: url},
        retry_if_failed=data.retries,
    )
    try:
        return Path(site.fetch(name, downloader=by))
    except RequestException as error:
        raise SourceError(_cause(error)) from error


class _Limits:
    """Ends a download that is too large or takes too long; to pooch it is a bar."""

    def __init__(self, data: Data):
        self.data, self.end = data, time.monotonic() + data.most_seconds
        self.total = self.bytes = 0

    def update(self, count: int) -> None:
        """Count some bytes."""
        self.bytes += count
        most, seconds = self.data.most_bytes, self.data.most_seconds
        if max(self.total, self.bytes - CHUNK) > most:
            raise SourceError(f"more than {most} bytes (data.most_bytes)")
        if time.monotonic() > self.end:
            raise SourceError(f"not complete after {seconds:g} s (data.most_seconds)")

    def reset(self) -> None:
        """Begin to count again."""
        self.bytes = 0

    def close(self) -> None:
        """Do nothing: the download is complete."""


def _cause(error: Exception) -> str:
    """The cause of an error in one line; for a failed request the innermost cause."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"HTTP {response.status_code} {response.reason}"
    cause = getattr(error.args[0] if error.args else None, "reason", None) or error
    return " ".join(f"{type(cause).__name__}: {cause}".split())


# --- OpenML ---------------------------------------------------------------------------


def download_openml(identifier: int, data: Data) -> tuple[Path, str | None]:
    """Get a data set of OpenML by its number; openml's own settings and cache apply.

    Returns the ARFF file in openml's cache and the target column that OpenML names.

    Raises SourceError if the server does not answer in time or does not know the data
    set, and RefusedError if the file does not match its description.
    """
    import openml
    from openml.exceptions import OpenMLHashException

    # The declared digests are of ARFF: the types of a Parquet file may differ.
    os.environ[openml.config.OPENML_SKIP_PARQUET_ENV_VAR] = "true"
    get = openml.datasets.get_dataset
    try:
        _limited(data.timeout * (1 + data.retries), get, identifier)
        found = _limited(data.most_seconds, get, identifier, download_data=True)
    except OpenMLHashException as error:
        raise RefusedError(f"other content: {_cause(error)}") from error
    except SourceError:
        raise
    except Exception as error:  # whatever openml makes of an answer
        raise SourceError(_cause(error)) from error
    return Path(found.data_file), found.default_target_attribute


def forget_openml(identifier: int) -> None:
    """Remove a data set from openml's cache."""
    import openml

    folder = Path(openml.config.get_cache_directory(), "datasets", str(identifier))
    shutil.rmtree(folder, ignore_errors=True)


def _limited(seconds: float, call: Callable, *given: Any, **options: Any) -> Any:
    """The result of a call that may only take so long; openml itself has no time-out.

    A call that takes longer is left to a thread that ends with the process.
    """
    found: queue.SimpleQueue[tuple[Any, Exception | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            found.put((call(*given, **options), None))
        except Exception as error:
            found.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    try:
        result, error = found.get(timeout=seconds)
    except queue.Empty:
        raise SourceError(f"time-out: no answer within {seconds:g} s") from None
    if error is not None:
        raise error
    return result


# --- packed files ---------------------------------------------------------------------


def unpack(
    path: Path, folder: Path, wanted: Sequence[str] = (), most: int = Data.most_bytes
) -> list[Path]:
    """Unpack a file into a folder, by its first bytes; leave it if it is not packed.

    ``wanted`` are members of an archive, by path or base name, in this order; it may
    be empty if the archive holds one file.

    Raises RefusedError if it is damaged, unpacks to more than ``most`` bytes, has
    members outside of its folder, or lacks a wanted one.
    """
    if path.suffix == ".npz":
        return [path]
    folder.mkdir(parents=True, exist_ok=True)
    with refusing(path.name, "an archive"):
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as zipped:
                _check(
                    [(one.filename, one.file_size) for one in zipped.infolist()], most
                )
                zipped.extractall(folder)  # noqa: S202 - none lies outside
        elif tarfile.is_tarfile(path):
            with tarfile.open(path) as archive:
                _check([(one.name, one.size) for one in archive.getmembers()], most)
                archive.extractall(folder, filter="data")
        else:
            return [_decompressed(path, folder, most)]
    files = {str(found.relative_to(folder)): found
             for found in sorted(folder.rglob("*")) if found.is_file()}  # fmt: skip
    if not wanted and len(files) != 1:
        raise RefusedError(
            f"{path.name} is an archive of {', '.join(files) or 'nothing'}: name the "
            "wanted members in the source"
        )
    return [_member(files, name, path.name) for name in wanted or files]


def _check(members: Sequence[tuple[str, int]], most: int) -> None:
    """Refuse names that point outside of the archive, and too many bytes."""
    for name, _ in members:
        inside = PurePosixPath(name.replace("\\", "/"))
        if inside.is_absolute() or ".." in inside.parts or ":" in name:
            raise RefusedError(f"member {name!r} points outside the archive")
    if sum(size for _, size in members) > most:
        raise RefusedError(f"it unpacks to more than {most} bytes (data.most_bytes)")


def _member(files: dict[str, Path], name: str, archive: str) -> Path:
    alike = [held for held in files if name in (held, files[held].name)]
    if len(alike) != 1:
        held = ", ".join(files) or "nothing"
        raise RefusedError(
            f"{archive} has {len(alike)} members {name!r}; it holds {held}"
        )
    return files[alike[0]]


def _decompressed(path: Path, folder: Path, most: int) -> Path:
    with open(path, "rb") as handle:
        module = PACKED.get(handle.read(3))
    if module is None:
        return path
    named = path.stem if path.suffix in (".gz", ".bz2", ".xz") else "unpacked"
    with module.open(path) as packed, open(folder / named, "wb") as target:
        while chunk := packed.read(1 << 20):
            target.write(chunk)
            _check([(named, target.tell())], most)
    return folder / named
