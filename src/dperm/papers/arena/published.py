r"""A published lead under the protocol of its paper, and under one true epsilon.

A statement "X consistently outperforms Y" depends on the noise that each author's
accountant allows, and on whether labels are centred. Here the same methods run with
their defaults on the same data under each of these readings, from fresh seeds. There
are two controls: the second method again with other seeds, and the better of w = 0 and
the labels' mean, which learns nothing. A win counts as a *lead* if the error is below
that of the latter as well.

*Noise as published* holds for adding or removing a record. AdaSSP (Wang 2018, Algorithm
2) makes three (epsilon / 3, delta / 3) releases, of scale sqrt(log(6 / delta)) /
(epsilon / 3) times R^2, R^2 and R Y. Iterative Hessian mixing (Lev et al. 2026) spends
epsilon / 2 on gradients, of sensitivity C, and epsilon / 2 on the smallest eigenvalue
and T sketches, whose Rényi curve is T k / (2 (a - 1)) (a log(1 - 1 / g) - log(1 - a /
g)) at order a for g = Gamma / R^2. Here each half has delta / 2, and Gaussian releases
compose exactly, which is at least as favourable.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from dperm.compare.methods import Contestant, Fitting, method
from dperm.compare.race import Row
from dperm.core.calibrations import STRICT
from dperm.core.erm.optimum import solve
from dperm.core.erm.problem import Problem
from dperm.core.experiment import plan, schema
from dperm.core.lanes.trials import seeds_of
from dperm.core.privacy.calibration import calibrate, smallest
from dperm.core.privacy.ledger import Ledger
from dperm.core.privacy.strict import RENYI_ORDERS, gaussian_epsilon
from dperm.data.fetching import load_fetched
from dperm.pipeline import inputs
from dperm.solvers.fits import ada_ssp, hessian_mixing
from dperm.solvers.fits.scaled import Scaled

READINGS = {  # published noise, centred labels
    "published noise, labels as they are": (True, False),
    "published noise": (True, True),
    "one epsilon": (False, True),
}
AGAIN, FLOOR = "again", "w = 0 or the mean"


def ada_ssp_noise(at: Scaled, options: Any) -> tuple[float, ...]:
    """Scales of AdaSSP's releases."""
    R, unit = options.radius * at.radius, 3 * math.sqrt(math.log(6 / at.delta))
    return tuple(unit / at.epsilon * one for one in (R**2, R**2, R * options.label))


def mixing_noise(at: Scaled, options: Any) -> tuple[float, ...]:
    """Scales of iterative Hessian mixing's releases."""
    R, half = options.radius * at.radius, at.delta / 2
    _, sketch, gradient = hessian_mixing.ledger(at, 1.0, options).events
    rows, T = sketch.rows * options.steps, options.steps  # type: ignore[attr-defined]

    def of_gaussians(noise: float) -> float:
        return gaussian_epsilon(math.sqrt(T) / noise, half)

    def of_sketches(noise: float) -> float:
        g, a = max(noise, 1.0 + 1e-9), RENYI_ORDERS
        with np.errstate(invalid="ignore", divide="ignore"):
            logs = a * math.log1p(-1 / g) - np.log1p(-a / g)
            curve = rows / (2 * (a - 1)) * logs
            curve += a * options.eigenvalue * rows / (4 * g**2)  # eigenvalue
            spent = np.log1p(-1 / a) - (math.log(half) + np.log(a)) / (a - 1)
        return float(np.nanmin(np.where(a < g, curve + spent, np.inf)))

    g = smallest(of_sketches, at.epsilon / 2, 1e-4)
    z = smallest(of_gaussians, at.epsilon / 2, 1e-4)
    lowest = R**2 * g / math.sqrt(options.eigenvalue * rows / 2)
    return lowest, R * math.sqrt(g), gradient.sensitivity / 2 * z


NOISE: dict[str, tuple[Any, Callable[..., tuple[float, ...]]]] = {
    "ada_ssp": (ada_ssp, ada_ssp_noise),
    "hessian_mixing": (hessian_mixing, mixing_noise),
}


def as_published(module: ModuleType, noise: Callable[..., tuple[float, ...]]) -> Any:
    """The method with these noise scales, whatever multiplier is requested."""

    def ledger(at: Scaled, noise_multiplier: float, options: Any) -> Ledger:
        made = module.ledger(at, 1.0, options)
        pairs = zip(made.events, noise(at, options), strict=True)
        return replace(made, events=tuple(replace(e, scale=s) for e, s in pairs))

    return SimpleNamespace(**{**vars(module), "ledger": ledger})


def lead(
    config: schema.Config,
    point: dict[str, Any],
    seed: int,
    epsilons: list[float],
    methods: list[str],
    fresh: int,
) -> list[Row]:
    """Runs of two methods, and of the second again, under every reading.

    Parameters
    ----------
    point : dict
        problem.
    methods : list of str
        The method published as ahead, and the other.
    """
    at = plan.at_problem(config, point["problem"])
    centred = inputs.load_problem(at)
    y = load_fetched(at.problem.dataset.name, config.data)[1]
    rows: list[Row] = []
    for reading, (published, is_centred) in READINGS.items():
        moved = 0.0 if is_centred else float(y.mean())
        problem = replace(centred, offset=centred.offset - moved, public=None)
        best = solve(problem).value
        zero = float(problem.objective(np.zeros(problem.p))[0])
        floor = (min(zero, float(np.var(y)) / 2) - best) / best
        for epsilon in epsilons:
            for k, name in enumerate((*methods, methods[1])):
                on, noise = _priced(name, replace(problem, epsilon=epsilon), published)
                W = [on.weights({}, noise, one) for one in seeds_of(seed + k, fresh)]
                who = name if k < 2 else AGAIN
                known: Row = {"reading": reading, "method": who}
                known |= {"floor": floor, "epsilon": epsilon, "status": "ok"}
                errors = (problem.objective(np.array(W)) - best) / best
                rows += [{**known, "relative_error": float(one)} for one in errors]
    return rows


def _priced(name: str, problem: Problem, published: bool) -> tuple[Contestant, float]:
    """A method on a problem, and the noise multiplier of its default setting."""
    if published:
        return published_on(name)(problem), 1.0
    on = method(name).on(problem)
    target = (problem.epsilon, problem.delta, STRICT)
    return on, calibrate(partial(on.ledger, {}), *target).noise_multiplier


def published_on(name: str) -> Callable[[Problem], Contestant]:
    """A function that puts a method on a problem, with its noise as published."""
    module, noise = NOISE[name]
    return lambda at: Fitting(as_published(module, noise), module.Options(), at)
