"""Every registered loss against finite differences and its conjugate."""

import pickle
import re
from dataclasses import replace

import numpy as np
import pytest

from conftest import make_problem, raw_data
from dperm.privacy.noise import streams
from dperm.problems import losses, optimum
from dperm.problems.losses import PLACES, Loss, bounded, named
from dperm.problems.penalties import Penalty
from dperm.problems.problem import build
from dperm.solvers import registry
from dperm.solvers.batched import BatchedSettings

LOSSES = [named(name) for name in PLACES]
every = pytest.mark.parametrize("loss", LOSSES, ids=PLACES)
SPREAD = np.linspace(-4.0, 4.0, 1001) + 1e-4  # no kink is met


@every
def test_derivatives_are_those_of_the_value(loss):
    step = 1e-5
    above, below = SPREAD + step, SPREAD - step
    central = (loss.values(above) - loss.values(below)) / (2 * step)
    np.testing.assert_allclose(loss.derivatives(SPREAD), central, atol=1e-8)
    rises = (loss.derivatives(above) - loss.derivatives(below)) / (2 * step)
    np.testing.assert_allclose(loss.second(SPREAD), rises, atol=1e-8)
    same = np.array_equal(loss.derivatives(SPREAD), SPREAD)
    assert loss.quadratic == (same and (loss.second(SPREAD) == 1).all())


@every
def test_curvature_and_slopes_are_those_of_the_derivative(loss):
    """Every end of the range of slopes is reached, or approached, or infinite."""
    assert loss.second(SPREAD).max() <= loss.curvature
    assert loss.second(np.linspace(-4, 4, 8001)).max() == pytest.approx(
        loss.curvature
    )
    found = loss.derivatives(np.array([-600.0, 600.0]))
    for end, far in zip(loss.slopes, found, strict=True):
        assert far == pytest.approx(end, abs=1e-12) if np.isfinite(end) else (
            abs(far) > 500 and np.sign(far) == np.sign(end)
        )  # fmt: skip


@every
def test_fenchel_and_young_agree_at_the_derivative(loss):
    """And the conjugate is infinite outside of the range of slopes."""
    margins = np.concatenate((SPREAD, [-700.0, -40.0, 40.0, 700.0]))
    offset = np.random.default_rng(0).standard_normal(len(margins))
    theta = loss.derivatives(margins)
    both = loss.values(margins) + loss.conjugate(theta, offset)
    np.testing.assert_allclose(
        both, theta * (margins - offset), rtol=1e-12, atol=1e-11
    )
    low, high = loss.slopes
    theta = np.array(
        [end for end in (low - 0.01, high + 0.01) if np.isfinite(end)]
    )
    assert np.isinf(loss.conjugate(theta, np.zeros(len(theta)))).all()


@every
@pytest.mark.parametrize("reach", [0.3, 1.0, 2.5])
def test_public_bounds_hold_and_grow_to_the_largest_slope(loss, reach):
    steepest = np.abs(loss.derivatives(np.linspace(-reach, reach, 4001))).max()
    assert steepest <= loss.lipschitz(reach) * (1 + 1e-12)
    assert loss.lipschitz(np.inf) == max(abs(end) for end in loss.slopes)
    assert loss.lipschitz(reach) <= loss.lipschitz(np.inf)
    assert (
        loss.lipschitz(reach) == pytest.approx(steepest)
        or loss.name == "logistic"
    )


@every
def test_margins_are_made_of_scores_and_labels(loss):
    X, y = raw_data(loss.name)
    w = np.random.default_rng(0).standard_normal(5)
    problem = build("small", X, y, loss.name, Penalty())
    slope = loss.compiled(losses.slope)
    slopes = [slope(s, label) for s, label in zip(X @ w, y, strict=True)]
    np.testing.assert_allclose(
        problem.gradient(w), X.T @ slopes / len(y), rtol=1e-10
    )
    reach = loss.reach(np.abs(X @ w).max(), np.abs(y).max())
    assert np.abs(problem.A @ w + problem.offset).max() <= reach


@every
def test_labels_are_refused_where_signs_are_needed(loss):
    X, y = raw_data("least_squares")
    if loss.labels == "sign":
        with pytest.raises(
            ValueError, match=rf"bad: {loss.name} labels .* -1 or \+1"
        ):
            build("bad", X, y, loss.name, Penalty())
    else:
        assert build("good", X, y, loss.name, Penalty()).loss is loss


@every
def test_a_loss_stays_itself_in_another_process(loss):
    packed = pickle.dumps(loss)
    assert pickle.loads(packed) is loss  # packed a line above


def test_a_loss_without_minimum_has_no_optimum():
    with pytest.raises(
        optimum.NotCertifiedError, match="linear is not bounded below"
    ):
        optimum.solve(make_problem("linear", "l1"))
    assert "linear" not in bounded()


# --- a loss of one's own --------------------------------------------------------------


def test_labels_that_there_are_not_are_refused():
    with pytest.raises(
        TypeError, match="loss huber: labels: expected one of real"
    ):
        replace(named("huber"), labels="words")


def test_a_loss_beside_conf_is_found_by_its_name(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    own = "from dperm.problems.losses.huber import LOSS\n"
    renamed = (
        f"from dataclasses import replace\n{own}"
        "LOSS = replace(LOSS, name='steep')"
    )
    for name, text in (
        ("empty_loss", ""),
        ("other_loss", own),
        ("steep", renamed),
    ):
        (tmp_path / f"{name}.py").write_text(text)
    for name in ("empty_loss", "other_loss"):
        with pytest.raises(
            ValueError, match=f"'{name}': its module has no LOSS"
        ):
            named(name)
    assert named("steep").curvature == 1.0
    assert pickle.loads(pickle.dumps(named("steep"))) is named("steep")
    with pytest.raises(
        ValueError, match=re.escape("(did you mean logistic?)")
    ):
        named("logistik")


def test_a_loss_of_ones_own_has_kernels_of_its_own():
    """It is solved to a certified optimum, and changes nothing of another."""
    mine = Loss(
        "square", "real", 2.0, (-np.inf, np.inf),
        value=lambda v: v * v,
        derivative=lambda v: 2.0 * v,
        second=lambda v: np.full_like(v, 2.0),
        dual=lambda theta: theta**2 / 4,
        lipschitz=lambda reach: 2 * reach,
    )  # fmt: skip
    problem = make_problem("least_squares", "none")
    twice = replace(problem, loss=mine)
    best, theirs = optimum.solve(twice), optimum.solve(problem)
    assert best.value == pytest.approx(2 * theirs.value, rel=1e-9)
    module, settings = (
        registry.load("dp_cd"),
        BatchedSettings(np.ones(1), np.full(1, np.inf), 0.0),
    )
    ends = []
    for one in (problem, twice):
        run = module.Run(
            one, settings, streams(1), module.Options(), total=500
        )
        run.advance(500)
        ends.append(run.weights)
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-8)
