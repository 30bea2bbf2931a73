"""A digest changes with the code behind a product, and with nothing else."""

import importlib.util
from pathlib import Path

import pytest

from dperm import config as configuration
from dperm.pipeline import runtable
from dperm.pipeline import sweep as sweeping
from dperm.store import provenance


@pytest.fixture
def edited(monkeypatch):
    """Digest of a product as if a line had been added to a module."""

    def digest(kind: str, paper: str, module: str, line: str) -> tuple[str, str]:
        before = provenance.product_digest(f"dperm.papers.{paper}.{kind}")
        origin, read = Path(importlib.util.find_spec(module).origin), Path.read_text

        def changed(path, *given, **named):
            text = read(path, *given, **named)
            return f"{text}\n{line}\n" if path == origin else text

        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_text", changed)
            provenance._digest_of.cache_clear()
            after = provenance.product_digest(f"dperm.papers.{paper}.{kind}")
        provenance._digest_of.cache_clear()
        return before, after

    return digest


@pytest.mark.parametrize(
    ("kind", "module"),
    [
        ("figures", "dperm.papers.dpskgd.figures"),
        ("figures", "dperm.present.drawing"),
        ("figures", "dperm.papers.dpskgd.theory"),  # through the tables
        ("tables", "dperm.papers.dpskgd.theory"),
        ("tables", "dperm.privacy.accounting"),
        ("sweeps", "dperm.solvers.lanes.dp_sgd"),
        ("sweeps", "dperm.privacy.pld"),  # imported inside functions or by others
    ],
)
def test_an_edit_behind_a_product_counts(edited, kind, module):
    before, after = edited(kind, "dpskgd", module, "ADDED = 1")
    assert before != after


@pytest.mark.parametrize("line", ["# a comment", ""])
def test_comments_do_not_count(edited, line):
    before, after = edited("tables", "dpskgd", "dperm.papers.dpskgd.theory", line)
    assert before == after


def test_other_papers_and_storage_do_not_count(edited):
    for module in (
        "dperm.papers.dpsco.tables",
        "dperm.store.files",
        "dperm.data.folders",
    ):
        before, after = edited("tables", "dpskgd", module, "ADDED = 1")
        assert before == after


def test_modules_are_found_in_every_form_of_import():
    found = provenance.imported("dperm.papers.dpskgd.figures")
    assert "dperm.papers.dpskgd.theory" in found
    assert "dperm.present.method_ratios" in found
    assert "dperm.solvers.lanes.dp_skgd" in found and "dperm.solvers" in found
    assert not any(name.endswith(".fitted") for name in found)  # a function


@pytest.mark.parametrize(
    ("kind", "module"),
    [
        ("sweeps", "dperm.solvers.streams.setup"),
        ("sweeps", "dperm.erm.sets"),
        ("sweeps", "dperm.solvers.streams.sco_dp_fw"),
        ("sweeps", "dperm.privacy.generalised_gaussian"),
        ("sweeps", "dperm.compiled"),
        ("figures", "dperm.erm.sets"),
        ("tables", "dperm.papers.dpsco.figures"),  # shares its fits and intervals
        ("tables", "dperm.solvers.streams.poly_sfw"),
    ],
)
def test_an_edit_behind_dpsco_counts(edited, kind, module):
    before, after = edited(kind, "dpsco", module, "ADDED = 1")
    assert before != after


def test_an_edit_of_a_solvers_options_computes_its_points_again(monkeypatch):
    config = configuration.compose(["paper=dpsco"])
    what = config.paper.sweeps["rates"]

    def keys():
        return {
            (point["solver"], point["n"], point["d"], replicate): key
            for point, replicate, key in sweeping._tasks(config, "rates", what)
        }

    def digest():
        table = runtable.run_table(["dpsco"], [])
        return table.digests["sweeps/dpsco/rates"]

    before, whole = keys(), digest()
    section = sweeping._section
    changed = lambda name: section(name) + [1] * (name == "noisy_sfw_all")  # noqa: E731
    monkeypatch.setattr(sweeping, "_section", changed)
    after = keys()
    moved = {at[0] for at in before if before[at] != after[at]}
    assert moved == {"noisy_sfw_all"}
    assert digest() != whole
