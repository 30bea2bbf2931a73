"""Change every leaf and a sample of the code, and see whether keys notice it.

``python -m stale.run`` in ``tests/``, or ``make stale``; names of papers choose some,
and ``--edits 300`` is the number of edits of code. ``results/stale.csv`` has the
counts.

Where a change moves the key of a job there is nothing to miss. All other changes are
made at once, and the job is run: if its rows, figures or tables differ, halves are
tried until single changes are left, which are named. A change that is refused, in one
line or by an error, is noticed. Edits in functions that a job does not call are passed
by.

The other way round, changes on which no number can depend are counted where they move
the key of a job of rows: titles and the like of the paper itself, all leaves of other
papers, and comments and docstrings of all modules.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import csv
import functools
import json
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dperm.config.locate import available
from dperm.storage import source_code
from dperm.workflow import manifest

from .world import World, made, without

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "results/stale.csv"
COLUMNS = (
    "paper",
    "kind",
    "changes",
    "refused",
    "jobs",
    "pairs",
    "noticed",
    "idle",
    "run",
    "missed",
    "false_alarms",
)
ROWS = ("fetch", "prepare", "optimum", "solve", "sweep", "timing", "draw")
IDLE = {"title", "reference", "thresholds"}  # texts that no number reads
OPERATORS = {
    **{ast.Add: " - ", ast.Sub: " + ", ast.Mult: " / ", ast.Div: " * "},
    **{ast.Lt: " > ", ast.Gt: " < ", ast.LtE: " > ", ast.GtE: " < "},
    **{ast.Eq: " != ", ast.NotEq: " == "},
}


class Missed(NamedTuple):
    """A change after which a job has other rows under the same key."""

    change: str
    job: str


# --- leaves ---------------------------------------------------------------------------


def identities(world: World) -> dict[str, tuple[str, tuple[str, ...]]]:
    """The key of each job and the files it makes: of two files, none is stale."""
    return {
        name: (job.key, tuple(job.outputs))
        for name, job in world.jobs().jobs.items()
    }


class Leaves:
    """All leaves of a paper, each changed by itself."""

    def __init__(self, world: World, paths: Sequence[Any] | None = None):
        self.world = world
        self.before = identities(world)
        every = world.leaves() if paths is None else paths
        self.refused: list[Any] = []
        self.moved: dict[Any, set[str]] = {}
        for path in every:
            after = self._accepted(path)
            if after is None:
                self.refused.append(path)
                continue
            names = self.before.keys() | after.keys()
            self.moved[path] = {
                name
                for name in names
                if self.before.get(name) != after.get(name)
            }

    def _accepted(
        self, path: Any
    ) -> dict[str, tuple[str, tuple[str, ...]]] | None:
        """The jobs with another value of a leaf, of other leaves where need be."""
        for value in (None, *self.world.alternatives(path)):
            self.world.values[path] = value
            try:
                return identities(self.world.changed(path))
            except Exception:
                continue
        del self.world.values[path]
        return None

    def quiet(self, job: str) -> list[Any]:
        """The leaves whose change leaves the key of a job."""
        return [path for path, moved in self.moved.items() if job not in moved]

    def false_alarms(self) -> int:
        """Leaves of which no number can depend, and that move keys of rows."""
        rows = tuple(f"{stage}/" for stage in ROWS if stage != "draw")
        return sum(
            # A sweep may have an axis of such a name, which its rows do read.
            path[-1] in IDLE
            and "sweeps" not in path
            and any(name.startswith(rows) for name in moved)
            for path, moved in self.moved.items()
        )


def baseline(world: World, names: Iterable[str], folder: Path) -> None:
    """Run jobs one after the other in an empty folder."""
    for name in names:
        world.run(name, folder)


def rows_of(world: World) -> list[str]:
    """The jobs that make rows, figures or tables, in their order."""
    return [name for name in world.jobs().jobs if name.startswith(ROWS)]


def missed_leaves(
    leaves: Leaves, jobs: Iterable[str], base: Path
) -> list[Missed]:
    """Leaves that change what a job makes and not its key."""
    world = leaves.world
    missed: list[Missed] = []
    refused: list[Any] = []  # by any job so far; each is tried by itself
    compared = outputs_of(world)
    for name in jobs:
        outputs = compared[name]
        before = made(outputs, base)
        quiet = leaves.quiet(name)
        todo = [[path] for path in quiet if path in refused]
        todo.append([path for path in quiet if path not in refused])
        while todo:
            paths = todo.pop()
            after = changed_run(world, paths, name, outputs, base)
            if after == before:
                continue
            if len(paths) > 1:
                half = len(paths) // 2
                todo += [paths[half:], paths[:half]]
            elif paths and after is None:
                refused += paths
            elif paths:
                missed.append(Missed(".".join(map(str, paths[0])), name))
    return missed


def changed_run(
    world: World,
    paths: Sequence[Any],
    name: str,
    outputs: list[str],
    base: Path,
) -> dict[str, str] | None:
    """What a job makes with other values at leaves; None if they are refused."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = without(outputs, base, Path(scratch))
        try:
            world.changed(*paths).run(name, folder)
        except Exception as error:
            print(f"{name}: refused: {type(error).__name__}: {error}"[:200])
            return None
        return made(outputs, folder)


