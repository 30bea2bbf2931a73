"""Settings of older code are kept where a sample has the same bits, and only there."""

import importlib
import re
import shutil
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from changing import edit
from dperm.config import config as configuration
from dperm.experiments import inputs, stages
from dperm.storage import source_code
from dperm.storage.files import read_table
from dperm.workflow import accept_code
from dperm.workflow.verify import UNCOMPARED, difference
from faults.tiny import Project

PAPER = {
    "name": "tiny",
    "problems": ["diabetes"],
    "small_problems": ["diabetes"],
    "calibrations": ["published"],
    "replicates": 2,
    "fresh": 2,
    "runs": {
        name: {"grid": {"passes": [2, 4], "step": [0.1, 1.0], "clip": [1.0, 100.0]}}
        for name in ("dp_cd", "own")
    },
    "sweeps": {
        name: {"function": name, "grid": {"n": [1, 2, 3], "how": ["a", "b"]},
               "replicates": 1}
        for name in ("powers", "roots")
    },
}  # fmt: skip
FILES = {
    "configuration/paper/tiny/sweeps.py": """
def powers(point, seed):
    base = 1.1 if point["how"] == "a" else _base()
    value = base ** point["n"] * (1 + seed % 97)
    return [{"step": float(k), "clip": 1.0, "value": value} for k in range(20)]

def _base():
    return 1.2

def roots(point, seed):
    return [{"k": k, "value": point["n"] ** 0.5} for k in range(2)]
""",
    "configuration/solver/own.yaml": "name: own\nlabel: Own\nalgorithm: mine\n",
    "mine.py": """
from dperm.solvers.batched import dp_cd
from helper_of_mine import scaled

Options, steps, ledger = dp_cd.Options, dp_cd.steps, dp_cd.ledger
bytes_per_setting = dp_cd.bytes_per_setting

class Run(dp_cd.Run):
    def advance(self, count):
        super().advance(count)
        weights = self.tiles[:, : self.problem.p]
        weights[:] = scaled(weights)
""",
    "helper_of_mine.py": "def scaled(weights):\n    grown = weights * 1.5\n"
    "    return grown\n",
}
PARTS = "results/tiny/diabetes"


def forget():
    """Import edited files again."""
    for name in [*sys.modules]:
        if re.match(r"dperm\.papers\.tiny|mine$|helper_of_mine", name):
            del sys.modules[name]
    importlib.invalidate_caches()
    source_code.forget()


def configured(*overrides):
    return configuration.compose(
        ["paper=tiny", "problem=diabetes", *overrides]
    )


def enter(patch, folder):
    """Work in a folder with its configuration and modules."""
    patch.chdir(folder)
    patch.syspath_prepend(folder)
    patch.setenv("DPERM_CONF", str(folder / "configuration"))
    patch.setattr(sys, "dont_write_bytecode", True)
    forget()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A paper and a solver of one's own; settings and sweeps have run."""
    project = Project(tmp_path_factory.mktemp("finished"))
    project.add("paper/tiny/paper", PAPER)
    for name, text in FILES.items():
        (project.folder / name).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        enter(patch, project.folder)
        for stage in (
            inputs.fetch,
            inputs.prepare,
            inputs.optimum,
            stages.sweep,
        ):
            stage(configured())
        for solver in PAPER["runs"]:
            stages.solve(configured(f"solver={solver}"))
    return project.folder


@pytest.fixture
def project(finished, tmp_path, monkeypatch, caplog):
    """A copy of it."""
    folder = shutil.copytree(finished, tmp_path / "copy")
    enter(monkeypatch, folder)
    caplog.set_level("INFO")
    yield folder
    forget()


def edited(name, old, new):
    edit(Path(name), old, new)
    forget()


def parts():
    """Kept files, ``solver/part``."""
    found = Path("results").rglob("parts/*.parquet")
    return {f"{path.parent.parent.name}/{path.name}" for path in found}


