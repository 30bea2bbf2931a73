"""What every figure and every table keeps to, on sweeps of tiny sizes."""

from __future__ import annotations

import itertools

import pandas as pd
import pytest

from dperm.core.experiment import files, grid, results
from dperm.core.experiment.config import compose
from dperm.pipeline import products
from dperm.present import drawing

PAPERS = ("dpcd", "dpgcd", "dpskgd", "dpbcfw", "dpsco")
# Small sweeps have too few points for an exponent.
SHORT = {("dpgcd", "sparsity"), ("dpskgd", "rates")}
GONE = {"status": "unavailable", "reason": "no network"}


def configured(paper, folder):
    scale = ["scale=smoke", "scale.thorough=true"]  # small sizes, of every product
    return compose([f"paper={paper}", f"output.results={folder}", *scale])


def needs_data(sweep):
    return bool(sweep.problems or sweep.prepared)


def made_only_of(kind, ran):
    """The products of a kind whose sweeps, and nothing else, ran or did not."""
    for paper in PAPERS:
        config = compose([f"paper={paper}"])
        for name, product in getattr(config.paper, kind).items():
            own = [config.paper.sweeps[one] for one in product.sweeps]
            known = [not needs_data(one) for one in own]
            if own and (any(known) if ran else not any(known)):
                yield paper, name


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A folder with all sweeps of all papers that need no data set."""
    folder = tmp_path_factory.mktemp("swept")
    for paper in PAPERS:
        config = configured(paper, folder)
        for name, sweep in config.paper.sweeps.items():
            store(config, name, [] if needs_data(sweep) else [*rows(config, sweep)])
    return folder


def rows(config, sweep):
    function = products.function_of(config, "sweeps", sweep.kind)
    points = grid.points(sweep.grid, axes=None)
    for point, replicate in itertools.product(points, range(2)):
        found = function(config, point, 11 + replicate, **sweep.options)
        for row in found if isinstance(found, list) else [found]:
            yield {"status": "ok", **point, "replicate": replicate, **row}


def store(config, name, found):
    """Write the rows of a sweep; without any its data set is not available."""
    path = results.sweep_path(config, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    first = next(iter(grid.points(config.paper.sweeps[name].grid, axes=None)), {})
    files.write_table(path, pd.DataFrame(found or [{**first, **GONE}]))


def make(config, kind, name):
    product = getattr(config.paper, kind)[name]
    maker = products.function_of(config, kind, product.kind)
    return maker(config, product, list(product.problems or ()), **product.options)


@pytest.mark.parametrize(("paper", "name"), made_only_of("figures", ran=True))
def test_a_figure_is_rows_with_named_axes_and_is_drawn(swept, paper, name):
    picture = make(configured(paper, swept), "figures", name)
    rows, shown = picture.rows, [*picture.titles]
    assert list(rows) == [*drawing.COLUMNS, drawing.ROLE] and len(rows)
    assert {*rows["role"]} <= {*drawing.ROLES}
    assert {*shown} <= {*rows["panel"]}
    drawn = rows[rows["panel"].isin(shown) & ~rows["role"].isin(["upright", "data"])]
    assert drawn["mean"].notna().all()
    assert (rows["min"].isna() | (rows["min"] <= rows["max"])).all()
    for panel in shown:
        axes = {**picture.axes, **picture.own.get(panel, {})}
        assert axes["xlabel"] and axes["ylabel"]
    figure, data = drawing.made(picture)
    assert len(figure.axes) == len(shown)
    assert all(axes.get_title() is not None for axes in figure.axes)
    assert len(data) == len(rows)
    drawing.plt.close(figure)


@pytest.mark.parametrize(("paper", "name"), made_only_of("tables", ran=True))
def test_a_table_is_a_frame_and_its_intervals_hold_their_numbers(swept, paper, name):
    data = make(configured(paper, swept), "tables", name)
    assert isinstance(data, pd.DataFrame) and data.columns.is_unique
    assert len(data) or (paper, name) in SHORT
    for low in (column for column in data if column.endswith("_low")):
        column = low.removesuffix("_low")
        known = data.dropna(subset=[low])
        if f"{column}_high" in data and column in data:
            assert (known[low] <= known[column] + 1e-12).all()
            assert (known[column] <= known[f"{column}_high"] + 1e-12).all()


@pytest.mark.parametrize("kind", ["figures", "tables"])
def test_without_any_data_the_reason_is_shown(tmp_path, kind):
    """Of every product that is made of sweeps alone."""
    mixed = {*made_only_of(kind, ran=False)}
    for paper in PAPERS:
        config = configured(paper, tmp_path)
        for name in config.paper.sweeps:
            store(config, name, [])
        for name, product in getattr(config.paper, kind).items():
            if not product.sweeps or (paper, name) in mixed:
                continue
            data = products.data_of(config, kind, name)
            if kind == "tables":
                assert data["reason"].tolist() == [drawing.UNAVAILABLE], name
            else:
                assert data.empty, name


def test_an_empty_picture_says_why():
    figure, data = drawing.made(drawing.missing("nobody serves it"))
    (text,) = [text.get_text() for text in figure.axes[0].texts]
    assert text == "nobody serves it" and data.empty
    drawing.plt.close(figure)
