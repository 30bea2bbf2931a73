"""Figures of Bassily, Guzmán and Nandi 2021 (DP-SCO); the paper itself has none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dperm.config.schema import Product
from dperm.papers.dpsco.rates import (
    BELOW,
    EASY,
    METHOD_LABELS,
    bound,
    instanced,
    norm,
    together,
)
from dperm.plotting import drawing
from dperm.plotting.drawing import Picture, Rows
from dperm.plotting.styles import Style, style
from dperm.plotting.tables import where
from dperm.privacy.accountants import PUBLISHED, TIGHT

RECORDS = {"xlabel": "records n", "xscale": "log", "yscale": "log"}
PRICES: dict[tuple[float, str], tuple[str, Style]] = {
    (1.0, PUBLISHED): (
        r"$\epsilon$ = 1, published",
        style("#D55E00", "--", "o"),
    ),
    (1.0, TIGHT): (r"$\epsilon$ = 1, tight", style("#D55E00", "-", "o")),
    (8.0, PUBLISHED): (
        r"$\epsilon$ = 8, published",
        style("#0072B2", "--", "s"),
    ),
    (8.0, TIGHT): (r"$\epsilon$ = 8, tight", style("#0072B2", "-", "s")),
    (math.inf, "none"): ("no noise", style("#000000", "-.", "D")),
}


def lower_bound(swept: pd.DataFrame, product: Product) -> Picture:
    """Measured excess on the fingerprinting instance, and the bound's shape."""
    table = where(together(swept), calibration=product.calibration)
    rows: Rows = []
    for (d, p), runs in table.groupby(["d", "p"]):
        panel = f"d = {d:g}"
        shape = runs.groupby("n")["bound"].first()
        rows += drawing.against(runs, "n", "excess", panel, f"p = {p:g}")
        name = f"p = {p:g}, shape of the bound"
        rows += drawing.values(panel, name, shape.index, shape, "line")
    return Picture(
        drawing.frame(rows),
        {f"d = {d:g}": f"$d$ = {d:g}" for d in sorted(table["d"].unique())},
        {**RECORDS, "ylabel": "excess risk"},
        styles=interleaved(
            [f"p = {p:g}" for p in sorted(table["p"].unique())]
        ),
        shared="all",
        note="Measured risks of all p lie on one line, whose dashes take turns. "
        "Dotted: the shape of the lower bound, which grows with p.",
    )


def interleaved(names: Sequence[str]) -> dict[str, Style]:
    """Looks of a family whose curves lie on one another: they take turns.

    A curve is drawn, and has its markers, where all the others have gaps.
    """
    dash = 4.0
    gap = dash * (len(names) - 1)
    styles = {}
    for place, (name, line_style) in enumerate(drawing.family(names).items()):
        turn = {"linestyle": (-dash * place, (dash, gap))}
        styles[name] = line_style | turn | {"markevery": (place, len(names))}
    return styles


def _with_bound(
    runs: pd.DataFrame,
    panel: str,
    name: str,
    bound_terms: tuple[str, float, float, int],
) -> Rows:
    """A curve of the share against n, and the theorem's bound where it has learnt.

    ``bound_terms`` has solver, p, epsilon and d. The bound meets the first point below
    ``BELOW``: slopes can be compared, levels cannot.
    """
    solver, p, epsilon, d = bound_terms
    curve = drawing.against(runs, "n", "share", panel, name)
    learnt = [row for row in curve if row["mean"] < BELOW]
    if len(learnt) < 2:
        return curve
    sizes = np.geomspace(learnt[0]["x"], learnt[-1]["x"], 20)
    bounds = np.array([bound(solver, p, epsilon, n, d) for n in sizes])
    bounds *= learnt[0]["mean"] / bounds[0]
    line = drawing.values(panel, f"{name}, bound", sizes, bounds, "line")
    return [*curve, *line]


def rates(folder: Path, product: Product, norms: Sequence[Any]) -> Picture:
    """NoisySFW's excess over that of w = 0 against n, at three epsilons, by p.

    The first row has the worst of the hard class, with its binomial sums where n is
    large; the second well-specified least squares. Published noise.
    """
    table = where(instanced(folder, product), method="noisy_sfw")
    # the largest that all have
    d = int(table.groupby("instance")["d"].max().min())
    table = where(table, d=d)
    table = table[table["calibration"].isin([PUBLISHED, "none"])]
    easy = table["instance"] == EASY
    rows = Rows()
    titles = dict[str, str]()
    curve_names = {
        1.0: "epsilon = 1",
        8.0: "epsilon = 8",
        math.inf: "no noise",
    }
    for difficulty, instance_runs in (
        ("hard", table[~easy]),
        ("easy", table[easy]),
    ):
        for p in norms:
            panel = f"{difficulty}, p = {norm(float(p))}"
            titles[panel] = f"{difficulty} instance, $p$ = {norm(float(p))}"
            for epsilon, name in curve_names.items():
                runs = where(instance_runs, p=float(p), epsilon=epsilon)
                bound_terms = ("noisy_sfw", float(p), epsilon, d)
                rows += _with_bound(runs, panel, name, bound_terms)
    return Picture(
        drawing.frame(rows),
        titles,
        {**RECORDS, "ylabel": "excess / that of $w$ = 0"},
        columns=len(norms),
        size=(2.3, 1.9),
        styles=drawing.family(list(curve_names.values())),
        shared="all",
        note="dotted: the theorem's bound, moved to the first point below one half",
    )


