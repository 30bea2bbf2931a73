import gzip
import io
import json
import logging
import socket
import tarfile
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from sklearn import datasets
from sklearn.preprocessing import scale

from dperm.core.experiment.schema import Data, Dataset, Reader, Source
from dperm.data import fetch
from dperm.data.fetching import fetched_folder, load_fetched
from dperm.store.folders import sole_writer, whole_folder

ROWS = 3000
CSV = "a,b,y\n" + "".join(f"{i},{i * i % 7},{i % 3}\n" for i in range(ROWS))
BODY = CSV.encode()
DIGEST = "sha256:645b6d3f23125d84d4a24cca4f2ffb42a44872bec5c46c18cde8ec16d5dfebba"
OTHER = CSV.replace("1,1,1", "1,1,2").encode()
HTML = b"<!doctype html><html><body>moved</body></html>"


def csv_set(*sources, **keys):
    keys = {"digest": DIGEST, **keys}
    return Dataset(
        name="small", sources=list(sources), reader=Reader(format="csv"), **keys
    )


def http(*urls, **keys):
    return Source(kind="http", urls=list(urls), **keys)


MIRROR = Source(kind="mirror", files=["small/small.csv"])


def put_mirror(data, body=BODY):
    path = Path(data.mirror) / "small" / "small.csv"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(body)
    return path


def downloads(data):
    folder = Path(data.dir) / "downloads"
    return [path for path in folder.rglob("*") if path.is_file()]


def reasons(record):
    return [entry["reason"] for entry in record.tried]


def test_mirror(data):
    put_mirror(data)
    record = fetch(csv_set(MIRROR), data)
    assert (record.status, record.source) == ("ok", "mirror small/small.csv")
    assert (record.n, record.p, record.digest) == (ROWS, 2, DIGEST)
    folder = fetched_folder("small", data)
    assert json.loads((folder / "fetch.json").read_text()) == asdict(record)
    X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
    assert X.shape == (ROWS, 2) and X[3].tolist() == [3.0, 2.0] and y[5] == 2.0


def test_http(site, data):
    url = site.put("/small.csv", site.good(BODY))
    record = fetch(csv_set(MIRROR, http(url)), data)
    assert record.available and record.source == f"http {url}"
    assert reasons(record) == ["missing in the mirror folder: small/small.csv"]
    assert downloads(data) == []


def test_packed_http(site, data):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, body in (("d/small.csv", BODY), ("d/small.txt", b"about")):
            info = tarfile.TarInfo(name)
            info.size = len(body)
            archive.addfile(info, io.BytesIO(body))
    urls = [
        site.put("/files/5976", site.good(out.getvalue())),
        site.put("/small.csv.gz", site.good(gzip.compress(BODY))),
    ]
    for url in urls:
        source = http(url, files=["small.csv"])
        assert fetch(csv_set(source), replace(data, dir=data.dir + url[-3:])).available


def test_a_path_escape_is_refused(site, data):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("../../small.csv"))
    url = site.put("/small.tgz", site.good(out.getvalue()))
    record = fetch(csv_set(http(url, files=["small.csv"])), data)
    assert record.status == "unavailable"
    assert "points outside the archive" in record.reason


@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "text/csv"])
def test_a_web_page_is_refused(site, data, kind):
    url = site.put("/small.csv", site.good(HTML, kind))
    record = fetch(csv_set(http(url), digest=None), data)
    assert record.status == "unavailable"
    assert len(record.tried) == site.count("/small.csv") == 2
    assert all("web page" in reason for reason in reasons(record))
    assert downloads(data) == []


def test_other_content_is_refused_then_the_next_source_is_asked(site, data):
    wrong, right = (
        site.put("/1.csv", site.good(OTHER)),
        site.put("/2.csv", site.good(BODY)),
    )
    record = fetch(csv_set(http(wrong), http(right)), data)
    assert record.source == f"http {right}"
    assert site.count("/1.csv") == 2
    assert all(f"expected {DIGEST}" in reason for reason in reasons(record))
    assert downloads(data) == []


def test_other_content_may_be_right_the_second_time(site, data):
    url = site.put("/small.csv", site.good(OTHER), site.good(BODY))
    assert fetch(csv_set(http(url)), data).available


