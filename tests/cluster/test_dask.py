"""A real Dask cluster of this machine: scheduler and two worker processes."""

import os
import re
import subprocess
import sys
import time

import pytest

from faults.tiny import Project, counted, same_rows

pytest.importorskip("distributed")


@pytest.fixture
def scheduler(tmp_path_factory):
    """Address of a scheduler with two workers, all started in a folder of their own."""
    folder = tmp_path_factory.mktemp("dask")
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker"]
    log = folder / "scheduler.log"
    running = []

    def start(command, log):
        with open(log, "w") as out:
            running.append(
                subprocess.Popen(
                    command, cwd=folder, stdout=out, stderr=out, env=os.environ
                )
            )

    def wait(log, words):
        deadline = time.monotonic() + 120
        while not (found := re.search(words, log.read_text())):
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        return found

    options = ["--no-dashboard", "--host", "127.0.0.1"]
    start([*dask, *options, "--port", "0"], log)
    address = wait(log, r"Scheduler at:\s+(tcp://\S+)")[1]
    try:
        for number in range(2):
            start([*worker, address, *options, "--nthreads", "2", "--no-nanny"],
                  folder / f"worker{number}.log")  # fmt: skip
        for _ in range(2):
            wait(log, r"(?s)(Register worker.*){2}")
        yield address
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait(30)


def on(address: str) -> tuple[str, str]:
    return "parallel.backend=dask", f"parallel.scheduler={address}"


def test_rows_are_those_of_a_local_run(scheduler, prepared, undisturbed, tally):
    """Dask, two workers: a grid"""
    done = prepared.run("tune", *on(scheduler))
    assert done.returncode == 0, done.stdout
    assert counted(done.stdout)["reused"] == 0
    assert sum(counted(done.stdout).values()) == 2000
    same_rows(prepared, undisturbed, "results/tiny/diabetes/dp_cd", some=True)
    tally(1, done.stdout.splitlines()[-1])


@pytest.mark.long
def test_a_sweep_has_the_same_rows(scheduler, project, tmp_path_factory, tally):
    """Dask, two workers: a sweep"""
    local = Project(tmp_path_factory.mktemp("local")).with_sweep()
    assert local.run("sweep", "workers=2").returncode == 0
    done = project.with_sweep().run("sweep", *on(scheduler))
    assert done.returncode == 0, done.stdout
    same_rows(project, local)
    tally(1, "the rows of a local run")


@pytest.mark.long
def test_a_scheduler_that_is_not_there(prepared, tally):
    """Dask, a scheduler that is not there"""
    done = prepared.run("tune", *on("tcp://127.0.0.1:9"), time=120)
    assert done.returncode == 1
    said = done.stdout.strip().splitlines()[-1]
    assert said.startswith("OSError: Timed out trying")
    done = prepared.run("tune", "parallel.backend=dask")
    assert done.returncode == 1 and "parallel.scheduler: expected" in done.stdout
    tally(1, said)
