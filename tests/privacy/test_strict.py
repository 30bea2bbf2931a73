"""The proved upper bound, against exact laws and accountants written here."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from dperm.accountants.generalised_gaussian import GeneralisedGaussian, regularity
from dperm.accountants.noisy_max import ChosenValue, NoisyMax, pure_delta
from dperm.core.privacy import (
    Gaussian,
    Laplace,
    Ledger,
    NonPrivate,
    SampledGaussian,
    true_epsilon,
)
from dperm.core.privacy.accounting import epsilon, estimate
from dperm.core.privacy.pld import Profile, composed_epsilon
from dperm.core.privacy.strict import (
    gaussian_delta,
    laplace_delta,
    sampled_gaussian_delta,
)

DELTA = 1e-6


def ledger(*events):
    return Ledger(events)


def sampled(sigma, count, n, batch=1):
    return SampledGaussian(1.0, sigma, count, batch, n, "", "")


def noisy_max(scale, count, noise="laplace"):
    return NoisyMax(1.0, scale, count, "", "", noise=noise)


# --- sampled Gaussians: above the pair in either direction ----------------------------


def composed(p, q, count, width, half):
    """Epsilon of the pair (p, q) of densities on a fine grid; losses rounded to a grid.

    A plain cyclic Fourier transform of the losses under p, rounded to the nearest: an
    estimate, right to the digits that are compared.
    """
    loss = np.log(p / q)
    cells = np.clip(np.rint(loss / width), -half, half).astype(int)
    law = np.bincount(cells % (2 * half), p, 2 * half)
    power = np.maximum(np.fft.irfft(np.fft.rfft(law) ** count, 2 * half), 0)
    losses = width * np.fft.fftfreq(2 * half, 1 / (2 * half))

    def delta(e):
        kept = losses > e
        return float(-np.expm1(e - losses[kept]) @ power[kept])

    low, high = 0.0, width * half
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if delta(middle) > DELTA else (low, middle)
    return high


@pytest.mark.parametrize(
    ("n", "batch", "sigma", "count", "up", "down", "high"),
    [
        (2000, 1, 0.8, 10**4, 0.458, 0.355, 0.554),
        (800, 40, 1.5, 200, 2.694, 2.057, 3.014),
    ],
)
def test_sampled_gaussians_cost_more_than_their_pair_and_as_much_as_their_curve(
    n, batch, sigma, count, up, down, high
):
    q, mu = batch / n, 1 / sigma
    z = np.linspace(-12, 12 + mu, 40_001)
    null = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
    mixed = (1 - q) * null + q * null * np.exp(mu * z - mu**2 / 2)
    width, half = (2e-5, 2**18) if batch == 1 else (2e-4, 2**17)
    ends = [composed(*pair, count, width, half)
            for pair in ((mixed, null), (null, mixed))]  # fmt: skip
    assert ends == pytest.approx([up, down], abs=6e-4)
    found = true_epsilon(ledger(sampled(sigma, count, n, batch)), DELTA)
    assert found == pytest.approx(high, abs=6e-4) and found > max(ends)


# --- ledgers of which some digits were found independently ----------------------------


@pytest.mark.parametrize(
    ("events", "value"),
    [
        ((Gaussian(1.0, 20.0, 300, "", ""), Gaussian(1.0, 7.0, 5, "", "")), 4.46207),
        ((Laplace(0.15, 1.0, 60, "", ""),), 5.4254),
        ((Laplace(0.05, 1.0, 8, "", ""), Gaussian(1.0, 5.0, 1, "", "")), 1.0150),
        ((noisy_max(20.0, 100),), 4.7746),
        ((noisy_max(20.0, 100, "gumbel"),), 2.4191),
    ],
)
def test_ledgers_cost_what_is_known_of_them(events, value):
    assert true_epsilon(Ledger(events), DELTA) == pytest.approx(value, rel=2e-4)


def _largest(chances, losses):
    """The least epsilon of losses with these chances."""
    low, high = 0.0, 400.0
    for _ in range(80):
        middle = (low + high) / 2
        kept = losses > middle
        value = -np.expm1(middle - losses[kept]) @ chances[kept]
        low, high = (middle, high) if value > DELTA else (low, middle)
    return low


def test_a_selection_costs_more_with_its_value():
    greedy = ledger(noisy_max(20.0, 10), ChosenValue(1.0, 20.0, 10, "", ""))
    values = true_epsilon(ledger(greedy.events[1]), DELTA)
    selections = true_epsilon(ledger(greedy.events[0]), DELTA)
    assert max(values, selections) < true_epsilon(greedy, DELTA) < values + selections


def test_what_has_no_sound_bound_is_infinite():
    other = GeneralisedGaussian(1.0, 3.0, 1, 5.0, regularity(5.0, 64), "", "")
    plain = Gaussian(1.0, 9.0, 4, "", "")
    both = true_epsilon(ledger(other, plain), DELTA)
    assert true_epsilon(ledger(plain), DELTA) < both < math.inf
    unsound = NoisyMax(1.0, 9.0, 4, "", "", sound=False)
    assert true_epsilon(ledger(unsound, plain), DELTA) == math.inf
    assert true_epsilon(ledger(NonPrivate(1, "", "")), DELTA) == math.inf
    assert true_epsilon(ledger(Gaussian(1.0, 0.0, 1, "", "")), DELTA) == math.inf
    assert true_epsilon(Ledger(), DELTA) == 0.0


# --- rounding and what is lost --------------------------------------------------------


@pytest.mark.parametrize("count", [1, 7, 300])
@pytest.mark.parametrize("pure", [0.03, 1.0])
def test_the_bound_holds_the_exact_binomial(pure, count):
    """Randomised response, exactly on the grid."""
    true = 1 / (1 + math.exp(-pure))
    heads = np.arange(count + 1)
    exact = _largest(binom.pmf(heads, count, true), pure * (2 * heads - count))
    curve = Profile(lambda e: pure_delta(e, pure), count, pure)
    high = composed_epsilon([curve], DELTA)
    assert exact * (1 - 1e-9) <= high <= exact * (1 + 3e-4) + 1e-9


@pytest.mark.parametrize("count", [1, 5])
def test_what_is_revealed_at_times_is_paid_for(count):
    """A Gaussian that says all with a chance of 1e-7; and too often."""
    often = 1e-7

    def curve(losses):
        return often + (1 - often) * gaussian_delta(losses, 0.3)

    def plain(losses):
        return gaussian_delta(losses, 0.3)

    told = composed_epsilon([Profile(curve, count, 3.0)], DELTA)
    left = 1 - (1 - DELTA) / (1 - often) ** count
    kept = composed_epsilon([Profile(plain, count)], left)
    assert told == pytest.approx(kept, rel=5e-3)
    most = Profile(curve, 11, 3.0)
    assert composed_epsilon([most], DELTA) == math.inf


def test_the_estimate_of_searches_is_near_the_epsilon():
    for events in ((sampled(0.8, 2000, 2000),), (noisy_max(9.0, 40),)):
        close = estimate(Ledger(events), DELTA, "strict")
        assert epsilon(Ledger(events), DELTA, "strict") == pytest.approx(
            close, rel=1e-4
        )


def test_curves_have_good_relative_precision():
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 60
    phi, exp, log = mpmath.ncdf, mpmath.exp, mpmath.log

    def normal(e, mu):
        return phi(mu / 2 - e / mu) - exp(e) * phi(-mu / 2 - e / mu)

    def mixed(e, q, mu):
        return q * normal(log(1 + (exp(e) - 1) / q), mu)

    worst = 0.0
    for mu in (0.02, 0.3, 1.6, 4.0):
        m = mpmath.mpf(mu)
        for e in np.geomspace(1e-7, 30, 40):
            found = {
                "gaussian": (gaussian_delta(e, mu), normal(mpmath.mpf(e), m)),
                "laplace": (laplace_delta(e, mu),
                            1 - exp((mpmath.mpf(e) - m) / 2)),
                "pure": (pure_delta(e, mu),
                         (exp(m) - exp(mpmath.mpf(e))) / (1 + exp(m))),
            }  # fmt: skip
            for q in (1e-6, 2.0**-15, 0.05):
                exact = mixed(mpmath.mpf(e), mpmath.mpf(q), m)
                found[f"sampled {q}"] = (sampled_gaussian_delta(e, q, mu), exact)
            for got, exact in found.values():
                if exact > 1e-40:
                    worst = max(worst, abs(float(mpmath.mpf(float(got)) / exact - 1)))
    assert worst < 2e-11


def test_more_releases_and_a_smaller_delta_cost_more():
    rng = np.random.default_rng(0)
    for _ in range(12):
        events = [
            sampled(rng.uniform(0.6, 3), int(rng.integers(1, 300)), 100,
                    int(rng.integers(1, 30))),
            Laplace(1.0, rng.uniform(2, 40), int(rng.integers(1, 30)), "", ""),
            noisy_max(rng.uniform(2, 40), int(rng.integers(1, 30))),
            Gaussian(1.0, rng.uniform(1, 40), int(rng.integers(1, 30)), "", ""),
        ]  # fmt: skip
        kept = rng.random(4) < 0.5
        chosen = [e for e, keep in zip(events, kept, strict=True) if keep]
        delta = 10.0 ** -rng.uniform(2, 9)
        found = [
            true_epsilon(ledger(*chosen[:k]), delta) for k in range(len(chosen) + 1)
        ]
        assert found == sorted(found) and found[-1] < math.inf
        assert found[-1] <= true_epsilon(ledger(*chosen), delta / 10)
