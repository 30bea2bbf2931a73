"""Every registered loss against finite differences, its definition and SciPy."""

import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
from numba import njit
from scipy import optimize

from conftest import PENALTIES, make_problem, raw_data
from dperm.core import solvers
from dperm.core.compiled import INLINE, filled
from dperm.core.erm import losses, optimum
from dperm.core.erm.losses import Loss, bounded, named, names
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import build
from dperm.core.lanes import Lanes, dp_cd
from dperm.core.privacy.mechanisms import streams
from dperm.solvers.distributed.bounds import record_bound
from dperm.solvers.frank_wolfe import dp_fw
from dperm.solvers.lanes.constants import largest_derivatives

KINDS = [named(name) for name in names()]
every = pytest.mark.parametrize("kind", KINDS, ids=names())
SPREAD = np.linspace(-4.0, 4.0, 1001) + 1e-4  # no kink is met


def values(kind, v):
    return kind.values(np.asarray(v, dtype=float))


@every
def test_derivatives_are_those_of_the_value(kind):
    step = 1e-5
    central = (values(kind, SPREAD + step) - values(kind, SPREAD - step)) / (2 * step)
    np.testing.assert_allclose(kind.derivatives(SPREAD), central, atol=1e-8)
    rises = kind.derivatives(SPREAD + step) - kind.derivatives(SPREAD - step)
    np.testing.assert_allclose(kind.second(SPREAD), rises / (2 * step), atol=1e-8)


@every
def test_curvature_is_the_supremum_of_the_second_derivative(kind):
    assert kind.second(SPREAD).max() <= kind.curvature
    assert kind.second(np.linspace(-4, 4, 8001)).max() == pytest.approx(kind.curvature)


@every
def test_slopes_are_the_range_of_the_derivative(kind):
    """The closure: every end is reached, or approached, or infinite."""
    found = kind.derivatives(np.array([-600.0, 600.0]))
    for end, far in zip(kind.slopes, found, strict=True):
        assert far == pytest.approx(end, abs=1e-12) if np.isfinite(end) else (
            abs(far) > 500 and np.sign(far) == np.sign(end)
        )  # fmt: skip


@every
def test_conjugate_is_the_maximum_of_its_definition(kind):
    offset = 0.7
    for theta in np.clip(np.linspace(-2.5, 2.5, 11), *kind.slopes):
        lost = lambda s, t=theta: kind.value(s + offset) - t * s  # noqa: E731
        best = optimize.minimize_scalar(lost, bounds=(-60, 60), method="bounded",
                                        options={"xatol": 1e-12})  # fmt: skip
        found = kind.conjugate(np.array([theta]), np.array([offset]))[0]
        assert found == pytest.approx(-best.fun, abs=1e-8)


@every
def test_fenchel_and_young_agree_at_the_derivative(kind):
    offset = np.random.default_rng(0).standard_normal(len(SPREAD))
    theta = kind.derivatives(SPREAD)
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
    steepest = np.abs(kind.derivatives(np.linspace(-reach, reach, 4001))).max()
    assert steepest <= kind.lipschitz(reach) * (1 + 1e-12)
    assert kind.lipschitz(np.inf) == max(abs(end) for end in kind.slopes)
    assert kind.lipschitz(reach) <= kind.lipschitz(np.inf)
    assert kind.lipschitz(reach) == pytest.approx(steepest) or kind.name == "logistic"


@every
def test_kernels_take_the_pieces_of_the_loss(kind):
    """Called alone, they are what a kernel compiled for it does."""
    pieces = (losses.value, losses.derivative, losses.slope)
    value, derivative, slope = map(kind.compiled, pieces)
    for v in SPREAD[::50]:
        assert value(v) == kind.value(v)
        assert derivative(v) == kind.derivative(v)
        for y in (-1.0, 1.0):
            sign, offset = kind.signs(np.array([y]))[0], kind.offset(np.array([y]))[0]
            assert slope(v, y) == sign * kind.derivative(sign * v + offset)


@every
def test_margins_are_made_of_scores_and_labels(kind):
    X, y = raw_data(kind.name)
    w = np.random.default_rng(0).standard_normal(5)
    problem = build("small", X, y, kind.name, Penalty())
    slope = kind.compiled(losses.slope)
    slopes = [slope(s, label) for s, label in zip(X @ w, y, strict=True)]
    np.testing.assert_allclose(problem.gradient(w), X.T @ slopes / len(y), rtol=1e-10)
    reach = kind.reach(np.abs(X @ w).max(), np.abs(y).max())
    assert np.abs(problem.A @ w + problem.offset).max() <= reach


