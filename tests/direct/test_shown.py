"""The table and the figure are of the rows."""

import numpy as np
import pytest

from dperm.direct import shown
from dperm.present.intervals import student

ERRORS = {("A", "default"): [0.5, 0.7, 0.6], ("A", "grid"): [0.2, 0.3, 0.25],
          ("B", "default"): [np.inf, 1.0, 1.0]}  # fmt: skip


@pytest.fixture
def table():
    rows = [
        {"algorithm": name, "solver": name.lower(), "tuning": tuning, "status": "ok",
         "reason": "", "relative_error": error, "seconds": 0.5, "true_epsilon": 1.0,
         "given": "n", "setting": "step 1"}
        for (name, tuning), errors in ERRORS.items()
        for error in errors
    ]  # fmt: skip
    held = [{**rows[0], "relative_error": np.nan, "test": value, "test_metric": "auc"}
            for value in (0.7, 0.9)]  # fmt: skip
    gap = {"algorithm": "C", "solver": "c", "tuning": "", "status": "gap",
           "reason": "it cannot"}  # fmt: skip
    return shown.summary([*rows, *held, gap], 1.0)


def test_means_have_students_interval_and_metrics_their_own(table):
    first = table.iloc[0]
    assert (first["ci_low"], first["ci_high"]) == pytest.approx(
        student(np.array(ERRORS["A", "default"]))
    )
    assert first["mean"] == pytest.approx(0.6) and first["runs"] == 3
    assert first["test_mean"] == pytest.approx(0.8)
    assert np.isinf(table.iloc[2]["mean"]) and table.iloc[3]["reason"] == "it cannot"


def test_words_name_the_least_and_what_is_public(table):
    text = shown.told(table, 2.0, ("default", "grid"), "")
    assert "without tuning: take A, relative error 0.6" in text
    assert "best of the grid, for free: take A" in text and "it cannot" in text
    public = f"epsilon of A, B holds given: n\n{shown.NO_RELEASE}"
    assert text.endswith(public) and "no release" in shown.NO_RELEASE
    none = shown.told(table, 0.1, ("grid",), "")
    assert "none is surely better than w = 0" in none


def test_the_figure_shows_what_is_finite_and_w_of_zero(table):
    figure, rows = shown.drawn(table, 2.0, "mine")
    (axes,) = figure.axes
    assert [row["mean"] for row in rows] == pytest.approx([0.6, 0.25])
    assert [text.get_text() for text in axes.get_yticklabels()] == ["A"]
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert sorted(labels) == ["best of the grid, for free", "w = 0", "without tuning"]
    assert axes.get_xscale() == "log"
