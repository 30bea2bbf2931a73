"""Files that are odd, spoilt or hostile: sound arrays, or one line; no code is run.

By day a few hundred files are spoilt by chance, ``make test-all`` spoils 10,000. A case
is the same on every machine.
"""

import os
import random
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

from dperm.core.experiment import files as store
from dperm.core.experiment.config import compose
from dperm.core.experiment.locate import ConfigError
from dperm.core.experiment.schema import Data, Dataset, Reader, Source
from dperm.data import fetch
from dperm.data.arrays import RefusedError
from dperm.data.readers import read_files
from dperm.pipeline import checks, inputs, products


@pytest.fixture
def conf(project, monkeypatch):
    """A copy of the configuration that is in use."""
    monkeypatch.setenv("DPERM_CONF", str(project.conf))
    monkeypatch.chdir(project.folder)
    return project.conf


# --- spoilt by chance -----------------------------------------------------------------

PATIENCE = 20  # seconds; a parser that needs more has been led astray
ARFF = b"""% a comment
@relation small
@attribute 'first one' numeric
@attribute day {1,2,3}
@attribute class {UP,DOWN}
@data
0.25,3,UP
-1e-3,1,DOWN
7,2,UP
"""
SPARSE_ARFF = b"""@relation sparse
@attribute a numeric
@attribute b {2,5}
@attribute class {no,yes}
@data
{0 1.5, 2 yes}
{}
{1 5}
"""
READERS = {
    "arff": (ARFF, Reader(format="arff", target="class", positive="UP")),
    "sparse arff": (SPARSE_ARFF, Reader(format="arff", positive="yes")),
    "csv": (b"a,b,y\n1,2.5,1\n0,-1e3,0\n3,4,1\n", Reader(format="csv", target="y")),
    "semicolons": (
        b'a;"b c";y\n1;2;u\n3;4;v\n',
        Reader(format="csv", positive="u", options={"separator": ";"}),
    ),
    "libsvm": (b"+1 1:0.5 3:2\n-1 2:1 # x\n1 1:4\n", Reader(format="libsvm")),
    "dense libsvm": (
        b"1 1:0.5 7:2\n2 2:1\n",
        Reader(format="libsvm", positive="2", options={"dense": True}),
    ),
}
YAMLS = ("problem/diabetes", "dataset/diabetes", "solver/dp_cd", "paper/tiny/paper",
         "scale/smoke", "config")  # fmt: skip
TOKENS = [
    b"nan", b"inf", b"1e999", b"-1", b"0", b"99999999999999999999", b"2147483648",
    b"1e308", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n\n", b"\t", b"'", b'"',
    b"{", b"}", b"[", b"]", b",", b";", b":", b"%", b"#", b"?", b"@data\n", b"{0 1}",
    b"@attribute z {a}\n", b"@attribute a string\n", b"1:1 1:1", b"1000000000:1",
    b"qid:1",
    "é".encode(), "\u2028".encode(), b"1_000", b"0x10", b"\\", b" " * 50, b"9" * 400,
]  # fmt: skip
YAML_TOKENS = [
    *TOKENS, b"!!python/object/apply:os.system ['touch evil']", b"&a [*a]", b"*b",
    b"${oc.env:HOME}", b"${paper}", b"${", b"???", b"null", b"- ", b"{a: 1}", b"[[1]]",
    b".nan", b".inf", b"-.inf", b"../../evil", b"!!binary aGk=", b"2020-01-01", b"~",
    b"# @package _global_\n", b"defaults: [x]\n", b"<<: *a", b"true", b"logspace:",
    b"{logspace: [1, 2, 3]}", b"{linspace: [0, .inf, 4]}", b"{zip: {}}", b": ",
    b"hydra:",
]  # fmt: skip


def spoil(chance: random.Random, content: bytes, tokens: list[bytes]) -> bytes:
    """Change a file in one to six places."""
    data = bytearray(content)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(data) + 1)
        to = min(len(data), at + chance.randint(1, 12))
        what = chance.randrange(7)
        if what == 0 and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        elif what == 1:
            del data[at:to]
        elif what == 2:
            data[at:at] = data[at:to] * chance.choice((1, 2, 40))
        elif what == 3:
            data[at:to] = chance.choice(tokens)
        elif what == 4:
            data[at:at] = chance.choice(tokens)
        elif what == 5:
            lines = bytes(data).splitlines(keepends=True)
            chance.shuffle(lines)
            data = bytearray(b"".join(lines))
        else:
            del data[at:]
    return bytes(data)


class TooLongError(Exception):
    """The reader was led astray."""


