"""Lower bounds from laws, and an accountant with no part in ours."""

from types import SimpleNamespace

import numpy as np
import pytest

from dperm.accountants.noisy_max import NoisyMax
from dperm.audit import costs
from dperm.audit.checks import Audit
from dperm.audit.costs import composed, ledger_bounds, run_epsilon
from dperm.audit.pairs import pairs
from dperm.audit.solvers import Shape, lane
from dperm.core.lanes import dp_cd
from dperm.core.privacy import strict as accountant
from dperm.core.privacy.accounting import true_epsilon
from dperm.core.privacy.ledger import Gaussian, Laplace, Ledger, SampledGaussian

from .test_replay import loud_pair
from .test_solvers import BRIEF, strict


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-6, 1e-2])
def test_a_gaussian_in_closed_form(mu, delta):
    exact = costs.gaussian_epsilon(mu, delta)
    assert exact == pytest.approx(accountant.gaussian_epsilon(mu, delta), rel=1e-9)


def test_many_releases_are_composed():
    one = composed([("laplace", (0.5,))], 1e-9)
    assert one == pytest.approx(0.5, abs=1e-3)
    both = [("laplace", (0.3,)), ("gaussian", (0.4,)), ("laplace", (0.3,))]
    assert composed(both) > max(composed(both[:1]), composed(both[1:2]))
    assert composed([("gaussian", (0.3,))] * 4) == costs.gaussian_epsilon(0.6)


def test_a_laplace_number_loses_its_shift_at_most():
    found = composed([("cells", costs.laplace_cells(0.5))], 1e-6)
    assert 0.49 < found <= 0.5 + 1e-9


# --- runs -----------------------------------------------------------------------------


def test_the_law_of_gaussians_is_the_bound():
    m = strict("dp_cd")
    found = run_epsilon(m, loud_pair(m), [1, 2])
    assert found == pytest.approx(m.true, rel=1e-6)


def test_a_law_that_depends_on_what_came_out_is_not_known():
    class Restless(dp_cd.Run):
        def advance(self, count):
            self.constants[:, 1] *= 1.5 + np.sin(1e6 * self.weights.sum())
            super().advance(count)

    module = SimpleNamespace(**{**vars(dp_cd), "Run": Restless})
    m = lane("restless", module, dp_cd.Options(), "strict", Shape(), 4)
    assert run_epsilon(m, loud_pair(m), [1, 2, 3]) is None


def test_records_that_are_not_alike_have_no_law_under_sampling():
    m = strict("dp_sgd")
    assert run_epsilon(m, loud_pair(m), [1, 2]) is None
    assert run_epsilon(m, pairs(m, 1)[0], [1, 2]) is not None


# --- a second accountant --------------------------------------------------------------

AT = ("unit", "source")
LEDGERS = {
    "gaussian": (Gaussian(1.0, 4.0, 9, *AT),),
    "sampled": (SampledGaussian(1.0, 1.2, 4, 1, 8, *AT),),
    "laplace": (Laplace(1.0, 8.0, 6, *AT),),
    "max": (NoisyMax(1.0, 20.0, 5, *AT),),
    "gumbel": (NoisyMax(1.0, 20.0, 40, *AT, noise="gumbel"),),
    "both": (Gaussian(1.0, 4.0, 3, *AT), NoisyMax(1.0, 20.0, 5, *AT)),
}


@pytest.mark.parametrize("name", LEDGERS)
@pytest.mark.parametrize("delta", [1e-5, 1e-2])
def test_both_agree_within_rounding(name, delta):
    ledger = Ledger(LEDGERS[name])
    low, high = ledger_bounds(ledger, delta)
    known = name not in ("sampled", "gumbel")
    assert low * 0.997 <= true_epsilon(ledger, delta) <= high * 1.003
    assert (high < np.inf) == known
    if known:
        assert low >= 0.99 * high > 0


def scaled(monkeypatch, factor):
    """The strict accountant, off by a factor."""
    right = accountant.epsilon
    wrong = lambda ledger, delta: factor * right(ledger, delta)  # noqa: E731
    monkeypatch.setattr(accountant, "epsilon", wrong)


def again(stem):
    """A mechanism that knows no price yet."""
    m = strict(stem)
    return type(m)(**{name: getattr(m, name) for name in m.__dataclass_fields__})


@pytest.mark.parametrize(
    ("stem", "factor"),
    [("dp_cd", 0.98), ("dp_cd", 1.02), ("dp_gcd", 0.9), ("dp_sgd", 0.9)],
)
def test_prices_are_held(monkeypatch, stem, factor):
    assert not Audit(again(stem), **BRIEF).epsilon().caught
    scaled(monkeypatch, factor)
    assert Audit(again(stem), **BRIEF).epsilon().caught


def test_strict_noise_that_is_less_than_was_asked_for_is_caught():
    m = again("dp_cd")
    m.epsilon = 0.9
    found = Audit(m, **BRIEF).epsilon()
    assert found.caught and found.note.endswith("0.9 was asked for")
