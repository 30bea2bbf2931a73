"""Verdicts: ranges, groups, nulls, readings, missing results; checks of the YAML."""

import math

import pandas as pd
import pytest
import yaml

from dperm.claims import claims
from dperm.claims.claims import Claim
from dperm.claims.judge import (
    CONTRADICTED,
    IN_PART,
    NOT_RUN,
    REPRODUCED,
    UNDECIDED,
    UNINFORMATIVE,
    judged,
)
from dperm.claims.number import Missing, MissingRow, Number
from dperm.config.locate import ConfigError
from dperm.papers.shared.proofs import Argument

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
IDLE = TABLE.assign(reason=None)
IDLE.loc[IDLE["problem"] == "b", ["mean", "reason"]] = [math.nan, "diverged"]
PART = TABLE[TABLE["problem"] == "a"]
LEAD = 'at(algorithm="DP-SGD") / at(algorithm="DP-CD")'
SAME = {"estimate": 'at(algorithm="DP-CD") / at(algorithm="DP-CD")'}
TENFOLD = {
    "source": "Section 6.1",
    "statement": "Tenfold",
    "kind": "sentence",
    "table": "fresh",
    "each": {"problem": ["a", "b"]},
    "estimate": LEAD,
    "at_least": 9,
    "tolerance": 5,
}
LOST, NEVER, SILENT = (
    {"table": "lost"},
    {"at_least": 40, "tolerance": 30},
    {"at_least": 1, "tolerance": None},
)


def reader(**tables):
    def read(name):
        if name not in tables:
            raise Missing(f"{name} is not there")
        return tables[name]

    return read


def found(whole=False, table=TABLE, **changed):
    return judged(
        claims.made(TENFOLD | changed), reader(fresh=table), {}, whole
    )


@pytest.mark.parametrize(
    ("ends", "number", "verdict"),
    [
        ({"at_least": 2}, (3, 2.5, 4), REPRODUCED),
        ({"at_least": 2}, (3, 1.9, 4), UNDECIDED),
        ({"at_least": 2}, (1, 0.5, 1.9), CONTRADICTED),
        ({"at_least": 2, "tolerance": 1}, (1.5, 1.2, 1.9), IN_PART),
        ({"at_least": 2, "tolerance": 1}, (2.5, 1.2, 3), REPRODUCED),
        ({"at_least": 2, "tolerance": 1}, (1.5, 0.9, 3), UNDECIDED),
        ({"at_most": 2, "tolerance": 3}, (2.5, 2.1, 2.9), IN_PART),
        (
            {"at_least": 1, "at_most": 2, "tolerance": [0, 3]},
            (2.5, 0.1, 2.9),
            IN_PART,
        ),
        (
            {"at_least": 1, "at_most": 2, "tolerance": [0, 3]},
            (4, 3.5, 5),
            CONTRADICTED,
        ),
        ({"above": 1}, (1, 1, 1), CONTRADICTED),
        ({"above": 1}, (1.1, 1.01, 2), REPRODUCED),
        ({"below": 1}, (1, 1, 1), CONTRADICTED),
        ({"below": 1, "tolerance": 1.25}, (1, 0.9, 1.2), IN_PART),
    ],
)
def test_the_interval_decides(ends, number, verdict):
    rows = pd.DataFrame(
        [dict(zip(("v", "v_low", "v_high"), number, strict=True))]
    )
    of = {"at_least": -math.inf, "tolerance": None} | ends
    assert (
        found(table=rows, estimate="v", each=None, null=[], **of).verdict
        == verdict
    )


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({}, REPRODUCED),
        # groups
        ({"required": "any", "at_least": 12, "tolerance": None}, REPRODUCED),
        ({"required": 0.5, "at_least": 12, "tolerance": None}, REPRODUCED),
        ({"at_least": 12, "tolerance": None}, CONTRADICTED),
        ({"table": PART}, NOT_RUN),
        ({"table": IDLE}, IN_PART),
        ({"table": TABLE.assign(mean=math.nan, reason="diverged")}, UNDECIDED),
        ({"only": 'at("epochs", algorithm="DP-CD") >= 9'}, UNINFORMATIVE),
        ({"rows": {"algorithm": ["DP-SGD", "DP-FW"]}}, NOT_RUN),
        (
            {"rows": {"method": "DP-SGD"}},
            NOT_RUN,
        ),  # the table has no such column
        # nulls
        (SILENT, UNINFORMATIVE),
        ({"null": "estimate / 100"}, REPRODUCED),
        ({"null": "estimate / 1.5"}, REPRODUCED),  # only in part
        (
            {"at_least": 12, "null": "estimate / 1.5"},
            UNINFORMATIVE,
        ),  # in part too
        ({"null": SAME}, REPRODUCED),
        ({"null": {"each": {"problem": ["b"]}}}, UNINFORMATIVE),
        ({"null": {"rows": {"algorithm": "DP-CD"}}}, REPRODUCED),  # cannot run
        ({"null": [1, "estimate"]}, UNINFORMATIVE),
        ({"null": []}, REPRODUCED),
        # readings
        ({"readings": {"one": {}, "two": {}}}, REPRODUCED),
        ({"readings": {"one": {}, "two": {"at_least": 12}}}, IN_PART),
        ({"readings": {"one": NEVER, "two": NEVER}}, CONTRADICTED),
        ({"readings": {"one": LOST, "two": LOST}}, NOT_RUN),
        ({"readings": {"one": LOST, "two": NEVER}}, UNDECIDED),
        ({"readings": {"one": LOST, "two": {}}}, IN_PART),
        ({"readings": {"one": SILENT, "two": SILENT}}, UNINFORMATIVE),
        ({"readings": {"one": SILENT, "two": NEVER}}, UNDECIDED),
    ],
)
def test_a_verdict(changed, verdict):
    assert found(**changed).verdict == verdict


