"""Every solver and every estimator has a subject, and keeps its ledger.

Small efforts: the full audit is ``dperm audit``.
"""

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from dperm.audit import tables
from dperm.audit.checks import BLIND, CHECKS, Audit
from dperm.audit.solvers import NoSubjectError, mechanisms
from dperm.estimators import audited, methods
from dperm.solvers import registry
from dperm.solvers.full_batch import hessian_mixing
from mutants.operators import KINDS, SLIPS, planted, tight
from subjects import subjects
from weekly import variants

ROOT = Path(__file__).parents[2]
SOLVERS = sorted((ROOT / "conf/solver").glob("*.yaml"))
MINE = ROOT / "docs/examples/mine/noisy_gd.py"
BRIEF = {"neighbours": 4, "runs": 12}
OPEN = ("fw", "bcfw")  # they state no privacy
ALGORITHMS = [  # of estimators; variants by options are fitted as these are
    name
    for name in methods.known()
    if name not in OPEN and methods.method(name).algorithm == name
]
OFTEN = ("dp_gd", "moments")  # of them by day, all others weekly
each = pytest.mark.parametrize("path", SOLVERS, ids=lambda path: path.stem)


def named(stem):
    return next(path for path in SOLVERS if path.stem == stem)


def caught(m, **effort):
    """Whether a check catches it: the checks after that one are not run."""
    return any(
        one.caught for one in Audit(m, **{**BRIEF, **effort}).findings()
    )


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
    printed = {"published"} if family != "full_batch" else set()
    assert {m.calibration for m in found} == {"tight"} | printed
    assert len({(m.name, m.calibration) for m in found}) == len(found)
    if family == "batched" and path.stem == algorithm:
        names = " ".join(m.name for m in found)
        assert ", least squares" in names and ", penalty" in names
        assert (", sparse" in names) == bool(getattr(module, "SPARSE", False))


def test_a_solver_without_a_subject_is_a_failure(monkeypatch):
    monkeypatch.setattr(hessian_mixing, "refuses", lambda *_: "nothing")
    with pytest.raises(NoSubjectError, match="the audit has no subject"):
        mechanisms("hessian_mixing", "hessian_mixing", {})


@pytest.mark.parametrize("name", variants(ALGORITHMS, OFTEN))
def test_every_estimator_keeps_its_ledger(name, monkeypatch):
    """All have a subject, and with DP-GD a search has two.

    The door is attacked in ``test_whole`` and in ``estimators/test_doors``.
    """
    monkeypatch.setattr(audited, "_faults", lambda: ([], 1))
    found = audited.mechanisms(name)
    names = " ".join(m.name for m in found)
    kinds = (
        "DPClassifier",
        "DPRegressor",
        "PrivateSearch, cl",
        "PrivateSearch, regr",
    )
    assert all(kind in names for kind in kinds) if name == "dp_gd" else found
    for m in found:
        assert not caught(m), m.name


def test_the_tables_of_the_last_run_catch_no_solver():
    """What a run has found is read, and not only stored."""
    tables = sorted((ROOT / "results/audit/solvers").glob("*.csv"))
    texts = [path.read_text(encoding="utf-8") for path in tables]
    rows = [row for text in texts for row in csv.DictReader(text.splitlines())]
    assert len(rows) > 1000
    assert not [row for row in rows if row["caught"] == "True"]


# --- what is broken -------------------------------------------------------------------

WEEK = ("batches", "sampled batches", "Gumbel selection", "stream", "fit",
        "best of several")  # fmt: skip
BY_DAY = ("batches", "stream", "fit")


@pytest.mark.parametrize("slip", SLIPS)
@pytest.mark.parametrize("kind", variants(WEEK, BY_DAY))
def test_slips_at_the_seams_are_caught(kind, slip):
    """All kinds: ``make mutants``."""
    broken = planted(slip, KINDS[kind]())
    if broken is not None:
        assert caught(broken, runs=60)


def test_an_audit_in_which_nothing_moves_has_failed():
    """A run that looks at no record keeps any ledger, and proves nothing."""

    sound = tight("dp_cd")
    m = replace(sound, begin=lambda data, own: sound.begin(sound.base, own))
    finding = Audit(m, **BRIEF).sensitivity()
    assert finding.caught and finding.note == BLIND
    (row,) = tables.epsilons(tables.findings(m, BRIEF, 0)).to_dict("records")
    assert (row["ledger"], row["claim"]) == ("blind", "no attack known")


def test_a_solver_that_raises_on_ordinary_records_is_caught():
    def raising():
        yield from ()
        raise ValueError("no")

    (rows,) = tables.solver("mine", raising(), BRIEF, 1)
    assert rows["caught"].all() and [*rows["check"]] == [*CHECKS]
    assert "ValueError: no" in rows["note"].iloc[0]
    assert tables.epsilons(rows)["ledger"].iloc[0].startswith("broken")
