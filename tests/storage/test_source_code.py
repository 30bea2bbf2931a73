"""The code that entry points reach, through every form of import."""

import os
import sys

import pytest

from commands import python
from dperm.names import ConfigError
from dperm.storage import source_code
from weekly import variants

MODULES = {
    "mine/__init__.py": "from mine.core import double\n__all__ = ['double']\n",
    "mine/core.py": """
import numpy as np
from mine import shapes, unused
from mine.deep.tools import twice as times

FACTOR = 2.0

def double(x):
    "Docstring."
    return times(x) * FACTOR

def area(r):
    return shapes.circle(r)

def other(data: unused.Kind):
    from .deep import lazily
    return [lazily.late(value) for value in data]
""",
    "mine/shapes.py": "def circle(r):\n    return r\n"
    "def square(a):\n    return a * a\n",
    "mine/unused.py": "class Kind:\n    size = 1\n",
    "mine/deep/__init__.py": "",
    "mine/deep/tools.py": "from ..deep.below import *\n"
    "def twice(x):\n    return x + x\n",
    "mine/deep/below.py": "LIMIT = 1\n",
    "mine/deep/lazily.py": "def late(x):\n    return x\n",
}


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A package of one's own; returns a function that edits one of its files."""
    monkeypatch.syspath_prepend(str(tmp_path))
    # whose modules count by names
    monkeypatch.setattr(source_code, "PACKAGE", tmp_path)
    for name, text in MODULES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    source_code.forget()

    def edit(name, old, new):
        path = tmp_path / "mine" / name
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
        source_code.forget()

    yield edit
    source_code.forget()
    for name in [name for name in sys.modules if name.startswith("mine")]:
        del sys.modules[name]


def test_a_name_reaches_the_modules_that_its_statements_import(mine):
    tools = {"mine.deep.tools", "mine.deep.below"}
    assert source_code.reached("mine.core:double") == {
        "mine.core:double",
        *tools,
    }
    assert source_code.reached("mine.core:area") == {
        "mine.core:area",
        "mine.shapes",
    }
    assert "mine.deep.lazily" in source_code.reached("mine.core:other")
    assert {"mine.core", *tools} < source_code.reached("mine:double")
    every = {
        "mine.core",
        "mine.shapes",
        "mine.unused",
        "mine.deep.lazily",
        *tools,
    }
    assert source_code.reached("mine.core") == every


DOUBLE = "mine.core:double"
EDITS = [
    # file, old and new text, whether it counts for DOUBLE
    ("core.py", "FACTOR = 2.0", "FACTOR = 3.0", True),
    ("core.py", "times(x)", "times(-x)", True),
    ("core.py", "import twice as times", "import LIMIT as times", True),
    ("deep/tools.py", "x + x", "2 * x", True),
    ("deep/below.py", "LIMIT = 1", "LIMIT = 2", True),
    ("core.py", "Docstring.", "Another.", False),
    ("core.py", "FACTOR = 2.0", "FACTOR = 2.0  # a comment", False),
    ("core.py", "def area(r)", "def area(radius)", False),
    ("shapes.py", "a * a", "a ** 2", False),
]


@pytest.mark.parametrize(("file", "old", "new", "counts"), EDITS)
def test_an_edit_counts_where_it_is_reached(mine, file, old, new, counts):
    before = source_code.digest(DOUBLE)
    mine(file, old, new)
    assert (source_code.digest(DOUBLE) != before) is counts


def test_a_table_beside_a_module_counts_for_what_names_it(mine, tmp_path):
    (tmp_path / "mine/table.csv").write_text("a,b\n1,2\n")
    mine("shapes.py", "def circle", "TABLE = 'table.csv'\ndef circle")
    entries = [f"mine.shapes:{name}" for name in ("TABLE", "square")]
    before = [source_code.digest(entry) for entry in entries]
    mine("table.csv", "1,2", "1,3")
    after = [source_code.digest(entry) for entry in entries]
    assert before[0] != after[0] and before[1] == after[1]


@pytest.mark.parametrize("special", ["pipe", "loop"])
def test_what_is_no_file_beside_a_module_is_not_read(
    tmp_path, monkeypatch, special
):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "opens_all.py").write_text("text = open('a' + 'b')\n")
    source_code.forget()
    before = source_code.digest("opens_all")
    if special == "pipe":
        os.mkfifo(tmp_path / "special")
    else:
        (tmp_path / "special").symlink_to("special")
    source_code.forget()
    assert source_code.digest("opens_all") != before


