"""What a job costs: as recorded of an earlier run, else estimated from its size.

Snakemake's benchmarks lie in ``logs/<job>.tsv``; ``dperm plan`` keeps what they say in
``results/costs.csv``, from which the threads of a job follow too. No row of any result
depends on them. A job is named as its log: ``solve/<paper>/<problem>/<solver>``,
``sweep/<paper>/<name>``, ``draw/<paper>/<first of several>``, ``prepare/<problem>``.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dperm.pipeline.jobs import RunTable

START = 1.0  # CPU seconds until a stage begins its own work
GOAL = 45.0  # CPU seconds of a thread: what takes longer gets more threads
MOST = 16  # threads of a job; more would wait long for so many to be free
ALONE = 1024  # all there are: Snakemake gives no more than it has
APART = 8  # cores that a run has to itself where many are timed side by side
PER_ENTRY = 0.2e-9  # seconds a pass, a lane and an entry; many lanes cannot win
PER_TASK, PER_SMALL_TASK = 2.0, 0.3  # seconds of a sweep's point and replicate
RESIDENT = 250.0  # MB of a stage
COPIES = 6  # of the arrays, while they are read and solved
FIXED = {  # seconds where nothing is recorded
    "fetch": 3.0, "prepare": 2.0, "optimum": 4.0, "timing": 60.0, "draw": 6.0,
    "audit": 30.0, "complete": 2.5, "claims": 10.0, "report": 15.0,
}  # fmt: skip
PRIORITY = {  # what many wait for first, sweeps and drawing among them, then the rest
    "timing": 40, "fetch": 30, "prepare": 30, "optimum": 30, "solve": 20, "sweep": 10,
}  # fmt: skip
COLUMNS = ("job", "cpu_seconds", "longest_seconds", "peak_mb")
# Where tune and evaluate, or figures and tables, were jobs of their own.
EARLIER = (
    (re.compile(r"(?:tune|evaluate)/(.+)/(?:tune|evaluate)"), r"solve/\1"),
    (re.compile(r"sweep/([^/]+)/sweeps/([^/]+)"), r"sweep/\1/\2"),
)


class Cost(NamedTuple):
    """CPU seconds with the start, those of the longest part that is not cut, and MB."""

    cpu: float
    longest: float = 0.0
    peak: float = RESIDENT
    is_recorded: bool = False


class Costs:
    """Costs of all jobs of a run table.

    Parameters
    ----------
    table : RunTable
    known : dict
        What is recorded, by job; None: what ``results/costs.csv`` says.
    folder : str
        Where the data sets lie, whose sizes estimates are made of.
    """

    def __init__(
        self,
        table: RunTable,
        known: dict[str, Cost] | None = None,
        folder: str = "data",
    ):
        self.table, self.folder = table, folder
        self.known = kept(path_of(table)) if known is None else known

    def of(self, job: str) -> Cost:
        """What a job costs."""
        return self.known.get(job) or self._estimated(job)

    def threads(self, job: str) -> int:
        """How many threads a job is given, where there are so many."""
        stage, _, name = job.partition("/")
        paper, _, rest = name.partition("/")
        if stage == "timing" or (
            stage == "sweep" and rest in self.table.papers[paper].alone
        ):
            return ALONE
        if stage not in ("solve", "sweep"):
            return 8 if job == "audit/controls" else 1
        return min(MOST, max(1, math.ceil(self.of(job).cpu / GOAL)))

    def workers(self, job: str, threads: int) -> int:
        """How many of a job's threads work: one where it is timed, or a few apart."""
        if self.threads(job) != ALONE:
            return threads
        return 1 if job.startswith("timing") else max(1, threads // APART)

    def _estimated(self, job: str) -> Cost:
        stage, _, name = job.partition("/")
        if stage == "solve":
            n, p, nnz = size(self.table, name.split("/")[1], self.folder)
            seconds = self.table.work.get(name, 0.0) * max(n, p, nnz) * PER_ENTRY
            arrays = COPIES * 8 * max(n + p, nnz) / 1e6
            return Cost(START + seconds, peak=RESIDENT + arrays)
        if stage == "sweep":
            tasks = self.table.work.get(name.replace("/", "/sweeps/", 1), 1.0)
            each = PER_SMALL_TASK if self.table.folder else PER_TASK
            return Cost(START + tasks * each)
        seconds = FIXED.get(stage, START)
        return Cost(min(seconds, 5.0) if self.table.folder else seconds)


def size(table: RunTable, problem: str, folder: str) -> tuple[int, int, int]:
    """n, p and stored entries of the problem's data set; zeros where unknown."""
    # Brings arrays and readers, which a start that runs nothing need not wait for.
    from dperm import schema
    from dperm.data.fetching import read_record

    record = read_record(table.dataset_of[problem], schema.Data(dir=folder))
    if record is None or not record.available:
        return 0, 0, 0
    n, p, nnz = record.n or 0, record.p or 0, record.nnz or 0
    return n, p, nnz


def path_of(table: RunTable) -> Path:
    """Where the costs of a scale are kept."""
    return Path(table.below("results"), "costs.csv")


def kept(path: Path) -> dict[str, Cost]:
    """What ``costs.csv`` says; nothing if there is none, or it is damaged."""
    try:
        with open(path, newline="", encoding="utf-8") as lines:
            return {row["job"]: _of(row) for row in csv.DictReader(lines)}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _of(row: dict[str, str]) -> Cost:
    cpu, longest, peak = (float(row[key]) for key in COLUMNS[1:])
    return Cost(cpu, longest, peak, True)


def recorded(folder: Path) -> dict[str, Cost]:
    """What the benchmarks below a folder of logs say, by job."""
    found: dict[str, Cost] = {}
    earlier: dict[str, Cost] = {}
    for path in sorted(folder.rglob("*.tsv")):
        name = str(path.relative_to(folder).with_suffix(""))
        job = _renamed(name)
        for cost in _benchmark(path):
            if job == name:
                found[job] = cost
            else:
                before = earlier.get(job, Cost(0.0, peak=0.0))
                peak = max(before.peak, cost.peak)
                earlier[job] = Cost(before.cpu + cost.cpu, 0.0, peak, True)
    return earlier | found


def _renamed(name: str) -> str:
    for pattern, job in EARLIER:
        name = pattern.sub(job, name)
    return name


def _benchmark(path: Path) -> Iterator[Cost]:
    """The last line of a benchmark: load is sampled, and lasted until the end."""
    try:
        with open(path, newline="", encoding="utf-8") as lines:
            *_, last = csv.DictReader(lines, delimiter="\t")
        cpu = float(last["s"]) * float(last["mean_load"]) / 100
        cpu = max(cpu, float(last["cpu_time"]))
        yield Cost(cpu, 0.0, float(last["max_rss"]), True)
    except (OSError, ValueError, KeyError):  # too short to be sampled: "NA"
        return
