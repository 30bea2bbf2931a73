"""Readings of what Lou and Cheung 2020 leave open, and runs under them.

Equation 4 sums over the records where all else takes their mean, and the formulas of
the noise do not say whether their epsilon is of the run or of an iteration.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dperm.core.privacy.ledger import Ledger
from dperm.core.solvers.options import one_of
from dperm.papers.dpbcfw.instances import Instance
from dperm.papers.dpbcfw.outcomes import BUDGETS, OBJECTIVES
from dperm.papers.dpbcfw.runs import Setting, made_of, noise_of, options_of
from dperm.solvers.frank_wolfe import Noise
from dperm.solvers.frank_wolfe.dp_bcfw_noise import epsilons_apart, releases
from dperm.solvers.frank_wolfe.selections import selections_epsilon


@dataclass(frozen=True)
class Reading:
    """One reading.

    Attributes
    ----------
    objective : {"mean", "sum"}
        What f is over the records.
    per : {"total", "iteration"}
        Whether epsilon and delta are spent on the run or on each iteration.
    """

    objective: str = "mean"
    per: str = "total"

    def __post_init__(self) -> None:
        one_of("objective", self.objective, OBJECTIVES)
        one_of("per", self.per, BUDGETS)


def noise_under(at: Instance, setting: Setting, reading: Reading) -> Noise:
    """The printed noise under a reading, and what all T iterations of it cost.

    ``sum``: scores are n times larger and the noise stays, so that on the scores of the
    mean it is an n-th. ``iteration``: the formulas for T = 1. The true epsilon of
    DP-BCFW is that of its indices and of its features added up, each at delta / 2.
    """
    T = setting.iterations
    count = 1 if reading.per == "iteration" else T
    found = noise_of(at, replace(setting, iterations=count))
    if setting.noise == "none" or setting.method in ("fw", "bcfw"):
        return found
    n, options = at.problem.n, options_of(at, setting)
    index = found.index_scale / (n if reading.objective == "sum" else 1)
    sizes = [(index, T)]
    if setting.method == "dp_bcfw":
        selections, features = releases(at.problem.p, T, options)
        sizes = [(index, selections), (found.sketch_scale, features)]
    events: Any = found.ledger.events
    pairs = zip(events, sizes, strict=True)
    made = [replace(event, scale=scale, count=k) for event, (scale, k) in pairs]
    ledger = Ledger(tuple(made), given=found.ledger.given)
    whole = replace(found, ledger=ledger, index_scale=index)
    return replace(whole, true_epsilon=_true_epsilon(whole, 1.0 / n))


def _true_epsilon(made: Noise, delta: float) -> float:
    if len(made.ledger.events) == 2:
        return sum(epsilons_apart(made, delta / 2))
    (selection,) = made.ledger.events
    pure = 2.0 / selection.noise_multiplier
    return selections_epsilon(selection.count, pure, delta)


def final(
    at: Instance, setting: Setting, reading: Reading, seed: int
) -> dict[str, Any]:
    """The end of one run: its loss f(x), ||x||_1 over eta, its noise and true epsilon.

    Losses are means over the records under either reading of the objective.
    """
    noise = noise_under(at, setting, reading)
    with made_of(at, setting, noise, seed) as made:
        made.advance(setting.iterations)
        x = made.weights[0]
    loss = at.problem.mean_loss(at.problem.A @ x + at.problem.offset)
    eta = setting.share * at.radius
    return {
        **vars(setting), "iteration": setting.iterations, "loss": loss,
        "start": at.start, "truth": at.truth, "eta": eta,
        "final_norm": float(abs(x).sum()) / eta, "true_epsilon": noise.true_epsilon,
        "index_scale": noise.index_scale, "sketch_scale": noise.sketch_scale,
    }  # fmt: skip
