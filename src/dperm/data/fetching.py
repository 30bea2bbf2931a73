"""Fetch a data set from the first source that serves it, and keep its digest.

Sources are folders, packages, downloads, OpenML, scikit-learn and generators.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import logging
import os
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import (
    asdict,
    dataclass,
    field,
    fields,
    make_dataclass,
    replace,
)
from pathlib import Path
from threading import Thread
from typing import Any, get_type_hints
from urllib.parse import urljoin, urlsplit

import numpy as np
import pandas as pd

from dperm.config.schema import SOURCES, Data, Dataset, Section, Source
from dperm.config.validation import check, one_of
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
    standardize,
)
from dperm.data.readers import FORMATS, read_files
from dperm.data.synthetic import GENERATORS
from dperm.data.tables import labels
from dperm.storage import files as store
from dperm.storage import source_code

RECORD = "fetch.json"
READING = ("dperm.data.fetching:_accept", "dperm.data.fetching:serve")
REMOTE = (
    "http",
    "openml",
)  # a second download may succeed where the first failed
HOPS = 10  # redirects of one file
BLOCK = 2**16  # bytes of a download that are read at a time
BUNDLED = (
    "breast_cancer",
    "diabetes",
    "digits",
    "iris",
    "wine",
)  # in scikit-learn
OF_TABLES = ("target", "drop", "missing", "categories")  # keys of a reader
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
    # Digest of its section, its files and the code that reads it
    made_of: str = ""

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
    readable arrays are right. If no source serves them the record, ``fetch.json`` next
    to the arrays, states so; nothing is raised, so that a pipeline continues.

    Raises ValueError if the configuration is wrong.
    """
    check_dataset(dataset)
    folder = fetched_folder(dataset.name, data)
    with store.locked(folder):
        old_record = _sound_record(dataset, data)
        origin = source_digest(dataset, data.mirror)
        # Files of one's own are read again even where a digest says what is in them.
        is_own = any(source.origin == "file" for source in dataset.sources)
        is_known = dataset.digest is not None and not is_own
        if old_record is not None and (
            is_known or old_record.made_of == origin
        ):
            log.info("%s: reused from %s", dataset.name, folder)
            return old_record
        arrays, record, was_refused = _first_served(dataset, data)
        if arrays is not None:
            save_arrays(folder, *arrays)
        elif old_record is not None and not was_refused:
            log.warning("%s: kept as it is; %s", dataset.name, record.reason)
            return old_record
        else:
            (folder / FILE).unlink(missing_ok=True)
        record = replace(record, made_of=origin)
        store.write_json(folder / RECORD, asdict(record))
        return record


def read_record(name: str, data: Data) -> FetchRecord | None:
    """Read the record of a data set; None if it was never fetched.

    Keys of other versions are left out.
    """
    content = store.known_json(fetched_folder(name, data) / RECORD) or {}
    field_names = [field.name for field in fields(FetchRecord)]
    record_fields = {
        key: content[key] for key in field_names if key in content
    }
    return (
        FetchRecord(**record_fields)
        if {"name", "status"} <= {*record_fields}
        else None
    )


def load_fetched(name: str, data: Data) -> Arrays:
    """The fetched arrays of a data set: X (n, p), dense or CSC, and y (n,).

    Raises ValueError if they are missing, damaged or different from the record.
    """
    record = read_record(name, data)
    return load_arrays(
        fetched_folder(name, data), record.digest if record else None
    )


def _sound_record(dataset: Dataset, data: Data) -> FetchRecord | None:
    """The record of sound arrays of before that have the declared digest, if any."""
    record = read_record(dataset.name, data)
    if record and record.available and dataset.digest in (None, record.digest):
        try:
            load_fetched(dataset.name, data)
            return record
        except ValueError as error:
            log.warning("%s", error)
    return None


def source_digest(dataset: Dataset, mirror: str | None = None) -> str:
    """Digest of the section of a data set and of the user's own files in it.

    Where no digest of its arrays is declared, the code that reads it and the files of a
    ``mirror`` count too.
    """
    section = [
        dataset.digest,
        *map(asdict, dataset.sources),
        asdict(dataset.reader),
    ]
    folders = {"file": Path()}
    code = ""
    if dataset.digest is None:
        folders |= {"mirror": Path(mirror)} if mirror else {}
        code = source_code.digest(*READING)
    paths = []
    for source in dataset.sources:
        if source.origin in folders:
            paths += [folders[source.origin] / name for name in source.files]
    files = [
        store.file_digest(path) if path.is_file() else "" for path in paths
    ]
    return store.digest([section, files, code])


