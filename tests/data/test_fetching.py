"""What a data set's sources serve, what is kept of it, and when it is fetched again."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from sklearn import datasets

from dperm.config.schema import Dataset, Reader, Source
from dperm.data import fetch
from dperm.data.fetching import fetched_folder, load_fetched, read_record

ROWS = "a,b,y\n1,2,3\n4,5,6\n"
EDITED = ROWS.replace("2,3", "2,9")
MIRROR = Source(origin="mirror", files=["deep/small.csv"])
OWN = Source(origin="file", files=["own.csv"])
WRONG = "sha256:" + "0" * 64


def csv_set(*sources, **keys):
    keys = {"name": "small", "reader": Reader(format="csv"), **keys}
    return Dataset(sources=list(sources), **keys)


def put_mirror(data, text=ROWS):
    path = Path(data.mirror, "deep", "small.csv")
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


@pytest.fixture
def known(data, caplog):
    """A data set of the mirror, fetched once, with its digest declared."""
    put_mirror(data)
    record = fetch(csv_set(MIRROR), data)
    assert record.available and "no digest is declared" in caplog.text
    declared = csv_set(MIRROR, digest=record.digest)
    assert fetch(declared, data) == record
    return declared


@pytest.fixture
def own(data, tmp_path, monkeypatch):
    """A data set of one's own, fetched once."""
    monkeypatch.chdir(tmp_path)
    Path("own.csv").write_text(ROWS)
    dataset = csv_set(OWN)
    fetch(dataset, data)
    return dataset


def test_what_is_fetched_is_stored_with_its_record(known, data):
    record = fetch(known, data)
    assert record.source == "mirror deep/small.csv"
    assert (record.n, record.p, record.digest) == (2, 2, known.digest)
    folder = fetched_folder("small", data)
    assert json.loads((folder / "fetch.json").read_text()) == asdict(record)
    assert np.load(folder / "arrays.npz")["X"].tolist() == [[1, 2], [4, 5]]
    assert load_fetched("small", data)[1].tolist() == [3, 6]
    newer = json.dumps(asdict(record) | {"of_another_version": 1})
    (folder / "fetch.json").write_text(newer)
    assert read_record("small", data) == record


def test_every_source_is_named_when_none_serves(site, data, caplog):
    put_mirror(data, EDITED)
    gone, wrong = (
        site.url("/gone.csv"),
        site.put("/wrong.csv", EDITED.encode()),
    )
    http = [Source(origin="http", urls=[url]) for url in (gone, wrong)]
    record = fetch(
        csv_set(MIRROR, *http, digest=WRONG), replace(data, required=False)
    )
    assert record.status == "unavailable" and len(caplog.messages) == 1
    for words in (
        "mirror deep/small.csv: other content",
        f"http {gone}: gone.csv: HTTP 404",
        f"http {wrong}: other content",
        "it: put deep/small.csv into the folder named by DPERM_MIRROR",
    ):
        assert words in record.reason and words in caplog.text
    folder = fetched_folder("small", data)
    assert {path.name for path in folder.iterdir()} == {".lock", "fetch.json"}
    for mirror, words in (
        (None, "data.mirror is not set"),
        ("no", "missing in "),
    ):
        assert (
            words
            in fetch(csv_set(MIRROR), replace(data, mirror=mirror)).reason
        )
    put_mirror(data)
    assert fetch(csv_set(MIRROR), data).available


def spoilt(path, damage):
    """Delete a file, replace or cut it, or change a value of its arrays."""
    if damage is None:
        path.unlink()
    elif damage == "changed":
        parts = dict(np.load(path))
        np.savez(path, X=parts["X"] + 1e-12, y=parts["y"])
    else:
        path.write_bytes(path.read_bytes()[:-8] if damage == -8 else damage)


@pytest.mark.parametrize(
    ("name", "damages"),
    [
        ("arrays.npz", [None, b"", b"garbage", -8, "changed"]),
        ("fetch.json", [None, b"", b"[]", -8]),
    ],
)
def test_damaged_arrays_are_fetched_again(known, data, name, damages):
    for damage in damages:
        spoilt(fetched_folder("small", data) / name, damage)
        with pytest.raises(
            ValueError, match=r"small: missing or damaged .*delete"
        ):
            load_fetched("small", data)
        assert fetch(known, data).available
        assert load_fetched("small", data)[0].tolist() == [[1, 2], [4, 5]]


def test_arrays_with_the_declared_digest_outlive_their_source(known, data):
    lost = replace(data, mirror=None)
    elsewhere = replace(known, sources=[replace(MIRROR, files=["other.csv"])])
    for dataset in (known, elsewhere):
        assert fetch(dataset, lost).digest == known.digest
    put_mirror(data)
    assert "other content" in fetch(replace(known, digest=WRONG), data).reason


@pytest.mark.parametrize("origin", ["file", "mirror"])
def test_an_edit_is_read(own, data, origin):
    own = replace(own, sources=[replace(OWN, origin=origin)])
    data = replace(data, mirror=".")
    before = fetch(own, data)
    Path("own.csv").write_text(EDITED)
    after = fetch(own, data)
    assert before.digest != after.digest
    assert load_fetched("small", data)[1].tolist() == [9, 6]
    Path("own.csv").unlink()  # what was made of it is left
    assert fetch(own, data) == after


