"""Sweeps of Maranjyan et al. 2024 (DP-SkGD): Section 4.3 as experiments."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

from dperm.core.calibrations import STRICT
from dperm.core.experiment import schema
from dperm.core.lanes import dp_skgd, trials
from dperm.core.privacy.mechanisms import streams
from dperm.kinds.sweeps import job_of, tuned
from dperm.papers.dpskgd import finalists as rounds
from dperm.papers.dpskgd import groups as groups_of
from dperm.papers.dpskgd import pairs, theorem42
from dperm.papers.dpskgd import quadratics as law
from dperm.papers.dpskgd.moments import expected_excess
from dperm.papers.dpskgd.noise import releases


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
    f = law.quadratic(point["regime"], d, ratio, others)
    unit = releases(epsilon, 1 / n**2, 1, STRICT)
    rows = []
    for index, name in enumerate(law.REGIMES[point["regime"]]):
        design = 1 << d.bit_length()
        method = law.method_of(name, f, design)
        step, count, expected = law.tuned(f, method, unit, n)
        noise = unit * math.sqrt(count)
        drawn = streams(seed + index)
        common = {"algorithm": name, "step": step, "steps": count, "expected": expected,
                  "start": f.start, **law.terms(f, method, name)}  # fmt: skip
        for draw in range(draws):
            seen = law.drawn_excess(f, method, step, count, noise, n, drawn)
            rows.append({**common, "source": "law", "draw": draw, "excess": seen})
        if count <= solver_steps and d <= solver_dimension:
            ran = law.run_solver(f, method, step, count, noise, n, design, drawn)
            rows.append({**common, "source": "solver", "draw": 0, "excess": ran})
    return rows


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
    misaligned one takes coordinates from every group; the seed draws a random one.
    """
    problem = groups_of.problem_of(n, p, groups, point["ratio"], point["correlation"],
                                   epsilon)  # fmt: skip
    least = groups_of.least_value(problem)
    options = groups_of.options_of(point["method"], p, groups, seed)
    scale = math.sqrt(float(problem.smoothness.sum()))
    points = [
        {"passes": passes, "step": step, "clip": clip * scale}
        for passes, step, clip in product(grid["passes"], grid["step"], grid["clip"])
    ]
    on = trials.Trials(problem, dp_skgd, options, STRICT)
    found = on.tried(points, seed, (5, fresh))
    lifted = float(dp_skgd.Sketch(problem, options).factors.max())
    return [
        {"fresh": index, **found.point, "relative_error": (value - least) / least,
         "factor": lifted}
        for index, value in enumerate(found.objective.tolist())
    ]  # fmt: skip


def theorem(
    config: schema.Config,
    point: dict[str, Any],
    seed: int,
    shapes: dict[str, dict[str, Any]],
    ratio: float,
    transcripts: int,
    placement: float = -0.5,
) -> list[dict[str, Any]]:
    """Theorem 4.2 at its own K, T, step, average and noise, beside its bound.

    Parameters
    ----------
    config : schema.Config
    point : dict
        instance, of ``shapes``; case, of ``theorem42.CASES``; sampling, of
        ``theorem42.SAMPLINGS``; n; epsilon, of Theorem 4.1's noise. It may have a
        placement, of ``pairs.instance``, and a length: ``theorem``, or ``best`` for
        the K of the least expected excess.
    seed : int
        Of all runs.
    shapes : dict
        Instances by name: groups, levels and spacing of ``pairs.instance``.
    ratio, placement : float
        Of ``pairs.instance``.
    transcripts : int
        Runs.

    Returns
    -------
    list of dict
        A row for each run; one without an excess where K or T is below 1. ``expected``
        is the exact expectation where nothing is clipped. ``n_needed`` records would
        bring the bound down to the excess of w = 0.
    """
    where = point.get("placement", placement)
    f = pairs.instance(**shapes[point["instance"]], ratio=ratio, placement=where)
    sketch = theorem42.sketch_of(f, point["sampling"])
    n, epsilon = float(point["n"]), float(point["epsilon"])
    found = theorem42.terms(f, sketch, point["case"], n, epsilon)
    row = {**vars(found), "epochs": found.epochs, "start": f.start, "d": f.p,
           "start_over_bound": f.start / found.bound,
           "n_needed": theorem42.n_needed(f, sketch, point["case"], epsilon),
           "true_epsilon": theorem42.true_epsilon(epsilon, n)}  # fmt: skip
    if found.epochs < 1:
        return [row]
    inner, periods = found.counts
    if point.get("length") == "best":
        inner = theorem42.best_inner(f, sketch, inner, n, epsilon)
    noise = theorem42.multiplier(inner * periods, epsilon, n)
    given = (f, sketch, (inner, periods), noise, n)
    row |= {"steps": inner * periods, "expected": expected_excess(*given)}
    return [
        {**row, "draw": draw, "excess": theorem42.run(*given, streams(each))}
        for draw, each in enumerate(trials.seeds_of(seed, transcripts))
    ]


def finalists(
    config: schema.Config,
    point: dict[str, Any],
    seed: int,
    most: int,
    groups: int,
    transcripts: int,
    fresh: int,
) -> list[dict[str, Any]]:
    """The best settings of a solver's tuning on more transcripts, and the best afresh.

    Parameters
    ----------
    config : schema.Config
    point : dict
        problem and solver; its tuning under strict noise is read.
    seed : int
        Of all runs.
    most : int
        Settings.
    groups, transcripts : int
        Groups of transcripts that choose, and transcripts of a group.
    fresh : int
        Runs of the chosen setting.
    """
    job = job_of(config, point)
    if job is None:
        return [{"status": "unavailable"}]
    rows = tuned(config, point, rounds.CALIBRATION)
    found = rounds.played(job, rows, seed, most, (groups, transcripts, fresh))
    return found.to_dict("records")