def _first_served(
    dataset: Dataset, data: Data
) -> tuple[Arrays | None, FetchRecord, bool]:
    """Arrays and record of the first source that serves; whether one was refused.

    A download with wrong content may be right the second time. What failed is said
    once: where a later source serves, or in the reason, which is logged unless the
    caller raises it.
    """
    attempts: list[str] = []
    was_refused = False
    for source in dataset.sources:
        for again in (False, True)[: 2 if source.origin in REMOTE else 1]:
            try:
                arrays = serve(source, dataset, data, again)
                accepted = _accept(arrays, source, dataset)
            except SourceError as error:
                attempts.append(f"{describe(source)}: {error}")
                if not isinstance(error, RefusedError):
                    break
                was_refused = True
            else:
                for attempt in dict.fromkeys(attempts):
                    log.info("%s: %s", dataset.name, attempt)
                return *accepted, False
    tried = "; ".join(dict.fromkeys(attempts))
    reason = (
        f"{dataset.name}: no source serves it: {_by_hand(dataset)} ({tried})"
    )
    if not data.required:
        log.warning("%s", reason)
    return None, FetchRecord(dataset.name, "unavailable", reason), was_refused


def _accept(
    arrays: Arrays, source: Source, dataset: Dataset
) -> tuple[Arrays, FetchRecord]:
    """Canonical, checked arrays and their record; the digest is the declared one."""
    X, y = canonical(*arrays)
    check_arrays(X, y)
    n, p = X.shape
    digest = digest_arrays(X, y)
    if dataset.digest not in (None, digest):
        raise RefusedError(
            f"other content: the arrays, {n} x {p}, have digest {digest}, expected "
            f"{dataset.digest}"
        )
    if not dataset.digest and source.origin in ("file", "mirror", *REMOTE):
        text = "%s: no digest is declared: what was served is taken as it came"
        log.warning(text, dataset.name)
    served = (describe(source), digest, n, p, nonzeros(X))
    return (X, y), FetchRecord(dataset.name, "ok", "", *served)


def _by_hand(dataset: Dataset) -> str:
    """What a user can do about a data set that no source serves."""
    put = "its files"
    for source in reversed(dataset.sources):
        if source.origin == "file":
            listed = ", ".join(source.files)
            return f"correct {listed}, or sources and reader of the data set"
        if source.origin == "mirror":
            put = ", ".join(source.files)
        elif source.origin == "openml":
            put = f"openml.org/d/{source.id} as openml/{source.id}.arff"
    return f"put {put} into the folder named by DPERM_MIRROR"


# --- sources --------------------------------------------------------------------------


def serve(
    source: Source, dataset: Dataset, data: Data, again: bool = False
) -> Arrays:
    """The arrays of one source; what is downloaded for them is removed.

    With ``again``, what openml has in its cache is downloaded again.

    Raises SourceError if the source cannot be reached or lacks a file, and RefusedError
    if a file is damaged.
    """
    if source.origin == "synthetic":
        return GENERATORS[str(source.generator)](**source.options)
    if source.origin == "sklearn":
        return _included(str(source.loader), dataset.reader.positive)
    reader = dataset.reader
    work = Path(data.dir, "downloads", dataset.name)
    max_bytes = data.most_bytes
    try:
        if source.origin == "openml":
            path, target = _of_openml(int(source.id or 0), data, again)
            reader = replace(reader, format="arff", options={})
            reader = replace(reader, target=reader.target or target)
            paths = [path]
        elif source.origin == "http":
            budget = Allowance(data, dataset.digest is not None)
            urls = enumerate(source.urls)
            paths = [
                _download(url, work / str(i), data, budget) for i, url in urls
            ]
            max_bytes = budget.spare_bytes
        else:
            paths = _in_folder(source, data)
        return read_files(paths, reader, source.members, max_bytes)
    except PermissionError as error:
        raise SourceError(str(error)) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def describe(source: Source) -> str:
    """Name a source in one phrase."""
    names: list[Any] = (
        source.files or source.urls or [source.id or source.loader]
    )
    first_name, *other_names = (
        names if source.origin != "synthetic" else [source.generator]
    )
    return f"{source.origin} {first_name}" + (
        f" and {len(other_names)} more" if other_names else ""
    )


