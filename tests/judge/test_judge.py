"""Verdicts: ranges, groups, nulls, readings, missing results; checks of the YAML."""

import math

import pandas as pd
import pytest
import yaml

from dperm.core.experiment.locate import ConfigError
from dperm.judge import claims
from dperm.judge.claims import Claim
from dperm.judge.judge import FAILS, HOLDS, NEARLY, NOTHING, OPEN, PENDING, judged
from dperm.judge.number import Absent, Missing, Number
from dperm.kinds.proofs import Case

TABLE = pd.DataFrame(
    {
        "problem": ["a", "a", "b", "b"],
        "algorithm": ["DP-SGD", "DP-CD"] * 2,
        "mean": [80.0, 8.0, 30.0, 2.0],
        "ci_low": [78.0, 7.9, 29.0, 1.9],
        "ci_high": [82.0, 8.1, 31.0, 2.1],
        "epochs": [2, 2, 0, 0],
    }
)
LEAD = 'at(algorithm="DP-SGD") / at(algorithm="DP-CD")'
TENFOLD = {
    "place": "Section 6.1",
    "says": "Tenfold",
    "kind": "sentence",
    "table": "tuned",
    "each": {"problem": ["a", "b"]},
    "number": LEAD,
    "at_least": 9,
    "nearly": 5,
}


def reader(**tables):
    def read(name):
        if name not in tables:
            raise Missing(f"{name} is not there")
        return tables[name]

    return read


def found(whole=False, table=TABLE, **changed):
    return judged(claims.made(TENFOLD | changed), reader(tuned=table), {}, whole)


# --- ranges ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ends", "number", "verdict"),
    [
        ({"at_least": 2}, (3, 2.5, 4), HOLDS),
        ({"at_least": 2}, (3, 1.9, 4), OPEN),
        ({"at_least": 2}, (1, 0.5, 1.9), FAILS),
        ({"at_least": 2, "nearly": 1}, (1.5, 1.2, 1.9), NEARLY),
        ({"at_least": 2, "nearly": 1}, (2.5, 1.2, 3), HOLDS),
        ({"at_least": 2, "nearly": 1}, (1.5, 0.9, 3), OPEN),
        ({"at_most": 2, "nearly": 3}, (2.5, 2.1, 2.9), NEARLY),
        ({"at_least": 1, "at_most": 2, "nearly": [0, 3]}, (2.5, 0.1, 2.9), NEARLY),
        ({"at_least": 1, "at_most": 2, "nearly": [0, 3]}, (4, 3.5, 5), FAILS),
        ({"above": 1}, (1, 1, 1), FAILS),
        ({"above": 1}, (1.1, 1.01, 2), HOLDS),
        ({"below": 1}, (1, 1, 1), FAILS),
        ({"below": 1, "nearly": 1.25}, (1, 0.9, 1.2), NEARLY),
    ],
)
def test_the_interval_decides(ends, number, verdict):
    rows = pd.DataFrame([dict(zip(("v", "v_low", "v_high"), number, strict=True))])
    of = {"at_least": -math.inf, "nearly": None} | ends
    assert found(table=rows, number="v", each=None, null=[], **of).verdict == verdict


# --- groups ---------------------------------------------------------------------------


def test_the_worst_group_decides():
    finding = found()
    assert finding.verdict == HOLDS
    assert finding.number.value == 10
    assert list(finding.numbers) == ["a", "b"]


@pytest.mark.parametrize(
    ("need", "verdict", "value"),
    [("any", HOLDS, 15), (0.5, HOLDS, 15), ("all", FAILS, 10)],
)
def test_some_groups_may_be_enough(need, verdict, value):
    finding = found(need=need, at_least=12, nearly=None)
    assert (finding.verdict, finding.number.value) == (verdict, value)


def test_a_lost_group_is_not_run_and_an_error_of_whole_results():
    part = TABLE[TABLE["problem"] == "a"]
    assert found(table=part).verdict == PENDING
    assert found(table=part).missing == {"b": "no row"}
    with pytest.raises(Absent, match="b: no row"):
        found(table=part, whole=True)


