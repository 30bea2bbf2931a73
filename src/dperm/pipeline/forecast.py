"""Costs of jobs, and ``dperm plan``: the time of a run on a number of cores, and why.

Costs are those recorded in an earlier run, else estimated from a job's size. A job's
log, ``logs/<job>.log``, ends with the CPU time of the job. Snakemake's benchmark next
to it is read only for the memory, because it samples the CPU time every 30 seconds.
``dperm plan --write`` stores both in ``results/costs.csv``, which also determines the
threads of a job. No row of any result depends on costs. Jobs are named as in the build
graph. Requests to a cluster are generous, and a profile with retries requests more at
every attempt.

The plan has the jobs of the build graph. They are placed as Snakemake places them:
whenever a job ends, the ready job of the highest priority that fits starts.
"""

from __future__ import annotations

import argparse
import atexit
import csv
import functools
import heapq
import math
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from os.path import normpath
from pathlib import Path
from typing import NamedTuple

from dperm.core.experiment import files as store
from dperm.core.experiment.locate import ConfigError, available
from dperm.core.experiment.validation import one_of
from dperm.core.names import hint
from dperm.pipeline.graph import STAGES, Graph, load_graph

START = 1.0  # CPU seconds until a stage begins its own work
GOAL = 45.0  # CPU seconds per thread: longer jobs get more threads
MOST = 16  # threads of a job; with more it would wait long for free cores
ALONE = 1024  # all cores: Snakemake limits this to those it has
APART = 8  # cores per run if several timed runs share a machine
PER_ROOT = 1.3e-4  # seconds per root of work: the larger X, the more lanes stop early
SMALL = 5.0  # largest estimate in seconds, by a job's stage, at a small scale
RESIDENT = 250.0  # MB of a stage's process
COPIES = 6  # of the arrays, while they are read, prepared and solved
COLUMNS = ("job", "cpu_seconds", "longest_seconds", "peak_mb")
SPENT = re.compile(r"^cost: ([0-9.]+) CPU seconds$", re.MULTILINE)
#: in the log of a job that reused earlier results: its cost is not the whole cost
REUSED = re.compile(r"(?<!\d)[1-9]\d* (?:lanes )?reused")

# Of a cluster:
BASE = 1000  # MB of an interpreter with its libraries, two workers and their lanes
NANOSECONDS = 4.0  # per lane and entry of X: about ten times the kernels' time
MINUTES = 10  # least time limit of a job
PASSES = 1000.0  # passes over the data that a job without lanes may take
SWEEP_MEMORY, SWEEP_MINUTES = 3000, 60  # several problems, or data made by the sweep

# Of the plan:
FOLDERS = ("figures/", "results/", "data/", "./")  # beginnings of files' names
CORES = (1, 2, 8, 32)
LISTED = 12  # jobs of the critical path, and of the longest
EFFICIENCY = 0.9  # of further threads
OVERHEAD = 0.2  # seconds that Snakemake takes per job
BEGIN = 8.0  # seconds until the first job runs
SNAKEMAKE = 300.0  # MB


# --- the costs of a job ---------------------------------------------------------------


class Cost(NamedTuple):
    """CPU seconds with the start, those of the longest serial part, and peak MB."""

    cpu: float
    longest: float = 0.0
    peak: float = RESIDENT
    is_recorded: bool = False