@every
def test_labels_are_refused_where_signs_are_needed(kind):
    X, y = raw_data("least_squares")
    if kind.labels == "sign":
        with pytest.raises(ValueError, match=rf"bad: {kind.name} labels .* -1 or \+1"):
            build("bad", X, y, kind.name, Penalty())
    else:
        assert build("good", X, y, kind.name, Penalty()).loss is kind


@every
def test_a_loss_stays_itself_in_another_process(kind):
    packed = pickle.dumps(kind)
    assert pickle.loads(packed) is kind  # packed a line above


@every
def test_only_a_quadratic_loss_says_so(kind):
    same = np.array_equal(kind.derivatives(SPREAD), SPREAD)
    assert kind.quadratic == (same and (kind.second(SPREAD) == 1).all())


@pytest.mark.parametrize("name", bounded())
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
        v = (X @ w - y) if named(name).labels == "real" else y * (X @ w)
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
    assert "linear" not in bounded()


@pytest.mark.parametrize("solver", ["dp_cd", "dp_sgd", "dp_gcd", "dp_skgd", "dp_svrg"])
@pytest.mark.parametrize("name", bounded())
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


# --- a loss of one's own --------------------------------------------------------------


@pytest.mark.parametrize("key", ["value", "derivative"])
@pytest.mark.parametrize("piece", [lambda v: v, njit(lambda v: v)])
def test_pieces_that_are_not_pasted_into_kernels_are_refused(key, piece):
    with pytest.raises(TypeError, match=f"loss huber: {key} is not compiled"):
        replace(named("huber"), **{key: piece})


def test_labels_of_another_kind_are_refused():
    with pytest.raises(TypeError, match="loss huber: labels: expected one of real"):
        replace(named("huber"), labels="words")


def test_a_module_without_a_loss_is_refused(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    own = "from dperm.core.erm.losses.huber import LOSS"
    for name, text in (("empty_loss", ""), ("other_loss", own)):
        (tmp_path / f"{name}.py").write_text(text)
        with pytest.raises(ValueError, match=f"'{name}': its module has no LOSS"):
            named(name)


def test_a_loss_beside_conf_is_found_by_its_name(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "steep.py").write_text(
        "from dataclasses import replace\n"
        "from dperm.core.erm.losses.huber import LOSS\n"
        "LOSS = replace(LOSS, name='steep')\n"
    )
    assert named("steep").curvature == 1.0
    assert pickle.loads(pickle.dumps(named("steep"))) is named("steep")


def test_a_kernel_that_is_compiled_for_no_loss_is_refused():
    """It could otherwise take one loss for another, certificate included."""
    margins = np.zeros(3)
    with pytest.raises(NotImplementedError):
        losses._values(margins, np.empty(3))


def test_a_loss_of_ones_own_has_kernels_of_its_own():
    """It is solved to a certified optimum, and changes nothing of another."""
    mine = Loss(
        "square", "real", 2.0, (-np.inf, np.inf),
        value=njit(**INLINE)(lambda v: v * v),
        derivative=njit(**INLINE)(lambda v: 2.0 * v),
        second=lambda v: np.full_like(v, 2.0),
        dual=lambda theta: theta**2 / 4,
        lipschitz=lambda reach: 2 * reach,
    )  # fmt: skip
    problem = make_problem("least_squares", "none")
    twice = replace(problem, loss=mine)
    best, theirs = optimum.solve(twice), optimum.solve(problem)
    assert best.value == pytest.approx(2 * theirs.value, rel=1e-9)
    run = solvers.load("dp_cd").Run
    lanes = Lanes(np.ones(1), np.full(1, np.inf), 0.0)
    moved = [run(one, lanes, streams(1), dp_cd.Options(), total=500)
             for one in (problem, twice)]  # fmt: skip
    for one in moved:
        one.advance(500)
    np.testing.assert_allclose(moved[0].weights, moved[1].weights, rtol=1e-8)


def test_a_filled_kernel_is_made_once_and_kept_by_its_name():
    kernel = losses._derivatives
    compiled = named("logistic").compiled(kernel)
    assert compiled is named("logistic").compiled(kernel)
    assert compiled is not named("huber").compiled(kernel)
    assert compiled.py_func.__qualname__ == "_derivatives_logistic"
    assert filled(kernel, "x", {}) is kernel


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match=re.escape("(did you mean logistic?)")):
        named("logistik")
