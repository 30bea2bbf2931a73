"""``dperm accept-code``: rows of older code are kept if the current one has their bits.

Any edit of a solver, even a renamed variable, changes the key of its settings. Settings
are deterministic, so some are run again: of the parts that the same older code made of
a run, or of a method in a sweep. If all bits agree, all these parts get the new key; if
one differs, their stage computes them again.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pandas as pd

from dperm.config import schema
from dperm.experiments import plan
from dperm.experiments import tune as tuning
from dperm.experiments.inputs import UnavailableError, load_job
from dperm.experiments.stages import SweepRun, SweepTask
from dperm.experiments.task import SolverJob, Task, compute, part_key
from dperm.storage import files as store
from dperm.storage.files import POINT, Parts
from dperm.workflow.verify import IDENTITY, UNCOMPARED, difference

log = logging.getLogger(__name__)

REPLAYED_PARTS = 8  # parts of a group that are run again, if it has so many
REPLAYED_SETTINGS = 16  # of a part that are run again
# A part of older code: the title of its group, its file, the new name, and what says
# how the rows that the current code makes differ.
Old = tuple[str, Path, str, Callable[[], str]]


class DifferentBitsError(RuntimeError):
    """A setting that has other bits now; the text names both values."""


def accept_code(config: schema.Config) -> list[str]:
    """Keep older rows of the paper; returns a line for every group that was kept.

    Raises DifferentBitsError if any group differs; all others have been kept.
    """
    groups: dict[tuple[str, str], list[Old]] = {}
    for old in _older(config):
        groups.setdefault((old[0], old[1].stem.split("-")[1]), []).append(old)
    accepted = []
    refused = []
    for (title, _), group in groups.items():
        sample = random.Random(title).sample(
            group, min(REPLAYED_PARTS, len(group))
        )
        try:
            text = next(
                (text for *_, differs in sample if (text := differs())), ""
            )
        except ValueError as error:  # a damaged part
            text = str(error)
        if text:
            refused.append(f"{title}: {text}")
            continue
        with store.locked(group[0][1].parents[1]):
            for _, path, name, _ in group:
                path.replace(path.with_stem(name))
        accepted.append(f"{title}: {len(group)} parts kept")
        log.info(accepted[-1])
    if not groups:
        log.info("%s: nothing of other code was kept", config.paper.name)
    if refused:
        raise DifferentBitsError("not kept:\n" + "\n".join(refused))
    return accepted


def _older(config: schema.Config) -> Iterator[Old]:
    """Parts of other code, but not of other settings."""
    for run in plan.runs(config.paper):
        if Parts(Path(config.output.results, config.paper.name, *run)).named():
            with suppress(UnavailableError):
                run_config = plan.at_run(config, *run)
                yield from _settings(
                    load_job(run_config), plan.design(run_config)
                )
    for name in config.paper.sweeps:
        yield from _points(SweepRun(config, name))


def _settings(job: SolverJob, design: plan.Design) -> Iterator[Old]:
    title = f"{job.names.paper} {job.names.problem} {job.names.solver}"
    tasks = [*tuning.tuning_tasks(job, design)]
    if (job.folder / "tune.parquet").is_file():
        # of a run that was tuned to its end
        for replicates in tuning.rounds(design):
            tasks += tuning.fresh_tasks(job, design, replicates)
    tasks_by_identity = {part_key(job, task).identity: task for task in tasks}
    for name, path in Parts(job.folder).named().items():
        identity, code, points = name.split("-")
        if identity in tasks_by_identity and code != job.code.solver:
            differs = partial(
                _settings_differ, job, tasks_by_identity[identity], path
            )
            yield (
                title,
                path,
                f"{identity}-{job.code.solver}-{points}",
                differs,
            )


def _settings_differ(job: SolverJob, task: Task, path: Path) -> str:
    stored = store.read_table(path)
    points = stored[POINT].drop_duplicates().head(REPLAYED_SETTINGS)
    recomputed = compute(job, task, points, job.workers)
    return _differences(stored.merge(points, on=POINT), recomputed, UNCOMPARED)


def _points(swept: SweepRun) -> Iterator[Old]:
    """Parts of a sweep by the methods that its points name: each may run other code."""
    paths = swept.parts.named()
    tasks = {task.key.identity: task for task in swept.tasks()}
    for name, path in paths.items():
        task = tasks.get(name.split("-")[0])
        if task is not None and str(task.key) not in paths:
            point = task.point
            methods = [
                k for k in sorted(point) if isinstance(point[k], str | bool)
            ]
            suffix = "".join(
                f" {method}={point[method]}" for method in methods
            )
            title = f"{swept.config.paper.name} sweep {swept.name}{suffix}"
            yield (
                title,
                path,
                str(task.key),
                partial(_point_differs, swept, task, path),
            )


def _point_differs(swept: SweepRun, task: SweepTask, path: Path) -> str:
    apart = (*IDENTITY, "seconds")
    return _differences(store.read_table(path), swept.measured(task), apart)


def _differences(
    stored: pd.DataFrame, recomputed: pd.DataFrame, ignored: tuple[str, ...]
) -> str:
    """How rows differ by any bit; empty if they do not."""
    text, is_equal = difference(stored, recomputed, ignored)
    return text if text or is_equal else "other bits in the last digits"
