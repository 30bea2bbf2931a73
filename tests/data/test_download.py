"""Servers that serve well or badly, OpenML, and what is unpacked of a download."""

import bz2
import gzip
import hashlib
import io
import lzma
import re
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from data.conftest import Site
from dperm.config.schema import Dataset, Reader, Source
from dperm.data import digest_arrays, fetch
from dperm.data.arrays import RefusedError
from dperm.data.fetching import load_fetched
from dperm.data.readers import read_files

N = 3000
BODY = ("a,y\n" + "".join(f"{i:05d},{i % 3}\n" for i in range(N))).encode()
DIGEST = digest_arrays(np.arange(N)[:, None], np.arange(N) % 3)
OTHER = BODY.replace(b",1", b",7")  # another file of the same length


def far(*urls, **keys):
    source = Source(origin="http", urls=list(urls))
    return Dataset(
        name="far", sources=[source], reader=Reader(format="csv"), **keys
    )


def left(data):
    return [
        path
        for path in Path(data.dir, "downloads").rglob("*")
        if path.is_file()
    ]


def reason_of(dataset, data):
    """Why no source serves it; nothing of a download is left."""
    record = fetch(dataset, data)
    assert record.status == "unavailable" and left(data) == []
    # the cure
    assert "\n" not in record.reason and "DPERM_MIRROR" in record.reason
    return record.reason


# --- http -----------------------------------------------------------------------------


def test_a_file_is_downloaded_once(site, data):
    url = site.put("/far.csv", BODY)
    record = fetch(far(url), data)
    assert (record.source, record.n, record.digest) == (
        f"http {url}",
        N,
        DIGEST,
    )
    assert fetch(far(url, digest=DIGEST), data) == record
    assert site.requests == ["/far.csv"] and left(data) == []


CUT = 20_000
BAD = {  # answer, words of the refusal, requests
    "cut": (
        lambda site: site.send(BODY[:CUT], length=len(BODY)),
        "IncompleteRead",
        2,
    ),
    "503": (lambda site: site.send(b"", 503), "far.csv: HTTP 503", 2),
    "404": (lambda site: site.send(b"", 404), "far.csv: HTTP 404", 2),
    "page": (
        lambda site: site.send(b"<!doctype html><html>moved"),
        "web page",
        2,
    ),
    "other": (
        lambda site: site.send(OTHER),
        "other content.*expected sha256",
        2,
    ),
    "short": (lambda site: site.send(BODY[:-20]), "expected 2 fields", 2),
    "damaged": (
        lambda site: site.send(gzip.compress(BODY)[:-20]),
        "be read as csv",
        2,
    ),
    "silent": (lambda site: site.silent, "timed out|Timeout", 2),
    "endless": (lambda site: site.endless, "far.csv: .*not had within", 1),
}


@pytest.mark.parametrize("fault", BAD)
def test_a_bad_download_is_refused_and_leaves_nothing(site, data, fault):
    answer, words, requests = BAD[fault]
    url = site.put("/far.csv", answer(site))
    most = 0.5 if fault == "endless" else 60.0
    hasty = replace(data, timeout=0.3, most_seconds=most, most_bytes=2**31)
    reason = reason_of(far(url, digest=DIGEST), hasty)
    assert re.search(words, reason), reason
    assert site.requests.count("/far.csv") == requests


@pytest.mark.parametrize("fault", ["cut", "503", "page", "other"])
def test_what_is_asked_for_again_may_be_right(site, data, fault):
    url = site.put("/far.csv", BAD[fault][0](site), BODY)
    assert fetch(far(url, digest=DIGEST), data).available


def test_of_several_files_the_missing_one_is_named(site, data):
    urls = [site.put("/1", b"1 2\n"), site.url("/2")]
    pairs = replace(far(*urls), reader=Reader(format="nips2003"))
    assert f"http {urls[0]} and 1 more: 2: HTTP 404" in reason_of(pairs, data)


PROXIED = "http://far.invalid/far.csv"  # that only a proxy can find
SECRET = "hunter2-hunter2"


