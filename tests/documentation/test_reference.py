"""Every example of the reference, and of the public docstrings, prints what it says."""

import doctest
import re
from pathlib import Path

import pytest

import dperm
from dperm.audit import blackbox
from dperm.compare import estimators, guarantee, search

pytestmark = pytest.mark.long
PAGE = Path(__file__).parents[2] / "docs/reference.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def test_examples_print_what_the_page_says():
    made = doctest.testfile(str(PAGE), module_relative=False, optionflags=FLAGS)
    assert made.failed == 0 and made.attempted > 0


@pytest.mark.parametrize("module", [blackbox, estimators, guarantee, search])
def test_examples_of_docstrings(module):
    assert doctest.testmod(module, optionflags=FLAGS).failed == 0


def test_every_public_name_is_in_the_reference():
    text = PAGE.read_text(encoding="utf-8")
    for name in dperm.PLACES:
        assert re.search(rf"auto\w+:: dperm\.{name}\b", text), name
