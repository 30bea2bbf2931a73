"""The losses: convex functions phi of one number per record, the margin v.

A loss's labels decide how the margin follows from the score <x, w> and the label y:

- ``real``: v = <x, w> - y, labels are real numbers,
- ``sign``: v = y <x, w>, labels are -1 or +1,
- ``none``: v = <x, w>, labels are not read.

With A and offset so that v = A w + offset, the smooth part of every objective is
f(w) = (1/n) sum_i phi(v_i).

A kernel calls the placeholders ``value``, ``derivative`` or ``slope``.
``Loss.compiled`` makes a copy of the kernel that calls those of one loss instead, so
that kernels depend on no loss. A loss is a module with ``LOSS``: one of this package,
or a user's own, next to ``conf/`` or installed.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.extending import is_jitted

from dperm.names import place
from dperm.numerics.compiled import INLINE, KERNEL, filled
from dperm.numerics.kernels import njit

Array = np.ndarray

# --- placeholders that kernels call ---------------------------------------------------


@njit(**INLINE)
def value(v):
    """The loss phi(v), filled in by ``Loss.compiled``."""
    raise NotImplementedError


@njit(**INLINE)
def derivative(v):
    """The derivative phi'(v), filled in by ``Loss.compiled``."""
    raise NotImplementedError


@njit(**INLINE)
def slope(s, y):
    """The derivative of phi in the score s, for label y; filled in likewise."""
    raise NotImplementedError


@njit(**INLINE)
def _of_residual(s, y):
    return derivative(s - y)


@njit(**INLINE)
def _of_signed_score(s, y):
    return y * derivative(y * s)


@njit(**INLINE)
def _of_score(s, y):
    return derivative(s)


@njit(**KERNEL)
def _values(margins, losses):
    """Write phi of each margin to out."""
    for i in range(margins.shape[0]):
        losses[i] = value(margins[i])


@njit(**KERNEL)
def _derivatives(margins, slopes):
    """Write phi' of each margin to out."""
    for i in range(margins.shape[0]):
        slopes[i] = derivative(margins[i])


# --- a loss ---------------------------------------------------------------------------

_SLOPES = {"real": _of_residual, "sign": _of_signed_score, "none": _of_score}


@dataclass(frozen=True, eq=False)
class Loss:
    """A loss, and everything that depends on it.

    Raises TypeError if there are no such labels.
    """

    name: str  #: as in a problem's YAML, and of its module
    labels: str  #: {"real", "sign", "none"}
    curvature: float  #: the supremum of phi''
    #: closure of the range of phi'; outside of it the conjugate is infinite
    slopes: tuple[float, float]
    #: phi(v) of one margin; compiled, and pasted into kernels
    value: Any
    derivative: Any  #: phi'(v) of one margin, likewise
    second: Callable[
        [Array], Array
    ]  #: the second derivative phi'' at each margin
    #: the conjugate phi* at each number of the range of phi'
    dual: Callable[[Array], Array]
    #: a public bound on |phi'(v)| for |v| <= reach, which may be infinite
    lipschitz: Callable[[float], float]
    #: whether phi(v) = v^2 / 2, so that gradients are linear in the margins
    quadratic: bool = False
    #: whether phi is bounded below, so that there is an optimum to certify
    bounded: bool = True
    #: whether phi has a minimum, so that F without penalty has a minimiser
    attained: bool = True

    def __post_init__(self) -> None:
        if self.labels not in _SLOPES:
            names = ", ".join(_SLOPES)
            raise TypeError(
                f"loss {self.name}: labels: expected one of {names}"
            )
        for key in ("value", "derivative"):
            piece = getattr(self, key)
            if not is_jitted(piece):
                object.__setattr__(self, key, njit(**INLINE)(piece))

    def __reduce__(self) -> tuple[Any, ...]:
        return named, (self.name,)

    @property
    def pieces(self) -> dict[Any, Any]:
        """The functions of the loss, by their placeholders."""
        pieces = {value: self.value, derivative: self.derivative}
        return {**pieces, slope: _SLOPES[self.labels]}

    @functools.cache  # noqa: B019 - a loss lives as long as the process
    def compiled(self, kernel: Any) -> Any:
        """A copy of a kernel that calls the functions of the loss for placeholders."""
        return filled(kernel, self.name, self.pieces)

    def values(self, margins: Array) -> Array:
        """The loss phi at each margin; shape (n,)."""
        losses = np.empty_like(margins)
        self.compiled(_values)(margins, losses)
        return losses

    def derivatives(self, margins: Array) -> Array:
        """The derivative phi' at each margin; shape (n,)."""
        slopes = np.empty_like(margins)
        self.compiled(_derivatives)(margins, slopes)
        return slopes

    def signs(self, y: Array) -> Array:
        """Factor of each record, A = diag(signs) X; shape (n,)."""
        if self.labels == "sign":
            return np.asarray(y, dtype=np.float64)
        return np.ones(len(y))

    def offset(self, y: Array) -> Array:
        """Each margin at w = 0; shape (n,)."""
        if self.labels == "real":
            return -np.asarray(y, dtype=np.float64)
        return np.zeros(len(y))

    def reach(self, score_bound: float, label_bound: float) -> float:
        """The largest |v| for scores and labels within their bounds."""
        return score_bound + (label_bound if self.labels == "real" else 0.0)

    def check_labels(self, name: str, y: Array) -> None:
        """Check labels y (n,) of the problem of that name; most losses accept any.

        Raises ValueError if a label that must be -1 or +1 is neither.
        """
        strange = (
            set(np.unique(y)) - {-1.0, 1.0} if self.labels == "sign" else ()
        )
        if strange:
            examples = [float(label) for label in sorted(strange)[:3]]
            raise ValueError(
                f"problem {name}: {self.name} labels must be -1 or +1, found {examples}"
            )

    def conjugate(self, theta: Array, offset: Array) -> Array:
        """Conjugate of s -> phi(s + offset) at dual numbers theta, all of shape (n,).

        Infinity where theta lies outside the range of phi' by more than rounding.
        """
        inside = np.clip(theta, *self.slopes)
        conjugate = self.dual(inside) - inside * offset
        return np.where(np.abs(theta - inside) <= 1e-12, conjugate, np.inf)


# --- the losses by name ---------------------------------------------------------------


#: modules of the losses of this package, by name
PLACES = {
    one.name: f"{__name__}.{one.name}"
    for one in pkgutil.iter_modules(__path__)
}


@functools.cache
def named(name: str) -> Loss:
    """The loss of that name.

    Raises ValueError if there is none.
    """
    module = importlib.import_module(place("losses", "loss", name, PLACES))
    loss = getattr(module, "LOSS", None)
    if not isinstance(loss, Loss) or loss.name != name:
        raise ValueError(f"loss {name!r}: its module has no LOSS of that name")
    return loss


def bounded() -> list[str]:
    """Losses of this package with an optimum to certify, which problems may have."""
    return [name for name in PLACES if named(name).bounded]
