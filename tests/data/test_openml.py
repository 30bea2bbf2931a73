import hashlib
import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from dperm.data import fetch
from dperm.data.download import SERVER
from dperm.schema import Dataset, Reader, Source

API = "/api/v1/json"
ARFF = b"""@relation electricity
@attribute date numeric
@attribute day {1,2,3,4,5,6,7}
@attribute transfer numeric
@attribute class {UP,DOWN}
@data
0,2,0.414912,UP
0.5,7,0.1,DOWN
"""
SET = Dataset(
    name="electricity",
    sources=[Source(kind="openml", id=151)],
    reader=Reader(format="arff", target="class", positive="UP"),
)


def serve(site, monkeypatch, body=ARFF, checksum=None, number=151, target="class"):
    url = site.put("/data/electricity.arff", site.good(body, "text/plain"))
    checksum = checksum or hashlib.md5(body).hexdigest()
    fields = {
        "id": number,
        "name": "electricity",
        "version": 1,
        "description": "prices",
        "format": "ARFF",
        "url": url,
        "default_target_attribute": target,
        "status": "active",
        "md5_checksum": checksum,
    }
    text = json.dumps({"data_set_description": fields}).encode()
    site.put(f"{API}/data/{number}", site.good(text, "application/json"))
    monkeypatch.setenv(SERVER, site.url(API))


def test_same_digest_from_openml_and_mirror_and_http(site, data, monkeypatch):
    serve(site, monkeypatch)
    record = fetch(SET, data)
    assert (record.status, record.source, record.n) == ("ok", "openml 151", 2)
    assert not (Path(data.dir) / "downloads" / "electricity").exists()
    (Path(data.mirror) / "e.arff").write_bytes(ARFF)
    sources = [
        Source(kind="mirror", files=["e.arff"]),
        Source(kind="http", urls=[site.url("/data/electricity.arff")]),
    ]
    for source in sources:
        other = replace(SET, name=source.kind, sources=[source])
        assert fetch(other, data).digest == record.digest


def test_the_target_is_by_default_openml_s(site, data, monkeypatch):
    serve(site, monkeypatch)
    no_target = replace(SET, reader=Reader(format="nips2003", positive="UP"))
    assert fetch(no_target, data).p == 3


def test_an_unknown_id(site, data, monkeypatch):
    text = b'{"error": {"code": "111", "message": "Unknown dataset"}}'
    site.put(f"{API}/data/151", site.status(412, text, "application/json"))
    monkeypatch.setenv(SERVER, site.url(API))
    record = fetch(SET, data)
    assert record.status == "unavailable" and len(record.tried) == 1
    assert "Unknown dataset" in record.reason


def test_damaged_data_are_refused(site, data, monkeypatch):
    serve(site, monkeypatch, ARFF[:-9])
    record = fetch(SET, data)
    assert "cannot be read as arff" in record.reason
    assert site.count("/data/electricity.arff") == 2


def test_a_silent_server_is_given_up(site, data, monkeypatch):
    site.put(f"{API}/data/151", site.silent)
    monkeypatch.setenv(SERVER, site.url(API))
    started = time.monotonic()
    record = fetch(SET, replace(data, timeout=1.0))
    assert time.monotonic() - started < 15
    assert "timed out" in record.reason or "time-out" in record.reason


def test_a_file_that_broke_off_is_resumed(site, data, monkeypatch):
    long = ARFF + b"% a comment\n" * 1000
    serve(site, monkeypatch, long)
    site.put("/data/electricity.arff", site.cut(long, 9000), site.good(long))
    assert fetch(SET, data).available
    asked = [start for path, start in site.requests if path.startswith("/data/")]
    assert asked == [None, "bytes=8192-"]


def test_another_file_than_openml_says_is_refused(site, data, monkeypatch):
    serve(site, monkeypatch, checksum="0" * 32)
    record = fetch(SET, data)
    assert record.status == "unavailable" and "has MD5 " in record.reason
    assert site.count("/data/electricity.arff") == 2


@pytest.mark.parametrize("text", [b"{", b"[]", b"{}", b'{"data_set_description": 1}'])
def test_a_damaged_description_is_refused(site, data, monkeypatch, text):
    site.put(f"{API}/data/151", site.good(text, "application/json"))
    monkeypatch.setenv(SERVER, site.url(API))
    record = fetch(SET, data)
    assert "/data/151 describes no data set: " in record.reason


def test_mtp_comes_from_openml(site, data, monkeypatch):
    """The shipped data set of mtp, whose only source is OpenML, on a local server."""
    from dperm.config import compose
    from dperm.data.fetching import load_fetched

    rows = [b"@relation mtp", b"@attribute a numeric", b"@attribute b numeric"]
    rows += [b"@attribute target numeric", b"@data", b"1,2,3", b"2,1,5", b"4,0,1"]
    serve(site, monkeypatch, b"\n".join(rows) + b"\n", number=405, target="target")
    mtp = compose(["problem=mtp"]).problem.dataset
    record = fetch(mtp, data)
    assert (record.status, record.source, record.n) == ("ok", "openml 405", 3)
    X, y = load_fetched("mtp", data)
    assert X.tolist() == [[1, 2], [2, 1], [4, 0]] and y.tolist() == [3, 5, 1]
