"""Resumable downloads over HTTP that refuse error pages, and downloads from OpenML."""

from __future__ import annotations

import hashlib
import json
import os
import queue
import re
import threading
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from dperm.core.experiment.schema import Data
from dperm.data.arrays import RefusedError, SourceError

if TYPE_CHECKING:
    import requests

RETRIED = (429, 500, 502, 503, 504)
CHUNK = 1 << 16
LEAST = 1 << 12  # least bytes to arrive within every time-out
# A resumed file must match byte for byte, so transfers are not compressed.
HEADERS = {"Accept-Encoding": "identity", "User-Agent": "dperm"}
SERVER = "DPERM_OPENML_SERVER"  # replaces the address of OpenML
PATIENCE = 10  # time-outs until an answer must begin


def explain(error: Exception) -> str:
    """The cause of an error in one line; for a failed request the innermost cause."""
    inner = error.args[0] if error.args else None
    cause = getattr(inner, "reason", None) or error
    return " ".join(f"{type(cause).__name__}: {cause}".split())


def download(url: str, target: Path, data: Data) -> Path:
    """Download one file; a partial download stays in a .part file and is resumed.

    It is resumed only where the server states the version of the file, by a strong ETag
    or by a date, so that two versions are never joined.

    Parameters
    ----------
    target : Path
        Appears only when the file is complete.
    data : Data
        Its limits: seconds without an answer or with hardly any data; repetitions of a
        failed request or of an interrupted transfer; decoded bytes; seconds in total.

    Returns
    -------
    Path
        ``target``.

    Raises
    ------
    SourceError
        If the file is not available; ``RefusedError`` if a web page came instead.
    """
    from requests.exceptions import RequestException
    from urllib3.exceptions import HTTPError

    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    end = time.monotonic() + data.most_seconds
    with _session(data.retries) as session:
        for attempt in range(data.retries + 1):
            try:
                if _transfer(session, url, part, data, end):
                    part.replace(target)
                    return target
                problem = "the server does not resume the file"
            except (RequestException, HTTPError) as error:
                problem = explain(error)
                if not _may_pass(error) or attempt == data.retries:
                    break
                left = max(0.0, end - time.monotonic())
                time.sleep(min(0.5 * (2**attempt - 1), left))
    raise SourceError(problem)


def file_name(url: str) -> str:
    """File name under which the content of a URL is kept."""
    name = urlsplit(url).path.rsplit("/", 1)[-1]
    return re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip(".") or "download"


def _session(retries: int) -> requests.Session:
    import requests
    from requests.adapters import HTTPAdapter
    from urllib3.util import Retry

    # A server may set hours in Retry-After, so the wait is set here.
    policy = Retry(total=retries, backoff_factor=0.5, respect_retry_after_header=False)
    session = requests.Session()
    session.headers.update(HEADERS)
    session.hooks["response"].append(_leave_unread)
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(max_retries=policy))
    return session


def _leave_unread(response: requests.Response, **_: Any) -> None:
    """Keep requests from reading the page of a redirect, which may be endless."""
    if response.is_redirect:
        response._content = b""
        response.close()


def _may_pass(error: Exception) -> bool:
    """Whether a retry may succeed; not after a request that was never answered."""
    from requests.exceptions import ConnectionError, RetryError
    from urllib3.exceptions import MaxRetryError, ProtocolError, ReadTimeoutError

    inner = error.args[0] if error.args else None
    broken = isinstance(error, ConnectionError | ProtocolError | ReadTimeoutError)
    return isinstance(error, RetryError) or (
        broken and not isinstance(inner, MaxRetryError)
    )


def _transfer(
    session: requests.Session, url: str, part: Path, data: Data, end: float
) -> bool:
    """Append the missing bytes to the .part file; False if it has to start again."""
    from requests.exceptions import RetryError

    mark = part.with_name(f"{part.name}.version")
    version = mark.read_text(encoding="utf-8") if mark.exists() else ""
    have = part.stat().st_size if version and part.exists() else 0
    headers = {"Range": f"bytes={have}-", "If-Range": version} if have else {}
    with _answer(session, url, headers, data, end) as response:
        span = response.headers.get("Content-Range", "")
        if have and response.status_code == 416 and span == f"bytes */{have}":
            return True
        resumed = response.status_code == 206
        fits = span.startswith(f"bytes {have}-") and _version(response) == version
        if (have and response.status_code == 416) or (resumed and not (have and fits)):
            mark.unlink(missing_ok=True)
            return False
        said = f"HTTP {response.status_code} {response.reason}"
        if response.status_code in RETRIED:
            raise RetryError(said)
        if not response.ok:
            raise SourceError(said + _reason(response))
        if "html" in response.headers.get("Content-Type", "").lower():
            raise RefusedError("the server sent a web page (HTML) instead of the file")
        size = have if resumed else 0
        declared = response.headers.get("Content-Length", "")
        try:
            if declared.isdecimal():
                _check_size(size + int(declared), data)
            with open(part, "ab" if resumed else "wb") as handle:
                mark.write_text(_version(response), encoding="utf-8")
                for chunk in _chunks(response, data, end):
                    size += len(chunk)
                    _check_size(size, data)
                    handle.write(chunk)
        except _TooLargeError:
            part.unlink(missing_ok=True)
            raise
    return True