def outputs_of(world: World) -> dict[str, list[str]]:
    """The outputs of each job that are compared."""
    return {
        name: [file for file in job.outputs if not file.endswith(".png")]
        for name, job in world.jobs().jobs.items()
    }


# --- code -----------------------------------------------------------------------------


class Edit(NamedTuple):
    """Another text in a line of a module."""

    path: Path
    line: int
    start: int
    end: int
    text: str

    def __str__(self) -> str:
        return (
            f"{self.path.relative_to(ROOT)}:{self.line}: {self.text.strip()}"
        )


def edits_of(path: Path) -> list[Edit]:
    """Edits of constants, defaults and operators of a module."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    idle = set[int]()
    for node in ast.walk(tree):
        parts = [
            getattr(node, "annotation", None),
            getattr(node, "returns", None),
        ]
        idle |= {id(one) for part in parts if part for one in ast.walk(part)}
    found = []
    for node in ast.walk(tree):
        if id(node) in idle:
            continue
        if isinstance(node, ast.Constant) and type(node.value) in (
            int,
            float,
            bool,
        ):
            text = str(
                not node.value
                if node.value in (True, False)
                else node.value * 2
            )
            if node.lineno == node.end_lineno:
                spot = (node.lineno, node.col_offset, node.end_col_offset or 0)
                found.append(Edit(path, *spot, text))
        elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            left, right = node.left, node.right
            if left.end_lineno == right.lineno:
                between = source.splitlines()[right.lineno - 1]
                gap = between.encode()[
                    left.end_col_offset : right.col_offset
                ].decode()
                if gap.strip() in "+-*/" and gap.strip():
                    spot = (
                        right.lineno,
                        left.end_col_offset or 0,
                        right.col_offset,
                    )
                    found.append(Edit(path, *spot, OPERATORS[type(node.op)]))
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in OPERATORS:
            left, right = node.left, node.comparators[0]
            if left.end_lineno == right.lineno:
                spot = (
                    right.lineno,
                    left.end_col_offset or 0,
                    right.col_offset,
                )
                found.append(Edit(path, *spot, OPERATORS[type(node.ops[0])]))
    return found


def applied(edits: Iterable[Edit], source: Path) -> None:
    """Make edits in a copy of the source tree."""
    by_file: dict[Path, list[Edit]] = {}
    for one in edits:
        by_file.setdefault(one.path, []).append(one)
    for path, some in by_file.items():
        target = source / path.relative_to(ROOT / "src")
        lines = target.read_bytes().split(b"\n")
        for one in sorted(some, key=lambda each: (each.line, -each.start)):
            line = lines[one.line - 1]
            lines[one.line - 1] = (
                line[: one.start] + one.text.encode() + line[one.end :]
            )
        target.write_bytes(b"\n".join(lines))


def sampled(count: int, seed: int | str) -> list[Edit]:
    """A sample of edits over all modules of the package, at most one to a line."""
    chance = random.Random(seed)
    paths = sorted(source_code.PACKAGE.rglob("*.py"))
    every = {path: edits_of(path) for path in paths}
    modules = [path for path in paths if every[path]]
    chosen: dict[tuple[Path, int], Edit] = {}
    while len(chosen) < count:
        one = chance.choice(every[chance.choice(modules)])
        chosen[one.path, one.line] = one
    return [*chosen.values()]


def held_lines(world: World) -> dict[str, dict[Path, set[int]]]:
    """Lines that each job's key holds, with those of the jobs that it follows."""
    table = world.jobs()
    held: dict[str, dict[Path, set[int]]] = {}
    for name, job in table.jobs.items():
        own = {
            path: {*some}
            for path, some in source_code.lines(*job.code).items()
        }
        for maker in {
            id(table.makers[file]): table.makers[file] for file in job.inputs
        }.values():
            above = next(
                key for key, each in table.jobs.items() if each is maker
            )
            for path, some in held[above].items():
                own.setdefault(path, set()).update(some)
        held[name] = own
    return held


