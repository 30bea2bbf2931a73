"""Sweeps of Maranjyan et al. 2024 (DP-SkGD): Section 4.3 as experiments."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.linalg import hadamard

from dperm import schema
from dperm.erm.penalties import Penalty
from dperm.erm.problem import Problem, build
from dperm.privacy.calibration import calibrate
from dperm.privacy.ledger import Gaussian, Ledger
from dperm.privacy.mechanisms import Streams, gaussian, streams
from dperm.solvers.lanes import Lanes, dp_sgd, dp_skgd

# --- (c) the regimes of Section 4.3 ---------------------------------------------------

# method: how S is drawn, and whether all coordinates share the step 1 / M_max
REGIMES = {
    "flat": ("DP-SGD", "DP-SkGD full"),  # 4.3.1: one small M_j, the rest solved
    "steep": ("DP-CD", "DP-SkGD single IS"),  # 4.3.2: one large M_j, which matters
}

# Lengths of step over 1 / M: beyond 1 a step overshoots, at 2 it diverges.
STEPS = (*np.geomspace(1e-3, 1.0, 19), 1.2, 1.5, 1.8)
LONGEST = 1e7  # steps


@dataclass(frozen=True)
class Quadratic:
    """f(w) = sum_j M_j (w_j - w*_j)^2 / 2, as a mean over +-1 designs.

    Row i of the design is sqrt(M_j) H_ij with a Hadamard matrix H, so that X^T X / n is
    diag(M) exactly and diag(M) dominates the Hessian as Assumption 3.6 demands. All
    records have equally large gradients.
    """

    M: np.ndarray
    optimum: np.ndarray

    @property
    def lipschitz(self) -> float:
        """The largest norm of a record's gradient at 0, to which it is clipped."""
        residual = float((np.sqrt(self.M) * np.abs(self.optimum)).sum())
        return math.sqrt(self.M.sum()) * residual

    @property
    def start(self) -> float:
        """f(0), the excess before the first step."""
        return 0.5 * float((self.M * self.optimum**2).sum())

    def problem(self, rows: int) -> Problem:
        """It as a least squares problem on so many records, a power of two > p."""
        X = hadamard(rows)[:, 1 : len(self.M) + 1] * np.sqrt(self.M)
        return build("quadratic", X, X @ self.optimum, "least_squares", Penalty())


@dataclass(frozen=True)
class Method:
    """A sampling on a quadratic: q_j, the steps 1 / m_j, and the share C_S / C."""

    q: np.ndarray
    inverse_step: np.ndarray
    share: np.ndarray
    solver: Any
    options: Any


def quadratic(regime: str, d: int, ratio: float, others: float) -> Quadratic:
    """The instance of a regime.

    ``flat``: M_1 = 1 and M_j = ratio; ``steep``: M_1 = ratio and M_j = 1. w*_1 = 1, and
    the other coordinates start at a distance ``others`` from the optimum.
    """
    M = np.full(d, ratio if regime == "flat" else 1.0)
    M[0] = 1.0 if regime == "flat" else ratio
    w = np.full(d, others)
    w[0] = 1.0
    return Quadratic(M, w)


def method_of(name: str, f: Quadratic, rows: int) -> Method:
    """A method of the comparison by its name."""
    M, ones = f.M, np.ones(len(f.M))
    if name == "DP-SGD":  # given the whole batch, where it is noisy gradient descent
        return Method(ones, M.max() * ones, ones, dp_sgd, dp_sgd.Options(batch=rows))
    if name == "DP-SkGD full":
        return Method(ones, M, ones, dp_skgd, dp_skgd.Options(blocks=1))
    kind = "importance" if name.endswith("IS") else "uniform"
    q = M / M.sum() if kind == "importance" else ones / len(M)
    options = dp_skgd.Options(probabilities=kind)
    return Method(q, M, np.sqrt(M / M.sum()), dp_skgd, options)


def regimes(
    config: schema.Config,
    point: dict[str, Any],
    seed: int,
    ratio: float,
    others: float,
    epsilon: float,
    draws: int,
    solver_steps: int,
    solver_dimension: int,
) -> list[dict[str, Any]]:
    """Excess of the two methods of a regime, each at its best step and length.

    Clipping at the Lipschitz bound leaves the dynamics linear, so that the iterate
    after K steps has a known law (Gaussian, given how often each coordinate was drawn).
    The step and K with the least EXPECTED excess are found from it, and the excess is
    drawn from it, ``draws`` times. Where K and d are at most ``solver_steps`` and
    ``solver_dimension`` the solver itself runs too, once, with clipping, on a design of
    few records, each standing for n / rows of them.
    """
    d, n = int(point["d"]), float(point["n"])
    f = quadratic(point["regime"], d, ratio, others)
    unit = one_release(epsilon, 1 / n**2)
    rows = []
    for index, name in enumerate(REGIMES[point["regime"]]):
        design = 1 << d.bit_length()
        method = method_of(name, f, design)
        step, count, expected = tuned(f, method, unit, n)
        noise = unit * math.sqrt(count)
        drawn = streams(seed + index)
        common = {"algorithm": name, "step": step, "steps": count, "expected": expected,
                  "start": f.start, **terms(f, method, name)}  # fmt: skip
        for draw in range(draws):
            law = drawn_excess(f, method, step, count, noise, n, drawn)
            rows.append({**common, "source": "law", "draw": draw, "excess": law})
        if count <= solver_steps and d <= solver_dimension:
            ran = run_solver(f, method, step, count, noise, n, design, drawn)
            rows.append({**common, "source": "solver", "draw": 0, "excess": ran})
    return rows


