"""What a configuration cannot reach, and where the program runs all the same."""

import json
import sys
import time

import pytest

from commands import SCRIPT, python
from dperm.config.config import compose
from dperm.config.locate import ConfigError
from dperm.config.validation import load_yaml
from dperm.experiments import inputs
from dperm.storage import source_code

SECRET = "hunter2"


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder of configuration of one's own; a secret in the environment."""
    (tmp_path / "conf/problem").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPERM_CONF", str(tmp_path / "conf"))
    monkeypatch.setenv("SECRET", SECRET)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    return tmp_path


# --- the environment ------------------------------------------------------------------

TITLE = """defaults: [/dataset@dataset: diabetes]
name: own
title: {title}
loss: least_squares
"""


@pytest.mark.parametrize(
    "title",
    [
        "a ${oc.env:SECRET,none} b",
        "${oc.decode:${oc.env:SECRET}}",
    ],
)
def test_nothing_outside_is_read_into_a_configuration(own, title):
    (own / "conf/problem/own.yaml").write_text(TITLE.format(title=repr(title)))
    with pytest.raises(
        ConfigError, match=r"own.yaml: not .*\$.* line 3"
    ) as said:
        compose(["problem=own"])
    assert SECRET not in str(said.value)
    with pytest.raises(
        ConfigError, match=r"command line: .*problem.title"
    ) as said:
        compose([f'problem.title="{title}"'])
    assert SECRET not in str(said.value)


# --- aliases --------------------------------------------------------------------------


def levels(text, count=9):
    """Levels of aliases, each of nine times the one before."""
    lines = ["a0: &a0 {x: 1}"]
    for level in range(1, count):
        nine = ", ".join([f"*a{level - 1}"] * 9)
        lines.append(f"a{level}: &a{level} {text % nine}")
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    "text",
    [levels("[%s]"), levels("{<<: [%s]}"), b"a: &a [*a]", b"a: &a {b: *a}"],
)
def test_aliases_are_not_written_out_without_end(text):
    began = time.process_time()
    with pytest.raises(ConfigError, match=r"own.yaml: .*100000 values"):
        load_yaml("own.yaml", text)
    assert time.process_time() - began < 2


def test_a_few_aliases_are_read():
    assert (
        load_yaml("own.yaml", levels("[%s]", 3))["a2"] == [[{"x": 1}] * 9] * 9
    )


# --- where it runs --------------------------------------------------------------------

ASCII = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}
STAGES = ("fetch", "prepare", "optimum", "tune", "evaluate")


def test_the_stages_run_without_assertions_and_in_ascii(tmp_path):
    chosen = ("problem=diabetes", "scale=smoke", "solver=dp_cd", "paper=dpcd")
    words = json.dumps([[stage, *chosen] for stage in STAGES])
    given = {"PYTHONOPTIMIZE": "1", **ASCII}
    done = python("-P", "-c", SCRIPT, words, cwd=tmp_path, **given)
    assert done.returncode == 0, done.stderr[-2000:]


def test_digests_of_code_are_those_of_every_python():
    name = "dperm.problems.optimum:solve"
    code = f"from dperm.storage import source_code; print(source_code.digest({name!r}))"
    done = python("-O", "-c", code, PYTHONHASHSEED="1")
    assert done.stdout.strip() == source_code.digest(name)


# --- damaged records ------------------------------------------------------------------


@pytest.mark.parametrize("text", ["[]", "null", "3"])
def test_an_optimum_that_is_no_record_is_named(own, text):
    path = own / "data/optimum/diabetes/optimum.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    config = compose(["problem=diabetes"])
    with pytest.raises(
        ValueError, match=r"optimum.json is damaged .*: delete"
    ):
        inputs.optimum_record(config.problem, config.data)