def test_a_renamed_local_is_kept_and_nothing_is_computed_again(
    project, caplog
):
    before = parts(), read_table(Path(PARTS, "own/tune.parquet"))
    edited("helper_of_mine.py", "grown", "larger")
    assert len(accept_code.accept_code(configured())) == 1
    assert {name.split("/")[0] for name in before[0] ^ parts()} == {"own"}
    assert len(parts()) == len(before[0])
    caplog.clear()
    stages.solve(configured("solver=own"))
    assert caplog.text.count(", 0 computed") == 2
    after = read_table(Path(PARTS, "own/tune.parquet"))
    assert (before[1]["config_digest"] != after["config_digest"]).all()
    assert difference(before[1], after) == ("", True)


def test_a_change_of_the_thirteenth_digit_is_refused(project):
    before = parts()
    edited("helper_of_mine.py", "1.5", repr(1.5 * (1 + 2.0**-40)))
    with pytest.raises(accept_code.DifferentBitsError, match="diabetes own: "):
        accept_code.accept_code(configured())
    assert parts() == before


def test_a_sweep_where_one_method_has_changed(project, caplog):
    before = parts()
    file = "configuration/paper/tiny/sweeps.py"
    edited(file, "1.2", repr(1.2 + 2.0**-52))
    with pytest.raises(accept_code.DifferentBitsError) as said:
        accept_code.accept_code(configured())
    assert "tiny sweep powers how=b" in str(said.value)
    assert "how=a" not in str(said.value)
    moved = Counter(name.split("/")[0] for name in before - parts())
    assert moved == {"powers": 3, "roots": 6}, (
        "a user's module counts as a whole"
    )
    stages.sweep(configured())
    assert "sweep powers: 3 reused, 3 to compute" in caplog.text
    assert "sweep roots: 6 reused, 0 to compute" in caplog.text


def test_a_mended_accountant_that_finds_the_same_noise_keeps_settings(
    project, caplog, monkeypatch
):
    monkeypatch.setattr(
        "dperm.experiments.digests.noise", lambda *given: "mended"
    )
    for more, reused in (
        ([], ", 0 computed"),
        (["problem.privacy.epsilon=2"], ": 0 se"),
    ):
        caplog.clear()
        stages.tune(configured("solver=dp_cd", *more))
        assert "calibrating 2 noises" in caplog.text and reused in caplog.text


# --- bits -----------------------------------------------------------------------------


def settings(**columns):
    rows = {"step": [1.0, 2.0], "clip": [1.0, 1.0], "checkpoint": [5.0, 5.0],
            "objective": [0.5, np.nan], "status": ["ok", "diverged"],
            "seconds": [1.0, 2.0], "true_epsilon": [1.0, 1.0]}  # fmt: skip
    return pd.DataFrame({**rows, **columns})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"objective": [0.6, np.nan]}, '"objective"'),
        (
            {"status": ["ok", "ok"]},
            "was kept: [ok, diverged] is made: [ok, ok]",
        ),
        ({"objective": [np.nan, np.nan]}, "columns ['objective']"),
    ],
)
def test_the_first_difference_is_named(changed, said):
    assert said in difference(settings(), settings(**changed))[0]


def test_bits_are_told_from_rounding():
    """-0.0 is another bit, NaN is the same, and seconds are not compared."""
    one = settings(objective=[0.0, np.nan])
    assert difference(one, one.iloc[::-1].assign(seconds=9.0)) == ("", True)
    assert difference(one, settings(objective=[-0.0, np.nan])) == ("", False)
    near = settings(objective=[np.nextafter(0.5, 1), np.nan])
    assert difference(settings(), near) == ("", False)


def test_what_a_sweep_says_of_its_noise_is_compared():
    """Nothing says it anew: an old epsilon would be restamped as the new code's."""
    other = settings(true_epsilon=[1.0, 1.1])
    assert (
        "true_epsilon" in UNCOMPARED and difference(settings(), other)[0] == ""
    )
    assert "true_epsilon" in difference(settings(), other, ())[0]
