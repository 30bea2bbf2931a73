"""Lanes of older code are kept where a sample has the same bits, and only there.

Real edits, in a copy of the package: what is kept was made by one, what adopts it is
another.
"""

import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import dperm
from commands import SCRIPT
from dperm.pipeline.verify import SAID, difference

PAPER = {
    "name": "kept",
    "problems": ["diabetes"],
    "offline": ["diabetes"],
    "calibrations": ["paper"],
    "runs": {
        name: {"grid": {"passes": [2, 4], "step": [0.1, 1.0], "clip": [1.0, 100.0]}}
        for name in ("dp_cd", "own")
    },
    "sweeps": {
        name: {"kind": name, "grid": {"n": [1, 2, 3], "how": ["a", "b"]},
               "replicates": 1}
        for name in ("powers", "roots")
    },
}  # fmt: skip
SWEEPS = """
def powers(config, point, seed):
    base = 1.1 if point["how"] == "a" else _base()
    return {"value": base ** point["n"] * (1 + seed % 97)}

def _base():
    return 1.2

def roots(config, point, seed):
    return [{"k": k, "value": point["n"] ** 0.5} for k in range(2)]
"""
OWN = """
import numpy as np
from dperm.core.lanes import dp_cd
from helper_of_own import scaled

Options, steps, ledger = dp_cd.Options, dp_cd.steps, dp_cd.ledger
lane_bytes = dp_cd.lane_bytes

class Run(dp_cd.Run):
    def advance(self, count):
        super().advance(count)
        weights = self.tiles[:, : self.problem.p]
        weights[:] = scaled(weights)
"""
HELPER = "def scaled(weights):\n    grown = weights * 1.5\n    return grown\n"
WHERE = ["paper=kept", "scale=smoke", "problem=diabetes"]


