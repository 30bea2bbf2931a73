"""Sweeps that any paper may name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dperm.config import grid, schema
from dperm.config.config import read
from dperm.experiments import plan
from dperm.experiments.inputs import (
    Inputs,
    SolverOnProblem,
    load_optimum,
    load_problem,
    load_solver,
)
from dperm.experiments.task import setting_rows
from dperm.experiments.tune import ONE_RUN
from dperm.privacy.accountants import PUBLISHED, TIGHT
from dperm.privacy.calibration import Calibration, UnreachableTargetError
from dperm.privacy.events import as_set, moves_with_data
from dperm.problems.optimum import Optimum
from dperm.problems.problem import Problem
from dperm.solvers.batched import BatchedSettings, trials
from dperm.solvers.batched.engine import run_batched
from dperm.storage import files as store

CALIBRATION = PUBLISHED  # published results were run with the published noise
KEPT = [
    "passes",
    "step",
    "clip",
    "transcript",
    "transcript_seed",
    "objective",
    "relative_error",
    "true_positives",
    "false_positives",
    "status",
]


def tuning_law(
    point: dict[str, Any],
    master: int,
    folder: Path,
    inputs: Inputs,
    near: float,
    most: int,
    transcripts: int,
) -> list[dict[str, Any]]:
    """More transcripts of the settings near the optimum that tuning found.

    The printed result of a tuning, the least of many means over five runs, has its own
    law, which is drawn from these rows (``dperm.papers.shared.law``), one per setting
    and transcript.

    ``point`` has problem, solver and passes; without passes, settings of all tuned
    numbers of passes are taken: those whose tuning mean is within the factor ``near``
    of the best, ``most`` at most. ``transcripts`` are runs of each, with the published
    noise. The seed of one is named after (law, problem, solver, passes, transcript)
    and recorded.
    """
    method = load_method(inputs, point)
    chosen = settings(tuned(folder, point), point.get("passes"), near, most)
    seed_words = ("law", point["problem"], point["solver"])

    def seeds(passes: float) -> list[int]:
        """Seeds of the transcripts at a number of passes."""
        numbers = range(transcripts)
        return [
            plan.seed_of(master, *seed_words, passes, number)
            for number in numbers
        ]

    transcript_rows = transcripts_of(method, chosen, seeds, CALIBRATION)
    return transcript_rows[KEPT].to_dict("records")


def against_epsilon(
    point: dict[str, Any],
    seed: int,
    paper: schema.Paper,
    inputs: Inputs,
    keep: dict[str, int],
    finer: dict[str, Any],
    transcripts: int,
    fresh: int,
) -> list[dict[str, Any]]:
    """Relative error of a solver at another true epsilon, tuned for it.

    ``point`` has problem, solver and epsilon. ``keep`` is the number of values of each
    axis of the paper's grid that are tried first, on one transcript; ``finer`` has axes
    step and clip, as multiples of the best of these. ``transcripts`` are runs by which
    a setting is chosen, ``fresh`` those of the chosen one, a row each; ``start`` is the
    error of w = 0.
    """
    method = load_method(inputs, point)
    problem = replace(method.problem, epsilon=float(point["epsilon"]))
    run = paper.runs[point["solver"]]
    tuning_trials = trials.Trials(
        problem, method.module, method.options, TIGHT
    )
    least_value = method.optimum.value
    start = float(problem.objective(np.zeros((1, problem.p)))[0])
    shared_columns = {
        "algorithm": label_of(paper, inputs, point),
        "start": (start - least_value) / least_value,
    }
    coarse = grid.thin(grid.points(run.grid), keep)
    counts = (transcripts, fresh)
    error_rows = refined(
        tuning_trials, least_value, coarse, finer, seed, counts
    )
    return [{**row, **shared_columns} for row in error_rows]


def noise(
    point: dict[str, Any], paper: schema.Paper, folder: Path, inputs: Inputs
) -> list[dict[str, Any]]:
    """The published noise of a solver, what it costs, and what its epsilon needs.

    ``point`` has problem and solver; there is a row for each number of passes that was
    tuned. Nothing is drawn.
    """
    return [row for _, row in priced(point, paper, folder, inputs)]


def priced(
    point: dict[str, Any], paper: schema.Paper, folder: Path, inputs: Inputs
) -> Iterator[tuple[Calibration, dict[str, Any]]]:
    """Yield the published calibrations of a solver, each with its row of ``noise``.

    ``tight_noise`` is the least sound multiplier for the target, ``ratio`` that over
    the published one; both are missing if no noise reaches the target.
    """
    loaded = load_method(inputs, point)
    method = (loaded.problem, loaded.module, loaded.options)
    for passes in sorted(tuned(folder, point)["passes"].unique()):
        published = trials.noise(*method, passes, PUBLISHED)
        try:
            tight_noise = trials.noise(*method, passes, TIGHT).noise_multiplier
        except UnreachableTargetError:
            tight_noise = math.nan
        yield (
            published,
            {
                "algorithm": label_of(paper, inputs, point),
                "passes": passes,
                "target_epsilon": published.target_epsilon,
                "delta": published.delta,
                "published_noise": published.noise_multiplier,
                "true_epsilon": published.true_epsilon,
                "given": ", ".join(published.ledger.given),
                "tight_noise": tight_noise,
                "ratio": tight_noise / published.noise_multiplier,
            },
        )


def refined(
    on: trials.Trials,
    least: float,
    coarse: Iterable[trials.Point],
    finer: dict[str, Any],
    seed: int,
    counts: tuple[int, int],
) -> list[dict[str, Any]]:
    """Rows of a sweep from ``Trials.refined``, with ``least`` = F*.

    ``finer`` has axes step and clip, as multiples of the best of the coarse grid. There
    is one row per fresh run, or one without an error if no noise reaches the target or
    no setting stays finite. ``given`` lists what true_epsilon takes as public.
    """
    around = grid.points(finer, "options.finer", ("step", "clip"))
    try:
        tuning = on.refined(coarse, around, seed, counts)
    except UnreachableTargetError:
        return [{"status": "unreachable"}]
    except trials.DivergedError:
        return [{"status": "diverged"}]
    shared_columns = {
        **tuning.point,
        "true_epsilon": tuning.noise.true_epsilon,
        "given": as_set(moves_with_data(tuning.noise.ledger.given)),
    }
    return [
        {
            "fresh": number,
            **shared_columns,
            "relative_error": (objective - least) / least,
        }
        for number, objective in enumerate(tuning.objective.tolist())
    ]


def ends(
    module: Any,
    options: Any,
    problem: Problem,
    side: BatchedSettings,
    steps: int,
    seeds: Any,
) -> np.ndarray:
    """Final objectives of settings after some steps, one run per seed; (seeds, L)."""
    setting = (module, options, problem, side, [steps])
    runs = (
        run_batched(*setting, seed, lambda weights: {})[-1] for seed in seeds
    )
    return np.array([run.objective for run in runs])


def problem_of(inputs: Inputs, name: str) -> tuple[Problem, Optimum]:
    """A problem and its optimum.

    Raises UnavailableError, for which a sweep has a row, without the problem's data.
    """
    section = read("problem", name, inputs.overrides)
    return load_problem(section, inputs.data), load_optimum(
        section, inputs.data
    )


def load_method(inputs: Inputs, point: dict[str, Any]) -> SolverOnProblem:
    """A point's solver on its problem. Raises as ``problem_of``."""
    section = read("problem", point["problem"], inputs.overrides)
    return load_solver(section, read("solver", point["solver"]), inputs.data)


