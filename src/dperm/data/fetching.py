"""Fetch a data set from the first source that serves it, and keep its digest."""

from __future__ import annotations

import importlib.util
import logging
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dperm.core.experiment import files as store
from dperm.core.experiment.schema import Data, Dataset, Source
from dperm.data.arrays import (
    Arrays,
    RefusedError,
    SourceError,
    canonical,
    check_arrays,
    digest_arrays,
    load_arrays,
    nonzeros,
    save_arrays,
    standardize,
)
from dperm.data.checking import SOURCES, check_dataset
from dperm.data.download import download, download_openml, forget_openml, unpack
from dperm.data.readers import read_files
from dperm.data.synthetic import GENERATORS
from dperm.data.tables import labels
from dperm.store import closure
from dperm.store.folders import sole_writer, whole_folder

RECORD = "fetch.json"
REMOTE = ("http", "openml")  # a second download may succeed where the first failed
READING = ("dperm.data.fetching:_accept", "dperm.data.fetching:KINDS")
UNVERIFIED = "no digest is declared: what was served is taken as it came"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FetchRecord:
    """The content of ``fetch.json`` for a data set."""

    name: str
    status: str  # ok | unavailable
    reason: str = ""  # if it is unavailable
    source: str | None = None  # that served it
    digest: str | None = None
    n: int | None = None
    p: int | None = None
    nnz: int | None = None
    tried: list[dict[str, str]] = field(default_factory=list)
    made_of: dict[str, str] = field(default_factory=dict)  # digests of what it is from
    warning: str = ""  # if nothing verifies the served data

    @property
    def available(self) -> bool:
        """Whether the arrays are available."""
        return self.status == "ok"


def fetched_folder(name: str, data: Data) -> Path:
    """Folder of the fetched arrays of a data set."""
    return Path(data.dir) / "fetched" / name


def fetch(dataset: Dataset, data: Data) -> FetchRecord:
    """Get a data set from the first of its sources that serves the right arrays.

    Arrays of before with the right digest are kept; without a declared digest, any
    readable arrays are right. If no source serves them the record, which is written to
    ``<data.dir>/fetched/<name>/fetch.json`` next to X and y, states so; nothing is
    raised, so that a pipeline continues.

    Raises ValueError if the configuration is wrong.
    """
    check_dataset(dataset)
    folder = fetched_folder(dataset.name, data)
    with sole_writer(folder):
        kept = read_record(dataset.name, data)
        if kept is not None and _load_verified(folder, kept) is None:
            kept = None
        if kept is not None and _is_current(dataset, data, kept):
            log.info("%s: reused from %s", dataset.name, folder)
            if kept.warning and dataset.digest:  # declared after the fetch
                kept = replace(kept, warning="")
                store.write_json(folder / RECORD, asdict(kept))
            return kept
        arrays, record = _first_served(dataset, data)
        was_reached = record.available or any("refused" in one for one in record.tried)
        if kept and kept.digest == dataset.digest and not was_reached:
            log.warning("%s: kept as it is, by its digest", dataset.name)
            return kept
        with whole_folder(folder) as new:
            if arrays is not None:
                save_arrays(new, *arrays)
            store.write_json(new / RECORD, asdict(record))
        return record


def taken_as_it_came(dataset: Dataset) -> str:
    """A warning for data from outside that no declared digest verifies."""
    kinds = {source.kind for source in dataset.sources}
    from_outside = kinds & {"file", "mirror", *REMOTE}
    return UNVERIFIED if from_outside and not dataset.digest else ""


def read_record(name: str, data: Data) -> FetchRecord | None:
    """Read the record of a data set; None if it was never fetched."""
    content = store.known_json(fetched_folder(name, data) / RECORD)
    try:
        return None if content is None else FetchRecord(**content)
    except TypeError:  # of another version
        return None


def load_fetched(name: str, data: Data) -> tuple[Any, np.ndarray]:
    """The fetched arrays of a data set: X (n, p), dense or CSC, and y (n,).

    Raises ValueError if they are missing, damaged or different from the record.
    """
    folder = fetched_folder(name, data)
    arrays = _load_verified(folder, read_record(name, data))
    if arrays is None:
        raise ValueError(
            f"data set {name}: not fetched, or damaged: delete {folder} and run again"
        )
    return arrays


