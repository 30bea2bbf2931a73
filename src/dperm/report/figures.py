"""Figures of the page: panels of curves, where they come from, what rebuilds them."""

from __future__ import annotations

import io
import itertools
import math
import os
import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from markupsafe import Markup

from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.pipeline import products
from dperm.present import looks
from dperm.present.drawing import write_palette
from dperm.present.tables import number
from dperm.report.board import Ledgers
from dperm.report.entries import Names, slug
from dperm.report.evidence import read_or_empty

Row = dict[str, Any]
Extra = Callable[[str, str], str]  # of panel and algorithm, for legend or reading
SEEDS = 3  # of a curve that are shown; lanes hold all
KEPT = ("csv", "png")  # of a figure's files those that Git holds
PUBLISHED = ", published"  # ends the names of rows that a paper printed
BANDS = {"range": "min to max of runs", "interval": "95 % interval"}
ENDS = {"range": ("min", "max"), "interval": ("ci_low", "ci_high")}
LOST = 0.01  # of its height that thinning may move a curve by; the CSV file has all
DARK = "#14171a"  # the page's ground in dark mode
SETTING = ("passes", "step", "clip")
_CURVE = ["problem", "algorithm"]
_LATEX = {
    r"\epsilon": "ε",
    r"\varepsilon": "ε",
    r"\eta": "η",
    r"\tau": "τ",
    r"\kappa": "κ",
    r"\alpha": "α",
    r"\beta": "β",
    r"\lambda": "λ",
    r"\nabla": "∇",
    r"\|": "‖",
    r"\,": " ",
    r"\ ": " ",
    r"\sqrt": "√",
    r"\mathdefault": "",
    r"\times": "×",
    r"\leq": "≤",
    r"\geq": "≥",
    r"\ast": "*",
}
# Of matplotlib's markers, about 6 units wide. The page has each once, by its place.
MARKERS = {
    "o": "M3 0A3 3 0 1 1-3 0A3 3 0 1 1 3 0Z",
    "s": "M-2.7-2.7H2.7V2.7H-2.7Z",
    "^": "M0-3.4L3.2 2.4H-3.2Z",
    "v": "M0 3.4L3.2-2.4H-3.2Z",
    "<": "M-3.4 0L2.4-3.2V3.2Z",
    ">": "M3.4 0L-2.4-3.2V3.2Z",
    "D": "M0-3.8L3.8 0L0 3.8L-3.8 0Z",
    "d": "M0-4L2.5 0L0 4L-2.5 0Z",
    "p": "M0-3.4L3.2-1L2 2.8H-2L-3.2-1Z",
    "h": "M0-3.4L3-1.7V1.7L0 3.4L-3 1.7V-1.7Z",
    "P": "M-1-3.2H1V-1H3.2V1H1V3.2H-1V1H-3.2V-1H-1Z",
    "X": "M-3.2-1.8L-1.8-3.2L0-1.4L1.8-3.2L3.2-1.8L1.4 0L3.2 1.8L1.8 3.2L0 1.4"
    "L-1.8 3.2L-3.2 1.8L-1.4 0Z",
    "x": "M-3-2.3L-2.3-3L0-.7L2.3-3L3-2.3L.7 0L3 2.3L2.3 3L0 .7L-2.3 3L-3 2.3L-.7 0Z",
    "+": "M-.5-3.4H.5V-.5H3.4V.5H.5V3.4H-.5V.5H-3.4V-.5H-.5Z",
    "*": "M0-5L1.2-1.6H4.8L1.9.6L3 4L0 2L-3 4L-1.9.6L-4.8-1.6H-1.2Z",
}


@dataclass(frozen=True)
class Figure:
    """One figure: what the script draws, and where it comes from."""

    key: str  # paper/name
    caption: str
    data: dict[str, Any]
    links: dict[str, str]
    command: str
    setting: str
    seeds: str
    commit: str
    missing: list[str]  # problems whose data could not be had
    problems: list[str]  # its panels, as far as they are problems
    picture: str = ""  # a map, as a data URI: no chart of lines shows it

    @property
    def id(self) -> str:
        """Its name in the page's addresses."""
        return slug("f", self.key)

    @property
    def name(self) -> str:
        """Its name within the paper, for a reader."""
        return self.key.partition("/")[2].replace("_", " ")

    @property
    def methods(self) -> set[str]:
        """Names of its curves."""
        panels = self.data["panels"]
        return {curve["name"] for panel in panels for curve in panel["curves"]}


