"""Sweeps of Bassily, Guzmán and Nandi 2021 (DP-SCO).

Excess population risk is exact (closed form) and given with its initial value, that of
w = 0. A private target appears under both calibrations; epsilon = infinity once, as
calibration ``none``. Delta is 1 / n^2.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dperm import data
from dperm.core import solvers
from dperm.core.calibrations import OURS, PAPER, STRICT
from dperm.core.experiment import config as configuration
from dperm.core.experiment import schema
from dperm.core.experiment.plan import seed_of
from dperm.core.privacy.mechanisms import Streams, streams
from dperm.papers.dpsco import bending
from dperm.papers.dpsco.estimating import errors, known
from dperm.papers.dpsco.running import Runs
from dperm.solvers.streams import (
    Part,
    Target,
    noisy_sfw,
    phased_sgd,
    poly_sfw,
    sco_dp_fw,
    sco_dp_sgd,
    sco_mirror_descent,
    solve,
)
from dperm.solvers.streams.setup import Setup
from dperm.solvers.streams.sources import (
    Fingerprints,
    Rows,
    Signs,
    Source,
    logistic_risk,
)

Row = dict[str, Any]
Point = dict[str, Any]
METHODS = {  # imported, not loaded by name: their code is behind these rows
    "noisy_sfw": noisy_sfw,
    "poly_sfw": poly_sfw,
    "phased_sgd": phased_sgd,
    "sco_dp_sgd": sco_dp_sgd,
    "sco_dp_fw": sco_dp_fw,
    "sco_mirror_descent": sco_mirror_descent,
}


def rates(
    config: schema.Config,
    point: Point,
    seed: int,
    norms: dict[str, list[float]],
    epsilons: Sequence[float],
) -> list[Row]:
    """Excess risk at one (solver, n, d): all norms and targets on one draw of records.

    Parameters
    ----------
    point : dict
        solver (the name of its YAML), n, d.
    norms : dict
        p of each setup, by solver.
    epsilons : sequence of float
        Targets, infinity among them for the method without noise.
    """
    solver, n, d = point["solver"], int(point["n"]), int(point["d"])
    return _measure(solver, n, d, norms[solver], epsilons, seed)


def between(
    config: schema.Config,
    point: Point,
    seed: int,
    norms: dict[str, list[float]],
    epsilons: Sequence[float],
) -> list[Row]:
    """As ``rates``, for norms between 2 and infinity, with a compiled projection.

    Parameters
    ----------
    point : dict
        solver, n, d.
    norms : dict
        By solver.
    """
    solver, n, d = point["solver"], int(point["n"]), int(point["d"])
    run = _runs(solver, epsilons, n, seed)
    return run.on("least_squares", Signs(d, seed), norms[solver], n)


def quantiles(
    config: schema.Config,
    point: Point,
    seed: int,
    runs: int,
    n: int,
    d: int,
    norms: dict[str, list[float]],
    epsilons: Sequence[float],
) -> list[Row]:
    """Many independent runs of one solver, for the tail of the excess risk.

    Parameters
    ----------
    point : dict
        solver.
    runs : int
        Runs of one replicate.
    norms : dict
        By solver.
    """
    solver = point["solver"]
    rows = []
    for run in range(runs):
        own = seed_of(seed, "run", solver, "dpsco", 0, run)
        found = _measure(solver, n, d, norms[solver], epsilons, own, (STRICT,))
        rows += [row | {"run": run} for row in found]
    return rows


def clock(
    config: schema.Config,
    point: Point,
    seed: int,
    d: int,
    norms: dict[str, float],
    epsilons: Sequence[float],
) -> list[Row]:
    """Seconds of one run for one target, records drawn within it, and its excess risk.

    Parameters
    ----------
    point : dict
        solver, n.
    norms : dict
        The p that each solver is run at.
    """
    solver, n, p = point["solver"], int(point["n"]), norms[point["solver"]]
    for epsilon in epsilons:  # compile, calibrate
        _measure(solver, 300, d, [p], [epsilon], seed, (STRICT,))
    _calibrate(solver, n, d, p, epsilons)
    rows = []
    for epsilon in epsilons:
        start = time.perf_counter()
        (row,) = _measure(solver, n, d, [p], [epsilon], seed, (STRICT,))
        rows.append(row | {"seconds": time.perf_counter() - start})
    return rows


def _calibrate(
    solver: str, n: int, d: int, p: float, epsilons: Sequence[float]
) -> None:
    """Find noise beforehand; it is kept, and is no part of a run's time."""
    module, options = _algorithm(solver)
    setup = Setup("least_squares", p, d)
    for target in _targets(epsilons, (STRICT,), n):
        module.noise(setup, n, target, options)


