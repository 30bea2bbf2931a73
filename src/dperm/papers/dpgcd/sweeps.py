"""Sweeps of Mangold et al. 2023 (DP-GCD): growth of the error, bounds, coordinates."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dperm.config import grid as grids
from dperm.config.schema import Paper
from dperm.experiments import plan, results
from dperm.experiments.inputs import Inputs, SolverOnProblem
from dperm.papers.dpgcd import largest, theorem44
from dperm.papers.dpgcd.growing import KNOBS, Instance, decaying, draw
from dperm.papers.shared.sweeps import (
    CALIBRATION,
    ends,
    load_method,
    priced,
    problem_of,
    tuned,
)
from dperm.privacy.accountants import TIGHT
from dperm.privacy.accounting import true_epsilon
from dperm.privacy.events import Ledger
from dperm.privacy.mechanisms.noisy_max import NoisyMax
from dperm.privacy.noise import streams
from dperm.problems.optimum import Optimum, solve
from dperm.problems.problem import Problem
from dperm.solvers.batched import (
    BatchedSettings,
    dp_cd,
    dp_gcd,
    dp_sgd,
    trials,
)

SOLVERS: dict[str, tuple[Any, Any]] = {
    "DP-GCD": (dp_gcd, dp_gcd.Options()),
    "DP-CD": (dp_cd, dp_cd.Options("uniform")),
    "DP-SGD": (dp_sgd, dp_sgd.Options()),
}
TRANSCRIPTS = 3  # that a setting is chosen by


def growth(
    point: dict[str, Any],
    seed: int,
    master: int,
    epsilon: float,
    grids_of: dict[str, Any],
    fresh: int,
) -> list[dict[str, Any]]:
    """Excess of one algorithm on one draw of a problem, tuned and then on fresh seeds.

    ``point`` has algorithm; p, n, tau and imbalance of ``Instance``; draw. ``seed`` is
    that of the runs; the problem has another, the same for all algorithms. ``epsilon``
    is under the tight accountant. ``grids_of`` has axes of each algorithm's grid, in
    units that suit all problems (clip: the root of sum M_j). ``share`` is the excess
    over that of w = 0.
    """
    instance = Instance(**{key: point[key] for key in KNOBS})
    seed_words = ("instance", "growth", repr(instance))
    drawn = plan.seed_of(master, *seed_words, 0, point["draw"])
    problem, optimum = _solved(instance, drawn, epsilon)
    points = grids.points(
        grids_of[point["algorithm"]], "options.grids_of", axes=None
    )
    scale = math.sqrt(float(problem.smoothness.sum()))
    scaled = [
        grid_point | {"clip": grid_point["clip"] * scale}
        for grid_point in points
    ]
    tuning_trials = trials.Trials(problem, *SOLVERS[point["algorithm"]], TIGHT)
    tuning = tuning_trials.tried(scaled, seed, (TRANSCRIPTS, fresh))
    start = (
        float(problem.objective(np.zeros((1, instance.p)))[0]) - optimum.value
    )
    shared_columns = {"support": int(optimum.support.sum()), "start": start}
    shared_columns |= {"optimum": optimum.value, **tuning.point}
    shared_columns["true_epsilon"] = tuning.noise.true_epsilon
    return [
        {
            "fresh": number,
            "excess": excess,
            "share": excess / start,
            **shared_columns,
        }
        for number, excess in enumerate(
            (tuning.objective - optimum.value).tolist()
        )
    ]


# the last: it may take a gigabyte
_SOLVED: dict[Any, tuple[Problem, Optimum]] = {}


def _solved(
    instance: Instance, seed: int, epsilon: float
) -> tuple[Problem, Optimum]:
    """An instance and its optimum, made once for all algorithms, which run together.

    A copy is returned, so that arrays that an algorithm derives are freed afterwards.
    """
    if (instance, seed, epsilon) not in _SOLVED:
        _SOLVED.clear()
        problem = draw(instance, seed, epsilon)
        _SOLVED[instance, seed, epsilon] = problem, solve(problem)
    problem, optimum = _SOLVED[instance, seed, epsilon]
    return replace(problem), optimum


def selection(
    point: dict[str, Any],
    seed: int,
    epsilon: float,
    delta: float,
    tau: int,
    records: int,
    counts: list[int],
    fresh: int,
) -> list[dict[str, Any]]:
    """DP-GCD where the selection fails, and only p varies in the bound.

    ``point`` has p; algorithm, which is DP-GCD; iterations, 0 for the best of
    ``counts`` by its mean on ``TRANSCRIPTS`` seeds. ``epsilon``, ``delta`` and ``tau``
    are those of ``growing.decaying``, of which each record stands for so many
    ``records``: the noise is less by this factor, so that n epsilon over the Lipschitz
    constants is the same for every p. ``share`` is the excess over that of w = 0.
    """
    module, options = SOLVERS[point["algorithm"]]
    problem = decaying(int(point["p"]), tau, epsilon, delta)
    # max |w*_j| = 1: no clipping
    clip = np.full(1, problem.n * math.sqrt(problem.p))
    seeds = trials.seeds_of(seed, TRANSCRIPTS + fresh)

    def ended(count: int, several: list[int]) -> np.ndarray:
        """Final objectives of the runs after so many iterations."""
        calibrated = trials.noise(problem, module, options, count, TIGHT)
        side = BatchedSettings(
            np.ones(1), clip, calibrated.noise_multiplier / records, TIGHT
        )
        return ends(module, options, problem, side, count, several)[:, 0]

    tried = [int(point["iterations"])] if point["iterations"] else counts
    best = min(tried, key=lambda T: ended(T, seeds[:TRANSCRIPTS]).mean())
    start = float(problem.objective(np.zeros((1, problem.p)))[0])
    return [
        {"fresh": number, "taken": best, "share": excess / start}
        for number, excess in enumerate(
            ended(best, seeds[TRANSCRIPTS:]).tolist()
        )
    ]


def selection_law(
    point: dict[str, Any],
    seed: int,
    epsilon: float,
    delta: float,
    tau: int,
    records: int,
    fresh: int,
) -> list[dict[str, Any]]:
    """As ``selection`` at a fixed number of iterations, by the law of the choice.

    p may be any number. The noise is that of a small problem of the same kind, on
    which it does not depend.
    """
    module, options = SOLVERS["DP-GCD"]
    count = int(point["iterations"])
    problem = decaying(2 * tau, tau, epsilon, delta)
    noise = trials.noise(problem, module, options, count, TIGHT)
    sensitivity = 2.0 / records  # of a derivative, as no |w*_j| exceeds 1
    scale = noise.noise_multiplier * sensitivity
    rng = np.random.default_rng(seed)
    shares = largest.shares(float(point["p"]), tau, scale, count, fresh, rng)
    return [
        {"fresh": number, "share": share}
        for number, share in enumerate(shares)
    ]


def theorem(
    point: dict[str, Any], seed: int, inputs: Inputs, fresh: int
) -> list[dict[str, Any]]:
    """Theorems 4.4 and 4.7 at their own T, steps and noise: excess and bound.

    ``point`` has problem; case, of ``theorem44.CASES``; and counted: as often each
    record is counted, by which the noise is less. ``n_needed`` records would bring the
    bound down to the excess of w = 0.
    """
    problem, optimum = problem_of(inputs, point["problem"])
    counted = float(point["counted"])
    problem = replace(problem, epsilon=counted * problem.epsilon)
    facts = theorem44.known(problem, optimum)
    count, bound = theorem44.CASES[point["case"]](facts, problem.n)
    row = {
        "n": problem.n,
        "start": facts.start,
        "iterations": count,
        "bound": bound,
        "n_needed": counted * theorem44.needed(facts, point["case"]),
    }
    return [
        {
            **row,
            "fresh": number,
            "excess": theorem44.run(problem, facts, count, run_seed)
            - optimum.value,
        }
        for number, run_seed in enumerate(trials.seeds_of(seed, fresh))
    ]


def rates(
    point: dict[str, Any], seed: int, p: int, delta: float, fresh: int
) -> list[dict[str, Any]]:
    """Theorems 4.4 and 4.7 at their own T and noise, where their bounds are useful.

    The problem is ``theorem44.decaying`` with p features, which may have any number of
    records. The point has case, n and epsilon.
    """
    n = int(point["n"])
    facts = theorem44.decaying(p, float(point["epsilon"]), delta)
    count, bound = theorem44.CASES[point["case"]](facts, n)
    shared_columns = {
        "iterations": count,
        "bound": bound,
        "start": facts.start,
    }
    ended = theorem44.run_decaying(facts, n, count, seed, fresh).tolist()
    return [{**shared_columns, "excess": excess} for excess in ended]


def coordinates(
    point: dict[str, Any], seed: int, folder: Path, inputs: Inputs, fresh: int
) -> list[dict[str, Any]]:
    """The coordinates that the chosen setting of a greedy solver takes, on fresh seeds.

    ``point`` has problem and solver, whose tuning under the published noise is read.
    ``chosen_once`` is the share of the taken coordinates that were taken once;
    ``support`` counts the weights that are not zero at the end.
    """
    loaded = load_method(inputs, point)
    means = results.best(tuned(folder, point))
    best = means.loc[means["mean"].idxmin()]
    method = (loaded.problem, loaded.module, loaded.options)
    step, clip = (np.full(1, best[key]) for key in ("step", "clip"))
    settings = trials.batched(
        step, clip, trials.noise(*method, best["passes"], CALIBRATION)
    )
    count = loaded.module.steps(loaded.problem, best["passes"], loaded.options)
    shared_columns = {"p": loaded.problem.p, "passes": best["passes"]}
    return [
        {
            **shared_columns,
            "run": number,
            **_taken(loaded, settings, count, run_seed),
        }
        for number, run_seed in enumerate(trials.seeds_of(seed, fresh))
    ]


def _taken(
    method: SolverOnProblem, settings: BatchedSettings, count: int, seed: int
) -> dict[str, Any]:
    problem = method.problem
    drawn = streams(seed)
    run = method.module.Run(
        problem, settings, drawn, method.options, total=count
    )
    times = np.zeros(problem.p, dtype=int)
    for _ in range(count):
        run.advance(1)
        times[run.chosen[0]] += 1
    positive_times = times[times > 0]
    return {
        "chosen_once": float((positive_times == 1).mean()),
        "taken": len(positive_times),
        "support": int(np.count_nonzero(run.weights[0])),
    }


def noise(
    point: dict[str, Any], paper: Paper, folder: Path, inputs: Inputs
) -> list[dict[str, Any]]:
    """As ``dperm.papers.shared.sweeps.noise``, and the cost if the claimed bound held.

    A selection then costs 2 epsilon' at most, with noise on the score or not.
    """
    rows = []
    for published, row in priced(point, paper, folder, inputs):
        events = (
            replace(event, sound=True)
            if isinstance(event, NoisyMax)
            else event
            for event in published.ledger.events
        )
        claimed = true_epsilon(Ledger(tuple(events)), published.delta)
        rows.append(row | {"epsilon_if_claim_held": claimed})
    return rows
