"""The results explorer: one HTML file that reacts, alone and without a network.

Every figure of the papers is a chart whose curves can be hidden, isolated, read off and
zoomed; the arena and the claims are tables that sort, filter, search and export. Altair
(with Vega's own bundle from vl-convert) makes the charts and itables the tables; both
are written into the file, which makes no request.
"""

from __future__ import annotations

import base64
import io
import json
import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import vl_convert
from altair.utils.schemapi import debug_mode
from itables import options as table_options
from itables import to_html_datatable
from itables.javascript import generate_init_offline_itables_html
from PIL import Image

from dperm.config import config as configuration
from dperm.config import schema
from dperm.config.locate import available
from dperm.plotting import drawing, styles
from dperm.report import page, texts
from dperm.report.true_epsilons import true_epsilons
from dperm.storage import files as store

log = logging.getLogger(__name__)

NUMBERS = tuple(drawing.CURVE_COLUMNS[2:])  # without panel and algorithm
CURVES_OF_CHART = 40  # a figure with more is shown as it is drawn
PICTURE_WIDTH = 1400  # pixels of a picture inside the page
POINTS_OF_CURVE = 40  # more points of a curve cannot be told apart on a screen
# Largest over least value from which a scale is logarithmic at first
WIDE_SCALE = 50.0
CLAIM_COLUMNS = {  # of claims.csv: heading
    "paper": "paper",
    "place": "place",
    "claim": "statement",
    "kind": "kind",
    "verdict": "verdict",
    "accepted": "accepted range",
    "reproduced": "our value",
    "ci_low": "95 % from",
    "ci_high": "95 % to",
    "reason": "reason",
}
ARENA_COLUMNS = {  # of arena.csv: heading
    "problem": "data set",
    "loss": "loss",
    "n": "records",
    "p": "features",
    "epsilon": "epsilon",
    "algorithm": "method",
    "tuning": "setting",
    "mean": "excess",
    "ci_low": "95 % from",
    "ci_high": "95 % to",
    "true_epsilon": "proved epsilon",
    "reason": "why not",
}


def explore(config: schema.Config) -> list[Path]:
    """Write ``report/explorer.html``. Raises ConfigError if there are no claims yet."""
    root = Path(config.output.results)
    path = root / "report" / "explorer.html"
    store.write_text(path, explorer(config, texts.judged(root)))
    log.info("%s", path)
    return [path]


def explorer(config: schema.Config, claims: pd.DataFrame) -> str:
    """The whole explorer as text: one page, which needs no other file."""
    output = config.output
    folder = Path(output.results)
    answers = page.answers(config, claims, folder / "report")
    epsilons = proved_epsilons(folder)
    papers = texts.papers(config)
    papers_by_name = {paper.name: paper for paper in papers}
    figures: list[dict[str, Any]] = []
    with debug_mode(False):
        # Altair else checks every part of every chart, for minutes
        for place, row in enumerate(answers["every"], 1):
            log.info("%s, %d of %d", row["label"], place, len(papers))
            paper = papers_by_name[row["name"]]
            figures += figures_of(
                paper, config.scale, output, claims, epsilons
            )
    tables = {
        "methods": table(folder / "arena" / "arena.csv", ARENA_COLUMNS),
        "claims": table(folder / "claims.csv", CLAIM_COLUMNS),
    }
    template = page.environment(folder / "report").get_template(
        "explorer.html"
    )
    html: str = template.render(
        **answers,
        is_alone=True,
        figures=figures,
        names={paper["name"]: paper["label"] for paper in answers["every"]},
        vega=vl_convert.javascript_bundle(None),  # type: ignore[arg-type]
        table_script=generate_init_offline_itables_html(
            table_options.dt_bundle
        ),
        tables=tables,
    )
    return html


# --- figures --------------------------------------------------------------------------


