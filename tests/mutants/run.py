"""Plant every bug, and see whether the audit alone and the tests alone catch it.

``python -m mutants.run -j 2`` in ``tests/``, or ``make mutants``. What is known of
today's source, tests and patch is not run again; ``results/mutants.csv`` holds it.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from .patches import ESCAPES, MUTANTS, Mutant
from .planting import (
    MINE_FOLDER,
    ROOT,
    Slot,
    chosen_tests,
    digest,
    patched,
    place,
    timed,
)

TABLE, PAGE = ROOT / "results/mutants.csv", ROOT / "results/mutants.md"
COLUMNS = (
    "mutant", "place", "breaks", "solvers", "caught_by_audit", "caught_by_tests", "by",
    "audit_by", "tests_by", "audit_seconds", "tests_seconds", "digest",
)  # fmt: skip
SOUND = "sound"  # the row of a solver as it is
ARENA = "arena"  # in a solver's place: the paid choice, whose audit is not a command
PAID = (
    "from dperm.audit.ladder import SMALL\n"
    "from dperm.compare.audited import findings\n"
    "print(*(one.rung for one in findings(SMALL, 3) if one.caught))"
)
AUDIT_GOAL, TESTS_GOAL = 0.90, 0.97

Row = dict[str, Any]


def main() -> None:
    """Fill the table, write the page; exit code 1 if a goal is missed."""
    given = parser().parse_args()
    wanted = [m for m in MUTANTS if not given.names or m.name in given.names]
    for mutant in wanted:
        patched(mutant)  # all must apply before any is run
    table = Table()
    jobs = [job for job in _jobs(wanted) if not table.knows(*job)]
    print(f"{len(jobs)} to run, {len(_jobs(wanted)) - len(jobs)} known", flush=True)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        work = Path(given.work or folder)
        slots: SimpleQueue[Slot] = SimpleQueue()
        for k in range(given.jobs):
            slots.put(Slot(work / str(k)))
        with ThreadPoolExecutor(given.jobs) as pool:
            for row in pool.map(lambda job: _one(slots, *job, given.limit), jobs):
                table.add(row)
                print(_line(row), flush=True)
    table.write()
    PAGE.write_text(page(table.rows))
    raise SystemExit(0 if given.names or met(table.rows) else 1)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser("mutants", description=__doc__)
    made.add_argument("names", nargs="*", help="mutants; all if none is named")
    made.add_argument("-j", dest="jobs", type=int, default=1, help="at a time")
    made.add_argument("--limit", type=float, default=900.0, help="seconds of a step")
    made.add_argument("--work", help="folder for the copies; a temporary one")
    return made


def _jobs(wanted: list[Mutant]) -> list[tuple[str, Mutant | None]]:
    """Mutants, those of a solver together, after the solvers as they are."""
    solvers = sorted({solver for mutant in wanted for solver in mutant.solvers})
    sound: list[tuple[str, Mutant | None]] = [(solver, None) for solver in solvers]
    planted = sorted(wanted, key=lambda mutant: mutant.solvers[:1])
    return sound + [(mutant.name, mutant) for mutant in planted]


class Table:
    """The rows so far, on disk after each."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        if TABLE.is_file():
            self.rows = list(csv.DictReader(io.StringIO(TABLE.read_text())))

    def knows(self, name: str, mutant: Mutant | None) -> bool:
        """Whether the row of today's source, tests and patch is there."""
        key = {"mutant": name} if mutant else {"mutant": SOUND, "solvers": name}
        wanted = {**key, "digest": digest(mutant)}.items()
        return any(wanted <= row.items() for row in self.rows)

    def add(self, row: Row) -> None:
        """Take a row in the place of an older one."""
        key = ("mutant", "solvers") if row["mutant"] == SOUND else ("mutant",)
        others = [r for r in self.rows if any(r[k] != row[k] for k in key)]
        self.rows = [*others, row]
        self.write()

    def write(self) -> None:
        """Write the table, mutants in the order in which they are declared."""
        order = [SOUND, *(mutant.name for mutant in MUTANTS)]
        self.rows = [row for row in self.rows if row["mutant"] in order]
        self.rows.sort(key=lambda row: (order.index(row["mutant"]), row["solvers"]))
        out = io.StringIO()
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows({**row, "by": _who(row)} for row in self.rows)
        part = TABLE.with_suffix(".part")
        part.write_text(out.getvalue())
        part.replace(TABLE)