def _in_folder(source: Source, data: Data) -> list[Path]:
    """Files below the current folder, ``data.mirror`` or a package's own folder.

    The package is not imported.
    """
    folder = Path()
    if source.origin == "mirror":
        if not data.mirror:
            raise SourceError(
                "data.mirror is not set (the DPERM_MIRROR variable)"
            )
        folder = Path(data.mirror)
    elif source.origin == "package":
        package = importlib.util.find_spec(str(source.loader))
        if package is None or not package.submodule_search_locations:
            cure = f"is not installed: pip install {source.loader}"
            raise SourceError(f"the package {source.loader} {cure}")
        folder = Path(package.submodule_search_locations[0])
    missing = [name for name in source.files if not (folder / name).is_file()]
    if missing:
        raise SourceError(
            f"missing in {folder.absolute()}: {', '.join(missing)}"
        )
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


class Allowance:
    """What is left for the files of a source: bytes, and seconds until a deadline.

    It is a downloader of pooch: over all files, attempts and redirects it takes at most
    ``data.most_bytes`` and ``data.most_seconds``. A redirect to another host is
    followed only if the digest of the arrays is declared, and only over http and https.
    """

    def __init__(self, data: Data, is_declared: bool):
        self.spare_bytes = data.most_bytes
        self.deadline = time.monotonic() + data.most_seconds
        self.timeout = data.timeout
        self.is_declared = is_declared

    def __call__(self, url: str, output_file: Any, pooch: Any) -> None:
        """Write what a URL serves into a file. Raises as ``requests``, or SpentError.

        What the server compresses for the transfer stays as it is.
        """
        import requests  # an extra, not needed by fits
        import urllib3

        with self._answer(url) as answer, open(output_file, "wb") as file:
            promised = int(answer.headers.get("Content-Length") or 0)
            self._spend(promised, 0)
            try:
                for block in answer.raw.stream(BLOCK, decode_content=False):
                    self._spend(len(block), len(block))
                    file.write(block)
            except urllib3.exceptions.HTTPError as error:
                raise requests.ConnectionError(error) from error

    def _spend(self, needed: int, spent: int) -> None:
        if needed > self.spare_bytes:
            raise SpentError("more bytes than data.most_bytes allows")
        if time.monotonic() > self.deadline:
            raise SpentError("not had within data.most_seconds")
        self.spare_bytes -= spent

    def _answer(self, url: str) -> Any:
        """The answer of the last of at most ``HOPS`` redirects."""
        import requests

        headers = {"Accept-Encoding": "identity"}
        for _ in range(HOPS):
            if urlsplit(url).scheme not in ("http", "https"):
                raise SpentError(
                    f"a redirect to {url:.200}: expected http or https"
                )
            self._spend(0, 0)
            answer = requests.get(
                url,
                headers=headers,
                stream=True,
                timeout=self.timeout,
                allow_redirects=False,
            )
            if not answer.is_redirect:
                answer.raise_for_status()
                return answer
            answer.close()
            before = url
            url = urljoin(url, answer.headers["Location"])
            is_other = urlsplit(before).netloc != urlsplit(url).netloc
            if is_other and not self.is_declared:
                host = urlsplit(url).netloc
                raise SpentError(
                    f"a redirect to another host, {host:.200}: declare the digest of "
                    "the data set, or name that URL"
                )
        raise SpentError(f"more than {HOPS} redirects")


class SpentError(RuntimeError):
    """A download that was ended; it is not tried again."""


def _download(url: str, folder: Path, data: Data, budget: Allowance) -> Path:
    """Download one file by pooch, whole or not at all, within a budget.

    Raises SourceError if the file is not available.
    """
    import pooch

    name = re.sub(
        r"[^A-Za-z0-9._-]", "_", urlsplit(url).path.rsplit("/", 1)[-1]
    )
    name = name.lstrip(".") or "download"
    site = pooch.Pooch(folder, "", {name: None}, {name: url}, data.retries)
    seconds = max(0.0, budget.deadline - time.monotonic())
    return Path(_asked(name, seconds, site.fetch, name, downloader=budget))


