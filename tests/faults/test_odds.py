"""Two pipelines at once, a clock that jumps, lanes that overflow."""

import os
import signal
import time

import pandas as pd
import pytest

from faults.tiny import PAPER, same_rows

RESULT = "results/tiny/diabetes/dp_cd"
# Every process of the run imports it: the time of day leaps by hours at every look.
LEAPS = """
import random
import time

_true = time.time
time.time = lambda: _true() + random.choice((-90000.0, 0.0, 7200.0, 4e6))
"""


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


def test_two_stages(prepared, undisturbed, tally):
    """The same stage started twice at once"""
    first = prepared.start("tune")
    second = prepared.run("tune")
    assert first.wait(300) == 0 and second.returncode == 0
    same_rows(prepared, undisturbed, RESULT, some=True)
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
    assert len(tuned) == 2 * 10 * 4
    evaluated = pd.read_parquet(folder / "evaluate.parquet")
    assert set(evaluated["step"]) == {0.1} and set(evaluated["status"]) == {"ok"}
    tally(1, "a row each, diverged, never chosen")


@pytest.mark.long
def test_all_lanes_overflow(prepared, tally):
    """Every lane of a job overflows"""
    with_grid(prepared, passes=[2], step=[1e300], clip=[1e300])
    done = prepared.run("snakemake")
    assert done.returncode == 0, done.stdout
    assert "dp_cd: every setting of the grid diverged, or is not finite" in done.stdout
    evaluated = pd.read_parquet(prepared.folder / RESULT / "evaluate.parquet")
    assert evaluated["reason"].tolist() == ["every setting of the grid diverged"]
    shown = (prepared.folder / "figures/tiny/curves.svg").read_text()
    assert "every setting of" in shown
    tally(1, evaluated["reason"][0])