def one_release(epsilon: float, delta: float) -> float:
    """Exact noise multiplier of one Gaussian release; k of them need sqrt(k) times."""

    def ledger(multiplier: float) -> Ledger:
        return Ledger((Gaussian(1.0, multiplier, 1, "2 C_S / n", "Theorem 4.1"),))

    return calibrate(ledger, epsilon, delta, "strict").noise_multiplier


def tuned(
    f: Quadratic, method: Method, unit: float, n: float
) -> tuple[float, int, float]:
    """The step, number of steps and expected excess of the best run, in expectation.

    Short steps and long runs approach a limit (the noise of K releases is sqrt(K)
    times that of one), so the shortest run within 2 % of the least excess is taken; it
    lies inside the grid.
    """
    counts = np.unique(np.geomspace(1, LONGEST, 120).astype(np.int64))
    found = [
        (expected_excess(f, method, step, int(count), unit * math.sqrt(count), n),
         int(count), float(step))
        for step, count in product(STEPS, counts)
    ]  # fmt: skip
    least = min(found)[0]
    count, expected, step = min(
        (count, expected, step) for expected, count, step in found
        if expected <= 1.02 * least
    )  # fmt: skip
    return step, count, expected


def _noise_move(
    f: Quadratic, method: Method, step: float, noise: float, n: float
) -> np.ndarray:
    """Standard deviation of the noise in one move of each coordinate, shape (p,)."""
    scale = noise * 2 * f.lipschitz * method.share / n
    return step / method.inverse_step * scale


def expected_excess(
    f: Quadratic, method: Method, step: float, count: int, noise: float, n: float
) -> float:
    """E[f(w_K)], by E[a^N] = (1 - q + q a)^K for N of K draws."""
    kept = (1 - step * f.M / method.inverse_step) ** 2
    bias = (1 - method.q + method.q * kept) ** count
    variance = _noise_move(f, method, step, noise, n) ** 2
    growth = np.where(kept < 1, (1 - bias) / (1 - np.minimum(kept, 1 - 1e-16)), count)
    return 0.5 * float((f.M * (bias * f.optimum**2 + variance * growth)).sum())


def drawn_excess(
    f: Quadratic,
    method: Method,
    step: float,
    count: int,
    noise: float,
    n: float,
    drawn: Streams,
) -> float:
    """f(w_K) for w_K drawn from its law."""
    every = method.q.min() == 1
    visits = (
        np.full(len(f.M), count)
        if every
        else drawn.sampling.multinomial(count, method.q)
    )
    kept = 1 - step * f.M / method.inverse_step
    bias = kept**visits
    growth = (1 - bias**2) / (1 - kept**2)
    spread = _noise_move(f, method, step, noise, n) * np.sqrt(growth)
    error = -bias * f.optimum + spread * gaussian(drawn.noise, len(f.M))
    return 0.5 * float((f.M * error**2).sum())


def run_solver(
    f: Quadratic,
    method: Method,
    step: float,
    count: int,
    noise: float,
    n: float,
    rows: int,
    drawn: Streams,
) -> float:
    """Excess of the solver's own run, records standing for n / rows of them."""
    problem = f.problem(rows)
    lanes = Lanes(np.full(1, step), np.full(1, f.lipschitz), noise * rows / n)
    run = method.solver.Run(problem, lanes, drawn, method.options, total=count)
    run.advance(count)
    return float(problem.objective(run.weights)[0])


def terms(f: Quadratic, method: Method, name: str) -> dict[str, float]:
    """The terms of Table 1 for a method on a quadratic, mu = min M."""
    M, w, L = f.M, f.optimum, f.lipschitz
    mu = float(M.min())
    if name == "DP-SGD":
        noise, radius, strong = L**2 * len(M), w**2, L**2 * len(M) / mu
        return _terms(noise, radius, strong)
    noise = L**2 * float((method.share**2 / M).sum())
    radius = M / method.q * w**2
    if name == "DP-CD":  # strong convexity in the norm of M, which is 1 here
        return _terms(noise, radius, noise * len(M))
    return _terms(noise, radius, noise * float((M / method.q).max()) / mu)