class Palette:
    """The colours of all charts, each a class with a twin for dark mode."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, colour: str) -> str:
        """The class of a colour."""
        return self._known.setdefault(colour, f"k{len(self._known)}")

    def css(self) -> Markup:
        """The rules of all classes; 3 : 1 against the ground in both modes."""
        light, dark = (
            [
                f".{name}{{color:{looks.readable(colour, ground)}}}"
                for colour, name in self._known.items()
            ]
            for ground in ("#ffffff", DARK)
        )
        mode = "@media screen and (prefers-color-scheme:dark)"
        rules = [*light, f"{mode}{{{''.join(dark)}}}"]
        return Markup("\n".join(rules))  # nosec B704  # hexadecimal colours, k0, k1


def figures(
    config: schema.Config,
    folder: Path,
    palette: Palette,
    ledgers: Ledgers,
    known: Names,
    commit: str,
) -> Iterator[Figure]:
    """The figures of a paper that have data.

    Parameters
    ----------
    config : schema.Config
        With the paper.
    folder : Path
        Where links start from.
    palette : Palette
        Collects the colours.
    ledgers : Ledgers
        Of the paper.
    known : Names
        Titles of problems, and labels of solvers that stand by their names.
    commit : str
        That the results are of.
    """
    for name, product in config.paper.figures.items():
        stem = plan.figures_folder(config, config.paper.name, name)
        points = read_or_empty(stem.with_suffix(".csv"))
        if points.empty:
            continue
        settings = _settings(config, product)
        described = store.known_json(stem.with_suffix(".json")) or {}
        texts = _texts(product, ledgers, settings)
        missing = []
        if product.kind == "trajectories":
            names = products.product_problems(product, plan.problem_names(config))
            missing = [name for name in names if name not in set(points["panel"])]
        paths = {kind: stem.with_suffix(f".{kind}") for kind in KEPT}
        yield Figure(
            key=f"{config.paper.name}/{name}",
            caption=plain(product.caption),
            data=figure_data(points, described, palette, known, **texts),
            links={
                kind: os.path.relpath(path, folder)
                for kind, path in paths.items()
                if path.is_file()
            },
            command=_command(config, name),
            setting=_recipe(config, product, settings),
            seeds=_seeds(config, product, settings, ledgers.solvers),
            commit=commit,
            missing=missing,
            problems=sorted({subject(str(panel)) for panel in points["panel"]}),
            picture=_picture(stem, points),
        )


def _picture(stem: Path, points: pd.DataFrame) -> str:
    path = stem.with_suffix(".png")
    many = points.groupby(["panel", "algorithm"]).size().max() > 1
    if many or not path.is_file():
        return ""
    few = io.BytesIO()
    write_palette(path, few, 64)
    return f"data:image/png;base64,{b64encode(few.getvalue()).decode()}"


def _command(config: schema.Config, name: str) -> str:
    scale = config.scale
    path = Path("figures", scale.folder, config.paper.name, f"{name}.svg").as_posix()
    small = f" --config scale={scale.name} --" if scale.folder else ""
    return f"snakemake -j 2{small} {path}"


# --- words for a reader ---------------------------------------------------------------


def plain(text: str) -> str:
    """A label without LaTeX."""
    for latex, letter in sorted(_LATEX.items(), key=lambda pair: -len(pair[0])):
        text = text.replace(latex, letter)
    return re.sub(r"[${}]", "", text.replace("_{", "_"))


def short(value: Any) -> str:
    """A value for a reader: three significant digits, whole numbers as they are."""
    if isinstance(value, bool | str):
        return str(value)
    if value is None or pd.isna(value):
        return ""
    if math.isinf(value) or (value == int(value) and abs(value) < 1e6):
        return f"{value:g}"
    return number(value)


def subject(panel: str) -> str:
    """What a panel is of, before what is added to it: "a_b: convex" is of "a_b"."""
    return re.split(r"[:,]", panel)[0]


def _title(panel: str, titles: dict[str, str]) -> str:
    """A panel for a reader: the title of a problem it begins with, no identifiers."""
    first = subject(panel)
    name = titles.get(first, first.replace("_", " ") if first.isidentifier() else first)
    return name + panel[len(first) :]


# --- curves ---------------------------------------------------------------------------


def figure_data(
    data: pd.DataFrame,
    described: dict[str, Any],
    palette: Palette,
    known: Names,
    cost: Extra,
    setting: Extra,
) -> dict[str, Any]:
    """Panels with curves, in the order of the data.

    Parameters
    ----------
    data : DataFrame
        Behind the figure (``drawing.COLUMNS``).
    described : dict
        Labels, looks and true epsilons (``drawing.described``); may be empty.
    known : Names
        Titles of problems, and labels of solvers that stand by their names.
    cost, setting : callable
        What the legend says of a curve besides its name, and what its reading does.
    """
    names = {each: known.methods.get(each, each) for each in data["algorithm"].unique()}
    spare = looks.of(_base(name.removesuffix(PUBLISHED)) for name in names.values())
    panels = []
    for panel, part in data.groupby("panel", sort=False):
        axes = described.get(str(panel), {"x": "", "y": "", "curves": {}})
        curves = []
        for algorithm, rows in part.groupby("algorithm", sort=False):
            name, style = names[algorithm], axes["curves"].get(algorithm, {})
            curve = _curve(name, rows, style, spare, palette)
            curve["cost"] = cost(str(panel), name) or plain(style.get("cost", ""))
            curves.append(curve | {"setting": setting(str(panel), name)})
        # A curve with the x of the one before drops its own: they are many.
        for before, curve in reversed(list(itertools.pairwise(curves))):
            if curve["x"] == before["x"]:
                curve["x"] = None
        title = plain(_title(str(panel), known.problems))
        labels = {"x": plain(axes["x"]) or "x", "y": plain(axes["y"]) or title}
        panels.append({"name": title, **labels, "curves": curves})
    return {"panels": panels}


def _curve(
    algorithm: str,
    rows: pd.DataFrame,
    style: dict[str, str],
    spare: dict[str, looks.Look],
    palette: Palette,
) -> Row:
    """Numbers and look of one curve; long ones are thinned."""
    name = algorithm.removesuffix(PUBLISHED)
    star = name != algorithm
    rows = rows.iloc[_telling(rows["x"].to_numpy(float), rows["mean"].to_numpy(float))]
    base = _base(name)
    if base in looks.METHODS or not style:  # a method looks the same in every figure
        look = spare[base]
        dash = looks.dashes(look["linestyle"])
        style = {"color": look["color"], "dash": dash, "marker": look["marker"]}
    return {
        "name": plain(algorithm),
        "x": _numbers(rows, "x"),
        "mean": _numbers(rows, "mean"),
        **{
            band: [_numbers(rows, end, 3) for end in ends]
            for band, ends in ENDS.items()
            if _is_band(rows, *ends)
        },
        "look": palette.of(style["color"]),
        "star": star,
        "dash": style["dash"],
        "mark": _mark("*" if star else style["marker"]),
    }


def _base(name: str) -> str:
    """The method of a label that goes on with a number: "DP-FW: -0.03"."""
    return name.split(": ")[0]


def _telling(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Places of the points that a curve is drawn by, in order.

    The others lie within ``LOST`` of its height from the line, on a logarithmic axis
    where that is what the curve spans.
    """
    if len(x) < 3 or not (np.isfinite(x).all() and np.isfinite(y).all()):
        return np.arange(len(x))
    if y.min() > 0 and y.max() > 8 * y.min():
        y = np.log(y)
    if (np.diff(x) < 0).any():
        return np.arange(len(x))
    return np.array(outline(x, y, LOST * float(np.ptp(y))))


