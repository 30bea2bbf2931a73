"""Reading what the solver stages left, for figures and tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from dperm import config as configuration
from dperm import schema
from dperm.pipeline import inputs
from dperm.pipeline.solving import best
from dperm.pipeline.sweep import sweep_path
from dperm.store import files as store
from dperm.validation import paper_file


@dataclass(frozen=True)
class Result:
    """One (problem, solver): rows of tune and evaluate, and the chosen settings.

    ``reason`` says why there are none, and is empty where there are.
    """

    problem: str
    solver: str
    label: str
    tuned: pd.DataFrame
    evaluated: pd.DataFrame
    reason: str

    @property
    def available(self) -> bool:
        """Whether there is anything to show."""
        return not self.reason

    def chosen(self, calibration: str) -> pd.DataFrame:
        """Best (step, clip) of every number of passes, with the tuning mean and sd."""
        found = best(self.tuned)
        return found[found["calibration"] == calibration].reset_index(drop=True)

    def best_passes(self, calibration: str) -> float:
        """The number of passes with the lowest tuning mean.

        Raises
        ------
        ValueError
            If every setting diverged.
        """
        found = self.chosen(calibration)
        if found.empty:
            raise ValueError(
                f"{self.problem}, {self.solver}: with calibration {calibration} every "
                "setting of the grid diverged"
            )
        return float(found.loc[found["mean"].idxmin(), "passes"])

    def trajectories(self, calibration: str, passes: float) -> pd.DataFrame:
        """Fresh runs of the chosen setting, all checkpoints."""
        table = self.evaluated
        mask = (table["calibration"] == calibration) & (table["passes"] == passes)
        return table[mask]

    def final(self, calibration: str, passes: float) -> pd.DataFrame:
        """Fresh runs of the chosen setting, their last checkpoints."""
        table = self.trajectories(calibration, passes)
        return table[table["checkpoint"] == passes]


def load(
    config: schema.Config, problems: Iterable[str], leave_out: Iterable[str] = ()
) -> dict[str, list[Result]]:
    """Results of the paper by problem, solvers in the paper's order."""
    wanted = list(problems)
    found: dict[str, list[Result]] = {name: [] for name in wanted}
    for problem, solver in inputs.runs(config):
        if problem in found and solver not in leave_out:
            found[problem].append(_load_one(config, problem, solver))
    return found


def _load_one(config: schema.Config, problem: str, solver: str) -> Result:
    folder = inputs.results_folder(config, config.paper.name, problem, solver)
    tuned = store.read_table(folder / "tune.parquet")
    evaluated = store.read_table(folder / "evaluate.parquet")
    reasons = evaluated.loc[evaluated["reason"] != "", "reason"]
    reason = str(reasons.iloc[0]) if len(reasons) else ""
    label = str(tuned["algorithm"].iloc[0])
    return Result(problem, solver, label, tuned, evaluated, reason)


def load_sweep(config: schema.Config, name: str) -> pd.DataFrame:
    """Rows of a sweep."""
    return store.read_table(sweep_path(config, name))


def ledgers(config: schema.Config, problem: str, solver: str) -> list[dict]:
    """Entries of ``ledger.json`` of one job."""
    folder = inputs.results_folder(config, config.paper.name, problem, solver)
    again = f"delete {folder / 'tune.parquet'} and run again; finished lanes are kept"
    return store.read_json(folder / "ledger.json", again)


def titles(config: schema.Config, problems: Iterable[str]) -> dict[str, schema.Problem]:
    """The problems' sections, for titles and privacy targets."""
    return {name: configuration.read("problem", name) for name in problems}


def published(config: schema.Config, name: str) -> pd.DataFrame:
    """A table of the paper as printed."""
    path = paper_file(config.paper, config.paper.published[name])
    if path is None:
        raise FileNotFoundError(config.paper.published[name])
    return pd.read_csv(path)


def interval(values: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """Student's confidence interval of a mean; the value itself for a single one."""
    values = np.asarray(values, dtype=float)
    mean, size = values.mean(), len(values)
    if size < 2:
        return mean, mean
    half = stats.t.ppf((1 + level) / 2, size - 1) * values.std(ddof=1) / np.sqrt(size)
    return mean - half, mean + half
