"""Figures of methods that were compared over data sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd

from dperm.config.schema import Paper
from dperm.experiments.inputs import Inputs
from dperm.experiments.inputs import titles as section_titles
from dperm.papers.comparison.tables import among, label, ran
from dperm.plotting import drawing
from dperm.plotting.drawing import Picture, Rows
from dperm.plotting.styles import Style, styles_of

# For curves whose usual hue another one of the figure has.
HUES = (
    "#0072b2",
    "#d55e00",
    "#117733",
    "#332288",
    "#aa4499",
    "#882255",
    "#595959",
)


def curves(
    swept: pd.DataFrame,
    paper: Paper,
    inputs: Inputs,
    x: str,
    y: str,
    panel: str = "problem",
    curve: str = "solver",
    only: str = "",
    role: Literal["curve", "joined", "points"] = "joined",
    axes: Mapping[str, Any] | None = None,
    titles: Mapping[str, str] | None = None,
    columns: int = 2,
    note: str = "",
) -> Picture:
    """A column of sweeps against another, such as n or epsilon, with intervals.

    There is a panel for each value of ``panel`` and a curve for each of ``curve``, both
    columns; without ``panel`` there is one panel. Rows without an x, as those of the
    baselines, are levels; those without a panel are in all. ``only`` selects rows by a
    condition of pandas. ``axes`` are keywords of matplotlib's ``Axes.set``, limits
    (``ylim: [0, 2]``) and scales (``xscale: log``) among them, ``titles`` those of
    panels by their values.
    """
    swept = ran(swept, only)
    if not panel:
        panel = "panel"
        swept = swept.assign(panel="all")
    panel_titles = _titles(inputs, swept, panel) | dict(titles or {})
    rows: Rows = []
    for name in swept[panel].dropna().unique():
        part = among(swept, **{panel: name})
        for key, runs in part.groupby(curve, sort=False):
            text = (
                label(paper, inputs, str(key))
                if curve == "solver"
                else str(key)
            )
            points = runs.dropna(subset=[x, y])
            rows += drawing.against(points, x, y, str(name), text, role)
            level = runs.loc[runs[x].isna(), y].mean()
            if np.isfinite(level):
                rows += drawing.values(
                    str(name), text, [np.nan], [level], "level"
                )
    return Picture(
        drawing.frame(rows),
        panel_titles,
        {"xlabel": x, "ylabel": y, **(axes or {})},
        columns=columns,
        size=(3.4, 2.4),
        styles=_hues(dict.fromkeys(row["algorithm"] for row in rows)),
        is_named=True,
        note=note,
    )


def _hues(names: Iterable[str]) -> dict[str, Style]:
    """Styles of curves, no two of one hue while there are hues."""
    styles = styles_of(names)
    colours = {style["color"].lower() for style in styles.values()}
    spare = [hue for hue in HUES if hue not in colours]
    taken = set[str]()
    for name, style in styles.items():
        if style["color"].lower() in taken and spare:
            styles[name] = style | {"color": spare.pop(0)}
        taken.add(styles[name]["color"].lower())
    return styles


def _titles(inputs: Inputs, swept: pd.DataFrame, panel: str) -> dict[str, str]:
    """What stands above each panel, by its name in the rows."""
    names = [str(name) for name in swept[panel].dropna().unique()]
    if panel == "problem":
        sections = section_titles(inputs, names)
        return {name: sections[name].title or name for name in names}
    if panel == "panel":
        return dict.fromkeys(names, "")
    return {name: f"{panel} = {name}" for name in names}
