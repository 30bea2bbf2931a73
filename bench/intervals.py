"""Whether the results' intervals hold the mean of many more runs, on seeds of its own.

``python -m bench.intervals`` runs settings of DP-CD's Table 2 and of DP-GCD's Table 4
again, 400 times each, and counts the 95 % intervals that exclude the mean, beside the
number that right intervals would exclude. Of the 90 settings it takes the 76 that are
run soonest. It also counts the means of Table 2 that lie outside the middle 95 % of the
law of that number, which the table ``law`` has. It reads ``results/`` and ``data/`` of
the folder that it is started in, and writes ``results/intervals.csv`` after each
setting.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm
from tqdm import tqdm

from dperm.config.config import compose, read
from dperm.experiments import inputs, plan
from dperm.experiments.digests import solver_of
from dperm.experiments.task import SolverJob, setting_rows
from dperm.solvers.batched import trials
from dperm.storage import files as store

TABLES = {"dpcd": "table2", "dpgcd": "table4"}
RUNS = 400
COUNT = 76  # of settings, those that are run soonest
ROUNDED = 1e-9
SEED = 31_000_000  # of these runs alone: the results' seeds derive from seed 0


def again(job: SolverJob, calibration: str, setting: Any) -> np.ndarray:
    """Final relative errors of fresh runs of a setting, (RUNS,)."""
    passes = float(setting.passes)
    noise = trials.noise(
        job.problem, job.module, job.options, passes, calibration
    )
    step, clip = np.array([setting.step]), np.array([setting.clip])
    errors = []
    for replicate in range(RUNS):
        seed = plan.seed_of(
            SEED,
            "again",
            job.names.problem,
            job.names.solver,
            passes,
            replicate,
        )
        table = setting_rows(
            job.module,
            job.options,
            job.problem,
            job.optimum,
            trials.batched(step, clip, noise),
            passes,
            (passes,),
            seed,
            1,
        )
        errors.append(float(table["relative_error"].iloc[0]))
    return np.array(errors)


def settings_of(paper_name: str) -> Iterator[tuple[SolverJob, str, Any]]:
    """A paper's chosen settings, each with its job and the published calibration."""
    paper = read("paper", paper_name)
    solvers = {plan.label(paper, solver_of(name)): name for name in paper.runs}
    table = pd.read_csv(f"results/{paper_name}/{TABLES[paper_name]}.csv")
    for setting in table.itertuples():
        chosen = (
            f"problem={setting.problem}",
            f"solver={solvers[setting.algorithm]}",
        )
        job = inputs.load_job(compose([f"paper={paper_name}", *chosen]))
        yield job, paper.calibrations[0], setting


def checked(job: SolverJob, calibration: str, setting: Any) -> dict[str, Any]:
    """The row of an interval."""
    errors = again(job, calibration, setting)
    low, high, mean = (
        setting.fresh_ci_low,
        setting.fresh_ci_high,
        errors.mean(),
    )
    return {
        "paper": job.names.paper,
        "problem": setting.problem,
        "algorithm": setting.algorithm,
        "passes": setting.passes,
        "runs": setting.fresh_runs,
        "mean": setting.fresh_mean,
        "low": low,
        "high": high,
        "mean_again": mean,
        "error_again": errors.std(ddof=1) / np.sqrt(RUNS),
    }


def with_chances(table: pd.DataFrame) -> pd.DataFrame:
    """Whether each interval excludes the mean, and the chance of that if it is right.

    The mean of ``RUNS`` runs has an error of its own, so that the chance is above 5 %
    where the interval rests on as many runs. It is missing where nothing varies.
    """
    half = (table["high"] - table["low"]) / 2
    margin = ROUNDED * table["mean"]  # the tables have ten digits
    is_inside = table["mean_again"].between(
        table["low"] - margin, table["high"] + margin
    )
    error = np.hypot(half / norm.ppf(0.975), table["error_again"])
    chance = 2 * norm.cdf(-half / error)
    return table.assign(
        excluded=~is_inside, chance=np.where(half > margin, chance, np.nan)
    )


def outside_law() -> pd.DataFrame:
    """Cells of Table 2 whose mean lies outside the middle 95 % of its law."""
    keys = ["problem", "algorithm", "passes"]
    law = pd.read_csv("results/dpcd/law.csv")
    law = law[law["prints"] == "least"]
    cells = law.merge(pd.read_csv("results/dpcd/table2.csv"), on=keys)
    inside = cells["mean"].between(cells["q0.025"], cells["q0.975"])
    print(
        f"{(~inside).sum()} of {len(cells)} means of Table 2 outside their law"
    )
    return cells[~inside]


def main() -> None:
    """Print the counts and what they count, and write the table."""
    print(
        outside_law()[["problem", "algorithm", "passes", "mean"]].to_string()
    )
    settings = [
        setting for paper_name in TABLES for setting in settings_of(paper_name)
    ]
    settings.sort(
        key=lambda each: each[0].problem.n * each[0].problem.p * each[2].passes
    )
    rows = []
    for setting in tqdm(settings[:COUNT]):
        rows.append(checked(*setting))
        table = with_chances(pd.DataFrame(rows))
        store.write_text(
            Path("results/intervals.csv"), table.to_csv(index=False)
        )
    varying = table[table["chance"].notna()]
    excluded = varying[varying["excluded"]]
    print(
        f"{len(excluded)} of {len(varying)} intervals exclude the mean of {RUNS} runs, "
        f"{varying['chance'].sum():.1f} expected; in {len(table) - len(varying)} more "
        f"nothing varies, {table['excluded'].sum() - len(excluded)} exclude it"
    )
    print(excluded.to_string(index=False))


if __name__ == "__main__":
    main()
