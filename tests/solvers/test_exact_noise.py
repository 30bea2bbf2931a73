"""Noise for release: on a public grid, of the stated law, and never too small."""

import math
from fractions import Fraction

import numpy as np
import pytest

import dperm
from dperm.estimators.estimators import DPRegressor
from dperm.privacy import noise
from dperm.privacy.accounting import true_epsilon
from dperm.privacy.events import Gaussian
from dperm.privacy.noise import streams
from dperm.problems.penalties import Penalty
from dperm.problems.problem import build
from dperm.solvers import exact_noise, registry
from dperm.solvers.exact_noise import Exact, slack, step, sum_error, widened
from dperm.solvers.full_batch.scaled import Scaled
from dperm.solvers.full_batch.secret import UndeclaredError, noisy
from dperm.solvers.records import Records
from dperm.solvers.scales import declared

EVENT = Gaussian(1.0, 3.0, 1, "", "")


def problem(X, y, loss="least_squares"):
    return build("t", X, y, loss, Penalty(), 1.0, 1e-6, "t", given=("n",))


def off(found, exact):
    """The distance of numbers from exact ones."""
    pairs = zip(found.ravel().tolist(), exact.ravel(), strict=True)
    return np.linalg.norm(
        [float(Fraction(one) - other) for one, other in pairs]
    )


def fractions(values):
    return np.vectorize(Fraction, otypes=[object])(values.astype(float))


@pytest.fixture
def scales(monkeypatch):
    """Scales of the noise that is asked for, none of which is drawn."""
    found = []

    def noted(scale, size):
        found.append(scale)
        return [0] * size

    monkeypatch.setattr(exact_noise, "drawn", noted)
    return found


def exactly(value, **more):
    return noisy(value, 1.0, error=0.0, **more).released(
        iter([EVENT]), Exact()
    )


# --- the grid and the law -------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-9, 0.75, 1.0, 3.0, 1e12])
def test_the_step_is_a_power_of_two_that_the_scale_decides(scale):
    h = step(scale)
    assert math.frexp(h)[0] == 0.5
    assert 2.0**50 <= scale / h < 2.0**51


@pytest.mark.parametrize("value", [0.0, 1 / 3, 1e-30, 12345.678])
def test_what_is_released_is_on_the_grid_whatever_the_value(value):
    found = exactly(np.full((200, 1), value)) / step(3.0)
    np.testing.assert_array_equal(found, np.rint(found))
    whole = exactly(np.full((4, 4), value), symmetric=True) / step(3.0)
    np.testing.assert_array_equal(whole, np.rint(whole))


def test_the_noise_has_the_scale_of_the_event_and_less_beside_the_diagonal():
    plain = exactly(np.full((40_000, 1), 5.0)) - 5.0
    assert abs(plain.mean()) < 5 * 3 / 200
    assert abs(plain.std() / 3 - 1) < 5 / math.sqrt(80_000)
    fourth = (plain**4).mean() / plain.var() ** 2
    assert abs(fourth - 3) < 5 * math.sqrt(24 / 40_000)
    drawn = exactly(np.zeros((200, 200)), symmetric=True)[0]
    np.testing.assert_array_equal(drawn, drawn.T)
    beside = drawn[np.triu_indices(200, 1)]
    assert abs(beside.std() * math.sqrt(2) / 3 - 1) < 5 / math.sqrt(
        2 * len(beside)
    )
    many = np.concatenate([np.diag(exactly(np.zeros((50, 50)), symmetric=True)[0])
                           for _ in range(40)])  # fmt: skip
    assert abs(many.std() / 3 - 1) < 5 / math.sqrt(2 * len(many))


def test_a_lower_triangle_that_differs_in_its_last_bits_shows_nothing(scales):
    value = np.array([[1.0, 0.5], [0.5 + 2.0**-40, 2.0]])
    found = exactly(value, symmetric=True)[0]
    assert found[0, 1] == found[1, 0] == 0.5


# --- the sensitivity ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "symmetric"), [((7, 1), False), ((5, 5), True)]
)
def test_neighbours_after_rounding_are_within_what_the_noise_hides(
    shape, symmetric, scales
):
    """The scale is large enough for the worst rounding of both, in exact numbers."""
    low, high = np.full(shape, 0.5 - 1e-9), np.full(shape, 1.5 + 1e-9)
    h, size = step(3.0), math.sqrt(low.size)
    pair = [Exact().added(h * one, 3.0, size * h * (1 + 2e-9), 0.0, symmetric)
            for one in (low, high)]  # fmt: skip
    moved = np.linalg.norm(pair[1] - pair[0])
    assert moved == 2 * size * h  # twice the sensitivity of the exact values
    assert scales[0] * h / moved >= 3.0 / (size * h * (1 + 2e-9)) * (1 - 1e-12)


