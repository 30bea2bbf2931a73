"""What a loss says of itself, and how margins are made of scores and labels.

A loss is a convex function phi of one number a record, the margin, which is made of the
score <x, w> and the label y by the class it inherits from:

- ``Residual``: v = <x, w> - y, labels are real numbers,
- ``Signed``: v = y <x, w>, labels are -1 or +1,
- ``Unlabelled``: v = <x, w>, labels are not read.

With A and offset so that v = A w + offset, the smooth part of every objective is
f(w) = (1/n) sum_i phi(v_i). A loss that forgets a piece cannot be defined.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

import numpy as np
from numba import njit
from numba.extending import is_jitted

from dperm.core.compiled import INLINE

LOSSES: dict[str, Loss] = {}
CLOSED: list[str] = []  # the losses that kernels know, once all are defined
FIRST, BYTES = 3, 256  # losses whose codes are bytes, and what is none; see ``losses``


class Loss:
    """What a loss says of itself; there is one instance of each, in ``LOSSES``.

    Attributes
    ----------
    name : str
        As in a problem's YAML.
    curvature : float
        The supremum of phi''.
    slopes : (float, float)
        Closure of the range of phi', outside of which the conjugate is infinite.
    quadratic : bool
        Whether phi(v) = v^2 / 2, so that gradients are linear in the margins.
    bounded : bool
        Whether phi is bounded below, so that there is an optimum to certify.
    attained : bool
        Whether phi has a minimum, so that F without penalty has a minimiser.
    value, derivative : compiled functions
        phi(v) and phi'(v) of one margin, which kernels paste in.
    code : np.uint8 or int
        What kernels tell losses by; given out here, in the order of definition.
    """

    name: ClassVar[str]
    curvature: ClassVar[float]
    slopes: ClassVar[tuple[float, float]]
    quadratic: ClassVar[bool] = False
    bounded: ClassVar[bool] = True
    attained: ClassVar[bool] = True
    value: ClassVar[Any]
    derivative: ClassVar[Any]
    code: ClassVar[Any]
    slope: ClassVar[Any]  # derivative of phi in the score <x, w>, given the label

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" in cls.__dict__:
            _register(cls)

    def __reduce__(self) -> tuple[Any, ...]:
        return _the, (type(self),)

    def second(self, v: np.ndarray) -> np.ndarray:
        """Phi'' of each margin; shape (n,)."""
        raise NotImplementedError

    def dual(self, theta: np.ndarray) -> np.ndarray:
        """The conjugate phi* on the closure of the range of phi'; shape (n,)."""
        raise NotImplementedError

    def lipschitz(self, reach: float) -> float:
        """A public bound on |phi'(v)| for |v| <= reach, which may be infinite."""
        raise NotImplementedError

    def signs(self, y: np.ndarray) -> np.ndarray:
        """What each record is multiplied with, A = diag(signs) X; shape (n,)."""
        return np.ones(len(y))

    def offset(self, y: np.ndarray) -> np.ndarray:
        """What each margin is at w = 0; shape (n,)."""
        raise NotImplementedError

    def reach(self, score_bound: float, label_bound: float) -> float:
        """The largest |v| for scores and labels within their bounds."""
        raise NotImplementedError

    @classmethod
    def scored(cls, derivative: Any) -> Any:
        """The compiled slope(s, y): derivative of phi in the score s = <x, w>."""
        raise NotImplementedError

    def check_labels(self, name: str, y: np.ndarray) -> None:
        """Refuse labels y (n,) of the problem of that name; most losses take any.

        Raises
        ------
        ValueError
            If one that must be -1 or +1 is neither.
        """

    def conjugate(self, theta: np.ndarray, offset: np.ndarray) -> np.ndarray:
        """Conjugate of s -> phi(s + offset), at one dual number a record.

        Parameters
        ----------
        theta : ndarray, shape (n,)
            Infinity outside the range of phi', but for rounding.
        offset : ndarray, shape (n,)

        Returns
        -------
        ndarray, shape (n,)
        """
        inside = np.clip(theta, *self.slopes)
        found = self.dual(inside) - inside * offset
        return np.where(np.abs(theta - inside) <= 1e-12, found, np.inf)


