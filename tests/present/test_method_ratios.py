"""Verdicts on tuned methods: the stated rate where nothing differs, and power."""

import math
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dperm.present.intervals import (
    LEVEL,
    Measured,
    compared,
    measured,
    retuned,
    tuning_luck,
    verdict,
    widest,
)

# noise of a setting's own, noise common to a seed, width of the valley in the step
LAWS = [(0.3, 0.2, 1.0), (0.05, 0.3, 1.0), (0.5, 0.1, 0.3), (0.2, 0.2, 0.1)]


def tuned_once(rng, law, shift=0.0, replicates=5, fresh=12):
    """A method tuned on a valley of 120 settings and run on fresh seeds."""
    own, common, width = law
    steps, passes = np.linspace(-3, 3, 40), np.linspace(-1, 1, 3)
    points = [(p, s, 1.0) for p in passes for s in steps]
    level = [shift + 0.5 * (s / width) ** 2 + 0.1 * p * p for p, s, _ in points]

    def seeds(count):
        noise = own * rng.standard_normal((len(points), count))
        return np.exp(np.array(level)[:, None] + noise
                      + common * rng.standard_normal(count))  # fmt: skip

    errors, later = seeds(replicates), seeds(fresh)
    rows = [
        (*points[k], r, "ok", errors[k, r], errors[k, r])
        for k, r in product(range(len(points)), range(replicates))
    ]
    columns = ["passes", "step", "clip", "replicate", "status", "objective"]
    table = pd.DataFrame(rows, columns=[*columns, "relative_error"])
    return measured(later[errors.mean(axis=1).argmin()], table)


@pytest.mark.parametrize("law", LAWS)
def test_one_law_under_two_names_is_decided_at_the_stated_rate(law):
    rng, trials = np.random.default_rng(1), 150
    decided = sum(
        verdict(compared(tuned_once(rng, law), tuned_once(rng, law))) != "undecided"
        for _ in range(trials)
    )
    # as many as a rate of 5 % gives in all but one of a thousand tests
    assert decided <= stats.binom.ppf(0.999, trials, 1 - LEVEL)


def test_fresh_runs_alone_would_decide_too_often():
    """The fault that the luck of tuning mends."""
    rng, law, trials = np.random.default_rng(2), LAWS[0], 300

    def blind(found):
        return Measured(found.mean, found.spread, 0.0, found.fresh, found.tuned)

    decided = sum(
        verdict(compared(blind(tuned_once(rng, law)), blind(tuned_once(rng, law))))
        != "undecided"
        for _ in range(trials)
    )
    assert decided > stats.binom.ppf(0.99, trials, 1 - LEVEL)


@pytest.mark.parametrize("law", LAWS[:2])
def test_a_factor_of_three_is_called(law):
    rng = np.random.default_rng(3)
    for _ in range(20):
        better, worse = tuned_once(rng, law), tuned_once(rng, law, math.log(3))
        assert verdict(compared(better, worse)) == "helps"
        assert verdict(compared(worse, better), band=1.3) == "hurts"


def test_choices_that_agree_have_no_luck_and_few_replicates_no_verdict():
    law = (1e-9, 0.3, 0.2)
    assert tuned_once(np.random.default_rng(4), law).luck < 1e-12
    found = compared(*(tuned_once(np.random.default_rng(k), law, k, replicates=2)
                       for k in (0, 2)))  # fmt: skip
    assert found["ci_low"] == 0 and found["ci_high"] == math.inf
    assert verdict(found) == "undecided"


def test_the_luck_is_the_variance_of_choices():
    """Two settings without noise, apart by a factor e, chosen 2 and 3 times of 5."""
    errors = {1.0: [1.0, 1.0, 1.0, 1.0, 1.0], 2.0: [math.e] * 5}
    objective = {1.0: [0, 0, 1, 1, 1], 2.0: [1, 1, 0, 0, 0]}
    rows = [
        (1.0, step, 1.0, r, "ok", objective[step][r], errors[step][r])
        for step in errors for r in range(5)
    ]  # fmt: skip
    columns = ["passes", "step", "clip", "replicate", "status", "objective"]
    table = pd.DataFrame(rows, columns=[*columns, "relative_error"])
    luck, count = tuning_luck(table)
    assert count == 5
    assert luck == pytest.approx(np.var([0, 0, 1, 1, 1], ddof=1))


def test_the_interval_is_welchs_where_tuning_had_no_luck():
    a, b = np.random.default_rng(5).lognormal(size=(2, 9))
    first, second = (
        Measured(np.log(x).mean(), np.log(x).var(ddof=1) / 9, 0.0, 9, 5) for x in (a, b)
    )
    welch = stats.ttest_ind(np.log(a), np.log(b), equal_var=False)
    found, known = compared(first, second), welch.confidence_interval(0.95)
    assert found["ci_low"] == pytest.approx(math.exp(known.low))
    assert found["ci_high"] == pytest.approx(math.exp(known.high))


def test_the_band_of_the_controls():
    assert widest([0.5, 1.2]) == pytest.approx(2.0) and widest([]) == 1.0
    found = {"ratio": 0.6, "ci_low": 0.5, "ci_high": 0.7}
    assert verdict(found) == "helps" and verdict(found, band=2.0) == "undecided"


def test_replicates_tuned_anew():
    table = pd.DataFrame({"replicate": [0, 0, 1, 1], "relative_error": [1, 4, 4, 16.0]})
    found = retuned(table)
    assert found.mean == pytest.approx(math.log(4))
    assert found.spread == pytest.approx(np.var(np.log([2, 8]), ddof=1) / 2)
