"""Sweeps of Mangold et al. 2022 (DP-CD): its parts, its constants, its theorems."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from dperm.config import grid as grids
from dperm.config.schema import Scale
from dperm.experiments.inputs import Inputs
from dperm.papers.dpcd import levels, theory
from dperm.papers.shared.sweeps import ends, problem_of, refined
from dperm.privacy.accountants import TIGHT
from dperm.problems.penalties import Penalty
from dperm.problems.problem import Problem, build
from dperm.solvers.batched import BatchedSettings, dp_cd, dp_cd_priv, trials

Rows = list[dict[str, Any]]
READINGS = {  # of equation 126
    "equation 126": dp_cd_priv.Options(),
    "bounds halved": dp_cd_priv.Options(bound=1.0),
    "without p": dp_cd_priv.Options(composed=False),
    "without p, bounds halved": dp_cd_priv.Options(composed=False, bound=1.0),
    "absolute values": dp_cd_priv.Options(negative="reflected"),
}
ESTIMATED: dict[str, tuple[Any, Any]] = {  # module, options
    "exact": (dp_cd, dp_cd.Options()),
    **{name: (dp_cd_priv, options) for name, options in READINGS.items()},
    "private bounds": (levels, levels.Options()),
}
PERIODS = {"last": 0, "ten averages": 10}


def variants(
    point: dict[str, Any],
    seed: int,
    scale: Scale,
    inputs: Inputs,
    grid: dict[str, Any],
    finer: dict[str, Any],
    transcripts: int,
    fresh: int,
) -> Rows:
    """DP-CD with other parts or constants, tuned again and run on fresh seeds.

    ``point`` has problem; calibration; constants, of ``ESTIMATED``, or else order, of
    ``dp_cd.SAMPLINGS``, iterate, of ``PERIODS``, and thresholds, of
    ``dp_cd.THRESHOLDS``. ``grid`` has axes passes, step and clip, ``finer`` factors for
    the best step and clip; see ``Trials.refined``.
    """
    if "constants" in point:
        module, options = ESTIMATED[point["constants"]]
    else:
        schedule = {
            "periods": PERIODS[point["iterate"]],
            "thresholds": point["thresholds"],
        }
        module = dp_cd
        options = dp_cd.Options(point["order"], **schedule)
    problem, optimum = problem_of(inputs, point["problem"])
    tuning_trials = trials.Trials(
        problem, module, options, point["calibration"]
    )
    coarse = grids.thin(grids.points(grid, "options.grid"), scale.keep)
    return refined(
        tuning_trials, optimum.value, coarse, finer, seed, (transcripts, fresh)
    )


def theorem(
    point: dict[str, Any], seed: int, inputs: Inputs, fresh: int
) -> Rows:
    """Theorem 3.3 at its own K, T, step and noise: the excess and its bound.

    ``point`` has problem; case, of ``theory.CASES``; and counted, how often each record
    is counted. ``n_needed`` records would bring the bound down to the excess of w = 0.
    Where the theorem does not apply, no run is made.
    """
    problem, optimum = problem_of(inputs, point["problem"])
    problem = repeated(problem, float(point["counted"]))
    terms = theory.terms(problem, optimum, point["case"])
    power = 1.0 if point["case"] == "convex" else 0.5  # 1 / n, or 1 / n^2
    row = {
        "n": problem.n,
        "start": terms.start,
        "bound": terms.bound,
        "inner": terms.inner,
        "periods": terms.periods,
        "epochs": terms.epochs,
        "n_needed": point["counted"]
        * problem.n
        * (terms.bound / terms.start) ** power,
    }
    if terms.epochs < 1:
        return [row]
    return [
        {
            **row,
            "fresh": number,
            "excess": theory.run(problem, terms, run_seed) - optimum.value,
        }
        for number, run_seed in enumerate(trials.seeds_of(seed, fresh))
    ]


def repeated(problem: Problem, count: float) -> Problem:
    """The problem whose records are each counted ``count`` times.

    The objective and its constants are the same, and one record of n ``count`` weighs
    as many times less: noise depends on n and epsilon by their product alone.
    """
    return replace(problem, epsilon=count * problem.epsilon)


def lower_bound(
    point: dict[str, Any],
    seed: int,
    constants: list[float],
    passes: list[int],
    steps: list[float],
    transcripts: int,
    fresh: int,
) -> Rows:
    """DP-CD on Appendix E.4's problem, with means of the size in its proof.

    Records d_i have p coordinates of +-1/2, the loss is ||w - d_i||^2 / 2 on the box,
    so that L_j = mu = 1 and the excess is ||w - q||^2 / 2 with q the mean record. The
    coordinates of q have random signs, of ``seed``, and the same size, c sqrt(p) / (n
    epsilon). At c = 1 the norm of q is that of Theorem E.5.

    A mean derivative is w_j - q_j for all records with mean q, and moves by 2 / n at
    most. The runs are therefore those of a diagonal least-squares problem with noise
    for this sensitivity.

    ``point`` has n, p and epsilon; delta is 1 / n^2. ``constants`` are values of c;
    infinity stands for a size of 1/4, whatever n, p and epsilon. The best of ``passes``
    and ``steps`` is taken for each c, with noise and without, by ``transcripts`` runs.
    """
    n = int(point["n"])
    p = int(point["p"])
    epsilon = float(point["epsilon"])
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], p)
    seeds = trials.seeds_of(seed, transcripts + fresh)
    X = sparse.diags_array(np.full(p, math.sqrt(p)), format="csc")
    side = np.array(steps)
    clips = np.full(len(steps), p**1.5)  # none is clipped
    box = Penalty(lower=-0.5, upper=0.5)
    options = dp_cd.Options()
    rows: Rows = []
    for constant in constants:
        size = min(0.25, constant * math.sqrt(p) / (n * epsilon))
        y = math.sqrt(p) * size * signs
        problem = build("means", X, y, "least_squares", box, epsilon, 1 / n**2)

        def ended(
            several: list[int],
            count: int,
            noise: float,
            problem: Any = problem,
        ) -> Any:
            """Final objectives of some runs with so many sweeps and that noise."""
            settings = BatchedSettings(side, clips, noise, TIGHT)
            return ends(dp_cd, options, problem, settings, count * p, several)

        for calibration in (TIGHT, "none"):
            tunings = []
            for count in passes:
                noise = 0.0
                if calibration == TIGHT:
                    calibrated = trials.noise(
                        problem, dp_cd, options, count, TIGHT
                    )
                    noise = calibrated.noise_multiplier / n
                means = ended(seeds[:transcripts], count, noise).mean(axis=0)
                tunings += [
                    (mean, count, noise, k) for k, mean in enumerate(means)
                ]
            _, count, noise, k = min(tunings)
            run_columns = {
                "constant": constant,
                "calibration": calibration,
                "size": size,
            }
            run_columns |= {
                "passes": count,
                "step": steps[k],
                "start": p * size**2 / 2,
            }
            run_columns |= {"bound": (p / (n * epsilon)) ** 2}
            excess = ended(seeds[transcripts:], count, noise)[:, k]
            rows += [
                {**run_columns, "excess": float(final_excess)}
                for final_excess in excess
            ]
    return rows
