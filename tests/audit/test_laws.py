"""Lower bounds from laws: against closed forms, from below, and close."""

import numpy as np
import pytest
from scipy import stats

from dperm.audit import laws
from dperm.audit.bounds import generalised_noise, norm_bound
from dperm.core.privacy import strict


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


def test_the_norms_law_by_an_integral_and_by_importance():
    shift, order = np.array([0.15, 0.15]), 3.0
    exact = laws.cells_epsilon([laws.norm_cells(shift, order)], 1e-4)
    found = norm_bound(shift, order, 1e-4, 1e-3, 5)
    assert 0.9 * exact < found <= exact
    with pytest.raises(ValueError, match="one axis, or two dimensions"):
        laws.norm_cells(np.ones(3), order)


def test_noise_that_is_drawn_for_importance_has_its_law():
    noise = generalised_noise(np.random.default_rng(1), 3.0, 4000, 2)
    square = (np.abs(noise) ** 3).sum(axis=1) ** (2 / 3)
    assert stats.kstest(square, stats.chi2(2).cdf).pvalue > 1e-4
