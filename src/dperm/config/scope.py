"""What a job may read of the configuration, and a view that refuses all else.

The key of a job is a digest of the settings that its numbers depend on. The same
settings are its :class:`Scope`. While its numbers are made, the job sees the
configuration through :func:`view`: the first reading of a setting that its key does not
hold ends it by a :class:`BeyondKeyError`, so that no result can be stale in silence.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from typing import Any

from dperm.config import schema
from dperm.storage.source_code import unwatched

IN_KEYS = "nothing"  # keys come out of it
# Settings that say where files are and how many threads work, and what a command line
# has chosen: no number depends on them.
FREE = (
    "data",
    "output",
    "setting",
    "workers",
    "product",
    "formats",
    "drawn",
    "overrides",
)
# Mappings of names to sections, or to files, each of whose entries is read by itself.
MAPPINGS = ("runs", "sweeps", "figures", "tables", "published")
NAMES = "*"  # in a path, the names in a mapping


class BeyondKeyError(RuntimeError):
    """A job that reads what its key does not hold; the text names both."""


@dataclass(frozen=True)
class Scope:
    """The settings that the key of a job holds, by their paths.

    A path is a dotted name such as ``paper.runs.dp_cd.grid``. It stands for all below
    it. That of a problem or a solver has its name, as ``problem.diabetes.loss`` has.
    """

    job: str  #: name of the job, for messages
    paths: frozenset[str]

    def holds(self, path: str) -> bool:
        """Whether the key has the setting at a path."""
        keys = path.split(".")
        if keys[0] in FREE or keys[-1] in ("name", "folder"):
            return True
        above = (".".join(keys[:count]) for count in range(1, len(keys) + 1))
        return any(prefix in self.paths for prefix in above)

    def require(self, path: str) -> None:
        """Raise BeyondKeyError if the key does not have the setting at a path."""
        if not self.holds(path) and not unwatched.is_on:
            raise BeyondKeyError(
                f"{self.job}: its code reads {path}, which its key does not hold, so "
                "that an edit of it would go unnoticed: read the setting by its name, "
                "or pass it as an option"
            )


def view(section: Any, path: str, scope: Scope) -> Any:
    """A section, or a mapping of sections, that refuses what the scope does not hold.

    The view of the whole configuration has the empty path.
    """
    if isinstance(section, Mapping):
        return _Entries(section, path, scope)
    section_type: Any = type(section)
    if not isinstance(section, schema.Section) or issubclass(
        section_type, _Viewed
    ):
        return section
    seen: Any = object.__new__(_viewed(section_type))
    vars(seen).update(vars(section), _path=path, _scope=scope)
    return seen


class _Viewed:
    """Marks the classes of views."""


@functools.cache
def _viewed(section_type: Any) -> type:
    """The class of views of a type of section."""
    names = frozenset(field.name for field in fields(section_type))

    def read(self: Any, name: str) -> Any:
        content = object.__getattribute__(self, name)
        attributes = object.__getattribute__(self, "__dict__")
        if name not in names or "_scope" not in attributes:
            return content
        return _read(content, attributes["_path"], name, attributes["_scope"])

    def reduced(self: Any) -> Any:
        attributes = object.__getattribute__(self, "__dict__")
        plain: Any = object.__new__(section_type)
        vars(plain).update({name: attributes[name] for name in names})
        if "_scope" not in attributes:  # replaced: its parts are views still
            return _rebuilt, (section_type, vars(plain))
        return view, (plain, attributes["_path"], attributes["_scope"])

    methods = {"__getattribute__": read, "__reduce__": reduced}
    return type(section_type.__name__, (_Viewed, section_type), methods)


def _rebuilt(section_type: Any, content: dict[str, Any]) -> Any:
    section: Any = object.__new__(section_type)
    vars(section).update(content)
    return section


def _read(content: Any, path: str, name: str, scope: Scope) -> Any:
    """What a section has under a name, seen through the scope."""
    below = f"{path}.{name}" if path else name
    if isinstance(content, schema.ProblemSection | schema.Solver) and not path:
        return view(content, f"{name}.{content.name}", scope)
    if isinstance(content, schema.Section):
        return view(content, below, scope)
    if name in MAPPINGS and path == "paper":
        return view(content, below, scope)
    scope.require(below)
    return content


class _Entries(Mapping[str, Any]):
    """A mapping of a paper, each of whose entries is seen through a scope."""

    def __init__(self, content: Mapping[str, Any], path: str, scope: Scope):
        self.content = content
        self.path = path
        self.scope = scope

    def __getitem__(self, name: str) -> Any:
        content = self.content[name]
        path = f"{self.path}.{name}"
        if isinstance(content, schema.Section):
            return view(content, path, self.scope)
        self.scope.require(path)
        return content

    def __contains__(self, name: object) -> bool:
        return name in self.content

    def __iter__(self) -> Iterator[str]:
        self.scope.require(f"{self.path}.{NAMES}")
        return iter(self.content)

    def __len__(self) -> int:
        self.scope.require(f"{self.path}.{NAMES}")
        return len(self.content)


# --- the scope of the job that runs ---------------------------------------------------

_ACTIVE: list[Scope] = []


@contextmanager
def within(scope: Scope) -> Iterator[None]:
    """Have every section that is read meanwhile seen through a scope."""
    _ACTIVE.append(scope)
    try:
        yield
    finally:
        _ACTIVE.remove(scope)


def seen(group: str, name: str, section: Any) -> Any:
    """A section of a group through the scope of the job that runs, if one does."""
    if unwatched.is_on or not _ACTIVE or group not in ("problem", "solver"):
        return section
    return view(section, f"{group}.{name}", _ACTIVE[-1])


def plain(content: Any) -> Any:
    """A setting as plain values, for a digest."""
    return asdict(content) if isinstance(content, schema.Section) else content


def leaves(
    section: Any, path: str, fields_read: Iterable[str]
) -> dict[str, Any]:
    """The settings of a section whose names are among those that code reads, by paths.

    A section inside it is taken as a whole.
    """
    names = {*fields_read}
    return {
        f"{path}.{field.name}": plain(getattr(section, field.name))
        for field in fields(section)
        if field.name in names
    }
