"""What is added to the package touches nothing that is there: no stage is stale."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

DIGESTS = """
import json, sys
from dperm.core.experiment.locate import available
from dperm.pipeline.jobs import compose
papers = sys.argv[1:] or available("paper")
jobs = compose(papers, ["scale=smoke"]).jobs
print(json.dumps({name: job.key for name, job in jobs.items()}))
"""

CALIBRATION = '''
"""Twice what is proved to suffice."""

from dperm.core.privacy import strict


def epsilon(ledger, delta):
    """Return twice the strict epsilon."""
    return 2 * strict.epsilon(ledger, delta)
'''

LOSS = '''
"""phi(v) = log cosh v, which is smooth and robust."""

import math

import numpy as np
from numba import njit

from dperm.core.compiled import INLINE, exp, softplus
from dperm.core.erm.losses import Loss


@njit(**INLINE)
def value(v):
    """log cosh v, by log(1 + e^(-2 v))."""
    return v + softplus(-2.0 * v) - 0.6931471805599453


@njit(**INLINE)
def derivative(v):
    """tanh v."""
    return 1.0 - 2.0 / (1.0 + exp(2.0 * v))


def dual(theta):
    """The entropy of a sign with mean theta, negated, and log 2."""
    up, down = (1.0 + theta) / 2.0, (1.0 - theta) / 2.0
    one = np.where(up > 0, up * np.log(np.where(up > 0, up, 1.0)), 0.0)
    two = np.where(down > 0, down * np.log(np.where(down > 0, down, 1.0)), 0.0)
    return one + two + math.log(2.0)


LOSS = Loss(
    name="log_cosh",
    labels="real",
    curvature=1.0,
    slopes=(-1.0, 1.0),
    value=value,
    derivative=derivative,
    second=lambda v: 1.0 - np.tanh(v) ** 2,
    dual=dual,
    lipschitz=math.tanh,
)
'''

SOLVED = """
import numpy as np
from dperm.core import solvers
from dperm.core.erm import optimum
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import build
from dperm.core.lanes import Lanes
from dperm.core.privacy.mechanisms import streams
rng = np.random.default_rng(0)
X = rng.standard_normal((60, 4))
y = X @ rng.standard_normal(4) + rng.standard_normal(60)
problem = build("mine", X, y, "log_cosh", Penalty(l1=0.01))
best = optimum.solve(problem)
lanes = Lanes(np.ones(1), np.full(1, np.inf), 0.0)
for name in ("dp_cd", "dp_gcd", "dp_skgd"):
    module = solvers.load(name)
    options = module.Options(composite=True) if name == "dp_skgd" else module.Options()
    run = module.Run(problem, lanes, streams(0), options, total=2000)
    run.advance(2000)
    print(problem.objective(run.weights)[0] / best.value - 1)
"""


class Copy:
    """A copy of the package, run as a reader's own is."""

    def __init__(self, root: Path):
        self.root, self.known = root, dict[str, dict[str, str]]()
        for name in ("src", "conf"):
            shutil.copytree(
                ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__")
            )

    def run(self, *command: str) -> str:
        """What Python prints."""
        path = {"PYTHONPATH": str(self.root / "src")}
        done = subprocess.run(
            [sys.executable, *command],
            cwd=self.root,
            env={**os.environ, **path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    def digests(self, *papers: str) -> dict[str, str]:
        """Of all stages of papers, or of all of them; once for the same files."""
        files = sorted(
            path
            for path in self.root.rglob("*")
            if path.suffix in (".py", ".yaml") and "__pycache__" not in path.parts
        )
        state = hashlib.sha256(repr(papers).encode())
        for path in files:
            state.update(f"{path}\n".encode() + path.read_bytes())
        key = state.hexdigest()
        if key not in self.known:
            self.known[key] = json.loads(self.run("-c", DIGESTS, *papers))
        return self.known[key]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    return Copy(tmp_path_factory.mktemp("copy"))


@pytest.fixture(scope="module")
def extended(copy):
    """Digests of all stages before and after everything that is added here."""
    before, package = copy.digests(), copy.root / "src/dperm"
    (copy.root / "twice.py").write_text(CALIBRATION)
    text = "name: twin\nlabel: DP-CD\nalgorithm: dp_cd\n"
    (copy.root / "conf/solver/twin.yaml").write_text(text)
    (package / "core/erm/losses/log_cosh.py").write_text(LOSS.lstrip())
    return before, copy.digests()


def test_what_is_added_makes_no_other_stage_stale(extended):
    before, after = extended
    assert len(before) > 150
    stale = [name for name, digest in before.items() if after[name] != digest]
    assert stale == ["audit/epsilon"]  # the table of all solvers
    assert set(after) - set(before) == {"audit/solvers/twin"}


def test_a_loss_that_was_added_is_minimised(extended, copy):
    for excess in copy.run("-c", SOLVED).split():
        assert abs(float(excess)) < 1e-8


def test_an_edit_of_a_loss_makes_those_stale_whose_problem_has_it(copy):
    before, path = (
        copy.digests("dpcd"),
        copy.root / "src/dperm/core/erm/losses/logistic.py",
    )
    text = path.read_text()
    assert text.count("softplus(-v)") == 1
    path.write_text(text.replace("softplus(-v)", "2.0 * softplus(-v)"))
    after = copy.digests("dpcd")
    path.write_text(text)
    stale = {name for name, digest in before.items() if after[name] != digest}
    optima = {name for name in before if name.startswith("optimum/")}
    assert 0 < len(stale & optima) < len(optima)
    assert any(name.startswith("solve/dpcd/") for name in stale)
