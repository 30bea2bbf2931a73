"""Figures that any paper may name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.legend_handler import HandlerTuple
from matplotlib.ticker import MaxNLocator

from dperm.core.experiment import results
from dperm.core.experiment.locate import ConfigError, hint
from dperm.core.experiment.results import Result
from dperm.core.experiment.schema import Config, Problem, Product
from dperm.present import drawing, looks
from dperm.present.drawing import Drawing, Panels, Row, Rows, log_axes
from dperm.present.intervals import student
from dperm.present.looks import Look

log = logging.getLogger(__name__)
TRUE = "true $\\epsilon$ "


def trajectories(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Relative error along the chosen runs, one panel a problem.

    Each algorithm runs its best number of passes; mean, min and max over fresh seeds.
    Methods are named below all panels, true epsilons in each; problems without data
    are named there too. ``options``: ``x``, ``passes`` or ``seconds``; ``solvers``,
    those that are shown, or ``leave_out``, those that are not; ``names``, other labels
    by solver; ``columns`` of panels; ``title``, what is said of a problem, its
    ``privacy`` or its ``penalty``; ``ends``, whether the end of each run is marked;
    ``ties``, whether other numbers of passes that end as well are drawn too, as thin
    lines; ``readings``, by solver those of its text in the product's sweep, as a band;
    ``published`` and ``column``, the paper's table of errors and its column, for stars
    where it says that the runs end.
    """
    options = product.options
    _check(config, product)
    found = results.load(
        config,
        problems,
        options.get("leave_out", ()),
        options.get("solvers"),
        product.timed,
    )
    titles = results.titles(config, problems)
    gone = {name: lost for name in problems if (lost := _lost(found[name]))}
    names = [name for name in problems if name not in gone]
    panels = Panels(len(names), options.get("columns", 3))
    if not names:
        drawing.empty(panels.axes[0], next(iter(gone.values())))
        return panels.figure, []
    chosen = looks.of(_label(each, options) for name in names for each in found[name])
    printed = _printed(config, options)
    swept = [results.load_sweep(config, name) for name in product.sweeps]
    for name, at in panels.over(names):
        title = TITLES[options.get("title", "privacy")](titles[name])
        at.set_title(title, pad=18)  # room for the panel's key
        _panel(panels, at, found[name], product, chosen, printed, swept)
    absent = "; ".join(f"{titles[name].title}: {why}" for name, why in gone.items())
    return panels.done(5, title=absent)


def _lost(found: list[Result]) -> str:
    """Why a problem has no panel; empty where it has one."""
    lost = [result for result in found if not result.available]
    if not lost:
        return ""
    log.warning("%s: no panel. %s", lost[0].problem, lost[0].reason)
    gone = "unavailable" in set(lost[0].evaluated["status"])
    return drawing.UNAVAILABLE if gone else lost[0].reason


def _printed(config: Config, options: dict[str, Any]) -> pd.DataFrame:
    """Cells of the paper: problem, algorithm, error, and passes where it has them."""
    if "published" not in options:
        return pd.DataFrame({"problem": [], "algorithm": [], "error": []})
    cells = results.published(config, options["published"])
    return cells.assign(error=cells[options["column"]])


def _check(config: Config, product: Product) -> None:
    """Refuse an option or a choice that there is not, and seconds not measured."""
    options = product.options
    where = f"conf/paper/{config.paper.name}/paper.yaml: figures: options"
    found = [(f"{where}", key, OPTIONS) for key in options]
    found += [
        (f"{where}.{key}", options.get(key, known[0]), known)
        for key, known in CHOICES.items()
    ]
    for place, value, known in found:
        if value not in known:
            raise ConfigError(
                f"{place}: expected one of {', '.join(known)}, found {value!r}"
                f"{hint(str(value), known)}"
            )
    if options.get("x") == "seconds" and not product.timed:
        raise ConfigError(f"{where}.x: seconds: expected timed: true beside options")


def _privacy(problem: Problem) -> str:
    return f"{problem.title}, $\\epsilon$ = {problem.privacy.epsilon:g}"


def _penalty(problem: Problem) -> str:
    penalty = "L1" if problem.penalty.l1 else "L2"
    kind = f"{problem.loss} + {penalty}".replace("_", " ")
    kind = {"least squares + L1": "LASSO"}.get(kind, kind)
    strength = problem.penalty.l1 or problem.penalty.l2
    return f"{problem.title}\n{kind}, $\\lambda$ = {strength:g}"


TITLES: dict[str, Callable[[Problem], str]] = {
    "privacy": _privacy,
    "penalty": _penalty,
}

CHOICES = {
    "x": ("passes", "seconds"),
    "title": tuple(TITLES),
}
OPTIONS = (
    *CHOICES,
    "solvers",
    "leave_out",
    "names",
    "columns",
    "ends",
    "ties",
    "readings",
    "published",
    "column",
)


def _label(result: Result, options: dict[str, Any]) -> str:
    return options.get("names", {}).get(result.solver, result.label)


