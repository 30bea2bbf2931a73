"""``dperm adopt``: lanes of older code are kept if the current makes the same bits.

Any edit of a solver, even a renamed variable, changes the key of its lanes. Lanes are
deterministic, so a few are run again: of each stage of each run, and of each sweep, the
two cheapest units and another. If all bits agree, all parts of the same older code get
the new key; if one differs, their stage computes them again.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from dperm.core.experiment import config as configuration
from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.core.experiment import tune as tuning
from dperm.core.experiment.files import POINT, Parts
from dperm.core.experiment.locate import available
from dperm.core.experiment.unit import compute, missing, part_key
from dperm.pipeline.inputs import load_job
from dperm.pipeline.stages import Swept
from dperm.pipeline.verify import NAMED, SAID, difference
from dperm.store.folders import locked

log = logging.getLogger(__name__)

CHEAP = 2  # members of a group that are run again, the cheapest first, and one other
FEW = 16  # lanes of a unit that are run again


class DifferentBitsError(RuntimeError):
    """A lane that has other bits now; the text names both values."""


class Member(NamedTuple):
    """Stored rows of one seed that were made by other code than the current."""

    group: tuple[str, ...]  #: all of it is adopted, or nothing
    stage: str
    cost: float
    name: str
    paths: list[Path]
    code: str  #: digest of the current code
    #: maps points (step, clip) to the rows that the current code makes
    again: Callable[[pd.DataFrame], pd.DataFrame]
    apart: tuple[str, ...]  #: columns that are not compared

    def differs(self) -> str:
        """The first bit that the current code makes otherwise; empty if none."""
        tables = [store.read_or_drop(path) for path in self.paths]
        readable = [table for table in tables if table is not None]
        if not readable:
            return "it could not be read"
        kept, points = pd.concat(readable, ignore_index=True), pd.DataFrame()
        if {*POINT} <= {*kept}:
            points = kept[POINT].drop_duplicates().head(FEW)
            kept = kept.merge(points, on=POINT)
        text, is_equal = difference(kept, self.again(points), self.apart)
        return text or ("" if is_equal else "other bits in the last digits")


def adopt(config: schema.Config) -> list[str]:
    """Adopt lanes of a paper, or of all papers.

    Returns
    -------
    list of str
        One line for every group of lanes that was adopted.

    Raises
    ------
    DifferentBitsError
        If any group differs; all other groups have been adopted.
    """
    is_named = any(text.startswith("paper=") for text in config.overrides)
    given = [text for text in config.overrides if not text.startswith("paper=")]
    groups: dict[tuple[str, ...], list[Member]] = {}
    for name in [config.paper.name] if is_named else available("paper"):
        for member in _members(configuration.compose([f"paper={name}", *given])):
            groups.setdefault((name, *member.group), []).append(member)
    adopted, refused = [], []
    for group, members in groups.items():
        title, chosen = " ".join(group[:-1]), _sample(members)
        if said := next(filter(None, (one.differs() for one in chosen)), ""):
            refused.append(f"{title}: {said}")
            continue
        for one in members:  # if interrupted, the next adoption finds the rest
            folder = one.paths[0].parent.parent
            with locked(folder):
                for path in filter(Path.exists, one.paths):
                    Parts(folder).restamp(path, one.code)
        count = f"{len(members)} parts adopted, {len(chosen)} run again"
        adopted.append(f"{title}: {count}")
        log.info(adopted[-1])
    if not groups:
        log.info("nothing of other code was kept")
    if refused:
        raise DifferentBitsError("not adopted:\n" + "\n".join(refused))
    return adopted


def _sample(members: list[Member]) -> list[Member]:
    """The cheapest members of every stage and one other, always the same."""
    found, chance = [], random.Random(members[0].name)
    for stage in sorted({one.stage for one in members}):
        own = [one for one in members if one.stage == stage]
        own.sort(key=lambda one: (one.cost, one.name))
        others = own[CHEAP:]
        found += [*own[:CHEAP], *chance.sample(others, min(1, len(others)))]
    return found


def _members(config: schema.Config) -> Iterator[Member]:
    """Parts of other code of a paper; those of other settings are left alone."""
    for run in plan.runs(config):
        if Parts(plan.results_folder(config, config.paper.name, *run)).by_identity():
            yield from _lanes(plan.at_run(config, *run))
    for name in config.paper.sweeps:
        yield from _points(Swept(config, name))


def _lanes(config: schema.Config) -> Iterator[Member]:
    """Parts of a run, by the code that made them."""
    job, design = load_job(config), plan.design(config)
    if job is None:
        return
    parts, tuned = Parts(job.folder), job.folder / "tune.parquet"
    with locked(job.folder):
        units = list(tuning.tuning_units(job, replace(design, race=False)))
        if tuned.is_file():
            units += tuning.fresh_units(job, design, store.read_table(tuned))
    kept = parts.by_identity()
    for unit in units:
        key = part_key(job, unit)
        current = parts.read(key)
        if current is not None and len(missing(unit.settings(), current)) == 0:
            continue
        for code, paths in kept.get(key.identity, {}).items():
            if code != key.code:
                group, stage = (job.names.problem, job.names.solver, code), unit.stage
                name = f"{unit.passes:g} passes, {unit.replicate}"
                again = partial(compute, job, unit, workers=config.workers)
                found = (unit.work, name, paths, key.code, again, SAID)
                yield Member(group, stage, *found)


def _points(swept: Swept) -> Iterator[Member]:
    """Parts of a sweep, by the methods that its points name and the code of each."""
    kept, named = swept.parts.by_identity(), swept.parts.named()
    for task in swept.tasks() if kept else ():
        point, replicate, key = task
        methods = [k for k in sorted(point) if isinstance(point[k], str | bool)]
        at = [f"{method}={point[method]}" for method in methods]
        for code, paths in kept.get(key.identity, {}).items():
            if str(key) not in named:
                group = ("sweep", swept.name, *at, code)
                cost = float(sum(path.stat().st_size for path in paths))
                said = f"{point}, replicate {replicate}"
                again = partial(_measured, swept, task)
                apart = (*NAMED, "seconds")
                found = (cost, said, paths, key.code, again, apart)
                yield Member(group, "sweep", *found)


def _measured(swept: Swept, task: tuple, _: pd.DataFrame) -> pd.DataFrame:
    return swept.measured(task)
