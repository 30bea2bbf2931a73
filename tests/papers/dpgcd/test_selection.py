"""DP-GCD where the selection is what fails: the instance, and what its runs show."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dperm.core.lanes import Lanes
from dperm.core.privacy.mechanisms import streams
from dperm.papers.dpgcd import growing, sweeps, tables
from dperm.solvers.lanes import dp_gcd

GIVEN = {"epsilon": 1.0, "delta": 1e-6, "tau": 10, "counts": [1, 4], "fresh": 6}


def test_the_instance_is_half_the_squared_distance_whatever_p():
    for p in (20, 50):
        problem = growing.decaying(p, 10, 1.0, 1e-6)
        np.testing.assert_allclose(problem.smoothness, 1.0)
        w = np.random.default_rng(1).standard_normal((1, p))
        true = np.r_[1 / np.arange(1, 11), np.zeros(p - 10)]
        found = float(problem.objective(w)[0])
        assert found == pytest.approx(((w[0] - true) ** 2).sum() / 2)


def test_without_noise_the_largest_coefficients_are_taken_in_order():
    problem = growing.decaying(30, 10, 1.0, 1e-6)
    lanes = Lanes(np.ones(1), np.full(1, 30**1.5), 0.0)
    run = dp_gcd.Run(problem, lanes, streams(1), dp_gcd.Options(), total=3)
    run.advance(3)
    np.testing.assert_allclose(run.weights[0, :4], [1, 1 / 2, 1 / 3, 0], atol=1e-12)


def test_noise_on_a_derivative_does_not_depend_on_p():
    def shares(p, records):
        point = {"algorithm": "DP-GCD", "iterations": 4, "p": p}
        rows = sweeps.selection(None, point, 3, records=records, **GIVEN)
        return np.mean([row["share"] for row in rows])

    quiet, loud = shares(100, 10**7), shares(100, 200)
    assert quiet < 0.12 < loud  # the tail after four coefficients, and noise
    assert shares(1000, 10**7) == pytest.approx(quiet, rel=1e-3)


def test_exponents_are_those_of_the_ranges(monkeypatch):
    sizes = np.repeat([100, 1000, 10000, 100000], 2)
    swept = pd.DataFrame({"p": sizes, "algorithm": "DP-GCD", "iterations": 4})
    swept["share"] = np.log(sizes) / 100
    monkeypatch.setattr(tables, "swept_of", lambda *_: swept)
    ranges = {"all": [1, 1e6], "two": [1, 1e3]}  # two sizes make no exponent
    (row,) = tables.selection(None, None, [], ranges).to_dict("records")
    assert row["log_exponent"] == pytest.approx(1.0)
    assert row["range"] == "all"
