"""Lower bounds from laws, and an accountant with no part in ours."""

from types import SimpleNamespace

import numpy as np
import pytest

from dperm.audit import costs
from dperm.audit.checks import Audit
from dperm.audit.costs import composed, run_epsilon
from dperm.audit.pairs import pairs
from dperm.audit.solvers import Shape, lane
from dperm.core.lanes import dp_cd
from dperm.core.privacy import strict as accountant

from .test_replay import loud_pair
from .test_solvers import BRIEF, strict


def test_many_releases_are_composed():
    one = composed([("laplace", (0.5,))], 1e-9)
    assert one == pytest.approx(0.5, abs=1e-3)
    both = [("laplace", (0.3,)), ("gaussian", (0.4,)), ("laplace", (0.3,))]
    assert composed(both) > max(composed(both[:1]), composed(both[1:2]))
    assert composed([("gaussian", (0.3,))] * 4) == costs.gaussian_epsilon(0.6)
    exact = accountant.gaussian_epsilon(0.6, 1e-5)
    assert costs.gaussian_epsilon(0.6) == pytest.approx(exact, rel=1e-9)
    cells = composed([("cells", costs.laplace_cells(0.5))], 1e-6)
    assert 0.49 < cells <= 0.5 + 1e-9


# --- runs -----------------------------------------------------------------------------


def test_the_law_of_gaussians_is_the_bound():
    m = strict("dp_cd")
    found = run_epsilon(m, loud_pair(m), [1, 2])
    assert found == pytest.approx(m.true, rel=1e-6)


def test_releases_count_up_to_a_law_that_depends_on_what_came_out():
    class Restless(dp_cd.Run):
        def advance(self, count):
            self.constants[:, 1] *= 1.5 + np.sin(1e6 * self.weights.sum())
            super().advance(count)

    module = SimpleNamespace(**{**vars(dp_cd), "Run": Restless})
    m = lane("restless", module, dp_cd.Options(), "strict", Shape(), 4)
    assert 0 < run_epsilon(m, loud_pair(m), [1, 2, 3]) < m.true


def test_records_that_are_not_alike_have_no_law_under_sampling():
    m = strict("dp_sgd")
    assert run_epsilon(m, loud_pair(m), [1, 2]) == 0
    assert run_epsilon(m, pairs(m, 1)[0], [1, 2]) > 0


# --- a second accountant --------------------------------------------------------------


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