Places = set[tuple[str, int]]  # files, and the lines at which functions begin


def watched_baseline(
    world: World, names: list[str], folder: Path
) -> dict[str, Places | None]:
    """Run jobs in an empty folder: the functions called so far after each of them.

    Functions that are called when modules are imported are among them. None where a job
    starts another process, whose functions are not seen.
    """
    with tempfile.TemporaryDirectory() as scratch:
        program = (
            "from stale.run import watch; "
            f"watch(world, {names!r}, {str(folder)!r})"
        )
        done = in_tree(world, None, Path(scratch), program, WATCHING)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    places = json.loads(done.stdout.splitlines()[-1])
    return {
        name: None if some is None else {(file, line) for file, line in some}
        for name, some in places.items()
    }


# Before anything is imported: functions are noted with their files.
WATCHING = """
import sys, threading
CALLED, STARTED = set(), []
def note(frame, event, argument):
    if event == "call":
        CALLED.add((frame.f_code.co_filename, frame.f_code.co_firstlineno))
def started(event, arguments):
    program = str(arguments[1][0]) if event == "subprocess.Popen" else sys.executable
    is_start = event in ("subprocess.Popen", "os.fork", "os.posix_spawn")
    if is_start and "python" in program:
        STARTED.append(event)
sys.addaudithook(started)
sys.setprofile(note)
threading.setprofile(note)
"""


def watch(world: World, names: list[str], folder: str) -> None:
    """Run jobs, and print the functions of this package called so far after each."""
    main = sys.modules["__main__"]
    package = str(source_code.PACKAGE)
    places: dict[str, Any] = {}
    for name in names:
        world.run(name, Path(folder))
        own = sorted(
            one for one in {*main.CALLED} if one[0].startswith(package)
        )
        places[name] = None if main.STARTED else own
    print(json.dumps(places))


@functools.cache
def functions_of(path: Path) -> list[tuple[int, int]]:
    """First and last line of each plain outer function.

    Those that are compiled or decorated are not among them: they are called unseen.
    """
    source = path.read_text(encoding="utf-8")
    if re.search("numba|njit|compiled", source):
        return []
    spans = []
    todo: list[ast.AST] = [ast.parse(source)]
    while todo:
        for node in ast.iter_child_nodes(todo.pop()):
            if not isinstance(node, ast.FunctionDef):
                todo.append(node)
            elif not node.decorator_list:
                spans.append((node.lineno, node.end_lineno or node.lineno))
    return spans


def may_act(edit: Edit, called: Places | None) -> bool:
    """Whether an edit is where a job may have come by: not in a function not called."""
    if called is None:
        return True
    for first, last in functions_of(edit.path):
        if first <= edit.line <= last:
            return (str(edit.path), first) in called
    return True


class Edited(NamedTuple):
    """What came of edits: missed ones, and pairs of an edit and a job by kind."""

    missed: list[Missed]
    noticed: int  #: the key holds the line
    ran: int  #: the job was run with it
    idle: int  #: in a function that the job does not call


def missed_edits(
    world: World,
    jobs: list[str],
    edits: Sequence[Edit],
    base: Path,
    called: dict[str, Places | None],
) -> Edited:
    """Edits that change what a job makes and not its key."""
    held = held_lines(world)
    outputs = outputs_of(world)
    before = {name: made(outputs[name], base) for name in jobs}
    groups: dict[tuple[Edit, ...], list[str]] = {}
    noticed = idle = ran = 0
    for name in jobs:
        quiet = [
            one
            for one in edits
            if one.line not in held[name].get(one.path, ())
        ]
        acting = tuple(one for one in quiet if may_act(one, called[name]))
        noticed += len(edits) - len(quiet)
        idle += len(quiet) - len(acting)
        ran += len(acting)
        groups.setdefault(acting, []).append(name)
    lost: list[Missed] = []
    todo = [(some, names) for some, names in groups.items() if some]
    while todo:
        some, names = todo.pop()
        after = edited_run(
            world, {name: outputs[name] for name in names}, some, base
        )
        suspicious = [
            name for name in names if after.get(name) != before[name]
        ]
        if len(some) == 1:
            # One that stops a job is noticed by that.
            lost += [
                Missed(str(some[0]), name)
                for name in suspicious
                if name in after
            ]
        elif suspicious:
            half = len(some) // 2
            todo += [(some[half:], suspicious), (some[:half], suspicious)]
    return Edited(lost, noticed, ran, idle)


