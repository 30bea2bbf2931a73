from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from dperm.core.experiment import schema
from dperm.kinds.proofs import Case
from dperm.report import rules
from dperm.report.evidence import (
    CAVEAT,
    NOT,
    REPRODUCED,
    UNDECIDED,
    AbsentError,
    Estimate,
    Evidence,
    MissingError,
    Range,
    together,
)
from dperm.report.rules import OutsideError, measures

from .conftest import write

PAIR = {"over": {"algorithm": "slow"}, "under": {"algorithm": "quick"}}


@pytest.mark.parametrize(
    ("value", "low", "high", "verdict"),
    [
        (12, 11, 13, REPRODUCED),
        (12, 4, 20, UNDECIDED),  # the interval leaves the looser target
        (7, 6, 8, CAVEAT),
        (4, 3, 6, UNDECIDED),
        (4, 3, 4.5, NOT),
    ],
)
def test_a_number_is_in_its_target_or_near_it(value, low, high, verdict):
    target = Range.of(at_least=10, nearly=5)
    assert target.verdict(Estimate(value, low, high)) == verdict


def test_without_a_looser_target_the_interval_must_be_inside():
    assert Range.of(at_least=1).verdict(Estimate(1.5, 1.1, 2)) == REPRODUCED
    assert Range.of(at_least=1).verdict(Estimate(1.5, 0.9, 2)) == UNDECIDED
    assert Range.of(at_most=1).verdict(Estimate(1.5, 0.9, 2)) == UNDECIDED
    assert Range.of(at_most=1).verdict(Estimate(1.5, 1.1, 2)) == NOT


def test_a_tie_is_no_lead():
    tie = Estimate.exactly(1.0)
    assert Range.of(at_least=1).verdict(tie) == REPRODUCED
    assert Range.of(above=1).verdict(tie) == NOT
    assert Range.of(below=1).verdict(tie) == NOT


def test_ratio_takes_the_best_setting_of_each(evidence):
    found = measures.ratio(
        evidence, "table", each="problem", best="mean", at_least=10, nearly=5, **PAIR
    )
    assert found.verdict == NOT  # b: 1.25 [0.6, 2.6]
    assert "1 of 2 hold" in found.reason
    assert found.reproduced.value == pytest.approx(1.25)
    some = measures.ratio(
        evidence, "table", each="problem", best="mean", at_least=10, need="any", **PAIR
    )
    assert some.verdict == REPRODUCED
    assert some.reproduced.value == pytest.approx(0.31 / 0.025)


def test_a_share_of_the_groups_may_be_enough(evidence):
    given = {"each": "problem", "best": "mean", "at_least": 10, **PAIR}
    assert measures.ratio(evidence, "table", need=0.5, **given).verdict == REPRODUCED
    assert measures.ratio(evidence, "table", need=0.6, **given).verdict == NOT


def test_a_group_without_result_leaves_a_caveat(config, evidence):
    rows = pd.read_csv(evidence.path("table"))
    write(config, "partly", rows[~((rows.problem == "b") & (rows.algorithm == "slow"))])
    found = measures.ratio(
        evidence, "partly", each="problem", best="mean", at_least=10, **PAIR
    )
    assert found.verdict == CAVEAT
    assert "missing b" in found.reason


def test_no_group_at_all_is_a_missing_result(evidence):
    with pytest.raises(MissingError):
        measures.ratio(
            evidence, "table", best="mean", at_least=1,
            over={"algorithm": "none"}, under={"algorithm": "quick"},
        )  # fmt: skip


def test_value_divides_by_another_column(config, evidence):
    data = {"algorithm": ["x", "y"], "true": [0.8, 10.5], "target": [1.0, 10.0]}
    write(config, "noise", pd.DataFrame(data))
    given = {"each": "algorithm", "value": "true", "per": "target", "at_most": 1.0}
    found = measures.value(evidence, "noise", **given)
    assert found.verdict == NOT
    assert found.reproduced.value == pytest.approx(1.05)
    one = measures.value(evidence, "noise", where={"algorithm": "x"}, **given)
    assert one.verdict == REPRODUCED