def test_every_source_is_named_when_none_serves(site, data, caplog):
    put_mirror(data, OTHER)
    gone = site.url("/gone.csv")
    wrong = site.put("/wrong.csv", site.good(OTHER))
    with caplog.at_level(logging.WARNING):
        record = fetch(csv_set(MIRROR, http(gone), http(wrong)), data)
    assert record.status == "unavailable"
    for words in (
        "mirror small/small.csv: other content",
        f"http {gone}: HTTP 404",
        f"http {wrong}: other content",
        "put small/small.csv into the folder named by DPERM_MIRROR",
    ):
        assert words in record.reason and words in caplog.text
    folder = fetched_folder("small", data)
    assert [path.name for path in folder.iterdir()] == ["fetch.json"]
    put_mirror(data)
    assert fetch(csv_set(MIRROR), data).available


def test_an_unreadable_mirror(data, monkeypatch):
    put_mirror(data)

    def refuse(*args):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("dperm.data.fetching.unpack", refuse)
    assert "cannot be read: [Errno 13]" in fetch(csv_set(MIRROR), data).reason


def test_several_files_are_named_when_one_is_missing(site, data):
    urls = [site.put("/1", site.good(b"1 2\n")), site.url("/2")]
    source = http(*urls)
    pairs = replace(csv_set(source), reader=Reader(format="nips2003"))
    reason = fetch(pairs, data).reason
    assert f"http {urls[0]} and 1 more: {urls[1]}: HTTP 404" in reason


def test_no_mirror(data):
    record = fetch(csv_set(MIRROR), replace(data, mirror=None))
    assert "data.mirror is not set" in record.reason


def test_a_busy_server_is_asked_again(site, data):
    url = site.put("/small.csv", site.status(503), site.good(BODY))
    assert fetch(csv_set(http(url)), data).available


def test_a_busy_server_is_given_up(site, data):
    url = site.put("/small.csv", site.status(503))
    record = fetch(csv_set(http(url)), data)
    assert "HTTP 503" in record.reason
    assert site.count("/small.csv") == 1 + data.retries


def test_a_silent_server_is_given_up(site, data):
    url = site.put("/small.csv", site.silent)
    started = time.monotonic()
    record = fetch(csv_set(http(url)), replace(data, timeout=0.3))
    assert time.monotonic() - started < 8
    assert "timed out" in record.reason or "Timeout" in record.reason


def test_a_closed_port_is_given_up(data):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    record = fetch(csv_set(http(f"http://127.0.0.1:{port}/small.csv")), data)
    assert "refused" in record.reason


def test_fetched_arrays_are_reused(site, data):
    url = site.put("/small.csv", site.good(BODY))
    first = fetch(csv_set(http(url)), data)
    before = (fetched_folder("small", data) / "X.npy").stat()
    assert fetch(csv_set(http(url)), data) == first
    assert (fetched_folder("small", data) / "X.npy").stat() == before
    assert site.count("/small.csv") == 1


@pytest.mark.parametrize("name", ["X.npy", "y.npy", "fetch.json"])
@pytest.mark.parametrize("damage", [None, b"", b"garbage", -8])
def test_damaged_arrays_are_fetched_again(data, name, damage):
    put_mirror(data)
    fetch(csv_set(MIRROR), data)
    path = fetched_folder("small", data) / name
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-8] if damage == -8 else damage)
    assert fetch(csv_set(MIRROR), data).available
    assert load_fetched("small", data)[0].shape == (ROWS, 2)


def test_changed_values_are_fetched_again(data):
    put_mirror(data)
    fetch(csv_set(MIRROR), data)
    folder = fetched_folder("small", data)
    X = np.load(folder / "X.npy")
    X[0, 0] += 1e-12
    np.save(folder / "X.npy", X)
    with pytest.raises(ValueError, match="small: not fetched, or damaged"):
        load_fetched("small", data)
    fetch(csv_set(MIRROR), data)
    assert load_fetched("small", data)[0][0, 0] == 0.0


