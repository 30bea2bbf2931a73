"""What a job asks of a cluster: memory and time, from the size of its problem.

Estimates on the safe side; a profile that retries asks for more at every attempt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dperm.pipeline.costs import size
from dperm.pipeline.jobs import RunTable

BASE = 1000  # MB of an interpreter with its libraries, two workers and their lanes
COPIES = 6  # of the arrays, while they are read, prepared and solved
NANOSECONDS = 4.0  # of a lane at one entry of X: about ten times what kernels need
START = 10  # minutes that any job gets
SWEEP_MEMORY, SWEEP_MINUTES = 3000, 60  # several problems, or data made on the way


def asked(table: RunTable) -> tuple[Callable[..., int], Callable[..., int]]:
    """Functions of a job's wildcards and its attempt: megabytes, minutes."""

    def megabytes(names: Any, attempt: int) -> int:
        problem = getattr(names, "problem", None)
        return attempt * (memory(table, problem) if problem else SWEEP_MEMORY)

    def time(names: Any, attempt: int) -> int:
        problem = getattr(names, "problem", None)
        job = "/".join(names)
        return attempt * (minutes(table, problem, job) if problem else SWEEP_MINUTES)

    return megabytes, time


def memory(table: RunTable, problem: str, folder: str = "data") -> int:
    """Megabytes for a job on a problem; the least if its data are not there yet."""
    n, p, nnz = size(table, problem, folder)
    return BASE + COPIES * 8 * max(n + p, nnz) // 10**6


def minutes(table: RunTable, problem: str, job: str = "", folder: str = "data") -> int:
    """Minutes for a job; ``job`` is ``paper/problem/solver`` where there are lanes."""
    entries = max(size(table, problem, folder))
    seconds = table.work.get(job, 1000.0) * entries * NANOSECONDS * 1e-9
    return START + int(seconds / 60)
