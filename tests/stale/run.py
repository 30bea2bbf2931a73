"""Change every leaf and a sample of the code, and see whether keys notice it.

``python -m stale.run`` in ``tests/``, or ``make stale``; names of papers choose some,
and ``--edits 300`` is the number of edits of code. ``results/stale.csv`` has the
counts.

Where a change moves the key of a job there is nothing to miss. All other changes are
made at once, and the job is run: if its rows, figures or tables differ, halves are
tried until one change is left, which is named. A change that is refused, in one line or
by an error, is noticed.
"""

from __future__ import annotations

import argparse
import ast
import csv
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dperm.core.experiment.locate import available
from dperm.store import closure

from .world import World, made, without

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "results/stale.csv"
COLUMNS = (
    *("paper", "kind", "changes", "refused", "jobs", "pairs", "noticed", "run"),
    *("missed", "false_alarms"),
)
ROWS = ("fetch", "prepare", "optimum", "solve", "sweep", "timing", "draw")
IDLE = {"title", "reference", "thresholds"}  # read by no number
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


class Leaves:
    """All leaves of a paper, each changed by itself."""

    def __init__(self, world: World, paths: Sequence[Any] | None = None):
        self.world = world
        self.before = {name: job.key for name, job in world.jobs().jobs.items()}
        every = world.leaves() if paths is None else paths
        self.refused: list[Any] = []
        self.moved: dict[Any, set[str]] = {}
        for path in every:
            try:
                after = {
                    name: job.key
                    for name, job in world.changed(path).jobs().jobs.items()
                }
            except Exception:
                self.refused.append(path)
                continue
            names = self.before.keys() | after.keys()
            self.moved[path] = {
                name for name in names if self.before.get(name) != after.get(name)
            }

    def quiet(self, job: str) -> list[Any]:
        """The leaves whose change leaves the key of a job."""
        return [path for path, moved in self.moved.items() if job not in moved]

    def false_alarms(self) -> int:
        """Leaves of which no number can depend, and that move keys of rows."""
        rows = tuple(f"{stage}/" for stage in ROWS if stage != "draw")
        return sum(
            path[-1] in IDLE and any(name.startswith(rows) for name in moved)
            for path, moved in self.moved.items()
        )


def baseline(world: World, names: Iterable[str], folder: Path) -> None:
    """Run jobs one after the other in an empty folder."""
    for name in names:
        world.run(name, folder)


def rows_of(world: World) -> list[str]:
    """The jobs that make rows, figures or tables, in their order."""
    return [name for name in world.jobs().jobs if name.startswith(ROWS)]


def search(
    changes: Sequence[Any], differs: Callable[[Sequence[Any]], bool]
) -> list[Any]:
    """The first of some changes that makes a difference, by halves; none if none."""
    if not changes or not differs(changes):
        return []
    while len(changes) > 1:
        half = changes[: len(changes) // 2]
        changes = half if differs(half) else changes[len(half) :]
    return [*changes]


def missed_leaves(leaves: Leaves, jobs: Iterable[str], base: Path) -> list[Missed]:
    """Leaves that change what a job makes and not its key."""
    world, found = leaves.world, list[Missed]()
    for name in jobs:
        outputs = local(world, name)
        before = made(outputs, base)

        def differs(paths: Sequence[Any], name: str = name, outputs: Any = outputs,
                    before: Any = before) -> bool:  # fmt: skip
            with tempfile.TemporaryDirectory() as scratch:
                folder = without(outputs, base, Path(scratch))
                try:
                    world.changed(*paths).run(name, folder)
                except Exception as error:
                    print(f"{name}: refused: {type(error).__name__}: {error}"[:200])
                    return True
                return made(outputs, folder) != before

        for path in search(leaves.quiet(name), differs):
            found.append(Missed(".".join(map(str, path)), name))
    return found


def local(world: World, name: str) -> list[str]:
    """The outputs of a job that are compared."""
    return [
        file for file in world.jobs().jobs[name].outputs if not file.endswith(".png")
    ]


# --- code -----------------------------------------------------------------------------


class Edit(NamedTuple):
    """Another text in a line of a module."""

    path: Path
    line: int
    start: int
    end: int
    text: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.text.strip()}"


