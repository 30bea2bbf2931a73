"""What every figure and every table keeps to, on sweeps of tiny sizes."""

from __future__ import annotations

from string import ascii_lowercase

import pandas as pd
import pytest

import legible
from dperm.plotting import drawing
from golden import write
from papers import small
from papers.small import PAPERS, configured, made_only_of, make, store

# Small sweeps have too few points for an exponent.
SHORT = {("dpgcd", "sparsity"), ("dpskgd", "rates")}
RECORDED = write.stored("papers")
CLOCKED = {  # columns of seconds
    "dpsco/tables/peers": ("exponent", "exponent_low", "exponent_high"),
    "dpsco/figures/time": ("mean", "min", "max", "ci_low", "ci_high"),
}


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A folder with all sweeps of all papers that need no data set."""
    folder = tmp_path_factory.mktemp("swept")
    small.sweep_all(folder)
    return folder


@pytest.fixture(scope="module")
def figures():
    """All figures, by name, as soon as their frames are made."""
    return {}


@pytest.fixture(scope="module")
def frames(swept, figures):
    return dict(small.frames(swept, figures))


@pytest.mark.parametrize("name", RECORDED)
def test_numbers_are_those_that_were_recorded(frames, name):
    """Of rows of sweeps, of data behind figures and of tables."""
    found, known = small.summary(frames[name]), RECORDED[name]
    assert list(found) == list(known)
    for column in set(known) - set(CLOCKED.get(name, ())):
        if isinstance(known[column], str):
            assert found[column] == known[column], column
        else:
            assert found[column] == pytest.approx(
                known[column], rel=1e-6, abs=1e-9
            )


def test_every_sweep_and_product_is_recorded(frames):
    assert set(frames) == set(RECORDED)


@pytest.mark.parametrize(("paper", "name"), made_only_of("figures", ran=True))
def test_a_figure_is_rows_with_named_axes_that_a_journal_prints(
    swept, frames, figures, paper, name
):
    picture = make(configured(paper, swept), "figures", name)
    rows, shown = picture.rows, [*picture.titles]
    assert list(rows) == [*drawing.CURVE_COLUMNS, drawing.ROLE] and len(rows)
    assert {*rows["role"]} <= {*drawing.ROLES}
    assert {*shown} <= {*rows["panel"]}
    drawn = rows[rows["panel"].isin(shown) & (rows["role"] != "upright")]
    assert drawn["mean"].notna().all()
    assert (rows["min"].isna() | (rows["min"] <= rows["max"])).all()
    for panel in shown:
        axes = {**picture.axes, **picture.own.get(panel, {})}
        assert axes["xlabel"] and axes["ylabel"]
    data = frames[f"{paper}/figures/{name}"]
    figure = figures[f"{paper}/figures/{name}"]
    assert len(figure.axes) == len(shown)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    if len(shown) > 1:
        letters = [title.partition("}")[0][-1] for title in titles]
        assert letters == [*ascii_lowercase[: len(shown)]]
    assert len(data) == len(rows)
    assert not [*legible.faults(figure)]


@pytest.mark.parametrize(("paper", "name"), made_only_of("tables", ran=True))
def test_a_table_is_a_frame_and_its_intervals_hold_their_numbers(
    frames, paper, name
):
    data = frames[f"{paper}/tables/{name}"]
    assert isinstance(data, pd.DataFrame) and data.columns.is_unique
    assert len(data) or (paper, name) in SHORT
    for low in (column for column in data if column.endswith("_low")):
        column = low.removesuffix("_low")
        known = data.dropna(subset=[low])
        if f"{column}_high" in data and column in data:
            assert (known[low] <= known[column] + 1e-12).all()
            assert (known[column] <= known[f"{column}_high"] + 1e-12).all()


@pytest.mark.parametrize("collection", ["figures", "tables"])
def test_without_any_data_the_reason_is_shown(tmp_path, collection):
    """Of every product that is made of sweeps alone."""
    mixed = {*made_only_of(collection, ran=False)}
    for paper in PAPERS:
        config = configured(paper, tmp_path)
        for name in config.paper.sweeps:
            store(config, name, [])
        for name, product in getattr(config.paper, collection).items():
            if not product.sweeps or (paper, name) in mixed:
                continue
            _, data = small.product(config, collection, name)
            if collection == "tables":
                assert data["reason"].tolist() == [drawing.UNAVAILABLE], name
            else:
                assert data.empty, name


def test_an_empty_picture_says_why():
    figure, data = drawing.made(drawing.missing("nobody serves it"))
    (text,) = [text.get_text() for text in figure.axes[0].texts]
    assert text == "nobody serves it" and data.empty
    drawing.plt.close(figure)
