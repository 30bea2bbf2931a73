"""Bounds of Lou and Cheung 2020 in numbers, and the quantities that they bound.

They are Table III and Theorem 1, Proposition 1, the T of Theorem 4, Assumption 2, the
sketch of Section IV, and the sensitivities that the noise assumes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy import sparse

from dperm.core.erm.problem import Problem
from dperm.core.erm.sets import Ball
from dperm.core.privacy.mechanisms import gaussian, streams
from dperm.papers.dpbcfw.constrained import minimum
from dperm.papers.dpbcfw.outcomes import RELEASES, bound
from dperm.papers.dpbcfw.runs import (
    Instance,
    Reading,
    Rows,
    Setting,
    noise_of,
    noise_under,
    options_of,
    sparse_design,
)
from dperm.solvers.distributed.columns import Columns, edges
from dperm.solvers.distributed.engines import shares
from dperm.solvers.distributed.node import Node
from dperm.solvers.distributed.sketch import Sketch
from dperm.solvers.frank_wolfe import bcfw, dp_bcfw, silent
from dperm.solvers.frank_wolfe.bcfw import step_size
from dperm.solvers.frank_wolfe.dp_bcfw_noise import sensitivities, sketch_of

SAMPLINGS = {  # of Algorithm 1, with their names in ``bcfw.Options``
    "elementary": "elementary",
    "uniform serial": "uniform_serial",
    "tau-nice": "tau_nice",
    "(K, tau)-distributed": "distributed",
}

# --- Table III ------------------------------------------------------------------------

_POWER_STEPS = 50


def pair_maxima(columns: Columns, nodes: int) -> tuple[float, float, float]:
    """Max ||a_i||^2, and max |a_i . a_j| over pairs within and across nodes.

    With one node the last is 0.
    """
    owner = np.repeat(np.arange(nodes), np.diff(edges(columns.p, nodes)))
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
) -> dict[str, tuple[float, float]]:
    """Bounds on curvatures of least squares over a box with sides of ``width``.

    Propositions 3 and 4 are compared with the constants of the case-by-case analyses.
    These are the global curvature by the top eigenvalue, the product curvature
    sum_i C_f^i, and the expected set curvature of tau-nice sampling, for which
    Proposition 3 has the same bound. All are for f = ||Ax - y||^2 / (2n), so A is
    divided by sqrt(n).

    Returns
    -------
    dict
        By sampling: the existing constant, NaN where there is none, and the expected
        curvature.
    """
    scale, p = width**2 / columns.n, columns.p
    mu1, mu2, mu3 = (scale * value for value in pair_maxima(columns, nodes))
    total = scale * float(columns.square_norms.sum())
    everything = scale * p * top_eigenvalue(columns)
    nice = tau * mu1 + tau * (tau - 1) * max(mu2, mu3)
    distributed = nodes * tau * mu1 + nodes * tau * (tau - 1) * mu2
    distributed += nodes * (nodes - 1) * tau**2 * mu3
    return {
        "elementary": (everything, everything),
        "uniform serial": (total, total / p),
        "tau-nice": (nice, nice),
        "(K, tau)-distributed": (math.nan, distributed),
    }


def top_eigenvalue(columns: Columns) -> float:
    """The largest eigenvalue of A^T A by power steps."""
    x, value = np.ones(columns.p), 1.0
    for _ in range(_POWER_STEPS):
        x = columns.products(columns.matrix @ x)
        value = float(np.linalg.norm(x))
        x /= max(value, 1e-300)
    return value


def table3(at: Instance, tau: int, nodes: int, count: int, seed: int) -> Rows:
    """Table III on one instance, over the box: p_min, curvature, bounds, gap reached.

    ``existing_bound`` is the column of existing results for exact updates, and
    ``published_bound`` is Theorem 1 with the printed p_min.
    """
    d, h, rows = at.problem.p, at.start, []
    printed = (1.0, 1 / d, tau / d, (nodes * tau / d) ** 2)
    both = curvatures(at.columns, 2 * at.largest, tau, nodes)
    existing = {
        "elementary": lambda C: 2 * C / (count + 2),
        "uniform serial": lambda C: 2 * d * (h + C) / (count + 2 * d),
        "tau-nice": lambda C: 2 * d * (h + C) / (tau**2 * count + 2 * d),
        "(K, tau)-distributed": lambda C: math.nan,
    }
    for (name, sampling), published in zip(SAMPLINGS.items(), printed, strict=True):
        options = bcfw.Options(sampling, tau, nodes, "box", at.largest)
        run = bcfw.Run(at.problem, streams(seed), options, silent(count), at.columns)
        run.advance(count)
        C, expected = both[name]
        row = {
            "sampling": name,
            "p_min": run.p_min,
            "published_p_min": published,
            "existing_curvature": C,
            "expected_curvature": expected,
            "existing_bound": existing[name](C),
            "bound": bound(count, run.p_min, h, expected),
            "published_bound": bound(count, published, h, expected),
            "gap": run.at.objective - at.truth,
            "start": h - at.truth,
            "iteration": count,
        }
        rows.append(row)
    return rows


# --- Theorem 1 ------------------------------------------------------------------------

PRECISION, MOST = 1e-7, 20_000  # gap of f* on the ball over f(0); maximum of steps
PASSES = 30  # iterations times p_min, at least
POINTS = 12  # iterations at which a rate is read, equally spaced in logarithms


def gaps(at: Instance, share: float, tau: int, nodes: int, T: int, seed: int) -> Rows:
    """Gaps f(x_t) - f* on the l1 ball and on the box, for each sampling.

    On the ball f* is the certified lower bound, so that gaps are not understated. On
    the box f* is 0 if the shortest interpolation lies within it; else f(x_true) is used
    instead, which is no smaller. A sampling of small p_min takes ``PASSES`` / p_min
    iterations.

    Parameters
    ----------
    share : float
        eta over ||x_true||_1.
    tau, nodes : int
        tau-nice sampling takes tau coordinates, distributed sampling tau on each node.
    """
    ball, rows = Ball(1.0, share * at.radius), []
    value, open_ = minimum(at.problem, ball, PRECISION, MOST, at.columns)
    sets = {"ball": (ball.radius, value - open_), "box": (at.largest, box_least(at))}
    for constraint, (radius, least) in sets.items():
        for name in (
            "elementary",
            "tau-nice",
            "(K, tau)-distributed",
            "uniform serial",
        ):
            options = bcfw.Options(SAMPLINGS[name], tau, nodes, constraint, radius)
            run = bcfw.Run(at.problem, streams(seed), options, silent(T), at.columns)
            count = max(T, round(PASSES / run.p_min))
            marks = np.geomspace(count / 10, count, POINTS).round().astype(int)
            for before, t in zip([0, *marks[:-1]], marks, strict=True):
                run.advance(int(t - before))
                row = {
                    "panel": constraint,
                    "sampling": name,
                    "p_min": run.p_min,
                    "iteration": int(t),
                    "gap": run.at.objective - least,
                    "start": at.start - least,
                }
                rows.append(row)
    return rows


def box_least(at: Instance) -> float:
    """Least f over the box: 0 if the shortest interpolation fits, else f(x_true)."""
    A, y = at.problem.A.toarray(), -at.problem.offset
    x = np.linalg.lstsq(A, y)[0]
    fits = np.abs(x).max() <= at.largest and np.allclose(A @ x, y)
    return 0.0 if fits else at.truth


# --- Proposition 1 --------------------------------------------------------------------
#
# For least squares the bracket of definition 3, with 2 / gamma^2 before all of it, is
# ||A_T (s - x)_T||^2 / n. So the expected curvature is the largest value of
# v^T (P o A^T A / n) v over the box |v_j| <= D, with P the chances of pairs. It is
# attained at a corner; with few features, all corners are tried.

CORNERS = 18  # largest number of features for which all corners are tried


def pair_chances(sampling: str, d: int, tau: int, nodes: int) -> np.ndarray:
    """P (d, d): chances of pairs, and on the diagonal of single coordinates.

    Nodes are of equal size.
    """
    if sampling == "elementary":
        return np.ones((d, d))
    if sampling == "uniform serial":
        return np.eye(d) / d
    if sampling == "tau-nice":
        return _nice(d, tau)
    size = d // nodes
    P = np.full((d, d), (tau / size) ** 2)
    for k in range(nodes):
        block = slice(k * size, (k + 1) * size)
        P[block, block] = _nice(size, tau)
    return P


def _nice(d: int, tau: int) -> np.ndarray:
    P = np.full((d, d), tau * (tau - 1) / (d * max(1, d - 1)))
    np.fill_diagonal(P, tau / d)
    return P


def box_curvature(M: np.ndarray, width: float) -> float:
    """The largest v^T M v over the corners of |v_j| <= width; M (d, d), d <= 18."""
    d = len(M)
    if d > CORNERS:
        raise ValueError(f"{d} features: all corners of at most {CORNERS} are tried")
    signs = np.ones((2 ** (d - 1), d))  # v and -v are the same
    numbers = np.arange(2 ** (d - 1))
    for j in range(1, d):
        signs[:, j] = 1 - 2 * ((numbers >> (j - 1)) & 1)
    return width**2 * float(np.einsum("ij,ij->i", signs @ M, signs).max())


def eigenvalue_bound(P: np.ndarray, G: np.ndarray, width: float) -> float:
    """Proposition 1: sum_i p_i beta_i D^2, beta_i the smaller eigenvalue times G_ii.

    The eigenvalues are the largest of P and of G (d, d) scaled to diagonals of ones.
    """
    tops = []
    for M in (P, G):
        root = np.sqrt(np.diag(M))
        tops.append(float(np.linalg.eigvalsh(M / np.outer(root, root))[-1]))
    return width**2 * float(np.diag(P) @ (min(tops) * np.diag(G)))


def correlated(rng: np.random.Generator, n: int, d: int, common: float) -> np.ndarray:
    """A (n, d) of normal features with pairwise correlation ``common``."""
    shared = rng.standard_normal((n, 1))
    single = rng.standard_normal((n, d))
    return np.sqrt(common) * shared + np.sqrt(1 - common) * single


def proposition1(
    seed: int, n: int, d: int, common: float, tau: int, nodes: int, width: float
) -> Rows:
    """Curvature and bound of every sampling for one draw of the features."""
    A = correlated(np.random.default_rng(seed), n, d, common)
    G, rows = A.T @ A / n, []
    for sampling in SAMPLINGS:
        P = pair_chances(sampling, d, tau, nodes)
        both = {"curvature": box_curvature(P * G, width)}
        both["bound"] = eigenvalue_bound(P, G, width)
        rows.append({"sampling": sampling, **both})
    return rows


# --- Theorems 2 and 4 -----------------------------------------------------------------


def ball_curvature(at: Instance, radius: float) -> float:
    """Curvature of least squares over the l1 ball: max ||A (s - x)||^2 / n.

    It is attained between opposite vertices. (Proposition 4's sum over d coordinates is
    for the box, of which the ball is a small part.)
    """
    return (2 * radius) ** 2 * float(at.columns.square_norms.max()) / at.problem.n


def iterations(at: Instance, setting: Setting, theta: float) -> float:
    """T of Theorem 4, (C n epsilon / (C_g + C_l))^(2/3), constants as in Table IV.

    C is the curvature over the l1 ball, nnz(a) the mean number of non-zeros of a
    feature, G the gradient's sup norm.
    """
    options = options_of(at, setting)
    n, K, eta = at.problem.n, setting.nodes, options.radius
    delta, nonzeros = 1.0 / n, at.problem.A.nnz / at.problem.p
    top = sketch_of(n, options).leading_singular_value
    root = math.sqrt(math.log(1 / delta) + setting.epsilon)
    sketching = K * eta * theta * nonzeros + K**1.5 * math.sqrt(nonzeros) * top**2
    G = at.published_lipschitz
    choosing = 2 * G * eta * math.sqrt(32 * math.log(1 / (delta / 2)))
    size = ball_curvature(at, eta) * n * setting.epsilon
    return float((size / (sketching * root + choosing)) ** (2 / 3))


def approximation_errors(
    at: Instance, setting: Setting, reading: Reading, seed: int
) -> Rows:
    """Errors of Assumption 2 at every iteration, and those allowed at rho = 1.

    Assumption 2 allows the partial gradient an error of rho_g gamma_t C / 2 in the
    largest entry, and the oracle rho_l gamma_t C / 2 in its inner product, with
    constants rho_g and rho_l. Since gamma_t falls like 1/t, so must the errors. C is
    the curvature over the ball of radius K eta, which contains the iterates; ``gap`` is
    the final f less the least f over this ball.
    """
    problem = at.problem
    options, noise = options_of(at, setting), noise_under(at, setting, reading)
    run = dp_bcfw.Run(problem, streams(seed), options, noise)
    public = dp_bcfw.public_of(problem, options, noise)
    node = Node(next(shares(problem, 1)), public, 0)  # all features
    starts = edges(problem.p, setting.nodes)
    C, rows = ball_curvature(at, options.reach), []
    for t in range(setting.iterations):
        estimate = node.gradient(node.slopes(run.q))
        slopes = problem.derivatives(problem.A @ run.x + problem.offset)
        exact = at.columns.products(slopes) / problem.n
        run.advance(1)
        allowed = step_size(t, 1.0) * C / 2
        worse = options.radius * oracle_error(estimate, run.chosen[-1], starts)
        errors = (float(np.abs(estimate - exact).max()), worse)
        rows += [
            {"release": name, "iteration": t + 1, "error": error, "allowed": allowed}
            for name, error in zip(RELEASES, errors, strict=True)
        ]
    least, _ = at.minimum(setting.nodes * setting.share)
    end = problem.mean_loss(problem.A @ run.x + problem.offset) - least
    known = {"curvature": C, "gap": end, "start": at.start - least}
    known |= {"width": 2 * options.reach, "nodes": setting.nodes}
    return [row | known for row in rows]


def oracle_error(estimate: np.ndarray, signed: np.ndarray, starts: np.ndarray) -> float:
    """Largest shortfall, over nodes, of the chosen vertex against the best of ±e_j."""
    chosen = np.sign(signed) * estimate[np.abs(signed) - 1]
    best = np.maximum.reduceat(np.abs(estimate), starts[:-1])
    return float((best - chosen).max())


# --- the sketch: Section IV and Discussion 4 ------------------------------------------


def printed_scale(sketch: Sketch, epsilon: float, nodes: int, count: int) -> float:
    """Equation 17's pi for half the budget, delta = 1/n."""
    logs = math.sqrt(2 * (math.log(sketch.n) + epsilon / 2))
    scale = sketch.leading_singular_value * math.sqrt(nodes * count) * logs
    return scale / (sketch.n * epsilon / 2)


