"""Bugs in trees: pieces found by their syntax trees, copies with a bug, their tests.

A piece is found by its tree, not by its text: formatting, comments and line breaks do
not count, nor does the place in the file or the file's name. The rest of the source
text is kept as it is.
"""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
import subprocess
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from .patches import Edit, Mutant

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src/dperm", "docs/examples/mine")  # where definitions are searched for
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module
Nodes = list[ast.AST]
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


# --- pieces by their trees ------------------------------------------------------------


class PatchError(ValueError):
    """A bug that does not fit today's source."""


class Match(NamedTuple):
    """A piece of a source text: its nodes, and where they start and end."""

    nodes: Nodes
    start: int
    end: int
    column: int


@cache
def patched(mutant: Mutant) -> dict[str, str]:
    """The files that a mutant changes, with their new text.

    Raises
    ------
    PatchError
        If a piece does not occur, or more than once.
    """
    changed: dict[str, str] = {}
    for edit in mutant.edits:
        try:
            file, text, match = located(edit, changed)
            changed[file] = replaced(text, match, edit.after)
        except PatchError as error:
            raise PatchError(f"{mutant.name}: {error}") from None
    return changed


def place(mutant: Mutant) -> str:
    """File and line of the first edit."""
    file, text, match = located(mutant.edits[0], {})
    return f"{file}:{text.count(chr(10), 0, match.start) + 1}"


def located(edit: Edit, changed: dict[str, str]) -> tuple[str, str, Match]:
    """File, text and place of an edit; ``changed``: texts of files changed before."""
    stem, _, name = edit.definition.rpartition(":")
    matches = []
    for file, text in _sources().items():
        path = Path(file)
        if stem in ("", path.parent.name if path.stem == "__init__" else path.stem):
            text = changed.get(file, text)
            definitions = _definitions(text) if name.rpartition(".")[2] in text else {}
            for definition in definitions.get(name, ()):
                found = occurrences(text, definition, edit.before)
                matches += [(file, text, match) for match in found]
    if len(matches) != 1:
        raise PatchError(
            f"{edit.definition}: expected once, found {len(matches)} times:"
            f" {edit.before!r}"
        )
    return matches[0]


def occurrences(text: str, definition: Definition, snippet: str) -> Iterator[Match]:
    """Where a snippet occurs in a definition.

    An expression, or statements that follow each other; ``name=value`` is an
    assignment or an argument of a call.
    """
    pieces, dumps = parsed(snippet), [ast.dump(node) for node in parsed(snippet)]
    if not isinstance(pieces[0], ast.stmt):
        for node in ast.walk(definition):
            if type(node) is type(pieces[0]) and ast.dump(node) == dumps[0]:
                yield _match(text, [node])
        return
    for node in ast.walk(definition):
        if isinstance(node, ast.keyword) and _is_argument(node, pieces):
            yield _match(text, [node])
        for _, field in ast.iter_fields(node):
            if isinstance(field, list) and field and isinstance(field[0], ast.stmt):
                for start in range(len(field) - len(pieces) + 1):
                    run = field[start : start + len(pieces)]
                    if [ast.dump(one) for one in run] == dumps:
                        yield _match(text, run)


def _is_argument(node: ast.keyword, pieces: Nodes) -> bool:
    one = pieces[0]
    return (
        len(pieces) == 1
        and isinstance(one, ast.Assign)
        and ast.unparse(one.targets[0]) == node.arg
        and ast.dump(one.value) == ast.dump(node.value)
    )


def replaced(text: str, match: Match, after: str) -> str:
    """The text with a snippet in the place of a match."""
    if isinstance(match.nodes[0], ast.stmt):
        lines = textwrap.indent(textwrap.dedent(after).strip("\n"), " " * match.column)
        choices = [lines.strip()]
    else:
        choices = [after.strip(), f"({after.strip()})"]
    for choice in choices:
        new = text[: match.start] + choice + text[match.end :]
        if _is_whole(text, new, match, after):
            return new
    raise PatchError(f"does not fit in its place: {after!r}")


def _is_whole(old: str, new: str, match: Match, after: str) -> bool:
    """Whether the new text is the old one's tree with the snippet in its place."""
    try:
        tree = ast.parse(new)
    except SyntaxError:
        return False
    expected, first, pieces = ast.parse(old), match.nodes[0], parsed(after)
    for node in ast.walk(expected):
        for name, field in ast.iter_fields(node):
            if isinstance(field, list):
                for k in [k for k, one in enumerate(field) if _is_at(one, first)]:
                    field[k : k + len(match.nodes)] = _as(first, pieces)
            elif _is_at(field, first):
                setattr(node, name, pieces[0])
    return ast.dump(tree) == ast.dump(expected)


def _is_at(one: object, other: ast.AST) -> bool:
    """Whether two nodes of two parses of one text are the same."""
    names = ("lineno", "col_offset", "end_lineno", "end_col_offset")
    return type(one) is type(other) and all(
        getattr(one, name) == getattr(other, name) for name in names
    )


def _as(old: ast.AST, pieces: Nodes) -> Nodes:
    """Pieces in the place of a node: an assignment may be an argument."""
    if isinstance(old, ast.keyword) and isinstance(pieces[0], ast.Assign):
        name = ast.unparse(pieces[0].targets[0])
        return [ast.keyword(arg=name, value=pieces[0].value)]
    return pieces


@cache
def parsed(snippet: str) -> Nodes:
    """An expression alone, or statements; none of an empty snippet."""
    if not snippet.strip():
        return []
    try:
        return [ast.parse(f"({snippet.strip()}\n)", mode="eval").body]
    except SyntaxError:
        return list(ast.parse(textwrap.dedent(snippet)).body)


@cache
def _definitions(text: str) -> dict[str, list[Definition]]:
    """Definitions of a module by qualified name; the module itself has none."""
    tree = ast.parse(text)
    found: dict[str, list[Definition]] = {"": [tree]}

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.setdefault(prefix + child.name, []).append(child)
                visit(child, f"{prefix}{child.name}.")
            else:
                visit(child, prefix)

    visit(tree, "")
    return found


@cache
def _sources() -> dict[str, str]:
    files = (file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))
    return {str(file.relative_to(ROOT)): file.read_text() for file in sorted(files)}


def _match(text: str, nodes: Nodes) -> Match:
    first, last = nodes[0], nodes[-1]
    decorators = getattr(first, "decorator_list", [])
    line, column = (decorators or [first])[0].lineno, first.col_offset

    lines = text.encode().splitlines(keepends=True)

    def at(line: int, column: int) -> int:
        return len(b"".join([*lines[: line - 1], lines[line - 1][:column]]).decode())

    return Match(
        nodes, at(line, column), at(last.end_lineno, last.end_col_offset), column
    )


# --- trees of files -------------------------------------------------------------------


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
