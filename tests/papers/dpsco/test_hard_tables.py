"""Tables and figures of the hard instances, of sweeps whose numbers are known."""

import math

import pandas as pd
import pytest

from dperm.core.experiment import config as configuration
from dperm.core.experiment import results, schema
from dperm.papers.dpsco import figures, tables
from dperm.papers.dpsco.rates import bound

CONFIG = configuration.compose(["paper=dpsco"])
SIZES = [1000, 10_000, 100_000]


def given(monkeypatch, **sweeps):
    monkeypatch.setattr(results, "load_sweep", lambda _, name: sweeps[name])
    return schema.Product(sweeps=list(sweeps))


def power(exponent, level=0.1, **keys):
    """Runs of excess level (n / 1000)^exponent, two replicates a hair apart."""
    return pd.DataFrame(
        {"method": "phased_sgd", "p": 4.0, "epsilon": 1.0, "calibration": "paper",
         "n": n, "d": 16, "replicate": k, "initial": 1.0,
         "excess": level * (n / 1000) ** exponent * (1 + 1e-3 * k)} | keys
        for n in SIZES for k in range(2)
    )  # fmt: skip


def test_table_1_is_printed_without_logarithms():
    assert bound("poly_sfw", 1, 2.0, 100, 8, printed=True) == math.log(8) / 20
    assert bound("poly_sfw", 1, math.inf, 100, 8, printed=True) == math.log(8) / 10
    found = bound("noisy_sfw", 1.5, 2.0, 100, 16, printed=True)
    assert found == pytest.approx(math.sqrt(2 / 100) + 2 * 4 / 200)
    found = bound("phased_sgd", math.inf, math.inf, 100, 16, printed=True)
    assert found == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("epsilon", "exponent", "reason"),
    [(1.0, -0.75, ""), (0.2, math.nan, "2 of 2 below half")],
)  # at 0.2 one size is outside: 16 log(n^2) / 0.04 > 5000
def test_corollary_is_fitted_where_it_applies(monkeypatch, epsilon, exponent, reason):
    noisy = power(-0.75, 0.2, instance="hard", bias=1.0, epsilon=epsilon)
    product = given(monkeypatch, hard=noisy)
    (found,) = tables.corollary72_rates(CONFIG, product, []).to_dict("records")
    assert float(found["exponent"] or math.nan) == pytest.approx(exponent, nan_ok=True)
    assert (found["reason"], found["bound_exponent"]) == (reason, -0.5)


def test_the_bound_meets_the_first_point_that_has_learnt(monkeypatch):
    parts = [power(0.0, level, n=n) for n, level in zip(SIZES, (0.9, 0.4, 0.1),
                                                        strict=True)]  # fmt: skip
    rows = drawn(monkeypatch, pd.concat(parts))
    line = rows[rows["algorithm"] == "epsilon = 1, paper"]
    assert list(line["x"]) == SIZES
    curve = rows[rows["algorithm"] == "epsilon = 1, paper, bound"]
    first, last = curve.iloc[0], curve.iloc[-1]
    assert first["x"] == 10_000 and first["mean"] == pytest.approx(0.4, rel=1e-2)
    ends = [bound("phased_sgd", 4.0, 1.0, n, 16) for n in (1e4, 1e5)]
    assert last["mean"] / first["mean"] == pytest.approx(ends[1] / ends[0])
    none = drawn(monkeypatch, power(0.0, 0.9))
    assert not none["algorithm"].str.contains("bound").any()


def drawn(monkeypatch, table):
    """The rows of the figure ``hard``."""
    return figures.hard(CONFIG, given(monkeypatch, hard=table), [], 16,
                        [("phased_sgd", 4.0)]).rows  # fmt: skip
