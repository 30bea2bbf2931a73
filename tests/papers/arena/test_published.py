"""A published lead: the noise of both protocols, and controls that must not lead."""

import math

import numpy as np
import pandas as pd
import pytest

from conftest import make_problem
from dperm.core.privacy.accounting import true_epsilon
from dperm.core.privacy.ledger import Gaussian, Ledger
from dperm.papers.arena import published, ranking
from dperm.solvers.fits import ada_ssp, hessian_mixing
from dperm.solvers.fits.scaled import Scaled


def rows(reading, quality, floor=1.0, seed=3):
    """Errors of twelve data sets at five epsilons, around 1 / quality of AdaSSP's."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(12):
        for epsilon in (0.1, 0.3, 1.0, 3.0, 10.0):
            base = 0.3 * rng.lognormal(sigma=0.5)
            for method, times in (("one", 1 / quality), ("two", 1.0), ("again", 1.0)):
                found.append({
                    "data": str(k), "problem": str(k), "epsilon": epsilon,
                    "reading": reading, "method": method, "floor": floor,
                    "relative_error": base * times * rng.lognormal(sigma=0.1),
                })  # fmt: skip
    return pd.DataFrame(found)


@pytest.mark.parametrize(
    ("quality", "floor", "expected"),
    [(3.0, 1.0, "ahead"), (1.0, 1.0, "open"), (1 / 3, 1.0, "behind"),
     (3.0, 1e-3, "behind")],
    ids=["ahead", "itself", "behind", "worse than the mean"],
)  # fmt: skip
def test_a_lead_is_confirmed_only_where_it_takes_learning(quality, floor, expected):
    table = pd.DataFrame(ranking.compared(rows("r", quality, floor), "one", "two"))
    by = table.set_index("method")
    assert by.loc["again", "ahead_low"] < 0.5 < by.loc["again", "ahead_high"]
    assert by.loc[ranking.FLOOR, "lead"] == 0.0 and (table["cells"] == 60).all()
    low, high = by.loc["one", "lead_low"], by.loc["one", "lead_high"]
    verdict = "ahead" if low > 0.5 else "behind" if high < 0.5 else "open"
    assert verdict == expected


def test_the_noise_of_ada_ssp_is_that_of_its_algorithm():
    at = Scaled(make_problem("least_squares", "l2"))
    made = ada_ssp.Options(radius=1.2, label=3.0)
    unit = 3 * math.sqrt(math.log(6 / at.delta)) / at.epsilon
    R = 1.2 * at.p**0.5
    np.testing.assert_allclose(
        published.ada_ssp_noise(at, made), [unit * R**2, unit * R**2, 3 * unit * R]
    )


def test_each_half_of_mixing_has_the_epsilon_that_its_authors_give_it():
    at = Scaled(make_problem("least_squares", "l2"))
    made = hessian_mixing.Options()
    lowest, root, scale = published.mixing_noise(at, made)
    C = hessian_mixing.ledger(at, 1.0, made).events[2].sensitivity / 2
    one = Ledger((Gaussian(C, scale, 3, "", ""),))  # adding or removing a record
    assert true_epsilon(one, at.delta / 2) == pytest.approx(at.epsilon / 2, rel=1e-3)
    k = 3 * hessian_mixing.ledger(at, 1.0, made).events[1].rows
    g, a = root**2 / at.p, np.linspace(1.01, 400, 40_000)
    a = a[a < g]
    curve = k / (2 * (a - 1)) * (a * np.log(1 - 1 / g) - np.log(1 - a / g))
    curve += a / 2 * (at.p / lowest) ** 2
    spent = np.log(1 - 1 / a) - (np.log(at.delta / 2) + np.log(a)) / (a - 1)
    assert (curve + spent).min() == pytest.approx(at.epsilon / 2, rel=0.02)


@pytest.mark.parametrize("name", [*published.NOISE])
def test_published_noise_is_what_a_run_draws(name):
    problem = make_problem("least_squares", "l2")
    method = published.published(name, problem)
    module, noise = published.NOISE[name]
    events = method.ledger({}, 7.0).events
    found = noise(method.at, module.Options())
    assert [event.scale for event in events] == pytest.approx([*found])
    exact = module.ledger(method.at, 7.0, module.Options()).events
    assert [e.sensitivity for e in events] == [e.sensitivity for e in exact]
