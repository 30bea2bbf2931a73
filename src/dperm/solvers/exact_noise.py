r"""Noise for release: exact discrete Gaussian numbers on a grid, by OpenDP.

A value in doubles is rounded to multiples of a step h, the power of two for which the
noise has a scale of 2^50 to 2^51 steps; h follows from that scale alone. Whole numbers
of steps with the discrete Gaussian law (Canonne, Kamath and Steinke 2020), drawn from
the operating system's randomness, are added in whole numbers.

*Sensitivity.* Let the exact value move by Delta at most, and each computed one be
within e of it. Rounding moves an entry by h / 2, all m entries (p^2 of a symmetric
matrix, whose norm is Frobenius') by sqrt(m) h / 2. So what the noise is added to moves
by Delta + 2 e + sqrt(m) h. The scale sigma of the ledger's event grows by the factor
1 + (2 e + sqrt(m) h) / Delta, so that scale over sensitivity is what the ledger states;
2^-40 more covers the rounding of this formula.

*Law.* A Gaussian number rounded to whole steps has the mass phi(k) r(k) at k, phi the
density with scale s in steps and r(k) = int_{-1/2}^{1/2} exp(-t^2 / (2 s^2)) cosh(k t /
s^2) dt >= exp(-1 / (8 s^2)). The discrete law has phi(k) / Z; by Poisson's formula Z =
sum phi(k) >= 1. So their distance in total variation is sum_k (phi(k) / Z - phi(k)
r(k))^+ <= max_k (1 - r(k))^+ <= 1 / (8 s^2). The rounded Gaussian number on top of a
value on the grid is post-processing of the Gaussian mechanism; K numbers in its place,
of scales 2^49.5 steps or more, cost (1 + e^epsilon) K 2^-102 of delta (``slack``). ∎

*Errors of doubles.* A sum of n records' shares has a bound of its own (``sum_error``).
A share itself needs to be a function of its record, of what is public and of what was
released, and no nearer to any formula than its length: so gradients have no error but
the sum's, as long as a record's slope has the same bits wherever the record stands and
whatever the others are (:class:`~dperm.solvers.records.Records` with ``apart``). What
is found by iteration, a minimiser or an eigenvalue, is certified afterwards, and the
certificate's bound is e; without a certificate nothing is released.

*Tilts.* A linear term b of discrete numbers stands for a continuous one, which is
within sqrt(p) h / 2 of it but for the same distance of laws. So the minimiser moves by
sqrt(p) h / (2 Lambda) at most, which the noise on its digits hides as part of e.

The time that a draw takes is not hidden.
"""

from __future__ import annotations

import math

import numpy as np

from dperm import extras

BITS = 50  # of the scale in steps
SPARE = 2.0**-40  # relative, for the rounding of the scale itself
UNIT = 2.0**-53  # of the rounding of doubles
BEYOND = 40.0  # deviations beyond sqrt(p) that a normal vector has with chance e^-800


class CertificateError(ArithmeticError):
    """A number is not known to be as near to the exact one as noise for release asks.

    No data are known for which that happens; nothing is released then.
    """


class Exact:
    """Noise of one run.

    Raises
    ------
    ModuleNotFoundError
        Without OpenDP; it says what to install.
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
        """A value with noise: multiples of ``step(scale)``.

        Parameters
        ----------
        value : ndarray, shape (k, 1), or symmetric (p, p)
            Of a symmetric matrix the upper triangle is read alone.
        scale, sensitivity : float
            Of the ledger's event, in the Euclidean or Frobenius norm.
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

    def tilt(self, scale: float, size: int) -> np.ndarray:
        """Numbers of that scale, which are to be added to nothing; (size, 1)."""
        h = step(scale)
        return h * np.array(drawn(scale / h, size), dtype=float).reshape(-1, 1)


def step(scale: float) -> float:
    """H: the power of two that goes 2^50 to 2^51 times into a scale."""
    return 2.0 ** (math.frexp(scale)[1] - 1 - BITS)


def widened(scale: float, sensitivity: float, error: float, entries: int) -> float:
    """The scale that hides rounding and the error of doubles as well."""
    moved = 2 * error + math.sqrt(entries) * step(scale)
    return scale * (1 + moved / sensitivity) * (1 + SPARE)


def slack(numbers: int, epsilon: float) -> float:
    """Of delta, what so many discrete numbers cost in place of continuous ones."""
    return (1 + math.exp(min(epsilon, 700.0))) * numbers * 2.0 ** (-2 * BITS - 2)


def gamma(m: float) -> float:
    """What m roundings, one after another, add up to at most; relative."""
    return m * UNIT / (1 - m * UNIT)


def sum_error(n: int, p: int, share: float) -> float:
    r"""How far a sum over n records is from the exact one, in doubles.

    Parameters
    ----------
    share : float
        What the shares' norms are bounded by: C^2 of t t^T, C of gradients, R Y of x y.
    """
    return n * share * gamma(n + 3 * p + 120)


def _noised(values: np.ndarray, scale: float) -> np.ndarray:
    """Numbers (k,), rounded to whole ones, with noise; doubles, (k,)."""
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
