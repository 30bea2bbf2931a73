"""Snakemake waits quietly while jobs run."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = """
from snakemake import cli
from snakemake.scheduling import job_scheduler

made = []
known = job_scheduler.JobScheduler._schedule_reevalutation
job_scheduler.JobScheduler._schedule_reevalutation = lambda *given: made.append(given)
try:
    cli.main()
finally:
    print("timers:", len(made))
"""


@pytest.mark.long
def test_no_job_leaves_a_timer(tmp_path):
    command = ["-s", str(ROOT / "Snakefile"), "--directory", str(tmp_path), "-q", "all",
               "-j", "1", "data/prepared/diabetes/meta.json"]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *command, "--config", "scale=smoke"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert "timers: 0" in done.stdout
