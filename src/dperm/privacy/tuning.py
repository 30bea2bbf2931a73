r"""What it costs to choose the best of many private runs, with random stopping.

The grid searches of the papers run every setting on the private data and report the
best; their epsilon is that of one run. Random stopping pays for the choice: draw a
number of trials *K* from a geometric or another truncated negative binomial law, run
each trial at a setting drawn at random, release the best. Its cost is a little above
that of one run, while releasing the best of a fixed number costs several times as much.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq

from dperm.privacy.accounting import gaussian_epsilon


class TrialsError(ValueError):
    """A mean number of trials that no such law has."""


def mean_trials(eta: float, gamma: float) -> float:
    r"""Mean of the negative binomial law truncated to K >= 1.

    .. math:: \frac{\eta (1 - \gamma)}{\gamma (1 - \gamma^\eta)}, \quad
              \frac{1/\gamma - 1}{\log(1/\gamma)} \text{ at } \eta = 0

    Parameters
    ----------
    eta : float
        Shape, above -1; 1 is the geometric law, 0 the logarithmic one.
    gamma : float
        In (0, 1).

    Notes
    -----
    Papernot and Steinke 2022, arXiv:2110.03620, Definition 1.
    """
    if eta == 0:
        return (1 / gamma - 1) / math.log(1 / gamma)
    return eta * (1 - gamma) / (gamma * -math.expm1(eta * math.log(gamma)))


def stopping(eta: float, trials: float) -> float:
    """The gamma at which the law's mean is ``trials``.

    Raises
    ------
    TrialsError
        If the mean is not above 1.
    """
    if not trials > 1:
        raise TrialsError(f"mean number of trials must be above 1, got {trials}")

    def excess(log_gamma: float) -> float:
        return math.log(mean_trials(eta, math.exp(log_gamma)) / trials)

    return math.exp(brentq(excess, -200.0, -1e-9, xtol=1e-13))


def tuned_renyi(orders: np.ndarray, rho: float, eta: float, gamma: float) -> np.ndarray:
    r"""Rényi divergences of the best of K trials, each of them rho-zCDP.

    .. math:: \rho\alpha + (1 + \eta)\min_{\beta}\Big((1 - 1/\beta)\rho\beta
              + \frac{\log(1/\gamma)}{\beta}\Big) + \frac{\log \mathbb{E}K}{\alpha - 1}

    The minimum over orders :math:`\beta` is :math:`2\sqrt{\rho\log(1/\gamma)} - \rho`,
    at :math:`\beta = \sqrt{\log(1/\gamma)/\rho}` where that is at least 1.

    Parameters
    ----------
    orders : ndarray
        Above 1.
    rho : float
        zCDP of one trial.
    eta, gamma : float
        The law of K.

    Notes
    -----
    Papernot and Steinke 2022, arXiv:2110.03620, Theorem 2, with the curve of zCDP.
    """
    beta = max(1.0, math.sqrt(math.log(1 / gamma) / rho))
    inner = (beta - 1) * rho + math.log(1 / gamma) / beta
    mean = mean_trials(eta, gamma)
    return rho * orders + (1 + eta) * inner + math.log(mean) / (orders - 1)


def tuned_epsilon(rho: float, delta: float, trials: float, eta: float = 1.0) -> float:
    """Epsilon of choosing the best of a random number of rho-zCDP trials.

    Parameters
    ----------
    rho : float
        zCDP of one trial.
    delta : float
        In (0, 1).
    trials : float
        Mean number of trials; the best of one trial is that trial.
    eta : float
        Shape of the law of the number; 1 is geometric.

    Notes
    -----
    Converted by Canonne, Kamath and Steinke 2020, arXiv:2004.00010, Proposition 12.
    """
    orders = 1 + np.geomspace(1e-3, 1e6, 2000)
    if trials == 1:
        divergence = rho * orders
    else:
        divergence = tuned_renyi(orders, rho, eta, stopping(eta, trials))
    cost = np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    return float(np.min(divergence + cost))


def gaussian_concentration(epsilon: float, delta: float) -> float:
    """The zCDP of the Gaussian release that costs exactly (epsilon, delta)."""
    mu = brentq(lambda x: gaussian_epsilon(x, delta) - epsilon, 1e-9, 1e3, xtol=1e-12)
    return float(mu**2 / 2)
