"""Printed means in the law of what a tuning prints, on laws that are known."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dperm.core.experiment import schema
from dperm.kinds.law import LEVELS, quantile_columns
from dperm.report import cells
from dperm.report.evidence import (
    CAVEAT,
    NOT,
    NOTHING,
    PENDING,
    REPRODUCED,
    UNTESTED,
    AbsentError,
    Evidence,
    MissingError,
)
from dperm.report.rules import measures

from .conftest import write

KEYS = ["problem", "algorithm", "passes"]
SIGMA = 0.1
NAMES, PASSES = ("quick", "slow"), (1, 2, 5, 10, 20)
ALL = [("a", name, passes) for name in NAMES for passes in PASSES]


def laws(medians, moves=1.0, sigma=SIGMA, start=1.0):
    """Lognormal laws: key to median; the error moves with a power of the noise."""
    rows = []
    for (problem, algorithm, passes), median in medians.items():
        for factor in (0.7, 0.8, 1.0, 1.25, 1.4):
            middle = median * factor**moves
            quantiles = middle * np.exp(sigma * stats.norm.ppf(LEVELS))
            rows.append(
                {"problem": problem, "algorithm": algorithm, "passes": passes,
                 "draws": "own", "prints": "least", "noise_factor": factor,
                 "start": start,
                 "median": middle,
                 **dict(zip(quantile_columns(), quantiles, strict=True))}
            )  # fmt: skip
    return pd.DataFrame(rows)


def printed(numbers):
    return pd.DataFrame(
        [(*key, value) for key, value in numbers.items()], columns=[*KEYS, "m"]
    )


OPTIONS = {"file": "law", "keys": KEYS, "column": "m", "decimals": 6, "spread": 1e-6,
           "redrawn": {}, "draws": "own"}  # fmt: skip
MEDIANS = {key: 0.1 if key[1] == "quick" else 0.4 for key in ALL}


@pytest.fixture
def known(config, evidence):
    write(config, "law", laws(MEDIANS))

    def cells_of(numbers, change=None, **given):
        return cells.with_laws(evidence, printed(numbers), OPTIONS | given, change)

    return cells_of


def drawn(seed, factor=1.0, medians=MEDIANS):
    rng = np.random.default_rng(seed)
    return {key: factor * median * math.exp(SIGMA * rng.standard_normal())
            for key, median in medians.items()}  # fmt: skip


@pytest.mark.parametrize("sds", [0.5, 1.96, 3.0, 6.0])
def test_the_place_of_a_number_is_its_probability(known, sds):
    (cell, *_) = known({ALL[0]: 0.1 * math.exp(-SIGMA * sds)}, decimals=12).values()
    expected = 2 * stats.norm.sf(sds)  # also beyond the last quantile
    assert cell.probability == pytest.approx(expected, rel=1e-3)


def test_rounding_and_another_draw_of_the_data_are_allowed_for(known):
    far = {ALL[0]: 0.1 * math.exp(4 * SIGMA)}
    (cell,) = known(far).values()
    (rounded,) = known(far, decimals=1).values()
    (redrawn,) = known(far, redrawn={"a": 0.3}).values()
    assert cell.probability < 1e-3 < redrawn.probability < rounded.probability
    assert redrawn.deviation == pytest.approx(math.hypot(SIGMA, 0.3), rel=1e-3)


def test_digits_are_those_of_the_number():
    assert cells.half_unit(0.0085, {"digits": 2}) == pytest.approx(0.00005)
    assert cells.half_unit(0.75, {"digits": 2}) == pytest.approx(0.005)


def test_holm_is_holm():
    found = cells.holm({("a",): 0.01, ("b",): 0.04, ("c",): 0.03})
    assert found == pytest.approx({("a",): 0.03, ("c",): 0.06, ("b",): 0.06})


def test_a_true_table_is_reproduced_and_wrong_ones_are_noticed(known):
    true = drawn(1)
    held = cells.verdicts_by_law(known(true), 0.05)
    assert set(held.values()) == {REPRODUCED}
    errors = cells.scaled(0.7), cells.scaled(1.4)
    for change in (*errors, cells.nothing_learnt):
        wrong = cells.verdicts_by_law(known(true, change), 0.05)
        assert sum(each != REPRODUCED for each in wrong.values()) >= 5


def test_far_out_but_close_is_a_caveat(config, evidence):
    write(config, "law", laws({ALL[0]: 0.1}, sigma=0.01))
    near = cells.with_laws(evidence, printed({ALL[0]: 0.11}), OPTIONS)
    far = cells.with_laws(evidence, printed({ALL[0]: 0.13}), OPTIONS)
    assert list(cells.verdicts_by_law(near, 0.05).values()) == [CAVEAT]
    assert list(cells.verdicts_by_law(far, 0.05).values()) == [NOT]


def test_the_pooled_ratio_covers_1_as_often_as_it_says(known):
    covered = [cells.pooled(list(known(drawn(seed)).values())).ratio
               for seed in range(100)]  # fmt: skip
    assert 90 <= sum(each.low <= 1 <= each.high for each in covered) <= 99


def test_cells_that_do_not_move_with_the_noise_count_for_nothing(config, evidence):
    still = laws({ALL[0]: 0.1}, moves=0.0)
    moving = laws({ALL[1]: 0.1}, moves=1.0)
    write(config, "law", pd.concat([still, moving]))
    numbers = printed({ALL[0]: 0.5, ALL[1]: 0.1})
    both = list(cells.with_laws(evidence, numbers, OPTIONS).values())
    assert cells.pooled(both).log == pytest.approx(0.0, abs=1e-6)
    with pytest.raises(AbsentError, match="no cell that moves"):
        cells.pooled(both[:1])


def test_cells_say_what_they_would_not_have_noticed(config, evidence):
    numbers = printed({ALL[0]: 0.1, ALL[1]: 0.1, ALL[2]: 0.99, ("z", "slow", 1): 0.1})
    sharp, blunt = laws({ALL[0]: 0.1}), laws({ALL[1]: 0.1}, sigma=0.5)
    write(config, "law", pd.concat([sharp, blunt, laws({ALL[2]: 1.0})]))
    how = {"kind": "law", "file": "law", "decimals": 4, "spread": 0.01, "level": 0.05,
           "draws": "own"}  # fmt: skip
    options = {"file": "table", "keys": KEYS, "cells": {"m": how}}
    found = [each.finding for each in cells.judged(evidence, numbers, options)]
    assert [each.verdict for each in found] == [REPRODUCED, NOTHING, NOTHING, PENDING]
    assert found[0].control == ""
    assert found[1].control == "holds for errors x 0.7 and errors x 1.4"
    assert found[2].control == "holds for w = 0"


def test_a_star_stands_at_the_least_of_its_row_or_is_a_tie(config, evidence):
    medians = {key: 0.1 * key[2] for key in ALL}  # 1 pass is the least, by far
    medians |= {("a", "slow", passes): 0.1 for passes in PASSES}
    write(config, "law", laws(medians))
    table = printed(medians | {("b", "slow", 1): 0.1})
    chances = cells.least(cells.with_laws(evidence, printed(medians), OPTIONS))
    assert sum(chances.values()) == pytest.approx(1.0, abs=0.01)
    how = OPTIONS | {"kind": "star", "level": 0.005}
    given = {"file": "law", "keys": KEYS, "cells": {"star": how}}

    def verdicts(*stars):
        keys = table[KEYS].itertuples(index=False, name=None)
        marked = table.assign(star=[int(key in stars) for key in keys])
        found = cells.judged(evidence, marked, given)
        return [each.finding.verdict for each in found]

    assert verdicts(("a", "quick", 1), ("a", "slow", 5)) == [REPRODUCED, UNTESTED]
    assert verdicts(("a", "quick", 2), ("b", "slow", 1)) == [NOT, PENDING]


@pytest.fixture
def two_ways(config):
    """Laws of what may be printed: new runs have wider laws, and three times higher."""
    fresh = laws({ALL[0]: 0.3, ALL[1]: 0.3}, sigma=0.15).assign(prints="fresh")
    write(config, "law", pd.concat([laws({ALL[0]: 0.1, ALL[1]: 0.1}), fresh]))


HOW = {"kind": "law", "file": "law", "decimals": 4, "spread": 0.01, "level": 0.05,
       "draws": "own"}  # fmt: skip


def test_a_print_has_a_law_for_each_thing_that_may_be_printed(two_ways, evidence):
    numbers = printed({ALL[0]: 0.1, ALL[1]: 0.3})
    options = {"file": "table", "keys": KEYS, "cells": {"m": HOW}}
    for prints, verdicts in (
        ("least", [REPRODUCED, NOT]),
        ("fresh", [NOT, REPRODUCED]),
    ):
        given = options | {"prints": prints}
        found = [each.finding for each in cells.judged(evidence, numbers, given)]
        assert [each.verdict for each in found] == verdicts
        assert ("new runs" in found[0].reason) == (prints == "fresh")
    by_default = [each.finding for each in cells.judged(evidence, numbers, options)]
    assert [each.verdict for each in by_default] == [REPRODUCED, NOT]


def test_a_whole_table_lies_in_the_laws_of_one_reading(two_ways, config, monkeypatch):
    table = printed({ALL[0]: 0.31, ALL[1]: 0.28})
    monkeypatch.setattr(measures.results, "published", lambda *_: table)
    options = {"published": "t", "file": "law", "keys": KEYS, "cells": {"m": HOW}}
    of = schema.Claim("Table", "cells", "cells", options)
    evidence = Evidence(config, siblings=[of])

    def judged(prints, **more):
        return measures.in_law(evidence, "Table", "m", prints, **more)

    assert judged("fresh").verdict == REPRODUCED
    assert judged("least").verdict == NOT
    for change in ("errors x 0.5", "w = 0"):
        assert judged("fresh", change=change).verdict == NOT
    with pytest.raises(AbsentError, match="no row"):
        judged("neither")
    flat = pd.read_csv(evidence.path("law"))
    flat[["q0.025", "q0.975"]] = 0.3
    write(config, "law", flat)
    evidence.trusted = True
    with pytest.raises(MissingError, match="no width"):
        judged("fresh")
