"""Every planted bug still finds its place, and has a row in the table."""

import ast

import pytest

from . import rooms, run
from .edits import EDITS, ROOT, UNRUN, EditError, plant, planted
from .operators import KINDS, SLIPS
from .operators import planted as slipped

ALL = (*EDITS, *UNRUN)


@pytest.mark.parametrize("edit", ALL, ids=lambda edit: edit.name)
def test_an_edit_applies_once_and_compiles(edit):
    for file, text in planted(edit).items():
        before = ast.parse((ROOT / file).read_text())
        assert ast.dump(ast.parse(text)) != ast.dump(before)


def test_names_are_unique_and_solvers_are_known():
    names = [edit.name for edit in ALL]
    assert len(set(names)) == len(names) >= 40
    known = {path.stem for path in (ROOT / "conf/solver").glob("*.yaml")}
    for edit in ALL:
        assert {*edit.solvers.split()} <= known | {run.MINE, run.SEARCH}, (
            edit.name
        )


def test_a_bug_that_does_not_fit_is_an_error():
    for name, before in (
        ("clamp", "no_such"),
        ("no_such", "clip"),
        ("clamp", "bound"),
    ):
        edit = plant("new", "dp_cd", "nothing", name, f"{{{{{before} => x}}}}")
        with pytest.raises(EditError, match=r"new: .* occurs \d+ times"):
            planted(edit)


def test_every_bug_has_a_current_row_and_no_other_has():
    rows = {(row["bug"], row["subject"], row["digest"]) for row in run.read()}
    bugs = {(edit.name, edit.solvers, run.digest(edit)) for edit in EDITS}
    made = [make() for make in KINDS.values()]
    bugs |= {
        (slip, m.name, run.digest(slip))
        for m in made
        for slip in SLIPS
        if slipped(slip, m) is not None
    }
    unrun = {(edit.name, edit.solvers, run.digest(edit)) for edit in UNRUN}
    assert bugs <= rows <= bugs | unrun
    assert all(row["audit"] and row["tests"] for row in run.read())


def test_no_bug_is_caught_by_nobody():
    assert [row for row in run.read() if run.unseen(row)] == []


# --- rooms that no audit reaches ------------------------------------------------------

ROWS = run.read(rooms.TABLE)


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{row['module']}:{row['before']}"
)
def test_a_row_is_current(row):
    """Its piece is there once, and what was put in is what would be today."""
    assert rooms.planted(row)[1] == row["after"] and row["tests"]


def test_nearly_all_are_caught():
    missed = [row for row in ROWS if row["tests"] == run.NONE]
    assert len(ROWS) >= 50 and len(missed) <= 0.03 * len(ROWS), missed