def clock(swept: pd.DataFrame, epsilon: float) -> Picture:
    """Seconds of a run against n, and the excess that a method reaches with them."""
    table = where(together(swept), epsilon=epsilon)
    rows: Rows = []
    for solver, runs in table.groupby("method", sort=False):
        name = METHOD_LABELS[str(solver)]
        rows += drawing.against(runs, "n", "seconds", "seconds", name)
        rows += drawing.against(runs, "n", "share", "excess", name)
    sizes = np.array([table["n"].min(), table["n"].max()], float)
    least_seconds = table[table["n"] == sizes[0]]["seconds"].min()
    line = least_seconds * sizes / sizes[0]
    rows += drawing.values("seconds", "linear in n", sizes, line, "line")
    titles = {
        "seconds": "time of a run",
        "excess": rf"error, $\epsilon$ = {epsilon:g}",
    }
    panel_axes = {
        "seconds": {"ylabel": "seconds"},
        "excess": {"ylabel": "excess / that of $w$ = 0"},
    }
    return Picture(
        drawing.frame(rows),
        titles,
        RECORDS,
        panel_axes,
        columns=2,
        size=(3.4, 2.6),
        note="dotted: linear in n",
    )


def transition(swept: pd.DataFrame, epsilon: float) -> Picture:
    """Excess against d at the largest n, for p = 1 and above, and without noise.

    On well-specified least squares, with the published noise.
    """
    table = together(swept)
    table = table[table["n"] == table["n"].max()]
    table = table[table["method"].isin(["noisy_sfw", "poly_sfw"])]
    rows = Rows()
    titles = dict[str, str]()
    for budget, calibration in ((epsilon, PUBLISHED), (math.inf, "none")):
        panel = f"epsilon = {budget:g}"
        titles[panel] = (
            "no noise" if math.isinf(budget) else rf"$\epsilon$ = {budget:g}"
        )
        budget_runs = where(table, epsilon=budget, calibration=calibration)
        for (p, solver), runs in budget_runs.groupby(["p", "method"]):
            name = f"p = {norm(p)}, {METHOD_LABELS[str(solver)]}"
            rows += drawing.against(runs, "d", "share", panel, name)
    names = list(dict.fromkeys(row["algorithm"] for row in rows))
    return Picture(
        drawing.frame(rows),
        titles,
        {
            "xlabel": "dimension $d$",
            "ylabel": "excess / that of $w$ = 0",
            "xscale": "log",
            "yscale": "log",
        },
        columns=2,
        size=(3.4, 2.6),
        styles=drawing.family(names),
        shared="all",
    )


def hard(
    folder: Path, product: Product, d: int, panels: Sequence[Any]
) -> Picture:
    """Worst excess over that of w = 0 against n, at one d, by solver and p.

    It is the worst of a class of instances. ``panels`` are pairs of solver and p.
    """
    table = where(instanced(folder, product), d=d)
    rows = Rows()
    titles = dict[str, str]()
    labels: dict[tuple[str, str], str] = {}
    for solver, p in panels:
        panel = f"{solver}, p = {norm(float(p))}"
        titles[panel] = f"{METHOD_LABELS[solver]}, $p$ = {norm(float(p))}"
        panel_runs = where(table, method=solver, p=float(p))
        for (epsilon, calibration), (label, _) in PRICES.items():
            name = f"epsilon = {epsilon:g}, {calibration}"
            labels[panel, name] = label
            runs = where(panel_runs, epsilon=epsilon, calibration=calibration)
            rows += _with_bound(
                runs, panel, name, (solver, float(p), epsilon, d)
            )
    return Picture(
        drawing.frame(rows),
        titles,
        {**RECORDS, "ylabel": "excess / that of $w$ = 0"},
        columns=2,
        size=(3.4, 1.7),
        styles={
            f"epsilon = {e:g}, {calibration}": style
            for (e, calibration), (_, style) in PRICES.items()
        },
        labels=labels,
        shared="all",
        note="dotted: the theorem's bound, moved to the first point below one half",
    )
