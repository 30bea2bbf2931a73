"""Figures of Bassily, Guzmán and Nandi 2021 (DP-SCO); the paper itself has none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dperm.core.calibrations import PAPER, STRICT
from dperm.core.experiment.schema import Config, Product
from dperm.papers.dpsco.rates import BELOW, LABELS, bound, instanced, norm, together
from dperm.present import drawing
from dperm.present.drawing import Picture, Rows
from dperm.present.looks import Look, look
from dperm.present.tables import where

RECORDS = {"xlabel": "records n", "xscale": "log", "yscale": "log"}
PRICES: dict[tuple[float, str], tuple[str, Look]] = {
    (1.0, PAPER): (r"$\epsilon$ = 1, published", look("#D55E00", ":", "o")),
    (1.0, STRICT): (r"$\epsilon$ = 1, strict", look("#D55E00", "-", "o")),
    (8.0, PAPER): (r"$\epsilon$ = 8, published", look("#0072B2", ":", "s")),
    (8.0, STRICT): (r"$\epsilon$ = 8, strict", look("#0072B2", "-", "s")),
    (math.inf, "none"): ("no noise", look("#000000", "--", "D")),
}


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
    """Worst excess over that of w = 0 against n, at one d, by solver and p.

    It is the worst of a class of instances. ``panels`` are pairs of solver and p. Lines
    with points below ``BELOW`` also have the theorem's bound, scaled to meet the first
    such point: slopes can be compared, levels cannot.
    """
    table = where(instanced(config, product), d=d)
    rows, titles = Rows(), dict[str, str]()
    labels: dict[tuple[str, str], str] = {}
    for solver, p in panels:
        panel = f"{solver}, p = {norm(float(p))}"
        titles[panel] = f"{LABELS[solver]}, $p$ = {norm(float(p))}"
        part = where(table, method=solver, p=float(p))
        for (epsilon, kind), (label, _) in PRICES.items():
            name = f"epsilon = {epsilon:g}, {kind}"
            labels[panel, name] = label
            runs = where(part, epsilon=epsilon, calibration=kind)
            curve = drawing.against(runs, "n", "share", panel, name)
            rows += curve
            learnt = [row for row in curve if row["mean"] < BELOW]
            if len(learnt) > 1:
                x = np.geomspace(learnt[0]["x"], learnt[-1]["x"], 20)
                y = np.array([bound(solver, float(p), epsilon, n, d) for n in x])
                y *= learnt[0]["mean"] / y[0]
                rows += drawing.values(panel, f"{name}, bound", x, y, "line")
    return Picture(
        drawing.frame(rows),
        titles,
        {**RECORDS, "ylabel": "excess / that of $w$ = 0"},
        columns=2,
        size=(4.2, 1.9),
        looks={f"epsilon = {e:g}, {kind}": at for (e, kind), (_, at) in PRICES.items()},
        labels=labels,
        is_shared=True,
        note="dotted: the theorem's bound, moved to the first point below one half",
    )
