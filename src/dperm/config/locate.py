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

from dperm.names import ConfigError as ConfigError
from dperm.names import home as home

IN_KEYS = "nothing"  # a key has the settings that come out of it
# see ``packaged_alone``
_IS_PACKAGED = ContextVar("_IS_PACKAGED", default=False)
ROOT = "config.yaml"
OWN = "own"  # below results/: rows on problems that are no paper's
# Names that no paper may have: commands, targets, and folders beside those of papers.
RESERVED = {
    "accept-code",
    "all",
    "audit",
    "claims",
    "comparison",
    "complete",
    "draw",
    "evaluate",
    "fetch",
    "figure",
    "optimum",
    "own",
    "prepare",
    "privacy",
    "readme",
    "report",
    "shared",
    "solve",
    "sweep",
    "table",
    "timing",
    "try",
    "tune",
    "verify",
}
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
    path = os.environ.get("DPERM_CONF")
    folder = Path(path or "conf").resolve()
    if path and not folder.is_dir():
        raise ConfigError(
            f"DPERM_CONF: {folder}: expected a folder of YAML files"
        )
    return folder if folder.is_dir() and folder != home() / "conf" else None


def conf_dirs() -> list[Path]:
    """Folders of configuration, in the order in which they are searched.

    The last one holds ``config.yaml``. The parent of a user's own folder is appended to
    Python's path, so that a solver's module is found there.
    """
    user_folder = own_conf()
    packaged = home() / "conf"
    if user_folder is None:
        return [packaged]
    if str(user_folder.parent) not in sys.path:
        sys.path.append(str(user_folder.parent))
    return (
        [user_folder]
        if (user_folder / ROOT).is_file()
        else [user_folder, packaged]
    )


def conf_dir() -> Path:
    """The folder that holds ``config.yaml``."""
    return conf_dirs()[-1]


def conf_file(name: str) -> Path | None:
    """A file of the configuration by its path below ``conf/``; None if missing."""
    paths = (folder / name for folder in conf_dirs())
    return next((path for path in paths if path.is_file()), None)


def conf_files(folder: str) -> list[Path]:
    """The YAML files in a folder by its path below ``conf/``, one of each name."""
    paths: dict[str, Path] = {}
    for conf in reversed(conf_dirs()):
        paths |= {
            path.name: path for path in sorted(conf.glob(f"{folder}/*.yaml"))
        }
    return [paths[name] for name in sorted(paths)]


def available(group: str) -> list[str]:
    """Names of the YAML files of a group; a paper is a folder with a ``paper.yaml``."""
    names: set[str] = set()
    for folder in conf_dirs():
        is_there = (folder / group).is_dir()
        files = os.listdir(folder / group) if is_there else []  # noqa: PTH208  # fast
        if group == "paper":
            papers = [
                name
                for name in files
                if (folder / group_file(group, name)).is_file()
            ]
            names.update(papers)
        else:
            names.update(file[:-5] for file in files if file.endswith(".yaml"))
    return sorted(names)


def group_file(group: str, name: str) -> str:
    """Path below ``conf/`` of a name of a group."""
    return (
        f"paper/{name}/paper.yaml"
        if group == "paper"
        else f"{group}/{name}.yaml"
    )
