"""Bundles: packed, served again, and refused when they are not what they say."""

import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dperm.core.experiment.schema import Dataset, Reader, Source
from dperm.data import fetch
from dperm.data.archives import pack
from dperm.data.fetching import fetched_folder, load_fetched

SET = Dataset(
    name="small",
    sources=[Source(kind="mirror", files=["small.csv"])],
    reader=Reader(format="csv"),
)


@pytest.fixture
def packed(data, tmp_path):
    """The bundle of one data set, and settings that know nothing else."""
    (Path(data.mirror) / "small.csv").write_text("a,b,y\n1,0,3\n0,5,6\n")
    record = fetch(SET, data)
    path = tmp_path / "bundle.zip"
    pack({"small": fetched_folder("small", data)}, {"small": {}}, path)
    known = replace(SET, digest=record.digest)
    return known, path, replace(data, mirror=str(path), dir=str(tmp_path / "other"))


def rewritten(path, change):
    """The archive with its members changed."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


@pytest.mark.parametrize("digest", [True, False])
def test_a_bundle_serves_what_was_packed(packed, data, digest):
    known, _, elsewhere = packed
    wanted = known if digest else replace(known, digest=None)
    assert fetch(wanted, elsewhere) == fetch(wanted, data)
    X, y = load_fetched("small", elsewhere)
    assert X.tolist() == [[1, 0], [0, 5]] and y.tolist() == [3, 6]
    assert not list(Path(elsewhere.dir).glob("downloads/*/*"))


def test_the_same_data_give_the_same_bundle(packed, data, tmp_path):
    _, path, elsewhere = packed
    fetch(SET, elsewhere)
    again = tmp_path / "again.zip"
    pack({"small": fetched_folder("small", elsewhere)}, {"small": {}}, again)
    assert again.read_bytes() == path.read_bytes()


def test_other_content_than_asked_is_not_taken(packed, caplog):
    known, _, elsewhere = packed
    for other in (
        replace(known, digest="sha256:" + 64 * "0"),
        replace(known, digest=None, reader=Reader(format="csv", drop=["a"])),
    ):
        caplog.clear()
        assert not fetch(other, elsewhere).available
        assert "damaged, or not as the configuration asks" in caplog.text


def other_numbers(members):
    name = "fetched/small/X.npy"
    members[name] = members[name][:-1] + b"\x41"


def shortened(members):
    members["fetched/small/y.npy"] = members["fetched/small/y.npy"][:70]


def pickled(members):
    import io

    content = io.BytesIO()
    np.save(content, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    members["fetched/small/y.npy"] = content.getvalue()


def escaping(members):
    members["../evil"] = b"x"


@pytest.mark.parametrize("change", [other_numbers, shortened, pickled, escaping])
def test_a_spoilt_bundle_serves_nothing(packed, tmp_path, caplog, change):
    known, path, elsewhere = packed
    rewritten(path, change)
    assert not fetch(known, elsewhere).available
    assert "bundle" in caplog.text
    assert not list(tmp_path.rglob("evil"))


def test_a_truncated_bundle_serves_nothing(packed):
    known, path, elsewhere = packed
    path.write_bytes(path.read_bytes()[:-30])
    record = fetch(known, elsewhere)
    assert "no folder, nor a bundle" in record.reason


def test_an_unpacked_bundle_is_a_mirror_too(packed, tmp_path):
    known, path, elsewhere = packed
    folder = tmp_path / "unpacked"
    shutil.unpack_archive(path, folder)
    assert fetch(known, replace(elsewhere, mirror=str(folder))).available
