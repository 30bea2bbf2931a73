"""Downloads: over HTTP, resumed and without error pages; and from OpenML.

The openml library waits for ever on a silent host and reads its settings from the
environment when it is imported: this module, run as a process of its own, bounds the
one and holds the other.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from dperm.data.arrays import RefusedError, SourceError

if TYPE_CHECKING:
    import requests

RETRIED = (429, 500, 502, 503, 504)
CHUNK = 1 << 12  # what is lost of a transfer that breaks off
# A resumed file must be byte for byte the file, so no compression on the way.
HEADERS = {"Accept-Encoding": "identity", "User-Agent": "dperm"}
SERVER = "DPERM_OPENML_SERVER"
PATIENCE = 10  # a whole download from OpenML may take this many time-outs


def explain(error: Exception) -> str:
    """Say in one line what went wrong; of a failed request, its innermost cause."""
    inner = error.args[0] if error.args else None
    cause = getattr(inner, "reason", None) or error
    return " ".join(f"{type(cause).__name__}: {cause}".split())


def download(url: str, target: Path, timeout: float, retries: int) -> Path:
    """Download one file; what was received stays in a .part file and is resumed.

    Parameters
    ----------
    url : str
    target : Path
        Appears only when the file is complete.
    timeout : float
        Seconds without an answer before the attempt is given up.
    retries : int
        How often a failed request, or a transfer cut short, is tried again.

    Returns
    -------
    Path
        ``target``.

    Raises
    ------
    SourceError
        If the file could not be had; ``RefusedError`` if a web page came instead.
    """
    import requests

    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    with _session(retries) as session:
        for left in range(retries, -1, -1):
            try:
                if _transfer(session, url, part, timeout):
                    part.replace(target)
                    return target
                problem = "the server does not resume the file"
            except requests.exceptions.RequestException as error:
                problem = explain(error)
                if not _cut_short(error) or not left:
                    break
    raise SourceError(problem)


def file_name(url: str) -> str:
    """Name under which the file of a URL is kept."""
    name = urlsplit(url).path.rsplit("/", 1)[-1]
    return re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip(".") or "download"


def _session(retries: int) -> requests.Session:
    import requests
    from requests.adapters import HTTPAdapter
    from urllib3.util import Retry

    # A server may ask for hours in Retry-After, so the wait is ours.
    policy = Retry(
        total=retries,
        backoff_factor=0.5,
        status_forcelist=RETRIED,
        raise_on_status=False,
        respect_retry_after_header=False,
    )
    session = requests.Session()
    session.headers.update(HEADERS)
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(max_retries=policy))
    return session


def _cut_short(error: Exception) -> bool:
    """Tell a transfer that broke off from a request that was never answered."""
    from requests.exceptions import ChunkedEncodingError, ConnectionError
    from urllib3.exceptions import MaxRetryError

    inner = error.args[0] if error.args else None
    broken = isinstance(error, ChunkedEncodingError | ConnectionError)
    return broken and not isinstance(inner, MaxRetryError)


def _transfer(session: requests.Session, url: str, part: Path, timeout: float) -> bool:
    """Append to the .part file what is missing; False if it has to start afresh."""
    have = part.stat().st_size if part.exists() else 0
    headers = {"Range": f"bytes={have}-"} if have else {}
    with session.get(url, headers=headers, stream=True, timeout=timeout) as response:
        span = response.headers.get("Content-Range", "")
        if have and response.status_code == 416:
            if span == f"bytes */{have}":
                return True
            part.unlink()
            return False
        if not response.ok:
            raise SourceError(f"HTTP {response.status_code} {response.reason}")
        if "html" in response.headers.get("Content-Type", "").lower():
            raise RefusedError("the server sent a web page (HTML) instead of the file")
        resumed = response.status_code == 206 and span.startswith(f"bytes {have}-")
        with open(part, "ab" if resumed else "wb") as handle:
            for chunk in response.iter_content(CHUNK):
                handle.write(chunk)
    return True


# --- OpenML ---------------------------------------------------------------------------


def download_openml(
    identifier: int, folder: Path, timeout: float, retries: int
) -> tuple[Path, str | None]:
    """Download an OpenML data set as ARFF through the openml library.

    Parameters
    ----------
    identifier : int
        Number of the data set.
    folder : Path
        Cache and settings of the library are kept below it.
    timeout : float
        Seconds without an answer before it is given up.
    retries : int
        How often the library asks.

    Returns
    -------
    path : Path
        The ARFF file.
    target : str or None
        The column that OpenML takes as the target.

    Raises
    ------
    SourceError
        If the server does not answer or does not know the data set.
    """
    folder.mkdir(parents=True, exist_ok=True)
    request = {"id": identifier, "timeout": timeout, "retries": max(1, retries)}
    kept = str(folder.resolve())
    settings = {
        "OPENML_CACHE_DIR": kept,
        "XDG_CONFIG_HOME": kept,
        "XDG_CACHE_HOME": kept,
        # Parquet lies on another host, which would be asked first.
        "OPENML_SKIP_PARQUET": "true",
        "PYTHONWARNINGS": "ignore",
    }
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", __name__, json.dumps(request)],
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            timeout=PATIENCE * timeout,
        )
    except subprocess.TimeoutExpired:
        limit = PATIENCE * timeout
        raise SourceError(f"time-out: not complete after {limit:g} s") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise SourceError(lines[-1] if lines else f"exit code {done.returncode}")
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    return Path(answer["path"]), answer["target"]


def _from_openml(request: dict[str, Any]) -> dict[str, Any]:
    import openml
    import requests

    requests.Session.request = functools.partialmethod(  # type: ignore[method-assign, assignment]
        requests.Session.request, timeout=request["timeout"]
    )
    if os.environ.get(SERVER):
        openml.config.server = os.environ[SERVER]
    openml.config.set_retry_policy("human", request["retries"])
    served = openml.datasets.get_dataset(
        request["id"],
        download_data=True,
        download_qualities=False,
        download_features_meta_data=False,
    )
    return {"path": str(served.data_file), "target": served.default_target_attribute}


if __name__ == "__main__":
    try:
        print(json.dumps(_from_openml(json.loads(sys.argv[1]))))
    # The parent turns whatever goes wrong here into the reason it records.
    except Exception as error:
        sys.exit(explain(error))
