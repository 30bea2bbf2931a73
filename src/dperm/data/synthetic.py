"""Synthetic data sets, drawn from a seed and identical on every machine.

Draws are rounded to nine decimals, so that the last bit of a mathematical library has
no effect. Sums run in a fixed order, so that the processor has none either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
from pydantic import Field, Strict
from scipy import sparse

from dperm.config.schema import Count, Natural
from dperm.data.arrays import standardize

Rows = Annotated[int, Strict(), Field(ge=2)]
Scale = Annotated[float, Strict(), Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Strict(), Field(ge=0, le=1)]


def sparse_regression(
    *,
    n: Rows,
    p: Count,
    active: Natural,
    coefficient_scale: Scale,
    noise: Scale,
    seed: Natural,
) -> tuple[np.ndarray, np.ndarray]:
    """Least squares y (n,) = Xw + noise with ``active`` nonzero coefficients.

    X (n, p) is standard normal, then standardised. The coefficients are normal with
    standard deviation ``coefficient_scale``, at random positions; ``noise`` is the
    standard deviation of the noise.
    """
    rng = _generator(seed)
    X = standardize(_normal(rng, (n, p)))
    w = np.zeros(p)
    positions = rng.choice(p, size=active, replace=False)
    w[positions] = coefficient_scale * _normal(rng, active)
    return X, _product(X, w) + noise * _normal(rng, n)


def logistic_lognormal(
    *, n: Rows, p: Count, sigma: Scale, seed: Natural
) -> tuple[np.ndarray, np.ndarray]:
    """Classification with lognormal(0, sigma) coefficients w.

    X (n, p) is standard normal, then standardised. y (n,) is the sign of Xw + e, -1 or
    +1, where e is normal with standard deviation ||w||: signal-to-noise ratio 1.
    """
    rng = _generator(seed)
    X = standardize(_normal(rng, (n, p)))
    w = np.round(rng.lognormal(0.0, sigma, p), 9)
    scores = _product(X, w) + np.sqrt(np.cumsum(w * w)[-1]) * _normal(rng, n)
    return X, np.where(scores >= 0.0, 1.0, -1.0)


def sparse_classification(
    *, n: Rows, p: Count, density: Share, active: Natural, seed: Natural
) -> tuple[sparse.csc_array, np.ndarray]:
    """Classification on zeros and ones, with few active coefficients.

    An entry of X (n, p), a csc_array, is 1 with probability ``density``; every column
    has at least one 1. The first ``active`` coefficients are alternately -1 and +1. y
    (n,) is the sign of Xw + e, -1 or +1, e normal with standard deviation 1/4.
    """
    rng = _generator(seed)
    X = (rng.random((n, p)) < density).astype(float)
    X[rng.integers(0, n, p), np.arange(p)] = 1.0
    w = np.zeros(p)
    w[:active] = np.where(np.arange(active) % 2, -1.0, 1.0)
    scores = _product(X, w) + 0.25 * _normal(rng, n)
    return sparse.csc_array(X), np.where(scores >= 0.0, 1.0, -1.0)


def _generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))


def _normal(
    rng: np.random.Generator, size: int | tuple[int, int]
) -> np.ndarray:
    return np.round(rng.standard_normal(size), 9)


def _product(X: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Multiply column by column: the order of BLAS sums depends on the machine."""
    product = np.zeros(X.shape[0])
    for j in np.flatnonzero(w):
        product += w[j] * X[:, j]
    return product


GENERATORS: dict[str, Callable[..., tuple[Any, np.ndarray]]] = {
    "sparse_classification": sparse_classification,
    "sparse_regression": sparse_regression,
    "logistic_lognormal": logistic_lognormal,
}
