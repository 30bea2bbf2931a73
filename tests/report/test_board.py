"""The leaderboard against rows counted by hand."""

import json

import pandas as pd
import pytest

from dperm.core.experiment import plan
from dperm.core.experiment.files import write_csv
from dperm.report import board as boards
from dperm.report.board import Ledgers, board

from .conftest import compose, write

TUNED = pd.DataFrame(
    [
        # the passes that tuning likes best need not do best on fresh runs
        ("electricity_raw", "DP-CD", 2.0, 0.20, 0.10, 0.08, 0.12),
        ("electricity_raw", "DP-CD", 5.0, 0.10, 0.15, 0.14, 0.16),
        ("electricity_raw", "DP-SGD", 5.0, 0.30, 0.155, 0.145, 0.165),
        ("electricity_raw", "DP-CD-uniform", 5.0, 0.40, 0.45, 0.40, 0.50),
        ("california_raw", "DP-CD", 2.0, 0.50, 0.55, 0.50, 0.60),  # no ledger
    ],
    columns=["problem", "algorithm", "passes", "mean", "fresh_mean", "fresh_ci_low",
             "fresh_ci_high"],
)  # fmt: skip


def ledger(config, solver, costs):
    """A ledger of electricity_raw: (calibration, passes) to the true epsilon."""
    path = plan.results_folder(config, "dpcd", "electricity_raw", solver, "ledger.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([
        {"calibrated": {"calibration": kind, "true_epsilon": cost}, "passes": passes}
        for (kind, passes), cost in costs.items()
    ]))  # fmt: skip
    return path


@pytest.fixture
def made(tmp_path):
    config = compose(tmp_path)
    write(config, "table2_strict", TUNED)
    for solver in ("dp_cd", "dp_sgd", "dp_cd_uniform"):
        ledger(config, solver, {("strict", 5.0): 0.999, ("strict", 2.0): 0.5,
                                ("paper", 5.0): 7.0})  # fmt: skip
    return board([(config, Ledgers(config))])


def test_the_setting_is_chosen_by_tuning_and_shown_by_fresh_runs(made):
    row = made[made["algorithm"] == "DP-CD"].iloc[0]
    assert (row["mean"], row["epsilon"], row["setting"]) == (0.15, 0.999, "5 passes")


def test_rows_are_ranked_within_data_set_and_epsilon(made):
    assert made["algorithm"].tolist() == ["DP-CD", "DP-SGD", "DP-CD-uniform"]
    assert made["place"].tolist() == [1, 2, 3] and set(made["of"]) == {3}
    assert made["tied"].tolist() == [True, True, False]


def test_without_a_price_there_is_no_row(made):
    assert set(made["problem"]) == {"electricity_raw"}


def test_other_epsilons_are_other_contests(tmp_path):
    config = compose(tmp_path)
    write(config, "table2_strict", TUNED.iloc[1:3])
    ledger(config, "dp_cd", {("strict", 5.0): 0.84})
    ledger(config, "dp_sgd", {("strict", 5.0): 0.33})
    found = board([(config, Ledgers(config))])
    assert found["place"].tolist() == [1, 1] and found["of"].tolist() == [1, 1]


def test_endless_epsilons_and_copies_are_left_out(tmp_path):
    config = compose(tmp_path)
    write(config, "table2_strict", TUNED.iloc[1:3])
    write(config, "table2", TUNED.iloc[1:2])  # the same numbers in another table
    ledger(config, "dp_cd", {("strict", 5.0): 1.0, ("paper", 5.0): 1.0})
    ledger(config, "dp_sgd", {("strict", 5.0): float("inf")})
    found = board([(config, Ledgers(config))])
    assert found["algorithm"].tolist() == ["DP-CD"]


@pytest.mark.parametrize(("yes", "no"), [(True, False), (1.0, 0.0)])
def test_a_table_that_brings_its_epsilon_is_read_at_full_tuning(tmp_path, yes, no):
    data = pd.DataFrame(
        [("a", "X", 1.0, 0.3, 0.2, 0.4, "grid", yes),
         ("a", "X", 1.0, 0.1, 0.1, 0.1, "default", yes),
         ("a", "X", 1.0, 0.1, 0.1, 0.1, "grid", no),
         ("a", "X", 1.0, 0.1, 0.1, 0.1, "grid", None),
         ("a", "floor", 0.0, 0.1, None, None, "grid", yes)],
        columns=["problem", "algorithm", "true_epsilon", "mean", "ci_low", "ci_high",
                 "tuning", "public_scales"],
    )  # fmt: skip
    write_csv(tmp_path / "x.csv", data)
    read = pd.read_csv(tmp_path / "x.csv")
    found = list(boards._priced(read))
    assert [(row["mean"], row["epsilon"]) for row in found] == [(0.3, 1.0)]


def test_nothing_gives_an_empty_board(tmp_path):
    config = compose(tmp_path)
    assert board([(config, Ledgers(config))]).empty
