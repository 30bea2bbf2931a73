"""A method of ``dperm try`` in the units that ``dperm.fit`` would give it.

Scales that nobody declared are released within epsilon, once a run, and solvers that
take steps of one size for all weights see a column of ones for the intercept, whose
column holds a large constant so that its weight is not penalised.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np

from dperm.compare.contestants import (
    Contestant,
    Job,
    Measure,
    Method,
    Releasing,
    Setting,
)
from dperm.core.erm.problem import Problem
from dperm.core.privacy.ledger import Ledger
from dperm.core.privacy.mechanisms import Streams
from dperm.solvers import private_scales
from dperm.solvers.scales import declared


class Rescaled(Contestant):
    """A method on a problem, of which it sees other units.

    Parameters
    ----------
    problem : Problem
        Whose objective is measured.
    constant : float
        What the last column holds, if that is the intercept's; else 0.
    features, label : bool
        Whether their scales are released. What is not is the problem's.
    """

    def __init__(
        self,
        method: Method,
        problem: Problem,
        constant: float,
        features: bool,
        label: bool,
    ):
        self.method, self.problem, self.constant = method, problem, constant
        self.features, self.label = features, label
        self.units = np.ones(problem.p)
        if constant and not method.scales_columns:
            self.units[-1] = constant
        self.first = Ledger()
        if features or label:
            k = len(self._sized()) * features + label
            at = (problem.epsilon, problem.delta)
            self.first = private_scales.ledger(k, problem.n, *at)
        self.inner = method.on(self._seen(problem.A, problem.offset, self.units))
        super().__init__(self.inner.module, self.inner.options, problem)

    def _sized(self) -> range:
        return range(self.problem.p - bool(self.constant))

    def _seen(self, A: Any, offset: np.ndarray, over: np.ndarray) -> Problem:
        """The problem that the method sees: columns divided, 1 for unknown scales."""
        known = self.problem.known
        S = np.sqrt(known.smoothness / known.loss.curvature) / self.units
        S[self._sized()] = np.where(self.features, 1.0, S[self._sized()])
        label = 1.0 if self.label else float(np.abs(known.offset).max()) or 1.0
        made = replace(
            self.problem, A=private_scales.divided(A, over), offset=offset, public=None
        )
        is_read = known is self.problem and not (self.features or self.label)
        return made if is_read else declared(made, S, label)

    def obstacle(self) -> str:
        """The method's."""
        return self.inner.obstacle()

    def ledger(self, setting: Setting, noise_multiplier: float) -> Ledger:
        """Scales first, where they are released."""
        return self.first + self.inner.ledger(setting, noise_multiplier)

    def work(self, setting: Setting) -> float:
        """The method's."""
        return self.inner.work(setting)

    def start(
        self, setting: Setting, noise_multiplier: float, own: Streams
    ) -> AbstractContextManager[Releasing]:
        """The method's run, scales apart."""
        return self.inner.start(setting, noise_multiplier, own)

    def aiming(self, epsilon: float) -> Contestant:
        """The same with another target."""
        problem = replace(self.problem, epsilon=epsilon)
        return Rescaled(self.method, problem, self.constant, self.features, self.label)

    def public_information(self, ledger: Ledger) -> tuple[str, ...]:
        """The method's, in whose units all is declared."""
        return self.inner.public_information(ledger)

    def run(self, jobs: Sequence[Job], measure: Measure) -> dict[str, np.ndarray]:
        """Runs, each with scales of its own where they are released."""
        if not self.first.events:
            return self.inner.run(jobs, self._back(1 / self.units, measure))
        found: list[dict[str, np.ndarray]] = []
        for job in jobs:
            problem, back = self._released(job.seed)
            on = self.method.on(problem)
            found.append(on.run([job], self._back(back, measure)))
        return {key: np.concatenate([one[key] for one in found]) for key in found[0]}

    def _back(self, units: np.ndarray, measure: Measure) -> Measure:
        """What is measured of weights (L, p) in the problem's units."""

        def measured(W: np.ndarray) -> dict[str, np.ndarray]:
            W = W * units
            return {**measure(W), "objective": self.problem.objective(W)}

        return measured

    def _released(self, seed: int) -> tuple[Problem, np.ndarray]:
        """The problem over scales that are released now, and what weights are times."""
        A, offset, some = self.problem.A, self.problem.offset, self._sized()
        columns = [A[:, some]] * self.features + [offset[:, None]] * self.label
        noisy = private_scales.noisy_counts(
            columns, self.first, private_scales.seeded(seed)
        )
        found = private_scales.scales(noisy, self.first, self.problem.n)
        size, over = float(found[-1]) if self.label else 1.0, self.units.copy()
        if self.features:
            over[some] = found[: len(some)]
        return self._seen(A, offset / size, over), size / over
