r"""What noise scales alone tell, where they are computed from the data.

DP-CD releases coordinate *j* with noise of scale
:math:`s_j \propto \sqrt{M_j / \sum M}`. Take M_j for private, and let two data sets
have equal gradients: their releases are still :math:`N(0, s_j^2)` against
:math:`N(0, s_j'^2)`, and after :math:`k_j` of each

.. math:: \log E_P e^{sL} = \sum_j k_j \bigl(s \log(s_j'/s_j)
          - \tfrac12 \log(1 - s (r_j^2 - 1))\bigr),\qquad r_j = s_j / s_j'.

The hockey-stick divergence is one integral of it along a line :math:`\theta + it`,
:math:`\theta > 0`,

.. math:: \delta(\epsilon) = \frac{1}{2\pi i} \int
          \frac{e^{\log E_P e^{sL} - s\epsilon}}{s (s + 1)}\, ds,

which the trapezoidal rule finds with an error that falls exponentially.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts come when they are first named
from numpy.typing import NDArray

Array = NDArray[np.float64]

_POINTS = 512  # of the rule; half of them give its error
_WIDE = 60.0  # half the line, in standard deviations of the tilted law
_LARGEST = 1e4  # epsilon that is looked for


class Divergence(NamedTuple):
    """A delta and a bound on its error, by halving the rule and by its ends."""

    value: float
    error: float


def delta(ratios: Array, counts: Array, epsilon: float) -> Divergence:
    """delta(epsilon) of N(0, r^2) against N(0, 1), each so many times.

    Parameters
    ----------
    ratios : ndarray, shape (p,)
        r_j, positive.
    counts : ndarray, shape (p,)
    epsilon : float
        Not negative.
    """
    log_r, grown = np.log(ratios), np.expm1(2 * np.log(ratios))
    drift = float(counts @ log_r)
    most = float(grown.max(initial=0.0))
    last = 1 / most if most > 0 else 1e8

    def cumulant(s: Any) -> Any:
        return -s * drift - 0.5 * np.log1p(-np.outer(s, grown)) @ counts

    def exponent(log_theta: float) -> float:
        theta = last / (1 + math.exp(-log_theta))
        value = float(cumulant(np.array([theta]))[0]) - theta * epsilon
        return value - math.log(theta) - math.log1p(theta)

    best = scipy.optimize.minimize_scalar(
        exponent, bounds=(-30.0, 12.0), method="bounded"
    )
    theta = last / (1 + math.exp(-best.x))
    curvature = 0.5 * float(counts @ (grown / (1 - theta * grown)) ** 2)
    curvature += 1 / theta**2 + 1 / (1 + theta) ** 2
    return _integral(cumulant, theta, epsilon, _WIDE / math.sqrt(curvature))


def _integral(
    cumulant: Callable[[Any], Any], theta: float, epsilon: float, wide: float
) -> Divergence:
    t = np.linspace(0.0, wide, _POINTS + 1)
    s = theta + 1j * t
    values = np.exp(cumulant(s) - s * epsilon) / (s * (s + 1))
    weights = np.full(t.size, t[1])
    weights[0] = weights[-1] = t[1] / 2
    fine = float(values.real @ weights) / math.pi
    coarse = float(values.real[::2] @ weights[::2]) * 2 / math.pi
    end = float(np.abs(values[-1])) * wide / math.pi  # it falls as 1 / t^2 at least
    rounding = 1e-12 * float(np.abs(values) @ weights)
    return Divergence(fine, abs(fine - coarse) + end + rounding)


def epsilons(ratios: Array, counts: Array, target: float) -> tuple[float, float]:
    """Epsilons between which the scales' own lies, over both directions.

    Parameters
    ----------
    ratios : ndarray, shape (p,)
        Scales over those of the neighbour; 0 or infinite costs infinity.
    counts : ndarray, shape (p,)
        Releases of each.
    target : float
        delta.
    """
    if not np.all((ratios > 0) & np.isfinite(ratios)):
        return math.inf, math.inf
    ends = [_ends(way, counts, target) for way in (ratios, 1 / ratios)]
    return max(low for low, _ in ends), max(high for _, high in ends)


def _ends(ratios: Array, counts: Array, target: float) -> tuple[float, float]:
    if np.all(ratios == 1):
        return 0.0, 0.0

    def excess(epsilon: float, sign: float) -> float:
        found = delta(ratios, counts, epsilon)
        return math.log(max(found.value + sign * found.error, 1e-300) / target)

    if excess(0.0, 1.0) <= 0:
        return 0.0, 0.0
    last = 1.0
    while excess(last, 1.0) > 0 and last < _LARGEST:
        last *= 2
    if last >= _LARGEST or excess(0.0, -1.0) <= 0:
        return 0.0, math.inf if last >= _LARGEST else last
    high = float(scipy.optimize.brentq(excess, 0.0, last, args=(1.0,), xtol=1e-7))
    low, step = high, 1e-7
    while excess(high, 1.0) > 0:
        high, step = high + step, 2 * step
    while excess(low, -1.0) < 0 and low > 0:
        low, step = max(low - step, 0.0), 2 * step
    return low, high
