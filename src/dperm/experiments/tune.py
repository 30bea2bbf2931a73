"""Tuning and evaluation of a job.

Tuning runs the grid, with every calibration and number of passes, on a few seeds: all
settings in the first replicate, and the best of these in the others. Evaluation runs
the chosen settings on fresh seeds.

Calibrations are stored with the results and not repeated. ``ledger.json`` holds one
entry for every calibration and number of passes: the noise multiplier, its ledger, the
cost of that ledger under its own accountant, and the proved bounds of its true epsilon,
with what these take as given.
"""

from __future__ import annotations

import functools
import itertools
import logging
import math
import operator
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dperm.experiments.plan import Design
from dperm.experiments.results import best, ties
from dperm.experiments.task import IDENTITY, SolverJob, Task, rows, unavailable
from dperm.privacy.calibration import Calibration
from dperm.privacy.events import RELATION
from dperm.privacy.noise import STUDY
from dperm.solvers.batched import trials
from dperm.storage import files as store
from dperm.storage.files import Parts

log = logging.getLogger(__name__)

THREADED_SETTINGS = 64  # settings: a task of more keeps several threads busy
SHARED = 4  # so many

RUNS = 5  # fresh runs that share a part
# Standard error of a mean error over it, at which runs are enough
PRECISE = 0.03
LEADERS = 16  # settings that run in all replicates
ONE_RUN = "one run"  # status of a setting that ran in the first replicate only

Solve = Callable[[list[Task]], Iterator[pd.DataFrame]]


def tuned(job: SolverJob, design: Design) -> pd.DataFrame:
    """Rows of the grid, as in ``tune.parquet``.

    Settings stored by an earlier run are reused. With ``design.race``, only the best
    settings of the first replicate run in the others.
    """
    return collect(job, list(tuning_tasks(job, design)), design.race)


def two_stages(tasks: list[Task], solve: Solve) -> Iterator[pd.DataFrame]:
    """Yield the rows of the first replicate, then those of its best in the others.

    A setting that is not among the ``LEADERS`` of its calibration and number of passes
    has one row with the status ``one run``, so that it is never chosen.

    Parameters
    ----------
    tasks : list of Task
        Tasks of one calibration and number of passes must be adjacent, the first
        replicate first.
    solve : callable
        Returns the rows of tasks, in their order, each in the order of its points.
    """
    race_of = operator.attrgetter("calibration.calibration", "passes")
    races = [list(race) for _, race in itertools.groupby(tasks, race_of)]
    later = []
    first_tables = solve([race[0] for race in races])
    for race, table in zip(races, first_tables, strict=True):
        mask = leaders(table)
        led = list(itertools.compress(race[0].points, mask))
        later += [replace(task, points=led) for task in race[1:] if led]
        is_dropped = (table["status"] == "ok") & ~mask & (len(race) > 1)
        yield table.assign(status=table["status"].mask(is_dropped, ONE_RUN))
    yield from solve(later)


def leaders(table: pd.DataFrame) -> np.ndarray:
    """Mask of the best settings of one replicate.

    Of settings with one objective, as of those that rest at w = 0, only that with the
    least step and then clip leads: ties would fill all places.
    """
    finished = table[table["status"] == "ok"].sort_values(
        ["objective", "step", "clip"]
    )
    led = finished.drop_duplicates("objective").head(LEADERS)
    return np.asarray(table.index.isin(led.index))


def evaluated(job: SolverJob, design: Design) -> pd.DataFrame:
    """Rows of the best settings on fresh seeds, one per seed and checkpoint.

    Every chosen setting runs as often as the paper says, and then twice as often each
    time, until the standard error of its mean error is below ``PRECISE`` of it, or the
    largest number of runs is reached.

    Several run at the same time, so their seconds state the time spent and not the
    speed of an algorithm, which ``timing`` measures.
    """
    first, *later = rounds(design)
    tasks = fresh_tasks(job, design, first)
    if not tasks:
        reason = "every setting of the grid diverged"
        log.warning("evaluate %s: %s, or is not finite", job.folder, reason)
        return unavailable(job.names, reason, status="diverged")
    table = collect(job, tasks)
    for again in later:
        vague = _vague(table)
        if not vague:
            break
        tasks = fresh_tasks(job, design, again)
        further = [task for task in tasks if _pair(task) in vague]
        table = pd.concat([table, collect(job, further)], ignore_index=True)
    return table


def _pair(task: Task) -> tuple[str, float]:
    """Calibration and passes of a task."""
    return task.calibration.calibration, float(task.passes)


