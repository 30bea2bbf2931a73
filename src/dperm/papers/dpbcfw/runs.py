"""Runs of all methods on one instance, and the rows they leave."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from dperm.papers.dpbcfw.instances import Instance
from dperm.privacy.calibration import calibrate
from dperm.privacy.ledger import Ledger
from dperm.privacy.mechanisms import streams
from dperm.privacy.noisy_max import NoisyMax
from dperm.solvers.frank_wolfe import bcfw, dp_bcfw, dp_fw
from dperm.solvers.frank_wolfe.bcfw import step_size
from dperm.solvers.frank_wolfe.iterate import Iterate

Rows = list[dict[str, Any]]
METHODS = ("fw", "bcfw", "dp_fw", "dp_bcfw")
# What the noise is made from:
# stated  printed scale, printed G, added to the gradient as in line 7
# scaled  the same scale, added to eta times the gradient, for which it is made
# valid   printed formula with a G that bounds a record's share
# strict  the least noise a sound accountant allows
NOISES = ("none", "stated", "scaled", "valid", "strict")


@dataclass(frozen=True)
class Setting:
    """One run: method, its size, its noise.

    Attributes
    ----------
    method : {"fw", "bcfw", "dp_fw", "dp_bcfw"}
    nodes : int
        K.
    update : {"published", "feasible"}
    noise : {"none", "stated", "scaled", "valid", "strict"}
    epsilon : float
        Target.
    share : float
        eta over that of the instance.
    split : float
        Share of the budget for the indices.
    sketch : int
        m; 0: no sketch.
    iterations : int
        T.
    engine : {"local", "dask"}
    """

    method: str = "dp_bcfw"
    nodes: int = 1
    update: str = "published"
    noise: str = "none"
    epsilon: float = math.inf
    share: float = 1.0
    split: float = 0.5
    sketch: int = 0
    iterations: int = 100
    engine: str = "local"

    def __post_init__(self) -> None:
        if self.method not in METHODS or self.noise not in NOISES:
            raise ValueError(f"unknown method or noise: {self.method}, {self.noise}")


def run(at: Instance, setting: Setting, seed: int, every: int = 1) -> Rows:
    """Rows of one run, at every so many iterations and at the last.

    Each has the loss f(x) on the data as they are, its start f(0), the largest ||x||_1
    so far and at this iteration over eta, the bytes sent so far, the noise scales and
    the true epsilon.
    """
    chosen, vertex, extra = _CHOICES[setting.method](at, setting, seed)
    path = Iterate(at.problem, at.columns)
    eta, largest, rows = setting.share * at.radius, 0.0, []
    for t in range(setting.iterations + 1):
        if t:
            signed = chosen[t - 1]
            moves = np.where(signed > 0, -vertex, vertex)
            path.combine(step_size(t - 1, 1.0), np.abs(signed) - 1, moves)
        reached = path.l1_norm / eta
        largest = max(largest, reached)
        if t % every == 0 or t == setting.iterations:
            rows.append(
                {
                    "iteration": t, "loss": path.objective, "start": at.start,
                    "largest_norm": largest, "final_norm": reached, "eta": eta,
                    **{key: value(t) if callable(value) else value
                       for key, value in extra.items()},
                }
            )  # fmt: skip
    return [{**vars(setting), **row} for row in rows]


Chosen = tuple[list[np.ndarray], float, dict[str, Any]]


def _public(at: Instance, setting: Setting, seed: int) -> Chosen:
    """FW, and Algorithm 2 without noise and sketch."""
    kind = "one" if setting.method == "fw" else setting.update
    options = bcfw.Options(
        "distributed", at.problem.p, setting.nodes, "ball", setting.share * at.radius,
        kind,
    )  # fmt: skip
    made = bcfw.Run(at.problem, streams(seed), options, at.columns)
    made.advance(setting.iterations)
    return made.chosen, made.vertex, {"true_epsilon": math.inf}


def _dp_fw(at: Instance, setting: Setting, seed: int) -> Chosen:
    options = dp_fw.Options(setting.share * at.radius, at.entry_bound, at.label_bound)
    scale, true = _dp_fw_scale(at, setting, options)
    made = dp_fw.Run(at.problem, streams(seed), options, scale, at.clipped_columns)
    made.advance(setting.iterations)
    return made.chosen, options.radius, {"index_scale": scale, "true_epsilon": true}


def _dp_fw_scale(
    at: Instance, setting: Setting, options: dp_fw.Options
) -> tuple[float, float]:
    count, delta = setting.iterations, 1.0 / at.problem.n
    if setting.noise == "none":
        return 0.0, math.inf
    if setting.noise == "strict":
        multiplier = _selection_multiplier(count, setting.epsilon, delta)
        return multiplier * dp_fw.sensitivity(at.problem, options), setting.epsilon
    G = dp_fw.valid_lipschitz(at.problem, options)
    if setting.noise != "valid":
        G = at.published_lipschitz
    scale = dp_fw.published_scale(at.problem, count, options, setting.epsilon, delta, G)
    (event,) = dp_fw.events(at.problem, count, scale, options)
    return scale, dp_bcfw.selections_epsilon(count, event.pure, delta)


@cache
def _selection_multiplier(count: int, epsilon: float, delta: float) -> float:
    if epsilon / count > dp_bcfw.LOUD:
        return 2 * count / epsilon

    def of(multiplier: float) -> Ledger:
        return Ledger((NoisyMax(1.0, multiplier, count, "", ""),))

    with np.errstate(over="ignore"):  # of tilted masses that end as infinity
        return calibrate(of, epsilon, delta, "strict").noise_multiplier


def _dp_bcfw(at: Instance, setting: Setting, seed: int) -> Chosen:
    options = options_of(at, setting)
    noise = noise_of(at, setting, options)
    made = dp_bcfw.Run(at.problem, streams(seed), options, noise)
    try:
        made.advance(setting.iterations)
    finally:
        made.close()
    up, down = (np.cumsum(np.sum(sent, axis=1)) for sent in (made.up, made.down))
    extra = {
        "index_scale": noise.index_scale,
        "sketch_scale": noise.sketch_scale,
        "true_epsilon": noise.true_epsilon,
        "index_epsilon": noise.index_epsilon,
        "sketch_epsilon": noise.sketch_epsilon,
        "bytes_up": lambda t: int(up[t - 1]) if t else 0,
        "bytes_down": lambda t: int(down[t - 1]) if t else 0,
        "features": len(made.features),
    }
    return made.chosen, options.vertex, extra


def options_of(at: Instance, setting: Setting) -> dp_bcfw.Options:
    """Algorithm 2's options for a setting."""
    return dp_bcfw.Options(
        nodes=setting.nodes,
        radius=setting.share * at.radius,
        update=setting.update,
        sketch=setting.sketch or None,
        scores="gradient" if setting.noise == "stated" else "radius",
        share=setting.split,
        entry_bound=at.entry_bound,
        label_bound=at.label_bound,
        engine=setting.engine,
    )


def noise_of(at: Instance, setting: Setting, options: dp_bcfw.Options) -> dp_bcfw.Noise:
    """Algorithm 2's noise for a setting; delta is 1/n."""
    count, delta = setting.iterations, 1.0 / at.problem.n
    target = (count, options, setting.epsilon, delta)
    if setting.noise == "none":
        return dp_bcfw.silent()
    if setting.noise == "strict":
        return dp_bcfw.strict_noise(at.problem, *target)
    G = at.published_lipschitz
    if setting.noise == "valid":
        G = dp_bcfw.valid_lipschitz(at.problem, options)
    return dp_bcfw.published_noise(at.problem, *target, G)


_CHOICES = {"fw": _public, "bcfw": _public, "dp_fw": _dp_fw, "dp_bcfw": _dp_bcfw}
