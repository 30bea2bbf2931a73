"""Sweeps of Maranjyan et al. 2024 (DP-SkGD): Section 4.3 as experiments."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd

from dperm.experiments import results
from dperm.experiments.inputs import Inputs
from dperm.numerics.intervals import SETTING
from dperm.papers.dpskgd import instances, theorem42
from dperm.papers.shared.sweeps import (
    load_method,
    problem_of,
    transcripts_of,
    tuned,
)
from dperm.privacy.accountants import PUBLISHED, TIGHT
from dperm.privacy.accountants.tight import (
    gaussian_epsilon,
    gaussian_renyi_epsilon,
)
from dperm.privacy.calibration import calibrate
from dperm.privacy.events import LIFTS, SMOOTHNESS, Gaussian, Ledger, united
from dperm.privacy.noise import streams
from dperm.solvers.batched import dp_cd, dp_skgd, trials

KEPT = [*SETTING, "transcript", "objective", "relative_error", "status"]
Point = dict[str, Any]
Rows = list[dict[str, Any]]


def regimes(
    point: Point,
    seed: int,
    ratio: float,
    others: float,
    epsilon: float,
    draws: int,
    solver_steps: int,
    solver_dimension: int,
) -> Rows:
    """Excess of the two methods of a regime, each at its best step and length.

    Clipping at the Lipschitz bound leaves the dynamics linear, so that the iterate
    after K steps has a known law. It is Gaussian conditionally on how often each
    coordinate was drawn. The step and K with the least expected excess are found from
    this law, and the excess is drawn from it, ``draws`` times. If K and d are at most
    ``solver_steps`` and ``solver_dimension``, the solver itself also runs once, with
    clipping, on a design of few records, each of which stands for n / rows.
    """
    d = int(point["d"])
    n = float(point["n"])
    f = instances.quadratic(point["regime"], d, ratio, others)
    unit = release_noise(epsilon, 1 / n**2, 1, TIGHT)
    rows = []
    for index, name in enumerate(instances.REGIMES[point["regime"]]):
        method = instances.SampledMethod.of(name, f, n)
        drawn = streams(seed + index)
        step, count, expected = method.tuned(unit)
        setting = (step, count, unit * math.sqrt(count))
        run_columns = {
            "algorithm": name,
            "step": step,
            "steps": count,
            "expected": expected,
        }
        run_columns |= {"start": f.start, **method.terms()}
        for draw in range(draws):
            excess = method.drawn_excess(*setting, drawn)
            rows.append(
                {
                    **run_columns,
                    "source": "law",
                    "draw": draw,
                    "excess": excess,
                }
            )
        if count <= solver_steps and d <= solver_dimension:
            excess = method.run_solver(*setting, 1 << d.bit_length(), drawn)
            rows.append(
                {
                    **run_columns,
                    "source": "solver",
                    "draw": 0,
                    "excess": excess,
                }
            )
    return rows


def theorem(
    point: Point,
    seed: int,
    shapes: dict[str, dict[str, Any]],
    ratio: float,
    transcripts: int,
    placement: float = -0.5,
) -> Rows:
    """Theorem 4.2 at its own K, T, step, average and noise, with its bound.

    Parameters
    ----------
    point : dict
        instance, of ``shapes``; case, of ``theorem42.CASES``; sampling, of
        ``theorem42.SAMPLINGS``; n; epsilon, of Theorem 4.1's noise. It may have a
        placement, of ``instances.pairs``, and a length: ``theorem``, or ``best`` for
        the K of the least expected excess.
    shapes : dict
        Instances by name: groups, levels and spacing of ``instances.pairs``.
    ratio, placement : float
        Of ``instances.pairs``.

    Returns
    -------
    list of dict
        One row per run, or one row without an excess where K or T is below 1.
        ``expected`` is the exact expectation where nothing is clipped. ``n_needed`` is
        the number of records at which the bound equals the excess of w = 0.
    """
    where = point.get("placement", placement)
    case = point["case"]
    f = instances.pairs(
        **shapes[point["instance"]], ratio=ratio, placement=where
    )
    algorithm = theorem42.Algorithm.of(f, point["sampling"])
    n = float(point["n"])
    epsilon = float(point["epsilon"])
    terms = algorithm.terms(case, n, epsilon)
    row = {
        **vars(terms),
        "epochs": terms.epochs,
        "start": f.start,
        "d": f.p,
        "start_over_bound": f.start / terms.bound,
        "n_needed": algorithm.n_needed(case, epsilon),
        "true_epsilon": theorem42.true_epsilon(epsilon, n),
    }
    if terms.epochs < 1:
        return [row]
    inner, periods = terms.counts
    if point.get("length") == "best":
        inner = algorithm.best_inner(inner, n, epsilon)
    noise = theorem42.multiplier(inner * periods, epsilon, n)
    setting = ((inner, periods), noise, n)
    expected = algorithm.expected_excess(*setting)
    row |= {"steps": inner * periods, "expected": expected}
    return [
        {
            **row,
            "draw": draw,
            "excess": algorithm.run(*setting, streams(run_seed)),
        }
        for draw, run_seed in enumerate(trials.seeds_of(seed, transcripts))
    ]


def release_noise(
    epsilon: float, delta: float, count: int, calibration: str
) -> float:
    """Noise multiplier of ``count`` Gaussian releases of sensitivity 2 C_S / n."""

    def ledger(multiplier: float) -> Ledger:
        """The theorem's releases at a noise multiplier."""
        return Ledger(
            (Gaussian(1.0, multiplier, count, "2 C_S / n", "Theorem 4.1"),)
        )

    return calibrate(ledger, epsilon, delta, calibration).noise_multiplier


