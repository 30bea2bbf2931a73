"""Figures that any paper may name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.legend_handler import HandlerTuple
from matplotlib.ticker import EngFormatter, LogLocator, MaxNLocator, NullFormatter

from dperm.core.experiment import results
from dperm.core.experiment.locate import ConfigError
from dperm.core.experiment.results import Result
from dperm.core.experiment.schema import Config, Problem, Product
from dperm.core.names import hint
from dperm.present import drawing, looks
from dperm.present.drawing import Drawing, Panels, Row, Rows, log_axes
from dperm.present.intervals import student
from dperm.present.looks import Look
from dperm.present.tables import where

log = logging.getLogger(__name__)
TRUE = "true $\\epsilon$ "


def trajectories(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Relative error along the chosen runs, one panel per problem.

    Each algorithm runs its best number of passes; curves show mean, minimum and maximum
    over fresh seeds. Methods and problems without data are named below all panels, true
    epsilons in each panel. ``options``:

    - ``x``: ``passes`` or ``seconds``;
    - ``solvers`` to show;
    - ``names``: other labels by solver;
    - ``columns`` of panels;
    - ``title``: whether titles state a problem's ``privacy`` or its ``penalty``;
    - ``ends``: whether the end of each run is marked;
    - ``ties``: whether thin lines show other numbers of passes with equally good ends;
    - ``readings``: by solver, readings of its text in the product's sweep, as a band;
    - ``published`` and ``column``: the paper's table of errors and its column, whose
      values are stars at the ends of the runs.
    """
    options = product.options
    _check(config, product)
    found = results.load(config, problems, options.get("solvers"), product.timed)
    gone = {name: lost for name in problems if (lost := reason(found[name]))}
    there, panels, absent = panels_of(config, product, problems, gone)
    swept = [results.load_sweep(config, name) for name in product.sweeps]
    shown = [each for name in there for each in found[name]]
    curves = _Curves(panels, product, _printed(config, options), swept, shown)
    titled = TITLES[options.get("title", "privacy")]
    for (name, problem), at in zip(there.items(), panels.axes, strict=False):
        at.set_title(titled(problem), pad=18)  # room for the panel's key
        curves.draw(at, found[name])
    return panels.done(5, title=absent)


def panels_of(
    config: Config, product: Product, problems: list[str], gone: dict[str, str]
) -> tuple[dict[str, Problem], Panels, str]:
    """The problems that have data, their panels, and a line about the others.

    If none has data, one empty panel states the reason. ``gone`` holds the reason by
    problem. ``options``: ``columns``.
    """
    titles = results.titles(config, problems)
    there = {name: titles[name] for name in problems if name not in gone}
    panels = Panels(len(there), product.options.get("columns", 3))
    if not there:
        drawing.empty(panels.axes[0], next(iter(gone.values())))
        return there, panels, ""
    lines = (f"{titles[name].title}: {why}" for name, why in gone.items())
    return there, panels, "; ".join(lines)


def reason(found: list[Result]) -> str:
    """Why a problem has no panel; empty if it has one."""
    lost = [result for result in found if not result.available]
    if not lost:
        return ""
    log.warning("%s: no panel. %s", lost[0].problem, lost[0].reason)
    gone = "unavailable" in set(lost[0].evaluated["status"])
    return drawing.UNAVAILABLE if gone else lost[0].reason


def _printed(config: Config, options: dict[str, Any]) -> pd.DataFrame:
    """Cells of the paper: problem, algorithm, error, and passes if printed."""
    if "published" not in options:
        return pd.DataFrame({"problem": [], "algorithm": [], "error": []})
    cells = results.published(config, options["published"])
    return cells.assign(error=cells[options["column"]])


def _check(config: Config, product: Product) -> None:
    """Refuse unknown options and choices, and seconds that were not measured."""
    options = product.options
    file = f"conf/paper/{config.paper.name}/paper.yaml: figures: options"
    found = [(file, key, OPTIONS) for key in options]
    found += [
        (f"{file}.{key}", options.get(key, known[0]), known)
        for key, known in CHOICES.items()
    ]
    for place, value, known in found:
        if value not in known:
            raise ConfigError(
                f"{place}: expected one of {', '.join(known)}, found {value!r}"
                f"{hint(str(value), known)}"
            )
    if options.get("x") == "seconds" and not product.timed:
        raise ConfigError(f"{file}.x: seconds: expected timed: true beside options")


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