def test_the_decisive_number_is_that_of_the_worst_group_or_of_what_is_shown():
    worst = found()
    assert worst.number.value == 10 and list(worst.numbers) == ["a", "b"]
    assert (
        found(required="any", at_least=12, tolerance=None).number.value == 15
    )
    some = found(readings={"one": NEVER, "two": {}})
    assert (some.shown, some.number.value) == ("two", 10)
    silent = found(**SILENT)
    assert silent.reason == "1", "the null that holds too"


def test_what_is_missing_is_named_and_an_error_of_whole_results():
    assert found(table=PART).missing == {"b": "no row"}
    with pytest.raises(MissingRow, match="b: no row"):
        found(table=PART, whole=True)
    lost = judged(claims.made(TENFOLD), reader(), {}, whole=True)
    assert (lost.verdict, lost.reason) == (NOT_RUN, "fresh is not there")
    assert found(table=IDLE, whole=True).idle == {"b": "diverged"}
    three = {"problem": ["a", "b", "c"]}
    more = found(table=IDLE, each=three, without={"c": "not to be had"})
    assert (more.verdict, more.idle["c"]) == (UNDECIDED, "not to be had")


def test_a_condition_leaves_groups_out_and_a_group_may_hold_a_number():
    kept = found(only='at("epochs", algorithm="DP-CD") >= 1')
    assert (kept.verdict, list(kept.numbers), kept.left_out) == (
        REPRODUCED,
        ["a"],
        1,
    )
    each = [
        {"problem": ["a"], "printed": [80]},
        {"problem": ["b"], "printed": [31]},
    ]
    number = 'at(algorithm="DP-SGD") / printed'
    finding = found(each=each, estimate=number, at_least=0.9, tolerance=0.5)
    assert finding.numbers["a, 80"].value == 1
    added = found(
        rows={"algorithm": "DP-SGD"}, estimate="mean / 8", readings={"one": {}}
    )
    assert added.numbers["b"].value == pytest.approx(30 / 8)


@pytest.mark.parametrize(
    ("cost", "verdict"), [(0.9, REPRODUCED), (1.2, UNDECIDED)]
)
def test_a_proved_epsilon_contradicts_nothing(cost, verdict):
    table = pd.DataFrame({"true_epsilon": [cost], "target": [1.0]})
    given = {
        "each": None,
        "estimate": "true_epsilon / target",
        "null": "10 * estimate",
    }
    given |= {"at_least": -math.inf, "at_most": 1, "tolerance": None}
    given |= {"exact": ["target"]}
    assert found(table=table, **given).verdict == verdict


def half(epsilon):
    return Argument(epsilon / 1.5, 1.0, "")


def test_steps_of_a_theorem_are_groups():
    each = [{"argument": ["half"], "epsilon": [0.5, 1.2]}]
    changed = {
        "table": "",
        "each": each,
        "estimate": "proof(argument)",
        "tolerance": None,
    }
    changed |= {
        "null": "proof(argument, times=2)",
        "at_least": 0,
        "at_most": 1,
    }
    finding = judged(claims.made(TENFOLD | changed), reader(), {"half": half})
    assert finding.verdict == REPRODUCED
    assert finding.number.value == pytest.approx(0.8)


