"""What every method of the family promises, and that each promise can be broken."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize
from scipy.special import expit

from conftest import PENALTIES, make_problem, raw_data
from dperm.audit.checks import Audit
from dperm.audit.solvers import NEEDS, Needs, Shape, fit, linear_terms
from dperm.core import solvers
from dperm.core.erm.optimum import solve
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import build
from dperm.core.privacy.accounting import true_epsilon
from dperm.core.privacy.calibration import calibrate
from dperm.core.privacy.ledger import Gaussian, SampledGaussian
from dperm.core.privacy.mechanisms import heard, streams
from dperm.solvers.fits import (
    Solver,
    ada_ssp,
    dp_gd,
    dp_gram,
    dp_minibatch,
    moments,
    objective_perturbation,
)
from dperm.solvers.fits.minimise import minimise
from dperm.solvers.fits.moments import floored, minimised
from dperm.solvers.fits.scaled import Scaled
from dperm.solvers.fits.secret import in_rounds, symmetric_noise
from dperm.solvers.records import ContributionError, Records, relevance
from dperm.solvers.scales import column_scales, declared, is_declared, label_scale

MODULES = {
    module.__name__.rpartition(".")[2]: module
    for module in (
        ada_ssp, dp_gd, dp_gram, dp_minibatch, moments, objective_perturbation,
    )
}  # fmt: skip


@pytest.fixture(params=MODULES)
def module(request):
    return MODULES[request.param]


def options(module, **changes):
    few = {"steps": 2} if hasattr(module.Options(), "steps") else {}
    return module.Options(**few, **changes)


def able(module, penalty="l2"):
    """A small problem that the module does not refuse."""
    for loss in ("logistic", "least_squares"):
        at = scaled(make_problem(loss, penalty))
        if not module.refuses(module.Options(), at):
            return at
    raise AssertionError(module)


def made_run(kind, module, at, noise, seeds=(0,), made=None):
    made = made or options(module)
    ledger = module.ledger(at, noise, made)
    return kind(at, ledger, [streams(s) for s in seeds], made)


def runs(module, at, noise, seeds=(0,), made=None):
    run = made_run(module.Run, module, at, noise, seeds, made)
    return list(run.releases()), run.weights


def scaled(problem):
    """What a method sees of a problem, and for the tests the problem itself."""
    at = Scaled(problem)
    at.problem = problem
    return at


def behind(at):
    """The records of a problem."""
    return Records(at.problem, at.S, at.label)


def tilt_of(at, u):
    """The linear terms of which u are the minimisers, as an audit finds them."""
    options = objective_perturbation.Options()
    return linear_terms(objective_perturbation, options, at.problem, u)


def test_every_module_of_the_folder_is_here_and_a_solver():
    found = {n for n, path in solvers.PLACES.items() if ".fits." in path}
    others = {"dp_selection", "hessian_mixing"}  # test_mixing
    assert found == {*MODULES, *others}
    for name in found:
        assert isinstance(solvers.load(name), Solver)
        assert solvers.family(solvers.load(name)) == "fits"


# --- noise and its price --------------------------------------------------------------


def test_every_release_has_the_noise_that_the_ledger_states(module):
    """Release by release, all other noise taken away."""
    at, made = able(module), options(module)
    scales = [e.scale for e in module.ledger(at, 0.7, made).events
              for _ in range(e.count)]  # fmt: skip
    silent, heard_units = [], []

    def only(place):
        silent.clear()
        heard_units.clear()

        def listener(kind, unit, order):
            assert kind == "gaussian"
            silent.append(unit)
            kept = unit if len(silent) - 1 == place else 0 * unit
            heard_units.append(kept)
            return kept

        with heard(listener):
            return runs(module, at, 0.7, made=made)[0]

    quiet = only(-1)
    total = len(silent)
    for place in range(total):
        loud = only(place)
        view = min(place, len(loud) - 1)
        moved = loud[view] - quiet[view]
        assert (
            sum(np.any(a != b) for a, b in zip(loud[:view], quiet[:view], strict=True))
            == 0
        )
        if module is objective_perturbation:
            assert np.linalg.norm(moved) > 0
            continue
        size = np.linalg.norm(moved) / np.linalg.norm(heard_units[place])
        assert size == pytest.approx(scales[place], rel=1e-9)


def test_the_budget_composes_to_the_target(module):
    at = able(module)
    found = calibrate(lambda z: module.ledger(at, z, options(module)), 1.0, 1e-5,
                      "strict")  # fmt: skip
    assert true_epsilon(found.ledger, 1e-5) == pytest.approx(1.0, rel=2e-4)
    gaussian = all(isinstance(event, Gaussian) for event in found.ledger.events)
    if gaussian:  # as one release of the same noise multiplier
        square = sum(e.count / e.noise_multiplier**2 for e in found.ledger.events)
        assert square == pytest.approx(found.noise_multiplier**-2, rel=1e-9)


def test_without_noise_it_costs_infinity(module):
    at = able(module)
    assert true_epsilon(module.ledger(at, 0.0, options(module)), 1e-5) == np.inf


# --- the audit ------------------------------------------------------------------------


def loosely(module):
    """A run on records that are clipped to ten times what is stated."""

    class Loud(module.Run):
        def __init__(self, at, *args):
            super().__init__(at, *args)
            at._behind().norms = at._behind().norms / 10

    return Loud


class Half:
    """Half of the noise that the ledger states."""

    def normal(self, scale, size, **law):
        return super().normal(scale / 2, size, **law)


SHAPES = dict.fromkeys(("moments", "ada_ssp"), "least_squares")


@pytest.mark.parametrize("fault", ["loosely", "half"])
def test_what_is_broken_is_caught(module, fault):
    name = module.__name__.rpartition(".")[2]
    kind = loosely(module) if fault == "loosely" else type("H", (Half, module.Run), {})
    shape = Shape(p=2, loss=SHAPES.get(name, "logistic"))
    made = replace(options(module), **NEEDS.get(name, Needs()).options)
    audit = Audit(fit(name, module, made, shape, kind=kind), neighbours=6)
    if fault == "loosely":  # the bound on a contribution is checked by another way
        with pytest.raises(ContributionError):
            audit.sensitivity()
        return
    assert audit.sensitivity().caught or audit.noise().caught


# --- what a run knows -----------------------------------------------------------------


def told(module, at, made, released):
    """What a run asks for, what it is sent, and where it ends.

    ``released``: the releases of another run, sent in place of its own; or none.
    """
    run, asked, sent = made_run(module.Run, module, at, 0.7, made=made), [], []
    steps, events = run.steps(), in_rounds(run.ledger)
    wanted = next(steps)
    while True:
        asked.append({name: np.array(need) for name, need in wanted.needs.items()})
        own = wanted.released(events, run.normal)
        sent.append(own if released is None else released[len(sent)])
        try:
            wanted = steps.send(sent[-1])
        except StopIteration:
            return asked, sent, run.weights


def test_all_that_a_run_computes_follows_from_its_releases(module):
    """Other records, the same releases: the same questions and the same weights."""
    at = able(module)
    rng, A = np.random.default_rng(5), at.problem.A
    other = replace(at.problem, A=np.asfortranarray(3 * rng.permuted(A, axis=0) + 1),
                    offset=2 * rng.permuted(at.problem.offset))  # fmt: skip
    one, two = (scaled(declared(problem)) for problem in (at.problem, other))
    np.testing.assert_array_equal(one.S, two.S)
    assert (one.label, one.given) == (two.label, two.given)
    made = options(module)
    ledgers = [module.ledger(each, 0.7, made) for each in (one, two)]
    assert ledgers[0] == ledgers[1]
    asked, sent, weights = told(module, one, made, None)
    again, _, repeated = told(module, two, made, sent)
    for first, second in zip(asked, again, strict=True):
        assert first.keys() == second.keys()
        for name, need in first.items():
            np.testing.assert_array_equal(need, second[name])
    np.testing.assert_array_equal(weights, repeated)
    _, own, _ = told(module, two, made, None)
    assert not np.array_equal(own[0], sent[0])  # the records do differ


def test_noise_is_each_runs_own_and_new_in_every_release():
    at = able(dp_gd)
    seeds = (3, 4)
    run = made_run(dp_gd.Run, dp_gd, at, 0.7, seeds)
    expected = [streams(seed).noise for seed in seeds]
    for size in (4, 4, 2):
        drawn = np.stack([one.standard_normal(size) for one in expected], axis=1)
        np.testing.assert_allclose(run.normal(2.0, size), 2 * drawn)
    other = [streams(seed).sampling.random() for seed in seeds]
    assert [one.sampling.random() for one in run.streams] == other


# --- batches --------------------------------------------------------------------------


def test_a_batch_holds_each_record_once_at_most():
    """At 0 record i has the gradient -e_i / 2: the sum shows who was drawn."""
    n = 20
    at = Scaled(
        declared(build("unit", np.eye(n), np.ones(n), "logistic", PENALTIES["none"]))
    )
    runs = [streams(seed) for seed in range(6)]

    def drawn(size):
        secret = at.batch_gradient_sum(np.zeros((n, 6)), 1.0, size, runs)
        assert secret.needs == {"sensitivity": 2.0, "sampling_rate": size / n}
        event = SampledGaussian(2.0, 0.0, 1, size, n, "", "")
        silent = lambda scale, count: np.zeros((count, 6))  # noqa: E731
        return -2 * secret.released(iter([event]), silent)

    np.testing.assert_array_equal(drawn(n), np.ones((n, 6)))
    some = drawn(5)
    assert set(some.ravel()) == {0.0, 1.0} and (some.sum(axis=0) == 5).all()
    assert len(np.unique(some, axis=1).T) == 6  # each run has its own
    assert not np.array_equal(some, drawn(5))
    seen = np.mean([drawn(5) for _ in range(100)], axis=(0, 2))
    np.testing.assert_allclose(seen, 0.25, atol=0.09)


def test_the_ledger_of_batches_has_their_size_and_the_records():
    at = able(dp_minibatch)
    made = dp_minibatch.Options(share=0.25, steps=3)
    (event,) = dp_minibatch.ledger(at, 0.7, made).events
    assert (event.batch, event.population) == (round(0.25 * at.n), at.n)
    asked, _, _ = told(dp_minibatch, at, made, None)
    assert [one["sampling_rate"] for one in asked] == 3 * [event.batch / at.n]


# --- constants, once more -------------------------------------------------------------


def statements(module, at, made):
    """Sensitivities that the ledger states, in its order, and how often each counts."""
    events = module.ledger(at, 0.7, made).events
    return [event.sensitivity for event in events], [event.count for event in events]


def test_ledgers_state_the_sensitivities_of_the_papers():
    squares = able(moments)
    p, label = squares.p, squares.label
    R, C, root = 1.5 * np.sqrt(p), 1.5 * np.sqrt(p) * label, np.sqrt(2)
    wide, clip = {"radius": 1.5}, {"clip": 1.5, "steps": 4}
    few = 1.5 * np.sqrt(p + 1)
    for module, at, made, found, counts in (
        (ada_ssp, squares, {**wide, "label": 3.0}, [R**2, root * R**2, 6 * R], [1] * 3),
        (moments, squares, wide, [root * few**2], [1]),
        (dp_gd, squares, clip, [2 * C], [4]),
        (dp_minibatch, squares, clip, [2 * C], [4]),
        (dp_gram, squares, {**wide, **clip}, [root * R**2, 2 * C], [1, 4]),
    ):  # fmt: skip
        assert statements(module, at, module.Options(**made)) == (
            pytest.approx(found), counts,
        )  # fmt: skip


@pytest.mark.parametrize("curvature", [1e-2, 1e3])
@pytest.mark.parametrize("minima", ["exact", "approximate"])
def test_the_tilt_states_what_the_proof_asks_for(curvature, minima):
    at = scaled(make_problem("logistic", "l2"))
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
    assert [one.sensitivity for one in digits] == (
        [2e-9] if minima == "approximate" else []
    )
    (needs,), _, _ = told(objective_perturbation, at, made, None)
    assert needs == {"sensitivity": 2 * R, "curvature": pytest.approx(R**2 / Lambda)}


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_tilted_minima_are_as_near_as_is_said(penalty):
    """A subgradient of tau at most, where tau is coarse enough to be missed."""
    at = scaled(make_problem("logistic", penalty))
    asked = []

    class Spy:
        n, p = at.n, at.p

        def tilted_minimum(self, R, ridge, tolerance, curvature, off):
            asked.append((R, ridge, tolerance, off))
            return at.tilted_minimum(R, ridge, tolerance, curvature, off)

        def __getattr__(self, name):
            return getattr(at, name)

    for minima in objective_perturbation.MINIMA:
        made = objective_perturbation.Options(minima=minima, tolerance=1e-3)
        R, Lambda, ridge = objective_perturbation.constants(at, made)
        list(made_run(objective_perturbation.Run, objective_perturbation, Spy(), 0.7,
                      made=made).releases())  # fmt: skip
        off = 1e-3 if minima == "approximate" else 0.0
        assert asked.pop() == pytest.approx((R, ridge, 1e-3 * Lambda, off))


def test_twin_of_ada_ssp():
    """With labels beyond their bound, and records beyond theirs."""
    at = scaled(make_problem("least_squares", "l2"))
    made = ada_ssp.Options(radius=0.8, label=0.5)
    _, w = runs(ada_ssp, at, 0.02, made=made)
    R, Y, p = 0.8 * np.sqrt(at.p), 0.5, at.p
    V = np.array([v * min(1, R / np.linalg.norm(v)) for v in at.problem.A / at.S])
    y = -at.problem.offset / at.label
    assert (np.abs(y) > Y).any() and (
        np.linalg.norm(at.problem.A / at.S, axis=1) > R
    ).any()
    z, rng = np.sqrt(3) * 0.02, streams(0).noise
    smallest = np.linalg.eigvalsh(V.T @ V)[0] + z * R**2 * rng.standard_normal()
    sigma, noise = np.sqrt(2) * R**2 * z, np.zeros((p, p))
    drawn = iter(sigma * rng.standard_normal(p * (p + 1) // 2))
    for i in range(p):
        for j in range(i, p):
            noise[i, j] = noise[j, i] = next(drawn) * (1 if i == j else np.sqrt(0.5))
    q = V.T @ np.clip(y, -Y, Y) + 2 * R * Y * z * rng.standard_normal(p)
    ridge = sigma * np.sqrt(p * np.log(2 * p**2 / 0.05)) - max(
        smallest - 1.645 * z * R**2, 0
    )
    Q = V.T @ V + noise + max(ridge, 0) * np.eye(p)
    u = np.linalg.solve(Q + at.n * np.diag(0.1 / at.S**2), at.label * q)
    np.testing.assert_allclose(w[0], u / at.S, rtol=1e-8)


def test_the_curvature_of_dp_gram_is_that_of_clipped_records():
    at, made = scaled(make_problem("least_squares", "l2")), dp_gram.Options(radius=0.7)
    R = 0.7 * np.sqrt(at.p)
    V = np.array([v * min(1, R / np.linalg.norm(v)) for v in at.problem.A / at.S])
    asked, (Q, *_), _ = told(dp_gram, at, made, None)
    quiet = made_run(dp_gram.Run, dp_gram, at, 1e-9, made=made)
    whole = next(quiet.releases())[:, 0]
    rows, columns = np.triu_indices(at.p)
    weights = np.where(rows == columns, 1.0, np.sqrt(2.0))
    np.testing.assert_allclose(whole, weights * (V.T @ V)[rows, columns], rtol=1e-6)
    assert asked[0]["sensitivity"] == pytest.approx(np.sqrt(2) * R**2) and Q.shape == (
        1,
        at.p,
        at.p,
    )


# --- runs -----------------------------------------------------------------------------


def test_runs_side_by_side_do_not_touch(module):
    at = able(module)
    _, together = runs(module, at, 0.7, seeds=(3, 4, 5))
    for k, seed in enumerate((3, 4, 5)):
        _, alone = runs(module, scaled(at.problem), 0.7, seeds=(seed,))
        np.testing.assert_allclose(together[k], alone[0], rtol=1e-7, atol=1e-9)
    assert len(np.unique(together[:, 0])) == 3


def test_sparse_records_are_the_same_records(module):
    from scipy import sparse

    at = able(module)
    kept = replace(at.problem, A=sparse.csc_array(at.problem.A))
    dense, filled = (runs(module, one, 0.7)[1] for one in (at, scaled(kept)))
    np.testing.assert_allclose(dense, filled, rtol=1e-6, atol=1e-9)


def test_scales_of_the_features_do_not_matter(module):
    """Public scales make the method invariant; the ridge has to be scaled along."""
    at = able(module, "none")
    stretch = np.array([1.0, 10.0, 0.1, 3.0, 100.0])
    other = scaled(replace(at.problem, A=np.asfortranarray(at.problem.A * stretch)))
    one, two = runs(module, at, 0.7)[1], runs(module, other, 0.7)[1]
    np.testing.assert_allclose(one, two * stretch, rtol=1e-6)


def test_little_noise_finds_what_the_method_is_for():
    """At epsilon large the error goes to that of clips, ridges and few steps alone."""
    X, y = raw_data("logistic", n=4000)
    logistic = build("l", X, y, "logistic", PENALTIES["l2"], 1.0, 1e-5)
    X, y = raw_data("least_squares", n=4000)
    squares = build("s", X, y, "least_squares", PENALTIES["elastic"], 1.0, 1e-5)
    wide = {"radius": 10.0}
    for module, problem, made in (
        (objective_perturbation, logistic, {**wide, "curvature": 1e4}),
        (moments, squares, wide),
        (ada_ssp, squares, {**wide, "label": 10.0}),
        (dp_gd, squares, {"clip": 100.0, "steps": 600}),
        (dp_gram, squares, {"clip": 100.0, "radius": 10.0, "steps": 10}),
        (dp_gram, logistic, {"clip": 100.0, "radius": 10.0, "steps": 60}),
    ):
        best = solve(problem).value
        _, w = runs(module, Scaled(problem), 1e-9, made=module.Options(**made))
        error = problem.objective(w)[0] / best - 1
        assert 0 <= error + 1e-12 < 1e-4, (module.__name__, error)


# --- twins: the same methods, written once more as plainly as possible ----------------


def test_twin_of_objective_perturbation():
    at = scaled(make_problem("logistic", "l2"))
    (u,), w = runs(
        objective_perturbation, at, 0.7, made=objective_perturbation.Options()
    )
    R = np.sqrt(at.p)
    b = 2 * R * 0.7 * streams(0).noise.standard_normal(at.p)
    V = np.array([v * min(1, R / np.linalg.norm(v)) for v in at.problem.A / at.S])
    own = at.n * 0.1 / at.S**2
    added = max(R**2 / 0.45 - own.min(), 0)

    def value(u):
        ridge = 0.5 * (own * u * u).sum() + added / 2 * u @ u
        return np.logaddexp(0, -V @ u).sum() + ridge + b @ u

    found = optimize.minimize(value, np.zeros(at.p), tol=1e-13)
    np.testing.assert_allclose(u[:, 0], found.x, atol=1e-5)
    np.testing.assert_allclose(w[0], u[:, 0] / at.S)
    np.testing.assert_allclose(
        tilt_of(at, u)[:, 0], b, atol=1e-7,
    )  # fmt: skip


def test_twin_of_objective_perturbation_with_an_l1_norm():
    """The subgradient is within the tolerance, and zeros are exact."""
    at = scaled(make_problem("logistic", "l1"))
    made = objective_perturbation.Options()
    (u,), _ = runs(objective_perturbation, at, 0.05, made=made)
    R, Lambda, ridge = objective_perturbation.constants(at, made)
    b = 2 * R * 0.05 * streams(0).noise.standard_normal(at.p)
    V = behind(at).clipped(R)
    slope = -V.T @ expit(-V @ u[:, 0]) + ridge * u[:, 0] + b
    weight = at.n * at.l1[:, 0]
    rest = u[:, 0] == 0
    assert rest.any() and not rest.all()
    left = np.where(rest, np.maximum(np.abs(slope) - weight, 0),
                    slope + weight * np.sign(u[:, 0]))  # fmt: skip
    assert np.linalg.norm(left) <= 1e-9 * Lambda


def test_approximate_minima_hide_their_digits():
    at = scaled(make_problem("logistic", "l2"))
    made = objective_perturbation.Options(minima="approximate", tolerance=1e-6)
    tilt, digits = objective_perturbation.ledger(at, 0.7, made).events
    assert digits.scale == pytest.approx(2e-6 / 1e-4)
    assert digits.noise_multiplier == pytest.approx(1e4)
    exact = objective_perturbation.ledger(at, 0.7, objective_perturbation.Options())
    assert tilt == exact.events[0]
    (one,), _ = runs(objective_perturbation, at, 0.7, made=made)
    (two,), _ = runs(objective_perturbation, at, 0.7)
    assert 1e-3 < np.linalg.norm(one - two) / digits.scale < 10


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_no_data_are_refused_for_a_minimum_that_rounding_keeps_away(penalty):
    """A tolerance below rounding: the minimiser all the same, after a public time."""
    at = scaled(make_problem("logistic", penalty))
    found = [minimise(at, behind(at), 1.0, 1.0, np.ones((at.p, 1)), tolerance)
             for tolerance in (1e-10, 1e-30)]  # fmt: skip
    np.testing.assert_allclose(*found, atol=1e-9)


def test_twin_of_dp_gd():
    at = scaled(make_problem("least_squares"))
    made = dp_gd.Options(steps=3, step=2.0, momentum=0.5)
    _, w = runs(dp_gd, at, 0.3, made=made)
    z, y = at.problem.A / at.S, -at.problem.offset
    C = np.sqrt(at.p) * np.sqrt(np.mean(y**2))
    rng, u, v = streams(0).noise, np.zeros(at.p), np.zeros(at.p)
    eta = 2.0 / at.p
    for _ in range(3):
        g = np.zeros(at.p)
        for i in range(at.n):
            own = (z[i] @ u - y[i]) * z[i]
            g += own * min(1, C / np.linalg.norm(own))
        g += 2 * C * np.sqrt(3) * 0.3 * rng.standard_normal(at.p)
        v = 0.5 * v + g / at.n
        u = u - eta * v
        u = np.sign(u) * np.maximum(np.abs(u) - 2 * eta * 0.05 / at.S, 0)
        u /= 1 + 2 * eta * 0.1 / at.S**2
    np.testing.assert_allclose(w[0], u / at.S, rtol=1e-9)


def test_twin_of_moments():
    at = scaled(make_problem("least_squares", "l2"))
    _, w = runs(moments, at, 0.05, made=moments.Options())
    t = np.column_stack((at.problem.A / at.S, -at.problem.offset / at.label))
    C = np.sqrt(at.p + 1)
    t = np.array([row * min(1, C / np.linalg.norm(row)) for row in t])
    p, sigma = at.p, np.sqrt(2) * C**2 * 0.05
    noise = np.zeros((p + 1, p + 1))
    drawn = iter(sigma * streams(0).noise.standard_normal((p + 1) * (p + 2) // 2))
    for i in range(p + 1):
        for j in range(i, p + 1):
            noise[i, j] = noise[j, i] = next(drawn) * (1 if i == j else np.sqrt(0.5))
    Q = t.T @ t + noise
    values, vectors = np.linalg.eigh(Q[:p, :p])
    top = vectors @ np.diag(np.maximum(values, sigma * np.sqrt(2 * p))) @ vectors.T
    u = np.linalg.solve(top + at.n * np.diag(0.1 / at.S**2), at.label * Q[:p, p])
    np.testing.assert_allclose(w[0], u / at.S, rtol=1e-8)


def test_quadratics_are_minimised_with_any_penalty():
    at = scaled(make_problem("least_squares", "elastic"))
    rng = np.random.default_rng(2)
    half = rng.standard_normal((at.p, at.p))
    Q, q = (half @ half.T + np.eye(at.p))[None], 6 * rng.standard_normal((at.p, 1))
    u = minimised(at, Q, q, 10.0, np.zeros((at.p, 1)))[:, 0]

    def value(u):
        penalty = at.l1[:, 0] @ np.abs(u) + at.l2[:, 0] @ u**2 / 2
        return u @ Q[0] @ u / 2 - q[:, 0] @ u + 10 * penalty

    best = value(u)
    for _ in range(300):
        assert best <= value(u + 0.01 * rng.standard_normal(at.p)) + 1e-9


def test_noise_of_matrices_is_isotropic_in_the_frobenius_norm():
    drawn = np.random.default_rng(0).standard_normal((6, 4000))
    N = symmetric_noise(drawn, 3)
    np.testing.assert_array_equal(N, N.transpose(0, 2, 1))
    np.testing.assert_allclose((N**2).sum(axis=(1, 2)), (drawn**2).sum(axis=0))
    assert N[:, 0, 1].std() == pytest.approx(np.sqrt(0.5), rel=0.05)
    low = floored(N, 0.3)
    assert np.linalg.eigvalsh(low).min() == pytest.approx(0.3)


# --- scales ---------------------------------------------------------------------------


def test_scales_are_root_mean_squares_and_public():
    problem = make_problem("least_squares")
    S = np.sqrt((problem.A**2).mean(axis=0))
    np.testing.assert_allclose(column_scales(problem), S)
    assert label_scale(problem) == pytest.approx(np.sqrt((problem.offset**2).mean()))
    logistic = scaled(make_problem("logistic"))
    assert logistic.label == 1.0
    # why sqrt(p) bounds a record without a look at the data
    assert (behind(logistic).norms ** 2).mean() == pytest.approx(logistic.p)


@pytest.mark.parametrize("loss", ["logistic", "least_squares"])
def test_declared_scales_do_not_read_the_data(loss):
    found = [declared(make_problem(loss, seed=seed)) for seed in (0, 1)]
    for problem in found:
        assert is_declared(problem) and not is_declared(problem.known)
        np.testing.assert_array_equal(column_scales(problem), np.ones(problem.p))
        assert label_scale(problem) == 1.0
        c = problem.loss.curvature
        np.testing.assert_array_equal(problem.smoothness, np.full(problem.p, c))
        assert problem.global_smoothness == pytest.approx(c * problem.p)
    assert Scaled(found[0]).given == ("n",)
    assert len(scaled(make_problem(loss)).given) > 1


# --- refusals -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "loss", "penalty", "said"),
    [
        (objective_perturbation, "least_squares", "l2", "slopes of one sign"),
        (moments, "logistic", "l2", "second moments"),
        (ada_ssp, "logistic", "l2", "second moments"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)).rpartition(".")[2],
)  # fmt: skip
def test_what_cannot_be_done_is_refused(module, loss, penalty, said):
    assert said in module.refuses(module.Options(), scaled(make_problem(loss, penalty)))


def test_wide_problems_are_refused_where_matrices_are_released():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 600)), np.where(np.arange(20) % 2, 1.0, -1.0)
    at = Scaled(build("wide", X, y, "least_squares", PENALTIES["l2"]))
    for module in (moments, ada_ssp, dp_gram):
        assert "600 x 600" in module.refuses(module.Options(), at)


@pytest.mark.parametrize(
    ("module", "key", "value"),
    [
        (dp_gd, "steps", 0), (dp_gd, "momentum", 1.0), (dp_gd, "clip", 0.0),
        (dp_gram, "share", 1.0), (moments, "floor", -1.0),
        (ada_ssp, "label", 0.0),
        (objective_perturbation, "minima", "rough"),
        (objective_perturbation, "curvature", 0.0),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)).rpartition(".")[2],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(module, key, value):
    with pytest.raises(ValueError, match=rf"options\.{key}"):
        module.Options(**{key: value})


@pytest.mark.parametrize("labels", [(1.0, 2.0), (1.0, 1.0), (2.0, 1.0), (0.0, 5.0)])
def test_two_records_have_rank_statistics_whatever_they_are(labels):
    """SciPy divides by the number of records less two."""
    A = np.asfortranarray([[1.0, 0.0], [2.0, 0.0]])
    problem = build("two", A, np.array(labels), "least_squares", Penalty(), 1.0, 1e-5)
    found = relevance(Records(problem), True)
    assert found.tolist() == [float(labels[0] != labels[1]), 0.0]
