"""Numbers that Lou and Cheung 2020 give as formulas: curvatures, T, bounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dperm.core.erm.columns import Columns, edges
from dperm.core.privacy.mechanisms import streams
from dperm.papers.dpbcfw.instances import Instance
from dperm.papers.dpbcfw.runs import Setting, options_of
from dperm.solvers.frank_wolfe import bcfw, silent
from dperm.solvers.frank_wolfe.dp_bcfw_noise import sketch_of

_POWER_STEPS = 50


def pair_maxima(columns: Columns, nodes: int) -> tuple[float, float, float]:
    """Max ||a_i||^2, and max |a_i . a_j| over pairs within and across nodes.

    With one node the last is 0.
    """
    starts = edges(columns.p, nodes)
    owner = np.repeat(np.arange(nodes), np.diff(starts))
    within = across = 0.0
    for j in range(columns.p):
        row = np.abs(columns.gram(j))
        row[j] = 0.0
        same = owner == owner[j]
        within = max(within, float(row[same].max(initial=0.0)))
        across = max(across, float(row[~same].max(initial=0.0)))
    return float(columns.square_norms.max()), within, across


def curvatures(
    columns: Columns, width: float, tau: int, nodes: int
) -> dict[str, dict[str, float]]:
    """Bounds on curvatures of least squares over a box of that width.

    Propositions 3 and 4 against the constants of the case-by-case analyses: the global
    curvature by the top eigenvalue, the product curvature sum_i C_f^i, the expected set
    curvature of tau-nice sampling, for which Proposition 3 has the same bound. All are
    for f = ||Ax - y||^2 / (2n), so A is divided by sqrt(n).
    """
    scale = width**2 / columns.n
    mu1, mu2, mu3 = (scale * value for value in pair_maxima(columns, nodes))
    either = max(mu2, mu3)
    p = columns.p
    total = scale * float(columns.square_norms.sum())
    everything = scale * p * top_eigenvalue(columns)
    nice = tau * mu1 + tau * (tau - 1) * either
    distributed = nodes * tau * mu1 + nodes * tau * (tau - 1) * mu2
    distributed += nodes * (nodes - 1) * tau**2 * mu3
    return {
        "elementary": {"existing": everything, "expected": everything},
        "uniform serial": {"existing": total, "expected": total / p},
        "tau-nice": {"existing": nice, "expected": nice},
        "(K, tau)-distributed": {"existing": math.nan, "expected": distributed},
    }


def top_eigenvalue(columns: Columns) -> float:
    """The largest eigenvalue of A^T A by power steps."""
    x, value = np.ones(columns.p), 1.0
    for _ in range(_POWER_STEPS):
        x = columns.products(columns.matrix @ x)
        value = float(np.linalg.norm(x))
        x /= max(value, 1e-300)
    return value


def table3(
    at: Instance, tau: int, nodes: int, count: int, seed: int
) -> list[dict[str, Any]]:
    """Table III on one instance, over the box: p_min, curvature, bounds, gap reached.

    ``published_bound`` puts the printed p_min into Theorem 1.
    """
    p, width = at.problem.p, 2 * at.largest
    found = curvatures(at.columns, width, tau, nodes)
    samplings = {
        "elementary": ("elementary", 1.0),
        "uniform serial": ("uniform_serial", 1 / p),
        "tau-nice": ("tau_nice", tau / p),
        "(K, tau)-distributed": ("distributed", (nodes * tau / p) ** 2),
    }
    rows = []
    for name, (sampling, published) in samplings.items():
        options = bcfw.Options(sampling, tau, nodes, "box", at.largest)
        made = bcfw.Run(at.problem, streams(seed), options, silent(count), at.columns)
        made.advance(count)
        curvature = found[name]
        rows.append(
            {
                "sampling": name, "p_min": made.p_min, "published_p_min": published,
                "existing_curvature": curvature["existing"],
                "expected_curvature": curvature["expected"],
                "existing_bound": _existing_bound(
                    name, count, p, tau, at.start, curvature["existing"]),
                "bound": bound(count, made.p_min, at.start, curvature["expected"]),
                "published_bound": bound(
                    count, published, at.start, curvature["expected"]),
                "gap": made.at.objective - at.truth, "start": at.start - at.truth,
                "iteration": count,
            }
        )  # fmt: skip
    return rows


def bound(t: int, p_min: float, start: float, curvature: float) -> float:
    """Theorem 1: 2 (h_0 + C / p_min) / (p_min t + 2); h_0 is at most f(0)."""
    return 2 * (start + curvature / p_min) / (p_min * t + 2)


def _existing_bound(
    name: str, t: int, d: int, tau: int, start: float, curvature: float
) -> float:
    """Table III, the column of existing results, exact updates."""
    if name == "elementary":
        return 2 * curvature / (t + 2)
    if name == "uniform serial":
        return 2 * d * (start + curvature) / (t + 2 * d)
    if name == "tau-nice":
        return 2 * d * (start + curvature) / (tau**2 * t + 2 * d)
    return math.nan


def printed_column(
    p_min: float, t: int, d: int, start: float, curvature: float
) -> float:
    """Table III's own column, (2 d) (s h_0 + C) / (s^2 t + 2 d s) with s = p_min d.

    Theorem 1 with the same p_min has d C in the place of C. The row of p_min = 1 is the
    theorem's.
    """
    if p_min == 1.0:
        return bound(t, p_min, start, curvature)
    s = p_min * d
    return 2 * d * (s * start + curvature) / (s * s * t + 2 * d * s)


def iterations(at: Instance, setting: Setting, theta: float) -> float:
    """T of Theorem 4, (C n epsilon / (C_g + C_l))^(2/3), constants as in Table IV.

    C is the curvature over the l1 ball (Proposition 4's is that of a box), nnz(a) the
    mean number of non-zeros of a feature, G the gradient's sup norm.
    """
    options = options_of(at, setting)
    n, K, eta = at.problem.n, setting.nodes, options.radius
    delta, nonzeros = 1.0 / n, at.problem.A.nnz / at.problem.p
    J = sketch_of(n, options)
    root = math.sqrt(math.log(1 / delta) + setting.epsilon)
    sketching = K * eta * theta * nonzeros
    sketching += K**1.5 * math.sqrt(nonzeros) * J.leading_singular_value**2
    G = at.published_lipschitz
    choosing = 2 * G * eta * math.sqrt(32 * math.log(1 / (delta / 2)))
    curvature = _ball_curvature(at, eta, K)
    return float(
        (curvature * n * setting.epsilon / (sketching * root + choosing)) ** (2 / 3)
    )


def _ball_curvature(at: Instance, eta: float, K: int) -> float:
    """Curvature of least squares over the l1 ball: max ||A (s - x)||^2 / n.

    Attained between vertices: at most (2 eta)^2 max ||a_j||^2 / n. (Proposition 4's sum
    over d coordinates is that of the box, of which the ball is a small part.)
    """
    return (2 * eta) ** 2 * float(at.columns.square_norms.max()) / at.problem.n