class Costs:
    """Costs of all jobs of a build graph.

    Parameters
    ----------
    known : dict
        Recorded costs by job; None reads ``results/costs.csv``.
    folder : str
        Folder of the data sets, whose sizes the estimates use.
    """

    def __init__(
        self,
        graph: Graph,
        known: dict[str, Cost] | None = None,
        folder: str = "data",
    ):
        self.graph, self.folder = graph, folder
        self.known = read_costs(costs_path(graph)) if known is None else known

    def of(self, job: str) -> Cost:
        """Cost of a job, recorded or estimated."""
        return self.known.get(job) or self._estimated(job)

    def threads(self, job: str) -> int:
        """Number of threads of a job, if there are enough cores."""
        if self.graph.jobs[job].alone:
            return ALONE
        if job.partition("/")[0] not in ("solve", "sweep"):
            return 8 if job == "audit/controls" else 1
        return min(MOST, max(1, math.ceil(self.of(job).cpu / GOAL)))

    def workers(self, job: str, threads: int) -> int:
        """Number of working threads of a job; a timed job uses only some, or one."""
        if self.threads(job) != ALONE:
            return threads
        return 1 if job.startswith("timing") else max(1, threads // APART)

    def _estimated(self, job: str) -> Cost:
        """Estimate by passes and entries for a solver, else by its stage's mean."""
        stage, _, _ = job.partition("/")
        if stage == "solve":
            n, p, nnz = self._size(job) or (0, 0, 0)
            work = (self.graph.jobs[job].work or 0.0) * max(n, p, nnz)
            arrays = COPIES * 8 * max(n + p, nnz) / 1e6
            return Cost(START + PER_ROOT * math.sqrt(work), peak=RESIDENT + arrays)
        known = [c.cpu for key, c in self.known.items() if key.startswith(f"{stage}/")]
        most = SMALL if self.graph.folder else math.inf
        each = sum(known) / len(known) if known else STAGES[stage].seconds
        return Cost(min(each, most))

    def megabytes(self, job: str, attempt: int = 1) -> int:
        """Memory in MB on a cluster; the least if a problem's data are missing."""
        size = self._size(job)
        if size is None:
            return attempt * SWEEP_MEMORY
        n, p, nnz = size
        return attempt * (BASE + COPIES * 8 * max(n + p, nnz) // 10**6)

    def minutes(self, job: str, attempt: int = 1) -> int:
        """Time limit in minutes on a cluster."""
        size = self._size(job)
        if size is None:
            return attempt * SWEEP_MINUTES
        work = self.graph.jobs[job].work
        passes = PASSES if work is None else work
        return attempt * (MINUTES + int(passes * max(size) * NANOSECONDS * 1e-9 / 60))

    def _size(self, job: str) -> tuple[int, int, int] | None:
        """n, p, stored entries; zeros if unknown, None for a job without a problem."""
        stage, *values = job.split("/")
        names = dict(zip(STAGES[stage].wildcards, values, strict=False))
        if "problem" not in names:
            return None
        # Imported here, as it is slow and a start that runs nothing does not need it.
        from dperm.core.experiment import schema
        from dperm.data.fetching import read_record

        dataset = self.graph.dataset_of[names["problem"]]
        record = read_record(dataset, schema.Data(dir=self.folder))
        if record is None or not record.available:
            return 0, 0, 0
        return record.n or 0, record.p or 0, record.nnz or 0


def costs_path(graph: Graph) -> Path:
    """File of the costs of a scale."""
    return Path(graph.below("results"), "costs.csv")


def read_costs(path: Path) -> dict[str, Cost]:
    """Costs in ``costs.csv``; empty if it is missing or damaged."""
    try:
        with open(path, newline="", encoding="utf-8") as lines:
            return {
                row["job"]: Cost(cpu, longest, peak, True)
                for row in csv.DictReader(lines)
                for cpu, longest, peak in [[float(row[key]) for key in COLUMNS[1:]]]
            }
    except (OSError, ValueError, KeyError, TypeError):
        return {}


@functools.cache
def note_cost_at_end() -> None:
    """Make the process print its cost, with that of its workers, when it ends."""
    atexit.register(
        lambda: print(f"cost: {sum(os.times()[:4]):.2f} CPU seconds", file=sys.stderr)
    )


def recorded(folder: Path) -> dict[str, Cost]:
    """Costs of the jobs that succeeded and reused nothing, from a folder of logs."""
    found = {}
    for path in sorted(folder.rglob("*.log")):
        text = path.read_text("utf-8", errors="replace")
        spent = SPENT.findall(text)
        if spent and not REUSED.search(text):
            job = str(path.relative_to(folder).with_suffix(""))
            peak = _memory(path.with_suffix(".tsv"))
            found[job] = Cost(float(spent[-1]), 0.0, peak, True)
    return found


def _memory(benchmark: Path) -> float:
    """Peak MB in the last line of a benchmark; ``RESIDENT`` if there is none."""
    try:
        with open(benchmark, newline="", encoding="utf-8") as lines:
            *_, last = csv.DictReader(lines, delimiter="\t")
        return float(last["max_rss"])
    except (OSError, ValueError, KeyError):  # "NA" for a job too short to be sampled
        return RESIDENT


# --- the plan -------------------------------------------------------------------------


class Task(NamedTuple):
    """A job of the graph with the jobs it waits for and its cost."""

    name: str
    after: tuple[str, ...]
    cost: Cost
    threads: int
    workers: int = 1

    @property
    def stage(self) -> str:
        """The stage, which is the rule of the job."""
        return self.name.partition("/")[0]

    def at(self, cores: int, costs: Costs) -> Task:
        """The job on a machine with that number of cores."""
        threads = min(self.threads, cores)
        return self._replace(threads=threads, workers=costs.workers(self.name, threads))

    @property
    def wall(self) -> float:
        """Seconds it takes with its workers."""
        work = max(self.cost.cpu - START, 0.0)
        shared = work if self.workers == 1 else work / (self.workers * EFFICIENCY)
        return START + max(shared, self.cost.longest) + OVERHEAD

    @property
    def memory(self) -> float:
        """Megabytes; the workers of a sweep are processes."""
        more = max(0, self.workers - 2) if self.stage == "sweep" else 0
        return self.cost.peak + more * RESIDENT


@dataclass(frozen=True)
class Plan:
    """The prediction for a number of cores."""

    cores: int
    wall: float
    path: list[Task]  # the critical path, first to last
    idle: float
    peak: float

    @property
    def critical(self) -> float:
        """Seconds of the critical path, which no number of cores could save."""
        return BEGIN + sum(job.wall for job in self.path)

    def row(self) -> dict[str, float]:
        """The row of ``results/plan.csv``."""
        return {
            "cores": self.cores,
            "wall_seconds": round(self.wall),
            "critical_path_seconds": round(self.critical),
            "idle_share": round(self.idle, 3),
            "peak_mb": round(self.peak),
        }


def tasks(graph: Graph, costs: Costs, ends: Sequence[str] = ()) -> dict[str, Task]:
    """All jobs of a run without earlier results, except for data that already exist.

    Each job follows those it waits for.

    Parameters
    ----------
    ends : sequence of str
        Files to make; empty for all papers of the graph and the report.

    Raises
    ------
    ConfigError
        For a file that no job makes, with the nearest.
    """
    everything = [
        file
        for name, job in graph.jobs.items()
        if name.startswith(("complete/", "report"))
        for file in job.outputs
    ]
    needed = set(graph.ancestors(ends or everything))
    jobs = {
        name: job
        for name, job in graph.jobs.items()
        if needed.intersection(job.outputs)
        and not (job.outputs[0].startswith("data/") and Path(job.outputs[0]).exists())
    }
    maker = {file: name for name, job in jobs.items() for file in job.outputs}
    after = {
        name: tuple(dict.fromkeys(maker[file] for file in job.inputs if file in maker))
        for name, job in jobs.items()
    }
    return {
        name: Task(name, after[name], costs.of(name), costs.threads(name))
        for name in jobs
    }


def plan(jobs: dict[str, Task], costs: Costs, cores: int) -> Plan:
    """Place the jobs on the given number of cores."""
    placed = {name: job.at(cores, costs) for name, job in jobs.items()}
    running: list[tuple[float, str]] = []
    waiting = dict(placed)
    done: set[str] = set()
    now, free, peak = BEGIN, cores, 0.0
    while waiting or running:
        for job in sorted(
            waiting.values(), key=lambda job: -STAGES[job.stage].priority
        ):
            if job.threads <= free and done.issuperset(job.after):
                free -= job.threads
                heapq.heappush(running, (now + job.wall, job.name))
                del waiting[job.name]
        peak = max(peak, sum(placed[name].memory for _, name in running))
        now, name = heapq.heappop(running)
        free += placed[name].threads
        done.add(name)
    busy = sum(job.cost.cpu for job in placed.values())
    idle = max(0.0, 1 - busy / (cores * now))
    return Plan(cores, now, _critical(placed), idle, peak + SNAKEMAKE)


def _critical(jobs: dict[str, Task]) -> list[Task]:
    """The longest chain of jobs; ``jobs`` must follow those they wait for."""
    ends: dict[str, float] = {}
    last: dict[str, str | None] = {}
    for name, job in jobs.items():
        last[name] = max(job.after, key=ends.__getitem__, default=None)
        before = last[name]
        ends[name] = job.wall + (ends[before] if before else 0.0)
    at: str | None = max(ends, key=ends.__getitem__, default=None)
    path = []
    while at is not None:
        path.append(jobs[at])
        at = last[at]
    return path[::-1]


# --- the command ----------------------------------------------------------------------


def main(options: argparse.Namespace) -> None:
    """Print the plan for a number of cores; with ``--write`` store costs and plans."""
    papers = available("paper")
    files = [normpath(word) for word in options.targets if word.startswith(FOLDERS)]
    named = [word for word in options.targets if not word.startswith(FOLDERS)]
    for name in named:
        one_of("dperm plan", name, [*papers, "all"])
    if options.write and (files or set(named) - {"all"}):
        raise ConfigError("dperm plan --write: expected no papers or files, but all")
    chosen = papers if files or "all" in named else named or papers
    graph = load_graph(chosen, [f"scale={options.scale}"])
    outputs = [file for job in graph.jobs.values() for file in job.outputs]
    for file in set(files).difference(outputs):
        raise ConfigError(
            f"dperm plan: {file}: expected a file that a run makes{hint(file, outputs)}"
        )
    logs = options.logs or Path("logs", graph.folder)
    known = costs_of(graph, logs)
    costs = Costs(graph, known)
    wanted = papers if "all" in named else named
    ends = files and files + [f for name in wanted for f in graph.targets()[name]]
    jobs = tasks(graph, costs, ends)
    plans = {
        cores: plan(jobs, costs, cores) for cores in sorted({*CORES, options.cores})
    }
    if options.write:
        write(graph, known, [plans[cores] for cores in CORES])
    rows = len(jobs) if files else LISTED
    print(
        "seconds are those of the machine that ran a job, as recorded in its log in "
        f"{logs}/, else in {costs_path(graph)}"
    )
    print(summary(jobs, [*plans.values()], plans[options.cores], rows))


def write(graph: Graph, known: dict[str, Cost], plans: list[Plan]) -> None:
    """Store costs and plans below results/, where the Snakefile reads the costs."""
    import pandas as pd  # imported here, as most starts do not need it

    rows = [
        (job, round(cost.cpu, 2), round(cost.longest, 2), round(cost.peak))
        for job, cost in sorted(known.items())
    ]
    costs, kept = pd.DataFrame(rows, columns=COLUMNS), [each.row() for each in plans]
    path = costs_path(graph)
    store.write_text(path, costs.to_csv(index=False))
    store.write_text(path.with_name("plan.csv"), pd.DataFrame(kept).to_csv(index=False))


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``dperm plan``."""
    parser.add_argument(
        "targets", nargs="*", help="papers or files of theirs; all papers by default"
    )
    parser.add_argument("-j", "--cores", type=int, default=2, help="cores; default 2")
    parser.add_argument("--scale", default="full", help="full, quickstart or smoke")
    parser.add_argument("--logs", type=Path, help="of an earlier run, instead of logs/")
    parser.add_argument(
        "--write",
        action="store_true",
        help="keep plan.csv and costs.csv in results/, by which jobs get threads",
    )


def costs_of(graph: Graph, logs: Path) -> dict[str, Cost]:
    """Recorded costs of earlier runs, with the longest parts of sweeps."""
    known = Costs(graph).known | recorded(logs)
    costs = dict(known)
    for job, cost in known.items():
        if job.startswith("sweep/"):
            longest = _longest(graph, job) or cost.longest
            costs[job] = cost._replace(longest=min(longest, cost.cpu))
    return costs


def _longest(graph: Graph, job: str) -> float:
    """Seconds of a sweep's longest point and replicate; 0 if it has no rows yet."""
    path = Path(STAGES["sweep"].files(graph.below("results"), *job.split("/")[1:])[0])
    if not path.is_file():
        return 0.0
    rows = store.read_table(path)
    return float(rows.groupby("config_digest")["seconds"].sum().max())


def summary(
    jobs: dict[str, Task], plans: list[Plan], chosen: Plan, rows: int = LISTED
) -> str:
    """The plan in words and numbers, with the ``rows`` most expensive jobs."""
    from tabulate import tabulate

    known = sum(job.cost.is_recorded for job in jobs.values())
    cpu = sum(job.cost.cpu for job in jobs.values())
    longest = sorted(jobs.values(), key=lambda job: -job.cost.cpu)[:rows]
    path = sorted(chosen.path, key=lambda job: -job.wall)[:LISTED]
    shown = [job for job in chosen.path if job in path]
    return "\n\n".join(
        [
            f"{len(jobs)} jobs, {cpu:.0f} CPU seconds; {known} recorded, "
            f"{len(jobs) - known} estimated",
            tabulate([each.row() for each in plans], "keys", "pipe"),
            f"critical path on {chosen.cores} cores, {chosen.critical:.0f} seconds:\n"
            + "\n".join(
                f"{job.wall:8.1f} s on {job.threads:2d}  {job.name}" for job in shown
            ),
            "most work:\n"
            + "\n".join(f"{job.cost.cpu:8.1f} CPU s  {job.name}" for job in longest),
        ]
    )
