"""Sweeps of Bassily, Guzmán and Nandi 2021 (DP-SCO).

Excess population risk is exact (closed form) and recorded with its initial value, that
of w = 0. A private target appears under both calibrations; epsilon = infinity once, as
calibration ``none``. Delta is 1 / n^2. Common parameters of the sweeps are:

- ``point`` has the sizes n and d, and ``solver``, the name of its YAML;
- ``norms`` are the p of the setups, by solver if the point has one;
- ``epsilons`` are the targets, with infinity for the method without noise.
"""

from __future__ import annotations

import functools
import itertools
import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy  # its parts come when they are first named

from dperm.config import config as configuration
from dperm.experiments import plan
from dperm.papers.dpsco import estimates
from dperm.papers.dpsco.binomials import BinomialRun
from dperm.papers.dpsco.rates import EASY, HARD_INSTANCES, LARGE, biases
from dperm.privacy.accountants import OURS, PUBLISHED, TIGHT
from dperm.privacy.accountants.tight import gaussian_epsilon
from dperm.privacy.accounting import true_epsilon
from dperm.privacy.events import N
from dperm.privacy.mechanisms import generalised_gaussian as generalised
from dperm.privacy.noise import streams
from dperm.problems.sets import dual_exponent
from dperm.solvers import registry
from dperm.solvers.single_pass import (
    Target,
    noisy_sfw,
    phased_sgd,
    poly_sfw,
    sco_dp_sgd,
    sco_mirror_descent,
)
from dperm.solvers.single_pass.gaussian_releases import least_multiplier
from dperm.solvers.single_pass.setup import Setup
from dperm.solvers.single_pass.sources import RecordSource, Signs
from dperm.solvers.single_pass.sources import hard as hard_coins

Row = dict[str, Any]
Point = dict[str, Any]
METHODS = {  # imported, not loaded by name, so that digests of rows cover their code
    "noisy_sfw": noisy_sfw,
    "poly_sfw": poly_sfw,
    "phased_sgd": phased_sgd,
    "sco_dp_sgd": sco_dp_sgd,
    "sco_mirror_descent": sco_mirror_descent,
}


# --- running solvers ------------------------------------------------------------------


@functools.cache
def _algorithm(solver: str) -> tuple[Any, Any]:
    """Module and options of a solver's YAML."""
    spec = configuration.read("solver", solver)
    module = METHODS[spec.algorithm]
    return module, registry.make_options(module, spec.options)


def _targets(
    epsilons: Sequence[float], n: int, calibrations: Sequence[str] = OURS
) -> list[Target]:
    """Every private target under every calibration, the non-private one once."""
    targets = []
    for epsilon in epsilons:
        names = ("none",) if math.isinf(epsilon) else calibrations
        targets += [Target(float(epsilon), n**-2.0, name) for name in names]
    return targets


def _run(
    solver: str,
    setup: Setup,
    targets: list[Target],
    source: RecordSource,
    n: int,
    seed: int,
) -> Any:
    """A run of a solver for all targets; no norm's result depends on another's."""
    module, options = _algorithm(solver)
    drawn = streams(plan.seed_of(seed, "noise", solver, f"{setup.p:g}", 0, 0))
    return module.Run(setup, targets, drawn, source, n, options)


def _measured(
    solver: str,
    fresh: Callable[[], Any],
    loss: str,
    n: int,
    norms: Sequence[float],
    targets: list[Target],
    seed: int,
) -> list[Row]:
    """Excess risk on a source with a closed form, one row per norm and target.

    ``fresh`` returns a new source; the first is for the risk alone.
    """
    source = fresh()
    rows = list[Row]()
    for setup in (Setup(loss, float(p), source.d) for p in norms):
        zero = float(source.excess(np.zeros(source.d), setup)[0])
        W = _run(solver, setup, targets, fresh(), n, seed).solve()
        for w, to in zip(W, targets, strict=True):
            row = {"method": solver, "p": setup.p, "epsilon": to.epsilon}
            row |= {"calibration": to.calibration}
            excess = float(source.excess(w, setup)[0])
            rows.append(row | {"excess": excess, "initial": zero})
    return rows


# --- sweeps ---------------------------------------------------------------------------


