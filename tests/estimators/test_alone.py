"""A fit depends on its arguments, and leaves the process as it was."""

import functools
import json
import os
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import dperm
from dperm.estimators import methods
from dperm.names import ConfigError
from dperm.solvers.full_batch import dp_gd
from weekly import variants

FIT = """
import json, os, sys
before = dict(os.environ)
import numpy as np
import dperm

rng = np.random.default_rng(0)
X = rng.normal(size=(500, 3))
X /= np.linalg.norm(X, axis=1)[:, None]
how = {"epsilon": 1, "delta": 1e-6, "bounds": (-1, 1), "random_state": 1}
coefs = []
for solver in ("auto", "moments", "dp_cd_uniform"):
    model = dperm.fit(X, X @ [0.9, 0, 0], solver, label_bounds=(-1, 1), **how)
    coefs.append(model.coef_.tolist())
coefs.append(dperm.fit(X, X[:, 0] > 0, classes=(0, 1), **how).coef_.tolist())
told = {"coefs": coefs, "same": before == dict(os.environ)}
print(json.dumps(told))
"""
FIRST = """
import sys
import numpy as np
import dperm
X = np.linspace(-1, 1, 60).reshape(30, 2)
dperm.fit(X, X[:, 0], bounds=(-1, 1), label_bounds=(-1, 1))
dperm.fit(X, X[:, 0] > 0, bounds=(-1, 1), classes=(0, 1))
print(*sys.modules)
"""
FOREIGN = {
    "none": {},
    "hydra": {"conf/config.yaml": "db: {}\n"},
    "hostile": {
        "conf/solver/moments.yaml": (
            "name: moments\nlabel: M\nalgorithm: moments\noptions: {radius: 0.01}\n"
        ),
        "moments.py": "raise SystemExit('imported')\n",
        "conf/solver/dp_cd_uniform.yaml": "nonsense: [1\n",
        "conf/paper/arena/paper.yaml": "nonsense: [1\n",
    },
}
NOT_NEEDED = ("hydra", "omegaconf", "pydantic", "snakemake", "antlr4")
ROOMS = (
    "audit",
    "experiments",
    "data",
    "config",
    "papers",
    "report",
    "storage",
    "workflow",
    "benchmark",
    "claims",
    "plotting",
)
MOST_MODULES = 45


def python(script: str, folder: Path, **more: str) -> str:
    """What a script prints in a process of its own."""
    environment = {**os.environ, **more}
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


KINDS = variants([kind for kind in FOREIGN if kind != "none"], ["hostile"])


def foreign(folder: Path, kind: str, **more: str) -> Path:
    """A folder with foreign files."""
    for name, text in {**FOREIGN[kind], **more}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    """The same fits in a folder with foreign files, made once."""

    @functools.cache
    def fitted(kind):
        return json.loads(
            python(FIT, foreign(tmp_path_factory.mktemp(kind), kind))
        )

    return fitted


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_does_not_read_the_folder_that_it_is_called_in(fits, kind):
    assert fits(kind)["coefs"] == fits("none")["coefs"]


def test_the_environment_is_the_same_after_a_fit(fits):
    assert fits("none")["same"] and fits("hostile")["same"]


def tried(folder: Path, kind: str) -> list[list[str]]:
    """What the command writes of a file, in a folder with foreign files."""
    rows = "".join(f"{k % 7},{k % 7 + k % 3}\n" for k in range(60))
    foreign(folder, kind, **{"mine.csv": f"a,y\n{rows}"})
    words = "try mine.csv target=y solvers=[moments] tunings=default fresh=2"
    command = [sys.executable, "-m", "dperm", *words.split()]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    head, *lines = (
        (folder / "results/try/mine/try.csv").read_text().splitlines()
    )
    place = head.split(",").index("seconds")
    return [line.split(",")[:place] for line in lines]


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_tries_a_file_beside_any_configuration(kind, tmp_path):
    """A foreign configuration has no say in what a method is."""
    plain = tried(tmp_path / "none", "none")
    assert plain == tried(tmp_path / kind, kind) and len(plain) > 2


def test_a_fit_imports_what_it_needs_alone(tmp_path):
    modules = python(FIRST, tmp_path).split()
    assert not [
        name for name in modules if name.partition(".")[0] in NOT_NEEDED
    ]
    ours = [name for name in modules if name.partition(".")[0] == "dperm"]
    rooms = tuple(f"dperm.{room}" for room in ROOMS)
    assert not [name for name in ours if name.startswith(rooms)]
    assert len(ours) <= MOST_MODULES


