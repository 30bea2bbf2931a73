"""What sketching does to a partial gradient: Section IV and Discussion 4.

The estimate of a product a_i . A x / n by sketched features J a_j + xi_j is off by
a_i . (J^T J - I) A x / n, the distortion, and by (J a_i) . sum_j x_j xi_j / n, the
noise. Both are measured apart, as their largest size over the features.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from dperm.core.privacy.mechanisms import gaussian, streams
from dperm.papers.dpbcfw.instances import sparse_design
from dperm.present.intervals import power, student
from dperm.solvers.distributed.sketch import Sketch

QUANTITIES = {  # column: (what it is measured along, the paper's exponent)
    "distortion": ("m", -0.5),
    "sketched": ("n", -1.0),
    "sketched_noise": ("n", -1.0),
    "plain_noise": ("n", -0.5),
}


def printed_scale(sketch: Sketch, epsilon: float, nodes: int, count: int) -> float:
    """Equation 17's pi for half the budget, delta = 1/n."""
    logs = math.sqrt(2 * (math.log(sketch.n) + epsilon / 2))
    scale = sketch.leading_singular_value * math.sqrt(nodes * count) * logs
    return scale / (sketch.n * epsilon / 2)


def table_length(n: int, count: int, theta: float) -> int:
    """Table IV's m, (1 / theta^2) log(2 T / delta) with delta = 1/n; at most n."""
    return min(n, math.ceil(math.log(2 * count * n) / theta**2))


def errors(
    seed: int, n: int, m: int, d: int, nonzeros: int, active: int, epsilon: float,
    nodes: int, count: int,
) -> dict[str, float]:  # fmt: skip
    """Largest errors of a_i . A x / n over the d features, by their causes.

    Parameters
    ----------
    m : int
        Length of a sketched feature.
    nonzeros : int
        Mean number of a feature's, whatever n is (Section IV-A).
    active : int
        Features of x, all with the same weight; ||x||_1 = 1.
    nodes, count : int
        K and T of equation 17.
    """
    rng = np.random.default_rng(seed)
    A = sparse_design(rng, n, d, nonzeros / n)
    x = np.zeros(d)
    chosen = rng.choice(d, active, replace=False)
    x[chosen] = rng.choice([-1.0, 1.0], active) / active
    sketch, plain = Sketch(n, m, seed), Sketch(n, n, seed)
    product = A @ x
    q = sketch.feature(np.arange(n), product)
    distortion = A.T @ (sketch.predictions(q) - product) / n
    noisy = [
        _noise(A, each, x, seed, epsilon, nodes, count) for each in (sketch, plain)
    ]
    return {
        "distortion": float(np.abs(distortion).max()),
        "sketched_noise": float(np.abs(noisy[0]).max()),
        "plain_noise": float(np.abs(noisy[1]).max()),
        "sketched": float(np.abs(distortion + noisy[0]).max()),
    }


def _noise(
    A: Any, sketch: Sketch, x: np.ndarray, seed: int, epsilon: float, nodes: int,
    count: int,
) -> np.ndarray:  # fmt: skip
    """What the features' noise adds to each partial gradient, shape (d,)."""
    scale = printed_scale(sketch, epsilon, nodes, count)
    drawn = gaussian(streams(seed).noise, (int(np.count_nonzero(x)), sketch.m))
    added = scale * (x[x != 0] @ drawn)
    found: np.ndarray = A.T @ sketch.predictions(added) / sketch.n
    return found


def exponents(swept: pd.DataFrame) -> pd.DataFrame:
    """Exponents in m at the largest n, and in n at Table IV's m, with intervals.

    ``ratio`` is the error at the largest size over what it would be without a sketch;
    one draw of the data is one point of the mean.
    """
    rows = []
    largest = swept[swept["n"] == swept["n"].max()]
    for quantity, (along, paper) in QUANTITIES.items():
        part = largest[~largest["table"]] if along == "m" else swept[swept["table"]]
        found = np.array([
            power(run[along].to_numpy(), run[quantity].to_numpy())[0]
            for _, run in part.groupby("replicate")
        ])  # fmt: skip
        low, high = student(found)
        end = part[part[along] == part[along].max()]
        ratios = (end[quantity] / end["plain_noise"]).to_numpy()
        ratio_low, ratio_high = student(ratios)
        rows.append(
            {"quantity": quantity, "along": along, "paper": paper,
             "exponent": float(found.mean()), "exponent_low": low,
             "exponent_high": high, "ratio": float(ratios.mean()),
             "ratio_low": ratio_low, "ratio_high": ratio_high}
        )  # fmt: skip
    return pd.DataFrame(rows)
