"""Least squares where smoothness comes in groups, and partitions of its coordinates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import Problem, build
from dperm.core.lanes import dp_skgd

# method of the sweep: options of dp_skgd, groups by name
METHODS: dict[str, dict[str, Any]] = {
    "single": {},
    "single IS": {"probabilities": "importance"},
    "aligned": {"groups": "aligned"},
    "aligned IS": {"groups": "aligned", "probabilities": "importance"},
    "misaligned": {"groups": "misaligned"},
    "misaligned IS": {"groups": "misaligned", "probabilities": "importance"},
    "random": {"groups": "random"},
    "random IS": {"groups": "random", "probabilities": "importance"},
    "full": {"blocks": 1},
}


def problem_of(
    n: int, p: int, groups: int, ratio: float, correlation: float, epsilon: float
) -> Problem:
    """Least squares with groups of equally smooth, correlated coordinates.

    Each coordinate contributes equally to the signal; the residual has variance 1. The
    data do not depend on the seed of the sweep.
    """
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([n, p, groups])))
    member = np.arange(p) * groups // p
    common = rng.standard_normal((n, groups))[:, member]
    own = rng.standard_normal((n, p))
    scale = np.sqrt(float(ratio) ** (member / max(1, groups - 1)))
    X = scale * (math.sqrt(correlation) * common + math.sqrt(1 - correlation) * own)
    w = rng.choice([-1.0, 1.0], p) / scale / math.sqrt(p)
    y = X @ w + rng.standard_normal(n)
    return build("groups", X, y, "least_squares", Penalty(), epsilon, 1 / n**2)


def least_value(problem: Problem) -> float:
    """Minimum of a least squares problem without penalty, by the normal equations."""
    w = np.linalg.lstsq(problem.A, -problem.offset)[0]
    return float(problem.objective(w)[0])


def options_of(method: str, p: int, groups: int, seed: int = 0) -> dp_skgd.Options:
    """Options of ``dp_skgd`` for a method of the sweep; a random partition has a seed.

    A random partition has equally large blocks; it is drawn without the data.
    """
    chosen: dict[str, Any] = dict(METHODS[method])
    if "groups" in chosen:
        whole = np.arange(p)
        labels = {
            "aligned": whole * groups // p,
            "misaligned": whole % groups,
            "random": np.random.default_rng(seed).permutation(whole % groups),
        }
        label = labels[chosen["groups"]]
        chosen["groups"] = [whole[label == g].tolist() for g in range(groups)]
    return dp_skgd.Options(**chosen)
