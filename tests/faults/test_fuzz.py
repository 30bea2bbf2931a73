"""Files spoilt at random give arrays that are sound, or an error of ours.

``make fuzz`` runs 10 000 cases. A failing case is named by its number and is the same
on every machine: ``FUZZ_ONLY=123 pytest tests/faults/test_fuzz.py``.
"""

import os
import random
import signal

import numpy as np
import pytest
from scipy import sparse

from dperm.core.experiment.config import compose
from dperm.core.experiment.locate import ConfigError
from dperm.core.experiment.schema import Reader
from dperm.data.arrays import RefusedError
from dperm.data.readers import read_files
from faults.tiny import Project

CASES = int(os.environ.get("FUZZ_CASES", "400"))
ONLY = os.environ.get("FUZZ_ONLY")
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


def cases(first: int, share: float):
    if ONLY is not None:
        return [int(ONLY)]
    return range(first, first + int(CASES * share))


def check_arrays(X, y) -> None:
    values = X.data if sparse.issparse(X) else X
    assert X.shape[0] == len(y) > 0 and X.shape[1] > 0
    assert X.dtype == y.dtype == np.float64
    assert np.isfinite(values).all() and np.isfinite(y).all()


def test_readers(tmp_path, impatient):
    read = refused = 0
    path = tmp_path / "file"
    for case in cases(0, 0.8):
        chance = random.Random(case)
        name = chance.choice(list(READERS))
        content, reader = READERS[name]
        path.write_bytes(spoil(chance, content, TOKENS))
        impatient()
        try:
            check_arrays(*read_files([path], reader))
            read += 1
        except RefusedError as error:
            text = str(error)
            assert text and "\n" not in text and len(text) < 2000, (case, text)
            refused += 1
        except BaseException as error:
            raise AssertionError(f"case {case}, {name}: {path.read_bytes()}") from error
    assert ONLY or min(read, refused) > 0.02 * (read + refused)


@pytest.mark.filterwarnings("ignore:.*Defaults list is missing")  # Hydra says it, well
def test_yaml(tmp_path, impatient, monkeypatch):
    project = Project(tmp_path)
    monkeypatch.setenv("DPERM_CONF", str(project.conf))
    monkeypatch.chdir(tmp_path)
    known = {name: (project.conf / f"{name}.yaml").read_bytes() for name in YAMLS}
    before = sorted(tmp_path.rglob("*"))
    accepted = refused = 0
    for case in cases(10**6, 0.2):
        chance = random.Random(case)
        name = chance.choice(YAMLS)
        path = project.conf / f"{name}.yaml"
        path.write_bytes(spoil(chance, known[name], YAML_TOKENS))
        impatient()
        try:
            compose(["problem=diabetes", "scale=smoke"])
            accepted += 1
        except ConfigError as error:
            assert str(error) and len(str(error)) < 5000, (case, str(error))
            refused += 1
        except BaseException as error:
            raise AssertionError(f"case {case}, {name}: {path.read_bytes()}") from error
        path.write_bytes(known[name])
    assert sorted(tmp_path.rglob("*")) == before
    assert ONLY or min(accepted, refused) > 0.02 * (accepted + refused)
