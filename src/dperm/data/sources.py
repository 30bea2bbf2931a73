"""Sources: one function for each kind of place a data set can come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dperm.data.archives import unpack
from dperm.data.download import download, file_name
from dperm.data.errors import SourceError
from dperm.data.openml_download import download_openml
from dperm.data.readers import Arrays, labels, read_files
from dperm.data.synthetic import GENERATORS
from dperm.schema import Data, Dataset, Reader, Source

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
            for part in unpack(path, work / f"{which}-{position}")
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
    """Download through the openml library: always ARFF, whatever the reader's format.

    The target is the reader's or else the one OpenML names.
    """
    path, target = download_openml(
        int(source.id or 0), work / "openml", data.timeout, data.retries
    )
    given = dataset.reader
    reader = Reader(format="arff", positive=given.positive, drop=list(given.drop))
    return read_files([path], replace(reader, target=given.target or target))


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
