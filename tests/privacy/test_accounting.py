"""Curves by integration, printed prices, and what dp_accounting does otherwise."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from dp_accounting import (
    GaussianDpEvent,
    NeighboringRelation,
    PoissonSampledDpEvent,
    dp_event,
    get_epsilon_gaussian,
)
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import RdpAccountant
from scipy import integrate
from scipy.stats import norm

from dperm.privacy.accountants.published import ORDERS
from dperm.privacy.accountants.tight import (
    gaussian_delta,
    gaussian_epsilon,
    laplace_delta,
    renyi,
    sampled_gaussian_delta,
)
from dperm.privacy.accounting import epsilon, true_epsilon
from dperm.privacy.events import Laplace
from dperm.privacy.mechanisms.noisy_max import pure_delta, pure_renyi

from .laws import DELTA, coin_divergence, gaussian, laplace, sampled

CALIFORNIA = 20_640


# --- curves ---------------------------------------------------------------------------


@pytest.mark.parametrize("pure", [0.05, 1.0, 6.0])
def test_pure_renyi_curves_are_those_of_randomised_response(pure):
    for a in (1.5, 2.0, 30.0):
        found = pure_renyi(np.array([a]), pure)[0]
        assert found == pytest.approx(coin_divergence(pure, a))


def test_the_renyi_curve_of_laplace_by_integration():
    pure, a = 0.7, 3.0
    moment = integrate.quad(
        lambda x: 0.5 * math.exp(-a * abs(x) + (a - 1) * abs(x - pure)),
        *(-40, 40), points=[0, pure],
    )[0]  # fmt: skip
    found = renyi(Laplace(pure, 1.0, 4, "", ""), np.array([a]))[0]
    assert found == pytest.approx(4 * math.log(moment) / (a - 1))


def test_curves_have_good_relative_precision():
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 60
    phi, exp, log = mpmath.ncdf, mpmath.exp, mpmath.log

    def normal(e, mu):
        return phi(mu / 2 - e / mu) - exp(e) * phi(-mu / 2 - e / mu)

    def mixed(e, q, mu):
        return q * normal(log(1 + (exp(e) - 1) / q), mu)

    worst = 0.0
    for mu, e in product((0.02, 0.3, 1.6, 4.0), np.geomspace(1e-7, 45, 42)):
        m, loss = mpmath.mpf(mu), mpmath.mpf(e)
        found = [
            (gaussian_delta(e, mu), normal(loss, m)),
            (laplace_delta(e, mu), 1 - exp((loss - m) / 2)),
            (pure_delta(e, mu), (exp(m) - exp(loss)) / (1 + exp(m))),
        ]
        found += [(sampled_gaussian_delta(e, q, mu), mixed(loss, mpmath.mpf(q), m))
                  for q in (1e-6, 2.0**-15, 0.05, 1.0)]  # fmt: skip
        for got, exact in found:
            if exact > 1e-40:
                worst = max(
                    worst, abs(float(mpmath.mpf(float(got)) / exact - 1))
                )
    assert worst < 2e-11


@pytest.mark.parametrize(
    ("n", "batch"), [(3, 1), (4, 1), (4, 2), (5, 3), (3, 3)]
)
def test_the_sampling_bound_holds_for_every_small_data_set(n, batch):
    """Enumerate data sets of clipped one-dimensional gradients and integrate."""
    sigma, x = 1.3, np.linspace(-15, 15, 6001)
    batches = list(combinations(range(n), batch))

    def density(records):
        sums = [sum(records[i] for i in chosen) for chosen in batches]
        return np.mean(
            [norm.pdf(x, total, 2 * sigma) for total in sums], axis=0
        )

    worst = dict.fromkeys((0.0, 0.1, 0.5, 1.0), 0.0)
    for rest in product((-1.0, 0.0, 1.0), repeat=n - 1):
        pair = density((1.0, *rest)), density((-1.0, *rest))
        for loss in worst:
            for first, second in (pair, pair[::-1]):
                value = np.maximum(first - math.exp(loss) * second, 0).sum()
                worst[loss] = max(worst[loss], value * (x[1] - x[0]))
    for loss, value in worst.items():
        assert value <= sampled_gaussian_delta(loss, batch / n, 1 / sigma) * (
            1 + 1e-6
        )
    whole = sampled_gaussian_delta(0.0, batch / n, 1 / sigma)
    assert worst[0.0] == pytest.approx(whole, rel=0.5)


# --- against dp_accounting ------------------------------------------------------------


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-10])
@pytest.mark.parametrize("mu", [0.01, 0.3, 2.0, 15.0])
def test_tight_gaussians_meet_dp_accounting(mu, delta):
    theirs = get_epsilon_gaussian(1 / mu, delta)
    assert gaussian_epsilon(mu, delta) == pytest.approx(
        theirs, rel=1e-6, abs=1e-9
    )
    assert true_epsilon(gaussian(5 / mu, 25), delta) == gaussian_epsilon(
        mu, delta
    )


@pytest.mark.parametrize(
    ("n", "batch", "sigma", "count", "delta", "beside"),
    [
        (CALIFORNIA, 1, 0.967, 50 * CALIFORNIA, CALIFORNIA**-2, 0.0),
        (800, 40, 1.5, 200, 1e-6, 0.0),
        (1000, 1000, 9.0, 20, 1e-5, 0.0),
        (1000, 7, 0.5, 300, 1e-9, 4.0),
        (
            5000,
            1,
            20.0,
            3,
            1e-2,
            0.0,
        ),  # theirs is 0 below a total variation of delta
    ],
)
def test_paper_sampled_meets_dp_accounting(
    n, batch, sigma, count, delta, beside
):
    theirs = RdpAccountant([int(order) for order in ORDERS])
    theirs.compose(
        PoissonSampledDpEvent(batch / n, GaussianDpEvent(sigma)), count
    )
    ledger = sampled(sigma, count, n, batch)
    if beside:
        theirs.compose(GaussianDpEvent(beside), 3)
        ledger += gaussian(beside, 3)
    expected = theirs.get_epsilon(delta)
    # each release may be off by a rounding: older scipy adds exponentials so
    rounding = count * np.finfo(float).eps
    assert epsilon(ledger, delta, "published") == pytest.approx(
        expected, rel=1e-12, abs=rounding
    )


def test_mixtures_meet_dp_accounting():
    grid = {"value_discretization_interval": 1e-4}
    theirs = (
        pld.from_laplace_mechanism(80.0, **grid)
        .self_compose(8)
        .compose(pld.from_gaussian_mechanism(30.0 / 4, **grid))
        .get_epsilon_for_delta(DELTA)
    )
    ours = true_epsilon(laplace(80.0, 8) + gaussian(30.0, 16), DELTA)
    assert ours == pytest.approx(theirs, rel=2e-3)


@pytest.mark.parametrize(
    ("n", "batch", "sigma", "count", "pair", "high"),
    [
        (2000, 1, 0.8, 10**4, 0.4585, 0.554),
        (800, 40, 1.5, 200, 2.694, 3.014),
    ],
)
def test_sampled_gaussians_cost_more_than_their_pair_in_either_direction(
    n, batch, sigma, count, pair, high
):
    """The figures of docs/accounting.md; theirs is the dearer direction."""
    one = pld.from_gaussian_mechanism(sigma, sampling_prob=batch / n)
    theirs = one.self_compose(count).get_epsilon_for_delta(DELTA)
    assert theirs == pytest.approx(pair, abs=6e-4)
    found = true_epsilon(sampled(sigma, count, n, batch), DELTA)
    assert found == pytest.approx(high, abs=6e-4) and found > theirs


# --- what the papers print ------------------------------------------------------------


def test_paper_adds_pure_epsilons_of_the_published_sensitivity():
    ledger = laplace(20.0, 3, published_sensitivity=2.0)
    rest = epsilon(gaussian(30.0, 9), DELTA, "published")
    both = epsilon(ledger + gaussian(30.0, 9), DELTA, "published")
    assert both == pytest.approx(0.3 + rest)
    assert true_epsilon(ledger, DELTA) == true_epsilon(laplace(20.0, 3), DELTA)


# --- traps of dp_accounting, for which ledgers are our own ----------------------------

REPLACE, ADD = (
    NeighboringRelation.REPLACE_ONE,
    NeighboringRelation.ADD_OR_REMOVE_ONE,
)
NOISE, DOUBLE = GaussianDpEvent(2.0), dp_event.LaplaceDpEvent(1.0)
SAMPLE, COIN = (
    PoissonSampledDpEvent(0.1, NOISE),
    dp_event.RandomizedResponseDpEvent,
)


@pytest.mark.parametrize(
    ("accountant", "relation", "event", "count", "expected"),
    [
        (RdpAccountant, REPLACE, NOISE, 1, 2.419),
        (RdpAccountant, ADD, NOISE, 1, 2.419),
        (
            PLDAccountant,
            REPLACE,
            NOISE,
            1,
            4.887,
        ),  # the sensitivity is doubled
        (PLDAccountant, ADD, NOISE, 1, 2.254),  # which is ours
        (PLDAccountant, REPLACE, COIN(0.5, 2), 1, 1.099),
        (
            PLDAccountant,
            REPLACE,
            COIN(0.5, 2),
            10,
            1.099,
        ),  # the count is forgotten
        (PLDAccountant, REPLACE, DOUBLE, 1, None),  # not supported
        (RdpAccountant, REPLACE, DOUBLE, 1, 1.005),
        (PLDAccountant, REPLACE, SAMPLE, 1, 0.586),
        (RdpAccountant, REPLACE, SAMPLE, 1, None),
    ],
)
def test_what_dp_accounting_says(accountant, relation, event, count, expected):
    account = accountant(neighboring_relation=relation)
    assert account.supports(event) == (expected is not None)
    if expected is not None:
        found = account.compose(event, count).get_epsilon(DELTA)
        assert found == pytest.approx(expected, abs=6e-4)
    assert true_epsilon(gaussian(2.0), DELTA) == pytest.approx(2.254, abs=6e-4)
