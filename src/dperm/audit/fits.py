"""Subjects that fit a model in a few releases on all records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np

from dperm.audit.lanes import Shape
from dperm.audit.planar import cost, planar, pushed, worst
from dperm.audit.replay import is_bent
from dperm.audit.subjects import DELTA, LOUD, Array, Records, Subject
from dperm.core.calibrations import STRICT
from dperm.core.erm.penalties import Penalty
from dperm.core.privacy.calibration import calibrate
from dperm.core.privacy.ledger import Event, Ledger, SampledGaussian
from dperm.core.privacy.mechanisms import Streams, streams
from dperm.solvers import records
from dperm.solvers.fits.scaled import Scaled
from dperm.solvers.scales import declared

ALMOST = 0.9
ALIKE = 1e-5  # relative, between a linear term and the noise that it is made of
WIDER = 2.0  # times its bound on a record, another run's
FAR = 8  # by how much fewer runs are made of thousands of records
_WORDS = {"least_squares": "least squares"}


class FitSubject(Subject):
    """A solver of the family ``fits`` at one setting, strict noise.

    A neighbour is a problem of its own, with the public scales of the base. A minimiser
    is looked at as the linear term that would lead to it on the base, which is known:
    nothing is lost by that, and it follows the noise more evenly.

    Parameters
    ----------
    module : module of the solver
    options : its Options
    epsilon : float
        Target.
    kind : class, optional
        In place of ``module.Run`` (broken mechanisms).
    company : int
        Records of the subject whose others drive the minimiser far out, where a record
        moves it most, in two features and under declared scales; 0: those of the shape.
    """

    calibration, delta = STRICT, DELTA

    def __init__(
        self,
        name: str,
        module: ModuleType,
        options: Any,
        shape: Shape,
        epsilon: float,
        kind: Any = None,
        company: int = 0,
    ):
        shape = replace(shape, n=company, p=2) if company else shape
        self.name = name + (f", {company} records" if company else shape_text(shape))
        self.module, self.options, self.shape = module, options, shape
        self.kind, self.epsilon = kind or module.Run, epsilon
        self.base, self.real = shape.records(), shape.real
        self.problem = shape.problem(self.base, epsilon, self.base)
        if company:
            self.problem = declared(self.problem)
        self.at = Scaled(self.problem)
        # nearly opposite: far out between them neither slope is small
        one, two = np.ones((2, shape.p))
        one[0] = two[-1] = -ALMOST
        size = LOUD * self.at.S
        self.tried = tuple((s * size * one, s * size * two) for s in (1.0, -1.0))

        def ledger(noise: float) -> Ledger:
            return module.ledger(self.at, noise, options)

        found = calibrate(ledger, epsilon, DELTA, STRICT)
        self.noise_multiplier, self.ledger = found.noise_multiplier, found.ledger
        if company:
            self._drive(company)
        self.draw_events = rounds(self.ledger)
        self.hidden = any(isinstance(e, SampledGaussian) for e in self.ledger.events)

    def _drive(self, n: int) -> None:
        """The records, and the pair, of which a minimiser moves most."""
        R, Lambda, *_ = self.module.constants(self.at, self.options)
        self.cost = FAR
        if is_bent(self):
            scale = self.ledger.events[0].scale
            found = worst(n, R, Lambda, scale, DELTA)
            X, other = found.X, found.replacement
        else:
            X, other = pushed(n, R, Lambda)
        self.base = Records(X, np.ones(n))
        self.tried = ((X[0], other),)

    @staticmethod
    def scaled(shape: Shape, epsilon: float = 1.0) -> Scaled:
        """The base of a shape."""
        base = shape.records()
        return Scaled(shape.problem(base, epsilon, base))

    def start(self, data: Records, generators: Streams) -> AbstractContextManager[Any]:
        """One run, made from scratch."""
        problem = self.shape.problem(data, self.epsilon, self.base)
        at = Scaled(replace(problem, public=self.problem.known))
        if hasattr(self.options, "radius"):
            # another run, of a larger bound on a record, asks for its first release:
            # what it leaves behind may change nothing
            wide = replace(self.options, radius=WIDER * self.options.radius)
            ledger = self.module.ledger(at, 1.0, wide)
            run = self.kind(at, ledger, [streams(0)], wide)
            with np.errstate(all="ignore"):
                next(run.steps())
        return nullcontext(self.kind(at, self.ledger, [generators], self.options))

    def releases(self, run: Any) -> Iterator[Array]:
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

    def law(self, first: Records, second: Records, seed: int) -> float | None:
        """Of exact minima in two features, if runs on both are minima of that law.

        What hides the digits of approximate minima is left out: it hides nothing else.
        """
        is_plain = self.shape.penalty == Penalty() and self.shape.kept == "dense"
        if not (is_bent(self) and self.shape.p == 2 and is_plain):
            return None
        R, Lambda, _ = self.module.constants(self.at, self.options)
        # vectors y x / S of all records, the replaced one first, and its replacement
        one, two = (data.y[:, None] * data.X / self.at.S for data in (first, second))
        at = int(np.flatnonzero((one != two).any(axis=1))[0])
        X, other = np.vstack([one[[at]], np.delete(one, at, axis=0)]), two[at]
        scale = 1.0
        for sign, data in ((1, first), (-1, second)):
            tilt, *digits = self.run(data, seed).draws
            script = [tilt, *(draw.moved(-draw.unit) for draw in digits)]
            u = self.run(data, seed, script).weights[None] * self.at.S
            pair, unit = planar(X, other, R, Lambda, scale), tilt.unit.ravel()
            b = (pair if sign > 0 else pair.turned).tilts(u)[0]
            size = float(b @ unit / (unit @ unit))
            if np.abs(b - size * unit).max() > ALIKE * np.abs(b).max() or (
                sign < 0 and abs(size - scale) > ALIKE * scale
            ):
                return None
            scale = size
        return cost(planar(X, other, R, Lambda, scale), DELTA).epsilon

    def published(self, run: Any) -> Array:
        """The weights."""
        return run.weights[0]

    def symbol(self, view: Array) -> tuple[int, ...]:
        """It selects nothing."""
        return ()


def rounds(ledger: Ledger) -> tuple[Event, ...]:
    """What each draw is for: all events once, in order, then those that are left."""
    counts, events = [event.count for event in ledger.events], list[Event]()
    while any(counts):
        events += [e for e, left in zip(ledger.events, counts, strict=True) if left]
        counts = [max(left - 1, 0) for left in counts]
    return tuple(events)


def shape_text(shape: Shape) -> str:
    """What a shape differs in from the plain one."""
    loss = shape.loss if shape.loss != "logistic" else ""
    kept = shape.kept if shape.kept != "dense" else ""
    penalty = "penalty" if shape.penalty.l2 else ""
    words = (_WORDS.get(loss, loss), kept, penalty)
    return "".join(f", {word}" for word in words if word)
