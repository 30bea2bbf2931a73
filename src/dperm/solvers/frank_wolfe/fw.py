"""FW: the Frank-Wolfe method on the l1 ball, without privacy (Jaggi 2013).

Algorithm 1 of Lou and Cheung 2020 under elementary sampling: all coordinates, one
vertex, gamma_t = 2 / (t + 2).
"""

from __future__ import annotations

from dataclasses import dataclass

from dperm.core.erm.problem import Problem
from dperm.core.privacy.mechanisms import Streams
from dperm.core.solvers.options import positive
from dperm.solvers.distributed.columns import Columns
from dperm.solvers.frank_wolfe import Noise, bcfw
from dperm.solvers.frank_wolfe.bcfw import ledger, noise

__all__ = ["Options", "Run", "ledger", "noise", "steps"]


@dataclass(frozen=True)
class Options:
    """The radius of the l1 ball."""

    radius: float = 1.0

    def __post_init__(self) -> None:
        positive("radius", self.radius)


def steps(problem: Problem, passes: float, options: Options) -> int:
    """Number of steps; each pass is one step, which reads all coordinates."""
    return max(1, round(passes))


class Run(bcfw.Run):
    """A run of FW; see ``bcfw.Run``."""

    def __init__(
        self,
        problem: Problem,
        streams: Streams,
        options: Options,
        noise: Noise,
        columns: Columns | None = None,
    ):
        chosen = bcfw.Options(radius=options.radius)
        super().__init__(problem, streams, chosen, noise, columns)
