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
from dperm.experiments.unit import IDENTITY, SolverJob, Unit, rows, unavailable
from dperm.privacy.calibration import Calibration
from dperm.privacy.events import RELATION
from dperm.privacy.noise import STUDY
from dperm.solvers.batched import trials
from dperm.storage import files as store
from dperm.storage.files import Parts

log = logging.getLogger(__name__)

THREADED_SETTINGS = 64  # settings: a unit of more keeps several threads busy
SHARED = 4  # so many

RUNS = 5  # fresh runs that share a part
PRECISE = 0.03  # standard error of a mean error over it, at which runs are enough
LEADERS = 16  # settings that run in all replicates
ONE_RUN = "one run"  # status of a setting that ran in the first replicate only

Solve = Callable[[list[Unit]], Iterator[pd.DataFrame]]


def tuned(job: SolverJob, design: Design) -> pd.DataFrame:
    """Rows of the grid, as in ``tune.parquet``.

    Settings stored by an earlier run are reused. With ``design.race``, only the best
    settings of the first replicate run in the others.
    """
    return collect(job, list(tuning_units(job, design)), design.race)


def two_stages(units: list[Unit], solve: Solve) -> Iterator[pd.DataFrame]:
    """Yield the rows of the first replicate, then those of its best in the others.

    A setting that is not among the ``LEADERS`` of its calibration and number of passes
    has one row with the status ``one run``, so that it is never chosen.

    Parameters
    ----------
    units : list of Unit
        Units of one calibration and number of passes must be adjacent, the first
        replicate first.
    solve : callable
        Returns the rows of units, in their order, each in the order of its points.
    """
    kind = operator.attrgetter("calibration.calibration", "passes")
    races = [list(race) for _, race in itertools.groupby(units, kind)]
    later = []
    first_tables = solve([race[0] for race in races])
    for race, table in zip(races, first_tables, strict=True):
        mask = leaders(table)
        led = list(itertools.compress(race[0].points, mask))
        later += [replace(unit, points=led) for unit in race[1:] if led]
        is_dropped = (table["status"] == "ok") & ~mask & (len(race) > 1)
        yield table.assign(status=table["status"].mask(is_dropped, ONE_RUN))
    yield from solve(later)


def leaders(table: pd.DataFrame) -> np.ndarray:
    """Mask of the best settings of one replicate.

    Of settings with one objective, as of those that rest at w = 0, only that with the
    least step and then clip leads: ties would fill all places.
    """
    finished = table[table["status"] == "ok"].sort_values(["objective", "step", "clip"])
    led = finished.drop_duplicates("objective").head(LEADERS)
    return np.asarray(table.index.isin(led.index))


def evaluated(job: SolverJob, design: Design) -> pd.DataFrame:
    """Rows of the best settings on fresh seeds, one per seed and checkpoint.

    Every chosen setting runs as often as the paper says; those that tie with the best
    go on, twice as often each time, until the standard error of their mean error is
    below ``PRECISE`` of it, or the largest number of runs is reached.

    Several run at the same time, so their seconds state the time spent and not the
    speed of an algorithm, which ``timing`` measures.
    """
    first, *later = rounds(design)
    units = fresh_units(job, design, first)
    if not units:
        reason = "every setting of the grid diverged"
        log.warning("evaluate %s: %s, or is not finite", job.folder, reason)
        return unavailable(job.names, reason, status="diverged")
    table = collect(job, units)
    level = _ties(job)
    for again in later:
        vague = [pair for pair in _vague(table) if pair in level]
        if not vague:
            break
        units = fresh_units(job, design, again)
        further = [unit for unit in units if _pair(unit) in vague]
        table = pd.concat([table, collect(job, further)], ignore_index=True)
    return table


def _pair(unit: Unit) -> tuple[str, float]:
    """Calibration and passes of a unit."""
    return unit.calibration.calibration, float(unit.passes)


def _ties(job: SolverJob) -> set[tuple[str, float]]:
    """Calibrations and passes of the best settings, and of those that tie with them."""
    tuned = store.read_table(job.folder / "tune.parquet")
    level = ties(best(tuned))[["calibration", "passes"]]
    return {
        (str(kind), float(passes)) for kind, passes in level.itertuples(index=False)
    }


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


def tuning_units(job: SolverJob, design: Design) -> Iterator[Unit]:
    """One unit per calibration, number of passes and replicate."""
    points = list(design.points)
    passes = job.unique_passes([point["passes"] for point in points])
    noises = calibrations(job, design.calibrations, passes)
    for kind, count in itertools.product(design.calibrations, passes):
        noise = noises[kind, count]
        chosen = [point for point in points if point["passes"] == count]
        for replicate in range(design.replicates):
            limit = design.limit("tune", replicate)
            yield Unit("tune", noise, count, (replicate,), chosen, (count,), limit)


def rounds(design: Design) -> Iterator[range]:
    """Replicates of the fresh runs of all settings, then of those that may follow."""
    done = 0
    following = design.fresh
    while done < following:
        yield range(done, following)
        done = following
        following = min(2 * done, design.most)


def fresh_units(job: SolverJob, design: Design, replicates: range) -> list[Unit]:
    """Units on fresh seeds of the best settings by (calibration, passes)."""
    tuned = store.read_table(job.folder / "tune.parquet")
    chosen = evaluated_settings(design.evaluated, best(tuned))
    kinds = chosen["calibration"].unique()
    passes = chosen["passes"].unique()
    noises = calibrations(job, kinds.tolist(), passes.tolist()) if len(chosen) else {}
    units = []
    for row in chosen.itertuples():
        noise = noises[row.calibration, row.passes]
        point = {"passes": row.passes, "step": row.step, "clip": row.clip}
        observed = job.checkpoints(row.passes)
        for low in range(replicates.start, replicates.stop, RUNS):
            shared = tuple(range(low, min(low + RUNS, replicates.stop)))
            unit = Unit("evaluate", noise, row.passes, shared, [point], observed)
            units.append(unit)
    return units


