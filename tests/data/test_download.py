"""What a server may do to a download: change the file, never end, never move."""

import gzip
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from data.conftest import _send
from dperm.core.experiment.schema import Dataset, Reader, Source
from dperm.data import fetch
from dperm.data.fetching import UNVERIFIED, reading_code

ROWS = 4000
FIRST = ("a,y\n" + "".join(f"{i:05d},{i % 3}\n" for i in range(ROWS))).encode()
SECOND = FIRST.replace(b",1", b",7")  # another file of the same length
RANGE = "Range", "If-Range"


def far(url, **keys):
    source = Source(kind="http", urls=[url])
    return Dataset(name="far", sources=[source], reader=Reader(format="csv"), **keys)


def digest_of(site, data, body):
    """The digest of a file that is served whole."""
    url = site.put("/whole.csv", site.good(body))
    return fetch(far(url), replace(data, dir=data.dir + "-whole")).digest


def breaking(body, at, **headers) -> Callable:
    headers = {"Content-Length": len(body), **headers}
    return lambda handler: _send(handler, 200, headers, body[:at])


def endless(handler, block=b"0" * 65536, code=200, **headers):
    """Send a body that has no end, up to 64 MB."""
    _send(handler, code, headers, b"")
    try:
        for _ in range(1000):
            handler.wfile.write(block)
    except OSError:  # it had enough
        handler.stopped = True


def written(data):
    return sum(path.stat().st_size for path in Path(data.dir).rglob("*"))


def test_a_body_without_an_end_is_cut_off(site, data):
    url = site.put("/far.csv", endless)
    record = fetch(far(url), replace(data, most_bytes=100_000))
    assert "more than 100000 bytes (data.most_bytes)" in record.reason
    assert site.count("/far.csv") == 1 and written(data) < 100_000


def test_a_broken_transfer_is_asked_for_again(site, data):
    url = site.put("/far.csv", site.cut(FIRST, 20_000), site.good(SECOND))
    assert fetch(far(url), data).digest == digest_of(site, data, SECOND)


def test_a_transfer_that_always_breaks_leaves_nothing(site, data):
    url = site.put("/far.csv", site.cut(FIRST, 20_000))
    record = fetch(far(url), data)
    assert not record.available and "IncompleteRead" in record.reason
    assert site.count("/far.csv") == 1 + data.retries
    assert not (Path(data.dir) / "downloads/far").exists()


def test_a_packed_body_is_decoded(site, data):
    packed = gzip.compress(FIRST)
    headers = {"Content-Encoding": "gzip", "Content-Length": len(packed)}
    url = site.put("/far.csv", lambda handler: _send(handler, 200, headers, packed))
    assert fetch(far(url), data).digest == digest_of(site, data, FIRST)


def test_what_unpacks_to_too_much_is_refused(site, data):
    url = site.put("/far.csv.gz", site.good(gzip.compress(FIRST)))
    record = fetch(far(url), replace(data, most_bytes=len(FIRST) - 1))
    assert f"unpacks to more than {len(FIRST) - 1} bytes" in record.reason


OK = b"HTTP/1.0 200 OK\r\nContent-Length: 100000\r\n\r\n"


def test_a_download_may_take_only_so_long_in_all(site, data):
    def steady(handler):
        try:
            handler.wfile.write(OK)
            while not site.closing.wait(0.05):
                handler.wfile.write(b"x" * 800)
        except OSError:
            pass

    url = site.put("/far.csv", steady)
    began = time.monotonic()
    record = fetch(far(url), replace(data, most_seconds=0.5))
    assert "not complete after 0.5 s (data.most_seconds)" in record.reason
    assert time.monotonic() - began < 10


def test_data_without_a_digest_say_so(site, data, caplog):
    url = site.put("/far.csv", site.good(FIRST))
    with caplog.at_level(logging.WARNING):
        record = fetch(far(url), data)
    assert record.warning == UNVERIFIED
    assert caplog.messages == [f"far: {UNVERIFIED}"]
    caplog.clear()
    declared = far(url, digest=record.digest)
    assert fetch(declared, data).warning == ""
    assert not [one for one in caplog.records if one.levelno >= logging.WARNING]
    assert reading_code(declared) == ""


# --- proxies --------------------------------------------------------------------------

FAR = "http://far.invalid/far.csv"  # that only a proxy can find
SECRET = "hunter2-hunter2"


@pytest.fixture
def proxy(site, monkeypatch):
    """The environment names the server as the proxy of all addresses."""
    for name in ("no_proxy", "NO_PROXY", "ALL_PROXY", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    address = site.url("").replace("//", f"//me:{SECRET}@")
    monkeypatch.setenv("http_proxy", address)
    return site


def test_a_proxy_of_the_environment_serves(proxy, data):
    proxy.put(FAR, proxy.cut(FIRST, 20_000), proxy.good(FIRST))
    record = fetch(far(FAR), data)
    assert record.available and record.n == ROWS
    assert len(proxy.requests) == 2


def test_no_proxy_is_asked_for_addresses_that_the_environment_excepts(
    proxy, data, monkeypatch
):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    url = proxy.put("/far.csv", proxy.good(FIRST))
    assert fetch(far(url), data).available
    assert proxy.count(url) == 0 and proxy.count("/far.csv") == 1


@pytest.mark.parametrize("fault", ["login", "page", "cut", "gone"])
def test_a_proxy_that_does_not_serve_is_one_line_without_its_password(
    proxy, data, caplog, fault
):
    answers = {
        "login": [proxy.status(407, SECRET.encode())],
        "page": [proxy.status(200, b"<html>log in</html>", "text/html")],
        "cut": [proxy.cut(FIRST, 10)],
        "gone": [proxy.status(502)],
    }
    proxy.put(FAR, *answers[fault])
    if fault == "gone":
        proxy.server.socket.close()
    record = fetch(far(FAR), data)
    assert not record.available and record.tried
    assert not any("\n" in tried["reason"] for tried in record.tried)
    kept = Path(data.dir, "fetched/far/fetch.json").read_text()
    assert SECRET not in kept + caplog.text