def test_a_table_that_is_not_there_is_not_run():
    lost = judged(claims.made(TENFOLD), reader(), {}, whole=True)
    assert (lost.verdict, lost.reason) == (PENDING, "tuned is not there")


def test_a_group_that_decides_nothing_is_a_caveat_if_there_are_few():
    idle = TABLE.assign(reason=None)
    idle.loc[idle["problem"] == "b", ["mean", "reason"]] = [math.nan, "diverged"]
    assert found(table=idle).verdict == NEARLY
    assert found(table=idle, whole=True).idle == {"b": "diverged"}
    three = {"problem": ["a", "b", "c"]}
    more = found(table=idle, each=three, without={"c": "not to be had"})
    assert (more.verdict, more.idle["c"]) == (OPEN, "not to be had")


def test_nothing_but_idle_groups_is_undecided():
    idle = TABLE.assign(mean=math.nan, reason="diverged")
    assert found(table=idle).verdict == OPEN


def test_a_condition_leaves_groups_out():
    kept = found(only='at("epochs", algorithm="DP-CD") >= 1')
    assert (kept.verdict, list(kept.numbers), kept.left_out) == (HOLDS, ["a"], 1)
    assert found(only='at("epochs", algorithm="DP-CD") >= 9').verdict == NOTHING


def test_a_group_may_hold_a_number_for_the_expression():
    each = [{"problem": ["a"], "printed": [80]}, {"problem": ["b"], "printed": [31]}]
    finding = found(
        each=each, number='at(algorithm="DP-SGD") / printed', at_least=0.9, nearly=0.5
    )
    assert finding.numbers["a, 80"].value == 1


def test_rows_that_the_claim_names_must_be_there():
    assert found(rows={"algorithm": ["DP-SGD", "DP-FW"]}).verdict == PENDING


# --- nulls ----------------------------------------------------------------------------


def test_a_claim_that_holds_of_equal_things_says_nothing():
    finding = found(at_least=1, nearly=None)
    assert (finding.verdict, finding.reason) == (NOTHING, "1")


def test_a_null_may_use_the_claims_own_number():
    assert found(null="number / 100").verdict == HOLDS
    assert found(null="number / 1.5").verdict == HOLDS  # only in part
    assert found(at_least=12, null="number / 1.5").verdict == NOTHING  # in part too


def test_a_null_may_change_the_claim():
    same = {"number": 'at(algorithm="DP-CD") / at(algorithm="DP-CD")'}
    assert found(null=same).verdict == HOLDS
    assert found(null={"each": {"problem": ["b"]}}).verdict == NOTHING
    assert found(null={"rows": {"algorithm": "DP-CD"}}).verdict == HOLDS  # cannot run


def test_all_nulls_count():
    assert found(null=[1, "number"]).verdict == NOTHING
    assert found(null=[]).verdict == HOLDS


# --- readings -------------------------------------------------------------------------


def under(**readings):
    return found(readings=readings)


def test_under_all_readings_or_some_or_none():
    assert under(one={}, two={}).verdict == HOLDS
    assert under(one={}, two={"at_least": 12}).verdict == NEARLY
    some = under(one={"at_least": 40, "nearly": 30}, two={})
    assert (some.verdict, some.shown, some.number.value) == (NEARLY, "two", 10)
    none = {"at_least": 40, "nearly": 30}
    assert under(one=none, two=none).verdict == FAILS


def test_readings_that_were_not_run_leave_it_open():
    lost, none = {"table": "lost"}, {"at_least": 40, "nearly": 30}
    assert under(one=lost, two=lost).verdict == PENDING
    assert under(one=lost, two=none).verdict == OPEN
    assert under(one=lost, two={}).verdict == NEARLY
    silent = {"at_least": 1, "nearly": None}
    assert under(one=silent, two=silent).verdict == NOTHING
    assert under(one=silent, two=none).verdict == OPEN


def test_rows_of_a_reading_are_added():
    finding = found(
        rows={"algorithm": "DP-SGD"}, number="mean / 8", readings={"one": {}}
    )
    assert finding.numbers["b"].value == pytest.approx(30 / 8)


