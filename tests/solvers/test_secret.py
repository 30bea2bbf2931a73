"""A secret shows nothing and is released as the ledger states; the law of sketches."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import linalg

from dperm.privacy.accountants.tight import gaussian_delta
from dperm.privacy.accounting import true_epsilon
from dperm.privacy.events import Gaussian, Ledger, SampledGaussian
from dperm.privacy.mechanisms.noisy_max import TopK
from dperm.privacy.mechanisms.perturbed_objective import PerturbedObjective
from dperm.privacy.mechanisms.sketch import GaussianSketch, sketch_delta
from dperm.privacy.noise import streams
from dperm.solvers.full_batch.secret import (
    UndeclaredError,
    in_rounds,
    largest,
    noisy,
    sketched,
    tilted,
)

VALUE = np.array([[3.5], [-7.25]])
PLAIN = Gaussian(1.0, 2.0, 1, "", "")
SAMPLED = SampledGaussian(1.0, 2.0, 1, "", "", 3, 12)
SKETCH = GaussianSketch(1.0, 2.0, 1, "", "", rows=2)
TOP = TopK(1.0, 2.0, 1, "", "", k=1)
TILT = PerturbedObjective(2.0, 5.0, 1, "", "", curvature=0.4)
DIGITS = Gaussian(2e-6, 1.0, 1, "", "")


def ones(scale, size):
    """In the place of noise."""
    return scale * np.ones((size, 2))


def plain(**changes):
    return noisy(VALUE, **{"sensitivity": 1.0, **changes})


def tilt(off=0.0, reach=1.0, curvature=0.4):
    return tilted(lambda b: b, 2, reach, curvature, off)


# --- nothing is shown -----------------------------------------------------------------

SECRETS = {
    "noisy": noisy(VALUE, 1.0),
    "sketched": sketched(np.diag([3.5, 7.25]), 1.0, 2, np.zeros(1)),
    "tilted": tilted(lambda b: VALUE + b, 2, 1.0, 0.4),
    "largest": largest(VALUE[:, 0], 1.0, 1),
}


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_a_secret_has_no_public_name_for_its_value(secret):
    found = {name for name in dir(secret) if not name.startswith("_")}
    assert found == {"exact", "event_type", "needs", "released"}
    assert not hasattr(secret, "__dict__")
    assert "3.5" not in repr(secret) + str(secret) + repr(secret.needs)
    for name in found:
        assert not np.array_equal(getattr(secret, name), VALUE)


@pytest.mark.parametrize(
    "use",
    [
        float, len, iter, abs, sorted,
        lambda s: s + 1, lambda s: 2 * s, lambda s: s < 1, lambda s: s[0], lambda s: -s,
        lambda s: np.asarray(s, dtype=float), lambda s: np.maximum(s, 0.0),
        lambda s: s.value,
    ],
)  # fmt: skip
def test_nothing_can_be_computed_of_a_secret(use):
    with pytest.raises((TypeError, AttributeError)):
        use(noisy(VALUE, 1.0))


# --- what the ledger does not state ---------------------------------------------------


@pytest.mark.parametrize(
    ("secret", "events", "said"),
    [
        (plain(), [], "no more"),
        (plain(sensitivity=1.001), [PLAIN], "sensitivity"),
        (plain(sensitivity=np.array([0.5, 1.001])), [PLAIN], "sensitivity"),
        (plain(sensitivity=math.nan), [PLAIN], "sensitivity"),
        (plain(), [SAMPLED], "SampledGaussian"),
        (plain(), [TILT], "PerturbedObjective"),
        (plain(rate=3 / 12), [PLAIN], "Gaussian"),
        (plain(rate=4 / 12), [SAMPLED], "sampling_rate"),
        (plain(rate=3 / 12, sensitivity=1.1), [SAMPLED], "sensitivity"),
        (tilt(), [], "no more"),
        (tilt(), [PLAIN], "Gaussian"),
        (tilt(reach=1.001), [TILT], "sensitivity"),
        (tilt(curvature=0.401), [TILT], "curvature"),
        (tilt(off=1e-6), [TILT], "no more"),
        (tilt(off=1e-6), [TILT, TILT], "PerturbedObjective"),
        (tilt(off=1.01e-6), [TILT, DIGITS], "sensitivity"),
        (largest(VALUE[:, 0], 1.001, 1), [TOP], "sensitivity"),
        (largest(VALUE[:, 0], 1.0, 2), [TOP], "k: "),
        (sketched(np.eye(2), 1.001, 2, np.zeros(1)), [SKETCH], "sensitivity"),
        (sketched(np.eye(2), 1.0, 3, np.zeros(1)), [SKETCH], "rows"),
    ],
)
def test_what_the_ledger_does_not_state_is_not_released(secret, events, said):
    with pytest.raises(UndeclaredError, match=said):
        secret.released(iter(events), ones)


@pytest.mark.parametrize(
    ("secret", "events"),
    [
        (plain(sensitivity=0.5), [PLAIN]),
        (plain(rate=2 / 13), [SAMPLED]),
        (tilt(reach=0.9, curvature=0.3), [TILT]),
        (tilt(off=1e-6), [TILT, DIGITS]),
    ],
)
def test_a_ledger_may_state_more(secret, events):
    assert np.isfinite(secret.released(iter(events), ones)).all()


def test_what_is_released_has_the_noise_of_the_event():
    found = plain().released(iter([PLAIN]), ones)
    np.testing.assert_allclose(found, np.add(VALUE, [2.0, 2.0]))
    found = noisy(np.eye(2), 1.0, symmetric=True).released(iter([PLAIN]), ones)
    low = math.sqrt(2)
    np.testing.assert_allclose(found[1], [[3.0, low], [low, 3.0]])
    np.testing.assert_allclose(tilt().released(iter([TILT]), ones), 5.0)
    found = tilt(off=1e-6).released(iter([TILT, DIGITS]), ones)
    np.testing.assert_allclose(found, 6.0)


def test_events_come_in_rounds_each_as_often_as_it_counts():
    events = [replace(PLAIN, scale=float(k), count=k) for k in (2, 1, 3)]
    found = [event.scale for event in in_rounds(Ledger(tuple(events)))]
    assert found == [2.0, 1.0, 3.0, 2.0, 3.0, 3.0]


# --- sketches: their law, its worst pair, and what they cost --------------------------


def sketch(scale, doubt=0.0):
    return GaussianSketch(1.0, scale, 1, "R", "test", 8, doubt)


def sampled(moments, event, known_=0.0, runs=4000, seed=0):
    """Means of y y^T of many sketches, as a secret releases them."""
    normal = streams(seed).noise.standard_normal
    secret = sketched(
        moments, event.sensitivity, event.rows, np.full(runs, known_)
    )
    return secret.released(
        iter([event]), lambda scale, k: scale * normal((k, runs))
    )


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
    assert (
        abs(sketch_delta(s2, freedom, mu, epsilon) - excess.mean()) < 4 * error
    )


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
        np.testing.assert_allclose(
            mean, moments + added * np.eye(2), atol=0.25
        )
