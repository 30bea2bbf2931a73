"""Utility bounds of Maranjyan et al. 2024: Theorem 4.2 and every row of Table 1.

Numbers are taken at w0 = 0 and at the certified optimum. L_S is the largest norm of a
record's gradient on S. The derivative of the logistic loss is at most 1. That of least
squares has no bound, and the larger of a record's residuals at 0 and at w* is used
instead. An L2 term counts in the strong convexity and in the optimum, not in L and M,
since it is not released.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dperm.config import config as configuration
from dperm.problems.optimum import Optimum
from dperm.problems.problem import Problem
from dperm.solvers.batched import dp_skgd
from dperm.solvers.batched.constants import (
    largest_derivatives,
    strong_convexity,
)
from dperm.solvers.batched.dp_skgd import Options, SketchLaw
from dperm.solvers.registry import make_options

SYMBOLS = {
    "uniform": ("‖L_B‖_{M⁻¹} R_M √b", "‖L_B‖²_{M⁻¹} M_max b / μ"),
    "importance": (
        "‖L_B‖_{M⁻¹} R_I √(Σ_i max_{A_i} M)",
        "‖L_B‖²_{M⁻¹} Σ_i max_{A_i} M / μ",
    ),
    "single uniform": ("‖L‖_{M⁻¹} R_M √d", "‖L‖²_{M⁻¹} M_max d / μ"),
    "single importance": ("‖L‖_{M⁻¹} R_I √(Tr M)", "‖L‖²_{M⁻¹} Tr M / μ"),
    "full": ("L √(Tr M⁻¹) R_M", "L² Tr M⁻¹ M_max / μ"),
    "DP-CD": ("‖L‖_{M⁻¹} R_M √d", "‖L‖²_{M⁻¹} d / μ_M"),
    "DP-SGD, DP-SVRG": ("L √d R_I", "L² d / μ_I"),
}


@dataclass(frozen=True)
class TableRow:
    """One row of Table 1 on one problem, without the factors common to all rows."""

    name: str  #: key of ``SYMBOLS``
    #: noise, radius: Sigma_S and R_{M P^-1}; their product is the convex term
    noise: float
    radius: float
    strong: float  #: the strongly convex term; infinity where F is not strongly convex

    @property
    def convex(self) -> float:
        """The convex term, Sigma_S R."""
        return self.noise * self.radius


def sketched(
    problem: Problem,
    optimum: Optimum,
    options: Options,
    dominating: bool = False,
) -> TableRow:
    """Theorem 4.2 for a distribution of sets.

    Parameters
    ----------
    options : Options
        Of ``dp_skgd``.
    dominating : bool
        Take an M that dominates the Hessian on all coordinates together, which the
        proof needs (Assumption 3.6 in Lemma E.4), instead of the one that is valid on
        the sets, which the algorithm runs with.
    """
    sketch = SketchLaw(problem, options)
    M = sketch.smoothness
    chances = sketch.probability
    w = optimum.w
    if dominating:
        M = dp_skgd.lift(problem, np.arange(problem.p)) * problem.smoothness
    L = [lipschitz(problem, optimum, members) for members in sketch.sets]
    noise = math.sqrt(noise_size(sketch, M, L))
    radius = weighted(w, M / chances)
    _, mu = strong_convexity(problem)
    strong = noise**2 * float((M / chances).max()) / mu if mu > 0 else math.inf
    return TableRow(_kind(sketch), noise, radius, strong)


def noise_size(sketch: SketchLaw, M: np.ndarray, L: Iterable[float]) -> float:
    """Sigma_S^2 = E[L_S^2 sum_{j in S} 1 / (p_j M_j)], ``L`` the L_S of every set."""
    weights = 1.0 / (sketch.probability * M)
    sets = zip(sketch.q.tolist(), L, sketch.sets, strict=True)
    return sum(float(q * size**2 * weights[S].sum()) for q, size, S in sets)


def weighted(w: np.ndarray, M: np.ndarray) -> float:
    """The norm of w that weighs its squares by M."""
    return math.sqrt(float((M * w**2).sum()))


def coordinate_descent(problem: Problem, optimum: Optimum) -> TableRow:
    """The row of DP-CD, whose strong convexity is measured in the norm of M."""
    single = sketched(problem, optimum, Options())
    mu, _ = strong_convexity(problem)
    strong = single.noise**2 * problem.p / mu if mu > 0 else math.inf
    return TableRow("DP-CD", single.noise, single.radius, strong)


def stochastic_gradient(problem: Problem, optimum: Optimum) -> TableRow:
    """The row of DP-SGD and DP-SVRG."""
    L = lipschitz(problem, optimum, np.arange(problem.p))
    _, mu = strong_convexity(problem)
    strong = L**2 * problem.p / mu if mu > 0 else math.inf
    radius = float(np.linalg.norm(optimum.w))
    return TableRow(
        "DP-SGD, DP-SVRG", L * math.sqrt(problem.p), radius, strong
    )


def lipschitz(
    problem: Problem, optimum: Optimum, members: np.ndarray
) -> float:
    """L_S: the largest norm of a record's gradient on a set of coordinates."""
    columns = problem.rows[:, members]
    norms = np.sqrt(np.einsum("ij,ij->i", columns, columns))
    slopes, _ = largest_derivatives(problem, optimum.w)
    return float((norms * slopes).max())


def _kind(sketch: SketchLaw) -> str:
    if len(sketch.sets) == 1:
        return "full"
    probabilities = sketch.options.probabilities
    return f"single {probabilities}" if sketch.single else probabilities


def bounds(
    name: str, problem: Problem, optimum: Optimum
) -> tuple[TableRow, TableRow]:
    """The row of Table 1 for a solver, and the same with a dominating M."""
    options = sketching(name)
    if options:
        safe = sketched(problem, optimum, options, dominating=True)
        return sketched(problem, optimum, options), safe
    row = coordinate_descent if name == "dp_cd" else stochastic_gradient
    bound = row(problem, optimum)
    return bound, bound


@functools.cache
def sketching(name: str) -> Options | None:
    """Options by which a solver draws coordinates; None without a sketch."""
    spec = configuration.read("solver", name)
    if spec.algorithm != "dp_skgd":
        return None
    return make_options(dp_skgd, spec.options)
