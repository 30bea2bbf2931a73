"""Numbers with intervals, and the words of an expression, on tables made by hand."""

import math

import pandas as pd
import pytest

from dperm.claims.number import Missing, MissingRow, Number, Undefined
from dperm.claims.words import Words, compiled, evaluated
from dperm.numerics.intervals import power, student
from dperm.papers.shared.proofs import Argument

LEAD = pd.DataFrame(
    {
        "problem": "a",
        "algorithm": ["DP-SGD", "DP-CD"],
        "mean": [8.0, 1.0],
        "ci_low": [7.0, 0.8],
        "ci_high": [9.0, 1.25],
    }
)
ONE = LEAD[:1]
PASSES = pd.DataFrame(
    {
        "algorithm": ["CD"] * 3 + ["SGD"] * 3,
        "passes": [2.0, 10.0, 50.0] * 2,
        "mean": [0.5, 0.2, 0.1, 0.9, 0.6, 0.5],
    }
)
CD = PASSES[:3]
POINTS = pd.DataFrame(
    {"x": [1.0, 2.0, 4.0, 8.0], "y": [1.0, 0.51, 0.24, 0.125]}
)
CELLS = pd.DataFrame({"p": [0.5, 0.01, 0.05, math.nan, 0.2]})
BINS = pd.DataFrame({"x": [0.5, 1.5, 2.5, 3.5], "mean": [6.0, 2.0, 1.0, 1.0]})
FEWER = 'fewer("passes", {"algorithm": "CD"}, {"algorithm": "SGD"})'
BACK = 'fewer("passes", {"algorithm": "SGD"}, {"algorithm": "CD"})'


def found(expression, rows=LEAD, point=None, others=None, **more):
    """The number of an expression for some rows."""
    words = Words((others or {}).__getitem__, {}, point or {}, rows, **more)
    return evaluated(expression, words)


# --- numbers --------------------------------------------------------------------------


def test_a_ratio_adds_half_widths_in_logarithms():
    ratio = Number(8.0, 4.0, 16.0) / Number(2.0, 1.0, 4.0)
    spread = math.exp(math.hypot(math.log(2), math.log(2)))
    assert ratio.value == 4
    assert (ratio.low, ratio.high) == pytest.approx((4 / spread, 4 * spread))
    exact = Number(-1.0, -3.0, 2.0) / 2
    assert (exact.value, exact.low, exact.high) == (-0.5, -1.5, 1.0)


def test_a_part_that_may_be_zero_leaves_an_end_open_and_none_is_negative():
    one, zero = Number(2.0, 1.0, 4.0), Number(2.0, 0.0, 4.0)
    assert (zero / one).low == 0
    assert math.isinf((one / zero).high)
    for other in (0.0, -1.0, Number(-1.0, -2.0, 3.0)):
        with pytest.raises(Undefined, match="no ratio"):
            one / other


def test_differences_and_products():
    apart = Number(3.0, 2.0, 4.0) - Number(1.0, -1.0, 3.0)
    assert (apart.high - apart.low) / 2 == pytest.approx(math.hypot(2, 4) / 2)
    assert Number(3.0, 2.0, 5.0) - 1 == Number(2.0, 1.0, 4.0)
    assert 1 - Number(3.0, 2.0, 4.0) == Number(-2.0, -3.0, -1.0)
    assert 2 * Number(3.0, 2.0, 4.0) == Number(6.0, 4.0, 8.0)
    assert -Number(3.0, 2.0, 4.0) == Number(-3.0, -4.0, -2.0)


