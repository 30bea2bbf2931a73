"""Frank-Wolfe methods: transcripts, and what every reading of their noise costs."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dperm.privacy import accounting, true_epsilon
from dperm.privacy.events import NonPrivate
from dperm.privacy.noise import streams
from dperm.problems.penalties import Penalty
from dperm.problems.problem import build
from dperm.solvers import registry
from dperm.solvers.distributed.node import shared_sketch
from dperm.solvers.frank_wolfe import dp_bcfw_noise

DELTA, STEPS = 1e-4, 5
ALL = [
    name for name, path in registry.PLACES.items() if ".frank_wolfe." in path
]
PRIVATE = [name for name in ALL if name.startswith("dp_")]


def made(name):
    """A small problem, the solver's module and its options."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 12)), rng.standard_normal(30)
    module = registry.load(name)
    problem = build("small", X, y, "least_squares", Penalty())
    return problem, module, module.Options(radius=3.0)


def noise_of(name, calibration="tight", epsilon=5.0):
    problem, module, options = made(name)
    return module.noise(problem, STEPS, options, epsilon, DELTA, calibration)


@pytest.mark.parametrize("name", PRIVATE)
def test_a_private_transcript_has_the_selections_its_ledger_counts(name):
    problem, module, options = made(name)
    noise = noise_of(name)
    run = module.Run(problem, streams(1), options, noise)
    assert len([*run.releases(STEPS)]) == noise.ledger.events[0].count
    moved = np.zeros(problem.p)
    for t, signed in enumerate(run.chosen):
        gamma = 2 / (t + 2)
        moved *= 1 - gamma
        np.add.at(
            moved, np.abs(signed) - 1, -gamma * run.vertex * np.sign(signed)
        )
    np.testing.assert_allclose(run.weights[0], moved, rtol=1e-12)


@pytest.mark.parametrize(
    "calibration", ["published", "stated", "scaled", "valid", "tight"]
)
@pytest.mark.parametrize("name", PRIVATE)
def test_every_noise_says_what_it_truly_costs(name, calibration):
    """By a sound accountant; the sensitivity of a score is written out here."""
    problem, _, options = made(name)
    loud = noise_of(name, calibration, 50.0).true_epsilon
    assert calibration != "tight" or loud <= 50.0 * (1 + 1e-6)
    noise = noise_of(name, calibration, 1.0)
    assert noise.true_epsilon >= true_epsilon(noise.ledger, DELTA) * (1 - 1e-9)
    selection = noise.ledger.events[0]
    assert selection.scale == noise.index_scale > 0
    reach = options.reach if name == "dp_bcfw" else options.radius
    bound = options.entry_bound * (
        options.entry_bound * reach + options.label_bound
    )
    unit = options.radius if noise.scores == "radius" else 1.0
    assert selection.sensitivity == pytest.approx(2 * unit * bound / problem.n)
    if name == "dp_bcfw":
        # without a sketch one entry of a feature is replaced
        assert noise.ledger.events[1].sensitivity == 2 * options.entry_bound
        sketched, J = (
            replace(options, sketch=4),
            shared_sketch(30, 4, 0).by_record,
        )
        moved = dp_bcfw_noise.sensitivities(problem, sketched)[1]
        assert moved == pytest.approx(2 * np.linalg.norm(J, axis=1).max())


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("calibration", ["none", "tight"])
def test_without_noise_no_epsilon_is_claimed(name, calibration):
    problem, module, options = made(name)
    noise = noise_of(name, calibration, math.inf)
    (event,) = noise.ledger.events
    assert isinstance(event, NonPrivate) and event.count == STEPS
    assert noise.index_scale == noise.sketch_scale == 0
    assert true_epsilon(noise.ledger, DELTA) == noise.true_epsilon == math.inf
    if name not in PRIVATE:  # which never cost nothing
        loud = module.ledger(problem, STEPS, 1e6, options, "published")
        assert accounting.epsilon(loud, DELTA, "published") == math.inf


@pytest.mark.parametrize("name", ALL)
def test_an_unknown_calibration_is_refused(name):
    with pytest.raises(ValueError, match=r"calibration: .* found 'loose'"):
        noise_of(name, "loose")


def test_a_node_answers_after_what_the_one_before_it_released_is_told():
    problem, module, options = made("dp_bcfw")
    run = module.Run(problem, streams(1), options, noise_of("dp_bcfw"))
    for k, _ in enumerate(run.releases(1), start=1):
        sent = [len(node.sent) for node in run.engine.nodes]
        assert sent == [1] * k + [0] * (options.nodes - k)
