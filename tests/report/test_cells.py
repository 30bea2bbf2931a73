from __future__ import annotations

import pandas as pd
import pytest

from dperm.report import cells
from dperm.report.evidence import (
    INCOMPARABLE,
    NOT,
    NOTHING,
    PENDING,
    REPRODUCED,
    UNDECIDED,
    UNTESTED,
)

from .conftest import write


@pytest.mark.parametrize(
    ("printed", "low", "high", "tied", "median", "verdict"),
    [(2, 1.6, 2.4, 0.0, 0.5, REPRODUCED), (2, 2.6, 3.4, 0.0, 0.5, NOT),
     (0, 0.0, 0.2, 0.0, 0.5, REPRODUCED), (3, 0.0, 4.0, 0.9, 0.5, UNTESTED),
     (3, 3.0, 3.2, 0.9, 0.5, REPRODUCED), (3, 0.0, 0.0, 1.0, 0.999, UNTESTED)],
)  # fmt: skip
def test_a_count_lies_in_the_law(printed, low, high, tied, median, verdict):
    ours = {"t_low": low, "t_high": high, "tied": tied, "median": median, "start": 1.0}
    found = cells.count({"n": printed}, ours | {"prints": "least"}, "n", "t")
    assert found.verdict == verdict
    assert ("tie" in found.reason) == (verdict == UNTESTED)


def test_a_count_is_that_of_the_runs_behind_the_print(config, evidence):
    common = {"problem": "a", "tied": 0.0, "median": 0.5, "start": 1.0}
    law = [{"prints": "least", "t_low": 1.0, "t_high": 2.0},
           {"prints": "fresh", "t_low": 3.0, "t_high": 4.0}]  # fmt: skip
    write(config, "law", pd.DataFrame([common | each for each in law]))
    options = {"file": "law", "keys": ["problem"],
               "cells": {"n": {"kind": "count", "value": "t"}}}  # fmt: skip
    numbers = pd.DataFrame({"problem": ["a"], "n": [4]})
    for prints, verdict in (("least", NOT), ("fresh", REPRODUCED)):
        (one,) = cells.judged(evidence, numbers, options | {"prints": prints})
        assert one.finding.verdict == verdict
        assert ("new runs" in one.finding.reason) == (prints == "fresh")


@pytest.mark.parametrize("mean", [1.5, 0.1, 2.5])
def test_seconds_of_another_machine_earn_no_verdict(mean):
    row, found = {"s": 1.0, "d": 0.1}, {"mean": mean, "std": 0.01}
    judged = cells.seconds(row, found, "s", "d", "mean", "std", 10)
    assert judged.verdict == INCOMPARABLE
    assert judged.reproduced.low < mean < judged.reproduced.high


@pytest.mark.parametrize(
    ("printed", "fresh", "verdict"),
    [(0.008, 0.008, REPRODUCED), (0.001, 0.001, NOTHING), (0.001, 0.008, UNDECIDED),
     (0.008, 0.0005, NOT), (0.008, 0.2, NOT), (0.008, 0.0, UNTESTED)],
)  # fmt: skip
def test_a_deviation_of_five_runs_is_compared_as_far_as_they_say(
    printed, fresh, verdict
):
    half = 2.2622 * fresh / 10**0.5  # of ten runs
    ours = {"fresh_ci_low": 1 - half, "fresh_ci_high": 1 + half, "std": 0.01}
    found = cells.deviation({"d": printed}, ours, "d", "std", 5, 0.001, 10)
    assert found.verdict == verdict
    assert fresh == 0 or found.reproduced.value == pytest.approx(fresh, rel=1e-3)


def test_exact_numbers_and_formulas():
    assert cells.exact({"n": 501}, {"p": 500.0}, "n", "p").verdict == NOT
    assert cells.exact({"n": 500}, {"p": 500.0}, "n", "p").verdict == REPRODUCED
    assert cells.formula({"f": "x"}, {"e": 1e-16}, "f", "e", 0.01).verdict == REPRODUCED
    assert cells.formula({"f": "x"}, {"e": 900.0}, "f", "e", 0.01).verdict == NOT


def test_every_cell_is_judged_and_a_missing_one_says_so(evidence):
    printed = pd.DataFrame(
        {"problem": ["a", "a", "z"], "algorithm": ["quick", "slow", "slow"],
         "passes": [5, 5, 5], "m": [0.025, 0.1, 0.1]}
    )  # fmt: skip
    options = {
        "file": "table",
        "keys": ["problem", "algorithm", "passes"],
        "cells": {"m": {"kind": "exact", "value": "fresh_mean"}},
    }
    found = [each.finding for each in cells.judged(evidence, printed, options)]
    assert [each.verdict for each in found] == [REPRODUCED, NOT, PENDING]
    assert "no result for z slow 5" in found[2].reason
    assert found[0].published == "0.0250"


def test_a_tick_is_a_number_below_a_limit(config, evidence):
    printed = pd.DataFrame({"problem": ["a", "b"], "cheap": ["yes", "yes"]})
    mark = {"kind": "mark", "value": "fresh_mean", "at_most": 0.6, "means": "error"}
    only = {"where": {"problem": ["a"]}, "otherwise": "not ours"}
    options = {"file": "table", "keys": ["problem"],
               "cells": {"cheap": mark | {"only": only}}}  # fmt: skip
    found = list(cells.judged(evidence, printed, options))
    assert [each.finding.verdict for each in found] == [REPRODUCED, UNTESTED]
    assert [each.other for each in found] == [False, True]  # listed, not counted
    options["cells"]["cheap"]["at_most"] = 0.1
    assert next(cells.judged(evidence, printed, options)).finding.verdict == NOT
    rows = pd.read_csv(evidence.path("table"))
    write(
        config,
        "table",
        rows.assign(fresh_mean=rows["fresh_mean"].where(rows.index > 0)),
    )
    assert next(cells.judged(evidence, printed, options)).finding.verdict == UNTESTED