# --- proofs --------------------------------------------------------------------------


def half(epsilon):
    return Case(epsilon / 1.5, 1.0, "")


def test_steps_of_a_theorem_are_groups():
    more = {"arguments": {"half": half}, "table": ""}
    claim = claims.made(
        TENFOLD
        | {
            "table": "",
            "each": [{"argument": ["half"], "epsilon": [0.5, 1.2]}],
            "number": "proof(argument)",
            "null": "proof(argument, times=2)",
            "at_least": 0,
            "at_most": 1,
            "nearly": None,
        }
    )
    finding = judged(claim, reader(), more["arguments"])
    assert finding.verdict == HOLDS
    assert finding.number.value == pytest.approx(0.8)


# --- what is refused when claims are loaded -------------------------------------------


def load(**changed):
    entry = {key: one for key, one in (TENFOLD | changed).items() if one is not None}
    text = yaml.safe_dump([entry]).encode()
    return claims.load("claims.yaml", text, reader(tuned=TABLE), ["half"])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"numbr": "1"}, "numbr"),
        ({"place": None}, "place: expected a value"),
        ({"kind": "other"}, "kind: expected one of sentence"),
        ({"cause": "luck"}, "cause: expected"),
        ({"at_least": "9"}, "at_least: expected a number"),
        ({"at_least": None, "nearly": None}, "at_least: expected one of"),
        ({"need": "most"}, "need: expected one of all, any"),
        ({"number": None}, "number: missing"),
        ({"number": "at("}, "number: "),
        ({"number": 'at(algoritm="A")'}, "did you mean algorithm"),
        ({"number": "meen"}, "'meen' is no column of tuned (did you mean mean?)"),
        ({"number": "att()"}, "expected one of at, slope"),
        ({"number": "at(best=)"}, "number: "),
        (
            {"number": 'fewer("x")'},
            "number: fewer: missing a required argument: 'first'",
        ),
        ({"only": "epoch >= 1"}, "only: 'epoch' is no column"),
        ({"null": "open('x')"}, "null: "),
        ({"null": [1, "mn"]}, "null: 'mn' is no column"),
        ({"rows": {"problm": "a"}}, "rows: 'problm' is no column"),
        ({"each": {"problm": ["a"]}}, "each: 'problm' is no column"),
        ({"each": {"argument": ["third"]}}, "each: 'third' is no column of proofs"),
        ({"number": 'proof("haalf")'}, "no column of proofs (did you mean half?)"),
        ({"readings": {"one": {"numbr": "1"}}}, "numbr"),
        ({"readings": {"one": {"number": "meen"}}}, "'meen' is no column"),
    ],
)
def test_a_wrong_claim_is_refused_in_one_line(changed, words):
    with pytest.raises(ConfigError) as error:
        load(**changed)
    text = str(error.value)
    assert text.startswith("claims.yaml: claim 1: ")
    assert words in text and "\n" not in text


def test_a_right_claim_is_loaded():
    [claim] = load()
    assert claim == Claim(**TENFOLD)
    assert claims.load("x", b"", reader(), []) == []


def test_columns_of_a_table_that_is_not_there_are_not_checked():
    assert load(table="lost", number="meen")


def test_groups_are_the_points_of_grids():
    grids = [{"a": [1, 2], "b": [3]}, {"a": [4]}]
    assert claims.groups(grids) == [{"a": 1, "b": 3}, {"a": 2, "b": 3}, {"a": 4}]
    assert claims.groups(None) == [{}]


def test_numbers_are_worded():
    assert str(Number(2.0, 1.0, 3.0)) == "2 [1, 3]"


@pytest.mark.parametrize(("cost", "verdict"), [(0.9, HOLDS), (1.2, OPEN)])
def test_a_proved_epsilon_contradicts_nothing(cost, verdict):
    table = pd.DataFrame({"true_epsilon": [cost], "target": [1.0]})
    given = {"each": None, "number": "true_epsilon / target", "null": "10 * number"}
    given |= {"at_least": -math.inf, "at_most": 1, "nearly": None}
    assert found(table=table, **given).verdict == verdict
