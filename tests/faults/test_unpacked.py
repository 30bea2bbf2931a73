"""A run's archive, elsewhere: everything is drawn, nothing is solved."""

import json
import shutil
import subprocess
import sys

import pytest

from dperm.core.experiment import files as store
from faults.test_offline import isolated


def results(project, *arguments, prefix=()):
    command = [*prefix, sys.executable, "-m", "dperm", "results", *arguments]
    return subprocess.run(
        command, cwd=project.folder, env=project.environment, capture_output=True,
        text=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def finished(undisturbed):
    """The undisturbed project, ended by Snakemake, which has its digest recorded."""
    done = undisturbed.run("snakemake")
    assert done.returncode == 0, done.stdout
    return undisturbed


@pytest.mark.long
def test_an_archive_is_drawn_without_solving(finished, project):
    """The rows of a run unpacked elsewhere, without a network or data."""
    record = finished.folder / "results/tiny/record.json"
    made = json.loads(record.read_text())
    made["platform"]["machine"] = "another"
    before = store.file_digest(record)
    record.write_text(json.dumps(made))
    seal = record.with_name("seal.json")  # as if it had run there
    seal.write_text(seal.read_text().replace(before, store.file_digest(record)))
    done = results(finished, "pack", "tiny")
    assert done.returncode == 0, done.stderr
    shutil.copy(finished.folder / "results.zip", project.folder)
    done = results(project, "unpack", "results.zip", prefix=isolated())
    assert done.returncode == 0, done.stderr
    done = project.run("snakemake", prefix=isolated())
    assert done.returncode == 0, done.stdout
    ran = {path.name for path in (project.folder / "logs").iterdir()}
    assert ran == {"draw", "complete"}
    for name in (
        "figures/tiny/curves.csv",
        "figures/tiny/curves.png",
        "results/tiny/errors.csv",
    ):
        ours, theirs = (one.folder / name for one in (project, finished))
        assert ours.read_bytes() == theirs.read_bytes()
    kept = json.loads((project.folder / "results/tiny/record.json").read_text())
    assert kept["platform"]["machine"] == "another" and kept["made"] == made["made"]


@pytest.mark.long
def test_an_archive_of_another_grid_is_refused(finished, project):
    """The rows of a run unpacked where other ones are asked for."""
    assert results(finished, "pack", "tiny").returncode == 0
    path = project.conf / "paper/tiny/paper.yaml"
    path.write_text(path.read_text().replace("fresh: 3", "fresh: 4"))
    done = results(project, "unpack", str(finished.folder / "results.zip"))
    assert done.returncode == 1 and len(done.stderr.splitlines()) <= 2
    assert "of other code or configuration" in done.stderr
    assert (
        "2 of " in done.stderr and "first evaluate/tiny/diabetes/dp_cd" in done.stderr
    )
    assert not (project.folder / "results").exists()