def outline(x: np.ndarray, y: np.ndarray, within: float) -> list[int]:
    """Places that keep a line within a distance in y (Ramer, Douglas and Peucker)."""
    kept, parts = {0, len(x) - 1}, [(0, len(x) - 1)]
    while parts:
        first, last = parts.pop()
        if last - first < 2:
            continue
        between = slice(first + 1, last)
        line = np.interp(x[between], x[[first, last]], y[[first, last]])
        off = np.abs(y[between] - line)
        if off.max() > within:
            far = first + 1 + int(off.argmax())
            kept.add(far)
            parts += [(first, far), (far, last)]
    return sorted(kept)


def _numbers(rows: pd.DataFrame, key: str, digits: int = 4) -> list[float | None]:
    return [float(f"{v:.{digits}g}") if math.isfinite(v) else None for v in rows[key]]


def _mark(marker: str) -> str:
    """The address of a marker in the page; empty for none."""
    return f"mk{list(MARKERS).index(marker)}" if marker in MARKERS else ""


def _is_band(rows: pd.DataFrame, low: str, high: str) -> bool:
    """Whether two columns are ends of a band around the mean, and not all on it."""
    ends = rows[[low, "mean", high]].dropna()
    inside = (ends[low] <= ends["mean"]) & (ends["mean"] <= ends[high])
    return bool(len(ends) and inside.all() and (ends[low] < ends[high]).any())


