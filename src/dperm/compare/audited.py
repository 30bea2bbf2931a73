"""The estimators as subjects of the audit: from arrays to coefficients.

A neighbour is fitted from scratch by the same estimator, whose scales are declared: all
that it makes of the arrays, the mapping of classes, the intercept, scales and clips, is
part of what is audited. The audit finds this module by its name, as it lies above it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np

from dperm.audit.fits import rounds
from dperm.audit.sequences import as_vertex
from dperm.audit.subjects import DELTA, LOUD, Array, Records, Subject
from dperm.compare import methods
from dperm.compare.estimators import DPClassifier, DPLinear, DPRegressor
from dperm.core import solvers
from dperm.core.calibrations import STRICT
from dperm.core.experiment.locate import ConfigError
from dperm.core.privacy.calibration import calibrate
from dperm.core.privacy.ledger import SampledGaussian
from dperm.core.privacy.mechanisms import Streams

N, P = 8, 4  # records and features, few and loud, as many as DP-BCFW has nodes
EPSILON = 1.0
SHORT = {"passes": 1.0, "steps": 2}  # of the default setting, what takes long
NUMBERS = 64  # that a release of a Frank-Wolfe method may have beside its index


class EstimatorSubject(Subject):
    """An estimator with a solver, its scales declared.

    Parameters
    ----------
    model : DPClassifier or DPRegressor
        Classes -1 and 1, if they are any.
    """

    calibration, delta, epsilon, cost = STRICT, DELTA, EPSILON, 20
    reason = "few runs of a fit, on the records that move its solver's own subject most"

    def __init__(self, model: DPLinear):
        intercept = "" if model.fit_intercept else ", no intercept"
        self.model, self.method = model, methods.method(model.solver)
        self.name = f"{type(model).__name__}({model.solver}){intercept}"
        self.real = isinstance(model, DPRegressor)
        y = np.ones(N)
        if not self.real:  # the record that is replaced: a class that may go missing
            y[0] = -1.0
        self.base = Records(np.linspace(0.5, 1.5, N * P).reshape(N, P), y)
        near = np.where(np.arange(P) == P - 1, -1.0, 1.0)  # nearly opposite records
        self.tried = ((LOUD * near, -LOUD * near[::-1]),)
        self.on, self.setting = self._prepared(self.base)
        self.family = solvers.family(self.on.module)
        goal = (EPSILON, DELTA, STRICT)
        found = calibrate(partial(self.on.ledger, self.setting), *goal)
        self.noise_multiplier, self.ledger = found.noise_multiplier, found.ledger
        if self.family == "fits":
            self.draw_events = rounds(self.ledger)
        self.hidden = any(isinstance(e, SampledGaussian) for e in self.ledger.events)

    def _prepared(self, data: Records) -> Any:
        return self.model.prepared(data.X, data.y, self.method)

    def start(self, data: Records, own: Streams) -> AbstractContextManager[Any]:
        """One fit, made from scratch."""
        on, setting = self._prepared(data)
        return on.start(setting, self.noise_multiplier, own)

    def releases(self, run: Any) -> Iterator[Array]:
        """What the solver releases."""
        for release in run.releases():
            if self.family == "frank_wolfe":
                yield as_vertex(release, self.on.problem.p, NUMBERS)
            else:
                yield np.ravel(release)

    def published(self, run: Any) -> Array:
        """The coefficients, and the intercept."""
        found: Array = run.weights[0]
        return found

    def symbol(self, view: Array) -> tuple[int, ...]:
        """The coordinate taken, or the vertex."""
        p = self.on.problem.p
        if self.family == "frank_wolfe":
            return tuple(np.sign(view[:p]).astype(int).tolist())
        return tuple(np.flatnonzero(view[-p:]).tolist())


def subjects(solver: str) -> list[Subject]:
    """The classifier with an intercept and the regression without, if a solver can."""
    if solver not in methods.known():
        return []
    try:
        method = methods.method(solver)
    except ConfigError:  # it leaks and does not run; its own subjects say so
        return []
    options = solvers.load(method.section.algorithm).Options
    known = {*method.default, *(field.name for field in fields(options))}
    family = solvers.family(solvers.load(method.section.algorithm))
    if family == "frank_wolfe" and "entry_bound" not in known:  # it is not private
        return []
    short = SHORT | ({"steps": 1} if family == "frank_wolfe" else {})
    setting = {key: value for key, value in short.items() if key in known}
    given = {"epsilon": EPSILON, "delta": DELTA, "setting": setting}
    models: list[DPLinear] = [
        DPClassifier(solver, classes=(-1.0, 1.0), **given),  # type: ignore[arg-type]
        DPRegressor(solver, fit_intercept=False, **given),  # type: ignore[arg-type]
    ]
    found: list[Subject] = []
    for model in models:
        try:
            found.append(EstimatorSubject(model))
        except ValueError as error:
            if "cannot do this" not in str(error):
                raise
    return found
