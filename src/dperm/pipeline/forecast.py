"""What a job costs, and ``dperm plan``: how long a run takes on so many cores, and why.

Costs are recorded of an earlier run, else estimated from a job's size. A job ends its
log, ``logs/<job>.log``, with the CPU time it took; Snakemake's benchmark beside it is
read for the memory alone, because it samples the CPU time every 30 seconds. ``dperm
plan --write`` keeps both in ``results/costs.csv``, from which the threads of a job
follow too. No row of any result depends on them. A job is named as in the build graph.
What a job asks of a cluster is on the safe side; a profile that retries asks for more
every time.

The plan has the jobs of the build graph. They are placed as Snakemake places them:
whenever a job ends, the ready one of the highest priority that fits.
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
from dperm.core.experiment.locate import ConfigError, available, hint
from dperm.core.experiment.validation import one_of
from dperm.pipeline.graph import STAGES, Graph, load_graph

START = 1.0  # CPU seconds until a stage begins its own work
GOAL = 45.0  # CPU seconds of a thread: what takes longer gets more threads
MOST = 16  # threads of a job; more would wait long for so many to be free
ALONE = 1024  # all there are: Snakemake gives no more than it has
APART = 8  # cores that a run has to itself where many are timed side by side
PER_ROOT = 1.3e-4  # seconds: of lanes of many entries more cannot win, and stop
SMALL = 5.0  # seconds at most of what is estimated by its stage at a small scale
RESIDENT = 250.0  # MB of a stage
COPIES = 6  # of the arrays, while they are read, prepared and solved
COLUMNS = ("job", "cpu_seconds", "longest_seconds", "peak_mb")
SPENT = re.compile(r"^cost: ([0-9.]+) CPU seconds$", re.MULTILINE)
#: what the log of a job that was run in parts says: its cost is no whole one
REUSED = re.compile(r"(?<!\d)[1-9]\d* (?:lanes )?reused")

# Of a cluster:
BASE = 1000  # MB of an interpreter with its libraries, two workers and their lanes
NANOSECONDS = 4.0  # of a lane at one entry of X: about ten times what kernels need
MINUTES = 10  # that any job gets
PASSES = 1000.0  # of the data, that a job with no lanes may take
SWEEP_MEMORY, SWEEP_MINUTES = 3000, 60  # several problems, or data made on the way

# Of the plan:
FOLDERS = ("figures/", "results/", "data/", "./")  # what names of files begin with
CORES = (1, 2, 8, 32)
LISTED = 12  # jobs of the critical path, and of the longest
EFFICIENCY = 0.9  # of further threads
OVERHEAD = 0.2  # seconds of Snakemake's for a job
BEGIN = 8.0  # seconds until the first job runs
SNAKEMAKE = 300.0  # MB


# --- what a job costs -----------------------------------------------------------------


class Cost(NamedTuple):
    """CPU seconds with the start, those of the longest part that is not cut, and MB."""

    cpu: float
    longest: float = 0.0
    peak: float = RESIDENT
    is_recorded: bool = False


class Costs:
    """Costs of all jobs of a build graph.

    Parameters
    ----------
    known : dict
        What is recorded, by job; None: what ``results/costs.csv`` says.
    folder : str
        Where the data sets lie, whose sizes estimates are made of.
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
        """What a job costs."""
        return self.known.get(job) or self._estimated(job)

    def threads(self, job: str) -> int:
        """How many threads a job is given, where there are so many."""
        if self.graph.jobs[job].alone:
            return ALONE
        if job.partition("/")[0] not in ("solve", "sweep"):
            return 8 if job == "audit/controls" else 1
        return min(MOST, max(1, math.ceil(self.of(job).cpu / GOAL)))

    def workers(self, job: str, threads: int) -> int:
        """How many of a job's threads work: one where it is timed, or a few apart."""
        if self.threads(job) != ALONE:
            return threads
        return 1 if job.startswith("timing") else max(1, threads // APART)

    def _estimated(self, job: str) -> Cost:
        """By passes and entries a solver's, else the mean of its stage's records."""
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
        """Memory on a cluster; the least if a problem's data are not there yet."""
        size = self._size(job)
        if size is None:
            return attempt * SWEEP_MEMORY
        n, p, nnz = size
        return attempt * (BASE + COPIES * 8 * max(n + p, nnz) // 10**6)

    def minutes(self, job: str, attempt: int = 1) -> int:
        """Minutes on a cluster."""
        size = self._size(job)
        if size is None:
            return attempt * SWEEP_MINUTES
        work = self.graph.jobs[job].work
        passes = PASSES if work is None else work
        return attempt * (MINUTES + int(passes * max(size) * NANOSECONDS * 1e-9 / 60))

    def _size(self, job: str) -> tuple[int, int, int] | None:
        """n, p, stored entries; zeros while unknown, None of a job of many problems."""
        stage, *values = job.split("/")
        names = dict(zip(STAGES[stage].wildcards, values, strict=False))
        if "problem" not in names:
            return None
        # Brings arrays and readers, which a start that runs nothing need not wait for.
        from dperm.core.experiment import schema
        from dperm.data.fetching import read_record

        dataset = self.graph.dataset_of[names["problem"]]
        record = read_record(dataset, schema.Data(dir=self.folder))
        if record is None or not record.available:
            return 0, 0, 0
        return record.n or 0, record.p or 0, record.nnz or 0


def costs_path(graph: Graph) -> Path:
    """Where the costs of a scale are kept."""
    return Path(graph.below("results"), "costs.csv")


def read_costs(path: Path) -> dict[str, Cost]:
    """What ``costs.csv`` says; nothing if there is none, or it is damaged."""
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
    """Have the process print its cost when it ends, its workers having ended."""
    atexit.register(
        lambda: print(f"cost: {sum(os.times()[:4]):.2f} CPU seconds", file=sys.stderr)
    )


def recorded(folder: Path) -> dict[str, Cost]:
    """What the jobs cost that ended well and in one part, from a folder of logs."""
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
    """Peak MB by the last line of a benchmark; that of a stage where it says none."""
    try:
        with open(benchmark, newline="", encoding="utf-8") as lines:
            *_, last = csv.DictReader(lines, delimiter="\t")
        return float(last["max_rss"])
    except (OSError, ValueError, KeyError):  # too short to be sampled: "NA"
        return RESIDENT


# --- the plan -------------------------------------------------------------------------


class Task(NamedTuple):
    """A job of the graph: what it waits for, and what it costs."""

    name: str
    after: tuple[str, ...]
    cost: Cost
    threads: int
    workers: int = 1

    @property
    def stage(self) -> str:
        """The rule."""
        return self.name.partition("/")[0]

    def at(self, cores: int, costs: Costs) -> Task:
        """The job where there are no more cores than that."""
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
    """What is predicted for a number of cores."""

    cores: int
    wall: float
    path: list[Task]  # the critical one, first to last
    idle: float
    peak: float

    @property
    def critical(self) -> float:
        """Seconds that no number of cores could save."""
        return BEGIN + sum(job.wall for job in self.path)

    def row(self) -> dict[str, float]:
        """As in ``results/plan.csv``."""
        return {
            "cores": self.cores,
            "wall_seconds": round(self.wall),
            "critical_path_seconds": round(self.critical),
            "idle_share": round(self.idle, 3),
            "peak_mb": round(self.peak),
        }


def tasks(graph: Graph, costs: Costs, ends: Sequence[str] = ()) -> dict[str, Task]:
    """Jobs from empty results, each after those it waits for; data may be there.

    Parameters
    ----------
    ends : sequence of str
        Files to make; none: all papers of the graph, and the report.

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
    """Place the jobs on so many cores."""
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
    """The chain of jobs that takes longest; jobs stand after those they wait for."""
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
    """Print the plan for a number of cores; with ``--write`` keep costs and plans."""
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
    known = costs_of(graph, options.logs or Path("logs", graph.folder))
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
    print(summary(jobs, [*plans.values()], plans[options.cores], rows))


def write(graph: Graph, known: dict[str, Cost], plans: list[Plan]) -> None:
    """Keep costs and plans below results/, where the Snakefile reads the costs."""
    import pandas as pd  # which a start need not wait for

    rows = [
        (job, round(cost.cpu, 2), round(cost.longest, 2), round(cost.peak))
        for job, cost in sorted(known.items())
    ]
    costs, kept = pd.DataFrame(rows, columns=COLUMNS), [each.row() for each in plans]
    path = costs_path(graph)
    store.write_text(path, costs.to_csv(index=False))
    store.write_text(path.with_name("plan.csv"), pd.DataFrame(kept).to_csv(index=False))


def arguments(parser: argparse.ArgumentParser) -> None:
    """What follows ``dperm plan``."""
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
    """What is recorded of earlier runs, the longest part of a sweep with it."""
    known = Costs(graph).known | recorded(logs)
    costs = dict(known)
    for job, cost in known.items():
        if job.startswith("sweep/"):
            longest = _longest(graph, job) or cost.longest
            costs[job] = cost._replace(longest=min(longest, cost.cpu))
    return costs


def _longest(graph: Graph, job: str) -> float:
    """Seconds of a sweep's longest point and replicate; 0 if its rows are not there."""
    path = Path(STAGES["sweep"].files(graph.below("results"), *job.split("/")[1:])[0])
    if not path.is_file():
        return 0.0
    rows = store.read_table(path)
    return float(rows.groupby("config_digest")["seconds"].sum().max())


def summary(
    jobs: dict[str, Task], plans: list[Plan], chosen: Plan, rows: int = LISTED
) -> str:
    """The plan in words and numbers, with the so many jobs that cost most."""
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
