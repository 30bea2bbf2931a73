"""What the smoothness constants of DP-CD cost, which docs/accounting.md states.

Two data sets differ in one record, which is zero in the other. Let all gradients be 0,
so that only the scales of the noise differ, C_j = C sqrt(M_j / sum M). A run of 20
passes then draws 20 normal numbers a coordinate from one of two variances, and the loss
is a sum of chi-squares. Its tail is sampled under the exponential tilt whose mean is
epsilon.
"""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import chi2
from sklearn.datasets import load_breast_cancer

from dperm.data import load_prepared

DATA = Path(__file__).parents[2] / "data"
PASSES, DRAWS = 20, 50_000


def scales(X, record):
    """M_j / sum M without the record over that with it."""
    with_it = (X**2).sum(axis=0)
    without = with_it - X[record] ** 2
    return (without / without.sum()) / (with_it / with_it.sum())


def epsilon(ratios, delta):
    """Epsilon of the variances 1 against ``ratios``, in this direction."""
    q = ratios[np.abs(np.log(ratios)) > 1e-12]
    slope, start = 1 - 1 / q, PASSES / 2 * np.log(q).sum()
    most = min([1e3, *(-1 / slope[slope < 0])]) * (1 - 1e-9)
    C = np.random.default_rng(0).chisquare(PASSES, (DRAWS, len(q)))

    def beyond(at):
        """Delta at an epsilon, less the target, on a logarithmic scale."""
        inside = mean(0) < at < mean(most)
        t = brentq(lambda t: mean(t) - at, 0, most) if inside else most * (mean(0) < at)
        loss = start - C / (1 + t * slope) @ slope / 2
        weight = np.exp(t * start - PASSES / 2 * np.log1p(t * slope).sum() - t * loss)
        excess = -np.expm1(np.minimum(0, at - loss))
        return np.log(max(np.mean(weight * excess), 1e-300) / delta)

    def mean(t):
        return start - PASSES / 2 * (slope / (1 + t * slope)).sum()

    return brentq(beyond, 0.01, 200, xtol=1e-3)


def cost(X, record, delta):
    q = scales(X, record)
    return max(epsilon(q, delta), epsilon(1 / q, delta))


def test_one_record_of_breast_cancer():
    assert cost(load_breast_cancer().data, 152, 1e-3) == pytest.approx(2.01, abs=0.02)


@pytest.mark.parametrize(
    ("name", "record", "expected"),
    [("california_norm", 19006, 68), ("electricity_raw", 27291, 7.4)],
)
def test_one_record_of_the_papers_data(name, record, expected):
    if not (DATA / "prepared" / name).is_dir():
        pytest.skip("the data are not prepared")
    X = load_prepared(name, SimpleNamespace(dir=DATA)).X
    assert cost(X, record, len(X) ** -2.0) == pytest.approx(expected, rel=0.01)


def test_one_coordinate_agrees_with_the_normal_law():
    """One variance against another, by quadrature over the chi-square."""
    q, delta = 0.5, 1e-4
    found = epsilon(np.array([q]), delta)
    c = np.linspace(0, 400, 400_001)
    loss = PASSES / 2 * np.log(q) - c / 2 * (1 - 1 / q)
    rest = chi2.pdf(c, PASSES) * np.maximum(0, -np.expm1(found - loss))
    assert np.trapezoid(rest, c) == pytest.approx(delta, rel=0.05)
