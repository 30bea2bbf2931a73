"""Numbers with intervals, and the words of an expression, on tables made by hand."""

import math

import pandas as pd
import pytest

from dperm.judge.number import Absent, Idle, Missing, Number
from dperm.judge.words import WORDS, Words, columns, compiled, evaluated
from dperm.kinds.proofs import Case
from dperm.present.intervals import power, student

TUNED = pd.DataFrame(
    {
        "problem": ["a", "a", "b", "b"],
        "algorithm": ["DP-SGD", "DP-CD"] * 2,
        "mean": [8.0, 1.0, 3.0, 2.0],
        "ci_low": [7.0, 0.8, 2.5, 1.9],
        "ci_high": [9.0, 1.25, 3.5, 2.1],
    }
)
PASSES = pd.DataFrame(
    {
        "algorithm": ["CD"] * 3 + ["SGD"] * 3,
        "passes": [2.0, 10.0, 50.0] * 2,
        "mean": [0.5, 0.2, 0.1, 0.9, 0.6, 0.5],
    }
)
POINTS = pd.DataFrame({"x": [1.0, 2.0, 4.0, 8.0], "y": [1.0, 0.51, 0.24, 0.125]})


def found(expression, rows=TUNED, point=None, others=None, **more):
    """The number of an expression for some rows."""
    words = Words((others or {}).__getitem__, {}, point or {}, rows, **more)
    return evaluated(expression, words)


def of(problem):
    return TUNED[TUNED["problem"] == problem]


# --- numbers --------------------------------------------------------------------------


def test_a_ratio_adds_half_widths_in_logarithms():
    ratio = Number(8.0, 4.0, 16.0) / Number(2.0, 1.0, 4.0)
    spread = math.exp(math.hypot(math.log(2), math.log(2)))
    assert ratio.value == 4
    assert (ratio.low, ratio.high) == pytest.approx((4 / spread, 4 * spread))


def test_a_ratio_to_an_exact_number_is_a_change_of_scale():
    ratio = Number(-1.0, -3.0, 2.0) / 2
    assert (ratio.value, ratio.low, ratio.high) == (-0.5, -1.5, 1.0)


def test_a_part_that_may_be_zero_leaves_an_end_open():
    one, zero = Number(2.0, 1.0, 4.0), Number(2.0, 0.0, 4.0)
    assert (zero / one).low == 0
    assert math.isinf((one / zero).high)


@pytest.mark.parametrize("other", [0.0, -1.0, Number(-1.0, -2.0, 3.0)])
def test_there_is_no_ratio_to_what_is_not_positive(other):
    with pytest.raises(Idle, match="no ratio"):
        Number(2.0, 1.0, 4.0) / other


def test_differences_and_products():
    apart = Number(3.0, 2.0, 4.0) - Number(1.0, -1.0, 3.0)
    assert (apart.high - apart.low) / 2 == pytest.approx(math.hypot(2, 4) / 2)
    assert Number(3.0, 2.0, 5.0) - 1 == Number(2.0, 1.0, 4.0)
    assert 1 - Number(3.0, 2.0, 4.0) == Number(-2.0, -3.0, -1.0)
    assert 2 * Number(3.0, 2.0, 4.0) == Number(6.0, 4.0, 8.0)
    assert -Number(3.0, 2.0, 4.0) == Number(-3.0, -4.0, -2.0)


# --- cells ----------------------------------------------------------------------------


def test_at_reads_a_cell_with_its_interval():
    assert found('at(algorithm="DP-CD")', of("a")) == Number(1.0, 0.8, 1.25)
    assert found("mean", of("a")[:1]) == Number(8.0, 7.0, 9.0)
    ratio = found('at(algorithm="DP-SGD") / at(algorithm="DP-CD")', of("a"))
    assert ratio.value == 8 and ratio.low < 7 < 9 < ratio.high


def test_the_interval_of_x_is_x_low_and_x_high_and_of_a_mean_its_own():
    rows = pd.DataFrame({"share": [2.0], "n": [3], "share_low": [1.0]})
    rows = rows.assign(share_high=4.0)
    assert found("share", rows) == Number(2.0, 1.0, 4.0)
    assert found("n", rows) == Number(3.0, 3.0, 3.0)
    figure = pd.DataFrame(
        {
            "x": [1.0],
            "mean": [2.0],
            "min": 0.0,
            "max": 9.0,
            "ci_low": 1.5,
            "ci_high": 3.0,
        }
    )
    assert found("mean", figure) == Number(2.0, 1.5, 3.0)
    assert found("max", figure) == Number(9.0, 1.5, 3.0)  # ends that follow it


