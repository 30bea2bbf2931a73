"""What the smoothness constants of DP-CD cost, which docs/accounting.md states.

Two data sets differ in one record, which is zero in the other. Let all gradients be 0,
so that only the scales of the noise differ, C_j = C sqrt(M_j / sum M). A run of 20
passes then draws 20 normal numbers a coordinate from one of two variances, and the loss
is a sum of chi-squares, whose laws are rounded to a grid and composed.
"""

from functools import reduce
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from dp_accounting.pld.pld_pmf import DensePLDPmf
from scipy.stats import chi2
from sklearn.datasets import load_breast_cancer

from dperm.data import load_prepared

DATA = Path(__file__).parents[2] / "data"
PASSES, CELL, CELLS = 20, 2e-3, 60_000


def scales(X, record):
    """M_j / sum M without the record over that with it."""
    with_it = (X**2).sum(axis=0)
    without = with_it - X[record] ** 2
    return (without / without.sum()) / (with_it / with_it.sum())


def epsilon(ratios, delta):
    """Epsilon of the variances 1 against ``ratios``, in this direction."""
    edges = CELL * (np.arange(-CELLS, CELLS + 2) - 0.5)

    def law(q):
        squares = (PASSES / 2 * np.log(q) - edges) / ((1 - 1 / q) / 2)
        masses = np.abs(np.diff(chi2.cdf(squares, PASSES)))
        return DensePLDPmf(CELL, -CELLS, masses, 0.0, True)

    laws = [law(q) for q in ratios if abs(np.log(q)) > 1e-9]
    both = reduce(lambda one, other: one.compose(other, 1e-4 * delta), laws)
    return both.get_epsilon_for_delta(delta)


def cost(X, record, delta):
    q = scales(X, record)
    return max(epsilon(q, delta), epsilon(1 / q, delta))


def test_one_record_of_breast_cancer():
    assert cost(load_breast_cancer().data, 152, 1e-3) == pytest.approx(
        2.01, abs=0.02
    )


@pytest.mark.parametrize(
    ("name", "record", "expected"),
    [("california_norm", 19006, 68), ("electricity_raw", 27291, 7.4)],
)
def test_one_record_of_the_papers_data(name, record, expected):
    if not (DATA / "prepared" / name).is_dir():
        pytest.skip("the data are not prepared")
    X = load_prepared(name, SimpleNamespace(dir=DATA)).X
    assert cost(X, record, len(X) ** -2.0) == pytest.approx(expected, rel=0.01)
