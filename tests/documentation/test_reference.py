"""Every example of the reference, and of the public docstrings, prints what it says."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

import dperm
from dperm import solver

SOURCE = Path(dperm.__file__).parents[1]
WITH_EXAMPLES = [
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(
        ".__init__"
    )
    for path in sorted(SOURCE.glob("dperm/**/*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]
PAGE = Path(__file__).parents[2] / "docs/reference.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def test_examples_print_what_the_page_says():
    made = doctest.testfile(
        str(PAGE), module_relative=False, optionflags=FLAGS
    )
    assert made.failed == 0 and made.attempted > 0


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_of_docstrings(module):
    """In every module that has some, found by reading it."""
    tried = doctest.testmod(importlib.import_module(module), optionflags=FLAGS)
    assert tried.failed == 0 and tried.attempted > 0


SECTIONS = ("Parameters", "Raises", "Examples")


@pytest.mark.parametrize("name", dperm.PLACES)
def test_every_public_name_says_what_it_takes_refuses_and_does(name):
    public = getattr(dperm, name)
    needed = [*SECTIONS]
    if isinstance(public, type) and issubclass(public, Exception):
        needed = ["Examples"]
    elif not isinstance(public, type):
        needed.append("Returns")
    for section in needed:
        assert re.search(rf"^    {section}\n    -+$", public.__doc__, re.M), (
            section
        )


def test_every_public_name_is_in_the_reference():
    text = PAGE.read_text(encoding="utf-8")
    for name in dperm.PLACES:
        assert re.search(rf"auto\w+:: dperm\.{name}\b", text), name


def test_all_that_a_solver_imports_is_in_the_reference():
    """As an entry of its own, or in the words below the entries."""
    text = PAGE.read_text(encoding="utf-8")
    for name in solver.__all__:
        assert re.search(rf"(dperm\.solver\.|`){name}\b", text), name


def test_no_example_of_a_solver_imports_from_elsewhere():
    """In the how-tos and their folders, all but the data come by ``dperm.solver``."""
    path = PAGE.parent / "examples/mine/noisy_gd.py"
    lines = path.read_text(encoding="utf-8").splitlines()
    ours = [line for line in lines if re.match(r"(from|import) dperm", line)]
    assert len(lines) <= 45 and len(ours) == 1
    assert ours[0].startswith("from dperm.solver import ")
