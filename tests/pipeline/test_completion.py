"""The manifest of a run."""

import json

import pytest

from dperm.pipeline import completion, stages


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
