"""DP-GCD on the instance ``growing.decaying``, for any number of features.

Coordinates do not interact there, and those whose weight is zero, and which were never
taken, all have a score of zero before noise. The largest of m such scores is a single
draw: with F the distribution of Laplace noise, it is at most x with probability
F(x)^m. So p may be 10^12, at the price of the coefficients that are not zero.
"""

from __future__ import annotations

import numpy as np


def largest_laplace(
    uniform: np.ndarray, count: float | np.ndarray, scale: float
) -> np.ndarray:
    """The largest of ``count`` draws of Laplace noise, from uniform draws in (0, 1).

    It solves F(x)^count = u. One less F is computed by itself, as it is too small
    beside 1 for a large count.
    """
    above = -np.expm1(np.log(uniform) / count)  # 1 - F(x)
    below = np.exp(np.log(uniform) / count)  # F(x)
    with np.errstate(divide="ignore"):
        high = -scale * np.log(2 * above)
        low = scale * np.log(2 * below)
    return np.where(above < 0.5, high, low)


def shares(
    p: float,
    tau: int,
    scale: float,
    steps: int,
    runs: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Excess over that of w = 0 after some steps, shape (runs,).

    A step takes the coordinate with the largest absolute derivative plus Laplace noise,
    and leaves there only the Laplace noise of its own derivative.

    Parameters
    ----------
    p : float
        Number of features.
    tau : int
        Coefficients that are not zero; the j-th is 1 / j.
    scale : float
        Scale of the noise on scores and on derivatives.
    """
    true = 1 / np.arange(1, tau + 1)
    errors = np.tile(-true, (runs, 1))
    taken_zeros = np.zeros((runs, steps))  # errors of zeros that were taken
    numbers = np.zeros(runs, dtype=int)
    run_numbers = np.arange(runs)
    for _ in range(steps):
        noise = rng.laplace(scale=scale, size=(runs, tau + steps))
        scores = np.abs(np.hstack([errors, taken_zeros])) + noise
        unused = np.arange(steps) >= numbers[:, None]
        scores[:, tau:][unused] = -np.inf
        uniform = rng.random(runs)
        best_untaken = largest_laplace(uniform, p - tau - numbers, scale)
        best = scores.argmax(axis=1)
        is_new = best_untaken > scores[run_numbers, best]
        best[is_new] = tau + numbers[is_new]
        numbers += is_new
        fresh = rng.laplace(scale=scale, size=runs)
        is_zero = best >= tau
        taken_zeros[run_numbers[is_zero], best[is_zero] - tau] = fresh[is_zero]
        errors[run_numbers[~is_zero], best[~is_zero]] = fresh[~is_zero]
    squares = (errors**2).sum(axis=1) + (taken_zeros**2).sum(axis=1)
    return np.asarray(squares / (true**2).sum())
