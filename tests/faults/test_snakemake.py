"""Faults of a whole run: interrupted, without room, edited, forced, upgraded.

After each the run is completed, and its rows are those of an undisturbed one.
"""

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import time

import pytest

from faults.test_kill import TIMES, finish
from faults.tiny import PAPER, Project, counted, same_rows

pytestmark = pytest.mark.long
RUN = ("-j", "2", "-q", "rules", "--", "tiny")
NUMBA = """
import importlib.metadata

_true = importlib.metadata.version
importlib.metadata.version = lambda name: "99.0" if name == "numba" else _true(name)
"""


def begun(project, moment):
    """A run that has come so far, in seconds; what it makes is begun anew if done."""
    process = project.start("snakemake", *RUN)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(moment)
    return process


@pytest.fixture
def moments(prepared):
    """Random moments within a run, which is made once to see how long it takes."""
    start = time.monotonic()
    assert prepared.run("snakemake", *RUN).returncode == 0
    span = time.monotonic() - start
    shutil.rmtree(prepared.folder / "results")
    chance = random.Random("moments")
    return lambda: chance.uniform(0.1, 0.9) * span


def test_an_interrupt(prepared, undisturbed, moments, tally):
    """Ctrl-C in the midst of a run"""
    done = 0
    while done < TIMES:
        process = begun(prepared, moments())
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
            assert process.wait(300) != 0
            assert prepared.leftovers() == []
            done += 1
        else:
            shutil.rmtree(prepared.folder / "results")
    finish(prepared, "snakemake")
    same_rows(prepared, undisturbed)
    tally(done)


def told(done, *words):
    """The run failed, a stage of it with a line that has these words."""
    assert done.returncode == 1
    lines = [line for line in done.stdout.splitlines() if all(w in line for w in words)]
    assert lines and "Traceback (most recent call last)" not in done.stdout, done.stdout
    return lines[0]


def test_a_full_disk_under_a_run(prepared, undisturbed, mounted, tally):
    """A whole run on a disk that is full before it is done"""
    folder = mounted("size=160k")
    (prepared.folder / "results").symlink_to(folder)
    said = told(prepared.run("snakemake", *RUN), "OSError", "No space left")
    subprocess.run(["mount", "-o", "remount,size=64m", str(folder)], check=True)
    finish(prepared, "snakemake")
    same_rows(prepared, undisturbed)
    tally(1, said)


def test_a_read_only_folder_under_a_run(prepared, undisturbed, mounted, tally):
    """A whole run whose results cannot be written"""
    folder = mounted("size=64m")
    (prepared.folder / "results").symlink_to(folder)
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    done = prepared.run("snakemake", *RUN)
    assert done.returncode == 1 and "Read-only file system" in done.stdout
    subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)
    finish(prepared, "snakemake")
    same_rows(prepared, undisturbed)
    tally(1, next(li for li in done.stdout.splitlines() if "Read-only" in li))