def test_the_error_of_doubles_is_paid_for_twice():
    plain, more = widened(3.0, 2.0, 0.0, 9), widened(3.0, 2.0, 0.25, 9)
    assert plain > 3.0 * (1 + 3 * step(3.0) / 2.0)
    assert more / plain == pytest.approx(1.25, rel=1e-9)


@pytest.mark.parametrize("far", [1.0, 1e120])
def test_sums_of_moments_are_within_the_bound_of_the_exact_ones(far):
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((60, 3)), rng.standard_normal(60)
    X[:5] *= far
    records, exact = Records(problem(X, y)), np.zeros((4, 4), dtype=object)
    for t in fractions(np.column_stack((records.rows, records.labels))):
        exact += np.outer(t, t) * min(
            Fraction(1), Fraction(169, 100) / (t @ t)
        )
    assert (
        0 < off(records.moments(1.3, 1.0), exact) <= sum_error(60, 3, 1.3**2)
    )


def test_sums_of_gradients_are_within_the_bound_of_the_exact_ones():
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((300, 3)), rng.standard_normal(300)
    X[:9] *= 1e120
    records, u, C = Records(problem(X, y), apart=True), np.ones((3, 1)), 1.3
    slopes, rows = records.clipped_slopes(u, C), fractions(records.rows)
    exact = fractions(slopes[:, 0]) @ rows
    assert 0 < off(records.gradient(u, C), exact) <= sum_error(300, 3, C) / 10
    lengths = (rows[9:] ** 2).sum(axis=1).astype(float) ** 0.5
    assert (np.abs(slopes[9:, 0]) * lengths <= C * (1 + 1e-14)).all()
    assert (np.abs(slopes[9:, 0]) * lengths > C * (1 - 1e-14)).any()


@pytest.mark.parametrize("loss", ["logistic", "least_squares", "huber"])
def test_bits_of_a_slope_depend_on_its_record_alone(loss):
    """Not on its place, on the others, or on how many entries of the others are 0."""
    rng = np.random.default_rng(4)
    X, u = rng.standard_normal((203, 7)), rng.standard_normal((7, 1))
    y = np.where(rng.random(203) < 0.5, 1.0, -1.0)
    few = np.where(rng.random(X.shape) < 0.9, 0.0, X)
    few[3], few[100] = X[3], X[100]
    order = np.roll(np.arange(203), 5)
    S = np.full(7, 0.3)
    every = [
        Records(problem(A, b, loss), S, 0.7, apart=True).clipped_slopes(u, 2.0)
        for A, b in (
            (X, y),
            (few, y),
            (X[order], y[order]),
            (X[:101], y[:101]),
        )
    ]
    assert (every[0][order] == every[2]).all()
    assert (every[0][:101] == every[3]).all()
    assert every[0][3] == every[1][3] and every[0][100] == every[1][100]
    plain = Records(problem(X, y, loss), S, 0.7).clipped_slopes(u, 2.0)
    np.testing.assert_allclose(every[0], plain, rtol=1e-12)


def test_discrete_numbers_cost_next_to_nothing_of_delta():
    assert slack(1000, 1.0) == pytest.approx((1 + math.e) * 1000 * 2.0**-102)
    assert slack(1, 1e6) > 1


# --- whole fits -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (3000, 3))
    return X, X @ [1.0, -0.5, 0.25] + 0.05 * rng.standard_normal(3000)


DECLARED = {"bounds": (-1, 1), "label_bounds": (-2, 2), "epsilon": 2.0}
SIGNS = {"bounds": (-1, 1), "epsilon": 2.0, "classes": (False, True)}


@pytest.mark.parametrize(("solver", "signs"), [
    ("moments", False), ("dp_gd", False), ("dp_gd", True), ("dp_gram", False),
    ("dp_gram", True), ("auto", False), ("auto", True),
])  # fmt: skip
def test_every_solver_with_a_proof_fits_for_release(data, solver, signs):
    X, y = data
    estimator, given = (dperm.DPRegressor, DECLARED)
    if signs:
        estimator, given, y = dperm.DPClassifier, SIGNS, y > 0
    drawn_in_doubles = []
    with noise.listening(
        lambda *told: drawn_in_doubles.append(told) or told[1]
    ):
        model = estimator(solver, release=True, **given).fit(X, y)
    assert model.score(X, y) > 0.9 and not drawn_in_doubles
    assert 1.99 < model.epsilon_.high <= 2.0 and model.epsilon_.given == ("n",)
    chosen = "dp_gram" if signs else "moments"
    assert model.solver_ == (chosen if solver == "auto" else solver)
    again = estimator(solver, release=True, **given).fit(X, y)
    assert not np.array_equal(model.coef_, again.coef_)