def test_a_fit_works_in_silence_where_no_cache_can_be_written(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    places = ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR")
    blocked = {name: str(file / "cache") for name in places}
    with_temporary = python(FIRST, tmp_path, **blocked)
    # scipy before 1.14 opens a temporary file when it is imported
    without = python(
        f"import scipy.stats, tempfile; tempfile.tempdir = {str(file)!r}\n{FIRST}",
        tmp_path,
        **blocked,
    )
    assert "dperm.numerics.kernels" in with_temporary and "dperm" in without


# --- a solver of one's own ------------------------------------------------------------

X = np.linspace(-1, 1, 400).reshape(200, 2)
HOW = {"bounds": (-1, 1), "label_bounds": (-1, 1), "random_state": 3}


def copied(name: str) -> types.ModuleType:
    """A module of one's own that does what DP-GD does."""
    module = types.ModuleType(name)
    kept = ("DEFAULT", "Options", "ledger", "refuses", "Run")
    vars(module).update({key: getattr(dp_gd, key) for key in kept})
    module.FAMILY = "full_batch"
    return module


class Own:
    """As a class instead of a module."""

    FAMILY, Options, Run = "full_batch", dp_gd.Options, dp_gd.Run
    DEFAULT = dp_gd.DEFAULT
    UNCHECKED = "it is DP-GD, which is checked"
    ledger, refuses = staticmethod(dp_gd.ledger), staticmethod(dp_gd.refuses)


@pytest.fixture
def importable(monkeypatch):
    """A module that Python can import by name."""
    module = copied("own_descent")
    module.Own = Own
    module.UNCHECKED = Own.UNCHECKED
    monkeypatch.setitem(sys.modules, "own_descent", module)
    return module


def test_a_solver_of_ones_own_is_an_object_or_a_place(importable):
    usual = dperm.fit(X, X[:, 0], "dp_gd", **HOW)
    for solver in (importable, Own, Own(), "own_descent:Own"):
        model = dperm.fit(X, X[:, 0], solver, **HOW)
        assert np.array_equal(model.coef_, usual.coef_)
        again = clone(model).fit(X, X[:, 0])
        assert (
            np.array_equal(again.coef_, usual.coef_) and again.solver is solver
        )


@pytest.fixture
def installed(importable, monkeypatch):
    """Its name is an entry point."""
    from dperm import names

    monkeypatch.setattr(
        names, "entry_points", lambda group: {"mine": "own_descent"}
    )
    monkeypatch.setattr(methods, "entry_points", names.entry_points)
    methods._kept.cache_clear()
    yield
    methods._kept.cache_clear()


def test_a_solver_of_ones_own_may_be_an_entry_point(installed):
    model = dperm.fit(X, X[:, 0], "mine", **HOW)
    assert np.array_equal(
        model.coef_, dperm.fit(X, X[:, 0], "dp_gd", **HOW).coef_
    )


def test_an_object_of_the_same_name_does_not_take_its_place(installed):
    other = copied("mine")
    other.UNCHECKED = Own.UNCHECKED
    other.DEFAULT = {**other.DEFAULT, "step": 0.001}
    given = dperm.fit(X, X[:, 0], other, **HOW)
    named = dperm.fit(X, X[:, 0], "mine", **HOW)
    assert np.array_equal(
        named.coef_, dperm.fit(X, X[:, 0], "dp_gd", **HOW).coef_
    )
    assert not np.array_equal(given.coef_, named.coef_)


def test_a_module_in_the_current_folder_is_no_solver(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match="solver mine: expected one of"):
        dperm.fit(X, X[:, 0], "mine", **HOW)


@pytest.mark.parametrize(
    ("solver", "said"),
    [
        (5, "solver: expected a name, or a module or object .* found 5"),
        (
            "nowhere:mine",
            "solver nowhere:mine: expected module:name: No module",
        ),
        (
            "own_descent:other",
            "solver own_descent:other: expected module:name",
        ),
        (types.ModuleType("empty"), "found <module 'empty'>.*Options"),
    ],
)
def test_what_is_no_solver_is_refused(importable, solver, said):
    with pytest.raises(ConfigError, match=said):
        dperm.fit(X, X[:, 0], solver, **HOW)


def test_a_solver_of_ones_own_that_leaks_is_refused():
    module = copied("leaking")

    def ledger(at, noise_multiplier, options):
        stated = dp_gd.ledger(at, noise_multiplier, options)
        event = stated.events[0]
        halved = type(event)(
            event.sensitivity / 4,
            event.scale / 4,
            event.count,
            event.unit,
            event.source,
        )
        return type(stated)((halved,), given=stated.given)

    module.ledger = ledger
    with pytest.raises(ValueError, match="the ledger states"):
        dperm.fit(X, X[:, 0], module, **HOW)


def test_public_names_alone_are_listed():
    assert dir(dperm) == sorted(dperm.__all__)
    assert all(getattr(dperm, name) is not None for name in dperm.__all__)


TYPED = """
import dperm

X, y = [[0.0], [1.0]], [0, 1]
model = dperm.fit(X, y, epsilon=1.0, classes=(0, 1), bounds=(-1, 1))
reveal_type(model)
reveal_type(dperm.fit(X, y, label_bounds=(0, 1)))
dperm.DPRegressor(label_bounds=(0, 1)).fit(X, y).predict(X)
dperm.fit(X, y, epsilom=1.0, classes=(0, 1))
dperm.DPClassifier(clases=(0, 1))
dperm.PrivateSearch(model, {}, epsilom=1.0)
dperm.Budget(1.0, 1e-6, 3)
model.coefs_
"""


def test_a_type_checker_finds_misspelt_arguments(tmp_path):
    (tmp_path / "user.py").write_text(TYPED)
    command = [sys.executable, "-m", "mypy", "--strict", "user.py"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True
    )
    lines = done.stdout.splitlines()
    shown = [line.partition(': note: Revealed type is "')[2] for line in lines]
    kinds = [name.strip('"').rpartition(".")[2] for name in shown if name]
    assert kinds == ["DPClassifier", "DPRegressor"]
    wrong = {int(line.split(":")[1]) for line in lines if ": error:" in line}
    assert wrong == {9, 10, 11, 12, 13}
