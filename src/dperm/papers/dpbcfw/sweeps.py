"""Experiments of Lou and Cheung 2020 (DP-BCFW): one call is one draw of the data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from dperm.core.erm.losses import named
from dperm.core.erm.problem import build
from dperm.core.experiment import grid, plan
from dperm.core.experiment.schema import Config
from dperm.core.privacy.mechanisms import streams
from dperm.papers.dpbcfw import theory
from dperm.papers.dpbcfw.runs import (
    Instance,
    Reading,
    Rows,
    Setting,
    final,
    prepared,
    run,
    synthetic,
)
from dperm.pipeline import inputs
from dperm.solvers.distributed.sketch import Sketch
from dperm.solvers.frank_wolfe import bcfw, fw, silent
from dperm.solvers.frank_wolfe.iterate import Iterate

DATA = ("n", "d", "density", "active", "rows")
SETTING = tuple(field.name for field in fields(Setting))
WHOLE = ("n", "d", "rows", "nodes", "sketch", "iterations")  # converted to integers
Point = Mapping[str, Any]


def compare(
    config: Config,
    point: Point,
    seed: int,
    settings: Any,
    every: int = 1,
    same_sparsity: bool = False,
    engine: str = "local",
) -> Rows:
    """Runs of many settings on the data of a point.

    Parameters
    ----------
    point : mapping
        Sizes and sparsity of synthetic data, or ``problem``; and keys of ``Setting``,
        which go into all settings.
    settings : grid
        Of keys of ``Setting``.
    every : int
        Rows are kept at each ``every``-th iteration and at the last.
    same_sparsity : bool
        Whether x_true is as dense as the features.
    engine : str
        Engine of Algorithm 2.
    """
    at = _instance(config, point, seed, same_sparsity)
    if isinstance(at, str):
        return [{"status": "unavailable", "reason": at}]
    rows = []
    for keys in grid.points(settings, axes=None):
        setting = _setting(point, **keys, engine=engine)
        known = {"truth": at.truth, "d": at.problem.p}
        rows += [row | known for row in run(at, setting, seed, every)]
    return rows


def readings(
    config: Config,
    point: Point,
    seed: int,
    settings: Any,
    same_sparsity: bool = False,
    records: list[int] | None = None,
) -> Rows:
    """Final rows of many runs on the data of a point, all under one reading.

    Parameters
    ----------
    point : mapping
        As for ``compare``; ``ball``, which is eta, or ||x_true||_1 if that is less;
        ``objective`` and ``per`` of ``Reading``.
    settings : grid
        Of keys of ``Setting``, and ``own``: with the noise of the method's own paper
        under every reading.
    same_sparsity : bool
        Whether x_true is as dense as the features.
    records : list of int, optional
        Numbers n of records, all of one draw of the data; else the point has n.
    """
    reading, rows = Reading(point["objective"], point["per"]), list[dict[str, Any]]()
    for sizes in [{"n": n} for n in records] if records else [{}]:
        at = _instance(config, {**point, **sizes}, seed, same_sparsity)
        if isinstance(at, str):
            return [{"status": "unavailable", "reason": at}]
        for keys in grid.points(settings, axes=None):
            as_itself = keys.pop("own", False)
            setting = _setting(point, **(keys | _share(at, point)))
            end = final(at, setting, Reading() if as_itself else reading, seed)
            rows.append({**end, "n": at.problem.n, "d": at.problem.p, "own": as_itself})
    return rows


def _setting(point: Point, **more: Any) -> Setting:
    """The setting of these keys and of the point's, which take precedence."""
    return Setting(
        **_whole(more | {key: point[key] for key in SETTING if key in point})
    )


def _share(at: Instance, point: Point) -> dict[str, float]:
    """``ball``, which is eta, as a share of ||x_true||_1; at most 1."""
    return {"share": min(1.0, point["ball"] / at.radius)} if "ball" in point else {}


def _whole(keys: dict[str, Any]) -> dict[str, Any]:
    return {key: int(v) if key in WHOLE else v for key, v in keys.items()}


def _instance(
    config: Config, point: Point, seed: int, same_sparsity: bool = False
) -> Instance | str:
    """The data of a point, or the reason why they are not available."""
    if "problem" not in point:
        sizes = {key: point[key] for key in DATA if key in point}
        if same_sparsity:
            sizes["active"] = point["density"]
        return synthetic(seed, **_whole(sizes))
    at = plan.at_problem(config, point["problem"])
    problem = inputs.load_problem(at)
    if problem is None:
        return inputs.unavailable_reason(at)
    return prepared(problem, inputs.load_optimum(at).w)


def _drawn(config: Config, point: Point, seed: int) -> Instance:
    """The data of a point at which they are available."""
    at = _instance(config, point, seed)
    assert isinstance(at, Instance)
    return at


