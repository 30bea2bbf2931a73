"""The lead over a rival counts the luck of both tunings."""

import numpy as np
import pandas as pd
import pytest

from dperm.core.experiment.config import compose
from dperm.core.experiment.results import Result
from dperm.papers.dpgcd import tables


def result(label, error, luck, rng):
    """Two settings that are equally good on average, five tuning and 20 fresh runs."""
    settings = [(step, replicate) for step in (0.1, 1.0) for replicate in range(5)]
    tuned = pd.DataFrame(settings, columns=["step", "replicate"])
    tuned["relative_error"] = error * np.exp(luck * rng.standard_normal(len(tuned)))
    tuned["objective"] = 1 + tuned["relative_error"]
    same = {"calibration": "paper", "passes": 1.0, "clip": 1.0, "status": "ok"}
    tuned = tuned.assign(checkpoint=1.0, **same)
    fresh = pd.DataFrame({"relative_error": error * (1 + 0.01 * rng.random(20))})
    fresh = fresh.assign(checkpoint=1.0, **same)
    return Result("log1", label, label, tuned, fresh, "")


@pytest.mark.parametrize("luck", [0.001, 1.0])
def test_a_lead_within_the_luck_of_tuning_is_none(luck, monkeypatch):
    rng = np.random.default_rng(3)
    ran = [result("DP-CD", 1.2, luck, rng), result("DP-GCD", 1.0, luck, rng)]
    monkeypatch.setattr(tables, "_load", lambda *given: ran)
    (row,) = tables.leads(compose(["paper=dpgcd"]), None, ["log1"]).data.to_dict(
        "records"
    )
    assert row["rival"] == "DP-CD" and row["ratio"] == pytest.approx(1.2, rel=0.02)
    assert (row["ci_low"] > 1) == (luck < 0.1)
