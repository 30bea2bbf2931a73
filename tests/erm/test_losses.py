"""Every registered loss against finite differences, its definition and SciPy."""

import inspect
import pickle
import re

import numpy as np
import pytest
from numba import njit
from scipy import optimize

from conftest import PENALTIES, make_problem, raw_data
from dperm.core import solvers
from dperm.core.erm import loss as contract
from dperm.core.erm import losses, optimum
from dperm.core.erm.bounds import record_bound
from dperm.core.erm.constants import largest_derivatives
from dperm.core.erm.loss import BYTES, FIRST, Loss, Residual, Signed
from dperm.core.erm.losses import BOUNDED, LOSSES, derivatives, named
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import build
from dperm.core.lanes import Lanes
from dperm.core.privacy.mechanisms import streams
from dperm.solvers.frank_wolfe import dp_fw

KINDS = list(LOSSES.values())
every = pytest.mark.parametrize("kind", KINDS, ids=list(LOSSES))
SPREAD = np.linspace(-4.0, 4.0, 1001) + 1e-4  # no kink is met


def values(kind, v):
    return np.array([losses.value(kind.code, x) for x in v])


@every
def test_derivatives_are_those_of_the_value(kind):
    step = 1e-5
    central = (values(kind, SPREAD + step) - values(kind, SPREAD - step)) / (2 * step)
    np.testing.assert_allclose(derivatives(kind, SPREAD), central, atol=1e-8)
    rises = derivatives(kind, SPREAD + step) - derivatives(kind, SPREAD - step)
    np.testing.assert_allclose(kind.second(SPREAD), rises / (2 * step), atol=1e-8)


@every
def test_curvature_is_the_supremum_of_the_second_derivative(kind):
    assert kind.second(SPREAD).max() <= kind.curvature
    assert kind.second(np.linspace(-4, 4, 8001)).max() == pytest.approx(kind.curvature)


@every
def test_slopes_are_the_range_of_the_derivative(kind):
    """The closure: every end is reached, or approached, or infinite."""
    found = derivatives(kind, np.array([-600.0, 600.0]))
    for end, far in zip(kind.slopes, found, strict=True):
        assert far == pytest.approx(end, abs=1e-12) if np.isfinite(end) else (
            abs(far) > 500 and np.sign(far) == np.sign(end)
        )  # fmt: skip


@every
def test_conjugate_is_the_maximum_of_its_definition(kind):
    offset = 0.7
    for theta in np.clip(np.linspace(-2.5, 2.5, 11), *kind.slopes):
        lost = lambda s, t=theta: losses.value(kind.code, s + offset) - t * s  # noqa: E731
        best = optimize.minimize_scalar(lost, bounds=(-60, 60), method="bounded",
                                        options={"xatol": 1e-12})  # fmt: skip
        found = kind.conjugate(np.array([theta]), np.array([offset]))[0]
        assert found == pytest.approx(-best.fun, abs=1e-8)


@every
def test_fenchel_and_young_agree_at_the_derivative(kind):
    offset = np.random.default_rng(0).standard_normal(len(SPREAD))
    theta = derivatives(kind, SPREAD)
    both = values(kind, SPREAD) + kind.conjugate(theta, offset)
    np.testing.assert_allclose(both, theta * (SPREAD - offset), atol=1e-11)


@every
def test_conjugate_is_infinite_outside_the_range_of_slopes(kind):
    low, high = kind.slopes
    theta = np.array([end for end in (low - 0.01, high + 0.01) if np.isfinite(end)])
    assert np.isinf(kind.conjugate(theta, np.zeros(len(theta)))).all()


