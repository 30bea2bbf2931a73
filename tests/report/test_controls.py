"""Controls: they fail where a claim has something to say, and unmask where not."""

from __future__ import annotations

import importlib

import pandas as pd
import pytest

from dperm.pipeline import digests
from dperm.report import judging, rules
from dperm.report.evidence import NOTHING, REPRODUCED, Evidence
from dperm.report.rules import measures
from dperm.store.closure import functions

from .conftest import write

PAIR = {"over": {"algorithm": "slow"}, "under": {"algorithm": "quick"}}


def judged(config, rule, **options):
    return judging._controlled(Evidence(config), rule, options)


def test_every_rule_of_ours_names_its_controls():
    for module in rules.OURS:
        for name in functions(module):
            if name != "untestable":  # which never says that it holds
                function = getattr(importlib.import_module(module), name)
                assert rules.controls_of(function), name


def test_an_edit_of_any_rule_makes_the_claims_stale():
    assert rules.OURS == digests.RULES


def test_what_is_measured_is_found_by_name():
    table = pd.DataFrame(
        columns=["p", "x", "mean", "fresh_mean", "fresh_ci_low", "exponent_low", "loss"]
    )
    assert rules.measured(table, {"value": "loss"}) == [
        "mean", "fresh_mean", "fresh_ci_low", "exponent_low", "loss",
    ]  # fmt: skip


def test_a_lead_survives_and_a_tie_does_not(config):
    given = {
        "file": "table",
        "each": "problem",
        "best": "mean",
        "where": {"problem": "a"},
    }
    held = judged(config, "ratio", above=1, **given, **PAIR)
    assert held.verdict == REPRODUCED
    assert held.control == "fails for the two exchanged, w = 0, for all"
    empty = judged(config, "ratio", at_least=0.01, **given, **PAIR)
    assert (empty.verdict, empty.control) == (NOTHING, "holds for the two exchanged")


def test_a_bound_that_w_0_meets_says_nothing(config):
    rows = {"excess": [0.1], "ci_low": [0.09], "ci_high": [0.11], "bound": [2.0],
            "start": [1.0]}  # fmt: skip
    write(config, "theory", pd.DataFrame(rows))
    given = {"file": "theory", "start": "start", "per": "bound"}
    assert judged(config, "bounded", **given).verdict == NOTHING
    write(config, "theory", pd.DataFrame(rows | {"bound": [0.5]}))
    assert judged(config, "bounded", **given).verdict == REPRODUCED
    write(config, "theory", pd.DataFrame(rows | {"epochs": [-1.0]}))
    outside = judged(config, "bounded", requires={"epochs": 0}, **given)
    assert outside.verdict == NOTHING
    assert outside.control == "outside the theorem's preconditions"


def test_no_progress_means_something_where_another_makes_some(config):
    rows = [
        ("idle", 0.0, 1.0),
        ("idle", 1.0, 0.99),
        ("busy", 0.0, 1.0),
        ("busy", 1.0, 0.2),
    ]
    write(config, "curves", pd.DataFrame(rows, columns=["algorithm", "x", "mean"]))
    given = {"file": "curves", "last": "x", "at_most": 1.1,
             "where": {"algorithm": "idle"}}  # fmt: skip
    rival = {"algorithm": "busy"}
    assert judged(config, "stuck", rival=rival, **given).verdict == REPRODUCED
    same = {"algorithm": "idle"}
    assert judged(config, "stuck", rival=same, **given).verdict == NOTHING


def test_formulas_that_agree_everywhere_are_the_same(config):
    rows = pd.DataFrame(
        [("even", "u", 1.0), ("even", "v", 1.0), ("odd", "u", 1.0), ("odd", "v", 3.0)],
        columns=["problem", "row", "bound"],
    )
    write(config, "formulas", rows)
    given = {"file": "formulas", "value": "bound", "over": {"row": "u"},
             "under": {"row": "v"}, "where": {"problem": "even"},
             "elsewhere": {"problem": "odd"}, "at_least": 0.99,
             "at_most": 1.01}  # fmt: skip
    assert judged(config, "identity", **given).verdict == REPRODUCED
    write(config, "formulas", rows.assign(bound=1.0))
    assert judged(config, "identity", **given).verdict == NOTHING


def test_a_small_exponent_needs_a_witness(config):
    rows = {"method": ["ours", "other"], "exponent": [0.0, 0.5], "ci_low": [-0.1, 0.4],
            "ci_high": [0.1, 0.6]}  # fmt: skip
    write(config, "growth", pd.DataFrame(rows))
    given = {"file": "growth", "value": "exponent", "where": {"method": "ours"},
             "witness": {"method": "other"}, "at_most": 0.15}  # fmt: skip
    assert judged(config, "growth", **given).verdict == REPRODUCED
    write(config, "growth", pd.DataFrame(rows | {"exponent": [0.0, 0.05],
                                                 "ci_high": [0.1, 0.1],
                                                 "ci_low": [-0.1, 0.0]}))  # fmt: skip
    assert judged(config, "growth", **given).verdict == NOTHING


def test_a_proof_fails_for_a_formula_of_another_target(config):
    given = {"argument": "theorem_gaussian", "epsilon": [0.1, 1.0], "delta": 1e-6}
    for rule in ("proof", "printed_noise"):
        found = judged(config, rule, **given)
        assert found.verdict == REPRODUCED
        assert found.control == "fails for the formula at twice the target"


def test_a_proof_without_a_target_is_put_to_half_its_claim(config):
    found = judged(config, "proof", argument="imbalance", ratio=1e3, least=0.01,
                   printed=0.0)  # fmt: skip
    assert found.verdict == REPRODUCED
    assert found.control == "fails for half the claimed value"


def test_what_holds_in_part_for_the_contrary_says_nothing(config):
    write(config, "flat", pd.DataFrame({"k": [1, 2], "mean": [1.0, 0.99]}))
    found = judged(config, "monotone", file="flat", along="k", slack=1.25)
    assert found.verdict == NOTHING and "the opposite order" in found.control


def test_a_cause_that_is_no_cause_says_nothing(config):
    rows = [(ratio, *row) for ratio in (1, 100) for row in (("one", 2.0), ("set", 1.0))]
    write(config, "sets", pd.DataFrame(rows, columns=["ratio", "method", "mean"]))
    given = {"file": "sets", "where": {"ratio": [100]}, "each": "ratio", "above": 1}
    given |= {"over": {"method": "one"}, "under": {"method": "set"}}
    assert judged(config, "ratio", **given).verdict == REPRODUCED
    found = judged(config, "ratio", **given, elsewhere={"ratio": [1]})
    assert found.verdict == NOTHING and "where it must not hold" in found.control


def test_a_mutation_changes_the_formula_and_not_the_claim(evidence):
    given = {"argument": "theorem_gaussian", "epsilon": 0.5, "delta": 1e-6}
    as_is = measures.proof(evidence, **given)
    mutated = measures.proof(evidence, mutation=2.0, **given)
    assert as_is.published == mutated.published == "0.5"
    assert mutated.reproduced.value > 1.9 * as_is.reproduced.value


@pytest.mark.parametrize("rule", [measures.monotone, measures.ratio, measures.slope])
def test_comparisons_are_put_to_w_0(rule):
    assert rules.NOTHING_LEARNT in rules.controls_of(rule)
