"""Privacy proofs of Bassily et al. 2021 in numbers, and the cost of its noise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy  # its parts come when they are first named

from dperm.accountants import generalised_gaussian as generalised
from dperm.core.calibrations import OURS, PAPER, STRICT
from dperm.core.erm.sets import dual_exponent
from dperm.core.experiment.plan import seed_of
from dperm.core.privacy.accounting import true_epsilon
from dperm.core.privacy.ledger import N
from dperm.core.privacy.mechanisms import streams
from dperm.core.privacy.published import advanced_epsilon
from dperm.core.privacy.strict import gaussian_epsilon
from dperm.kinds.proofs import Case

Row = dict[str, Any]


# --- Corollary 3.3, Theorem 6.3 -------------------------------------------------------


def generalised_gaussian(epsilon: float, delta: float, kappa: float) -> Case:
    """Bassily et al. 2021, Corollary 3.3: its own bound by its own conversion."""
    multiplier = math.sqrt(2 * kappa * math.log(1 / delta)) / epsilon
    cost = generalised.proof_epsilon(kappa, multiplier, delta)
    return Case(cost, epsilon, "its Renyi bound by the cited conversion, best order")


def single_pass_selections(epsilon: float, delta: float, n: float) -> Case:
    """Bassily et al. 2021, Theorem 6.3: n/2 selections by advanced composition."""
    pure = epsilon / math.sqrt(n * math.log(1 / delta))
    cost = advanced_epsilon([(pure, int(n) // 2)], delta)
    return Case(cost, epsilon, "advanced composition with its second term")


# --- Proposition 3.2, at unit scale ---------------------------------------------------


def noise_moment(m: float, d: float) -> Case:
    """Bassily et al. 2021, Proposition 3.2 (a): the m-th moment of the noise's norm."""
    found = _radial(m + d - 1, 1.0) / _radial(d - 1, 1.0)
    logs = math.lgamma((m + d) / 2) - math.lgamma(d / 2)
    return Case(found, 2 ** (m / 2) * math.exp(logs), "its integral over the radius")


def noise_exponential(square: float, d: float) -> Case:
    """Bassily et al. 2021, Proposition 3.2 (b): E exp(||z||^2 / nu^2).

    ``square`` is nu^2. The mean is infinite up to 2, where ``found`` is a lower bound.
    """
    found = _radial(d - 1, 1 - 2 / square) / _radial(d - 1, 1.0)
    return Case(found, math.exp(d / (square - 2)), "its integral over the radius")


def noise_tail(d: float) -> Case:
    """Proposition 3.2 (b) at nu^2 = d + 2, which the paper then uses."""
    return noise_exponential(d + 2, d)


def _radial(power: float, rate: float) -> float:
    """The integral of r^power exp(-rate r^2 / 2); a part of it if it is infinite."""
    end = (math.sqrt(power) + 12) / math.sqrt(rate if rate > 0 else 1.0)
    density = lambda r: r**power * math.exp(-rate * r * r / 2)  # noqa: E731
    return float(scipy.integrate.quad(density, 0, end, epsabs=0, epsrel=1e-11)[0])


def noise_divergence(alpha: float, q: float) -> Case:
    """Bassily et al. 2021, Proposition 3.2 (c), in the plane; the worse of two shifts.

    Shifts are 4 / alpha long in l_q, along one axis and along both.
    """
    r, length = generalised.smooth_order(q, 2), 4 / alpha
    axis = np.linspace(-12, 12, 161)  # sums over it are as accurate as integrals
    z = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    here = _square(z, r)
    whole = np.exp(-here / 2).sum()

    def divergence(shift: np.ndarray) -> float:
        there = _square(z - length * shift, r)
        part = np.exp(((alpha - 1) * here - alpha * there) / 2).sum()
        return math.log(part / whole) / (alpha - 1)

    found = max(divergence(shift) for shift in directions(2, q))
    claimed = generalised.renyi_bound(alpha, generalised.regularity(q, 2), 1 / length)
    return Case(found, claimed, "the Renyi divergence in the plane")


# --- Remark 1 -------------------------------------------------------------------------


def sampled(seed: int, draws: int = 10_000) -> Iterator[Row]:
    """Kolmogorov-Smirnov tests of the sampler against the laws that it must have.

    The squared norm is chi squared with d degrees of freedom. For the direction u,
    |u_1|^r is Beta(1/r, (d - 1)/r). ``printed`` takes the remark's cdf for the radius
    of X, at a quarter of ||X||_r^r, and converts it to chi.
    """
    stats = scipy.stats
    for p, d in itertools.product((1.05, 1.25, 1.5), (4, 16, 64)):
        order = generalised.smooth_order(dual_exponent(p), d)
        rng = streams(seed_of(seed, "sampler", "dpsco", f"{p:g}", d, 0)).noise
        z = generalised.generalised_gaussian(rng, order, (draws, d))
        size = (abs(z) ** order).sum(axis=1) ** (1 / order)
        share = abs(z[:, 0] / size) ** order
        power = stats.gamma.ppf(stats.chi2.cdf(size**2, d), d / order)  # ||X||_r^r
        printed = stats.chi2.ppf(stats.gamma.cdf(power / 4, d / order), d)
        along = stats.kstest(share, stats.beta(1 / order, (d - 1) / order).cdf).pvalue
        for reading, radius in (("as meant", size**2), ("printed", printed)):
            chance = stats.kstest(radius, stats.chi2(d).cdf).pvalue
            row = {"p": p, "d": d, "r": order, "reading": reading, "draws": draws}
            row |= {"p_radius": chance, "p_direction": along}
            yield row | {"p_least": min(chance, along)}


