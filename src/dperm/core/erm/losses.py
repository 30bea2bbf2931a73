"""The losses: one class each, with everything that depends on the loss.

A loss is a convex function phi of one number per record, the margin v. Its base class
defines the margin by the score <x, w> and the label y:

- ``Residual``: v = <x, w> - y, labels are real numbers,
- ``Signed``: v = y <x, w>, labels are -1 or +1,
- ``Unlabelled``: v = <x, w>, labels are not read.

With A and offset so that v = A w + offset, the smooth part of every objective is
f(w) = (1/n) sum_i phi(v_i).

A kernel calls the placeholders ``value``, ``derivative`` or ``slope``.
``Loss.compiled`` makes a copy of the kernel that calls those of one loss instead. So
kernels depend on no loss, and a new loss is one more class of this module.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
from numba import njit
from numba.extending import is_jitted

from dperm.core.compiled import INLINE, KERNEL, clamp, exp, filled, softplus
from dperm.core.names import hint

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


@njit(**KERNEL)
def _values(margins, out):
    """Write phi of each margin to out."""
    for i in range(margins.shape[0]):
        out[i] = value(margins[i])


@njit(**KERNEL)
def _derivatives(margins, out):
    """Write phi' of each margin to out."""
    for i in range(margins.shape[0]):
        out[i] = derivative(margins[i])


# --- the base class -------------------------------------------------------------------


class Loss:
    """Base class of losses; ``LOSSES`` holds one instance of each.

    Raises TypeError if a required attribute is missing, or if ``value``, ``derivative``
    or ``slope`` is not compiled with ``INLINE``.
    """

    name: ClassVar[str]  #: as in a problem's YAML
    curvature: ClassVar[float]  #: the supremum of phi''
    #: (float, float); closure of the range of phi'; outside of it the conjugate is
    #: infinite
    slopes: ClassVar[tuple[float, float]]
    #: whether phi(v) = v^2 / 2, so that gradients are linear in the margins
    quadratic: ClassVar[bool] = False
    #: whether phi is bounded below, so that there is an optimum to certify
    bounded: ClassVar[bool] = True
    #: whether phi has a minimum, so that F without penalty has a minimiser
    attained: ClassVar[bool] = True
    #: value, derivative: phi(v) and phi'(v) of one margin, which kernels paste in
    value: ClassVar[Any]
    derivative: ClassVar[Any]
    slope: ClassVar[Any]  #: derivative of phi in the score <x, w>, given the label

    def __init__(self) -> None:
        missing = [key for key in _PIECES if _is_missing(type(self), key)]
        if missing:
            raise TypeError(f"loss {self.name}: has no {', '.join(missing)}")
        for key in ("value", "derivative", "slope"):
            piece = getattr(self, key)
            if not (is_jitted(piece) and piece.targetoptions.get("inline") == "always"):
                raise TypeError(f"loss {self.name}: {key} is not compiled with INLINE")

    def __reduce__(self) -> tuple[Any, ...]:
        return named, (self.name,)

    @functools.cache  # noqa: B019 - a loss lives as long as the process
    def compiled(self, kernel: Any) -> Any:
        """A copy of a kernel with this loss's functions in place of placeholders."""
        return filled(kernel, self.name, self.pieces)

    @property
    def pieces(self) -> dict[Any, Any]:
        """The functions of the loss, by their placeholders."""
        return {value: self.value, derivative: self.derivative, slope: self.slope}

    def values(self, margins: np.ndarray) -> np.ndarray:
        """The loss phi at each margin; shape (n,)."""
        out = np.empty_like(margins)
        self.compiled(_values)(margins, out)
        return out

    def derivatives(self, margins: np.ndarray) -> np.ndarray:
        """The derivative phi' at each margin; shape (n,)."""
        out = np.empty_like(margins)
        self.compiled(_derivatives)(margins, out)
        return out

    def second(self, v: np.ndarray) -> np.ndarray:
        """The second derivative phi'' at each margin; shape (n,)."""
        raise NotImplementedError

    def dual(self, theta: np.ndarray) -> np.ndarray:
        """The conjugate phi* on the closure of the range of phi'; shape (n,)."""
        raise NotImplementedError

    def lipschitz(self, reach: float) -> float:
        """A public bound on |phi'(v)| for |v| <= reach, which may be infinite."""
        raise NotImplementedError

    def signs(self, y: np.ndarray) -> np.ndarray:
        """Factor of each record, A = diag(signs) X; shape (n,)."""
        return np.ones(len(y))

    def offset(self, y: np.ndarray) -> np.ndarray:
        """Each margin at w = 0; shape (n,)."""
        raise NotImplementedError

    def reach(self, score_bound: float, label_bound: float) -> float:
        """The largest |v| for scores and labels within their bounds."""
        raise NotImplementedError

    def check_labels(self, name: str, y: np.ndarray) -> None:
        """Check labels y (n,) of the problem of that name; most losses accept any.

        Raises ValueError if a label that must be -1 or +1 is neither.
        """

    def conjugate(self, theta: np.ndarray, offset: np.ndarray) -> np.ndarray:
        """Conjugate of s -> phi(s + offset), at one dual number per record.

        Parameters
        ----------
        theta : ndarray, shape (n,)
        offset : ndarray, shape (n,)

        Returns
        -------
        ndarray, shape (n,)
            Infinity where theta lies outside the range of phi' by more than rounding.
        """
        inside = np.clip(theta, *self.slopes)
        conjugate = self.dual(inside) - inside * offset
        return np.where(np.abs(theta - inside) <= 1e-12, conjugate, np.inf)


