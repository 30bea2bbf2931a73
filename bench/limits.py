"""What bounds each kernel, as shares of what this machine can do.

The machine's limits are measured in the same run: products with sums a second in
registers, bytes a second from memory, nanoseconds a normal number. A kernel's share is
what its steps need at least, at that limit, over the time they take; a share near 1
says what it waits for. ``python -m bench.limits`` runs it alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from tabulate import tabulate

from bench.shared import SIZES, in_turns, lanes, problem, solve
from dperm.core.compiled import KERNEL
from dperm.core.lanes import dp_cd
from dperm.core.privacy.mechanisms import gaussian, streams
from dperm.solvers.lanes import dp_sgd

REPEATS, WIDE, LONG = 10_000, 64, 32  # rounds over so many entries, products of each
CACHE = 32e6  # bytes; what is read again and again stays if it is smaller
STREAM = 1 << 24  # doubles of an array that no cache holds
NUMBERS = 1 << 18
DERIVATIVE = {"logistic": 45, "least_squares": 1}  # operations of phi' and its clipping
HEAD = ("problem", "kernel", "lanes", "ns a step and lane", "arithmetic", "memory",
        "noise")  # fmt: skip


class Machine(NamedTuple):
    """Operations and bytes a second on one core, seconds a normal number."""

    operations: float
    bytes: float
    normal: float


@njit(**{**KERNEL, "cache": False, "fastmath": {"contract"}})  # no product is saved
def _products(x, repeats):
    """Products with sums, two operations each, in registers: chains side by side."""
    for _ in range(repeats):
        for i in range(x.shape[0]):
            v = x[i]
            for _ in range(LONG):
                v = v * 0.999999 + 1e-6
            x[i] = v


@njit(**{**KERNEL, "cache": False})
def _triad(a, b, c):
    for i in range(a.shape[0]):
        a[i] = b[i] + 0.5 * c[i]


def machine() -> Machine:
    """The limits of this machine."""
    x = np.ones(WIDE)
    a, b, c = (np.ones(STREAM) for _ in range(3))
    rng = streams(0).noise
    spent = in_turns(
        lambda: _products(x, REPEATS),
        lambda: _triad(a, b, c),
        lambda: gaussian(rng, NUMBERS),
    )
    moved = 4 * 8 * STREAM  # a is read before it is written
    return Machine(
        2 * LONG * WIDE * REPEATS / spent[0], moved / spent[1], spent[2] / NUMBERS
    )


def needs(
    kernel: str, n: int, p: int, lanes: int, loss: str
) -> tuple[float, float, float]:
    """Operations, bytes from memory and normal numbers of a step, all lanes together.

    A step of DP-CD reads a column, and reads and writes every lane's margins of n
    records; its lanes share a number. A step of DP-SGD reads a record and draws p
    numbers for all lanes, whose weights stay in the cache.
    """
    if kernel == "dp_cd":
        held, moved = 8.0 * n * (p + lanes), 8.0 * n * (1 + 2 * lanes)
        operations, numbers = lanes * n * (4 + DERIVATIVE[loss]), 1
    else:
        held, moved = 8.0 * n * p, 8.0 * p
        operations, numbers = lanes * (p * 8 + DERIVATIVE[loss]), p
    return operations, moved if held > CACHE else 0.0, float(numbers)


def table(at: Machine) -> list[list]:
    """A row for each problem, kernel and number of lanes."""
    rows = []
    for name, (n, p, loss) in SIZES.items():
        made = problem(n, p, loss)
        for module, count in ((dp_cd, 2 * p), (dp_sgd, min(n, 5000))):
            kernel = module.__name__.rsplit(".", 1)[1]
            for many in (1, 100):
                (spent,) = in_turns(
                    lambda m=module, d=made, k=many, c=count: solve(m, d, lanes(k), c)
                )
                step = spent / count
                work = needs(kernel, n, p, many, loss)
                limits = (1 / at.operations, 1 / at.bytes, at.normal)
                shares = [w * s / step for w, s in zip(work, limits, strict=True)]
                rows.append([name, kernel, many, step / many * 1e9, *shares])
    return rows


def told(at: Machine) -> str:
    """The machine's limits in words."""
    return (
        f"One core: {at.operations / 1e9:.1f} billion operations a second, "
        f"{at.bytes / 1e9:.1f} GB a second from memory, {at.normal * 1e9:.1f} ns a "
        "normal number."
    )


if __name__ == "__main__":
    found = machine()
    print(told(found), end="\n\n")
    print(tabulate(table(found), HEAD, "pipe", floatfmt=".3g"))
