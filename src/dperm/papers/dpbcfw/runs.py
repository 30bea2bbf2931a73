"""Runs of all methods on one instance, and the rows they leave."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from dperm.accountants.intervals import lower_epsilon
from dperm.core.privacy.mechanisms import streams
from dperm.papers.dpbcfw.instances import Instance
from dperm.solvers.distributed.starting import ENGINES
from dperm.solvers.frank_wolfe import (
    CALIBRATIONS,
    FrankWolfe,
    Noise,
    bcfw,
    dp_bcfw,
    dp_fw,
    fw,
)
from dperm.solvers.frank_wolfe.bcfw import step_size
from dperm.solvers.frank_wolfe.dp_bcfw_noise import epsilons_apart
from dperm.solvers.frank_wolfe.iterate import Iterate
from dperm.solvers.frank_wolfe.selections import HOPELESS

Rows = list[dict[str, Any]]
METHODS: dict[str, ModuleType] = {
    "fw": fw, "bcfw": bcfw, "dp_fw": dp_fw, "dp_bcfw": dp_bcfw,
}  # fmt: skip


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
        Calibration, as ``frank_wolfe.Solver.noise`` has them.
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
        known = {"method": METHODS, "noise": CALIBRATIONS, "engine": ENGINES}
        for key, values in known.items():
            if getattr(self, key) not in values:
                raise ValueError(
                    f"settings.{key}: expected one of {', '.join(values)}, "
                    f"found {getattr(self, key)!r}"
                )


def run(at: Instance, setting: Setting, seed: int, every: int = 1) -> Rows:
    """Rows of one run, at every so many iterations and at the last.

    Each has the loss f(x) on the data as they are, its start f(0), the largest ||x||_1
    so far and at this iteration over eta, the bytes sent so far, the noise scales and
    the true epsilon.
    """
    noise = noise_of(at, setting)
    with made_of(at, setting, noise, seed) as made:
        made.advance(setting.iterations)
    known = {"true_epsilon": noise.true_epsilon, **_proved(noise, 1.0 / at.problem.n)}
    if setting.method == "dp_fw":
        known = {"index_scale": noise.index_scale, **known}
    if setting.method == "dp_bcfw":
        known |= _costs(noise, 1.0 / at.problem.n)
    path = Iterate(at.problem, at.columns)
    eta, largest, rows = setting.share * at.radius, 0.0, []
    for t in range(setting.iterations + 1):
        if t:
            signed = made.chosen[t - 1]
            moves = np.where(signed > 0, -made.vertex, made.vertex)
            path.combine(step_size(t - 1, 1.0), np.abs(signed) - 1, moves)
        reached = path.l1_norm / eta
        largest = max(largest, reached)
        if t % every == 0 or t == setting.iterations:
            rows.append(
                {
                    "iteration": t, "loss": path.objective, "start": at.start,
                    "largest_norm": largest, "final_norm": reached, "eta": eta,
                    **known, **_sent(made, t),
                }
            )  # fmt: skip
    return [{**vars(setting), **row} for row in rows]


def made_of(at: Instance, setting: Setting, noise: Noise, seed: int) -> FrankWolfe:
    """The run of a setting, before its first step."""
    columns = at.clipped_columns if setting.method == "dp_fw" else at.columns
    given = (at.problem, streams(seed), options_of(at, setting), noise, columns)
    if setting.method == "dp_bcfw":
        return dp_bcfw.Run(*given, start=ENGINES[setting.engine])
    made: FrankWolfe = METHODS[setting.method].Run(*given)
    return made


def options_of(at: Instance, setting: Setting) -> Any:
    """The method's options for a setting."""
    radius, nodes, update = setting.share * at.radius, setting.nodes, setting.update
    if setting.method == "fw":
        return fw.Options(radius)
    if setting.method == "bcfw":  # Algorithm 2 without noise and sketch
        p = at.problem.p
        return bcfw.Options("distributed", p, nodes, "ball", radius, update)
    if setting.method == "dp_fw":
        return dp_fw.Options(radius, at.entry_bound, at.label_bound)
    return dp_bcfw.Options(
        nodes, radius, update, setting.sketch or None, setting.split,
        at.entry_bound, at.label_bound,
    )  # fmt: skip


def noise_of(at: Instance, setting: Setting) -> Noise:
    """The method's noise for a setting; delta is 1/n."""
    options, module = options_of(at, setting), METHODS[setting.method]
    target = (setting.epsilon, 1.0 / at.problem.n, setting.noise)
    found: Noise = module.noise(at.problem, setting.iterations, options, *target)
    return found


def _proved(noise: Noise, delta: float) -> dict[str, Any]:
    """Lower end of the true epsilon, 0 where it is beyond use; what it is given."""
    low = noise.true_epsilon
    if math.isfinite(low):
        events = noise.ledger.events
        low = lower_epsilon(events, delta) if low < HOPELESS else 0.0
    return {"epsilon_low": low, "given": ", ".join(noise.ledger.given)}


def _costs(noise: Noise, delta: float) -> dict[str, float]:
    """Scales and true epsilons of both kinds of release, each alone at delta / 2."""
    index, sketch = epsilons_apart(noise, delta / 2)
    return {
        "index_scale": noise.index_scale,
        "sketch_scale": noise.sketch_scale,
        "true_epsilon": noise.true_epsilon,
        "index_epsilon": index,
        "sketch_epsilon": sketch,
    }


def _sent(made: FrankWolfe, t: int) -> dict[str, int]:
    """Bytes sent until iteration t, and features sent in the whole run."""
    if not isinstance(made, dp_bcfw.Run):
        return {}
    return {
        "bytes_up": int(np.sum(made.up[:t])),
        "bytes_down": int(np.sum(made.down[:t])),
        "features": len(made.features),
    }
