"""DP-SCO: exponent of time in n, cost of a large run, growth of a step with d.

Records are drawn within the time that is measured. ``python -m bench.dpsco`` runs it
alone. A claim that does not hold is printed as it is.
"""

from __future__ import annotations

import math
import multiprocessing
import resource
import time
from itertools import pairwise

import numpy as np
from scipy.optimize import nnls
from tabulate import tabulate

from dperm.core.privacy.mechanisms import streams
from dperm.solvers.streams import Part, Target, noisy_sfw, phased_sgd, poly_sfw
from dperm.solvers.streams.setup import Setup
from dperm.solvers.streams.sources import Signs

SIZES = (10**4, 31623, 10**5, 316228, 10**6)
TURNS = 3
METHODS = {
    "noisy_sfw": (noisy_sfw, noisy_sfw.Options()),
    "noisy_sfw_all": (noisy_sfw, noisy_sfw.Options(batch="all")),
    "poly_sfw": (poly_sfw, poly_sfw.Options()),
    "phased_sgd": (phased_sgd, phased_sgd.Options()),
}


def solve(name: str, p: float, n: int, d: int) -> float:
    """Run one private target; the share of the records that was read."""
    module, options = METHODS[name]
    setup, source = Setup("least_squares", p, d), Signs(d, 1)
    part = Part(setup, [Target(1.0, n**-2.0, "strict")], streams(2))
    module.Run([part], source, n, options).solve()
    return source.taken / n


def seconds(*call) -> float:
    """Time of one run, the best of a few."""
    spent = []
    for _ in range(TURNS):
        start = time.perf_counter()
        solve(*call)
        spent.append(time.perf_counter() - start)
    return min(spent)


def exponents() -> list[list]:
    """Exponent of time in n from 10^4 to 10^6, by least squares in logarithms."""
    rows = []
    for name, p, d in (
        ("noisy_sfw", 2.0, 256), ("noisy_sfw", 1.5, 256), ("noisy_sfw_all", 2.0, 256),
        ("poly_sfw", 1.0, 64), ("phased_sgd", 2.0, 256), ("phased_sgd", math.inf, 256),
    ):  # fmt: skip
        solve(name, p, 1000, d)  # compile
        spent = [seconds(name, p, n, d) for n in SIZES]
        slope = np.polyfit(np.log(SIZES), np.log(spent), 1)[0]
        rows.append([name, f"{p:g}", d, *spent, slope])
    return rows


def linear_and_nodes() -> list[list]:
    """Noisy SFW's time as a n + b sqrt(n): a for records, b for the tree's nodes.

    There are about 2 sqrt(n) nodes, each with noise and an oracle, O(d) like a record,
    but dearer. Where they outweigh the records the exponent lies below 1.
    """
    sizes, rows = np.array(SIZES, dtype=float), []
    for name, p, d in (
        ("noisy_sfw", 2.0, 256), ("noisy_sfw", 2.0, 1000), ("noisy_sfw_all", 2.0, 256),
    ):  # fmt: skip
        solve(name, p, 1000, d)
        spent = np.array([seconds(name, p, n, d) for n in SIZES])
        terms = np.stack([sizes, np.sqrt(sizes)], axis=1)
        (a, b), _ = nnls(terms / spent[:, None], np.ones(len(spent)))
        off = np.abs(terms @ [a, b] / spent - 1).max()
        share = a * sizes[-1] / (a * sizes[-1] + b * np.sqrt(sizes[-1]))
        rows.append([name, f"{p:g}", d, 1e9 * a, 1e6 * b, share, off])
    return rows


def _large(name: str, p: float, n: int, d: int, out) -> None:
    start = time.perf_counter()
    share = solve(name, p, n, d)
    spent = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    out.put([name, f"{p:g}", n, d, spent, peak, share])


def large() -> list[list]:
    """A million records in a process of its own, compilation and imports included."""
    spawn, rows = multiprocessing.get_context("spawn"), []
    cases = (("noisy_sfw", 1.5), ("noisy_sfw", 2.0), ("poly_sfw", 1.0))
    for name, p in (*cases, ("phased_sgd", math.inf)):
        out = spawn.Queue()
        child = spawn.Process(target=_large, args=(name, p, 10**6, 1000, out))
        child.start()
        rows.append(out.get())
        child.join()
    return rows


def step_in_d() -> list[list]:
    """Time of poly_sfw when d grows fourfold: 4 is O(d) a step."""
    sizes = (64, 256, 1024, 4096)
    spent = [seconds("poly_sfw", 1.0, 20000, d) for d in sizes]
    ratios = [math.nan, *(b / a for a, b in pairwise(spent))]
    return [list(row) for row in zip(sizes, spent, ratios, strict=True)]


def blocks() -> list[tuple]:
    """Title, rows and heads of each comparison, for the report."""
    heads = ("solver", "p", "d", *(f"n = {n:g}" for n in SIZES), "exponent of n")
    return [
        ("DP-SCO: seconds of a run, records drawn within, and its exponent in n",
         exponents(), heads),
        ("DP-SCO: noisy SFW's time as a n + b sqrt(n), the records and the nodes",
         linear_and_nodes(),
         ("solver", "p", "d", "a, ns", "b, us", "share of a n at n = 1e6",
          "largest relative error")),
        ("DP-SCO: a million records on one core",
         large(), ("solver", "p", "n", "d", "seconds", "peak MiB", "share read")),
        ("DP-SCO: poly_sfw over the l_1 ball, n = 20000, when d grows fourfold",
         step_in_d(), ("d", "seconds", "ratio")),
    ]  # fmt: skip


if __name__ == "__main__":
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        for title, rows, head in blocks():
            print(f"## {title}\n\n{tabulate(rows, head, 'pipe', floatfmt='.3g')}\n")
