"""Experiments of Lou and Cheung 2020 (DP-BCFW): one call is one draw of the data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from dperm.core.erm.columns import Columns
from dperm.core.erm.loss import Signed
from dperm.core.erm.losses import named
from dperm.core.erm.problem import Problem, build
from dperm.core.experiment import grid, plan, schema
from dperm.core.privacy.mechanisms import streams
from dperm.papers.dpbcfw import (
    convergence,
    eigenvalues,
    inexact,
    neighbours,
    sketching,
    theory,
)
from dperm.papers.dpbcfw.instances import Instance, prepared, synthetic
from dperm.papers.dpbcfw.reading import Reading, final
from dperm.papers.dpbcfw.runs import Rows, Setting, run
from dperm.pipeline import inputs
from dperm.solvers.distributed.sketch import Sketch
from dperm.solvers.frank_wolfe import bcfw, fw, silent
from dperm.solvers.frank_wolfe.iterate import Iterate

DATA = ("n", "d", "density", "active", "rows")
SETTING = tuple(field.name for field in fields(Setting))


def compare(
    config: schema.Config,
    point: Mapping[str, Any],
    seed: int,
    settings: Any,
    every: int = 1,
    excess: bool = False,
    same_sparsity: bool = False,
    engine: str = "local",
) -> Rows:
    """Runs of many settings on the data of a point.

    Parameters
    ----------
    point : mapping
        Sizes and sparsity of synthetic data, or ``problem``; keys of ``Setting``,
        which go into all settings; and ``up_to``, the largest epsilon that is run.
    settings : grid
        Of keys of ``Setting``.
    every : int
        Rows are kept at every so many iterations, and at the last.
    excess : bool
        Whether the minimum over each ball is computed as well.
    same_sparsity : bool
        Whether x_true is as dense as the features.
    engine : str
        Of Algorithm 2.
    """
    if same_sparsity:
        point = {**point, "active": point["density"]}
    at = _instance(config, point, seed)
    if isinstance(at, str):
        return [{"status": "unavailable", "reason": at}]
    common = {key: point[key] for key in SETTING if key in point}
    rows = []
    for keys in grid.points(settings, axes=None):
        if keys.get("epsilon", 0.0) > point.get("up_to", math.inf):
            continue
        setting = Setting(**_whole({**keys, **common}), engine=engine)
        found = run(at, setting, seed, every)
        known = _known(at, setting, excess)
        rows += [{**row, **known} for row in found]
    return rows


def readings(
    config: schema.Config,
    point: Mapping[str, Any],
    seed: int,
    settings: Any,
    same_sparsity: bool = False,
    records: list[int] | None = None,
) -> Rows:
    """The ends of many runs on the data of a point, all under one reading.

    Parameters
    ----------
    point : mapping
        As for ``compare``; ``ball``, eta itself, ||x_true||_1 where that is less;
        ``objective`` and ``per`` of ``Reading``.
    settings : grid
        Of keys of ``Setting``, and ``own``: with the noise of its own paper, whatever
        the reading.
    same_sparsity : bool
        Whether x_true is as dense as the features.
    records : list of int, optional
        Numbers n of records, all of one draw of the data; else the point has n.
    """
    if same_sparsity:
        point = {**point, "active": point["density"]}
    reading, rows = Reading(point["objective"], point["per"]), list[dict[str, Any]]()
    for sizes in [{"n": n} for n in records] if records else [{}]:
        at = _instance(config, {**point, **sizes}, seed)
        if isinstance(at, str):
            return [{"status": "unavailable", "reason": at}]
        common = {key: point[key] for key in SETTING if key in point}
        if "ball" in point:
            common["share"] = min(1.0, point["ball"] / at.radius)
        for keys in grid.points(settings, axes=None):
            own = keys.pop("own", False)
            setting = Setting(**_whole({**keys, **common}))
            found = final(at, setting, Reading() if own else reading, seed)
            sized = {"n": at.problem.n, "d": at.problem.p}
            rows.append({**found, **sized, "own": own})
    return rows


def _whole(keys: dict[str, Any]) -> dict[str, Any]:
    """Grids may make floats of whole numbers."""
    whole = ("nodes", "sketch", "iterations")
    return {key: int(v) if key in whole else v for key, v in keys.items()}


def _known(at: Instance, setting: Setting, excess: bool) -> dict[str, float]:
    found = {"truth": at.truth, "d": at.problem.p}
    if excess:
        value, gap = at.minimum(setting.share)
        found |= {"minimum": value, "gap": gap}
    return found


def _instance(
    config: schema.Config, point: Mapping[str, Any], seed: int
) -> Instance | str:
    """The data of a point, or why there are none."""
    if "problem" not in point:
        sizes = {key: point[key] for key in DATA if key in point}
        return synthetic(seed, **_integers(sizes))
    at = plan.at_problem(config, point["problem"])
    problem = inputs.load_problem(at)
    if problem is None:
        return inputs.unavailable_reason(at)
    return prepared(problem, inputs.load_optimum(at).w)


def _drawn(config: schema.Config, point: Mapping[str, Any], seed: int) -> Instance:
    """The data of a point that has them."""
    at = _instance(config, point, seed)
    assert isinstance(at, Instance)
    return at


def _integers(sizes: dict[str, Any]) -> dict[str, Any]:
    whole = ("n", "d", "rows")
    return {key: int(v) if key in whole else v for key, v in sizes.items()}


# --- Algorithm 1 ----------------------------------------------------------------------


def samplings(
    config: schema.Config,
    point: Mapping[str, Any],
    seed: int,
    chance: float,
    nodes: int,
    published_p_min: float,
) -> Rows:
    """Figure 1: Algorithm 1 on the box and on the ball under several samplings.

    Parameters
    ----------
    chance : float
        tau over d: what tau-nice gives each feature, and each node takes.
    nodes : int
        K.
    published_p_min : float
        What Section V-A takes, (tau / d)^2; Table III prints (K tau)^2 / d^2.
    """
    at = _drawn(config, point, seed)
    tau, rows = round(chance * at.problem.p), []
    for constraint in bcfw.CONSTRAINTS:
        size = at.largest if constraint == "box" else at.radius
        shared: dict[str, Any] = {"constraint": constraint, "radius": size}
        chosen = {
            "elementary": bcfw.Options("elementary", **shared),
            "tau-nice": bcfw.Options("tau_nice", tau, **shared),
            "(K, tau), published": bcfw.Options(
                "distributed", tau, nodes, p_min=published_p_min, **shared
            ),
            "(K, tau), corrected": bcfw.Options("distributed", tau, nodes, **shared),
        }
        for name, options in chosen.items():
            keys = {"constraint": constraint, "sampling": name, "eta": size}
            rows += _path(at, options, seed, int(point["iterations"]), keys)
    return rows


def sampled_balls(
    config: schema.Config,
    point: Mapping[str, Any],
    seed: int,
    chance: float,
    nodes: int,
    published_p_min: float,
) -> Rows:
    """The ends of Figure 1's runs on l1 balls of other radii; as for ``samplings``.

    ``ball`` of the point is eta itself, ||x_true||_1 where that is less.
    """
    at = _drawn(config, point, seed)
    count, tau = int(point["iterations"]), round(chance * at.problem.p)
    size: dict[str, Any] = {"radius": min(point["ball"], at.radius)}
    both = ("distributed", tau, nodes)
    chosen = {
        "elementary": bcfw.Options("elementary", **size),
        "tau-nice": bcfw.Options("tau_nice", tau, **size),
        "(K, tau), published": bcfw.Options(*both, p_min=published_p_min, **size),
        "(K, tau), corrected": bcfw.Options(*both, **size),
    }
    rows = []
    for name, options in chosen.items():
        made = bcfw.Run(at.problem, streams(seed), options, silent(count), at.columns)
        made.advance(count)
        keys = {"constraint": "ball", "sampling": name, "eta": options.radius}
        rows.append({**keys, "loss": made.at.objective, "start": at.start})
    return rows


def blocks(
    config: schema.Config, point: Mapping[str, Any], seed: int, nodes: list[int]
) -> Rows:
    """Figure 2 as Algorithm 1: each of K nodes samples d over max K coordinates."""
    at = _drawn(config, point, seed)
    tau, rows = at.problem.p // max(nodes), []
    for constraint in bcfw.CONSTRAINTS:
        size = at.largest if constraint == "box" else at.radius
        for K in nodes:
            options = bcfw.Options("distributed", tau, K, constraint, size)
            keys = {"constraint": constraint, "nodes": K, "eta": size}
            rows += _path(at, options, seed, int(point["iterations"]), keys)
    return rows


def _path(
    at: Instance, options: bcfw.Options, seed: int, count: int, keys: dict[str, Any]
) -> Rows:
    none = silent(count)
    made = bcfw.Run(at.problem, streams(seed), options, none, at.columns)
    rows = []
    for t in range(count + 1):
        if t:
            made.advance(1)
        norms = {
            "largest_norm": made.largest / options.radius,
            "final_norm": made.at.l1_norm / options.radius,
        }
        loss = {"loss": made.at.objective, "start": at.start}
        rows.append({**keys, "iteration": t, **loss, **norms, "p_min": made.p_min})
    return rows


def curvature(
    config: schema.Config,
    point: Mapping[str, Any],
    seed: int,
    chance: float,
    nodes: int,
) -> Rows:
    """Table III in numbers: curvatures, bounds and what Algorithm 1 reaches."""
    at = _drawn(config, point, seed)
    tau = round(chance * at.problem.p)
    return theory.table3(at, tau, nodes, int(point["iterations"]), seed)


# --- losses of Table V ----------------------------------------------------------------


def losses(
    config: schema.Config,
    point: Mapping[str, Any],
    seed: int,
    lengths: list[float],
    share: float,
) -> Rows:
    """Table V: Algorithm 2 without noise for each loss and sketch length.

    ``formula`` and ``printed`` are the relative errors, at the last iterate of the run,
    of the partial gradient by q, corrected and as printed.
    """
    base = _drawn(config, point, seed)
    at = _with_loss(base, str(point["loss_name"]))
    rows = []
    for length in lengths:
        m = max(1, round(length * at.problem.n))
        setting = Setting(
            nodes=4, update="feasible", share=share, sketch=m,
            iterations=int(point["iterations"]),
        )  # fmt: skip
        found = run(at, setting, seed)
        errors = _formula_errors(at, m, share, seed)
        rows += [{**row, "length": length, **errors} for row in found]
    return rows


def _with_loss(base: Instance, loss: str) -> Instance:
    """The same design with labels sign(y) where the loss wants them."""
    X, y, bound = base.problem.A, -base.problem.offset, base.label_bound
    if isinstance(named(loss), Signed):
        y, bound = np.where(y >= 0, 1.0, -1.0), 1.0
    made = build("synthetic", X, y, loss, base.problem.penalty)
    return replace(base, problem=made, label_bound=bound, _minima={})


def _formula_errors(at: Instance, m: int, share: float, seed: int) -> dict[str, float]:
    """How far Table V's gradient is from the true one, at a point of FW's."""
    problem = at.problem
    options = fw.Options(share * at.radius)
    x = fw.Run(problem, streams(seed), options, silent(20))
    x.advance(20)
    sketch = Sketch(problem.n, m, 0)
    rows = np.arange(problem.n)
    q = sketch.feature(rows, x.at.products / problem.n)
    columns: Columns = at.columns
    exact = Iterate.gradient(x.at)
    estimates = sketch.predictions(q)
    ours = problem.derivatives(problem.n * estimates + problem.offset) / problem.n
    printed = _printed(problem, estimates)
    size = float(np.linalg.norm(exact))
    return {
        "formula": float(np.linalg.norm(columns.products(ours) - exact)) / size,
        "printed": float(np.linalg.norm(columns.products(printed) - exact)) / size,
    }


def _printed(problem: Problem, estimates: np.ndarray) -> np.ndarray:
    """Table V's last column as printed, as weights of the records.

    Least squares lost the 1/n of the labels; the other two the 1/n of the mean and the
    n that makes margins of q.
    """
    return problem.derivatives(estimates + problem.offset)


# --- communication and sensitivity ----------------------------------------------------


def communication(
    config: schema.Config,
    point: Mapping[str, Any],
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
    at = _drawn(config, point, seed)
    keys = {key: point[key] for key in SETTING if key in point}
    setting = Setting(**_whole({**keys, "noise": noise}))
    theorem = theory.iterations(at, setting, theta)
    counts = {"theorem 4": min(max(1, round(theorem)), max(tuned))}
    ends = {T: run(at, replace(setting, iterations=T), seed, T)[-1] for T in tuned}
    counts["tuned"] = min(ends, key=lambda T: ends[T]["loss"])
    n, K = at.problem.n, setting.nodes
    known = {
        "theorem_iterations": theorem,
        "corollary": (1 / theta) ** 2 * math.log(n) ** (1 / 3) * K * n ** (2 / 3),
        "one_shot": 8.0 * K * n * rank * math.log(rank),
    }
    rows = []
    for rule, T in counts.items():
        made = replace(setting, iterations=T)
        rows += [{"rule": rule, **row, **known} for row in run(at, made, seed)]
    return rows


def sensitivity(
    config: schema.Config, point: Mapping[str, Any], seed: int, trials: int
) -> Rows:
    """Largest change of what a node releases, over replaced records that were tried."""
    at = _drawn(config, point, seed)
    setting = Setting(**_whole({key: point[key] for key in SETTING if key in point}))
    return neighbours.search(at, setting, seed, trials)


# --- Theorems 1 and 2, Proposition 1, the sketch --------------------------------------


def rates(
    config: schema.Config,
    point: Mapping[str, Any],
    seed: int,
    chance: float,
    nodes: int,
) -> Rows:
    """Theorem 1's O(1/t): gaps of Algorithm 1 over the last decade of a run."""
    at = _drawn(config, point, seed)
    tau, T = round(chance * at.problem.p), int(point["iterations"])
    return convergence.gaps(at, float(point["share"]), tau, nodes, T, seed)


