from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from dperm.report import rules
from dperm.report.evidence import Estimate, MissingError
from dperm.report.rules import curves, levels
from dperm.report.verdicts import CAVEAT, NOT, REPRODUCED, Range

from .conftest import write

PAIR = {"over": {"algorithm": "slow"}, "under": {"algorithm": "quick"}}


@pytest.mark.parametrize(
    ("value", "low", "high", "verdict"),
    [
        (12, 11, 13, REPRODUCED),
        (12, 4, 20, CAVEAT),  # the interval leaves the looser target
        (7, 6, 8, CAVEAT),
        (4, 3, 5, NOT),
    ],
)
def test_a_number_is_in_its_target_or_near_it(value, low, high, verdict):
    target = Range.of(at_least=10, nearly=5)
    assert target.verdict(Estimate(value, low, high)) == verdict


def test_without_a_looser_target_the_interval_must_be_inside():
    assert Range.of(at_least=1).verdict(Estimate(1.5, 1.1, 2)) == REPRODUCED
    assert Range.of(at_least=1).verdict(Estimate(1.5, 0.9, 2)) == CAVEAT
    assert Range.of(at_most=1).verdict(Estimate(1.5, 0.9, 2)) == NOT


def test_ratio_takes_the_best_setting_of_each(evidence):
    found = levels.ratio(
        evidence, "table", each="problem", best="mean", at_least=10, nearly=5, **PAIR
    )
    assert found.verdict == NOT  # b: 1.25
    assert "1 of 2 hold" in found.reason
    assert found.reproduced.value == pytest.approx(1.25)
    some = levels.ratio(
        evidence, "table", each="problem", best="mean", at_least=10, need="any", **PAIR
    )
    assert some.verdict == REPRODUCED
    assert some.reproduced.value == pytest.approx(0.31 / 0.025)


def test_a_share_of_the_groups_may_be_enough(evidence):
    given = {"each": "problem", "best": "mean", "at_least": 10, **PAIR}
    assert levels.ratio(evidence, "table", need=0.5, **given).verdict == REPRODUCED
    assert levels.ratio(evidence, "table", need=0.6, **given).verdict == NOT


def test_a_group_without_result_leaves_a_caveat(config, evidence):
    rows = pd.read_csv(evidence.path("table"))
    write(config, "partly", rows[~((rows.problem == "b") & (rows.algorithm == "slow"))])
    found = levels.ratio(
        evidence, "partly", each="problem", best="mean", at_least=10, **PAIR
    )
    assert found.verdict == CAVEAT
    assert "missing b" in found.reason


def test_no_group_at_all_is_a_missing_result(evidence):
    with pytest.raises(MissingError):
        levels.ratio(
            evidence, "table", best="mean", at_least=1,
            over={"algorithm": "none"}, under={"algorithm": "quick"},
        )  # fmt: skip


def test_value_divides_by_another_column(config, evidence):
    data = {"algorithm": ["x", "y"], "true": [0.8, 10.5], "target": [1.0, 10.0]}
    write(config, "noise", pd.DataFrame(data))
    given = {"each": "algorithm", "value": "true", "per": "target", "at_most": 1.0}
    found = levels.value(evidence, "noise", **given)
    assert found.verdict == NOT
    assert found.reproduced.value == pytest.approx(1.05)
    one = levels.value(evidence, "noise", where={"algorithm": "x"}, **given)
    assert one.verdict == REPRODUCED


@pytest.mark.parametrize(
    ("values", "verdict"),
    [([4.0, 2.0, 1.0], REPRODUCED), ([4.0, 4.1, 1.0], CAVEAT), ([1.0, 2.0, 3.0], NOT)],
)
def test_monotone_judges_the_largest_step_against_the_order(
    config, evidence, values, verdict
):
    write(config, "k", pd.DataFrame({"K": [2, 4, 8], "mean": values}))
    assert curves.monotone(evidence, "k", along="K", slack=1.05).verdict == verdict
    rising = curves.monotone(evidence, "k", along="K", falling=False, slack=1.05)
    assert (rising.verdict == REPRODUCED) == (values == [1.0, 2.0, 3.0])


