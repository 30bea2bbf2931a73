"""Both ends of an epsilon, against accountants written here."""

import math

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from dperm.accountants import attained, intervals
from dperm.accountants.attained import WINS
from dperm.accountants.generalised_gaussian import GeneralisedGaussian, regularity
from dperm.accountants.intervals import epsilon_interval, lower_epsilon
from dperm.accountants.noisy_max import ChosenValue, NoisyMax, pure_delta
from dperm.core.privacy import (
    Gaussian,
    Laplace,
    Ledger,
    NonPrivate,
    SampledGaussian,
    certified,
    true_epsilon,
)
from dperm.core.privacy.accounting import Interval, epsilon, estimate, unconditional
from dperm.core.privacy.ledger import SMOOTHNESS, N
from dperm.core.privacy.strict import (
    gaussian_delta,
    laplace_delta,
    profile,
    sampled_gaussian_delta,
)

DELTA = 1e-6


def ledger(*events):
    return Ledger(events)


def sampled(sigma, count, n, batch=1):
    return SampledGaussian(1.0, sigma, count, batch, n, "", "")


def noisy_max(scale, count, noise="laplace"):
    return NoisyMax(1.0, scale, count, "", "", noise=noise)


# --- sampled Gaussians: the pair in either direction ----------------------------------


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
def test_sampled_gaussians_lie_between_their_pair_and_their_curve(
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
    found = epsilon_interval(ledger(sampled(sigma, count, n, batch)), DELTA)
    assert found.high == pytest.approx(high, abs=6e-4)
    assert ends[0] * 0.998 < found.low < ends[0] * (1 + 1e-3)


def test_low_is_a_cost_of_the_pair_and_not_of_the_grid():
    """One record of ten, one release: delta in closed form in both directions."""
    q, mu = 0.1, 1 / 0.7
    found = epsilon_interval(ledger(sampled(0.7, 1, 10)), DELTA)

    def delta(e):
        z = (math.log1p(math.expm1(e) / q) + mu**2 / 2) / mu
        p = (1 - q) * ndtr(-z) + q * ndtr(mu - z)
        return p - math.exp(e) * ndtr(-z)

    assert delta(found.low) > DELTA > delta(found.high * (1 + 1e-9))
    assert found.high < found.low * 1.001


# --- ledgers of which three digits were found independently ---------------------------


@pytest.mark.parametrize(
    ("events", "value"),
    [
        ((Gaussian(1.0, 20.0, 300, "", ""), Gaussian(1.0, 7.0, 5, "", "")), 4.46207),
        ((Laplace(0.15, 1.0, 60, "", ""),), 5.4254),
        ((Laplace(0.05, 1.0, 8, "", ""), Gaussian(1.0, 5.0, 1, "", "")), None),
    ],
)
def test_ends_of_releases_that_attain_their_curve_meet(events, value):
    found = epsilon_interval(Ledger(events), DELTA)
    assert found.low <= found.high <= found.low * 1.0005
    if value:
        assert found.high == pytest.approx(value, rel=2e-5)


@pytest.mark.parametrize(
    ("event", "high"),
    [(noisy_max(20.0, 100), 4.7746), (noisy_max(20.0, 100, "gumbel"), 2.4191)],
)
def test_a_hundred_selections_against_binomials(event, high):
    """The upper end as known; the lower is what two scores cost, by counting wins."""
    found = epsilon_interval(ledger(event), DELTA)
    assert found.high == pytest.approx(high, abs=1e-4)
    win, wins, costs = WINS[event.noise], np.arange(101), []
    for gap in (0.0, 0.5, 2.0, 5.0):
        p, q = (win(s * event.pure / 2 - gap) for s in (1, -1))
        for one, other in ((p, q), (q, p)):
            first, second = binom.logpmf(wins, 100, one), binom.logpmf(wins, 100, other)
            costs.append(_largest(np.exp(first), first - second))
    assert max(costs) * 0.995 < found.low <= max(costs) * (1 + 1e-9)


def _largest(chances, losses):
    low, high = 0.0, 400.0
    for _ in range(80):
        middle = (low + high) / 2
        kept = losses > middle
        value = -np.expm1(middle - losses[kept]) @ chances[kept]
        low, high = (middle, high) if value > DELTA else (low, middle)
    return low


def test_one_selection_costs_nearly_twice_its_noise_if_the_leader_is_far_ahead():
    found = epsilon_interval(ledger(noisy_max(2.0, 1)), 1e-9)
    assert 0.85 < found.low < found.high < 1.0001


def test_a_selection_with_its_value():
    greedy = ledger(noisy_max(20.0, 10), ChosenValue(1.0, 20.0, 10, "", ""))
    both = epsilon_interval(greedy, DELTA)
    values = epsilon_interval(ledger(greedy.events[1]), DELTA)
    assert values.high < both.low < both.high


# --- what no pair is known of, and what nothing bounds --------------------------------


def test_where_nothing_is_proved_the_lower_end_prices_the_rest():
    d = 64
    other = GeneralisedGaussian(1.0, 3.0, 1, 5.0, regularity(5.0, d), "", "")
    assert epsilon_interval(ledger(other), DELTA).low == 0.0
    plain = Gaussian(1.0, 9.0, 4, "", "")
    both = epsilon_interval(ledger(other, plain), DELTA)
    assert both.low == true_epsilon(ledger(plain), DELTA) < both.high
    unsound = NoisyMax(1.0, 9.0, 4, "", "", sound=False)
    found = epsilon_interval(ledger(unsound, plain), DELTA)
    assert found == (both.low, math.inf)


def test_without_noise_both_ends_are_infinite():
    bare = Interval(math.inf, math.inf)
    assert epsilon_interval(ledger(NonPrivate(1, "", "")), DELTA) == bare
    assert epsilon_interval(ledger(Gaussian(1.0, 0.0, 1, "", "")), DELTA) == bare
    assert epsilon_interval(Ledger(), DELTA) == Interval(0.0, 0.0)


def test_unconditional_is_infinite_where_a_constant_moves_with_the_data():
    event = Gaussian(1.0, 9.0, 4, "", "")
    plain = Ledger((event,), given=(N,))
    assert unconditional(plain, DELTA) == true_epsilon(plain, DELTA) < math.inf
    assert unconditional(plain.assuming(SMOOTHNESS), DELTA) == math.inf


# --- certificates ---------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 7, 300])
@pytest.mark.parametrize("pure", [0.03, 1.0])
def test_certified_ends_hold_the_exact_binomial(pure, count):
    """Randomised response, exactly on the grid."""
    true = 1 / (1 + math.exp(-pure))
    heads = np.arange(count + 1)
    exact = _largest(binom.pmf(heads, count, true), pure * (2 * heads - count))
    curve = certified.Profile(lambda e: pure_delta(e, pure), count, pure)
    high = certified.upper_epsilon([curve], DELTA)
    pair = attained.Pair(*np.array([[true, 1 - true], [1 - true, true], [0, 0]]))
    low, _ = attained.least_epsilon([(pair, count, pure)], pure / 512, DELTA)
    assert exact * (1 - 1e-9) <= high <= exact * (1 + 3e-4) + 1e-9
    assert low <= exact * (1 + 1e-9)
    assert low >= exact * 0.999 - 1e-6 or count > 1  # scores add up, losses do more


@pytest.mark.parametrize("count", [1, 5])
def test_what_is_revealed_at_times_is_paid_for(count):
    """A Gaussian that says all with a chance of 1e-7; and too often."""
    often = 1e-7

    def curve(losses):
        return often + (1 - often) * gaussian_delta(losses, 0.3)

    def plain(losses):
        return gaussian_delta(losses, 0.3)

    told = certified.upper_epsilon([certified.Profile(curve, count, 3.0)], DELTA)
    left = 1 - (1 - DELTA) / (1 - often) ** count
    kept = certified.upper_epsilon([certified.Profile(plain, count)], left)
    assert told == pytest.approx(kept, rel=5e-3)
    most = certified.Profile(curve, 11, 3.0)
    assert certified.upper_epsilon([most], DELTA) == math.inf


def test_the_estimate_of_searches_is_near_the_certified_epsilon():
    for events in ((sampled(0.8, 2000, 2000),), (noisy_max(9.0, 40),)):
        close = estimate(Ledger(events), DELTA, "strict")
        assert epsilon(Ledger(events), DELTA, "strict") == pytest.approx(
            close, rel=1e-4
        )


def test_curves_are_evaluated_as_exactly_as_certificates_assume():
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
    assert worst < certified.CURVE_ERROR


def test_bins_of_a_normal_are_as_exact_as_they_say():
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 60
    edges = np.linspace(-13.0, 14.2, (1 << 14) + 1)
    mass, error = attained._normal(edges)
    for k in (0, 1, 40, 3000, 8191, 8192, 12_000, 16_000, 16_382, 16_383):
        low = mpmath.mpf("-inf") if k == 0 else mpmath.mpf(edges[k])
        high = mpmath.mpf("inf") if k == len(mass) - 1 else mpmath.mpf(edges[k + 1])
        exact = mpmath.ncdf(high) - mpmath.ncdf(low)
        if high == mpmath.inf:
            exact = mpmath.ncdf(-low)
        assert abs(float(mpmath.mpf(mass[k]) / exact - 1)) <= error[k]
    assert error.max() < 1e-9 and error[np.abs(edges[1:]) < 2].max() < 1e-13


def test_a_ledger_with_hardly_any_noise():
    """Where no number is of use the lower end prices Gaussians alone."""
    loud = ledger(Gaussian(1.0, 0.01, 1, "", ""), noisy_max(0.01, 2))
    low, high = epsilon_interval(loud, DELTA)
    assert 5000 < low < high < low + 450
    assert epsilon_interval(ledger(loud.events[1]), DELTA).low == 0.0


def test_ends_are_in_order_for_any_ledger():
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
        chosen = tuple(e for e, keep in zip(events, kept, strict=True) if keep)
        low, high = epsilon_interval(Ledger(chosen), 10.0 ** -rng.uniform(2, 9))
        assert 0 <= low <= high < math.inf
        if chosen:
            assert low > 0.25 * high
    assert profile(events[0]).count > 0


# --- kept by what it depends on -------------------------------------------------------


@pytest.mark.parametrize("size", [3.7e-5, 1.0, 123.4])
def test_a_lower_end_depends_on_noise_over_sensitivity_alone(size):
    """To the bit, and to rounding on the safe side of the exact one."""
    events = (
        NoisyMax(size, 4.3 * size, 9, "a score", "here"),
        ChosenValue(0.7 * size, 2.9 * (0.7 * size), 9, "", "", 2 * size),
        SampledGaussian(size, 1.3 * size, 20, 1, 50, "", ""),
    )
    assert lower_epsilon(events, DELTA) == lower_epsilon(OF_ONE, DELTA)
    exact = intervals._lower_epsilon.__wrapped__(events, 0.0, DELTA)
    assert exact * (1 - 1e-7) < lower_epsilon(events, DELTA) <= exact


OF_ONE = (
    noisy_max(4.3, 9),
    ChosenValue(1.0, 2.9, 9, "", ""),
    sampled(1.3, 20, 50),
)
