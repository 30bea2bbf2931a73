"""Every planted bug still finds its place, and has a row in the table."""

import ast

import pytest

from . import run
from .edits import EDITS, ROOT, EditError, plant, planted
from .operators import SLIPS


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.name)
def test_an_edit_applies_once_and_compiles(edit):
    for file, text in planted(edit).items():
        before = ast.parse((ROOT / file).read_text())
        assert ast.dump(ast.parse(text)) != ast.dump(before)


def test_names_are_unique_and_solvers_are_known():
    names = [edit.name for edit in EDITS]
    assert len(set(names)) == len(names) >= 40
    known = {path.stem for path in (ROOT / "conf/solver").glob("*.yaml")}
    for edit in EDITS:
        assert {*edit.solvers.split()} <= known | {run.MINE, run.SEARCH}, edit.name


def test_a_bug_that_does_not_fit_is_an_error():
    for name, before in (("clamp", "no_such"), ("no_such", "clip"), ("clamp", "bound")):
        edit = plant("new", "dp_cd", "nothing", name, f"{{{{{before} => x}}}}")
        with pytest.raises(EditError, match=r"new: .* occurs \d+ times"):
            planted(edit)


def test_every_bug_has_a_current_row():
    """And no row is of a bug that is gone."""
    rows = {(row["bug"], row["digest"]) for row in run.read()}
    bugs = {(edit.name, run.digest(edit)) for edit in EDITS}
    bugs |= {(slip, run.digest(slip)) for slip in SLIPS}
    assert rows == bugs


def test_every_registered_mechanism_has_its_slips():
    told = {row["subject"] for row in run.read() if row["kind"] == "slip"}
    for name in run.registered():
        if name not in ("fw", "bcfw"):  # they state no privacy
            assert any(name in subject for subject in told), name


def test_no_bug_is_caught_by_nobody():
    seen = [
        (row["bug"], row["subject"], row["audit"], row["tests"]) for row in run.read()
    ]
    assert [row for row in seen if row[2:] == (run.NONE, run.NONE)] == []
