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
from dperm.pipeline.runtable import run_table
papers = sys.argv[1:] or available("paper")
print(json.dumps(run_table(papers, ["scale=smoke"]).digests))
"""

CALIBRATION = '''
"""Twice what is proved to suffice."""

from dperm.core.privacy import strict


def epsilon(ledger, delta):
    """Return twice the strict epsilon."""
    return 2 * strict.epsilon(ledger, delta)
'''

EVENT = '''
"""Randomised response, asked again and again."""

from dataclasses import dataclass

from dperm.core.privacy.ledger import Event
from dperm.accountants.noisy_max import pure_delta
from dperm.core.privacy.pld import Profile
from dperm.core.privacy.published import PublishedCost, published_cost
from dperm.core.privacy.strict import profile


@dataclass(frozen=True)
class Answer(Event):
    """A bit that is told rightly with odds of e^(1 / scale)."""

    sensitivity: float
    scale: float
    count: int
    unit: str
    source: str


@published_cost.register
def _(event: Answer) -> PublishedCost:
    return PublishedCost(pure=event.count / event.scale)


@profile.register
def _(event: Answer) -> Profile:
    pure = 1 / event.scale
    return Profile(lambda losses: pure_delta(losses, pure), event.count, pure)
'''

PRICED = """
from dperm.accountants.answers import Answer
from dperm.core.privacy import Ledger, epsilon
ledger = Ledger((Answer(1.0, 4.0, 3, "", ""),))
print([epsilon(ledger, 1e-9, kind) for kind in ("paper", "strict", "twice")])
"""


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

SET = '''
@dataclass(frozen=True)
class Simplex:
    """Weights that are not negative and sum to the radius."""

    radius: float = 1.0

    def project(self, x):
        return _project_simplex(np.atleast_2d(x), self.radius)
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


STEPS = '''
"""DP-CD with one step for all coordinates."""

from dataclasses import dataclass

import numpy as np

from dperm.core.lanes import dp_cd
from dperm.core.lanes.dp_cd import lane_bytes, ledger, steps

SPARSE = True


@dataclass(frozen=True)
class Options(dp_cd.Options):
    """Those of DP-CD."""


class Run(dp_cd.Run):
    """Its step rule is another."""

    def divisors(self, M):
        return np.full_like(M, M.max())
'''

STEPPED = """
import numpy as np
from scipy import sparse
from dperm.core import solvers
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import build
from dperm.core.lanes import Lanes
from dperm.core.privacy.mechanisms import streams
rng = np.random.default_rng(0)
X = rng.standard_normal((60, 4)) * [1, 2, 3, 4]
y = X @ rng.standard_normal(4)
lanes = Lanes(np.ones(1), np.full(1, np.inf), 0.0)
for A in (X, sparse.csc_array(X)):
    problem = build("mine", A, y, "least_squares", Penalty())
    moved = []
    for name in ("dp_cd", "dp_cd_even"):
        module = solvers.load(name)
        run = module.Run(problem, lanes, streams(0), module.Options(first=0), total=1)
        run.advance(1)
        moved.append(run.weights[0, 0])
    M = problem.smoothness
    print(moved[1] / moved[0] / (M[0] / M.max()) - 1)
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
    (package / "accountants/answers.py").write_text(EVENT)
    (package / "core/erm/losses/log_cosh.py").write_text(LOSS.lstrip())
    path = package / "core/erm/sets.py"
    path.write_text(f"{path.read_text()}\n{SET}")
    (copy.root / "dp_cd_even.py").write_text(STEPS.lstrip())
    text = "name: dp_cd_even\nlabel: DP-CD, even steps\nalgorithm: dp_cd_even\n"
    (copy.root / "conf/solver/dp_cd_even.yaml").write_text(text)
    return before, copy.digests()


def test_what_is_added_makes_no_other_stage_stale(extended):
    before, after = extended
    assert len(before) > 200
    stale = [name for name, digest in before.items() if after[name] != digest]
    assert stale == ["audit/epsilon"]  # the table of all solvers
    assert set(after) - set(before) == {"audit/solvers/dp_cd_even"}


def test_an_event_is_priced_by_an_accountant_of_its_own(extended, copy):
    paper, strict, twice = json.loads(copy.run("-c", PRICED))
    assert paper == pytest.approx(0.75) and strict == pytest.approx(0.75, rel=1e-3)
    assert twice == 2 * strict


def test_a_loss_that_was_added_is_minimised(extended, copy):
    for excess in copy.run("-c", SOLVED).split():
        assert abs(float(excess)) < 1e-8


def test_a_solver_that_was_added_has_a_step_rule_of_its_own(extended, copy):
    for error in copy.run("-c", STEPPED).split():
        assert abs(float(error)) < 1e-12


def test_an_edit_of_a_loss_makes_those_stale_whose_problem_has_it(copy):
    before, path = (
        copy.digests("dpcd"),
        copy.root / "src/dperm/core/erm/losses/logistic.py",
    )
    text = path.read_text()
    path.write_text(text.replace("return softplus(-v)", "return 2.0 * softplus(-v)"))
    after = copy.digests("dpcd")
    path.write_text(text)
    stale = {name for name, digest in before.items() if after[name] != digest}
    optima = {name for name in before if name.startswith("optimum/")}
    assert 0 < len(stale & optima) < len(optima)
    assert any(name.startswith("tune/dpcd/") for name in stale)


def test_an_accountant_makes_those_stale_that_name_it(copy):
    before, path = (
        copy.digests("dpcd"),
        copy.root / "src/dperm/core/privacy/published.py",
    )
    text = path.read_text()
    path.write_text(text.replace("added = cost.pure +", "added = 1.0 * cost.pure +"))
    after = copy.digests("dpcd")
    path.write_text(text)
    stale = {name for name, digest in before.items() if after[name] != digest}
    assert any(name.startswith("tune/dpcd/") for name in stale)
    assert not any(name.startswith("prepare/") for name in stale)


def test_noise_is_found_under_a_calibration_of_ones_own(configured, capsys, tmp_path):
    """Its module lies beside ``conf/``, where solvers of one's own do."""
    from dperm.pipeline import auditing

    (tmp_path / "twice_as_much.py").write_text(CALIBRATION)
    sys.path.append(str(tmp_path))
    try:
        config = configured("setting.passes=2", "setting.calibration=twice_as_much")
        auditing.report(config)
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("twice_as_much", None)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    (row,) = [row for row in rows if row[:1] == ["twice_as_much"]]
    assert float(row[-1]) == pytest.approx(2.0, rel=1e-3)  # half of the problem's 4
