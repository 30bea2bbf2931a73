"""The arena on data that are at hand."""

import sys

import pandas as pd
import pytest

from dperm import cli
from dperm.benchmark import peers as libraries
from dperm.benchmark import race
from dperm.config.config import read
from dperm.estimators import methods
from dperm.experiments import inputs
from dperm.experiments.stages import SweepRun
from dperm.papers.arena import sweeps, tables
from dperm.papers.comparison.sweeps import baselines
from dperm.papers.comparison.sweeps import race as run_race


@pytest.fixture
def config(configured):
    made = configured("scale=full", "paper=arena", "problem=breast_tumours")
    inputs.fetch(made)
    return made


def stored(config):
    return inputs.Inputs(config.data, config.overrides)


def test_a_row_is_that_of_the_solvers_own_setting_and_grid(config):
    point = {"problem": "breast_tumours", "solver": "dp_cd"}
    grid = {"passes": [2], "step": [0.3, 1], "clip": [1]}
    default = {"passes": 3, "step": 1, "clip": 2}
    rows = run_race(point, 1, stored(config), [1.0], 2, default, grid)
    found = race.means(pd.DataFrame(rows), {}).set_index("tuning")
    assert found.loc["default", "setting"] == "passes 3, step 1, clip 2"
    assert found.loc["grid", "setting"].startswith("passes 2, step ")
    assert (found["n"] == 455).all() and (found["p"] == 30).all()


def test_both_ends_of_a_problem(config):
    constant, free = baselines({"problem": "breast_tumours"}, stored(config))
    assert (constant["excess"], free["excess"]) == (1.0, 0.0) and free[
        "test"
    ] > 0.95


def test_data_that_cannot_be_had_have_a_row_with_the_reason(config):
    point = {"problem": "magic04"}
    for name in ("ends", "peers"):
        (row,) = (
            SweepRun(config, name).measured((point, 0, "")).to_dict("records")
        )
        assert row["status"] == "unavailable" and row["reason"]


def test_a_library_without_an_environment_is_a_gap(config, monkeypatch):
    monkeypatch.setattr(libraries, "environment", lambda _: ("", "no network"))
    rows = sweeps.peers(
        {"problem": "breast_tumours"}, 1, stored(config), [1.0], 2
    )
    assert [row["solver"] for row in rows] == ["diffprivlib", "interpret"]
    for row in rows:
        assert (row["status"], row["reason"]) == ("gap", "no network")


def test_the_arenas_methods_are_those_of_dperm_try_with_grids_of_their_own():
    sweep = read("paper", "arena").sweeps["race"]
    assert tuple(sweep.grid["solver"]) == methods.ARENA
    assert not {"defaults", "grids"} & {*sweep.options}
    for name in methods.ARENA:
        assert len(methods.method(name).grid) > 4


def test_a_solvers_yaml_and_its_name_in_python_are_one_method():
    for name in methods.known():
        section, method = read("solver", name), methods.method(name)
        assert method.label == section.label
        known = (section.name, section.algorithm, section.options)
        assert methods.configured(*known) == method


def test_problems_of_the_same_files_are_one_data_set(config):
    names = ["energy_heating", "energy_cooling", "breast_tumours"]
    found = tables.relatives(stored(config), names)
    assert found["energy_heating"] == found["energy_cooling"]
    assert len({*found.values()}) == 2


def test_the_whole_arena_is_snakemakes(monkeypatch):
    seen = []
    monkeypatch.setattr(cli, "_snakemake", seen.append)
    monkeypatch.setattr(sys, "argv", ["dperm"])
    cli._run(["arena", "-j", "2"])
    assert seen == [["arena", "-j", "2"]]
