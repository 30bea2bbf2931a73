"""Places of configuration, modules and the Snakefile.

The package contains a ``conf/``. A user's own folder, ``./conf`` or the one that
``DPERM_CONF`` names, takes precedence: its files are added, and replace those of the
same name. Python modules that it names may lie next to it. A folder with its own
``config.yaml`` is used alone, without the package's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from dperm.core.names import ConfigError as ConfigError
from dperm.core.names import home as home

_IS_PACKAGED = ContextVar("_IS_PACKAGED", default=False)  # see ``packaged_alone``
ROOT = "config.yaml"
GROUPS = ("paper", "problem", "solver", "scale", "dataset")


@contextmanager
def packaged_alone() -> Iterator[None]:
    """Read the package's own configuration alone, whatever the current folder has."""
    token = _IS_PACKAGED.set(True)
    try:
        yield
    finally:
        _IS_PACKAGED.reset(token)


def own_conf() -> Path | None:
    """The user's own folder of configuration; None if there is none.

    Raises ConfigError if ``DPERM_CONF`` is not the path of a folder.
    """
    if _IS_PACKAGED.get():
        return None
    named = os.environ.get("DPERM_CONF")
    own = Path(named or "conf").resolve()
    if named and not own.is_dir():
        raise ConfigError(f"DPERM_CONF: {own}: expected a folder of YAML files")
    return own if own.is_dir() and own != home() / "conf" else None


def conf_dirs() -> list[Path]:
    """Folders of configuration, in the order in which they are searched.

    The last one holds ``config.yaml``. The parent of a user's own folder is appended to
    Python's path, so that a solver's module is found there.
    """
    own, packaged = own_conf(), home() / "conf"
    if own is None:
        return [packaged]
    if str(own.parent) not in sys.path:
        sys.path.append(str(own.parent))
    return [own] if (own / ROOT).is_file() else [own, packaged]


def conf_dir() -> Path:
    """The folder that holds ``config.yaml``."""
    return conf_dirs()[-1]


def conf_file(name: str) -> Path | None:
    """A file of the configuration by its path below ``conf/``; None if missing."""
    paths = (folder / name for folder in conf_dirs())
    return next((path for path in paths if path.is_file()), None)


def available(group: str) -> list[str]:
    """Names of the YAML files of a group; a paper is a folder with a ``paper.yaml``."""
    every = group_file(group, "*")
    found = (path for folder in conf_dirs() for path in folder.glob(every))
    return sorted({one.parent.name if group == "paper" else one.stem for one in found})


def group_file(group: str, name: str) -> str:
    """Path below ``conf/`` of a name of a group."""
    return f"paper/{name}/paper.yaml" if group == "paper" else f"{group}/{name}.yaml"
