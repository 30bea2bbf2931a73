"""Growth with p and with sparsity, on errors whose law is known."""

import itertools

import numpy as np
import pandas as pd
import pytest

from dperm.papers.dpgcd import growing, tables
from dperm.papers.dpgcd.growing import Instance, draw
from dperm.problems.optimum import solve
from dperm.solvers.batched import dp_gcd


def swept(law, knob="p", values=(100, 1000, 10000), spread=0.0):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {**growing.PLAIN, knob: value, "draw": number, "algorithm": "one",
         "share": law(value) * rng.lognormal(0.0, spread)}
        for value, number, _ in itertools.product(values, (0, 1), range(10))
    )  # fmt: skip


def test_exponents_of_powers_of_p_and_of_its_logarithm():
    laws = [lambda p: 1e-3 * p**0.5, lambda p: 0.01 * np.log(p) ** 2]
    found = [
        tables.exponents(swept(law, spread=0.05), "p", ["n"]) for law in laws
    ]
    (power,), (log,) = found
    assert power["exponent_low"] < 0.5 < power["exponent_high"]
    assert power["learnt"] and power["most"] == pytest.approx(0.1, rel=0.1)
    assert log["log_exponent_low"] < 2 < log["log_exponent_high"]
    assert log["exponent"] < 0.4 and power["log_exponent"] > 1
    two = swept(laws[0], values=(100, 1000))
    assert tables.exponents(two, "p", ["n"]) == []


def test_the_exponent_of_the_sparsity_leaves_out_what_differs_otherwise():
    table = swept(lambda tau: 1e-3 * tau, "tau", (1, 4, 16))
    both = pd.concat([table, swept(lambda p: 1.0)])
    (row,) = tables.exponents(growing.along(both, "tau"), "tau", ["p", "n"])
    assert row["p"] == 1000
    (row,) = tables.exponents(table, "tau", ["p", "n"])
    assert row["exponent"] == pytest.approx(1.0)


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