# --- Algorithm 1 ----------------------------------------------------------------------


def samplings(
    config: Config,
    point: Point,
    seed: int,
    chance: float,
    nodes: int,
    published_p_min: float,
) -> Rows:
    """Figure 1: Algorithm 1 on the box and on the ball under several samplings.

    Parameters
    ----------
    chance : float
        tau over d: the chance of a feature in tau-nice sampling, and the share of the
        features that each node takes.
    nodes : int
        K.
    published_p_min : float
        p_min of Section V-A, (tau / d)^2; Table III prints (K tau)^2 / d^2.
    """
    at, rows = _drawn(config, point, seed), []
    tau = round(chance * at.problem.p)
    for constraint, size in _sets(at):
        for name, options in _of_figure1(tau, nodes, published_p_min):
            options = replace(options, constraint=constraint, radius=size)
            keys = {"constraint": constraint, "sampling": name, "eta": size}
            rows += _path(at, options, seed, int(point["iterations"]), keys)
    return rows


def blocks(config: Config, point: Point, seed: int, nodes: list[int]) -> Rows:
    """Figure 2 as Algorithm 1: each of K nodes samples d / max K coordinates."""
    at, rows = _drawn(config, point, seed), []
    tau = at.problem.p // max(nodes)
    for constraint, size in _sets(at):
        for K in nodes:
            options = bcfw.Options("distributed", tau, K, constraint, size)
            keys = {"constraint": constraint, "nodes": K, "eta": size}
            rows += _path(at, options, seed, int(point["iterations"]), keys)
    return rows


def _of_figure1(
    tau: int, nodes: int, published_p_min: float
) -> Iterator[tuple[str, bcfw.Options]]:
    """Names and options of the samplings of Figure 1."""
    distributed = bcfw.Options("distributed", tau, nodes)
    yield "elementary", bcfw.Options()
    yield "tau-nice", bcfw.Options("tau_nice", tau)
    yield "(K, tau), published", replace(distributed, p_min=published_p_min)
    yield "(K, tau), corrected", distributed


def _sets(at: Instance) -> Iterator[tuple[str, float]]:
    """Box and ball with their sizes."""
    for constraint in bcfw.CONSTRAINTS:
        yield constraint, at.largest if constraint == "box" else at.radius


def _path(
    at: Instance, options: bcfw.Options, seed: int, count: int, keys: dict[str, Any]
) -> Rows:
    """Rows of a run of Algorithm 1, one per iteration."""
    path = bcfw.Run(at.problem, streams(seed), options, silent(count), at.columns)
    rows = []
    for t in range(count + 1):
        if t:
            path.advance(1)
        row = {
            "iteration": t,
            "loss": path.at.objective,
            "start": at.start,
            "largest_norm": path.largest / options.radius,
            "final_norm": path.at.l1_norm / options.radius,
            "p_min": path.p_min,
        }
        rows.append(keys | row)
    return rows


def curvature(
    config: Config, point: Point, seed: int, chance: float, nodes: int
) -> Rows:
    """Table III in numbers: curvatures, bounds and the gap that Algorithm 1 reaches."""
    at = _drawn(config, point, seed)
    tau = round(chance * at.problem.p)
    return theory.table3(at, tau, nodes, int(point["iterations"]), seed)


# --- losses of Table V ----------------------------------------------------------------


def losses(
    config: Config, point: Point, seed: int, lengths: list[float], share: float
) -> Rows:
    """Table V: Algorithm 2 without noise for each loss and sketch length.

    ``formula`` and ``printed`` are the relative errors of the partial gradient by q,
    corrected and as printed, after 20 steps of FW.
    """
    # the same design, with labels sign(y) if the loss requires them
    base = _drawn(config, point, seed)
    loss = str(point["loss_name"])
    X, y, bound = base.problem.A, -base.problem.offset, base.label_bound
    if named(loss).labels == "sign":
        y, bound = np.where(y >= 0, 1.0, -1.0), 1.0
    problem = build("synthetic", X, y, loss, base.problem.penalty)
    at, rows = replace(base, problem=problem, label_bound=bound, _minima={}), []
    for length in lengths:
        m = max(1, round(length * at.problem.n))
        keys = {"nodes": 4, "update": "feasible", "share": share, "sketch": m}
        end = final(at, _setting(point, **keys), Reading(), seed)
        errors = {"length": length, **_formula_errors(at, m, share, seed)}
        rows.append(end | errors)
    return rows


