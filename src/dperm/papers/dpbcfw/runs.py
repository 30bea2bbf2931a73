"""Instances, readings of the paper, and runs of all methods with their rows.

An instance is a problem with the constants that its experiments need. Equation 4 sums
over the records, while the rest of the paper takes their mean. The noise formulas do
not state whether epsilon is that of the run or of one iteration. A setting has a
reading, one choice of both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
from scipy import sparse

from dperm.experiments.inputs import Inputs
from dperm.papers.dpbcfw.constrained import minimum
from dperm.papers.shared.sweeps import problem_of
from dperm.privacy.events import DATA_BOUNDS, RADIUS, Ledger, united
from dperm.privacy.noise import streams
from dperm.problems.penalties import Penalty
from dperm.problems.problem import Problem, build
from dperm.problems.sets import Ball
from dperm.solvers.distributed.columns import Columns
from dperm.solvers.distributed.engines import ENGINES
from dperm.solvers.frank_wolfe import (
    CALIBRATIONS,
    FrankWolfe,
    Noise,
    bcfw,
    dp_bcfw,
    dp_fw,
)
from dperm.solvers.frank_wolfe.bcfw import step_size
from dperm.solvers.frank_wolfe.dp_bcfw_noise import (
    epsilons_apart,
    releases,
    sent_epsilon,
)
from dperm.solvers.frank_wolfe.dp_fw import selections_epsilon
from dperm.solvers.frank_wolfe.iterate import Iterate
from dperm.solvers.options import one_of

Rows = list[dict[str, Any]]
METHODS: dict[str, ModuleType] = {
    "fw": bcfw,  # with all coordinates and one vertex
    "bcfw": bcfw,
    "dp_fw": dp_fw,
    "dp_bcfw": dp_bcfw,
}
READING = (
    "objective",
    "per",
)  # keys of a setting that rows have from their point
# public bounds, in standard deviations
ENTRY_DEVIATIONS = 4.0
LABEL_DEVIATIONS = 4.0
DIVIDED = "divided"  # the printed noise, if what is sent is J a / n
NOISE_VARIANCE = 0.001  # Section V: N(0, 0.001), read as a variance

# --- data -----------------------------------------------------------------------------


@dataclass
class DrawnProblem:
    """One draw of the data."""

    problem: Problem
    radius: float  #: eta at share 1: ||x_true||_1, or ||w*||_1 of a lasso
    truth: float  #: f(x_true), or f(w*)
    largest: float  #: max |x_true|, the box of Algorithm 1
    #: entry_bound, label_bound: public bounds on entries and labels
    entry_bound: float
    label_bound: float

    @cached_property
    def columns(self) -> Columns:
        """Columns of the design as it is."""
        return Columns(self.problem.A)

    @cached_property
    def start(self) -> float:
        """f(0)."""
        return self.problem.mean_loss(self.problem.offset)

    @cached_property
    def published_lipschitz(self) -> float:
        """G as in the paper: max_j |grad_j f(0)|."""
        return dp_fw.published_lipschitz(self.problem)

    def minimum(
        self, share: float, precision: float = 1e-4, count: int = 500
    ) -> tuple[float, float]:
        """Minimum of f over the ball of radius share * eta, and the certified gap.

        The search ends at a gap of ``precision`` f(0), or after ``count`` steps.
        """
        ball = Ball(1.0, share * self.radius)
        return minimum(self.problem, ball, self.columns, precision, count)


def sparse_design(rng: np.random.Generator, n: int, p: int, density: float):
    """A (n, p) of independent entries, N(0, 1) with chance ``density``, else 0."""
    entry_count = n * p
    batches = []
    last_place = -1
    while last_place < entry_count:
        expected = int((entry_count - last_place) * density)
        gaps = rng.geometric(density, expected + 10 * int(expected**0.5) + 100)
        places = last_place + np.cumsum(gaps)
        batches.append(places)
        last_place = int(places[-1])
    flat = np.concatenate(batches)
    flat = flat[flat < entry_count]
    indptr = np.searchsorted(flat, n * np.arange(p + 1, dtype=np.int64))
    normals = rng.standard_normal(flat.size)
    return sparse.csc_array((normals, flat % n, indptr), shape=(n, p))


def synthetic(point: Mapping[str, Any], seed: int) -> DrawnProblem:
    """The synthetic data of Section V.

    Public are a bound of 4 on |a_ij|, whose non-zeros are N(0, 1), and one of 4
    standard deviations on |y_i|, known from the shares.

    Parameters
    ----------
    point : mapping
        n and d; density and active, shares of non-zeros in A and in x_true; rows, the
        number of records that are drawn, of which the first n are used.
    """
    n = int(point["n"])
    d = int(point["d"])
    density = point["density"]
    rng = np.random.default_rng(seed)
    rows = int(point.get("rows", n))
    A = sparse_design(rng, rows, d, density)
    if rows > n:
        A = sparse.csc_array(A.tocsr()[:n])
    count = max(1, round(point["active"] * d))
    x = np.zeros(d)
    x[rng.choice(d, count, replace=False)] = rng.standard_normal(count)
    y = A @ x + np.sqrt(NOISE_VARIANCE) * rng.standard_normal(n)
    problem = build("synthetic", A, y, "least_squares", Penalty())
    spread = np.sqrt(count * density + NOISE_VARIANCE)
    return _of_solution(
        problem, x, ENTRY_DEVIATIONS, float(LABEL_DEVIATIONS * spread)
    )


def prepared(problem: Problem, w: np.ndarray) -> DrawnProblem:
    """A prepared data set with the solution w (p,) of its lasso.

    The largest entry and label are taken as public bounds.
    """
    A = sparse.csc_array(problem.A)
    y = -problem.offset
    public = united(problem.given, (DATA_BOUNDS, RADIUS))
    plain = build(problem.name, A, y, "least_squares", Penalty(), given=public)
    return _of_solution(
        plain, w, float(np.abs(A.data).max()), float(np.abs(y).max())
    )


def instance_of(
    inputs: Inputs, point: Mapping[str, Any], seed: int
) -> DrawnProblem:
    """The data of a point: those of its problem, or synthetic ones.

    Raises UnavailableError, for which a sweep has a row, without the problem's data.
    """
    if "problem" not in point:
        return synthetic(point, seed)
    problem, optimum = problem_of(inputs, point["problem"])
    return prepared(problem, optimum.w)


def _of_solution(
    problem: Problem, x: np.ndarray, entry_bound: float, label_bound: float
) -> DrawnProblem:
    truth = problem.mean_loss(problem.A @ x + problem.offset)
    size = float(np.abs(x).sum())
    largest = float(np.abs(x).max())
    return DrawnProblem(
        problem, size, truth, largest, entry_bound, label_bound
    )


# --- settings and readings ------------------------------------------------------------


@dataclass(frozen=True)
class RunSetting:
    """Setting of one run: method, size and noise."""

    method: str = "dp_bcfw"  #: {"fw", "bcfw", "dp_fw", "dp_bcfw"}
    nodes: int = 1  #: K
    update: str = "published"  #: {"published", "feasible"}
    #: {"none", "stated", "scaled", "valid", "tight", "divided"}; calibration, as in
    #: ``frank_wolfe.CALIBRATIONS``, or ``DIVIDED``
    noise: str = "none"
    epsilon: float = math.inf  #: target
    share: float = 1.0  #: eta over that of the instance
    split: float = 0.5  #: share of the budget for the indices
    sketch: int = 0  #: m; 0: no sketch
    iterations: int = 100  #: T
    engine: str = "local"  #: {"local", "dask"}; of ``dp_bcfw``
    objective: str = "mean"  #: {"mean", "sum"}; f is this over the records
    #: {"total", "iteration"}; whether epsilon and delta are spent on the run or on each
    #: iteration
    per: str = "total"

    def __post_init__(self) -> None:
        one_of("settings.method", self.method, METHODS)
        one_of("settings.noise", self.noise, [*CALIBRATIONS, DIVIDED])
        one_of("settings.engine", self.engine, ENGINES)
        one_of("settings.objective", self.objective, ("mean", "sum"))
        one_of("settings.per", self.per, ("total", "iteration"))


def setting_of(
    instance: DrawnProblem, point: Mapping[str, Any], **overrides: Any
) -> RunSetting:
    """The setting of a point's keys and of others, which take precedence.

    ``ball`` of the point is eta, or ||x_true||_1 if that is less.
    """
    field_names = {field.name for field in fields(RunSetting)}
    keys = {key: point[key] for key in point if key in field_names} | overrides
    if "ball" in point:
        keys["share"] = min(1.0, point["ball"] / instance.radius)
    return RunSetting(**keys)


def options_of(instance: DrawnProblem, setting: RunSetting) -> Any:
    """The method's options for a setting."""
    radius = setting.share * instance.radius
    nodes = setting.nodes
    update = setting.update
    bounds = (instance.entry_bound, instance.label_bound)
    if setting.method == "fw":
        return bcfw.Options(radius=radius)
    if setting.method == "bcfw":  # Algorithm 2 without noise and sketch
        p = instance.problem.p
        return bcfw.Options("distributed", p, nodes, "ball", radius, update)
    if setting.method == "dp_fw":
        return dp_fw.Options(radius, *bounds)
    length = setting.sketch or None
    return dp_bcfw.Options(
        nodes, radius, update, length, setting.split, *bounds
    )