@pytest.mark.parametrize(
    ("values", "verdict"),
    [([4.0, 2.0, 1.0], REPRODUCED), ([4.0, 4.1, 1.0], CAVEAT), ([1.0, 2.0, 3.0], NOT)],
)
def test_monotone_judges_the_largest_step_against_the_order(
    config, evidence, values, verdict
):
    write(config, "k", pd.DataFrame({"K": [2, 4, 8], "mean": values}))
    assert measures.monotone(evidence, "k", along="K", slack=1.05).verdict == verdict
    rising = measures.monotone(evidence, "k", along="K", falling=False, slack=1.05)
    assert (rising.verdict == REPRODUCED) == (values == [1.0, 2.0, 3.0])


def test_monotone_wants_every_named_value(config, evidence):
    write(config, "k", pd.DataFrame({"K": [2, 4], "mean": [2.0, 1.0]}))
    with pytest.raises(MissingError, match="no row"):
        measures.monotone(evidence, "k", along="K", order=[2, 4, 8])


def test_monotone_judges_the_step_of_the_worst_verdict(config, evidence):
    rows = {"K": [2, 4, 8], "mean": [1.0, 0.95, 0.855],
            "ci_low": [0.999, 0.949, 0.4], "ci_high": [1.001, 0.951, 1.3]}  # fmt: skip
    write(config, "k", pd.DataFrame(rows))
    assert measures.monotone(evidence, "k", along="K").verdict == UNDECIDED


START = {"level": 1.0}


def test_flatness_is_measured_against_what_was_learnt(config, evidence):
    def judged(values, half=0.001, **target):
        rows = {"algorithm": list("pqr"), "mean": values,
                "ci_low": [v - half for v in values],
                "ci_high": [v + half for v in values]}  # fmt: skip
        write(config, "m", pd.DataFrame(rows))
        return measures.flat(evidence, "m", START, **(target or {"at_most": 0.1}))

    assert judged([0.50, 0.51, 0.52]).verdict == REPRODUCED  # 0.02 of a drop of 0.5
    near = judged([0.97, 0.99, 0.98])  # as flat in ratio, on a drop of 0.03
    assert near.verdict == NOT and near.reproduced.value == pytest.approx(2 / 3)
    with pytest.raises(MissingError, match="nothing was learnt"):
        judged([1.0, 1.0, 1.0])
    assert judged([0.5, 0.6, 0.5], half=0.1).verdict == UNDECIDED
    judged([0.50, 0.51, 0.52])
    one = measures.flat(evidence, "m", START, at_most=0.1, at_start=True)
    assert one.verdict == NOT and one.reproduced.value == 1.0


def test_rules_that_differ_need_intervals_that_do(config, evidence):
    rows = {"algorithm": list("pq"), "mean": [1.0, 2.0], "ci_low": [0.4, 1.9],
            "ci_high": [1.6, 2.1]}  # fmt: skip
    write(config, "d", pd.DataFrame(rows))
    given = {"along": "algorithm", "at_least": 1.25}
    assert measures.differ(evidence, "d", **given).verdict == UNDECIDED
    write(
        config, "d", pd.DataFrame(rows | {"ci_low": [0.9, 1.9], "ci_high": [1.1, 2.1]})
    )
    assert measures.differ(evidence, "d", **given).verdict == REPRODUCED


def test_an_order_within_the_intervals_is_undecided(config, evidence):
    rows = {"K": [2, 4], "mean": [1.0, 0.99], "ci_low": [0.9, 0.9],
            "ci_high": [1.1, 1.1]}  # fmt: skip
    write(config, "k", pd.DataFrame(rows))
    assert measures.monotone(evidence, "k", along="K").verdict == UNDECIDED