def _terms(noise: float, radius: np.ndarray, strong: float) -> dict[str, float]:
    return {"convex": math.sqrt(noise * float(radius.sum())), "strong": strong}


# --- (d) smoothness in blocks ---------------------------------------------------------

BLOCK_METHODS: dict[str, dict[str, Any]] = {
    "single": {},
    "single IS": {"probabilities": "importance"},
    "aligned": {"groups": "aligned"},
    "aligned IS": {"groups": "aligned", "probabilities": "importance"},
    "misaligned": {"groups": "misaligned"},
    "misaligned IS": {"groups": "misaligned", "probabilities": "importance"},
    "full": {"blocks": 1},
}


def blocks(
    config: schema.Config,
    point: dict[str, Any],
    seed: int,
    n: int,
    p: int,
    groups: int,
    epsilon: float,
    fresh: int,
    grid: dict[str, list[float]],
) -> list[dict[str, Any]]:
    """Relative error where smoothness comes in groups, tuned and then on fresh runs.

    Group g of the coordinates has M_j proportional to ratio^(g / (groups - 1)) and the
    given correlation inside. An aligned partition takes a group as a block, a
    misaligned one takes coordinates from every group.
    """
    problem = grouped_problem(n, p, groups, point["ratio"], point["correlation"],
                              epsilon)  # fmt: skip
    least = least_value(problem)
    options = block_options(point["method"], p, groups)
    scale = math.sqrt(float(problem.smoothness.sum()))
    seeds = np.random.SeedSequence(seed).generate_state(5 + fresh, np.uint64)
    step, clip, passes = _tune(problem, options, grid, scale, seeds[:5])
    lanes = Lanes(np.full(1, step), np.full(1, clip), _noise_of(problem, options,
                                                                passes))  # fmt: skip
    return [
        {"fresh": index, "step": step, "clip": clip, "passes": passes,
         "relative_error": excess / least, "factor": lifted}
        for index, (excess, lifted) in enumerate(
            _fresh(problem, options, lanes, passes, least, seeds[5:])
        )
    ]  # fmt: skip


def grouped_problem(
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


def block_options(method: str, p: int, groups: int) -> dp_skgd.Options:
    """Options of ``dp_skgd`` for a method of this sweep."""
    chosen: dict[str, Any] = dict(BLOCK_METHODS[method])
    if "groups" in chosen:
        whole = np.arange(p)
        aligned = chosen["groups"] == "aligned"
        label = whole * groups // p if aligned else whole % groups
        chosen["groups"] = [whole[label == g].tolist() for g in range(groups)]
    return dp_skgd.Options(**chosen)


def _noise_of(problem: Problem, options: Any, passes: float) -> float:
    count = dp_skgd.steps(problem, passes, options)
    found = calibrate(
        lambda noise: dp_skgd.ledger(problem, count, noise, options),
        problem.epsilon, problem.delta, "strict",
    )  # fmt: skip
    return found.noise_multiplier


def _tune(
    problem: Problem,
    options: Any,
    grid: dict[str, list[float]],
    scale: float,
    seeds: np.ndarray,
) -> tuple[float, float, float]:
    """The step, clip and passes with the least mean objective over the seeds."""
    pairs = np.array(list(product(grid["step"], grid["clip"])))
    best = (math.inf, 0.0, 0.0, 0.0)
    for passes in grid["passes"]:
        noise = _noise_of(problem, options, passes)
        lanes = Lanes(pairs[:, 0].copy(), pairs[:, 1] * scale, noise)
        means = np.mean(
            [ended for ended, _ in _runs(problem, options, lanes, passes, seeds)],
            axis=0,
        )
        at = int(np.argmin(means))
        best = min(best, (float(means[at]), *pairs[at].tolist(), float(passes)))
    return best[1], best[2] * scale, best[3]


def _fresh(
    problem: Problem,
    options: Any,
    lanes: Lanes,
    passes: float,
    value: float,
    seeds: np.ndarray,
) -> Iterator[tuple[float, float]]:
    """Excess on fresh runs of one setting, and the largest factor of M."""
    for ended, lifted in _runs(problem, options, lanes, passes, seeds):
        yield float(ended[0]) - value, lifted


def _runs(
    problem: Problem, options: Any, lanes: Lanes, passes: float, seeds: np.ndarray
) -> Iterator[tuple[np.ndarray, float]]:
    """Final objectives of the lanes, seed by seed, and the largest factor of M."""
    count = dp_skgd.steps(problem, passes, options)
    for seed in seeds:
        run = dp_skgd.Run(problem, lanes, streams(int(seed)), options, total=count)
        run.advance(count)
        yield problem.objective(run.weights), float(run.sketch.factors.max())
