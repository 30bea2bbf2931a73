"""SIGKILL at random moments; whoever goes on finds everything that was finished."""

import contextlib
import os
import random
import re
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from faults.tiny import Project, same_rows

TIMES = int(os.environ.get("FAULT_TIMES", "1"))  # 10 by `make faults`


def children(process: int) -> list[int]:
    """All descendants of a process."""
    found: list[int] = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            text = status.read_text()
            if int(text.rpartition(")")[2].split()[1]) == process:
                child = int(status.parent.name)
                found += [child, *children(child)]
    return found


def named(process: int, pattern: str) -> list[int]:
    """Its descendants whose command line matches."""
    found = []
    for child in children(process):
        with contextlib.suppress(OSError):
            line = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ")
            if re.search(pattern, line.decode()):
                found.append(child)
    return found


def kill(process: int) -> bool:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def killed_at_random(
    project: Project,
    stage: str,
    *arguments: str,
    victim: str = "",
    survived: Callable[[], None] | None = None,
):
    """Start it and kill it, or a child that matches ``victim``, until it was TIMES.

    A run that ended before its moment is begun anew; one that lost a child which had
    nothing left to do must pass ``survived``, and is begun anew too.
    """
    moments = random.Random(f"{stage}{victim}")
    begun = time.monotonic()
    assert project.run(stage, *arguments).returncode == 0
    span, kills = time.monotonic() - begun, 0
    shutil.rmtree(project.folder / "results")
    while kills < TIMES:
        process = project.start(stage, *arguments)
        moment = time.monotonic() + moments.uniform(0, span)
        while process.poll() is None and time.monotonic() < moment:
            time.sleep(0.01)
        chosen = [process.pid]
        while victim and process.poll() is None:
            chosen = named(process.pid, victim)
            if chosen:
                break
            time.sleep(0.01)
        if process.poll() is None and kill(moments.choice(chosen)):
            whole = process.wait(300) == 0
            kills += bool(victim) or not whole  # without a victim it had just ended
            if whole and victim:
                assert survived is not None
                survived()
            if whole:
                shutil.rmtree(project.folder / "results")
        else:
            shutil.rmtree(project.folder / "results", ignore_errors=True)
        if victim == "":
            project.groups.append(process.pid)


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


def test_a_solver_job(prepared, undisturbed, tally):
    """SIGKILL of a solver job"""
    killed_at_random(prepared, "tune")
    done = finish(prepared, "tune")
    same_rows(prepared, undisturbed, "results/tiny/diabetes/dp_cd", some=True)
    tally(TIMES, done.stdout.splitlines()[-1])


@pytest.mark.long
def test_snakemake(prepared, undisturbed, tally):
    """SIGKILL of Snakemake, restarted at once while its jobs live on"""
    killed_at_random(prepared, "snakemake")
    finish(prepared, "snakemake")
    same_rows(prepared, undisturbed)
    tally(TIMES)


@pytest.mark.long
def test_a_solver_job_of_snakemake(prepared, undisturbed, tally):
    """SIGKILL of a solver job that Snakemake runs"""
    killed_at_random(prepared, "snakemake", victim=r"dperm solve")
    finish(prepared, "snakemake")
    same_rows(prepared, undisturbed)
    tally(TIMES)


@pytest.mark.long
def test_a_worker(project, tmp_path_factory, tally):
    """SIGKILL of a worker of a sweep"""
    calm = Project(tmp_path_factory.mktemp("calm")).with_sweep()
    assert calm.run("sweep", "workers=2").returncode == 0
    project.with_sweep()
    killed_at_random(
        project, "sweep", "workers=2", victim="popen_loky",
        survived=lambda: same_rows(project, calm),
    )  # fmt: skip
    finish(project, "sweep", "workers=2")
    same_rows(project, calm)
    tally(TIMES)


def test_an_interrupted_figure(prepared, undisturbed, tally):
    """SIGKILL of a figure being drawn"""
    shutil.copytree(undisturbed.folder / "results", prepared.folder / "results")
    moments = random.Random("figure")
    begun = time.monotonic()
    assert prepared.run("figure").returncode == 0
    span, drawn = time.monotonic() - begun, 0
    figures, expected = prepared.folder / "figures", undisturbed.folder / "figures"
    shutil.rmtree(figures)
    while drawn < TIMES:
        process = prepared.start("figure")
        with contextlib.suppress(Exception):
            process.wait(moments.uniform(0, span))
        drawn += process.poll() is None
        process.kill()
        process.wait()
        for path in figures.rglob("curves.*"):
            there = path.relative_to(figures)
            assert path.read_bytes() == (expected / there).read_bytes()
    assert prepared.run("figure").returncode == 0
    assert prepared.leftovers() == []
    files = [path.relative_to(figures) for path in figures.rglob("*.*")]
    assert len(files) == 4
    for path in files:
        assert (figures / path).read_bytes() == (expected / path).read_bytes()
    tally(TIMES, "four files, each whole or absent")
