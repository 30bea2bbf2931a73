"""Kernels against C, settings against single runs, growth, memory.

Every comparison is taken in turns within this run, and the median of the turns is
printed, because machines drift. Writes ``results/bench.md`` as well.
"""

from __future__ import annotations

import resource
from pathlib import Path

import numpy as np
from scipy import sparse
from tabulate import tabulate
from threadpoolctl import threadpool_limits

from bench import growth, reference
from bench.shared import SIZES, in_turns, problem, settings, solve
from dperm.privacy.noise import streams
from dperm.problems.penalties import Penalty
from dperm.problems.problem import Problem, build
from dperm.solvers.batched import BatchedSettings, dp_cd, dp_gcd, dp_sgd, dp_svrg
from dperm.solvers.single_pass import poly_sfw
from dperm.solvers.single_pass.setup import Setup
from dperm.storage import files as store
from dperm.workflow.manifest import machine


def against_c() -> list[list]:
    """One run of each kernel against one run in C, on the same stream."""
    lib, rows = reference.library(), []
    for name, (n, p, loss) in SIZES.items():
        made = problem(n, p, loss)
        for module, run, count in (
            (dp_cd, reference.run_dp_cd, 20 * p),
            (dp_sgd, reference.run_dp_sgd, min(n, 20000)),
            (dp_svrg, reference.run_dp_svrg, min(n - 1, 20000)),
        ):
            one = settings(3).take([1])
            ours = solve(module, made, one, count)[0]
            theirs = run(lib, made, one, streams(1), count)
            np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)
            spent = in_turns(
                lambda m=module, d=made, o=one, c=count: solve(m, d, o, c),
                lambda r=run, d=made, o=one, c=count: r(lib, d, o, streams(1), c),
            )
            label = module.__name__.rsplit(".", 1)[1]
            per_step = [seconds / count * 1e9 for seconds in spent]
            rows.append([name, label, *per_step, spent[0] / spent[1]])
    return rows


def vertices_against_c() -> list[list]:
    """PolySFW over the l_1 ball, one setting, noise apart: nanoseconds a coordinate."""
    lib, table = reference.library(), []
    for d, count in ((64, 20_000), (256, 5000), (1024, 1000), (4096, 300)):
        rng = np.random.default_rng(0)
        rows = rng.choice(np.array([-1, 1], dtype=np.int8), (count, d))
        labels, noise = rng.standard_normal(count), rng.laplace(size=(count, 2 * d))
        kernel = Setup("least_squares", 1.0, d).compiled(poly_sfw._steps)
        factors, scale, eta = np.ones(count), np.full(1, 1e-3), 1e-3

        def ours(
            kernel=kernel, rows=rows, labels=labels, factors=factors, noise=noise,
            scale=scale, eta=eta, d=d,
        ):  # fmt: skip
            x, gradient = np.zeros((2, 1, d))
            last = np.zeros(1, dtype=np.int64)
            given = (rows, labels, factors, 1.0, noise, scale, eta, 1.0)
            kernel(*given, x, gradient, last)
            return x[0]

        def theirs(rows=rows, labels=labels, noise=noise, eta=eta):
            return reference.run_poly_sfw(lib, rows, labels, noise, 1e-3, eta)

        np.testing.assert_allclose(ours(), theirs(), rtol=1e-8, atol=1e-10)
        spent = [seconds / count / d * 1e9 for seconds in in_turns(ours, theirs)]
        table.append([d, *spent, spent[0] / spent[1]])
    return table


def batches_against_single_runs() -> list[list]:
    """1000 settings in one batch, per setting, against one run of ours and one in C."""
    lib, rows = reference.library(), []
    for name, (n, p, loss) in SIZES.items():
        made, many, one = problem(n, p, loss), settings(1000), settings(3).take([1])
        for module, run, count in (
            (dp_cd, reference.run_dp_cd, 2 * p),
            (dp_sgd, reference.run_dp_sgd, min(n, 5000)),
        ):
            spent = in_turns(
                lambda m=module, d=made, s=many, c=count: solve(m, d, s, c),
                lambda m=module, d=made, s=one, c=count: solve(m, d, s, c),
                lambda r=run, d=made, s=one, c=count: r(lib, d, s, streams(1), c),
            )
            each = spent[0] / 1000
            label = module.__name__.rsplit(".", 1)[1]
            rows.append(
                [name, label, each / count * 1e9, spent[1] / each, spent[2] / each]
            )
    return rows


def greedy_on_sparse_data() -> list[list]:
    """An iteration of DP-GCD, ten non-zeros a column, from 10^3 to 10^6 features."""
    lib, rows = reference.library(), []
    for p in (1000, 10_000, 100_000, 1_000_000):
        made, one, many = sparse_problem(p), settings(3).take([1]), settings(64)
        one = BatchedSettings(one.step, one.clip, one.noise_multiplier, "tight")
        count = max(3, 300_000 // p)
        ours = solve(dp_gcd, made, one, count)[0]
        theirs = reference.run_dp_gcd(lib, made, one, streams(1), count)
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-12)
        spent = in_turns(
            lambda d=made, o=one, c=count: solve(dp_gcd, d, o, c),
            lambda d=made, o=one, c=count: reference.run_dp_gcd(
                lib, d, o, streams(1), c
            ),
            lambda d=made, o=many: solve(dp_gcd, d, o, 3),
        )
        each = [seconds / count / p * 1e9 for seconds in spent[:2]]
        rows.append([p, *each, spent[0] / spent[1], spent[2] / 3 / 64 / p * 1e9])
    return rows


def sparse_problem(p: int, n: int = 1000, filled: int = 10) -> Problem:
    """A logistic problem with so many non-zeros in every column."""
    rng = np.random.default_rng(0)
    indices = np.argsort(rng.random((p, 40)), axis=1)[:, :filled] * (n // 40)
    indices = np.sort(indices + rng.integers(0, n // 40, (p, filled)), axis=1)
    data, starts = rng.standard_normal(p * filled), np.arange(p + 1) * filled
    X = sparse.csc_array((data, indices.ravel(), starts), shape=(n, p))
    y = rng.choice([-1.0, 1.0], n)
    made = build("sparse", X, y, "logistic", Penalty(l1=0.001))
    made.smoothness  # noqa: B018 (cached outside the clock)
    return made


def report() -> str:
    """Run everything and lay it out."""
    blocks = [
        ("One run, nanoseconds a step", against_c(),
         ("problem", "kernel", "ours", "C", "ours / C")),
        ("1000 settings in a batch, one thread, one at a time for comparison",
         batches_against_single_runs(),
         ("problem", "kernel", "ns a step and setting", "our single run / setting",
          "C run / setting")),
        ("PolySFW, one setting, nanoseconds a coordinate and step; noise drawn before",
         vertices_against_c(), ("d", "ours", "C", "ours / C")),
        ("Seconds and megabytes as one size grows over two decades",
         growth.table(), growth.HEAD),
        ("One iteration of DP-GCD on sparse data, ten non-zeros a column; nanoseconds "
         "a feature, noise included", greedy_on_sparse_data(),
         ("p", "ours", "C", "ours / C", "64 settings, a feature and setting")),
    ]  # fmt: skip
    parts = [f"Machine: {machine()}; {store.versions()}."]
    for title, rows, head in blocks:
        parts += [f"## {title}", tabulate(rows, head, "pipe", floatfmt=".3g")]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    parts.append(f"Peak memory of this run: {peak:.0f} MiB.")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    with threadpool_limits(1):
        text = report()
    print(text)
    store.write_text(Path("results/bench.md"), text)
