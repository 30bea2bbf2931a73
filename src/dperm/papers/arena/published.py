r"""Noise of two methods as their authors publish it.

It holds for adding or removing a record. AdaSSP (Wang 2018, Algorithm
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
from types import SimpleNamespace
from typing import Any

import numpy as np

from dperm.compare.methods import Contestant, Fitting
from dperm.core.erm.problem import Problem
from dperm.core.privacy.calibration import smallest
from dperm.core.privacy.ledger import Ledger
from dperm.core.privacy.strict import RENYI_ORDERS, gaussian_epsilon
from dperm.solvers.fits import ada_ssp, hessian_mixing
from dperm.solvers.fits.scaled import Scaled


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


def published(name: str, problem: Problem) -> Contestant:
    """The method on a problem, with its published noise whatever multiplier is said."""
    module, noise = NOISE[name]

    def ledger(at: Scaled, noise_multiplier: float, options: Any) -> Ledger:
        made = module.ledger(at, 1.0, options)
        pairs = zip(made.events, noise(at, options), strict=True)
        return replace(made, events=tuple(replace(e, scale=s) for e, s in pairs))

    made: Any = SimpleNamespace(**{**vars(module), "ledger": ledger})
    return Fitting(made, module.Options(), problem)