def test_monotone_wants_every_named_value(config, evidence):
    write(config, "k", pd.DataFrame({"K": [2, 4], "mean": [2.0, 1.0]}))
    with pytest.raises(MissingError, match="no row"):
        curves.monotone(evidence, "k", along="K", order=[2, 4, 8])


def test_flat_says_whether_a_parameter_matters(config, evidence):
    write(config, "m", pd.DataFrame({"algorithm": ["p", "q"], "mean": [1.0, 1.2]}))
    assert curves.flat(evidence, "m").verdict == REPRODUCED
    assert curves.flat(evidence, "m", within=1.1).verdict == CAVEAT
    assert curves.flat(evidence, "m", at_least=1.5, nearly=1.3).verdict == NOT
    assert curves.flat(evidence, "m", at_least=1.1, nearly=1.0).verdict == REPRODUCED


def test_slope_finds_the_exponent(config, evidence):
    n = np.array([100.0, 1000.0, 10000.0, 100000.0])
    write(config, "law", pd.DataFrame({"x": n, "mean": 3 * n**-0.5}))
    found = curves.slope(evidence, "law", at_least=-0.6, at_most=-0.4)
    assert found.verdict == REPRODUCED
    assert found.reproduced.value == pytest.approx(-0.5)
    steep = curves.slope(evidence, "law", at_least=-1.1, at_most=-0.9)
    assert steep.verdict == NOT


@pytest.mark.parametrize(
    ("hits", "runs", "verdict"), [(0, 80, REPRODUCED), (0, 10, CAVEAT), (1, 80, NOT)]
)
def test_never_needs_no_hit_and_enough_runs(config, evidence, hits, runs, verdict):
    write(config, "wrong", pd.DataFrame({"hit": [hits, 0], "run": [runs - 5, 5]}))
    found = levels.never(evidence, "wrong", hits="hit", runs="run", at_most=0.05)
    assert found.verdict == verdict
    if not hits:  # Clopper and Pearson at zero hits
        assert found.reproduced.high == pytest.approx(1 - 0.025 ** (1 / runs))


def test_fewer_compares_the_amounts_to_the_same_error(evidence):
    found = curves.fewer(
        evidence, "table", where={"problem": "a"},
        first={"algorithm": "quick"}, second={"algorithm": "slow"}, at_least=2,
    )  # fmt: skip
    assert found.reproduced.value == 2.5  # 5 passes against 2
    assert found.verdict == REPRODUCED
    back = curves.fewer(
        evidence, "table", where={"problem": "a"},
        first={"algorithm": "slow"}, second={"algorithm": "quick"},
    )  # fmt: skip
    assert back.verdict == NOT
    assert back.reproduced.value == 0


def test_long_lists_are_cut_to_what_fails_and_the_range(config, evidence):
    data = {"name": [f"n{i}" for i in range(30)], "mean": [float(i) for i in range(30)]}
    write(config, "many", pd.DataFrame(data))
    found = levels.value(evidence, "many", each="name", at_most=27.5)
    assert "n28: 28; n29: 29; range n0: 0 to n29: 29" in found.reason
    assert "28 of 30 hold" in found.reason


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("guess", {}, "rule: expected one of .*found 'guess'"),
        ("ratio", {"file": "x", "over": {}, "under": {}, "atleast": 1}, "atleast"),
        ("ratio", {"file": "x"}, "missing"),
    ],
)
def test_options_are_checked_before_anything_is_read(config, name, options, text):
    with pytest.raises(ValueError, match=text):
        rules.check(config, name, options)


def test_infinity_is_a_number_that_can_be_judged(config, evidence):
    write(config, "e", pd.DataFrame({"epsilon": [math.inf]}))
    found = levels.value(evidence, "e", value="epsilon", at_most=1.0)
    assert found.verdict == NOT