def table_length(n: int, count: int, theta: float) -> int:
    """Table IV's m, (1 / theta^2) log(2 T / delta) with delta = 1/n; at most n."""
    return min(n, math.ceil(math.log(2 * count * n) / theta**2))


def sketch_errors(
    seed: int,
    n: int,
    m: int,
    d: int,
    nonzeros: int,
    active: int,
    epsilon: float,
    nodes: int,
    count: int,
) -> dict[str, float]:
    """Largest errors of a_i . A x / n over the d features, by cause.

    The estimate by sketched features J a_j + xi_j has the errors
    a_i . (J^T J - I) A x / n, the distortion, and (J a_i) . sum_j x_j xi_j / n, the
    noise.

    Parameters
    ----------
    m : int
        Length of a sketched feature.
    nonzeros : int
        Mean number of non-zeros of a feature, the same for every n (Section IV-A).
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
    sketches = (Sketch(n, m, seed), Sketch(n, n, seed))
    product = A @ x
    q = sketches[0].feature(np.arange(n), product)
    distortion = A.T @ (sketches[0].predictions(q) - product) / n
    noise = []
    for sketch in sketches:
        scale = printed_scale(sketch, epsilon, nodes, count)
        drawn = gaussian(streams(seed).noise, (int(np.count_nonzero(x)), sketch.m))
        added = scale * (x[x != 0] @ drawn)
        noise.append(A.T @ sketch.predictions(added) / n)
    return {
        "distortion": float(np.abs(distortion).max()),
        "sketched_noise": float(np.abs(noise[0]).max()),
        "plain_noise": float(np.abs(noise[1]).max()),
        "sketched": float(np.abs(distortion + noise[0]).max()),
    }


# --- a search for the neighbouring data that move a release most ----------------------

Record = tuple[np.ndarray, float]


def largest_changes(at: Instance, setting: Setting, seed: int, trials: int) -> Rows:
    """Largest changes found and declared, for scores and sketched features.

    Replacing record r changes one entry of each feature and one label. A score changes
    most where the record's entries, label and estimated prediction are at their bounds.
    The search tries such records and random ones, with the server's message of a real
    run.

    Returns
    -------
    list of dict
        ``release`` (score, feature), ``found`` (largest change), ``strict`` (declared
        replace-one sensitivity) and ``published`` (as the printed noise assumes).
    """
    problem, n = at.problem, at.problem.n
    options, noise = options_of(at, setting), noise_of(at, setting)
    run = dp_bcfw.Run(problem, streams(seed), options, noise)
    run.advance(5)
    sketch = sketch_of(n, options)
    longest = int(np.argmax(sketch.column_norms))  # the record that J stretches most
    worst = sketch.feature(np.array([longest]), np.ones(1))
    aggregates = [run.q, 1e6 * worst, -1e6 * worst]  # estimates at their bounds
    factor, score, feature = options.score_factor(noise.scores), 0.0, 0.0
    for pair in _replacements(at, options, seed, trials):
        nodes = [_node(problem, options, longest, record) for record in pair]
        for q in aggregates:
            moved = [factor * node.gradient(node.slopes(q)) for node in nodes]
            score = max(score, float(np.abs(moved[0] - moved[1]).max()))
        for j in range(min(20, problem.p)):
            first, second = (node.sketched_without_noise(j) for node in nodes)
            feature = max(feature, float(np.linalg.norm(first - second)))
    declared = sensitivities(problem, options, noise.scores)
    printed = 2 * options.radius * at.published_lipschitz / (options.nodes * n)
    changes = {
        "score": (score, declared[0], printed),
        "feature": (feature, declared[1], sketch.leading_singular_value / n),
    }
    keys = ("release", "found", "strict", "published")
    return [
        dict(zip(keys, (name, *sizes), strict=True)) for name, sizes in changes.items()
    ]


def _replacements(
    at: Instance, options: dp_bcfw.Options, seed: int, trials: int
) -> Iterator[tuple[Record, Record]]:
    """Pairs of a record and its replacement: at the bounds, then random, far beyond."""
    rng, p = np.random.default_rng(seed), at.problem.p
    B, Y = options.entry_bound, options.label_bound
    for label in (Y, -Y):
        yield (np.full(p, B), label), (np.full(p, -B), label)
        yield (np.full(p, B), label), (np.full(p, B), -label)
    for _ in range(trials):
        entries = 10 * B * rng.standard_normal((2, p))
        labels = 10 * Y * rng.standard_normal(2)
        yield (entries[0], labels[0]), (entries[1], labels[1])


def _node(
    problem: Problem, options: dp_bcfw.Options, replaced: int, record: Record
) -> Node:
    """One node with all columns, one record replaced."""
    entries, label = record
    A = problem.A.tolil()
    A[[replaced], :] = entries
    offset = problem.offset.copy()
    offset[[replaced]] = problem.loss.offset(np.array([label]))
    other = replace(problem, A=sparse.csc_array(A), offset=offset)
    public = dp_bcfw.public_of(problem, options, silent(1))
    return Node(next(shares(other, 1)), public, 0)
