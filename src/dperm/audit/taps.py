"""A tap on the noise: it notes every draw and hands out other numbers if told to.

All noise is drawn by the functions of :mod:`dperm.privacy.mechanisms` and
:mod:`dperm.privacy.generalised_gaussian`, so that a tap on them sees what any solver
draws, in units of the noise's scale, without the solver's help.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np
from scipy import stats

from dperm.privacy import generalised_gaussian as generalised
from dperm.privacy import mechanisms

Array = np.ndarray
Call = Callable[..., Any]


@dataclass(frozen=True)
class Draw:
    """Noise of unit scale from one call.

    Attributes
    ----------
    kind : str
        gaussian, laplace, exponential, gumbel or generalised_gaussian.
    unit : ndarray
        The numbers, in units of the noise's scale.
    order : float
        Norm of a generalised Gaussian; 2 is the Gaussian.
    """

    kind: str
    unit: Array
    order: float = 2.0

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
        if self.kind == "exponential":
            return -float(z.sum()) if (z >= 0).all() else -np.inf
        if self.order == 2:
            return -0.5 * float(z @ z)
        return -0.5 * float((size**self.order).sum()) ** (2 / self.order)


LAWS: dict[str, Any] = {
    "gaussian": stats.norm,
    "laplace": stats.laplace,
    "exponential": stats.expon,
    "gumbel": stats.gumbel_r,
}


class Tap:
    """Notes draws; hands out those of a script as long as they fit what is asked."""

    def __init__(self, script: Sequence[Draw] = ()):
        self.script, self.draws = script, list[Draw]()

    def hand(self, kind: str, unit: Array, order: float = 2.0) -> Array:
        """The numbers the caller gets instead of its own."""
        at = len(self.draws)
        if at < len(self.script) and self.script[at].unit.shape == np.shape(unit):
            unit = self.script[at].unit
        else:
            self.script = ()
        self.draws.append(Draw(kind, np.array(unit, dtype=float), order))
        return unit


_taps: list[Tap] = []


def _plain(kind: str, drawn: Call) -> Call:
    def tapped(*arguments: Any) -> Array:
        unit = drawn(*arguments)
        return _taps[-1].hand(kind, unit) if _taps else unit

    return tapped


def _scaled(drawn: Call) -> Call:
    def tapped(rng: Any, scale: Any) -> Array:
        if not _taps:
            return drawn(rng, scale)
        scale = np.asarray(scale, dtype=float)
        return scale * _taps[-1].hand("laplace", drawn(rng, np.ones_like(scale)))

    return tapped


def _ordered(drawn: Call) -> Call:
    def tapped(rng: Any, r: float, shape: tuple[int, int]) -> Array:
        unit = drawn(rng, r, shape)
        return _taps[-1].hand("generalised_gaussian", unit, r) if _taps else unit

    return tapped


TAPPED: dict[Call, Call] = {
    mechanisms.gaussian: _plain("gaussian", mechanisms.gaussian),
    mechanisms.laplace: _scaled(mechanisms.laplace),
    mechanisms.laplace_rows: _plain("laplace", mechanisms.laplace_rows),
    mechanisms.unit_laplace: _plain("laplace", mechanisms.unit_laplace),
    mechanisms.exponential: _plain("exponential", mechanisms.exponential),
    mechanisms.gumbel: _plain("gumbel", mechanisms.gumbel),
    generalised.generalised_gaussian: _ordered(generalised.generalised_gaussian),
}


@contextmanager
def tapped(tap: Tap) -> Iterator[Tap]:
    """Let a tap see all noise that any module draws, one outside dperm too."""
    sites = _sites(len(sys.modules))
    for module, name, drawn in sites:
        setattr(module, name, TAPPED[drawn])
    _taps.append(tap)
    try:
        yield tap
    finally:
        _taps.pop()
        if not _taps:
            for module, name, drawn in sites:
                setattr(module, name, drawn)


@lru_cache(maxsize=1)
def _sites(modules: int) -> list[tuple[ModuleType, str, Call]]:
    """Where modules hold a mechanism, while so many are imported."""
    return [
        (module, name, value)
        for place, module in list(sys.modules.items())
        if isinstance(module, ModuleType) and place != __name__
        for name, value in list(vars(module).items())
        if _is_mechanism(value)
    ]


def _is_mechanism(value: Call) -> bool:
    return any(value is known for known in TAPPED)
