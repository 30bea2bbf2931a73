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

from data.test_readers import ARFF, SPARSE_ARFF
from dperm.config.config import compose
from dperm.config.locate import ConfigError
from dperm.config.schema import Reader
from dperm.data.arrays import RefusedError
from dperm.data.readers import read_files
from dperm.experiments import checks, inputs, makers
from dperm.storage import files as store


@pytest.fixture
def conf(project, monkeypatch):
    """A copy of the configuration that is in use."""
    monkeypatch.setenv("DPERM_CONF", str(project.conf))
    monkeypatch.chdir(project.folder)
    return project.conf


# --- spoilt by chance -----------------------------------------------------------------

PATIENCE = 20  # seconds; a parser that needs more has been led astray
READERS = {
    "arff": (
        ARFF.encode(),
        Reader(format="arff", target="class", positive="UP"),
    ),
    "sparse arff": (
        SPARSE_ARFF.encode(),
        Reader(format="arff", positive="yes"),
    ),
    "csv": (
        b"a,b,y\n1,2.5,1\n0,-1e3,0\n3,4,1\n",
        Reader(format="csv", target="y"),
    ),
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
        what = chance.randrange(6)
        if what == 0 and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        elif what == 1:
            data[at:at] = data[at:to] * chance.choice((1, 2, 40))
        elif what == 2:
            data[at:to] = chance.choice([b"", *tokens])
        elif what == 3:
            data[at:at] = chance.choice(tokens)
        elif what == 4:
            lines = bytes(data).splitlines(keepends=True)
            chance.shuffle(lines)
            data = bytearray(b"".join(lines))
        else:
            del data[at:]
    return bytes(data)


@pytest.fixture
def refused():
    """How often some files, spoilt by chance, are refused; each in one line.

    Whatever takes too long is ended by an error.
    """

    def give_up(*_):
        raise BaseException("led astray")

    def count(times, known, tokens, path_of, read, refusal):
        found = 0
        for case in range(times):
            chance = random.Random(case)
            name = chance.choice([*known])
            path = path_of(name)
            path.write_bytes(spoil(chance, known[name], tokens))
            signal.alarm(PATIENCE)
            try:
                read(name, path)
            except refusal as error:
                text = str(error)
                assert text and "\n" not in text and len(text) < 2000, (
                    case,
                    text,
                )
                found += 1
            except BaseException as error:
                raise AssertionError(
                    f"{case}, {name}: {path.read_bytes()}"
                ) from error
            path.write_bytes(known[name])
        return found

    before = signal.signal(signal.SIGALRM, give_up)
    yield count
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    "times", [300, pytest.param(8000, marks=pytest.mark.long)]
)
def test_a_spoilt_data_file_is_read_or_refused(tmp_path, refused, times):
    def read(name, path):
        X, y = read_files([path], READERS[name][1])
        values = X.data if sparse.issparse(X) else X
        assert X.shape[0] == len(y) > 0 and X.shape[1] > 0
        assert X.dtype == y.dtype == np.float64
        assert np.isfinite(values).all() and np.isfinite(y).all()

    known = {name: content for name, (content, _) in READERS.items()}
    given = (known, TOKENS, lambda name: tmp_path / "file", read, RefusedError)
    assert 0.02 < refused(times, *given) / times < 0.98


@pytest.mark.parametrize(
    "times", [80, pytest.param(2000, marks=pytest.mark.long)]
)
# Hydra says it, well
@pytest.mark.filterwarnings("ignore:.*Defaults list is missing")
def test_a_spoilt_configuration_is_read_or_refused(conf, refused, times):
    def read(name, path):
        compose(["problem=diabetes", "scale=smoke"])

    known = {name: (conf / f"{name}.yaml").read_bytes() for name in YAMLS}
    before = sorted(conf.parent.rglob("*"))
    given = (
        known,
        YAML_TOKENS,
        lambda name: conf / f"{name}.yaml",
        read,
        ConfigError,
    )
    assert 0.02 < refused(times, *given) / times < 0.98
    assert sorted(conf.parent.rglob("*")) == before


# --- hostile --------------------------------------------------------------------------