def _formula_errors(at: Instance, m: int, share: float, seed: int) -> dict[str, float]:
    """Relative errors of Table V's gradients by q, after 20 steps of FW.

    In the last column, as printed, least squares lacks the 1/n of the labels. The other
    two losses lack the 1/n of the mean and the n that turns q into margins.
    """
    problem, columns, n = at.problem, at.columns, at.problem.n
    x = fw.Run(problem, streams(seed), fw.Options(share * at.radius), silent(20))
    x.advance(20)
    exact = Iterate.gradient(x.at)
    size = float(np.linalg.norm(exact))
    sketch = Sketch(n, m, 0)
    estimates = sketch.predictions(sketch.feature(np.arange(n), x.at.products / n))
    weights = {
        "formula": problem.derivatives(n * estimates + problem.offset) / n,
        "printed": problem.derivatives(estimates + problem.offset),
    }
    return {
        name: float(np.linalg.norm(columns.products(each) - exact)) / size
        for name, each in weights.items()
    }


# --- communication and sensitivity ----------------------------------------------------


def communication(
    config: Config,
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
    at = _drawn(config, point, seed)
    setting = _setting(point, noise=noise)
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
    return [
        {"rule": rule, **row, **known}
        for rule, T in counts.items()
        for row in run(at, replace(setting, iterations=T), seed)
    ]


def own_length(
    config: Config, point: Point, seed: int, noise: str, theta: float, most: int
) -> Rows:
    """Algorithm 2 at Theorem 4's own T, its excess and the theorem's bound.

    ``nonzeros`` of the point, if present, is the mean number of non-zeros of a feature,
    the same for every n; ``theta`` is as for ``communication``. No run is longer than
    ``most``. In terms of T, the bound is C log(2 G eta d n) / T.
    """
    if point.get("nonzeros"):
        point = {**point, "density": point["nonzeros"] / point["n"]}
    at = _drawn(config, point, seed)
    setting = _setting(point, noise=noise, update="feasible")
    T, eta = theory.iterations(at, setting, theta), setting.share * at.radius
    count = max(1, min(most, round(T)))
    end = final(at, replace(setting, iterations=count), Reading(), seed)
    least, _ = at.minimum(setting.share)
    logs = math.log(2 * at.published_lipschitz * eta * at.problem.p * at.problem.n)
    bound = theory.ball_curvature(at, eta) * logs / T
    start = at.start - least
    row = {"own_iterations": T, "taken": count, "excess": end["loss"] - least}
    row |= {"bound": bound, "start": start, "share_left": row["excess"] / start}
    return [row | {"bound_over_start": bound / start}]


def sensitivity(config: Config, point: Point, seed: int, trials: int) -> Rows:
    """Largest change of a node's releases, over replaced records that were tried."""
    at = _drawn(config, point, seed)
    return theory.largest_changes(at, _setting(point), seed, trials)


# --- Theorems 1 and 2, Proposition 1, the sketch --------------------------------------


def rates(config: Config, point: Point, seed: int, chance: float, nodes: int) -> Rows:
    """Theorem 1's O(1/t): gaps of Algorithm 1 over the last decade of a run."""
    at = _drawn(config, point, seed)
    tau, T = round(chance * at.problem.p), int(point["iterations"])
    return theory.gaps(at, float(point["share"]), tau, nodes, T, seed)


def eigenvalue_bounds(
    config: Config, point: Point, seed: int, tau: int, nodes: int
) -> Rows:
    """Proposition 1: expected curvature over a box, exactly, and its bound."""
    n, d = int(point["n"]), int(point["d"])
    return theory.proposition1(seed, n, d, float(point["common"]), tau, nodes, 1.0)


def approximation(config: Config, point: Point, seed: int, lengths: list[int]) -> Rows:
    """Assumption 2: errors of private runs at every iteration; length 0: no sketch."""
    at, rows = _drawn(config, point, seed), list[dict[str, Any]]()
    reading = Reading(point["objective"], point["per"])
    for length in lengths:
        setting = _setting(point, sketch=length, **_share(at, point))
        errors = theory.approximation_errors(at, setting, reading, seed)
        rows += [{**row, "length": length or at.problem.n} for row in errors]
    return rows


def sketched_products(
    config: Config,
    point: Point,
    seed: int,
    lengths: list[int],
    theta: float,
    nodes: int,
    active: int,
) -> Rows:
    """Section IV's sketch: errors of products for several m, and that of Table IV."""
    n, count = int(point["n"]), int(point["iterations"])
    of_table = theory.table_length(n, count, theta)
    sizes = (int(point["d"]), int(point["nonzeros"]), active, float(point["epsilon"]))
    rows = []
    for m, table in [*((m, False) for m in lengths if m <= n), (of_table, True)]:
        errors = theory.sketch_errors(seed, n, m, *sizes, nodes, count)
        rows.append(errors | {"m": m, "table": table})
    return rows
