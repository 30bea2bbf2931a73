"""The accountant that calibrates is held between bounds it has no part in."""

import pytest

from dperm.accountants.generalised_gaussian import GeneralisedGaussian
from dperm.accountants.noisy_max import NoisyMax
from dperm.audit import families, registry
from dperm.audit.climbing import Effort, Ladder
from dperm.audit.ladder import lane
from dperm.audit.laws import ledger_bounds
from dperm.audit.rungs import accountants, transcript
from dperm.core.lanes import dp_cd
from dperm.core.privacy import strict
from dperm.core.privacy.accounting import true_epsilon
from dperm.core.privacy.ledger import Gaussian, Laplace, Ledger, SampledGaussian
from dperm.solvers.lanes import dp_gcd, dp_sgd

BRIEF = Effort(level=1e-4, pairs=4)
AT = ("unit", "source")
LEDGERS = {
    "gaussian": (Gaussian(1.0, 4.0, 9, *AT),),
    "sampled": (SampledGaussian(1.0, 1.2, 4, 1, 8, *AT),),
    "laplace": (Laplace(1.0, 8.0, 6, *AT),),
    "max": (NoisyMax(1.0, 20.0, 5, *AT),),
    "gumbel": (NoisyMax(1.0, 20.0, 40, *AT, noise="gumbel"),),
    "norm": (GeneralisedGaussian(1.0, 6.0, 1, 3.0, 2.5, *AT),),
    "both": (Gaussian(1.0, 4.0, 3, *AT), NoisyMax(1.0, 20.0, 5, *AT)),
}


@pytest.mark.parametrize("name", LEDGERS)
@pytest.mark.parametrize("delta", [1e-5, 1e-2])
def test_both_agree_within_rounding_but_for_sampling(name, delta):
    ledger = Ledger(LEDGERS[name])
    low, high = ledger_bounds(ledger, delta)
    assert low * 0.997 <= true_epsilon(ledger, delta) <= high * 1.003
    assert low >= (0.8 if name == "sampled" else 0.99) * high > 0


@pytest.mark.parametrize("scale", [0.05, 1e-6])
def test_hardly_any_noise_is_told_without_a_grid(scale):
    """Beside another release, which leaves it as a bound from below."""
    loud = Gaussian(1.0, scale, 9, *AT)
    low, high = ledger_bounds(Ledger((loud, *LEDGERS["laplace"])), 1e-5)
    alone = true_epsilon(Ledger((loud,)), 1e-5)
    assert low == pytest.approx(alone, rel=1e-6)
    assert high == float("inf")


def test_an_accountant_that_forgets_a_release_is_caught(monkeypatch):
    """Calibrated by it, a run costs more than its target: both rungs say so."""
    right = strict._composed_mu

    def fewer(ledger):
        counted = [e for e in ledger.events if isinstance(e, Gaussian)]
        share = 1 - 1 / counted[0].count if counted[0].count > 1 else 1
        return right(ledger) * share**0.5

    monkeypatch.setattr(strict, "_composed_mu", fewer)
    ladder = Ladder(lane(dp_cd), BRIEF, 1)
    finding = accountants(ladder)
    assert finding.caught and finding.measured == pytest.approx(1.0, rel=1e-3)
    assert transcript(ladder).caught


@pytest.mark.parametrize("factor", [0.98, 1.02])
def test_the_closed_form_of_calibration_is_held_on_both_sides(monkeypatch, factor):
    right = strict.gaussian_epsilon
    wrong = lambda mu, delta: factor * right(mu, delta)  # noqa: E731
    monkeypatch.setattr(strict, "gaussian_epsilon", wrong)
    assert accountants(Ladder(lane(dp_cd), BRIEF, 1)).caught


def test_strict_noise_that_is_less_than_was_asked_for_is_caught(monkeypatch):
    right = families._multiplier
    monkeypatch.setattr(families, "_multiplier", lambda *given: 0.9 * right(*given))
    found = accountants(Ladder(lane(dp_cd), BRIEF, 1))
    assert found.caught and found.note.endswith("1 asked for")


def scaled(monkeypatch, factor):
    """The strict accountant, off by a factor."""
    right = strict.epsilon
    wrong = lambda ledger, delta: factor * right(ledger, delta)  # noqa: E731
    monkeypatch.setattr(strict, "epsilon", wrong)


@pytest.mark.parametrize("factor", [0.85, 1.15])
@pytest.mark.parametrize("module", [dp_sgd, dp_gcd])
def test_loss_distributions_are_held_on_both_sides(monkeypatch, module, factor):
    subject = lane(module)
    assert not accountants(Ladder(subject, BRIEF, 1)).caught
    scaled(monkeypatch, factor)
    assert accountants(Ladder(subject, BRIEF, 1)).caught


@pytest.mark.parametrize("factor", [0.98, 1.02])
def test_the_generalised_gaussian_is_held_on_both_sides(monkeypatch, factor):
    (subject,) = [
        s
        for s in registry.subjects("noisy_sfw", "noisy_sfw", {})
        if s.calibration == "strict" and s.name.endswith("p = 1.5")
    ]
    assert not accountants(Ladder(subject, BRIEF, 1)).caught
    scaled(monkeypatch, factor)
    assert accountants(Ladder(subject, BRIEF, 1)).caught