def eigenvalue_bounds(
    config: schema.Config, point: Mapping[str, Any], seed: int, tau: int, nodes: int
) -> Rows:
    """Proposition 1: expected curvature over a box, exactly, and its bound."""
    n, d = int(point["n"]), int(point["d"])
    return eigenvalues.rows(seed, n, d, float(point["common"]), tau, nodes, 1.0)


def approximation(
    config: schema.Config, point: Mapping[str, Any], seed: int, lengths: list[int]
) -> Rows:
    """Assumption 2: the errors of private runs at every iteration; 0 is no sketch."""
    at = _drawn(config, point, seed)
    given = {key: point[key] for key in SETTING if key in point}
    given["share"] = min(1.0, point["ball"] / at.radius)
    reading, rows = Reading(point["objective"], point["per"]), list[dict[str, Any]]()
    for length in lengths:
        setting = Setting(**_whole({**given, "sketch": length}))
        found = inexact.errors(at, setting, reading, seed)
        rows += [{**row, "length": length or at.problem.n} for row in found]
    return rows


def sketched_products(
    config: schema.Config,
    point: Mapping[str, Any],
    seed: int,
    lengths: list[int],
    theta: float,
    nodes: int,
    active: int,
) -> Rows:
    """Section IV's sketch: errors of products for several m, and for Table IV's."""
    n, count = int(point["n"]), int(point["iterations"])
    named = sketching.table_length(n, count, theta)
    sizes = (int(point["d"]), int(point["nonzeros"]), active, float(point["epsilon"]))
    return [
        {**sketching.errors(seed, n, m, *sizes, nodes, count), "m": m, "table": table}
        for m, table in [*((m, False) for m in lengths if m <= n), (named, True)]
    ]
