"""The compiled projection against the one that bisects, and the run that uses it."""

import numpy as np
import pytest

from dperm.core.erm.sets import Ball, norms
from dperm.core.privacy.mechanisms import streams
from dperm.solvers.streams import Part, Target, phased_sgd
from dperm.solvers.streams.coins import hard
from dperm.solvers.streams.projecting import CompiledBall, CompiledSetup
from dperm.solvers.streams.setup import Setup


@pytest.mark.parametrize("p", [2.1, 3.0, 4.0, 8.0])
@pytest.mark.parametrize("radius", [0.5, 3.0])
def test_projection_is_that_of_the_ball(p, radius):
    x = np.random.default_rng(1).standard_normal((40, 6))
    x[0, 2:], x[1] = 0.0, 0.0
    x[2:12] *= radius * (1 + 1e-6) / norms(x[2:12], p)[:, None]  # hardly outside
    x[12:20] *= 0.9 * radius / norms(x[12:20], p)[:, None]
    x[20:25] *= 1e3
    found = CompiledBall(p, radius).project(x)
    np.testing.assert_allclose(found, Ball(p, radius).project(x), atol=1e-9 * radius)
    np.testing.assert_array_equal(found[12:20], x[12:20])
    assert (norms(found, p) <= radius * (1 + 1e-12)).all()


@pytest.mark.parametrize("p", [2.0, np.inf])
def test_other_norms_are_left_to_the_ball(p):
    x = np.random.default_rng(2).standard_normal((3, 5))
    assert (CompiledBall(p).project(x) == Ball(p).project(x)).all()


def test_phased_sgd_is_the_same_with_either():
    given = [Target(1.0, 1e-4, "strict"), Target(np.inf, 1e-4, "none")]
    runs = [
        phased_sgd.Run(
            [Part(kind("linear", 4.0, 5), given, streams(3))],
            hard("one a record", 5, 4, 1.0), 200, phased_sgd.Options(),
        )
        for kind in (Setup, CompiledSetup)
    ]  # fmt: skip
    asked = []
    ball = runs[1].parts[0].setup.ball
    runs[1].parts[0].setup.__dict__["ball"] = Counted(ball, asked)
    found = [run.solve()[0] for run in runs]
    np.testing.assert_allclose(found[1], found[0], atol=1e-9)
    assert len(asked) > 20  # the ball was left


class Counted:
    def __init__(self, ball, asked):
        self.ball, self.asked = ball, asked

    def project(self, x):
        self.asked.append(x)
        return self.ball.project(x)
