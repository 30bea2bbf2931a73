"""Snakemake waits quietly while jobs run."""

from pathlib import Path

import pytest

from commands import python

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
    words = ("-s", ROOT / "Snakefile", "--directory", tmp_path, "-q", "all", "-j", "1",
             "data/prepared/diabetes/meta.json", "--config", "scale=smoke")  # fmt: skip
    done = python("-c", SCRIPT, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "timers: 0" in done.stdout