def test_fresh_runs_are_preferred_to_those_of_the_tuning():
    rows = of("a")[:1].assign(fresh_mean=5.0, fresh_ci_low=4.0, fresh_ci_high=6.0)
    assert found("at()", rows) == Number(5.0, 4.0, 6.0)


def test_rows_without_intervals_are_runs():
    rows = pd.DataFrame({"error": [1.0, 2.0, 4.0]})
    runs = found("error", rows)
    assert (runs.low, runs.high) == pytest.approx(student(rows["error"].to_numpy()))


def test_best_and_last_keep_a_row():
    assert found('at(best="mean")').value == 1
    assert found('at("y", last="x")', POINTS).value == 0.125


def test_of_reads_the_same_group_of_another_table():
    other = TUNED.assign(mean=TUNED["mean"] * 10)
    read = 'at(algorithm="DP-CD", of="strict")'
    number = found(read, of("b"), {"problem": "b"}, {"strict": other})
    assert number.value == 20


def test_what_is_missing_says_why():
    with pytest.raises(Absent, match="no row"):
        found('at(algorithm="DP-FW")', of("a"))
    with pytest.raises(Absent, match="no row of algorithm DP-FW"):
        found('at(best="mean", algorithm=["DP-CD", "DP-FW"])', of("a"))
    with pytest.raises(Missing, match="no column men"):
        found("men", of("a"))
    with pytest.raises(Missing, match="an empty cell"):
        found("mean", of("a")[:1].assign(mean=math.nan))
    with pytest.raises(Idle, match="nothing was learnt"):
        found("mean", of("a")[:1].assign(mean=math.nan, reason="nothing was learnt"))
    with pytest.raises(Idle, match="2 rows where one was expected"):
        found("mean", of("a"))


def test_text_may_be_contained():
    assert found('at(algorithm={"contains": "SGD"})', of("a")).value == 8


# --- other words ----------------------------------------------------------------------


def test_slope_is_the_exponent_of_a_power_law():
    number = found('slope("x", "y")', POINTS)
    expected = power(POINTS["x"].to_numpy(), POINTS["y"].to_numpy())
    assert (number.value, number.low, number.high) == pytest.approx(expected)
    with pytest.raises(Idle, match="fewer than three"):
        found('slope("x", "y")', POINTS[:2])


def test_shape_is_the_exponent_over_another_curve_where_anything_was_learnt():
    x = [1.0, 2.0, 4.0, 8.0, 16.0]
    excess = [1.0, 0.4, 0.2, 0.1, 0.05]
    rows = pd.DataFrame({"algorithm": "A", "x": x, "mean": excess})
    bound = pd.DataFrame({"algorithm": "A, bound", "x": x, "mean": [1 / i for i in x]})
    word = 'shape({"algorithm": algorithm + ", bound"}, of="f")'
    others = {"f": pd.concat([rows, bound])}
    number = found(word, rows, {"algorithm": "A"}, others)
    assert number.value == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(Idle, match="2 points"):
        found(word, rows[:3], {"algorithm": "A"}, others)


def test_fewer_counts_how_many_times_less_is_needed():
    word = 'fewer("passes", {"algorithm": "CD"}, {"algorithm": "SGD"})'
    assert found(word, PASSES).value == 25  # 2 passes for 0.5, which takes SGD 50
    back = 'fewer("passes", {"algorithm": "SGD"}, {"algorithm": "CD"})'
    assert found(back, PASSES).value == 0


def test_fewer_moves_the_ends_against_each_other():
    ends = {"mean_low": PASSES["mean"] * 0.7, "mean_high": PASSES["mean"] * 1.3}
    number = found(
        'fewer("passes", {"algorithm": "CD"}, {"algorithm": "SGD"})',
        PASSES.assign(**ends),
    )
    assert number == Number(25.0, 5.0, 25.0)


