"""DP-CD's lead taken apart, on errors whose factors are known."""

import itertools

import numpy as np
import pandas as pd
import pytest

from dperm.papers.dpcd import tables

FACTORS = {
    ("thresholds", "equal"): 5.0, ("iterate", "ten averages"): 2.0,
    ("order", "uniform"): 1.5, ("order", "reshuffled"): 1.2,
}  # fmt: skip
AXES = {
    "order": ["cyclic", "reshuffled", "uniform"],
    "iterate": ["last", "ten averages"],
    "thresholds": ["scaled", "equal"],
}


def swept(spread=0.0, runs=8):
    rng = np.random.default_rng(0)
    rows = []
    for values in itertools.product(*AXES.values()):
        at = dict(zip(AXES, values, strict=True))
        error = 0.01 * np.prod([FACTORS.get(pair, 1.0) for pair in at.items()])
        for each in error * rng.lognormal(0.0, spread, runs):
            rows.append({"problem": "one", "calibration": "paper", **at,
                         "relative_error": each})  # fmt: skip
    return pd.DataFrame(rows)


def test_the_factors_are_those_of_the_parts_and_their_product_the_whole():
    rows = tables.chain(np.full(4, 0.6), swept())
    found = {row["part"]: row["factor"] for row in rows}
    assert found == pytest.approx({
        "steps by coordinate": 0.6 / 0.15, "a threshold for each coordinate": 5.0,
        "the last iterate": 2.0, "a fixed cycle": 1.5, "all": 60.0,
    })  # fmt: skip
    assert np.prod(list(found.values())[:-1]) == pytest.approx(found["all"])
    assert [row["alone"] for row in rows[1:4]] == pytest.approx([5.0, 2.0, 1.5])


def test_the_interval_of_a_ratio_holds_it_as_often_as_it_says():
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(400):
        before, after = rng.lognormal(0.0, 0.5, (2, 20)) * [[3.0], [1.0]]
        _, low, high = tables.ratio(before, after)
        hits += low <= 3.0 <= high
    assert 0.91 < hits / 400 < 0.985


def test_a_choice_that_was_not_run_gives_no_chain():
    table = swept()
    assert tables.chain(np.ones(3), table[table["thresholds"] == "scaled"]) == []