SECONDS = 300  # of processor time, after which a run with edits has failed


def edited_run(
    world: World,
    outputs: dict[str, list[str]],
    edits: Sequence[Edit],
    base: Path,
) -> dict[str, dict[str, str]]:
    """What jobs with their outputs make with other code, without those that fail."""
    with tempfile.TemporaryDirectory() as scratch:
        program = (
            f"from stale.run import rerun; rerun(world, {outputs!r}, {str(base)!r},"
            f" {scratch!r})"
        )
        in_tree(world, edits, Path(scratch, "tree"), program)
        after = {}
        for number, name in enumerate(outputs):
            if Path(scratch, f"{number}.json").is_file():
                after[name] = json.loads(
                    Path(scratch, f"{number}.json").read_text()
                )
        return after


def rerun(
    world: World, outputs: dict[str, list[str]], base: str, scratch: str
) -> None:
    """Run jobs each on what the others made before, and store what it makes."""
    for number, name in enumerate(outputs):
        with tempfile.TemporaryDirectory() as copy:
            folder = without(outputs[name], Path(base), Path(copy))
            try:
                world.run(name, folder)
            except Exception:
                continue
            text = json.dumps(made(outputs[name], folder))
            Path(scratch, f"{number}.json").write_text(text)


def in_tree(
    world: World,
    edits: Sequence[Edit] | None,
    tree: Path,
    program: str,
    ahead: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run a program on a world, ``world``, with other code; of None, this code.

    ``ahead`` is run before anything is imported.
    """
    source = ROOT / "src"
    if edits is not None:
        source = tree / "src"
        shutil.copytree(ROOT / "src", source, copy_function=shutil.copy2)
        for part in ("conf", "profiles", "Snakefile"):
            (tree / part).symlink_to(ROOT / part)
        applied(edits, source)
    lines = (
        f"import sys; sys.path[:0] = {[str(source), str(ROOT / 'tests')]}\n"
        "from pathlib import Path; from stale.world import World\n"
        f"world = World({world.paper!r}, *{world.given!r})\n"
    )

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))

    return subprocess.run(
        [sys.executable, "-c", ahead + lines + program], check=False,
        capture_output=True, text=True, preexec_fn=limited if edits else None,
    )  # fmt: skip


# --- false alarms ---------------------------------------------------------------------


Documented = ast.Module | ast.FunctionDef | ast.ClassDef


def idle_edits(path: Path) -> list[Edit]:
    """A comment at the end of a module, and other words in each of its docstrings."""
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    edits = []
    if lines:
        end = len(lines[-1].encode())
        edits.append(Edit(path, len(lines), end, end, "  # nothing"))
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, Documented)
            and ast.get_docstring(node) is not None
        ):
            text = node.body[0]
            opening = re.search('r?"+', source_of(text, lines))
            column = text.col_offset + (opening.end() if opening else 0)
            edits.append(Edit(path, text.lineno, column, column, "Nothing. "))
    return edits


def source_of(node: ast.stmt, lines: Sequence[str]) -> str:
    """The first line of a statement, from its start."""
    return lines[node.lineno - 1].encode()[node.col_offset :].decode()


def keys_with(world: World, edits: Sequence[Edit]) -> dict[str, str]:
    """The keys of all jobs of rows, with other code."""
    program = (
        "import json; from stale.run import rows_of; table = world.jobs().jobs;"
        "print(json.dumps({name: table[name].key for name in rows_of(world)}))"
    )
    with tempfile.TemporaryDirectory() as scratch:
        done = in_tree(world, edits, Path(scratch), program)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return dict(json.loads(done.stdout.splitlines()[-1]))


def false_alarms_of_code(world: World) -> tuple[int, int]:
    """Comments and docstrings that were changed, and those that moved a key."""
    edits = [one for path in sorted(source_code.PACKAGE.rglob("*.py"))
             for one in idle_edits(path)]  # fmt: skip
    before = keys_with(world, [])

    def moving(some: Sequence[Edit]) -> int:
        """How many of some edits move a key."""
        if not some or keys_with(world, some) == before:
            return 0
        half = len(some) // 2
        return moving(some[:half]) + moving(some[half:]) if half else 1

    return len(edits), moving(edits)


def false_alarms_of_others(world: World) -> tuple[int, int]:
    """Leaves of other papers, and those that move a key."""
    before = identities(world)
    count = alarms = 0
    for paper in available("paper"):
        if paper == world.paper:
            continue
        wider = world.changed()
        section = World(paper, *world.given).sections["paper", paper]
        wider.sections = {**world.sections, ("paper", paper): section}
        paths = [
            path for path in wider.leaves() if path[:2] == ("paper", paper)
        ]
        count += len(paths)
        if identities(wider.changed(*paths)) != before:
            alarms += sum(
                identities(wider.changed(path)) != before for path in paths
            )
    return count, alarms


# --- all of it ------------------------------------------------------------------------


def count(
    paper: str,
    edits: Sequence[Edit],
    overrides: Sequence[str],
    limit: int | None = None,
    seed: int = 0,
) -> Iterator[dict[str, Any]]:
    """Rows of the table for a paper, each when it is known.

    ``limit`` is a number of leaves, None for all.
    """
    world = World(paper, *overrides)
    names = rows_of(world)
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        called = watched_baseline(world, names, base)
        every = world.leaves()
        if limit is not None:
            every = random.Random(seed).sample(every, min(limit, len(every)))
        leaves = Leaves(world, every)
        missed = told(missed_leaves(leaves, names, base))
        quiet = sum(len(leaves.quiet(name)) for name in names)
        pairs = len(leaves.moved) * len(names)
        yield {
            **{"paper": paper, "kind": "leaf", "jobs": len(names)},
            **{"changes": len(leaves.moved) + len(leaves.refused)},
            **{"refused": len(leaves.refused), "pairs": pairs},
            **{"noticed": pairs - quiet, "run": quiet, "missed": len(missed)},
            "false_alarms": leaves.false_alarms(),
        }
        others, alarms = false_alarms_of_others(world)
        idle, moving = false_alarms_of_code(world)
        yield {
            **{"paper": paper, "kind": "idle", "jobs": len(names)},
            **{"changes": others + idle, "refused": 0, "missed": 0},
            "pairs": (others + idle) * len(names),
            "false_alarms": alarms + moving,
        }
        if edits:
            came = missed_edits(world, names, edits, base, called)
            told(came.missed)
            yield {
                **{"paper": paper, "kind": "edit", "jobs": len(names)},
                **{
                    "changes": len(edits),
                    "refused": 0,
                    "noticed": came.noticed,
                },
                **{"pairs": len(edits) * len(names), "run": came.ran},
                **{"idle": came.idle, "missed": len(came.missed)},
            }


def told(missed: list[Missed]) -> list[Missed]:
    """Changes that were missed, printed."""
    for one in missed:
        print(f"missed: {one.change} changes {one.job}, and its key does not")
    return missed


def write(rows: Iterable[dict[str, Any]]) -> None:
    """Write the table: a row takes the place of one of the same paper and kind."""
    known: dict[tuple[str, str], dict[str, Any]] = {}
    if TABLE.exists():
        with TABLE.open(encoding="utf-8", newline="") as file:
            known = {
                (row["paper"], row["kind"]): row
                for row in csv.DictReader(file)
            }
    known |= {(row["paper"], row["kind"]): row for row in rows}
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(known[key] for key in sorted(known))
    with contextlib.chdir(ROOT):
        manifest.note(Path("results"), [TABLE.relative_to(ROOT)])


def main() -> None:
    """Write the table; the exit code is 1 if a change was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("papers", nargs="*", default=[])
    parser.add_argument("--edits", type=int, default=60)
    parser.add_argument(
        "--leaves", type=int, help="so many of a paper; else all"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--set", nargs="*", default=[], help="overrides of Hydra's"
    )
    given = parser.parse_args()
    lacking = 0
    for paper in given.papers or available("paper"):
        overrides = ["scale=smoke", *given.set]
        edits = (
            sampled(given.edits, f"{given.seed} {paper}")
            if given.edits
            else []
        )
        for row in count(paper, edits, overrides, given.leaves, given.seed):
            print(row, flush=True)
            write([row])
            lacking += row["missed"]
    sys.exit(lacking > 0)


if __name__ == "__main__":
    main()
