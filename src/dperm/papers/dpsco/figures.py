"""Figures of Bassily, Guzmán and Nandi 2021 (DP-SCO); the paper itself has none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from dperm.core.calibrations import PAPER, STRICT
from dperm.core.experiment.schema import Config, Product
from dperm.papers.dpsco.rates import (
    BELOW,
    LABELS,
    TERMS,
    bound,
    instanced,
    norm,
    together,
)
from dperm.present import drawing
from dperm.present.drawing import Picture, Rows
from dperm.present.looks import Look, look
from dperm.present.tables import where

RECORDS = {"xlabel": "records n", "xscale": "log", "yscale": "log"}
PRICES: list[tuple[float, str, str, Look]] = [
    (epsilon, kind, label, look(*style))
    for epsilon, kind, label, *style in (
        (1.0, PAPER, r"$\epsilon$ = 1, published", "#D55E00", ":", "o"),
        (1.0, STRICT, r"$\epsilon$ = 1, strict", "#D55E00", "-", "o"),
        (8.0, PAPER, r"$\epsilon$ = 8, published", "#0072B2", ":", "s"),
        (8.0, STRICT, r"$\epsilon$ = 8, strict", "#0072B2", "-", "s"),
        (math.inf, "none", "no noise", "#000000", "--", "D"),
    )
]


def _named(solver: str, p: float) -> tuple[str, str]:
    """A panel's name in the data, and its title."""
    return f"{solver}, p = {norm(p)}", f"{LABELS[solver]}, $p$ = {norm(p)}"


def rates(
    config: Config,
    product: Product,
    problems: list[str],
    epsilon: float,
    panels: Sequence[Any],
) -> Picture:
    """Excess over initial risk against n, one panel per (solver, p), one line per d.

    ``panels`` are pairs of solver and p; the picture is of ``epsilon``, the data of all
    targets, those of others in panels of their own. Grey lines have Table 1's
    exponents.
    """
    table = where(together(config, product), calibration=product.calibration)
    rows, titles = Rows(), dict[str, str]()
    for solver, p in panels:
        name, title = _named(solver, float(p))
        titles[name] = title
        part = where(table, method=solver, p=float(p))
        for (target, d), group in part.groupby(["epsilon", "d"]):
            panel = name if target == epsilon else f"{name}, epsilon = {target:g}"
            rows += drawing.against(group, "n", "share", panel, f"d = {d:g}")
        sizes = np.array([part["n"].min(), part["n"].max()], dtype=float)
        for exponent in sorted(set(TERMS[solver])) if len(part) else ():
            line = 1.5 * (sizes / sizes[0]) ** exponent
            rows += drawing.values(name, f"$n^{{{exponent:g}}}$", sizes, line, "line")
    shades = drawing.family([f"d = {d:g}" for d in sorted(table["d"].unique())])
    axes = {**RECORDS, "ylabel": "excess / initial risk"}
    return Picture(
        drawing.frame(rows),
        titles,
        axes,
        size=(3.0, 1.9),
        looks=shades,
        is_shared=True,
    )


def lower_bound(config: Config, product: Product, problems: list[str]) -> Picture:
    """Measured excess on the fingerprinting instance, and the bound's shape."""
    table = where(together(config, product), calibration=product.calibration)
    rows: Rows = []
    for (d, p), part in table.groupby(["d", "p"]):
        panel, shape = f"d = {d:g}", part.groupby("n")["bound"].first()
        rows += drawing.against(part, "n", "excess", panel, f"p = {p:g}")
        name = f"p = {p:g}, shape of the bound"
        rows += drawing.values(panel, name, shape.index, shape, "line")
    return Picture(
        drawing.frame(rows),
        {f"d = {d:g}": f"$d$ = {d:g}" for d in sorted(table["d"].unique())},
        {**RECORDS, "ylabel": "excess risk"},
        looks=drawing.family([f"p = {p:g}" for p in sorted(table["p"].unique())]),
        is_shared=True,
        note="dotted: the shape of the lower bound",
    )


def hard(
    config: Config,
    product: Product,
    problems: list[str],
    d: int,
    panels: Sequence[Any],
) -> Picture:
    """Rates on the worst of a class of instances of d dimensions.

    ``panels`` are pairs of solver and p.
    """
    return worst(where(instanced(config, product), d=d), panels)


def worst(table: pd.DataFrame, pairs: Sequence[Any]) -> Picture:
    """Worst excess over that of w = 0 against n, one panel per (solver, p), at one d.

    Lines with points below ``BELOW`` also have the theorem's bound, scaled to meet the
    first such point: slopes can be compared, levels cannot.
    """
    rows, titles, styles = Rows(), dict[str, str](), dict[str, Look]()
    labels: dict[tuple[str, str], str] = {}
    for solver, p in pairs:
        panel, titles[panel] = _named(solver, float(p))
        part = where(table, method=solver, p=float(p))
        for epsilon, kind, label, style in PRICES:
            name = f"epsilon = {epsilon:g}, {kind}"
            styles[name], labels[panel, name] = style, label
            runs = where(part, epsilon=epsilon, calibration=kind)
            curve = drawing.against(runs, "n", "share", panel, name)
            rows += curve
            learnt = [row for row in curve if row["mean"] < BELOW]
            if len(learnt) > 1:
                x = np.geomspace(learnt[0]["x"], learnt[-1]["x"], 20)
                d = float(part["d"].iloc[0])
                y = np.array([bound(solver, float(p), epsilon, n, d) for n in x])
                y *= learnt[0]["mean"] / y[0]
                rows += drawing.values(panel, f"{name}, bound", x, y, "line")
    return Picture(
        drawing.frame(rows),
        titles,
        {**RECORDS, "ylabel": "excess / that of $w$ = 0"},
        columns=2,
        size=(4.2, 1.9),
        looks=styles,
        labels=labels,
        is_named=False,
        is_shared=True,
        note="dotted: the theorem's bound, moved to the first point below one half",
    )
