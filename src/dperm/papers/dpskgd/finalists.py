"""The last round of a tuning: its best settings on many more transcripts.

What a tuning on five transcripts chooses is mostly luck where many settings are nearly
as good. The best of its settings are run again, and the choice made among them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dperm.core.calibrations import STRICT
from dperm.core.experiment import plan, results, schema
from dperm.core.experiment.results import Result
from dperm.core.experiment.unit import Job, lane_rows
from dperm.core.lanes import Lanes
from dperm.core.lanes.trials import seeds_of

CALIBRATION = STRICT
POINT = ["passes", "step", "clip"]
KEPT = ["objective", "relative_error", "status"]


def best(tuned: pd.DataFrame, most: int) -> pd.DataFrame:
    """So many settings of the least mean objective, with their noise multipliers.

    Parameters
    ----------
    tuned : DataFrame
        Rows of ``tune.parquet``.
    """
    strict = tuned[tuned["calibration"] == CALIBRATION]
    noise = strict.groupby("passes")["noise_multiplier"].first()
    found = results.means(strict).nsmallest(most, "objective")
    return found[POINT].assign(noise_multiplier=found["passes"].map(noise))


def transcripts(job: Job, settings: pd.DataFrame, seeds: list[int]) -> pd.DataFrame:
    """Rows of every setting on every seed; settings of equal passes share their draws.

    Returns
    -------
    DataFrame
        Columns of ``POINT`` and ``KEPT``, and number, the place of the seed.
    """
    tables = []
    for passes, part in settings.groupby("passes"):
        step, clip = (part[key].to_numpy() for key in ("step", "clip"))
        noise = float(part["noise_multiplier"].iloc[0])
        lanes = Lanes(step, clip, noise, CALIBRATION)
        given = (job.module, job.options, job.problem, job.optimum, lanes, passes)
        tables += [
            lane_rows(*given, (passes,), seed, 1).assign(passes=passes, number=number)
            for number, seed in enumerate(seeds)
        ]
    found = pd.concat(tables, ignore_index=True)[[*POINT, "number", *KEPT]]
    lost = found["status"] != "ok"
    return found.assign(objective=found["objective"].mask(lost, np.inf))


def played(
    job: Job, tuned: pd.DataFrame, seed: int, most: int, counts: tuple[int, int, int]
) -> pd.DataFrame:
    """The last round, and fresh runs of what it chooses.

    Parameters
    ----------
    tuned : DataFrame
        Rows of ``tune.parquet``.
    seed : int
        Of all runs.
    most : int
        Settings.
    counts : tuple of int
        Groups of transcripts, transcripts of a group, fresh runs.

    Returns
    -------
    DataFrame
        ``stage`` choose: means of every setting over each group (``number``); ``stage``
        fresh: runs of the setting with the least mean over all groups.
    """
    groups, size, fresh = counts
    seeds, settings = seeds_of(seed, groups * size + fresh), best(tuned, most)
    runs = transcripts(job, settings, seeds[: groups * size])
    runs["number"] //= size
    chosen = runs.groupby([*POINT, "number"], as_index=False).agg(
        objective=("objective", "mean"),
        relative_error=("relative_error", "mean"),
        status=("status", lambda all_of: next((s for s in all_of if s != "ok"), "ok")),
    )
    winner = chosen.groupby(POINT)["objective"].mean().idxmin()
    at = settings[(settings[POINT] == list(winner)).all(axis=1)]
    ended = transcripts(job, at, seeds[groups * size :])
    return pd.concat([chosen.assign(stage="choose"), ended.assign(stage="fresh")])


def loaded(
    config: schema.Config, swept: pd.DataFrame, problems: list[str]
) -> dict[str, list[Result]]:
    """What the sweep left, as results of tuning and evaluation, by problem."""
    found: dict[str, list[Result]] = {name: [] for name in problems}
    if "stage" not in swept:
        return found
    first = swept["replicate"] == swept["replicate"].min()  # small scales have several
    usable = swept[first & (swept["status"] != "unavailable")]
    for (problem, solver), part in usable.groupby(["problem", "solver"], sort=False):
        if problem in found:
            found[problem].append(_result(config, problem, solver, part))
    return found


def _result(
    config: schema.Config, problem: str, solver: str, part: pd.DataFrame
) -> Result:
    stages: dict[str, Any] = {
        name: rows.assign(calibration=CALIBRATION, replicate=rows["number"],
                          checkpoint=rows["passes"])
        for name, rows in part.groupby("stage")
    }  # fmt: skip
    label = plan.label(config, solver)
    return Result(problem, solver, label, stages["choose"], stages["fresh"], "")
