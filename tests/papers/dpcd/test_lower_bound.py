"""Theorem 4.1's instance: DP-CD learns means as small as privacy hides only unpaid."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from dperm.core.privacy.calibration import smallest
from dperm.core.privacy.strict import gaussian_epsilon
from dperm.papers.dpcd.sweeps import lower_bound

GIVEN = {"passes": [1, 4], "steps": [0.01, 0.1, 1.0], "transcripts": 3, "fresh": 10}


def shares(n, epsilon=1.0, constants=(1, math.inf)):
    point = {"n": n, "p": 16, "epsilon": epsilon}
    rows = lower_bound(None, point, 5, constants=[*constants], **GIVEN)
    table = pd.DataFrame(rows)
    table["share"] = table["excess"] / table["start"]
    return table.groupby(["calibration", "constant"])[["share", "excess"]].mean()


def test_small_means_are_hidden_and_without_noise_they_are_not():
    found = shares(4000)["share"]
    assert found["strict", 1.0] > 0.8
    assert found["strict", math.inf] < 0.05
    assert found["none", 1.0] < 1e-12


def test_the_excess_is_that_of_the_noise_of_n_records_at_this_epsilon():
    few, many = (shares(n)["excess"]["strict", math.inf] for n in (4000, 16000))
    assert few / many == pytest.approx(16, rel=0.5)
    paid = shares(4000, 4.0)["excess"]["strict", math.inf]
    assert few / paid == pytest.approx(16, rel=0.6)


def test_one_step_of_each_coordinate_leaves_the_noise_of_its_release():
    n, p = 4000, 16
    given = {**GIVEN, "passes": [1], "steps": [1.0], "fresh": 100}
    rows = lower_bound(
        None, {"n": n, "p": p, "epsilon": 1.0}, 5, constants=[math.inf], **given
    )
    found = pd.DataFrame(rows).groupby("calibration")["excess"].mean()["strict"]
    # p Gaussian releases of sensitivity 2 / n; the least noise for epsilon 1 together
    scale = smallest(lambda z: gaussian_epsilon(math.sqrt(p) / z, 1 / n**2), 1.0, 1e-6)
    assert found == pytest.approx(p / 2 * (2 * scale / n) ** 2, rel=0.15)