def label_of(
    paper: schema.Paper, inputs: Inputs, point: dict[str, Any]
) -> str:
    """The name of a point's solver in the paper."""
    return plan.label(paper, read("solver", point["solver"], inputs.overrides))


def tuned(
    folder: Path, point: dict[str, Any], calibration: str = CALIBRATION
) -> pd.DataFrame:
    """Rows of the tuning of a point's solver on its problem, in the paper's folder."""
    path = folder / point["problem"] / point["solver"] / "tune.parquet"
    table = store.read_table(path)
    return table[table["calibration"] == calibration]


def settings(
    table: pd.DataFrame, passes: float | None, near: float, most: int
) -> pd.DataFrame:
    """The settings near the best: passes, step, clip, noise_multiplier, best first.

    Of ties, as where nothing is learnt, those with the fewest passes come first. A
    setting that ran once is ranked by the transcript that it shares with the best.
    """
    means = _expected(table)
    if passes is not None:
        means = means[means["passes"] == passes]
    means = means.sort_values(
        ["mean", "passes", "step", "clip"], kind="stable"
    )
    means = means[means["mean"] <= near * means["mean"].iloc[0]].head(most)
    noise = table.groupby("passes")["noise_multiplier"].first()
    return means.assign(noise_multiplier=means["passes"].map(noise))


def _expected(table: pd.DataFrame) -> pd.DataFrame:
    """Tuning means of all settings that never diverged: passes, step, clip, mean."""
    failed = ~table["status"].isin(["ok", ONE_RUN])
    keys = ["passes", "step", "clip"]
    errors = table["relative_error"].mask(failed, np.inf)
    wide = table.assign(error=errors).pivot(
        index=keys, columns="replicate", values="error"
    )
    best_means = [
        _beside_the_best(passes_errors)
        for _, passes_errors in wide.groupby("passes")
    ]
    means = pd.concat(best_means).rename("mean").reset_index()
    return means[np.isfinite(means["mean"])]


def _beside_the_best(errors: pd.DataFrame) -> pd.Series:
    """Means over replicates; missing ones are estimated by the ratio to the best."""
    means = errors.mean(axis=1, skipna=False)
    best = errors.loc[means.idxmin()]
    shared = errors.notna().mul(best, axis=1).mean(axis=1)
    ratio = errors.sum(axis=1) / errors.shape[1] / shared
    return means.where(errors.notna().all(axis=1), ratio * best.mean())


def transcripts_of(
    method: SolverOnProblem,
    chosen: pd.DataFrame,
    seeds: Callable[[float], list[int]],
    calibration: str,
) -> pd.DataFrame:
    """Rows of settings on seeds, which are those of a number of passes.

    Settings of equal passes share their draws, as in tuning. ``chosen`` has passes,
    step, clip and noise_multiplier; ``calibration`` set the noise. ``transcript`` is
    the index of the seed; a run that diverged has an infinite objective.
    """
    solver_run = (
        method.module,
        method.options,
        method.problem,
        method.optimum,
    )
    tables = []
    for passes, settings_of_passes in chosen.groupby("passes"):
        step, clip = (
            settings_of_passes[key].to_numpy() for key in ("step", "clip")
        )
        settings = BatchedSettings(
            step,
            clip,
            float(settings_of_passes["noise_multiplier"].iloc[0]),
            calibration,
        )
        for number, seed in enumerate(seeds(float(passes))):
            rows = setting_rows(
                *solver_run, settings, float(passes), (float(passes),), seed, 1
            )
            labels = {"passes": float(passes), "transcript": number}
            tables.append(rows.assign(**labels, transcript_seed=seed))
    runs = pd.concat(tables, ignore_index=True)
    return runs.assign(
        objective=runs["objective"].mask(runs["status"] != "ok", np.inf)
    )
