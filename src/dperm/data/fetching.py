"""Fetch: a data set from the first source that serves it, kept with its digest."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dperm.core.experiment import files as store
from dperm.core.experiment.schema import Data, Dataset, Source
from dperm.data.archives import bundled
from dperm.data.arrays import (
    canonical,
    check_arrays,
    digest_arrays,
    load_arrays,
    nonzeros,
    save_arrays,
)
from dperm.data.checking import check_dataset
from dperm.data.errors import RefusedError, SourceError
from dperm.data.records import Arrays
from dperm.data.sources import KINDS, REMOTE, contents, describe
from dperm.store import closure

RECORD = "fetch.json"
READING = ("dperm.data.fetching:_accept", "dperm.data.sources:KINDS")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FetchRecord:
    """What ``fetch.json`` says of a data set."""

    name: str
    status: str  # ok | unavailable
    place: str  # where to put the files by hand
    reason: str = ""  # why it is unavailable
    source: str | None = None  # the one that served it
    digest: str | None = None
    n: int | None = None
    p: int | None = None
    nnz: int | None = None
    tried: list[dict[str, str]] = field(default_factory=list)
    config: str = ""  # digest of sources and reader
    code: str = ""  # digest of the code that read it, where no digest is declared
    contents: dict[str, str] = field(default_factory=dict)  # digests of local files

    @property
    def available(self) -> bool:
        """Whether the arrays are there."""
        return self.status == "ok"


def fetched_folder(name: str, data: Data) -> Path:
    """Folder of the fetched arrays of a data set."""
    return Path(data.dir) / "fetched" / name


def fetch(dataset: Dataset, data: Data) -> FetchRecord:
    """Get a data set from the first of its sources that serves the right arrays.

    Arrays that are there already, with the right digest, are kept. If no source
    serves them the record says so; nothing is raised, so that a pipeline goes on.

    Parameters
    ----------
    dataset : Dataset
        Sources, reader and digest; without a digest any readable arrays are accepted.
    data : Data
        Mirror, folder, time-out (seconds) and retries.

    Returns
    -------
    FetchRecord
        As written to ``<data.dir>/fetched/<name>/fetch.json``, beside X and y.

    Raises
    ------
    ValueError
        If the configuration is wrong.
    """
    check_dataset(dataset)
    folder = fetched_folder(dataset.name, data)
    with store.sole_writer(folder):
        kept = _reusable(dataset, folder)
        if kept is not None and _is_current(dataset, data, kept[1]):
            log.info("%s: reused from %s", dataset.name, folder)
            return kept[1]
        arrays, record = _from_bundle(dataset, data) or _first_served(dataset, data)
        if kept is not None and dataset.digest and not _is_contradicted(record):
            log.warning("%s: kept as it is, by its digest", dataset.name)
            return kept[1]
        with store.whole_folder(folder) as new:
            if arrays is not None:
                save_arrays(new, *arrays)
            store.write_json(new / RECORD, asdict(record))
        return record


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
        If they are missing, damaged or not what the record says.
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
    """What lies in a folder, if it is what the configuration asks for, undamaged."""
    record = _read_record(folder)
    if record is None:
        return None
    if dataset.digest is None and record.config != _config_digest(dataset):
        return None
    if dataset.digest not in (None, record.digest):
        return None
    arrays = _load_verified(folder, record)
    return None if arrays is None else (arrays, record)


def _from_bundle(dataset: Dataset, data: Data) -> tuple[Arrays, FetchRecord] | None:
    """What the mirror holds of the data set, if the mirror is a bundle."""
    work = Path(data.dir) / "downloads" / dataset.name / "bundle"
    try:
        folder = bundled(data.mirror, dataset.name, work)
        found = None if folder is None else _reusable(dataset, folder)
        if found is not None and not _same_contents(dataset, data, found[1]):
            found = None  # a file of one's own says otherwise
    except (RefusedError, OSError) as error:
        log.warning("%s: bundle %s: %s", dataset.name, data.mirror, error)
        return None
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if found is not None:
        log.info("%s: from the bundle %s", dataset.name, data.mirror)
    elif folder is not None:
        log.warning(
            "%s: the bundle %s holds it damaged, or not as the configuration asks",
            dataset.name, data.mirror,
        )  # fmt: skip
    return found


def _is_current(dataset: Dataset, data: Data, record: FetchRecord) -> bool:
    """Whether a record is of what the configuration, local files and code say now.

    A declared digest stands for the code, and for sources that would have to be asked.
    """
    local = (record.source or "").split(" ")[0] not in REMOTE
    asked = record.config == _config_digest(dataset) or not local
    read = bool(dataset.digest) or record.code == reading_code(dataset)
    return asked and read and _same_contents(dataset, data, record)


def _is_contradicted(record: FetchRecord) -> bool:
    """Whether a source was there, and served these arrays or others."""
    return record.available or any("refused" in entry for entry in record.tried)


def _same_contents(dataset: Dataset, data: Data, record: FetchRecord) -> bool:
    """Whether every local file that is there is the one that was there.

    One that is gone is no reason to give up the arrays that were made of it. Of a
    record from before there were such digests nothing is known: the digest of its
    arrays vouches for it, or it is made again.
    """
    now = _contents(dataset, data)
    return all(record.contents.get(name) == made for name, made in now.items() if made)


def _contents(dataset: Dataset, data: Data) -> dict[str, str]:
    """Digests of files of one's own; of those in a mirror if no digest is declared."""
    return contents(dataset, None if dataset.digest else data.mirror)


