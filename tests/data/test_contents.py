"""Data are known by their content: an edit, another name or option is noticed."""

import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dperm.core.experiment.schema import Dataset, Reader, Source
from dperm.data import fetch
from dperm.data.fetching import fetched_folder, load_fetched

ROWS = "a,b,y\n1,2,3\n4,5,6\n"
OWN = Source(kind="file", files=["own.csv"])


@pytest.fixture
def own(data, tmp_path, monkeypatch):
    """A data set of one's own, fetched once."""
    monkeypatch.chdir(tmp_path)
    Path("own.csv").write_text(ROWS)
    dataset = Dataset(name="own", sources=[OWN], reader=Reader(format="csv"))
    fetch(dataset, data)
    return dataset


def edit(old="2,3", new="2,9", name="own.csv"):
    Path(name).write_text(ROWS.replace(old, new))


@pytest.mark.parametrize("kind", ["file", "mirror"])
def test_an_edit_is_read(own, data, kind, caplog):
    if kind == "mirror":
        own = replace(own, sources=[replace(OWN, kind="mirror")])
        data.mirror = "."
    before = fetch(own, data)
    edit()
    after = fetch(own, data)
    assert before.digest != after.digest
    assert load_fetched("own", data)[1].tolist() == [9, 6]
    caplog.set_level("INFO")
    assert fetch(own, data) == after and "reused" in caplog.text


def test_an_edit_behind_a_declared_digest_is_refused(own, data):
    known = replace(own, digest=fetch(own, data).digest)
    assert fetch(known, data).available
    edit()
    record = fetch(known, data)
    assert not record.available and "other content" in record.reason
    Path("own.csv").write_text(ROWS)
    assert fetch(known, data).available


def test_a_file_that_is_gone_leaves_what_was_made_of_it(own, data):
    before = fetch(own, data)
    Path("own.csv").unlink()
    assert fetch(own, data) == before
    declared = fetch(replace(own, digest=before.digest), data)
    assert declared == replace(before, warning="")
    assert "no digest is declared" in before.warning


def test_another_name_is_read(own, data):
    known = replace(own, digest=fetch(own, data).digest)
    edit(name="other.csv")
    other = [Source(kind="file", files=["other.csv"])]
    assert fetch(replace(own, sources=other), data).source == "file other.csv"
    assert load_fetched("own", data)[1].tolist() == [9, 6]
    assert "other content" in fetch(replace(known, sources=other), data).reason


def test_another_reader_is_read_whatever_digest_is_declared(own, data):
    known = replace(own, digest=fetch(own, data).digest)
    assert fetch(known, data).available
    without = replace(known, reader=Reader(format="csv", drop=["b"]))
    assert "other content" in fetch(without, data).reason
    Path("own.csv").unlink()
    assert fetch(known, data).reason.count("missing in the current folder") == 1


def test_another_option_of_a_loader_is_read(data):
    def digits(count):
        source = Source(
            kind="sklearn", loader="load_digits", options={"n_class": count}
        )
        return Dataset(name="digits", sources=[source])

    assert fetch(digits(3), data).n == 537
    assert fetch(digits(2), data).n == 360


def test_members_of_archives(own, data):
    with zipfile.ZipFile("both.zip", "w") as archive:
        archive.writestr("deep/one.csv", ROWS)
        archive.writestr("two.csv", ROWS.replace("2,3", "2,9"))
    packed = Source(kind="file", files=["both.zip"])
    record = fetch(replace(own, sources=[packed]), data)
    assert "name the wanted members under `members`" in record.reason
    for member, y in (("one.csv", 3), ("two.csv", 9)):
        inside = replace(packed, members=[member])
        assert fetch(replace(own, sources=[inside]), data).available
        assert load_fetched("own", data)[1].tolist() == [y, 6]


@pytest.mark.parametrize("kind", ["file", "mirror"])
def test_an_npz_is_no_archive(own, data, kind):
    data.mirror = "."
    np.savez("own.npz", X=np.eye(3), y=np.arange(3.0))
    np.savez_compressed("packed.npz", X=np.eye(3), y=np.arange(3.0))
    for name in ("own.npz", "packed.npz"):
        source = Source(kind=kind, files=[name])
        record = fetch(Dataset(name="arrays", sources=[source]), data)
        assert record.available, record.reason


def test_a_record_of_before_is_made_again(own, data):
    path = fetched_folder("own", data) / "fetch.json"
    path.write_text(path.read_text().replace('"file own.csv"', '"no such file"'))
    edit()
    fetch(own, data)
    assert load_fetched("own", data)[1].tolist() == [9, 6]
