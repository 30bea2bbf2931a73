"""Comparisons of tuned samplings: controls make the band."""

import numpy as np
import pandas as pd
import pytest

from dperm.core.experiment.results import Result
from dperm.papers.dpskgd import tables
from dperm.papers.dpskgd.measures import CONTROL_TUNED

SOLVERS = ("dp_skgd", "dp_skgd_importance", "dp_skgd_full", "dp_sgd")


def result(problem, solver, error, seed):
    """Two settings a factor 100 apart: tuning has no luck."""
    rng = np.random.default_rng(seed)
    rows = [
        {"calibration": "strict", "passes": 2.0, "step": step, "clip": 1.0,
         "replicate": r, "status": "ok", "objective": step * error,
         "relative_error": step * error * rng.lognormal(0, 0.05)}
        for step in (1.0, 100.0) for r in range(5)
    ]  # fmt: skip
    fresh = pd.DataFrame(
        {"calibration": "strict", "passes": 2.0, "checkpoint": 2.0,
         "relative_error": error * rng.lognormal(0, 0.05, 12)}
    )  # fmt: skip
    return Result(problem, solver, solver, pd.DataFrame(rows), fresh, "")


@pytest.fixture
def read(monkeypatch):
    """Comparisons for errors by problem; importance on "flat" is uniform."""

    def comparisons(errors):
        found = {
            name: [result(name, solver, error, seed + 10 * len(name))
                   for seed, (solver, error) in enumerate(zip(SOLVERS, row,
                                                              strict=True))]
            for name, row in errors.items()
        }  # fmt: skip
        monkeypatch.setattr(tables, "problem_of", lambda config, name: (name, None))
        monkeypatch.setattr(
            tables, "same_law",
            lambda name, a, b: name == "flat" and a == "dp_skgd_importance"
            and b == "dp_skgd",
        )  # fmt: skip
        return pd.DataFrame(tables.comparisons(None, found, "strict"))

    return comparisons


def test_the_widest_control_bounds_what_is_decided(read):
    # a control apart by 1.5; on "steep" factors of 1.3 and of 4
    rows = read({"flat": (1.0, 1.5, 1.0, 1.0), "steep": (1.0, 1.3, 0.25, 1.0)})
    control = rows[rows["question"] == CONTROL_TUNED]
    assert len(control) == 1 and control["ratio"].iloc[0] == pytest.approx(1.5, rel=0.1)
    assert control["ci_low"].iloc[0] > 1  # by its interval alone it would be decided
    rest = rows[rows["question"] != CONTROL_TUNED]
    assert (rest["band"] == control["ratio"].iloc[0]).all()
    steep = rest[rest["problem"] == "steep"].set_index(["first", "second"])
    small = steep.loc[("dp_skgd_importance", "dp_skgd")]
    assert small["ci_low"] > 1 and small["ratio"] < small["band"]
    assert 1 / steep.loc[("dp_skgd_full", "dp_skgd"), "ratio"] > small["band"]


def test_without_controls_the_interval_decides(read):
    rows = read({"steep": (1.0, 1.3, 0.25, 1.0)}).set_index(["first", "second"])
    assert (rows["band"] == 1.0).all()
    assert rows.loc[("dp_skgd_importance", "dp_skgd"), "ci_low"] > 1