def _load_verified(folder: Path, record: FetchRecord | None) -> Arrays | None:
    if record is None or not record.available:
        return None
    try:
        X, y = load_arrays(folder)
        return (X, y) if digest_arrays(X, y) == record.digest else None
    except (OSError, ValueError, EOFError, IndexError) as error:
        log.warning("%s: damaged arrays in %s: %s", record.name, folder, error)
        return None


def _is_current(dataset: Dataset, data: Data, record: FetchRecord) -> bool:
    """Whether arrays are those of the configuration, of local files and of the code.

    A declared digest replaces the comparison of the code and of remote sources. A
    deleted file is no reason to discard the arrays that were made from it.
    """
    if dataset.digest not in (None, record.digest):
        return False
    if dataset.digest and str(record.source).split()[0] in REMOTE:
        return True
    now = _made_of(dataset, data)
    return all(record.made_of.get(name) == one for name, one in now.items() if one)


def _made_of(dataset: Dataset, data: Data) -> dict[str, str]:
    """Digests of the section, the user's own files, and the code that reads them.

    Files of a mirror and the code count if no digest of the arrays is declared.
    """
    keys = [*map(asdict, dataset.sources), asdict(dataset.reader)]
    used = [{key: value for key, value in one.items() if value} for one in keys]
    files = contents(dataset, None if dataset.digest else data.mirror)
    return {"section": store.digest(used), "code": reading_code(dataset), **files}


def reading_code(dataset: Dataset) -> str:
    """Digest of the code that reads it; empty if its arrays' digest is declared."""
    return "" if dataset.digest else closure.digest(*READING)


def contents(dataset: Dataset, mirror: str | None = None) -> dict[str, str]:
    """SHA-256 of the user's own files that a data set is read from, by kind and path.

    It is empty for a file that does not exist. Files of a mirror count if it is given.
    """
    folders = {"file": Path()} | ({"mirror": Path(mirror)} if mirror else {})
    found = {}
    for source in dataset.sources:
        for name in source.files if source.kind in folders else ():
            path = folders[source.kind] / name
            digest = store.file_digest(path) if path.is_file() else ""
            found[f"{source.kind} {name}"] = digest
    return found


def _first_served(dataset: Dataset, data: Data) -> tuple[Arrays | None, FetchRecord]:
    tried: list[dict[str, str]] = []
    made_of = _made_of(dataset, data)
    for source in dataset.sources:
        served = _serve(source, dataset, data, tried)
        if served is not None:
            warning = taken_as_it_came(replace(dataset, sources=[source]))
            if warning:
                log.warning("%s: %s", dataset.name, warning)
            X, y = served
            return served, FetchRecord(
                dataset.name,
                "ok",
                source=describe(source),
                digest=dataset.digest or digest_arrays(X, y),
                n=X.shape[0],
                p=X.shape[1],
                nnz=nonzeros(X),
                tried=tried,
                made_of=made_of,
                warning=warning,
            )
    attempts = [f"- {entry['source']}: {entry['reason']}" for entry in tried]
    first = f"{dataset.name}: none of its sources serves it:"
    reason = "\n".join([first, *attempts, f"By hand: {_by_hand(dataset)}."])
    log.warning("%s", reason)
    return None, FetchRecord(
        dataset.name, "unavailable", reason, tried=tried, made_of=made_of
    )


def _serve(
    source: Source, dataset: Dataset, data: Data, tried: list[dict[str, str]]
) -> Arrays | None:
    """Try one source; a download with wrong content is deleted and tried once more."""
    work = Path(data.dir) / "downloads" / dataset.name
    for _ in range(2 if source.kind in REMOTE else 1):
        try:
            return _accept(KINDS[source.kind](source, dataset, data, work), dataset)
        except SourceError as error:
            log.info("%s: %s: %s", dataset.name, describe(source), error)
            tried.append({"source": describe(source), "reason": str(error)})
            if not isinstance(error, RefusedError):
                return None
            tried[-1]["refused"] = "yes"
            if source.kind == "openml":
                forget_openml(int(source.id or 0))
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return None


def _accept(arrays: Arrays, dataset: Dataset) -> Arrays:
    X, y = canonical(*arrays)
    check_arrays(X, y)
    digest = digest_arrays(X, y) if dataset.digest else None
    if digest != dataset.digest:
        raise RefusedError(
            f"other content: the arrays, {X.shape[0]} x {X.shape[1]}, have digest "
            f"{digest}, expected {dataset.digest}"
        )
    return X, y


