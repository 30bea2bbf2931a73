"""The audit of the private choice: it climbs, and slips in it fall off."""

import numpy as np
import pytest

from dperm.accountants import private_choice
from dperm.accountants.random_stopping import expected_runs
from dperm.audit.climbing import Ladder
from dperm.audit.ladder import SMALL
from dperm.audit.rungs import RUNGS
from dperm.compare import audited as audited_choice
from dperm.compare import contest
from dperm.compare.audited import Paid, Searched
from dperm.compare.contest import Able, Contest
from dperm.compare.search import PrivateSearch
from dperm.core.privacy.ledger import Ledger


@pytest.fixture(params=audited_choice.SHAPES, ids=lambda shape: shape.loss)
def shape(request):
    return request.param


WHOLE = ("drawing", "choosing", "price", "searching")


def rung(name, shape, **changes):
    subject = Paid(shape)
    vars(subject).update(changes)
    return RUNGS[name](Ladder(subject, SMALL, 3))


def test_the_choice_keeps_what_it_is_priced_by_and_uses_it():
    found = audited_choice.findings(SMALL, 3)
    assert {one.rung for one in found} == {*RUNGS, *WHOLE}
    assert not [one for one in found if one.caught]
    assert min(one.measured for one in found if one.rung == "sensitivity") > 0.999


def test_a_release_that_is_not_in_the_ledger_is_counted(shape):
    """As where the score's event is left out of what is priced."""
    ledger = Ledger(Paid(shape).ledger.events[:-1])
    found = rung("count", shape, ledger=ledger)
    assert found.caught and found.note == "Gaussian 2 of 1"


def test_scores_that_move_further_than_stated_are_seen(shape, monkeypatch):
    real = contest.clipped_loss
    wide = lambda problem, most, W: real(problem, 2 * most, W)  # noqa: E731
    monkeypatch.setattr(contest, "clipped_loss", wide)
    found = rung("sensitivity", shape)
    assert found.caught and found.measured > 1.5


def test_runs_with_less_noise_than_is_priced_are_seen(shape, monkeypatch):
    real = contest.Prices.paid

    def paid(self, method, grid, epsilon):
        able, *rest = real(self, method, grid, epsilon)
        return [
            Able(a.setting, 0.8 * a.noise_multiplier, a.ledger) for a in able
        ], *rest

    monkeypatch.setattr(contest.Prices, "paid", paid)
    assert rung("sensitivity", shape).measured == pytest.approx(1.25, rel=1e-6)


def test_whom_the_data_choose_is_seen(monkeypatch):
    real = Contest._choices

    def by_data(self, method, epsilon, seeds):
        found, cost = real(self, method, epsilon, seeds)
        return found[int(abs(method.problem.A).max() > 100) :], cost

    monkeypatch.setattr(Contest, "_choices", by_data)
    assert audited_choice.drawing(Paid(audited_choice.SHAPES[0])).caught


def test_another_law_of_the_number_of_runs_is_seen(monkeypatch):
    mean = expected_runs(0.0, private_choice.GAMMA)
    monkeypatch.setattr(contest, "drawn_runs", lambda rng: rng.geometric(1 / mean))
    assert audited_choice.drawing(Paid(audited_choice.SHAPES[0])).caught


def test_a_choice_by_exact_scores_is_seen(monkeypatch):
    monkeypatch.setattr(contest, "gaussian", lambda rng, size: np.zeros(size))
    assert audited_choice.choosing(Paid(audited_choice.SHAPES[0]), 3).caught


def test_a_price_below_the_bound_is_seen(monkeypatch):
    monkeypatch.setattr(private_choice, "expected_runs", lambda eta, gamma: 1.0)
    assert audited_choice.price().caught


def half_noise(real, self, runs, able, seed):
    halved = [(k, noise / 2) for k, noise in able]
    return real(self, runs, halved, seed)


def runs_by_data(real, self, runs, able, seed):
    drawn = real(self, runs, able, seed)
    corner = (abs(runs[0][0].problem.A) == 1).all(axis=1).any()
    return drawn * 2 if corner else drawn


def in_score_free(real, self, runs, delta):
    able, ledgers, cost = real(self, runs, delta)
    return able, [Ledger(one.events[:-1]) for one in ledgers], cost


def unpaid(real, self, runs, delta):
    able, ledgers, cost = real(self, runs, delta)
    return able, ledgers, cost / 2


def another_run(real, self, runs, able, seed):
    k, w = real(self, runs, able, seed)
    return k, w + 1e-9


@pytest.mark.parametrize(("name", "slip", "by"), [
    ("_drawn", half_noise, "sensitivity"),
    ("_priced", in_score_free, "count"),
    ("_drawn", runs_by_data, "searching"),
    ("_priced", unpaid, "searching"),
    ("_best", another_run, "searching"),
])  # fmt: skip
def test_a_slip_of_a_search_is_seen(name, slip, by, monkeypatch):
    shape, real = audited_choice.SHAPES[1], getattr(PrivateSearch, name)
    changed = lambda self, *given: slip(real, self, *given)  # noqa: E731
    monkeypatch.setattr(PrivateSearch, name, changed)
    if by == "searching":
        assert audited_choice.searching(shape).caught
    else:
        assert RUNGS[by](Ladder(Searched(shape), SMALL, 3)).caught