def rates(
    point: Point,
    seed: int,
    norms: dict[str, list[float]],
    epsilons: Sequence[float],
) -> list[Row]:
    """Excess risk at one (solver, n, d): all norms and targets on one draw of records.

    It is measured on the bounded design.
    """
    solver = point["solver"]
    n = int(point["n"])
    d = int(point["d"])
    run_arguments = (norms[solver], _targets(epsilons, n), seed)
    return _measured(
        solver, lambda: Signs(d, seed), "least_squares", n, *run_arguments
    )


def clock(
    point: Point,
    seed: int,
    d: int,
    norms: dict[str, float],
    epsilons: Sequence[float],
) -> list[Row]:
    """Seconds of one run for one target, with drawing of records, and its excess risk.

    ``norms`` has the p of each solver.
    """
    solver = point["solver"]
    n = int(point["n"])
    p = norms[point["solver"]]

    def run(size: int, epsilon: float) -> list[Row]:
        """Rows of one run with tight noise."""
        targets = _targets([epsilon], size, (TIGHT,))
        run_arguments = ("least_squares", size, [p], targets, seed)
        return _measured(solver, lambda: Signs(d, seed), *run_arguments)

    for epsilon in epsilons:  # compile
        run(300, epsilon)
    module, options = _algorithm(solver)
    for target in _targets(epsilons, n, (TIGHT,)):
        # cache noise: it is not timed
        module.noise(Setup("least_squares", p, d), n, target, options)
    rows = []
    for epsilon in epsilons:
        start = time.perf_counter()
        (row,) = run(n, epsilon)
        rows.append(row | {"seconds": time.perf_counter() - start})
    return rows


def fingerprints(
    point: Point,
    seed: int,
    norms: Sequence[float],
    epsilon: float,
    constant: float = 1.0,
) -> list[Row]:
    """Noisy SFW on the lower bound's instance; its means depend on n, d and epsilon.

    ``constant`` is the c of Lemma A.5, which is not explicit. So ``bound`` is a shape,
    not a bound. Sums of records are drawn by their exact law.
    """
    n = int(point["n"])
    d = int(point["d"])
    unit = math.sqrt(d * math.log(n**2)) / (epsilon * n)
    targets = _targets([epsilon], n)
    rows = _tallied(n, d, norms, targets, min(1.0, constant * unit), seed)
    return [row | {"bound": (row["p"] - 1) * unit} for row in rows]


def _tallied(
    n: int,
    d: int,
    norms: Sequence[float],
    targets: list[Target],
    bias: float,
    seed: int,
) -> list[Row]:
    """Excess risk of Noisy SFW on coins that all have a bias, by binomial sums."""
    module, options = _algorithm("noisy_sfw")
    assert module is noisy_sfw
    rows = []
    for p in norms:
        setup = Setup("linear", float(p), d)
        coins = hard_coins("all", d, seed, bias)
        drawn = streams(
            plan.seed_of(seed, "noise", "noisy_sfw", f"{setup.p:g}", 0, 0)
        )
        points = BinomialRun(
            setup, targets, drawn, coins, n, options, seed
        ).solve()
        initial = float(coins.excess(np.zeros(d), setup)[0])
        excesses = coins.excess(points, setup).tolist()
        for excess, target in zip(excesses, targets, strict=True):
            rows.append(
                {
                    "method": "noisy_sfw",
                    "p": setup.p,
                    "epsilon": target.epsilon,
                    "calibration": target.calibration,
                    "excess": excess,
                    "initial": initial,
                }
            )
    return rows


def hard_large(
    point: Point,
    seed: int,
    norms: Sequence[float],
    epsilons: Sequence[float],
    calibrations: Sequence[str],
) -> list[Row]:
    """As ``hard``, of Noisy SFW at any n: sums of records are drawn by their law."""
    n = int(point["n"])
    d = int(point["d"])
    rows = list[Row]()
    targets = _targets(epsilons, n, calibrations)
    for bias in biases("all", n, d):
        instance_columns = {"instance": LARGE, "bias": bias}
        runs = _tallied(n, d, norms, targets, bias, seed)
        rows += [row | instance_columns for row in runs]
    return rows


