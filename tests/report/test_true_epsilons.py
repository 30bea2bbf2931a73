"""README's picture shows what the papers' tables of noise hold."""

import math
from pathlib import Path

import pandas as pd
import pytest

from dperm.report import true_epsilons

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def rows():
    return true_epsilons.true_epsilons(Path("results")).set_index(
        ["paper", "method"]
    )


def test_the_committed_numbers_are_those_of_the_tables(rows):
    kept = pd.read_csv(ROOT / "figures/worth.csv").set_index(
        ["paper", "method"]
    )
    pd.testing.assert_frame_equal(kept, rows, check_exact=False, rtol=1e-9)


def test_the_picture_names_every_method(rows):
    figure = true_epsilons.epsilons_picture(rows.reset_index())
    labels = figure.axes[0].get_yticklabels()
    true_epsilons.plt.close(figure)
    named = [label.get_text() for label in labels]
    assert len({*named}) == len(rows) and named[-1] == "DP-BCFW"
    assert {"DP-CD", "DP-SGD in DP-CD", "DP-CD in DP-GCD"} < {*named}


def test_only_noise_that_a_paper_prints_is_judged(rows):
    assert ("dpbcfw", "DP-BCFW") in rows.index
    assert ("dpbcfw", "DP-FW") not in rows.index


def test_pages_state_the_bounds_of_the_picture(rows):
    bounds = true_epsilons._label(rows.reset_index().iloc[-1])
    assert rows.index[-1] == ("dpbcfw", "DP-BCFW")
    upper, _, lower = bounds.replace(",", " ").partition("; at least ")
    text = " ".join((ROOT / "docs/papers/dpbcfw.md").read_text().split())
    assert f"at least {lower}" in text
    assert upper in (ROOT / "docs/papers/dpbcfw.md").read_text()


def test_the_answer_names_noise_that_is_too_much_and_too_little():
    data = pd.DataFrame(
        [
            ("a", "exact", 0.9, 1.0, 0.8, 0.9, 0, 5),
            ("a", "wasted", 0.1, 0.4, 0.1, 0.1, 0, 5),
            ("b", "broken", 20.0, 1234.5, 12.3, 45.6, 0, 5),
            ("b", "unbounded", 0.8, 0.9, math.nan, math.nan, 3, 5),
        ],
        columns=true_epsilons.EPSILON_COLUMNS,
    )
    told = true_epsilons.epsilons_in_words(data)
    for text, words in zip(
        told,
        (
            "2 of 4 methods keep the epsilon they name; 1 costs at least 12 times",
            "wasted in a (0.1 to 0.4)",
            "unbounded in b (0.8 to 0.9; no bound in 3 of 5 settings)",
            "broken in b (20 to 1,200; at least 12 to 46)",
        ),
        strict=True,
    ):
        assert words in text
    assert true_epsilons.epsilons_in_words(data.iloc[:0]) == []
