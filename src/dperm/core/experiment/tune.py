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

import itertools
import json
import logging
import math
import operator
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dperm.core.experiment import files as store
from dperm.core.experiment.files import Parts
from dperm.core.experiment.plan import Design
from dperm.core.experiment.results import best
from dperm.core.experiment.unit import IDENTITY, Job, Unit, rows, unavailable
from dperm.core.lanes import trials
from dperm.core.privacy.calibration import Calibration
from dperm.core.privacy.mechanisms import STUDY

log = logging.getLogger(__name__)

LEAST_LANES = 64  # of a piece: smaller ones would draw the shared noise too often
SHARED = 4  # threads that a unit of many lanes on a sparse matrix keeps busy
PIECES_PER_WORKER = 4  # at least, so that no worker ends with a long one alone

LEADERS = 16  # settings that run in all replicates
ONE_RUN = "one run"  # status of a setting that ran in the first replicate only

Solve = Callable[[list[Unit]], Iterator[pd.DataFrame]]


def tuned(job: Job, design: Design) -> pd.DataFrame:
    """Rows of the grid, as in ``tune.parquet``.

    Lanes stored by an earlier run are reused. With ``design.race``, only the best
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
    first = list(solve([race[0] for race in races]))
    lead = [leaders(table) for table in first]
    yield from solve(
        [
            replace(unit, points=list(itertools.compress(unit.points, mask)))
            for race, mask in zip(races, lead, strict=True)
            for unit in race[1:]
            if mask.any()
        ]
    )
    for race, mask, table in zip(races, lead, first, strict=True):
        left = (table["status"] == "ok") & ~mask & (len(race) > 1)
        yield table.assign(status=table["status"].mask(left, ONE_RUN))


def leaders(table: pd.DataFrame) -> np.ndarray:
    """Mask of the best settings of one replicate.

    Of settings with one objective, as of those that rest at w = 0, only that with the
    least step and then clip leads: ties would fill all places.
    """
    objective = table["objective"].where(table["status"] == "ok", np.inf).to_numpy()
    order = np.lexsort((table["clip"], table["step"], objective))
    values, first = np.unique(objective[order], return_index=True)
    mask = np.zeros(len(table), dtype=bool)
    mask[order[first[np.isfinite(values)][:LEADERS]]] = True
    return mask


def evaluated(job: Job, design: Design, tuned: pd.DataFrame) -> pd.DataFrame:
    """Rows of the best settings on fresh seeds, one per seed and checkpoint.

    Several run at the same time, so their seconds state the time spent and not the
    speed of an algorithm, which ``timing`` measures.
    """
    units = fresh_units(job, design, tuned)
    if not units:
        reason = "every setting of the grid diverged"
        log.warning("evaluate %s: %s, or is not finite", job.folder, reason)
        return unavailable(job.names, reason, status="diverged")
    return collect(job, units)


def tuning_units(job: Job, design: Design) -> Iterator[Unit]:
    """One unit per calibration, number of passes and replicate."""
    points = list(design.points)
    passes = job.unique_passes([point["passes"] for point in points])
    noises = calibrations(job, design.calibrations, passes)
    for kind, value in itertools.product(design.calibrations, passes):
        noise = noises[kind, value]
        chosen = [point for point in points if point["passes"] == value]
        for replicate in range(design.replicates):
            yield Unit("tune", noise, value, replicate, chosen, (value,))


def fresh_units(job: Job, design: Design, tuned: pd.DataFrame) -> list[Unit]:
    """Units on fresh seeds of the best settings by (calibration, passes)."""
    chosen = evaluated_settings(design.evaluated, best(tuned))
    kinds, passes = chosen["calibration"].unique(), chosen["passes"].unique()
    noises = calibrations(job, kinds.tolist(), passes.tolist()) if len(chosen) else {}
    return [
        Unit(
            "evaluate",
            noises[row.calibration, row.passes],
            row.passes,
            replicate,
            [{"passes": row.passes, "step": row.step, "clip": row.clip}],
            job.checkpoints(row.passes),
        )
        for row in chosen.itertuples()
        for replicate in range(design.fresh)
    ]


def evaluated_settings(which: str, chosen: pd.DataFrame) -> pd.DataFrame:
    """All chosen settings, or the best of every calibration, or also its ties.

    A tie's tuning mean exceeds the best by at most the sum of their standard
    deviations. A best setting of zero deviation has learnt nothing and has no ties.
    """
    if which == "all" or chosen.empty:
        return chosen
    best = chosen.loc[chosen.groupby("calibration")["mean"].idxmin()]
    if which == "best":
        return best
    of = best.set_index("calibration").loc[chosen["calibration"]].reset_index()
    within = chosen["mean"] - chosen["std"] <= (of["mean"] + of["std"]).to_numpy()
    return chosen[chosen.index.isin(best.index) | (within & (of["std"] > 0).to_numpy())]


# --- calibrations ---------------------------------------------------------------------


def calibrations(
    job: Job, kinds: Iterable[str], passes: Iterable[float]
) -> dict[tuple[str, float], Calibration]:
    """The calibration of every (kind, passes), read from ``ledger.json`` if there."""
    path = job.folder / "ledger.json"
    entries = _entries(path)
    keys = {
        (kind, value): _key(job, kind, value)
        for kind, value in itertools.product(kinds, passes)
    }
    missing = [pair for pair, key in keys.items() if key not in entries]
    if missing:
        log.info("calibrating %d noise%s", len(missing), "s" * (len(missing) > 1))
    with ThreadPoolExecutor(job.workers) as pool:
        fresh = pool.map(lambda pair: _entry(job, *pair), missing)
        entries |= {entry["key"]: entry for entry in fresh}
    first = [entries[key] for key in keys.values()]
    others = [  # of other passes; those of an older accountant are dropped
        entry
        for key, entry in entries.items()
        if key not in keys.values() and entry.get("code") == job.code.noise
    ]
    store.write_json(path, first + others)
    return {
        pair: Calibration.from_dict(entries[key]["calibrated"])
        for pair, key in keys.items()
    }


def _entry(job: Job, kind: str, passes: float) -> dict[str, Any]:
    calibrated = trials.noise(job.problem, job.module, job.options, passes, kind)
    entry = {
        "key": _key(job, kind, passes),
        "passes": passes,
        "steps": job.steps(passes),
        "code": job.code.noise,
        "neighbours": calibrated.ledger.relation,
        "use": " ".join(STUDY.split()),
        "calibrated": calibrated.to_dict(),
    }
    return entry | {"digest": store.digest(entry)}


def _key(job: Job, kind: str, passes: float) -> str:
    """Digest of everything that a calibration depends on."""
    problem = job.problem
    return store.digest(
        [
            *(problem.digest, problem.n, problem.p, problem.epsilon, problem.delta),
            *(kind, job.steps(passes), job.algorithm),
            *(asdict(job.options), job.code.noise),
        ]
    )


def _entries(path: Path) -> dict[str, dict[str, Any]]:
    """Entries of a ledger file by key; none where it is missing or damaged."""
    try:
        found = json.loads(path.read_text("utf-8"))
        for entry in found:
            kept = {key: value for key, value in entry.items() if key != "digest"}
            if entry.get("digest", store.digest(kept)) != store.digest(kept):
                raise ValueError("an entry was changed")
        return {entry["key"]: entry for entry in found}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, KeyError):
        log.warning("%s is unreadable and made anew", path)
        return {}


# --- units on workers -----------------------------------------------------------------


def collect(job: Job, units: list[Unit], race: bool = False) -> pd.DataFrame:
    """Rows of all units, sorted; logs progress and the number of reused lanes.

    Units share the workers of this machine. With ``race`` they run in two stages.
    """
    parts, count = Parts(job.folder), Counter[str]()
    lanes, work = sum(len(unit.points) for unit in units), sum(u.work for u in units)
    name = f"{units[0].stage} {job.folder}"
    meter = Meter(name, lanes, "lanes", work, at_most=race)

    def solve(some: list[Unit]) -> Iterator[pd.DataFrame]:
        for unit, (table, fresh) in zip(some, _solved(job, some, parts), strict=True):
            count["computed"] += fresh
            count["reused"] += len(unit.points) - fresh
            meter.advance(len(unit.points), unit.work, fresh > 0)
            yield table

    tables = two_stages(units, solve) if race else solve(units)
    table = pd.concat(list(tables), ignore_index=True)
    left = lanes - count.total()
    log.info(
        "%s: %d lanes reused, %d computed%s",
        *(name, count["reused"], count["computed"]),
        f", {left} left out after one run" if left else "",
    )
    return table.sort_values(IDENTITY, ignore_index=True)


def _solved(
    job: Job, units: list[Unit], parts: Parts
) -> Iterator[tuple[pd.DataFrame, int]]:
    """Rows of units in their order, and the number of computed lanes of each.

    On threads, pieces of units run at the same time. Many lanes on a sparse matrix stay
    in one unit, since they share the noise of every coordinate, whose drawing takes as
    long as a few threads advance them.
    """
    is_wide = any(len(unit.points) > LEAST_LANES for unit in units)
    whole = job.problem.is_sparse and is_wide
    together = max(1, job.workers // SHARED) if whole else job.workers
    if together == 1:
        for unit in units:
            yield rows(job, unit, parts, job.workers)
        return
    cut = [[unit] if whole else pieces(unit, units, job.workers) for unit in units]
    solved = _threaded(job, list(itertools.chain(*cut)), parts, together)
    for each in cut:
        tables, fresh = zip(*itertools.islice(solved, len(each)), strict=True)
        yield pd.concat(tables, ignore_index=True), sum(fresh)


def _threaded(
    job: Job, units: list[Unit], parts: Parts, together: int
) -> Iterator[tuple[pd.DataFrame, int]]:
    """Rows of units in their order; some run at the same time, the longest first."""
    with ThreadPoolExecutor(together) as pool:
        begun = {
            at: pool.submit(rows, job, units[at], parts, job.workers // together)
            for at in sorted(range(len(units)), key=lambda at: -units[at].work)
        }
        try:
            yield from (begun[at].result() for at in range(len(units)))
        finally:  # after a failure or an interrupt no further unit starts
            for future in begun.values():
                future.cancel()


def pieces(unit: Unit, beside: list[Unit], workers: int) -> list[Unit]:
    """Split a unit's lanes into pieces that balance the workers; ``beside``: all units.

    No lane's result depends on another lane, so that the rows are the same.
    """
    share = sum(each.work for each in beside) / (workers * PIECES_PER_WORKER)
    size = max(LEAST_LANES, math.ceil(share / unit.passes))
    return [
        replace(unit, points=unit.points[low : low + size])
        for low in range(0, len(unit.points), size)
    ]


class Meter:
    """Progress of a stage: the count done, the total, and the time left.

    Time is assumed proportional to work, for lanes their passes. Reused lanes do not
    count for the speed. No time is stated in the first hundredth, which compiles.
    ``at_most`` marks the time left as an upper bound: the longest work comes first, or
    not all of it is done.
    """

    def __init__(
        self,
        name: str,
        total: int,
        what: str,
        work: float = 0.0,
        every: float = 5.0,
        at_most: bool = False,
    ):
        self.name, self._total, self._what, self._every = name, total, what, every
        self._word = "less than" if at_most else "about"
        self._start = self._last = time.monotonic()
        self._done, self._worked, self._left = 0, 0.0, work or total
        self._early = self._left / 100
        log.info("%s: %d %s", name, total, what)

    def advance(self, count: int, work: float = 0.0, fresh: bool = True) -> None:
        """Count these as done, and log the progress if it is due."""
        self._done += count
        self._left -= work or count
        self._worked += (work or count) if fresh else 0.0
        now = time.monotonic()
        if now - self._last >= self._every:
            self._last, spent = now, _interval(now - self._start)
            at = (self.name, self._done, self._total, self._what, spent)
            log.info("%s: %d of %d %s in %s%s", *at, self._remaining(now))

    def _remaining(self, now: float) -> str:
        if self._worked <= self._early:
            return ""
        left = (now - self._start) * self._left / self._worked
        return f", {self._word} {_interval(left)} left"


def _interval(seconds: float) -> str:
    from tqdm import tqdm

    return tqdm.format_interval(seconds)
