"""A sample of the harness: leaves and edits that a key must hold, and a control."""

import os
import random

import pytest

from dperm.experiments import scopes
from dperm.storage import source_code

from .run import (
    Edit,
    Leaves,
    applied,
    baseline,
    edits_of,
    held_lines,
    missed_leaves,
)
from .world import World

JOBS = ["fetch/diabetes", "prepare/diabetes", "optimum/diabetes",
        "solve/dpcd/diabetes/dp_cd"]  # fmt: skip
SMALL = (
    "scale=smoke",
    "paper.small_problems=[diabetes]",
    "scale.keep.clip=2",
    "~paper.sweeps.lower_bound",
    "~paper.tables.lower_bound",
    "paper.figures.figure3.problems=[diabetes]",
)
SAMPLE = 25  # leaves, and edits of code


@pytest.fixture(scope="module")
def world():
    return World("dpcd", *SMALL)


@pytest.fixture(scope="module")
def base(world, tmp_path_factory):
    folder = tmp_path_factory.mktemp("base")
    baseline(world, JOBS, folder)
    return folder


def test_no_leaf_changes_rows_without_their_keys(world, base):
    chance = random.Random(os.environ.get("STALE_SEED", "0"))
    leaves = Leaves(world, chance.sample(world.leaves(), SAMPLE))
    assert len(leaves.moved) > SAMPLE / 2
    assert missed_leaves(leaves, JOBS[2:], base) == []


def test_a_section_that_a_key_lacks_is_named(world, base, monkeypatch):
    """The control: privacy is taken out of the key of a run, and of its view."""
    plain = scopes.solved

    def lacking(*arguments):
        settings = plain(*arguments)
        return settings | dict.fromkeys(["problem.diabetes.privacy"])

    monkeypatch.setattr(scopes, "solved", lacking)
    path = ("problem", "diabetes", "privacy", "epsilon")
    leaves = Leaves(world, [path])
    (missed,) = missed_leaves(leaves, JOBS[3:], base)
    assert missed.change == "problem.diabetes.privacy.epsilon"
    assert missed.job == "solve/dpcd/diabetes/dp_cd"


def test_the_lines_of_a_key_are_those_whose_edit_changes_it(
    world, monkeypatch
):
    """The harness asks for lines, as a digest of all code takes seconds."""
    held = held_lines(world)["optimum/diabetes"]
    path = source_code.PACKAGE / "problems/optimum.py"
    edits = random.Random(0).sample(edits_of(path), 3)
    assert all(one.line in held[path] for one in edits)
    assert source_code.PACKAGE / "report/page.py" not in held


def test_edits_are_made_where_they_are_said(tmp_path):
    path = source_code.PACKAGE / "problems/optimum.py"
    (one, *_) = edits_of(path)
    copy = tmp_path / path.relative_to(source_code.PACKAGE.parent)
    copy.parent.mkdir(parents=True)
    copy.write_text(path.read_text())
    applied([one], tmp_path)
    before, after = (
        path.read_text().splitlines(),
        copy.read_text().splitlines(),
    )
    differ = [k + 1 for k, pair in enumerate(zip(before, after, strict=True))
              if pair[0] != pair[1]]  # fmt: skip
    assert differ == [one.line] and isinstance(one, Edit)
