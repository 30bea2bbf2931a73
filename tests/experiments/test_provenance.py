"""A digest changes with the code behind a product, and with nothing else."""

import importlib.util
from pathlib import Path

import pytest

from dperm.experiments import provenance


@pytest.fixture
def edited(monkeypatch):
    """Digest of a product as if a line had been added to a module."""

    def digest(kind: str, paper: str, module: str, line: str) -> tuple[str, str]:
        before = provenance.product_digest(kind, paper)
        origin, read = Path(importlib.util.find_spec(module).origin), Path.read_text

        def changed(path, *given, **named):
            text = read(path, *given, **named)
            return f"{text}\n{line}\n" if path == origin else text

        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_text", changed)
            provenance._digest_of.cache_clear()
            after = provenance.product_digest(kind, paper)
        provenance._digest_of.cache_clear()
        return before, after

    return digest


@pytest.mark.parametrize(
    ("kind", "module"),
    [
        ("figures", "dperm.figures.dpskgd"),
        ("figures", "dperm.figures.drawing"),
        ("figures", "dperm.bounds.dpskgd"),  # through the tables
        ("tables", "dperm.bounds.dpskgd"),
        ("tables", "dperm.privacy.accounting"),
        ("sweeps", "dperm.solvers.dp_sgd"),
        ("sweeps", "dperm.privacy.pld"),  # imported inside functions or by others
    ],
)
def test_an_edit_behind_a_product_counts(edited, kind, module):
    before, after = edited(kind, "dpskgd", module, "ADDED = 1")
    assert before != after


@pytest.mark.parametrize("line", ["# a comment", ""])
def test_comments_do_not_count(edited, line):
    before, after = edited("tables", "dpskgd", "dperm.bounds.dpskgd", line)
    assert before == after


def test_other_papers_and_storage_do_not_count(edited):
    for module in ("dperm.tables.dpsco", "dperm.experiments.store", "dperm.data.store"):
        before, after = edited("tables", "dpskgd", module, "ADDED = 1")
        assert before == after


def test_modules_are_found_in_every_form_of_import():
    found = provenance.imported("dperm.figures.dpskgd")
    assert "dperm.bounds.dpskgd" in found  # from dperm.bounds import dpskgd as bounds
    assert "dperm.tables.comparing" in found  # from dperm.tables.comparing import ...
    assert "dperm.solvers.dp_skgd" in found and "dperm.solvers" in found
    assert not any(name.endswith(".fitted") for name in found)  # a function