@every
@pytest.mark.parametrize("reach", [0.3, 1.0, 2.5])
def test_public_bounds_hold_and_grow_to_the_largest_slope(kind, reach):
    steepest = np.abs(derivatives(kind, np.linspace(-reach, reach, 4001))).max()
    assert steepest <= kind.lipschitz(reach) * (1 + 1e-12)
    assert kind.lipschitz(np.inf) == max(abs(end) for end in kind.slopes)
    assert kind.lipschitz(reach) <= kind.lipschitz(np.inf)
    assert kind.lipschitz(reach) == pytest.approx(steepest) or kind.name == "logistic"


@every
def test_kernels_take_the_pieces_of_the_class(kind):
    """Pieces of one loss, called alone, are what its code makes kernels do."""
    cls = type(kind)
    for v in SPREAD[::50]:
        assert losses.value(kind.code, v) == cls.value(v)
        assert losses.derivative(kind.code, v) == cls.derivative(v)
        for y in (-1.0, 1.0):
            sign, offset = kind.signs(np.array([y]))[0], kind.offset(np.array([y]))[0]
            expected = sign * cls.derivative(sign * v + offset)
            assert losses.slope(kind.code, v, y) == expected


@every
def test_margins_are_made_of_scores_and_labels(kind):
    X, y = raw_data(kind.name)
    w = np.random.default_rng(0).standard_normal(5)
    problem = build("small", X, y, kind.name, Penalty())
    slopes = [losses.slope(kind.code, s, label)
              for s, label in zip(X @ w, y, strict=True)]  # fmt: skip
    np.testing.assert_allclose(problem.gradient(w), X.T @ slopes / len(y), rtol=1e-10)
    reach = kind.reach(np.abs(X @ w).max(), np.abs(y).max())
    assert np.abs(problem.A @ w + problem.offset).max() <= reach


@every
def test_labels_are_refused_where_signs_are_needed(kind):
    X, y = raw_data("least_squares")
    if isinstance(kind, Signed):
        with pytest.raises(ValueError, match=rf"bad: {kind.name} labels .* -1 or \+1"):
            build("bad", X, y, kind.name, Penalty())
    else:
        assert build("good", X, y, kind.name, Penalty()).loss is kind


@every
def test_a_loss_stays_itself_in_another_process(kind):
    assert pickle.loads(pickle.dumps(kind)) is kind


@every
def test_only_a_quadratic_loss_says_so(kind):
    same = np.array_equal(derivatives(kind, SPREAD), SPREAD)
    assert kind.quadratic == (same and (kind.second(SPREAD) == 1).all())


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("penalty", ["l1", "l2", "elastic", "box"])
def test_the_certified_optimum_is_scipys(name, penalty):
    """Plain formulas in SciPy's trust region, with the L1 norm split in two."""
    problem = make_problem(name, penalty)
    best = optimum.solve(problem)
    assert abs(best.gap) <= 1e-10 * best.value
    X, y = raw_data(name)
    psi = PENALTIES[penalty]

    def objective(z):
        w, slack = z[:5] - z[5:], z.sum()
        v = (X @ w - y) if isinstance(named(name), Residual) else y * (X @ w)
        phi = {
            "least_squares": 0.5 * v**2,
            "logistic": np.logaddexp(0, -v),
            "smoothed_hinge": 0.5 * np.maximum(1 - v, 0) ** 2,
            "huber": np.where(np.abs(v) <= 1, 0.5 * v**2, np.abs(v) - 0.5),
        }[name]
        return phi.mean() + psi.l1 * slack + psi.l2 / 2 * (w @ w)

    ends = [(0, psi.upper)] * 5 + [(0, -psi.lower)] * 5
    found = optimize.minimize(objective, np.zeros(10), method="L-BFGS-B", bounds=ends,
                              options={"ftol": 1e-15, "gtol": 1e-9})  # fmt: skip
    assert best.value <= found.fun * (1 + 1e-12)
    assert best.value == pytest.approx(found.fun, rel=1e-6)


def test_a_loss_without_minimum_has_no_optimum():
    problem = make_problem("linear", "l1")
    with pytest.raises(optimum.NotCertifiedError, match="linear is not bounded below"):
        optimum.solve(problem)
    assert "linear" not in BOUNDED