def _who(row: Row) -> str:
    """Rungs of the audit and the test that caught it, in one cell."""
    return "; ".join(each for each in (row["audit_by"], row["tests_by"]) if each)


# --- one mutant -----------------------------------------------------------------------


def _one(slots: SimpleQueue, name: str, mutant: Mutant | None, limit: float) -> Row:
    slot: Slot = slots.get()
    try:
        return (
            _sound(slot, name, limit) if mutant is None else _row(slot, mutant, limit)
        )
    finally:
        slots.put(slot)


def _sound(slot: Slot, solver: str, limit: float) -> Row:
    """What the audit makes of a solver as it is: a false alarm, if anything."""
    with slot.planted(None) as environment:
        rungs, seconds = _audit(slot, solver, environment, limit)
    return _filled(
        mutant=SOUND, solvers=solver, caught_by_audit=int(bool(rungs)),
        audit_by=" ".join(rungs), audit_seconds=round(seconds, 1), digest=digest(None),
    )  # fmt: skip


def _filled(**known: Any) -> Row:
    return {**dict.fromkeys(COLUMNS, ""), **known}


def _row(slot: Slot, mutant: Mutant, limit: float) -> Row:
    rungs: list[str] = []
    spent = 0.0
    with slot.planted(mutant) as environment:
        for solver in mutant.solvers:
            found, seconds = _audit(slot, solver, environment, limit)
            rungs += found
            spent += seconds
            if found:
                break
    failed, tested = _tests(slot, mutant, limit)
    by_tests = int("::" in failed) if chosen_tests(mutant) else ""
    return _filled(
        mutant=mutant.name, place=place(mutant), breaks=mutant.breaks,
        solvers=" ".join(mutant.solvers),
        caught_by_audit=int(_is_catch(rungs)) if mutant.solvers else "",
        caught_by_tests=by_tests, audit_by=" ".join(rungs), tests_by=failed,
        audit_seconds=round(spent, 1), tests_seconds=round(tested, 1),
        digest=digest(mutant),
    )  # fmt: skip


def _is_catch(rungs: list[str]) -> bool:
    """An audit that ends in an error has caught nothing."""
    return any(not rung.startswith("error") for rung in rungs)


def _audit(
    slot: Slot, solver: str, environment: dict[str, str], limit: float
) -> tuple[list[str], float]:
    """Rungs that caught a solver at small effort, and seconds of CPU."""
    folder = slot.root / MINE_FOLDER if solver == "noisy_gd" else slot.root
    kept = folder / f"results/smoke/audit/solvers/{solver}.csv"
    kept.unlink(missing_ok=True)
    what = ["-m", "dperm", "audit", f"solver={solver}", "scale=smoke"]
    if solver == ARENA:
        what = ["-c", PAID]
    code, said, seconds = timed([sys.executable, *what], folder, environment, limit)
    last = (said.strip().splitlines() or [""])[-1]
    if code or (solver != ARENA and not kept.is_file()):
        error = f"error:{'time' if code == -9 else last[:80]}"
        return [error.replace(" ", "_")], seconds
    if solver == ARENA:
        return list(dict.fromkeys(last.split())), seconds
    rows = csv.DictReader(io.StringIO(kept.read_text()))
    caught = [row["rung"] for row in rows if row["caught"] == "True"]
    return list(dict.fromkeys(caught)), seconds


