"""Runs of one solver and some targets on any source of a closed risk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dperm.pipeline.seeds import seed as seed_of
from dperm.privacy.mechanisms import streams
from dperm.solvers.streams import Part, Target
from dperm.solvers.streams.coins import Coins
from dperm.solvers.streams.projecting import CompiledSetup
from dperm.solvers.streams.sources import Signs


@dataclass(frozen=True)
class Runs:
    """A solver, its module and options, the targets, and the seed of the noise."""

    solver: str
    module: Any
    options: Any
    targets: Sequence[Target]
    seed: int

    def on(
        self, loss: str, source: Signs | Coins, norms: Sequence[float], n: int
    ) -> list[dict[str, Any]]:
        """Excess and initial risk for every norm and target on one draw of records."""
        setups = [CompiledSetup(loss, float(p), source.d) for p in norms]
        parts = [
            Part(setup, self.targets, streams(self._seed(setup.p))) for setup in setups
        ]
        found = self.module.Run(parts, source, n, self.options).solve()
        start = np.zeros(source.d)
        return [
            {"method": self.solver, "p": setup.p, "epsilon": target.epsilon,
             "calibration": target.calibration,
             "excess": float(source.excess(w, setup)[0]),
             "initial": float(source.excess(start, setup)[0])}
            for setup, W in zip(setups, found, strict=True)
            for w, target in zip(W, self.targets, strict=True)
        ]  # fmt: skip

    def _seed(self, p: float) -> int:
        return seed_of(self.seed, "noise", self.solver, f"{p:g}", 0, 0)
