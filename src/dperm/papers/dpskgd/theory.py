"""Utility bounds of Maranjyan et al. 2024: Theorem 4.2 and every row of Table 1.

Numbers are taken at w0 = 0 and at the certified optimum. L_S is the largest norm of a
record's gradient on S: the derivative of the logistic loss is at most 1; least squares
has no bound, and the larger of a record's residuals at 0 and at w* stands in. An L2
term counts in the strong convexity and in the optimum, not in L and M, since it is not
released.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dperm.core.erm.constants import largest_derivatives, strong_convexity
from dperm.core.erm.optimum import Optimum
from dperm.core.erm.problem import Problem
from dperm.core.lanes.dp_skgd import Options, Sketch, lift

_SETS = 2000  # nice sets that are averaged over; all of them where there are fewer
SYMBOLS = {
    "uniform": ("‖L_B‖_{M⁻¹} R_M √b", "‖L_B‖²_{M⁻¹} M_max b / μ"),
    "importance": ("‖L_B‖_{M⁻¹} R_I √(Σ_i max_{A_i} M)",
                   "‖L_B‖²_{M⁻¹} Σ_i max_{A_i} M / μ"),
    "single uniform": ("‖L‖_{M⁻¹} R_M √d", "‖L‖²_{M⁻¹} M_max d / μ"),
    "single importance": ("‖L‖_{M⁻¹} R_I √(Tr M)", "‖L‖²_{M⁻¹} Tr M / μ"),
    "full": ("L √(Tr M⁻¹) R_M", "L² Tr M⁻¹ M_max / μ"),
    "nice": ("Σ_S R_{MP⁻¹}", "Σ_S² max(M/p) / μ"),
    "DP-CD": ("‖L‖_{M⁻¹} R_M √d", "‖L‖²_{M⁻¹} d / μ_M"),
    "DP-SGD, DP-SVRG": ("L √d R_I", "L² d / μ_I"),
}  # fmt: skip


@dataclass(frozen=True)
class Bound:
    """One row of Table 1 on one problem, without the factors common to all rows.

    Attributes
    ----------
    kind : str
        Key of ``SYMBOLS``.
    noise, radius : float
        Sigma_S and R_{M P^-1}; their product is the convex term.
    strong : float
        The strongly convex term; infinity where F is not strongly convex.
    """

    kind: str
    noise: float
    radius: float
    strong: float

    @property
    def convex(self) -> float:
        """The convex term, Sigma_S R."""
        return self.noise * self.radius


def rates(problem: Problem) -> tuple[float, float]:
    """What Table 1 leaves out: sqrt(log(1/delta)) / (n epsilon), and its square."""
    rate = math.sqrt(math.log(1 / problem.delta)) / (problem.n * problem.epsilon)
    return rate, rate**2


def sketched(
    problem: Problem, optimum: Optimum, options: Options, dominating: bool = False
) -> Bound:
    """Theorem 4.2 for a distribution of sets.

    Parameters
    ----------
    problem : Problem
    optimum : Optimum
    options : Options
        Of ``dp_skgd``.
    dominating : bool
        Take an M that dominates the Hessian on all coordinates together, which the
        proof needs (Assumption 3.6 in Lemma E.4), instead of the one that is valid on
        the sets, which the algorithm runs with.
    """
    sketch = Sketch(problem, options)
    M = sketch.smoothness
    if dominating:
        M = lift(problem, np.arange(problem.p)) * problem.smoothness
    chances, w = sketch.probability, optimum.w
    noise = math.sqrt(_noise(problem, optimum, sketch, M))
    radius = math.sqrt(float((M / chances * w * w).sum()))
    _, mu = strong_convexity(problem)
    top = float((M / chances).max())
    strong = noise**2 * top / mu if mu > 0 else math.inf
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


def theorem_convex(problem: Problem, bound: Bound) -> float:
    """The convex right-hand side with its constants, at the best K.

    R^2 / K + 12 K log(1/delta) Sigma^2 / (n epsilon)^2 is least at K = n epsilon R /
    (Sigma sqrt(12 log(1/delta))); the paper's K lacks the 12.
    """
    return 2 * math.sqrt(12) * bound.convex * rates(problem)[0]


def theorem_strong(
    problem: Problem, optimum: Optimum, options: Options, bound: Bound
) -> tuple[float, float]:
    """The strongly convex right-hand side with its constants, and its T.

    Appendix E.2: T = log2(gap / error). Where the error to be reached is above the gap
    at w = 0 that T is negative and the theorem does not apply; the right-hand side is
    then that error.
    """
    _, mu = strong_convexity(problem)
    if mu == 0:
        return math.inf, math.nan
    sketch = Sketch(problem, options)
    top = 1 + float((sketch.smoothness / sketch.probability).max()) / mu
    error = 24 * top * bound.noise**2 * rates(problem)[1]
    epochs = math.log2(gap_at_start(problem, optimum) / error)
    return (1 + max(0.0, epochs)) * error, epochs


def gap_at_start(problem: Problem, optimum: Optimum) -> float:
    """F(0) - F*: the excess of doing nothing."""
    return float(problem.objective(np.zeros(problem.p))[0]) - optimum.value


def lipschitz(problem: Problem, optimum: Optimum, members: np.ndarray) -> float:
    """L_S: the largest norm of a record's gradient on a set of coordinates."""
    columns = problem.rows[:, members]
    norms = np.sqrt(np.einsum("ij,ij->i", columns, columns))
    slopes, _ = largest_derivatives(problem, optimum.w)
    return float((norms * slopes).max())


def _noise(problem: Problem, optimum: Optimum, sketch: Sketch, M: np.ndarray) -> float:
    """Sigma_S^2 = E[L_S^2 sum_{j in S} 1 / (p_j M_j)]."""
    weights = 1.0 / (sketch.probability * M)
    return sum(
        chance * lipschitz(problem, optimum, members) ** 2 * weights[members].sum()
        for chance, members in _sets(sketch)
    )


def _sets(sketch: Sketch) -> Iterator[tuple[float, np.ndarray]]:
    """The sets and their chances; a sample where nice sampling has too many."""
    if not sketch.nice:
        yield from zip(sketch.q.tolist(), sketch.sets, strict=True)
        return
    p, size = sketch.problem.p, sketch.options.size
    count = math.comb(p, size)
    if count <= _SETS:
        for members in combinations(range(p), size):
            yield 1 / count, np.array(members)
        return
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(0)))
    for members in sketch.draw_nice(rng, _SETS):
        yield 1 / _SETS, members


def _kind(sketch: Sketch) -> str:
    if sketch.nice:
        return "nice"
    if len(sketch.sets) == 1:
        return "full"
    probabilities = sketch.options.probabilities
    return f"single {probabilities}" if sketch.single else probabilities
