"""Every planted bug still finds its place, and what comes out is a module."""

import ast
import sys
from functools import cache

import pytest
from omegaconf import OmegaConf

from dperm.audit import registry
from dperm.core import solvers

from . import run
from .patches import MUTANTS, NOT_YET_RUN, plant
from .planting import (
    ROOT,
    PatchError,
    Slot,
    chosen_tests,
    occurrences,
    parsed,
    patched,
    place,
    replaced,
    timed,
)

LEAST = 240
PRIVACY = ("src/dperm/core/privacy", "src/dperm/accountants")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_patch_applies_once_and_compiles(mutant):
    for file, text in patched(mutant).items():
        assert ast.dump(ast.parse(text)) != known(file)


@cache
def known(file):
    """The tree of a file as it is."""
    return ast.dump(ast.parse((ROOT / file).read_text()))


def test_names_are_unique_and_solvers_are_known():
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names) >= LEAST
    known = {*yamls(), "noisy_gd", run.ARENA}
    for mutant in MUTANTS:
        assert {*mutant.solvers} <= known, mutant.name
        assert len(mutant.breaks.splitlines()) == 1


def test_every_bug_has_a_row_or_is_listed_as_not_yet_run():
    """And no row is of a bug that is gone."""
    names = {mutant.name for mutant in MUTANTS}
    rows = {row["mutant"] for row in run.Table().rows} - {run.SOUND}
    assert rows <= names
    assert names - rows <= NOT_YET_RUN and not rows & NOT_YET_RUN


@pytest.fixture(scope="module")
def edited():
    """Files that some bug is planted in."""
    return {file for mutant in MUTANTS for file in patched(mutant)}


@cache
def yamls():
    """Algorithms by solver's name."""
    files = (ROOT / "conf/solver").glob("*.yaml")
    return {path.stem: str(OmegaConf.load(path).algorithm) for path in files}


def test_every_private_algorithm_has_a_bug(edited):
    """In its module, or one that breaks a solver of it."""
    broken = {yamls().get(name) for mutant in MUTANTS for name in mutant.solvers}
    bare = []
    for algorithm, module in solvers.places().items():
        file = f"src/{module.replace('.', '/')}.py"
        if file not in edited and algorithm not in broken:
            bare += [algorithm] if registry.subjects(algorithm, algorithm, {}) else []
    assert bare == []


def test_every_module_of_privacy_has_a_bug(edited):
    """But names, and what a package shows."""
    files = {
        f"{room}/{path.name}" for room in PRIVACY for path in (ROOT / room).glob("*.py")
    }
    assert files - edited == {f"{room}/__init__.py" for room in PRIVACY}


def test_a_bug_that_does_not_fit_is_an_error():
    for name, before in (
        ("clamp", "no_such_text"),
        ("clamp", "bound"),
        ("no_such_name", "clip"),
    ):
        with pytest.raises(PatchError, match=r"new: .*expected once, found"):
            patched(plant("new", "dp_cd", "nothing", name, f"{{{{{before} => x}}}}"))
    with pytest.raises(ValueError, match=r"new: expected .* in every piece"):
        plant("new", "dp_cd", "nothing", "clamp", "bound")


TEXT = """
def f(x):
    y = g(x, # a comment
        scale=2.0 * x)
    for k in range(3):
        y += k
        y *= 2
    return y  # after
"""


@pytest.mark.parametrize(
    ("before", "after", "old", "new"),
    [
        ("g(x, scale=2.*x)", "x", "g(x, # a comment\n        scale=2.0 * x)", "x"),
        ("scale=2.0*x", "scale=x", "scale=2.0 * x", "scale=x"),
        ("2.0", "1 + 1", "2.0", "(1 + 1)"),
        ("range(3)", "range(\n3)", "range(3)", "range(\n3)"),
        ("y += k\ny *= 2", "y = 0", "y += k\n        y *= 2", "y = 0"),
        ("y *= 2", "if x:\n    y = 1", "y *= 2", "if x:\n            y = 1"),
        ("y *= 2", "", "y *= 2", ""),
    ],
)
def test_a_piece_is_found_by_its_tree_and_the_rest_of_the_text_stays(
    before, after, old, new
):
    (match,) = occurrences(TEXT, ast.parse(TEXT), before)
    assert TEXT[match.start : match.end] == old
    assert replaced(TEXT, match, after) == TEXT.replace(old, new)


def test_what_reads_otherwise_in_its_place_does_not_fit():
    (match,) = occurrences(TEXT, ast.parse(TEXT), "y *= 2")
    for after in ("y = (", "y = 1\n  y = 2"):
        with pytest.raises((PatchError, SyntaxError)):
            replaced(TEXT, match, after)
    assert parsed("") == []