def test_another_digest_or_reader_is_fetched_again(data):
    put_mirror(data)
    free = csv_set(MIRROR, digest=None)
    assert fetch(free, data).digest == DIGEST
    assert fetch(csv_set(MIRROR), data).digest == DIGEST
    other = replace(free, reader=Reader(format="csv", drop=["a"]))
    assert fetch(other, data).p == 1
    assert fetch(csv_set(MIRROR, digest="sha256:" + "0" * 64), data).reason


def test_other_code_reads_again_what_no_digest_vouches_for(data, monkeypatch, caplog):
    put_mirror(data)
    known, unknown = csv_set(MIRROR), csv_set(MIRROR, digest=None)
    unknown = replace(unknown, name="unknown")
    caplog.set_level("INFO")
    for dataset in (known, unknown):
        fetch(dataset, data)
    monkeypatch.setattr("dperm.data.fetching.closure.digest", lambda *names: "edited")
    for dataset in (known, unknown, unknown):
        assert fetch(dataset, data).available
    reused = [line for line in caplog.messages if "reused" in line]
    assert [line.split(":")[0] for line in reused] == ["small", "unknown"]


def test_sparse_arrays_are_kept_sparse(data):
    put_mirror(data, b"1 3:2\n-1 1:1\n")
    small = replace(csv_set(MIRROR, digest=None), reader=Reader(format="libsvm"))
    assert fetch(small, data).nnz == 2
    X, _ = load_fetched("small", data)
    assert X.format == "csc" and X.toarray().tolist() == [[0, 0, 2], [1, 0, 0]]
    assert fetch(small, data).available


@pytest.mark.parametrize("loader", ["load_breast_cancer", "load_diabetes"])
def test_bundled(data, loader):
    source = Source(kind="sklearn", loader=loader)
    record = fetch(Dataset(name="bundled", sources=[source]), data)
    _, y = load_fetched("bundled", data)
    labels = {-1.0, 1.0} == set(np.unique(y))
    assert record.available and labels == (loader == "load_breast_cancer")


DIABETES = "sha256:e2f87573cea2b1da7879b2153905e04e51dd5af00f234468c7282276ab3e2357"


def test_diabetes_is_the_same_under_every_scikit_learn(data, monkeypatch):
    """1.6.0 has eleven of the raw numbers one unit of their last digit higher."""
    served = datasets.load_diabetes(return_X_y=True, scaled=False)
    moved = served[0].copy()
    moved[:11, 8] = np.nextafter(moved[:11, 8], np.inf)

    def other(*, return_X_y, scaled=True):
        X = scale(moved) / len(moved) ** 0.5 if scaled else moved
        return X.copy(), served[1]

    source = Source(kind="sklearn", loader="load_diabetes")
    for name in ("installed", "other"):
        one = Dataset(name=name, sources=[source], digest=DIABETES)
        record = fetch(one, data)
        assert record.available, record.reason
        monkeypatch.setattr(datasets, "load_diabetes", other)


def test_a_file_of_an_installed_package(data, tmp_path, monkeypatch):
    folder = tmp_path / "carrier" / "tables"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("raise RuntimeError('imported')")
    (folder / "t.csv").write_text("a,b\n1,2\n3,4\n")
    monkeypatch.syspath_prepend(tmp_path)
    source = Source(kind="package", loader="carrier", files=["tables/t.csv"])
    dataset = Dataset("t", sources=[source], reader=Reader(format="csv", target="b"))
    assert fetch(dataset, data).available
    X, y = load_fetched("t", data)
    assert X.ravel().tolist() == [1, 3] and y.tolist() == [2, 4]
    absent = Source(kind="package", loader="carier", files=["tables/t.csv"])
    record = fetch(replace(dataset, name="u", sources=[absent]), data)
    assert "carier is not installed: pip install carier" in record.reason


def test_bundled_with_a_positive_class(data):
    source = Source(kind="sklearn", loader="load_iris")
    reader = Reader(positive="2")
    fetch(Dataset(name="iris", sources=[source], reader=reader), data)
    assert load_fetched("iris", data)[1].sum() == -50.0


def test_synthetic(data):
    options = {"n": 20, "p": 5, "active": 2, "seed": 7}
    options |= {"coefficient_scale": 1.0, "noise": 1.0}
    source = Source(kind="synthetic", generator="sparse_regression", options=options)
    record = fetch(Dataset(name="made", sources=[source]), data)
    assert (record.status, record.n, record.p) == ("ok", 20, 5)