# --- words ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "rows", "expected"),
    [
        ('at(algorithm="DP-CD")', LEAD, (1.0, 0.8, 1.25)),
        ("mean", ONE, (8.0, 7.0, 9.0)),
        ('at(algorithm={"contains": "SGD"})', LEAD, (8.0, 7.0, 9.0)),
        ('at(best="mean")', LEAD, (1.0, 0.8, 1.25)),
        ('at("y", last="x")', POINTS, (0.125,) * 3),
        ("share", pd.DataFrame([[2.0, 3, 1.0, 4.0]], columns=["share", "n", "share_low",
                                                              "share_high"]),
         (2.0, 1.0, 4.0)),
        ("x", ONE.assign(x=1.0), (1.0, 1.0, 1.0)),
        ("mean", ONE.assign(x=1.0, min=0.0), (8.0, 7.0, 9.0)),  # of a figure
        ("at()", ONE.assign(fresh_mean=5.0, fresh_ci_low=4.0, fresh_ci_high=6.0),
         (5.0, 4.0, 6.0)),
        (FEWER, PASSES, (25.0,) * 3),  # 2 passes for 0.5, which takes SGD 50
        (BACK, PASSES, (0.0,) * 3),
        (FEWER, PASSES.assign(mean_low=PASSES["mean"] * 0.7,
                              mean_high=PASSES["mean"] * 1.3), (25.0, 5.0, 25.0)),
        ('worst_step("passes", [2.0, 10.0, 50.0])', CD, (0.5,) * 3),
        # of the last to the first
        ('worst_step("passes", [2.0, 10.0, 50.0], falling=0)', CD, (5.0,) * 3),
        ('most("passes") / least("passes")', CD, (5.0,) * 3),
        ('spread("passes", 0.9)', CD, (0.5,) * 3),
        ("standing_out()", BINS.assign(max=[1.0, 2.0, 3.0, 4.0]), (0.2,) * 3),
        ("exactly(mean)", ONE, (8.0,) * 3),
        ("widened(mean, exactly(ci_low) / 1.75)", ONE, (8.0, 2.0, 32.0)),
        ("widened(mean, ci_low / 7)", ONE, (8.0, 7.0, 9.0)),
        ("outside(mean, 1, 5)", ONE, (3.0,) * 3),
        ("outside(mean, 1, 8)", ONE, (0.0,) * 3),
    ],
)  # fmt: skip
def test_a_word_reads_a_number_with_its_interval(expression, rows, expected):
    number = found(expression, rows)
    assert (number.value, number.low, number.high) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("expression", "rows", "error", "words"),
    [
        ('at(algorithm="DP-FW")', LEAD, MissingRow, "no row"),
        ('at(best="mean", algorithm=["DP-CD", "DP-FW"])', LEAD, MissingRow,
         "no row of algorithm DP-FW"),
        ("men", LEAD, Missing, "no column men"),
        ("mean", ONE.assign(mean=math.nan), Missing, "an empty cell"),
        ("mean", ONE.assign(mean=math.nan, reason="diverged"), Undefined, "diverged"),
        ("mean", LEAD, Undefined, "2 rows where one was expected"),
        ('slope("x", "y")', POINTS[:2], Undefined, "fewer than three"),
        (FEWER, pd.concat([PASSES, pd.DataFrame(
            {"algorithm": ["SGD"], "passes": [0.0], "mean": [0.5]})]), Undefined,
         "no progress"),
        ('worst_step("passes", [2.0, 3.0])', CD, MissingRow, "passes 3"),
        ('spread("passes", 0.1)', CD, Undefined, "nothing was learnt"),
        ('most("passes")', CD[:1], Undefined, "fewer than two"),
        ('inside("p")', CELLS[3:4], MissingRow, "no row"),
    ],
)  # fmt: skip
def test_what_is_missing_says_why(expression, rows, error, words):
    with pytest.raises(error, match=words):
        found(expression, rows)


def test_rows_without_intervals_are_runs_and_slopes_are_power_laws():
    errors = pd.DataFrame({"error": [1.0, 2.0, 4.0]})
    runs = found("error", errors)
    assert (runs.low, runs.high) == pytest.approx(
        student(errors["error"].to_numpy())
    )
    number = found('slope("x", "y")', POINTS)
    expected = power(POINTS["x"].to_numpy(), POINTS["y"].to_numpy())
    assert (number.value, number.low, number.high) == pytest.approx(expected)
    cells = found('inside("p")', CELLS)
    assert (cells.value, cells.of, str(cells)) == (0.75, 4, "3 of 4")


def test_of_reads_the_same_group_of_another_table():
    other = pd.concat([LEAD.assign(mean=80.0), LEAD.assign(problem="b")])
    read = 'at(algorithm="DP-CD", of="tight")'
    assert found(read, LEAD, {"problem": "a"}, {"tight": other}).value == 80


def test_shape_is_the_exponent_over_another_curve_where_anything_was_learnt():
    x = [1.0, 2.0, 4.0, 8.0, 16.0]
    excess = [1.0, 0.4, 0.2, 0.1, 0.05]
    rows = pd.DataFrame({"algorithm": "A", "x": x, "mean": excess})
    bound = pd.DataFrame(
        {"algorithm": "A, bound", "x": x, "mean": [1 / i for i in x]}
    )
    word = 'shape({"algorithm": algorithm + ", bound"}, of="f")'
    others = {"f": pd.concat([rows, bound])}
    number = found(word, rows, {"algorithm": "A"}, others)
    assert number.value == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(Undefined, match="2 points"):
        found(word, rows[:3], {"algorithm": "A"}, others)


def argument(epsilon, n):
    return Argument(epsilon * n, 4.0, "")


def test_a_proof_is_followed_for_its_group():
    more = {"arguments": {"argument": argument}}
    point = {"epsilon": 1, "n": 2}
    assert found('proof("argument")', None, point, **more).value == 0.5
    twice = found('proof("argument", times=2)', None, point, **more)
    # twice the noise's target, compared with the target
    assert twice.value == 2
    named = point | {"argument": "argument"}
    assert found("proof(argument)", None, named, **more).value == 0.5


def test_conditions():
    assert found("mean >= 7 and ci_low < 8", ONE)
    assert not found("mean > 9 or ci_low < 5", ONE)


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
    assert set(compiled(text).reads) == own | {
        ("z", "t"),
        ("p", "t"),
        ("", "t"),
    }
    assert set(compiled('proof("half") + proof(argument)').reads) == {
        ("half", "proofs"),
        ("argument", ""),
    }