def test_files_deleted_under_a_run(prepared, undisturbed, moments, tally):
    """Files deleted while a run reads and writes them"""
    chance = random.Random("deleted")
    for _ in range(TIMES):
        process = begun(prepared, moments())
        both = (prepared.folder / top for top in ("results", "data"))
        every = sorted(p for top in both for p in top.rglob("*") if p.is_file())
        for path in chance.sample(every, len(every) // 3):
            path.unlink(missing_ok=True)
        process.wait(300)
    said = obey(prepared)
    same_rows(prepared, undisturbed)
    tally(TIMES, said)


def obey(project) -> str:
    """Complete a run, deleting what it says is to be deleted; the last such line."""
    said = ""
    for _ in range(4):
        done = project.run("snakemake", *RUN)
        if done.returncode == 0:
            assert project.leftovers() == []
            return said
        found = re.search(r"\w+Error: .*: delete (data/\S+) and run again", done.stdout)
        assert found, done.stdout
        said = found[0]
        shutil.rmtree(project.folder / found[1])
    raise AssertionError(said)


def edited() -> dict:
    """The paper with other titles, fewer clips and one more step."""
    grid = {
        "passes": [2, 5],
        "step": [0.001, 0.01, 0.1, 0.3],
        "clip": [1.0, 100.0, 3.0],
    }
    runs = {solver: {"grid": grid} for solver in PAPER["runs"]}
    return {**PAPER, "title": "Another", "runs": runs, "fresh": 2}


def test_yaml_edited_under_a_run(
    prepared, undisturbed, moments, tally, tmp_path_factory
):
    """YAML edited while a run reads it"""
    calm = Project(tmp_path_factory.mktemp("edited"))
    shutil.copytree(undisturbed.folder / "data", calm.folder / "data")
    calm.add("paper/tiny/paper", edited())
    assert calm.run("snakemake", *RUN).returncode == 0
    for _ in range(TIMES):
        prepared.add("paper/tiny/paper", PAPER)
        process = begun(prepared, moments())
        prepared.add("paper/tiny/paper", edited())
        process.wait(300)
        finish(prepared, "snakemake")
        same_rows(prepared, calm)
    tally(TIMES)


def test_options_of_snakemake(prepared, undisturbed, tally):
    """--forceall, --rerun-incomplete and other numbers of cores after one another"""
    for options in (("-j", "1"), ("-j", "2", "--forceall"), ("-j", "3", "-R", "solve"),
                    ("-j", "2", "--rerun-incomplete")):  # fmt: skip
        finish(prepared, "snakemake", *options, "-q", "rules", "--", "tiny")
        same_rows(prepared, undisturbed)
    tally(4)


def why(project) -> str:
    """What a dry run gives as reasons."""
    done = project.run("snakemake", "-n", "--", "tiny")
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_an_upgrade_of_numba(prepared, undisturbed, tally):
    """An upgrade of a library that computes"""
    finish(prepared, "snakemake")
    assert "Nothing to be done" in why(prepared)
    (prepared.folder / "later").mkdir()
    (prepared.folder / "later" / "sitecustomize.py").write_text(NUMBA)
    path = prepared.environment.get("PYTHONPATH", "")
    prepared.environment["PYTHONPATH"] = f"{prepared.folder / 'later'}:{path}"
    reasons = why(prepared)
    assert "rule solve:" in reasons and "Params have changed" in reasons
    finish(prepared, "snakemake")
    same_rows(prepared, undisturbed)
    log = (prepared.folder / "logs/solve/tiny/diabetes/dp_cd.log").read_text()
    assert counted(log)["reused"] == 0 and sum(counted(log).values()) == 2000
    tally(1, log.strip().splitlines()[-1])


def test_data_edited_under_a_run(project, undisturbed, tally):
    """A file of one's own data edited after a run"""
    rows = (f"{i % 7},{i * i % 11},{i % 3}\n" for i in range(60))
    (project.folder / "own.csv").write_text("a,b,y\n" + "".join(rows))
    project.add("problem/diabetes", {
        "name": "diabetes", "title": "Own", "loss": "least_squares",
        "dataset": {"name": "own", "sources": [{"kind": "file", "files": ["own.csv"]}],
                    "reader": {"format": "csv"}},
        "penalty": {"l1": 0.1},
    })  # fmt: skip
    finish(project, "snakemake")
    before = project.rows()
    text = (project.folder / "own.csv").read_text()
    (project.folder / "own.csv").write_text(text + "1,2,3\n")
    reasons = why(project)
    assert "rule fetch:" in reasons and "Params have changed" in reasons
    finish(project, "snakemake")
    for name, table in project.rows().items():
        assert not table["objective"].equals(before[name]["objective"])
    (project.folder / "own.csv").write_text(text)
    finish(project, "snakemake")
    for name, table in project.rows().items():
        assert table.equals(before[name])
    tally(2, "read again, and back again")