_PIECES = (
    *("curvature", "slopes", "value", "derivative", "second", "dual", "lipschitz"),
    *("offset", "reach", "slope"),
)


def _is_missing(kind: type[Loss], key: str) -> bool:
    """Whether no subclass of ``Loss`` defines the attribute."""
    return inspect.getattr_static(kind, key, None) is Loss.__dict__.get(key)


# --- labels ---------------------------------------------------------------------------


class Residual(Loss):
    """Losses of the residual v = <x, w> - y."""

    def offset(self, y: np.ndarray) -> np.ndarray:
        """The labels, negated."""
        return -np.asarray(y, dtype=np.float64)

    def reach(self, score_bound: float, label_bound: float) -> float:
        """The sum of both bounds."""
        return score_bound + label_bound

    @staticmethod
    @njit(**INLINE)
    def slope(s, y):
        """The derivative phi'(s - y)."""
        return derivative(s - y)


class Signed(Loss):
    """Losses of v = y <x, w>, for labels y that are signs."""

    def check_labels(self, name: str, y: np.ndarray) -> None:
        """Refuse labels that are neither -1 nor +1."""
        strange = set(np.unique(y)) - {-1.0, 1.0}
        if strange:
            first = [float(label) for label in sorted(strange)[:3]]
            raise ValueError(
                f"problem {name}: {self.name} labels must be -1 or +1, found {first}"
            )

    def signs(self, y: np.ndarray) -> np.ndarray:
        """The labels."""
        return np.asarray(y, dtype=np.float64)

    def offset(self, y: np.ndarray) -> np.ndarray:
        """Zeros."""
        return np.zeros(len(y))

    def reach(self, score_bound: float, label_bound: float) -> float:
        """The bound of the score; a sign does not change it."""
        return score_bound

    @staticmethod
    @njit(**INLINE)
    def slope(s, y):
        """The derivative y phi'(y s)."""
        return y * derivative(y * s)


class Unlabelled(Loss):
    """Losses of the score itself, v = <x, w>."""

    def offset(self, y: np.ndarray) -> np.ndarray:
        """Zeros."""
        return np.zeros(len(y))

    def reach(self, score_bound: float, label_bound: float) -> float:
        """The bound of the score."""
        return score_bound

    @staticmethod
    @njit(**INLINE)
    def slope(s, y):
        """The derivative phi'(s)."""
        return derivative(s)


# --- the losses -----------------------------------------------------------------------


class LeastSquares(Residual):
    """Half the squared residual, phi(v) = v^2 / 2."""

    name = "least_squares"
    curvature = 1.0
    slopes = (-math.inf, math.inf)
    quadratic = True

    @staticmethod
    @njit(**INLINE)
    def value(v):
        """v^2 / 2."""
        return 0.5 * v * v

    @staticmethod
    @njit(**INLINE)
    def derivative(v):
        """The margin v."""
        return v

    def second(self, v: np.ndarray) -> np.ndarray:
        """1."""
        return np.ones_like(v)

    def dual(self, theta: np.ndarray) -> np.ndarray:
        """theta^2 / 2."""
        return 0.5 * theta**2

    def lipschitz(self, reach: float) -> float:
        """The reach."""
        return reach


