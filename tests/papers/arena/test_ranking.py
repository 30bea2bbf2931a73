"""Rankings: gaps are no bad scores, intervals draw data sets, advice is held out."""

import math

import numpy as np
import pandas as pd
import pytest

from dperm.core.experiment.schema import Product
from dperm.papers.arena import figures, ranking, tables
from dperm.papers.arena.ranking import CONSTANT


def table(errors, tuning="default", epsilon=1.0, n=1000.0, loss="logistic"):
    """Means of methods on problems; None is a gap."""
    rows = []
    for problem, own in errors.items():
        for method, value in own.items():
            gap = value is None
            rows.append({
                "problem": problem, "data": problem, "algorithm": method,
                "solver": method, "n": n, "p": 10.0, "loss": loss, "mean": value,
                "epsilon": math.nan if gap else epsilon, "seconds": 1.0,
                "tuning": None if gap else tuning, "metric": "AUC",
                "test": math.nan if gap else 1 - value,
                "status": "gap" if gap else "ok",
            })  # fmt: skip
    return pd.DataFrame(rows)


THREE = {
    "one": {"A": 0.1, "B": 0.2, "C": 0.4},
    "two": {"A": 0.3, "B": 0.1, "C": None},
    "three": {"A": 0.1, "B": 0.5, "C": math.inf},
}


def test_a_gap_is_no_place_in_a_cell():
    errors = ranking.cells(table(THREE))
    found = ranking.shares(errors)
    assert math.isnan(found["C"].iloc[1])
    assert found["A"].tolist() == [0, 1, 0] and found["B"].tolist() == [0.5, 0, 0.5]
    standing = ranking.standing(errors).set_index("algorithm")
    assert standing["cells"].to_dict() == {"A": 3, "B": 3, "C": 2}
    assert standing["share"].to_dict() == pytest.approx(
        {"A": 1 / 3, "B": 1 / 3, "C": 1.0}
    )
    assert standing["best"].to_dict() == {"A": 2, "B": 1, "C": 0}
    assert standing["learns"].to_dict() == {"A": 1.0, "B": 1.0, "C": 0.5}


def test_a_method_that_meets_no_target_is_last_and_no_gap():
    out = table(THREE)
    out.loc[out["problem"].eq("three") & out["algorithm"].eq("C"), "status"] = "gap"
    errors = ranking.cells(out)
    assert errors["C"].iloc[2] == math.inf
    assert ranking.shares(errors)["C"].iloc[2] == 1


def test_intervals_draw_whole_data_sets_again():
    """Many epsilons and problems of one data set are no more evidence than it."""
    index = pd.MultiIndex.from_product(
        [["a", "b"], range(50)], names=["data", "epsilon"]
    )
    column = pd.Series(np.repeat([0.0, 1.0], 50), index=index)
    low, high = ranking.resampled(column)
    assert (low, high) == (0.0, 1.0)
    alone = pd.Series([0.5], index=index[:1])
    assert all(math.isnan(end) for end in ranking.resampled(alone))


def test_the_critical_difference_is_nemenyis():
    """Demsar 2006, Section 3.2.2: q = 2.569 for four methods, 14 data sets: 1.25."""
    rng = np.random.default_rng(0)
    names = pd.Index(range(14), name="data")
    errors = pd.DataFrame(rng.random((14, 4)), names, list("ABCD"))
    twice = pd.concat([errors, errors])  # of the same records
    assert ranking.critical(twice)[1] == ranking.critical(errors)[1]
    ranks, least = ranking.critical(errors)
    assert least == pytest.approx(1.25, abs=5e-3)
    assert ranks.sum() == pytest.approx(10)
    assert math.isnan(ranking.critical(errors.iloc[:1])[1])


def test_cells_are_grouped_by_loss_and_budget():
    both = pd.concat([
        table(THREE, n=100.0), table(THREE, epsilon=10.0), table(THREE, n=2e4),
        table({"four": {"A": 0.1}}, loss="least_squares"),
    ])  # fmt: skip
    found = [(kind["loss"], kind["from"], len(some))
             for kind, some in ranking.groups(ranking.cells(both))]  # fmt: skip
    assert found == [("logistic", 0.0, 3), ("logistic", 1000.0, 6),
                     ("least_squares", 30.0, 1)]  # fmt: skip


def test_advice_is_the_method_of_least_regret_or_the_constant():
    """A fits two of three problems, and is useless on the third."""
    errors = {name: {"A": 0.1, "B": 0.2} for name in ("one", "two")}
    errors["odd"] = {"A": 50.0, "B": 0.1}
    (row,) = ranking.advice(ranking.cells(table(errors)))
    assert row["take"] == "B" and row["cells"] == 3 and row["learns"] == 1.0
    assert row["regret"] == pytest.approx(0.2 / 3)
    assert row["second_regret"] == pytest.approx(1.9 / 3)  # 50 counts as 2
    worse = {name: {"A": 1.5, "B": 1.2} for name in ("one", "two")}
    (row,) = ranking.advice(ranking.cells(table(worse)))
    assert row["take"] == CONSTANT and row["regret"] == 0 == row["learns"]


