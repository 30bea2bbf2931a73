"""Kills, full disks and edits under a run: nothing finished is lost.

After each fault the run is completed, and its rows are those of an undisturbed one.
Three faults of one command are made by day, all others by ``make faults``.
"""

import contextlib
import copy
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable

import pandas as pd
import psutil
import pytest

from faults.tiny import PAPER, Project, same_rows

TIMES = int(os.environ.get("FAULT_TIMES", "1"))  # 10 by `make faults`
RESULT = "results/tiny/diabetes/dp_cd"


NIGHT = {"marks": pytest.mark.long}


def named(process: int, pattern: str) -> list[int]:
    """Its descendants whose command line matches."""
    found = []
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process(process).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if re.search(pattern, " ".join(child.cmdline())):
                    found.append(child.pid)
    return found


def disturbed(project: Project, stage: str, disturb: Callable) -> Project:
    """Run a stage and disturb it at a random moment, until it was hit so many TIMES.

    A run that ended before its moment, or was not hit, is begun anew. Before all it is
    run in peace, which is returned.
    """
    chance, begun = random.Random(stage), time.monotonic()
    assert project.run(stage).returncode == 0
    span, hits = time.monotonic() - begun, 0
    peace = copy.copy(project)
    peace.folder = project.folder / "peace"
    shutil.move(project.folder / "results", peace.folder / "results")
    while hits < TIMES:
        process = project.start(stage)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(chance.uniform(0.1, 0.9) * span)
        if process.poll() is None and disturb(process):
            hits += 1
            project.groups.append(process.pid)
        else:
            process.wait(300)
            shutil.rmtree(project.folder / "results", ignore_errors=True)
    return peace


def wait_for_orphans(project: Project) -> None:
    """Until the process groups of killed leaders are empty."""
    deadline = time.monotonic() + 300
    for group in project.groups:
        with contextlib.suppress(ProcessLookupError):
            while time.monotonic() < deadline:
                os.killpg(group, 0)
                time.sleep(0.05)


def finish(project: Project, *command: str):
    """Run it once more, undisturbed; nothing half-written may lie about."""
    done = project.run(*command)
    assert done.returncode == 0, done.stdout
    wait_for_orphans(project)
    assert project.leftovers() == []
    return done


def told(done, words: str) -> None:
    """The command failed, with one line that has these words."""
    assert done.returncode == 1, done.stdout
    assert any(re.search(words, line) for line in done.stdout.splitlines()), (
        done.stdout
    )
    assert "Traceback (most recent call last)" not in done.stdout, done.stdout


# --- kills ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stage", "victim", "which"),
    [
        pytest.param("tune", "", slice(1), id="a solver job"),
        pytest.param("snakemake", "", slice(1), **NIGHT, id="Snakemake, begun anew"),
        pytest.param("snakemake", r"^\S+ -I -S .* solve ", slice(1), **NIGHT,
                     id="what asks for a job"),
        pytest.param("snakemake", "--warm-workers", slice(1), **NIGHT,
                     id="the server of warm workers"),
        pytest.param("snakemake", "--warm-workers", slice(1, 2), **NIGHT,
                     id="a warm worker"),
    ],
)  # fmt: skip
def test_a_kill(prepared, stage, victim, which):
    def kill(process):
        """Kill it, whose jobs live on, or a child that matches."""
        for chosen in (
            named(process.pid, victim) if victim else [process.pid]
        )[which]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(chosen, signal.SIGKILL)
                return process.wait(300) != 0
        return False

    peace = disturbed(prepared, stage, kill)
    finish(prepared, stage)
    same_rows(prepared, peace)


@pytest.mark.long
def test_an_interrupt(prepared, undisturbed):
    """Ctrl-C in the midst of a run: one sentence, and the same command goes on."""

    def interrupt(process):
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(300) != 0 and prepared.leftovers() == []
        said = (prepared.folder / "messages").read_text()
        assert said.count("the same command goes on") == 1
        return True

    disturbed(prepared, "snakemake", interrupt)
    finish(prepared, "snakemake")
    same_rows(prepared, undisturbed)


