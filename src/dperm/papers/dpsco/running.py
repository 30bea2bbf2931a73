"""Runs of one solver and some targets on any source of a closed risk."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dperm.core.experiment.plan import seed_of
from dperm.core.privacy.mechanisms import streams
from dperm.papers.dpsco.instances import KINDS, biases
from dperm.solvers.streams import Part, Target
from dperm.solvers.streams.coins import Coins, hard
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

    def worst(self, norms: Sequence[float], n: int, d: int) -> list[dict[str, Any]]:
        """The same on the solver's hard instance, at every bias of its class."""
        kind, name = KINDS[self.solver]
        return [
            row | {"instance": name, "bias": bias}
            for bias in biases(kind, n, d)
            for row in self.on("linear", hard(kind, d, self.seed, bias), norms, n)
        ]

    def hidden(
        self,
        epsilon: float,
        norms: Sequence[float],
        n: int,
        d: int,
        constants: Sequence[float],
    ) -> list[dict[str, Any]]:
        """The same at c times the bias that epsilon hides, of Lemma A.5.

        ``epsilon`` stands in every row, those of no noise too.
        """
        unit = math.sqrt(d * math.log(n**2)) / (epsilon * n)
        return [
            row
            | {"epsilon": epsilon, "constant": constant, "bias": bias,
               "bound": (row["p"] - 1) * unit}
            for constant in constants
            for bias in (min(1.0, constant * unit),)
            for row in self.on("linear", hard("all", d, self.seed, bias), norms, n)
        ]  # fmt: skip

    def _seed(self, p: float) -> int:
        return seed_of(self.seed, "noise", self.solver, f"{p:g}", 0, 0)
