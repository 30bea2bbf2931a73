"""Kills, full disks, damaged files and edits under a run: nothing finished is lost.

After each fault the run is completed, and its rows are those of an undisturbed one.
Three faults of one command are made by day, all others by ``make faults``.
"""

import contextlib
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pandas as pd
import pytest

from faults.tiny import PAPER, Project, counted, same_rows

TIMES = int(os.environ.get("FAULT_TIMES", "1"))  # 10 by `make faults`
RUN = ("-j", "2", "--", "tiny")
RESULT = "results/tiny/diabetes/dp_cd"


def by_night(*values, **options):
    return pytest.param(*values, marks=pytest.mark.long, **options)


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


def killed_at_random(project: Project, stage: str, victim: str = "") -> None:
    """Start it and kill it, or a child that matches ``victim``, until it was TIMES.

    A run that ended before its moment is begun anew.
    """
    moments = random.Random(f"{stage}{victim}")
    begun = time.monotonic()
    assert project.run(stage).returncode == 0
    span, kills = time.monotonic() - begun, 0
    shutil.rmtree(project.folder / "results")
    while kills < TIMES:
        process = project.start(stage)
        moment = time.monotonic() + moments.uniform(0, span)
        chosen: list[int] = []
        while process.poll() is None and not (chosen and time.monotonic() > moment):
            chosen = named(process.pid, victim) if victim else [process.pid]
            time.sleep(0.01)
        hit = process.poll() is None and kill(moments.choice(chosen))
        if hit and process.wait(300) != 0:
            kills += 1
            project.groups.append(process.pid)
        else:
            shutil.rmtree(project.folder / "results", ignore_errors=True)


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


def told(done, *words: str) -> str:
    """The command failed, with one line that has these words."""
    assert done.returncode == 1, done.stdout
    lines = [line for line in done.stdout.splitlines() if all(w in line for w in words)]
    assert lines and "Traceback (most recent call last)" not in done.stdout, done.stdout
    return lines[-1]


# --- kills ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stage", "victim"),
    [
        pytest.param("tune", "", id="a solver job"),
        by_night("snakemake", "", id="Snakemake, begun anew while its jobs live on"),
        by_night("snakemake", r"dperm solve", id="a solver job of Snakemake"),
    ],
)
def test_a_kill(prepared, undisturbed, stage, victim):
    killed_at_random(prepared, stage, victim=victim)
    finish(prepared, stage)
    same_rows(prepared, undisturbed, some=stage == "tune")


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


@pytest.mark.long
def test_an_interrupt(prepared, undisturbed, moments):
    """Ctrl-C in the midst of a run: one sentence, and the same command goes on."""
    done = 0
    while done < TIMES:
        process = begun(prepared, moments())
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
            assert process.wait(300) != 0
            assert prepared.leftovers() == []
            said = (prepared.folder / "messages").read_text()
            assert said.count("the same command goes on") == 1
            done += 1
        else:
            shutil.rmtree(prepared.folder / "results")
    finish(prepared, "snakemake")
    same_rows(prepared, undisturbed)


# --- disks ----------------------------------------------------------------------------


@pytest.mark.long
def test_a_full_disk(prepared, undisturbed, mounted):
    """A disk that is full before all lanes are written; they are reused."""
    folder = mounted("size=160k")
    (prepared.folder / "results").symlink_to(folder)
    told(prepared.run("tune"), "lanes", "No space left")
    kept = sum(len(pd.read_parquet(path)) for path in lanes(folder))
    assert kept > 0
    assert not [path for path in folder.rglob(".*") if path.name != ".lock"]
    subprocess.run(["mount", "-o", "remount,size=64m", str(folder)], check=True)
    assert counted(finish(prepared, "tune").stdout)["reused"] == kept
    same_rows(prepared, undisturbed, some=True)


def lanes(folder):
    return [path for path in folder.rglob("*.parquet") if "lanes" in path.parts]


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))