def fingerprints(
    config: schema.Config,
    point: Point,
    seed: int,
    norms: Sequence[float],
    epsilon: float,
    constant: float = 1.0,
) -> list[Row]:
    """Noisy SFW on the lower bound's instance; its means depend on n, d and epsilon.

    Parameters
    ----------
    point : dict
        n, d.
    constant : float
        c of Lemma A.5, which is not explicit: a shape, not a bound.
    """
    n, d = int(point["n"]), int(point["d"])
    unit = math.sqrt(d * math.log(n**2)) / (epsilon * n)
    source = Fingerprints(d, seed, min(1.0, constant * unit))
    found = _weights("noisy_sfw", lambda: source, "linear", 1.0, n, norms, [epsilon],
                     seed, OURS)  # fmt: skip
    return [
        row
        | {
            "excess": float(source.excess(w, setup)[0]),
            "initial": source.mean_size,
            "bound": (setup.p - 1) * unit,
            "statistical": 1 / math.sqrt(n),
        }
        for row, w, setup in found
    ]


def hard(
    config: schema.Config,
    point: Point,
    seed: int,
    norms: dict[str, list[float]],
    epsilons: Sequence[float],
) -> list[Row]:
    """Excess risk on linear losses of biased coins, at every bias of the class.

    Parameters
    ----------
    point : dict
        solver, n, d.
    norms : dict
        By solver.
    """
    solver, n, d = point["solver"], int(point["n"]), int(point["d"])
    run = _runs(solver, epsilons, n, seed)
    return run.worst(norms[solver], n, d)


def unlearnable(
    config: schema.Config,
    point: Point,
    seed: int,
    norms: Sequence[float],
    epsilons: Sequence[float],
    constants: Sequence[float],
) -> list[Row]:
    """NoisySFW on coins of c times the bias that Theorem 5.4 hides, and without noise.

    Parameters
    ----------
    point : dict
        n, d.
    constants : sequence of float
        c; Lemma A.5 has one that is not explicit.
    """
    n, d, rows = int(point["n"]), int(point["d"]), []
    for epsilon in epsilons:
        run = _runs("noisy_sfw", [epsilon, math.inf], n, seed)
        rows += run.hidden(epsilon, norms, n, d, constants)
    return rows


def estimator(
    config: schema.Config,
    point: Point,
    seed: int,
    norms: dict[str, list[float]],
    epsilons: Sequence[float],
    d: int,
    bias: float,
) -> list[Row]:
    """Error of the gradient estimates over a run, beside the lemmas' bounds.

    Parameters
    ----------
    point : dict
        solver (noisy_sfw, poly_sfw), n.
    norms : dict
        By solver.
    bias : float
        Of the linear loss's coins; their mean is what an estimate of 0 misses.
    """
    solver, n = point["solver"], int(point["n"])
    module, options = _algorithm(solver)
    targets = _targets(epsilons, (PAPER,), n)
    rows = []
    for p in norms[solver]:
        for name, loss, source in known(solver, d, seed, bias):
            setup = Setup(loss, float(p), d)
            part = Part(setup, targets, _noise(seed, solver, setup))
            run = module.Run([part], source, n, options)
            rows += [
                {"method": solver, "instance": name, "p": setup.p, "n": n,
                 "epsilon": target.epsilon} | found
                for target, found in zip(targets, errors(run, targets), strict=True)
            ]  # fmt: skip
    return rows


def nonsmooth(
    config: schema.Config,
    point: Point,
    seed: int,
    losses: Sequence[str],
    norms: Sequence[float],
    epsilons: Sequence[float],
) -> list[Row]:
    """Excess risk of losses that bend, smoothed in one dimension, at every bias.

    Parameters
    ----------
    point : dict
        n, d.
    losses : sequence of str
        hinge, absolute.
    norms : sequence of float
        2 or more.
    """
    n, d = int(point["n"]), int(point["d"])
    targets = _targets(epsilons, OURS, n)
    return [
        row
        for loss in losses
        for p in norms
        for row in bending.rows(loss, float(p), n, d, targets, seed)
    ]


def nonsmooth_clock(
    config: schema.Config, point: Point, seed: int, d: int, epsilon: float
) -> list[Row]:
    """Seconds of one such run over the box, records drawn within it.

    Parameters
    ----------
    point : dict
        loss, n.
    """
    n, found = int(point["n"]), []
    for size in (300, n):  # compile first
        target = _targets([epsilon], (STRICT,), size)
        start = time.perf_counter()
        bending.released(point["loss"], math.inf, size, d, target, seed, bias=0.5)
        found.append(time.perf_counter() - start)
    return [{"p": math.inf, "d": d, "epsilon": epsilon, "seconds": found[-1]}]


