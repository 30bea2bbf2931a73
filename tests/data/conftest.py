"""A web server on this machine that behaves as well or as badly as a test asks."""

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pooch.core
import pytest

from dperm.config.schema import Data

Answer = Callable[[BaseHTTPRequestHandler], None]


class Site:
    """Answers by path: each request takes the next answer, the last one stays."""

    def __init__(self):
        self.answers: dict[str, list[Answer]] = {}
        self.requests: list[str] = []
        self.closing = threading.Event()
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                site.requests.append(self.path)
                left = site.answers.get(self.path, [site.send(b"", 404)])
                (left.pop(0) if len(left) > 1 else left[0])(self)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(
            target=self.server.serve_forever, args=(0.05,)
        )
        self.thread.start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}{path}"

    def put(self, path: str, *answers: Answer | bytes) -> str:
        """The URL of a path with these answers; bytes are a file."""
        self.answers[path] = [
            self.send(one) if isinstance(one, bytes) else one
            for one in answers
        ]
        return self.url(path)

    def silent(self, handler: BaseHTTPRequestHandler) -> None:
        self.closing.wait(20)

    def endless(self, handler: BaseHTTPRequestHandler) -> None:
        """Send a body that does not end, slowly."""
        self.send(b"", length=10**9)(handler)
        try:
            while not self.closing.wait(0.02):
                handler.wfile.write(b"1,2\n" * 8000)
        except OSError:  # it had enough
            pass

    @staticmethod
    def send(
        body: bytes, code: int = 200, length: int | None = None
    ) -> Answer:
        """Answer with a body; a ``length`` that is promised may not be kept."""

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(code)
            handler.send_header("Content-Length", str(length or len(body)))
            handler.end_headers()
            handler.wfile.write(body)

        return answer

    @staticmethod
    def moved(location: str) -> Answer:
        """Answer with a redirect."""

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(302)
            handler.send_header("Location", location)
            handler.send_header("Content-Length", "0")
            handler.end_headers()

        return answer

    def close(self) -> None:
        self.closing.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def site():
    """A server of this test's own."""
    server = Site()
    yield server
    server.close()


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Data:
    """Data settings: an empty mirror, short waits, none before another attempt."""
    hasty = SimpleNamespace(sleep=lambda seconds: None)
    monkeypatch.setattr(pooch.core, "time", hasty)
    (tmp_path / "mirror").mkdir()
    return Data(
        mirror=str(tmp_path / "mirror"),
        dir=str(tmp_path / "data"),
        timeout=10.0,
        retries=1,
    )
