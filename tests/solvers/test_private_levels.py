"""Levels and gaps of data frames, found within epsilon."""

import math

import numpy as np
import pytest

from dperm.core.privacy.accounting import true_epsilon
from dperm.core.privacy.calibration import calibrate
from dperm.core.privacy.ledger import Gaussian, Ledger
from dperm.core.privacy.strict import gaussian_delta, gaussian_epsilon
from dperm.solvers import private_levels
from dperm.solvers.fits.secret import UndeclaredError
from dperm.solvers.private_scales import seeded

CITIES = np.array(["A", "B", "C", "D"])


def counted(records):
    """Counts of the values of two text columns, and of gaps in three of numbers."""
    text, gaps = records
    values = [
        dict(zip(*np.unique(one, return_counts=True), strict=True)) for one in text.T
    ]
    return values, gaps.sum(axis=0)


def as_vector(records):
    values, gaps = counted(records)
    return np.array([*(one.get(c, 0) for one in values for c in CITIES), *gaps])


def test_the_sensitivity_is_what_replacing_a_record_moves():
    rng = np.random.default_rng(0)
    text, gaps = rng.choice(CITIES, (20, 2)), rng.integers(0, 2, (20, 3))
    moved = []
    for _ in range(300):
        other, holes = text.copy(), gaps.copy()
        other[0], holes[0] = rng.choice(CITIES, 2), rng.integers(0, 2, 3)
        moved.append(
            np.linalg.norm(as_vector((text, gaps)) - as_vector((other, holes)))
        )
    event = private_levels.ledger(2, 3, 20, 1.0, 1e-5).events[0]
    assert max(moved) == pytest.approx(event.sensitivity) == math.sqrt(7)
    with pytest.raises(UndeclaredError, match="sensitivity"):
        few = private_levels.ledger(2, 2, 20, 1.0, 1e-5)
        private_levels.released(*counted((text, gaps)), few, seeded(0))
    with pytest.raises(UndeclaredError, match="text columns"):
        few = private_levels.ledger(1, 9, 20, 1.0, 1e-5)
        private_levels.released(*counted((text, gaps)), few, seeded(0))


def test_counts_have_the_noise_and_the_threshold_of_the_ledger():
    stated = private_levels.ledger(1, 1, 5000, 1.0, 1e-2)
    event = stated.events[0]
    noisy, alone, runs = [], 0, 40_000
    normal = seeded(1)
    for _ in range(runs):
        (levels,), gaps = private_levels.released(
            [{"a": 2000, "z": 1}], [7], stated, normal
        )
        noisy.append((levels["a"], gaps[0]))
        alone += "z" in levels
    spread = np.std(noisy, axis=0)
    assert spread == pytest.approx([event.scale] * 2, rel=0.02)
    assert np.mean(noisy, axis=0) == pytest.approx([2000, 7], abs=0.03 * event.scale)
    assert event.doubt == pytest.approx(0.1 * 1e-2, rel=1e-6)
    assert abs(alone - runs * event.doubt) < 5 * math.sqrt(runs * event.doubt)


def test_the_price_is_that_of_the_noise_and_of_lone_values():
    """Against the exact law of a value that one of two data sets holds alone."""
    stated = private_levels.ledger(1, 0, 100, 1.0, 1e-2)
    event = stated.events[0]
    epsilon = true_epsilon(stated, 1e-2)
    mu = math.sqrt(2) / event.scale
    assert epsilon == pytest.approx(gaussian_epsilon(mu, 1e-2 - event.doubt), rel=1e-2)
    assert epsilon > gaussian_epsilon(mu, 1e-2 - event.doubt)
    # D has z once more where its neighbour has a: z is lone, and a moves by one
    exact = event.doubt + (1 - event.doubt) * gaussian_delta(epsilon, 1 / event.scale)
    assert exact <= 1e-2
    assert true_epsilon(stated, event.doubt) == math.inf
    beside = Ledger((*stated.events, Gaussian(1.0, 5.0, 1, "", "")))
    mu = math.hypot(mu, 0.2)
    assert true_epsilon(beside, 1e-2) == pytest.approx(
        gaussian_epsilon(mu, 1e-2 - event.doubt), rel=1e-2
    )


def test_a_target_that_the_doubt_uses_up_is_out_of_reach():
    stated = private_levels.ledger(3, 0, 100, 1.0, 1e-4)

    def more(noise):
        return stated + Ledger((Gaussian(1.0, noise, 1, "", ""),))

    found = calibrate(more, 1.0, 1e-4, "strict")
    assert 0.999 < true_epsilon(found.ledger, 1e-4) <= 1.0


def test_means_of_columns_move_by_six_a_column_and_have_their_noise():
    rng = np.random.default_rng(2)
    X = rng.normal(0.5, 1.0, (400, 2))
    stated = private_levels.fill_ledger(2, 1.0, 1e-5)
    assert stated.events[0].sensitivity == 6 * math.sqrt(2)
    far = np.vstack((X[1:], [[1e9, -1e9]]))
    none = lambda scale, size: np.zeros((size, 1))  # noqa: E731
    one, two = (
        private_levels.means(V, np.full(2, 400.0), stated, none) for V in (X, far)
    )
    assert np.linalg.norm(one - two) * 400 <= 6 * math.sqrt(2)
    normal, big = seeded(3), np.full(2, 1e6)
    draws = [private_levels.means(X, big, stated, normal) for _ in range(4000)]
    spread = np.std(draws, axis=0) * 1e6
    assert spread == pytest.approx([stated.events[0].scale] * 2, rel=0.05)
