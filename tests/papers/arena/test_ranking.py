"""Rankings: gaps are no bad scores, intervals draw problems, advice is held out."""

import math

import numpy as np
import pandas as pd
import pytest

from dperm.compare.results import recommendations
from dperm.papers.arena import figures, outcomes, own, ranking, tables


def table(errors, tuning="grid", epsilon=1.0):
    rows = []
    for problem, own_errors in errors.items():
        for method, value in own_errors.items():
            gap = value is None
            rows.append({
                "problem": problem, "data": problem,
                "algorithm": method, "solver": method,
                "epsilon": math.nan if gap else epsilon,
                "tuning": None if gap else tuning,
                "public_scales": True, "mean": value, "median": value,
                "ci_low": value, "ci_high": value, "test_mean": math.nan,
                "test_metric": None, "true_epsilon": 1.0,
                "status": "gap" if gap else "ok",
            })  # fmt: skip
    return pd.DataFrame(rows)


THREE = {
    "one": {"A": 0.1, "B": 0.2, "C": 0.4},
    "two": {"A": 0.3, "B": 0.1, "C": None},
    "three": {"A": 0.1, "B": 0.5, "C": math.inf},
}


def test_a_pick_is_as_sure_as_the_data_sets_agree():
    """A is best on all small problems; on large ones B on half of the data sets."""
    errors, sizes = {}, {}
    for k in range(8):
        errors[f"small{k}"] = {"A": 0.1, "B": 0.2, "C": 0.05 if k == 0 else None}
        errors[f"large{k}"] = {"A": 0.1, "B": 0.09 if k % 2 else 0.11}
    for name in errors:
        n = 50.0 if name.startswith("small") else 2000.0
        sizes[name] = {"n": n, "p": 10.0, "loss": "logistic", "zero": 1.0, "floor": 1.0}
    known = pd.DataFrame.from_dict(sizes, orient="index")
    cells = ranking.cells(table(errors))
    found = ranking.picks(cells, known)
    assert {*found["low"]} == {0.0, 30.0} and {*found["algorithm"]} == {"A", "B"}
    sure = found.set_index(["low", "algorithm"])
    assert sure.loc[(0.0, "A"), "share"] == 1.0  # C does one of the data sets
    assert 0.2 < sure.loc[(30.0, "B"), "share"] < 0.8
    assert sure.loc[(0.0, "A"), "regret"] == pytest.approx(2 ** (1 / 8))
    hopeless = known.assign(zero=0.01, floor=0.01)
    taken = ranking.picks(cells, hopeless)["algorithm"]
    assert {*taken} == {ranking.FLOOR_METHOD}
    figure, rows = figures.drawn_guide(found)
    texts = [one.get_text() for one in figure.axes[0].texts]
    assert "100%\nerror 1.1 x least" in texts and len(rows) == 3


def test_a_method_has_learnt_where_it_beats_the_floor_of_a_problem_that_it_can_do():
    cells = ranking.cells(table(THREE))
    known = pd.DataFrame(
        {"loss": "logistic", "floor": [0.15, 0.2, 0.0], "zero": 0.3}, index=[*THREE]
    )  # a floor of 0 is no floor: zero counts
    found = ranking.learnt(ranking.with_floor(cells, known, ()), known["loss"])
    shares = found.set_index("algorithm")["mean"]
    assert shares.to_dict() == {"A": 2 / 3, "B": 1 / 3, "C": 0.0}
    assert found.set_index("algorithm")["cells"].to_dict() == {"A": 3, "B": 3, "C": 2}
    assert (found["ci_low"] <= found["mean"]).all() and {*found["x"]} == {1.0}


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


def test_a_method_that_diverges_is_last_and_no_gap():
    errors = ranking.cells(table(THREE))
    assert errors["C"].iloc[2] == math.inf
    assert ranking.shares(errors)["C"].iloc[2] == 1


def test_ranks_say_the_seconds_of_their_own_tuning_and_kind_of_scales(monkeypatch):
    kinds = {("grid", True): 1.0, ("grid", False): 2.0, ("paid", True): 4.0}
    every = pd.concat([
        table(THREE, tuning).assign(public_scales=public, seconds=seconds)
        for (tuning, public), seconds in kinds.items()
    ])  # fmt: skip
    monkeypatch.setattr(outcomes, "contest", lambda config: every)
    found = tables.ranks(None, None, [])
    said = found.groupby(["tuning", "public_scales"])["seconds"].unique()
    assert {key: [*value] for key, value in said.items()} == {
        key: [value] for key, value in kinds.items()
    }


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


def test_advice_is_the_method_of_least_regret():
    """A fits two of three problems, and is twenty times off on the third."""
    errors = {name: {"A": 0.1, "B": 0.2} for name in ("one", "two")}
    errors["odd"] = {"A": 2.0, "B": 0.1}
    sizes = pd.DataFrame({"n": 1000, "p": 10, "loss": "logistic"}, index=[*errors])
    (row,) = ranking.advice(ranking.cells(table(errors)), sizes)
    assert row["take"] == "B" and row["cells"] == 3 and row["best"] == 1
    assert row["regret"] == pytest.approx(4 ** (1 / 3))


def test_declared_scales_are_compared_at_their_epsilon():
    """At epsilon 1 both rankings agree; that of another epsilon is no part of it."""
    turned = {name: {"A": 0.9, "B": 0.1, "C": 0.5} for name in THREE}
    some = [table(THREE), table(turned, epsilon=10.0), table(turned, epsilon=3.0)]
    declared = table(THREE).assign(public_scales=False)
    rows = {row["choice"]: row for row in ranking.changes(pd.concat([*some, declared]))}
    assert rows["scales"]["kendall_tau"] == pytest.approx(1.0)


