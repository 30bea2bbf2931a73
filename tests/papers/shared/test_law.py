"""The law of what a tuning prints, on transcripts whose law is known, and its p."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from dperm.config import config as configuration
from dperm.config import schema
from dperm.experiments.inputs import Inputs
from dperm.experiments.results import Result
from dperm.experiments.tune import ONE_RUN
from dperm.papers.shared import law, sweeps, tables


def transcripts(means, sigma=0.0, size=40, seed=0, passes=2.0, counts=None):
    """Rows of settings whose errors are lognormal about the given means."""
    rng = np.random.default_rng(seed)
    drawn = rng.lognormal(0.0, sigma, size)
    return pd.DataFrame(
        {"passes": passes, "step": 1.0, "clip": float(index), "transcript": number,
         "relative_error": mean * drawn[number], "status": "ok",
         "true_positives": (counts or [0] * len(means))[index], "false_positives": 0}
        for index, mean in enumerate(means) for number in range(size)
    )  # fmt: skip


def own_draws(means, sigma):
    """Rows of settings with transcripts of their own."""
    parts = [transcripts([mean], sigma, seed=k).assign(clip=float(k))
             for k, mean in enumerate(means)]  # fmt: skip
    return pd.concat(parts)


def drawn(rows, **options):
    return law.law(law.by_passes(rows), **options)


def test_a_mean_of_five_has_a_fifth_of_the_variance():
    rows = transcripts([1.0], sigma=0.2, size=400)
    found, expected = drawn(rows), rows["relative_error"].std() / np.sqrt(5)
    for means in (found.least, found.fresh):
        assert np.log(means.errors).std() == pytest.approx(expected, rel=0.1)
    assert abs(np.corrcoef(found.least.errors, found.fresh.errors)[0, 1]) < 0.1


def test_new_runs_of_the_choice_have_its_mean_and_what_was_printed_is_less():
    rows = own_draws([1.0] * 20, sigma=0.3)
    found, true = drawn(rows), rows["relative_error"].mean()
    assert found.least.errors.mean() < 0.9 * true
    assert found.fresh.errors.mean() == pytest.approx(true, rel=0.05)


def test_counts_are_those_of_the_runs_that_are_averaged():
    rows = transcripts([0.1, 0.9], counts=[2, 7])
    odd = rows["transcript"] % 2 == 1
    rows.loc[odd, ["relative_error", "true_positives"]] *= 2
    for means in (drawn(rows).least, drawn(rows).fresh):
        np.testing.assert_allclose(
            means.counts["true_positives"], 20 * means.errors
        )
        assert set(np.round(means.counts["true_positives"], 1)) == {
            2.0, 2.4, 2.8, 3.2, 3.6, 4.0,
        }  # fmt: skip


def test_passes_are_tuned_over_as_well_and_what_diverged_is_never_best():
    rows = pd.concat(
        [transcripts([0.5], passes=1.0), transcripts([0.1], passes=2.0)]
    )
    for cut in (
        drawn(rows),
        drawn(rows, most=1),
    ):  # the best may all be of one number
        np.testing.assert_allclose(cut.least.errors, 0.1)
    assert cut.settings == 1
    rows.loc[(rows["passes"] == 2.0) & (rows["transcript"] < 39), "status"] = (
        "diverged"
    )
    assert np.median(drawn(rows).least.errors) == pytest.approx(0.5)


def test_the_least_mean_is_printed_and_a_tie_broken_by_chance_for_the_counts():
    alone = drawn(transcripts([0.3, 0.1, 0.2]))
    assert (alone.settings, alone.tied) == (3, 0.0)
    for means in (alone.least, alone.fresh):
        np.testing.assert_allclose(means.errors, 0.1)
        assert means.transcripts == 40
    rows = transcripts([0.1, 0.1001, 0.9], counts=[0, 3, 7])
    for means in (drawn(rows).least, drawn(rows).fresh):
        assert set(means.counts["true_positives"]) == {0.0, 3.0}


def test_quantiles_are_wider_where_few_transcripts_are_known():
    few = drawn(transcripts([1.0], 0.2, size=20)).least
    inner = np.log(np.quantile(few.errors, law.LEVELS))
    wider = np.ptp(np.log(few.quantiles)) / np.ptp(inner)
    assert wider == pytest.approx(np.sqrt(1 + 5 / 20))


def test_settings_near_the_best_are_taken_and_no_more_than_asked():
    rows = pd.DataFrame(
        {"calibration": "published", "passes": passes, "step": step, "clip": clip,
         "replicate": 0, "objective": error, "relative_error": error,
         "status": "ok", "noise_multiplier": 10.0 * passes}
        for passes, (step, clip, error) in itertools.product(
            (2.0, 5.0), [(1.0, 1.0, 0.1), (1.0, 2.0, 0.29), (2.0, 1.0, 0.31)])
    )  # fmt: skip
    near = sweeps.settings(rows, 2.0, near=3.0, most=60)
    assert near["mean"].tolist() == [0.1, 0.29]
    assert near["noise_multiplier"].tolist() == [20.0, 20.0]
    every = sweeps.settings(rows, None, near=3.0, most=3)
    assert every["mean"].tolist() == [0.1, 0.1, 0.29]
    assert set(every["noise_multiplier"]) == {20.0, 50.0}


PRINTED = {"published": "table2", "column": "relative_error_mean", "decimals": 4,
           "spread": 0.02, "redrawn": {}}  # fmt: skip


@pytest.mark.parametrize("printed", [0.3, 0.2])
def test_the_table_has_laws_the_error_at_the_start_and_p(monkeypatch, printed):
    rows = transcripts([0.3, 0.5]).assign(problem="a", solver="dp_cd")
    fresh = pd.DataFrame(
        {"checkpoint": [0.0, 2.0], "relative_error": [0.9, 0.3]}
    )
    ran = Result("a", "dp_cd", "DP-CD", pd.DataFrame(), fresh, "")
    cell = {"problem": ["a"], "algorithm": ["DP-CD"], "relative_error_mean": [printed],
            "passes": rows["passes"].iloc[:1]}  # fmt: skip
    monkeypatch.setattr(
        tables.results, "load", lambda *_, solvers: {"a": [ran]}
    )
    monkeypatch.setattr(
        tables.results, "published", lambda *_: pd.DataFrame(cell)
    )
    options = {"by_passes": True, **PRINTED}
    made = tables.tuning_law(rows, schema.Paper(), Path(), ["a"], **options)
    assert made["prints"].tolist() == ["least", "fresh"]
    np.testing.assert_allclose(made["median"], 0.3)
    assert set(made["start"]) == {0.9} and set(made["algorithm"]) == {"DP-CD"}
    np.testing.assert_allclose(made["half"], 1.0)
    assert set(law.LAW_COLUMNS) < set(made)
    assert ((made["p"] > 0.05) == (printed == 0.3)).all()
    np.testing.assert_allclose(made["p"], made["p_holm"])  # one cell a table
    assert (made["p_start"] < 1e-6).all()


@pytest.fixture
def tuned():
    """The row that the table ``tuned`` makes of these rows."""

    def made(rows):
        swept = rows.assign(problem="a", solver="dp_cd")
        paper = configuration.read("paper", "dpcd")
        inputs = Inputs(schema.Data(), [])
        (found,) = tables.tuned(swept, paper, inputs, ["a"]).to_dict("records")
        return found

    return made


def test_the_luck_of_a_tuning_is_in_the_interval_and_not_in_the_mean(tuned):
    lucky = transcripts([1.0], sigma=0.0)  # a setting that is seldom very bad
    lucky.loc[lucky["transcript"] < 4, "relative_error"] = 11.0
    steady = transcripts([1.2]).assign(clip=1.0)
    found = tuned(pd.concat([lucky, steady]))
    chance = 0.9**5  # that five runs do not see it
    assert found["mean"] == pytest.approx(
        chance * 2.0 + (1 - chance) * 1.2, rel=0.03
    )
    assert found["ci_low"] <= 1.2 and 2.5 < found["ci_high"] < 4


def tuning(errors):
    """Rows of one number of passes, errors of shape (settings, replicates)."""
    return pd.DataFrame(
        {"calibration": "published", "passes": 2.0, "step": float(row), "clip": 1.0,
         "replicate": replicate, "objective": error, "relative_error": error,
         "status": "ok", "noise_multiplier": 1.0}
        for (row, replicate), error in np.ndenumerate(errors)
    )  # fmt: skip


def test_settings_that_ran_once_are_taken_where_they_are_near():
    rng = np.random.default_rng(3)
    seeds = rng.lognormal(0.0, 0.5, 5)  # shared by all settings
    rows = tuning(np.geomspace(0.1, 1.0, 30)[:, None] * seeds)
    whole = sweeps.settings(rows, 2.0, near=3.0, most=60)
    once = rows["step"] >= 16
    rows.loc[once, "status"] = ONE_RUN
    rows = rows[~once | (rows["replicate"] == 0)]
    left = sweeps.settings(rows, 2.0, near=3.0, most=60)
    pd.testing.assert_frame_equal(left, whole)
    rows.loc[rows["step"] == 0, "status"] = "diverged"
    assert 0.0 not in set(
        sweeps.settings(rows, 2.0, near=3.0, most=60)["step"]
    )


# --- the p of printed cells -----------------------------------------------------------

SOME = (0.001, 0.01, 0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975, 0.99, 0.999)


def laws(count, deviation=0.2, start=50.0):
    """Laws of numbers whose logarithm is normal."""
    scores = scipy.stats.norm.ppf(SOME)
    row = {
        f"q{x:g}": math.exp(deviation * z)
        for x, z in zip(SOME, scores, strict=True)
    }
    return pd.DataFrame([row | {"start": start}] * count)


def probed(values, spread=1e-6, half=0.0, **normal):
    values = pd.Series(values)
    same = pd.Series(half, values.index), pd.Series(spread, values.index)
    return law.of_means(laws(len(values), **normal), values, *same)


@pytest.mark.parametrize(
    ("score", "options", "beyond"),  # in standard deviations of the law
    [
        *((score, {}, abs(score)) for score in (-3.5, -1.0, 0.0, 1.96, 5.0)),
        # what tuning does not explain widens a law, and is all of one without width
        (2.0, {"spread": 0.2}, 2 / math.sqrt(2)),
        (2.0, {"spread": 0.2, "deviation": 0.0}, 2.0),
    ],
)
def test_p_is_that_of_the_normal_law_of_logarithms(score, options, beyond):
    found = probed([math.exp(0.2 * score)], **options)["p"][0]
    rel = 0.01 if options else 0.02
    assert found == pytest.approx(2 * scipy.stats.norm.sf(beyond), rel=rel)


def test_rounding_makes_a_number_possible():
    assert probed([1.05], deviation=1e-4)["p"][0] < 1e-6
    assert probed([1.05], deviation=1e-4, half=0.05)["p"][0] > 0.9


def test_w_zero_is_noticed_where_something_was_learnt():
    assert probed([1.0])["p_start"][0] < 1e-6
    assert probed([1.0], start=1.0, spread=0.01)["p_start"][
        0
    ] == pytest.approx(1.0)


def test_holm_multiplies_the_least_by_the_number_of_cells():
    found = law.holm(pd.Series([0.01, 0.04, 0.03, 0.5]))
    assert found.to_list() == pytest.approx([0.04, 0.09, 0.09, 0.5])


def test_deviations_are_tested_by_f():
    rng = np.random.default_rng(1)
    ours = rng.standard_normal((2000, 10)).std(axis=1, ddof=1)
    theirs = rng.standard_normal((2000, 5)).std(axis=1, ddof=1)
    printed = pd.Series([float(f"{one:.1g}") for one in theirs])
    found = law.of_deviations(printed, pd.Series(ours), [10] * 2000, 5)
    # the two ways to normalise make it wide
    assert (found < 0.05).mean() < 0.06
    far = law.of_deviations(
        pd.Series([9.0, 0.02]), pd.Series([1.0, 1.0]), [10, 10], 5
    )
    assert far.max() < 1e-3
    still = law.of_deviations(pd.Series([1.0]), pd.Series([0.0]), [10], 5)
    assert np.isnan(still[0])
