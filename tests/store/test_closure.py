"""The closure of code: by names, through every form of import, effects included."""

import os
import subprocess
import sys

import pytest

from dperm.store import closure
from dperm.store.closure import read

MODULES = {
    "mine/__init__.py": "from mine.core import double\n__all__ = ['double']\n",
    "mine/core.py": """
import numpy as np
from mine import shapes
from mine.deep.tools import twice as times

FACTOR = 2.0

def double(x):
    "Docstring."
    return times(x) * FACTOR

def area(r):
    return shapes.circle(r)

def other(data):
    from mine.deep import lazily
    return [lazily.late(FACTOR) for FACTOR in data]

def passed(f=None):
    return list(map(str, [shapes]))
""",
    "mine/shapes.py": "from math import pi\ndef circle(r):\n    return pi * r\n"
    "def square(a):\n    return a * a\n",
    "mine/deep/__init__.py": "",
    "mine/deep/tools.py": """
import functools
from mine.deep.register import cost

def twice(x):
    return x + x

def unused(x):
    return x

@cost.register
def _(event: int):
    return hidden(event)

def hidden(event):
    return event

@functools.cache
def pure(x):
    return x
""",
    "mine/deep/register.py": "from functools import singledispatch\n"
    "@singledispatch\ndef cost(event):\n    return 0\n",
    "mine/deep/lazily.py": "def late(x):\n    return x\nLATER = 1\n",
    "mine/events.py": "class Event:\n    def __init_subclass__(cls):\n        pass\n"
    "class Plain:\n    pass\n",
    "mine/loud.py": "from mine.events import Event, Plain\nNAME = 1\n"
    "class Loud(Event):\n    size = 3\nclass Calm(Plain):\n    pass\n"
    "settings = {}\nsettings['a'] = NAME\n",
}


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A package of one's own; returns a function that edits one of its files."""
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, text in MODULES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    closure.known.cache_clear()

    def edit(name, old, new):
        path = tmp_path / "mine" / name
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
        closure.known.cache_clear()

    yield edit
    closure.known.cache_clear()
    for name in [name for name in sys.modules if name.startswith("mine")]:
        del sys.modules[name]


def names(*entries):
    return {name for name in closure.closure(*entries) if not name.endswith(":")}


def test_a_definition_reaches_what_it_names(mine):
    assert names("mine.core:double") == {
        "mine.core:double", "mine.core:FACTOR", "mine.deep.tools:twice",
        "mine.deep.tools:hidden", "mine.deep.register:cost",
    }  # fmt: skip
    assert names("mine:double") == names("mine.core:double")
    assert "mine.shapes:circle" in names("mine.core:area")
    assert "mine.shapes:square" not in names("mine.core:area")


def test_imports_inside_functions_and_names_that_are_bound_there(mine):
    found = names("mine.core:other")
    assert "mine.deep.lazily:late" in found and "mine.deep.lazily:LATER" not in found
    assert "mine.core:FACTOR" not in found  # another: of the comprehension


def test_a_module_that_is_handed_on_counts_whole(mine):
    assert {"mine.shapes:circle", "mine.shapes:square"} <= names("mine.core:passed")


DOUBLE, NAME = "mine.core:double", "mine.loud:NAME"
EDITS = [
    # what is asked for, file, old and new text, whether it counts
    (DOUBLE, "core.py", "FACTOR = 2.0", "FACTOR = 3.0", True),
    (DOUBLE, "core.py", "times(x)", "times(-x)", True),
    (DOUBLE, "core.py", "import twice as times", "import unused as times", True),
    (DOUBLE, "deep/tools.py", "x + x", "2 * x", True),
    (DOUBLE, "deep/tools.py", "return hidden(event)", "return 0", True),  # an effect
    (DOUBLE, "deep/tools.py", "    return event", "    -event", True),
    (NAME, "loud.py", "size = 3", "size = 4", True),  # its base registers it
    (NAME, "loud.py", "settings['a'] = NAME", "settings['b'] = NAME", True),
    (NAME, "loud.py", "(Plain):\n    pass", "(Plain):\n    a = 1", False),
    (DOUBLE, "core.py", "Docstring.", "Another.", False),
    (DOUBLE, "core.py", "FACTOR = 2.0", "FACTOR = 2.0  # a comment", False),
    (DOUBLE, "core.py", "def area(r)", "def area(radius)", False),
    (DOUBLE, "deep/tools.py", "def unused(x):", "def unused(x, y):", False),
    (DOUBLE, "deep/tools.py", "def pure(x):", "def pure(x, y):", False),
    (DOUBLE, "shapes.py", "a * a", "a ** 2", False),
]


@pytest.mark.parametrize(("entry", "file", "old", "new", "counts"), EDITS)
def test_an_edit_counts_where_it_is_reached(mine, entry, file, old, new, counts):
    before = closure.digest(entry)
    mine(file, old, new)
    assert (closure.digest(entry) != before) is counts


def test_libraries_count_by_version_where_something_is_solved(mine, monkeypatch):
    mine("core.py", "FACTOR = 2.0", "FACTOR = np.float64(2)")
    names = ("mine.core:double", "mine.shapes:circle")
    solved = [closure.digest(name, versioned=True) for name in names]
    drawn = [closure.digest(name) for name in names]
    monkeypatch.setattr(closure, "_version", lambda name: f"{name} of tomorrow")
    closure.known.cache_clear()
    again = [closure.digest(name, versioned=True) for name in names]
    assert again[0] != solved[0] and again[1] == solved[1]
    assert [closure.digest(name) for name in names] == drawn


def test_a_table_beside_a_module_counts_for_what_names_it(mine, tmp_path):
    (tmp_path / "mine/table.csv").write_text("a,b\n1,2\n")
    mine("shapes.py", "def circle", "TABLE = 'table.csv'\ndef circle")
    entries = [f"mine.shapes:{name}" for name in ("TABLE", "square")]
    before = [closure.digest(entry) for entry in entries]
    mine("table.csv", "1,2", "1,3")
    after = [closure.digest(entry) for entry in entries]
    assert before[0] != after[0] and before[1] == after[1]


def test_an_entry_that_is_not_there_is_refused(mine):
    for entry in ("mine.core:doubel", "mine.nowhere", "nothing.at:all"):
        with pytest.raises(closure.UnknownNameError, match=entry):
            closure.digest(entry)


def test_every_exception_of_the_rule_names_something_that_is_there():
    for name in (*closure.PLUMBING, *closure.COUNTED):
        if name != "dperm.store":
            assert closure.closure(name)


def test_relative_imports_and_stars():
    source = read("from . import a\nfrom ..b import c\nfrom .d import *\n", "x.y")
    assert source.imports == {"a": ("x.y", "a"), "c": ("x.b", "c")}
    assert source.stars == ["x.y.d"]


def test_the_digest_is_the_same_in_every_process(tmp_path):
    """Names that one statement binds are in no order of their own."""
    names = [f"name_{number}" for number in range(12)]
    (tmp_path / "many.py").write_text(f"{', '.join(names)} = range(12)\n")
    (tmp_path / "whole.py").write_text("import many\n\ndef use():\n    return many\n")
    script = "from dperm.store import closure; print(closure.digest('whole:use'))"
    found = {
        subprocess.run(
            [sys.executable, "-c", script], cwd=tmp_path, check=True, text=True,
            env={**os.environ, "PYTHONHASHSEED": str(seed)}, capture_output=True,
        ).stdout
        for seed in range(2)
    }  # fmt: skip
    assert len(found) == 1
