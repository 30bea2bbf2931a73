"""Fetch a data set from the first source that serves it, and keep its digest."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dperm.core.experiment import files as store
from dperm.core.experiment.schema import Data, Dataset, Source
from dperm.data.archives import unpack
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
from dperm.data.checking import REQUIRED, check_dataset
from dperm.data.download import download, download_openml, forget_openml
from dperm.data.readers import labels, read_files
from dperm.data.synthetic import GENERATORS
from dperm.store import closure
from dperm.store.folders import digest_of, sole_writer, whole_folder

RECORD = "fetch.json"
REMOTE = ("http", "openml")  # a second download may succeed where the first failed
READING = ("dperm.data.fetching:_accept", "dperm.data.fetching:KINDS")
OUTSIDE = ("file", "mirror", *REMOTE)
UNVERIFIED = "no digest is declared: what was served is taken as it came"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FetchRecord:
    """The content of ``fetch.json`` for a data set."""

    name: str
    status: str  # ok | unavailable
    place: str  # where to put the files manually
    reason: str = ""  # if it is unavailable
    source: str | None = None  # that served it
    digest: str | None = None
    n: int | None = None
    p: int | None = None
    nnz: int | None = None
    tried: list[dict[str, str]] = field(default_factory=list)
    config: str = ""  # digest of sources and reader
    code: str = ""  # digest of the code that read it, if no digest is declared
    contents: dict[str, str] = field(default_factory=dict)  # digests of local files
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

    Existing arrays with the right digest are kept. If no source serves them the record
    states so; nothing is raised, so that a pipeline continues.

    Parameters
    ----------
    dataset : Dataset
        Sources, reader and digest; without a digest any readable arrays are accepted.
    data : Data
        Mirror, folder, time-out (seconds) and retries.

    Returns
    -------
    FetchRecord
        As written to ``<data.dir>/fetched/<name>/fetch.json``, next to X and y.

    Raises
    ------
    ValueError
        If the configuration is wrong.
    """
    check_dataset(dataset)
    folder = fetched_folder(dataset.name, data)
    with sole_writer(folder):
        kept = _reusable(dataset, folder)
        if kept is not None and _is_current(dataset, data, kept[1]):
            log.info("%s: reused from %s", dataset.name, folder)
            if kept[1] != _read_record(folder):
                store.write_json(folder / RECORD, asdict(kept[1]))
            return _warned(kept[1])
        arrays, record = _first_served(dataset, data)
        if kept is not None and dataset.digest and not _is_contradicted(record):
            log.warning("%s: kept as it is, by its digest", dataset.name)
            return kept[1]
        with whole_folder(folder) as new:
            if arrays is not None:
                save_arrays(new, *arrays)
            store.write_json(new / RECORD, asdict(record))
        return _warned(record)


def _warned(record: FetchRecord) -> FetchRecord:
    if record.warning:
        log.warning("%s: %s", record.name, record.warning)
    return record


def taken_as_it_came(dataset: Dataset) -> str:
    """A warning for data from outside that no declared digest verifies."""
    from_outside = any(source.kind in OUTSIDE for source in dataset.sources)
    return UNVERIFIED if from_outside and not dataset.digest else ""


def read_record(name: str, data: Data) -> FetchRecord | None:
    """Read the record of a data set; None if it was never fetched."""
    return _read_record(fetched_folder(name, data))


def _read_record(folder: Path) -> FetchRecord | None:
    content = store.known_json(folder / RECORD)
    try:
        return None if content is None else FetchRecord(**content)
    except TypeError:
        return None


def load_fetched(name: str, data: Data) -> tuple[Any, np.ndarray]:
    """Load the fetched arrays of a data set.

    Returns
    -------
    X : ndarray or scipy CSC array, shape (n, p)
    y : ndarray, shape (n,)

    Raises
    ------
    ValueError
        If they are missing, damaged or different from the record.
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


def _reusable(dataset: Dataset, folder: Path) -> tuple[Arrays, FetchRecord] | None:
    """Arrays and record in a folder, if undamaged and as the configuration requires."""
    record = _read_record(folder)
    if record is None:
        return None
    if dataset.digest:
        is_asked = dataset.digest == record.digest
    else:
        is_asked = record.config == _config_digest(dataset)
    arrays = _load_verified(folder, record) if is_asked else None
    if dataset.digest:  # it may have been declared after the fetch
        record = replace(record, warning="")
    return None if arrays is None else (arrays, record)


def _is_current(dataset: Dataset, data: Data, record: FetchRecord) -> bool:
    """Whether a record matches the current configuration, local files and code.

    A declared digest replaces the comparison of the code and of remote sources.
    """
    local = (record.source or "").split(" ")[0] not in REMOTE
    is_asked = record.config == _config_digest(dataset) or not local
    is_read = bool(dataset.digest) or record.code == reading_code(dataset)
    return is_asked and is_read and _same_contents(dataset, data, record)


def _is_contradicted(record: FetchRecord) -> bool:
    """Whether a source was reachable and served these arrays or others."""
    return record.available or any("refused" in entry for entry in record.tried)


def _same_contents(dataset: Dataset, data: Data, record: FetchRecord) -> bool:
    """Whether every local file that exists is unchanged.

    A deleted file is no reason to discard the arrays that were made from it.
    """
    digests = _contents(dataset, data).items()
    return all(record.contents.get(name) == now for name, now in digests if now)


def _contents(dataset: Dataset, data: Data) -> dict[str, str]:
    """Digests of the user's own files; also of a mirror's if no digest is declared."""
    return contents(dataset, None if dataset.digest else data.mirror)


def reading_code(dataset: Dataset) -> str:
    """Digest of the code that reads it; empty if its arrays' digest is declared."""
    return "" if dataset.digest else closure.digest(*READING)