def test_slope_finds_the_exponent(config, evidence):
    n = np.array([100.0, 1000.0, 10000.0, 100000.0])
    write(config, "law", pd.DataFrame({"x": n, "mean": 3 * n**-0.5}))
    found = measures.slope(evidence, "law", at_least=-0.6, at_most=-0.4)
    assert found.verdict == REPRODUCED
    assert found.reproduced.value == pytest.approx(-0.5)
    steep = measures.slope(evidence, "law", at_least=-1.1, at_most=-0.9)
    assert steep.verdict == NOT


@pytest.mark.parametrize(
    ("hits", "runs", "verdict"), [(0, 80, REPRODUCED), (0, 10, UNDECIDED), (1, 80, NOT)]
)
def test_never_needs_no_hit_and_enough_runs(config, evidence, hits, runs, verdict):
    rows = {"hit": [hits, 0], "run": [runs - 5, 5], "right": [1.0, 0.0]}
    write(config, "wrong", pd.DataFrame(rows))
    given = {"hits": "hit", "found": "right", "runs": "run", "at_most": 0.05}
    found = measures.never(evidence, "wrong", **given)
    assert found.verdict == verdict
    if not hits:  # Clopper and Pearson at zero hits
        assert found.reproduced.high == pytest.approx(1 - 0.025 ** (1 / runs))


def test_never_by_finding_nothing_is_no_achievement(config, evidence):
    write(config, "wrong", pd.DataFrame({"hit": [0, 0], "right": [2.0, 1.0]}))
    assert measures.never(evidence, "wrong", "hit", "right").verdict == REPRODUCED
    write(config, "wrong", pd.DataFrame({"hit": [0, 0], "right": [0.0, 0.0]}))
    assert measures.never(evidence, "wrong", "hit", "right").verdict == NOT


def test_fewer_compares_the_amounts_to_the_same_error(evidence):
    found = measures.fewer(
        evidence, "table", where={"problem": "a"},
        first={"algorithm": "quick"}, second={"algorithm": "slow"}, at_least=2,
    )  # fmt: skip
    assert found.reproduced.value == 2.5  # 5 passes against 2
    assert found.verdict == REPRODUCED
    back = measures.fewer(
        evidence, "table", where={"problem": "a"},
        first={"algorithm": "slow"}, second={"algorithm": "quick"}, above=1,
    )  # fmt: skip
    assert back.verdict == NOT
    assert back.reproduced.value == 0


def test_fewer_wants_every_expected_amount(config):
    ask = {"first": {"algorithm": "quick"}, "second": {"algorithm": "slow"}}
    claim = schema.Claim("", "", "fewer", expects={"passes": [2.0, 5.0, 10.0]})
    evidence = Evidence(config, claim=claim)
    with pytest.raises(AbsentError, match="no row of passes 10"):
        measures.fewer(evidence, "table", where={"problem": "a"}, above=1, **ask)


def test_a_choice_without_an_error_is_not_left_out(config, evidence):
    rows = {"problem": ["a", "b"], "step": [0.1, 9.9], "mean": [0.1, np.nan]}
    write(config, "steps", pd.DataFrame(rows))
    write(config, "start", pd.DataFrame({"problem": ["a", "b"], "start": [1.0, 1.0]}))
    learnt = {"file": "start", "keys": ["problem"], "share": 0.5}
    with pytest.raises(AbsentError, match="empty cell of mean"):
        measures.inside(evidence, "steps", "step", 0.01, 10, learnt=learnt)


def test_a_ratio_over_what_may_be_0_has_no_upper_end():
    far = Estimate(2.0, 1.0, 3.0).over(Estimate(1.0, -0.5, 2.5))
    assert far.high == math.inf and far.low > 0
    assert Estimate(1.0, -0.5, 2.5).over(Estimate(2.0, 1.0, 3.0)).low == 0


