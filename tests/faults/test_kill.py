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
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from faults.tiny import PAPER, Project, counted, same_rows

TIMES = int(os.environ.get("FAULT_TIMES", "1"))  # 10 by `make faults`
RUN = ("-j", "2", "--", "tiny")
RESULT = "results/tiny/diabetes/dp_cd"
# Every process of the run imports it: the time of day leaps by hours at every look.
LEAPS = """
import random
import time

_true = time.time
time.time = lambda: _true() + random.choice((-90000.0, 0.0, 7200.0, 4e6))
"""
NUMBA = """
import importlib.metadata

_true = importlib.metadata.version
importlib.metadata.version = lambda name: "99.0" if name == "numba" else _true(name)
"""


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
def test_a_kill(prepared, undisturbed, tally, stage, victim):
    """SIGKILL of"""
    killed_at_random(prepared, stage, victim=victim)
    done = finish(prepared, stage)
    same_rows(prepared, undisturbed, some=stage == "tune")
    tally(TIMES, done.stdout.splitlines()[-1] if stage == "tune" else "")


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


@pytest.mark.long
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


# --- disks ----------------------------------------------------------------------------


@pytest.mark.parametrize("stage", ["tune", by_night("snakemake")])
def test_a_full_disk(prepared, undisturbed, mounted, tally, stage):
    """A disk that is full before all lanes are written:"""
    folder = mounted("size=160k")
    (prepared.folder / "results").symlink_to(folder)
    said = told(prepared.run(stage), "lanes", "No space left")
    kept = sum(len(pd.read_parquet(path)) for path in lanes(folder))
    assert kept > 0
    assert not [path for path in folder.rglob(".*") if path.name != ".lock"]
    subprocess.run(["mount", "-o", "remount,size=64m", str(folder)], check=True)
    done = finish(prepared, stage)
    assert stage != "tune" or counted(done.stdout)["reused"] == kept
    same_rows(prepared, undisturbed, some=stage == "tune")
    tally(1, said)


@pytest.mark.long
@pytest.mark.parametrize("stage", ["tune", "snakemake"])
def test_a_read_only_folder(prepared, undisturbed, mounted, tally, stage):
    """A results folder that cannot be written to:"""
    folder = mounted("size=64m")
    (prepared.folder / "results").symlink_to(folder)
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    said = told(prepared.run(stage), "Read-only file system")
    subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)
    finish(prepared, stage)
    same_rows(prepared, undisturbed, some=stage == "tune")
    tally(1, said)


def lanes(folder):
    return [path for path in folder.rglob("*.parquet") if "lanes" in path.parts]


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))


def test_a_limit_on_files(prepared, undisturbed, tally):
    """A limit on the size of files"""
    prepared.run("tune", "output.results=elsewhere")  # the kernels' own cache is filled
    said = told(prepared.run("tune", preexec_fn=limit), "cannot be written")
    finish(prepared, "tune")
    same_rows(prepared, undisturbed, some=True)
    tally(1, said)


# --- damaged, deleted, edited ---------------------------------------------------------


def garble(path, at=0.5) -> None:
    """Flip one bit."""
    content = bytearray(path.read_bytes())
    content[int(at * len(content))] ^= 4
    path.write_bytes(content)


@pytest.mark.long
def test_damaged_tables(prepared, undisturbed, tally):
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
        said = told(prepared.run("evaluate"), str(RESULT), "delete it and run again")
        table.unlink()
        assert prepared.run("tune").returncode == 0
    assert prepared.run("evaluate").returncode == 0
    same_rows(prepared, undisturbed, some=True)
    tally(5, said)


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
def test_damaged_data(prepared, undisturbed, tally, file, stage):
    """A flipped bit in what is cached of the data"""
    path = prepared.folder / "data" / file
    if path.suffix == ".json":
        path.write_text(path.read_text()[:40])
    else:
        garble(path, 0.97)
    said = told(
        prepared.run(stage), f"delete {path.parent.relative_to(prepared.folder)}"
    )
    shutil.rmtree(path.parent)  # as it was told
    for stage in ("fetch", "prepare", "optimum", "tune"):
        done = prepared.run(stage)
        assert done.returncode == 0, done.stdout
    same_rows(prepared, undisturbed, some=True)
    tally(1, said)


@pytest.mark.long
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
    """Complete a run, doing what it says is to be done; the last such line."""
    said, run = "", ("snakemake", *RUN)
    remedy = r"delete (data/\S+) and run again|run `dperm (\w+) problem=diabetes`"
    command: tuple[str, ...] = run
    for _ in range(12):
        done = project.run(*command)
        if done.returncode == 0 and command == run:
            assert project.leftovers() == []
            return said
        command = run
        if done.returncode:
            found = re.search(rf"\w+Error: .*: (?:{remedy})", done.stdout)
            assert found, done.stdout
            said = found[0]
            if found[1]:
                shutil.rmtree(project.folder / found[1])
            else:
                command = (found[2],)
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


@pytest.mark.long
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


