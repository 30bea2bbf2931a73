"""Figures that any paper may name."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.scale import ScaleBase, SymmetricalLogScale

from dperm.config.locate import ConfigError
from dperm.config.schema import Paper, ProblemSection, Product
from dperm.experiments import results
from dperm.experiments.inputs import Inputs, titles
from dperm.experiments.results import Result
from dperm.numerics.intervals import student
from dperm.papers.shared.tables import swept_errors
from dperm.plotting import drawing
from dperm.plotting.drawing import Picture, Rows
from dperm.plotting.tables import where

log = logging.getLogger(__name__)

STRETCHED = "passes on a logarithmic scale that begins with 0"
COST_KEY = (
    "$\\epsilon$ beside a name: what the noise is proved to cost at most"
)


def trajectories(
    paper: Paper,
    folder: Path,
    inputs: Inputs,
    product: Product,
    problems: list[str],
    x: Literal["passes", "seconds"] = "passes",
    solvers: Sequence[str] | None = None,
    names: Mapping[str, str] | None = None,
    columns: int = 2,
    title: Literal["privacy", "penalty"] = "privacy",
    ties: bool = False,
    published: str = "",
    column: str = "",
    stretched: Sequence[str] = (),
) -> Picture:
    """Relative error along the chosen runs, one panel per problem.

    Each algorithm runs its best number of passes; curves show mean, minimum and maximum
    over fresh seeds, and are named with their true epsilon. Methods and problems
    without data are named below all panels. ``solvers`` are those to show, ``names``
    other labels by solver, ``columns`` those of panels, ``title`` what a title states
    of a problem.

    With ``ties`` thin lines show other numbers of passes with equally good ends.
    ``published`` is the paper's table of errors and ``column`` its column, whose values
    are stars at the ends of the runs. ``stretched`` are problems on which some runs are
    a hundred times as long as others: x is logarithmic from the end of the shortest on.

    Raises ConfigError for seconds of a product that is not timed.
    """
    if x == "seconds" and not product.timed:
        file = f"conf/paper/{paper.name}/paper.yaml: figures: options.x"
        raise ConfigError(
            f"{file}: seconds: expected timed: true beside options"
        )
    calibration = product.calibration
    solver_results = results.load(
        paper, folder, problems, solvers, product.timed
    )
    printed = (
        results.published(paper, published) if published else pd.DataFrame()
    )
    rows = Rows()
    labels = dict[tuple[str, str], str]()
    gone = absent(solver_results.items())
    drawn_names = [name for name in solver_results if name not in gone]
    for run in chain.from_iterable(
        solver_results[name] for name in drawn_names
    ):
        panel = run.problem
        label = (names or {}).get(run.solver, run.label)
        if run.diverged(calibration):
            gone[f"{panel}, {label}"] = "all diverged"
        if not run.ran(calibration):
            continue
        best = run.best_passes(calibration)
        rows += _path(run, calibration, best, x, panel, label)
        labels[panel, label] = (
            f"{label}, {_cost(run.trajectories(calibration, best))}"
        )
        if published:
            rows += _stars(printed, column, best, panel, label)
        for passes in as_good(run, calibration) if ties else ():
            curve = f"{label}, {passes:g} pass{'es' * (passes != 1)}"
            rows += _path(run, calibration, passes, x, panel, curve, "thin")
    sections = titles(inputs, problems)
    axes: dict[str, Any] = {"ylabel": "relative error", "yscale": "log"}
    axes |= {"xlabel": "passes on data"}
    if x == "seconds":
        axes |= {"xlabel": "seconds", "xscale": "log"}
        rows += _starts(rows)
    own = {
        panel: {"xscale": _stretched_scale(rows, panel)}
        for panel in stretched
        if panel in drawn_names
    }
    notes = [_key(rows, ties), told(dict.fromkeys(own, STRETCHED), sections)]
    return Picture(
        drawing.frame(rows),
        {name: TITLES[title](problem) for name, problem in sections.items()},
        axes,
        own,
        columns=columns,
        size=(3.4, 2.1),
        labels=labels,
        is_named=True,
        note=". ".join(filter(None, [*notes, told(gone, sections)])),
    )


def _stretched_scale(rows: Rows, panel: str) -> ScaleBase:
    """A scale that has 0, and is logarithmic from the end of the shortest run on."""
    ends = dict[str, float]()
    for row in rows:
        if row["panel"] == panel and row["role"] == "curve":
            ends[row["algorithm"]] = row["x"]
    return SymmetricalLogScale(None, linthresh=min(ends.values(), default=1.0))


def _key(rows: Rows, ties: bool) -> str:
    """What the marks of trajectories mean, of those that are there."""
    roles = {row["role"] for row in rows}
    clauses = [COST_KEY]
    if "star" in roles:
        clauses.append("star: printed in the paper")
    if ties and "thin" in roles:
        clauses.append("thin: other numbers of passes, level at the end")
    return "; ".join(clauses)


def absent(results_of: Iterable[tuple[str, list[Result]]]) -> dict[str, str]:
    """Why a problem has no panel, by problem; a trace goes to the log."""
    gone = {}
    for name, solver_results in results_of:
        missing = next(
            (run for run in solver_results if not run.available), None
        )
        if missing:
            log.warning("%s: no panel. %s", name, missing.reason)
            is_unavailable = "unavailable" in set(missing.evaluated["status"])
            gone[name] = (
                drawing.UNAVAILABLE if is_unavailable else missing.reason
            )
    return gone


def told(
    gone: Mapping[str, str], sections: Mapping[str, ProblemSection]
) -> str:
    """One line on what has no panel."""
    titles_of = {
        name: sections[name].title if name in sections else name
        for name in gone
    }
    return "; ".join(f"{titles_of[name]}: {why}" for name, why in gone.items())


def _path(
    result: Result,
    calibration: str,
    passes: float,
    x: str,
    panel: str,
    label: str,
    role: str = "curve",
) -> Rows:
    """Mean, range and interval at each checkpoint."""
    runs = result.trajectories(calibration, passes)
    checkpoints = runs["checkpoint"]
    if x == "seconds":
        timed = result.clocked(calibration, passes)
        checkpoints = checkpoints.map(
            timed.groupby("checkpoint")["seconds"].mean()
        )
    return drawing.against(
        runs.assign(x=checkpoints), "x", "relative_error", panel, label, role
    )


def _starts(rows: Rows) -> Rows:
    """The error of w = 0 in each panel, which a logarithmic axis of time has not."""
    starts = {row["panel"]: row["mean"] for row in rows if row["x"] == 0}
    levels: Rows = []
    for name, error in starts.items():
        levels += drawing.values(name, "w = 0", [0.0], [error], "level")
    return levels


def _stars(
    printed: pd.DataFrame, column: str, passes: float, panel: str, label: str
) -> Rows:
    """The paper's error for a run's passes, at its end."""
    keys = {"problem": panel, "algorithm": label, "passes": passes}
    cells = where(
        printed, **{key: keys[key] for key in keys if key in printed}
    )
    row = {"panel": panel, "algorithm": f"{label}, published", "x": passes}
    return [row | {"role": "star", "mean": error} for error in cells[column]]


def as_good(result: Result, calibration: str) -> list[float]:
    """Other numbers of passes that fresh runs do not distinguish from the best, sorted.

    The 95 % intervals of both ends overlap. There are none if the best does not end
    lower than it starts.
    """
    best = result.best_passes(calibration)
    runs = result.trajectories(calibration, best)
    start = runs.loc[runs["checkpoint"] == 0, "relative_error"].mean()
    low, high = student(result.final(calibration, best)["relative_error"])
    equally_good = []
    for passes in sorted(set(result.chosen(calibration)["passes"]) - {best}):
        ends = result.final(calibration, passes)["relative_error"]
        if len(ends) and high < start:
            other_low, other_high = student(ends)
            if other_low <= high and low <= other_high:
                equally_good.append(passes)
    return equally_good


def _cost(runs: pd.DataFrame) -> str:
    """The true epsilon of the runs as text."""
    true = runs["true_epsilon"].iloc[0]
    return (
        f"$\\epsilon$ {true:.2g}"
        if np.isfinite(true)
        else "$\\epsilon$ not bounded"
    )


def _privacy(problem: ProblemSection) -> str:
    return f"{problem.title}, $\\epsilon$ = {problem.privacy.epsilon:g}"


def _penalty(problem: ProblemSection) -> str:
    penalty = "L1" if problem.penalty.l1 else "L2"
    objective = f"{problem.loss} + {penalty}".replace("_", " ")
    objective = {"least squares + L1": "LASSO"}.get(objective, objective)
    strength = problem.penalty.l1 or problem.penalty.l2
    return f"{problem.title}\n{objective}, $\\lambda$ = {strength:g}"


TITLES = {"privacy": _privacy, "penalty": _penalty}


def against_epsilon(
    swept: pd.DataFrame, inputs: Inputs, problems: list[str]
) -> Picture:
    """Relative error of tuned methods at one true epsilon, one panel per problem.

    It is the least of the problem's in the sweep; x of a row, and in the title.
    """
    errors = swept_errors(swept, problems)
    if errors.empty:
        return drawing.missing("no run on these problems has ended")
    sections = titles(inputs, problems)
    rows: Rows = []
    panel_titles = {}
    for name, runs in errors.groupby("problem", sort=False):
        runs = runs[runs["epsilon"] == runs["epsilon"].min()]
        for label, group in runs.groupby("algorithm", sort=False):
            curve = (
                "epsilon",
                "relative_error",
                str(name),
                str(label),
                "method",
            )
            rows += drawing.against(group, *curve)
        start = runs["start"].iloc[:1]
        rows += drawing.values(str(name), "w = 0", [np.nan], start, "method")
        budget = f"true $\\epsilon$ = {runs['epsilon'].iloc[0]:g}"
        panel_titles[str(name)] = f"{sections[str(name)].title}, {budget}"
    return Picture(
        drawing.frame(rows),
        {
            name: panel_titles[name]
            for name in problems
            if name in panel_titles
        },
        {"xlabel": "relative error", "xscale": "log"},
        columns=2,
        size=(3.4, 1.4),
        is_named=True,
    )
