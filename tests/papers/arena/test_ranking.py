"""Rankings: gaps are no bad scores, intervals draw data sets, advice is held out."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dperm.benchmark import race
from dperm.estimators import methods
from dperm.papers.arena import defaults, figures, ranking, tables
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
    assert found["A"].tolist() == [0, 1, 0] and found["B"].tolist() == [
        0.5,
        0,
        0.5,
    ]
    standing = ranking.standing(errors).set_index("algorithm")
    assert standing["cells"].to_dict() == {"A": 3, "B": 3, "C": 2}
    assert standing["share"].to_dict() == pytest.approx(
        {"A": 1 / 3, "B": 1 / 3, "C": 1.0}
    )
    assert standing["best"].to_dict() == {"A": 2, "B": 1, "C": 0}
    assert standing["learns"].to_dict() == {"A": 1.0, "B": 1.0, "C": 0.5}


def test_a_method_that_meets_no_target_is_last_and_no_gap():
    out = table(THREE)
    out.loc[
        out["problem"].eq("three") & out["algorithm"].eq("C"), "status"
    ] = "gap"
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
    found = [(group["loss"], group["from"], len(some))
             for group, some in ranking.groups(ranking.cells(both))]  # fmt: skip
    assert found == [("logistic", 0.0, 3), ("logistic", 1000.0, 6),
                     ("least_squares", 100.0, 1)]  # fmt: skip


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
    large = {
        f"l{k}": {"A": 0.1, "B": 0.09 if k % 2 else 0.11} for k in range(8)
    }
    both = pd.concat([table(small, n=50.0), table(large, n=2000.0)])
    found = ranking.picks(ranking.cells(both))
    assert {*found["from"]} == {0.0, 100.0} and {*found["algorithm"]} == {
        "A",
        "B",
    }
    sure = found.set_index(["from", "algorithm"])
    assert sure.loc[(0.0, "A"), "share"] == 1.0  # C does one of the data sets
    assert 0.2 < sure.loc[(100.0, "B"), "share"] < 0.8
    assert sure.loc[(0.0, "A"), "regret"] == pytest.approx(0.05 / 8)
    figure, rows = figures.drawn_guide(found)
    texts = [one.get_text() for one in figure.axes[0].texts]
    assert "100%\n+ 0.01" in texts and len(rows) == 3
    shades = figure.axes[0].images[0].get_array()
    assert np.ma.count(shades) == len(rows)  # what is not shown has no shade


def test_a_choice_by_range_beats_one_by_loss_on_data_that_were_left_out():
    """A is right where n epsilon / p is large, B where it is small."""
    rows = []
    for k in range(8):
        for epsilon in (0.1, 100.0):  # n epsilon / p = 10 and 10,000
            good, bad = ("A", "B") if epsilon > 1 else ("B", "A")
            own = {f"p{k}": {good: 0.1, bad: 0.5, "C": 0.35}}
            rows.append(table(own, epsilon=epsilon))
    found = pd.DataFrame(ranking.model(ranking.cells(pd.concat(rows))))
    by = found.set_index("choice")
    assert by.loc["by range", "regret"] == pytest.approx(0.0)
    assert by.loc["by loss", "regret"] == pytest.approx(0.2)
    assert by.loc["by threshold", "regret"] == pytest.approx(0.0)
    assert by.loc["always A", "regret"] == pytest.approx(0.2)
    assert by.loc["constant", "regret"] == pytest.approx(0.9)
    assert (by["cells"] == 16).all() and (by["above_constant"] == 0).all()
    assert (by["data_sets"] == 8).all()


def test_the_shipped_rule_is_judged_by_its_range():
    rows = [
        table({"p": {"A": 0.1, "B": 0.4}}, epsilon=epsilon)
        for epsilon in (0.1, 9.0)
    ]
    # in the first range and in the fourth
    errors = ranking.cells(pd.concat(rows))
    rule = {"logistic": [*"BAAAA"], "least_squares": [*"AAAAA"]}
    found = pd.DataFrame(ranking.model(errors, rule)).set_index("choice")
    assert found.loc["dperm.fit", "regret"] == pytest.approx(0.15)
    absent = ranking.taken(ranking.regrets(errors), [["C"]] * 5)
    assert absent.tolist() == pytest.approx([0.9] * 2)  # of the constant


def test_the_rule_of_dperm_fit_is_constant_in_each_range():
    """So that it may be judged by ranges: its threshold is an edge of them."""
    assert methods.FEW_RECORDS in ranking.EDGES
    rules = tables.shipped()
    for is_quadratic, loss in ((False, "logistic"), (True, "least_squares")):
        for (low, high), name in zip(
            ranking.BUDGETS, rules[loss], strict=True
        ):
            for size in (low, low + 1, min(high, 1e9) - 1):
                assert methods.usual(is_quadratic, 1, size)[0] == name


def test_a_data_set_has_no_say_in_what_is_taken_on_it():
    """Twenty prefer A; on the odd one A is worse than a constant, and is taken."""
    errors = {f"p{k}": {"A": 0.1, "B": 0.2} for k in range(20)}
    errors["odd"] = {"A": 1.5, "B": 0.1}
    found = pd.DataFrame(ranking.model(ranking.cells(table(errors))))
    row = found.set_index("choice").loc["by range"]
    assert (
        found.set_index("choice").loc["by threshold", "regret"]
        == row["regret"]
    )
    assert row["regret"] == pytest.approx(1.4 / 21)
    assert row["worst"] == pytest.approx(1.4)
    assert row["above_constant"] == pytest.approx(1 / 21)


def test_with_one_data_set_only_the_constant_is_a_choice():
    """As at the smallest scale: nothing is left to learn a method from."""
    found = ranking.model(ranking.cells(table({"p": {"A": 0.1, "B": 0.2}})))
    assert [row["choice"] for row in found] == [
        "constant",
        "always A",
        "always B",
    ]
    assert found[0]["regret"] == pytest.approx(0.9)


def test_changes_of_nothing_change_nothing():
    every = pd.concat([table(THREE, name) for name in tables.ALL_TUNINGS])
    found = pd.DataFrame(ranking.changes(every))
    assert found["kendall_tau"].to_numpy() == pytest.approx(1.0)
    assert found["choice"].tolist() == [
        "tuning",
        "tuning",
        "epsilon",
        "metric",
    ]


def test_curves_are_means_of_capped_excesses_in_each_range():
    """A method that does few cells of a range has no point there."""
    errors = {"one": {"A": 0.2, "B": 50.0, "C": None}, "two": {"A": 0.4, "B": 0.0},
              "three": {"A": 0.6, "B": 1.0, "C": 0.1}}  # fmt: skip
    found = pd.DataFrame(ranking.curves(ranking.cells(table(errors))))
    means = found.set_index("algorithm")
    assert means["mean"].to_dict() == pytest.approx({"A": 0.4, "B": 1.0})
    assert (means["from"] == 100.0).all() and (means["data_sets"] == 3).all()
    assert (means["ci_low"] < means["mean"]).all()


@pytest.fixture
def every(monkeypatch):
    """All tunings of three problems in place of the sweeps."""
    made = pd.concat([table(THREE, name) for name in tables.ALL_TUNINGS])
    monkeypatch.setattr(tables, "outcomes", lambda swept, inputs: made)
    monkeypatch.setattr(figures, "outcomes", lambda swept, inputs: made)
    titled = {name: SimpleNamespace(title=name) for name in THREE}
    monkeypatch.setattr(figures, "titles", lambda inputs, names: titled)


def test_tables_have_all_tunings(every):
    for make in (tables.ranks, tables.advice, tables.model):
        assert {*make(None, None)["tuning"]} == {*tables.ALL_TUNINGS}
    assert (tables.ranks(None, None)["seconds"] == 1.0).all()


def test_ranks_say_of_which_loss_and_epsilon_they_are(every):
    figure, _ = figures.ranks(None, None)
    titles = [at.get_title() for at in figure.axes]
    figures.plt.close(figure)
    assert titles[0].startswith("two classes, 3 problems")
    assert all("$\\epsilon$ = 1" in title for title in titles)


def test_the_map_marks_gaps_and_what_learns_nothing(every):
    figure, rows = figures.map(None, None)
    assert len(rows) == 8 and rows[0]["algorithm"].startswith("one: ")
    marks = [line.get_marker() for line in figure.axes[0].lines]
    assert marks.count("x") == 1 and marks.count(".") == 3
    assert marks.count("None") == 1  # a stroke


# --- which method ---------------------------------------------------------------------


def test_the_first_picture_shows_the_lowest_line_the_constant_and_who_is_asked_for():
    errors = {name: {"A": 0.1, "B": 0.2, "C": 0.3, "D": 0.4, "E": 0.5, "DP-SGD": 5.0}
              for name in ("one", "two", "three")}  # fmt: skip
    near = table(errors, n=100.0)
    far = table(
        {"big": {"A": 0.5, "B": 0.6, "C": 0.7, "D": 0.8, "E": 0.1}}, n=1e5
    )
    curves = pd.DataFrame(
        ranking.curves(ranking.cells(pd.concat([near, far])))
    )
    figure, rows = figures.drawn_which(curves)
    names = {row["algorithm"] for row in rows}
    assert names == {"A", "B", "E", "DP-SGD", ranking.CONSTANT}  # not C and D
    lost = next(row for row in rows if row["algorithm"] == "DP-SGD")
    assert lost["mean"] == ranking.WORST and lost["x"] < 1  # drawn at the top
    texts = [one.get_text() for one in figure.axes[0].texts]
    assert {"A", "E", "DP-SGD", ranking.CONSTANT} <= {*texts}  # direct labels
    figures.plt.close(figure)


# --- defaults -------------------------------------------------------------------------


def runs(excesses, loss="logistic"):
    """Rows of the race: excesses by problem, tuning and setting."""
    return pd.DataFrame([
        {"problem": problem, "solver": "s", "epsilon": 1.0, "tuning": tuning,
         "setting": setting, "excess": value, "loss": loss, "n": 100, "p": 2,
         "metric": "AUC", "test": 0.5, "accuracy": 0.5, "seconds": 1.0,
         "run_seed": k, "status": "ok", "reason": ""}
        for problem, own in excesses.items()
        for (tuning, setting), values in own.items()
        for k, value in enumerate(values)
    ])  # fmt: skip


def tried(shipped, one, two):
    return {("default", "x"): [shipped], (race.TRIED, "a 1"): one,
            (race.TRIED, "a 2"): two, ("grid", "a 1"): [0.0]}  # fmt: skip


MANY = {
    "p1": tried(0.5, [0.2, 0.4], [0.6]),
    "p2": tried(0.5, [0.3], [0.6]),
    "p3": tried(0.5, [0.3], [0.6]),
    "odd": tried(0.4, [9.0], [0.1]),
}


def test_a_default_is_what_the_other_data_sets_choose():
    """Excesses from 2 on count as 2; on the odd one the others choose what fails."""
    means = defaults.settings(runs(MANY), {"s": "S"})
    assert {*means["setting"]} == {"", "a 1", "a 2"} and len(means) == 12
    means = means.assign(data=means["problem"])
    fair = defaults.left_out(means).set_index("problem")
    # of p1: others are 0.47 as shipped, 0.87 and 0.43; of the odd one 0.5, 0.3, 0.6
    assert fair["setting"].to_dict() == {"p1": "a 2", "p2": "a 2", "p3": "a 2",
                                         "odd": "a 1"}  # fmt: skip
    assert fair["mean"].to_dict() == pytest.approx(
        {"p1": 0.6, "p2": 0.6, "p3": 0.6, "odd": 9.0}
    )
    assert (fair["tuning"] == ranking.LEFT_OUT).all()
    rows = defaults.summary(means).set_index("setting")
    assert rows["chosen"].to_dict() == {"a 2": 3, "as shipped": 0, "a 1": 1}
    assert rows["mean"].to_dict() == pytest.approx(
        {"a 2": 0.475, "as shipped": 0.475, "a 1": 0.725}
    )


def test_a_data_sets_own_runs_have_no_say_in_its_default():
    before = defaults.settings(runs(MANY), {}).pipe(
        lambda t: t.assign(data=t["problem"])
    )
    changed = {**MANY, "p1": tried(0.0, [0.0], [9.0])}
    after = defaults.settings(runs(changed), {}).pipe(
        lambda t: t.assign(data=t["problem"])
    )
    chosen = [
        defaults.left_out(one).set_index("problem")["setting"]
        for one in (before, after)
    ]
    assert chosen[0]["p1"] == chosen[1]["p1"]
    assert chosen[0]["p2"] != chosen[1]["p2"]  # but in those of others


def test_problems_of_the_same_records_are_left_out_together():
    means = defaults.settings(runs(MANY), {}).pipe(
        lambda t: t.assign(data="same")
    )
    assert {*defaults.left_out(means)["setting"]} == {defaults.SHIPPED}


def test_a_setting_that_is_refused_counts_as_the_worst():
    made = runs(
        {name: tried(0.5, [0.1], [0.6]) for name in ("p1", "p2", "p3")}
    )
    refused = made["setting"].eq("a 1") & made["problem"].ne("p1")
    made.loc[refused, ["status", "excess"]] = ["gap", np.nan]
    means = defaults.settings(made, {}).pipe(
        lambda t: t.assign(data=t["problem"])
    )
    assert {*defaults.left_out(means)["setting"]} == {defaults.SHIPPED}
    wide = defaults.by_epsilon(means).set_index(["problem", "setting"])
    assert wide.loc[("p1", "a 1"), "epsilon 1"] == pytest.approx(0.1)
    assert wide.loc[("p1", "as shipped"), "epsilon 1"] == pytest.approx(0.5)


# --- what cannot be learned -----------------------------------------------------------


def ended(tests):
    """Both ends of every data set, with their held-out metrics."""
    return pd.DataFrame([
        {"problem": name, "data": name, "algorithm": race.REFERENCES[end], "test": test,
         "epsilon": math.nan, "tuning": None, "solver": end, "accuracy": 0.7,
         "loss": "logistic", "status": "ok", "n": 100.0, "p": 10.0, "mean": 1.0}
        for name, both in tests.items()
        for end, test in zip(("constant", "no privacy"), both, strict=True)
    ])  # fmt: skip


def test_data_on_which_nothing_can_be_learned_are_named_and_not_counted(
    monkeypatch,
):
    errors = {"good": {"A": 0.5}, "poor": {"A": 1.5}, "empty": {"A": 0.2}}
    parts = [table(errors, name, n=100.0) for name in tables.ALL_TUNINGS]
    ends = ended({"good": (0.5, 0.9), "poor": (0.5, 0.6), "empty": (0.5, 0.5)})
    made = pd.concat([*parts, ends])
    monkeypatch.setattr(tables, "outcomes", lambda swept, inputs: made)
    assert tables.unlearnable(made) == ["empty"]
    assert {*tables.counted(None, None)["data"]} == {"good", "poor"}
    *rows, last = tables.nothing(None, None).to_dict("records")
    assert last["none"] == 1 and last["problems"] == "empty"
    assert len(rows) == 3
    for row in rows:
        assert (row["cells"], row["none"], row["problems"]) == (2, 1, "poor")
        assert (row["from"], row["to"]) == (0.0, 30.0)


def test_balance_has_both_methods_and_the_smaller_class(monkeypatch):
    errors = {"one": {"dp_gram": 0.5, "objective_perturbation": 0.2}}
    made = pd.concat(
        [table(errors, ranking.LEFT_OUT), ended({"one": (0.5, 0.9)})]
    )
    made["accuracy"] = made["accuracy"].fillna(0.8)
    monkeypatch.setattr(tables, "outcomes", lambda swept, inputs: made)
    (row,) = tables.balance(None, None).to_dict("records")
    assert (row["auc_metric"], row["auc_tilted"]) == (0.5, 0.8)
    assert row["smaller"] == pytest.approx(0.3) and row["p"] == 10.0


def test_means_of_the_same_runs_are_made_once(monkeypatch):
    runs = table(THREE).assign(excess=lambda rows: rows["mean"], run_seed=1)
    made = []
    real = race.means
    monkeypatch.setattr(
        race, "means", lambda *given: made.append(given) or real(*given)
    )
    first = defaults.means(runs, {"A": "a"})
    pd.testing.assert_frame_equal(
        first, real(runs, {"A": "a"}), check_exact=True
    )
    assert len(made) == 3  # solvers
    first.loc[:, "mean"] = 0.0  # a product may change what it is given
    again = defaults.means(runs[runs["solver"] != "B"], {"A": "a"})
    others = real(runs[runs["solver"] != "B"], {"A": "a"})
    pd.testing.assert_frame_equal(again, others, check_exact=True)
    assert len(made) == 3
    defaults.means(runs.assign(excess=0.5), {"A": "a"})
    defaults.means(runs, {"A": "b"})
    assert len(made) == 3 + 3 + 1
