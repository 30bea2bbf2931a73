"""The law of what a tuning prints, on transcripts whose law is known."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from dperm.core.experiment import racing, schema
from dperm.core.experiment.results import Result
from dperm.kinds import law, sweeps, tables


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


def test_the_least_mean_is_printed():
    found = law.law(transcripts([0.3, 0.1, 0.2]))
    np.testing.assert_allclose(found.errors, 0.1)
    assert (found.settings, found.transcripts, found.tied) == (3, 40, 0.0)


def test_a_mean_of_five_has_a_fifth_of_the_variance():
    rows = transcripts([1.0], sigma=0.2, size=400)
    spread = np.log(law.law(rows).errors).std()
    assert spread == pytest.approx(rows["relative_error"].std() / np.sqrt(5), rel=0.1)


def test_choosing_among_transcripts_of_their_own_prints_less():
    rows = transcripts([1.0] * 20, sigma=0.3)
    shared, own = law.law(rows), law.law(rows, own=True)
    assert np.median(own.errors) < 0.9 * np.median(shared.errors)
    assert shared.tied == 1.0


def test_passes_are_tuned_over_as_well_and_what_diverged_is_never_best():
    rows = pd.concat([transcripts([0.5], passes=1.0), transcripts([0.1], passes=2.0)])
    np.testing.assert_allclose(law.law(rows).errors, 0.1)
    rows.loc[(rows["passes"] == 2.0) & (rows["transcript"] < 39), "status"] = "diverged"
    assert np.median(law.law(rows).errors) == pytest.approx(0.5)


def test_the_best_settings_may_all_be_of_one_number_of_passes():
    rows = pd.concat([transcripts([0.5], passes=1.0), transcripts([0.1], passes=2.0)])
    cut = law.law(rows, most=1)
    assert cut.settings == 1
    np.testing.assert_allclose(cut.errors, 0.1)


def test_a_tie_is_broken_by_chance_for_the_counts():
    rows = transcripts([0.1, 0.1001, 0.9], counts=[0, 3, 7])
    seen = set(law.law(rows).counts["true_positives"])
    assert seen == {0.0, 3.0}


def test_quantiles_are_wider_where_few_transcripts_are_known():
    few = law.law(transcripts([1.0], 0.2, size=20))
    inner = np.log(np.quantile(few.errors, law.LEVELS))
    wider = np.ptp(np.log(few.quantiles)) / np.ptp(inner)
    assert wider == pytest.approx(np.sqrt(1 + 5 / 20))


def test_settings_near_the_best_are_taken_and_no_more_than_asked():
    rows = pd.DataFrame(
        {"calibration": "paper", "passes": passes, "step": step, "clip": clip,
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


def test_the_table_has_a_law_for_every_noise_and_the_error_at_the_start(monkeypatch):
    rows = [
        transcripts([0.3 * factor, 0.5]).assign(
            problem="a", solver="dp_cd", noise_factor=factor
        )
        for factor in (1.0, 0.8)
    ]
    fresh = pd.DataFrame({"checkpoint": [0.0, 2.0], "relative_error": [0.9, 0.3]})
    ran = Result("a", "dp_cd", "DP-CD", pd.DataFrame(), fresh, "")
    monkeypatch.setattr(tables.results, "load_sweep", lambda *_: pd.concat(rows))
    monkeypatch.setattr(tables.results, "load", lambda *_, solvers: {"a": [ran]})
    product = schema.Product("tuning_law", sweeps=["law"], options={"by_passes": True})
    made = tables.tuning_law(schema.Config(), product, ["a"])
    assert made.data["noise_factor"].tolist() == [1.0, 1.0, 0.8, 0.8]
    assert made.data["draws"].tolist() == ["shared", "own"] * 2
    np.testing.assert_allclose(made.data["median"], [0.3, 0.3, 0.24, 0.24])
    assert set(made.data["start"]) == {0.9} and set(made.data["algorithm"]) == {"DP-CD"}
    np.testing.assert_allclose(made.data["half"], 1.0)
    assert set(law.quantile_columns()) < set(made.data)
    assert not set(law.quantile_columns()) & set(made.text)  # for the claims alone


def tuning(errors):
    """Rows of one number of passes, errors of shape (settings, replicates)."""
    return pd.DataFrame(
        {"calibration": "paper", "passes": 2.0, "step": float(row), "clip": 1.0,
         "replicate": replicate, "objective": error, "relative_error": error,
         "status": "ok", "noise_multiplier": 1.0}
        for (row, replicate), error in np.ndenumerate(errors)
    )  # fmt: skip


def test_settings_that_racing_left_are_taken_where_they_are_near():
    rng = np.random.default_rng(3)
    seeds = rng.lognormal(0.0, 0.5, 5)  # shared by all settings
    rows = tuning(np.geomspace(0.1, 1.0, 30)[:, None] * seeds)
    whole = sweeps.settings(rows, 2.0, near=3.0, most=60)
    missing = (rows["step"] >= 16) & (rows["replicate"] >= 2)
    rows.loc[missing, ["objective", "relative_error"]] = np.nan
    rows.loc[missing, "status"] = racing.CANNOT_WIN
    left = sweeps.settings(rows, 2.0, near=3.0, most=60)
    pd.testing.assert_frame_equal(left, whole)
    rows.loc[rows["step"] == 0, "status"] = "diverged"
    assert 0.0 not in set(sweeps.settings(rows, 2.0, near=3.0, most=60)["step"])
