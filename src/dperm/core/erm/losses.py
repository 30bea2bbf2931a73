"""The losses: everything that depends on one is said in its class.

A new one is one more class of this module, see ``loss``.
"""

from __future__ import annotations

import difflib
import math
from typing import Any

import numpy as np
from numba import njit

from dperm.core.compiled import INLINE, KERNEL, clamp, exp, softplus
from dperm.core.erm.loss import (
    BYTES,
    CLOSED,
    FIRST,
    LOSSES,
    Loss,
    Residual,
    Signed,
    Unlabelled,
)

__all__ = [
    "BOUNDED",
    "LOSSES",
    "Loss",
    "derivative",
    "derivatives",
    "named",
    "slope",
    "value",
]


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
        """V."""
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
        return -1.0 / (1.0 + exp(v))

    def second(self, v: np.ndarray) -> np.ndarray:
        """-phi' (1 + phi')."""
        d = derivatives(self, v)
        return -d * (1.0 + d)

    def dual(self, theta: np.ndarray) -> np.ndarray:
        """Q log q + (1 - q) log(1 - q) with q = -theta."""
        q, r = -theta, 1.0 + theta
        entropy = np.where(q > 0, q * np.log(np.where(q > 0, q, 1.0)), 0.0)
        return entropy + np.where(r > 0, r * np.log(np.where(r > 0, r, 1.0)), 0.0)

    def lipschitz(self, reach: float) -> float:
        """1, as the papers have it, whatever the reach."""
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
        """0, at theta = -1."""
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
        """U (v - u / 2), where u is v cut to [-1, 1]."""
        u = clamp(v, 1.0)
        return u * (v - 0.5 * u)

    @staticmethod
    @njit(**INLINE)
    def derivative(v):
        """V cut to [-1, 1]."""
        return clamp(v, 1.0)

    def second(self, v: np.ndarray) -> np.ndarray:
        """1 up to |v| = 1, then 0."""
        return (np.abs(v) <= 1.0).astype(float)

    def dual(self, theta: np.ndarray) -> np.ndarray:
        """theta^2 / 2."""
        return 0.5 * theta**2

    def lipschitz(self, reach: float) -> float:
        """The reach, at most 1."""
        return min(reach, 1.0)


def named(name: str) -> Loss:
    """The loss of that name.

    Raises
    ------
    ValueError
        If there is none.
    """
    if name in LOSSES:
        return LOSSES[name]
    near = difflib.get_close_matches(name, LOSSES, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise ValueError(f"loss {name!r}: expected one of {', '.join(LOSSES)}{hint}")


# --- what kernels call ----------------------------------------------------------------


# A test of the code does not change within a loop, and LLVM takes it out of the loop
# while it is a chain of at most two comparisons; a longer one stays there, and sums are
# slower and in another order. So the first three losses have codes that are bytes, 0 to
# 2: in a kernel compiled for bytes the first test is known to hold, and nothing of the
# other losses is left. Those have larger codes, in whole integers.


def _dispatch(piece: str, arguments: str) -> Any:
    """The compiled function (code, *arguments) that is each loss's own ``piece``."""
    losses = list(LOSSES.values())
    lines = [f"def {piece}(loss, {arguments}):", f"    if loss < {BYTES}:"]
    for group, indent in ((losses[:FIRST], " " * 8), (losses[FIRST:], " " * 4)):
        for one in group[:-1]:
            lines.append(f"{indent}if loss == {one.code}:")
            lines.append(f"{indent}    return of_{one.name}({arguments})")
        lines.append(f"{indent}return of_{group[-1].name}({arguments})")
    known = {f"of_{name}": getattr(type(one), piece) for name, one in LOSSES.items()}
    exec("\n".join(lines), known)
    return njit(**INLINE)(known[piece])


value = _dispatch("value", "v")  # phi(v) of a loss's code and one margin
derivative = _dispatch("derivative", "v")  # phi'(v)
slope = _dispatch("slope", "s, y")  # derivative of phi in the score s, for label y
CLOSED += LOSSES
# What a problem's YAML may name: a problem is solved to a certified optimum first.
BOUNDED = tuple(name for name, loss in LOSSES.items() if loss.bounded)


def derivatives(loss: Loss, margins: np.ndarray) -> np.ndarray:
    """Phi' of each margin; shape (n,)."""
    out = np.empty_like(margins)
    _derivatives(loss.code, margins, out)
    return out


@njit(**KERNEL)
def _derivatives(loss, margins, out):
    """Write phi' of each margin to out."""
    for i in range(margins.shape[0]):
        out[i] = derivative(loss, margins[i])