def _vague(table: pd.DataFrame) -> list[tuple[str, float]]:
    """Calibrations and passes of settings whose mean final error is not precise."""
    ends = table[table["checkpoint"] == table["passes"]]
    pairs = []
    for pair, group in ends.groupby(["calibration", "passes"]):
        errors = group["relative_error"].to_numpy(float)
        spread = errors.std(ddof=1) if len(errors) > 1 else math.inf
        if spread > PRECISE * abs(errors.mean()) * math.sqrt(len(errors)):
            pairs.append((str(pair[0]), float(pair[1])))
    return pairs


def tuning_tasks(job: SolverJob, design: Design) -> Iterator[Task]:
    """One task per calibration, number of passes and replicate."""
    points = list(design.points)
    passes = job.unique_passes([point["passes"] for point in points])
    noises = calibrations(job, design.calibrations, passes)
    for calibration, count in itertools.product(design.calibrations, passes):
        noise = noises[calibration, count]
        chosen = [point for point in points if point["passes"] == count]
        for replicate in range(design.replicates):
            limit = design.limit("tune", replicate)
            yield Task(
                "tune", noise, count, (replicate,), chosen, (count,), limit
            )


def rounds(design: Design) -> Iterator[range]:
    """Replicates of the first fresh runs, then of those that may follow."""
    done = 0
    following = design.fresh
    while done < following:
        yield range(done, following)
        done = following
        following = min(2 * done, design.most)


def fresh_tasks(
    job: SolverJob, design: Design, replicates: range
) -> list[Task]:
    """Tasks on fresh seeds of the best settings by (calibration, passes)."""
    tuned = store.read_table(job.folder / "tune.parquet")
    chosen = evaluated_settings(design.evaluated, best(tuned))
    names = chosen["calibration"].unique()
    passes = chosen["passes"].unique()
    noises = (
        calibrations(job, names.tolist(), passes.tolist())
        if len(chosen)
        else {}
    )
    tasks = []
    for row in chosen.itertuples():
        noise = noises[row.calibration, row.passes]
        point = {"passes": row.passes, "step": row.step, "clip": row.clip}
        observed = job.checkpoints(row.passes)
        for shared in together(replicates):
            task = Task(
                "evaluate", noise, row.passes, shared, [point], observed
            )
            tasks.append(task)
    return tasks


def together(replicates: range) -> list[tuple[int, ...]]:
    """Replicates of fresh runs in parts, each of which is a task."""
    starts = range(0, len(replicates), RUNS)
    return [tuple(replicates[start : start + RUNS]) for start in starts]


def evaluated_settings(which: str, chosen: pd.DataFrame) -> pd.DataFrame:
    """All chosen settings, or the best of every calibration, or also its ties."""
    if which == "all" or chosen.empty:
        return chosen
    if which == "ties":
        return ties(chosen)
    return chosen.loc[chosen.groupby("calibration")["mean"].idxmin()]


# --- calibrations ---------------------------------------------------------------------


def calibrations(
    job: SolverJob, names: Iterable[str], passes: Iterable[float]
) -> dict[tuple[str, float], Calibration]:
    """The calibration of every (name, passes), read from ``ledger.json`` if there."""
    path = job.folder / "ledger.json"
    pairs = list(itertools.product(names, passes))
    records = _entries(path)
    keys = {pair: _key(job, *pair) for pair in pairs}
    missing = [pair for pair in pairs if keys[pair] not in records]
    if missing:
        log.info(
            "calibrating %d noise%s", len(missing), "s" * (len(missing) > 1)
        )
    with ThreadPoolExecutor(job.workers) as pool:
        fresh = pool.map(lambda pair: _entry(job, *pair), missing)
        records |= {record["key"]: record for record in fresh}
    asked = {keys[pair]: records[keys[pair]] for pair in pairs}
    # Of the others, which are of other passes, those of an older accountant go.
    current = {key: record for key, record in records.items()
            if record.get("code") == job.code.noise}  # fmt: skip
    store.write_json(path, sorted({**asked, **current}.values(), key=_place))
    return {
        pair: Calibration.from_dict(records[keys[pair]]["calibrated"])
        for pair in pairs
    }


def _entry(job: SolverJob, calibration: str, passes: float) -> dict[str, Any]:
    calibrated = trials.noise(
        job.problem, job.module, job.options, passes, calibration
    )
    record = {
        "key": _key(job, calibration, passes),
        "passes": passes,
        "steps": job.steps(passes),
        "code": job.code.noise,
        "neighbours": RELATION,
        "use": " ".join(STUDY.split()),
        "calibrated": calibrated.to_dict(),
    }
    return record | {"digest": store.digest(record)}