def _panel(
    panels: Panels,
    axes: Axes,
    found: list[Result],
    product: Product,
    chosen: dict[str, Look],
    printed: pd.DataFrame,
    swept: Sequence[pd.DataFrame] = (),
) -> None:
    """The curves of one problem."""
    options, calibration = product.options, product.calibration
    ran = [result for result in found if result.ran(calibration)]
    curves = [_curve(result, options, calibration) for result in ran]
    tied = {each.solver: ties(each, calibration) for each in ran if options.get("ties")}
    spanned = curves + [[{"x": passes}] for each in tied.values() for passes in each]
    key: dict[str, str] = {}  # of the panel: by label, the true epsilon in words
    for result in ran if swept else ():
        _readings(panels, axes, result, product, swept[0], chosen)
    for result, rows in zip(ran, curves, strict=True):
        label, cost = _label(result, options), _cost(result, calibration)
        look, key[label] = chosen[label], cost
        panels.band(axes, rows, label, look, marks=8, shade=0.18, cost=cost)
        for passes in tied.get(result.solver, ()):
            _tie(panels, axes, result, product, look, passes)
        if options.get("ends"):
            # A dot where a run ends; a dotted line goes on to where the last one does
            end = rows[-1]
            colour = look["color"]
            last = _last(spanned, options)
            axes.plot([end["x"]], [end["mean"]], "o", color=colour, markersize=4)
            if end["x"] < last:
                axes.plot(
                    [end["x"], last], [end["mean"]] * 2, ":", color=colour, lw=0.9
                )
    for result in found:
        if result.diverged(calibration):
            label = _label(result, options)
            axes.plot([], [], label=label, **chosen[label])
            key[label] = "all diverged"
    axes.set(yscale="log", ylabel="relative error")
    for result, rows in zip(ran, curves, strict=True):
        _stars(panels, axes, result, rows[-1], printed)
    if curves:
        _finish(axes, spanned, options)
    if key:
        _key(axes, key)


def _key(axes: Axes, key: dict[str, str]) -> None:
    """The true epsilon of each curve, above the panel; once where all have the same."""
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    same: dict[str, tuple[Any, ...]] = {}
    for name, text in key.items():
        same[text] = (*same.get(text, ()), handles[name])
    if len(same) == 1:
        axes.text(0.5, 1.02, next(iter(same)), transform=axes.transAxes, ha="center")
        return
    texts = [text.removeprefix(TRUE) if k else text for k, text in enumerate(same)]
    place: Any = {"loc": "lower center", "bbox_to_anchor": (0.5, 0.97)}
    place |= {"columnspacing": 1.0, "handletextpad": 0.4, "borderaxespad": 0.1}
    each = {tuple: HandlerTuple(ndivide=None, pad=0.3)}
    axes.legend(same.values(), texts, ncols=len(same), handler_map=each, **place)


def _stars(
    panels: Panels, axes: Axes, result: Result, end: Row, printed: pd.DataFrame
) -> None:
    """What the paper prints for a run of so many passes, as a star at its end."""
    label, look = str(end["algorithm"]), end["look"]
    ours = (printed["problem"] == result.problem) & (printed["algorithm"] == label)
    if "passes" in printed:
        ours &= printed["passes"] == end["x"]
    star = {
        "color": look["color"],
        "markersize": 9,
        "markeredgecolor": "black",
        "markeredgewidth": 0.5,
        "clip_on": False,
        "zorder": 5,
        "linestyle": "none",
        "label": "as printed",
    }
    for error in printed.loc[ours, "error"]:
        axes.plot([end["x"]], [error], marker="*", **star)
        row = {
            "panel": result.problem,
            "algorithm": f"{label}, published",
            "x": end["x"],
            "mean": error,
        }
        panels.add(axes, [row], look)


def ties(result: Result, calibration: str) -> list[float]:
    """Other numbers of passes that fresh runs cannot tell from the best, rising.

    Both ends have overlapping 95 % intervals. There is none where the best ends no
    lower than it starts.
    """
    best = result.best_passes(calibration)
    runs = result.trajectories(calibration, best)
    start = runs.loc[runs["checkpoint"] == 0, "relative_error"].mean()
    low, high = student(result.final(calibration, best)["relative_error"])
    found = []
    for passes in sorted(set(result.chosen(calibration)["passes"]) - {best}):
        ends = result.final(calibration, passes)["relative_error"]
        if len(ends) and high < start:
            least, most = student(ends)
            found += [passes] if least <= high and low <= most else []
    return found


