"""``dperm adopt``: lanes of older code are kept if the current makes the same bits.

Any edit of a solver, even a renamed variable, changes the key of its lanes. Lanes are
deterministic, so a few of them are run again: the cheapest of every stage and one at
random, of each run and each method of a sweep. If every bit of these agrees, all parts
of the same older code get the new key, which ``adopted.json`` records. If one bit
differs, they are computed again when their stage runs.
"""

from __future__ import annotations

import datetime
import logging
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tabulate import tabulate

from dperm.core.experiment import config as configuration
from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.core.experiment import tune as tuning
from dperm.core.experiment.files import POINT, Key, Parts
from dperm.core.experiment.locate import available
from dperm.core.experiment.results import sweep_path
from dperm.core.experiment.unit import Job, Unit, compute, missing, part_key
from dperm.core.experiment.unit import seed as seed_of
from dperm.pipeline import digests, inputs, stages
from dperm.pipeline.products import function_of, sweep_problems
from dperm.pipeline.verify import NAMED, SAID, first_difference
from dperm.store.folders import locked

log = logging.getLogger(__name__)

LEAST = 2  # cheapest members of every stage that are run again in every group
FEW = 16  # lanes of a member that are run again

Group = tuple[str, ...]  # what its members have in common; ends with their code


class DifferentBitsError(RuntimeError):
    """A lane that has other bits now; the text names both values."""


@dataclass(frozen=True)
class Member:
    """Stored rows of one seed that were made by other code than the current."""

    name: str  #: for messages
    stage: str
    key: Key  #: its key under the current code
    paths: list[Path]  #: its files
    cost: float  #: in which the cheapest is found, within a stage
    #: maps points (step, clip) to the rows that the current code makes
    again: Callable[[pd.DataFrame], pd.DataFrame]

    def rows(self) -> pd.DataFrame:
        """The stored rows, without damaged files."""
        tables = [store.read_or_drop(path) for path in self.paths]
        readable = [table for table in tables if table is not None]
        return pd.concat(readable, ignore_index=True) if readable else pd.DataFrame()


def adopt(config: schema.Config) -> Path:
    """Adopt parts of a paper, or of all papers, and print a table of the outcome.

    Returns
    -------
    Path
        Of ``adopted.json``, to which every adoption is added.

    Raises
    ------
    DifferentBitsError
        If any group differs; all other groups have been adopted.
    """
    is_named = any(text.startswith("paper=") for text in config.overrides)
    given = [text for text in config.overrides if not text.startswith("paper=")]
    differences: list[str] = []
    groups: dict[Group, list[Member]] = {}
    for name in [config.paper.name] if is_named else available("paper"):
        paper = configuration.compose([f"paper={name}", *given])
        for group, member in _members(paper, differences):
            groups.setdefault(group, []).append(member)
    path = plan.results_folder(config, "adopted.json")
    table = []
    for group, members in groups.items():
        title, sample = " ".join(group[:-1]), _sample(members)
        log.info("adopt: %s, %d of %d replays", title, len(sample), len(members))
        replayed, difference = compared(sample)
        if difference:
            differences.append(f"{title}: {difference}")
        else:
            _note(path, group, members, replayed)
            _restamp(members)
        outcome = "refused" if difference else "adopted"
        table.append([title, len(members), len(replayed), outcome])
    head = ["group", "parts", "replayed", ""]
    print(tabulate(table, headers=head) if table else "nothing of other code was kept")
    if differences:
        raise DifferentBitsError("not adopted:\n" + "\n".join(differences))
    return path


def compared(sample: Iterable[Member]) -> tuple[list[dict], str]:
    """Run a sample again, up to the first difference.

    Returns
    -------
    list of dict
        What was run again: part, seeds and number of rows.
    str
        The first difference; empty if there is none.
    """
    replayed = []
    for one in sample:
        kept = one.rows()
        if kept.empty:
            continue
        points = _few(kept)
        if len(points) and one.stage != "sweep":
            kept = kept.merge(points, on=POINT)
        apart = NAMED if one.stage == "sweep" else SAID
        seeds = sorted(map(int, kept["seed"].unique()))
        replayed.append({"part": one.name, "seeds": seeds, "rows": len(kept)})
        if difference := first_difference(kept, one.again(points), apart):
            return replayed, f"{one.name}: {difference}"
    return replayed, "" if replayed else "nothing of it could be read"


def _sample(members: list[Member]) -> list[Member]:
    """The cheapest of every stage and one other, always the same."""
    cheap = sorted(members, key=lambda one: (one.cost, one.name))
    of_stage = [[one for one in cheap if one.stage == stage] for stage in
                ("tune", "evaluate", "sweep")]  # fmt: skip
    first = [one for some in of_stage for one in some[:LEAST]]
    rest = [one for one in cheap if one not in first]
    return [*first, *random.Random(cheap[0].name).sample(rest, min(1, len(rest)))]


def _few(rows: pd.DataFrame) -> pd.DataFrame:
    """Points to run again: all, or some spread evenly, with both ends."""
    if not set(POINT) <= set(rows):
        return pd.DataFrame()
    points = rows[POINT].drop_duplicates().sort_values(POINT, ignore_index=True)
    even = np.linspace(0, len(points) - 1, min(FEW, len(points))).astype(int)
    return points.iloc[even]


