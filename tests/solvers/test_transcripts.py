"""Noise, transcripts and targets of every Frank-Wolfe and every stream solver."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from dperm.core import solvers
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import build
from dperm.core.experiment import config
from dperm.core.privacy import accounting, true_epsilon
from dperm.core.privacy.ledger import NonPrivate
from dperm.core.privacy.mechanisms import streams
from dperm.solvers import frank_wolfe
from dperm.solvers import streams as streaming
from dperm.solvers.streams import Target
from dperm.solvers.streams.setup import Setup
from dperm.solvers.streams.sources import Signs

DELTA, STEPS, N = 1e-4, 5, 400


def of(family):
    return [name for name, path in solvers.PLACES.items() if f".{family}." in path]


FRANK_WOLFE, STREAMS = of("frank_wolfe"), of("streams")
PRIVATE = [name for name in FRANK_WOLFE if name.startswith("dp_")]


def made(name):
    """A small problem, the solver's module and its options."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 12)), rng.standard_normal(30)
    module = solvers.load(name)
    problem = build("small", X, y, "least_squares", Penalty())
    return problem, module, module.Options()


def test_there_are_solvers():
    assert len(FRANK_WOLFE) == 4 and len(STREAMS) == 6


@pytest.mark.parametrize("name", FRANK_WOLFE)
def test_frank_wolfe_solvers_keep_the_protocol(name):
    problem, module, options = made(name)
    assert isinstance(module, frank_wolfe.Solver)
    assert issubclass(module.Run, frank_wolfe.FrankWolfe)
    noise = module.noise(problem, STEPS, options, 5.0, DELTA, "strict")
    whole, told = [], []
    with module.Run(problem, streams(1), options, noise) as run:
        for _ in range(STEPS):
            run.advance(1)
            whole += run.released
        weights = run.weights.copy()
    with module.Run(problem, streams(1), options, noise) as run:
        told += list(run.releases(STEPS))
        np.testing.assert_array_equal(run.weights, weights)
    assert weights.shape == (1, problem.p)
    assert len(run.chosen) == STEPS and run.largest > 0
    assert len(told) == len(whole) >= STEPS
    for one, other in zip(told, whole, strict=True):
        assert one.ndim == 1
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", PRIVATE)
def test_a_private_transcript_has_the_selections_its_ledger_counts(name):
    problem, module, options = made(name)
    noise = module.noise(problem, STEPS, options, 5.0, DELTA, "strict")
    run = module.Run(problem, streams(1), options, noise)
    told = list(run.releases(STEPS))
    assert len(told) == noise.ledger.events[0].count
    moved = np.zeros(problem.p)
    for t, signed in enumerate(run.chosen):
        gamma = 2 / (t + 2)
        moved *= 1 - gamma
        np.add.at(moved, np.abs(signed) - 1, -gamma * run.vertex * np.sign(signed))
    np.testing.assert_allclose(run.weights[0], moved, rtol=1e-12)


@pytest.mark.parametrize("calibration", ["paper", "stated", "scaled", "valid"])
@pytest.mark.parametrize("name", PRIVATE)
def test_every_published_noise_says_what_it_truly_costs(name, calibration):
    problem, module, options = made(name)
    noise = module.noise(problem, STEPS, options, 1.0, DELTA, calibration)
    assert noise.index_scale > 0
    true = true_epsilon(noise.ledger, DELTA)
    assert noise.true_epsilon >= true * (1 - 1e-9)
    selection = noise.ledger.events[0]
    assert selection.scale == noise.index_scale
    unit = options.radius if noise.scores == "radius" else 1.0
    bound = module.valid_lipschitz(problem, options)
    assert selection.sensitivity == pytest.approx(2 * unit * bound / problem.n)


@pytest.mark.parametrize("name", FRANK_WOLFE)
@pytest.mark.parametrize("calibration", ["none", "strict"])
def test_without_noise_no_epsilon_is_claimed(name, calibration):
    problem, module, options = made(name)
    noise = module.noise(problem, STEPS, options, math.inf, DELTA, calibration)
    (event,) = noise.ledger.events
    assert isinstance(event, NonPrivate) and event.count == STEPS
    assert noise.index_scale == noise.sketch_scale == 0
    assert true_epsilon(noise.ledger, DELTA) == noise.true_epsilon == math.inf


