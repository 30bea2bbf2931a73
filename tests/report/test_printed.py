"""README's second picture: numbers that papers print, beside ours."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dperm.config.config import papers, read
from dperm.config.locate import ConfigError, available
from dperm.config.schema import Scale
from dperm.report import printed

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def numbers():
    sections = papers(available("paper"), Scale(), [])
    return printed.numbers(sections, Path("results"))


def test_the_committed_numbers_are_those_of_the_tables(numbers):
    kept = pd.read_csv(ROOT / "figures/printed.csv")
    pd.testing.assert_frame_equal(kept, numbers, check_exact=False, rtol=1e-9)


@pytest.mark.parametrize(
    ("paper", "table", "what", "column"),
    [
        ("dpcd", "table2", printed.ERRORS, "relative_error_mean"),
        ("dpcd", "table2", printed.DEVIATIONS, "relative_error_std"),
        ("dpcd", "table3", printed.TIMES, "seconds_mean"),
        ("dpgcd", "table3", printed.ERRORS, "relative_error"),
    ],
)
def test_every_printed_number_is_there_once(
    numbers, paper, table, what, column
):
    source = pd.read_csv(ROOT / f"conf/paper/{paper}/published/{table}.csv")
    rows = numbers[
        numbers[["paper", "table", "what"]].eq((paper, table, what)).all(1)
    ]
    assert sorted(rows["printed"]) == sorted(source[column].dropna())


def test_a_column_that_a_table_has_not_is_named():
    source = read("paper", "dpcd").printed_numbers[1]
    table = pd.read_csv(ROOT / "results/dpcd/table2.csv").rename(
        columns={"std": "sd"}
    )
    with pytest.raises(
        ConfigError, match=r"printed_numbers of table2: .*'std'"
    ):
        printed.pairs(table, "dpcd", source)


def test_errors_have_their_interval_and_zeros_are_not_drawn(numbers):
    errors = numbers[numbers["what"] == printed.ERRORS]
    assert (errors["low"] <= errors["ours"]).all()
    assert (errors["ours"] <= errors["high"]).all()
    figure = printed.printed_picture(numbers)
    legend = figure.axes[0].get_legend()
    line, *kinds = [entry.get_text() for entry in legend.get_texts()]
    counts = [int(kind.split("(")[1][:-1]) for kind in kinds]
    printed.plt.close(figure)
    assert line == "found = printed" and len(kinds) == len(printed.MARKS)
    assert sum(counts) == len(printed.positive(numbers))
    assert (
        np.log10(printed.positive(numbers)[["printed", "ours"]]).notna()
    ).all(None)


def test_the_title_counts_errors_that_the_law_allows(numbers):
    errors = numbers[numbers["what"] == printed.ERRORS]
    assert printed.message(numbers).startswith(
        f"{len(errors)} of {len(errors)} "
    )
    refuted = numbers.assign(
        p=numbers["p"].where(numbers["paper"] != "dpgcd", 0.01)
    )
    few = len(errors) - (errors["paper"] == "dpgcd").sum()
    assert printed.message(refuted).startswith(f"{few} of {len(errors)} ")
