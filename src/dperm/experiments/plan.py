"""The runs of a paper at its scale: names, grids and seeds."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from dperm.config import grid, schema
from dperm.config.config import read
from dperm.config.locate import (
    OWN,
    ConfigError,
    available,
    group_file,
    own_conf,
)
from dperm.storage.source_code import unwatched


def papers_here(folder: Path) -> list[str]:
    """The papers of a folder: of one of a user's own those that lie or ran in it.

    ``folder`` is that of results. Without a ``conf/`` of one's own it is all papers.
    """
    own = own_conf()
    names = available("paper")
    if own is None:
        return names
    return [
        name
        for name in names
        if (own / group_file("paper", name)).is_file()
        or (folder / name).is_dir()
    ]


def run_folder(
    paper: schema.Paper, output: schema.Output, problem: str, solver: str
) -> Path:
    """The folder of a solver's rows on a problem.

    It is the paper's for a problem of the paper, else one for problems of users.
    """
    with unwatched:  # no number depends on where rows are
        is_of_paper = problem in (*paper.problems, *paper.small_problems)
    return Path(
        output.results, paper.name if is_of_paper else OWN, problem, solver
    )


def runs(paper: schema.Paper) -> list[tuple[str, str]]:
    """(problem, solver) of every solver job of the paper at its scale."""
    pairs = []
    for problem in paper.problems:
        for solver, run in paper.runs.items():
            if run.problems is None or problem in run.problems:
                pairs.append((problem, solver))
    return pairs


def grid_points(
    paper: schema.Paper, solver: str, keep: dict[str, int]
) -> list[grid.Point]:
    """The grid of the paper for a solver, thinned to some values of each axis.

    Raises ConfigError if the paper does not run this solver.
    """
    if solver not in paper.runs:
        names = ", ".join(paper.runs)
        where = f"conf/{group_file('paper', paper.name)}: runs"
        raise ConfigError(f"{where}: no solver {solver!r}; it has {names}")
    points = grid.points(paper.runs[solver].grid, f"runs.{solver}.grid")
    return grid.thin(points, keep)


def label(paper: schema.Paper, solver: schema.Solver) -> str:
    """The name of a solver in the paper."""
    run = paper.runs.get(solver.name)
    return (run and run.label) or solver.label


def at_run(config: schema.Config, problem: str, solver: str) -> schema.Config:
    """The configuration of another problem and solver, with the same overrides."""
    return replace(
        config,
        problem=read("problem", problem, config.overrides),
        solver=read("solver", solver, config.overrides),
    )


class Names(NamedTuple):
    """Columns that name a job; ``algorithm`` is its solver's name in the paper."""

    paper: str
    problem: str
    solver: str
    algorithm: str


@dataclass(frozen=True)
class Design:
    """How a paper runs the solver of a job."""

    points: list[grid.Point]  #: passes, step and clip
    calibrations: list[str]
    #: replicates, fresh: runs of every point in tuning, and of every chosen setting in
    #: evaluation
    replicates: int
    fresh: int
    most: int  #: fresh runs of a setting at most
    race: (
        bool  #: whether only the best of the first replicate run in the others
    )
    stop_above: (
        float | None
    )  #: as in a paper's ``runs``, where only the best run again
    evaluated: (
        str  #: numbers of passes: ``all``, the ``best``, or also its ``ties``
    )

    def limit(self, stage: str, replicate: int) -> float | None:
        """The limit ``stop_above`` of a task: it holds in tuning's first replicate."""
        return self.stop_above if (stage, replicate) == ("tune", 0) else None


def names_of(
    paper: schema.Paper, problem: str, solver: schema.Solver
) -> Names:
    """Names of the job of a solver on a problem."""
    return Names(paper.name, problem, solver.name, label(paper, solver))


def design(config: schema.Config) -> Design:
    """How the paper runs the chosen solver on the chosen problem.

    Raises ConfigError if the paper does not run this solver, or with infinite clips
    where there is noise.
    """
    paper = config.paper
    scale = config.scale
    solver = config.solver.name
    points = grid_points(paper, solver, scale.keep)
    where = f"conf/{group_file('paper', paper.name)}: runs.{solver}.grid"
    grid.check_clips(points, where, config.problem.privacy.epsilon)
    stop_above = paper.runs[solver].stop_above if paper.race else None
    return Design(
        points,
        paper.calibrations,
        scale.replicates or paper.replicates,
        scale.fresh or paper.fresh,
        scale.fresh or max(paper.fresh, paper.most),
        paper.race,
        stop_above,
        paper.evaluated,
    )


def seed_of(
    master: int,
    stage: str,
    problem: str,
    solver: str,
    passes: float,
    replicate: int,
) -> int:
    """The seed of one run, in [0, 2^63), recorded in its row.

    The settings of a grid share it: they differ in step and clip, not in their draws.
    It does not depend on the calibration either, so that calibrations are compared on
    common random numbers.

    Parameters
    ----------
    master : int
        The master seed of the configuration.
    stage : str
        ``tune`` or ``evaluate``: tuning and evaluation never share a seed.
    problem, solver : str
        Names of their YAMLs.
    passes : float
    replicate : int
        Counted from 0.
    """
    name = f"{master}/{stage}/{problem}/{solver}/{float(passes)!r}/{replicate}"
    return (
        int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 1
    )