def reading_code(dataset: Dataset) -> str:
    """Digest of the code that reads it; empty if its arrays' digest is declared."""
    return "" if dataset.digest else closure.digest(*READING)


def _config_digest(dataset: Dataset) -> str:
    """Digest of sources and reader; a key that is not used is no part of it."""
    said = [*map(asdict, dataset.sources), asdict(dataset.reader)]
    content = [{key: value for key, value in one.items() if value} for one in said]
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
            (X, y), digest = served
            size = {"n": X.shape[0], "p": X.shape[1], "nnz": nonzeros(X)}
            found = {"source": describe(source), "digest": digest, **size}
            return (X, y), FetchRecord(status="ok", **found, **base)
    reason = _reason(dataset, tried)
    log.warning("%s", reason)
    return None, FetchRecord(status="unavailable", reason=reason, **base)


def _serve(
    source: Source,
    dataset: Dataset,
    data: Data,
    position: int,
    tried: list[dict[str, str]],
) -> tuple[Arrays, str] | None:
    """Try one source; a download of the wrong content is deleted and tried once more.

    A download that broke off stays, to be resumed next time, if a digest will tell
    whether the parts belong together.
    """
    work = Path(data.dir) / "downloads" / dataset.name / str(position)
    for _ in range(2 if source.kind in REMOTE else 1):
        try:
            served = _accept(KINDS[source.kind](source, dataset, data, work), dataset)
            shutil.rmtree(work.parent, ignore_errors=True)
            return served
        except SourceError as error:
            log.info("%s: %s: %s", dataset.name, describe(source), error)
            tried.append({"source": describe(source), "reason": str(error)})
            refused = isinstance(error, RefusedError)
            if refused:
                tried[-1]["refused"] = "yes"
            if refused or dataset.digest is None:
                shutil.rmtree(work, ignore_errors=True)
            if not refused:
                return None
    return None


def _accept(arrays: Arrays, dataset: Dataset) -> tuple[Arrays, str]:
    X, y = canonical(*arrays)
    check_arrays(X, y)
    digest = digest_arrays(X, y)
    if dataset.digest is not None and digest != dataset.digest:
        raise RefusedError(
            f"other content: the arrays, {X.shape[0]} x {X.shape[1]}, have digest "
            f"{digest}, expected {dataset.digest}"
        )
    return (X, y), digest


def _place(dataset: Dataset) -> str:
    files = next((s.files for s in dataset.sources if s.kind == "mirror"), [])
    local = [name for s in dataset.sources if s.kind == "file" for name in s.files]
    if local:
        return f"correct {', '.join(local)}, or sources and reader of the data set"
    if not files:
        return "add a source of kind mirror to the data set's YAML"
    return f"put {', '.join(files)} into the folder named by DPERM_MIRROR"


def _reason(dataset: Dataset, tried: list[dict[str, str]]) -> str:
    attempts = [f"- {entry['source']}: {entry['reason']}" for entry in tried]
    first = f"{dataset.name}: none of its sources serves it:"
    return "\n".join([first, *attempts, f"By hand: {_place(dataset)}."])
