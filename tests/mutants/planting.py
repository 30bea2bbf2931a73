"""A tree with a bug in it, and the tests that reach the bug."""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from .patches import Mutant
from .syntax import ROOT, patched

# All that an audit and the tests below need.
PARTS = ("src", "conf", "docs/examples", "tests", "profiles", "Snakefile")
FILES = (*PARTS, "pyproject.toml", "environment.yml", "requirements.lock", "README.md")
OTHER_COLUMN = "tests/compare/test_audited_choice.py"  # tests of an audit
TESTS = (
    "privacy",
    "solvers",
    "erm",
    "papers",
    "compare",
)  # folders of tests that are run
MINE_FOLDER = "docs/examples/mine"
LOADER = "src/dperm/core/solvers/__init__.py"  # imports what a YAML names


def tracked(parts: tuple[str, ...] = FILES) -> list[str]:
    """Files of the repository, those not yet added too."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "--", *parts]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    return sorted(
        name for name in listed.stdout.decode().splitlines() if (ROOT / name).is_file()
    )


def digest(mutant: Mutant | None = None) -> str:
    """Of all that a row depends on: source, configuration, tests, patch."""
    found = hashlib.sha256(repr(mutant).encode())
    for name in tracked():
        if not name.startswith("tests/mutants/"):
            found.update(name.encode() + (ROOT / name).read_bytes())
    return found.hexdigest()[:16]


# --- trees ----------------------------------------------------------------------------


class Slot:
    """A copy of the repository in which one mutant after the other is planted.

    Compiled kernels are kept from one to the next; where a kernel is changed, it and
    all that may contain it is compiled into a cache that is thrown away.
    """

    def __init__(self, folder: Path):
        self.root, self.cache = folder / "tree", folder / "numba"
        shutil.rmtree(self.root, ignore_errors=True)
        for name in tracked():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, self.root / name)

    @contextmanager
    def planted(
        self, mutant: Mutant | None, sound: bool = False
    ) -> Iterator[dict[str, str]]:
        """The environment of processes that run with the mutant in place.

        ``sound``: all as with the mutant, its kernels as new, but for the bug.
        """
        changed = patched(mutant) if mutant else {}
        kernels = _kernels(changed)
        if sound:
            changed = {}
        before = {name: _state(self.root / name) for name in {*changed, *kernels}}
        cache = self.cache
        if kernels:
            cache = self.cache.with_name("numba-mutant")
            shutil.rmtree(cache, ignore_errors=True)
            if self.cache.is_dir():
                shutil.copytree(self.cache, cache, copy_function=os.link)
        for name, text in changed.items():
            (self.root / name).write_text(text)
        for name in kernels:
            os.utime(self.root / name)
        try:
            yield self._environment(cache)
        finally:
            for name, (content, times) in before.items():
                (self.root / name).write_bytes(content)
                os.utime(self.root / name, ns=times)

    def _environment(self, cache: Path) -> dict[str, str]:
        cache.mkdir(parents=True, exist_ok=True)
        own = {"PYTHONPATH": str(self.root / "src"), "NUMBA_CACHE_DIR": str(cache)}
        return {**os.environ, **own, "PYTHONDONTWRITEBYTECODE": "1"}


def _state(path: Path) -> tuple[bytes, tuple[int, int]]:
    known = path.stat()
    return path.read_bytes(), (known.st_atime_ns, known.st_mtime_ns)


def _kernels(changed: dict[str, str]) -> set[str]:
    """Files with kernels that may contain what was changed; none if it has none."""
    names = [name for name in changed if "njit" in changed[name]]
    return {
        file
        for file in tracked(("src",))
        if file.endswith(".py")
        and "njit" in (ROOT / file).read_text()
        and any(name in distances(file) for name in names)
    }


# --- who imports whom -----------------------------------------------------------------


def chosen_tests(mutant: Mutant) -> list[str]:
    """Test files that reach a changed file by their imports, the nearest first.

    None for a user's algorithm: nobody tests it but the audit.
    """
    changed = patched(mutant)
    files = [f"tests/{folder}" for folder in TESTS]
    found = []
    for file in tracked(tuple(files)):
        is_test = Path(file).name.startswith("test_") and file.endswith(".py")
        if is_test and file != OTHER_COLUMN:
            known = distances(file)
            nearest = min(
                (known[name] for name in changed if name in known), default=None
            )
            if nearest is not None:
                folder = TESTS.index(Path(file).parts[1])
                found.append((nearest, folder, file))
    return [file for *_, file in sorted(found)]


@cache
def distances(file: str) -> dict[str, int]:
    """How many imports lie between a file and those that it reaches."""
    found, front, step = {file: 0}, [file], 0
    while front:
        step += 1
        front = [name for one in front for name in _imports(one) if name not in found]
        found.update(dict.fromkeys(front, step))
        front = list(dict.fromkeys(front))
    return found


@cache
def _imports(file: str) -> tuple[str, ...]:
    """Files of the repository that a file imports, wherever it does."""
    found: list[str] = []
    package = Path(file).parent
    for node in ast.walk(ast.parse((ROOT / file).read_text())):
        if isinstance(node, ast.Import):
            found += [
                part for name in node.names for part in _files(name.name, package)
            ]
        elif isinstance(node, ast.ImportFrom):
            name = "." * node.level + (node.module or "")
            found += _files(name, package)
            dot = "" if name.endswith(".") else "."
            for part in node.names:
                found += _files(f"{name}{dot}{part.name}", package)
    if file == LOADER:
        listed = tracked(("src/dperm/solvers", "src/dperm/core/lanes"))
        found += [name for name in listed if name[-3:] == ".py"]
    return tuple(dict.fromkeys(name for name in found if name != file))


def _files(name: str, package: Path) -> list[str]:
    """The file of a module by its name; none if it is not ours."""
    if name.startswith("."):
        level = len(name) - len(name.lstrip("."))
        bases = [Path(*package.parts[: len(package.parts) - level + 1])]
    else:
        bases = [Path("src"), Path("tests")]
    parts = name.lstrip(".").split(".") if name.strip(".") else []
    for base in bases:
        for path in (base.joinpath(*parts).with_suffix(".py") if parts else base,
                     base.joinpath(*parts, "__init__.py")):  # fmt: skip
            if path.suffix == ".py" and (ROOT / path).is_file():
                return [str(path)]
    return []


# --- processes ------------------------------------------------------------------------


def timed(
    command: list[str], folder: Path, environment: dict[str, str], limit: float
) -> tuple[int, str, float]:
    """Run a command; exit code (-9 beyond the limit), output, seconds of CPU."""
    log = folder / ".mutant.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=out, stderr=out,
            start_new_session=True,
        )  # fmt: skip
        end = time.monotonic() + limit
        while True:
            pid, status, used = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > end:
                os.killpg(process.pid, 9)
                end = float("inf")
            time.sleep(0.1)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, log.read_text(), used.ru_utime + used.ru_stime