def _reason(response: requests.Response) -> str:
    """The answer's message besides its code, but not the text of a web page."""
    if "json" not in response.headers.get("Content-Type", ""):
        return ""
    body = response.raw.read1(CHUNK, decode_content=True)
    return f": {body.decode(errors='replace')[:300]!r}"


class _TooLargeError(SourceError):
    """More bytes than a file may have."""


def _check_size(size: int, data: Data) -> None:
    if size > data.most_bytes:
        raise _TooLargeError(f"more than {data.most_bytes} bytes (data.most_bytes)")


def _version(response: requests.Response) -> str:
    """The version for If-Range: a strong ETag or a date; none if compressed."""
    headers = response.headers
    if headers.get("Content-Encoding", "identity").lower() != "identity":
        return ""
    tag, date = headers.get("ETag", ""), headers.get("Last-Modified", "")
    if tag.startswith('"'):
        return tag
    try:  # a file may change again within this second
        age = parsedate_to_datetime(headers["Date"]) - parsedate_to_datetime(date)
    except (KeyError, ValueError, TypeError):
        return ""
    return date if age.total_seconds() >= 1 else ""


def _answer(
    session: requests.Session,
    url: str,
    headers: dict[str, str],
    data: Data,
    end: float,
) -> requests.Response:
    """The response; a thread waits for its headers, which may never be complete."""
    found: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def ask() -> None:
        try:
            found.put(
                session.get(url, headers=headers, stream=True, timeout=data.timeout)
            )
        except Exception as error:
            found.put(error)

    threading.Thread(target=ask, daemon=True).start()
    patience = (data.retries + PATIENCE) * data.timeout
    left = max(0.0, min(patience, end - time.monotonic()))
    try:
        answer = found.get(timeout=left)
    except queue.Empty:
        raise SourceError(f"time-out: no answer within {left:g} s") from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _chunks(response: requests.Response, data: Data, end: float) -> Iterator[bytes]:
    """Yield decoded data, as long as they arrive fast enough."""
    since, got = time.monotonic(), 0
    while chunk := response.raw.read1(CHUNK, decode_content=True):
        yield chunk
        got += len(chunk)
        now = time.monotonic()
        if now > end:
            raise SourceError(
                f"time-out: not complete after {data.most_seconds:g} s "
                "(data.most_seconds)"
            )
        if now - since > data.timeout:
            if got < LEAST:
                raise SourceError(f"time-out: {got} bytes within {now - since:.1f} s")
            since, got = now, 0


# --- OpenML ---------------------------------------------------------------------------


def download_openml(
    identifier: int, folder: Path, data: Data
) -> tuple[Path, str | None]:
    """Download an OpenML data set as ARFF.

    Parameters
    ----------
    identifier : int
        Number of the data set.
    folder : Path
        For its description and its file.
    data : Data
        The limits of each download.

    Returns
    -------
    path : Path
        The ARFF file.
    target : str or None
        The target column according to OpenML.

    Raises
    ------
    SourceError
        If the server does not answer or does not know the data set; ``RefusedError`` if
        the file does not match its description.
    """
    server = os.environ.get(SERVER, "https://www.openml.org/api/v1/json")
    answer = download(f"{server}/data/{identifier}", folder / "about.json", data)
    try:
        about = json.loads(answer.read_bytes())["data_set_description"]
        url, checksum = about["url"], about["md5_checksum"]
    except (ValueError, KeyError, TypeError) as error:
        text = f"{explain(error)}, expected the description of a data set"
        raise RefusedError(text) from error
    path = download(url, folder / file_name(url), data)
    with open(path, "rb") as handle:
        digest = hashlib.file_digest(handle, _md5).hexdigest()
    if digest != checksum:
        raise RefusedError(f"other content: MD5 {digest}, expected {checksum}")
    return path, about.get("default_target_attribute")


def _md5() -> Any:
    return hashlib.md5(usedforsecurity=False)
