"""How long a run takes on so many cores, simulated from what its jobs cost.

``python -m bench.schedule`` reads ``results/manifest.json`` and prints the minutes of
``all`` and the share of the cores that is busy.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tabulate import tabulate

from dperm.config.locate import available
from dperm.workflow import workflow
from dperm.workflow.jobs import Jobs, compose

CORES = (1, 2, 4, 8, 16, 32, 64)
SHARED = 0.9  # of a thread's time is work where several share a job
SPLIT = ("solve", "sweep")  # stages that use several threads
BEFORE = 6.0  # seconds of Snakemake and of the server before the first job
MANIFEST = Path("results/manifest.json")


class Task(NamedTuple):
    """A job as the scheduler sees it."""

    waits_for: frozenset[str]
    threads: int
    priority: float
    cpu_seconds: float
    longest_seconds: float  #: of a part that is not split
    working: int  #: threads that work, of those that it takes
    is_split: bool

    def wall_seconds(self, cores: int) -> float:
        """Seconds by the clock on so many cores."""
        working = min(self.working, cores)
        if not self.is_split or working <= 1:
            return self.cpu_seconds
        return max(self.longest_seconds, self.cpu_seconds / working / SHARED)


def tasks(
    jobs: Jobs, costs: Mapping[str, Mapping[str, float]]
) -> dict[str, Task]:
    """All jobs with what they cost in a run; a job without a cost takes no time."""
    maker = {
        file: name for name, job in jobs.jobs.items() for file in job.outputs
    }
    found = {}
    for name, job in jobs.jobs.items():
        stage = name.partition("/")[0]
        cost = costs.get(name, {})
        threads = workflow.wanted(jobs, name)
        found[name] = Task(
            frozenset(maker[file] for file in job.inputs),
            threads,
            workflow.priority(jobs, name),
            cost.get("cpu_seconds", 0.0),
            cost.get("longest_seconds", 0.0),
            workflow.workers(job, stage, threads),
            stage in SPLIT,
        )
    return found


def simulate(jobs: Mapping[str, Task], cores: int) -> float:
    """Seconds of a run: whenever a job ends, ready ones begin by priority, as fit."""
    missing = {name: set(task.waits_for) for name, task in jobs.items()}
    ready = [name for name, before in missing.items() if not before]
    free, clock = cores, BEFORE
    running: list[tuple[float, str, int]] = []
    while ready or running:
        ready.sort(
            key=lambda name: (-jobs[name].priority, -jobs[name].cpu_seconds)
        )
        waiting = []
        for name in ready:
            taken = min(jobs[name].threads, cores)
            if taken > free:
                waiting.append(name)
                continue
            free -= taken
            end = clock + jobs[name].wall_seconds(taken)
            heapq.heappush(running, (end, name, taken))
        ready = waiting
        clock, ended, taken = heapq.heappop(running)
        free += taken
        for name, before in missing.items():
            if ended in before:
                before.remove(ended)
                if not before:
                    ready.append(name)
    return clock


def table(
    costs: Mapping[str, Mapping[str, float]],
) -> list[tuple[int, float, float]]:
    """Cores, minutes of ``all`` and the share of the cores that is busy."""
    jobs = compose(available("paper"), ["scale=full"])
    jobs.costs = {name: dict(cost) for name, cost in costs.items()}
    rows = []
    for cores in CORES:
        jobs.cores = cores
        known = tasks(jobs, costs)
        total = sum(task.cpu_seconds for task in known.values())
        seconds = simulate(known, cores)
        rows.append((cores, seconds / 60, total / seconds / cores))
    return rows


if __name__ == "__main__":
    recorded = json.loads(MANIFEST.read_text(encoding="utf-8")).get("jobs", {})
    print(
        tabulate(table(recorded), ("cores", "minutes", "busy"), floatfmt=".3g")
    )
