"""The table and the figure are of the rows."""

import math

import numpy as np
import pandas as pd
import pytest

from dperm.compare import pictures, results
from dperm.present.intervals import student

ERRORS = {("A", "default"): [0.5, 0.7, 0.6], ("A", "grid"): [0.2, 0.3, 0.25],
          ("B", "default"): [np.inf, 1.0, 1.0]}  # fmt: skip


@pytest.fixture
def table():
    rows = [
        {"problem": "mine", "solver": name.lower(), "tuning": tuning, "status": "ok",
         "public_scales": True, "reason": "", "relative_error": error, "seconds": 0.5,
         "true_epsilon": 1.0, "given": "n", "setting": "step 1"}
        for (name, tuning), errors in ERRORS.items()
        for error in errors
    ]  # fmt: skip
    held = [{**rows[0], "relative_error": np.nan, "test": value, "test_metric": "auc"}
            for value in (0.7, 0.9)]  # fmt: skip
    gap = {"problem": "mine", "solver": "c", "status": "gap", "public_scales": True,
           "reason": "it cannot"}  # fmt: skip
    return results.by_tuning(pd.DataFrame([*rows, *held, gap]), 1.0, str.upper)


def test_means_have_students_interval_and_metrics_their_own(table):
    first = table.iloc[0]
    assert (first["ci_low"], first["ci_high"]) == pytest.approx(
        student(np.array(ERRORS["A", "default"]))
    )
    assert first["mean"] == pytest.approx(0.6) and first["runs"] == 3
    assert first["test_mean"] == pytest.approx(0.8)
    assert np.isinf(table.iloc[2]["mean"]) and table.iloc[3]["reason"] == "it cannot"


def test_words_name_the_least_and_what_is_public(table):
    text = results.words(table, 2.0, ("default", "grid"), [])
    assert "without tuning: take A, relative error 0.6" in text
    assert "best of the grid, for free: take A" in text and "it cannot" in text
    public = f"epsilon of A, B holds given: n\n{results.NO_RELEASE}"
    assert "release=True" in results.NO_RELEASE
    assert text.endswith(public) and "no release" in results.NO_RELEASE
    none = results.words(table, 0.1, ("grid",), ["auc 1"])
    assert "none is significantly better than w = 0" in none and "\nauc 1\n" in none


def test_the_figure_shows_what_is_finite_and_w_of_zero(table):
    figure, rows = pictures.figure(table, 2.0, "mine")
    (axes,) = figure.axes
    assert [row["mean"] for row in rows] == pytest.approx([0.6, 0.25])
    assert [text.get_text() for text in axes.get_yticklabels()] == ["A"]
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert sorted(labels) == ["best of the grid, for free", "w = 0", "without tuning"]
    assert axes.get_xscale() == "log"


def test_means_have_intervals_and_gaps_stay():
    values = np.array([1.0, 2.0, 3.0, 4.0])
    mean, low, high = results.interval(values)
    assert mean == 2.5 and low == pytest.approx(2.5 - 3.182446 * values.std(ddof=1) / 2)
    assert high - mean == pytest.approx(mean - low)
    assert results.interval(np.array([1.0, math.inf])) == (math.inf,) * 3
    point = {"problem": "a", "solver": "dp_cd", "public_scales": True}
    ran = [{**point, "epsilon": 1.0, "tuning": "grid", "relative_error": v,
            "seconds": 0.1, "true_epsilon": 1.0, "given": "n", "setting": "s",
            "status": "ok"} for v in values]  # fmt: skip
    gap = {**point, "solver": "dp_fw", "status": "gap", "reason": "why"}
    table = results.means(pd.DataFrame([*ran, gap]), str.title)
    assert list(table.columns) == results.COLUMNS
    assert table["mean"].tolist()[0] == 2.5 and math.isnan(table["mean"].iloc[1])
    assert table["algorithm"].tolist() == ["Dp_Cd", "Dp_Fw"]
    assert table["reason"].iloc[1] == "why"