@pytest.mark.parametrize("fault", [None, "login", "page", "gone"])
def test_a_proxy_of_the_environment_serves_and_its_password_is_not_shown(
    site, data, monkeypatch, caplog, fault
):
    for name in ("no_proxy", "NO_PROXY", "ALL_PROXY", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    address = site.url("").replace("//", f"//me:{SECRET}@")
    monkeypatch.setenv("http_proxy", address)
    answers = {
        "login": site.send(SECRET.encode(), 407),
        "page": b"<html>log in",
    }
    site.put(PROXIED, answers.get(fault, BODY))
    if fault == "gone":
        site.server.socket.close()
    record = fetch(far(PROXIED), data)
    assert record.available is (fault is None)
    kept = Path(data.dir, "fetched/far/fetch.json").read_text()
    assert SECRET not in kept + caplog.text


# --- OpenML ---------------------------------------------------------------------------

ARFF = b"""@relation electricity
@attribute date numeric
@attribute class {UP,DOWN}
@attribute day {1,2,3,4,5,6,7}
@data
0,UP,2
0.1,DOWN,7
"""
SET = Dataset(
    name="electricity",
    sources=[Source(origin="openml", id=151)],
    reader=Reader(format="arff", positive="UP"),
)
PATH = "/api/v1/xml/data/151"
SPACE = 'xmlns:oml="http://openml.org/openml"'
UNKNOWN = (
    f"<oml:error {SPACE}><oml:code>111</oml:code><oml:message>Unknown dataset"
)
UNKNOWN += "</oml:message></oml:error>"


@pytest.fixture
def openml(site, tmp_path, monkeypatch):
    """The package openml, with the settings of a user who asks the test's server."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    import openml

    monkeypatch.setattr(openml.config, "server", site.url("/api/v1/xml"))
    monkeypatch.setattr(
        openml.config, "_root_cache_directory", tmp_path / "cache"
    )
    monkeypatch.setattr(openml.config, "connection_n_retries", 1)
    return openml


def describe(site):
    """Serve a data set, and its description, as OpenML does."""
    fields = {
        "id": 151,
        "name": "electricity",
        "version": 1,
        "description": "prices",
        "format": "ARFF",
        "url": site.put("/data.arff", ARFF),
        "default_target_attribute": "class",
        "status": "active",
        "md5_checksum": hashlib.md5(ARFF, usedforsecurity=False).hexdigest(),
    }
    parts = (
        f"<oml:{key}>{value}</oml:{key}>" for key, value in fields.items()
    )
    name = "oml:data_set_description"
    site.put(PATH, f"<{name} {SPACE}>{''.join(parts)}</{name}>".encode())


def test_openml_names_the_target_and_its_cache_is_used_and_mended(
    site, data, openml
):
    describe(site)
    record = fetch(SET, data)
    X, y = load_fetched("electricity", data)
    assert record.source == "openml 151"
    assert X.tolist() == [[0, 2], [0.1, 7]] and y.tolist() == [1, -1]
    fetch(SET, replace(data, dir=data.dir + "-2"))
    assert site.requests.count("/data.arff") == 1
    (path,) = Path(openml.config.get_cache_directory()).rglob("dataset.arff")
    path.write_bytes(ARFF.replace(b"0.1", b"0.2"))
    declared = replace(SET, digest=record.digest)
    again = fetch(declared, replace(data, dir=data.dir + "-3"))
    assert again.available and again.digest == record.digest


def test_a_file_of_openml_in_the_mirror_comes_first(site, data, openml):
    dataset = replace(SET, reader=replace(SET.reader, target="class"))
    place = Path(data.mirror, "openml", "151.arff")
    said = "it: put openml.org/d/151 as openml/151.arff into the folder named by DPERM_"
    assert said in reason_of(dataset, data)
    asked = len(site.requests)
    place.parent.mkdir()
    place.write_bytes(ARFF)
    assert fetch(dataset, data).n == 2 and len(site.requests) == asked


@pytest.mark.parametrize(
    ("path", "answer", "words"),
    [
        (
            PATH,
            lambda site: site.send(UNKNOWN.encode(), 412),
            "Unknown dataset",
        ),
        (PATH, lambda site: site.send(b"[]"), "openml 151: 151.arff: "),
        (PATH, lambda site: site.send(b"<a>b</a>"), "openml 151: 151.arff: "),
        (PATH, lambda site: site.silent, "151.arff: not had within 1 s"),
        (
            "/data.arff",
            lambda site: site.silent,
            "151.arff: not had within 0.5 s",
        ),
        (
            "/data.arff",
            lambda site: site.send(ARFF[:-9]),
            "OpenMLHashException: ",
        ),
        ("/data.arff", lambda site: site.send(b"", 404), "151.arff: "),
    ],
)
def test_a_bad_answer_of_openml_is_refused(
    site, data, openml, path, answer, words
):
    describe(site)
    site.put(path, answer(site))
    assert words in reason_of(
        SET, replace(data, timeout=0.5, most_seconds=0.5)
    )


# --- unpacking ------------------------------------------------------------------------


def tar(members, mode="w:gz"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def zipped(members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members:
            archive.writestr(name, content)
    return out.getvalue()


def unpacked(folder, content, *wanted, most=10**6):
    """What is read of a packed table; nothing is written beside it."""
    path = folder / "a" / "file"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    try:
        return read_files([path], Reader(format="csv"), wanted, most)[
            1
        ].tolist()
    finally:
        assert [one for one in folder.rglob("*") if one.is_file()] == [path]


TABLE = b"a,y\n1,2\n" + b"3,4\n" * 500
BOTH = [("d/x.data", TABLE), ("d/../../../y.data", b"a,y\n5,6\n")]


@pytest.mark.parametrize(
    "packed",
    [gzip.compress(TABLE), bz2.compress(TABLE), lzma.compress(TABLE), TABLE, tar(BOTH),
     tar(BOTH, "w"), tar(BOTH, "w:bz2"), zipped(BOTH)],
    ids=["gz", "bz2", "xz", "plain", "tar.gz", "tar", "tar.bz2", "zip"],
)  # fmt: skip
def test_a_packed_file_is_read(tmp_path, packed):
    assert unpacked(tmp_path, packed, "x.data") == [2.0, *[4.0] * 500]
    with pytest.raises(
        RefusedError, match=r"^file: .*more than 900 bytes in all"
    ):
        unpacked(tmp_path, packed, "x.data", most=900)


@pytest.mark.parametrize("archive", [tar(BOTH), zipped(BOTH)])
def test_members_are_named(tmp_path, archive):
    assert unpacked(tmp_path, archive, "y.data") == [6.0]
    with pytest.raises(
        RefusedError, match="file: 0 members 'c'; it holds d/x"
    ):
        unpacked(tmp_path, archive, "c")
    with pytest.raises(
        RefusedError, match=r"file: it is an archive of .*`members`"
    ):
        unpacked(tmp_path, archive)


@pytest.mark.parametrize(
    "member_type",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE],
)
def test_a_link_or_device_in_an_archive_is_none_of_its_members(
    tmp_path, member_type
):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        link = tarfile.TarInfo("way")
        link.type, link.linkname = member_type, "/etc/passwd"
        archive.addfile(link)
    for wanted in ((), ("way",), ("passwd",)):
        with pytest.raises(RefusedError, match=r"nothing|0 members"):
            unpacked(tmp_path, out.getvalue(), *wanted)


@pytest.mark.parametrize(
    "damaged",
    [
        gzip.compress(TABLE)[:-20],
        gzip.compress(TABLE)[:-8] + b"\0" * 8,
        bz2.compress(TABLE)[:-4],
        bz2.compress(TABLE)[:9] + b"?" * 30,
        tar([("x", b"a" * 9999)])[:60],
        tar([("x", b"a" * 9999)], "w")[:5000],
    ],
    ids=["gz cut", "gz sum", "bz2 cut", "bz2 spoilt", "tar.gz cut", "tar cut"],
)
def test_damaged_archives_are_refused(tmp_path, damaged):
    with pytest.raises(RefusedError, match=r"^file cannot be read as csv"):
        unpacked(tmp_path, damaged)


# --- one budget for a download and its unpacking --------------------------------------

MOST = 1_000_000  # bytes


def header(member_type, size):
    """The header of a member in a tar archive, which promises so many bytes."""
    member = tarfile.TarInfo("x")
    member.type, member.size = member_type, size
    return member.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize("member_type", [b"x", b"L", b"K"])
@pytest.mark.parametrize("size", [2**31, -1024])
def test_headers_of_an_archive_are_not_read_whole(tmp_path, member_type, size):
    packed = gzip.compress(header(member_type, size) + bytes(4096))
    with pytest.raises(RefusedError, match="headers of no sensible size"):
        unpacked(tmp_path, packed)


def test_a_member_of_a_negative_size_gives_no_bytes_back(tmp_path):
    """To the budget of the others."""
    with pytest.raises(RefusedError, match="bytes in all"):
        unpacked(tmp_path, header(tarfile.REGTYPE, -512) * 3)


def many_zipped(count, size, ending="csv"):
    """A zip archive of so many files of zeros."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(count):
            archive.writestr(f"{i}.{ending}", bytes(size))
    return packed.getvalue()


def many_tarred(count, size):
    """A packed tar archive of so many files of zeros."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for i in range(count):
            member = tarfile.TarInfo(f"{i}.csv")
            member.size = size
            archive.addfile(member, io.BytesIO(bytes(size)))
    return packed.getvalue()


HUNGRY = {  # what is served, words of the refusal
    "endless": (lambda site: site.endless, "more bytes than data.most_bytes"),
    "a long promise": (
        lambda site: site.send(b"", length=10**12),
        "most_bytes",
    ),
    "plain": (lambda site: site.send(BODY * 40), "most_bytes"),
    "packed": (
        lambda site: site.send(gzip.compress(b"1,2\n" * 10**6)),
        "most_bytes",
    ),
    "a member": (lambda site: site.send(many_zipped(1, 10**7)), "most_bytes"),
    "arrays": (
        lambda site: site.send(many_zipped(1, 10**7, "npy")),
        "most_bytes",
    ),
    "a tar member": (
        lambda site: site.send(many_tarred(1, 10**7)),
        "most_bytes",
    ),
    "many tar members": (
        lambda site: site.send(many_tarred(30, 10**5)),
        "most_bytes",
    ),
    "20,000 members": (
        lambda site: site.send(many_zipped(20_000, 1)),
        "10000 files",
    ),
    "200 members": (
        lambda site: site.send(many_zipped(200, 1)),
        "and 195 more",
    ),
}


@pytest.mark.parametrize("answer_name", HUNGRY)
def test_a_download_stays_within_its_bytes(site, data, answer_name):
    answer, words = HUNGRY[answer_name]
    url = site.put("/far.csv", answer(site))
    most = (
        10 * MOST
        if "members" in answer_name and "tar" not in answer_name
        else MOST
    )
    reason = reason_of(far(url), replace(data, most_bytes=most, retries=0))
    assert re.search(words, reason) and len(reason) < 700, reason


def test_several_files_share_one_budget(site, data):
    urls = [site.put(f"/{i}", b"1 2\n" * 60_000) for i in range(6)]
    files = replace(far(*urls), reader=Reader(format="nips2003"))
    reason = reason_of(files, replace(data, most_bytes=MOST, retries=0))
    assert "most_bytes" in reason
    assert site.requests == [f"/{i}" for i in range(5)], (
        "the fifth is one too many"
    )


def test_members_share_the_budget_too(tmp_path):
    path = tmp_path / "some.zip"
    path.write_bytes(many_zipped(3, 400_000))
    members = ["0.csv", "1.csv", "2.csv"]
    with pytest.raises(
        RefusedError, match=r"2.csv: more than 1000000 bytes in all"
    ):
        read_files([path], Reader(format="csv"), members, MOST)


@pytest.fixture
def elsewhere():
    site = Site()
    yield site
    site.close()


@pytest.mark.parametrize("is_declared", [False, True])
def test_another_host_serves_only_what_has_a_digest(
    site, elsewhere, data, is_declared
):
    url = site.put("/far.csv", site.moved(elsewhere.put("/there.csv", BODY)))
    dataset = far(url, digest=DIGEST if is_declared else None)
    if is_declared:
        assert fetch(dataset, data).available
    else:
        assert "a redirect to another host" in reason_of(dataset, data)
        assert elsewhere.requests == []


@pytest.mark.parametrize(
    ("to", "words"),
    [
        ("/far.csv", "more than 10 redirects"),
        ("file:///etc/passwd", "expected http or https"),
        ("ftp://127.0.0.1/x", "expected http or https"),
    ],
)
def test_a_redirect_that_leads_astray_is_refused(site, data, to, words):
    url = site.put("/far.csv", site.moved(to))
    assert words in reason_of(
        far(url, digest=DIGEST), replace(data, retries=0)
    )


def test_a_redirect_on_the_same_host_is_followed(site, data):
    site.put("/there.csv", BODY)
    assert fetch(
        far(site.put("/far.csv", site.moved("/there.csv"))), data
    ).available


GREEDY = {  # content, reader, words
    "one long line": (b"1," * 10**7, Reader(format="csv"), "has a line of more than"),
    "many columns": (
        b",".join(b"%d" % i for i in range(200_000)) + b"\n" + b"1," * 199_999 + b"1\n",
        Reader(format="csv"), "200000 columns, expected at most 20000"),
    "a high index": (b"1 100000000:1\n-1 2:1\n", Reader(format="libsvm"),
        "the feature 100000000, expected at most"),
    "a dense one": (b"1 10000000:1\n" * 100,
        Reader(format="libsvm", options={"dense": True}), "dense numbers would take"),
    "many cells": (b"1,2\n" * 16_000_000, Reader(format="csv"), "GiB to read"),
}  # fmt: skip


@pytest.mark.parametrize("file_name", GREEDY)
def test_a_file_that_would_take_all_memory_is_refused_at_once(
    tmp_path, file_name
):
    content, reader, words = GREEDY[file_name]
    path = tmp_path / "greedy.gz"
    path.write_bytes(gzip.compress(content, 1))
    del content
    with pytest.raises(RefusedError, match=words):
        read_files([path], reader)


def test_a_parquet_file_counts_by_its_cells(tmp_path, monkeypatch):
    """Equal values take no room in it."""
    monkeypatch.setattr("dperm.data.readers.MEMORY", 10**5)
    path = tmp_path / "equal.parquet"
    pd.DataFrame({"a": np.zeros(10**4), "y": 1.0}).to_parquet(path)
    assert path.stat().st_size < 5000
    with pytest.raises(
        RefusedError, match=r"equal.parquet would take .* GiB to"
    ):
        read_files([path], Reader(format="csv"))