@pytest.mark.long
def test_a_limit_on_files(prepared, undisturbed):
    prepared.run("tune", "output.results=elsewhere")  # the kernels' own cache is filled
    told(prepared.run("tune", preexec_fn=limit), "cannot be written")
    finish(prepared, "tune")
    same_rows(prepared, undisturbed, some=True)


# --- damaged, deleted, edited ---------------------------------------------------------


def garble(path, at=0.5) -> None:
    """Flip one bit."""
    content = bytearray(path.read_bytes())
    content[int(at * len(content))] ^= 4
    path.write_bytes(content)


@pytest.mark.long
def test_damaged_tables(prepared, undisturbed):
    """A Parquet file with a flipped bit, one cut short, one of nothing"""
    assert prepared.run("tune").returncode == 0
    folder = prepared.folder / RESULT
    parts = lanes(folder)
    lost = sum(len(pd.read_parquet(part)) for part in parts[:3])
    garble(parts[0], 0.2)
    parts[1].write_bytes(parts[1].read_bytes()[:500])
    parts[2].write_bytes(b"")
    done = prepared.run("tune")
    assert done.stdout.count("dropped: ") == 3
    assert counted(done.stdout)["computed"] == lost
    same_rows(prepared, undisturbed, some=True)
    table = folder / "tune.parquet"
    for damage in (lambda: garble(table, 0.3), lambda: table.write_bytes(b"PAR1")):
        damage()
        told(prepared.run("evaluate"), str(RESULT), "delete it and run again")
        table.unlink()
        assert prepared.run("tune").returncode == 0
    assert prepared.run("evaluate").returncode == 0
    same_rows(prepared, undisturbed, some=True)


@pytest.mark.long
@pytest.mark.parametrize(
    ("file", "stage"),
    [
        ("fetched/diabetes/arrays.npz", "prepare"),
        ("prepared/diabetes/arrays.npz", "tune"),
        ("optimum/diabetes/w.npy", "tune"),
        ("optimum/diabetes/optimum.json", "tune"),
    ],
)
def test_damaged_data(prepared, undisturbed, file, stage):
    """A flipped bit in what is cached of the data"""
    path = prepared.folder / "data" / file
    if path.suffix == ".json":
        path.write_text(path.read_text()[:40])
    else:
        garble(path, 0.97)
    told(prepared.run(stage), f"delete {path.parent.relative_to(prepared.folder)}")
    shutil.rmtree(path.parent)  # as it was told
    for stage in ("fetch", "prepare", "optimum", "tune"):
        done = prepared.run(stage)
        assert done.returncode == 0, done.stdout
    same_rows(prepared, undisturbed, some=True)


def edited() -> dict:
    """The paper with other titles, fewer clips and one more step."""
    grid = {
        "passes": [2, 5],
        "step": [0.001, 0.01, 0.1, 0.3],
        "clip": [1.0, 100.0, 3.0],
    }
    runs = {solver: {"grid": grid} for solver in PAPER["runs"]}
    return {**PAPER, "title": "Another", "runs": runs, "fresh": 2}


@pytest.mark.long
def test_yaml_edited_under_a_run(prepared, undisturbed, moments, tmp_path_factory):
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
    said = [line for line in second.stdout.splitlines() if "another pipeline" in line]
    assert len(said) == 1 and f"process {first.pid}" in said[0]
    same_rows(prepared, undisturbed)


@pytest.mark.long
def test_all_lanes_overflow(prepared):
    grid = {"passes": [2], "step": [1e300], "clip": [1e300]}
    prepared.add("paper/tiny/paper", {**PAPER, "runs": {"dp_cd": {"grid": grid}}})
    finish(prepared, "snakemake")
    log = (prepared.folder / "logs/solve/tiny/diabetes/dp_cd.log").read_text()
    assert "every setting of the grid diverged, or is not finite" in log
    evaluated = pd.read_parquet(prepared.folder / RESULT / "evaluate.parquet")
    assert evaluated["reason"].tolist() == ["every setting of the grid diverged"]
    drawn = prepared.run("figure", "formats=[svg]")
    shown = (prepared.folder / "figures/tiny/curves.svg").read_text()
    assert drawn.returncode == 0 and "every setting of" in shown