def test_a_pick_is_as_sure_as_the_data_sets_agree():
    """A is best on all small problems; on large ones B on half of the data sets."""
    small = {f"s{k}": {"A": 0.1, "B": 0.2, "C": 0.05 if k == 0 else None}
             for k in range(8)}  # fmt: skip
    large = {f"l{k}": {"A": 0.1, "B": 0.09 if k % 2 else 0.11} for k in range(8)}
    both = pd.concat([table(small, n=50.0), table(large, n=2000.0)])
    found = ranking.picks(ranking.cells(both))
    assert {*found["from"]} == {0.0, 30.0} and {*found["algorithm"]} == {"A", "B"}
    sure = found.set_index(["from", "algorithm"])
    assert sure.loc[(0.0, "A"), "share"] == 1.0  # C does one of the data sets
    assert 0.2 < sure.loc[(30.0, "B"), "share"] < 0.8
    assert sure.loc[(0.0, "A"), "regret"] == pytest.approx(0.05 / 8)
    figure, rows = figures.drawn_guide(found)
    texts = [one.get_text() for one in figure.axes[0].texts]
    assert "100%\nexcess 0.01 above least" in texts and len(rows) == 3


def test_a_choice_by_range_beats_one_by_loss_on_data_that_were_left_out():
    """A is right where n epsilon / p is large, B where it is small."""
    rows = []
    for k in range(8):
        for epsilon in (0.1, 100.0):
            good, bad = ("A", "B") if epsilon > 1 else ("B", "A")
            own = {f"p{k}": {good: 0.1, bad: 0.5, "C": 0.35}}
            rows.append(table(own, epsilon=epsilon))
    found = pd.DataFrame(ranking.model(ranking.cells(pd.concat(rows))))
    by = found.set_index("choice")
    assert by.loc["by range", "regret"] == pytest.approx(0.0)
    assert by.loc["by loss", "regret"] == pytest.approx(0.2)
    assert by.loc["constant", "regret"] == pytest.approx(0.9)
    assert (by["cells"] == 16).all() and (by["above_constant"] == 0).all()


def test_a_data_set_has_no_say_in_what_is_taken_on_it():
    """Twenty prefer A; on the odd one A is worse than a constant, and is taken."""
    errors = {f"p{k}": {"A": 0.1, "B": 0.2} for k in range(20)}
    errors["odd"] = {"A": 1.5, "B": 0.1}
    found = pd.DataFrame(ranking.model(ranking.cells(table(errors))))
    row = found.set_index("choice").loc["by range"]
    assert row["regret"] == pytest.approx(1.4 / 21)
    assert row["worst"] == pytest.approx(1.4)
    assert row["above_constant"] == pytest.approx(1 / 21)


def test_with_one_data_set_only_the_constant_is_a_choice():
    """As at the smallest scale: nothing is left to learn a method from."""
    (row,) = ranking.model(ranking.cells(table({"p": {"A": 0.1, "B": 0.2}})))
    assert row["choice"] == "constant" and row["regret"] == pytest.approx(0.9)


def test_changes_of_nothing_change_nothing():
    both = pd.concat([table(THREE, tuning) for tuning in ("grid", "default")])
    found = pd.DataFrame(ranking.changes(both))
    assert found["kendall_tau"].to_numpy() == pytest.approx(1.0)
    assert found["choice"].tolist() == ["tuning", "epsilon", "metric"]


@pytest.fixture
def every(monkeypatch):
    """Both tunings of three problems in place of the sweeps."""
    made = pd.concat([table(THREE, tuning) for tuning in ("default", "grid")])
    for module in (tables, figures):
        monkeypatch.setattr(module, "outcomes", lambda config, *sweeps: made)


def test_tables_have_both_tunings(every):
    for make in (tables.ranks, tables.advice, tables.model):
        assert {*make(None, None, [])["tuning"]} == {"default", "grid"}
    assert (tables.ranks(None, None, [])["seconds"] == 1.0).all()


def test_ranks_say_of_which_loss_and_epsilon_they_are(every):
    figure, _ = figures.ranks(None, Product(function="ranks", sweeps=["race"]), [])
    titles = [at.get_title() for at in figure.axes]
    figures.plt.close(figure)
    assert titles[0].startswith("classification, 3 problems")
    assert all("$\\epsilon$ = 1" in title for title in titles)


def test_the_map_marks_gaps_and_what_learns_nothing(every):
    figure, rows = figures.map(None, Product(function="map", sweeps=["race"]), [])
    assert len(rows) == 8 and rows[0]["algorithm"].startswith("one: ")
    marks = [line.get_marker() for line in figure.axes[0].lines]
    assert marks.count("x") == 1 and marks.count(".") == 3
    assert marks.count("None") == 1  # a stroke
