"""Noise for release: exact discrete Gaussian numbers on a grid, by OpenDP.

A value in doubles is rounded to multiples of a step h, the power of two for which the
noise has a scale of 2^50 to 2^51 steps; h follows from that scale alone. The noise is a
whole number of steps with the discrete Gaussian law (Canonne, Kamath and Steinke 2020),
drawn from the operating system's randomness. It is added in integer arithmetic.

The scale grows by what rounding and the error of doubles move (``widened``), discrete
numbers cost ``slack`` of delta, and only sums over records have a bound on their error
(``sum_error``). ``docs/accounting.md`` has the proofs.

The time that a draw takes is not hidden.
"""

from __future__ import annotations

import math

import numpy as np

BITS = 50  # binary digits of the scale in steps
SCALE_MARGIN = 2.0**-40  # relative margin for the rounding of the scale itself
UNIT = 2.0**-53  # relative rounding error of doubles


class Exact:
    """Noise for release, for one run.

    Raises
    ------
    ModuleNotFoundError
        Without OpenDP; the message states what to install.
    """

    def __init__(self) -> None:
        from dperm import extras

        extras.require("release", "release=True")

    def added(
        self,
        value: np.ndarray,
        scale: float,
        sensitivity: float,
        error: float,
        symmetric: bool,
    ) -> np.ndarray:
        """A value with noise, in multiples of ``step(scale)``; (k, 1) or (1, p, p).

        The value is (k, 1), or symmetric (p, p), of which the upper triangle alone is
        read. Scale and sensitivity are those of the ledger's event, in the Euclidean or
        Frobenius norm, in which the value may be ``error`` from the exact one.
        """
        h = step(scale)
        wide = widened(scale, sensitivity, error, value.size) / h
        if not symmetric:
            return h * _noised(value.ravel() / h, wide).reshape(-1, 1)
        p = len(value)
        rows, columns = np.triu_indices(p, 1)
        noisy = np.diag(_noised(np.diag(value) / h, wide))
        noisy[rows, columns] = _noised(
            value[rows, columns] / h, wide / math.sqrt(2)
        )
        noisy[columns, rows] = noisy[rows, columns]
        return h * noisy[None]


def step(scale: float) -> float:
    """Step h: the power of two that fits 2^50 to 2^51 times into a scale."""
    return 2.0 ** (math.frexp(scale)[1] - 1 - BITS)


def widened(
    scale: float, sensitivity: float, error: float, entries: int
) -> float:
    """The larger scale that also hides rounding and the error of doubles."""
    moved = 2 * error + math.sqrt(entries) * step(scale)
    return scale * (1 + moved / sensitivity) * (1 + SCALE_MARGIN)


def slack(numbers: int, epsilon: float) -> float:
    """Part of delta that discrete numbers cost in place of continuous ones."""
    return (
        (1 + math.exp(min(epsilon, 700.0))) * numbers * 2.0 ** (-2 * BITS - 2)
    )


def gamma(m: float) -> float:
    """Bound on the relative error of m roundings, one after another."""
    return m * UNIT / (1 - m * UNIT)


def sum_error(n: int, p: int, share: float) -> float:
    """Bound on the error in doubles of a sum over n records.

    ``share`` bounds a contribution's norm: C^2 of t t^T, C of gradients.
    """
    return n * share * gamma(n + 3 * p + 120)


def _noised(values: np.ndarray, scale: float) -> np.ndarray:
    """Numbers (k,), rounded to integers, with noise; as doubles, (k,)."""
    integers = [int(number) for number in np.rint(values)]
    sums = [
        integer + z
        for integer, z in zip(
            integers, drawn(scale, len(integers)), strict=True
        )
    ]
    return np.array([float(integer) for integer in sums])


def drawn(scale: float, size: int) -> list[int]:
    """Discrete Gaussian numbers from OpenDP."""
    import opendp.prelude as dp

    if not size:
        return []
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    metric = dp.l2_distance(T="f64")
    noise: list[int] = dp.m.make_gaussian(domain, metric, scale=scale)(
        [0] * size
    )
    return noise
