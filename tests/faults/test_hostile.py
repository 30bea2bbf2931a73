"""Hostile input: nothing is written outside its folder, no code is run."""

import io
import os
import re
import stat
import tarfile
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dperm.core.experiment import files
from dperm.core.experiment.config import compose
from dperm.core.experiment.locate import ConfigError
from dperm.core.experiment.schema import Data, Dataset, Reader, Source
from dperm.data import fetch
from dperm.data.archives import unpack
from dperm.data.arrays import RefusedError
from dperm.pipeline import checks

PLAIN = {
    pa.types.is_boolean, pa.types.is_floating, pa.types.is_integer, pa.types.is_null,
    pa.types.is_string, pa.types.is_large_string,
}  # fmt: skip


def tar_of(kind: bytes, name: str, target: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        link = tarfile.TarInfo(name)
        link.type, link.linkname = kind, target
        archive.addfile(link)
        info = tarfile.TarInfo(f"{name}/evil")
        info.size = 4
        archive.addfile(info, io.BytesIO(b"evil"))
    return out.getvalue()


def zip_of(name: str, mode: int = 0o644) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        info = zipfile.ZipInfo(name)
        info.external_attr = mode << 16
        archive.writestr(info, "../../evil")
    return out.getvalue()


ARCHIVES = {
    "symbolic link": tar_of(tarfile.SYMTYPE, "way", ".."),
    "hard link": tar_of(tarfile.LNKTYPE, "way", "../evil"),
    "device": tar_of(tarfile.CHRTYPE, "way", ""),
    "fifo": tar_of(tarfile.FIFOTYPE, "way", ""),
    "link in a zip": zip_of("way", stat.S_IFLNK | 0o777),
    "parent": zip_of("a/../../evil"),
    "root": zip_of("/tmp/evil"),  # the attack, which is refused
    "drive": zip_of("C:evil"),
    "backslash": zip_of("..\\evil"),
}


@pytest.mark.parametrize("name", ARCHIVES)
@pytest.mark.parametrize("wanted", [(), ("evil",), ("way/evil",), ("way",)])
def test_archives_stay_in_their_folder(tmp_path, name, wanted):
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    path = inside / "archive"
    path.write_bytes(ARCHIVES[name])
    with pytest.raises(RefusedError):
        unpack(path, inside / "out", wanted)
    assert [file for file in tmp_path.rglob("*") if not file.is_dir()] == [path]


def test_a_url_is_of_the_web(tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text("a,y\n1,2\n3,4\n")
    source = Source(kind="http", urls=[secret.as_uri()])
    asked = Dataset(name="x", sources=[source], reader=Reader(format="csv"))
    with pytest.raises(ValueError, match=r"urls: found 'file:.*expected http"):
        fetch(asked, Data(dir=str(tmp_path / "data"), retries=0))


@pytest.fixture
def conf(project, monkeypatch):
    """A copy of the configuration that is in use."""
    monkeypatch.setenv("DPERM_CONF", str(project.conf))
    monkeypatch.chdir(project.folder)
    return project.conf


def spoil(conf, file, old, new):
    path = conf / f"{file}.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


CODE = [
    "!!python/object/apply:os.system ['touch evil']",
    "!!python/object/new:subprocess.Popen [['touch', 'evil']]",
    "!!python/name:os.system",
    "!!python/module:antigravity",
]


@pytest.mark.parametrize("code", CODE)
def test_a_yaml_runs_no_code(conf, code):
    spoil(conf, "problem/diabetes", "loss: least_squares", f"loss: {code}")
    with pytest.raises(ConfigError, match="not valid YAML"):
        compose(["problem=diabetes"])
    assert not (conf.parent / "evil").exists()


@pytest.mark.parametrize(
    "algorithm", ["os.path", "idlelib.idle", "pip.__main__", "this"]
)
def test_an_algorithm_is_a_solver(conf, algorithm):
    spoil(conf, "solver/dp_cd", "algorithm: dp_cd", f"algorithm: {algorithm}")
    with pytest.raises(ConfigError, match=f"algorithm '{algorithm}': expected"):
        checks.check(compose([]))


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("paper/tiny/paper", "name: tiny", "name: ../../evil"),
        ("paper/tiny/paper", "curves:", "../curves:"),
        ("paper/tiny/paper", "errors:", "/errors:"),
        ("problem/diabetes", "name: diabetes", "name: ../evil"),
        ("solver/dp_cd", "name: dp_cd", "name: /evil"),
        ("scale/smoke", "folder: smoke", "folder: .."),
    ],
)
def test_names_stay_in_their_folder(conf, file, old, new):
    spoil(conf, file, old, new)
    with pytest.raises(ConfigError, match="expected letters, digits, _ and -"):
        compose(["problem=diabetes", "scale=smoke"])


@pytest.mark.parametrize(
    "text",
    [
        "# @package _global_\noutput: {results: /evil}\n",
        "#@ package _global_\ndata: {dir: /evil}\n",
        "defaults:\n  - /output@_global_: evil\n",
        "defaults: [{/output@_global_.output: evil}]\n",
        'defaults:\n  - "/output\\x40_global_": evil\n',
    ],
)
def test_a_file_sets_its_own_group_only(conf, text):
    path = conf / "problem" / "diabetes.yaml"
    path.write_text(text + "name:" + path.read_text().partition("name:")[2])
    message = r"diabetes\.yaml: (expected settings|defaults: expected .*@_global_)"
    with pytest.raises(ConfigError, match=message):
        compose(["problem=diabetes"])


def test_the_kind_of_a_product_is_one_of_ours(conf):
    from dperm.pipeline.products import function_of

    config = compose(["problem=diabetes"])
    for kind in ("Path", "np", "pd", "__import__", "_curve", "Any"):
        with pytest.raises(ConfigError, match="expected one of"):
            function_of(config, "figures", kind)


def test_parquet_holds_plain_values_only(undisturbed):
    paths = list((undisturbed.folder / "results").rglob("*.parquet"))
    assert len(paths) > 4
    for path in paths:
        schema = pq.read_schema(path)
        for field in schema:
            assert any(is_kind(field.type) for is_kind in PLAIN), (path, field)
        assert b"pickle" not in path.read_bytes().lower()
        noted = dict(schema.metadata)
        digests = (noted.pop(files.ROWS), noted.pop(files.MADE))
        assert all(re.fullmatch(rb"[0-9a-f]{20,64}", each) for each in digests)
        assert set(noted) <= {b"pandas"}


def test_objects_are_not_pickled_into_parquet(tmp_path):
    from dperm.core.experiment import files as store

    with pytest.raises((pa.ArrowInvalid, pa.ArrowTypeError, TypeError)):
        store.write_table(tmp_path / "x.parquet", pd.DataFrame({"a": [object()]}))
    assert list(tmp_path.iterdir()) == []


class Evil:
    def __reduce__(self):
        return os.mkdir, ("evil",)


@pytest.mark.parametrize("name", ["X.npy", "y.npy"])
def test_pickled_arrays_are_not_loaded(undisturbed, project, monkeypatch, name):
    import shutil

    monkeypatch.chdir(project.folder)
    shutil.copytree(undisturbed.folder / "data", project.folder / "data")
    evil = np.array([Evil()], dtype=object)
    for folder in ("fetched", "prepared"):
        path = project.folder / "data" / folder / "diabetes" / name
        np.save(path, evil, allow_pickle=True)
    for stage in ("prepare", "tune"):
        done = project.run(stage)
        assert done.returncode == 1 and "run again" in done.stdout
    assert not (project.folder / "evil").exists()
