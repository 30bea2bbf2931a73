"""What narrower vectors cost: code made for AVX2, and for this processor.

``python -m bench.processors`` runs it alone. Every turn is a process of its own, whose
environment says what Numba, numpy and OpenBLAS compile or choose for.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from statistics import median

import dperm

TURNS = 5
HEAD = ("problem", "kernel", "for AVX2, ns", "for this processor, ns", "ratio")
AVX2 = dperm.ONE_PROCESSOR | {"NUMBA_CPU_FEATURES": ""}  # none but Haswell's
NATIVE = dict.fromkeys(dperm.ONE_PROCESSOR, "")  # set, so that they stay, to nothing
SCRIPT = """
from threadpoolctl import threadpool_limits
from bench.shared import SIZES, in_turns, lanes, problem, solve
from dperm.core.lanes import dp_cd
from dperm.solvers.lanes import dp_sgd
from dperm.solvers.lanes import dp_gcd

with threadpool_limits(1):
    for name, size in SIZES.items():
        made, many = problem(*size), lanes(256)
        counts = {dp_cd: 2 * made.p, dp_sgd: 1000, dp_gcd: 4}
        spent = in_turns(*(lambda m=m, c=c: solve(m, made, many, c)
                           for m, c in counts.items()))
        for module, seconds in zip(counts, spent):
            kernel = module.__name__.rsplit(".", 1)[1]
            print(name, kernel, seconds / counts[module] / 256 * 1e9, sep=",")
"""


def table() -> list[list]:
    """Nanoseconds a step and lane of either code, and their ratio."""
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as own:
        turns = [(_spent(AVX2, ours), _spent(NATIVE, own)) for _ in range(TURNS)]
    rows = []
    for at in turns[0][0]:
        one, other = (median(turn[k][at] for turn in turns) for k in (0, 1))
        rows.append([*at, one, other, one / other])
    return rows


def _spent(settings: Mapping[str, str], cache: str) -> dict[tuple[str, ...], float]:
    """What a process with these settings takes for each problem and kernel."""
    known = {**os.environ, **settings, "NUMBA_CACHE_DIR": cache}
    said = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=known, check=True, text=True,
        stdout=subprocess.PIPE,
    ).stdout  # fmt: skip
    rows = [line.split(",") for line in said.splitlines()]
    return {(problem, kernel): float(ns) for problem, kernel, ns in rows}


if __name__ == "__main__":
    from tabulate import tabulate

    print(tabulate(table(), HEAD, "pipe", floatfmt=".3g"))
