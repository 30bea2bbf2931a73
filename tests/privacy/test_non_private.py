"""A release without noise costs infinitely much; releasing nothing costs nothing."""

import json
import math

import numpy as np
import pytest

from dperm.accountants.private_choice import MANY
from dperm.accountants.sampled_renyi import renyi_curve
from dperm.core.privacy import Gaussian, Ledger, NonPrivate, calibrate
from dperm.core.privacy import SampledGaussian as Sampled
from dperm.core.privacy.accounting import epsilon, true_epsilon
from dperm.core.privacy.calibration import UnreachableTargetError
from dperm.core.privacy.ledger import CountError, Event, UnsupportedEventError
from dperm.core.privacy.published import published_cost
from dperm.core.privacy.strict import converted, profile, renyi_epsilon

OPEN = NonPrivate(3, "a vertex", "Algorithm 1")
NOISY = Gaussian(1.0, 10.0, 2, "unit", "source")


@pytest.mark.parametrize("calibration", ["paper", "strict"])
def test_it_is_infinite_and_nothing_is_free(calibration):
    assert epsilon(Ledger(), 1e-6, calibration) == 0
    assert math.isinf(epsilon(Ledger((OPEN,)), 1e-6, calibration))
    assert math.isinf(epsilon(Ledger((NOISY, OPEN)), 1e-6, calibration))


def test_every_way_of_counting_says_so():
    ledger = Ledger((NOISY, OPEN))
    assert math.isinf(published_cost(OPEN).pure)
    assert math.isinf(renyi_epsilon(ledger, 1e-6))
    assert math.isinf(converted(renyi_curve(ledger, MANY), MANY, 1e-6))
    np.testing.assert_array_equal(profile(OPEN).delta(np.array([0.0, 50.0])), 1.0)


def test_no_noise_reaches_a_target():
    with pytest.raises(UnreachableTargetError):
        calibrate(lambda noise: Ledger((OPEN,)), 1.0, 1e-6, "strict")
    found = calibrate(lambda noise: Ledger((OPEN,)), math.inf, 1e-6, "strict")
    assert math.isinf(found.true_epsilon) and found.noise_multiplier == 0


def test_it_is_written_and_read():
    ledger = Ledger((OPEN, NOISY))
    assert Ledger.from_dict(json.loads(json.dumps(ledger.to_dict()))) == ledger
    assert OPEN.to_dict() == {
        "event": "NonPrivate", "count": 3, "unit": "a vertex", "source": "Algorithm 1"
    }  # fmt: skip
    with pytest.raises(CountError):
        NonPrivate(0, "", "")


@pytest.mark.parametrize("calibration", ["paper", "strict"])
def test_unknown_events_are_refused(calibration, monkeypatch):
    """No accountant takes an event that it has no formula for to be free."""
    monkeypatch.setattr(Event, "kinds", dict(Event.kinds))

    class Unheard(Event):
        sensitivity, scale, count, unit, source = 1.0, 1.0, 1, "", ""

    with pytest.raises(UnsupportedEventError, match="Unheard"):
        epsilon(Ledger((Unheard(),)), 1e-6, calibration)


# --- against dp_accounting ------------------------------------------------------------


def release(event):
    """One release in the terms of dp_accounting; sensitivities are replace-one."""
    from dp_accounting import dp_event

    if isinstance(event, NonPrivate):
        return dp_event.NonPrivateDpEvent()
    noise = dp_event.GaussianDpEvent(event.noise_multiplier)
    if isinstance(event, Sampled):
        size, batch = event.population, event.batch
        return dp_event.SampledWithoutReplacementDpEvent(size, batch, noise)
    return noise


def theirs(ledger, delta):
    from dp_accounting import NeighboringRelation
    from dp_accounting.rdp import RdpAccountant

    relation = NeighboringRelation.REPLACE_ONE
    accountant = RdpAccountant(neighboring_relation=relation)
    for event in ledger.events:
        accountant.compose(release(event), event.count)
    return accountant.get_epsilon(delta)


def test_dp_accounting_agrees():
    assert theirs(Ledger(), 1e-6) == 0
    assert math.isinf(theirs(Ledger((NOISY, OPEN)), 1e-6))
    plain = Ledger((NOISY,))
    assert true_epsilon(plain, 1e-6) <= theirs(plain, 1e-6) < 1.2
    sampled = Ledger((Sampled(1.0, 2.0, 50, 1, 100, "", ""), NOISY))
    assert 0 < true_epsilon(sampled, 1e-6) <= theirs(sampled, 1e-6) * 1.001