def figures_of(
    paper: schema.Paper,
    scale: schema.Scale,
    output: schema.Output,
    claims: pd.DataFrame,
    epsilons: Mapping[tuple[str, str], str],
) -> Iterator[dict[str, Any]]:
    """Yield the figures of a paper whose data are there, as the page shows them.

    One with too many curves for a chart is the picture that was drawn, if it is there.
    """
    for name, product in paper.figures.items():
        path = Path(output.figures, paper.name, f"{name}.csv")
        if not path.is_file():
            continue
        curves = pd.read_csv(path, dtype={"panel": str, "algorithm": str})
        if curves.empty:
            continue
        listed = deciding(claims, paper.name, name)
        shown = {"chart": "", "picture": "", "curves": []}
        if curves["algorithm"].nunique() > CURVES_OF_CHART:
            shown["picture"] = picture(path.with_suffix(".png"))
        else:
            told = {
                "epsilons": epsilons,
                "runs": runs_of(paper, scale, product),
                "claims": listed,
            }
            specification = chart(curves, paper.name, told)
            shown["chart"] = json.dumps(specification).replace("</", "<\\/")
        yield shown | {
            "id": f"{paper.name}-{name}",
            "paper": paper.name,
            "name": name,
            "caption": product.caption,
            "csv": path.as_posix(),
            "claims": listed,
        }


def picture(path: Path) -> str:
    """A drawn picture as an address that holds all of it; "" without the file."""
    if not path.is_file():
        return ""
    with Image.open(path) as image:
        image.thumbnail((PICTURE_WIDTH, 10 * PICTURE_WIDTH))
        small = io.BytesIO()
        image.save(small, format="PNG", optimize=True)
    return (
        f"data:image/png;base64,{base64.b64encode(small.getvalue()).decode()}"
    )


def runs_of(
    paper: schema.Paper, scale: schema.Scale, product: schema.Product
) -> int:
    """How many runs a point of a figure is the mean of, at least."""
    if not product.sweeps:
        return scale.fresh or paper.fresh
    sweeps = [paper.sweeps[name] for name in product.sweeps]
    return min(
        int(sweep.options.get("fresh", scale.replicates or sweep.replicates))
        for sweep in sweeps
    )


def deciding(
    claims: pd.DataFrame, paper: str, name: str
) -> list[dict[str, Any]]:
    """The claims that name a figure, or are judged from its data, with verdicts."""
    rows = claims[claims["paper"] == paper].to_dict("records")
    return [row for row in rows if name in texts.figures(row)]


def proved_epsilons(folder: Path) -> dict[tuple[str, str], str]:
    """The proved epsilon of noise published for epsilon 1, by paper and method."""
    return {
        (str(row.paper), str(row.method)): f"{row.least:.3g} to {row.most:.3g}"
        for row in true_epsilons(folder).itertuples()
    }


