"""Downloads: files by pooch, data sets of OpenML by the package openml."""

from __future__ import annotations

import os
import queue
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dperm.core.experiment.schema import Data
from dperm.data.arrays import RefusedError, SourceError

CHUNK = 1 << 14  # bytes between two looks at the limits


def download(url: str, folder: Path, data: Data) -> Path:
    """Download one file, whole or not at all.

    Parameters
    ----------
    data : Data
        Its limits: seconds without an answer; repetitions of a failed request; bytes;
        seconds in total.

    Raises
    ------
    SourceError
        If the file is not available.
    """
    import pooch
    from requests.exceptions import RequestException

    name = file_name(url)
    by = pooch.HTTPDownloader(_Limits(data), CHUNK, timeout=data.timeout)
    site = pooch.create(
        folder,
        base_url="",
        registry={name: None},
        urls={name: url},
        retry_if_failed=data.retries,
    )
    try:
        return Path(site.fetch(name, downloader=by))
    except RequestException as error:
        raise SourceError(explain(error)) from error


class _Limits:
    """Ends a download that is too large or takes too long; to pooch it is a bar."""

    def __init__(self, data: Data):
        self.data, self.end = data, time.monotonic() + data.most_seconds
        self.total = self.bytes = 0

    def update(self, count: int) -> None:
        """Count some bytes."""
        self.bytes += count
        if max(self.total, self.bytes - CHUNK) > self.data.most_bytes:
            raise SourceError(
                f"more than {self.data.most_bytes} bytes (data.most_bytes)"
            )
        if time.monotonic() > self.end:
            raise SourceError(_too_long(self.data.most_seconds))

    def reset(self) -> None:
        """Begin to count again."""
        self.bytes = 0

    def close(self) -> None:
        """Do nothing: the download is complete."""


def _too_long(seconds: float) -> str:
    return f"time-out: not complete after {seconds:g} s (data.most_seconds)"


def file_name(url: str) -> str:
    """File name under which the content of a URL is kept."""
    name = urlsplit(url).path.rsplit("/", 1)[-1]
    return re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip(".") or "download"


def explain(error: Exception) -> str:
    """The cause of an error in one line; for a failed request the innermost cause."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"HTTP {response.status_code} {response.reason}"
    inner = error.args[0] if error.args else None
    cause = getattr(inner, "reason", None) or error
    return " ".join(f"{type(cause).__name__}: {cause}".split())


# --- OpenML ---------------------------------------------------------------------------


def download_openml(identifier: int, data: Data) -> tuple[Path, str | None]:
    """Get a data set of OpenML as ARFF; openml's own settings and cache apply.

    Parameters
    ----------
    identifier : int
        Number of the data set.
    data : Data
        Its limits: seconds until the data set is described, and in total.

    Returns
    -------
    path : Path
        The ARFF file in openml's cache.
    target : str or None
        The target column according to OpenML.

    Raises
    ------
    SourceError
        If the server does not answer or does not know the data set; ``RefusedError`` if
        the file does not match its description.
    """
    import openml
    from openml.exceptions import OpenMLHashException

    # The declared digests are of ARFF: the types of a Parquet file may differ.
    os.environ[openml.config.OPENML_SKIP_PARQUET_ENV_VAR] = "true"
    get = openml.datasets.get_dataset
    try:
        limited(data.timeout * (1 + data.retries), get, identifier)
        found = limited(data.most_seconds, get, identifier, download_data=True)
    except OpenMLHashException as error:
        raise RefusedError(f"other content: {explain(error)}") from error
    except SourceError:
        raise
    except Exception as error:  # whatever openml makes of an answer
        raise SourceError(explain(error)) from error
    return Path(found.data_file), found.default_target_attribute


def forget_openml(identifier: int) -> None:
    """Remove a data set from openml's cache."""
    import shutil

    import openml

    folder = Path(openml.config.get_cache_directory(), "datasets", str(identifier))
    shutil.rmtree(folder, ignore_errors=True)


def limited(seconds: float, function: Callable, *given: Any, **options: Any) -> Any:
    """The result of a call that may only take so long.

    A call that takes longer is left to a thread that ends with the process: the package
    openml has no time-out.

    Raises
    ------
    SourceError
        If it takes longer.
    """
    found: queue.SimpleQueue[tuple[Any, Exception | None]] = queue.SimpleQueue()

    def call() -> None:
        try:
            found.put((function(*given, **options), None))
        except Exception as error:
            found.put((None, error))

    threading.Thread(target=call, daemon=True).start()
    try:
        result, error = found.get(timeout=seconds)
    except queue.Empty:
        raise SourceError(f"time-out: no answer within {seconds:g} s") from None
    if error is not None:
        raise error
    return result
