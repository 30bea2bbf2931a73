"""The kernels of batched solvers beside C: one setting, noise included."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

from bench.reference import call
from bench.shared import (
    SIZES,
    Begin,
    Call,
    Case,
    begun_in_turns,
    block_begin,
    compressed,
    dense_problem,
    is_logistic,
    settings,
    sparse_problem,
)
from dperm.privacy.noise import laplace, streams
from dperm.problems.problem import Problem
from dperm.solvers.batched import (
    BatchedSettings,
    dp_cd,
    dp_cd_priv,
    dp_gcd,
    dp_sgd,
    dp_skgd,
    dp_svrg,
    mean_sensitivity,
    share,
    sum_sensitivity,
)

SPARSE = (1000, 10_000, 100_000, 1_000_000)  # features of the sparse problems
SINGLE = settings(3).take([1])


def cases() -> Iterator[Case]:
    """Every kernel on the papers' sizes, and on sparse data."""
    for name, (n, p, loss) in SIZES.items():
        yield from dense_cases(name, dense_problem(n, p, loss))
    for p in SPARSE:
        yield from sparse_cases(p)


def dense_cases(name: str, problem: Problem) -> Iterator[Case]:
    """The kernels of columns and rows."""
    coordinate_steps = 20 * problem.p
    record_steps = min(problem.n - 1, 20_000)  # within an epoch of DP-SVRG
    blocks = dp_skgd.Options(blocks=problem.p // 4, composite=True)
    # the sketch's constants, outside the clock
    dp_skgd.steps(problem, 1, blocks)
    for module, kernel, count, options, reference in (
        (dp_cd, "columns", coordinate_steps, dp_cd.Options(), cd_begin),
        (
            dp_cd_priv,
            "columns",
            coordinate_steps,
            dp_cd_priv.Options(),
            cd_begin,
        ),
        (dp_skgd, "blocks of 4 columns", coordinate_steps, blocks, skgd_begin),
        (dp_sgd, "records", record_steps, dp_sgd.Options(), sgd_begin),
        (dp_svrg, "records", record_steps, dp_svrg.Options(), svrg_begin),
    ):
        yield _case(module, kernel, name, problem, count, options, reference)


def sparse_cases(p: int) -> Iterator[Case]:
    """The kernels of sparse columns and rows."""
    problem = sparse_problem(p)
    name = f"sparse, p {p:,}"
    count = max(3, 300_000 // p)
    yield _case(
        dp_gcd,
        "sparse columns",
        name,
        problem,
        count,
        dp_gcd.Options(),
        gcd_begin,
    )
    if p > 100_000:
        # a step of DP-SGD draws as many numbers as an iteration of DP-GCD
        return
    problem.global_smoothness, problem.row_norms, problem.rows  # noqa: B018 (cached outside the clock)
    arguments = (problem, 2 * p, dp_cd.Options(), cd_begin)
    yield _case(dp_cd, "sparse columns", name, *arguments)
    arguments = (problem, max(48, 1_000_000 // p), dp_sgd.Options(), sgd_begin)
    yield _case(dp_sgd, "sparse records", name, *arguments)


def _case(
    module: Any,
    kernel: str,
    name: str,
    problem: Problem,
    count: int,
    options: Any,
    reference: Any,
) -> Case:
    ours = block_begin(module, problem, SINGLE, count, options)
    theirs = reference(module, problem, SINGLE, count, options)
    return Case(solver_of(module), kernel, name, count, ours, theirs)


def cd_begin(
    module: Any,
    problem: Problem,
    chosen: BatchedSettings,
    count: int,
    options: Any,
) -> Begin:
    """A cyclic run of DP-CD in C, with public or private constants.

    The private constants, released before the first step, are ours.
    """
    M = module.Run(problem, chosen, streams(1), options, total=count).M
    clip = chosen.clip * share(M)
    scale = chosen.noise_scale(mean_sensitivity(clip, problem.n))
    step = chosen.step / M
    constants = constants_of(problem, step, clip, scale)
    columns = compressed(problem.A) if problem.is_sparse else (problem.A,)

    def begin() -> Call:
        w = np.zeros(problem.p)
        v = problem.offset.copy()
        rng = streams(1).noise

        def steps() -> np.ndarray:
            order = ((1 + np.arange(count)) % problem.p).astype(np.intp)
            schedule = (order, count, *constants)
            if problem.is_sparse:
                derivatives = np.empty(problem.n)
                arrays = (*columns, v, derivatives, w, problem.n)
                call("dp_cd_sparse", rng, *arrays, *schedule)
            else:
                call("dp_cd", rng, *columns, v, w, problem.n, *schedule)
            return w

        return steps

    return begin


def constants_of(problem: Problem, *scales: Any) -> tuple[Any, ...]:
    """Last arguments of steps in C: the loss, their scales and the penalty."""
    penalty = problem.penalty.l1, problem.penalty.l2
    return (is_logistic(problem), *scales, *penalty)


def skgd_begin(
    module: Any,
    problem: Problem,
    chosen: BatchedSettings,
    count: int,
    options: Any,
) -> Begin:
    """A run of DP-SkGD on blocks of coordinates in C."""
    law = module.SketchLaw(problem, options)
    sizes = [len(members) for members in law.sets]
    starts = np.append(0, np.cumsum(sizes)).astype(np.intp)
    members = np.concatenate(law.sets).astype(np.intp)
    step = chosen.step / law.smoothness
    clip = chosen.clip * module.shares(problem.smoothness, law.sets)
    scale = chosen.noise_scale(mean_sensitivity(clip, problem.n))
    blocks = (starts, members, len(sizes))
    constants = constants_of(problem, step, clip, scale)

    def begin() -> Call:
        w = np.zeros(problem.p)
        v = problem.offset.copy()
        drawn = streams(1)
        scratch = (np.empty((len(sizes), problem.n)), np.empty(problem.n))

        def steps() -> np.ndarray:
            order = law.draw(drawn.sampling, count)[0].astype(np.intp)
            arrays = (problem.A, v, w, *scratch, problem.n, *blocks)
            schedule = (order, count, *constants)
            call("dp_skgd", drawn.noise, *arrays, *schedule)
            return w

        return steps

    return begin


def _record_constants(
    problem: Problem, chosen: BatchedSettings
) -> tuple[float, ...]:
    """Step, clip and noise scale of steps that read a record."""
    scale = chosen.noise_scale(sum_sensitivity(chosen.clip))
    return (
        float(chosen.step[0] / problem.global_smoothness),
        float(chosen.clip[0]),
        float(scale[0]),
    )


def sgd_begin(
    module: Any,
    problem: Problem,
    chosen: BatchedSettings,
    count: int,
    options: Any,
) -> Begin:
    """A run of DP-SGD with single records in C."""
    name = "dp_sgd_sparse" if problem.is_sparse else "dp_sgd"
    rows = compressed(problem.rows) if problem.is_sparse else (problem.rows,)
    constants = _record_constants(problem, chosen)
    penalty = (problem.penalty.l1, problem.penalty.l2)

    def begin() -> Call:
        w = np.zeros(problem.p)
        drawn = streams(1)

        def steps() -> np.ndarray:
            records = drawn.sampling.integers(0, problem.n, count).astype(
                np.intp
            )
            arrays = (*rows, problem.offset, problem.row_norms, w, problem.p)
            schedule = (
                records,
                count,
                is_logistic(problem),
                *constants,
                *penalty,
            )
            call(name, drawn.noise, *arrays, *schedule)
            return w

        return steps

    return begin


def svrg_begin(
    module: Any,
    problem: Problem,
    chosen: BatchedSettings,
    count: int,
    options: Any,
) -> Begin:
    """At most an epoch of DP-SVRG in C."""
    constants = _record_constants(problem, chosen)
    full = module.full_noise(problem, options) * constants[-1] / problem.n
    penalty = (problem.penalty.l1, problem.penalty.l2)

    def begin() -> Call:
        w, mu, total = (np.zeros(problem.p) for _ in range(3))
        drawn = streams(1)

        def steps() -> np.ndarray:
            records = drawn.sampling.integers(0, problem.n, count).astype(
                np.intp
            )
            arrays = (
                problem.rows,
                problem.offset,
                problem.row_norms,
                w,
                mu,
                total,
            )
            schedule = (
                records,
                count,
                is_logistic(problem),
                *constants,
                full,
                *penalty,
            )
            call(
                "dp_svrg",
                drawn.noise,
                *arrays,
                problem.n,
                problem.p,
                *schedule,
            )
            return w

        return steps

    return begin


def gcd_begin(
    module: Any,
    problem: Problem,
    chosen: BatchedSettings,
    count: int,
    options: Any,
) -> Begin:
    """A run of DP-GCD (logistic, GS-r, noise on the score) in C."""
    M = problem.smoothness
    shares = share(M)
    scale = float(
        chosen.noise_scale(mean_sensitivity(chosen.clip, problem.n))[0]
    )
    on_score = scale / float(np.sqrt(M.sum()))
    constants = (float(chosen.step[0]), float(chosen.clip[0]), scale, on_score)
    columns = compressed(problem.A)

    def begin() -> Call:
        w = np.zeros(problem.p)
        v = problem.offset.copy()
        scratch = np.empty(problem.n)
        drawn = streams(1)

        def steps() -> np.ndarray:
            for _ in range(count):
                noise = laplace(drawn.sampling, np.ones(problem.p))
                on_value = float(laplace(drawn.noise, 1.0))
                arrays = (
                    *columns,
                    v,
                    scratch,
                    w,
                    problem.n,
                    problem.p,
                    M,
                    shares,
                    noise,
                )
                call(
                    "dp_gcd", *arrays, on_value, *constants, problem.penalty.l1
                )
            return w

        return steps

    return begin


def batch_rows() -> list[list[Any]]:
    """1000 settings in one batch, per setting, against one run of ours and one in C."""
    rows = []
    for name, (n, p, loss) in SIZES.items():
        problem = dense_problem(n, p, loss)
        records = min(n - 1, 5000)
        rows += [
            _batch_row(dp_cd, name, problem, 2 * p, cd_begin),
            _batch_row(dp_sgd, name, problem, records, sgd_begin),
            _batch_row(dp_svrg, name, problem, records, svrg_begin),
        ]
    problem = sparse_problem(1000)
    return [
        *rows,
        _batch_row(dp_gcd, "sparse, p 1,000", problem, 3, gcd_begin),
    ]


def _batch_row(
    module: Any, name: str, problem: Problem, count: int, reference: Any
) -> list[Any]:
    many = settings(1000)
    options = module.Options()
    spent = begun_in_turns(
        block_begin(module, problem, many, count, options),
        block_begin(module, problem, SINGLE, count, options),
        reference(module, problem, SINGLE, count, options),
    )
    each = spent[0] / len(many.step)
    ratios = (spent[1] / each, spent[2] / each)
    return [solver_of(module), name, each / count * 1e9, *ratios]


def solver_of(module: ModuleType) -> str:
    """The name of a solver's module."""
    return module.__name__.rpartition(".")[2]
