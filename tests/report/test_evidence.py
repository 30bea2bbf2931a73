from __future__ import annotations

import math

import pandas as pd
import pytest
from scipy import stats

from dperm.report.evidence import (
    Estimate,
    Evidence,
    MissingError,
    Reading,
    read_or_empty,
)

from .conftest import write


def test_value_and_interval_stand_side_by_side(evidence):
    rows = evidence.rows("table", {"problem": "a", "algorithm": "quick", "passes": 5.0})
    assert Reading().of(rows) == Estimate(0.025, 0.024, 0.026)
    assert Reading(value="mean").of(rows) == Estimate(0.02, 0.02, 0.02)


def test_best_is_chosen_by_the_tuning_mean(evidence):
    rows = evidence.rows("table", {"problem": "a", "algorithm": "slow"})
    assert Reading(best="mean").of(rows).value == 0.31
    assert Reading(value="mean", last="passes").of(rows).value == 0.30


def test_an_interval_of_another_column_is_not_taken(config, evidence):
    data = {"exponent": [1.1], "share": [0.5], "ci_low": [0.4], "ci_high": [0.6]}
    write(config, "peers", pd.DataFrame(data))
    rows = evidence.rows("peers")
    assert Reading(value="exponent").of(rows) == Estimate(1.1, 1.1, 1.1)
    assert Reading(value="share").of(rows) == Estimate(0.5, 0.4, 0.6)


def test_runs_without_interval_columns_are_averaged(config, evidence):
    write(config, "runs", pd.DataFrame({"loss": [1.0, 2.0, 3.0, 4.0]}))
    found = Reading(value="loss").of(evidence.rows("runs"))
    half = stats.t.ppf(0.975, 3) * pd.Series([1.0, 2.0, 3.0, 4.0]).std() / 2
    assert found.value == 2.5
    assert found.high - found.value == pytest.approx(half)


def test_ratio_adds_half_widths_of_logarithms_in_quadrature():
    found = Estimate(2.0, 1.8, 2.2).over(Estimate(1.0, 0.8, 1.2))
    spread = math.exp(math.hypot(math.log(2.2 / 1.8), math.log(1.2 / 0.8)) / 2)
    assert found.value == 2.0
    assert (found.low, found.high) == pytest.approx((2 / spread, 2 * spread))
    with pytest.raises(MissingError, match="no ratio"):
        Estimate(1.0, 1.0, 1.0).over(Estimate(0.0, 0.0, 0.0))


def test_what_is_missing_is_named(config, evidence):
    with pytest.raises(MissingError, match=r"nowhere\.csv is not there"):
        evidence.rows("nowhere")
    with pytest.raises(MissingError, match="no row with problem z"):
        evidence.rows("table", {"problem": "z"})
    with pytest.raises(MissingError, match="no column colour"):
        evidence.rows("table", {"colour": "red"})
    path = Evidence(config).path("broken")
    path.write_text("")
    with pytest.raises(MissingError, match="cannot be read"):
        evidence.rows("broken")


def test_what_is_only_shown_may_be_missing(tmp_path):
    assert read_or_empty(tmp_path / "none.csv").empty
    (tmp_path / "empty.csv").write_text("\n")
    assert read_or_empty(tmp_path / "empty.csv").empty


def test_an_empty_cell_is_missing_unless_it_stands_for_something(config, evidence):
    write(config, "claims", pd.DataFrame({"epsilon": [float("nan")], "x": [1]}))
    rows = evidence.rows("claims")
    with pytest.raises(MissingError, match="empty"):
        Reading(value="epsilon").of(rows)
    assert Reading(value="epsilon", missing=math.inf).of(rows).value == math.inf


def test_names_lead_to_files(config):
    evidence = Evidence(config)
    assert evidence.path("table2").parts[-2:] == ("dpcd", "table2.csv")
    assert evidence.path("figures/figure1").parts[-2:] == ("dpcd", "figure1.csv")
    assert evidence.path("sweeps/rates").parts[-3:] == (
        "dpcd", "sweeps", "rates.parquet",
    )  # fmt: skip
