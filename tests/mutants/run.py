"""Plant every bug, and see whether the audit alone and the tests alone catch it.

``python -m mutants.run`` in ``tests/``, or ``make mutants``; names of bugs or solvers
choose some. ``results/mutants.csv`` has a row for every edit (:mod:`.edits`), and for
every slip (:mod:`.operators`) in the mechanisms that stand for their kind. Tests are of
edits only: a slip has no text that a test could run.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from dperm.workflow import manifest

from .edits import EDITS, ROOT, UNRUN, Edit, planted
from .operators import KINDS, SLIPS
from .operators import planted as slipped

TABLE = ROOT / "results/mutants.csv"
COLUMNS = ("kind", "bug", "subject", "audit", "tests", "digest")
PARTS = ("src", "conf", "tests", "docs/examples", "pyproject.toml")
FOLDERS = (
    "privacy",
    "solvers",
    "problems",
    "estimators",
    "benchmark",
)  # of tests that are run
MINE, SEARCH = "noisy_gd", "private_search"
NONE, NOT_RUN = "nothing", "not run"
Row = dict[str, str]


def digest(bug: Any) -> str:
    """Digest of an edit, or of a slip's name."""
    return hashlib.sha256(repr(bug).encode()).hexdigest()[:12]


def subjects(name: str) -> list[Any]:
    """The tight mechanisms of a solver and its estimators, or of the search."""
    from dperm.audit.solvers import mechanisms
    from dperm.estimators import audited

    if name == SEARCH:
        return [audited.search(False), audited.search(True)]
    if name == MINE:
        sys.path.append(str(ROOT / "docs/examples/mine"))
        return mechanisms(MINE, MINE, {}, ("tight",))
    found: Any = OmegaConf.to_container(OmegaConf.load(yaml_of(name)))
    given = (name, found["algorithm"], found.get("options", {}), ("tight",))
    return [*mechanisms(*given), *audited.mechanisms(name)]


def yaml_of(name: str) -> Path:
    """The file of a solver."""
    return ROOT / f"conf/solver/{name}.yaml"


def caught(m: Any) -> str:
    """The first check that catches a mechanism at small effort."""
    from dperm.audit.checks import Audit
    from dperm.audit.tables import SMALL_EFFORT

    found = (
        one.check for one in Audit(m, **SMALL_EFFORT).findings() if one.caught
    )
    return next(found, NONE)


def audited_by(name: str) -> str:
    """The first check that catches some mechanism of a solver."""
    try:
        every = (caught(m) for m in subjects(name))
        return next((found for found in every if found != NONE), NONE)
    except Exception as error:  # it does not run on ordinary records
        return f"raised:{type(error).__name__}"


def of_slips(kind: str) -> Iterator[Row]:
    """A row for every slip in the mechanism that stands for a kind."""
    m = KINDS[kind]()
    for slip in SLIPS:
        broken = slipped(slip, m)
        if broken is not None:
            yield _row(
                "slip", slip, m.name, caught(broken), NOT_RUN, digest(slip)
            )


def of_edit(edit: Edit, folder: Path, tested: bool) -> Row:
    """Plant an edit in a copy of the tree; audit its solvers, run the tests near it."""
    changed = planted(edit)
    for part in PARTS:
        source, copy = ROOT / part, folder / part
        if source.is_dir():
            shutil.copytree(source, copy, dirs_exist_ok=True)
        else:
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy)
    for name, text in changed.items():
        (folder / name).write_text(text, encoding="utf-8")
    code = "from mutants.run import audited_by; print(audited_by({!r}))"
    found = NONE
    for solver in edit.solvers.split():
        if found == NONE:
            made = _process(
                [sys.executable, "-c", code.format(solver)], folder
            )
            found = made.strip().rpartition("\n")[2] or NONE
    failed = _failed(changed, folder) if tested else NOT_RUN
    for name in changed:
        shutil.copy2(ROOT / name, folder / name)
    return _row("edit", edit.name, edit.solvers, found, failed, digest(edit))


def _row(*values: str) -> Row:
    return dict(zip(COLUMNS, values, strict=True))


def first_failed(files: list[str], folder: Path, *options: str) -> str:
    """The first test of these files that fails in a copy of the tree."""
    said = _process(
        [sys.executable, "-m", "pytest", "-x", *options, *files], folder
    )
    first = re.search(
        r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", said, re.MULTILINE
    )
    return first[1] if first else NONE


def _process(command: list[str], folder: Path) -> str:
    """What a command prints; kernels of each bug are compiled anew."""
    paths = f"{folder / 'src'}{os.pathsep}{folder / 'tests'}"
    with tempfile.TemporaryDirectory(prefix="mutants-cache-") as cache:
        known = {**os.environ, "PYTHONPATH": paths, "XDG_CACHE_HOME": cache}
        known.pop("NUMBA_CACHE_DIR", None)
        given: dict[str, Any] = {"cwd": folder, "env": known, "text": True}
        return subprocess.run(command, capture_output=True, **given).stdout


def _failed(changed: dict[str, str], folder: Path) -> str:
    """The first test that fails, of those that name a changed module."""
    stems = "|".join(Path(name).stem for name in changed)
    files = [
        str(path.relative_to(folder))
        for each in FOLDERS
        for path in sorted((folder / "tests" / each).glob("test_*.py"))
        if re.search(rf"\b({stems})\b", path.read_text(encoding="utf-8"))
    ]
    return first_failed(files, folder, "-q")


# --- the table ------------------------------------------------------------------------


def read(path: Path = TABLE) -> list[Row]:
    """The rows of a table so far."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(rows: list[Row], path: Path = TABLE, key: int = 3) -> None:
    """Write a table: a row takes the place of one with the same first columns."""
    known = {tuple(row.values())[:key]: row for row in rows}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(known[key] for key in sorted(known))


def main() -> None:
    """Run what is named, or everything; exit code 1 if a bug is caught by nobody."""
    parser = argparse.ArgumentParser("mutants", description=__doc__)
    parser.add_argument(
        "names", nargs="*", help="edits, or kinds of mechanisms"
    )
    parser.add_argument(
        "--audit-only", action="store_true", help="run no tests"
    )
    given = parser.parse_args()
    names = given.names
    # a whole run leaves no row of a bug that is gone
    rows = read() if names else []
    for kind in KINDS:
        if kind in names or not names:
            rows += of_slips(kind)
            write(rows)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for edit in (*EDITS, *UNRUN):
            if edit.name in names or not names:
                rows.append(of_edit(edit, Path(folder), not given.audit_only))
                print(*rows[-1].values(), flush=True)
                write(rows)
    with contextlib.chdir(ROOT):
        manifest.note(Path("results"), [TABLE.relative_to(ROOT)])
    raise SystemExit(1 if any(map(unseen, read())) else 0)


def unseen(row: Row) -> bool:
    """Whether a bug is caught by nobody."""
    return row["audit"] == NONE and row["tests"] in (NONE, NOT_RUN)


if __name__ == "__main__":
    main()
