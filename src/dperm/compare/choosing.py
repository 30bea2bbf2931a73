"""The order in which ``solver="auto"`` tries methods, by the loss alone.

It is that of the arena (``results/arena/advice.csv``) and of fits without tuning under
private scales: noisy moments led among the methods for least squares, and objective
perturbation among those for classification, at every n epsilon / p from 30 on.
"""

from __future__ import annotations

from collections.abc import Iterator

from dperm.compare import methods
from dperm.compare.methods import Method
from dperm.core.erm.problem import Problem

AUTO = "auto"


def order(quadratic: bool) -> tuple[str, ...]:
    """Names of methods for squares, or for other losses, the first to try in front.

    The last can do every problem.
    """
    if quadratic:
        return "moments", "hessian_mixing", "dp_gram", "dp_gd"
    return "objective_perturbation", "dp_gram", "dp_minibatch", "dp_gd"


def able(problem: Problem) -> Iterator[Method]:
    """Methods that can solve a problem, in their order; no record is read."""
    for name in order(problem.loss.quadratic):
        method = methods.method(name)
        if not method.on(problem).obstacle():
            yield method
