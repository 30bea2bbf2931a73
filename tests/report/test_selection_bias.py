from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from scipy.optimize import brentq

from dperm.accountants.random_stopping import tuned_epsilon
from dperm.core.privacy import Gaussian, Ledger
from dperm.core.privacy.strict import gaussian_epsilon
from dperm.report import page

from .conftest import write

ROWS = [
    ("california_norm", "DP-CD", 2.0, 0.10, 0.12, 0.11, 0.13),
    ("california_norm", "DP-CD", 5.0, 0.20, 0.15, 0.14, 0.16),
    ("california_norm", "DP-SGD", 2.0, 0.30, 0.60, 0.5, 0.7),
]
COLUMNS = ["problem", "algorithm", "passes", "mean", "fresh_mean", "fresh_ci_low",
           "fresh_ci_high"]  # fmt: skip


@pytest.fixture
def tuned(config, monkeypatch):
    meta = Path(config.data.dir, "prepared", "california_norm", "meta.json")
    meta.parent.mkdir(parents=True)
    meta.write_text(json.dumps({"n": 20640}))
    page._target.cache_clear()
    write(config, "table2", pd.DataFrame(ROWS, columns=COLUMNS))
    monkeypatch.setattr(page, "papers", lambda _: [config])
    return page.selection(config)


def test_bias_is_fresh_over_tuning(tuned):
    assert list(tuned["bias"]) == pytest.approx([1.2, 0.75, 2.0])
    assert set(tuned["table"]) == {"table2"}


def test_an_honest_choice_is_priced_by_the_size_of_the_grid(tuned):
    assert set(tuned["trials"]) == {1000}  # ten steps, one hundred clips a cell
    delta = 20640**-2.0
    mu = brentq(lambda mu: gaussian_epsilon(mu, delta) - 1.0, 1e-6, 10.0)
    one = Ledger((Gaussian(1.0, 1 / mu, 1, "", ""),))
    price = tuned_epsilon(one, delta, 1000, "geometric")
    assert tuned["tuned_epsilon"].tolist() == pytest.approx([price] * 3)
    assert (tuned["tuned_epsilon"] > tuned["epsilon"]).all()


def test_a_table_of_best_settings_was_chosen_over_all_passes(config, monkeypatch):
    monkeypatch.setattr(page, "papers", lambda _: [config])
    rows = pd.DataFrame([ROWS[0], ROWS[2]], columns=COLUMNS)
    write(config, "table2", rows)
    assert set(page.selection(config)["trials"]) == {5000}


def test_without_data_the_price_stays_open(config, monkeypatch):
    monkeypatch.setattr(page, "papers", lambda _: [config])
    page._target.cache_clear()
    write(config, "table2", pd.DataFrame(ROWS, columns=COLUMNS))
    assert page.selection(config)["tuned_epsilon"].isna().all()


def test_the_answer_counts_what_came_out_higher_and_prices_the_choice(tuned):
    text = page.bias_in_words(tuned)
    assert "in 67% of 3 chosen settings, by a factor of 1.2 in the median" in text
    assert "among 1,000 settings" in text
    price = tuned["tuned_epsilon"].iloc[0]
    assert f"raises epsilon from 1 to {price:.3g}." in text
    assert page.bias_in_words(tuned.iloc[:0]) == ""