def noise(point: Point, inputs: Inputs) -> Rows:
    """The noise of Theorem 4.1 on a problem, and what it costs; nothing is drawn.

    It is by the theorem, by its Renyi curve and exactly; the cost is of the first.
    """
    problem, _ = problem_of(inputs, point["problem"])
    epsilon = problem.epsilon
    delta = problem.delta
    rows = Rows()
    for count in (1, 10, 100, 1000):
        printed = math.sqrt(3 * count * math.log(1 / delta)) / epsilon
        mu = math.sqrt(count) / printed
        row: Point = {"problem": problem.name, "epsilon": epsilon}
        row |= {"releases": count, "theorem": printed}
        for calibration in (PUBLISHED, TIGHT):
            row[calibration] = release_noise(
                epsilon, delta, count, calibration
            )
        row["renyi_epsilon"] = gaussian_renyi_epsilon(mu**2 / 2, delta)
        row["true_epsilon"] = gaussian_epsilon(mu, delta)
        row["given"] = ", ".join(united(problem.given, (SMOOTHNESS, LIFTS)))
        rows.append(row)
    return rows


def as_dp_cd(point: Point, seed: int, inputs: Inputs) -> Rows:
    """Objectives of DP-SkGD with single uniform draws and of DP-CD in an order.

    Both have the same seed and clip, step 1, two passes and tight noise. If DP-CD
    draws uniformly as well, both are the same algorithm.

    Parameters
    ----------
    point : dict
        problem; order, of ``dp_cd.SAMPLINGS``.
    """
    problem, _ = problem_of(inputs, point["problem"])
    methods = {
        "DP-SkGD single": (dp_skgd, dp_skgd.Options()),
        "DP-CD": (dp_cd, dp_cd.Options(point["order"])),
    }
    tuned_point = {"passes": 2, "step": 1.0, "clip": 5.0}
    rows = []
    for name, (module, options) in methods.items():
        solver_trials = trials.Trials(problem, module, options, TIGHT)
        rows.append(
            {
                "algorithm": name,
                "objective": float(
                    solver_trials.fresh(tuned_point, [seed])[0]
                ),
            }
        )
    return rows


def finalists(
    point: Point,
    seed: int,
    folder: Path,
    inputs: Inputs,
    most: int,
    groups: int,
    transcripts: int,
    fresh: int,
) -> Rows:
    """Rerun of a solver's best tuned settings on more transcripts, then fresh runs.

    The choice by a tuning on five transcripts is mostly luck if many settings are
    nearly as good. So the best settings are run again, and the choice is made among
    them.

    Parameters
    ----------
    point : dict
        problem and solver; its tuning under tight noise is read.
    most : int
        Number of settings that are run again.
    groups, transcripts : int
        Number of groups of transcripts for the choice, and transcripts of a group.

    Returns
    -------
    list of dict
        ``stage`` choose: means of every setting over each group (``number``); ``stage``
        fresh: runs of the setting with the least mean over all groups.
    """
    method = load_method(inputs, point)
    seeds = trials.seeds_of(seed, groups * transcripts + fresh)
    settings = _best(tuned(folder, point, TIGHT), most)
    choose = seeds[: groups * transcripts]
    later = seeds[groups * transcripts :]
    runs = transcripts_of(method, settings, lambda passes: choose, TIGHT)
    runs["number"] = runs["transcript"] // transcripts
    chosen = runs.groupby([*SETTING, "number"], as_index=False).agg(
        objective=("objective", "mean"),
        relative_error=("relative_error", "mean"),
        status=(
            "status",
            lambda all_of: next((s for s in all_of if s != "ok"), "ok"),
        ),
    )
    winner = chosen.groupby(SETTING)["objective"].mean().idxmin()
    winning_rows = settings[(settings[SETTING] == list(winner)).all(axis=1)]
    ended = transcripts_of(method, winning_rows, lambda passes: later, TIGHT)[
        KEPT
    ]
    ended = ended.rename(columns={"transcript": "number"}).assign(
        stage="fresh"
    )
    return pd.concat([chosen.assign(stage="choose"), ended]).to_dict("records")


def _best(rows: pd.DataFrame, most: int) -> pd.DataFrame:
    """The ``most`` settings of least mean objective, with their noise multipliers."""
    tight = rows[rows["calibration"] == TIGHT]
    noise = tight.groupby("passes")["noise_multiplier"].first()
    settings = results.means(tight).nsmallest(most, "objective")[SETTING]
    return settings.assign(noise_multiplier=settings["passes"].map(noise))
