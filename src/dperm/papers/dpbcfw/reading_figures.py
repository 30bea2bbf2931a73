"""Figures 3 and 5 to 9 against eta, one column a reading of equation 4 and epsilon."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pandas as pd

from dperm.core.experiment.schema import Problem
from dperm.papers.dpbcfw import judged
from dperm.papers.dpbcfw.curve_families import (
    BASELINES,
    FAMILIES,
    curve,
    explained,
    hues,
)
from dperm.papers.dpbcfw.outcomes import BUDGETS, OBJECTIVES, where
from dperm.present.drawing import Drawing, Panels, shades
from dperm.present.looks import Look

TOP = 1.5  # losses over f(0) above it are not shown: nothing was learnt
WORDS = {
    "mean": "mean", "sum": "sum", "total": "$\\epsilon$ in total",
    "iteration": "$\\epsilon$ an iteration",
}  # fmt: skip
Curves = list[tuple[str, pd.DataFrame, Look]]


@dataclass(frozen=True)
class Line:
    """A row of panels: its name, its runs, and the curves that it shows of them.

    ``title`` stands over the panels, ``name`` in the rows.
    """

    name: str
    title: str
    runs: pd.DataFrame
    of: Callable[[pd.DataFrame], Curves]


def grid(lines: list[Line], x: str, label: str, count: int) -> Drawing:
    """A panel for each line and reading, losses at the end against ``x``.

    Grey lines stand at f(0) and at what counts as learnt.

    Parameters
    ----------
    x : str
        Column, positive.
    label : str
        Of the horizontal axis.
    count : int
        T, of the panels' names and the runs.
    """
    panels = Panels(4 * len(lines), 4)
    at = iter(panels.axes)
    for line in lines:
        for objective, per in itertools.product(OBJECTIVES, BUDGETS):
            axis = next(at)
            keys = {"objective": objective, "per": per, "iterations": count}
            panel = f"{line.name}, {objective}, {per}, T {count:g}"
            for name, runs, look in line.of(where(line.runs, **keys)):
                curve(panels, axis, panel, name, runs, look, x)
            for height in (1.0, 1.0 - judged.LEARNT):
                axis.axhline(height, color="0.6", linewidth=0.7, zorder=0)
            axis.set(xscale="log", ylim=(0.0, TOP))
            axis.set_title(f"{line.title}: {WORDS[objective]}, {WORDS[per]}")
            axis.set(xlabel=label, ylabel="final loss / loss at 0")
        if axis.get_legend_handles_labels()[0]:
            axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure = panels.figure
    figure.set_figwidth(figure.get_figwidth() + 1.2)  # room for the legends
    return explained(panels)


def workers(table: pd.DataFrame) -> Iterator[Line]:
    """Figures 5 to 8."""
    yield Line("figure 5", "Figure 5", table, nodes)
    for figure in judged.FAMILIES:
        of = partial(_of, figure=figure)
        yield Line(f"figure {figure}", f"Figure {figure}", table, of)


def private(table: pd.DataFrame) -> Iterator[Line]:
    """Figure 3, a line for each sparsity."""
    for density, runs in table.groupby("density", sort=False):
        share = f"{100 * density:g} %"
        yield Line(f"figure 3, {share}", f"Figure 3, {share}", runs, _private)


def real(table: pd.DataFrame, titles: dict[str, Problem]) -> Iterator[Line]:
    """Figure 9, a line for each data set."""
    for problem, runs in table.groupby("problem", sort=False):
        yield Line(str(problem), titles[str(problem)].title, runs, nodes)


def nodes(runs: pd.DataFrame) -> Curves:
    """FW, DP-FW and each K."""
    ours = where(runs, method="dp_bcfw", epsilon=1.0, split=0.5, sketch=80)
    family = zip(judged.NODES, shades(len(judged.NODES)), strict=True)
    return [
        ("FW", where(runs, method="fw"), BASELINES["FW"]),
        ("DP-FW", where(runs, method="dp_fw", own=False), BASELINES["DP-FW"]),
        *((FAMILIES["nodes"](K), where(ours, nodes=K), look) for K, look in family),
    ]


def _of(runs: pd.DataFrame, figure: str) -> Curves:
    """The family of Figure 6, 7 or 8."""
    key, values = judged.FAMILIES[figure]
    plain = {**judged.PLAIN, "method": "dp_bcfw"}
    looks = shades(len(values))
    return [
        (FAMILIES[key](value), where(runs, **{**plain, key: value}), look)
        for value, look in zip(values, looks, strict=True)
    ]


def _private(runs: pd.DataFrame) -> Curves:
    theirs = where(runs, method="dp_fw")
    one, other = hues(2)
    return [
        ("FW", where(runs, method="fw"), BASELINES["FW"]),
        ("DP-FW", where(theirs, own=False), BASELINES["DP-FW"]),
        ("DP-FW, its own noise", where(theirs, own=True), other),
        ("DP-BCFW, as published", where(runs, method="dp_bcfw"), one),
    ]