def chart(
    curves: pd.DataFrame, paper: str, told: Mapping[str, Any]
) -> dict[str, Any]:
    """A Vega-Lite chart of a figure, one panel at a time.

    A box below hides or shows a curve, and a click on a name of the legend isolates
    one. The panel and the two scales are chosen below as well. The wheel zooms, and a
    double click into the chart shows everything again.

    Parameters
    ----------
    curves : DataFrame
        Columns panel, algorithm, x, mean, ci_low and ci_high, of a figure's CSV file.
    paper : str
        Name of the paper.
    told : mapping
        What a reader is told of a point: ``epsilons``, as of ``proved_epsilons``,
        ``runs``, their number, and ``claims``, as of ``deciding``.
    """
    curves = thinned(curves)
    methods = list(dict.fromkeys(curves["algorithm"]))
    panels = list(dict.fromkeys(curves["panel"]))
    titles = titles_of(curves["panel"])
    panel = alt.param(
        name="panel",
        value=panels[0],
        bind=alt.binding_select(
            options=panels,
            labels=[titles[name] for name in panels],
            name="panel ",
        ),
    )
    boxes = [
        alt.param(
            name=f"curve{k}",
            value=True,
            bind=alt.binding_checkbox(name=method),
        )
        for k, method in enumerate(methods)
    ]
    shown = ", ".join(box.name for box in boxes)
    decided = [decided_by(method, told["claims"]) for method in methods]
    place = f"indexof({json.dumps(methods)}, datum.algorithm)"
    means = curves["mean"]
    floor = means[means > 0].min() / 2 if (means > 0).any() else 1e-300
    x_scale = _scale("x_scale", curves["x"])
    y_scale = _scale("y_scale", curves["mean"])
    alone = alt.selection_point(
        name="alone",
        fields=["algorithm"],
        bind="legend",
        toggle="event.shiftKey",
    )
    zoom = alt.selection_interval(name="zoom", bind="scales")
    rows = alt.InlineData(
        values=curves.to_csv(index=False),
        format=alt.CsvDataFormat(
            type="csv", parse=dict.fromkeys(NUMBERS, "number")
        ),
    )
    base = (
        alt.Chart(rows)
        .transform_filter("datum.panel === panel")
        .transform_filter(f"[{shown}][{place}]")
        .transform_filter(alone)
        .transform_filter("x_scale === 'linear' || datum.x > 0")
        .transform_filter("y_scale === 'linear' || datum.mean > 0")
        .transform_calculate(
            X=_scaled("x", "x_scale", floor=1e-300),
            Y=_scaled("mean", "y_scale", floor=1e-300),
            low=_scaled("ci_low", "y_scale", floor),
            high=_scaled("ci_high", "y_scale", floor),
            proved=_listed(methods, paper, told["epsilons"]),
            decides=f"{json.dumps(decided)}[{place}]",
            runs=str(told["runs"]),
        )
        .encode(
            x=alt.X("X:Q", title="x", axis=_axis("x_scale"), scale=_free()),
            color=_colours(methods),
        )
    )
    y = alt.Y(
        "Y:Q", title="mean of runs", axis=_axis("y_scale"), scale=_free()
    )
    intervals = base.mark_area(opacity=0.18).encode(
        y=alt.Y(
            "low:Q", title="mean of runs", axis=_axis("y_scale"), scale=_free()
        ),
        y2="high:Q",
    )
    lines = base.mark_line(strokeWidth=1.8).encode(y=y, order="x:Q")
    points = base.mark_point(size=40, filled=True).encode(
        y=y,
        tooltip=[
            alt.Tooltip("algorithm:N", title="method"),
            alt.Tooltip("x:Q", format=".4~g"),
            alt.Tooltip("mean:Q", format=".4~g"),
            alt.Tooltip("ci_low:Q", title="95 % from", format=".4~g"),
            alt.Tooltip("ci_high:Q", title="95 % to", format=".4~g"),
            alt.Tooltip("min:Q", title="least run", format=".4~g"),
            alt.Tooltip("max:Q", title="largest run", format=".4~g"),
            alt.Tooltip("runs:Q", title="runs, at least"),
            alt.Tooltip(
                "proved:N", title="proved epsilon of noise for epsilon 1"
            ),
            alt.Tooltip("decides:N", title="decides"),
        ],
    )
    layers = alt.layer(intervals, lines, points.add_params(alone, zoom))
    figure = (
        layers.add_params(panel, x_scale, y_scale, *boxes)
        .properties(width="container", height=320)
        .configure(background="white")
        .configure_axis(labelFontSize=12, titleFontSize=12)
        .configure_legend(labelFontSize=12)
    )
    specification: dict[str, Any] = figure.to_dict(validate=False)
    return specification


def _listed(
    methods: list[str], paper: str, epsilons: Mapping[tuple[str, str], str]
) -> str:
    """The expression of the proved epsilon of a curve, or of its method."""
    ranges = [
        epsilons.get((paper, name.split(", ")[0]), "not shown")
        for name in methods
    ]
    return f"{json.dumps(ranges)}[indexof({json.dumps(methods)}, datum.algorithm)]"


def decided_by(method: str, claims: Iterable[Mapping[str, Any]]) -> str:
    """The claim that a curve decides: the first of its figure that names the method."""
    name = method.split(", ")[0]
    for claim in claims:
        if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", claim["claim"]):
            return f"{claim['verdict']}: {claim['claim']}"
    return "no claim by itself"


def _colours(methods: list[str]) -> alt.Color:
    """The colours of all figures; a variant of a method has the method's."""
    heads = {name: name.rpartition(", ")[0] for name in methods}
    style_of = styles.styles_of(methods)
    style_of |= styles.styles_of({*heads.values()} & styles.METHODS.keys())
    looked = [
        style_of.get(heads[name], style_of[name])["color"] for name in methods
    ]
    scale = alt.Scale(domain=methods, range=looked)
    legend = alt.Legend(
        orient="bottom", columns=2, labelLimit=240, symbolOpacity=1
    )
    return alt.Color("algorithm:N", title="", scale=scale, legend=legend)


