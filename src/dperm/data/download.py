"""Download over HTTP: retries, resumption and refusal of error pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dperm.data.errors import RefusedError, SourceError, explain

if TYPE_CHECKING:
    import requests

RETRIED = (429, 500, 502, 503, 504)
CHUNK = 1 << 12  # what is lost of a transfer that breaks off
# A resumed file must be byte for byte the file, so no compression on the way.
HEADERS = {"Accept-Encoding": "identity", "User-Agent": "dperm"}


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
    import requests
    from urllib3.exceptions import MaxRetryError

    broken = (
        requests.exceptions.ChunkedEncodingError,
        requests.exceptions.ConnectionError,
    )
    inner = error.args[0] if error.args else None
    return isinstance(error, broken) and not isinstance(inner, MaxRetryError)


def _transfer(session: requests.Session, url: str, part: Path, timeout: float) -> bool:
    """Append to the .part file what is missing; False if it has to start afresh."""
    have = part.stat().st_size if part.exists() else 0
    headers = {"Range": f"bytes={have}-"} if have else {}
    with session.get(url, headers=headers, stream=True, timeout=timeout) as response:
        if have and response.status_code == 416:
            if response.headers.get("Content-Range") == f"bytes */{have}":
                return True
            part.unlink()
            return False
        _check_response(response)
        with open(part, _mode(response, have)) as handle:
            for chunk in response.iter_content(CHUNK):
                handle.write(chunk)
    return True


def _mode(response: requests.Response, have: int) -> str:
    start = f"bytes {have}-"
    resumed = response.headers.get("Content-Range", "").startswith(start)
    return "ab" if response.status_code == 206 and resumed else "wb"


def _check_response(response: requests.Response) -> None:
    if not response.ok:
        raise SourceError(f"HTTP {response.status_code} {response.reason}")
    if "html" in response.headers.get("Content-Type", "").lower():
        raise RefusedError("the server sent a web page (HTML) instead of the file")