@pytest.fixture
def impatient():
    """Raise in the middle of whatever takes too long."""

    def give_up(*_):
        raise TooLongError

    before = signal.signal(signal.SIGALRM, give_up)
    yield lambda: signal.alarm(PATIENCE)
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def check_arrays(X, y) -> None:
    values = X.data if sparse.issparse(X) else X
    assert X.shape[0] == len(y) > 0 and X.shape[1] > 0
    assert X.dtype == y.dtype == np.float64
    assert np.isfinite(values).all() and np.isfinite(y).all()


@pytest.mark.parametrize("times", [300, pytest.param(8000, marks=pytest.mark.long)])
def test_a_spoilt_data_file_is_read_or_refused(tmp_path, impatient, times):
    refused, path = 0, tmp_path / "file"
    for case in range(times):
        chance = random.Random(case)
        name = chance.choice(list(READERS))
        content, reader = READERS[name]
        path.write_bytes(spoil(chance, content, TOKENS))
        impatient()
        try:
            check_arrays(*read_files([path], reader))
        except RefusedError as error:
            text = str(error)
            assert text and "\n" not in text and len(text) < 2000, (case, text)
            refused += 1
        except BaseException as error:
            raise AssertionError(f"case {case}, {name}: {path.read_bytes()}") from error
    assert 0.02 < refused / times < 0.98


@pytest.mark.parametrize("times", [80, pytest.param(2000, marks=pytest.mark.long)])
@pytest.mark.filterwarnings("ignore:.*Defaults list is missing")  # Hydra says it, well
def test_a_spoilt_configuration_is_read_or_refused(conf, impatient, times):
    known = {name: (conf / f"{name}.yaml").read_bytes() for name in YAMLS}
    before, refused = sorted(conf.parent.rglob("*")), 0
    for case in range(10**6, 10**6 + times):
        chance = random.Random(case)
        name = chance.choice(YAMLS)
        path = conf / f"{name}.yaml"
        path.write_bytes(spoil(chance, known[name], YAML_TOKENS))
        impatient()
        try:
            compose(["problem=diabetes", "scale=smoke"])
        except ConfigError as error:
            assert str(error) and len(str(error)) < 5000, (case, str(error))
            refused += 1
        except BaseException as error:
            raise AssertionError(f"case {case}, {name}: {path.read_bytes()}") from error
        path.write_bytes(known[name])
    assert sorted(conf.parent.rglob("*")) == before
    assert 0.02 < refused / times < 0.98


# --- hostile --------------------------------------------------------------------------


def test_a_url_is_of_the_web(tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text("a,y\n1,2\n3,4\n")
    source = Source(kind="http", urls=[secret.as_uri()])
    asked = Dataset(name="x", sources=[source], reader=Reader(format="csv"))
    with pytest.raises(ValueError, match=r"urls.*expected http.*'file:"):
        fetch(asked, Data(dir=str(tmp_path / "data"), retries=0))


def replace(conf, file, old, new):
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
    replace(conf, "problem/diabetes", "loss: least_squares", f"loss: {code}")
    with pytest.raises(ConfigError, match="not valid YAML"):
        compose(["problem=diabetes"])
    assert not (conf.parent / "evil").exists()


@pytest.mark.parametrize(
    "algorithm", ["os.path", "idlelib.idle", "pip.__main__", "this"]
)
def test_an_algorithm_is_a_solver(conf, algorithm):
    replace(conf, "solver/dp_cd", "algorithm: dp_cd", f"algorithm: {algorithm}")
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
    replace(conf, file, old, new)
    with pytest.raises(ConfigError, match="String should match pattern"):
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
    config = compose(["problem=diabetes"])
    for kind in ("Path", "np", "pd", "__import__", "_curve", "Any"):
        with pytest.raises(ConfigError, match="expected one of"):
            products.function_of(config, "figures", kind)


class Evil:
    def __reduce__(self):
        return os.mkdir, ("evil",)


def test_objects_are_not_pickled_into_parquet(tmp_path):
    with pytest.raises((pa.ArrowInvalid, pa.ArrowTypeError, TypeError)):
        store.write_table(tmp_path / "x.parquet", pd.DataFrame({"a": [object()]}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["X", "y"])
def test_pickled_arrays_are_not_loaded(conf, name):
    config = compose(["problem=diabetes"])
    evil = np.array([Evil()], dtype=object)
    steps = inputs.fetch, inputs.prepare, inputs.optimum
    for stage in steps:
        stage(config)
    for folder, stage in (("fetched", inputs.prepare), ("prepared", inputs.optimum)):
        path = Path("data") / folder / "diabetes" / "arrays.npz"
        kept = path.read_bytes()
        np.savez(path, **{**np.load(path), name: evil})
        with pytest.raises(ValueError, match="run again"):
            stage(config)
        path.write_bytes(kept)
    assert not Path("evil").exists()
