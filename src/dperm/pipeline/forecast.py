"""``dperm plan``: how long a run of the papers takes on so many cores, and why.

Jobs, what they wait for, their threads and priorities are the Snakefile's; what they
cost is recorded of earlier runs or estimated (``costs``). They are placed as Snakemake
places them: whenever a job ends, the ready one of the highest priority that fits.
"""

from __future__ import annotations

import argparse
import csv
import heapq
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dperm.locate import available
from dperm.pipeline import kept
from dperm.pipeline.costs import (
    COLUMNS,
    PRIORITY,
    RESIDENT,
    START,
    Cost,
    Costs,
    path_of,
    recorded,
)
from dperm.pipeline.jobs import RunTable
from dperm.store import files as store
from dperm.validation import one_of

CORES = (1, 2, 8, 32)
SHOWN = 12  # jobs of the critical path, and of the longest
EFFICIENCY = 0.9  # of further threads
OVERHEAD = 0.2  # seconds of Snakemake's for a job
BEGIN = 8.0  # seconds until the first job runs
SNAKEMAKE = 300.0  # MB


class Job(NamedTuple):
    """A job of the Snakefile: what it waits for, and what it costs."""

    name: str
    after: tuple[str, ...]
    cost: Cost
    threads: int
    workers: int = 1

    @property
    def stage(self) -> str:
        """The rule."""
        return self.name.partition("/")[0]

    def at(self, cores: int, costs: Costs) -> Job:
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
    path: list[Job]  # the critical one, first to last
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


# --- the jobs -------------------------------------------------------------------------


def graph(table: RunTable, costs: Costs) -> dict[str, Job]:
    """All jobs from empty results, each after those it waits for; data may be there."""
    made: dict[str, str] = {}
    waits: dict[str, list[str]] = {}
    for name, before, files in _rules(table):
        waits[name] = before
        made |= dict.fromkeys(files, name)
    after = {
        name: tuple(dict.fromkeys(made[file] for file in before if file in made))
        for name, before in waits.items()
    }
    needed = _needed(after)
    return {
        name: Job(name, before, costs.of(name), costs.threads(name))
        for name, before in after.items()
        if name in needed
    }


def _needed(after: dict[str, tuple[str, ...]]) -> set[str]:
    """The jobs that a paper's completeness or the report waits for."""
    found, left = set[str](), [name for name in after if _is_asked(name)]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += after[name]
    return found


def _is_asked(name: str) -> bool:
    return name.partition("/")[0] in ("complete", "report")


def _rules(table: RunTable) -> Iterator[tuple[str, list[str], list[str]]]:
    """Jobs with the files they read and those they make, in order."""
    yield from _data(table)
    for paper in table.papers:
        yield from _of_paper(table, paper)
    below, papers = table.below("results"), table.papers
    every = [file for paper in papers for file in table.products(paper)]
    if "audit/epsilon" in table.digests:
        for key in table.digests:
            stage, _, part = key.partition("/")
            if stage == "audit" and not table.folder:
                yield key, table.behind_audit(part), [f"{below}audit/{part}.csv"]
    if set(papers) == set(available("paper")):
        yield "claims", every, [f"{below}claims.csv"]
        yield "report", [f"{below}claims.csv", *table.audited()], []


def _data(table: RunTable) -> Iterator[tuple[str, list[str], list[str]]]:
    for problem, dataset in table.dataset_of.items():
        fetched = f"data/fetched/{dataset}/fetch.json"
        arrays = f"data/prepared/{problem}/meta.json"
        optimum = f"data/optimum/{problem}/optimum.json"
        rules = [
            (f"fetch/{dataset}", [], [fetched]),
            (f"prepare/{problem}", [fetched], [arrays]),
            (f"optimum/{problem}", [arrays], [optimum]),
        ]
        yield from (rule for rule in rules if not Path(rule[2][0]).exists())


def _of_paper(
    table: RunTable, paper: str
) -> Iterator[tuple[str, list[str], list[str]]]:
    made, folder = table.papers[paper], f"{table.below('results')}{paper}"
    for problem, solver in made.runs:
        stem = f"{folder}/{problem}/{solver}"
        yield (
            f"solve/{paper}/{problem}/{solver}",
            [f"data/optimum/{problem}/optimum.json"],
            [f"{stem}/tune.parquet", f"{stem}/evaluate.parquet"],
        )
    for name in made.sweeps:
        after = [f"{folder}/sweeps/{name}.parquet"]
        yield f"sweep/{paper}/{name}", table.swept_from(paper, name), after
    if made.clocked:
        yield f"timing/{paper}", table.clocked(paper), [table.timing(paper)]
    for products in table.batches(paper):
        files = [file for each in products for file in table.drawn(paper, each)]
        before = table.behind(paper, products[0])
        yield f"draw/{paper}/{products[0]}", before, files
    yield f"complete/{paper}", table.products(paper), [f"{folder}/complete.txt"]


