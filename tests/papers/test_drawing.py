"""Drawing draws: a figure's module brings no solver, no compiler and no statistics."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("numba", "scipy.stats", "dp_accounting")
ASKED = """
import importlib, sys
importlib.import_module({module!r})
heavy = {heavy!r}
found = [name for name in sys.modules if name in heavy
         or name.startswith("dperm.core.solvers.") or name.startswith("dperm.audit")]
print(*sorted(found))
"""


@pytest.mark.parametrize("paper", ["dpbcfw", "dpsco"])
def test_what_the_import_of_a_figure_module_brings(paper):
    text = ASKED.format(module=f"dperm.papers.{paper}.figures", heavy=HEAVY)
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


@pytest.mark.parametrize("paper", ["dpbcfw", "dpsco"])
@pytest.mark.parametrize("kind", ["figures", "tables"])
def test_no_product_is_made_of_another_or_of_a_solver(paper, kind):
    """Of its own imports, those inside functions too."""
    named = set()
    origin = importlib.util.find_spec(f"dperm.papers.{paper}.{kind}").origin
    for node in ast.walk(ast.parse(Path(origin).read_text())):
        if isinstance(node, ast.ImportFrom):
            named |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
    banned = ("dperm.core.solvers", "dperm.core.privacy", "dperm.core.erm", "scipy")
    products = (f"dperm.papers.{paper}.figures", f"dperm.papers.{paper}.tables")
    assert not [name for name in named if name.startswith((*banned, *products))]