def test_groups_are_of_one_loss_and_budget():
    both = pd.concat([table(THREE), table(THREE, epsilon=10.0)])
    sizes = pd.DataFrame({"n": [1000, 1000, 1000], "p": [10, 100, 10],
                          "loss": ["logistic", "logistic", "least squares"]},
                         index=["one", "two", "three"])  # fmt: skip
    found = [(kind["loss"], kind["from"], len(some))
             for kind, some in ranking.groups(ranking.cells(both), sizes)]  # fmt: skip
    assert found == [("logistic", 0.0, 1), ("logistic", 30.0, 2),
                     ("logistic", 1000.0, 1), ("least squares", 30.0, 1),
                     ("least squares", 1000.0, 1)]  # fmt: skip


def test_overtaking_is_counted_for_every_price_of_tuning():
    paid = {"one": {"A": 0.1, "B": 0.05}, "two": {"A": 0.3, "B": 0.1}}
    both = pd.concat([table(THREE), table(paid, "paid")])
    found = ranking.overtaken(both, "A", ["B"])
    ahead = {row["tuning"]: row["ahead"] for row in found}
    assert ahead == {"grid": pytest.approx(1 / 3), "paid": 1.0}


def test_changes_of_nothing_change_nothing():
    some = pd.concat(
        [table(THREE, tuning) for tuning in ("grid", "default", "ten", "paid")]
    )
    for row in ranking.changes(some):
        assert row["kendall_tau"] == pytest.approx(1.0)


# --- sentences ------------------------------------------------------------------------


def measured(*rows):
    keys = ("algorithm", "mean", "ci_low", "ci_high")
    found = [dict(zip(keys, row, strict=True)) for row in rows]
    return pd.DataFrame(
        [{**row, "tuning": tuning, "status": "ok", "true_epsilon": 1.0}
         for row in found for tuning in own.FREE]
    )  # fmt: skip


def test_whom_to_take_and_who_is_as_good():
    some = measured(
        ("A", 0.3, 0.2, 0.4), ("B", 0.1, 0.08, 0.12), ("C", 0.13, 0.11, 0.15)
    )
    (first, second) = recommendations(some, 0.5, own.FREE)
    assert first.startswith("without tuning: take B, relative error 0.1 [0.08, 0.12]")
    assert first.endswith("not significantly worse: C") and second.startswith(
        "grid paid for"
    )


def test_nothing_is_recommended_that_w_zero_does_as_well():
    (first, _) = recommendations(measured(("A", 0.3, 0.2, 0.6)), 0.5, own.FREE)
    assert (
        "none is significantly better than w = 0 (0.5)" in first and "take" not in first
    )


def test_a_table_without_numbers_says_so():
    empty = measured(("A", math.inf, math.inf, math.inf))
    assert recommendations(empty, 0.5, own.FREE)[0].endswith(
        "no method meets the target"
    )


def test_a_choice_by_range_beats_fixed_advice_and_a_shuffled_control():
    """A is right where n epsilon / p is large, B where it is small."""
    rows = []
    for k in range(8):
        for epsilon in (0.1, 100.0):
            good, bad = ("A", "B") if epsilon > 1 else ("B", "A")
            own = {f"p{k}": {good: 0.1, bad: 0.5, "C": 0.3}}
            rows.append(table(own, epsilon=epsilon))
    errors = ranking.cells(pd.concat(rows, ignore_index=True))
    known = {"n": 1000.0, "p": 10.0, "loss": "logistic", "floor": 2.0, "zero": 2.0}
    sizes = pd.DataFrame(known, index=[f"p{k}" for k in range(8)])
    found = ranking.model(errors, sizes).set_index("choice")
    assert found.loc["by range", "regret"] == pytest.approx(1.0)
    assert found.loc["fixed", "regret"] > 2 and found.loc["control", "regret"] > 1.5
    assert (found["above_floor"] == 0).all() and found.loc["by range", "data_sets"] == 8
    low = sizes.assign(floor=0.05)  # nothing is better than the mean: it is taken
    assert ranking.model(errors, low).set_index("choice").loc["fixed", "regret"] == 1
    assert ranking.model(errors, sizes, [f"p{k}" for k in range(8)]).empty


def test_cells_far_from_all_others_count_in_the_cost_of_the_choice():
    """Ten near problems prefer A; the far one is beyond C, and A is four times off."""
    errors = {f"p{k}": {"C": 0.3, "A": 0.1, "B": 0.2} for k in range(10)}
    errors["far"] = {"C": None, "A": 0.4, "B": 0.1}
    known = {"n": 1000.0, "p": 10.0, "loss": "logistic", "floor": 2.0, "zero": 2.0}
    sizes = pd.DataFrame(known, index=[*errors])
    sizes.loc["far", "p"] = 1e6
    found = ranking.model(ranking.cells(table(errors)), sizes).set_index("choice")
    assert found["regret"].tolist() == pytest.approx([4 ** (1 / 11)] * 3)
    assert (found["data_sets"] == 11).all() and found["ci_low"].notna().all()


def test_problems_have_one_size_however_often_their_ends_are_drawn(monkeypatch):
    ends = pd.DataFrame({"problem": "a", "end": ["zero", "mean"] * 2, "n": 9, "p": 2,
                         "support": 1, "relative_error": [3.0, 2.0] * 2})  # fmt: skip
    monkeypatch.setattr(tables, "load_sweep", lambda config, name: ends)
    monkeypatch.setattr(tables, "kind_of", lambda config, name: "logistic")
    (row,) = tables.sizes(None).to_dict("records")
    assert (row["zero"], row["floor"], row["n"]) == (3.0, 2.0, 9)
