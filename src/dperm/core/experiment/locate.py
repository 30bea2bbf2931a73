"""Where configuration, modules and the Snakefile lie.

The package brings its own ``conf/``. A folder of one's own, ``./conf`` or the one that
``DPERM_CONF`` names, comes before it: what it holds is added, what has the same name is
taken instead, and Python modules it names may lie beside it. A folder with a
``config.yaml`` is whole and stands alone.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import dperm

ROOT = "config.yaml"


class ConfigError(ValueError):
    """A configuration that is refused; the text says where and why, in one line."""


def hint(word: str, known: Iterable[str]) -> str:
    """The known name nearest to what was found, as the end of a message; or nothing."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def home() -> Path:
    """The folder of the package's ``conf/``, ``profiles/`` and Snakefile."""
    package = Path(dperm.__file__).resolve().parent
    packaged = package / "share"
    return packaged if packaged.is_dir() else package.parents[1]


def own_conf() -> Path | None:
    """The reader's own folder of configuration, if there is one.

    Raises ConfigError if ``DPERM_CONF`` names no folder.
    """
    named = os.environ.get("DPERM_CONF")
    own = Path(named or "conf").resolve()
    if named and not own.is_dir():
        raise ConfigError(f"DPERM_CONF: {own}: expected a folder of YAML files")
    return own if own.is_dir() and own != home() / "conf" else None


def conf_dirs() -> list[Path]:
    """Folders of configuration, in the order in which they are searched.

    The last one holds ``config.yaml``. The folder beside one's own joins the end of
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
    """A file of the configuration by its path below ``conf/``; None without one."""
    paths = (folder / name for folder in conf_dirs())
    return next((path for path in paths if path.is_file()), None)


def available(group: str) -> list[str]:
    """Names of the YAML files of a group; a paper is a folder with a ``paper.yaml``."""
    if group == "paper":
        folders = (folder.glob("paper/*/paper.yaml") for folder in conf_dirs())
        return sorted({path.parent.name for paths in folders for path in paths})
    folders = (folder.glob(f"{group}/*.yaml") for folder in conf_dirs())
    return sorted({path.stem for paths in folders for path in paths})


def group_file(group: str, name: str) -> str:
    """Path below ``conf/`` of a name of a group."""
    return f"paper/{name}/paper.yaml" if group == "paper" else f"{group}/{name}.yaml"
