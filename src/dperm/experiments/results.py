"""Reading the results of the solver stages, for figures and tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dperm.config import schema
from dperm.config.config import paper_file
from dperm.experiments import plan
from dperm.storage import files as store


@dataclass(frozen=True)
class Result:
    """One (problem, solver): rows of tune and evaluate, and the chosen settings.

    ``reason`` states why there are no rows; it is empty otherwise.
    """

    problem: str
    solver: str
    label: str
    tuned: pd.DataFrame
    evaluated: pd.DataFrame
    reason: str
    # Of the whole paper, if seconds are shown
    timing: pd.DataFrame | None = None

    @property
    def available(self) -> bool:
        """Whether there are results to show."""
        return not self.reason

    def ran(self, calibration: str) -> bool:
        """Whether some setting under a calibration did not diverge."""
        return self.available and calibration in set(self._best["calibration"])

    def diverged(self, calibration: str) -> bool:
        """Whether every setting under a calibration diverged; False if none ran."""
        tried = calibration in set(self.tuned["calibration"])
        return self.available and tried and not self.ran(calibration)

    @cached_property
    def _best(self) -> pd.DataFrame:
        return best(self.tuned)

    def chosen(self, calibration: str) -> pd.DataFrame:
        """Best (step, clip) of every number of passes, with the tuning mean and sd."""
        best = self._best
        return best[best["calibration"] == calibration].reset_index(drop=True)

    def best(self, calibration: str) -> pd.Series:
        """The row of ``chosen`` with the lowest tuning mean.

        Raises ValueError if every setting diverged.
        """
        chosen = self.chosen(calibration)
        if chosen.empty:
            raise ValueError(
                f"{self.problem}, {self.solver}: with calibration {calibration} every "
                "setting of the grid diverged"
            )
        return chosen.loc[chosen["mean"].idxmin()]

    def best_passes(self, calibration: str) -> float:
        """The number of passes with the lowest mean of fresh runs.

        Those compete that tie with the best tuning mean. Raises ValueError as ``best``
        does.
        """
        tuned = float(self.best(calibration)["passes"])
        table = self.evaluated
        is_end = table["checkpoint"] == table["passes"]
        ends = table[is_end & (table["calibration"] == calibration)]
        level = ties(self.chosen(calibration))["passes"]
        ends = ends[ends["passes"].isin(level)]
        means = ends.groupby("passes")["relative_error"].mean().dropna()
        return float(means.idxmin()) if len(means) else tuned

    def tuning(self, calibration: str) -> pd.DataFrame:
        """Tuning runs of the best setting."""
        tuned = self.tuned
        row = self.best(calibration)
        same = [tuned[key] == row[key] for key in ("passes", "step", "clip")]
        return tuned[
            np.all([tuned["calibration"] == calibration, *same], axis=0)
        ]

    def trajectories(self, calibration: str, passes: float) -> pd.DataFrame:
        """Fresh runs of the chosen setting, all checkpoints."""
        table = self.evaluated
        mask = (table["calibration"] == calibration) & (
            table["passes"] == passes
        )
        return table[mask]

    def final(
        self, calibration: str, passes: float | None = None
    ) -> pd.DataFrame:
        """Fresh runs of the chosen setting, their last checkpoints.

        Without ``passes`` those at the best number of passes.
        """
        if passes is None:
            passes = self.best_passes(calibration)
        table = self.trajectories(calibration, passes)
        return table[table["checkpoint"] == passes]

    def clocked(self, calibration: str, passes: float) -> pd.DataFrame:
        """Runs of the chosen setting on an otherwise idle machine, all checkpoints.

        Raises ValueError if they were not loaded.
        """
        if self.timing is None:
            raise ValueError(
                f"{self.problem}, {self.solver}: loaded without seconds"
            )
        names = [self.problem, self.solver, calibration, passes]
        keys = ["problem", "solver", "calibration", "passes"]
        return self.timing[(self.timing[keys] == names).all(axis=1)]


def ties(chosen: pd.DataFrame) -> pd.DataFrame:
    """The best of every calibration, and numbers of passes that tie with it.

    A tie's tuning mean exceeds the best by at most the sum of their standard
    deviations. A best setting of zero deviation has learnt nothing and has no ties.
    """
    if chosen.empty:
        return chosen
    best = chosen.loc[chosen.groupby("calibration")["mean"].idxmin()]
    reference = (
        best.set_index("calibration").loc[chosen["calibration"]].reset_index()
    )
    within = (
        chosen["mean"] - chosen["std"]
        <= (reference["mean"] + reference["std"]).to_numpy()
    )
    return chosen[
        chosen.index.isin(best.index)
        | (within & (reference["std"] > 0).to_numpy())
    ]


def means(table: pd.DataFrame) -> pd.DataFrame:
    """Mean of every grid point over its replicates; points that diverged are dropped.

    Parameters
    ----------
    table : DataFrame
        Rows of ``tune.parquet``.

    Returns
    -------
    DataFrame
        calibration, passes, step, clip, objective, and mean and sd (ddof 0) of the
        relative error.
    """
    keys = ["calibration", "passes", "step", "clip"]
    columns = [table[key] for key in keys]
    finite = (table["status"] == "ok").groupby(columns, dropna=False)
    grouped = table[finite.transform("all")].groupby(keys, sort=True)
    return grouped.agg(
        objective=("objective", "mean"),
        mean=("relative_error", "mean"),
        # in Python: the compiled one has other bits
        std=("relative_error", lambda errors: errors.std(ddof=0)),
    ).reset_index()


def best(table: pd.DataFrame) -> pd.DataFrame:
    """The best grid point of every (calibration, passes): lowest mean objective.

    Rows are those of ``means``, without the objective. A point that diverged in any
    replicate is never chosen. Ties go to the smaller step, then the smaller clip.
    """
    summary = means(table)
    order = summary.groupby(["calibration", "passes"])["objective"].idxmin()
    return summary.loc[order].drop(columns="objective").reset_index(drop=True)


def load(
    paper: schema.Paper,
    folder: Path,
    problems: Iterable[str],
    solvers: Iterable[str] | None = None,
    timed: bool = False,
) -> dict[str, list[Result]]:
    """Results of the paper by problem, solvers in the paper's order.

    ``folder`` has the paper's rows. With ``timed``, the seconds measured by the timing
    stage are loaded too.
    """
    timing = store.read_table(folder / "timing.parquet") if timed else None
    loaded: dict[str, list[Result]] = {name: [] for name in problems}
    chosen = set(paper.runs) if solvers is None else set(solvers)
    for problem, solver in plan.runs(paper):
        if problem in loaded and solver in chosen:
            of_run = folder / problem / solver
            tuned = store.read_table(of_run / "tune.parquet")
            evaluated = store.read_table(of_run / "evaluate.parquet")
            reasons = evaluated.loc[evaluated["reason"] != "", "reason"]
            reason = str(reasons.iloc[0]) if len(reasons) else ""
            label = str(tuned["algorithm"].iloc[0])
            run = Result(problem, solver, label, tuned, evaluated, reason)
            loaded[problem].append(replace(run, timing=timing))
    return loaded


def sweep_path(folder: Path, name: str) -> Path:
    """The file with the rows of a sweep; ``folder`` has those of the paper."""
    return folder / "sweeps" / f"{name}.parquet"


def load_sweep(folder: Path, name: str) -> pd.DataFrame:
    """Rows of a sweep."""
    return store.read_table(sweep_path(folder, name))


def ledgers(folder: Path) -> list[dict[str, Any]]:
    """Entries of ``ledger.json`` in the folder of a job."""
    again = (
        f"delete {folder / 'tune.parquet'} and run again; "
        "finished settings are kept"
    )
    return store.read_json(folder / "ledger.json", again, list)


def published(paper: schema.Paper, name: str) -> pd.DataFrame:
    """A table of the paper as printed."""
    path = paper_file(paper, paper.published[name])
    if path is None:
        raise FileNotFoundError(paper.published[name])
    return pd.read_csv(path)
