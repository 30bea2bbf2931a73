r"""A published lead under the protocol of its paper, and under one true epsilon.

A statement "X consistently outperforms Y" depends on the noise that each author's
accountant allows, on whether labels are centred and on whether a grid is free. Here the
same methods run on the same data under each of these readings, from fresh seeds. There
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
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import entr

from dperm.compare.contest import Prices, Row, Seeds, contest_rows
from dperm.compare.contestants import Contestant, Fitting, method
from dperm.core.erm.optimum import solve
from dperm.core.erm.problem import Problem
from dperm.core.experiment import plan, schema
from dperm.core.privacy.calibration import smallest
from dperm.core.privacy.ledger import Ledger
from dperm.core.privacy.strict import RENYI_ORDERS, gaussian_epsilon
from dperm.data.fetching import load_fetched
from dperm.papers.arena import ranking
from dperm.pipeline import inputs
from dperm.solvers.fits import ada_ssp, hessian_mixing
from dperm.solvers.fits.scaled import Scaled

READINGS = {  # published noise, centred labels, tuning
    "published noise, labels as they are": (True, False, "default"),
    "published noise": (True, True, "default"),
    "one epsilon": (False, True, "default"),
    "one epsilon, a grid for free": (False, True, "grid"),
}
AGAIN, FLOOR = "again", ranking.FLOOR_METHOD


class Published(Prices):
    """Prices of noise as published, which ledgers contain already."""

    def one(self, method: Contestant, setting: Any) -> Any:
        """The problem's epsilon, with the noise multiplier 1."""
        return 1.0, method.problem.epsilon, ("the authors' accountant",)


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
    work: float,
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
    if centred is None:
        return [{"status": "unavailable", "reason": inputs.unavailable_reason(at)}]
    y = load_fetched(at.problem.dataset.name, config.data)[1]
    mean = float(y.mean()) if at.problem.preparation.centre else 0.0
    rows: list[Row] = []
    for reading, (published, is_centred, tuning) in READINGS.items():
        moved = 0.0 if is_centred else mean
        problem = replace(centred, offset=centred.offset - moved, public=None)
        best = solve(problem).value
        zero = float(problem.objective(np.zeros((1, problem.p)))[0])
        floor = (min(zero, constant(y, problem)) - best) / best
        for k, name in enumerate((*methods, methods[1])):
            on = published_on(name) if published else method(name).on
            given = (problem, best, method(name).grid, method(name).default)
            made = contest_rows(
                on,
                *given,
                Seeds.of(seed + k, fresh, 0),
                epsilons,
                (tuning,),
                work=work,
                prices=Published() if published else Prices(),
            )
            known = {"reading": reading, "method": name if k < 2 else AGAIN}
            rows += [{**known, "floor": floor, **row} for row in made]
    return rows


def published_on(name: str) -> Callable[[Problem], Contestant]:
    """A function that puts a method on a problem, with its noise as published."""
    module, noise = NOISE[name]
    return lambda at: Fitting(as_published(module, noise), module.Options(), at)


def constant(y: np.ndarray, problem: Problem) -> float:
    """Loss of the best model without features, which predicts the labels' mean."""
    if problem.loss.quadratic:
        return float(np.var(y)) / 2
    share = float(np.mean(y > 0))
    return float(entr(share) + entr(1 - share))


def compared(rows: pd.DataFrame, one: str, two: str) -> list[dict[str, Any]]:
    """Shares of cells, with intervals over data sets.

    ``ahead`` counts cells with a smaller mean error than the second method, and ties by
    half; ``lead`` counts those in which it is also below w = 0 and the labels' mean.
    """
    found = []
    cell = ["data", "problem", "epsilon"]
    for reading, some in rows.groupby("reading", sort=False):
        table = some.pivot_table(
            index=cell, columns="method", values="relative_error", sort=False
        )
        floors = some.groupby(cell)["floor"].first().reindex(table.index)
        table[FLOOR] = floors
        for name in (one, AGAIN, FLOOR):
            both = table[[two, FLOOR]].assign(first=table[name]).dropna()
            first, second = both["first"], both[two]
            ahead = (first < second) + 0.5 * (first == second)
            counts = {"wins": int((first < second).sum()), "cells": len(both)}
            row = {"reading": reading, "method": name, "against": two, **counts}
            below = (first < second) & (first < both[FLOOR])
            for key, won in (("ahead", ahead), ("lead", below.astype(float))):
                low, high = ranking.resampled(won)
                row |= {key: won.mean(), f"{key}_low": low, f"{key}_high": high}
            found.append(row)
    return found
