"""Wins with their intervals, and curves with levels, on tables that are known."""

import math

import numpy as np
import pandas as pd
import pytest

from dperm.config.schema import Data
from dperm.experiments.inputs import Inputs
from dperm.numerics.intervals import clopper_pearson, student
from dperm.papers.comparison import figures, sweeps, tables

SETS = [f"set {k}" for k in range(8)]
OURS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
THEIRS = [0.2, 0.4, 0.6, 0.8, 0.25, 1.2, 1.4, 0.4]  # two of eight are lower


@pytest.fixture
def swept(monkeypatch):
    """Runs of two methods at two epsilons, two runs a set, and the best constant."""
    rows = []
    for epsilon in (0.1, 1.0):
        for solver, means in (("ours", OURS), ("theirs", THEIRS)):
            for name, mean in zip(SETS, means, strict=True):
                for sign in (-1, 1):
                    excess = mean * (1 + 0.1 * sign)
                    rows.append([name, solver, epsilon, "ok", excess])
    rows += [[name, "constant", math.nan, "ok", 1.0] for name in SETS]
    rows += [[name, "theirs", 1.0, "gap", math.nan] for name in SETS]
    columns = ["problem", "solver", "epsilon", "status", "excess"]
    table = pd.DataFrame(rows, columns=columns)
    monkeypatch.setattr(tables, "read", lambda group, name, _: name)
    monkeypatch.setattr(tables.plan, "label", lambda _, solver: solver.upper())
    return table


STORED = Inputs(Data(), [])


def won(swept, **options):
    arguments = {
        "metric": "excess",
        "method": "ours",
        "others": ["theirs", "constant"],
    }
    return tables.wins(swept, None, STORED, **(arguments | options))


def test_wins_are_counted_over_data_sets_with_their_interval(swept):
    table = won(swept).set_index(["epsilon", "other"])
    assert [*table.index.get_level_values("other")] == [
        "THEIRS",
        "the best constant",
    ] * 2
    row = table.loc[1.0, "THEIRS"]
    assert (row["sets"], row["won"], row["share"]) == (8, 6, 0.75)
    assert (row["share_low"], row["share_high"]) == clopper_pearson(6, 8)
    logs = np.log(np.array(OURS) / THEIRS)
    expected = np.exp([logs.mean(), *student(logs)])
    ratio = row[["ratio", "ratio_low", "ratio_high"]].to_numpy(float)
    assert ratio == pytest.approx(expected)
    assert table.loc[0.1, "the best constant"]["won"] == 8


def test_larger_may_be_better_and_sets_without_both_do_not_count(swept):
    (row,) = won(
        swept,
        others=["theirs"],
        is_larger_better=True,
        only="epsilon == 1 and problem != 'set 0' or problem == 'set 0' and "
        "solver == 'ours' and epsilon == 1",
    ).to_dict("records")
    assert (row["sets"], row["won"]) == (7, 2)


def test_a_ratio_of_what_is_not_positive_is_missing(swept):
    swept.loc[swept["solver"] == "constant", "excess"] = 0.0
    (row, _) = won(swept, others=["constant"]).to_dict("records")
    assert row["won"] == 0 and math.isnan(row["ratio"])


def test_curves_have_both_ends_as_levels_in_every_panel(swept):
    picture = figures.curves(
        swept,
        None,
        STORED,
        "epsilon",
        "excess",
        panel="",
        axes={"xscale": "log"},
    )
    rows = picture.rows.set_index("algorithm")
    assert {*rows["panel"]} == {"all"}
    assert rows.loc["the best constant", ["role", "mean"]].tolist() == [
        "level",
        1.0,
    ]
    ours = rows.loc["OURS"].sort_values("x")
    assert ours["x"].tolist() == [0.1, 1.0] and {*ours["role"]} == {"joined"}
    assert ours["mean"].tolist() == pytest.approx([np.mean(OURS)] * 2)
    assert picture.styles["OURS"]["color"] != picture.styles["THEIRS"]["color"]
    assert picture.axes == {
        "xlabel": "epsilon",
        "ylabel": "excess",
        "xscale": "log",
    }
    by_epsilon = figures.curves(
        swept, None, STORED, "epsilon", "excess", panel="epsilon"
    )
    levels = by_epsilon.rows[by_epsilon.rows["role"] == "level"]
    assert levels["panel"].tolist() == ["0.1", "1.0"]
    assert [*by_epsilon.titles.values()] == ["epsilon = 0.1", "epsilon = 1.0"]


def test_fewer_records_are_a_part_of_more():
    few, many = sweeps.drawn(100, 10), sweeps.drawn(100, 50)
    assert len({*many}) == 50 and {*few} < {*many}
    with pytest.raises(
        ValueError, match="records: expected at most 100, found 101"
    ):
        sweeps.drawn(100, 101)


def test_no_two_curves_have_one_hue():
    """Also of methods that have it wherever they are drawn."""
    names = ["AdaSSP", "SSP", "Noisy moments", "DP-GD", "the best constant"]
    colours = [style["color"] for style in figures._hues(names).values()]
    assert len({*colours}) == len(names)
