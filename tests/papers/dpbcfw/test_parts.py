"""Iterates, bounds, the minimum over the ball, and instances."""

import numpy as np
import pytest
from scipy import optimize

from dperm.problems.losses import PLACES, named
from dperm.problems.penalties import Penalty
from dperm.problems.problem import build
from dperm.solvers.distributed.bounds import record_bound
from dperm.solvers.distributed.sketch import Sketch
from dperm.solvers.frank_wolfe.iterate import GradientIterate, Iterate


def test_the_kept_gradient_does_not_drift(instance):
    """Two thousand steps, some columns often: as good as recomputed."""
    problem, rng = instance.problem, np.random.default_rng(0)
    kept, plain = GradientIterate(problem), Iterate(problem)
    kept._room = 5  # columns of the Gram matrix come and go
    for t in range(2000):
        columns = rng.integers(0, 20, 3)
        vertex, gamma = rng.standard_normal(3), 2 / (t + 2)
        for at in (kept, plain):
            at.combine(gamma, columns, vertex)
    np.testing.assert_allclose(kept.gradient(), plain.gradient(), atol=1e-12)
    assert kept.objective == plain.objective
    assert len(kept._known) <= 5


def test_gradients_of_other_losses_are_not_kept(instance):
    y = np.where(instance.problem.offset > 0, 1.0, -1.0)
    problem = build("l", instance.problem.A, y, "logistic", Penalty())
    with pytest.raises(ValueError, match="not linear"):
        GradientIterate(problem)


@pytest.mark.parametrize("loss", PLACES)
def test_record_bound_holds_and_is_reached(loss):
    rng, loss_function = np.random.default_rng(0), named(loss)
    B, Y, R = 2.0, 3.0, 1.5
    bound = record_bound(loss_function, B, Y, R)
    offset = (
        Y * rng.uniform(-1, 1, 10_000)
        if loss_function.labels == "real"
        else 0.0
    )
    margins = R * rng.uniform(-1, 1, 10_000) + offset
    found = B * np.abs(loss_function.derivatives(margins)).max()
    assert found <= bound
    assert loss == "logistic" or found > 0.95 * bound


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_the_minimum_over_the_ball(instance, share):
    """Against SciPy's SLSQP-free route: the split problem with one linear bound."""
    problem, radius = instance.problem, share * instance.radius
    value, gap = instance.minimum(share, 1e-9, 20_000)
    A, y = problem.A.toarray(), -problem.offset

    def split(z):
        x = z[: problem.p] - z[problem.p :]
        slope = A.T @ (A @ x - y) / problem.n
        return problem.mean_loss(A @ x - y), np.concatenate([slope, -slope])

    found = optimize.minimize(
        split, np.zeros(2 * problem.p), jac=True, method="SLSQP",
        bounds=[(0, None)] * (2 * problem.p), options={"maxiter": 500, "ftol": 1e-14},
        constraints={"type": "ineq", "fun": lambda z: radius - z.sum(),
                     "jac": lambda z: -np.ones_like(z)},
    )  # fmt: skip
    assert gap <= 1e-9 * instance.start
    assert value == pytest.approx(found.fun, rel=1e-5)


def test_a_sketch_longer_than_the_records_is_refused():
    with pytest.raises(ValueError, match="sketch length"):
        Sketch(10, 11, 0)
