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

from dperm import config as configuration
from dperm import data, schema, solvers
from dperm.pipeline.seeds import seed as seed_of
from dperm.privacy.mechanisms import Streams, streams
from dperm.solvers.streams import noisy_sfw, phased_sgd, poly_sfw, sco_baselines
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
Targets = tuple[list[float], list[str]]
CALIBRATIONS = ("paper", "strict")


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
        found = _measure(solver, n, d, norms[solver], epsilons, own, ("strict",))
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
        _measure(solver, 300, d, [p], [epsilon], seed, ("strict",))
    _calibrated(n, epsilons)
    rows = []
    for epsilon in epsilons:
        start = time.perf_counter()
        (row,) = _measure(solver, n, d, [p], [epsilon], seed, ("strict",))
        rows.append(row | {"seconds": time.perf_counter() - start})
    return rows


def _calibrated(n: int, epsilons: Sequence[float]) -> None:
    """Find multipliers beforehand; they are kept, and are no part of a run's time."""
    for epsilon in epsilons:
        target = sco_baselines.Target(epsilon, n**-2.0, "strict")
        for count in (1, sco_baselines.iterations(n, "mirror_descent")):
            sco_baselines.gaussian_multiplier(target, count)
        phased_sgd.noise_multiplier(epsilon, n**-2.0, "strict")


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
    found = _weights("noisy_sfw", source, "linear", 1.0, n, norms, [epsilon], seed,
                     CALIBRATIONS)  # fmt: skip
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
    source = lambda: Rows(X[kept], y[kept])  # noqa: E731
    found = _weights(point["solver"], source, "logistic", radius, len(kept),
                     norms[point["solver"]], epsilons, seed, CALIBRATIONS)  # fmt: skip
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
    calibrations: Sequence[str] = CALIBRATIONS,
) -> list[Row]:
    """Excess risk on the bounded design, a row for every norm and target."""
    source = Signs(d, seed)
    make = (lambda: Signs(d, seed)) if _one_by_one(solver) else source
    found = _weights(solver, make, "least_squares", 1.0, n, norms, epsilons, seed,
                     calibrations)  # fmt: skip
    return [
        row
        | {
            "excess": float(source.excess(w, setup)[0]),
            "initial": float(source.excess(np.zeros(d), setup)[0]),
        }
        for row, w, setup in found
    ]


def _one_by_one(solver: str) -> bool:
    return _algorithm(solver)[0] is sco_baselines


def _algorithm(solver: str) -> tuple[Any, Any]:
    """Module and options of a solver's YAML."""
    if solver not in _KNOWN:
        spec = configuration.compose([f"solver={solver}"]).solver
        module = solvers.load(spec.algorithm)
        _KNOWN[solver] = module, solvers.make_options(module, spec.options)
    return _KNOWN[solver]


_KNOWN: dict[str, tuple[Any, Any]] = {}


def _targets(epsilons: Sequence[float], calibrations: Sequence[str]) -> Targets:
    """Every private target under every calibration, the non-private one once."""
    pairs = [
        (float(epsilon), kind)
        for epsilon in epsilons
        for kind in (("none",) if math.isinf(epsilon) else calibrations)
    ]
    return [epsilon for epsilon, _ in pairs], [kind for _, kind in pairs]


def _weights(
    solver: str,
    source: Source | Callable[[], Source],
    loss: str,
    radius: float,
    n: int,
    norms: Sequence[float],
    epsilons: Sequence[float],
    seed: int,
    calibrations: Sequence[str],
) -> list[tuple[Row, np.ndarray, Setup]]:
    """What a solver releases for every norm and target, with the columns that say so.

    A source that is a function is called for every run that must read on its own.
    """
    module, options = _algorithm(solver)
    first = source() if callable(source) else source
    setups = [Setup(loss, float(p), first.d, radius) for p in norms]
    targets = _targets(epsilons, calibrations)
    noise = [_noise(seed, solver, setup) for setup in setups]
    solve = _ONE_BY_ONE if module is sco_baselines else _TOGETHER[module]
    found = solve(setups, targets, source, first, n, noise, options)
    return [
        (
            {"method": solver, "p": setup.p, "epsilon": epsilon,
             "calibration": kind},
            w,
            setup,
        )
        for setup, W in zip(setups, found, strict=True)
        for w, epsilon, kind in zip(W, *targets, strict=True)
    ]  # fmt: skip


def _noise(seed: int, solver: str, setup: Setup) -> Streams:
    """Noise of one setup; its own, so that no norm's result depends on another's."""
    return streams(seed_of(seed, "noise", solver, f"{setup.p:g}", 0, 0))


def _trees(setups, targets, source, first, n, noise, options):
    lanes = [
        noisy_sfw.Lanes(setup, targets[0], targets[1], n**-2.0) for setup in setups
    ]
    return noisy_sfw.Run(lanes, first, n, noise, options).solve()


def _phases(setups, targets, source, first, n, noise, options):
    lanes = [
        phased_sgd.Lanes(setup, targets[0], targets[1], n**-2.0) for setup in setups
    ]
    return phased_sgd.Run(lanes, first, n, noise, options).solve()


def _vertices(setups, targets, source, first, n, noise, options):
    (setup,), (own,) = setups, noise
    lanes = poly_sfw.Lanes(setup, targets[0], targets[1], n**-2.0)
    return [poly_sfw.Run(lanes, first, n, own, options).solve()]


def _baselines(setups, targets, source, first, n, noise, options):
    found = []
    for setup in setups:
        released = []
        for epsilon, kind in zip(*targets, strict=True):
            target = sco_baselines.Target(epsilon, n**-2.0, kind)
            own = streams(int(noise[0].smoothness.integers(2**62)))
            run = sco_baselines.Run(setup, target, source(), n, own, options)
            released.append(run.solve())
        found.append(np.array(released))
    return found


_TOGETHER: dict[Any, Callable[..., list[np.ndarray]]] = {
    noisy_sfw: _trees,
    poly_sfw: _vertices,
    phased_sgd: _phases,
}
_ONE_BY_ONE = _baselines