@pytest.mark.parametrize("name", ["fw", "bcfw"])
def test_a_method_without_noise_never_costs_nothing(name):
    problem, module, options = made(name)
    for multiplier in (0.0, 1.0, 1e6):
        ledger = module.ledger(problem, STEPS, multiplier, options, "paper")
        for calibration in ("paper", "strict"):
            assert accounting.epsilon(ledger, DELTA, calibration) == math.inf


@pytest.mark.parametrize("name", FRANK_WOLFE)
def test_an_unknown_calibration_is_refused(name):
    problem, module, options = made(name)
    with pytest.raises(ValueError, match=r"none, paper, .* found 'loose'"):
        module.noise(problem, STEPS, options, 1.0, DELTA, "loose")


def test_a_node_answers_after_what_the_one_before_it_released_is_told():
    problem, module, options = made("dp_bcfw")
    noise = module.noise(problem, STEPS, options, 5.0, DELTA, "strict")
    run = module.Run(problem, streams(1), options, noise)
    for k, _ in enumerate(run.releases(1), start=1):
        sent = [len(node.sent) for node in run.engine.nodes]
        assert sent == [1] * k + [0] * (options.nodes - k)


def test_noise_as_stated_is_added_to_the_gradient_alone():
    problem, module, options = made("dp_bcfw")
    stated, scaled = (
        module.noise(problem, STEPS, replace(options, radius=3.0), 1.0, DELTA, kind)
        for kind in ("stated", "scaled")
    )
    assert stated.index_scale == scaled.index_scale
    assert stated.scores == "gradient" and scaled.scores == "radius"
    moved = [noise.ledger.events[0].sensitivity for noise in (stated, scaled)]
    assert moved[1] == pytest.approx(3.0 * moved[0])


# --- streams --------------------------------------------------------------------------


def aims():
    return [Target(1.0, DELTA, "paper"), Target(4.0, DELTA, "strict"),
            Target(math.inf, DELTA, "none")]  # fmt: skip


def setup_of(name, radius=1.0):
    return Setup("least_squares", 1.0 if name in ("poly_sfw", "sco_dp_fw") else 2.0, 5,
                 radius)  # fmt: skip


def started(name, setup, targets, seed=1):
    module = solvers.load(name)
    given = (setup, targets, streams(seed), Signs(5, 3))
    return module.Run(*given, N, module.Options())


@pytest.mark.parametrize("name", STREAMS)
def test_stream_solvers_keep_the_protocol(name):
    module, setup = solvers.load(name), setup_of(name)
    assert isinstance(module, streaming.Solver)
    assert issubclass(module.Run, streaming.Stream)
    run = started(name, setup, aims()[1:2])
    told = list(run.releases())
    assert len(told) > 3 and {one.shape for one in told} == {(5,)}
    found = started(name, setup, aims()[1:2]).solve()
    np.testing.assert_allclose(found, run.weights, rtol=1e-10)
    assert not any(np.shares_memory(a, b) for a, b in itertools.pairwise(told))


@pytest.mark.parametrize("name", STREAMS)
def test_no_target_changes_another(name):
    setup = setup_of(name)
    whole = started(name, setup, aims(), 7).solve()
    assert whole.shape == (3, 5) and len({row.tobytes() for row in whole}) == 3
    for row, target in zip(whole, aims(), strict=True):
        np.testing.assert_array_equal(row, started(name, setup, [target], 7).solve()[0])


@pytest.mark.parametrize("name", STREAMS)
def test_stream_noise_says_what_it_costs(name):
    module, setup = solvers.load(name), setup_of(name)
    paper, strict, none = (
        module.noise(setup, N, target, module.Options()) for target in aims()
    )
    assert true_epsilon(strict.ledger, DELTA) <= 4.0 * 1.001  # a grid's bound
    assert min(*paper.scales, *strict.scales) > 0 == max(none.scales)
    for noise in (paper, strict):
        known = module.ledger(setup, N, noise.scales, module.Options())
        assert known == noise.ledger
    assert true_epsilon(none.ledger, DELTA) == math.inf


def test_poly_sfw_wants_the_l1_ball():
    with pytest.raises(ValueError, match="p: expected 1, found 2"):
        started("poly_sfw", Setup("linear", 2.0, 5), aims())


def test_yamls_of_both_families_load():
    for name in (*FRANK_WOLFE, *STREAMS):
        spec = config.read("solver", name)
        assert spec.algorithm == name
        solvers.make_options(solvers.load(name), spec.options)
