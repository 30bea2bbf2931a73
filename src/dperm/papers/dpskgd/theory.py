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
from dataclasses import dataclass
from typing import Any

import numpy as np

from dperm.core.calibrations import PAPER, STRICT
from dperm.core.erm.optimum import Optimum
from dperm.core.erm.problem import Problem
from dperm.core.experiment import config as configuration
from dperm.core.experiment.results import Result
from dperm.core.privacy.calibration import calibrate
from dperm.core.privacy.ledger import LIFTS, SMOOTHNESS, Gaussian, Ledger, united
from dperm.core.privacy.strict import gaussian_epsilon, gaussian_renyi_epsilon
from dperm.core.solvers import make_options
from dperm.present.tables import Rows
from dperm.solvers.lanes import dp_skgd
from dperm.solvers.lanes.constants import largest_derivatives, strong_convexity
from dperm.solvers.lanes.dp_skgd import Options, Sketch

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
class Bound:
    """One row of Table 1 on one problem, without the factors common to all rows."""

    kind: str  #: key of ``SYMBOLS``
    #: noise, radius: Sigma_S and R_{M P^-1}; their product is the convex term
    noise: float
    radius: float
    strong: float  #: the strongly convex term; infinity where F is not strongly convex

    @property
    def convex(self) -> float:
        """The convex term, Sigma_S R."""
        return self.noise * self.radius


def sketched(
    problem: Problem, optimum: Optimum, options: Options, dominating: bool = False
) -> Bound:
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
    sketch = Sketch(problem, options)
    M, chances, w = sketch.smoothness, sketch.probability, optimum.w
    if dominating:
        M = dp_skgd.lift(problem, np.arange(problem.p)) * problem.smoothness
    weights = 1.0 / (chances * M)  # Sigma_S^2 = E[L_S^2 sum_{j in S} 1 / (p_j M_j)]
    size = sum(
        chance * lipschitz(problem, optimum, members) ** 2 * weights[members].sum()
        for chance, members in zip(sketch.q.tolist(), sketch.sets, strict=True)
    )
    noise, radius = math.sqrt(size), math.sqrt(float((M / chances * w * w).sum()))
    _, mu = strong_convexity(problem)
    strong = noise**2 * float((M / chances).max()) / mu if mu > 0 else math.inf
    return Bound(_kind(sketch), noise, radius, strong)


def coordinate_descent(problem: Problem, optimum: Optimum) -> Bound:
    """The row of DP-CD, whose strong convexity is measured in the norm of M."""
    single = sketched(problem, optimum, Options())
    mu, _ = strong_convexity(problem)
    strong = single.noise**2 * problem.p / mu if mu > 0 else math.inf
    return Bound("DP-CD", single.noise, single.radius, strong)


def stochastic_gradient(problem: Problem, optimum: Optimum) -> Bound:
    """The row of DP-SGD and DP-SVRG."""
    L = lipschitz(problem, optimum, np.arange(problem.p))
    _, mu = strong_convexity(problem)
    strong = L**2 * problem.p / mu if mu > 0 else math.inf
    radius = float(np.linalg.norm(optimum.w))
    return Bound("DP-SGD, DP-SVRG", L * math.sqrt(problem.p), radius, strong)


def lipschitz(problem: Problem, optimum: Optimum, members: np.ndarray) -> float:
    """L_S: the largest norm of a record's gradient on a set of coordinates."""
    columns = problem.rows[:, members]
    norms = np.sqrt(np.einsum("ij,ij->i", columns, columns))
    slopes, _ = largest_derivatives(problem, optimum.w)
    return float((norms * slopes).max())


def _kind(sketch: Sketch) -> str:
    if len(sketch.sets) == 1:
        return "full"
    probabilities = sketch.options.probabilities
    return f"single {probabilities}" if sketch.single else probabilities


# --- for each solver that is run, with the measured errors ----------------------------


@functools.cache
def sketching(name: str) -> Options | None:
    """Options by which a solver draws coordinates; None without a sketch."""
    spec = configuration.read("solver", name)
    if spec.algorithm != "dp_skgd":
        return None
    return make_options(dp_skgd, spec.options)


def table1(loaded: tuple[Problem, Optimum], results: list[Result]) -> Rows:
    """Table 1 on a problem: symbols and numbers, one row per solver."""
    rows: Rows = []
    for result in results:
        options = sketching(result.solver)
        if options:
            bound = sketched(*loaded, options)
            safe = sketched(*loaded, options, dominating=True)
        elif result.solver == "dp_cd":
            bound = safe = coordinate_descent(*loaded)
        else:
            bound = safe = stochastic_gradient(*loaded)
        convex, strong = SYMBOLS[bound.kind]
        row: dict[str, Any] = {"problem": result.problem, "algorithm": result.label}
        row |= {"row": bound.kind, "convex_symbol": convex, "convex": bound.convex}
        row |= {"convex_dominating": safe.convex}
        row |= {"strongly_convex_symbol": strong, "strongly_convex": bound.strong}
        rows.append(row | {"noise": bound.noise, "radius": bound.radius})
    return rows


# --- the noise of Theorem 4.1, and the noise that its epsilon needs -------------------


def release_noise(epsilon: float, delta: float, count: int, calibration: str) -> float:
    """Noise multiplier of ``count`` Gaussian releases of sensitivity 2 C_S / n."""

    def ledger(multiplier: float) -> Ledger:
        return Ledger((Gaussian(1.0, multiplier, count, "2 C_S / n", "Theorem 4.1"),))

    return calibrate(ledger, epsilon, delta, calibration).noise_multiplier


def noise_costs(problem: Problem) -> Rows:
    """Noise by Theorem 4.1, by its Renyi curve and exactly; true cost of the first."""
    epsilon, delta, rows = problem.epsilon, problem.delta, list[dict[str, Any]]()
    for count in (1, 10, 100, 1000):
        printed = math.sqrt(3 * count * math.log(1 / delta)) / epsilon
        mu = math.sqrt(count) / printed
        exact = gaussian_epsilon(mu, delta)
        row: dict[str, Any] = {"problem": problem.name, "epsilon": epsilon}
        row |= {"releases": count, "theorem": printed}
        for calibration in (PAPER, STRICT):
            row[calibration] = release_noise(epsilon, delta, count, calibration)
        row["renyi_epsilon"] = gaussian_renyi_epsilon(mu**2 / 2, delta)
        row["true_epsilon"] = exact
        row["given"] = ", ".join(united(problem.given, (SMOOTHNESS, LIFTS)))
        rows.append(row)
    return rows