def noise_of(instance: DrawnProblem, setting: RunSetting) -> Noise:
    """The method's noise for a setting, under its reading; delta is 1/n.

    ``sum``: scores are n times larger under the same noise, which is equivalent to an
    n-th of it on the scores of the mean. ``iteration``: the formulas are for T = 1. The
    true epsilon is that of all T iterations; under such a reading that of DP-BCFW is
    the sum of those of its indices and its features, each at delta / 2.
    """
    T = setting.iterations
    n = instance.problem.n
    options = options_of(instance, setting)
    count = 1 if setting.per == "iteration" else T
    calibration = "stated" if setting.noise == DIVIDED else setting.noise
    target = (setting.epsilon, 1.0 / n, calibration)
    module = METHODS[setting.method]
    noise: Noise = module.noise(instance.problem, count, options, *target)
    if setting.noise == DIVIDED:
        return _divided(noise, n)
    plain = (setting.objective, setting.per) == ("mean", "total")
    if plain or setting.noise == "none" or setting.method in ("fw", "bcfw"):
        return noise
    index = noise.index_scale / (n if setting.objective == "sum" else 1)
    sizes = [(index, T)]
    if setting.method == "dp_bcfw":
        selections, features = releases(instance.problem.p, T, options)
        sizes = [(index, selections), (noise.sketch_scale, features)]
    events: Any = noise.ledger.events
    pairs = zip(events, sizes, strict=True)
    events = tuple(
        replace(event, scale=scale, count=k) for event, (scale, k) in pairs
    )
    ledger = Ledger(events, given=noise.ledger.given)
    noise = replace(noise, ledger=ledger, index_scale=index)
    if setting.method == "dp_bcfw":
        return replace(noise, true_epsilon=sum(epsilons_apart(noise, 0.5 / n)))
    pure = 2.0 / events[0].noise_multiplier
    epsilon = selections_epsilon(events[0].count, pure, 1.0 / n)
    return replace(noise, true_epsilon=epsilon)