# three features and the intercept, or label
GAMMA = (3000 + 3 * 4 + 120) * 2.0**-53
SUMS = math.sqrt(1 + 1.6**2) * GAMMA  # of t and 1.6 t^2, over 2 sqrt(k)


@pytest.mark.parametrize(("solver", "wanted"), [
    ("moments", [SUMS, math.sqrt(2) * GAMMA]),  # of 2 n C^2 over sqrt(2) C^2
    ("dp_gd", [SUMS, GAMMA]),
    ("dp_gram", [SUMS, math.sqrt(2) * GAMMA, GAMMA]),
])  # fmt: skip
def test_every_release_pays_for_the_error_of_its_sums(
    data, solver, wanted, scales
):
    """By how much n times a share's error, on either side, exceeds the sensitivity."""
    model = dperm.DPRegressor(solver, release=True, **DECLARED).fit(*data)
    events = model.epsilon_.ledger.events
    if solver in ("moments", "dp_gram"):  # off the diagonal there is less
        assert scales.pop(2) == pytest.approx(scales[1] / math.sqrt(2))
    for event, share in zip(events, wanted, strict=True):
        found = scales.pop(0) * step(event.scale) / event.scale - 1
        assert found == pytest.approx(3000 * share, rel=0.02)
    assert len(scales) == sum(event.count - 1 for event in events)


# Noise of a release has no seed, and may leave a doubt about the ranges.
@pytest.mark.filterwarnings("ignore:X. columns hardly leave")
def test_every_number_that_is_drawn_costs_of_delta(data):
    """Of the release and of the columns' sums; the ledger's epsilon leaves it out."""
    ranges = {"bounds": (-3, 3), "label_bounds": (-9, 9)}
    model = DPRegressor(
        "dp_gd", release=True, epsilon=2.0, delta=1e-7, **ranges
    )
    cost, width = model.fit(*data).epsilon_, 3 + 2  # with intercept and label
    # after the sums
    releases = sum(event.count for event in cost.ledger.events[1:])
    numbers = releases * width * (width + 1) // 2 + width * 2
    assert cost.slack == pytest.approx(slack(numbers, 2.0))
    assert true_epsilon(cost.ledger, 1e-7 - cost.slack) == pytest.approx(
        cost.high
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"random_state": 0}, "random_state"),
        (
            {"solver": "dp_cd"},
            "dp_cd; expected one of dp_gd, dp_gram, moments",
        ),
        ({"solver": "dp_minibatch"}, "no proof"),
        ({"solver": "hessian_mixing"}, "no proof"),
        ({"solver": "ada_ssp"}, "no proof"),
        ({"epsilon": math.inf}, "finite epsilon"),
        ({"epsilon": 60.0}, "delta"),
        ({"label_bounds": (0, 1e101)}, "of a size up to"),
    ],
)
def test_what_cannot_be_released_is_refused(data, given, said):
    with pytest.raises(ValueError, match=said):
        dperm.fit(*data, release=True, **{**DECLARED, **given})


def test_a_secret_without_a_bound_on_its_error_gets_no_exact_noise():
    with pytest.raises(UndeclaredError, match="exact"):
        noisy(np.ones((2, 1)), 1.0).released(iter([EVENT]), Exact())


@pytest.mark.parametrize(("name", "loss"), [
    ("objective_perturbation", "logistic"), ("ada_ssp", "least_squares"),
    ("dp_minibatch", "logistic"), ("dp_selection", "least_squares"),
    ("hessian_mixing", "least_squares"),
])  # fmt: skip
def test_a_run_of_another_method_gets_no_exact_noise(name, loss):
    at = Scaled(declared(problem(np.eye(4), np.ones(4), loss)))
    module = registry.load(name)
    options = module.Options()
    run = module.Run(
        at, module.ledger(at, 1.0, options), [streams(0)], options
    )
    run.exact = Exact()
    with pytest.raises(UndeclaredError, match="exact noise: no bound"):
        run.solve()