def test_an_edit_behind_a_declared_digest_is_refused(own, data):
    declared = replace(own, digest=fetch(own, data).digest)
    other = replace(declared, reader=Reader(format="csv", drop=["b"]))
    assert "other content" in fetch(other, data).reason
    assert fetch(declared, data).available
    Path("own.csv").write_text(EDITED)
    reason = fetch(declared, data).reason
    assert "other content" in reason and "it: correct own.csv" in reason
    Path("own.csv").write_text(ROWS)
    assert fetch(declared, data).available


def test_other_code_reads_again_what_no_digest_vouches_for(
    known, data, monkeypatch, caplog
):
    unknown = replace(known, name="unknown", digest=None)
    fetch(unknown, data)
    caplog.set_level("INFO")
    monkeypatch.setattr(
        "dperm.data.fetching.source_code.digest", lambda *names: "edited"
    )
    for dataset in (known, unknown, unknown):
        assert fetch(dataset, data).available
    reused = [line for line in caplog.messages if "reused" in line]
    assert [line.split(":")[0] for line in reused] == ["small", "unknown"]


@pytest.mark.parametrize(("loader", "positive", "total"), [
    ("load_breast_cancer", None, 145), ("load_iris", "2", -50),
    ("load_wine", None, 167),
])  # fmt: skip
def test_data_sets_of_scikit_learn(data, loader, positive, total):
    source = Source(origin="sklearn", loader=loader)
    fetch(csv_set(source, reader=Reader(positive=positive)), data)
    assert load_fetched("small", data)[1].sum() == total


DIABETES = (
    "sha256:e2f87573cea2b1da7879b2153905e04e51dd5af00f234468c7282276ab3e2357"
)


def test_diabetes_is_the_same_under_every_scikit_learn(data, monkeypatch):
    """1.6.0 has eleven of the raw numbers one unit of their last digit higher."""
    X, y = datasets.load_diabetes(return_X_y=True, scaled=False)
    X[:11, 8] = np.nextafter(X[:11, 8], np.inf)
    source = Source(origin="sklearn", loader="load_diabetes")
    for name in ("installed", "other"):
        record = fetch(csv_set(source, name=name, digest=DIABETES), data)
        assert record.available, record.reason
        monkeypatch.setattr(
            datasets, "load_diabetes", lambda **how: (X.copy(), y)
        )


def test_a_file_of_an_installed_package(data, tmp_path, monkeypatch):
    folder = tmp_path / "carrier" / "tables"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text(
        "raise RuntimeError('imported')"
    )
    (folder / "t.csv").write_text(ROWS)
    monkeypatch.syspath_prepend(tmp_path)
    source = Source(origin="package", loader="carrier", files=["tables/t.csv"])
    assert fetch(csv_set(source), data).n == 2
    absent = csv_set(replace(source, loader="carier"), name="other")
    assert (
        "carier is not installed: pip install carier"
        in fetch(absent, data).reason
    )


# --- configuration --------------------------------------------------------------------


def synthetic(generator, **options):
    return {
        "sources": [
            Source(origin="synthetic", generator=generator, options=options)
        ]
    }


def source(**keys):
    return {"sources": [MIRROR, Source(**keys)]}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "../small"}, r"name: .*'../small'"),
        ({"sources": []}, "sources: expected a value"),
        ({"digest": "abc"}, "digest: expected sha256: .*'abc'"),
        ({"reader": Reader(format="arf")}, r"reader.format: .*'arf'.*mean arff\?"),
        ({"reader": Reader(format="libsvm", options={"nfeatures": 3})},
         r"reader.options.nfeatures: .*mean n_features\?"),
        ({"reader": Reader(format="arff", options={"x": 3})},
         "reader.options.x: expected one of"),
        ({"reader": Reader(format="libsvm", drop=["a"])}, "reader.drop: only csv"),
        ({"reader": Reader(format="csv", missing="men")}, r"missing: .*mean mean\?"),
        (source(origin="mirorr", files=["a"]), r"sources\[1\].origin: .*mean mirror\?"),
        (source(origin="http"), r"sources\[1\].urls: expected a value"),
        (source(origin="http", urls=["file:///x"]), r"urls\[0\]: expected http"),
        (source(origin="mirror", files=["../a"]), "files: .*below the folder"),
        (source(origin="mirror", files=["a"], id=3), r"s\[1\].id: expected one of"),
        (source(origin="sklearn", loader="load_diabetis"), r"mean load_diabetes\?"),
        (synthetic("sparse_regresion", n=5), r"generator: .*mean sparse_regression\?"),
        (synthetic("logistic_lognormal", n=5, p=1, sigma=1.0), "options.seed: expec"),
        (synthetic("logistic_lognormal", n=1, p=1, sigma=1.0, seed=0),
         "options.n: .*equal to 2, found 1"),
        (synthetic("logistic_lognormal", n=5, p=1, sigma="x", seed=0),
         "options.sigma: expected a valid number"),
    ],
)  # fmt: skip
def test_a_wrong_configuration_is_named(data, changes, words):
    with pytest.raises(ValueError, match=f"^data set .*{words}"):
        fetch(replace(csv_set(MIRROR), **changes), data)
    assert not Path(data.dir).exists()
