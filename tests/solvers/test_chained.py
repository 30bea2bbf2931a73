"""Steps priced as a whole: last iterates, streams, and the places of the largest."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kendalltau

from conftest import make_problem
from dperm.accountants.chained import LastIterate, Stream, coefficients
from dperm.accountants.noisy_max import NoisyMax, SelectionNoiseError
from dperm.accountants.top_k import TopK
from dperm.core.erm.optimum import solve
from dperm.core.privacy.accounting import true_epsilon
from dperm.core.privacy.ledger import CountError, Gaussian, Ledger
from dperm.core.privacy.mechanisms import gumbel, streams
from dperm.core.privacy.strict import gaussian_delta
from dperm.solvers.fits import dp_ftrl, dp_selection, last_iterate
from dperm.solvers.fits.scaled import Scaled
from dperm.solvers.fits.secret import Scores, UndeclaredError
from dperm.solvers.records import Records, relevance

SHAPE = {"n": 40, "p": 3}


def run(module, at, made, noise=0.0, ledger=None, seed=0):
    ledger = ledger or module.ledger(at, noise, made)
    return module.Run(at, ledger, [streams(seed)], made)


def last(steps, contraction, diameter=None):
    return LastIterate(1.0, 1.0, 1, "", "", steps, contraction, diameter)


# --- the last of noisy iterates -------------------------------------------------------


@pytest.mark.parametrize(("steps", "c"), [(1, 0.5), (7, 0.8), (30, 1.0), (200, 0.9)])
def test_a_last_iterate_costs_what_an_affine_one_attains(steps, c):
    """Maps y -> c y, moved by 1: two Gaussians of one variance."""
    mean = variance = 0.0
    for _ in range(steps):
        mean, variance = c * mean + 1.0, c**2 * variance + 1.0
    event = last(steps, c)
    assert event.growth == pytest.approx(mean / variance**0.5)
    price = true_epsilon(Ledger((replace(event, scale=9.0),)), 1e-6)
    one = Gaussian(event.growth, 9.0, 1, "", "")
    assert price == pytest.approx(true_epsilon(Ledger((one,)), 1e-6))
    assert event.growth <= steps**0.5 * (1 + 1e-12)  # what all iterates cost


@pytest.mark.parametrize("half", [2.0, 6.0])
def test_a_bounded_set_hides_what_came_long_ago(half):
    """Exact laws on a grid, of y -> clip(y) + 1 against clip(y), within the price."""
    y = np.linspace(-20 - half, 20 + half, 1601)
    width = y[1] - y[0]
    into = np.exp(-((y[:, None] - y[None]) ** 2) / 2 / 25) / 5 / np.sqrt(2 * np.pi)
    laws = []
    for moved in (0.0, 1.0):
        at = np.zeros_like(y)
        at[len(y) // 2] = 1.0
        for _ in range(60):
            ends = np.clip(y, -half, half) + moved
            places = np.clip(np.rint((ends - y[0]) / width).astype(int), 0, len(y) - 1)
            at = into @ np.bincount(places, at, len(y)) * width
        laws.append(at)
    event = last(60, 1.0, 2 * half)
    assert event.growth < 0.9 * 60**0.5
    known = {"whole": event.growth / 5, "without D": last(60, 1.0, 1e-9).growth / 5}
    excess = dict.fromkeys(known, 0.0)
    for epsilon in (0.0, 0.1, 0.3, 1.0):
        for one, two in (laws, laws[::-1]):
            delta = np.maximum(one - np.exp(epsilon) * two, 0.0).sum()
            for name, mu in known.items():
                over = delta - float(gaussian_delta(epsilon, mu))
                excess[name] = max(excess[name], over)
    assert excess["whole"] < 1e-3
    assert excess["without D"] > 0.02  # a price that forgets the diameter is refuted


def test_a_step_that_may_expand_is_refused():
    at = Scaled(make_problem("least_squares", "l2", **SHAPE))
    with pytest.raises(ValueError, match="step: expected 2 at most"):
        last_iterate.Options(step=2.1)
    with pytest.raises(UndeclaredError, match="eta"):
        at.last_iterate(1.0, 1.0, 2.1 / at.loss.curvature, 3, 0.0, np.inf)


def test_steps_do_not_expand_on_records_of_any_length():
    problem = make_problem("least_squares", "l2", **SHAPE)
    far = replace(problem, A=50.0 * problem.A, public=problem.known)
    at, moved = Scaled(far), np.zeros((6, 2))
    moved[:3, 1] = 7.0  # noise of the first step, of the second run alone
    eta = 2.0 / at.loss.curvature
    wanted = at.last_iterate(1.0, 1e9, eta, 2, 0.0, np.inf)
    event = replace(wanted.needs, scale=1.0)
    y = wanted.released(iter([event]), lambda scale, size: moved)
    apart = np.linalg.norm(y[:, 1] - y[:, 0])
    assert apart <= eta / at.n * np.linalg.norm(moved) * (1 + 1e-12)


@pytest.mark.parametrize("changed", [{"steps": 9}, {"ridge": 0.0}, {"ball": 9.0}])
def test_a_run_that_costs_more_than_its_ledger_is_refused(changed):
    at = Scaled(make_problem("least_squares", "l2", **SHAPE))
    made = last_iterate.Options(steps=8, ridge=0.1)
    made = replace(made, ball=0.01) if "ball" in changed else made
    ledger = last_iterate.ledger(at, 1.0, made)
    list(run(last_iterate, at, made, ledger=ledger).releases())
    with pytest.raises(UndeclaredError, match="growth"):
        list(run(last_iterate, at, replace(made, **changed), ledger=ledger).releases())


def test_the_ledger_of_a_last_iterate_has_the_constants_of_the_proof():
    at = Scaled(make_problem("least_squares", "l2", **SHAPE))
    made = last_iterate.Options(step=1.5, ridge=0.1, ball=2.0, radius=1.2)
    (event,) = last_iterate.ledger(at, 1.0, made).events
    eta = 1.5 / (1.2**2 * at.p)
    assert event.contraction == pytest.approx(
        1 / (1 + eta * (0.1 + 0.1 / at.S**2).min())
    )
    assert event.diameter == pytest.approx(4 * at.label * at.n / eta)
    assert event.sensitivity == pytest.approx(2 * at.label * at.p**0.5)
    noise = last_iterate.ledger(at, 0.5, made).events[0].scale / event.scale
    assert noise == pytest.approx(0.5) and event.noise_multiplier == pytest.approx(1.0)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_the_map_inside_contracts_and_stays_in_the_ball(penalty):
    at = Scaled(make_problem("least_squares", penalty, **SHAPE))
    rng = np.random.default_rng(0)
    one, two = 3 * rng.normal(size=(2, at.p, 500))
    for ball in (np.inf, 1.5):
        u, v = (at.inside(y, 0.7, 0.4, ball) for y in (one, two))
        moved, apart = (np.linalg.norm(a, axis=0) for a in (u - v, one - two))
        c = 1 / (1 + 0.7 * (0.4 + at.l2.min()))
        assert (moved <= c * apart * (1 + 1e-12)).all()
        assert np.linalg.norm(u, axis=0).max() <= ball * (1 + 1e-12)


@pytest.mark.parametrize("module", [last_iterate, dp_ftrl])
def test_without_noise_the_objective_is_minimised(module):
    problem = make_problem("least_squares", "l2", **SHAPE)
    at = Scaled(problem)
    made = module.Options(steps=400, clip=1e3)
    if module is last_iterate:
        made = replace(made, ridge=0.0, radius=1e2, step=2.0)
        made = replace(made, radius=float(Records(problem, at.S).norms.max()) / 3**0.5)
    w = run(module, at, made).solve()
    start, end = (problem.objective(v)[0] for v in (0 * w, w))
    best = solve(problem).value
    assert end - best < 0.05 * (start - best)


# --- streams --------------------------------------------------------------------------


@pytest.mark.parametrize("power", [0.0, 0.3, 0.5])
@pytest.mark.parametrize(("epochs", "batches"), [(1, 5), (3, 4), (4, 1)])
def test_a_stream_costs_the_worst_place_of_a_record(power, epochs, batches):
    steps = epochs * batches
    c = coefficients(-power, steps)
    matrix = np.array([np.r_[np.zeros(t), c[: steps - t]] for t in range(steps)]).T
    worst = max(
        np.linalg.norm(matrix[:, place::batches] @ signs)
        for place in range(batches)
        for signs in itertools.product((-1.0, 1.0), repeat=epochs)
    )
    event = Stream(1.0, 1.0, 1, "", "", steps, batches, power)
    assert event.growth == pytest.approx(worst)


def test_a_record_moves_the_releases_from_its_batch_on_and_within_the_price():
    made = dp_ftrl.Options(steps=2, share=0.25, step=1e-9)  # gradients at 0 alone
    problem = make_problem("least_squares", "l2", **SHAPE)
    other = problem.A.copy()
    other[25] *= -50.0
    there = replace(problem, A=other, public=problem.known)
    events = dp_ftrl.ledger(Scaled(problem), 0.0, made).events
    (one,), (two,) = (
        list(run(dp_ftrl, Scaled(each), made).releases()) for each in (problem, there)
    )
    apart = np.linalg.norm((one - two).reshape(8, 3), axis=1)
    assert (apart[:2] == 0).all() and (apart[2:] > 0).all()  # 25 is of 20 to 29
    (event,) = events
    assert 0.1 < np.linalg.norm(apart) / event.sensitivity / event.growth < 1


def test_releases_of_a_stream_are_weighted_sums_of_its_gradients():
    at = Scaled(make_problem("least_squares", "l2", **SHAPE))
    whole, weighted = (
        next(run(dp_ftrl, at, dp_ftrl.Options(2, 1e-9, share=0.25, power=p)).releases())
        for p in (0.0, 0.5)
    )
    c = coefficients(-0.5, 8)
    gradients = whole.reshape(8, 3)
    sums = [sum(c[t - k] * gradients[k] for k in range(t + 1)) for t in range(8)]
    np.testing.assert_allclose(weighted.reshape(8, 3), sums, rtol=1e-6)
    assert np.abs(gradients).min() > 0


def test_noise_is_added_to_every_release_of_a_stream():
    at = Scaled(make_problem("least_squares", "l2", **SHAPE))
    made = dp_ftrl.Options(steps=1, share=0.25, step=1e-9)
    (event,) = dp_ftrl.ledger(at, 0.7, made).events
    quiet, loud = (
        next(run(dp_ftrl, at, made, noise).releases())[:, 0] for noise in (0.0, 0.7)
    )
    drawn = streams(0).noise.standard_normal(12)
    np.testing.assert_allclose(loud - quiet, event.scale * drawn, rtol=1e-6)
    moved = event.sensitivity * event.growth
    assert event.scale == pytest.approx(0.7 * moved)


# --- places of the largest ------------------------------------------------------------


def scores(X, y, real):
    """Of records by their definition, pair by pair."""
    n = len(y)
    found = np.zeros(X.shape[1])
    for i, k in itertools.combinations_with_replacement(range(n), 2):
        if real:
            found += np.sign(X[i] - X[k]) * np.sign(y[i] - y[k]) / (n - 1)
        else:
            found += np.sign(X[i] + X[k]) / n
    return np.abs(found)


def records_of(X, y, real):
    made = make_problem("least_squares" if real else "logistic", "l2", **SHAPE)
    return Records(replace(made, A=np.asfortranarray(X), offset=-y if real else 0 * y))


@pytest.mark.parametrize("real", [True, False])
def test_scores_are_sums_over_pairs_and_a_record_moves_them_by_two(real):
    rng, most = np.random.default_rng(1), 0.0
    for _ in range(60):
        X, y = rng.integers(-2, 3, (7, 3)).astype(float), rng.integers(0, 4, 7) * 1.0
        found = relevance(records_of(X, y, real), real)
        np.testing.assert_allclose(found, scores(X, y, real), atol=1e-9)
        X[2], y[2] = rng.integers(-9, 10, 3), rng.integers(-9, 10)
        most = max(most, np.abs(relevance(records_of(X, y, real), real) - found).max())
    assert most <= 2.0
    # attained: a record on one side of all others, and on the other
    X, y = np.arange(1.0, 8.0)[:, None] * np.ones(3), np.arange(7.0)
    X[0] = 100.0
    here = relevance(records_of(X, y, real), real)
    X[0] = -100.0
    assert np.abs(here - relevance(records_of(X, y, real), real)).max() == 2.0


def test_kendalls_sum_is_that_of_the_correlation():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    taus = [kendalltau(x, y).statistic for x in X.T]
    found = relevance(records_of(X, y, True), True)
    np.testing.assert_allclose(found, np.abs(taus) * 15)


def drawn(values, scale, k, runs=40_000):
    rng = streams(3).noise

    def noise(size, count, law):
        assert law is gumbel
        return size * law(rng, (count, runs))

    event = TopK(2.0, scale, 1, "", "", noise="gumbel", k=k)
    return Scores(np.array(values), 2.0, k).released(iter([event]), noise).astype(int)


def test_places_have_the_law_of_selections_and_half_the_noise_is_refuted():
    """Rare places on candidates far apart; every selection costs its range at most."""
    b, k = 3.0, 2
    event = TopK(2.0, b, 1, "", "", noise="gumbel", k=k)
    here, there = np.array([14.0, 2.0, 2.0]), np.array([12.0, 4.0, 4.0])
    weights = [np.exp(v / b) for v in (here, there)]
    exact = [w[1] / w.sum() * w[2] / (w.sum() - w[1]) for w in weights]
    counts = [((d := drawn(v, b, k))[0] == 1) & (d[1] == 2) for v in (here, there)]
    for chance, one in zip(exact, counts, strict=True):
        assert abs(one.mean() - chance) < 4 * (chance / one.size) ** 0.5
    assert np.log(exact[1] / exact[0]) <= k * event.pure
    half = [((d := drawn(v, b / 2, 1))[0] == 1) for v in (here, there)]
    low = half[1].mean() - 4 * (half[1].mean() / half[1].size) ** 0.5
    high = half[0].mean() + 4 * (half[0].mean() / half[0].size) ** 0.5
    assert np.log(low / high) > event.pure  # of one selection


def test_the_places_cost_their_selections():
    beside = Gaussian(1.0, 4.0, 1, "", "")
    with pytest.raises(SelectionNoiseError, match="'laplace'; expected gumbel"):
        TopK(2.0, 40.0, 1, "", "", noise="laplace", k=3)
    with pytest.raises(CountError, match="k must be at least 1"):
        TopK(2.0, 40.0, 1, "", "", k=0)
    top = TopK(2.0, 40.0, 1, "", "", k=3)
    apart = NoisyMax(2.0, 40.0, 3, "", "", noise="gumbel")
    prices = [true_epsilon(Ledger((beside, one)), 1e-6) for one in (top, apart)]
    assert prices[0] == pytest.approx(prices[1], rel=0.01) and prices[0] >= prices[1]
    with pytest.raises(UndeclaredError, match="k: the ledger states 1, the run has 3"):
        Scores(np.ones(4), 2.0, 3).released(iter([replace(top, k=1)]), None)


def test_a_record_moves_a_sum_over_chosen_features_by_twice_the_clip():
    problem, found = make_problem("least_squares", "l2", **SHAPE), []
    for label in (100.0, -100.0):
        A, offset = np.zeros((40, 3), order="F"), np.zeros(40)
        A[0], offset[0] = [1.0, 2.0, 3.0], -label
        at = Scaled(replace(problem, A=A, offset=offset))
        secret = at.chosen_gradient_sum(np.zeros((3, 1)), 0.5, np.array([[2], [0]]))
        event = Gaussian(1.0, 0.0, 1, "", "")
        found.append(secret.released(iter([event]), lambda _, k: np.zeros((k, 1))))
    assert np.linalg.norm(found[0] - found[1]) == pytest.approx(event.sensitivity)


@pytest.mark.parametrize("loss", ["logistic", "least_squares"])
def test_the_features_that_matter_are_found_and_fitted_alone(loss):
    rng = np.random.default_rng(0)
    problem = make_problem(loss, "l2", n=200, p=12)
    X = rng.normal(size=(200, 12))
    y = 3 * X[:, 4] - 2 * X[:, 9] + 0.1 * rng.normal(size=200)
    signs = np.sign(y) if loss == "logistic" else 1.0
    offset = 0 * y if loss == "logistic" else -y
    A = np.asfortranarray(X * np.reshape(signs, (-1, 1)) * np.ones((200, 1)))
    at = Scaled(replace(problem, A=A, offset=offset))
    made = dp_selection.Options(features=2, steps=40, step=1.0, clip=50.0)
    w = run(dp_selection, at, made).solve()[0]
    assert {*np.flatnonzero(w)} == {4, 9} and w[4] > 0 > w[9]
    k, C = dp_selection.chosen(at, made)
    events = dp_selection.ledger(at, 1.0, made).events
    assert [e.sensitivity for e in events] == [2.0, pytest.approx(2 * C)]
    assert events[0].k == k == 2 and events[1].count == 40