class Project:
    """A folder with a paper, a solver and the package's source, all of one's own."""

    def __init__(self, folder: Path):
        self.folder = folder

    def make(self) -> "Project":
        package = Path(dperm.__file__).parent
        left = shutil.ignore_patterns("__pycache__")  # others may write there
        shutil.copytree(package, self.folder / "src/dperm", ignore=left)
        shutil.copytree(Path(dperm.__file__).parents[2] / "conf", self.folder / "share")
        paper, solver = self.folder / "conf/paper/kept", self.folder / "conf/solver"
        paper.mkdir(parents=True)
        solver.mkdir()
        (paper / "paper.yaml").write_text(yaml.safe_dump(PAPER))
        (paper / "sweeps.py").write_text(SWEEPS)
        (solver / "own.yaml").write_text(
            "name: own\nlabel: Own\nalgorithm: solver_of_own\n"
        )
        (self.folder / "solver_of_own.py").write_text(OWN)
        (self.folder / "helper_of_own.py").write_text(HELPER)
        (self.folder / "src/dperm/share").mkdir()
        (self.folder / "share").rename(self.folder / "src/dperm/share/conf")
        return self

    def run(self, stage: str, *given: str) -> subprocess.CompletedProcess:
        return self.run_all([stage, *given])

    def run_all(self, *commands: list[str]) -> subprocess.CompletedProcess:
        """Run one stage after the other, in one process."""
        environment = {**os.environ, "PYTHONPATH": str(self.folder / "src")}
        environment.pop("DPERM_CONF", None)
        # Machine code is kept by what the kernels' rooms hold, apart from ours.
        environment.pop("NUMBA_CACHE_DIR", None)
        environment["XDG_CACHE_HOME"] = str(self.folder.parent / "cache")
        words = [[stage, *WHERE, *given] for stage, *given in commands]
        return subprocess.run(
            [sys.executable, "-P", "-c", SCRIPT, json.dumps(words)], cwd=self.folder,
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.folder / name
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    def parts(self) -> set[str]:
        """Kept files, ``solver/part``."""
        return {
            f"{path.parent.parent.name}/{path.name}"
            for path in (self.folder / "results").rglob("lanes/*.parquet")
        }


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A project whose lanes and sweeps have run, as it was left."""
    folder = tmp_path_factory.mktemp("made")
    project = Project(folder / "work").make()
    first = [[stage] for stage in ("fetch", "prepare", "optimum", "sweep")]
    pairs = itertools.product(("dp_cd", "own"), ("tune", "evaluate"))
    done = project.run_all(*first, *([s, f"solver={name}"] for name, s in pairs))
    assert done.returncode == 0, done.stderr[-2000:]
    return Project(shutil.copytree(project.folder, folder / "kept"))


@pytest.fixture
def project(made):
    """The same to be edited, in the folder whose machine code Numba has kept."""
    work = made.folder.with_name("work")
    shutil.rmtree(work)
    return Project(shutil.copytree(made.folder, work))


DP_CD = "src/dperm/core/lanes/dp_cd.py"


def test_a_renamed_local_is_adopted_and_nothing_is_computed_again(project, made):
    project.edit(DP_CD, "shrink", "narrowed")
    done = project.run("adopt")
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stderr.count("parts adopted") == 2
    before, after = made.parts(), project.parts()
    assert len(before) == len(after)
    assert {name.split("/")[0] for name in before & after} == {"powers", "roots"}
    done = project.run_all(*([s, "solver=dp_cd"] for s in ("tune", "evaluate")))
    assert done.stderr.count(", 0 computed") == 2, done.stderr
    table = "results/smoke/kept/diabetes/dp_cd/tune.parquet"
    one, two = (pd.read_parquet(at.folder / table) for at in (made, project))
    assert (one["config_digest"] != two["config_digest"]).all()
    assert difference(one, two) == ("", True)


def test_a_change_of_the_thirteenth_digit_is_refused(project):
    before = project.parts()
    weight = "prox(old - gamma * released, gamma * l1, shrink, lower, upper)"
    slightly_more = 1 + 2.0**-40  # an objective may round a smaller change away
    project.edit(DP_CD, weight, f"{weight} * {slightly_more!r}")
    done = project.run("adopt")
    assert done.returncode == 1
    refused = done.stderr.partition("not adopted:")[2].splitlines()[1:]
    assert len(refused) == 2 and "parts adopted" not in done.stderr
    assert project.parts() == before


def test_the_helper_of_an_own_solver(project):
    before = project.parts()
    project.edit("helper_of_own.py", "grown", "larger")
    done = project.run("adopt")
    assert done.returncode == 0, done.stderr[-2000:]
    assert {name.split("/")[0] for name in before - project.parts()} == {"own"}
    before = project.parts()
    project.edit("helper_of_own.py", "1.5", "1.50000000001")
    done = project.run("adopt")
    assert done.returncode == 1 and "diabetes own: " in done.stderr
    assert project.parts() == before


def test_a_sweep_where_one_method_has_changed(project):
    before = project.parts()
    file = "conf/paper/kept/sweeps.py"
    project.edit(file, "1.2", repr(1.2 + 2.0**-52))
    done = project.run("adopt")
    assert done.returncode == 1
    refused = done.stderr.partition("not adopted:")[2]
    assert "kept sweep powers how=b" in refused and "how=a" not in refused, done.stderr
    moved = before - project.parts()
    assert len(moved) == 6 and {name.split("/")[0] for name in moved} == {"powers"}
    done = project.run("sweep")
    assert "sweep powers: 6 reused, 6 to compute" in done.stderr
    assert "sweep roots: 12 reused, 0 to compute" in done.stderr


def test_a_mended_accountant_that_finds_the_same_noise_keeps_lanes(project, made):
    """The noise of one Gaussian release per step does not depend on this line."""
    project.edit(
        "src/dperm/core/privacy/strict.py",
        "2 * math.sqrt(rho * math.log(1 / delta))",
        "math.sqrt(rho * math.log(1 / delta)) * 2",
    )
    done = project.run("tune", "solver=dp_cd")
    assert "calibrating 2 noises" in done.stderr and ", 0 computed" in done.stderr
    project.edit("src/dperm/core/privacy/strict.py", "delta)) * 2", "delta)) * 3")
    done = project.run("tune", "solver=dp_cd")
    assert "calibrating 2 noises" in done.stderr and "0 lanes reused" in done.stderr


# --- bits -----------------------------------------------------------------------------


def lanes(**columns):
    rows = {"step": [1.0, 2.0], "clip": [1.0, 1.0], "checkpoint": [5.0, 5.0],
            "objective": [0.5, np.nan], "status": ["ok", "diverged"],
            "seconds": [1.0, 2.0], "true_epsilon": [1.0, 1.0]}  # fmt: skip
    return pd.DataFrame({**rows, **columns})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"objective": [0.6, np.nan]}, '"objective"'),
        ({"objective": [0.5, 0.0]}, '"objective"'),
        ({"status": ["ok", "ok"]}, "was kept: [ok, diverged] is made: [ok, ok]"),
        ({"objective": [np.nan, np.nan]}, "columns ['objective']"),
        ({"more": [1, 2]}, "columns ['more']"),
    ],
)
def test_the_first_difference_is_named(changed, said):
    assert said in difference(lanes(), lanes(**changed))[0]


def test_bits_are_told_from_rounding():
    """-0.0 is another bit, NaN is the same, and seconds are not compared."""
    one = lanes(objective=[0.0, np.nan])
    assert difference(one, one.iloc[::-1].assign(seconds=9.0)) == ("", True)
    assert difference(one, lanes(objective=[-0.0, np.nan])) == ("", False)
    near = lanes(objective=[np.nextafter(0.5, 1), np.nan])
    assert difference(lanes(), near) == ("", False)


def test_what_a_sweep_says_of_its_noise_is_compared():
    """Nothing says it anew: an old epsilon would be restamped as the new code's."""
    other = lanes(true_epsilon=[1.0, 1.1])
    assert "true_epsilon" in SAID and difference(lanes(), other)[0] == ""
    assert "true_epsilon" in difference(lanes(), other, ())[0]