def hard(
    point: Point,
    seed: int,
    norms: dict[str, list[float]],
    epsilons: Sequence[float],
) -> list[Row]:
    """Excess risk on linear losses of biased coins, at every bias of the class."""
    solver = point["solver"]
    n = int(point["n"])
    d = int(point["d"])
    biased, name = HARD_INSTANCES[solver]
    run_arguments = ("linear", n, norms[solver], _targets(epsilons, n), seed)
    rows: list[Row] = []
    for bias in biases(biased, n, d):
        source = partial(hard_coins, biased, d, seed, bias)
        measured = _measured(solver, source, *run_arguments)
        rows += [row | {"instance": name, "bias": bias} for row in measured]
    return rows


def empirical(
    point: Point,
    seed: int,
    norms: Sequence[float],
    epsilons: Sequence[float],
    constants: Sequence[float],
    runs: int,
) -> list[Row]:
    """Empirical excess of the best private points on the data set of Theorem A.2.

    Its mean sign is +-c sqrt(d log(1/delta)) / (epsilon n) in each coordinate, c of
    ``constants``. A linear loss depends on the mean alone, which is released once with
    Gaussian noise. The point is the best one for the noisy mean (``mean``), or for its
    signs, if all coordinates are known to be equally large (``signs``).
    """
    n = int(point["n"])
    d = int(point["d"])
    rows = []
    drawn = streams(seed).noise.standard_normal((runs, d))
    for epsilon, p, constant in itertools.product(epsilons, norms, constants):
        q = p / (p - 1)
        unit = math.sqrt(d * math.log(n**2)) / (epsilon * n)
        # records with a plus
        ones = round(n * (1 + min(1.0, constant * unit)) / 2)
        # all signs plus, by symmetry
        size = (2 * ones / n - 1) * d ** (-1 / q)
        noise_multiplier = least_multiplier(epsilon, n**-2.0, TIGHT, 1)
        scale = noise_multiplier * 2 * d ** (0.5 - 1 / q) / n
        zero = size * d ** (1 / q)
        for calibration, noise in ((TIGHT, scale), ("none", 0.0)):
            noisy = size + noise * drawn
            slopes = {
                "mean": np.abs(noisy) ** (q - 1),
                "signs": np.ones_like(noisy),
            }
            for method, slope in slopes.items():
                x = (
                    np.sign(noisy)
                    * slope
                    / (slope**p).sum(1, keepdims=True) ** (1 / p)
                )
                run_columns = {"method": method, "p": p, "epsilon": epsilon}
                run_columns |= {
                    "calibration": calibration,
                    "constant": constant,
                }
                excess = float((zero - size * x.sum(axis=1)).mean())
                bound = {"initial": zero, "bound": (p - 1) * unit}
                rows.append(run_columns | {"excess": excess} | bound)
    return rows


def gradients(point: Point, seed: int, p: float, epsilon: float) -> list[Row]:
    """Number of gradients that phased SGD takes: one per record that it reads.

    ``cited`` is the number for the algorithm of Proposition 7.3 by its source's
    formula, without the unknown constant.
    """
    n = int(point["n"])
    d = int(point["d"])
    source = Signs(d, seed)
    setup = Setup("least_squares", p, d)
    targets = _targets([epsilon], n, (TIGHT,))
    _run("phased_sgd", setup, targets, source, n, seed).solve()
    cited = min(n**1.25 * d**0.125, n**1.5 / d**0.125)
    row = {"method": "phased_sgd", "gradients": source.taken, "cited": cited}
    return [row | {"over": cited / source.taken}]


def estimator(
    point: Point,
    seed: int,
    norms: dict[str, list[float]],
    epsilons: Sequence[float],
    d: int,
    bias: float,
) -> list[Row]:
    """Error of the gradient estimates over a run, with the lemmas' bounds.

    The solver is noisy_sfw or poly_sfw; ``bias`` is that of the linear loss's coins,
    whose mean is the error of an estimate of 0.
    """
    solver = point["solver"]
    n = int(point["n"])
    targets = _targets(epsilons, n, (PUBLISHED,))
    rows = list[Row]()
    biased, hardest = HARD_INSTANCES[solver]
    for p in norms[solver]:
        # gradients in closed form
        sources: dict[str, Any] = {EASY: Signs(d, seed)}
        sources |= {hardest: hard_coins(biased, d, seed, bias)}
        for name, source in sources.items():
            loss = "least_squares" if name == EASY else "linear"
            run = _run(
                solver, Setup(loss, float(p), d), targets, source, n, seed
            )
            run_columns = {
                "method": solver,
                "instance": name,
                "p": run.setup.p,
                "n": n,
            }
            errors = zip(targets, estimates.errors(run, targets), strict=True)
            rows += [
                run_columns | {"epsilon": to.epsilon} | row
                for to, row in errors
            ]
    return rows