def _divided(noise: Noise, n: int) -> Noise:
    """The noise of equation 17 on J a / n, which on J a itself is n times as large."""
    selection, feature = noise.ledger.events
    feature = replace(feature, scale=n * feature.scale)
    ledger = Ledger((selection, feature), given=noise.ledger.given)
    scale = n * noise.sketch_scale
    noise = replace(noise, ledger=ledger, sketch_scale=scale)
    return replace(noise, true_epsilon=sum(epsilons_apart(noise, 0.5 / n)))


# --- runs -----------------------------------------------------------------------------


def run(
    instance: DrawnProblem, setting: RunSetting, seed: int, every: int = 1
) -> Rows:
    """Rows of one run, at each ``every``-th iteration and at the last; 0: there alone.

    Each has the loss f(x) on the unclipped data, a mean under either reading, its start
    f(0) and ``truth``, f(x_true), the largest and the current ||x||_1 over eta, the
    bytes sent so far, the noise scales and the true epsilon.
    """
    noise = noise_of(instance, setting)
    T = setting.iterations
    columns = None  # DP-FW clips its own
    if setting.method != "dp_fw":
        columns = instance.columns
    inputs = (
        instance.problem,
        streams(seed),
        options_of(instance, setting),
        noise,
        columns,
    )
    distributed = setting.method == "dp_bcfw"
    where = {"start": ENGINES[setting.engine]} if distributed else {}
    with METHODS[setting.method].Run(*inputs, **where) as engine:
        engine.advance(T)
    eta = setting.share * instance.radius
    path = Iterate(instance.problem, instance.columns)
    run_columns = {
        "start": instance.start,
        "truth": instance.truth,
        "eta": eta,
    }
    run_columns |= {
        key: option
        for key, option in vars(setting).items()
        if key not in READING
    }
    run_columns |= _costs(setting, noise, 1.0 / instance.problem.n)
    if distributed and math.isfinite(noise.true_epsilon):
        run_columns |= _least_costs(instance, noise, len(engine.features))
    largest = 0.0
    rows = []
    for t in range(T + 1):
        if t:
            signed = engine.chosen[t - 1]
            moves = np.where(signed > 0, -engine.vertex, engine.vertex)
            path.combine(step_size(t - 1, 1.0), np.abs(signed) - 1, moves)
        reached = path.l1_norm / eta
        largest = max(largest, reached)
        if t == T or (every and t % every == 0):
            row = {"iteration": t, "loss": path.objective}
            row |= {"largest_norm": largest, "final_norm": reached}
            rows.append(run_columns | row | _sent(engine, t))
    return rows


