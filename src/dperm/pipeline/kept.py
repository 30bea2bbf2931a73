"""The run table, kept on disk for as long as nothing it is made of has changed.

It lies in ``.snakemake/dperm`` of the folder that is worked in, beside what Snakemake
remembers of the same runs, and goes with it. Its name is a digest of the papers and
overrides asked for, of every file of the configuration, of the package's whole source
and of the libraries' versions. Source that lies elsewhere, such as a solver of the
reader's own with what it imports, is known only when the table is composed, and so
are data of the reader's own: the digests of these files lie in the table's file and are
compared when it is read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dperm
from dperm.locate import conf_dirs
from dperm.pipeline.jobs import RunTable
from dperm.store import closure, provenance

FOLDER = Path(".snakemake/dperm")
KEPT = 20  # tables of other targets and overrides; the oldest go


def run_table(papers: list[str], overrides: list[str]) -> RunTable:
    """The run table of ``dperm.pipeline.runtable``, composed only where it must be.

    A line on stderr says that it is. A table that cannot be written is not kept.

    Raises
    ------
    ConfigError
        For anything wrong anywhere, before a single job runs.
    """
    path = FOLDER / f"{_key(papers, overrides)}.json"
    found = _read(path)
    if found is None:
        # Solvers come with it, and all that they compute with.
        from dperm.pipeline import runtable

        what = "1 paper" if len(papers) == 1 else f"{len(papers)} papers"
        print(f"dperm: composing {what}: {', '.join(papers)}", file=sys.stderr)
        began = time.time()
        found = runtable.run_table(papers, overrides)
        if path.stem == _key(papers, overrides):  # nothing was edited meanwhile
            _keep(path, found, began)
    return found


def _key(papers: list[str], overrides: list[str]) -> str:
    """Digest of everything known beforehand that the table is made of."""
    content = [
        papers, overrides, dperm.source_digest(), provenance.versions(),
        [str(folder) for folder in conf_dirs()], list(_configuration()), list(_found()),
    ]  # fmt: skip
    return _digest(content)


def _configuration() -> Iterator[tuple[str, str]]:
    """Every file below the folders of configuration, with its digest."""
    for folder in conf_dirs():
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield str(path.relative_to(folder)), _digest_of(path)


def _found() -> Iterator[tuple[str, list[str]]]:
    """Modules of the reader's own that Python would find: one more may hide another."""
    libraries = Path(os.__file__).parent
    for folder in map(Path, sys.path):
        apart = libraries in (folder, *folder.parents) or folder.stem == "site-packages"
        if folder.is_dir() and not apart:
            packages = (path.parent.name for path in folder.glob("*/__init__.py"))
            names = [*packages, *(path.name for path in folder.glob("*.py"))]
            yield str(folder), sorted(names)


def _read(path: Path) -> RunTable | None:
    """A kept table; None if there is none, it is damaged, or other source is read."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        table, sources = kept["table"], kept["sources"]
        if kept["digest"] != _digest([table, sources]):
            return None
        if any(_digest_of(Path(name)) != digest for name, digest in sources.items()):
            return None
        if any(_digest_of_data(name) != made for name, made in table["files"].items()):
            return None
        os.utime(path)  # the latest used stay
        return RunTable.from_json(table)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _keep(path: Path, table: RunTable, began: float) -> None:
    """Write a table whole or not at all, and remove the oldest."""
    package = Path(dperm.__file__).parent  # is in the name
    others = [file for file in closure.files() if package not in file.parents]
    beside = path.with_name(f".{path.stem}.{os.getpid()}")
    try:
        if any(file.stat().st_mtime >= began for file in others):
            return  # edited meanwhile
        sources = {str(file): _digest_of(file) for file in others}
        content = {"table": table.to_json(), "sources": sources}
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = {**content, "digest": _digest([*content.values()])}
        beside.write_text(json.dumps(kept), encoding="utf-8")
        beside.replace(path)
        tables = path.parent.glob("*.json")
        for old in sorted(tables, key=lambda file: file.stat().st_mtime)[:-KEPT]:
            old.unlink(missing_ok=True)
    except OSError:  # a folder that may only be read, a full disk: it is made each time
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def _digest_of_data(name: str) -> str:
    """The digest of ``file path``; empty where there is none."""
    path = Path(name.removeprefix("file "))
    return _digest_of(path) if path.is_file() else ""


def _digest_of(path: Path) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