def _the(cls: type[Loss]) -> Loss:
    """The one instance; what a pickled one becomes."""
    return LOSSES[cls.name]


def _register(cls: type[Loss]) -> None:
    """Give the loss its code and make it known.

    Raises
    ------
    TypeError
        If it lacks a piece, has a name that is taken, or comes too late.
    """
    missing = [key for key in _PIECES if not _said(cls, key)]
    if missing:
        raise TypeError(f"loss {cls.name}: has no {', '.join(missing)}")
    for key in ("value", "derivative"):
        if not _is_pasted(getattr(cls, key)):
            raise TypeError(f"loss {cls.name}: {key} is not compiled with INLINE")
    if cls.name in LOSSES:
        raise TypeError(f"loss {cls.name}: there is one of that name")
    if CLOSED:
        raise TypeError(
            f"loss {cls.name}: expected in dperm.core.erm.losses: kernels know no other"
        )
    place = len(LOSSES)
    cls.code = np.uint8(place) if place < FIRST else BYTES + place
    cls.slope = staticmethod(cls.scored(cls.derivative))
    LOSSES[cls.name] = cls()


_PIECES = (
    "curvature", "slopes", "value", "derivative", "second", "dual", "lipschitz",
    "offset", "reach", "scored",
)  # fmt: skip


def _said(cls: type[Loss], key: str) -> bool:
    """Whether a class other than ``Loss`` says it."""
    return inspect.getattr_static(cls, key, None) is not Loss.__dict__.get(key)


def _is_pasted(piece: Any) -> bool:
    """Whether Numba pastes the function into kernels, see ``dperm.core.compiled``."""
    return is_jitted(piece) and piece.targetoptions.get("inline") == "always"


# --- labels ---------------------------------------------------------------------------


class Residual(Loss):
    """Losses of the residual v = <x, w> - y."""

    def offset(self, y: np.ndarray) -> np.ndarray:
        """The labels, negated."""
        return -np.asarray(y, dtype=np.float64)

    def reach(self, score_bound: float, label_bound: float) -> float:
        """The sum of both."""
        return score_bound + label_bound

    @classmethod
    def scored(cls, derivative: Any) -> Any:
        """phi'(s - y)."""

        @njit(**INLINE)
        def slope(s, y):
            return derivative(s - y)

        return slope


class Signed(Loss):
    """Losses of v = y <x, w>, for labels y that are signs."""

    def check_labels(self, name: str, y: np.ndarray) -> None:
        """Refuse what is neither -1 nor +1."""
        strange = set(np.unique(y)) - {-1.0, 1.0}
        if strange:
            found = [float(label) for label in sorted(strange)[:3]]
            raise ValueError(
                f"problem {name}: {self.name} labels must be -1 or +1, found {found}"
            )

    def signs(self, y: np.ndarray) -> np.ndarray:
        """The labels."""
        return np.asarray(y, dtype=np.float64)

    def offset(self, y: np.ndarray) -> np.ndarray:
        """Zeros."""
        return np.zeros(len(y))

    def reach(self, score_bound: float, label_bound: float) -> float:
        """That of the score; a sign changes nothing."""
        return score_bound

    @classmethod
    def scored(cls, derivative: Any) -> Any:
        """The sign times phi'(y s)."""

        @njit(**INLINE)
        def slope(s, y):
            return y * derivative(y * s)

        return slope


class Unlabelled(Loss):
    """Losses of the score itself, v = <x, w>."""

    def offset(self, y: np.ndarray) -> np.ndarray:
        """Zeros."""
        return np.zeros(len(y))

    def reach(self, score_bound: float, label_bound: float) -> float:
        """That of the score."""
        return score_bound

    @classmethod
    def scored(cls, derivative: Any) -> Any:
        """phi'(s)."""

        @njit(**INLINE)
        def slope(s, y):
            return derivative(s)

        return slope
