"""The order in which ``solver="auto"`` tries methods, by n, p, loss and epsilon alone.

``advice.csv`` is the arena's table ``auto``. For each loss and range of n epsilon / p
it lists the methods in the order of their error without tuning under private scales.
"""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Iterator
from pathlib import Path

from dperm.compare import contestants
from dperm.compare.contestants import Method
from dperm.core.erm.problem import Problem

ADVICE = Path(__file__).with_name("advice.csv")
AUTO = "auto"


@functools.cache
def advice() -> list[dict[str, str]]:
    """Rows of the table, with ``loss``, ``from``, ``to`` and ``methods``."""
    with open(ADVICE, encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def order(n: int, p: int, quadratic: bool, epsilon: float) -> list[str]:
    """Names of methods, the first to try in front."""
    loss = "least squares" if quadratic else "logistic"
    budget = min(n * epsilon / p, math.nextafter(math.inf, 0))
    return next(
        row["methods"].split()
        for row in advice()
        if row["loss"] == loss and float(row["from"]) <= budget < float(row["to"])
    )


def able(problem: Problem) -> Iterator[Method]:
    """Methods that can solve a problem, in the order of the advice.

    Of the records only their number is read, and whether they are sparse.
    """
    at = (problem.n, problem.p, problem.loss.quadratic, problem.epsilon)
    for name in order(*at):
        method = contestants.method(name)
        if not method.on(problem).obstacle():
            yield method