def test_most_groups_must_decide_something():
    found = {name: Estimate.exactly(1.0) for name in "ab"}
    found |= {name: MissingError("0 of 5 below half") for name in "cde"}
    assert together(found, Range.of(at_most=2), "all").verdict == UNDECIDED
    del found["e"]
    assert together(found, Range.of(at_most=2), "all").verdict == CAVEAT


def test_a_target_is_shown_as_the_claim_states_it():
    assert str(Range.of(above=0, at_most=0.9)) == "above 0 and at most 0.900"
    assert str(Range.of(below=1)) == "below 1"
    assert str(Range.of(at_least=2, nearly=1)) == "at least 2"


def test_an_argument_without_a_number_proves_nothing(evidence):
    with pytest.raises(MissingError, match="no number"):
        measures._worst(lambda x: Case(x, 1.0, ""), 1.0, {"x": [0.5, math.nan]}, "")


def test_who_makes_no_progress_sets_no_goal(config, evidence):
    rows = [("idle", 0.0, 1.0), ("idle", 0.001, 1.0), ("busy", 0.0, 1.0),
            ("busy", 1.0, 0.1)]  # fmt: skip
    write(config, "time", pd.DataFrame(rows, columns=["algorithm", "x", "mean"]))
    with pytest.raises(MissingError, match="no progress"):
        measures.fewer(
            evidence, "time", along="x", above=1,
            first={"algorithm": "busy"}, second={"algorithm": "idle"},
        )  # fmt: skip


def test_a_bound_speaks_only_within_its_preconditions(config, evidence):
    rows = {"excess": [0.5, 0.4], "bound": [2.0, 1.0], "start": [0.9, 0.9],
            "epochs": [-3.0, 2.0]}  # fmt: skip
    write(config, "theory", pd.DataFrame(rows))
    given = {"start": "start", "per": "bound", "requires": {"epochs": 0}}
    found = measures.bounded(evidence, "theory", **given)
    assert found.verdict == REPRODUCED and found.reproduced.value == 0.4
    assert found.reason.startswith("1 of 2 rows within the preconditions")
    write(config, "theory", pd.DataFrame(rows | {"epochs": [-3.0, -2.0]}))
    with pytest.raises(OutsideError, match="epochs >= 0"):
        measures.bounded(evidence, "theory", **given)


def test_equal_by_construction_bears_out_nothing(config, evidence):
    rows = {"name": list("pq"), "new": [2.0, 1.0], "old": [2.0, 4.0]}
    write(config, "bounds", pd.DataFrame(rows))
    found = measures.tighter(evidence, "bounds", "new", "old", each="name")
    assert found.verdict == CAVEAT and "1 of 2 equal by construction" in found.reason
    write(config, "bounds", pd.DataFrame(rows | {"old": [2.0, 1.0]}))
    with pytest.raises(OutsideError, match="by construction"):
        measures.tighter(evidence, "bounds", "new", "old", each="name")


def test_a_rate_is_judged_beside_the_local_one_of_its_bound(config, evidence):
    rows = {"exponent": [-0.33], "ci_low": [-0.34], "ci_high": [-0.32],
            "bound_exponent": [-0.30]}  # fmt: skip
    write(config, "rates", pd.DataFrame(rows))
    given = {"bound": "bound_exponent", "at_most": 0}
    assert measures.rate(evidence, "rates", **given).verdict == REPRODUCED
    write(config, "rates", pd.DataFrame(rows | {"bound_exponent": [-0.5]}))
    assert measures.rate(evidence, "rates", **given).verdict == NOT


def test_a_bound_beyond_its_target_is_no_breach(config, evidence):
    rows = {"p": [1.5, 2.0], "true": [1.2, 0.9], "target": [1.0, 1.0]}
    write(config, "noise", pd.DataFrame(rows))
    given = {"each": "p", "value": "true", "per": "target", "at_most": 1.0}
    assert measures.cost(evidence, "noise", **given).verdict == NOT
    exact = measures.cost(evidence, "noise", exact={"p": 2.0}, **given)
    assert exact.verdict == UNDECIDED
    write(config, "noise", pd.DataFrame(rows | {"true": [0.8, 1.2]}))
    breach = measures.cost(evidence, "noise", exact={"p": 2.0}, **given)
    assert breach.verdict == NOT