def _costs(setting: RunSetting, noise: Noise, delta: float) -> dict[str, Any]:
    """Noise scales and true epsilon.

    DP-BCFW also has the epsilons of both kinds of release, each alone at delta / 2.
    """
    method = setting.method
    public = ", ".join(noise.ledger.given)
    total = {"true_epsilon": noise.true_epsilon, "given": public}
    scale = {"index_scale": noise.index_scale}
    if method == "dp_fw":
        return scale | total
    if method != "dp_bcfw":
        return total
    index, sketch = epsilons_apart(noise, delta / 2)
    apart = {"index_epsilon": index, "sketch_epsilon": sketch}
    return total | scale | {"sketch_scale": noise.sketch_scale} | apart


def _least_costs(
    instance: DrawnProblem, noise: Noise, sent: int
) -> dict[str, float]:
    """Lower bounds on the true epsilon of DP-BCFW, by all features that it sends.

    ``epsilon_low`` is for entries that change within their range, from -B to B, and
    ``epsilon_low_unit`` for entries that change by 1.
    """
    delta = 1.0 / instance.problem.n
    unit = 1.0 / (2.0 * instance.entry_bound)
    return {
        "epsilon_low": sent_epsilon(noise, sent, delta),
        "epsilon_low_unit": sent_epsilon(noise, sent, delta, unit),
    }


def _sent(engine: FrankWolfe, t: int) -> dict[str, int]:
    """Bytes sent until iteration t, and features sent in the whole run."""
    if not isinstance(engine, dp_bcfw.Run):
        return {}
    return {
        "bytes_up": int(np.sum(engine.up[:t])),
        "bytes_down": int(np.sum(engine.down[:t])),
        "features": len(engine.features),
    }