def test_a_crash_between_writes_leaves_the_old_arrays(data, monkeypatch):
    put_mirror(data)
    first = fetch(csv_set(MIRROR), data)
    folder = fetched_folder("small", data)

    def crash(*args):
        raise OSError("no space left on device")

    changed = csv_set(MIRROR, digest=None)
    for name in (
        "dperm.data.fetching.store.write_json",
        "numpy.save",
        "pathlib.Path.replace",
    ):
        with monkeypatch.context() as broken:
            broken.setattr(name, crash)
            with pytest.raises(OSError, match="no space"):
                fetch(replace(changed, reader=Reader(format="csv", drop=["a"])), data)
        assert load_fetched("small", data)[0].shape == (first.n, first.p)
        assert sorted(path.name for path in folder.parent.iterdir()) == [
            ".small.lock",
            "small",
        ]


def test_a_crash_between_the_two_renames_is_undone(data, monkeypatch):
    put_mirror(data)
    fetch(csv_set(MIRROR), data)
    folder = fetched_folder("small", data)
    rename, calls = Path.replace, []

    def crash_on_second(self, target):
        calls.append(target)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return rename(self, target)

    with monkeypatch.context() as broken, sole_writer(folder):
        broken.setattr(Path, "replace", crash_on_second)
        with pytest.raises(KeyboardInterrupt), whole_folder(folder) as new:
            (new / "X.npy").write_bytes(b"new")
    assert load_fetched("small", data)[0].shape == (ROWS, 2)


def test_what_a_killed_process_left_is_cleared(data):
    put_mirror(data)
    fetch(csv_set(MIRROR), data)
    folder = fetched_folder("small", data)
    (folder.parent / ".small.99999.new").mkdir()
    folder.rename(folder.parent / ".small.99999.old")
    assert fetch(csv_set(MIRROR), Data(dir=data.dir)).available
    assert sorted(path.name for path in folder.parent.glob(".small.*")) == [
        ".small.lock"
    ]


GOOD = Source(kind="mirror", files=["a"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "../small"}, r"name: found '../small'"),
        ({"sources": []}, "sources: found 'none', expected one or more"),
        ({"digest": "abc"}, "digest: found 'abc', expected sha256"),
        ({"reader": Reader(format="arf")}, r"reader.format.*'arf'.*mean arff\?"),
        (
            {"reader": Reader(format="libsvm", options={"nfeatures": 3})},
            r"reader.options: found 'nfeatures'.*mean n_features\?",
        ),
        (
            {"reader": Reader(format="arff", options={"x": 3})},
            "reader.options: found 'x', expected nothing here",
        ),
        (
            {"sources": [GOOD, Source(kind="mirorr", files=["a"])]},
            r"sources\[1\].kind: found 'mirorr', expected one of .*mean mirror\?",
        ),
        ({"sources": [Source(kind="http")]}, r"sources\[0\].urls: found 'nothing'"),
        (
            {"sources": [Source(kind="mirror", files=["../a"])]},
            r"sources\[0\].files: found '../a', expected a path below",
        ),
        (
            {"sources": [Source(kind="sklearn", loader="load_diabetis")]},
            r"loader: found 'load_diabetis'.*mean load_diabetes\?",
        ),
        (
            {"sources": [Source(kind="synthetic", generator="sparse_regresion")]},
            r"generator: found 'sparse_regresion'.*mean sparse_regression\?",
        ),
        (
            {
                "sources": [
                    Source(
                        kind="synthetic",
                        generator="logistic_lognormal",
                        options={"n": 1, "p": 1, "sigma": 1.0},
                    )
                ]
            },
            r"sources\[0\].options: found 'n, p, sigma', expected also seed",
        ),
    ],
)
def test_a_wrong_configuration_is_named(data, changes, words):
    wrong = replace(csv_set(GOOD), **changes)
    with pytest.raises(ValueError, match=words) as error:
        fetch(wrong, data)
    assert str(error.value).startswith("data set ")
    assert not Path(data.dir).exists()
