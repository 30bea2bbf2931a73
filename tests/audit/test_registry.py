"""Subjects come from a solver's family, never from the names of its options."""

import inspect
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from dperm import audit
from dperm.audit import registry
from dperm.audit.climbing import Effort, Ladder
from dperm.audit.lanes import LaneSubject
from dperm.audit.rungs import sensitivity

MINE = Path(__file__).parents[2] / "docs/examples/mine/noisy_gd.py"
BRIEF = Effort(level=1e-5, pairs=4, draws=12, samples=12, losses=2)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Write a solver of one's own; returns its subjects."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    def make(*changes):
        text = MINE.read_text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "of_my_own.py").write_text(text)
        return registry.subjects("of_my_own", "of_my_own", {})

    yield make
    sys.modules.pop("of_my_own", None)


@pytest.mark.parametrize(
    "option", ["share: float = 0.5", 'rule: str = "GS-r"', 'noise: str = "laplace"']
)
def test_an_option_that_another_solver_has_means_nothing(own, option):
    """``share``, ``rule`` and ``noise`` are options of DP-CD-priv and of DP-GCD."""
    changed = own(('    """Nothing to choose."""', f"    {option}"))
    assert [type(one) for one in changed] == [LaneSubject] * 2
    assert [one.name for one in changed] == ["of_my_own"] * 2
    assert {one.problem.p for one in changed} == {3}


LEAK = (
    "    def gradient(self, w, clip):",
    '''    @property
    def released(self):
        """The weights, and each record's margin, which no noise hides."""
        return np.concatenate((self.weights, self.weights @ self.problem.A.T), axis=1)

    def gradient(self, w, clip):''',
)


def test_what_is_released_beside_the_weights_is_attacked(own):
    """Its weights are as private as it says; what it publishes with them is not."""
    plain = own()[1]
    assert not sensitivity(Ladder(plain, BRIEF, 3)).caught
    sys.modules.pop("of_my_own")
    leaking = own(LEAK)[1]
    assert sensitivity(Ladder(leaking, BRIEF, 3)).caught


EARLY = (
    "        self.step = lanes.step / problem.global_smoothness\n",
    "        self.step = lanes.step / problem.row_norms.max()\n",
)


def test_a_constant_read_off_the_data_at_the_start_is_attacked(own):
    """A neighbour is run from its own start; only declared constants are public."""
    assert sensitivity(Ladder(own(EARLY)[1], BRIEF, 3)).caught


def test_a_neighbour_has_the_constants_of_the_base_and_data_of_its_own():
    subject = registry.subjects("dp_cd", "dp_cd", {})[0]
    other = subject.base.replaced(0, np.full(3, 1e3), 1.0)
    problem = subject._problem(other)
    assert problem.smoothness is subject.problem.smoothness
    assert problem.global_smoothness == subject.problem.global_smoothness
    assert problem.row_norms[0] > 1e3 > subject.problem.row_norms[0]


def test_a_solver_without_privacy_has_no_subject():
    for name in ("fw", "bcfw"):
        assert registry.subjects(name, name, {}) == []


def test_the_audit_overwrites_nothing():
    """No attribute of a module or class of the solvers is set, no private one read."""
    folder = Path(inspect.getfile(audit)).parent
    for path in folder.glob("*.py"):
        text = path.read_text()
        assert "setattr(" not in text, path.name
        assert not re.search(r"\b(run|part|module|node|solver)\._[a-z]", text), path