# --- placing them ---------------------------------------------------------------------


def plan(jobs: dict[str, Job], costs: Costs, cores: int) -> Plan:
    """Place the jobs on so many cores."""
    placed = {name: job.at(cores, costs) for name, job in jobs.items()}
    running: list[tuple[float, str]] = []
    waiting = dict(placed)
    done: set[str] = set()
    now, free, peak = BEGIN, cores, 0.0
    while waiting or running:
        for job in sorted(waiting.values(), key=_turn):
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


def _turn(job: Job) -> int:
    return -PRIORITY.get(job.stage, 0)


def _critical(jobs: dict[str, Job]) -> list[Job]:
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


def main() -> None:
    """Print the plan for a number of cores; keep costs and plans below results/."""
    given = _parser().parse_args()
    papers = available("paper")
    for name in given.papers:
        one_of("dperm plan", name, [*papers, "all"])
    chosen = papers if "all" in given.papers else given.papers or papers
    table = kept.run_table(chosen, [f"scale={given.scale}"])
    logs = given.logs or Path("logs", table.folder)
    known = costs_of(table, logs)
    costs = Costs(table, known)
    jobs = graph(table, costs)
    plans = [plan(jobs, costs, cores) for cores in sorted({*CORES, given.cores})]
    if set(chosen) == set(papers):
        _write(path_of(table), COLUMNS, [
            dict(zip(COLUMNS, (job, *_rounded(cost)), strict=True))
            for job, cost in sorted(known.items())
        ])  # fmt: skip
        rows = [each.row() for each in plans if each.cores in CORES]
        _write(path_of(table).with_name("plan.csv"), tuple(rows[0]), rows)
    print(told(jobs, plans, next(one for one in plans if one.cores == given.cores)))


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="dperm plan", description="How long a run takes on so many cores, and why."
    )
    made.add_argument("papers", nargs="*", help="papers, or all, which is the default")
    made.add_argument("-j", "--cores", type=int, default=2, help="cores; default 2")
    made.add_argument("--scale", default="full", help="full, quickstart or smoke")
    made.add_argument("--logs", type=Path, help="of an earlier run, instead of logs/")
    return made


def costs_of(table: RunTable, logs: Path) -> dict[str, Cost]:
    """What is recorded of earlier runs, the longest part of a sweep with it."""
    known = Costs(table).known | recorded(logs)
    found = dict(known)
    for job, cost in known.items():
        stage, _, name = job.partition("/")
        if stage == "sweep":
            longest = _longest(table, *name.split("/", 1)) or cost.longest
            found[job] = cost._replace(longest=min(longest, cost.cpu))
    return found


def _longest(table: RunTable, paper: str, name: str) -> float:
    """Seconds of a sweep's longest point and replicate; 0 if its rows are not there."""
    path = Path(f"{table.below('results')}{paper}/sweeps/{name}.parquet")
    if not path.is_file():
        return 0.0
    rows = store.read_table(path)
    return float(rows.groupby("config_digest")["seconds"].sum().max())


def _rounded(cost: Cost) -> tuple[float, float, float]:
    return round(cost.cpu, 2), round(cost.longest, 2), round(cost.peak)


def _write(path: Path, columns: tuple[str, ...], rows: list[dict]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    store.write_text(path, text.getvalue())


def told(jobs: dict[str, Job], plans: list[Plan], chosen: Plan) -> str:
    """The plan in words and numbers."""
    from tabulate import tabulate

    known = sum(job.cost.is_recorded for job in jobs.values())
    cpu = sum(job.cost.cpu for job in jobs.values())
    longest = sorted(jobs.values(), key=lambda job: -job.cost.cpu)[:SHOWN]
    path = sorted(chosen.path, key=lambda job: -job.wall)[:SHOWN]
    shown = [job for job in chosen.path if job in path]
    return "\n\n".join([
        f"{len(jobs)} jobs, {cpu:.0f} CPU seconds; {known} recorded, "
        f"{len(jobs) - known} estimated",
        tabulate([each.row() for each in plans], "keys", "pipe"),
        f"critical path on {chosen.cores} cores, {chosen.critical:.0f} seconds:\n"
        + _listed(shown),
        "most work:\n" + "\n".join(
            f"{job.cost.cpu:8.1f} CPU s  {job.name}" for job in longest
        ),
    ])  # fmt: skip


def _listed(jobs: list[Job]) -> str:
    return "\n".join(
        f"{job.wall:8.1f} s on {job.threads:2d}  {job.name}" for job in jobs
    )
