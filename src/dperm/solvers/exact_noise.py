r"""Noise for release: exact discrete Gaussian numbers on a grid, by OpenDP.

A value in doubles is rounded to multiples of a step h, the power of two for which the
noise has a scale of 2^50 to 2^51 steps; h follows from that scale alone. The noise is a
whole number of steps with the discrete Gaussian law (Canonne, Kamath and Steinke 2020),
drawn from the operating system's randomness. It is added in integer arithmetic.

*Sensitivity.* Let the exact value move by Delta at most, and let each computed value be
within e of it. Rounding moves an entry by h / 2, and all m entries by sqrt(m) h / 2. (A
symmetric matrix has m = p^2 entries and the Frobenius norm.) So the value to which the
noise is added moves by Delta + 2 e + sqrt(m) h. The scale sigma of the ledger's event
grows by the factor 1 + (2 e + sqrt(m) h) / Delta, so that scale over sensitivity is as
the ledger states; 2^-40 more covers the rounding of this formula.

*Law.* A Gaussian number rounded to whole steps has the mass phi(k) r(k) at k. Here phi
is the density with scale s in steps, and r(k) = int_{-1/2}^{1/2} exp(-t^2 / (2 s^2))
cosh(k t / s^2) dt >= exp(-1 / (8 s^2)). The discrete law has phi(k) / Z, where Z = sum
phi(k) >= 1 by Poisson's formula. So their distance in total variation is sum_k (phi(k)
/ Z - phi(k) r(k))^+ <= max_k (1 - r(k))^+ <= 1 / (8 s^2). Adding the rounded Gaussian
number to a value on the grid is post-processing of the Gaussian mechanism. Replacing K
such numbers, of scales 2^49.5 steps or more, by discrete ones costs (1 + e^epsilon) K
2^-102 of delta (``slack``). ∎

*Errors of doubles.* The error of a sum of n records' contributions has its own bound
(``sum_error``). A contribution may be any function of its record, of public information
and of earlier releases, as long as its norm is bounded. It need not be close to a
formula. So the only error of a gradient is that of the sum. This requires that a
record's slope has the same bits wherever the record stands and whatever the others are
(:class:`~dperm.solvers.records.Records` with ``apart``). Only sums have such a bound: a
number found by iteration, a minimiser or an eigenvalue, gets no noise for release.

The time that a draw takes is not hidden.
"""

from __future__ import annotations

import math

import numpy as np

from dperm import extras

BITS = 50  # binary digits of the scale in steps
SPARE = 2.0**-40  # relative margin for the rounding of the scale itself
UNIT = 2.0**-53  # relative rounding error of doubles


class Exact:
    """Noise for release, for one run.

    Raises
    ------
    ModuleNotFoundError
        Without OpenDP; the message states what to install.
    """

    def __init__(self) -> None:
        extras.require("release", "release=True")

    def added(
        self,
        value: np.ndarray,
        scale: float,
        sensitivity: float,
        error: float,
        symmetric: bool,
    ) -> np.ndarray:
        """A value with noise, in multiples of ``step(scale)``.

        Parameters
        ----------
        value : ndarray, shape (k, 1), or symmetric (p, p)
            Only the upper triangle of a symmetric matrix is read.
        scale, sensitivity : float
            Those of the ledger's event, in the Euclidean or Frobenius norm.
        error : float
            How far, in that norm, the value may be from the exact one.

        Returns
        -------
        ndarray, shape (k, 1) or (1, p, p)
        """
        h = step(scale)
        wide = widened(scale, sensitivity, error, value.size) / h
        if not symmetric:
            return h * _noised(value.ravel() / h, wide).reshape(-1, 1)
        p = len(value)
        rows, columns = np.triu_indices(p, 1)
        found = np.diag(_noised(np.diag(value) / h, wide))
        found[rows, columns] = _noised(value[rows, columns] / h, wide / math.sqrt(2))
        found[columns, rows] = found[rows, columns]
        return h * found[None]


def step(scale: float) -> float:
    """Step h: the power of two that fits 2^50 to 2^51 times into a scale."""
    return 2.0 ** (math.frexp(scale)[1] - 1 - BITS)


def widened(scale: float, sensitivity: float, error: float, entries: int) -> float:
    """The larger scale that also hides rounding and the error of doubles."""
    moved = 2 * error + math.sqrt(entries) * step(scale)
    return scale * (1 + moved / sensitivity) * (1 + SPARE)


def slack(numbers: int, epsilon: float) -> float:
    """Part of delta that discrete numbers cost in place of continuous ones."""
    return (1 + math.exp(min(epsilon, 700.0))) * numbers * 2.0 ** (-2 * BITS - 2)


def gamma(m: float) -> float:
    """Bound on the relative error of m roundings, one after another."""
    return m * UNIT / (1 - m * UNIT)


def sum_error(n: int, p: int, share: float) -> float:
    r"""Bound on the error in doubles of a sum over n records.

    Parameters
    ----------
    share : float
        Bound on a contribution's norm: C^2 of t t^T, C of gradients.
    """
    return n * share * gamma(n + 3 * p + 120)


def _noised(values: np.ndarray, scale: float) -> np.ndarray:
    """Numbers (k,), rounded to integers, with noise; as doubles, (k,)."""
    whole = [int(value) for value in np.rint(values)]
    found = [one + z for one, z in zip(whole, drawn(scale, len(whole)), strict=True)]
    return np.array([float(one) for one in found])


def drawn(scale: float, size: int) -> list[int]:
    """Discrete Gaussian numbers from OpenDP."""
    import opendp.prelude as dp

    if not size:
        return []
    dp.enable_features("contrib")
    domain, metric = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    found: list[int] = dp.m.make_gaussian(domain, metric, scale=scale)([0] * size)
    return found
