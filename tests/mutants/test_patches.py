"""Every planted bug still finds its place, and what comes out is a module."""

import ast

import pytest

from .patches import MUTANTS, plant
from .planting import ROOT, PatchError, chosen_tests, patched

LEAST = 34


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_patch_applies_once_and_compiles(mutant):
    for file, text in patched(ROOT, mutant).items():
        assert ast.dump(ast.parse(text)) != ast.dump(
            ast.parse((ROOT / file).read_text())
        )


def test_names_are_unique_and_solvers_are_known():
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names) >= LEAST
    known = {path.stem for path in (ROOT / "conf/solver").glob("*.yaml")} | {"noisy_gd"}
    for mutant in MUTANTS:
        assert mutant.solvers and set(mutant.solvers) <= known, mutant.name
        assert len(mutant.breaks.splitlines()) == 1


def test_a_patch_that_does_not_fit_is_an_error():
    file = "src/dperm/solvers/lanes/clipping.py"
    for before in ("no such text", "clip"):
        with pytest.raises(PatchError, match="expected once, found"):
            patched(ROOT, plant("new", "dp_cd", "nothing", file, before, "x"))


def test_tests_are_chosen_by_what_they_reach():
    by_name = {mutant.name: chosen_tests(mutant) for mutant in MUTANTS}
    assert all(by_name.values())
    assert by_name["strict_one_less"][0] == "tests/privacy/test_accounting.py"
    assert by_name["mine_no_clip"] == ["tests/pipeline/test_extension.py"]
    assert "tests/solvers/test_twins.py" in by_name["cd_no_clip"]
    assert not any(
        "tests/audit" in file for files in by_name.values() for file in files
    )
