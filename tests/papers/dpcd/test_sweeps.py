"""Sweeps of DP-CD, on a small problem."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dperm.experiments.inputs import Inputs
from dperm.papers.dpcd import sweeps, tables
from dperm.privacy.accountants.tight import gaussian_epsilon
from dperm.privacy.calibration import smallest
from staging import configured, data_dir  # noqa: F401 (fixtures)

GRID = {"passes": [2, 4], "step": [1e-5, 0.3], "clip": [1.0, 3.0]}
TAKING_NONE = ("private bounds",)
FINER = {"step": [1.0], "clip": [0.5, 1.0]}
PRODUCT = SimpleNamespace(sweeps=["constants", "epsilon"])


def swept(config, constants, calibration, grid=GRID):
    point = {"problem": "breast_cancer", "calibration": calibration}
    point["constants"] = constants
    stored = Inputs(config.data, config.overrides)
    return sweeps.variants(point, 3, config.scale, stored, grid, FINER, 2, 3)


@pytest.fixture
def config(configured):  # noqa: F811
    return configured("paper=dpcd", "problem=breast_cancer")


@pytest.mark.parametrize("constants", list(sweeps.ESTIMATED))
def test_constants_cost_what_they_name(config, constants):
    rows = swept(config, constants, "tight")
    if constants.startswith("without p"):  # thirty features
        assert rows == [{"status": "unreachable"}]
        return
    target = config.problem.privacy.epsilon
    assert len(rows) == 3 and len({row["relative_error"] for row in rows}) == 3
    assert 0.99 * target < rows[0]["true_epsilon"] <= target
    given = rows[0]["given"]
    assert ("M_j" in given) == (constants == "exact")
    assert ("b_j" in given) == (
        constants not in TAKING_NONE and "M_j" not in given
    )


def test_readings_without_p_cost_more_than_they_say(config):
    target = config.problem.privacy.epsilon
    assert (
        swept(config, "equation 126", "published")[0]["true_epsilon"] <= target
    )
    assert (
        swept(config, "without p", "published")[0]["true_epsilon"]
        > 1.4 * target
    )


def test_a_run_that_diverged_leads_nobody():
    ends = tables.ratio(np.array([1.0, 2.0]), np.array([0.1, np.inf]))
    assert ends[0] == 0.0


def test_the_interval_of_a_ratio_holds_it_as_often_as_it_says():
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(400):
        before, after = rng.lognormal(0.0, 0.5, (2, 20)) * [[3.0], [1.0]]
        _, low, high = tables.ratio(before, after)
        hits += low <= 3.0 <= high
    assert 0.91 < hits / 400 < 0.985


def test_the_variants_of_dp_cd_stand_beside_it():
    rows = [
        {"problem": "one", "calibration": "published", "order": order,
         "iterate": iterate, "thresholds": thresholds, "passes": 5.0,
         "relative_error": error + spread}
        for order, iterate, thresholds, error in (
            ("cyclic", "last", "scaled", 1.0), ("cyclic", "last", "equal", 5.0),
            ("uniform", "ten averages", "scaled", 2.0))
        for spread in (-0.1, 0.1)
    ]  # fmt: skip
    shown = tables.thresholds(pd.DataFrame(rows), ["one"])
    shown = shown.set_index("algorithm")["mean"]
    assert shown.to_dict() == pytest.approx(
        {"DP-CD": 1.0, "DP-CD, one threshold": 5.0, "DP-CD, Algorithm 1": 2.0}
    )


def test_at_equal_true_epsilon_constants_are_compared_with_dp_sgd_there(
    monkeypatch,
):
    given = {
        "problem": "one",
        "relative_error": [0.1, 0.3],
        "true_epsilon": 1.0,
    }
    given |= {
        "calibration": "tight",
        "constants": "private bounds",
        "given": "",
    }
    equal = pd.DataFrame({
        "problem": "one", "solver": ["dp_sgd"] * 3 + ["dp_cd"],
        "epsilon": [1.0, 1.0, 10.0, 1.0], "relative_error": [1.0, 3.0, 0.5, 0.1],
    })  # fmt: skip
    rows = {"constants": pd.DataFrame(given), "epsilon": equal}
    monkeypatch.setattr(
        tables.results, "load_sweep", lambda _, name: rows[name]
    )
    problem = SimpleNamespace(privacy=SimpleNamespace(epsilon=1.0))
    monkeypatch.setattr(tables, "titles", lambda *_: {"one": problem})
    made = tables.private_constants(None, None, None, PRODUCT, ["one"])
    shown = made.set_index("constants")
    assert shown["mean"].to_dict() == pytest.approx(
        {"DP-SGD": 2.0, "private bounds": 0.2}
    )
    assert shown.loc["private bounds", "lead"] == pytest.approx(10.0)


def test_one_step_of_each_coordinate_leaves_the_noise_of_its_release():
    n, p = 4000, 16
    given = {"passes": [1], "steps": [1.0], "transcripts": 3, "fresh": 100}
    rows = sweeps.lower_bound(
        {"n": n, "p": p, "epsilon": 1.0}, 5, constants=[math.inf], **given
    )
    found = pd.DataFrame(rows).groupby("calibration")["excess"].mean()["tight"]
    # p Gaussian releases of sensitivity 2 / n; the least noise for epsilon 1 together
    scale = smallest(
        lambda z: gaussian_epsilon(math.sqrt(p) / z, 1 / n**2), 1.0, 1e-6
    )
    assert found == pytest.approx(p / 2 * (2 * scale / n) ** 2, rel=0.15)
