"""Scales by a private release: sensitivity, noise, price, and fits under them."""

import numpy as np
import pytest
from scipy import sparse

from dperm.solvers import private_scales
from dperm.solvers.fits.secret import UndeclaredError


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 4))
    return X, X @ [1.0, -2.0, 0.5, 1.0] + 0.3 * rng.standard_normal(4000)


def silent(scale, size):
    return np.zeros((size, 1))


# --- the release ----------------------------------------------------------------------


def test_a_number_is_counted_at_the_nearest_power_of_two():
    values = np.array([[0.0, 1.0, -1.0, 1.4, 1.42, 3.0, -2.8, 1e-300, 1e300, 0.7072]])
    found = private_scales.histogram(values.T)
    assert found.shape == (1, 97) and found.sum() == 9  # a zero is in no cell
    filled = np.flatnonzero(found[0])
    cells = dict(zip(private_scales.OCTAVES[filled], found[0][filled], strict=True))
    assert cells == {0: 4, 1: 2, 2: 1, -48: 1, 48: 1}
    assert (private_scales.histogram(sparse.csc_array(values.T)) == found).all()


def test_replacing_and_adding_a_record_moves_the_counts_as_far_as_is_proved():
    rng, k = np.random.default_rng(1), 5
    base = 10.0 ** rng.uniform(-30, 30, (20, k)) * rng.choice([-1, 0, 1], (20, k))
    counts, replaced, added = private_scales.histogram(base), [], []
    for _ in range(200):
        other, record = base.copy(), 10.0 ** rng.uniform(-30, 30, k)
        other[3] = record * rng.choice([0, 1], k)
        replaced.append(np.linalg.norm(private_scales.histogram(other) - counts))
        more = np.vstack([base, record])
        added.append(np.linalg.norm(private_scales.histogram(more) - counts))
    assert max(replaced) <= np.sqrt(2 * k) * (1 + 1e-12)
    assert max(added) == pytest.approx(np.sqrt(k))
    base[3] = 1.0
    other = base.copy()
    other[3] = 4.0
    moved = private_scales.histogram(base) - private_scales.histogram(other)
    assert np.linalg.norm(moved) == pytest.approx(np.sqrt(2 * k))
    stated = private_scales.ledger(k, 20, 1.0, 1e-5)
    assert stated.events[0].sensitivity == pytest.approx(np.linalg.norm(moved))


def test_a_ledger_of_fewer_columns_is_refused(data):
    stated = private_scales.ledger(3, 4000, 1.0, 1e-6)
    with pytest.raises(UndeclaredError, match="sensitivity"):
        private_scales.noisy_counts([data[0]], stated, silent)


def test_the_counts_have_the_noise_that_the_ledger_says(data):
    X, _ = data
    stated = private_scales.ledger(4, 4000, 1.0, 1e-6)
    noisy = private_scales.noisy_counts([X], stated, private_scales.seeded(5))
    drawn = noisy - private_scales.histogram(X)
    assert drawn.std() == pytest.approx(stated.events[0].scale, rel=0.1)
    again = private_scales.noisy_counts([X], stated, private_scales.seeded(6))
    assert not np.array_equal(noisy, again)


def test_the_share_is_of_public_numbers_and_within_its_ends():
    given = (8, 5_000, 1.0, 1e-8)
    part = private_scales.share(*given)
    event = private_scales.ledger(*given).events[0]
    whole = private_scales.whole(1.0, 1e-8)
    assert event.noise_multiplier == pytest.approx(whole / np.sqrt(part))
    assert 0.01 < part < 0.3
    assert private_scales.share(8, 10**9, 1.0, 1e-8) == 0.01
    assert private_scales.share(8, 10, 1.0, 1e-8) == 0.3


def test_an_empty_column_is_not_taken_for_one_of_another_unit(data):
    n, k = len(data[1]), 150
    stated = private_scales.ledger(k, n, 1.0, 1 / n**2)
    counts = np.zeros((k, 97))
    rng = np.random.default_rng(2)
    for _ in range(40):
        noisy = counts + stated.events[0].scale * rng.standard_normal(counts.shape)
        found, seen = private_scales.scales(noisy, stated, n)
        assert (found == 1).all() and not seen.any()


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_scales_are_near_root_mean_squares_in_any_unit(unit):
    rng, n = np.random.default_rng(2), 20_000
    X = np.column_stack((
        rng.standard_normal(n), rng.random(n), rng.random(n) < 0.2, np.ones(n),
        rng.poisson(3.0, n), np.zeros(n),
    )) * unit  # fmt: skip
    stated = private_scales.ledger(6, n, 1.0, 1e-8)
    noisy = private_scales.noisy_counts([X], stated, private_scales.seeded(1))
    found, seen = private_scales.scales(noisy, stated, n)
    wanted = np.sqrt((X[:, :5] ** 2).mean(axis=0))
    assert (np.abs(np.log2(found[:5] / wanted)) < 0.5).all()
    assert found[5] == found[:5].max() and not seen[5]  # nothing stands out
    with_label, _ = private_scales.scales(noisy, stated, n, label=True)
    assert (with_label[:5] == found[:5]).all() and with_label[5] == 1.0
