"""Threads of a job, and the memory and time that it requests of a cluster.

All follow from the job's stage, the passes of its lanes and the size of its data set.
No row of any result depends on them. Requests are generous, and a profile with retries
requests more at every attempt. Snakemake's benchmark files, ``logs/<job>.tsv``, say
what a job took.
"""

from __future__ import annotations

import math

from dperm.core.experiment import schema
from dperm.data.fetching import read_record
from dperm.pipeline.jobs import STAGES, Job, Jobs

MOST = 16  # threads of a job; with more it would wait long for free cores
ALONE = 1024  # all cores: Snakemake limits this to those it has
APART = 8  # cores per run if several timed runs share a machine
SWEEP_THREADS = 4
# Roots of passes times entries that a thread takes in about 45 seconds. The time grows
# with the root, because the larger X is, the more lanes stop early.
ROOTS = 3.5e5
COPIES = 6  # of the arrays, while they are read, prepared and solved
BASE = 2000  # MB of an interpreter, its workers and several problems of a sweep
MINUTES = 60  # least time limit of a job
NANOSECONDS = 4.0  # per lane and entry of X: about ten times the kernels' time


def threads(jobs: Jobs, stage: str, *values: str) -> int:
    """Number of threads of a job, if there are enough cores."""
    job = jobs.job(stage, *values)
    if job.alone:
        return ALONE
    if stage == "sweep":
        return SWEEP_THREADS
    roots = math.sqrt(job.work * _entries(jobs, stage, *values))
    return min(MOST, max(1, math.ceil(roots / ROOTS)))


def workers(job: Job, stage: str, threads: int) -> int:
    """Number of working threads of a job; a timed job uses only some, or one."""
    if not job.alone:
        return threads
    return 1 if stage == "timing" else max(1, threads // APART)


def megabytes(jobs: Jobs, attempt: int, stage: str, *values: str) -> int:
    """Memory in MB on a cluster, for an attempt counted from 1."""
    return attempt * (BASE + COPIES * 8 * _entries(jobs, stage, *values) // 10**6)


def minutes(jobs: Jobs, attempt: int, stage: str, *values: str) -> int:
    """Time limit in minutes on a cluster, for an attempt counted from 1."""
    passed = jobs.job(stage, *values).work * _entries(jobs, stage, *values)
    return attempt * (MINUTES + int(passed * NANOSECONDS * 1e-9 / 60))


def _entries(jobs: Jobs, stage: str, *values: str) -> int:
    """Stored entries of the job's data set; 0 while unknown, or without a problem."""
    names = dict(zip(STAGES[stage].wildcards, values, strict=False))
    if "problem" not in names:
        return 0
    record = read_record(jobs.dataset_of[names["problem"]], schema.Data())
    return (record.nnz or 0) if record is not None and record.available else 0