# --- rules of the court ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("at_least", "verdict"),
    [(40, CONTRADICTED), (9, IN_PART), (12, CONTRADICTED), (11, CONTRADICTED)],
)
def test_a_claim_is_contradicted_only_if_its_defence_fails_too(
    at_least, verdict
):
    defence = {
        "statement": "On b it is more",
        "at_least": at_least,
        "tolerance": None,
    }
    finding = found(**NEVER, defence=defence)
    assert finding.verdict == verdict
    assert finding.answer.number.value == 10
    assert found(defence=defence).answer is None, "nobody is accused"


def test_a_defence_of_another_table_that_is_not_there_leaves_the_claim_open():
    defence = {"statement": "Later", "table": "lost"}
    assert found(**NEVER, defence=defence).verdict == NOT_RUN


def test_a_number_without_an_interval_decides_nothing():
    bare = TABLE.drop(columns=["ci_low", "ci_high"])
    assert found(table=bare).verdict == UNDECIDED
    assert found(table=bare, **NEVER).verdict == UNDECIDED
    assert found(table=bare, exact=["mean"]).verdict == REPRODUCED
    assert found(table=bare, null=10).verdict == UNINFORMATIVE


def test_what_is_shown_decides():
    low = {"at_least": 13, "tolerance": None}
    some = found(**low, required=0.5)
    assert (some.verdict, some.number.value) == (REPRODUCED, 15)
    wide = TABLE.assign(ci_low=1.0)
    open_one = {"table": "wide"}
    read = reader(fresh=TABLE, wide=wide)
    claim = TENFOLD | {"readings": {"no": NEVER, "open": open_one}}
    finding = judged(claims.made(claim), read, {})
    assert (finding.verdict, finding.shown) == (UNDECIDED, "open")


# --- what is refused when claims are loaded -------------------------------------------


def load(**changed):
    entry = {
        key: one for key, one in (TENFOLD | changed).items() if one is not None
    }
    text = yaml.safe_dump([entry]).encode()
    return claims.load(
        "claims.yaml", text, reader(fresh=TABLE, tuned=TABLE), ["half"]
    )


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"numbr": "1"}, "numbr"),
        ({"source": None}, "source: expected a value"),
        ({"kind": "other"}, "kind: expected one of sentence"),
        ({"kind": "print"}, "misprint: expected a name"),
        (
            {"defence": {"statement": "No"}},
            "defence: expected a statement, and an estimate",
        ),
        ({"defence": {"statement": "No", "numbr": 1}}, "defence: numbr"),
        (
            {"table": "tuned", "kind": "proof"},
            "of tuned are of single tunings",
        ),
        ({"cause": "luck"}, "cause: expected"),
        ({"at_least": "9"}, "at_least: expected a valid number"),
        ({"at_least": None, "tolerance": None}, "at_least: expected one of"),
        ({"required": "most"}, "required: expected one of all, any"),
        ({"estimate": None}, "estimate: missing"),
        ({"estimate": "at("}, "estimate: "),
        ({"estimate": 'at(algoritm="A")'}, "did you mean algorithm"),
        (
            {"estimate": "meen"},
            "'meen' is no column of fresh (did you mean mean?)",
        ),
        ({"estimate": "att()"}, "expected one of at, slope"),
        (
            {"estimate": 'slope("mean", mean)'},
            'slope: y: expected "mean" in quotes',
        ),
        (
            {"figure": "a"},
            "figure: expected table: figures/a, the figure's data",
        ),
        (
            {"estimate": 'fewer("x")'},
            "estimate: fewer: missing a required argument",
        ),
        ({"only": "epoch >= 1"}, "only: 'epoch' is no column"),
        ({"null": "open('x')"}, "null: "),
        ({"null": [1, "mn"]}, "null: 'mn' is no column"),
        ({"null": {"rows": "a", "each": {}}}, "null: rows"),
        ({"rows": {"problm": "a"}}, "rows: 'problm' is no column"),
        ({"each": {"problm": ["a"]}}, "each: 'problm' is no column"),
        (
            {"each": {"argument": ["third"]}},
            "each: 'third' is no column of proofs",
        ),
        (
            {"estimate": 'proof("haalf")'},
            "no column of proofs (did you mean half?)",
        ),
        ({"readings": {"one": {"numbr": "1"}}}, "numbr"),
        ({"readings": {"one": {"estimate": "meen"}}}, "'meen' is no column"),
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
    assert load(table="lost", estimate="meen"), "columns of what is not there"
    grids = [{"a": [1, 2], "b": [3]}, {"a": [4]}]
    assert claims.groups(grids) == [
        {"a": 1, "b": 3},
        {"a": 2, "b": 3},
        {"a": 4},
    ]
    assert str(Number(2.0, 1.0, 3.0)) == "2 [1, 3]"
