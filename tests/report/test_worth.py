"""README's picture shows what the papers' tables of noise hold."""

import math
from pathlib import Path

import pandas as pd
import pytest

from dperm.core.experiment.config import compose
from dperm.report import worth

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def rows():
    return worth.table(compose([])).set_index(["paper", "method"])


def test_the_committed_numbers_are_those_of_the_tables(rows):
    kept = pd.read_csv(ROOT / "figures/worth.csv").set_index(["paper", "method"])
    pd.testing.assert_frame_equal(kept, rows, check_exact=False, rtol=1e-9)


@pytest.mark.parametrize(
    ("paper", "method", "algorithm"),
    [("dpcd", "DP-SGD", "DP-SGD"), ("dpsco", "PolySFW", "poly_sfw")],
)
def test_a_row_spans_the_settings_of_its_method(rows, paper, method, algorithm):
    noise = pd.read_csv(ROOT / f"results/{paper}/noise.csv")
    noise = noise[(noise["algorithm"] == algorithm) & (noise["target_epsilon"] == 1)]
    row = rows.loc[(paper, method)]
    assert (row["least"], row["most"]) == (
        noise["true_epsilon"].min(),
        noise["true_epsilon"].max(),
    )
    assert row["proved"] == noise["epsilon_low"].max()


def test_settings_without_a_bound_are_counted(rows):
    noise = pd.read_csv(ROOT / "results/dpgcd/noise.csv")
    greedy = noise[noise["algorithm"] == "DP-GCD"]
    row = rows.loc[("dpgcd", "DP-GCD")]
    assert row["unbounded"] == (~greedy["true_epsilon"].map(math.isfinite)).sum() > 0
    assert math.isfinite(row["most"])


def test_first_author_and_year():
    assert worth.author("Lou, Cheung (2020), IEEE, doi 10.1109/x.2020") == "Lou 2020"


def test_the_answer_names_noise_that_is_too_much_and_too_little():
    data = pd.DataFrame(
        [
            ("a", "exact", 0.9, 1.0, 0),
            ("a", "wasted", 0.1, 0.4, 0),
            ("b", "broken", 20.0, 1234.5, 0),
            ("b", "unbounded", 0.8, 0.9, 3),
        ],
        columns=["paper", "method", "least", "most", "unbounded"],
    )
    first, second, third = worth.in_words(data, {"a": "A 2022", "b": "B 2020"})
    assert first.startswith("2 of 4 methods")
    assert second.endswith("costs: wasted of A 2022 (0.1 to 0.4).")
    assert "broken of B 2020 (20 to 1,200), unbounded of B 2020" in third
    assert worth.in_words(data.iloc[:0], {}) == []