def _of_openml(
    identifier: int, data: Data, again: bool
) -> tuple[Path, str | None]:
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
    get = openml.datasets.get_dataset
    patience = data.timeout * (1 + data.retries)
    _asked(name, patience, get, identifier, force_refresh_cache=again)
    openml_dataset = _asked(
        name, data.most_seconds, get, identifier, download_data=True
    )
    return Path(
        openml_dataset.data_file
    ), openml_dataset.default_target_attribute


def _asked(
    name: str, seconds: float, call: Callable, *arguments: Any, **options: Any
) -> Any:
    """The result of a call to a server, which may only take so long.

    A call that takes longer is left to a thread that ends with the process: neither
    pooch nor openml has a time-out for the whole of a download.

    Raises SourceError, in one line, for whatever the answer leads to.
    """
    answers: list[Any] = []

    def ask() -> None:
        try:
            answers.append(call(*arguments, **options))
        except Exception as error:
            answers.append(error)

    thread = Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds)
    if not answers:
        raise SourceError(f"{name}: not had within {seconds:g} s")
    # an error that refers to itself keeps its socket open
    answer = answers.pop()
    if isinstance(answer, OSError) and answer.errno is not None:
        raise answer  # the system's: a full disk
    if isinstance(answer, Exception):
        raise SourceError(f"{name}: {_cause(answer)}") from answer
    return answer


def _cause(error: Exception) -> str:
    """The cause of an error in one line; for a failed request the innermost cause."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"HTTP {response.status_code} {response.reason}"
    cause = (
        getattr(error.args[0] if error.args else None, "reason", None) or error
    )
    return " ".join(f"{type(cause).__name__}: {cause}".split())


# --- checks before anything is fetched ------------------------------------------------


def check_dataset(dataset: Dataset) -> None:
    """Check a data set's YAML before anything is downloaded.

    Raises ValueError; the message names data set, key, value, expected values and the
    nearest name.
    """
    where = f"data set {dataset.name}: "
    reader = dataset.reader
    check(dataset, Dataset, where)
    for position, source in enumerate(dataset.sources):
        _check_source(source, f"{where}sources[{position}]")
    check(
        reader.options,
        _arguments(FORMATS[reader.format]),
        f"{where}reader.options",
    )
    from_openml = any(source.origin == "openml" for source in dataset.sources)
    # which are ARFF
    is_table = reader.format in ("csv", "arff") or from_openml
    table_keys = [key for key in OF_TABLES if getattr(reader, key)]
    if table_keys and not is_table:
        raise ValueError(
            f"{where}reader.{table_keys[0]}: only csv and arff have columns"
        )


def _check_source(source: Source, where: str) -> None:
    """Refuse keys that its kind has not or lacks, and what they name if unknown."""
    given_keys = {key for key, setting in vars(source).items() if setting} - {
        "origin"
    }
    allowed = SOURCES[source.origin]
    for key in sorted(given_keys.difference(allowed)):
        raise ValueError(
            f"{where}.{key}: expected one of {', '.join(allowed)}"
        )
    for key in allowed:
        if key not in given_keys and key != "members":
            raise ValueError(f"{where}.{key}: expected a value, found nothing")
    if source.origin == "sklearn":
        one_of(
            f"{where}.loader",
            source.loader,
            [f"load_{name}" for name in BUNDLED],
        )
    if source.origin == "synthetic":
        one_of(f"{where}.generator", source.generator, GENERATORS)
        keys = _arguments(GENERATORS[str(source.generator)])
        check(source.options, keys, f"{where}.options")
        if source.options.get("active", 0) > source.options["p"]:
            raise ValueError(f"{where}.options.active: expected at most p")


@functools.cache
def _arguments(function: Callable[..., Any]) -> Any:
    """The keyword arguments of a function as a section."""
    types = get_type_hints(function, include_extras=True)
    parameters = inspect.signature(function).parameters.values()
    keyword_only = [
        parameter
        for parameter in parameters
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    listed: list[Any] = [
        (parameter.name, types[parameter.name])
        if parameter.default is parameter.empty
        else (parameter.name, types[parameter.name], field(default=None))
        for parameter in keyword_only
    ]
    return make_dataclass("Keys", listed, bases=(Section,), kw_only=True)