def test_falling_short_is_measured_by_what_the_other_learnt(config, evidence):
    def judged(first, second):
        rows = {"algorithm": ["dp", "fw"], "mean": [first, second]}
        write(config, "loss", pd.DataFrame(rows))
        return measures.short(
            evidence, "loss", {"algorithm": "dp"}, {"algorithm": "fw"}, start=1.0,
            above=0, at_most=0.9,
        )  # fmt: skip

    assert judged(0.8, 0.5).verdict == REPRODUCED  # 0.6 of the way
    assert judged(0.99, 0.5).verdict == NOT  # hardly any of it
    assert judged(0.4, 0.5).verdict == NOT  # below the other
    with pytest.raises(MissingError):
        judged(1.0, 1.0)


def test_no_lead_inside_the_band_of_the_controls_is_decided(config, evidence):
    rows = {"ratio": [0.93], "ci_low": [0.92], "ci_high": [0.94], "band": [1.11]}
    write(config, "near", pd.DataFrame(rows))
    given = {"value": "ratio", "below": 1}
    assert measures.lead(evidence, "near", **given).verdict == REPRODUCED
    assert measures.lead(evidence, "near", band="band", **given).verdict == UNDECIDED
    write(config, "far", pd.DataFrame(rows | {"band": [1.05]}))
    assert measures.lead(evidence, "far", band="band", **given).verdict == REPRODUCED


def test_directions_are_counted_where_they_are_decided(config, evidence):
    write(config, "said", pd.DataFrame({"right": ["yes"] * 6 + ["says nothing", None]}))
    found = measures.agree(evidence, "said", "right")
    assert found.verdict == REPRODUCED and "6 of 6" in found.reason
    write(config, "said", pd.DataFrame({"right": ["yes", "no", "yes", "no"]}))
    assert measures.agree(evidence, "said", "right").verdict == UNDECIDED
    rows = {"case": list("aabbccdd"), "right": ["yes"] * 7 + ["no"]}
    write(config, "said", pd.DataFrame(rows))
    found = measures.agree(evidence, "said", "right", per=["case"])
    assert "3 of 4 decided trials" in found.reason


def test_long_lists_are_cut_to_what_fails_or_the_range(config, evidence):
    data = {"name": [f"n{i}" for i in range(30)], "mean": [float(i) for i in range(30)]}
    write(config, "many", pd.DataFrame(data))
    found = measures.value(evidence, "many", each="name", at_most=27.5)
    assert found.reason == "expected at most 27.5; 28 of 30 hold; n28: 28; n29: 29"
    found = measures.value(evidence, "many", each="name", at_most=29)
    assert "30 of 30 hold; from n0: 0 to n29: 29" in found.reason


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("guess", {}, "rule: expected one of .*found 'guess'"),
        ("ratio", {"file": "x", "over": {}, "under": {}, "atleast": 1}, "atleast"),
        ("ratio", {"file": "x"}, "missing"),
        ("value", {"file": "x", "where": "all"}, "value: where: expected keys and"),
        ("value", {"file": "x", "at_most": "much"}, "value: at_most: expected a num"),
        ("value", {"file": "x", "best": [1]}, "value: best: expected text"),
    ],
)
def test_options_are_checked_before_anything_is_read(config, name, options, text):
    with pytest.raises(ValueError, match=text):
        rules.check(config, name, options)


def test_infinity_is_a_number_that_can_be_judged(config, evidence):
    write(config, "e", pd.DataFrame({"epsilon": [math.inf]}))
    found = measures.value(evidence, "e", value="epsilon", at_most=1.0)
    assert found.verdict == NOT
