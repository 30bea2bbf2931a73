"""Compiling and calling the C references."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from dperm.privacy.noise import Streams, laplace
from dperm.problems.losses import named
from dperm.problems.problem import Problem
from dperm.solvers.batched import BatchedSettings, dp_svrg, mean_sensitivity, share

FLAGS = ("-O3", "-march=native", "-ffast-math", "-fPIC", "-shared")


def library() -> ctypes.CDLL:
    """Compile ``reference.c`` against numpy's random library and load it."""
    import sysconfig

    root = Path(np.get_include()).parents[1]
    source = Path(__file__).with_name("reference.c")
    built = Path(tempfile.mkdtemp()) / "reference.so"
    command = ["gcc", *FLAGS, str(source), "-o", str(built), f"-I{np.get_include()}",
               f"-I{sysconfig.get_path('include')}", f"-L{root}/random/lib",
               f"-L{root}/_core/lib", "-lnpyrandom", "-lnpymath", "-lm"]  # fmt: skip
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(built))


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _is_logistic(problem: Problem) -> ctypes.c_int:
    """The references know this loss and least squares."""
    return ctypes.c_int(problem.loss is named("logistic"))


def _generator(streams: Streams) -> ctypes.c_void_p:
    return ctypes.c_void_p(streams.noise.bit_generator.ctypes.bit_generator.value)


def run_dp_cd(
    lib: ctypes.CDLL,
    problem: Problem,
    setting: BatchedSettings,
    streams: Streams,
    count: int,
) -> np.ndarray:
    """One cyclic run of DP-CD in C; the final weights (p,)."""
    M, n, p = problem.smoothness, problem.n, problem.p
    clip = np.outer(setting.clip, share(M))[0]
    scale = setting.noise_scale(mean_sensitivity(clip, n))
    order = ((1 + np.arange(count)) % p).astype(np.intp)
    step, w, v = setting.step[0] / M, np.zeros(p), problem.offset.copy()
    lib.dp_cd(
        _generator(streams), _pointer(problem.A), _pointer(v), _pointer(w),
        ctypes.c_ssize_t(n), _pointer(order), ctypes.c_ssize_t(count),
        _is_logistic(problem), _pointer(step), _pointer(clip),
        _pointer(scale), ctypes.c_double(problem.penalty.l1),
        ctypes.c_double(problem.penalty.l2),
    )  # fmt: skip
    return w


def run_dp_sgd(
    lib: ctypes.CDLL,
    problem: Problem,
    setting: BatchedSettings,
    streams: Streams,
    count: int,
) -> np.ndarray:
    """One run of DP-SGD with single records in C; the final weights (p,)."""
    records = streams.sampling.integers(0, problem.n, count).astype(np.intp)
    w = np.zeros(problem.p)
    lib.dp_sgd(
        _generator(streams), _pointer(problem.rows), _pointer(problem.offset),
        _pointer(problem.row_norms), _pointer(w), ctypes.c_ssize_t(problem.p),
        _pointer(records), ctypes.c_ssize_t(count), _is_logistic(problem),
        ctypes.c_double(setting.step[0] / problem.global_smoothness),
        ctypes.c_double(setting.clip[0]),
        ctypes.c_double(2 * setting.clip[0] * setting.noise_multiplier),
        ctypes.c_double(problem.penalty.l1), ctypes.c_double(problem.penalty.l2),
    )  # fmt: skip
    return w


def run_dp_gcd(
    lib: ctypes.CDLL,
    problem: Problem,
    setting: BatchedSettings,
    streams: Streams,
    count: int,
) -> np.ndarray:
    """One run of DP-GCD (logistic, GS-r, noise on the score) in C; weights (p,)."""
    A, n, p = problem.A, problem.n, problem.p
    M, w, v = problem.smoothness, np.zeros(p), problem.offset.copy()
    shares, scratch = share(M), np.empty(n)
    indices, starts = A.indices.astype(np.int32), A.indptr.astype(np.int32)
    scale = float(setting.noise_multiplier * mean_sensitivity(setting.clip, n)[0])
    for _ in range(count):
        noise = laplace(streams.sampling, np.ones(p))
        value = float(laplace(streams.noise, 1.0))
        lib.dp_gcd(
            _pointer(A.data), _pointer(indices), _pointer(starts), _pointer(v),
            _pointer(scratch), _pointer(w), ctypes.c_ssize_t(n), ctypes.c_ssize_t(p),
            _pointer(M), _pointer(shares), _pointer(noise), ctypes.c_double(value),
            ctypes.c_double(setting.step[0]), ctypes.c_double(setting.clip[0]),
            ctypes.c_double(scale), ctypes.c_double(scale / np.sqrt(M.sum())),
            ctypes.c_double(problem.penalty.l1),
        )  # fmt: skip
    return w


def run_dp_svrg(
    lib: ctypes.CDLL,
    problem: Problem,
    setting: BatchedSettings,
    streams: Streams,
    count: int,
) -> np.ndarray:
    """At most an epoch of DP-SVRG in C; the final weights (p,)."""
    n, p = problem.n, problem.p
    records = streams.sampling.integers(0, n, count).astype(np.intp)
    w, mu, total = np.zeros((3, p))
    scale = float(2 * setting.clip[0] * setting.noise_multiplier)
    full = dp_svrg.full_noise(problem, dp_svrg.Options()) * scale / n
    lib.dp_svrg(
        _generator(streams), _pointer(problem.rows), _pointer(problem.offset),
        _pointer(problem.row_norms), _pointer(w), _pointer(mu), _pointer(total),
        ctypes.c_ssize_t(n), ctypes.c_ssize_t(p), _pointer(records),
        ctypes.c_ssize_t(count), _is_logistic(problem),
        ctypes.c_double(setting.step[0] / problem.global_smoothness),
        ctypes.c_double(setting.clip[0]), ctypes.c_double(scale), ctypes.c_double(full),
        ctypes.c_double(problem.penalty.l1), ctypes.c_double(problem.penalty.l2),
    )  # fmt: skip
    return w


def run_poly_sfw(
    lib: ctypes.CDLL, rows: np.ndarray, labels: np.ndarray, noise: np.ndarray,
    scale: float, eta: float,
) -> np.ndarray:  # fmt: skip
    """Steps of PolySFW in C from zeros, radius and clipping bound 1; x (d,)."""
    count, d = rows.shape
    x, gradient = np.zeros(d), np.zeros(d)
    one = ctypes.c_double(1.0)
    lib.poly_sfw(
        _pointer(rows), _pointer(labels), one, _pointer(noise), ctypes.c_double(scale),
        ctypes.c_double(eta), one, _pointer(x), _pointer(gradient), ctypes.c_ssize_t(0),
        ctypes.c_ssize_t(count), ctypes.c_ssize_t(d),
    )  # fmt: skip
    return x
