"""Figures of Maranjyan et al. 2024 (DP-SkGD): the experiments it announces."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from dperm.core.experiment import plan, results
from dperm.core.experiment.schema import Config, Product
from dperm.kinds.figures import absent, told
from dperm.kinds.tables import swept_of
from dperm.papers.dpskgd import measures
from dperm.pipeline import inputs
from dperm.present import drawing, looks
from dperm.present.drawing import Picture, Rows
from dperm.present.looks import Look, look

FAMILIES = {  # of samplings: the method whose look they have, and their name
    "uniform": ("DP-SkGD single", "uniform"),
    "importance": ("DP-SkGD single IS", "importance"),
}
INSTANCES = {
    "separable": "#332288",
    "ill-conditioned": "#CC6677",
    "moderate": "#117733",
}
TITLES = {  # of the regimes
    "flat": "One small $M_1$, the rest solved",
    "steep": "One large $M_1$, which matters",
}
LENGTHS = {"theorem": "the theorem's $K$", "best": "the best $K$"}
RANDOM = ("4 random blocks, 2", "4 random blocks, 3")  # one partition is shown


def samplings(config: Config, product: Product, problems: list[str]) -> Picture:
    """Relative error against the number of blocks, one panel per problem.

    Methods without a sketch are horizontal lines.
    """
    ran = results.load(config, problems)
    gone, titles = absent(ran.items()), results.titles(config, problems)
    rows, labels, styles = Rows(), dict[tuple[str, str], str](), dict[str, Look]()
    for name in (name for name in problems if name not in gone):
        p = len(inputs.load_optimum(plan.at_problem(config, name)).w)
        for result in ran[name]:
            error = result.final(product.calibration)["relative_error"].to_numpy()
            family = measures.family(result.solver)
            x = measures.block_count(result.solver, p) if family else 0.0
            row = drawing.summary(name, result.label, x, error)
            rows.append(row | {"role": "points" if family else "level"})
            if family:
                of, labels[name, result.label] = FAMILIES[family]
                styles[result.label] = looks.of([of])[of]
    axes = {"xlabel": "blocks $b$ (1 full, $p$ single)", "ylabel": "relative error"}
    axes |= {"xscale": "log", "yscale": "log"}
    shown = {name: problem.title for name, problem in titles.items()}
    return Picture(
        drawing.frame(rows),
        shown,
        axes,
        looks=styles,
        labels=labels,
        is_named=False,
        note=told(gone, titles),
    )


def regimes(config: Config, product: Product, problems: list[str]) -> Picture:
    """Section 4.3: excess against d, and the gain with its exponent."""
    table = measures.relative(results.load_sweep(config, "regimes"))
    fits = {(row["regime"], row["n"]): row for row in measures.fitted(table)}
    rows, titles, labels = Rows(), dict[str, str](), dict[tuple[str, str], str]()
    styles, own = dict[str, Look](), dict[str, dict[str, Any]]()
    for regime, part in table.groupby("regime", sort=False):
        left, right = f"{regime}: excess", f"{regime}: gain"
        titles |= {left: TITLES[str(regime)], right: "Gain"}
        rows += _excess(left, part, styles)
        worse, better = part["algorithm"].unique()
        own[right] = {"ylabel": f"{worse} / {better}"}
        for n, gain in measures.gains(part).items():
            name = f"{worse} / {better} (n = {n})"
            rows += drawing.values(right, name, gain.index, gain, "joined")
            styles[name] = look("#882255", LINES[int(n > SMALL)], "o")
            fit = fits.get((regime, n))
            power = f": $d^{{\\,{fit['exponent']:.2f}}}$" if fit else ""
            labels[right, name] = f"$n = 2^{{{int(np.log2(n))}}}${power}"
        for key, (bound, slope) in measures.predicted_gains(part).items():
            name = {"convex": "Table 1, convex"}.get(key, "Table 1, strongly convex")
            rows += drawing.values(right, name, bound.index, bound, "curve")
            styles[name] = look("#595959", ":" if key == "convex" else "-.")
            labels[right, name] = f"{name}: $d^{{\\,{slope:.2f}}}$"
    axes = {"xlabel": "$d$", "ylabel": "excess / start"}
    axes |= {"xscale": "log", "yscale": "log"}
    return Picture(
        drawing.frame(rows),
        titles,
        axes,
        own,
        columns=2,
        size=(4.6, 2.9),
        looks=styles,
        labels=labels,
        is_named=True,
        ticks=sorted(table["d"].unique()),
    )


LINES = ("--", "-")
SMALL = 2**20  # records


def _excess(panel: str, table: pd.DataFrame, styles: dict[str, Look]) -> Rows:
    """Excess over its start: expected, drawn from the law, and run by the solver."""
    rows, colours = Rows(), looks.of(table["algorithm"].unique())
    for (name, n), part in table.groupby(["algorithm", "n"], sort=False):
        expected = part.groupby("d")["expected_share"].first()
        line, at = f"{name} (n = {n})", (panel, f"{name} (n = {n})")
        rows += drawing.values(*at, expected.index, expected, "curve")
        styles[line] = look(colours[name]["color"], LINES[int(n > SMALL)])
        for source, mark in (("law", "o"), ("solver", "x")):
            dots = f"{name} ({source}, n = {n})"
            drawn = part[part["source"] == source]
            rows += drawing.against(drawn, "d", "share", panel, dots, "dots")
            styles[dots] = look(colours[name]["color"], "none", mark)
    return rows


# --- Theorem 4.2 at its own parameters ------------------------------------------------


def rates(config: Config, product: Product, problems: list[str]) -> Picture:
    """Excess against n with the bound, and the exponents."""
    swept = swept_of(config, product)
    means = pd.DataFrame(measures.beside_bounds(swept)).dropna(subset="bound")
    whole = means[means["epsilon"] == means["epsilon"].max()]
    rows, titles = Rows(), dict[str, str]()
    for (case, instance), part in whole.groupby(["case", "instance"], sort=False):
        panel = f"{case}, {instance}"
        titles[panel] = panel[0].upper() + panel[1:]
        shares = part[["excess", "ci_low", "ci_high", "expected", "bound"]]
        part = part.assign(**shares.div(part["start"], axis=0), x=part["n"])
        for name, group in part.groupby("sampling", sort=False):
            ran = group.dropna(subset="excess").assign(mean=lambda t: t["excess"])
            role = "data" if name in RANDOM else "points"
            rows += _rows(panel, str(name), ran, role)
            line = drawing.values(panel, f"{name}, expected", ran["n"], ran["expected"],
                                  "data" if name in RANDOM else "line")  # fmt: skip
            rows += line
        base = part[part["sampling"] == measures.BASE]
        bound = (panel, "bound, single", base["n"], base["bound"])
        rows += drawing.values(*bound, "curve")
    for fit in measures.exponents(swept):
        panel, name = f"exponent in {fit['axis']}", f"{fit['case']}, {fit['instance']}"
        titles[panel] = f"Exponents in {fit['axis']}"
        at = pd.DataFrame([{**fit, "x": fit["bound"], "mean": fit["exponent"]}])
        rows += _rows(panel, f"{name}: {fit['sampling']}", at, "points")
    own: dict[str, dict[str, Any]] = {
        panel: {"xlabel": "exponent of the bound", "ylabel": "exponent measured"}
        | {"xscale": "linear", "yscale": "linear"}
        for panel in titles
        if panel.startswith("exponent in")
    }
    axes = {"xlabel": "$n$", "ylabel": "excess over that of $w = 0$"}
    axes |= {"xscale": "log", "yscale": "log"}
    data = drawing.frame(rows)
    return Picture(
        data,
        titles,
        axes,
        own,
        looks=_of_rates(data["algorithm"].unique()),
        labels=_instances(data),
        is_named=False,
    )


def _of_rates(names: Any) -> dict[str, Look]:
    """Looks of the samplings, and of exponents by their instance."""
    known = {"4 random blocks, 1": look("#999933", "none", "^")}
    for name in (*names, measures.BASE):
        method = {measures.AGAIN: "single"}.get(name, name)
        if f"DP-SkGD {method}" in looks.METHODS:
            own = looks.of([f"DP-SkGD {method}"])[f"DP-SkGD {method}"]
            known[name] = own | {"linestyle": "none"}
        elif ": " in name:
            instance = name.partition(": ")[0].rpartition(", ")[2]
            known[name] = look(INSTANCES.get(instance, "#595959"), "none", "o")
    return known | {"bound, single": look("#595959", ":")}


def _instances(data: pd.DataFrame) -> dict[tuple[str, str], str]:
    """The legend names instances, not every point of the exponents."""
    pairs = data[["panel", "algorithm"]].drop_duplicates().itertuples(index=False)
    return {
        (panel, name): name.partition(": ")[0].rpartition(", ")[2]
        for panel, name in pairs
        if panel.startswith("exponent in")
    }


def _rows(panel: str, name: str, table: pd.DataFrame, role: str) -> Rows:
    """Rows of a table with x, mean and the ends of an interval."""
    known = table.assign(panel=panel, algorithm=name, role=role)
    known = known.assign(min=table["mean"], max=table["mean"])
    return known[[*drawing.COLUMNS, drawing.ROLE]].to_dict("records")


def placement(config: Config, product: Product, problems: list[str]) -> Picture:
    """Excess of importance over uniform draws, by the placement of the optimum."""
    table = measures.orders(swept_of(config, product))
    orders = table[table["question"] != measures.CONTROL]
    band = float(table["band"].max())
    rows, styles = Rows(), dict[str, Look]()
    for length, part in orders.groupby("length", sort=False):
        for name, runs in part.groupby("instance", sort=False):
            points = runs.rename(columns={"placement": "x", "ratio": "mean"})
            rows += _rows(str(length), str(name), points, "points")
            at = (str(length), f"{name}, expected")
            rows += drawing.values(*at, runs["placement"], runs["expected"], "line")
            styles[str(name)] = look(INSTANCES[str(name)], "none", "o")
        bound = part.groupby("placement")["predicted"].first()
        at = (str(length), "Table 1, convex row")
        rows += drawing.values(*at, bound.index, bound, "curve")
        level = {"panel": str(length), "algorithm": "band of controls", "mean": 1.0}
        ends = {"ci_low": 1 / band, "ci_high": band, "x": math.nan}
        rows.append(level | ends | {"role": "level"})
    axes = {"xlabel": "placement $a$: $|w^*_j| = M_j^a$ (the regime is $a > 0$)"}
    axes |= {"ylabel": "importance / uniform", "yscale": "log"}
    styles |= {
        "Table 1, convex row": look("#595959", "--"),
        "band of controls": look("#595959", "-"),
    }
    shown = {
        name: title for name, title in LENGTHS.items() if name in {*table["length"]}
    }
    return Picture(
        drawing.frame(rows), shown, axes, columns=2, looks=styles, is_named=False
    )