def test_fewer_needs_a_second_one_that_learns():
    start = pd.DataFrame({"algorithm": ["SGD"], "passes": [0.0], "mean": [0.5]})
    with pytest.raises(Idle, match="no progress"):
        found(
            'fewer("passes", {"algorithm": "CD"}, {"algorithm": "SGD"})',
            pd.concat([PASSES, start]),
        )


def test_worst_step_is_the_worst_ratio_along_an_order():
    rows = PASSES[PASSES["algorithm"] == "CD"]
    assert found('worst_step("passes", [2.0, 10.0, 50.0])', rows).value == 0.5
    falling = found('worst_step("passes", [2.0, 10.0, 50.0], falling=0)', rows)
    assert falling.value == pytest.approx(5.0)  # of the last to the first
    with pytest.raises(Absent, match="passes 3"):
        found('worst_step("passes", [2.0, 3.0])', rows)


def test_extremes_and_spread_along_a_column():
    rows = PASSES[PASSES["algorithm"] == "CD"]
    assert found('most("passes") / least("passes")', rows).value == 5
    assert found('spread("passes", 0.9)', rows).value == pytest.approx(0.4 / 0.8)
    with pytest.raises(Idle, match="nothing was learnt"):
        found('spread("passes", 0.1)', rows)
    with pytest.raises(Idle, match="fewer than two"):
        found('most("passes")', rows[:1])


def test_inside_is_the_share_of_cells():
    rows = pd.DataFrame({"p": [0.5, 0.01, 0.05, math.nan, 0.2]})
    number = found('inside("p")', rows)
    assert (number.value, number.of, str(number)) == (0.75, 4, "3 of 4")
    with pytest.raises(Absent, match="no row"):
        found('inside("p")', rows[3:4])


def test_standing_out_reads_a_histogram():
    bins = {"x": [0.5, 1.5, 2.5, 3.5], "mean": [6.0, 2.0, 1.0, 1.0]}
    rows = pd.DataFrame(bins).assign(max=[1.0, 2.0, 3.0, 4.0])
    assert found("standing_out()", rows).value == 0.2


def test_words_about_what_is_known_of_a_number():
    one, low = Number(2.0, 1.5, 2.5), Number(1.0, 0.9, 1.1)
    assert Words.widened(one, Number.of_any(2.0)) == Number(2.0, 1.0, 4.0)
    assert Words.widened(one, Number.of_any(1.0)) == one
    assert Words.exactly(one) == Number(2.0, 2.0, 2.0)
    assert Words.outside(one, low, one).value == 0
    assert Words.outside(Number.of_any(5.0), low, one).value == 3


def argument(epsilon, n):
    return Case(epsilon * n, 4.0, "")


def test_a_proof_is_followed_for_its_group():
    more = {"arguments": {"argument": argument}}
    point = {"epsilon": 1, "n": 2}
    assert found('proof("argument")', None, point, **more).value == 0.5
    twice = found('proof("argument", times=2)', None, point, **more)
    assert twice.value == 2  # twice the noise's target, compared with the target
    named = point | {"argument": "argument"}
    assert found("proof(argument)", None, named, **more).value == 0.5


def test_conditions():
    assert found("mean >= 7 and ci_low < 8", of("a")[:1])
    assert not found("mean > 9 or ci_low < 5", of("a")[:1])


# --- what is no expression ------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "().__class__",
        "mean.value",
        "[x for x in mean]",
        "lambda: 1",
        "mean ** 2",
        "at(**{})",
        "(mean := 1)",
        "mean if 1 else 2",
        "mean[0]",
        "'{}'.format(1)",
        "a b",
        "sum(1)",
        "at(1, 2, 3, 4, 5, 6)",
    ],
)
def test_other_code_is_refused_before_anything_runs(text):
    with pytest.raises(
        ValueError, match=r"part of an|no expression|expected one of|at:"
    ):
        compiled(text)


def test_columns_and_tables_of_an_expression():
    text = 'at("y", best="mean", algorithm="A") / x + at("z", p=1, of="t")'
    own = {("y", ""), ("algorithm", ""), ("x", "")}
    assert set(columns(text)) == own | {("z", "t"), ("p", "t"), ("", "t")}
    assert set(columns('proof("half") + proof(argument)')) == {
        ("half", "proofs"),
        ("argument", ""),
    }


def test_every_word_is_documented():
    for name in WORDS:
        assert (getattr(Words, name).__doc__ or "").strip()
