"""Lower bounds from shifts, and an accountant with no part in ours."""

from dataclasses import replace

import pytest

from dperm.audit.checks import Audit
from dperm.audit.costs import (
    MAX_FLIP_CHANCE,
    PairRelease,
    composed,
    run_epsilon,
)
from dperm.audit.pairs import pairs
from dperm.audit.replay import Replay
from dperm.privacy.accountants import tight as accountant

from .test_replay import loud_pair
from .test_solvers import BRIEF, tight


def test_many_releases_are_composed():
    laplace, gaussian = (
        PairRelease("laplace", 0.5),
        PairRelease("gaussian", 0.3),
    )
    assert composed([laplace], 1e-9) == pytest.approx(0.5, abs=1e-3)
    assert composed([laplace, gaussian]) > composed([laplace])
    exact = accountant.gaussian_epsilon(0.6, 1e-5)
    assert composed([gaussian] * 4) == pytest.approx(exact, rel=1e-6)
    assert composed([PairRelease("pure", 0.5)], 1e-6) == pytest.approx(
        0.5, abs=1e-3
    )


@pytest.mark.parametrize(
    ("stem", "least"),
    [
        ("dp_cd", 0.999),
        ("dp_sgd", 0.97),
        ("dp_gd", 0.6),
        ("phased_sgd", 0.999),
        ("objective_perturbation", 0.3),
        ("dp_gcd", 0.3),  # whose selection is passed over
    ],
)
def test_most_of_a_ledger_is_reached(stem, least):
    m = tight(stem)
    assert least < Audit(m, neighbours=16, runs=12).lower / m.true <= 1 + 1e-6


def test_the_chance_that_noise_decides_a_selection_counts_against_delta(
    monkeypatch,
):
    """Where it may well decide, nothing after the selection counts."""
    m = tight("dp_gcd")

    def bound(chance):
        monkeypatch.setattr(Replay, "upset", lambda *_: chance)
        return max(run_epsilon(m, pair, [1, 2]) for pair in pairs(m, 12))

    assert bound(0.0) > 1.01 * bound(MAX_FLIP_CHANCE / 4) > bound(1.0) == 0


def test_the_least_shift_of_all_histories_counts():
    """A release that moves less after some histories costs less."""
    m, later = tight("dp_cd"), tight("dp_gd")
    assert run_epsilon(m, loud_pair(m), [1, 2]) == pytest.approx(
        m.true, rel=1e-6
    )
    ranges = []
    for pair in pairs(later, 8):
        some = [run_epsilon(later, pair, [seed]) for seed in (1, 2, 3)]
        assert run_epsilon(later, pair, [1, 2, 3]) <= min(some) * (1 + 1e-9)
        ranges.append(max(some) / max(min(some), 1e-9))
    assert max(ranges) > 1.01


def test_records_that_are_not_alike_have_no_law_under_sampling():
    m = tight("dp_sgd")
    assert run_epsilon(m, loud_pair(m), [1, 2]) == 0


# --- a second accountant --------------------------------------------------------------


@pytest.mark.parametrize(
    ("stem", "factor"), [("dp_cd", 0.98), ("dp_cd", 1.02), ("dp_gcd", 0.9)]
)
def test_prices_are_held(monkeypatch, stem, factor):
    right, m = accountant.epsilon, tight(stem)
    assert not Audit(replace(m), **BRIEF).epsilon().caught
    wrong = lambda ledger, delta: factor * right(ledger, delta)  # noqa: E731
    monkeypatch.setattr(accountant, "epsilon", wrong)
    assert Audit(replace(m), **BRIEF).epsilon().caught  # it knows no price yet


def test_tight_noise_that_is_less_than_was_asked_for_is_caught():
    found = Audit(replace(tight("dp_cd"), epsilon=0.9), **BRIEF).epsilon()
    assert found.caught and found.note.endswith("0.9 was asked for")