def thinned(curves: pd.DataFrame) -> pd.DataFrame:
    """The curves with at most ``POINTS_OF_CURVE`` points, ends included, each."""
    kept_rows = []
    for _, curve in curves.groupby(["panel", "algorithm"], sort=False):
        places = np.linspace(
            0, len(curve) - 1, min(len(curve), POINTS_OF_CURVE)
        )
        kept_rows.append(curve.iloc[np.unique(places.round().astype(int))])
    curves = pd.concat(kept_rows)[["panel", "algorithm", *NUMBERS]]
    for column in NUMBERS:
        curves[column] = [float(f"{number:.4g}") for number in curves[column]]
    return curves


def _scale(name: str, numbers: pd.Series) -> alt.Parameter:
    """The choice between a linear and a logarithmic scale."""
    positive = numbers[numbers > 0]
    is_wide = (
        len(positive) > 0 and positive.max() > WIDE_SCALE * positive.min()
    )
    start = "logarithmic" if is_wide else "linear"
    label = f"{name.removesuffix('_scale')} "
    choice = alt.binding_radio(options=["linear", "logarithmic"], name=label)
    return alt.param(name=name, value=start, bind=choice)


def _scaled(column: str, scale: str, floor: float) -> str:
    """The expression of a column on the scale that is chosen.

    Numbers below the floor are drawn at it where the scale is logarithmic.
    """
    logarithm = f"log(max(datum.{column}, {floor:g})) / LN10"
    number = f"{scale} === 'logarithmic' ? {logarithm} : datum.{column}"
    return f"isValid(datum.{column}) ? ({number}) : null"


def _axis(scale: str) -> alt.Axis:
    """An axis whose numbers are those of the data, and round, on either scale."""
    is_log = f"{scale} === 'logarithmic'"
    places = [
        round(math.log10(m) + k, 4) for k in range(-12, 13) for m in (1, 2, 5)
    ]
    return alt.Axis(
        labelExpr=f"{is_log} ? format(pow(10, datum.value), '.1~g') : datum.label",
        values=alt.expr(f"{is_log} ? {places} : null"),
        labelOverlap=True,
    )


def _free() -> alt.Scale:
    """A scale that need not hold zero."""
    return alt.Scale(zero=False)


# --- tables ---------------------------------------------------------------------------


def table(path: Path, headings: Mapping[str, str]) -> str:
    """A table of a CSV file to sort, filter, search and export; "" without the file."""
    if not path.is_file():
        return ""
    labels = {
        name: configuration.paper_label(name) for name in available("paper")
    }
    rows = pd.read_csv(path).replace({"paper": labels})
    columns = [column for column in headings if column in rows]
    rows = rows[columns].rename(columns=dict(headings))
    for column in rows:
        cells = [_shown(content) for content in rows[column]]
        rows[column] = pd.Series(cells, dtype=object)
    html: str = to_html_datatable(
        rows,
        connected=False,
        table_id=f"table-{path.stem}",
        showIndex=False,
        maxBytes=0,
        classes="display compact",
        column_filters="header",
        buttons=["copyHtml5", "csvHtml5"],
        lengthMenu=[15, 50, 200],
        stateSave=True,
        keys=True,
        autoWidth=False,
        display_logo_when_loading=False,
    )
    return html


def _shown(content: Any) -> str:
    """A content of a cell: four digits of a number, and nothing if there is none."""
    if pd.isna(content):
        return ""
    if isinstance(content, float) and content % 1:
        return f"{content:.4g}"
    return f"{content:.0f}" if isinstance(content, float) else str(content)


def titles_of(panels: pd.Series) -> dict[str, str]:
    """The title of each panel: that of its problem, or its own name."""
    problems = set(available("problem"))
    titles = {}
    for panel in panels.unique():
        title = ""
        if panel in problems:
            title = configuration.read("problem", panel).title
        titles[panel] = title or panel
    return titles