CHOICES = {"x": ("passes", "seconds"), "title": tuple(TITLES)}
OPTIONS = (*CHOICES, "solvers", "names", "columns", "ends", "ties")
OPTIONS += ("readings", "published", "column")


@dataclass
class _Curves:
    """State that the panels of a figure of trajectories share."""

    panels: Panels
    product: Product
    printed: pd.DataFrame  #: cells of the paper
    swept: Sequence[pd.DataFrame]  #: sweeps of readings of a solver's text
    shown: InitVar[list[Result]]

    def __post_init__(self, shown: list[Result]) -> None:
        self.options, self.calibration = self.product.options, self.product.calibration
        self.on_time = self.options.get("x") == "seconds"
        self.looks = looks.of(self.label(result) for result in shown)

    def label(self, result: Result) -> str:
        return self.options.get("names", {}).get(result.solver, result.label)

    def draw(self, axes: Axes, found: list[Result]) -> None:
        ran = [result for result in found if result.ran(self.calibration)]
        curves = [self.curve(result) for result in ran]
        tied: list[list[float]] = [[] for _ in ran]
        if self.options.get("ties"):
            tied = [ties(result, self.calibration) for result in ran]
        x = [row["x"] for rows in curves for row in rows]
        # the end of the longest run, in passes
        last = max([*x, *chain.from_iterable(tied)], default=0.0)
        key: dict[str, str] = {}  # of the panel: true epsilon as text, by label
        for result in ran if self.swept else ():
            self.readings(axes, result)
        for result, rows, others in zip(ran, curves, tied, strict=True):
            label = self.label(result)
            look, key[label] = self.looks[label], _cost(result, self.calibration)
            self.panels.band(axes, rows, label, look, marks=8, shade=0.12)
            for passes in others:
                self.tie(axes, result, passes)
            if self.options.get("ends"):
                # A dot marks the end of a run; a dotted line continues to the last end
                place, color = [rows[-1]["mean"]], look["color"]
                axes.plot([rows[-1]["x"]], place, "o", color=color, markersize=4)
                if rows[-1]["x"] < last and not self.on_time:
                    ends = [rows[-1]["x"], last]
                    axes.plot(ends, place * 2, ":", color=color, lw=0.9)
        for result in found:
            if result.diverged(self.calibration):
                label = self.label(result)
                axes.plot([], [], label=label, **self.looks[label])
                key[label] = "all diverged"
        axes.set(yscale="log", ylabel="relative error")
        for result, rows in zip(ran, curves, strict=True):
            self.stars(axes, result, rows[-1])
        if curves:
            self.scale(axes, last, curves[0][0]["mean"])
        if key:
            _key(axes, key)

    def curve(self, result: Result, passes: float | None = None) -> Rows:
        """Mean, range and interval at each checkpoint; the best passes by default."""
        passes = result.best_passes(self.calibration) if passes is None else passes
        runs = result.trajectories(self.calibration, passes)
        label, rows, spent = self.label(result), list[Row](), dict[float, float]()
        if self.on_time:
            timed = result.clocked(self.calibration, passes)
            spent = timed.groupby("checkpoint")["seconds"].mean().to_dict()
        for checkpoint, group in runs.groupby("checkpoint"):
            x = spent[checkpoint] if self.on_time else checkpoint
            values = group["relative_error"].to_numpy()
            rows.append(drawing.summary(result.problem, label, float(x), values))
        return rows

    def tie(self, axes: Axes, result: Result, passes: float) -> None:
        """Draw a thin line for a number of passes that ties with the best."""
        label, rows = self.label(result), self.curve(result, passes)
        look = {**self.looks[label], "marker": ""}
        x, mean = ([row[key] for row in rows] for key in ("x", "mean"))
        style = {"color": look["color"], "linewidth": 0.7, "alpha": 0.8}
        axes.plot(x, mean, label="other passes, as good", **style)
        axes.plot(x[-1:], mean[-1:], "o", color=look["color"], markersize=2.5)
        length = f"{passes:g} pass{'es' * (passes != 1)}"
        for row in rows:
            row |= {"algorithm": f"{label}, {length}", drawing.TIED: label}
        self.panels.rows += rows

    def readings(self, axes: Axes, result: Result) -> None:
        """Draw the band between the means of several readings of a solver's text."""
        swept, label = self.swept[0], self.label(result)
        every = self.options.get("readings", {}).get(result.solver, {})
        for key, readings in every.items():
            of = {"problem": result.problem, "calibration": self.calibration}
            part = where(swept[swept[key].isin(readings)], **of)
            means = part.groupby(["checkpoint", key])["along"].mean().reset_index()
            if means.empty or self.product.timed:
                continue
            name, look = f"{label}, readings", self.looks[label]
            where_to = ("checkpoint", "along", result.problem, name)
            rows = drawing.against(means, *where_to)
            table = pd.DataFrame(rows)
            for end in ("min", "max"):
                style = {"color": look["color"], "linestyle": ":", "linewidth": 1.1}
                axes.plot(table["x"], table[end], label=name, **style)
            for row in rows:
                row |= {"ci_low": np.nan, "ci_high": np.nan}  # readings are no sample
            self.panels.rows += rows

    def stars(self, axes: Axes, result: Result, end: Row) -> None:
        """Draw the paper's error for a run's passes as a star at its end."""
        label = str(end["algorithm"])
        keys = {"problem": result.problem, "algorithm": label, "passes": end["x"]}
        cells = where(self.printed, **{k: keys[k] for k in keys if k in self.printed})
        edge: Any = {"markeredgecolor": "black", "markeredgewidth": 0.5}
        star: Any = {"marker": "*", "markersize": 9, "linestyle": "none", **edge}
        color = self.looks[label]["color"]
        star |= {"color": color, "clip_on": False, "zorder": 5}
        for error in cells["error"]:
            axes.plot([end["x"]], [error], label="as printed", **star)
            row = {"panel": result.problem, "algorithm": f"{label}, published"}
            self.panels.rows.append(row | {"x": end["x"], "mean": error})

    def scale(self, axes: Axes, last: float, start: float) -> None:
        """Set the axis of passes, or that of seconds with the error of w = 0."""
        if self.on_time:
            # the start, at 0 seconds, is not on a logarithmic axis
            axes.set_xlabel("time")
            axes.set_xscale("log", nonpositive="mask")
            low, high = axes.get_xlim()
            subs = (1.0, 3.0) if high < drawing.SHORT * low else (1.0,)
            axes.xaxis.set_major_locator(LogLocator(subs=subs))
            axes.xaxis.set_major_formatter(EngFormatter("s"))
            axes.xaxis.set_minor_formatter(NullFormatter())
            zero: Look = {"color": "0.6", "linewidth": 0.8, "linestyle": ":"}
            axes.axhline(start, label="w = 0", **zero)
            return
        axes.set_xlabel("passes on data")
        axes.set_xlim(0.0, 1.02 * last)
        if not self.options.get("ends"):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _key(axes: Axes, key: dict[str, str]) -> None:
    """Write the true epsilon of each curve above the panel; once if all are equal."""
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


def ties(result: Result, calibration: str) -> list[float]:
    """Other numbers of passes that fresh runs do not distinguish from the best, sorted.

    The 95 % intervals of both ends overlap. There are none if the best does not end
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


def _cost(result: Result, calibration: str) -> str:
    """The true epsilon of the runs as text."""
    runs = result.trajectories(calibration, result.best_passes(calibration))
    true = runs["true_epsilon"].iloc[0]
    if not np.isfinite(true):
        return "no sound $\\epsilon$"
    return f"{TRUE}{true:.2g}"


def against_epsilon(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Relative error against true epsilon with tuned methods, one panel per problem."""
    swept = results.load_sweep(config, product.sweeps[0])
    titles = results.titles(config, problems)
    ran = "relative_error" in swept  # missing if no data set is available
    known = swept.dropna(subset="relative_error") if ran else swept.iloc[:0]
    names = [name for name in problems if name in set(known["problem"])]
    if not names:
        tried = not set(problems).isdisjoint(swept["problem"])
        return drawing.nothing(*[] if tried else ["swept on other problems only"])
    panels = Panels(len(names), product.options.get("columns", 3))
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
