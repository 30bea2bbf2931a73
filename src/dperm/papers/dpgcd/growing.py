"""Problems on which errors grow with p or with the sparsity alone.

Their solutions are sparse with a known support, the regime of Section 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import sparse

from dperm.plotting.tables import where
from dperm.problems.penalties import Penalty
from dperm.problems.problem import Problem, build

KNOBS = ("p", "n", "tau", "imbalance")
PLAIN = {"p": 1000, "n": 1600, "tau": 4, "imbalance": 0.0}
LEARNT = 0.9  # of the excess of w = 0; above it nothing was learnt
NOISE = 0.1  # standard deviation of the labels' noise, ||w_true|| being 1
THRESHOLD = 0.3  # weight of the L1 norm, relative to a coefficient


@dataclass(frozen=True)
class Instance:
    """Parameters from which a problem is drawn."""

    #: p, n: features and records
    p: int
    n: int
    tau: int  #: coefficients that are not zero, all of the same size 1 / sqrt(tau)
    #: standard deviation of log sqrt(M_j), which are normal; the coefficients are
    #: divided by sqrt(M_j), so that only the scales of the features change
    imbalance: float = 0.0


def draw(instance: Instance, seed: int, epsilon: float) -> Problem:
    """A LASSO with independent normal features.

    The penalty's weight is 0.3 of a coefficient, so that the solution has the drawn
    support where n is large against tau log p.
    """
    rng = np.random.default_rng(seed)
    X = np.empty((instance.n, instance.p), order="F")
    for column in X.T:
        rng.standard_normal(instance.n, out=column)
        column -= column.mean()
        column /= column.std()
    true = np.zeros(instance.p)
    places = rng.choice(instance.p, instance.tau, replace=False)
    true[places] = rng.choice([-1.0, 1.0], instance.tau) / math.sqrt(
        instance.tau
    )
    y = X[:, places] @ true[places] + NOISE * rng.standard_normal(instance.n)
    if instance.imbalance:
        X *= rng.lognormal(0.0, instance.imbalance, instance.p)
    weight = Penalty(l1=THRESHOLD / math.sqrt(instance.tau))
    return build(
        "sparse", X, y, "least_squares", weight, epsilon, 1.0 / instance.n**2
    )


def decaying(p: int, tau: int, epsilon: float, delta: float) -> Problem:
    """A problem of which only p is free in Theorem 4.4: f(w) = ||w - w*||^2 / 2.

    Record j has only feature j, with value sqrt(p), so that all M_j are 1; w*_j is
    1 / j up to tau and zero beyond. Coordinates do not interact, and a step leaves only
    noise at its coordinate: error beyond noise is at coordinates never selected.
    """
    true = np.zeros(p)
    true[:tau] = 1 / np.arange(1, tau + 1)
    X = sparse.diags_array(np.full(p, math.sqrt(p)), format="csc")
    y = math.sqrt(p) * true
    return build("decaying", X, y, "least_squares", Penalty(), epsilon, delta)


def along(swept: pd.DataFrame, knob: str) -> pd.DataFrame:
    """Rows of ``growth`` that differ from ``PLAIN`` in p or tau (for p, also in n)."""
    free = {knob, "n"} if knob == "p" else {knob}
    return where(
        swept, **{key: PLAIN[key] for key in PLAIN if key not in free}
    )
