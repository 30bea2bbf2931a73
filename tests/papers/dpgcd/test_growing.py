"""Growth with p and with sparsity, on errors whose law is known."""

import itertools

import numpy as np
import pandas as pd
import pytest

from dperm.core.erm.optimum import solve
from dperm.papers.dpgcd import growing, tables
from dperm.papers.dpgcd.growing import Instance, draw
from dperm.solvers.lanes import dp_gcd


def swept(law, knob="p", values=(100, 1000, 10000), spread=0.0):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {**growing.PLAIN, knob: value, "draw": number, "algorithm": "one",
         "share": law(value) * rng.lognormal(0.0, spread)}
        for value, number, _ in itertools.product(values, (0, 1), range(10))
    )  # fmt: skip


def exponents(table):
    """Those in p."""
    return tables.exponents(table, "p", ["n"])


def sparsity(table):
    return tables.exponents(growing.along(table, "tau"), "tau", ["p", "n"])


def test_the_exponent_of_a_power_of_p():
    (row,) = exponents(swept(lambda p: 1e-3 * p**0.5))
    assert row["exponent"] == pytest.approx(0.5)
    assert row["learnt"] and row["most"] == pytest.approx(0.1)
    assert row["log_exponent"] > 1


def test_the_exponent_of_a_power_of_log_p():
    (row,) = exponents(swept(lambda p: 0.01 * np.log(p) ** 2, spread=0.05))
    assert row["log_exponent_low"] < 2 < row["log_exponent_high"]
    assert row["exponent"] < 0.4


def test_what_differs_otherwise_is_left_out():
    table = swept(lambda tau: 1e-3 * tau, "tau", (1, 4, 16))
    others = swept(lambda p: 1.0)
    rows = sparsity(pd.concat([table, others]))
    assert [row["p"] for row in rows] == [1000]
    assert sparsity(table)[0]["exponent"] == pytest.approx(1.0)


def test_two_points_give_no_exponent():
    assert exponents(swept(lambda p: 1.0, values=(100, 1000))) == []


def test_an_instance_has_the_support_that_was_drawn():
    plain, scaled = (
        draw(Instance(p=60, n=400, tau=3, imbalance=spread), 7, 10.0)
        for spread in (0.0, 1.0)
    )
    optimum = solve(plain)
    assert optimum.support.sum() == 3
    np.testing.assert_allclose(plain.smoothness, 1.0)
    assert np.ptp(np.log(scaled.smoothness)) > 2
    assert (plain.epsilon, plain.delta) == (10.0, 400**-2)
    assert dp_gcd.steps(plain, 4.0, dp_gcd.Options()) == 4