def test_an_entry_that_is_not_there_is_refused(mine):
    for entry in ("mine.core:doubel", "mine.nowhere", "nothing.at:all"):
        with pytest.raises(
            source_code.UnknownNameError, match=entry.partition(":")[0]
        ):
            source_code.digest(entry)
    mine("core.py", "def area(r):", "def area(r)")
    with pytest.raises(
        ConfigError, match=r"core.py:12: not valid Python: expected ':'"
    ):
        source_code.digest("mine.core:area")


def test_a_module_says_of_itself_one_of_three_words():
    texts = [
        path.read_text() for path in sorted(source_code.PACKAGE.rglob("*.py"))
    ]
    lines = [
        line
        for text in texts
        for line in text.splitlines()
        if "IN_KEYS =" in line
    ]
    lines = [line for line in lines if line.startswith("IN_KEYS")]
    words = [source_code.SAID.match(line)[1] for line in lines]
    assert {*words} == {
        source_code.NOTHING,
        source_code.NAMES,
        source_code.SETTINGS,
    }


@pytest.mark.parametrize(
    ("entry", "word", "says"), [("dperm.cli", source_code.NOTHING, True),
    ("dperm.solvers.batched", source_code.NAMES, False),
     ("dperm.solvers.batched.trials:run", source_code.NAMES, True),
     ("dperm.data.readers:read", source_code.NAMES, True),
     ("dperm.papers.dpcd.sweeps:x", source_code.SETTINGS, True),
     ("numpy.linalg", source_code.NAMES, False)],
)  # fmt: skip
def test_a_package_speaks_for_its_modules(entry, word, says):
    assert source_code.says(entry, word) is says


RUN_LANES = """
import sys
from pathlib import Path
from types import SimpleNamespace
import numpy as np, dperm
from numba.core.dispatcher import Dispatcher
from dperm.solvers import registry as solvers
from dperm.problems.penalties import Penalty
from dperm.problems.problem import build
from dperm.experiments.task import setting_rows
from dperm.solvers.batched import BatchedSettings
home, algorithm = Path(dperm.__file__).parent, sys.argv[1]
module = solvers.load(algorithm)
rng, ran = np.random.default_rng(0), set()
X, y = rng.standard_normal((12, 3)), np.sign(rng.standard_normal(12))
problem = build("a", X, y, "logistic", Penalty(l2=0.1), 1.0, 1e-3)
sys.setprofile(lambda frame, *_: ran.add(frame.f_code.co_filename))
optimum = SimpleNamespace(value=1.0, support=np.zeros(3, dtype=bool))
setting_rows(module, module.Options(), problem, optimum,
          BatchedSettings(np.array([0.1]), np.array([1.0]), 1.0), 1.0, (1.0,), 5, 1)
sys.setprofile(None)
for name, found in list(sys.modules.items()):
    kernels = [one for one in vars(found).values() if isinstance(one, Dispatcher)]
    ran |= {one.py_func.__code__.co_filename for one in kernels if one.signatures}
for name in sorted(ran):
    if home in Path(name).parents:
        print(".".join(Path(name).relative_to(home.parent).with_suffix("").parts))
"""


ALGORITHMS = ("dp_cd", "dp_gcd", "dp_sgd", "dp_svrg")


@pytest.mark.parametrize(
    "algorithm", variants(ALGORITHMS, ("dp_gcd", "dp_svrg"))
)
def test_all_code_that_runs_for_a_setting_counts(algorithm):
    """Also compiled kernels; none of it may be plumbing."""
    from dperm.experiments import digests

    done = python("-c", RUN_LANES, algorithm)
    ran = {name.removesuffix(".__init__") for name in done.stdout.split()}
    found = source_code.reached(*digests.running(algorithm, "logistic"))
    counted = {name.partition(":")[0] for name in found}
    assert len(ran) > 5 and ran <= counted


# --- files that no import reaches -----------------------------------------------------


def test_a_script_that_another_python_runs_is_in_the_key_of_what_starts_it():
    script = source_code.PACKAGE / "benchmark/peer_files/fits.py"
    assert script in source_code.files("dperm.papers.arena.sweeps:peers")


def test_every_folder_without_a_package_has_a_name_by_which_it_counts():
    folders = {
        path.parent
        for path in source_code.PACKAGE.rglob("*.*")
        if path.is_file()
    }
    apart = {
        folder.name
        for folder in folders
        if not (folder / "__init__.py").exists()
        and folder.name != "__pycache__"
    }
    assert apart and all(name.endswith("_files") for name in apart)


def test_a_file_that_nobody_can_read_counts_as_empty(tmp_path, monkeypatch):
    (tmp_path / "reads_proc.py").write_text('NAME = "/proc/self/clear_refs"\n')
    monkeypatch.syspath_prepend(tmp_path)
    source_code.forget()
    assert source_code.digest("reads_proc")
    source_code.forget()