# --- where they come from -------------------------------------------------------------


def _texts(
    product: schema.Product, ledgers: Ledgers, settings: pd.DataFrame
) -> dict[str, Extra]:
    """What is said of tuned curves: their true epsilons, and the chosen settings."""
    chosen = {
        (row["problem"], row["algorithm"]): row for row in settings.to_dict("records")
    }

    def setting(panel: str, algorithm: str) -> str:
        row = chosen.get((panel, algorithm.removesuffix(PUBLISHED)))
        return _setting_text(row) if row else ""

    def cost(panel: str, algorithm: str) -> str:
        row = chosen.get((panel, algorithm))
        epsilon = ledgers.epsilon(row, product.calibration) if row else None
        if epsilon is None:
            return ""
        finite = math.isfinite(epsilon)
        return f"true ε {short(epsilon)}" if finite else "no sound ε"

    return {"cost": cost, "setting": setting}


def _settings(config: schema.Config, product: schema.Product) -> pd.DataFrame:
    """The chosen passes, step and clip of every curve, from the paper's own tables."""
    for name, table in config.paper.tables.items():
        if table.calibration != product.calibration or product.kind != "trajectories":
            continue
        path = plan.results_folder(config, config.paper.name, f"{name}.csv")
        data = read_or_empty(path)
        if {*_CURVE, *SETTING, "mean"} <= set(data.columns):
            known = data.dropna(subset="mean")
            best = known.groupby(_CURVE, sort=False)["mean"].idxmin()
            return known.loc[best, [*_CURVE, *SETTING]]
    return pd.DataFrame(columns=[*_CURVE, *SETTING])


def _setting_text(row: Row) -> str:
    return ", ".join(f"{key} {short(row[key])}" for key in SETTING)


def _recipe(
    config: schema.Config, product: schema.Product, settings: pd.DataFrame
) -> str:
    """The YAML that makes the figure: product, sweeps or grids, and what was chosen."""
    paper = config.paper
    figure = _filled(product)
    figure.pop("caption", None)
    recipe: Row = {"scale": config.scale.name, "figure": figure}
    if product.sweeps:
        recipe["sweeps"] = {
            name: _filled(paper.sweeps[name]) for name in product.sweeps
        }
    else:
        recipe["runs"] = {name: run.grid for name, run in paper.runs.items()}
        recipe["replicates"], recipe["fresh"] = paper.replicates, paper.fresh
    text = yaml.safe_dump(recipe, sort_keys=False, default_flow_style=None, width=100)
    chosen = [
        f"{row['problem']}, {row['algorithm']}: {_setting_text(row)}"
        for row in settings.to_dict("records")
    ]
    return text + ("\nchosen:\n" + "\n".join(chosen) if chosen else "")


def _filled(section: Any) -> Row:
    """What a section of the configuration says."""
    every = asdict(section).items()
    return {key: each for key, each in every if each not in (None, [], {}, "")}


def _seeds(
    config: schema.Config,
    product: schema.Product,
    settings: pd.DataFrame,
    names: dict[str, str],
) -> str:
    """The master seed, how it is spread, and the first seeds of every tuned curve."""
    text = f"master seed {config.seed}; SHA-256 of stage, names and replicate"
    if product.sweeps:
        sweeps = [config.paper.sweeps[name] for name in product.sweeps]
        most = max(config.scale.replicates or sweep.replicates for sweep in sweeps)
        return f"{text}; replicates 0 to {most - 1} of every point"
    fresh = config.scale.fresh or config.paper.fresh
    lines = [f"{text}; fresh replicates 0 to {fresh - 1}"]
    for row in settings.to_dict("records"):
        problem, algorithm = row["problem"], row["algorithm"]
        if algorithm in names:
            of = (config.seed, "evaluate", problem, names[algorithm], row["passes"])
            some = [str(plan.seed_of(*of, k)) for k in range(min(fresh, SEEDS))]
            more = ["..."] if fresh > SEEDS else []
            lines.append(f"{problem}, {algorithm}: {' '.join(some + more)}")
    return "\n".join(lines)
