"""A paper is complete once its rows give what is shown; the manifest of a run."""

import json
import os
from pathlib import Path

import pytest

from dperm.pipeline import manifest, stages, verify

ONLY = (  # one solver; no sweep and table of no problem
    *("~paper.runs.dp_cd_priv", "~paper.runs.dp_sgd"),
    *("~paper.sweeps.lower_bound", "~paper.tables.lower_bound"),
)


def test_the_best_setting_of_each_problem_is_named(configured):
    """And a problem that nothing needed is no obstacle, as in a paper of sweeps."""
    offline = "paper.offline=[diabetes,breast_cancer_lasso]"
    runs = "paper.runs.dp_cd.problems=[diabetes]"
    config = configured("solver=dp_cd", *ONLY, offline, runs)
    stages.solve(config)
    _, *said = verify.complete(config).read_text().splitlines()
    assert len(said) == 1
    assert (
        said[0].startswith("  diabetes: least relative error ") and "DP-CD" in said[0]
    )


@pytest.fixture
def run(tmp_path, monkeypatch):
    """What a run left; a function that writes its manifest."""
    monkeypatch.chdir(tmp_path)

    for job, wall, spent in (
        ("solve/dpcd/diabetes/dp_cd", 30.0, 40.0), ("draw/dpcd/tables/a", 1.5, "NA"),
        ("solve/dpgcd/square/dp_cd", 500.0, 600.0), ("audit/solvers/dp_cd", 7.0, 6.0),
    ):  # fmt: skip
        path = Path("logs", f"{job}.tsv")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"s\th:m:s\tcpu_time\n{wall}\t0:00:01\t{spent}\n")
    for name in ("results/claims.csv", "results/dpcd/table2.csv",
                 "results/dpcd/diabetes/dp_cd/tune.parquet", "figures/dpcd/a.png",
                 "figures/dpcd/a.svg", "figures/smoke/dpcd/a.png"):  # fmt: skip
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("made\n")

    def written(began=0.0):
        return json.loads(manifest.write("", ["dpcd"], 2, began).read_text())

    return written


def test_the_manifest_has_the_seconds_and_the_files_that_git_holds(run):
    made = run()
    assert made["wall_seconds"] == {"dpcd": 31.5, "audit": 7.0}
    assert made["cpu_seconds"] == {"dpcd": 40.0, "audit": 6.0}
    for path in Path("logs").rglob("dpcd/**/*.tsv"):
        path.unlink()
    assert run()["cpu_seconds"] == made["cpu_seconds"], "nothing of dpcd ran here"
    assert made["cores"] == 2 and {"commit", "date", "machine"} <= set(made)
    held = ["figures/dpcd/a.png", "results/claims.csv", "results/dpcd/table2.csv"]
    assert sorted(made["files"]) == held


def test_a_later_run_does_not_vouch_for_what_was_edited_before_it(run, monkeypatch):
    monkeypatch.setattr(manifest.store, "commit", iter("abbc").__next__)
    before = run()["files"]
    table, claims = "results/dpcd/table2.csv", "results/claims.csv"
    for name in (table, claims):
        Path(name).write_text("edited\n")
    os.utime(table, (10**9, 10**9))
    again = run(began=1.5e9)
    after = again["files"]
    assert again["commit"] == "a, b" == run(began=1.5e9)["commit"]
    assert run()["commit"] == "c", "all was made again"
    assert after[table] == before[table] and after[claims] != before[claims]
