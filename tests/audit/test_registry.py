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
from dperm.audit.families import LaneSubject
from dperm.audit.rungs import count, sensitivity

MINE = Path(__file__).parents[2] / "docs/examples/mine/noisy_gd.py"
BRIEF = Effort(level=1e-5, pairs=4, draws=12)
VARIED = ["", ", least squares", ", sparse", ", penalty"]


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
        sys.modules.pop("of_my_own", None)
        return registry.subjects("of_my_own", "of_my_own", {})

    yield make
    sys.modules.pop("of_my_own", None)


def strict(subjects):
    """The plain problem, strict."""
    return next(one for one in subjects if one.calibration == "strict")


@pytest.mark.parametrize(
    "option", ["share: float = 0.5", 'rule: str = "GS-r"', 'noise: str = "laplace"']
)
def test_an_option_that_another_solver_has_means_nothing(own, option):
    """``share``, ``rule`` and ``noise`` are options of DP-CD-priv and of DP-GCD."""
    changed = own(('    """Nothing to choose."""', f"    {option}"))
    assert {type(one) for one in changed} == {LaneSubject}
    assert [one.name for one in changed] == [f"of_my_own{v}" for v in VARIED] * 2
    assert {one.problem.p for one in changed} == {3}


# --- a solver of one's own, broken in ways that its utility does not show -------------

UNCLIPPED = ("self.records.gradient(w, clip)", "self.records.gradient(w, 1e12)")
ANEW = ("self.records.gradient(", "Records(self.problem).gradient(")
WARM = (
    "        self.weights = np.zeros((len(lanes.step), problem.p))\n",
    "        start = -5.0 * problem.gradient(np.zeros(problem.p))\n"
    "        self.weights = np.tile(start, (len(lanes.step), 1))\n",
)
EARLY = (
    "        self.step = lanes.step / problem.global_smoothness\n",
    "        self.step = lanes.step / problem.row_norms.max()\n",
)
LEAK = (
    "    def gradient(self, w, clip):",
    '''    @property
    def released(self):
        """The weights, and each record's margin, which no noise hides."""
        return np.concatenate((self.weights, self.weights @ self.problem.A.T), axis=1)

    def gradient(self, w, clip):''',
)


def test_the_sound_one_keeps_its_ledger_and_uses_all_of_it(own):
    for subject in own():
        ladder = Ladder(subject, BRIEF, 3)
        assert not any(rung(ladder).caught for rung in (sensitivity, count))
        assert 0.99 < ladder.lower / subject.true_epsilon <= 1 + 1e-9


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of margins that overflow
@pytest.mark.parametrize(
    "changes",
    [(UNCLIPPED,), (UNCLIPPED, ANEW), (WARM,), (EARLY,), (LEAK,)],
    ids=["unclipped", "records made anew in every step", "start", "step", "margins"],
)
def test_what_it_leaks_is_attacked(own, changes):
    """A neighbour is run from its own start; only declared constants are public."""
    assert sensitivity(Ladder(strict(own(*changes)), BRIEF, 3)).caught


def test_one_that_makes_its_records_anew_is_sound_all_the_same(own):
    ladder = Ladder(strict(own(ANEW)), BRIEF, 3)
    assert not sensitivity(ladder).caught and ladder.lower > 0


def test_one_that_states_a_release_too_few_is_caught(own):
    fewer = (
        "noise_multiplier, count, unit",
        "noise_multiplier, max(count - 1, 1), unit",
    )
    ladder = Ladder(strict(own(fewer)), BRIEF, 3)
    assert count(ladder).caught


def test_a_neighbour_has_the_constants_of_the_base_and_data_of_its_own():
    subject = registry.subjects("dp_cd", "dp_cd", {})[0]
    other = subject.base.replaced(0, np.full(3, 1e3), 1.0)
    problem = subject._problem(other)
    assert problem.smoothness is subject.problem.smoothness
    assert problem.global_smoothness == subject.problem.global_smoothness
    assert problem.row_norms[0] > 1e3 > subject.problem.row_norms[0]


def test_constants_that_are_estimated_are_the_neighbours_own():
    subject = registry.subjects("dp_cd_priv", "dp_cd_priv", {})[0]
    assert subject.shape.bounded and (subject.bound > 0).all()
    other = subject.base.replaced(0, subject.bound, 1.0)
    problem, base = subject._problem(other), subject.problem
    expected = problem.loss.curvature * (other.X**2).mean(axis=0)
    np.testing.assert_allclose(problem.smoothness, expected)
    assert (problem.smoothness > base.smoothness).all() and problem.known is base


def test_a_solver_without_privacy_has_no_subject():
    for name in ("fw", "bcfw"):
        assert registry.subjects(name, name, {}) == []


def test_the_audit_overwrites_nothing():
    """No attribute of a module or class of the solvers is set, no private one read."""
    folder = Path(inspect.getfile(audit)).parent
    for path in folder.glob("*.py"):
        text = path.read_text()
        assert not re.search(r"setattr\((?!_Noted,)", text), path.name  # its own class
        assert not re.search(r"\b(run|part|module|node|solver)\._[a-z]", text), path
