"""Lower bounds from laws, bets and counts; an accountant with no part in ours."""

import doctest

import numpy as np
import pytest
from scipy import stats

from dperm.accountants.generalised_gaussian import GeneralisedGaussian
from dperm.accountants.noisy_max import NoisyMax
from dperm.audit import bounds, families, laws, registry
from dperm.audit.climbing import Effort, Ladder
from dperm.audit.ladder import lane
from dperm.audit.laws import ledger_bounds
from dperm.audit.rungs import accountants
from dperm.core.lanes import dp_cd
from dperm.core.privacy import strict
from dperm.core.privacy.accounting import true_epsilon
from dperm.core.privacy.ledger import Gaussian, Laplace, Ledger, SampledGaussian
from dperm.core.privacy.strict import gaussian_epsilon
from dperm.solvers.lanes import dp_gcd, dp_sgd


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-6, 1e-2])
def test_a_gaussian_in_closed_form_and_in_cells(mu, delta):
    exact = laws.gaussian_epsilon(mu, delta)
    assert exact == pytest.approx(strict.gaussian_epsilon(mu, delta), rel=1e-9)
    found = laws.cells_epsilon([laws.gaussian_cells(mu)], delta)
    assert exact * (1 - 1e-4) - 2 * laws.GRID < found < exact


def test_many_gaussians_are_one():
    found = laws.cells_epsilon([laws.gaussian_cells(0.3)] * 4, 1e-5)
    exact = laws.gaussian_epsilon(0.6, 1e-5)
    assert exact - 8 * laws.GRID < found < exact


def test_a_laplace_number_loses_its_shift_at_most():
    one = laws.laplace_cells(0.5)
    assert 0.499 < laws.cells_epsilon([one], 1e-6) <= 0.5
    assert 0.998 < laws.cells_epsilon([one, one], 1e-6) <= 1.0
    delta = float(strict.laplace_delta(0.3, 0.5))
    assert laws.cells_epsilon([one], delta) == pytest.approx(0.3, abs=2e-3)


def test_a_sampled_gaussian_is_below_its_bound_in_both_directions():
    cells = laws.gaussian_cells(1 / 1.2, 0.125)
    for delta in (1e-5, 1e-2):
        found = laws.cells_epsilon([cells], delta)
        bound = float(strict.sampled_gaussian_delta(found, 0.125, 1 / 1.2))
        assert bound == pytest.approx(delta, rel=2e-2) and bound >= delta * (1 - 1e-9)


def test_randomised_response_is_exact():
    p = np.exp(0.7) / (1 + np.exp(0.7))
    cells = laws.Cells(np.array([p, 1 - p]), np.array([1 - p, p]))
    assert laws.cells_epsilon([cells], 1e-9) == pytest.approx(0.7, abs=laws.GRID)
    three = laws.cells_epsilon([cells] * 3, 1e-9)
    assert three == pytest.approx(2.1, abs=3 * laws.GRID)


def test_what_is_told_for_sure_has_no_bound():
    assert laws.cells_epsilon([laws.APART], 1e-5) == np.inf
    assert laws.cells_epsilon([laws.CERTAIN], 1e-5) == 0


def test_what_follows_a_selection():
    """A selection and a value of one law are two independent releases."""
    value = laws.laplace_cells(0.4)
    p, q = 0.8, 0.6
    both = laws.mixed([(p, q, value), (1 - p, 1 - q, value)])
    choice = laws.Cells(np.array([p, 1 - p]), np.array([q, 1 - q]))
    found = laws.cells_epsilon([both], 1e-3)
    assert found == pytest.approx(laws.cells_epsilon([choice, value], 1e-3), abs=1e-3)


def test_coarser_cells_hide_more():
    cells = laws.gaussian_cells(1.0)
    fine, coarse = (laws.cells_epsilon([c], 1e-4) for c in (cells, cells.coarse(40)))
    assert len(cells.coarse(40).first) <= 40 and 0.8 * fine < coarse < fine


@pytest.mark.parametrize("shift", [[0.3, 0.0, 0.0], [0.2, 0.1], [0.0, 0.3]])
def test_the_norms_law_at_order_two_is_gaussian(shift):
    shift = np.array(shift)
    exact = laws.gaussian_epsilon(float(np.linalg.norm(shift)), 1e-4)
    found = laws.cells_epsilon([laws.norm_cells(shift, 2.0)], 1e-4)
    assert found == pytest.approx(exact, rel=2e-3)


def test_the_norms_law_is_known_along_an_axis_and_in_two_dimensions():
    with pytest.raises(ValueError, match="one axis, or two dimensions"):
        laws.norm_cells(np.ones(3), 3.0)


# --- bets and counts ------------------------------------------------------------------


def test_docstrings_are_true():
    assert doctest.testmod(bounds).failed == 0


@pytest.mark.parametrize(
    ("size", "coins", "share"), [(20_000, None, 0.85), (100_000, 0, 0.95)]
)
def test_lower_bounds_from_losses_of_a_gaussian(size, coins, share):
    """By betting, and by coins."""
    mu = 1.0
    losses = mu**2 / 2 + mu * np.random.default_rng(3).standard_normal(size)
    for delta in (0.02, 0.002) if coins is None else (0.02,):
        truth = gaussian_epsilon(mu, delta)
        assert share * truth < bounds.losses_bound(losses, delta, 0.01, coins) < truth
    assert bounds.losses_bound(np.zeros(500), 0.01, 0.01, coins) == 0
    certain = bounds.losses_bound(np.full(500, np.inf), 0.01, 0.01, coins)
    assert certain == pytest.approx(1e6)


@pytest.mark.parametrize("hits", [0, 1, 3, 17, 19, 20])
def test_clopper_pearson_against_scipy(hits):
    exact = stats.binomtest(hits, 20).proportion_ci(0.9, "exact")
    found = bounds.clopper_pearson(np.array(hits), 20, 0.05)
    assert found == pytest.approx((exact.low, exact.high), abs=1e-12)


def test_a_ratio_is_overstated_at_most_as_often_as_its_level_says():
    rng, level, times = np.random.default_rng(0), 0.1, 400
    one, two = rng.binomial(500, 0.4, times), rng.binomial(500, 0.4 / np.e, times)
    wrong = (bounds.ratio_bound(one, two, 500, level, 0.0) > 1).sum()
    assert 0 < wrong <= stats.binom.ppf(0.999, times, level)


# --- an independent accountant --------------------------------------------------------


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
    """Calibrated by it, a run costs more than its target, as its law shows."""
    right = strict._composed_mu

    def fewer(ledger):
        counted = [e for e in ledger.events if isinstance(e, Gaussian)]
        share = 1 - 1 / counted[0].count if counted[0].count > 1 else 1
        return right(ledger) * share**0.5

    monkeypatch.setattr(strict, "_composed_mu", fewer)
    ladder = Ladder(lane(dp_cd), BRIEF, 1)
    finding = accountants(ladder)
    assert finding.caught and finding.measured == pytest.approx(1.0, rel=1e-3)
    assert ladder.lower > finding.measured * 1.01


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
    assert found.caught and found.note.endswith("1 requested")


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
