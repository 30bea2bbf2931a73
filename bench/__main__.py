"""Kernels against C, settings against single runs, growth, memory.

Every comparison is taken in turns within this run, and the median of the turns is
printed, because machines drift. Weights of a kernel and of its reference must agree to
rounding first. Writes ``results/bench.md`` as well, which the manifest notes.
"""

from __future__ import annotations

import itertools
import resource
from pathlib import Path
from typing import Any

from tabulate import tabulate
from threadpoolctl import threadpool_limits

from bench import batched, frank_wolfe, full_batch, growth, single_pass
from bench.shared import ROUNDING, TURNS
from dperm.solvers import registry
from dperm.storage import files as store
from dperm.workflow import manifest

HEAD = ("solver", "kernel", "problem", "ours", "C", "ours / C")


def against_c() -> tuple[list[list[Any]], float]:
    """A row for each kernel and problem, and the largest difference of weights."""
    families = (batched, frank_wolfe, single_pass, full_batch)
    rows = []
    largest = 0.0
    for case in itertools.chain.from_iterable(
        family.cases() for family in families
    ):
        largest = max(largest, case.difference())
        rows.append(case.row())
    rows += full_batch.reasons()
    listed = {solver for row in rows for solver in row[0].split(", ")}
    assert listed == set(registry.PLACES), listed ^ set(registry.PLACES)
    return rows, largest


def report() -> str:
    """Run everything and lay it out."""
    rows, largest = against_c()
    blocks = [
        ("One run of one setting, nanoseconds a step", rows, HEAD),
        ("1000 settings in a batch, one at a time for comparison", batched.batch_rows(),
         ("solver", "problem", "ns a step and setting", "our single run / setting",
          "C run / setting")),
        ("Seconds and megabytes as one size grows over two decades",
         growth.table(), growth.HEAD),
    ]  # fmt: skip
    parts = [
        f"Machine: {manifest.machine()}; {store.versions()}.",
        f"Seconds are those of one thread, and of {TURNS} turns the median. C is "
        "compiled by GCC with -O3 -march=native -ffast-math. Before the clock starts, "
        "the weights of ours and of C are compared: they differ by at most "
        f"{largest:.0e} of the largest weight, and more than {ROUNDING:.0e} ends the "
        "run. Noise is drawn within a step, by numpy's generators, but for single-pass "
        "solvers before.",
    ]
    for title, table, head in blocks:
        parts += [f"## {title}", tabulate(table, head, "pipe", floatfmt=".3g")]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    parts.append(f"Peak memory of this run: {peak:.0f} MiB.")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    with threadpool_limits(1):
        text = report()
    print(text)
    page = Path("results/bench.md")
    store.write_text(page, text)
    manifest.note(page.parent, [page])