# --- disks ----------------------------------------------------------------------------


@pytest.mark.long
def test_a_full_disk(prepared, undisturbed, mounted):
    """A disk that is full before all settings are written; they are reused."""
    folder = mounted("size=160k")
    (prepared.folder / "results").symlink_to(folder)
    told(
        prepared.run("tune"), "settings.*No space left|No space left.*settings"
    )
    settings = [
        path for path in folder.rglob("*.parquet") if "parts" in path.parts
    ]
    kept = sum(len(pd.read_parquet(path)) for path in settings)
    assert kept > 0
    assert not [path for path in folder.rglob(".*") if path.name != ".lock"]
    subprocess.run(
        ["mount", "-o", "remount,size=64m", str(folder)], check=True
    )
    assert f": {kept} settings reused" in finish(prepared, "tune").stdout
    same_rows(prepared, undisturbed, some=True)


@pytest.mark.long
def test_a_limit_on_files(prepared, undisturbed):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))

    # the kernels' own cache is filled
    prepared.run("tune", "output.results=elsewhere")
    told(prepared.run("tune", preexec_fn=limit), "cannot be written")
    finish(prepared, "tune")
    same_rows(prepared, undisturbed, some=True)


# --- edited ---------------------------------------------------------------------------


def edited() -> dict:
    """The paper with other titles, fewer clips and one more step."""
    steps, clips = [0.001, 0.01, 0.1, 0.3], [1.0, 100.0, 3.0]
    grid = {"passes": [2, 5], "step": steps, "clip": clips}
    runs = {solver: {"grid": grid} for solver in PAPER["runs"]}
    return {**PAPER, "title": "Another", "runs": runs, "fresh": 2}


@pytest.mark.long
def test_yaml_edited_under_a_run(prepared, undisturbed, tmp_path_factory):
    calm = Project(tmp_path_factory.mktemp("edited"))
    shutil.copytree(undisturbed.folder / "data", calm.folder / "data")
    calm.add("paper/tiny/paper", edited())
    assert calm.run("snakemake").returncode == 0

    def edit(process):
        prepared.add("paper/tiny/paper", edited())
        process.wait(300)
        finish(prepared, "snakemake")
        same_rows(prepared, calm)
        prepared.add("paper/tiny/paper", PAPER)
        return True

    disturbed(prepared, "snakemake", edit)


# --- two at once, clocks, overflow ----------------------------------------------------


@pytest.mark.long
def test_two_pipelines(prepared, undisturbed):
    """A second pipeline started in the same folder"""
    first = prepared.start("snakemake")
    lock = prepared.folder / ".snakemake" / "dperm.lock"
    while first.poll() is None and not (lock.exists() and lock.read_text()):
        time.sleep(0.02)
    first.send_signal(signal.SIGSTOP)  # so that it is not done too early
    second = prepared.run("snakemake")
    first.send_signal(signal.SIGCONT)
    assert first.wait(300) == 0
    assert second.returncode == 1
    said = [
        line
        for line in second.stdout.splitlines()
        if "another pipeline" in line
    ]
    assert len(said) == 1 and f"process {first.pid}" in said[0]
    same_rows(prepared, undisturbed)


@pytest.mark.long
def test_all_settings_overflow(prepared):
    grid = {"passes": [2], "step": [1e300], "clip": [1e300]}
    prepared.add(
        "paper/tiny/paper", {**PAPER, "runs": {"dp_cd": {"grid": grid}}}
    )
    finish(prepared, "snakemake")
    log = (prepared.folder / "logs/solve/tiny/diabetes/dp_cd.log").read_text()
    assert "every setting of the grid diverged, or is not finite" in log
    evaluated = pd.read_parquet(prepared.folder / RESULT / "evaluate.parquet")
    assert evaluated["reason"].tolist() == [
        "every setting of the grid diverged"
    ]
    drawn = prepared.run("figure", "formats=[svg]")
    shown = (prepared.folder / "figures/tiny/curves.svg").read_text()
    assert drawn.returncode == 0 and "the grid diverged" in shown