def test_tests_are_chosen_by_what_they_reach():
    by_name = {mutant.name: chosen_tests(mutant) for mutant in MUTANTS}
    assert all(files or name.startswith("mine_") for name, files in by_name.items())
    assert by_name["strict_one_less"][0] == "tests/privacy/test_accounting.py"
    assert by_name["mine_no_clip"] == []
    assert "tests/solvers/test_lanes.py" in by_name["cd_no_clip"]
    chosen = {file for files in by_name.values() for file in files}
    assert not any("audit" in file for file in chosen)
    assert "tests/compare/test_contest.py" in by_name["paid_by_error"]
    near = [f"tests/compare/test_{name}.py" for name in ("estimators", "guarantee")]
    assert by_name["guarantee_delta"][0] == near[1] and {*near} < {
        *by_name["guarantee_delta"]
    }


def test_a_slot_is_as_before_when_a_mutant_is_taken_out(tmp_path):
    slot, by_name = Slot(tmp_path), {mutant.name: mutant for mutant in MUTANTS}
    caches = set()
    for name in ("cd_no_clip", "strict_one_less", "mine_no_clip"):
        ((name_of, text),) = patched(by_name[name]).items()
        file = slot.root / name_of
        before = (file.read_bytes(), file.stat().st_mtime_ns)
        with slot.planted(by_name[name]) as environment:
            assert file.read_text() == text
            caches.add((name, environment["NUMBA_CACHE_DIR"]))
        assert (file.read_bytes(), file.stat().st_mtime_ns) == before
    own = {str(tmp_path / "numba"), str(tmp_path / "numba-mutant")}
    assert {cache for _, cache in caches} == own  # a changed kernel has its own cache
    assert ("cd_no_clip", str(tmp_path / "numba-mutant")) in caches


def test_a_command_is_timed_and_cut_off(tmp_path):
    spin = [sys.executable, "-c", "while True: pass"]
    code, _, seconds = timed(spin, tmp_path, {}, 0.3)
    assert code == -9 and seconds < 2
    code, said, _ = timed([sys.executable, "-c", "print(7); exit(3)"], tmp_path, {}, 60)
    assert (code, said) == (3, "7\n")


def test_a_test_that_fails_without_the_bug_catches_none(tmp_path, monkeypatch):
    """The first to fail does so on kernels that are compiled anew, bug or not."""
    slot, mutant = Slot(tmp_path), MUTANTS[0]
    ((file, text),) = patched(mutant).items()

    def pytest(slot, what, environment, limit):
        has_bug = (slot.root / file).read_text() == text
        failing = ["tests/a.py::test_slow", *["tests/b.py::test_right"] * has_bug]
        if len(what) == 1:  # one test alone
            return (what[0] if what[0] in failing else ""), 1.0
        left = [test for test in failing if f"--deselect={test}" not in what]
        return (left[0] if left else ""), 1.0

    monkeypatch.setattr(run, "_pytest", pytest)
    assert run._tests(slot, mutant, 60) == ("tests/b.py::test_right", 2.0)


def row(name, audit, tests, **known):
    both = {"caught_by_audit": audit, "caught_by_tests": tests}
    return {**dict.fromkeys(run.COLUMNS, ""), "mutant": name, **both, **known}


def test_the_page_says_who_caught_what_and_names_escapes():
    rows = [
        row(run.SOUND, 0, "", solvers="dp_cd"),
        row("cd_no_clip", 1, 1, audit_by="noise step", tests_by="tests/a.py::test_b"),
        row("strict_one_less", 0, 1, tests_by="tests/a.py::test_c"),
        row("mine_no_clip", 1, "", audit_by="noise"),
    ]
    assert run.shares(rows) == ((2, 3), (2, 2), 0) and not run.met(rows)
    text = run.page(rows)
    assert "3 bugs" in text and "caught 2 of 3, the tests alone 2 of 2;" in text
    assert "| noise, step | a.py::test_b |" in text and "**escaped**" in text
    spoken = row("guarantee_low", "", 1, tests_by="tests/a.py::test_d")
    assert run.shares([*rows, spoken]) == ((2, 3), (3, 3), 0)
    assert "4 bugs" in run.page([*rows, spoken])
    assert run.met(rows[:2])
    alarm = row(run.SOUND, 1, "", solvers="dp_sgd")
    assert not run.met([*rows[:2], alarm])


def test_places_are_lines_of_files():
    file, line = place(MUTANTS[0]).split(":")
    text = (ROOT / file).read_text().splitlines()
    assert MUTANTS[0].edits[0].before == text[int(line) - 1].strip()
