"""``dperm adopt``: lanes of older code are kept if the current makes the same bits.

Any edit of a solver, even a renamed variable, changes the key of its lanes. Lanes are
deterministic, so some are run again: of the parts that the same older code made of a
run, or of a method in a sweep, the smallest and others. If all bits agree, all these
parts get the new key; if one differs, their stage computes them again.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from dperm.core.experiment import config as configuration
from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.core.experiment import tune as tuning
from dperm.core.experiment.files import POINT, Parts
from dperm.core.experiment.locate import available
from dperm.core.experiment.unit import Unit, compute, missing, part_key
from dperm.pipeline.inputs import load_job
from dperm.pipeline.stages import Swept
from dperm.pipeline.verify import NAMED, SAID, difference
from dperm.store.folders import locked

log = logging.getLogger(__name__)

FEWEST = 8  # parts of a group that are run again, if it has so many; two the smallest
LANES = 16  # of a part that are run again


class DifferentBitsError(RuntimeError):
    """A lane that has other bits now; the text names both values."""


class Old(NamedTuple):
    """Parts that the same older code made: all are adopted, or none."""

    title: str
    paths: list[Path]
    code: str  #: digest of the current code
    again: Callable[[pd.DataFrame], pd.DataFrame]  #: maps rows to those of current code
    apart: tuple[str, ...]  #: columns that are not compared

    def difference(self) -> str:
        """How a sample, always the same, differs by any bit; empty if it does not."""
        paths = sorted(self.paths, key=lambda path: (path.stat().st_size, path.name))
        others = paths[2:]
        chosen = random.Random(self.title).sample(others, min(FEWEST - 2, len(others)))
        for path in (*paths[:2], *chosen):
            kept = store.read_or_drop(path)
            if kept is None:
                return f"{path.name} could not be read"
            if {*POINT} <= {*kept}:
                kept = kept.merge(kept[POINT].drop_duplicates().head(LANES), on=POINT)
            text, is_equal = difference(kept, self.again(kept), self.apart)
            if not is_equal:
                return text or "other bits in the last digits"
        return ""


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
    adopted, refused = [], []
    for name in [config.paper.name] if is_named else available("paper"):
        for old in _old(configuration.compose([f"paper={name}", *given])):
            if text := old.difference():
                refused.append(f"{old.title}: {text}")
                continue
            parts = Parts(old.paths[0].parent.parent)
            with locked(parts.folder.parent):
                for path in filter(Path.exists, old.paths):
                    parts.restamp(path, old.code)
            adopted.append(f"{old.title}: {len(old.paths)} parts adopted")
            log.info(adopted[-1])
    if not adopted and not refused:
        log.info("nothing of other code was kept")
    if refused:
        raise DifferentBitsError("not adopted:\n" + "\n".join(refused))
    return adopted


def _old(config: schema.Config) -> Iterator[Old]:
    """Parts of other code of a paper; those of other settings are left alone."""
    for run in plan.runs(config):
        if Parts(plan.results_folder(config, config.paper.name, *run)).named():
            yield from _lanes(plan.at_run(config, *run))
    for name in config.paper.sweeps:
        yield from _points(Swept(config, name))


def _lanes(config: schema.Config) -> Iterator[Old]:
    job, design = load_job(config), plan.design(config)
    if job is None:
        return
    with locked(job.folder):
        units = list(tuning.tuning_units(job, design))
        if (job.folder / "tune.parquet").is_file():
            units += tuning.fresh_units(job, design)
    known, parts = dict[str, Unit](), Parts(job.folder)
    for unit in units:
        key, settings = part_key(job, unit), unit.settings()
        current = parts.read(key)
        if current is None or len(missing(settings, current)):
            known[key.identity] = unit

    def again(kept: pd.DataFrame) -> pd.DataFrame:
        unit = known[kept["config_digest"].iloc[0].partition("-")[0]]
        points = kept[POINT].drop_duplicates()
        return compute(job, unit, points, config.workers)

    title = f"{job.names.paper} {job.names.problem} {job.names.solver}"
    for code, paths in _by_code(parts, known).items():
        if code != job.code.lanes:
            yield Old(title, paths, job.code.lanes, again, SAID)


def _points(swept: Swept) -> Iterator[Old]:
    """Parts of a sweep by the methods that its points name: each may run other code."""
    named = swept.parts.named()
    left = [task for task in swept.tasks() if str(task[2]) not in named]
    tasks = {task[2].identity: task for task in left}

    def again(kept: pd.DataFrame) -> pd.DataFrame:
        return swept.measured(tasks[kept["config_digest"].iloc[0].partition("-")[0]])

    groups: dict[tuple[str, str], set[str]] = {}
    for identity, (point, _, key) in tasks.items():
        methods = [k for k in sorted(point) if isinstance(point[k], str | bool)]
        at = "".join(f" {method}={point[method]}" for method in methods)
        groups.setdefault((at, key.code), set()).add(identity)
    for (at, current), known in groups.items():
        title = f"{swept.config.paper.name} sweep {swept.name}{at}"
        for code, paths in _by_code(swept.parts, known).items():
            if code != current:
                yield Old(title, paths, current, again, (*NAMED, "seconds"))


def _by_code(parts: Parts, known: Container[str]) -> dict[str, list[Path]]:
    """Parts whose identities are known, by the code that made them."""
    found: dict[str, list[Path]] = {}
    for name, path in parts.named().items():
        identity, code = name.split("-")[:2]
        if identity in known:
            found.setdefault(code, []).append(path)
    return found