def evaluated_settings(which: str, chosen: pd.DataFrame) -> pd.DataFrame:
    """All chosen settings, or the best of every calibration, or also its ties."""
    if which == "all" or chosen.empty:
        return chosen
    if which == "ties":
        return ties(chosen)
    return chosen.loc[chosen.groupby("calibration")["mean"].idxmin()]


# --- calibrations ---------------------------------------------------------------------


def calibrations(
    job: SolverJob, kinds: Iterable[str], passes: Iterable[float]
) -> dict[tuple[str, float], Calibration]:
    """The calibration of every (kind, passes), read from ``ledger.json`` if there."""
    path = job.folder / "ledger.json"
    pairs = list(itertools.product(kinds, passes))
    records = _entries(path)
    keys = {pair: _key(job, *pair) for pair in pairs}
    missing = [pair for pair in pairs if keys[pair] not in records]
    if missing:
        log.info("calibrating %d noise%s", len(missing), "s" * (len(missing) > 1))
    with ThreadPoolExecutor(job.workers) as pool:
        fresh = pool.map(lambda pair: _entry(job, *pair), missing)
        records |= {record["key"]: record for record in fresh}
    asked = {keys[pair]: records[keys[pair]] for pair in pairs}
    # Of the others, which are of other passes, those of an older accountant go.
    current = {key: record for key, record in records.items()
            if record.get("code") == job.code.noise}  # fmt: skip
    store.write_json(path, sorted({**asked, **current}.values(), key=_place))
    return {
        pair: Calibration.from_dict(records[keys[pair]]["calibrated"]) for pair in pairs
    }


def _entry(job: SolverJob, kind: str, passes: float) -> dict[str, Any]:
    calibrated = trials.noise(job.problem, job.module, job.options, passes, kind)
    record = {
        "key": _key(job, kind, passes),
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


def _key(job: SolverJob, kind: str, passes: float) -> str:
    """Digest of everything that a calibration depends on."""
    problem = job.problem
    return store.digest(
        [
            problem.digest,
            problem.n,
            problem.p,
            problem.epsilon,
            problem.delta,
            kind,
            job.steps(passes),
            job.algorithm,
            asdict(job.options),
            job.code.noise,
        ]
    )


def _entries(path: Path) -> dict[str, dict[str, Any]]:
    """Entries of a ledger file by key; none where it is missing or damaged."""
    try:
        records = store.read_json(path, kind=list)
        for record in records:
            content = {key: field for key, field in record.items() if key != "digest"}
            if record["digest"] != store.digest(content):
                raise ValueError("an entry was changed")
        return {record["key"]: record for record in records}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, KeyError):
        log.warning("%s is unreadable and made anew", path)
        return {}


# --- units on workers -----------------------------------------------------------------


def collect(job: SolverJob, units: list[Unit], race: bool = False) -> pd.DataFrame:
    """Rows of all units, sorted; logs progress and the number of reused settings.

    Units share the workers of this machine. With ``race`` they run in two stages.
    """
    parts = Parts(job.folder)
    done = list[tuple[int, int]]()
    settings = [unit.size for unit in units]
    expected = [
        min(LEADERS, count) if race and unit.replicates[0] else count
        for unit, count in zip(units, settings, strict=True)
    ]
    work = sum(u.passes * count for u, count in zip(units, expected, strict=True))
    name = f"{units[0].stage} {job.folder}"
    bar = progress(name, sum(expected), "settings", work)

    def run(unit: Unit, workers: int) -> pd.DataFrame:
        table, fresh = rows(job, unit, parts, workers)
        bar.initial += 0 if fresh else unit.work
        bar.update(unit.work)
        done.append((unit.size, fresh))
        return table

    solve = functools.partial(_side_by_side, run, job.workers)
    tables = two_stages(units, solve) if race else solve(units)
    table = pd.concat(list(tables), ignore_index=True)
    bar.close()
    ran, fresh = (sum(counts) for counts in zip(*done, strict=True))
    dropped = sum(settings) - ran
    remark = f", {dropped} left out after one run" if dropped else ""
    log.info("%s: %d settings reused, %d computed%s", name, ran - fresh, fresh, remark)
    return table.sort_values(IDENTITY, ignore_index=True)


def _side_by_side(
    run: Callable[[Unit, int], pd.DataFrame], workers: int, units: list[Unit]
) -> Iterator[pd.DataFrame]:
    """Rows of units in their order; several run at the same time, the longest first.

    The settings of a wide unit share the noise of every step, whose drawing takes as
    long as a few threads advance them.
    """
    is_wide = any(len(unit.points) > THREADED_SETTINGS for unit in units)
    together = max(1, workers // SHARED) if is_wide else workers
    if together == 1:
        yield from (run(unit, workers) for unit in units)
        return
    with ThreadPoolExecutor(together) as pool:
        order = sorted(range(len(units)), key=lambda index: -units[index].work)
        begun = {
            index: pool.submit(run, units[index], workers // together)
            for index in order
        }
        try:
            yield from (begun[index].result() for index in range(len(units)))
        finally:  # after a failure or an interrupt no further unit starts
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
    often: Any = {"mininterval": 5.0, "delay": 5.0, "smoothing": 0.0, "leave": False}
    form = done + " in {elapsed}, {remaining} left"
    return tqdm(desc=name, total=work or total, bar_format=form, **often)