# --- Algorithm 1 ----------------------------------------------------------------------


def records_read(n: float) -> Case:
    """Number of records that Algorithm 1 draws with the batches of Theorem 5.2."""
    phases = int(math.log2(n) // 2)
    drawn = sum(1 + t / 2 for t in range(1, phases + 1)) * 4 * n / math.log2(n) ** 2
    return Case(drawn, n, "b (1 + t/2) records in every phase t, logarithms base 2")


def inner_sensitivity(phases: float) -> Case:
    """Theorem 5.1: largest change of an inner difference by a record, over L1 M / b.

    It is twice 2^j times the largest move of the iterate below the left sibling, with
    the steps that Algorithm 1 prints.
    """
    found = 0.0
    for t in range(1, int(phases) + 1):
        kept = [1 - 2 / (2 ** (t - 1) + leaf + 1) for leaf in range(2**t)]
        for j in range(1, t + 1):
            below = 2 ** (t - j)
            for leaf in range(0, 2**t, 2 * below):
                gone = 1 - math.prod(kept[leaf : leaf + below])
                found = max(found, 2 * 2**j * gone)
    return Case(found, 8.0, "all right children, the printed steps")


# --- the printed noise of every method, and the least that is sound -------------------

NORMS = (1.0, 1.25, 1.5, 2.0)  # of Algorithm 1
DIMENSION = 64


def costs(n: int, epsilon: float) -> Iterator[Row]:
    """Cost of the printed noise, one row per method and norm; delta is 1 / n^2.

    ``epsilon_of_the_proof`` is by the paper's argument, ``true_epsilon`` by a sound
    accountant.
    """
    known = {"n": n, "target_epsilon": epsilon}
    for p in NORMS:
        yield _row("noisy_sfw", p, known, *tree_costs(p, n, epsilon))
    from dperm.solvers.streams import Target, phased_sgd, poly_sfw
    from dperm.solvers.streams.setup import Setup

    def noise(method: Any, *of: Any) -> list[Any]:
        targets = (Target(epsilon, delta, kind) for kind in OURS)
        return [method.noise(Setup(*of), n, at, method.Options()) for at in targets]

    # algorithm 2: as composed in the paper, and for the costliest record
    delta = n**-2.0
    paper, strict = noise(poly_sfw, "least_squares", 1.0, DIMENSION)
    proof = epsilon + epsilon**2 / (2 * math.log(1 / delta))
    true = true_epsilon(paper.ledger, delta)
    ratio = strict.scales[1] / paper.scales[1]
    yield _row("poly_sfw", 1.0, known, proof, true, ratio)
    paper, strict = noise(phased_sgd, "linear", 2.0, 1)
    true = gaussian_epsilon(1 / paper.scales[0], delta)
    ratio = strict.scales[0] / paper.scales[0]
    yield _row("phased_sgd", 2.0, known, epsilon, true, ratio)


def _row(
    name: str, p: float, known: Row, proof: float, true: float, ratio: float
) -> Row:
    row = {"algorithm": name, "p": p, **known, "epsilon_of_the_proof": proof}
    row |= {"true_epsilon": true, "given": N}
    return row | {"strict_over_published_noise": ratio}


def tree_costs(
    p: float, n: int, epsilon: float, d: int = DIMENSION
) -> tuple[float, float, float]:
    """Costs of Algorithm 1, root and right children; exact for p = 2, else bounds.

    Returns
    -------
    tuple of float
        Cost by the proof and by a sound accountant; the strict over the published
        noise.
    """
    from dperm.solvers.streams.setup import Setup  # compiles

    delta, setup = n**-2.0, Setup("least_squares", p, d)
    known = (setup.q, d, epsilon, delta)
    paper = generalised.noise_multiplier(*known, PAPER)
    strict = generalised.noise_multiplier(*known, STRICT)
    kappa = generalised.regularity(setup.q, d)
    order = generalised.smooth_order(setup.q, d)
    true = generalised.strict_epsilon(order, kappa, paper, delta)
    proof = generalised.proof_epsilon(kappa, paper, delta)
    return proof, true, strict / paper


def directions(d: int, q: float) -> list[np.ndarray]:
    """Shifts of unit l_q norm: along one coordinate, half of them, all of them."""
    counts = sorted({1, -(-d // 2), d})
    return [np.where(np.arange(d) < k, k ** (-1 / q), 0.0) for k in counts]


def _square(rows: np.ndarray, r: float) -> np.ndarray:
    """||z||_r^2 of each row."""
    return (np.abs(rows) ** r).sum(axis=1) ** (2 / r)