def _restamp(members: list[Member]) -> None:
    for one in members:  # if interrupted, the next adoption finds the remaining ones
        folder = one.paths[0].parent.parent
        with locked(folder):
            for path in filter(Path.exists, one.paths):
                Parts(folder).restamp(path, one.key.code)


def _note(path: Path, group: Group, members: list[Member], replayed: list) -> None:
    """Add an adoption to ``adopted.json``, before anything is renamed."""
    known = store.read_json(path, kind=list) if path.exists() else []
    entry = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "group": list(group[:-1]),
        "old_code": group[-1],
        "new_code": members[0].key.code,
        "commit": store.commit(),
        "versions": store.versions(),
        "parts": len(members),
        "replayed": replayed,
    }
    store.write_json(path, [*known, entry])


# --- parts of other code --------------------------------------------------------------


def _members(config: schema.Config, moved: list[str]) -> Iterator[tuple[Group, Member]]:
    """Yield all parts of other code of a paper, with their groups.

    Optima are computed again first if their code changed. One that differs is added to
    ``moved``: all lanes of its problem are measured by F*, so they differ as well.
    """
    for run in plan.runs(config):
        folder = plan.results_folder(config, config.paper.name, *run)
        if Parts(folder).by_identity():
            yield from _lanes(plan.at_run(config, *run), moved)
    for name, what in config.paper.sweeps.items():
        yield from _points(config, name, what, moved)


def _lanes(config: schema.Config, moved: list[str]) -> Iterator[tuple[Group, Member]]:
    names = (config.paper.name, config.problem.name, config.solver.name)
    parts = Parts(plan.results_folder(config, *names))
    now = digests.lanes(config.solver.algorithm, config.problem.loss)
    kept = parts.by_identity()
    if all(set(found) == {now} for found in kept.values()):
        return
    _solve_again(config, moved)
    job = inputs.load_job(config)
    if job is None:
        return
    for unit in _units(job, plan.design(config)):
        key, current = part_key(job, unit), parts.read(part_key(job, unit))
        if current is not None and len(missing(unit.settings(), current)) == 0:
            continue
        for code, paths in kept.get(key.identity, {}).items():
            if code != now:
                name = (
                    f"{unit.stage} {parts.folder.parent}, {unit.passes:g} passes, "
                    f"{unit.calibration.calibration}, seed {seed_of(job, unit)}"
                )
                again = partial(compute, job, unit, workers=config.workers)
                yield (
                    (*names[:2], config.solver.algorithm, code),
                    Member(name, unit.stage, key, paths, unit.work, again),
                )


def _solve_again(config: schema.Config, moved: list[str]) -> None:
    """Prepare and solve the problem again if its optimum was made by other code."""
    path = inputs.optimum_folder(config) / "optimum.json"
    before = store.known_json(path) or {}
    if before.get("made_by") == digests.solved(digests.optimum(config.problem)):
        return
    log.info("%s: its optimum is of other code, solving again", config.problem.name)
    for stage in (inputs.fetch, inputs.prepare, inputs.optimum):
        stage(config)
    now = store.read_json(path)
    for key in ("digest", "value", "w_digest"):
        if key in before and before[key] != now.get(key):
            was = f"{key} {before[key]!r} was kept, {now.get(key)!r} is made"
            moved.append(f"optimum of {config.problem.name}: {was}")
            return


def _units(job: Job, design: plan.Design) -> list[Unit]:
    """All units that the paper needs, with the noise of the current accountant."""
    with locked(job.folder):
        units = list(tuning.tuning_units(job, replace(design, race=False)))
        tuned = job.folder / "tune.parquet"
        if tuned.is_file():
            units += tuning.fresh_units(job, design, store.read_table(tuned))
        else:
            log.info("%s is missing: its fresh runs are not checked", tuned)
    return units


def _points(
    config: schema.Config, name: str, what: schema.Sweep, moved: list[str]
) -> Iterator[tuple[Group, Member]]:
    parts = Parts(sweep_path(config, name).parent / name)
    kept, named = parts.by_identity(), parts.named()
    if not kept:
        return
    for problem in sweep_problems(config, what):
        _solve_again(plan.at_problem(config, problem), moved)
    try:
        every = stages.tasks(config, name, what)
    except (FileNotFoundError, ValueError) as error:
        log.info("sweep %s: not looked at: %s", name, error)
        return
    function = function_of(config, "sweeps", what.kind)
    for task in every:
        point, replicate, key = task
        found = {} if str(key) in named else kept.get(key.identity, {})
        # Each method that a point names may run other code.
        methods = sorted(k for k in point if isinstance(point[k], str | bool))
        group = (config.paper.name, name, *(f"{k}={point[k]}" for k in methods))
        for code, paths in found.items():
            said = f"sweep {config.paper.name} {name}, {point}, replicate {replicate}"
            again = partial(_measured, config, name, what, function, task)
            tables = (store.read_or_drop(path) for path in paths)
            cost = sum(float(t["seconds"].sum()) for t in tables if t is not None)
            yield (*group, code), Member(said, "sweep", key, paths, cost, again)


def _measured(
    config: schema.Config,
    name: str,
    what: schema.Sweep,
    function: Callable[..., Any],
    task: stages.Task,
    _: pd.DataFrame,
) -> pd.DataFrame:
    """Rows of a task by the current code; a sweep has no lanes to choose from."""
    return stages.measured(config, name, what, function, task)