def _by_hand(dataset: Dataset) -> str:
    """What a user can do about a data set that no source serves."""
    named = {source.kind: source for source in reversed(dataset.sources)}
    into = "into the folder named by DPERM_MIRROR"
    if "file" in named:
        listed = ", ".join(named["file"].files)
        return f"correct {listed}, or sources and reader of the data set"
    if "mirror" in named:
        return f"put {', '.join(named['mirror'].files)} {into}"
    if "openml" in named:
        number = named["openml"].id
        return f"put openml.org/d/{number} as openml/{number}.arff {into}"
    return "add a source of kind mirror to the data set's YAML"


# --- sources: one function for each kind ----------------------------------------------


def from_folder(source: Source, dataset: Dataset, data: Data, work: Path) -> Arrays:
    """Read files below the current folder, ``data.mirror`` or an installed package.

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
    try:
        missing = [name for name in source.files if not (folder / name).is_file()]
        if missing:
            raise SourceError(f"missing in the {which} folder: {', '.join(missing)}")
        files: list[Path] = []
        for position, name in enumerate(source.files):
            into = work / str(position)
            files += unpack(folder / name, into, source.members, data.most_bytes)
        return read_files(files, dataset.reader)
    except OSError as error:
        raise SourceError(f"the {which} folder cannot be read: {error}") from error


def from_http(source: Source, dataset: Dataset, data: Data, work: Path) -> Arrays:
    """Download one file per URL and unpack them; ``files`` names archive members."""
    files: list[Path] = []
    for position, url in enumerate(source.urls):
        folder = work / str(position)
        try:
            path = download(url, folder, data)
        except SourceError as error:
            which = f"{url}: " if len(source.urls) > 1 else ""
            raise type(error)(f"{which}{error}") from error
        files += unpack(path, folder / "unpacked", source.files, data.most_bytes)
    return read_files(files, dataset.reader)


def from_openml(source: Source, dataset: Dataset, data: Data, work: Path) -> Arrays:
    """Get a data set by the package openml, as ARFF whatever the reader's format.

    The target is that of the reader, by default the one that OpenML names. A mirror's
    ``openml/<id>.arff`` comes first; there, the target is by default the last column.
    """
    path, target = Path(data.mirror or "", "openml", f"{source.id}.arff"), None
    if not (data.mirror and path.is_file()):
        path, target = download_openml(int(source.id or 0), data)
    reader = replace(dataset.reader, format="arff", options={})
    return read_files([path], replace(reader, target=reader.target or target))


def from_sklearn(source: Source, dataset: Dataset, data: Data, work: Path) -> Arrays:
    """Load a data set included in scikit-learn; two classes become -1 and +1."""
    from sklearn import datasets

    loader, options = getattr(datasets, str(source.loader)), dict(source.options)
    if source.loader == "load_diabetes" and options.pop("scaled", True):
        # Its releases differ in the last digits: we scale the printed numbers.
        X, y = loader(return_X_y=True, scaled=False, **options)
        X = standardize(np.round(X, 6)) / np.sqrt(len(X))
    else:
        X, y = loader(return_X_y=True, **source.options)
    if dataset.reader.positive is not None:
        return X, labels(pd.Series(y), dataset.reader.positive)
    if y.dtype.kind in "iu" and len(np.unique(y)) == 2:
        y = np.where(y == y.max(), 1.0, -1.0)
    return X, y


def from_synthetic(source: Source, dataset: Dataset, data: Data, work: Path) -> Arrays:
    """Draw from a generator of ``dperm.data.synthetic``."""
    return GENERATORS[str(source.generator)](**source.options)


def describe(source: Source) -> str:
    """Name a source in one phrase."""
    named = getattr(source, fields(SOURCES[source.kind])[0].name)
    first, *others = named if isinstance(named, list) else [named]
    more = f" and {len(others)} more" if others else ""
    return f"{source.kind} {first}{more}"


KINDS: dict[str, Callable[[Source, Dataset, Data, Path], Arrays]] = {
    "file": from_folder,
    "mirror": from_folder,
    "package": from_folder,
    "http": from_http,
    "openml": from_openml,
    "sklearn": from_sklearn,
    "synthetic": from_synthetic,
}
