from __future__ import annotations

import pandas as pd
import pytest

from dperm.report import cells
from dperm.report.verdicts import CAVEAT, NOT, REPRODUCED, UNTESTED


def ours(fresh, low, high, tuned):
    return {"fresh_mean": fresh, "fresh_ci_low": low, "fresh_ci_high": high,
            "mean": tuned}  # fmt: skip


@pytest.mark.parametrize(
    ("row", "found", "verdict"),
    [
        ({"m": 0.10, "s": 0.001}, ours(0.11, 0.10, 0.12, 0.1), REPRODUCED),
        # 1.6 times, and the intervals tell them apart
        ({"m": 0.10, "s": 0.001}, ours(0.16, 0.155, 0.165, 0.15), CAVEAT),
        # 1.6 times, and they do not
        ({"m": 0.10, "s": 0.05}, ours(0.16, 0.10, 0.22, 0.15), REPRODUCED),
        # three times on fresh runs; the printed statistic itself comes out
        ({"m": 0.10, "s": 0.001}, ours(0.30, 0.28, 0.32, 0.11), CAVEAT),
        ({"m": 0.10, "s": 0.001}, ours(0.30, 0.28, 0.32, 0.29), NOT),
        ({"m": 0.10, "s": 0.001}, ours(0.03, 0.02, 0.04, 0.03), NOT),
    ],
)
def test_an_error_is_close_or_rough(row, found, verdict):
    assert cells.error(row, found, "m", "s").verdict == verdict


@pytest.mark.parametrize(
    ("printed", "fresh", "tuned", "verdict"),
    [(2, 2.4, 2.4, REPRODUCED), (2, 2.6, 2.6, CAVEAT), (2, 3.4, 2.2, CAVEAT),
     (2, 3.4, 3.4, NOT), (0, 0.0, 0.0, REPRODUCED)],
)  # fmt: skip
def test_a_count_rounds_to_the_printed_one(printed, fresh, tuned, verdict):
    found = cells.count({"n": printed}, {"f": fresh, "t": tuned}, "n", "f", "t")
    assert found.verdict == verdict


@pytest.mark.parametrize(
    ("mean", "verdict"), [(1.5, REPRODUCED), (0.1, CAVEAT), (2.5, NOT)]
)
def test_seconds_may_be_fewer_but_not_many_more(mean, verdict):
    row, found = {"s": 1.0, "d": 0.1}, {"mean": mean, "std": 0.01}
    judged = cells.seconds(row, found, "s", "d", "mean", "std", 10)
    assert judged.verdict == verdict
    assert judged.reproduced.low < mean < judged.reproduced.high


def test_exact_numbers_and_formulas():
    assert cells.exact({"n": 501}, {"p": 500.0}, "n", "p").verdict == NOT
    assert cells.exact({"n": 500}, {"p": 500.0}, "n", "p").verdict == REPRODUCED
    assert cells.formula({"f": "x"}, {"e": 1e-16}, "f", "e", 0.01).verdict == REPRODUCED
    assert cells.formula({"f": "x"}, {"e": 900.0}, "f", "e", 0.01).verdict == NOT


def test_every_cell_is_judged_and_a_missing_one_says_so(evidence):
    printed = pd.DataFrame(
        {"problem": ["a", "a", "z"], "algorithm": ["quick", "slow", "slow"],
         "passes": [5, 5, 5], "m": [0.025, 0.1, 0.1], "s": [0.001, 0.001, 0.001]}
    )  # fmt: skip
    options = {
        "file": "table",
        "keys": ["problem", "algorithm", "passes"],
        "cells": {"m": {"kind": "error", "spread": "s"}},
    }
    found = [finding for _, _, finding in cells.judged(evidence, printed, options)]
    assert [each.verdict for each in found] == [REPRODUCED, NOT, UNTESTED]
    assert "no result for z slow 5" in found[2].reason
    assert found[0].published == "0.025 ± 0.001"


def test_a_tick_is_a_number_below_a_limit(config, evidence):
    printed = pd.DataFrame({"problem": ["a", "b"], "cheap": ["yes", "yes"]})
    mark = {"kind": "mark", "value": "fresh_mean", "at_most": 0.6, "means": "error"}
    only = {"where": {"problem": ["a"]}, "otherwise": "not ours"}
    options = {"file": "table", "keys": ["problem"],
               "cells": {"cheap": mark | {"only": only}}}  # fmt: skip
    found = [finding for _, _, finding in cells.judged(evidence, printed, options)]
    assert [each.verdict for each in found] == [REPRODUCED, UNTESTED]
    options["cells"]["cheap"]["at_most"] = 0.1
    assert next(cells.judged(evidence, printed, options))[2].verdict == NOT
