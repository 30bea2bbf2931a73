"""Figures of Lou and Cheung 2020 (DP-BCFW)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from dperm.core.experiment import results
from dperm.core.experiment.schema import Config, Product
from dperm.papers.dpbcfw import outcomes
from dperm.papers.dpbcfw.outcomes import BUDGETS, OBJECTIVES, central, read, where
from dperm.present import drawing, looks
from dperm.present.drawing import Picture, Rows
from dperm.present.looks import Look

LARGER = (
    "A private curve can end below FW, which has no noise: Algorithm 2 adds a vertex "
    "of size $\\eta$ for each of K nodes,\nso that $\\|x\\|_1$ reaches K $\\eta$, "
    "where FW keeps to $\\eta$."
)
_HUES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
NOISES = {
    "none": "no noise",
    "stated": "noise as printed",
    "scaled": "printed noise, scores $\\eta\\,\\nabla f$",
    "strict": "least sound noise",
}
UPDATES = {"published": "as published", "feasible": "feasible"}
SHARE = "$\\eta$ = {:g} $\\|x_{{true}}\\|_1$"
FAMILIES: dict[str, Callable[[float], str]] = {  # key of a family: label of a curve
    "nodes": "K = {:g}".format,
    "epsilon": "$\\epsilon$ = {:g}".format,
    "split": lambda share: f"{10 * share:.0f} : {10 - 10 * share:.0f}",
    "sketch": "m = {:g}".format,
}
FAMILY_MARKS = ("K = ", "epsilon$ = ", " : ", "m = ")  # in labels of ``FAMILIES``
BESIDE = {  # keys of panels, besides noise: their text in the data, and in the title
    "epsilon": (", epsilon {:g}", ",\n$\\epsilon$ = {:g}"),
    "share": (", eta {:g}", f", {SHARE}"),
}
TOP = 1.5  # losses over f(0) above it are not shown: nothing was learnt
WORDS = {
    "mean": "mean",
    "sum": "sum",
    "total": "$\\epsilon$ in total",
    "iteration": "$\\epsilon$ an iteration",
}
Curve = tuple[str, pd.DataFrame]  # label, runs
Cell = tuple[str, str, list[Curve]]  # a panel: its name in the rows, title, curves


def losses(cells: Iterable[Cell], columns: int, size: tuple[float, float]) -> Picture:
    """Losses over f(0) against iterations."""
    rows, titles = Rows(), dict[str, str]()
    for panel, title, curves in cells:
        titles[panel] = title
        for label, runs in curves:
            rows += drawing.against(runs, "iteration", "relative", panel, label)
    data = drawing.frame(rows)
    axes = {"xlabel": "iteration", "ylabel": "loss / loss at 0", "yscale": "log"}
    return Picture(
        data,
        titles,
        axes,
        columns=columns,
        size=size,
        looks=hues(data["algorithm"].unique()),
        is_named=False,
        note=explained(data),
    )


def explained(data: pd.DataFrame) -> str:
    """Why a private curve can end below FW, if one does."""
    ends = data.loc[data.groupby(["panel", "algorithm"])["x"].idxmax()]
    alone = where(ends, algorithm="FW").set_index("panel")["mean"]
    ours = ends[~ends["algorithm"].isin(["FW", "DP-FW"])]
    return LARGER if (ours["mean"] < ours["panel"].map(alone)).any() else ""


def hues(names: Iterable[str]) -> dict[str, Look]:
    """Looks of unordered kinds by hue, of ordered families from dark to light."""
    known = ("FW", "DP-FW")
    ours = [name for name in names if name not in known]
    found = looks.of(known)
    for mark in FAMILY_MARKS:  # each family from dark to light
        of = [name for name in ours if mark in name]
        found |= drawing.family(of)
    rest = [name for name in ours if name not in found]
    marks = zip(rest, itertools.cycle(_HUES), itertools.cycle("os^DvP"), strict=False)
    return found | {name: looks.look(hue, "-", mark) for name, hue, mark in marks}


def percent(value: float) -> str:
    """A share in percent."""
    return f"{100 * value:g} %"


def _baselines(table: pd.DataFrame, noise: str) -> list[Curve]:
    """Curves of FW and DP-FW, if they were run; ``noise`` is that of DP-BCFW."""
    alone = where(table, method="dp_fw", noise=central(noise))
    return [("FW", where(table, method="fw")), ("DP-FW", alone)]


def _family(table: pd.DataFrame, key: str) -> list[Curve]:
    """One curve for each value of a key."""
    values = sorted(table[key].unique())
    return [(FAMILIES[key](value), where(table, **{key: value})) for value in values]


# --- Algorithm 1 ----------------------------------------------------------------------


def samplings(config: Config, product: Product, problems: list[str]) -> Picture:
    """Figure 1: samplings on the ball, one panel per pair of sparsities.

    The data also have the box, whose panels do not name the set.
    """
    table = read(config, product.sweeps[0])
    pairs = table[["active", "density"]].drop_duplicates().to_numpy().tolist()
    pairs.sort(reverse=True)
    cells: list[Cell] = []
    for constraint, (active, density) in itertools.product(("ball", "box"), pairs):
        runs = where(table, active=active, density=density, constraint=constraint)
        part, whole = percent(active), percent(density)
        panel = f"features {whole}, variable {part}"
        if constraint == "ball":
            panel = f"ball, {whole} of A, {part} of x"
        curves: list[Curve] = []
        for name, own in runs.groupby("sampling", sort=False):
            p_min = own["p_min"].iloc[0]
            curves.append((f"{name}: $p_{{min}}$ = {p_min:.2g}", own))
        cells.append((panel, f"{whole} of A, {part} of x", curves))
    picture = losses(cells, min(3, len(pairs)), (3.0, 1.9))
    titles = {name: t for name, t in picture.titles.items() if name.startswith("ball")}
    return replace(picture, titles=titles)


def nodes(config: Config, product: Product, problems: list[str]) -> Picture:
    """Figure 2: K nodes without noise, by Algorithm 2 and by Algorithm 1."""
    table, sampled = read(config, "nodes"), read(config, "blocks")
    cells: list[Cell] = []
    for share, update in itertools.product(sorted(table["share"].unique()), UPDATES):
        panel = f"{UPDATES[update]}, {SHARE.format(share)}"
        runs = where(table, share=share, update=update)
        cells.append((panel, panel, _family(runs, "nodes")))
    for constraint in ("box", "ball"):
        panel = f"Algorithm 1, {constraint}"
        runs = where(sampled, constraint=constraint)
        cells.append((panel, panel, _family(runs, "nodes")))
    return losses(cells, 2, (4.0, 2.0))


# --- Algorithm 2 ----------------------------------------------------------------------


def private(config: Config, product: Product, problems: list[str]) -> Picture:
    """Figure 3: DP-BCFW, DP-FW and FW, with printed noise and with sound noise."""
    table = read(config, "private")
    sizes = table[["d", "n", "density"]].drop_duplicates().to_numpy().tolist()
    cells: list[Cell] = []
    for (d, n, density), noise in itertools.product(sizes, ("stated", "strict")):
        runs = where(table, d=d, n=n, density=density)
        ours = where(runs, method="dp_bcfw", noise=noise)
        size = f"d = {d:g}, n = {n:g}, {percent(density)}"
        curves = _baselines(runs, noise)
        curves += [
            (f"DP-BCFW, {UPDATES[one]}", where(ours, update=one)) for one in UPDATES
        ]
        value = ours["true_epsilon"].mean()
        about = f"about $10^{{{np.log10(value):.0f}}}$" if value >= 1000 else None
        cost = f"true $\\epsilon$ {about or f'{value:.2g}'}"
        cells.append((f"{size}, {noise}", f"{size}\n{NOISES[noise]}, {cost}", curves))
    return losses(cells, 2, (4.0, 2.3))


def workers(config: Config, product: Product, problems: list[str]) -> Picture:
    """Figure 5: K nodes with noise, as published and with equal feasible sets."""
    table = read(config, "workers")
    cells: list[Cell] = []
    for share, update in itertools.product(sorted(table["share"].unique()), UPDATES):
        runs = where(table, share=share)
        ours = where(runs, method="dp_bcfw", update=update)
        panel = f"{UPDATES[update]}, {SHARE.format(share)}"
        reach = f"largest $\\|x\\|_1$ = {ours['largest_norm'].max():.3g} $\\eta$"
        curves = _baselines(runs, "scaled") + _family(ours, "nodes")
        cells.append((panel, f"{panel}\n{reach}", curves))
    return losses(cells, 2, (4.0, 2.3))


def by_noise(
    config: Config,
    product: Product,
    problems: list[str],
    along: str,
    beside: str = "",
) -> Picture:
    """Figures 6 to 8: a family of runs, one panel per kind of noise.

    ``along`` is the key of ``FAMILIES`` in which curves differ, ``beside`` that of
    ``BESIDE`` in which panels differ, besides noise.
    """
    table = read(config, product.sweeps[0])
    ours = where(table, method="dp_bcfw")
    keys = ["noise", beside] if beside else ["noise"]
    cells: list[Cell] = []
    for kind in ours[keys].drop_duplicates().to_dict("records"):
        panel, title = kind["noise"], NOISES[kind["noise"]]
        if beside:
            named, titled = BESIDE[beside]
            panel += named.format(kind[beside])
            title += titled.format(kind[beside])
        ball = {"share": kind["share"]} if "share" in kind else {}
        family = _family(where(ours, **kind), along)
        curves = _baselines(where(table, **ball), kind["noise"]) + family
        cells.append((panel, title, curves))
    return losses(cells, 3, (3.1, 2.7))


def real(config: Config, product: Product, problems: list[str]) -> Picture:
    """Figure 9: real data, with printed noise, and with sound noise and a feasible set.

    Problems without data have no panel; if all lack data, one panel states this.
    """
    table = read(config, "real")
    gone = set(table.loc[table["status"] == "unavailable", "problem"])
    names = [name for name in problems if name in set(table["problem"]) - gone]
    if not names:
        return drawing.missing()
    titles, cells = results.titles(config, names), list[Cell]()
    for name, noise in itertools.product(names, ("stated", "strict")):
        runs = where(table, problem=name)
        ours = where(runs, method="dp_bcfw", noise=noise)
        update = UPDATES[ours["update"].iloc[0]]
        title = f"{titles[name].title}\n{NOISES[noise]}, {update}"
        curves = _baselines(runs, noise) + _family(ours, "nodes")
        cells.append((f"{name}, {noise}", title, curves))
    return losses(cells, 2, (4.0, 2.3))


def samples(config: Config, product: Product, problems: list[str]) -> Picture:
    """Figure 4: excess risk against n in log-log, with slopes and their intervals."""
    table = outcomes.excess(config, product.sweeps[0])
    shares, rows, titles = sorted(table["share"].unique()), Rows(), dict[str, str]()
    labels: dict[tuple[str, str], str] = {}
    for share, update in itertools.product(shares, UPDATES):
        runs = where(table, share=share)
        ours = where(runs, method="dp_bcfw", update=update)
        panel = f"{UPDATES[update]}, {SHARE.format(share)}"
        titles[panel] = panel
        for name, part in [
            ("DP-FW", where(runs, method="dp_fw")),
            *_family(ours, "nodes"),
        ]:
            curve = f"{name}: {_slope(part)}"
            labels[panel, curve] = name
            rows += drawing.against(part, "n", "excess", panel, curve)
        sizes = np.array(sorted(runs["n"].unique()))
        theory = outcomes.theory_line(sizes, ours)
        name = f"theory, slope {outcomes.THEORY:.2f}"
        rows += drawing.values(panel, name, sizes, theory, "line")
    data = drawing.frame(rows)
    heads = {name: name.partition(":")[0] for name in data["algorithm"].unique()}
    known = hues(dict.fromkeys(heads.values()))
    axes = {"xlabel": "training records n", "ylabel": "excess empirical risk"}
    axes |= {"xscale": "log", "yscale": "log"}
    return Picture(
        data,
        titles,
        axes,
        columns=2,
        size=(4.0, 2.5),
        looks={name: known[head] for name, head in heads.items()},
        labels=labels,
        is_named=False,
        ticks=sorted(table["n"].unique()),
        note="dotted: the slope of Theorem 4",
    )


def _slope(runs: pd.DataFrame) -> str:
    """Slope and its interval in words; none is fitted to an excess below 0."""
    slope, low, high = outcomes.slope(runs)
    if np.isnan(slope):
        return "no slope,\nsome excess below 0"
    return f"{slope:.2f} [{low:.2f}, {high:.2f}]"


# --- what the paper does not show -----------------------------------------------------


def communication(config: Config, product: Product, problems: list[str]) -> Picture:
    """Uplink bytes of a run against n, and along a run, one column per budget.

    The lower panels show the bytes so far, up and down, at the largest n. A feature is
    never sent twice.
    """
    table = read(config, "communication")
    budgets, rows = sorted(table["epsilon"].unique()), Rows()
    for epsilon in budgets:
        panel, runs = f"epsilon {epsilon:g}", where(table, epsilon=epsilon)
        for label, part in outcomes.bytes_by_records(runs).items():
            rows += drawing.against(part, "n", "bytes_up", panel, label)
        sent, every = outcomes.bytes_so_far(runs)
        for label, part, y in (
            ("up, measured", sent, "bytes_up"),
            ("up, if each were sent", every, "bytes_up"),
            ("down, measured", sent, "bytes_down"),
        ):
            rows += drawing.against(part, "iteration", y, f"along, {panel}", label)
    data = drawing.frame(rows)
    of_runs = f"along a run, n = {table['n'].max():g}, T tuned"
    titles = {f"epsilon {e:g}": f"whole runs, $\\epsilon$ = {e:g}" for e in budgets}
    along = {"xlabel": "iteration", "ylabel": "bytes so far", "xscale": "linear"}
    own = {f"along, {name}": along for name in titles}
    axes = {"xlabel": "training records n", "ylabel": "bytes up, all nodes"}
    axes |= {"xscale": "log", "yscale": "log"}
    return Picture(
        data,
        titles | dict.fromkeys(own, of_runs),
        axes,
        own,
        columns=len(budgets),
        size=(4.5, 2.9),
        looks=hues(data["algorithm"].unique()),
        is_named=False,
    )


# --- Figures 3 and 5 to 9 against eta, one column per reading -------------------------

# A row of panels: its name in the rows behind the figure, its title, its runs, and a
# function from runs to curves.
Line = tuple[str, str, pd.DataFrame, Callable[[pd.DataFrame], list[Curve]]]


def readings(config: Config, product: Product, problems: list[str]) -> Picture:
    """Figures 3 and 5 to 9 against eta, one row a figure, one column a reading.

    Where eta is ||x_true||_1 the panels show its mean over the draws; that of Figure 9
    is a share of ||w*||_1. The picture is of the largest T; the data have every T.
    """
    shared, private, real = (read(config, name) for name in product.sweeps)
    lines: list[Line] = []
    for table, of in ((shared, of_workers), (private, of_private)):
        means = table.groupby("ball")["eta"].mean()
        lines += of(table.assign(radius=table["ball"].map(means)))
    known = where(real, status="ok") if "status" in real else real
    titles = results.titles(config, known["problem"].unique())
    for name, runs in known.groupby("problem", sort=False):
        at = runs.assign(radius=runs["share"])
        lines.append((str(name), titles[str(name)].title, at, _of_nodes))
    return by_reading(lines)


def by_reading(lines: list[Line]) -> Picture:
    """One panel per line and reading: final losses against eta, at the largest T."""
    rows, titles, own = Rows(), dict[str, str](), dict[str, dict[str, Any]]()
    for line, objective, per in itertools.product(lines, OBJECTIVES, BUDGETS):
        name, title, runs, curves = line
        part = where(runs, objective=objective, per=per)
        for T, group in part.groupby("iterations", sort=False):
            panel = f"{name}, {objective}, {per}, T {T:g}"
            for algorithm, one in curves(group):
                rows += drawing.against(one, "radius", "relative", panel, algorithm)
            if runs["iterations"].max() == T:
                titles[panel] = f"{WORDS[objective]}, {WORDS[per]}"
                label = "$\\eta$ / $\\|w^*\\|_1$" if "problem" in runs else "$\\eta$"
                own[panel] = {"xlabel": label, "ylabel": title}
    data = drawing.frame(rows)
    axes = {"xscale": "log", "ylim": (0.0, TOP)}
    return Picture(
        data,
        titles,
        axes,
        own,
        columns=4,
        size=(2.6, 1.6),
        looks=hues(data["algorithm"].unique()),
        is_named=False,
        note=explained(data) or "final loss / loss at 0",
    )


def of_workers(table: pd.DataFrame) -> list[Line]:
    """Lines of Figures 5 to 8."""
    lines: list[Line] = [("figure 5", "Figure 5", table, _of_nodes)]
    for figure in outcomes.FAMILIES:
        curves = partial(_of_family, figure=figure)
        lines.append((f"figure {figure}", f"Figure {figure}", table, curves))
    return lines


def of_private(table: pd.DataFrame) -> list[Line]:
    """Lines of Figure 3, one per sparsity."""
    return [
        (
            f"figure 3, {percent(density)}",
            f"Figure 3, {percent(density)}",
            runs,
            _of_three,
        )
        for density, runs in table.groupby("density", sort=False)
    ]


def _of_nodes(runs: pd.DataFrame) -> list[Curve]:
    """Curves of FW, DP-FW and each K."""
    plain = {key: value for key, value in outcomes.PLAIN.items() if key != "nodes"}
    ours = where(runs, method="dp_bcfw", **plain)
    return [
        ("FW", where(runs, method="fw")),
        ("DP-FW", where(runs, method="dp_fw", own=False)),
        *((FAMILIES["nodes"](K), where(ours, nodes=K)) for K in outcomes.NODES),
    ]


def _of_family(runs: pd.DataFrame, figure: str) -> list[Curve]:
    """Curves of Figure 6, 7 or 8."""
    name = FAMILIES[outcomes.FAMILIES[figure][0]]
    parts = outcomes.family(runs, figure)
    return [(name(value), part) for value, part in parts.items()]


def _of_three(runs: pd.DataFrame) -> list[Curve]:
    """Curves of Figure 3."""
    theirs = where(runs, method="dp_fw")
    return [
        ("FW", where(runs, method="fw")),
        ("DP-FW", where(theirs, own=False)),
        ("DP-FW, its own noise", where(theirs, own=True)),
        ("DP-BCFW, as published", where(runs, method="dp_bcfw")),
    ]
