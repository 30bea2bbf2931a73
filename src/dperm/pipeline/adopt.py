"""``dperm adopt``: lanes of older code are kept if the current makes the same bits.

Any edit of a solver, even a renamed variable, changes the key of its lanes. Lanes are
deterministic, so a few are run again: the cheapest units of every stage and one other,
of each run, and points of each sweep. If all bits agree, all parts of the same older
code get the new key; if one differs, their stage computes them again.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pandas as pd

from dperm.core.experiment import config as configuration
from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.core.experiment import tune as tuning
from dperm.core.experiment.files import POINT, Key, Parts
from dperm.core.experiment.locate import available
from dperm.core.experiment.results import sweep_path
from dperm.core.experiment.unit import compute, missing, part_key
from dperm.pipeline import inputs, stages
from dperm.pipeline.products import function_of
from dperm.pipeline.verify import NAMED, SAID, difference
from dperm.store.folders import locked

log = logging.getLogger(__name__)

CHEAP = 2  # members of a stage that are run again, the cheapest first, and one other
FEW = 16  # lanes of a unit that are run again


class DifferentBitsError(RuntimeError):
    """A lane that has other bits now; the text names both values."""


@dataclass(frozen=True)
class Member:
    """Stored rows of one seed that were made by other code than the current."""

    stage: str
    name: str  #: for messages
    key: Key  #: its key under the current code
    paths: list[Path]  #: its files
    cost: float  #: in which the cheapest is found
    apart: tuple[str, ...]  #: columns that are not compared
    #: maps points (step, clip) to the rows that the current code makes
    again: Callable[[pd.DataFrame], pd.DataFrame]

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
        paper = configuration.compose([f"paper={name}", *given])
        for run in plan.runs(paper):
            for code, member in _lanes(plan.at_run(paper, *run)):
                groups.setdefault((name, *run, code), []).append(member)
        for sweep in paper.paper.sweeps:
            for at, member in _points(paper, sweep):
                groups.setdefault((name, "sweep", sweep, *at), []).append(member)
    adopted, refused = [], []
    for (*names, _), members in groups.items():
        title, found = " ".join(names), [one.differs() for one in sample(members)]
        if any(found):
            refused.append(f"{title}: {next(filter(None, found))}")
            continue
        for one in members:  # if interrupted, the next adoption finds the rest
            folder = one.paths[0].parent.parent
            with locked(folder):
                for path in filter(Path.exists, one.paths):
                    Parts(folder).restamp(path, one.key.code)
        count = f"{len(members)} parts adopted, {len(found)} run again"
        adopted.append(f"{title}: {count}")
        log.info(adopted[-1])
    if not groups:
        log.info("nothing of other code was kept")
    if refused:
        raise DifferentBitsError("not adopted:\n" + "\n".join(refused))
    return adopted


def sample(members: list[Member]) -> list[Member]:
    """The cheapest members of every stage and one other, always the same."""
    found = []
    for stage in sorted({one.stage for one in members}):
        own = [one for one in members if one.stage == stage]
        first, *rest = sorted(own, key=lambda one: (one.cost, one.name))
        cheap, others = rest[: CHEAP - 1], rest[CHEAP - 1 :]
        other = random.Random(first.name).sample(others, min(1, len(others)))
        found += [first, *cheap, *other]
    return found


def _lanes(config: schema.Config) -> Iterator[tuple[str, Member]]:
    """Parts of other code of a run, with that code.

    The optimum is computed first if its code changed. If it is another one, so are the
    identities of all lanes, and none is found.
    """
    names = (config.paper.name, config.problem.name, config.solver.name)
    parts = Parts(plan.results_folder(config, *names))
    kept = parts.by_identity()
    if not kept:
        return
    _solve_again(config)
    job = inputs.load_job(config)
    if job is None:
        return
    design = plan.design(config)
    with locked(job.folder):
        units = list(tuning.tuning_units(job, replace(design, race=False)))
        tuned = job.folder / "tune.parquet"
        if tuned.is_file():
            units += tuning.fresh_units(job, design, store.read_table(tuned))
    for unit in units:
        key = part_key(job, unit)
        current = parts.read(key)
        if current is not None and len(missing(unit.settings(), current)) == 0:
            continue
        for code, paths in kept.get(key.identity, {}).items():
            if code != key.code:
                name = f"{unit.passes:g} passes, {unit.replicate}"
                again = partial(compute, job, unit, workers=config.workers)
                yield code, Member(unit.stage, name, key, paths, unit.work, SAID, again)


def _solve_again(config: schema.Config) -> None:
    """Prepare and solve the problem again if its optimum was made by other code."""
    path = inputs.optimum_folder(config) / "optimum.json"
    if (store.known_json(path) or {}).get("made_by") != inputs.made_by(config):
        log.info("%s: its optimum is solved again", config.problem.name)
        for stage in (inputs.fetch, inputs.prepare, inputs.optimum):
            stage(config)


def _points(
    config: schema.Config, name: str
) -> Iterator[tuple[tuple[str, ...], Member]]:
    """Points of other code of a sweep, with the methods that they name, and that code.

    Each method may run other code.
    """
    what = config.paper.sweeps[name]
    parts = Parts(sweep_path(config, name).parent / name)
    kept, named = parts.by_identity(), parts.named()
    if not kept:
        return
    function = function_of(config, "sweeps", what.kind)
    for task in stages.tasks(config, name, what):
        point, replicate, key = task
        if str(key) in named:
            continue
        methods = sorted(k for k in point if isinstance(point[k], str | bool))
        at = [f"{method}={point[method]}" for method in methods]
        for code, paths in kept.get(key.identity, {}).items():
            again = partial(_measured, config, name, function, task)
            cost = float(sum(path.stat().st_size for path in paths))
            said = f"{point}, replicate {replicate}"
            apart = (*NAMED, "seconds")
            yield (*at, code), Member("sweep", said, key, paths, cost, apart, again)


def _measured(
    config: schema.Config,
    name: str,
    function: Callable[..., object],
    task: stages.Task,
    _: pd.DataFrame,
) -> pd.DataFrame:
    """Rows of a task by the current code; a sweep has no lanes to choose from."""
    what = config.paper.sweeps[name]
    return stages.measured(config, name, what, function, task)
