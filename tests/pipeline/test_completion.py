"""The manifest of a run."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from dperm.core.experiment import plan
from dperm.pipeline import completion, stages
from dperm.pipeline.completion import digest_results

ONLY = [
    "paper.offline=[diabetes]",
    "paper.calibrations=[paper]",
    "~paper.runs.dp_cd_priv",
    "~paper.sweeps.lower_bound",  # of no problem
    "~paper.tables.lower_bound",
]


@pytest.fixture
def finished(configured, monkeypatch):
    """A function that completes a paper of one problem and solver."""
    others = ("dp_cd_priv", "dp_sgd")
    only = ["paper.offline=[diabetes]", *(f"~paper.runs.{name}" for name in others)]
    only += ["~paper.sweeps.lower_bound", "~paper.tables.lower_bound"]  # of no problem

    def complete(wall, *overrides):
        config = configured("solver=dp_cd", "problem=diabetes", *only, *overrides)
        stages.tune(config)
        stages.evaluate(config)
        monkeypatch.setenv("DPERM_STARTED", "1000")
        monkeypatch.setattr(completion.time, "monotonic", lambda: 1000.0 + wall)
        folder = completion.complete(config).parent
        return json.loads((folder / "manifest.json").read_text())

    return complete


def test_the_manifest_tells_what_it_took(finished):
    made = finished(60)
    assert made["wall_seconds"] == 60
    assert made["runs"] == 2 * 2 * 2 * 4  # passes, replicates, grid


def test_the_manifest_has_the_cpu_seconds_of_the_paper_s_jobs(
    finished, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    made = {"solve/dpcd/diabetes/dp_cd": 40.0, "draw/dpcd/tables/table2": 2.0,
            "solve/dpgcd/square/dp_cd": 500.0}  # fmt: skip
    for job, seconds in made.items():
        path = tmp_path / "logs/smoke" / f"{job}.log"
        path.parent.mkdir(parents=True)
        path.write_text(f"cost: {seconds:.2f} CPU seconds\n")
    assert finished(60)["cpu_seconds"] == 42.0


def test_nothing_recorded_is_no_number(finished, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert finished(60)["cpu_seconds"] is None


def test_a_command_that_computes_nothing_keeps_the_time(finished):
    first = finished(60)
    assert finished(2) == first
    grown = finished(3, "scale.replicates=3")
    assert grown["wall_seconds"] == 3 and grown["runs"] > first["runs"]


def test_a_damaged_manifest_is_made_anew(finished, tmp_path, caplog):
    first = finished(60)
    (path,) = tmp_path.rglob("manifest.json")
    path.write_text(path.read_text()[:40])
    assert finished(2)["runs"] == first["runs"]
    assert f"{path} is damaged" in caplog.text


def test_a_problem_that_nothing_needed_is_no_obstacle(finished):
    """A paper of sweeps names problems that a small scale may not prepare."""
    made = finished(60, "paper.runs.dp_cd.problems=[diabetes]",
                    "paper.offline=[diabetes,breast_cancer_lasso]")  # fmt: skip
    assert made["runs"] > 0


def test_the_record_says_all_that_determined_the_run(configured):
    for solver in ("dp_cd", "dp_sgd"):
        config = configured(f"solver={solver}", *ONLY)
        stages.tune(config)
        stages.evaluate(config)
    tree = plan.results_folder(config, "dpcd")
    completion.complete(configured(*ONLY))
    text = (tree / "record.json").read_text()
    record = json.loads(text)
    tuned = pd.read_parquet(tree / "diabetes/dp_cd/tune.parquet")
    assert record["seeds"]["diabetes/dp_cd/tune.parquet"] == sorted(set(tuned["seed"]))
    rows = record["digests"]["rows"]
    assert len(rows) == 4
    assert rows["diabetes/dp_cd/tune.parquet"] == digest_results(tuned)
    assert digest_results(tuned.assign(seconds=0.0)) == digest_results(tuned)
    assert digest_results(tuned.assign(seed=0)) != digest_results(tuned)
    assert record["digests"]["data"]["diabetes"]["dataset_digest"].startswith("sha256:")
    assert len(record["digests"]["optima"]["diabetes"]["w_digest"]) == 20
    assert set(record["digests"]["solvers"]) == {"dp_cd", "dp_sgd"}
    assert record["configuration"]["paper"]["runs"]["dp_cd"]["grid"]
    assert record["configuration"]["problems"]["diabetes"]["loss"] == "least_squares"
    assert set(ONLY) <= set(record["configuration"]["overrides"])
    assert record["packages"]["numpy"] == np.__version__
    assert set(record["platform"]) == {
        "machine", "processor", "system", "libc", "python", "compiler"
    }  # fmt: skip
    assert not re.search(r'"/|tmp', text), "no folder of this machine"
