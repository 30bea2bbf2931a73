"""Sources of data sets: folders, downloads, OpenML, scikit-learn and generators."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pandas as pd

from dperm.core.experiment.schema import Data, Dataset, Source
from dperm.data.arrays import Arrays, SourceError, standardize
from dperm.data.readers import read_files
from dperm.data.synthetic import GENERATORS
from dperm.data.tables import labels

REMOTE = ("http", "openml")  # a second download may succeed where the first failed


def serve(source: Source, dataset: Dataset, data: Data, again: bool = False) -> Arrays:
    """The arrays of one source; what is downloaded for them is removed.

    With ``again``, what openml has in its cache is downloaded again.

    Raises SourceError if the source cannot be reached or lacks a file, and RefusedError
    if a file is damaged.
    """
    if source.kind == "synthetic":
        return GENERATORS[str(source.generator)](**source.options)
    if source.kind == "sklearn":
        return _included(str(source.loader), dataset.reader.positive)
    reader, work = dataset.reader, Path(data.dir, "downloads", dataset.name)
    try:
        if source.kind == "openml":
            path, target = _of_openml(int(source.id or 0), data, again)
            reader = replace(reader, format="arff", options={})
            reader, paths = replace(reader, target=reader.target or target), [path]
        elif source.kind == "http":
            urls = enumerate(source.urls)
            paths = [_download(url, work / str(i), data) for i, url in urls]
        else:
            paths = _in_folder(source, data)
        return read_files(paths, reader, source.members, data.most_bytes)
    except PermissionError as error:
        raise SourceError(str(error)) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def describe(source: Source) -> str:
    """Name a source in one phrase."""
    named: list[Any] = source.files or source.urls or [source.id or source.loader]
    first, *others = named if source.kind != "synthetic" else [source.generator]
    return f"{source.kind} {first}" + (f" and {len(others)} more" if others else "")


def _in_folder(source: Source, data: Data) -> list[Path]:
    """Files below the current folder, ``data.mirror`` or a package's own folder.

    The package is not imported.
    """
    folder, which = Path(), "current"
    if source.kind == "mirror":
        if not data.mirror:
            raise SourceError("data.mirror is not set (the DPERM_MIRROR variable)")
        folder, which = Path(data.mirror), "mirror"
    elif source.kind == "package":
        name = str(source.loader)
        found = importlib.util.find_spec(name)
        if found is None or not found.submodule_search_locations:
            raise SourceError(
                f"the package {name} is not installed: pip install {name}"
            )
        folder, which = Path(found.submodule_search_locations[0]), "package's"
    missing = [name for name in source.files if not (folder / name).is_file()]
    if missing:
        raise SourceError(f"missing in the {which} folder: {', '.join(missing)}")
    return [folder / name for name in source.files]


def _included(loader: str, positive: str | None) -> Arrays:
    """A data set included in scikit-learn; two classes become -1 and +1."""
    from sklearn import datasets

    if loader == "load_diabetes":
        # Its releases differ in the last digits: we scale the printed numbers.
        X, y = datasets.load_diabetes(return_X_y=True, scaled=False)
        X = standardize(np.round(X, 6)) / np.sqrt(len(X))
    else:
        X, y = getattr(datasets, loader)(return_X_y=True)
    if positive is not None:
        y = labels(pd.Series(y), positive)
    elif y.dtype.kind in "iu" and len(np.unique(y)) == 2:
        y = np.where(y == y.max(), 1.0, -1.0)
    return X, y


# --- downloads ------------------------------------------------------------------------


def _download(url: str, folder: Path, data: Data) -> Path:
    """Download one file by pooch, whole or not at all.

    Raises SourceError if the file is not available.
    """
    import pooch

    name = re.sub(r"[^A-Za-z0-9._-]", "_", urlsplit(url).path.rsplit("/", 1)[-1])
    name = name.lstrip(".") or "download"
    site = pooch.Pooch(folder, "", {name: None}, {name: url}, data.retries)
    by = pooch.HTTPDownloader(timeout=data.timeout)
    return Path(_asked(name, data.most_seconds, site.fetch, name, downloader=by))


def _of_openml(identifier: int, data: Data, again: bool) -> tuple[Path, str | None]:
    """A data set of OpenML as ARFF, and the target column that OpenML names.

    The file ``openml/<identifier>.arff`` of a mirror comes first; its target is not
    known. Otherwise the package openml with its own settings and cache gets it.
    """
    name = f"{identifier}.arff"
    mirrored = Path(data.mirror or "", "openml", name)
    if data.mirror and mirrored.is_file():
        return mirrored, None
    import openml

    # The declared digests are of ARFF: the types of a Parquet file may differ.
    os.environ[openml.config.OPENML_SKIP_PARQUET_ENV_VAR] = "true"
    get, patience = openml.datasets.get_dataset, data.timeout * (1 + data.retries)
    _asked(name, patience, get, identifier, force_refresh_cache=again)
    found = _asked(name, data.most_seconds, get, identifier, download_data=True)
    return Path(found.data_file), found.default_target_attribute


def _asked(
    name: str, seconds: float, call: Callable, *given: Any, **options: Any
) -> Any:
    """The result of a call to a server, which may only take so long.

    A call that takes longer is left to a thread that ends with the process: neither
    pooch nor openml has a time-out for the whole of a download.

    Raises SourceError, in one line, for whatever the answer leads to.
    """
    found: list[Any] = []

    def ask() -> None:
        try:
            found.append(call(*given, **options))
        except Exception as error:
            found.append(error)

    thread = Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds)
    if not found:
        raise SourceError(f"{name}: not had within {seconds:g} s")
    result = found.pop()  # an error that refers to itself keeps its socket open
    if isinstance(result, OSError) and result.errno is not None:
        raise result  # the system's: a full disk
    if isinstance(result, Exception):
        raise SourceError(f"{name}: {_cause(result)}") from result
    return result


def _cause(error: Exception) -> str:
    """The cause of an error in one line; for a failed request the innermost cause."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"HTTP {response.status_code} {response.reason}"
    cause = getattr(error.args[0] if error.args else None, "reason", None) or error
    return " ".join(f"{type(cause).__name__}: {cause}".split())
