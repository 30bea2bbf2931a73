"""Gaussian sketches: their law, its worst pair, and what they cost."""

import numpy as np
import pytest
from scipy import linalg

from dperm.accountants.sketch import GaussianSketch, sketch_delta
from dperm.core.privacy.accounting import true_epsilon
from dperm.core.privacy.ledger import Gaussian, Ledger
from dperm.core.privacy.mechanisms import streams
from dperm.core.privacy.strict import gaussian_delta
from dperm.solvers.fits.secret import UndeclaredError, sketched


def sketch(scale, rows=8, count=1, doubt=0.0, R=1.0):
    return GaussianSketch(R, scale, count, "R", "test", rows, doubt)


def sampled(moments, event, known_=0.0, runs=4000, seed=0):
    """Means of y y^T of many sketches, as a secret releases them."""
    normal = streams(seed).noise.standard_normal
    secret = sketched(moments, event.sensitivity, event.rows, np.full(runs, known_))
    return secret.released(iter([event]), lambda scale, k: scale * normal((k, runs)))


def test_no_pair_of_records_is_worse_than_orthogonal_ones():
    rng = np.random.default_rng(0)
    for _ in range(200):
        p, gamma = 4, rng.uniform(0.5, 5)
        half = rng.normal(size=(p, p)) * rng.integers(0, 2)
        M = half @ half.T + gamma * np.eye(p)
        x, z = (v / max(1, np.linalg.norm(v)) for v in rng.normal(size=(2, p)))
        ratios = linalg.eigvalsh(M + np.outer(x, x), M + np.outer(z, z))
        assert 1 / (1 + 1 / gamma) <= ratios[0] * (1 + 1e-9)
        assert ratios[-1] <= (1 + 1 / gamma) * (1 + 1e-9)
        np.testing.assert_allclose(ratios[1:-1], 1, atol=1e-9)
    ratios = linalg.eigvalsh(np.diag([3.0, 2.0]), np.diag([2.0, 3.0]))
    np.testing.assert_allclose(ratios, [1 / 1.5, 1.5])  # attained, s^2 = 1/2


@pytest.mark.parametrize("mu", [0.0, 0.05, 0.3, 1.0])
def test_the_law_beside_gaussian_releases(mu):
    s2, freedom, epsilon, rng = 0.2, 20, 0.4, np.random.default_rng(1)
    U, V = rng.chisquare(freedom, (2, 400_000))
    Z = mu**2 / 2 + mu * rng.standard_normal(400_000)
    loss = s2 / 2 * U - s2 / 2 / (1 + s2) * V + Z
    excess = np.maximum(-np.expm1(epsilon - loss), 0)
    error = excess.std() / np.sqrt(len(excess))
    assert abs(sketch_delta(s2, freedom, mu, epsilon) - excess.mean()) < 4 * error


def test_a_quiet_sketch_costs_its_gaussian_releases_and_its_doubt():
    many = Gaussian(1.0, 2.0, 1, "u", "s")
    quiet, delta = sketch(1e4, doubt=1e-6), 1e-5
    found = true_epsilon(Ledger((many, quiet)), delta)
    assert gaussian_delta(found, 0.5) == pytest.approx(0.9e-5, rel=1e-3)
    assert true_epsilon(Ledger((sketch(3.0, doubt=1e-4),)), delta) == np.inf


def test_a_sketch_has_the_covariance_that_it_needs():
    moments, event = np.array([[3.0, 1.0], [1.0, 2.0]]), sketch(2.5)
    for below, added in ((0.0, 6.25), (1.0, 5.25), (9.0, 0.0)):
        mean = sampled(moments, event, below).mean(axis=0)
        np.testing.assert_allclose(mean, moments + added * np.eye(2), atol=0.25)
    for other in (sketch(2.5, rows=4), sketch(2.5, R=0.9)):
        secret = sketched(moments, 1.0, 8, np.zeros(1))
        with pytest.raises(UndeclaredError):
            secret.released(iter([other]), lambda scale, k: np.zeros((k, 1)))
