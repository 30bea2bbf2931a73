"""Figures of the hard instances: the bound starts where something is learnt."""

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from dperm.papers.dpsco import rates
from dperm.papers.dpsco.figures import worst

SIZES = [1000, 10_000, 100_000]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def runs(**keys):
    shares = dict(zip(SIZES, (0.9, 0.4, 0.1), strict=True))
    return pd.DataFrame(
        {"method": "noisy_sfw", "p": 1.5, "epsilon": 1.0, "calibration": "strict",
         "d": 16, "n": n, "share": shares[n] * (1 + 0.01 * k)} | keys
        for n in SIZES for k in range(3)
    )  # fmt: skip


def test_the_bound_meets_the_first_point_that_has_learnt():
    _, rows = worst(runs(), [("noisy_sfw", 1.5)])
    table = pd.DataFrame(rows)
    line = table[table["algorithm"] == "epsilon = 1, strict"]
    assert list(line["x"]) == SIZES
    bound = table[table["algorithm"] == "epsilon = 1, strict, bound"]
    first, last = bound.iloc[0], bound.iloc[-1]
    assert first["x"] == 10_000 and first["mean"] == pytest.approx(0.404)
    ends = [rates.bound("noisy_sfw", 1.5, 1.0, n, 16) for n in (1e4, 1e5)]
    assert last["mean"] / first["mean"] == pytest.approx(ends[1] / ends[0])


def test_what_has_learnt_nothing_has_no_bound():
    _, rows = worst(runs(share=0.9), [("noisy_sfw", 1.5)])
    assert not any("bound" in row["algorithm"] for row in rows)
