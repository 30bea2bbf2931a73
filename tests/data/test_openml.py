import hashlib
import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from dperm.core.experiment.schema import Dataset, Reader, Source
from dperm.data import fetch
from dperm.data.download import SERVER

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
    checksum = checksum or hashlib.md5(body, usedforsecurity=False).hexdigest()
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
    describe(site, monkeypatch, {"data_set_description": fields}, number)


def describe(site, monkeypatch, answer, number=151):
    text = json.dumps(answer).encode()
    site.put(f"/api/v1/json/data/{number}", site.good(text, "application/json"))
    monkeypatch.setenv(SERVER, site.url("/api/v1/json"))


def test_same_digest_from_openml_and_mirror_and_http(site, data, monkeypatch):
    serve(site, monkeypatch)
    home = Path.home() / ".openml"
    before = home.exists()
    record = fetch(SET, data)
    assert (record.status, record.source, record.n) == ("ok", "openml 151", 2)
    assert home.exists() == before
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
    text = json.dumps({"error": {"code": "111", "message": "Unknown dataset"}})
    site.put("/api/v1/json/data/151", site.status(412, text.encode(), "text/json"))
    monkeypatch.setenv(SERVER, site.url("/api/v1/json"))
    record = fetch(SET, data)
    assert record.status == "unavailable" and len(record.tried) == 1
    assert "HTTP 412" in record.reason and "Unknown dataset" in record.reason


@pytest.mark.parametrize("answer", [[], "down", {"data_set_description": {"id": 151}}])
def test_an_answer_of_another_kind_is_refused(site, data, monkeypatch, answer):
    describe(site, monkeypatch, answer)
    record = fetch(SET, data)
    assert record.status == "unavailable"
    assert "expected the description of a data set" in record.reason


def test_a_file_with_another_checksum_is_refused(site, data, monkeypatch):
    serve(site, monkeypatch, checksum="0" * 32)
    record = fetch(SET, data)
    assert record.status == "unavailable" and "other content: MD5" in record.reason
    assert site.count("/data/electricity.arff") == 2  # it is asked for once more


def test_a_file_of_this_machine_is_not_taken_for_one(site, data, monkeypatch, tmp_path):
    (tmp_path / "e.arff").write_bytes(ARFF)
    digest = hashlib.md5(ARFF, usedforsecurity=False).hexdigest()
    about = {"url": (tmp_path / "e.arff").as_uri(), "md5_checksum": digest}
    describe(site, monkeypatch, {"data_set_description": about})
    assert fetch(SET, data).status == "unavailable"


def test_damaged_data_are_refused(site, data, monkeypatch):
    serve(site, monkeypatch, ARFF[:-9])
    record = fetch(SET, data)
    assert "cannot be read as arff" in record.reason
    assert site.count("/data/electricity.arff") == 2


def test_a_silent_server_is_given_up(site, data, monkeypatch):
    site.put("/api/v1/json/data/151", site.silent)
    monkeypatch.setenv(SERVER, site.url("/api/v1/json"))
    started = time.monotonic()
    record = fetch(SET, replace(data, timeout=1.0))
    assert time.monotonic() - started < 15
    assert "timed out" in record.reason or "time-out" in record.reason


def test_an_answer_that_does_not_begin_is_given_up(site, data, monkeypatch):
    monkeypatch.setattr("dperm.data.download.PATIENCE", 0.05)
    serve(site, monkeypatch)
    site.put("/data/electricity.arff", site.silent)
    record = fetch(SET, replace(data, timeout=2.0, retries=0))
    assert "time-out: no answer within 0.1 s" in record.reason


def test_a_file_that_does_not_end_is_given_up(site, data, monkeypatch):
    serve(site, monkeypatch)
    record = fetch(SET, replace(data, most_seconds=0.0))
    assert "time-out" in record.reason


def test_mtp_comes_from_openml(site, data, monkeypatch):
    """The shipped data set of mtp, whose only source is OpenML, on a local server."""
    from dperm.core.experiment.config import compose
    from dperm.data.fetching import load_fetched

    rows = [b"@relation mtp", b"@attribute a numeric", b"@attribute b numeric"]
    rows += [b"@attribute target numeric", b"@data", b"1,2,3", b"2,1,5", b"4,0,1"]
    serve(site, monkeypatch, b"\n".join(rows) + b"\n", number=405, target="target")
    mtp = compose(["problem=mtp"]).problem.dataset
    record = fetch(mtp, data)
    assert (record.status, record.source, record.n) == ("ok", "openml 405", 3)
    X, y = load_fetched("mtp", data)
    assert X.tolist() == [[1, 2], [2, 1], [4, 0]] and y.tolist() == [3, 5, 1]
