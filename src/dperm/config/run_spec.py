"""A job as its file: composed and checked once, for a process that does neither.

The Snakefile's main process composes ``conf/`` and checks it. It writes a
:class:`RunSpec` for each job, and one file of the sections that jobs look up by their
names. A job that is given its file reads no YAML, on this machine or another.
"""

from __future__ import annotations

import functools
import json
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any

from dperm.config import locate, schema
from dperm.config.validation import key_of
from dperm.storage import files as store

IN_KEYS = "nothing"  # keys have the settings that are in it
# Of a stage: the file of its job, before which other words yield
OPTION = "--spec"
FOLDER = Path(".snakemake", "dperm")
#: Of the process of a job: groups to names to plain sections.
_SECTIONS: dict[str, dict[str, Any]] = {}
_OVERRIDES: list[str] = []  # with which they were composed


@dataclass(frozen=True)
class RunSpec:
    """What a job computes: problem, solver, privacy target, grid, seed and scale.

    Of the paper, ``config`` has what the job may read.
    """

    config: schema.Config
    job: str  #: its name, as in the list of jobs
    key: str  #: of the job; solvers of one setting share it

    def write(self, sections: Path) -> None:
        """Write it with the path of the file of sections."""
        content = {"config": asdict(self.config), "sections": str(sections)}
        store.write_text(path_of(self.job, self.key), json.dumps(content))


def path_of(job: str, key: str) -> Path:
    """The file of a job, by its name and key."""
    return FOLDER / "jobs" / f"{job.replace('/', '.')}-{key}.json"


def told(words: Sequence[str]) -> schema.Config | None:
    """The configuration of a stage that is given its file; None if it is not there.

    Of its other ``words`` only the number of workers counts. Sections are found from
    now on.
    """
    if OPTION not in words or not Path(words[-1]).is_file():
        return None
    (workers,) = (word for word in words if word.startswith("workers="))
    return read(Path(words[-1]), int(workers.partition("=")[2]))


def read(path: Path, workers: int) -> schema.Config:
    """The configuration in a file, for a number of workers."""
    locate.conf_dirs()  # the folder next to the user's conf/ joins Python's path
    content = store.read_json(path, "run again")
    config = rebuilt(schema.Config, content["config"])
    _SECTIONS.update(store.read_json(Path(content["sections"]), "run again"))
    _OVERRIDES[:] = config.overrides
    return replace(config, workers=workers)


def write_sections(
    sections: Mapping[str, Mapping[str, Any]], name: str
) -> Path:
    """Write sections by groups and names; returns the path."""
    plain = {
        group: {name: asdict(section) for name, section in named.items()}
        for group, named in sections.items()
    }
    path = FOLDER / f"sections-{name}.json"
    store.write_text(path, json.dumps(plain))
    return path


def sections(
    group: str, names: Iterable[str], overrides: Iterable[str]
) -> dict[str, Any]:
    """The sections that the run has composed with these overrides, by their names."""
    stored = _SECTIONS.get(group, {})
    if of_group(group, _OVERRIDES) != of_group(group, overrides):
        return {}
    declared_type = schema.GROUPS[group]
    return {
        name: rebuilt(declared_type, stored[name])
        for name in names
        if name in stored
    }


def of_group(group: str, overrides: Iterable[str]) -> list[str]:
    """The overrides of keys below a group."""
    return [text for text in overrides if key_of(text).startswith(f"{group}.")]


def rebuilt(declared_type: Any, plain: Any) -> Any:
    """The section whose plain values these are; they were checked before."""
    if isinstance(declared_type, type) and is_dataclass(declared_type):
        section: Any = object.__new__(declared_type)
        parts = {
            name: rebuilt(_hints(declared_type)[name], plain[name])
            for name in plain
        }
        vars(section).update(parts)
        return section
    *_, inner = typing.get_args(declared_type) or [None]
    if is_dataclass(inner) and isinstance(plain, Mapping):
        return {name: rebuilt(inner, plain[name]) for name in plain}
    if is_dataclass(inner) and isinstance(plain, list):
        return [rebuilt(inner, part) for part in plain]
    return plain


@functools.cache
def _hints(declared_type: Any) -> dict[str, Any]:
    return typing.get_type_hints(declared_type)
