"""Experiments of Lou and Cheung 2020 (DP-BCFW): one call is one draw of the data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from dperm.config import grid
from dperm.experiments.inputs import Inputs
from dperm.papers.dpbcfw import theory
from dperm.papers.dpbcfw.constrained import top_eigenvalue
from dperm.papers.dpbcfw.runs import (
    DrawnProblem,
    Rows,
    RunSetting,
    instance_of,
    noise_of,
    options_of,
    run,
    setting_of,
    sparse_design,
    synthetic,
)
from dperm.papers.dpbcfw.theory import SAMPLINGS
from dperm.privacy.noise import gaussian, streams
from dperm.problems.losses import named
from dperm.problems.problem import Problem, build
from dperm.solvers.distributed.columns import Columns, edges
from dperm.solvers.distributed.engines import shares
from dperm.solvers.distributed.node import Node
from dperm.solvers.distributed.sketch import Sketch
from dperm.solvers.frank_wolfe import bcfw, dp_bcfw, silent
from dperm.solvers.frank_wolfe.bcfw import step_size
from dperm.solvers.frank_wolfe.dp_bcfw_noise import (
    equation17,
    sensitivities,
    sketch_of,
)
from dperm.solvers.frank_wolfe.iterate import Iterate

Point = dict[str, Any]

# --- runs of many settings ------------------------------------------------------------


def compare(
    point: Point,
    seed: int,
    inputs: Inputs,
    settings: Any,
    every: int = 1,
    same_sparsity: bool = False,
    records: list[int] | None = None,
) -> Rows:
    """Runs of many settings on the data of a point.

    Parameters
    ----------
    point : mapping
        Of ``instance_of`` and ``setting_of``.
    settings : grid
        Of keys of ``RunSetting``, which take precedence over the point's, and of
        ``own``, a mark of DP-FW with the mean and the whole run's epsilon under every
        reading.
    every : int
        Rows are kept at each ``every``-th iteration and at the last; 0: there alone.
    same_sparsity : bool
        Whether x_true is as dense as the features.
    records : list of int, optional
        Numbers n of records, all of one draw of the data; else the point has n.
    """
    rows: Rows = []
    point = point | ({"active": point["density"]} if same_sparsity else {})
    for sizes in [{"n": n} for n in records] if records else [{}]:
        instance = instance_of(inputs, point | sizes, seed)
        for keys in grid.points(settings, axes=None):
            run_columns = {"n": instance.problem.n, "d": instance.problem.p}
            run_columns |= {"own": keys.pop("own", False)}
            setting = setting_of(instance, point, **keys)
            rows += [
                row | run_columns
                for row in run(instance, setting, seed, every)
            ]
    return rows


# --- Algorithm 1 ----------------------------------------------------------------------


def algorithm1(
    point: Point, seed: int, key: str, runs: Sequence[Mapping[str, Any]]
) -> Rows:
    """Algorithm 1 on the box and on the ball: a row per run and iteration.

    Parameters
    ----------
    key : str
        Column with the names of the runs.
    runs : sequence of mapping
        Of keys of ``bcfw.Options``, with ``name``, and ``share``, the share of the
        features that each node takes, in place of tau.
    """
    instance = synthetic(point, seed)
    count = int(point["iterations"])
    rows = Rows()
    sizes = {"box": instance.largest, "ball": instance.radius}
    for (constraint, size), keys in itertools.product(sizes.items(), runs):
        run_columns = {
            "constraint": constraint,
            key: keys["name"],
            "eta": size,
        }
        options = {
            name: keys[name] for name in keys if name not in ("name", "share")
        }
        tau = int(keys.get("share", 1.0) * instance.problem.p)
        options |= {"tau": tau, "constraint": constraint, "radius": size}
        path = _run(instance, bcfw.Options(**options), seed, count)
        for t in range(count + 1):
            if t:
                path.advance(1)
            row = run_columns | {
                "iteration": t,
                "loss": path.iterate.objective,
            }
            row |= {
                "start": instance.start,
                "largest_norm": path.largest / size,
            }
            row |= {
                "final_norm": path.iterate.l1_norm / size,
                "p_min": path.p_min,
            }
            rows.append(row)
    return rows


def _run(
    instance: DrawnProblem, options: bcfw.Options, seed: int, count: int
) -> bcfw.Run:
    return bcfw.Run(
        instance.problem,
        streams(seed),
        options,
        silent(count),
        instance.columns,
    )


class CurvatureRow(NamedTuple):
    """A row of Table III, with the expected curvature of Propositions 2 to 4.

    ``existing_`` are those of the analysis made for the sampling alone; NaN where there
    is none. ``published_p_min`` is as printed.
    """

    published_p_min: float
    existing_curvature: float
    expected_curvature: float
    existing_bound: float


def table3(
    columns: Columns, width: float, start: float, tau: int, nodes: int, t: int
) -> dict[str, CurvatureRow]:
    """Table III on least squares over a box with sides of ``width``, by sampling.

    Existing constants are the global curvature by the top eigenvalue, the product
    curvature sum_i C_f^i, and the expected set curvature of tau-nice sampling, for
    which Proposition 3 has the same bound. All are for f = ||Ax - y||^2 / (2n), so A is
    divided by sqrt(n).
    """
    scale = width**2 / columns.n
    d = columns.p
    nan = math.nan
    mu1, mu2, mu3 = (
        scale * maximum for maximum in pair_maxima(columns, nodes)
    )
    nice, spread = theory.pair_sums(mu1, mu2, mu3, tau, nodes)
    total = scale * float(columns.square_norms.sum())
    full_gradient = scale * d * top_eigenvalue(columns)
    serial = 2 * d * (start + total) / (t + 2 * d)
    several = 2 * d * (start + nice) / (tau**2 * t + 2 * d)
    rows = (
        CurvatureRow(
            1.0, full_gradient, full_gradient, 2 * full_gradient / (t + 2)
        ),
        CurvatureRow(1 / d, total, total / d, serial),
        CurvatureRow(tau / d, nice, nice, several),
        CurvatureRow((nodes * tau / d) ** 2, nan, spread, nan),
    )
    return dict(zip(SAMPLINGS, rows, strict=True))


def curvature(point: Point, seed: int, chance: float, nodes: int) -> Rows:
    """Table III on the box: p_min, curvature, bounds, and the gap that is reached.

    ``existing_bound`` is the column of existing results for exact updates,
    ``published_bound`` is Theorem 1 with the printed p_min, and ``printed_column`` the
    table's own column with the right one.
    """
    instance = synthetic(point, seed)
    count = int(point["iterations"])
    rows = Rows()
    d = instance.problem.p
    h = instance.start
    tau = round(chance * instance.problem.p)
    table = table3(
        instance.columns, 2 * instance.largest, h, tau, nodes, count
    )
    for name, printed in table.items():
        options = bcfw.Options(
            SAMPLINGS[name], tau, nodes, "box", instance.largest
        )
        path = _run(instance, options, seed, count)
        path.advance(count)
        p_min = path.p_min
        C = printed.expected_curvature
        start = h - instance.truth
        row = {"sampling": name, "p_min": p_min, **printed._asdict()}
        row |= {
            "bound": theory.bound(count, p_min, h, C),
            "published_bound": theory.bound(
                count, printed.published_p_min, h, C
            ),
            "printed_column": theory.printed_column(p_min, count, d, start, C),
            "gap": path.iterate.objective - instance.truth,
            "start": start,
            "iteration": count,
        }
        rows.append(row)
    return rows


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


PRECISION = 1e-7  # gap of f* on the ball over f(0)
MAX_STEPS = 20_000  # steps towards f*
PASSES = 30  # iterations times p_min, at least
POINTS = 12  # iterations at which a rate is read, equally spaced in logarithms
ORDERED = ("elementary", "tau-nice", "(K, tau)-distributed", "uniform serial")


def rates(point: Point, seed: int, chance: float, nodes: int) -> Rows:
    """Theorem 1's O(1/t): gaps f(x_t) - f* over the last decade, on ball and box.

    ``share`` of the point is eta over ||x_true||_1 on the ball. There f* is the
    certified lower bound, so that gaps are not understated. On the box f* is 0 if the
    shortest interpolation lies within it; else f(x_true) is used instead, which is no
    smaller. A sampling of small p_min takes ``PASSES`` / p_min iterations.
    """
    instance = synthetic(point, seed)
    rows = Rows()
    tau = round(chance * instance.problem.p)
    radius = point["share"] * instance.radius
    ball_loss, open_ = instance.minimum(point["share"], PRECISION, MAX_STEPS)
    sets = {
        "ball": (radius, ball_loss - open_),
        "box": (instance.largest, box_least(instance)),
    }
    for constraint, (radius, least_loss) in sets.items():
        for name in ORDERED:
            options = bcfw.Options(
                SAMPLINGS[name], tau, nodes, constraint, radius
            )
            path = _run(instance, options, seed, int(point["iterations"]))
            count = max(int(point["iterations"]), round(PASSES / path.p_min))
            marks = np.geomspace(count / 10, count, POINTS).round().astype(int)
            for before, t in zip([0, *marks[:-1]], marks, strict=True):
                path.advance(int(t - before))
                row = {
                    "panel": constraint,
                    "sampling": name,
                    "p_min": path.p_min,
                }
                row |= {
                    "iteration": int(t),
                    "gap": path.iterate.objective - least_loss,
                }
                rows.append(row | {"start": instance.start - least_loss})
    return rows


def box_least(instance: DrawnProblem) -> float:
    """Least f over the box: 0 if the shortest interpolation fits, else f(x_true)."""
    A = instance.problem.A.toarray()
    y = -instance.problem.offset
    x = np.linalg.lstsq(A, y)[0]
    fits = np.abs(x).max() <= instance.largest and np.allclose(A @ x, y)
    return 0.0 if fits else instance.truth


def eigenvalue_bounds(point: Point, seed: int, tau: int, nodes: int) -> Rows:
    """Proposition 1: expected curvature over the unit box, exactly, and its bound."""
    n = int(point["n"])
    d = int(point["d"])
    G = theory.correlated(seed, n, d, float(point["common"]))
    rows = []
    for sampling in SAMPLINGS:
        P = theory.pair_chances(sampling, d, tau, nodes)
        row: dict[str, Any] = {"sampling": sampling}
        row["curvature"] = theory.box_curvature(P * G, 1.0)
        row["bound"] = theory.eigenvalue_bound(P, G, 1.0)
        rows.append(row)
    return rows


# --- Algorithm 2 without noise: losses of Table V -------------------------------------


def losses(
    point: Point, seed: int, lengths: list[float], share: float
) -> Rows:
    """Table V: Algorithm 2 without noise for each loss and sketch length.

    ``formula`` and ``printed`` are the relative errors of the partial gradient by q,
    corrected and as printed, after 20 steps of FW.
    """
    # the same design, with labels sign(y) if the loss requires them
    base = synthetic(point, seed)
    loss = str(point["loss_name"])
    X = base.problem.A
    y = -base.problem.offset
    label = base.label_bound
    if named(loss).labels == "sign":
        y = np.where(y >= 0, 1.0, -1.0)
        label = 1.0
    problem = build("synthetic", X, y, loss, base.problem.penalty)
    instance = replace(base, problem=problem, label_bound=label)
    rows = []
    for length in lengths:
        m = max(1, round(length * instance.problem.n))
        keys = {"nodes": 4, "update": "feasible", "share": share, "sketch": m}
        (end,) = run(instance, setting_of(instance, point, **keys), seed, 0)
        rows.append(
            end
            | {"length": length, **_formula_errors(instance, m, share, seed)}
        )
    return rows


def _formula_errors(
    instance: DrawnProblem, m: int, share: float, seed: int
) -> dict[str, float]:
    """Relative errors of Table V's gradients by q, after 20 steps of FW.

    In the last column, as printed, least squares lacks the 1/n of the labels. The other
    two losses lack the 1/n of the mean and the n that turns q into margins.
    """
    problem = instance.problem
    columns = instance.columns
    n = instance.problem.n
    x = _run(instance, bcfw.Options(radius=share * instance.radius), seed, 20)
    x.advance(20)
    exact = Iterate.gradient(x.iterate)
    sketch = Sketch(n, m, 0)
    estimates = sketch.predictions(
        sketch.feature(np.arange(n), x.iterate.products / n)
    )
    weights = {
        "formula": problem.derivatives(n * estimates + problem.offset) / n,
        "printed": problem.derivatives(estimates + problem.offset),
    }
    return {
        name: float(np.linalg.norm(columns.products(slopes) - exact))
        / float(np.linalg.norm(exact))
        for name, slopes in weights.items()
    }


# --- Theorem 4 and Corollary 1: the length of a run, and its bytes --------------------


def ball_curvature(instance: DrawnProblem, radius: float) -> float:
    """Curvature of least squares over the l1 ball: max ||A (s - x)||^2 / n.

    It is attained between opposite vertices. (Proposition 4's sum over d coordinates is
    for the box, of which the ball is a small part.)
    """
    longest = float(instance.columns.square_norms.max())
    return (2 * radius) ** 2 * longest / instance.problem.n


def own_iterations(
    instance: DrawnProblem, setting: RunSetting, theta: float
) -> float:
    """T of Theorem 4, (C n epsilon / (C_g + C_l))^(2/3), constants as in Table IV.

    C is the curvature over the l1 ball, nnz(a) the mean number of non-zeros of a
    feature, G the gradient's sup norm, ``theta`` the distortion.
    """
    options = options_of(instance, setting)
    n = instance.problem.n
    K = setting.nodes
    eta = options.radius
    delta = 1.0 / n
    nonzeros = instance.problem.A.nnz / instance.problem.p
    top = sketch_of(n, options).leading_singular_value
    root = math.sqrt(math.log(1 / delta) + setting.epsilon)
    sketching = (
        K * eta * theta * nonzeros + K**1.5 * math.sqrt(nonzeros) * top**2
    )
    G = instance.published_lipschitz
    choosing = 2 * G * eta * math.sqrt(32 * math.log(1 / (delta / 2)))
    size = ball_curvature(instance, eta) * n * setting.epsilon
    return float((size / (sketching * root + choosing)) ** (2 / 3))


def communication(
    point: Point,
    seed: int,
    tuned: list[int],
    noise: str,
    rank: int,
    theta: float,
) -> Rows:
    """Bytes of Algorithm 2, counted, against Corollary 1 and a one-shot sketch.

    Parameters
    ----------
    tuned : list of int
        Numbers of iterations from which the one of lowest loss is chosen.
    noise : str
        Of ``Setting``.
    rank : int
        r of the one-shot sketch (Heinze-Deml et al. 2018), per node.
    theta : float
        Distortion of Theorem 4.
    """
    instance = synthetic(point, seed)
    setting = setting_of(instance, point, noise=noise)
    theorem = own_iterations(instance, setting, theta)
    counts = {"theorem 4": min(max(1, round(theorem)), max(tuned))}
    ends = {
        T: run(instance, replace(setting, iterations=T), seed, 0)[0]
        for T in tuned
    }
    counts["tuned"] = min(ends, key=lambda T: ends[T]["loss"])
    n = instance.problem.n
    K = setting.nodes
    shared_columns = {
        "theorem_iterations": theorem,
        "corollary": (1 / theta) ** 2
        * math.log(n) ** (1 / 3)
        * K
        * n ** (2 / 3),
        "one_shot": 8.0 * K * n * rank * math.log(rank),
    }
    rows: Rows = []
    for rule, T in counts.items():
        for row in run(instance, replace(setting, iterations=T), seed):
            rows.append({"rule": rule, **row, **shared_columns})
    return rows


def own_length(
    point: Point, seed: int, noise: str, theta: float, most: int
) -> Rows:
    """Algorithm 2 at Theorem 4's own T, its excess and the theorem's bound.

    ``nonzeros`` of the point, if present, is the mean number of non-zeros of a feature,
    the same for every n; ``theta`` is as for ``communication``. No run is longer than
    ``most``. In terms of T, the bound is C log(2 G eta d n) / T.
    """
    if point.get("nonzeros"):
        point = {**point, "density": point["nonzeros"] / point["n"]}
    instance = synthetic(point, seed)
    setting = setting_of(instance, point, noise=noise, update="feasible")
    T = own_iterations(instance, setting, theta)
    eta = setting.share * instance.radius
    count = max(1, min(most, round(T)))
    (end,) = run(instance, replace(setting, iterations=count), seed, 0)
    least_loss, _ = instance.minimum(setting.share)
    logs = math.log(
        2
        * instance.published_lipschitz
        * eta
        * instance.problem.p
        * instance.problem.n
    )
    bound = ball_curvature(instance, eta) * logs / T
    start = instance.start - least_loss
    row = {
        "own_iterations": T,
        "taken": count,
        "excess": end["loss"] - least_loss,
    }
    row |= {
        "bound": bound,
        "start": start,
        "share_left": row["excess"] / start,
    }
    return [row | {"bound_over_start": bound / start}]


# --- Theorem 2: Assumption 2 along private runs ---------------------------------------


def approximation(point: Point, seed: int, lengths: list[int]) -> Rows:
    """Errors of private runs at every iteration, and those allowed at rho = 1.

    Assumption 2 allows the partial gradient an error of rho_g gamma_t C / 2 in the
    largest entry, and the oracle rho_l gamma_t C / 2 in its inner product, with
    constants rho_g and rho_l. Since gamma_t falls like 1/t, so must the errors. C is
    the curvature over the ball of radius K eta, which contains the iterates; ``gap`` is
    the final f less the least f over this ball. A length of 0 is no sketch.
    """
    instance = synthetic(point, seed)
    rows = Rows()
    problem = instance.problem
    for length in lengths:
        setting = setting_of(instance, point, sketch=length)
        errors = Rows()
        options = options_of(instance, setting)
        noise = noise_of(instance, setting)
        path = dp_bcfw.Run(problem, streams(seed), options, noise)
        public = dp_bcfw.public_of(problem, options, noise)
        node = Node(next(shares(problem, 1)), public, 0)  # all features
        starts = edges(problem.p, setting.nodes)
        C = ball_curvature(instance, options.reach)
        for t in range(setting.iterations):
            estimate = node.gradient(node.slopes(path.q))
            slopes = problem.derivatives(problem.A @ path.x + problem.offset)
            exact = instance.columns.products(slopes) / problem.n
            path.advance(1)
            worse = options.radius * oracle_error(
                estimate, path.chosen[-1], starts
            )
            step_columns = {
                "iteration": t + 1,
                "allowed": step_size(t, 1.0) * C / 2,
            }
            error = float(np.abs(estimate - exact).max())
            errors.append(
                {"release": "gradient", "error": error} | step_columns
            )
            errors.append({"release": "oracle", "error": worse} | step_columns)
        least_loss, _ = instance.minimum(setting.nodes * setting.share)
        end = (
            problem.mean_loss(problem.A @ path.x + problem.offset) - least_loss
        )
        run_columns = {
            "curvature": C,
            "gap": end,
            "start": instance.start - least_loss,
        }
        run_columns |= {"width": 2 * options.reach, "nodes": setting.nodes}
        run_columns |= {"length": length or problem.n}
        rows += [row | run_columns for row in errors]
    return rows


def oracle_error(
    estimate: np.ndarray, signed: np.ndarray, starts: np.ndarray
) -> float:
    """Largest shortfall, over nodes, of the chosen vertex against the best of ±e_j."""
    chosen = np.sign(signed) * estimate[np.abs(signed) - 1]
    best = np.maximum.reduceat(np.abs(estimate), starts[:-1])
    return float((best - chosen).max())


# --- the sketch: Section IV and Discussion 4 ------------------------------------------


def sketched_products(
    point: Point,
    seed: int,
    lengths: list[int],
    theta: float,
    nodes: int,
    active: int,
) -> Rows:
    """Largest errors of a_i . A x / n for several m, and for that of Table IV.

    The estimate by sketched features J a_j + xi_j has the errors
    a_i . (J^T J - I) A x / n, the distortion, and (J a_i) . sum_j x_j xi_j / n, the
    noise.

    Parameters
    ----------
    point : mapping
        With ``nonzeros``, the mean number of non-zeros of a feature, which is the same
        for every n (Section IV-A), and T of equation 17.
    nodes : int
        K of equation 17.
    active : int
        Features of x, all with the same weight; ||x||_1 = 1.
    """
    n, d, count = (int(point[key]) for key in ("n", "d", "iterations"))
    rows: Rows = []
    # Table IV
    of_table = min(n, math.ceil(math.log(2 * count * n) / theta**2))
    for m, table in [
        *((m, False) for m in lengths if m <= n),
        (of_table, True),
    ]:
        rng = np.random.default_rng(seed)
        A = sparse_design(rng, n, d, point["nonzeros"] / n)
        x = np.zeros(d)
        chosen = rng.choice(d, active, replace=False)
        x[chosen] = rng.choice([-1.0, 1.0], active) / active
        sketch = Sketch(n, m, seed)
        product = A @ x
        q = sketch.feature(np.arange(n), product)
        distortion = A.T @ (sketch.predictions(q) - product) / n
        noise = []
        for projection in (sketch, Sketch(n, n, seed)):
            top = projection.leading_singular_value
            epsilon = float(point["epsilon"])
            scale = equation17(n, top, nodes * count, epsilon / 2, 1 / n)
            drawn = gaussian(streams(seed).noise, (active, projection.m))
            noise.append(
                A.T @ projection.predictions(scale * (x[x != 0] @ drawn)) / n
            )
        errors = {
            "distortion": distortion,
            "sketched_noise": noise[0],
            "plain_noise": noise[1],
            "sketched": distortion + noise[0],
        }
        worst = {
            name: float(np.abs(error).max()) for name, error in errors.items()
        }
        rows.append(worst | {"m": m, "table": table})
    return rows


# --- a search for the neighbouring data that move a release most ----------------------

Record = tuple[np.ndarray, float]


def sensitivity(point: Point, seed: int, trials: int) -> Rows:
    """Largest changes found and declared, for a node's scores and sketched features.

    Replacing record r changes one entry of each feature and one label. A score changes
    most where the record's entries, label and estimated prediction are at their bounds.
    The search tries such records and random ones, with the server's message of a real
    run.

    Returns
    -------
    list of dict
        ``release`` (score, feature), ``found`` (largest change), ``tight`` (declared
        replace-one sensitivity) and ``published`` (as the printed noise assumes).
    """
    instance = synthetic(point, seed)
    setting = setting_of(instance, point)
    problem = instance.problem
    n = instance.problem.n
    options = options_of(instance, setting)
    noise = noise_of(instance, setting)
    path = dp_bcfw.Run(problem, streams(seed), options, noise)
    path.advance(5)
    sketch = sketch_of(n, options)
    # the record that J stretches most
    longest = int(np.argmax(sketch.column_norms))
    worst = sketch.feature(np.array([longest]), np.ones(1))
    aggregates = [
        path.q,
        1e6 * worst,
        -1e6 * worst,
    ]  # estimates at their bounds
    factor = options.score_factor(noise.scores)
    score = 0.0
    feature = 0.0
    for pair in _replacements(instance, options, seed, trials):
        nodes = [_node(problem, options, longest, record) for record in pair]
        for q in aggregates:
            moved = [factor * node.gradient(node.slopes(q)) for node in nodes]
            score = max(score, float(np.abs(moved[0] - moved[1]).max()))
        for j in range(min(20, problem.p)):
            feature_before, feature_after = (
                node.sketched_without_noise(j) for node in nodes
            )
            feature = max(
                feature, float(np.linalg.norm(feature_before - feature_after))
            )
    declared = sensitivities(problem, options, noise.scores)
    printed = (
        2 * options.radius * instance.published_lipschitz / (options.nodes * n)
    )
    changes = {
        "score": (score, declared[0], printed),
        "feature": (feature, declared[1], sketch.leading_singular_value / n),
    }
    keys = ("release", "found", "tight", "published")
    return [
        dict(zip(keys, (name, *sizes), strict=True))
        for name, sizes in changes.items()
    ]


def _replacements(
    instance: DrawnProblem, options: dp_bcfw.Options, seed: int, trials: int
) -> Iterator[tuple[Record, Record]]:
    """Pairs of a record and its replacement: at the bounds, then random, far beyond."""
    rng = np.random.default_rng(seed)
    p = instance.problem.p
    B = options.entry_bound
    Y = options.label_bound
    for label in (Y, -Y):
        yield (np.full(p, B), label), (np.full(p, -B), label)
        yield (np.full(p, B), label), (np.full(p, B), -label)
    for _ in range(trials):
        features = 10 * B * rng.standard_normal((2, p))
        labels = 10 * Y * rng.standard_normal(2)
        yield (features[0], labels[0]), (features[1], labels[1])


def _node(
    problem: Problem, options: dp_bcfw.Options, replaced: int, record: Record
) -> Node:
    """One node with all columns, one record replaced."""
    features, label = record
    A = problem.A.tolil()
    A[[replaced], :] = features
    offset = problem.offset.copy()
    offset[[replaced]] = problem.loss.offset(np.array([label]))
    neighbour = replace(problem, A=sparse.csc_array(A), offset=offset)
    public = dp_bcfw.public_of(problem, options, silent(1))
    return Node(next(shares(neighbour, 1)), public, 0)
