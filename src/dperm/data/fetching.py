"""Fetch a data set from the first source that serves it, and keep its digest."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from dperm.core.experiment import files as store
from dperm.core.experiment.schema import Data, Dataset, Source
from dperm.data.arrays import (
    FILE,
    Arrays,
    RefusedError,
    SourceError,
    canonical,
    check_arrays,
    digest_arrays,
    load_arrays,
    nonzeros,
    save_arrays,
)
from dperm.data.checking import check_dataset
from dperm.data.sources import REMOTE, describe, serve
from dperm.store import closure

__all__ = ["FetchRecord", "describe", "fetch", "load_fetched", "read_record"]

RECORD = "fetch.json"
READING = ("dperm.data.fetching:_accept", "dperm.data.sources:serve")
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
    made_of: str = ""  # digest of its section, its files and the code that reads it

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
    ``<data.dir>/fetched/<name>/fetch.json`` next to the arrays, states so; nothing is
    raised, so that a pipeline continues.

    Raises ValueError if the configuration is wrong.
    """
    check_dataset(dataset)
    folder = fetched_folder(dataset.name, data)
    with store.locked(folder):
        kept, made = _sound_record(dataset, data), made_of(dataset, data.mirror)
        # Files of one's own are read again even where a digest says what is in them.
        is_own = any(source.kind == "file" for source in dataset.sources)
        is_known = dataset.digest is not None and not is_own
        if kept is not None and (is_known or kept.made_of == made):
            log.info("%s: reused from %s", dataset.name, folder)
            return kept
        arrays, record, was_refused = _first_served(dataset, data)
        if arrays is not None:
            save_arrays(folder, *arrays)
        elif kept is not None and not was_refused:
            log.warning("%s: kept as it is; %s", dataset.name, record.reason)
            return kept
        else:
            (folder / FILE).unlink(missing_ok=True)
        record = replace(record, made_of=made)
        store.write_json(folder / RECORD, asdict(record))
        return record


def read_record(name: str, data: Data) -> FetchRecord | None:
    """Read the record of a data set; None if it was never fetched.

    Keys of other versions are left out.
    """
    content = store.known_json(fetched_folder(name, data) / RECORD) or {}
    known = [field.name for field in fields(FetchRecord)]
    kept = {key: content[key] for key in known if key in content}
    return FetchRecord(**kept) if {"name", "status"} <= {*kept} else None


def load_fetched(name: str, data: Data) -> Arrays:
    """The fetched arrays of a data set: X (n, p), dense or CSC, and y (n,).

    Raises ValueError if they are missing, damaged or different from the record.
    """
    record = read_record(name, data)
    return load_arrays(fetched_folder(name, data), record.digest if record else None)


def _sound_record(dataset: Dataset, data: Data) -> FetchRecord | None:
    """The record of sound arrays of before that have the declared digest, if any."""
    record = read_record(dataset.name, data)
    if record is None or not record.available:
        return None
    if dataset.digest not in (None, record.digest):
        return None
    try:
        load_fetched(dataset.name, data)
    except ValueError as error:
        log.warning("%s", error)
        return None
    return record


def made_of(dataset: Dataset, mirror: str | None = None) -> str:
    """Digest of the section of a data set and of the user's own files in it.

    Where no digest of its arrays is declared, the code that reads it and the files of a
    ``mirror`` count too.
    """
    section = [dataset.digest, *map(asdict, dataset.sources), asdict(dataset.reader)]
    folders, code = {"file": Path()}, ""
    if dataset.digest is None:
        folders |= {"mirror": Path(mirror)} if mirror else {}
        code = closure.digest(*READING)
    paths = [
        folders[source.kind] / name
        for source in dataset.sources
        for name in (source.files if source.kind in folders else ())
    ]
    files = [store.file_digest(path) if path.is_file() else "" for path in paths]
    return store.digest([section, files, code])


def _first_served(
    dataset: Dataset, data: Data
) -> tuple[Arrays | None, FetchRecord, bool]:
    """Arrays and record of the first source that serves; whether one was refused.

    A download with wrong content may be right the second time.
    """
    attempts: list[str] = []
    was_refused = False
    for source in dataset.sources:
        for again in (False, True)[: 2 if source.kind in REMOTE else 1]:
            try:
                arrays = serve(source, dataset, data, again)
                return *_accept(arrays, source, dataset), False
            except SourceError as error:
                attempts.append(f"{describe(source)}: {error}")
                log.info("%s: %s", dataset.name, attempts[-1])
                if not isinstance(error, RefusedError):
                    break
                was_refused = True
    tried = "; ".join(dict.fromkeys(attempts))
    reason = f"{dataset.name}: no source serves it: {_by_hand(dataset)} ({tried})"
    log.warning("%s", reason)
    return None, FetchRecord(dataset.name, "unavailable", reason), was_refused


def _accept(
    arrays: Arrays, source: Source, dataset: Dataset
) -> tuple[Arrays, FetchRecord]:
    """Canonical, checked arrays and their record; the digest is the declared one."""
    X, y = canonical(*arrays)
    check_arrays(X, y)
    (n, p), digest = X.shape, digest_arrays(X, y)
    if dataset.digest not in (None, digest):
        raise RefusedError(
            f"other content: the arrays, {n} x {p}, have digest {digest}, expected "
            f"{dataset.digest}"
        )
    if not dataset.digest and source.kind in ("file", "mirror", *REMOTE):
        text = "%s: no digest is declared: what was served is taken as it came"
        log.warning(text, dataset.name)
    served = (describe(source), digest, n, p, nonzeros(X))
    return (X, y), FetchRecord(dataset.name, "ok", "", *served)


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
    return f"put its files {into}, and a source of kind mirror into the data set's YAML"