class Logistic(Signed):
    """phi(v) = log(1 + e^-v)."""

    name = "logistic"
    curvature = 0.25
    slopes = (-1.0, 0.0)
    attained = False

    @staticmethod
    @njit(**INLINE)
    def value(v):
        """log(1 + e^-v)."""
        return softplus(-v)

    @staticmethod
    @njit(**INLINE)
    def derivative(v):
        """-1 / (1 + e^v)."""
        return -1.0 / exp(v, 1.0)

    def second(self, v: np.ndarray) -> np.ndarray:
        """-phi' (1 + phi')."""
        d = self.derivatives(v)
        return -d * (1.0 + d)

    def dual(self, theta: np.ndarray) -> np.ndarray:
        """The entropy q log q + (1 - q) log(1 - q) with q = -theta."""
        q, r = -theta, 1.0 + theta
        entropy = np.where(q > 0, q * np.log(np.where(q > 0, q, 1.0)), 0.0)
        return entropy + np.where(r > 0, r * np.log(np.where(r > 0, r, 1.0)), 0.0)

    def lipschitz(self, reach: float) -> float:
        """1 for every reach, as in the papers."""
        return 1.0


class SmoothedHinge(Signed):
    """phi(v) = max(0, 1 - v)^2 / 2, of Table V of Lou and Cheung 2020."""

    name = "smoothed_hinge"
    curvature = 1.0
    slopes = (-math.inf, 0.0)

    @staticmethod
    @njit(**INLINE)
    def value(v):
        """max(0, 1 - v)^2 / 2."""
        return 0.5 * min(v - 1.0, 0.0) ** 2

    @staticmethod
    @njit(**INLINE)
    def derivative(v):
        """min(v - 1, 0)."""
        return min(v - 1.0, 0.0)

    def second(self, v: np.ndarray) -> np.ndarray:
        """1 below the margin 1, else 0."""
        return (v < 1.0).astype(float)

    def dual(self, theta: np.ndarray) -> np.ndarray:
        """theta^2 / 2 + theta."""
        return 0.5 * theta**2 + theta

    def lipschitz(self, reach: float) -> float:
        """1 + reach."""
        return reach + 1.0


class Linear(Unlabelled):
    """phi(v) = -v, of the lower bounds of Bassily, Guzmán and Nandi 2021."""

    name = "linear"
    curvature = 0.0
    slopes = (-1.0, -1.0)
    bounded = False

    @staticmethod
    @njit(**INLINE)
    def value(v):
        """-v."""
        return -v

    @staticmethod
    @njit(**INLINE)
    def derivative(v):
        """-1."""
        return -1.0

    def second(self, v: np.ndarray) -> np.ndarray:
        """0."""
        return np.zeros_like(v)

    def dual(self, theta: np.ndarray) -> np.ndarray:
        """0 at theta = -1."""
        return np.zeros_like(theta)

    def lipschitz(self, reach: float) -> float:
        """1."""
        return 1.0


class Huber(Residual):
    """phi(v) = v^2 / 2 where |v| <= 1, |v| - 1/2 beyond (Huber 1964, with delta 1)."""

    name = "huber"
    curvature = 1.0
    slopes = (-1.0, 1.0)

    @staticmethod
    @njit(**INLINE)
    def value(v):
        """The loss u (v - u / 2), where u is v clipped to [-1, 1]."""
        u = clamp(v, 1.0)
        return u * (v - 0.5 * u)

    @staticmethod
    @njit(**INLINE)
    def derivative(v):
        """The margin v clipped to [-1, 1]."""
        return clamp(v, 1.0)

    def second(self, v: np.ndarray) -> np.ndarray:
        """1 where |v| <= 1, else 0."""
        return (np.abs(v) <= 1.0).astype(float)

    def dual(self, theta: np.ndarray) -> np.ndarray:
        """theta^2 / 2."""
        return 0.5 * theta**2

    def lipschitz(self, reach: float) -> float:
        """The reach, at most 1."""
        return min(reach, 1.0)


# --- the losses by name ---------------------------------------------------------------


def _by_name(definitions: Iterable[Any]) -> dict[str, Loss]:
    """One instance of each class that names a loss, in the order of definition.

    Raises TypeError if a loss is incomplete or two have the same name.
    """
    known: dict[str, Loss] = {}
    for kind in definitions:
        if isinstance(kind, type) and issubclass(kind, Loss) and "name" in vars(kind):
            if kind.name in known:
                raise TypeError(f"loss {kind.name}: there is one of that name")
            known[kind.name] = kind()
    return known


def named(name: str) -> Loss:
    """The loss of that name.

    Raises ValueError if there is none.
    """
    if name in LOSSES:
        return LOSSES[name]
    raise ValueError(
        f"loss {name!r}: expected one of {', '.join(LOSSES)}{hint(name, LOSSES)}"
    )


LOSSES = _by_name(list(globals().values()))
# Losses that a problem's YAML may name; the others have no optimum to certify.
BOUNDED = tuple(name for name, loss in LOSSES.items() if loss.bounded)