@pytest.mark.parametrize("solver", ["dp_cd", "dp_sgd", "dp_gcd", "dp_skgd", "dp_svrg"])
@pytest.mark.parametrize("name", BOUNDED)
def test_lane_solvers_reach_the_optimum_without_noise(solver, name):
    module = solvers.load(solver)
    problem = make_problem(name, "l2")
    best = optimum.solve(problem).value
    step = {"dp_sgd": 0.02, "dp_svrg": 0.1}.get(solver, 1.0)
    lanes = Lanes(np.array([step]), np.array([np.inf]), 0.0)
    count = 20_000 if solver == "dp_sgd" else 4000
    run = module.Run(problem, lanes, streams(1), module.Options(), total=count)
    run.advance(count)
    tolerance = {"dp_sgd": 2e-2, "dp_svrg": 1e-3}.get(solver, 1e-6)
    assert problem.objective(run.weights)[0] == pytest.approx(best, rel=tolerance)


def test_the_bounds_of_huber_are_those_of_its_slope():
    problem = make_problem("huber", "none")
    options = dp_fw.Options(radius=2.0, entry_bound=3.0, label_bound=4.0)
    assert dp_fw.valid_lipschitz(problem, options) == 3.0
    assert record_bound(named("huber"), 2.0, 0.25, 0.5) == 1.5
    largest, how = largest_derivatives(problem, np.ones(5))
    assert how == "global" and (largest == 1.0).all()


# --- a loss that forgets something ----------------------------------------------------


def pieces():
    """Everything a loss must say, of least squares."""
    own = type(named("least_squares"))
    keys = ("curvature", "slopes", "value", "derivative", "second", "dual", "lipschitz")
    return {key: inspect.getattr_static(own, key) for key in keys}


@pytest.mark.parametrize("key", pieces())
def test_a_loss_that_forgets_a_piece_cannot_exist(key):
    said = {"name": "forgetful", **pieces()}
    del said[key]
    with pytest.raises(TypeError, match=f"loss forgetful: has no {key}"):
        type("Forgetful", (Residual,), said)
    assert "forgetful" not in LOSSES


def test_a_loss_that_forgets_its_labels_cannot_exist():
    with pytest.raises(TypeError, match="has no offset, reach, scored"):
        type("Forgetful", (Loss,), {"name": "forgetful", **pieces()})


@pytest.mark.parametrize("key", ["value", "derivative"])
@pytest.mark.parametrize("piece", [lambda v: v, njit(lambda v: v)])
def test_pieces_that_are_not_pasted_into_kernels_are_refused(key, piece):
    said = {"name": "plain", **pieces(), key: staticmethod(piece)}
    with pytest.raises(TypeError, match=f"loss plain: {key} is not compiled"):
        type("Plain", (Residual,), said)


def test_names_and_codes_are_given_once():
    said = {"name": "logistic", **pieces()}
    with pytest.raises(TypeError, match="loss logistic: there is one of that name"):
        type("Again", (Residual,), said)
    assert len({kind.code for kind in KINDS}) == len(KINDS)
    for kind in KINDS:  # see ``losses``: bytes keep the later ones out of a kernel
        assert (type(kind.code) is np.uint8) == (kind.code < BYTES)
    assert [kind.code for kind in KINDS[:FIRST]] == list(range(FIRST))


def test_a_loss_that_kernels_do_not_know_is_refused():
    """It would be taken for another one, optimum and certificate included."""
    with pytest.raises(
        TypeError, match=r"loss late: expected in dperm\.core\.erm\.losses"
    ):
        type("Late", (Residual,), {"name": "late", **pieces()})
    assert set(contract.CLOSED) == set(LOSSES)


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match=re.escape("(did you mean logistic?)")):
        named("logistik")