@pytest.mark.long
def test_options_of_snakemake(prepared, undisturbed, tally):
    """--forceall, --rerun-incomplete and other numbers of cores after one another"""
    for options in (("-j", "1"), ("-j", "2", "--forceall"), ("-j", "3", "-R", "solve"),
                    ("-j", "2", "--rerun-incomplete")):  # fmt: skip
        finish(prepared, "snakemake", *options, "--", "tiny")
        same_rows(prepared, undisturbed)
    tally(4)


def why(project) -> str:
    """What a dry run gives as reasons."""
    done = project.run("snakemake", "-n", "--", "tiny")
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.long
def test_an_upgrade_of_numba(project, undisturbed, tally):
    """An upgrade of a library that computes"""
    finish(project, "snakemake")
    assert "Nothing to be done" in why(project)
    (project.folder / "later").mkdir()
    (project.folder / "later" / "sitecustomize.py").write_text(NUMBA)
    path = project.environment.get("PYTHONPATH", "")
    project.environment["PYTHONPATH"] = f"{project.folder / 'later'}:{path}"
    reasons = why(project)
    assert "rule solve:" in reasons and "Params have changed" in reasons
    finish(project, "snakemake")
    same_rows(project, undisturbed)
    log = (project.folder / "logs/solve/tiny/diabetes/dp_cd.log").read_text()
    assert counted(log)["reused"] == 0 and sum(counted(log).values()) == 2000
    tally(1, log.strip().splitlines()[-1])


@pytest.mark.long
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


# --- two at once, clocks, overflow ----------------------------------------------------


@pytest.mark.long
def test_two_pipelines(prepared, undisturbed, tally):
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
    tally(1, said[0])


@pytest.mark.long
def test_two_stages(prepared, undisturbed, tally):
    """The same stage started twice at once"""
    first = prepared.start("tune")
    second = prepared.run("tune")
    assert first.wait(300) == 0 and second.returncode == 0
    same_rows(prepared, undisturbed, some=True)
    tally(1, second.stdout.splitlines()[-1])


@pytest.mark.long
def test_a_clock_that_leaps(project, undisturbed, tally):
    """A clock that leaps by hours at every look, then files of the future"""
    (project.folder / "leaps").mkdir()
    (project.folder / "leaps" / "sitecustomize.py").write_text(LEAPS)
    path = project.environment.get("PYTHONPATH", "")
    project.environment["PYTHONPATH"] = f"{project.folder / 'leaps'}:{path}"
    done = project.run("snakemake")
    assert done.returncode == 0, done.stdout
    same_rows(project, undisturbed)
    seconds = pd.concat(
        pd.read_parquet(path)["seconds"]
        for path in (project.folder / "results").rglob("tune.parquet")
    )
    assert seconds.between(0, 60).all()
    for number, path in enumerate(sorted((project.folder / "data").rglob("*.*"))):
        moment = time.time() + (-1) ** number * 1e7
        os.utime(path, (moment, moment))
    done = project.run("snakemake")
    assert done.returncode == 0, done.stdout
    same_rows(project, undisturbed)
    tally(2)


def with_grid(project, **grid):
    """The project with one solver and another grid."""
    project.add("paper/tiny/paper", {**PAPER, "runs": {"dp_cd": {"grid": grid}}})


@pytest.mark.long
def test_lanes_that_overflow(prepared, tally):
    """Lanes that overflow"""
    with_grid(prepared, passes=[2, 5], step=[0.1, 1e300], clip=[1.0, 1e300])
    for stage in ("tune", "evaluate"):
        done = prepared.run(stage)
        assert done.returncode == 0, done.stdout
    folder = prepared.folder / RESULT
    tuned = pd.read_parquet(folder / "tune.parquet")
    spread = tuned.groupby(["step", "clip"])["status"].agg(set).to_dict()
    assert spread[0.1, 1.0] == {"ok"} and spread[1e300, 1e300] == {"diverged"}
    assert len(tuned) == 2 * (10 + 3)  # what diverged is not tried again
    evaluated = pd.read_parquet(folder / "evaluate.parquet")
    assert set(evaluated["step"]) == {0.1} and set(evaluated["status"]) == {"ok"}
    tally(1, "a row each, diverged, never chosen")


@pytest.mark.long
def test_all_lanes_overflow(prepared, tally):
    """Every lane of a job overflows"""
    with_grid(prepared, passes=[2], step=[1e300], clip=[1e300])
    done = prepared.run("snakemake")
    assert done.returncode == 0, done.stdout
    log = (prepared.folder / "logs/solve/tiny/diabetes/dp_cd.log").read_text()
    assert "every setting of the grid diverged, or is not finite" in log
    evaluated = pd.read_parquet(prepared.folder / RESULT / "evaluate.parquet")
    assert evaluated["reason"].tolist() == ["every setting of the grid diverged"]
    shown = (prepared.folder / "figures/tiny/curves.svg").read_text()
    assert "every setting of" in shown
    tally(1, evaluated["reason"][0])
