"""Theorem 4.1's instance: DP-CD learns means as small as privacy hides only unpaid."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from dperm.core.privacy.calibration import smallest
from dperm.core.privacy.strict import gaussian_epsilon
from dperm.papers.dpcd.sweeps import lower_bound

GIVEN = {"passes": [1, 4], "steps": [0.01, 0.1, 1.0], "transcripts": 3, "fresh": 10}


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
