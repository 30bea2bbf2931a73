"""Sources: one function for each kind of place a data set can come from."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dperm.core.experiment.schema import Data, Dataset, Source
from dperm.data.archives import unpack
from dperm.data.download import download, file_name
from dperm.data.errors import SourceError
from dperm.data.openml_download import download_openml
from dperm.data.readers import read_files
from dperm.data.records import Arrays, labels
from dperm.data.synthetic import GENERATORS

# Where a second download may give what the first did not.
REMOTE = ("http", "openml")


def from_file(source: Source, dataset: Dataset, data: Data, work: Path) -> Arrays:
    """Read files of one's own, below the current folder."""
    return _from_folder(Path(), "current", source, dataset, work)


def from_mirror(source: Source, dataset: Dataset, data: Data, work: Path) -> Arrays:
    """Read files below ``data.mirror``; a bundle is looked into before any source."""
    if not data.mirror:
        raise SourceError("data.mirror is not set (the DPERM_MIRROR variable)")
    if not Path(data.mirror).is_dir():
        raise SourceError(f"{data.mirror} is no folder, nor a bundle that holds it")
    return _from_folder(Path(data.mirror), "mirror", source, dataset, work)


def _from_folder(
    folder: Path, which: str, source: Source, dataset: Dataset, work: Path
) -> Arrays:
    files = [folder / path for path in source.files]
    missing = [
        given
        for given, path in zip(source.files, files, strict=True)
        if not path.is_file()
    ]
    if missing:
        raise SourceError(f"missing in the {which} folder: {', '.join(missing)}")
    try:
        unpacked = [
            part
            for position, path in enumerate(files)
            for part in unpack(
                path, work / f"{which}-{position}", source.members, "members"
            )
        ]
        return read_files(unpacked, dataset.reader)
    except OSError as error:
        raise SourceError(f"the {which} folder cannot be read: {error}") from error


def from_http(source: Source, dataset: Dataset, data: Data, work: Path) -> Arrays:
    """Download one file per URL and unpack them; ``files`` names archive members."""
    files: list[Path] = []
    for position, url in enumerate(source.urls):
        folder = work / f"http-{position}"
        try:
            path = download(url, folder / file_name(url), data.timeout, data.retries)
        except SourceError as error:
            which = f"{url}: " if len(source.urls) > 1 else ""
            raise type(error)(f"{which}{error}") from error
        files += unpack(path, folder, source.files)
    return read_files(files, dataset.reader)


def from_openml(source: Source, dataset: Dataset, data: Data, work: Path) -> Arrays:
    """Download from OpenML: always ARFF, whatever the reader's format.

    The target is the reader's or else the one OpenML names.
    """
    path, target = download_openml(
        int(source.id or 0), work / "openml", data.timeout, data.retries
    )
    reader = replace(dataset.reader, format="arff", options={})
    return read_files([path], replace(reader, target=reader.target or target))


def from_sklearn(source: Source, dataset: Dataset, data: Data, work: Path) -> Arrays:
    """Load a data set that scikit-learn carries; two classes become -1 and +1."""
    from sklearn import datasets

    loader = getattr(datasets, str(source.loader))
    X, y = loader(return_X_y=True, **source.options)
    if dataset.reader.positive is not None:
        return X, labels(y.tolist(), dataset.reader.positive)
    if y.dtype.kind in "iu" and len(np.unique(y)) == 2:
        y = np.where(y == y.max(), 1.0, -1.0)
    return X, y


def from_synthetic(source: Source, dataset: Dataset, data: Data, work: Path) -> Arrays:
    """Draw from a generator of ``dperm.data.synthetic``."""
    return GENERATORS[str(source.generator)](**source.options)


def contents(dataset: Dataset, mirror: str | None = None) -> dict[str, str]:
    """Digests of the local files that the sources of a data set name.

    Parameters
    ----------
    dataset : Dataset
    mirror : str, optional
        Folder whose files count as well.

    Returns
    -------
    dict
        ``kind path`` to the SHA-256 of the file; empty for one that is not there.
    """
    folders = {"file": Path()}
    if mirror and Path(mirror).is_dir():
        folders["mirror"] = Path(mirror)
    return {
        f"{source.kind} {name}": _digest_of(folders[source.kind] / name)
        for source in dataset.sources
        if source.kind in folders
        for name in source.files
    }


def _digest_of(path: Path) -> str:
    try:
        known = path.stat()
        state = (known.st_size, known.st_mtime_ns, known.st_ctime_ns, known.st_ino)
        return _digest_at(path.absolute(), state)
    except OSError:  # the source itself says what is wrong with it
        return ""


@functools.lru_cache(1000)
def _digest_at(path: Path, state: tuple[int, ...]) -> str:
    """The digest of a file in one state: many problems may ask for the same."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def describe(source: Source) -> str:
    """Name a source in one phrase."""
    parts: dict[str, list[Any]] = {
        "file": source.files,
        "mirror": source.files,
        "http": source.urls,
        "openml": [source.id],
        "sklearn": [source.loader],
        "synthetic": [source.generator],
    }
    first, *others = parts[source.kind]
    more = f" and {len(others)} more" if others else ""
    return f"{source.kind} {first}{more}"


KINDS: dict[str, Callable[[Source, Dataset, Data, Path], Arrays]] = {
    "file": from_file,
    "mirror": from_mirror,
    "http": from_http,
    "openml": from_openml,
    "sklearn": from_sklearn,
    "synthetic": from_synthetic,
}
