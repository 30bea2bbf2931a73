"""Subjects that fit a model in a few releases on all records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np

from dperm.audit.lanes import Shape
from dperm.audit.shifts import is_bent
from dperm.audit.subjects import DELTA, LOUD, Array, Records, Subject
from dperm.privacy.calibration import calibrate
from dperm.privacy.ledger import Ledger, SampledGaussian
from dperm.privacy.mechanisms import Streams
from dperm.solvers.fits import records
from dperm.solvers.fits.scaled import Scaled
from dperm.solvers.fits.secret import in_rounds

ALMOST = 0.9
_WORDS = {"least_squares": "least squares"}


class FitSubject(Subject):
    """A solver of the family ``fits`` at one setting, strict noise.

    A neighbour is a problem of its own, with the public scales of the base. A minimiser
    is looked at as the linear term that would lead to it on the base, which is known:
    nothing is lost by that, and it follows the noise more evenly.

    Parameters
    ----------
    name : str
    module : module of the solver
    options : its Options
    shape : Shape
    epsilon : float
        Target.
    kind : class, optional
        In place of ``module.Run`` (broken mechanisms).
    """

    calibration, delta = "strict", DELTA

    def __init__(
        self,
        name: str,
        module: ModuleType,
        options: Any,
        shape: Shape,
        epsilon: float,
        kind: Any = None,
    ):
        self.name = name + said(shape)
        self.module, self.options, self.shape = module, options, shape
        self.kind, self.epsilon = kind or module.Run, epsilon
        self.base, self.real = shape.records(), shape.real
        self.problem = shape.problem(self.base, epsilon, self.base)
        self.at = Scaled(self.problem)
        # nearly opposite: far out between them neither slope is small
        one, two = np.ones((2, shape.p))
        one[0] = two[-1] = -ALMOST
        size = LOUD * self.at.S
        self.tried = tuple((s * size * one, s * size * two) for s in (1.0, -1.0))

        def ledger(noise: float) -> Ledger:
            made: Ledger = module.ledger(self.at, noise, options)
            return made

        found = calibrate(ledger, epsilon, DELTA, "strict")
        self.noise_multiplier, self.ledger = found.noise_multiplier, found.ledger
        self.drawn = tuple(in_rounds(self.ledger))
        self.hidden = any(isinstance(e, SampledGaussian) for e in self.ledger.events)

    @staticmethod
    def scaled(shape: Shape, epsilon: float = 1.0) -> Scaled:
        """The base of a shape."""
        base = shape.records()
        return Scaled(shape.problem(base, epsilon, base))

    def start(self, data: Records, own: Streams) -> AbstractContextManager[Any]:
        """One run, made from scratch."""
        problem = self.shape.problem(data, self.epsilon, self.base)
        at = Scaled(replace(problem, public=self.problem))
        return nullcontext(self.kind(at, self.ledger, [own], self.options))

    def told(self, run: Any) -> Iterator[Array]:
        """Its releases."""
        tilted = is_bent(self)
        for release in run.releases():
            yield np.ravel(self.tilt(release) if tilted else release)

    def tilt(self, u: Array) -> Array:
        """The linear terms of which u (p, L) are the base's minimisers."""
        R, _, ridge = self.module.constants(self.at, self.options)
        own = records.Records(self.problem, self.at.S, self.at.label)
        V = own.clipped(R)
        slope: Array = V.T @ own.slopes(V @ u + own.offset)
        return -(slope + (self.at.n * self.at.l2 + ridge) * u)

    def published(self, run: Any) -> Array:
        """The weights."""
        found: Array = run.weights[0]
        return found

    def symbol(self, view: Array) -> tuple[int, ...]:
        """It selects nothing."""
        return ()


def said(shape: Shape) -> str:
    """What a shape differs in from the plain one."""
    loss = shape.loss if shape.loss != "logistic" else ""
    kept = shape.kept if shape.kept != "dense" else ""
    penalty = "penalty" if shape.penalty.l2 else ""
    words = (_WORDS.get(loss, loss), kept, penalty)
    return "".join(f", {word}" for word in words if word)