def _tests(slot: Slot, mutant: Mutant, limit: float) -> tuple[str, float]:
    """The first test that fails with the bug and not without it; seconds of CPU."""
    chosen, spent = chosen_tests(mutant), 0.0
    while chosen:
        with slot.planted(mutant) as environment:
            failed, seconds = _pytest(slot, chosen, environment, limit)
        spent += seconds
        if "::" not in failed:
            return failed, spent
        with slot.planted(mutant, sound=True) as environment:
            if "::" not in _pytest(slot, [failed], environment, limit)[0]:
                return failed, spent
        chosen.append(f"--deselect={failed}")
    return "", spent


def _pytest(
    slot: Slot, what: list[str], environment: dict[str, str], limit: float
) -> tuple[str, float]:
    """The first test that fails, or "time"; and seconds of CPU."""
    command = [sys.executable, "-m", "pytest", "-n0", "-x", "-q", "--tb=no", *what]
    code, said, seconds = timed(command, slot.root, environment, limit)
    failed = re.search(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", said, re.MULTILINE)
    if failed:
        return failed[1], seconds
    return {0: "", -9: "time"}.get(code, f"exit code {code}"), seconds


# --- the page -------------------------------------------------------------------------


def _line(row: Row) -> str:
    audit = row["caught_by_audit"]
    caught = (
        f"audit {'-' if audit == '' else audit} tests {row['caught_by_tests'] or '-'}"
    )
    name = row["mutant"] if row["mutant"] != SOUND else f"{SOUND} {row['solvers']}"
    seconds = f"{row['audit_seconds']} + {row['tests_seconds'] or 0} s"
    return f"{name:32} {caught}  {seconds}  {row['audit_by']}  {row['tests_by']}"


Share = tuple[int, int]


def shares(rows: list[Row]) -> tuple[Share, Share, int]:
    """Caught, and of how many, by the audit and by the tests; false alarms."""
    planted = [row for row in rows if row["mutant"] != SOUND]
    found = []
    for who in ("audit", "tests"):
        known = [r[f"caught_by_{who}"] for r in planted if r[f"caught_by_{who}"] != ""]
        found.append((sum(map(int, known)), len(known)))
    alarms = sum(int(r["caught_by_audit"]) for r in rows if r["mutant"] == SOUND)
    return found[0], found[1], alarms


def met(rows: list[Row]) -> bool:
    """Whether both goals are met and nothing sound was flagged."""
    audit, tests, alarms = shares(rows)
    reached = (
        share[0] >= goal * share[1]
        for share, goal in ((audit, AUDIT_GOAL), (tests, TESTS_GOAL))
    )
    return all(reached) and not alarms


def page(rows: list[Row]) -> str:
    """The table for people."""
    audit, tests, alarms = shares(rows)
    sound = sum(row["mutant"] == SOUND for row in rows)
    lines = [
        "# Planted bugs",
        "",
        f"{len(rows) - sound} bugs, planted one at a time: the audit alone, at small"
        f" effort, caught {audit[0]} of {audit[1]}, the tests alone {tests[0]} of"
        f" {tests[1]}; a user's algorithm has no tests, and no audit looks at what is"
        f" only said. Of {sound} solvers as they are it flagged"
        f" {alarms}. Goals: {AUDIT_GOAL:.0%}, {TESTS_GOAL:.0%}, none. `make mutants`"
        " makes this page.",
        "",
        "| bug | what it breaks | where | audit | tests |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        if row["mutant"] != SOUND:
            cells = (row["mutant"], row["breaks"], row["place"], _by(row, "audit"))
            lines.append(f"| {' | '.join(cells)} | {_by(row, 'tests')} |")
    return "\n".join(lines) + "\n"


def _by(row: Row, who: str) -> str:
    by = str(row[f"{who}_by"])
    if row[f"caught_by_{who}"] == "":
        return ""
    if int(row[f"caught_by_{who}"]):
        return by.rpartition("/")[2] if who == "tests" else by.replace(" ", ", ")
    why = ESCAPES.get((row["mutant"], who), "not explained")
    return f"**escaped**: {why}" + (f" ({by})" if by else "")


if __name__ == "__main__":
    os.environ.pop("DPERM_CONF", None)
    main()