def _tie(
    panels: Panels,
    axes: Axes,
    result: Result,
    product: Product,
    look: Look,
    passes: float,
) -> None:
    """A thin line for a number of passes that ties with the one that is drawn."""
    label, look = _label(result, product.options), {**look, "marker": ""}
    rows = _curve(result, product.options, product.calibration, passes)
    x, mean = ([row[key] for row in rows] for key in ("x", "mean"))
    style = {"color": look["color"], "linewidth": 0.7, "alpha": 0.8}
    axes.plot(x, mean, label="other passes, as good", **style)
    axes.plot(x[-1:], mean[-1:], "o", color=look["color"], markersize=2.5)
    length = f"{passes:g} pass{'es' * (passes != 1)}"
    for row in rows:
        row |= {"algorithm": f"{label}, {length}", drawing.TIED: label}
    panels.add(axes, rows, look)


def _readings(
    panels: Panels,
    axes: Axes,
    result: Result,
    product: Product,
    swept: pd.DataFrame,
    chosen: dict[str, Look],
) -> None:
    """The band between the means of several readings of a solver's text."""
    named = product.options.get("readings", {}).get(result.solver, {})
    for key, readings in named.items():
        ours = swept["problem"].eq(result.problem) & swept[key].isin(readings)
        part = swept[ours & swept["calibration"].eq(product.calibration)]
        means = part.groupby(["checkpoint", key])["along"].mean().unstack(key)
        if means.empty or product.timed:
            continue
        label = _label(result, product.options)
        look = chosen[label]
        name = f"{label}, readings"
        rows = drawing.against(
            means.stack().rename("mean").reset_index(),
            "checkpoint",
            "mean",
            result.problem,
            name,
        )
        table = pd.DataFrame(rows)
        for end in ("min", "max"):
            style = {"color": look["color"], "linestyle": ":", "linewidth": 1.1}
            axes.plot(table["x"], table[end], label=name, **style)
        for row in rows:
            row |= {"ci_low": np.nan, "ci_high": np.nan}  # readings are no sample
        panels.add(axes, rows, look)


def _curve(
    result: Result,
    options: dict[str, Any],
    calibration: str,
    passes: float | None = None,
) -> Rows:
    """Mean, range and interval at each checkpoint, of the best number of passes."""
    passes = result.best_passes(calibration) if passes is None else passes
    runs = result.trajectories(calibration, passes)
    label, on_passes = _label(result, options), options.get("x", "passes") == "passes"
    rows, spent = [], {}
    if not on_passes:
        timed = result.clocked(calibration, passes)
        spent = timed.groupby("checkpoint")["seconds"].mean().to_dict()
    for checkpoint, group in runs.groupby("checkpoint"):
        x = checkpoint if on_passes else spent[checkpoint]
        values = group["relative_error"].to_numpy()
        rows.append(drawing.summary(result.problem, label, float(x), values))
    return rows


def _cost(result: Result, calibration: str) -> str:
    """The true epsilon of the runs, in words."""
    runs = result.trajectories(calibration, result.best_passes(calibration))
    true = runs["true_epsilon"].iloc[0]
    if not np.isfinite(true):
        return "no sound $\\epsilon$"
    return f"{TRUE}{true:.2g}"


def _last(curves: list[Rows], options: dict[str, Any]) -> float:
    """Where the longest run ends, in passes; 0 on an axis of time."""
    if options.get("x") == "seconds":
        return 0.0
    return max(row["x"] for rows in curves for row in rows)


def _finish(axes: Axes, curves: list[Rows], options: dict[str, Any]) -> None:
    if options.get("x") == "seconds":
        # the start, at 0 seconds, has no place on a logarithmic axis
        axes.set_xlabel("seconds")
        axes.set_xscale("log", nonpositive="mask")
        zero: Look = {"color": "0.6", "linewidth": 0.8, "linestyle": ":"}
        axes.axhline(curves[0][0]["mean"], label="w = 0", **zero)
        return
    axes.set_xlabel("passes on data")
    axes.set_xlim(0.0, 1.02 * _last(curves, options))
    if not options.get("ends"):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def against_epsilon(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Relative error against true epsilon, one panel a problem, every method tuned."""
    swept = results.load_sweep(config, product.sweeps[0])
    titles = results.titles(config, problems)
    ran = "relative_error" in swept  # not where no data set could be had
    known = swept.dropna(subset="relative_error") if ran else swept.iloc[:0]
    names = [name for name in problems if name in set(known["problem"])]
    panels = Panels(len(names), product.options.get("columns", 3))
    if not names:
        tried = not set(problems).isdisjoint(swept["problem"])
        lost = drawing.UNAVAILABLE if tried else "swept on other problems only"
        drawing.empty(panels.axes[0], lost)
        return panels.figure, []
    chosen = looks.of(known["algorithm"].unique())
    zero: Look = {"color": "0.6", "linewidth": 0.8, "linestyle": ":", "label": "w = 0"}
    for name, at in panels.over(names):
        part = known[known["problem"] == name]
        for label, group in part.groupby("algorithm", sort=False):
            panels.mean(
                at, group, "epsilon", "relative_error", name, label, chosen[label]
            )
        at.axhline(part["start"].iloc[0], **zero)
        log_axes(at, "true $\\epsilon$", "relative error", title=titles[name].title)
    return panels.done(5)
