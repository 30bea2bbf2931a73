"""What a server may do to a download: change the file, never end, never move."""

import gzip
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path

import pytest

from data.conftest import _send, etag
from dperm.core.experiment.schema import Dataset, Reader, Source
from dperm.data import fetch
from dperm.data.fetching import UNVERIFIED
from dperm.pipeline import digests

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


def careless(body, **headers) -> Callable:
    """Serve the asked range, whichever version was meant."""

    def answer(handler):
        start = int((handler.headers.get("Range") or "bytes=0-")[6:].split("-")[0])
        head = {"Content-Length": len(body) - start, **headers}
        if start:
            head["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
        _send(handler, 206 if start else 200, head, body[start:])

    return answer


OLD, NEW = formatdate(1e9, usegmt=True), formatdate(1.1e9, usegmt=True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {}),
        ({"ETag": etag(FIRST)}, {"ETag": etag(SECOND)}),
        ({"ETag": etag(FIRST)}, {}),
        ({"ETag": 'W/"1"'}, {"ETag": 'W/"1"'}),
        ({"Last-Modified": OLD}, {"Last-Modified": NEW}),
        ({"Last-Modified": OLD}, {}),
        ({"Last-Modified": "no date"}, {"Last-Modified": "no date"}),
    ],
)
def test_two_versions_of_a_file_are_never_joined(site, data, before, after):
    expected = digest_of(site, data, SECOND)
    first = breaking(FIRST, 20_000, **before)
    url = site.put("/far.csv", first, careless(SECOND, **after))
    record = fetch(far(url), replace(data, retries=2))
    assert record.available and record.n == ROWS
    assert record.digest == expected


@pytest.mark.parametrize(
    "headers", [{"ETag": etag(FIRST)}, {"Last-Modified": OLD}], ids=["tag", "date"]
)
def test_one_version_is_resumed(site, data, headers):
    expected = digest_of(site, data, FIRST)
    first, asked = breaking(FIRST, 20_000, **headers), []

    def rest(handler):
        asked.append([handler.headers.get(name) for name in RANGE])
        careless(FIRST, **headers)(handler)

    url = site.put("/far.csv", first, rest)
    assert fetch(far(url), data).digest == expected
    assert asked == [["bytes=20000-", *headers.values()]]


def test_a_file_that_changed_this_very_second_is_not_resumed(site, data):
    now = {"Last-Modified": formatdate(time.time() + 5, usegmt=True)}
    url = site.put("/far.csv", breaking(FIRST, 20_000, **now), careless(FIRST, **now))
    assert fetch(far(url), data).available
    assert site.requests == [("/far.csv", None), ("/far.csv", None)]


def test_a_range_that_was_not_asked_for_is_no_file(site, data):
    part = {"Content-Range": f"bytes 9-{len(FIRST) - 1}/{len(FIRST)}"}
    url = site.put("/far.csv", lambda handler: _send(handler, 206, part, FIRST[9:]))
    assert not fetch(far(url), data).available


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


@pytest.mark.parametrize("packed", [False, True])
def test_a_body_without_an_end_is_cut_off(site, data, packed):
    headers = {"Content-Encoding": "gzip"} if packed else {}
    block = gzip.compress(bytes(2**24)) if packed else b"0" * 65536
    url = site.put("/far.csv", lambda handler: endless(handler, block, **headers))
    record = fetch(far(url), replace(data, most_bytes=100_000))
    assert "more than 100000 bytes (data.most_bytes)" in record.reason
    assert site.count("/far.csv") == 1 and written(data) < 100_000


def test_a_size_that_is_declared_is_believed(site, data):
    url = site.put("/far.csv", site.good(FIRST))
    few = replace(data, most_bytes=len(FIRST) - 1)
    assert "more than" in fetch(far(url), few).reason
    assert fetch(far(url), replace(few, most_bytes=len(FIRST))).available


def test_a_packed_body_is_decoded_and_never_resumed(site, data):
    packed = gzip.compress(FIRST)
    headers = {"Content-Encoding": "gzip", "ETag": etag(FIRST)}
    whole = breaking(packed, len(packed), **headers)
    url = site.put("/far.csv", breaking(packed, 5000, **headers), whole)
    assert fetch(far(url), data).digest == digest_of(site, data, FIRST)
    assert site.requests[1] == ("/far.csv", None)


def test_what_unpacks_to_too_much_is_refused(site, data):
    url = site.put("/far.csv.gz", site.good(gzip.compress(FIRST)))
    record = fetch(far(url), replace(data, most_bytes=len(FIRST) - 1))
    assert f"unpacks to more than {len(FIRST) - 1} bytes" in record.reason


def trickle(site, first=b""):
    """A byte now and then, each in time to be an answer."""

    def answer(handler):
        try:
            handler.wfile.write(first)
            while not site.closing.wait(0.1):
                handler.wfile.write(b"x")
                handler.wfile.flush()
        except OSError:
            pass

    return answer


OK = b"HTTP/1.0 200 OK\r\nContent-Length: 100000\r\n\r\n"


@pytest.mark.parametrize(("start", "longest"), [(OK, 3), (b"HTTP/1.0 200 OK\r\n", 8)])
def test_a_byte_now_and_then_is_no_progress(site, data, start, longest):
    url = site.put("/far.csv", trickle(site, start))
    began = time.monotonic()
    record = fetch(far(url), replace(data, timeout=0.5, retries=0))
    assert "time-out: " in record.reason
    assert time.monotonic() - began < longest


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
    assert time.monotonic() - began < 4


def test_the_page_of_a_redirect_is_not_read(site, data):
    there = site.put("/there.csv", site.good(FIRST))
    url = site.put(
        "/far.csv", lambda handler: endless(handler, code=302, Location=there)
    )
    began = time.monotonic()
    assert fetch(far(url), data).available
    assert time.monotonic() - began < 5


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
    assert digests.fetching(declared) == ""


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


def test_a_proxy_of_the_environment_serves_and_resumes(proxy, data):
    body = FIRST
    proxy.put(FAR, proxy.cut(body, 20_000), proxy.good(body))
    record = fetch(far(FAR), replace(data, retries=2))
    assert record.available and record.n == ROWS
    assert [span for _, span in proxy.requests] == [None, "bytes=20000-"]


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
