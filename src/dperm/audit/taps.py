"""Taps on noise: they note every draw, and hand out other numbers of a script.

:class:`Tap` listens to :func:`dperm.core.privacy.mechanisms.heard`, through which all
noise of ours passes in units of its scale, without the solver's help.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from dperm.core.privacy import mechanisms

Array = np.ndarray

LAWS: dict[str, Any] = {  # of noise of unit scale and location zero
    "gaussian": stats.norm,
    "normal": stats.norm,  # the name that numpy has for it
    "laplace": stats.laplace,
    "logistic": stats.logistic,
    "exponential": stats.expon,
    "gumbel": stats.gumbel_r,
}


@dataclass(frozen=True)
class Draw:
    """Noise from one call.

    Attributes
    ----------
    kind : str
        A key of ``LAWS``, or generalised_gaussian.
    unit : ndarray
        The numbers, in units of the noise's scale.
    order : float
        Norm of a generalised Gaussian; 2 is the Gaussian.
    scale : ndarray
        As it was given, where the tap sees it.
    """

    kind: str
    unit: Array
    order: float = 2.0
    scale: Any = 1.0

    def moved(self, shift: Array) -> Draw:
        """The draw with a shift added; the shift is flat."""
        unit = self.unit + np.reshape(shift, self.unit.shape)
        return Draw(self.kind, unit, self.order)

    def log_density(self) -> float:
        """Logarithm of the density, up to a constant of its kind and size."""
        size, z = np.abs(self.unit).ravel(), self.unit.ravel()
        if self.kind == "laplace":
            return -float(size.sum())
        if self.kind == "gumbel":
            return -float((z + np.exp(-z)).sum())
        if self.kind == "logistic":
            return -float((z + 2 * np.logaddexp(0, -z)).sum())
        if self.kind == "exponential":
            return -float(z.sum()) if (z >= 0).all() else -np.inf
        if self.order == 2:
            return -0.5 * float(z @ z)
        return -0.5 * float((size**self.order).sum()) ** (2 / self.order)


class Tap:
    """Notes draws; hands out those of a script as long as they fit what is asked."""

    def __init__(self, script: Sequence[Draw] = ()):
        self.script, self.draws = script, list[Draw]()

    def __call__(self, kind: str, unit: Array, order: float = 2.0) -> Array:
        """The numbers the caller gets instead of its own."""
        at = len(self.draws)
        if at < len(self.script) and self.script[at].unit.shape == np.shape(unit):
            unit = self.script[at].unit
        else:
            self.script = ()
        self.draws.append(Draw(kind, np.array(unit, dtype=float), order))
        return unit


@contextmanager
def tapped(tap: Tap) -> Iterator[Tap]:
    """Let a tap hear all noise that any module draws, one outside dperm too."""
    with mechanisms.heard(tap):
        yield tap
