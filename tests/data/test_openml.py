import hashlib
import time
from dataclasses import replace
from pathlib import Path

import pytest

from dperm.core.experiment.schema import Dataset, Reader, Source
from dperm.data import fetch

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


@pytest.fixture
def openml(site, tmp_path, monkeypatch):
    """The package openml, with the settings of a user who asks the test's server."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    import openml

    monkeypatch.setattr(openml.config, "server", site.url("/api/v1/xml"))
    monkeypatch.setattr(openml.config, "_root_cache_directory", tmp_path / "cache")
    monkeypatch.setattr(openml.config, "connection_n_retries", 1)
    return openml


def serve(site, body=ARFF, checksum=None, number=151, target="class"):
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
    parts = (f"<oml:{key}>{value}</oml:{key}>" for key, value in fields.items())
    name = "oml:data_set_description"
    describe(site, f"<{name} {SPACE}>{''.join(parts)}</{name}>", number)


def describe(site, text, number=151):
    site.put(f"/api/v1/xml/data/{number}", site.good(text.encode(), "text/xml"))


SPACE = 'xmlns:oml="http://openml.org/openml"'


def test_same_digest_from_openml_and_mirror_and_http(site, data, openml):
    serve(site)
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


def test_the_target_is_by_default_openml_s(site, data, openml):
    serve(site)
    no_target = replace(SET, reader=Reader(format="nips2003", positive="UP"))
    assert fetch(no_target, data).p == 3


def test_what_openml_has_in_its_cache_is_not_asked_for_again(site, data, openml):
    serve(site)
    fetch(SET, data)
    fetch(SET, replace(data, dir=data.dir + "-2"))
    assert site.count("/data/electricity.arff") == 1


def test_a_damaged_file_of_the_cache_is_asked_for_again(site, data, openml):
    serve(site)
    record = fetch(SET, data)
    (path,) = Path(openml.config.get_cache_directory()).rglob("dataset.arff")
    path.write_bytes(ARFF.replace(b"0.1", b"0.2"))
    again = fetch(replace(SET, digest=record.digest), replace(data, dir=data.dir + "2"))
    assert again.available and "other content" in again.tried[0]["reason"]


def test_an_unknown_id(site, data, openml):
    text = f"<oml:error {SPACE}><oml:code>111</oml:code><oml:message>Unknown dataset"
    text += "</oml:message></oml:error>"
    site.put("/api/v1/xml/data/151", site.status(412, text.encode(), "text/xml"))
    record = fetch(SET, data)
    assert record.status == "unavailable" and len(record.tried) == 1
    assert "Unknown dataset" in record.reason


@pytest.mark.parametrize("answer", ["[]", "down", "<a>b</a>"])
def test_an_answer_of_another_kind_is_refused(site, data, openml, answer):
    describe(site, answer)
    record = fetch(SET, data)
    assert record.status == "unavailable" and "openml 151: " in record.reason


def test_a_file_with_another_checksum_is_refused(site, data, openml):
    serve(site, checksum="0" * 32)
    record = fetch(SET, data)
    assert record.status == "unavailable" and "other content: " in record.reason
    assert site.count("/data/electricity.arff") == 2  # it is asked for once more


def test_damaged_data_are_refused(site, data, openml):
    serve(site, ARFF[:-9])
    record = fetch(SET, data)
    assert "cannot be read as arff" in record.reason
    assert site.count("/data/electricity.arff") == 2


def test_a_silent_server_is_given_up(site, data, openml):
    site.put("/api/v1/xml/data/151", site.silent)
    started = time.monotonic()
    record = fetch(SET, replace(data, timeout=0.5))
    assert time.monotonic() - started < 15
    assert "time-out: no answer within 1 s" in record.reason


def test_a_file_that_does_not_end_is_given_up(site, data, openml):
    serve(site)
    site.put("/data/electricity.arff", site.silent)
    record = fetch(SET, replace(data, most_seconds=0.5))
    assert "time-out" in record.reason


def test_mtp_comes_from_openml(site, data, openml):
    """The shipped data set of mtp, whose only source is OpenML, on a local server."""
    from dperm.core.experiment.config import compose
    from dperm.data.fetching import load_fetched

    rows = [b"@relation mtp", b"@attribute a numeric", b"@attribute b numeric"]
    rows += [b"@attribute target numeric", b"@data", b"1,2,3", b"2,1,5", b"4,0,1"]
    serve(site, b"\n".join(rows) + b"\n", number=405, target="target")
    mtp = compose(["problem=mtp"]).problem.dataset
    record = fetch(mtp, data)
    assert (record.status, record.source, record.n) == ("ok", "openml 405", 3)
    X, y = load_fetched("mtp", data)
    assert X.tolist() == [[1, 2], [2, 1], [4, 0]] and y.tolist() == [3, 5, 1]