PARTS = "expected letters, digits, _ and -"
OWN = r"diabetes\.yaml: (expected settings|defaults: expected .*@_global_)"
HOSTILE = [  # file, text, what stands in its place, message
    # a YAML runs no code
    *(
        (
            "problem/diabetes",
            "loss: least_squares",
            f"loss: {code}",
            "not valid YAML",
        )
        for code in (
            "!!python/object/apply:os.system ['touch evil']",
            "!!python/object/new:subprocess.Popen [['touch', 'evil']]",
            "!!python/name:os.system",
            "!!python/module:antigravity",
        )
    ),
    # an algorithm is a solver
    *(
        (
            "solver/dp_cd",
            "algorithm: dp_cd",
            f"algorithm: {name}",
            f"'{name}': expec",
        )
        for name in ("os.path", "idlelib.idle", "pip.__main__", "this")
    ),
    # the function of a product is one of ours
    *(
        (
            "paper/tiny/paper",
            "function: trajectories",
            f"function: {name}",
            "expected one of",
        )
        for name in ("Path", "np", "__import__", "_curve", "Any")
    ),
    # names stay in their folder
    ("paper/tiny/paper", "name: tiny", "name: ../../evil", PARTS),
    ("paper/tiny/paper", "curves:", "../curves:", PARTS),
    ("paper/tiny/paper", "errors:", "/errors:", PARTS),
    ("problem/diabetes", "name: diabetes", "name: ../evil", PARTS),
    ("solver/dp_cd", "name: dp_cd", "name: /evil", PARTS),
    ("scale/smoke", "folder: smoke", "folder: ..", PARTS),
    # a file sets its own group only
    (
        "problem/diabetes",
        None,
        "# @package _global_\noutput: {results: /evil}\n",
        OWN,
    ),
    (
        "problem/diabetes",
        None,
        "#@ package _global_\ndata: {dir: /evil}\n",
        OWN,
    ),
    ("problem/diabetes", None, "defaults:\n  - /output@_global_: evil\n", OWN),
    (
        "problem/diabetes",
        None,
        "defaults: [{/output@_global_.output: evil}]\n",
        OWN,
    ),
    (
        "problem/diabetes",
        None,
        'defaults:\n  - "/output\\x40_global_": evil\n',
        OWN,
    ),
]


@pytest.mark.parametrize(("file", "old", "new", "message"), HOSTILE)
def test_a_hostile_yaml_is_refused(conf, file, old, new, message):
    path = conf / f"{file}.yaml"
    text = path.read_text()
    old = text.partition("name:")[0] if old is None else old
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ConfigError, match=message):
        config = compose(["problem=diabetes", "solver=dp_cd", "scale=smoke"])
        checks.problem(config.problem)
        checks.solver(config.solver)
        makers.entry_of(config.paper, "figures", "curves")
    assert not (conf.parent / "evil").exists()


class Evil:
    def __reduce__(self):
        return os.mkdir, ("evil",)


@pytest.mark.parametrize("name", ["X", "y"])
def test_pickled_arrays_are_not_loaded(conf, name):
    config = compose(["problem=diabetes"])
    evil = np.array([Evil()], dtype=object)
    steps = inputs.fetch, inputs.prepare, inputs.optimum
    for stage in steps:
        stage(config)
    for folder, stage in (
        ("fetched", inputs.prepare),
        ("prepared", inputs.optimum),
    ):
        path = Path("data") / folder / "diabetes" / "arrays.npz"
        kept = path.read_bytes()
        np.savez(path, **{**np.load(path), name: evil})
        with pytest.raises(ValueError, match="run again"):
            stage(config)
        path.write_bytes(kept)
    path = Path("data/optimum/diabetes/w.npy")
    np.save(path, inputs.load_optimum(config.problem, config.data).w + 1e-9)
    for damage in (path.read_bytes(), path.read_bytes()[:-9], b""):
        path.write_bytes(damage)
        with pytest.raises(ValueError, match=r"w.npy is damaged .*: delete"):
            inputs.load_optimum(config.problem, config.data)
    assert not Path("evil").exists()


def test_objects_are_not_pickled_into_parquet(tmp_path):
    with pytest.raises((pa.ArrowInvalid, pa.ArrowTypeError, TypeError)):
        store.write_table(
            tmp_path / "x.parquet", pd.DataFrame({"a": [object()]})
        )
    assert list(tmp_path.iterdir()) == []
