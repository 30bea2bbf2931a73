"""What dp_accounting does that a reader would not expect; why ledgers are our own."""

import pytest
from dp_accounting import NeighboringRelation, dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from dperm.core.privacy.strict import gaussian_epsilon

REPLACE = NeighboringRelation.REPLACE_ONE
ADD = NeighboringRelation.ADD_OR_REMOVE_ONE
LAPLACE = dp_event.LaplaceDpEvent(1.0)
SAMPLED = dp_event.PoissonSampledDpEvent(0.1, dp_event.GaussianDpEvent(1.0))


def accountant(kind, relation):
    return kind(neighboring_relation=relation)


@pytest.mark.parametrize(
    ("kind", "relation", "expected"),
    [
        (RdpAccountant, REPLACE, 2.419),
        (PLDAccountant, REPLACE, 4.887),
        (RdpAccountant, ADD, 2.419),
        (PLDAccountant, ADD, 2.254),
    ],
)
def test_replace_one_doubles_the_sensitivity_in_one_accountant(
    kind, relation, expected
):
    account = accountant(kind, relation)
    account.compose(dp_event.GaussianDpEvent(2.0))
    assert account.get_epsilon(1e-6) == pytest.approx(expected, abs=6e-4)


def test_the_sensitivity_is_taken_as_it_stands_here():
    assert gaussian_epsilon(1 / 2.0, 1e-6) == pytest.approx(2.254, abs=6e-4)
    assert gaussian_epsilon(2 / 2.0, 1e-6) == pytest.approx(4.887, abs=6e-4)


def test_randomised_response_forgets_its_count():
    event = dp_event.RandomizedResponseDpEvent(0.5, 2)
    costs = []
    for calls, count in ((1, 1), (1, 10), (10, 1)):
        account = accountant(PLDAccountant, REPLACE)
        for _ in range(calls):
            account.compose(event, count)
        costs.append(account.get_epsilon(1e-6))
    assert costs[0] == costs[1]
    assert costs[2] == pytest.approx(10 * costs[0], rel=1e-3)


def test_there_are_no_selection_events():
    assert not hasattr(dp_event, "ExponentialMechanismDpEvent")
    assert not hasattr(dp_event, "PermuteAndFlipDpEvent")


def test_accountants_disagree_on_what_replace_one_covers():
    pld, rdp = accountant(PLDAccountant, REPLACE), accountant(RdpAccountant, REPLACE)
    assert (pld.supports(LAPLACE), rdp.supports(LAPLACE)) == (False, True)
    assert (pld.supports(SAMPLED), rdp.supports(SAMPLED)) == (True, False)