def real(
    config: schema.Config,
    point: Point,
    seed: int,
    epsilons: Sequence[float],
    norms: dict[str, list[float]],
    radius: float,
    test: float = 0.2,
) -> list[Row]:
    """Logistic regression on real records, judged on those kept for testing.

    Parameters
    ----------
    point : dict
        problem, solver.
    norms : dict
        By solver.
    radius : float
        Of the ball; records have unit l_q norm.
    test : float
        Share of the records for testing; another split for every replicate.
    """
    prepared = data.load_prepared(point["problem"], config.data)
    if not prepared.available:
        return [{"status": "unavailable", "reason": prepared.meta["reason"]}]
    X, y = _dense(prepared.X), prepared.y
    order = np.random.default_rng(seed).permutation(len(y))
    held = order[: round(test * len(y))]
    kept = order[len(held) :]
    found = _weights(point["solver"], lambda: Rows(X[kept], y[kept]), "logistic",
                     radius, len(kept), norms[point["solver"]], epsilons, seed,
                     OURS)  # fmt: skip
    return [
        row | _judged(X[held], y[held], w, setup) | {"train": len(kept), "reason": ""}
        for row, w, setup in found
    ]


def _dense(X: Any) -> np.ndarray:
    """Rows side by side; bytes where all entries are small whole numbers."""
    values = X.data if hasattr(X, "toarray") else X
    small = bool((values == np.round(values)).all() and np.abs(values).max() < 128)
    typed = X.astype(np.int8 if small else np.float64)
    return np.ascontiguousarray(typed.toarray() if hasattr(X, "toarray") else typed)


def _judged(X: np.ndarray, y: np.ndarray, w: np.ndarray, setup: Setup) -> Row:
    """Mean loss on test records, less than log 2 if anything was learnt, and errors."""
    wrong = np.sign(X.astype(float) @ w) != y
    balanced = np.mean([wrong[y == label].mean() for label in (-1, 1)])
    mean = float(logistic_risk(X, y, w, setup)[0])
    return {
        "excess": mean,
        "initial": math.log(2),
        "error": float(wrong.mean()),
        "balanced_error": float(balanced),
    }


# --- running solvers ------------------------------------------------------------------


def _measure(
    solver: str,
    n: int,
    d: int,
    norms: Sequence[float],
    epsilons: Sequence[float],
    seed: int,
    calibrations: Sequence[str] = OURS,
) -> list[Row]:
    """Excess risk on the bounded design, a row for every norm and target."""
    source = Signs(d, seed)  # knows the risk; runs read another
    found = _weights(solver, lambda: Signs(d, seed), "least_squares", 1.0, n, norms,
                     epsilons, seed, calibrations)  # fmt: skip
    return [
        row
        | {
            "excess": float(source.excess(w, setup)[0]),
            "initial": float(source.excess(np.zeros(d), setup)[0]),
        }
        for row, w, setup in found
    ]


def _runs(solver: str, epsilons: Sequence[float], n: int, seed: int) -> Runs:
    """A solver for every target under both calibrations."""
    return Runs(solver, *_algorithm(solver), _targets(epsilons, OURS, n), seed)


def _algorithm(solver: str) -> tuple[Any, Any]:
    """Module and options of a solver's YAML."""
    if solver not in _KNOWN:
        spec = configuration.read("solver", solver)
        module = METHODS[spec.algorithm]
        _KNOWN[solver] = module, solvers.make_options(module, spec.options)
    return _KNOWN[solver]


_KNOWN: dict[str, tuple[Any, Any]] = {}


def _targets(
    epsilons: Sequence[float], calibrations: Sequence[str], n: int
) -> list[Target]:
    """Every private target under every calibration, the non-private one once."""
    return [
        Target(float(epsilon), n**-2.0, kind)
        for epsilon in epsilons
        for kind in (("none",) if math.isinf(epsilon) else calibrations)
    ]


def _weights(
    solver: str,
    fresh: Callable[[], Source],
    loss: str,
    radius: float,
    n: int,
    norms: Sequence[float],
    epsilons: Sequence[float],
    seed: int,
    calibrations: Sequence[str],
) -> list[tuple[Row, np.ndarray, Setup]]:
    """What a solver releases for every norm and target, with the columns that say so.

    ``fresh`` makes the source anew.
    """
    module, options = _algorithm(solver)
    targets = _targets(epsilons, calibrations, n)
    d = fresh().d
    setups = [Setup(loss, float(p), d, radius) for p in norms]
    parts = [Part(setup, targets, _noise(seed, solver, setup)) for setup in setups]
    found = solve(module, parts, fresh, n, options)
    return [
        (
            {"method": solver, "p": setup.p, "epsilon": target.epsilon,
             "calibration": target.calibration},
            w,
            setup,
        )
        for setup, W in zip(setups, found, strict=True)
        for w, target in zip(W, targets, strict=True)
    ]  # fmt: skip


def _noise(seed: int, solver: str, setup: Setup) -> Streams:
    """Noise of one setup; its own, so that no norm's result depends on another's."""
    return streams(seed_of(seed, "noise", solver, f"{setup.p:g}", 0, 0))