def edits_of(path: Path) -> list[Edit]:
    """Edits of constants, defaults and operators of a module."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    idle = set[int]()
    for node in ast.walk(tree):
        parts = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        idle |= {id(one) for part in parts if part for one in ast.walk(part)}
    found = []
    for node in ast.walk(tree):
        if id(node) in idle:
            continue
        if isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
            text = str(
                not node.value if node.value in (True, False) else node.value * 2
            )
            if node.lineno == node.end_lineno:
                spot = (node.lineno, node.col_offset, node.end_col_offset or 0)
                found.append(Edit(path, *spot, text))
        elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            left, right = node.left, node.right
            if left.end_lineno == right.lineno:
                between = source.splitlines()[right.lineno - 1]
                gap = between.encode()[left.end_col_offset : right.col_offset].decode()
                if gap.strip() in "+-*/" and gap.strip():
                    spot = (right.lineno, left.end_col_offset or 0, right.col_offset)
                    found.append(Edit(path, *spot, OPERATORS[type(node.op)]))
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in OPERATORS:
            left, right = node.left, node.comparators[0]
            if left.end_lineno == right.lineno:
                spot = (right.lineno, left.end_col_offset or 0, right.col_offset)
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


def sampled(count: int, seed: int) -> list[Edit]:
    """A sample of edits over all modules of the package, at most one to a line."""
    chance = random.Random(seed)
    paths = sorted(closure.PACKAGE.rglob("*.py"))
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
        own = {path: {*some} for path, some in closure.lines(*job.code).items()}
        for maker in {
            id(table.makers[file]): table.makers[file] for file in job.inputs
        }.values():
            above = next(key for key, each in table.jobs.items() if each is maker)
            for path, some in held[above].items():
                own.setdefault(path, set()).update(some)
        held[name] = own
    return held


def missed_edits(
    world: World, jobs: Iterable[str], edits: Sequence[Edit], base: Path
) -> tuple[list[Missed], int, int]:
    """Edits that change what a job makes and not its key; pairs noticed, and run."""
    held, found, noticed, ran = held_lines(world), list[Missed](), 0, 0
    for name in jobs:
        quiet = [one for one in edits if one.line not in held[name].get(one.path, ())]
        noticed += len(edits) - len(quiet)
        ran += len(quiet)
        outputs = local(world, name)
        before = made(outputs, base)

        def differs(some: Sequence[Edit], name: str = name, outputs: Any = outputs,
                    before: Any = before) -> bool:  # fmt: skip
            after = edited_run(world, name, some, outputs, base)
            return after is not None and after != before

        for one in search(runs_with(world, name, quiet, outputs, base), differs):
            found.append(Missed(str(one), name))
    return found, noticed, ran


def runs_with(
    world: World, name: str, edits: Sequence[Edit], outputs: list[str], base: Path
) -> list[Edit]:
    """Edits with which a job still runs: one that stops it is noticed by that."""
    if not edits or edited_run(world, name, edits, outputs, base) is not None:
        return [*edits]
    if len(edits) == 1:
        return []
    half = len(edits) // 2
    return [
        *runs_with(world, name, edits[:half], outputs, base),
        *runs_with(world, name, edits[half:], outputs, base),
    ]


def edited_run(
    world: World, name: str, edits: Sequence[Edit], outputs: list[str], base: Path
) -> dict[str, str] | None:
    """What a job makes with other code; None if it fails."""
    with tempfile.TemporaryDirectory() as scratch:
        tree, folder = Path(scratch, "tree"), Path(scratch, "run")
        shutil.copytree(ROOT / "src", tree / "src", copy_function=shutil.copy2)
        for part in ("conf", "profiles", "Snakefile"):
            (tree / part).symlink_to(ROOT / part)
        applied(edits, tree / "src")
        without(outputs, base, folder)
        program = (
            f"import sys; sys.path[:0] = {[str(tree / 'src'), str(ROOT / 'tests')]};"
            "from pathlib import Path; from stale.world import World;"
            f"world = World({world.paper!r}, *{world.given!r});"
            f"world.run({name!r}, Path({str(folder)!r}))"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False
        )
        return made(outputs, folder) if done.returncode == 0 else None


# --- all of it ------------------------------------------------------------------------


def count(
    paper: str,
    edits: Sequence[Edit],
    overrides: Sequence[str],
    limit: int | None = None,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Rows of the table for a paper; ``limit`` is a number of leaves, None for all."""
    world = World(paper, *overrides)
    names = rows_of(world)
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        baseline(world, names, base)
        every = world.leaves()
        if limit is not None:
            every = random.Random(seed).sample(every, min(limit, len(every)))
        leaves = Leaves(world, every)
        missed = missed_leaves(leaves, names, base)
        quiet = sum(len(leaves.quiet(name)) for name in names)
        pairs = len(leaves.moved) * len(names)
        rows = [
            {
                **{"paper": paper, "kind": "leaf", "jobs": len(names)},
                **{"changes": len(leaves.moved) + len(leaves.refused)},
                **{"refused": len(leaves.refused), "pairs": pairs},
                **{"noticed": pairs - quiet, "run": quiet, "missed": len(missed)},
                "false_alarms": leaves.false_alarms(),
            }
        ]
        if edits:
            lost, noticed, ran = missed_edits(world, names, edits, base)
            missed += lost
            rows.append(
                {
                    **{"paper": paper, "kind": "edit", "jobs": len(names)},
                    **{"changes": len(edits), "refused": 0, "noticed": noticed},
                    **{"pairs": noticed + ran, "run": ran, "missed": len(lost)},
                    "false_alarms": 0,
                }
            )
    for one in missed:
        print(f"missed: {one.change} changes {one.job}, and its key does not")
    return rows


def main() -> None:
    """Write the table; the exit code is 1 if a change was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("papers", nargs="*", default=[])
    parser.add_argument("--edits", type=int, default=300)
    parser.add_argument("--leaves", type=int, help="so many of a paper; else all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", nargs="*", default=[], help="overrides of Hydra's")
    given = parser.parse_args()
    edits = sampled(given.edits, given.seed) if given.edits else []
    rows: list[dict[str, Any]] = []
    for paper in given.papers or available("paper"):
        overrides = ["scale=smoke", *given.set]
        rows += count(paper, edits, overrides, given.leaves, given.seed)
        print(rows[-1], flush=True)
        with TABLE.open("w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            table.writeheader()
            table.writerows(rows)
    sys.exit(any(row["missed"] for row in rows))


if __name__ == "__main__":
    main()
