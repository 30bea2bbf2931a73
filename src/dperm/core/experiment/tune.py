"""Tune: the whole grid, every calibration and number of passes, five seeds."""

from __future__ import annotations

import itertools
import logging
import math
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from dperm.core.experiment import files as store
from dperm.core.experiment import inputs, plan, schema
from dperm.core.experiment.cluster import away, cluster
from dperm.core.experiment.ledgers import calibrations
from dperm.core.experiment.locks import locked
from dperm.core.experiment.parts import Parts
from dperm.core.experiment.racing import raced
from dperm.core.experiment.solving import (
    IDENTITY,
    Unit,
    rows,
    unavailable,
    unique_passes,
)
from dperm.pipeline import checks

log = logging.getLogger(__name__)

LEAST_LANES = 64  # of a piece: fewer would pay for noise that more could share
PIECES_PER_WORKER = 4  # at least, so that none is left with a long one at the end


def tune(config: schema.Config) -> Path:
    """Run the grid of one solver on one problem and write ``tune.parquet``.

    Lanes that an earlier run left are reused as they are. Settings that cannot win are
    not run to the end, see ``racing``, if the paper does not want them all.

    Returns
    -------
    Path
        Of the table.
    """
    checks.held(config.solver)
    names = (config.paper.name, config.problem.name, config.solver.name)
    folder = plan.results_folder(config, *names)
    with locked(folder):
        job = inputs.Job.load(config)
        if job is None:
            table = unavailable(config, inputs.unavailable_reason(config))
            store.write_json(folder / "ledger.json", [])
        else:
            table = _table(job, config)
        store.write_table(folder / "tune.parquet", table)
    return folder / "tune.parquet"


def _table(job: inputs.Job, config: schema.Config) -> pd.DataFrame:
    every = list(units(job))
    if not config.paper.race:
        return collect(job, every, config.workers, config.parallel)
    run = Collecting(job, every, config.workers, config.parallel, race=True)
    with run as collecting:
        floor = job.optimum.value - abs(job.optimum.gap)
        return ordered(raced(job, every, floor, collecting.tables))


def units(job: inputs.Job) -> Iterator[Unit]:
    """Everything that is tuned: every calibration, number of passes and replicate."""
    points = plan.grid_points(job.config)
    passes = unique_passes(job, [point["passes"] for point in points])
    kinds = plan.run_calibrations(job.config)
    found = calibrations(job, kinds, passes)
    replicates = job.config.scale.replicates or job.config.paper.replicates
    for kind in kinds:
        for value in passes:
            chosen = [point for point in points if point["passes"] == value]
            for replicate in range(replicates):
                yield Unit(
                    "tune", found[kind, value], value, replicate, chosen, (value,)
                )


def collect(
    job: inputs.Job,
    units: list[Unit],
    workers: int,
    where: schema.Parallel | None = None,
) -> pd.DataFrame:
    """Rows of all units, sorted; logs progress and how many lanes were reused."""
    with Collecting(job, units, workers, where or schema.Parallel()) as collecting:
        return ordered(collecting.tables(units))


def ordered(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """All rows, sorted by what they are."""
    rows = pd.concat(list(tables), ignore_index=True)
    return rows.sort_values(IDENTITY, ignore_index=True)


class Collecting:
    """Rows of units, on all workers of this machine or each on one of a cluster's.

    Parameters
    ----------
    job : Job
    units : list of Unit
        All that may be asked for, of which progress is a part.
    workers : int
    where : schema.Parallel
    race : bool
        Whether not all of them will be.
    """

    def __init__(
        self,
        job: inputs.Job,
        units: list[Unit],
        workers: int,
        where: schema.Parallel,
        race: bool = False,
    ):
        self.job, self.workers, self.where = job, workers, where
        self.parts, self.computed, self.reused = Parts(job.folder), 0, 0
        self.lanes = sum(len(unit.points) for unit in units)
        work = sum(len(unit.points) * unit.passes for unit in units)
        name = f"{units[0].stage} {job.folder}"
        self.meter = Meter(name, self.lanes, "lanes", work, at_most=race)
        self._cluster = cluster(where)

    def __enter__(self) -> Collecting:
        self._cluster.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._cluster.__exit__(*error)
        if error[0] is None:
            self._say()

    def tables(self, units: Iterable[Unit]) -> Iterator[pd.DataFrame]:
        """The rows of each unit, in the order of the units."""
        wanted = list(units)
        for unit, (table, fresh) in zip(wanted, self._found(wanted), strict=True):
            self.computed += fresh
            self.reused += len(unit.points) - fresh
            work = len(unit.points) * unit.passes
            self.meter.advance(len(unit.points), work, fresh > 0)
            yield table

    def _found(self, units: list[Unit]) -> Iterator[tuple[pd.DataFrame, int]]:
        job, parts = self.job, self.parts
        if self.where.backend == "local":
            yield from self._here(units)
            return
        from joblib import Parallel

        calls = (away(rows, job, unit, parts, 1) for unit in units)
        yield from Parallel(return_as="generator")(calls)

    def _here(self, units: list[Unit]) -> Iterator[tuple[pd.DataFrame, int]]:
        """Over threads: pieces of units beside each other, the longest first.

        Many lanes on a sparse matrix stay together and are spread themselves: what they
        share, noise for every coordinate, is most of their memory.
        """
        is_wide = any(len(unit.points) > LEAST_LANES for unit in units)
        if self.workers == 1 or (self.job.problem.is_sparse and is_wide):
            for unit in units:
                yield rows(self.job, unit, self.parts, self.workers)
            return
        cut = [pieces(unit, units, self.workers) for unit in units]
        found = self._beside([piece for each in cut for piece in each])
        for each in cut:
            tables, fresh = zip(*itertools.islice(found, len(each)), strict=True)
            yield pd.concat(tables, ignore_index=True), sum(fresh)

    def _beside(self, units: list[Unit]) -> Iterator[tuple[pd.DataFrame, int]]:
        """Rows of units that run beside each other, in their order."""
        with ThreadPoolExecutor(self.workers) as pool:
            begun = {
                at: pool.submit(rows, self.job, units[at], self.parts, 1)
                for at in sorted(range(len(units)), key=lambda at: -_work(units[at]))
            }
            try:
                yield from (begun[at].result() for at in range(len(units)))
            finally:  # what failed, or was interrupted, begins nothing more
                for future in begun.values():
                    future.cancel()

    def _say(self) -> None:
        counts = f"{self.reused} lanes reused, {self.computed} computed"
        left = self.lanes - self.reused - self.computed
        counts += f", {left} could not win" if left else ""
        log.info("%s: %s", self.meter.name, counts)


def _work(unit: Unit) -> float:
    return len(unit.points) * unit.passes


def pieces(unit: Unit, beside: list[Unit], workers: int) -> list[Unit]:
    """A unit's lanes in pieces that workers share well, beside other units.

    What a lane reaches depends on no other lane, so that the rows are the same.
    """
    share = sum(_work(each) for each in beside) / (workers * PIECES_PER_WORKER)
    size = max(LEAST_LANES, math.ceil(share / unit.passes))
    return [
        replace(unit, points=unit.points[low : low + size])
        for low in range(0, len(unit.points), size)
    ]


class Meter:
    """Progress of a stage: what is done, of how much, and the time left.

    Time is taken to be in proportion to work, for lanes their passes. What an earlier
    run left says nothing of the speed, nor does the first hundredth, which compiles.
    ``at_most`` says that it will be less: what takes longest comes first, or not all of
    it is done.
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
        """Count so many as done, and say so if it is time."""
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