# --- noise ----------------------------------------------------------------------------


def noise(point: Point, norms: Sequence[float], d: int) -> list[Row]:
    """Cost of the printed noise, one row per method and norm; nothing is drawn.

    ``epsilon_of_the_proof`` is by the paper's argument, ``true_epsilon`` by a sound
    accountant, for the costliest record. Algorithm 1 has its root and right children;
    its cost is exact for p = 2, else a bound.
    """
    n = int(point["n"])
    epsilon = float(point["epsilon"])
    delta = n**-2.0

    def row(
        name: str, p: float, proof: float, true: float, ratio: float
    ) -> Row:
        row_start = {"algorithm": name, "p": p, "target_epsilon": epsilon}
        row_start |= {
            "epsilon_of_the_proof": proof,
            "true_epsilon": true,
            "given": N,
        }
        return row_start | {"tight_over_published_noise": ratio}

    def both(method: Any, *setup_terms: Any) -> list[Any]:
        targets = (Target(epsilon, delta, calibration) for calibration in OURS)
        return [
            method.noise(Setup(*setup_terms), n, target, method.Options())
            for target in targets
        ]

    rows = []
    for p in norms:
        q = Setup("least_squares", p, d).q
        kappa = generalised.regularity(q, d)
        order = generalised.smooth_order(q, d)
        scales = [
            generalised.noise_multiplier(q, d, epsilon, delta, calibration)
            for calibration in OURS
        ]
        proof = generalised.proof_epsilon(kappa, scales[0], delta)
        true = generalised.tight_epsilon(order, kappa, scales[0], delta)
        rows.append(row("noisy_sfw", p, proof, true, scales[1] / scales[0]))
    published, tight = both(poly_sfw, "least_squares", 1.0, d)
    proof = epsilon + epsilon**2 / (2 * math.log(1 / delta))
    true = true_epsilon(published.ledger, delta)
    ratio = tight.scales[1] / published.scales[1]
    rows.append(row("poly_sfw", 1.0, proof, true, ratio))
    published, tight = both(phased_sgd, "linear", 2.0, 1)
    true = gaussian_epsilon(1 / published.scales[0], delta)
    ratio = tight.scales[0] / published.scales[0]
    return [*rows, row("phased_sgd", 2.0, epsilon, true, ratio)]


def sampler(point: Point, master: int, draws: int) -> list[Row]:
    """Remark 1: Kolmogorov-Smirnov tests against the laws that the noise must have.

    The squared norm is chi squared with d degrees of freedom. For the direction u,
    |u_1|^r is Beta(1/r, (d - 1)/r). ``printed`` takes the remark's cdf for the radius
    of X, at a quarter of ||X||_r^r, and converts it to chi. Draws are named after
    (sampler, p, d) alone.
    """
    stats = scipy.stats
    p = float(point["p"])
    d = int(point["d"])
    order = generalised.smooth_order(dual_exponent(p), d)
    rng = streams(
        plan.seed_of(master, "sampler", "dpsco", f"{p:g}", d, 0)
    ).noise
    z = generalised.generalised_gaussian(rng, order, (draws, d))
    size = (abs(z) ** order).sum(axis=1) ** (1 / order)
    share = abs(z[:, 0] / size) ** order
    power = stats.gamma.ppf(stats.chi2.cdf(size**2, d), d / order)  # ||X||_r^r
    printed = stats.chi2.ppf(stats.gamma.cdf(power / 4, d / order), d)
    along = stats.kstest(
        share, stats.beta(1 / order, (d - 1) / order).cdf
    ).pvalue
    rows = []
    for reading, radius in (("as meant", size**2), ("printed", printed)):
        chance = stats.kstest(radius, stats.chi2(d).cdf).pvalue
        row = {
            "r": order,
            "reading": reading,
            "draws": draws,
            "p_radius": chance,
        }
        rows.append(
            row | {"p_direction": along, "p_least": min(chance, along)}
        )
    return rows
