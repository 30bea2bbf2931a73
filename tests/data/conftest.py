"""A web server on this machine that behaves as well or as badly as a test asks."""

import hashlib
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from dperm.core.experiment.schema import Data

Answer = Callable[[BaseHTTPRequestHandler], None]


class Site:
    """Answers by path: each request takes the next answer, the last one stays."""

    def __init__(self):
        self.answers: dict[str, list[Answer]] = {}
        self.requests: list[tuple[str, str | None]] = []
        self.closing = threading.Event()
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                site.requests.append((self.path, self.headers.get("Range")))
                left = site.answers.get(self.path, [site.status(404)])
                (left.pop(0) if len(left) > 1 else left[0])(self)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}{path}"

    def put(self, path: str, *answers: Answer) -> str:
        self.answers[path] = list(answers)
        return self.url(path)

    def count(self, path: str) -> int:
        return sum(requested == path for requested, _ in self.requests)

    def silent(self, handler: BaseHTTPRequestHandler) -> None:
        self.closing.wait(20)

    @staticmethod
    def good(body: bytes, kind: str = "application/octet-stream") -> Answer:
        """Serve a file, from the asked byte on if it is the version that is asked."""

        def answer(handler):
            start = int((handler.headers.get("Range") or "bytes=0-")[6:].split("-")[0])
            tag = etag(body)
            start = start if handler.headers.get("If-Range", tag) == tag else 0
            headers = {"Content-Type": kind, "Content-Length": len(body) - start}
            headers["ETag"] = tag
            if start:
                headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
            _send(handler, 206 if start else 200, headers, body[start:])

        return answer

    @staticmethod
    def cut(body: bytes, at: int) -> Answer:
        """Promise a whole file and break off."""
        headers = {"Content-Length": len(body), "ETag": etag(body)}
        return lambda handler: _send(handler, 200, headers, body[:at])

    @staticmethod
    def status(code: int, body: bytes = b"", kind: str = "text/plain") -> Answer:
        headers = {"Content-Type": kind, "Content-Length": len(body)}
        return lambda handler: _send(handler, code, headers, body)

    def close(self) -> None:
        self.closing.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def etag(body: bytes) -> str:
    """What a server calls this version of a file."""
    return f'"{hashlib.sha256(body).hexdigest()[:8]}"'


def _send(handler, code: int, headers: dict, body: bytes) -> None:
    handler.send_response(code)
    for name, value in headers.items():
        handler.send_header(name, str(value))
    handler.end_headers()
    handler.wfile.write(body)


@pytest.fixture
def site():
    """A server of this test's own."""
    server = Site()
    yield server
    server.close()


@pytest.fixture
def data(tmp_path: Path) -> Data:
    """Data settings: an empty mirror, short waits."""
    (tmp_path / "mirror").mkdir()
    return Data(
        mirror=str(tmp_path / "mirror"),
        dir=str(tmp_path / "data"),
        timeout=10.0,
        retries=1,
    )
