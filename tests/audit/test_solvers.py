"""Every solver and every estimator has a subject, and keeps its ledger.

Small efforts: the full audit is ``dperm audit``.
"""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from dperm.audit import tables
from dperm.audit.checks import BLIND, CHECKS, Audit
from dperm.audit.solvers import NoSubjectError, mechanisms
from dperm.compare import audited, methods
from dperm.core import solvers as registry
from dperm.solvers.fits import hessian_mixing
from mutants.operators import SLIPS, planted
from subjects import subjects

ROOT = Path(__file__).parents[2]
SOLVERS = sorted((ROOT / "conf/solver").glob("*.yaml"))
MINE = ROOT / "docs/examples/mine/noisy_gd.py"
BRIEF = {"neighbours": 4, "runs": 12}
OPEN = ("fw", "bcfw")  # they state no privacy
ALGORITHMS = [  # of estimators; variants by options are fitted as these are
    name
    for name in methods.known()
    if name not in OPEN and methods.method(name).section.algorithm == name
]
each = pytest.mark.parametrize("path", SOLVERS, ids=lambda path: path.stem)


def named(stem):
    return next(path for path in SOLVERS if path.stem == stem)


def strict(stem):
    return next(m for m in subjects(named(stem)) if m.kind == "strict")


def caught(m, **effort):
    return [one for one in Audit(m, **{**BRIEF, **effort}).findings() if one.caught]


# --- the registry ---------------------------------------------------------------------


@each
def test_every_private_solver_has_a_subject(path):
    """Under both calibrations, and what it can work with is tried."""
    algorithm = OmegaConf.load(path).algorithm
    found, module = subjects(path), registry.load(algorithm)
    if algorithm in OPEN:
        assert found == []
        return
    family = registry.family(module)
    printed = {"paper"} if family != "fits" else set()
    assert {m.kind for m in found} == {"strict"} | printed
    assert len({(m.name, m.kind) for m in found}) == len(found)
    if family == "lanes" and path.stem == algorithm:
        names = " ".join(m.name for m in found)
        assert ", least squares" in names and ", penalty" in names
        assert (", sparse" in names) == bool(getattr(module, "SPARSE", False))


def test_a_solver_without_a_subject_is_a_failure(monkeypatch):
    monkeypatch.setattr(hessian_mixing, "refuses", lambda *_: "nothing")
    with pytest.raises(NoSubjectError, match="the audit has no subject"):
        mechanisms("hessian_mixing", "hessian_mixing", {})


@each
def test_no_shift_costs_more_than_a_ledger(path):
    """What else an audit checks is in the contract of all solvers."""
    for m in subjects(path):
        if m.kind == "strict":
            audit = Audit(m, **BRIEF)
            assert not audit.epsilon().caught, m.name
            assert audit.lower <= m.true * (1 + 1e-6)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_estimator_keeps_its_ledger(name):
    """All have a subject, and with DP-GD a search has two."""
    found = audited.mechanisms(name)
    names = " ".join(m.name for m in found)
    kinds = ("DPClassifier", "DPRegressor", "PrivateSearch, cl", "PrivateSearch, regr")
    assert all(kind in names for kind in kinds) if name == "dp_gd" else found
    for m in found:
        assert not caught(m), m.name


@pytest.mark.parametrize(
    ("stem", "least"),
    [("dp_cd", 0.999), ("dp_sgd", 0.97), ("dp_gd", 0.6), ("phased_sgd", 0.999)],
)
def test_most_of_the_bound_is_reached(stem, least):
    m = strict(stem)
    assert least < Audit(m, runs=12).lower / m.true <= 1 + 1e-9


# --- what is broken -------------------------------------------------------------------

DAY = ("dp_cd", "dp_sgd", "dp_gcd_gumbel", "sco_dp_sgd", "dp_gd", "dp_selection")


@pytest.mark.parametrize("slip", SLIPS)
@pytest.mark.parametrize("stem", DAY)
def test_slips_at_the_seams_are_caught(stem, slip):
    """All of every mechanism: ``make mutants``."""
    broken = planted(slip, strict(stem))
    if broken is not None:
        assert caught(broken, runs=60)


def test_an_audit_in_which_nothing_moves_has_failed():
    """A run that looks at no record keeps any ledger, and proves nothing."""

    sound = strict("dp_cd")
    m = replace(
        sound, start=lambda data, own: sound.start(sound.base, own), together=None
    )
    finding = Audit(m, **BRIEF).sensitivity()
    assert finding.caught and finding.note == BLIND
    (row,) = tables.epsilons(tables.findings(m, BRIEF, 0)).to_dict("records")
    assert (row["ledger"], row["claim"]) == ("blind", "no attack known")


def test_a_solver_that_raises_on_ordinary_records_is_caught(monkeypatch):
    def raising(*_):
        raise ValueError("no")
        yield

    monkeypatch.setattr(tables, "subjects", raising)
    (rows,) = tables.solver("mine", "dp_gd", {}, BRIEF, 1)
    assert rows["caught"].all() and [*rows["check"]] == [*CHECKS]
    assert "ValueError: no" in rows["note"].iloc[0]
    assert tables.epsilons(rows)["ledger"].iloc[0].startswith("broken")


# --- a solver of one's own ------------------------------------------------------------

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
FEWER = ("noise_multiplier, count, unit", "noise_multiplier, max(count - 1, 1), unit")


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Write a solver of one's own; returns its strict mechanisms."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    def make(*changes):
        text = MINE.read_text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "of_my_own.py").write_text(text)
        sys.modules.pop("of_my_own", None)
        return mechanisms("of_my_own", "of_my_own", {}, ("strict",))

    yield make
    sys.modules.pop("of_my_own", None)


def test_the_sound_one_keeps_its_ledger_and_uses_all_of_it(own):
    for m in own():
        audit = Audit(m, **BRIEF)
        assert not [one for one in audit.findings() if one.caught]
        assert 0.99 < audit.lower / m.true <= 1 + 1e-9
    assert not Audit(own(ANEW)[0], **BRIEF).sensitivity().caught


@pytest.mark.parametrize(
    "changes",
    [(UNCLIPPED,), (UNCLIPPED, ANEW), (WARM,), (EARLY,)],
    ids=["unclipped", "records made anew in every step", "start", "step"],
)
def test_what_it_leaks_is_attacked(own, changes):
    """A neighbour is run from its own start; only declared constants are public."""
    assert Audit(own(*changes)[0], **BRIEF).sensitivity().caught


def test_one_that_states_a_release_too_few_is_caught(own):
    found = Audit(own(FEWER)[0], **BRIEF).count()
    assert found.caught and found.note == "vectors 4 of 3"
