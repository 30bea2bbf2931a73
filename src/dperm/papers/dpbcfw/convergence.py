"""Theorem 1's rate: how the gap of Algorithm 1 falls with t, beside its bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dperm.core.erm.constrained import minimum
from dperm.core.erm.sets import Ball
from dperm.core.privacy.mechanisms import streams
from dperm.papers.dpbcfw import theory
from dperm.papers.dpbcfw.instances import Instance
from dperm.present.intervals import power, student
from dperm.solvers.frank_wolfe import bcfw, silent

PRECISION, MOST = 1e-7, 20_000  # of f* on the ball, over f(0); steps at most
PASSES = 30  # iterations times p_min, at least
POINTS = 12  # iterations that a rate is read at, even in logarithms
Rows = list[dict[str, Any]]


def gaps(at: Instance, share: float, tau: int, nodes: int, T: int, seed: int) -> Rows:
    """Gaps f(x_t) - f* on the l1 ball and on the box, for each sampling.

    On the ball f* is certified, and what the certificate leaves open counts as gap; on
    the box it is 0 where the shortest interpolation lies within, else f(x_true) stands
    for it, which is no smaller. A sampling of small p_min takes ``PASSES`` / p_min
    iterations.

    Parameters
    ----------
    share : float
        eta over ||x_true||_1.
    tau, nodes : int
        tau-nice takes tau coordinates, each of the nodes tau of its own.
    T : int
        Iterations.
    """
    ball = Ball(1.0, share * at.radius)
    value, open_ = minimum(at.problem, ball, PRECISION, MOST, at.columns)
    sets = {"ball": (share * at.radius, value - open_), "box": (at.largest, _least(at))}
    named: dict[str, dict[str, Any]] = {
        "elementary": {"sampling": "elementary"},
        "tau-nice": {"sampling": "tau_nice", "tau": tau},
        "(K, tau)-distributed": {"sampling": "distributed", "tau": tau, "nodes": nodes},
        "uniform serial": {"sampling": "uniform_serial"},
    }
    rows: Rows = []
    for constraint, (radius, least) in sets.items():
        for name, keys in named.items():
            options = bcfw.Options(constraint=constraint, radius=radius, **keys)
            made = bcfw.Run(at.problem, streams(seed), options, silent(T), at.columns)
            count = max(T, round(PASSES / made.p_min))
            marks = np.geomspace(count / 10, count, POINTS).round().astype(int)
            for before, t in zip([0, *marks[:-1]], marks, strict=True):
                made.advance(int(t - before))
                rows.append(
                    {"panel": constraint, "sampling": name, "p_min": made.p_min,
                     "iteration": int(t), "gap": made.at.objective - least,
                     "start": at.start - least}
                )  # fmt: skip
    return rows


def _least(at: Instance) -> float:
    """The least f over the box, 0 if an interpolation fits into it."""
    A, y = at.problem.A.toarray(), -at.problem.offset
    x = np.linalg.lstsq(A, y)[0]
    fits = np.abs(x).max() <= at.largest and np.allclose(A @ x, y)
    return 0.0 if fits else at.truth


def exponents(swept: pd.DataFrame) -> pd.DataFrame:
    """Exponent of the gap in t over the last decade, a row a set and sampling.

    ``bound_exponent`` is that of Theorem 1's bound there, whatever the curvature;
    ``left`` the gap at the end over that of x = 0.
    """
    rows = []
    for (panel, sampling), part in swept.groupby(["panel", "sampling"], sort=False):
        runs = [run for _, run in part.groupby("replicate")]
        found = np.array([_exponent(run["iteration"], run["gap"]) for run in runs])
        ends = np.array([run["gap"].iloc[-1] / run["start"].iloc[-1] for run in runs])
        t, p_min = runs[0]["iteration"].to_numpy(), float(part["p_min"].iloc[0])
        bounds = np.array([theory.bound(int(each), p_min, 1.0, 0.0) for each in t])
        low, high = student(found)
        rows.append(
            {"panel": panel, "sampling": sampling, "p_min": p_min,
             "exponent": float(found.mean()), "exponent_low": low,
             "exponent_high": high, "bound_exponent": power(t, bounds)[0],
             "left": float(ends.mean()), "steps": int(t[-1])}
        )  # fmt: skip
    return pd.DataFrame(rows)


def _exponent(t: pd.Series, gap: pd.Series) -> float:
    """NaN where a gap is not positive."""
    if not (gap > 0).all():
        return float("nan")
    return power(t.to_numpy(), gap.to_numpy())[0]
