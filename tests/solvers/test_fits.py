"""Fits: ledgers by hand, what a run knows, minimisers, public scales, refusals.

What they all promise is in ``test_contract``, what they compute in ``test_twins``.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from conftest import PENALTIES, make_problem, raw_data
from dperm.privacy.events import Gaussian
from dperm.privacy.noise import streams
from dperm.problems.optimum import solve
from dperm.problems.penalties import Penalty
from dperm.problems.problem import build
from dperm.solvers import registry
from dperm.solvers.full_batch import (
    ada_ssp,
    dp_adaptive,
    dp_gd,
    dp_gram,
    dp_minibatch,
    dp_newton,
    dp_selection,
    hessian_mixing,
    moments,
    objective_perturbation,
)
from dperm.solvers.full_batch.minimise import minimise
from dperm.solvers.full_batch.scaled import Scaled
from dperm.solvers.full_batch.secret import UndeclaredError, in_rounds
from dperm.solvers.records import Records, relevance
from dperm.solvers.scales import (
    column_scales,
    declared,
    is_declared,
    label_scale,
)
from solvers.test_twins import FITS

NAMES = [name for name, path in registry.PLACES.items() if ".fits." in path]


@pytest.fixture(params=NAMES)
def module(request):
    return registry.load(request.param)


def options(module):
    """Those of its twin, whose clips and radii are unusual."""
    return module.Options(**FITS[module.__name__.rpartition(".")[2]][0])


def test_ledgers_state_the_sensitivities_of_the_papers():
    at = Scaled(make_problem("least_squares", "l2"))
    p, label = at.p, at.label
    R, C, root = 1.5 * np.sqrt(p), 1.5 * np.sqrt(p) * label, np.sqrt(2)
    few, two = 1.5 * np.sqrt(p + 1), 1.5 * np.sqrt(2) * label
    wide, clip = {"radius": 1.5}, {"clip": 1.5, "steps": 4}
    for module, made, found, counts in (
        (ada_ssp, {**wide, "label": 3.0}, [R**2, root * R**2, 6 * R], [1] * 3),
        (moments, wide, [root * few**2], [1]),
        (dp_gd, clip, [2 * C], [4]),
        (dp_minibatch, clip, [2 * C], [4]),
        (dp_selection, {**clip, "features": 2}, [2.0, 2 * two], [1, 4]),
        (dp_gram, {**wide, **clip}, [root * R**2, 2 * C], [1, 4]),
        (dp_adaptive, {**wide, **clip}, [root * R**2, root, 2.0], [1, 4, 4]),
        (dp_newton, {**wide, "steps": 4}, [2 * R, R**2, 1.0], [4] * 3),
        (hessian_mixing, {**wide, **clip}, [R**2, R, 2 * C], [1, 4, 4]),
    ):
        events = module.ledger(at, 0.7, module.Options(**made)).events
        assert [event.sensitivity for event in events] == pytest.approx(found)
        assert [event.count for event in events] == counts


def able(module, penalty="l2"):
    """A small problem that the module does not refuse."""
    for loss in ("logistic", "least_squares"):
        problem = make_problem(loss, penalty)
        if not module.refuses(module.Options(), Scaled(problem)):
            return problem
    raise AssertionError(module)


def started(module, at, noise, made=None, seed=0):
    made = made or options(module)
    return module.Run(
        at, module.ledger(at, noise, made), [streams(seed)], made
    )


# --- ledgers, from the papers' constants ----------------------------------------------


def test_the_sketches_of_hessian_mixing_and_their_doubt():
    """A release at the mean is R^2 above what is shared, and its noise at its worst."""
    at, made = (
        Scaled(make_problem("least_squares", "l2")),
        hessian_mixing.Options(),
    )
    eigenvalue, mixed, _ = hessian_mixing.ledger(at, 20.0, made).events
    assert mixed.doubt == pytest.approx(0.1 * at.delta) and mixed.count == 3
    level, R = np.full((1, 1), 50.0 * eigenvalue.scale), np.sqrt(at.p)
    below = hessian_mixing.known(at, R, level, eigenvalue)[0]
    far = (level[0, 0] - R**2 - below) / eigenvalue.scale
    assert norm.sf(far) == pytest.approx(0.1 * at.delta)


@pytest.mark.parametrize("z", [0.3, 7.0])
@pytest.mark.parametrize("module", [dp_gram, dp_adaptive, dp_newton])
def test_gaussian_releases_spend_the_squared_budget_of_one(module, z):
    """They compose exactly: shares that do not add up to 1 would be another epsilon."""
    at = Scaled(able(module))
    events = module.ledger(at, z, options(module)).events
    spent = sum(
        one.count * (one.sensitivity / one.scale) ** 2 for one in events
    )
    assert spent == pytest.approx(1 / z**2)


def exactly(secret, sensitivity):
    """What a secret hides, (k, L)."""
    event = Gaussian(sensitivity, 0.0, 1, "", "")
    return secret.released(
        iter([event]), lambda scale, size: np.zeros((size, 1))
    )


def alone(x, y=1.0, loss="logistic", n=6):
    """A record among zeros, whose scales are 1."""
    X, labels = np.zeros((n, len(x))), np.ones(n)
    X[0], labels[0] = x, y
    return Scaled(
        declared(build("x", X, labels, loss, Penalty(l2=0.01), 1.0, 1e-5))
    )


def test_changes_that_sensitivities_state_are_attained():
    """By pairs of records, as each proof says; more than stated is an error."""
    R, far = 2.0, np.array([[1e4], [0.0]])
    up, down, none = [-0.01, 5.0], [-0.01, -5.0], [0.0, 0.0]
    slope, damping = np.array([[0.0], [3.0]]), np.array([0.7])
    zero = np.zeros((2, 1))
    Delta = alone(up).newton_change(slope, damping, R)
    h, strong = R**2 / 4, 0.71
    assert Delta == pytest.approx(3 * h / (6 * strong**2 + strong * h))

    def gradients(at):
        return at.clipped_gradient_sum(far, R)

    def traces(at):
        return at.curvature_sum(zero, R)

    def directions(at):
        return at.newton_direction(zero, slope, damping, R)

    def units(at):
        return at.unit_gradient_sum(zero, np.array([0.3]))

    def sizes(at):
        return at.gradient_sizes(zero, np.array([0.5, 1.0]))

    along = [0.0, 5.0]
    for asks, one, other, stated in (
        (gradients, alone(up), alone(down), 2 * R),
        (traces, alone(along), alone(none), h),
        (directions, alone(along), alone(none), 1.0),
        (units, *(alone(up, y, "least_squares") for y in (9.0, -9.0)), 2.0),
        (sizes, alone(along), alone(none), np.sqrt(2)),
    ):
        moved = np.linalg.norm(
            exactly(asks(one), stated) - exactly(asks(other), stated)
        )
        assert moved == pytest.approx(stated, rel=1e-3), asks
        with pytest.raises(UndeclaredError):
            exactly(asks(one), 0.99 * stated)


def test_no_pair_of_records_moves_a_newton_direction_by_more_than_is_stated():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((5, 3))
    largest = 0.0
    for _ in range(300):
        slope = rng.standard_normal((3, 1))
        u = rng.standard_normal((3, 1)) * rng.choice([0.0, 1.0])
        damping = 10 ** rng.uniform(-2, 1, 1)
        views = []
        for first in rng.standard_normal((2, 3)) * 10 ** rng.uniform(
            -1, 2, (2, 1)
        ):
            rows = np.vstack((first, 0.1 * X[1:]))
            problem = build("x", rows, np.ones(5), "logistic", Penalty(l2=0.1))
            secret = Scaled(declared(problem)).newton_direction(
                u, slope, damping, 1.5
            )
            views.append(exactly(secret, 1.0))
        largest = max(largest, float(np.linalg.norm(views[0] - views[1])))
    assert 0.3 < largest <= 1 + 1e-9


def test_a_clip_is_the_first_edge_with_enough_records_below():
    edges = np.array([1.0, 2.0, 4.0])
    histograms = np.array([[5.0, 1.0, 0.0], [4.0, 2.0, 0.0], [1.0, 3.0, 0.0],
                           [0.0, 4.0, 10.0]])  # fmt: skip
    assert dp_adaptive.clips(histograms, edges, 5.0).tolist() == [
        1.0,
        4.0,
        4.0,
    ]


@pytest.mark.parametrize("curvature", [1e-2, 1e3])
@pytest.mark.parametrize("minima", ["exact", "approximate"])
def test_the_tilt_states_what_the_proof_asks_for(curvature, minima):
    at = Scaled(make_problem("logistic", "l2"))
    made = objective_perturbation.Options(curvature=curvature, minima=minima)
    R, Lambda, added = objective_perturbation.constants(at, made)
    own = at.n * 0.1 / at.S**2
    assert pytest.approx(np.sqrt(at.p)) == R and added >= 0
    assert pytest.approx(Lambda) == max(R**2 / curvature, own.min())
    assert added + own.min() >= Lambda * (1 - 1e-12)
    tilt, *digits = objective_perturbation.ledger(at, 0.7, made).events
    assert tilt.sensitivity == pytest.approx(2 * R)
    assert tilt.scale == pytest.approx(1.4 * R)
    assert tilt.curvature == pytest.approx(R**2 / Lambda)
    wanted = [(2e-9, 2e-9 / 1e-4)] if minima == "approximate" else []
    found = [(one.sensitivity, one.scale) for one in digits]
    assert found == [pytest.approx(pair) for pair in wanted]


# --- what a run knows -----------------------------------------------------------------


def told(module, at, released=None):
    """What a run asks for, what it is sent, and where it ends.

    ``released``: the releases of another run, sent in place of its own; or none.
    """
    run, asked, sent = started(module, at, 0.7), [], []
    steps, events = run.steps(), in_rounds(run.ledger)
    wanted = next(steps)
    while True:
        asked.append(
            {name: np.array(need) for name, need in wanted.needs.items()}
        )
        own = wanted.released(events, run.normal)
        sent.append(own if released is None else released[len(sent)])
        try:
            wanted = steps.send(sent[-1])
        except StopIteration:
            return asked, sent, run.weights


def test_all_that_a_run_computes_follows_from_its_releases(module):
    """Other records, the same releases: the same questions and the same weights."""
    problem, rng = able(module), np.random.default_rng(5)
    A = np.asfortranarray(3 * rng.permuted(problem.A, axis=0) + 1)
    other = replace(problem, A=A, offset=2 * rng.permuted(problem.offset))
    one, two = (Scaled(declared(each)) for each in (problem, other))
    made = options(module)
    assert module.ledger(one, 0.7, made) == module.ledger(two, 0.7, made)
    asked, sent, weights = told(module, one)
    # and their sensitivities
    events = in_rounds(module.ledger(one, 0.7, made))
    for need, event in zip(asked, events, strict=True):
        assert need["sensitivity"] == pytest.approx(event.sensitivity)
    again, _, repeated = told(module, two, sent)
    for first, second in zip(asked, again, strict=True):
        assert first.keys() == second.keys()
        for name, need in first.items():
            np.testing.assert_array_equal(need, second[name])
    np.testing.assert_array_equal(weights, repeated)
    own = told(module, two)[1]  # the records do differ
    assert not all(
        np.array_equal(*both) for both in zip(own, sent, strict=True)
    )


# --- runs -----------------------------------------------------------------------------


SHARP = {  # bounds so wide that nothing is clipped
    objective_perturbation: ("logistic", {"radius": 10.0, "curvature": 1e4}),
    moments: ("least_squares", {"radius": 10.0}),
    ada_ssp: ("least_squares", {"radius": 10.0, "label": 10.0}),
    dp_gd: ("least_squares", {"clip": 100.0, "steps": 600}),
    dp_gram: ("logistic", {"clip": 100.0, "radius": 10.0, "steps": 60}),
    dp_adaptive: ("least_squares", {"clip": 800.0, "radius": 10.0, "steps": 20}),
    dp_newton: ("logistic", {"radius": 10.0, "steps": 30}),
    hessian_mixing: ("least_squares", {"clip": 50.0, "radius": 50.0, "rows": 400.0,
                                       "steps": 12}),
}  # fmt: skip


@pytest.mark.parametrize("module", SHARP)
def test_little_noise_finds_what_the_method_is_for(module):
    """At epsilon large the error goes to that of clips, ridges and few steps alone."""
    loss, made = SHARP[module]
    X, y = raw_data(loss, n=4000)
    smooth = module in (objective_perturbation, hessian_mixing)
    penalty = PENALTIES["l2" if smooth or loss == "logistic" else "elastic"]
    problem = build("x", X, y, loss, penalty, 1.0, 1e-5)
    w = started(module, Scaled(problem), 1e-9, module.Options(**made)).solve()[
        0
    ]
    error = problem.objective(w)[0] / solve(problem).value - 1
    assert 0 <= error + 1e-12 < 1e-4


# --- tilted minima --------------------------------------------------------------------


@pytest.mark.parametrize("tolerance", [1e-9, 1e-3])
def test_a_tilted_minimum_with_an_l1_norm(tolerance):
    """The subgradient is within the tolerance, and zeros are exact."""
    problem = make_problem("logistic", "l1")
    at, made = (
        Scaled(problem),
        objective_perturbation.Options(tolerance=tolerance),
    )
    u = started(objective_perturbation, at, 0.05, made).solve()[0] * at.S
    R, Lambda, ridge = objective_perturbation.constants(at, made)
    b = 2 * R * 0.05 * streams(0).noise.standard_normal(at.p)
    V = Records(problem, at.S, at.label).clipped(R)
    slope = -V.T @ expit(-V @ u) + ridge * u + b
    weight, rest = at.n * at.l1[:, 0], u == 0
    assert rest.any() and not rest.all()
    inside = np.maximum(np.abs(slope) - weight, 0)
    left = np.where(rest, inside, slope + weight * np.sign(u))
    assert np.linalg.norm(left) <= tolerance * Lambda


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_no_data_are_refused_for_a_minimum_that_rounding_keeps_away(penalty):
    """A tolerance below rounding: the minimiser all the same, after a public time."""
    problem = make_problem("logistic", penalty)
    at = Scaled(problem)
    given = (
        at,
        Records(problem, at.S, at.label),
        1.0,
        1.0,
        np.ones((at.p, 1)),
    )
    found = [minimise(*given, tolerance) for tolerance in (1e-10, 1e-30)]
    np.testing.assert_allclose(*found, atol=1e-9)


# --- scales ---------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["logistic", "least_squares"])
def test_declared_scales_do_not_read_the_data(loss):
    for seed in (0, 1):
        problem = declared(make_problem(loss, seed=seed))
        assert is_declared(problem) and not is_declared(problem.known)
        np.testing.assert_array_equal(
            column_scales(problem), np.ones(problem.p)
        )
        c = problem.loss.curvature
        np.testing.assert_array_equal(
            problem.smoothness, np.full(problem.p, c)
        )
        assert problem.global_smoothness == pytest.approx(c * problem.p)
        assert label_scale(problem) == 1.0 and Scaled(problem).given == ("n",)
    assert len(Scaled(make_problem(loss)).given) > 1


# --- refusals -------------------------------------------------------------------------


def test_wide_problems_are_refused_where_matrices_are_released():
    rng = np.random.default_rng(0)
    X, y = (
        rng.standard_normal((20, 600)),
        np.where(np.arange(20) % 2, 1.0, -1.0),
    )
    at = Scaled(build("wide", X, y, "least_squares", PENALTIES["l2"]))
    for module in (moments, ada_ssp, dp_gram, dp_adaptive, hessian_mixing):
        assert "600 x 600" in module.refuses(module.Options(), at)


@pytest.mark.parametrize(
    "labels", [(1.0, 2.0), (1.0, 1.0), (2.0, 1.0), (0.0, 5.0)]
)
def test_two_records_have_rank_statistics_whatever_they_are(labels):
    """SciPy divides by the number of records less two."""
    A = np.asfortranarray([[1.0, 0.0], [2.0, 0.0]])
    problem = build(
        "two", A, np.array(labels), "least_squares", Penalty(), 1.0, 1e-5
    )
    found = relevance(Records(problem), True)
    assert found.tolist() == [float(labels[0] != labels[1]), 0.0]
