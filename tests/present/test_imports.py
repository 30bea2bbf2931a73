"""Drawing stays light, and knows nothing of what stands above it."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dperm

PACKAGE = Path(dperm.__file__).parent
PRESENT = sorted(path.stem for path in (PACKAGE / "present").glob("[a-z]*.py"))
DRAWN = [
    f"papers/{paper}/{kind}.py"
    for paper in ("dpcd", "dpgcd", "dpskgd")
    for kind in ("figures", "tables")
    if (PACKAGE / "papers" / paper / f"{kind}.py").is_file()
]


SOLVING = ("dperm.core.solvers", "dperm.core.privacy", "dperm.core.lanes.trials")
# Tables of noise state the least sound noise beside the published one. No stage holds
# it where all runs are under the printed formula; it draws nothing, takes seconds, and
# comes from ``trials.noise``, which makes the entries of ledger.json.
ALLOWED = {
    "kinds/tables.py": (
        "dperm.core.lanes.trials",
        "dperm.core.privacy.calibration",
        "dperm.core.privacy.calibration.UnreachableTargetError",
    )
}


def imported(path):
    """Modules of ours that a file names in its imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("name", PRESENT)
def test_present_imports_nothing_above_it(name):
    below = ("dperm.present", "dperm.core.experiment.files")
    files = "dperm.core.experiment"
    for module in imported(PACKAGE / "present" / f"{name}.py"):
        assert (
            not module.startswith("dperm")
            or module == files
            or module.startswith(below)
        )


def test_drawing_wakes_neither_numba_nor_the_statistics_of_scipy():
    names = ", ".join(f"dperm.present.{name}" for name in PRESENT)
    code = f"import sys, {names}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          check=True)  # fmt: skip
    assert not {"numba", "scipy.stats"} & set(done.stdout.split())


@pytest.mark.parametrize("path", [*DRAWN, "kinds/figures.py", "kinds/tables.py"])
def test_figures_and_tables_neither_solve_nor_calibrate(path):
    paper, allowed = path.split("/")[1], ALLOWED.get(path, ())
    for module in imported(PACKAGE / path):
        assert module in allowed or not module.startswith(SOLVING)
        assert not module.endswith((".calibrate", ".figures", ".tables")) or (
            module.startswith(("dperm.kinds", "dperm.present"))
        )
        if module.startswith("dperm.papers."):
            assert module == f"dperm.papers.{paper}" or module.startswith(
                f"dperm.papers.{paper}."
            )