def _config_digest(dataset: Dataset) -> str:
    """Digest of sources and reader, without keys that are not used."""
    keys = [*map(asdict, dataset.sources), asdict(dataset.reader)]
    content = [{key: value for key, value in one.items() if value} for one in keys]
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _first_served(dataset: Dataset, data: Data) -> tuple[Arrays | None, FetchRecord]:
    tried: list[dict[str, str]] = []
    base: dict[str, Any] = {
        "name": dataset.name,
        "place": _place(dataset),
        "config": _config_digest(dataset),
        "code": reading_code(dataset),
        "contents": _contents(dataset, data),
        "tried": tried,
    }
    for position, source in enumerate(dataset.sources):
        served = _serve(source, dataset, data, position, tried)
        if served is not None:
            X, y = served
            base |= {"n": X.shape[0], "p": X.shape[1], "nnz": nonzeros(X)}
            base |= {
                "source": describe(source),
                "digest": dataset.digest or digest_arrays(X, y),
            }
            base["warning"] = taken_as_it_came(replace(dataset, sources=[source]))
            return (X, y), FetchRecord(status="ok", **base)
    attempts = [f"- {entry['source']}: {entry['reason']}" for entry in tried]
    first = f"{dataset.name}: none of its sources serves it:"
    reason = "\n".join([first, *attempts, f"By hand: {_place(dataset)}."])
    log.warning("%s", reason)
    return None, FetchRecord(status="unavailable", reason=reason, **base)


def _serve(
    source: Source,
    dataset: Dataset,
    data: Data,
    position: int,
    tried: list[dict[str, str]],
) -> Arrays | None:
    """Try one source; a download with wrong content is deleted and tried once more."""
    work = Path(data.dir) / "downloads" / dataset.name / str(position)
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
            shutil.rmtree(work.parent, ignore_errors=True)
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


def _place(dataset: Dataset) -> str:
    files = next((s.files for s in dataset.sources if s.kind == "mirror"), [])
    local = [name for s in dataset.sources if s.kind == "file" for name in s.files]
    if local:
        return f"correct {', '.join(local)}, or sources and reader of the data set"
    if not files:
        return "add a source of kind mirror to the data set's YAML"
    return f"put {', '.join(files)} into the folder named by DPERM_MIRROR"


# --- sources: one function for each kind ----------------------------------------------


def from_file(source: Source, dataset: Dataset, data: Data, work: Path) -> Arrays:
    """Read the user's own files below the current folder."""
    return _from_folder(Path(), source, dataset, data, work)


def from_mirror(source: Source, dataset: Dataset, data: Data, work: Path) -> Arrays:
    """Read files below ``data.mirror``."""
    if not data.mirror:
        raise SourceError("data.mirror is not set (the DPERM_MIRROR variable)")
    if not Path(data.mirror).is_dir():
        raise SourceError(f"{data.mirror} is no folder")
    return _from_folder(Path(data.mirror), source, dataset, data, work)


def _from_folder(
    folder: Path, source: Source, dataset: Dataset, data: Data, work: Path
) -> Arrays:
    which = "current" if source.kind == "file" else source.kind
    missing = [name for name in source.files if not (folder / name).is_file()]
    if missing:
        raise SourceError(f"missing in the {which} folder: {', '.join(missing)}")
    files: list[Path] = []
    try:
        for position, name in enumerate(source.files):
            into = work / f"{which}-{position}"
            files += unpack(
                folder / name, into, source.members, "members", data.most_bytes
            )
        return read_files(files, dataset.reader)
    except OSError as error:
        raise SourceError(f"the {which} folder cannot be read: {error}") from error


def from_package(source: Source, dataset: Dataset, data: Data, work: Path) -> Arrays:
    """Read files of an installed package without importing it."""
    found = importlib.util.find_spec(str(source.loader))
    if found is None or not found.submodule_search_locations:
        name = source.loader
        raise SourceError(f"the package {name} is not installed: pip install {name}")
    folder = Path(found.submodule_search_locations[0])
    return _from_folder(folder, source, dataset, data, work)


def from_http(source: Source, dataset: Dataset, data: Data, work: Path) -> Arrays:
    """Download one file per URL and unpack them; ``files`` names archive members."""
    files: list[Path] = []
    for position, url in enumerate(source.urls):
        folder = work / f"http-{position}"
        try:
            path = download(url, folder, data)
        except SourceError as error:
            which = f"{url}: " if len(source.urls) > 1 else ""
            raise type(error)(f"{which}{error}") from error
        files += unpack(path, folder, source.files, most=data.most_bytes)
    return read_files(files, dataset.reader)


def from_openml(source: Source, dataset: Dataset, data: Data, work: Path) -> Arrays:
    """Get a data set by the package openml, as ARFF whatever the reader's format.

    The target is that of the reader, by default the one that OpenML names.
    """
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
    mirror : str, optional
        Folder whose files count as well.

    Returns
    -------
    dict
        ``kind path`` to the SHA-256 of the file; empty if it does not exist.
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
        return digest_of(path)
    except OSError:  # the source itself reports the error
        return ""


def describe(source: Source) -> str:
    """Name a source in one phrase."""
    named = getattr(source, REQUIRED[source.kind])
    first, *others = named if isinstance(named, list) else [named]
    more = f" and {len(others)} more" if others else ""
    return f"{source.kind} {first}{more}"


KINDS: dict[str, Callable[[Source, Dataset, Data, Path], Arrays]] = {
    "file": from_file,
    "mirror": from_mirror,
    "package": from_package,
    "http": from_http,
    "openml": from_openml,
    "sklearn": from_sklearn,
    "synthetic": from_synthetic,
}
