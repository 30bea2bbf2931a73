import hashlib
import time
from dataclasses import replace
from pathlib import Path

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
NAMESPACE = 'xmlns:oml="http://openml.org/openml"'
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
    inner = "".join(f"<oml:{k}>{v}</oml:{k}>" for k, v in fields.items())
    outer = "data_set_description"
    text = f"<oml:{outer} {NAMESPACE}>{inner}</oml:{outer}>"
    site.put(f"/api/v1/xml/data/{number}", site.good(text.encode(), "text/xml"))
    monkeypatch.setenv(SERVER, site.url("/api/v1/xml"))


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
    text = f"<oml:error {NAMESPACE}><oml:code>111</oml:code>"
    text += "<oml:message>Unknown dataset</oml:message></oml:error>"
    site.put("/api/v1/xml/data/151", site.status(412, text.encode()))
    monkeypatch.setenv(SERVER, site.url("/api/v1/xml"))
    record = fetch(SET, data)
    assert record.status == "unavailable" and len(record.tried) == 1
    assert "Unknown dataset" in record.reason


def test_damaged_data_are_refused(site, data, monkeypatch):
    serve(site, monkeypatch, ARFF[:-9])
    record = fetch(SET, data)
    assert "cannot be read as arff" in record.reason
    assert site.count("/data/electricity.arff") == 2


def test_a_silent_server_is_given_up(site, data, monkeypatch):
    site.put("/api/v1/xml/data/151", site.silent)
    monkeypatch.setenv(SERVER, site.url("/api/v1/xml"))
    started = time.monotonic()
    record = fetch(SET, replace(data, timeout=1.0))
    assert time.monotonic() - started < 15
    assert "timed out" in record.reason or "time-out" in record.reason


def test_a_child_that_hangs_is_stopped(site, data, monkeypatch):
    monkeypatch.setattr("dperm.data.download.PATIENCE", 0.05)
    serve(site, monkeypatch)
    record = fetch(SET, replace(data, timeout=2.0))
    assert "time-out: not complete after 0.1 s" in record.reason


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