def _place(record: dict[str, Any]) -> tuple[str, float, str]:
    """Place in the file, whichever stage asked for it."""
    return record["calibrated"]["calibration"], record["passes"], record["key"]


def _key(job: SolverJob, calibration: str, passes: float) -> str:
    """Digest of everything that a calibration depends on."""
    problem = job.problem
    return store.digest(
        [
            problem.digest,
            problem.n,
            problem.p,
            problem.epsilon,
            problem.delta,
            calibration,
            job.steps(passes),
            job.algorithm,
            asdict(job.options),
            job.code.noise,
        ]
    )


def _entries(path: Path) -> dict[str, dict[str, Any]]:
    """Entries of a ledger file by key; none where it is missing or damaged."""
    try:
        records = store.read_json(path, content_type=list)
        for record in records:
            content = {
                key: field for key, field in record.items() if key != "digest"
            }
            if record["digest"] != store.digest(content):
                raise ValueError("an entry was changed")
        return {record["key"]: record for record in records}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, KeyError):
        log.warning("%s is unreadable and made anew", path)
        return {}


# --- tasks on workers -----------------------------------------------------------------


def collect(
    job: SolverJob, tasks: list[Task], race: bool = False
) -> pd.DataFrame:
    """Rows of all tasks, sorted; logs progress and the number of reused settings.

    Tasks share the workers of this machine. With ``race`` they run in two stages.
    """
    parts = Parts(job.folder)
    done = list[tuple[int, int]]()
    settings = [task.size for task in tasks]
    expected = [
        min(LEADERS, count) if race and task.replicates[0] else count
        for task, count in zip(tasks, settings, strict=True)
    ]
    work = sum(
        task.passes * count
        for task, count in zip(tasks, expected, strict=True)
    )
    name = f"{tasks[0].stage} {job.folder}"
    bar = progress(name, sum(expected), "settings", work)

    def run(task: Task, workers: int) -> pd.DataFrame:
        table, fresh = rows(job, task, parts, workers)
        bar.initial += 0 if fresh else task.work
        bar.update(task.work)
        done.append((task.size, fresh))
        return table

    solve = functools.partial(_side_by_side, run, job.workers)
    tables = two_stages(tasks, solve) if race else solve(tasks)
    table = pd.concat(list(tables), ignore_index=True)
    bar.close()
    ran, fresh = (sum(counts) for counts in zip(*done, strict=True))
    dropped = sum(settings) - ran
    remark = f", {dropped} left out after one run" if dropped else ""
    log.info(
        "%s: %d settings reused, %d computed%s",
        name,
        ran - fresh,
        fresh,
        remark,
    )
    return table.sort_values(IDENTITY, ignore_index=True)


def _side_by_side(
    run: Callable[[Task, int], pd.DataFrame], workers: int, tasks: list[Task]
) -> Iterator[pd.DataFrame]:
    """Rows of tasks in their order; several run at the same time, the longest first.

    The settings of a wide task share the noise of every step, whose drawing takes as
    long as a few threads advance them.
    """
    is_wide = any(len(task.points) > THREADED_SETTINGS for task in tasks)
    together = max(1, workers // SHARED) if is_wide else workers
    if together == 1:
        yield from (run(task, workers) for task in tasks)
        return
    with ThreadPoolExecutor(together) as pool:
        order = sorted(range(len(tasks)), key=lambda index: -tasks[index].work)
        begun = {
            index: pool.submit(run, tasks[index], workers // together)
            for index in order
        }
        try:
            yield from (begun[index].result() for index in range(len(tasks)))
        finally:  # after a failure or an interrupt no further task starts
            for future in begun.values():
                future.cancel()


def progress(name: str, total: int, noun: str, work: float = 0.0) -> Any:
    """A line of progress of a stage, by tqdm: the share done and the time left.

    Both are of the ``work``, for settings their passes; else of the ``total``. What is
    added to ``initial`` was reused, and says nothing of the speed.
    """
    from tqdm import tqdm

    log.info("%s: %d %s", name, total, noun)
    done = "{desc}, {percentage:.0f} % of " + f"{total} {noun}"
    often: Any = {
        "mininterval": 5.0,
        "delay": 5.0,
        "smoothing": 0.0,
        "leave": False,
    }
    form = done + " in {elapsed}, {remaining} left"
    return tqdm(desc=name, total=work or total, bar_format=form, **often)
