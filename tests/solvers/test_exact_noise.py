"""Noise for release: on a public grid, of the stated law, and never too small."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import dperm
from dperm.core.privacy.ledger import Gaussian
from dperm.core.privacy.mechanisms import streams
from dperm.solvers import exact_noise
from dperm.solvers.exact_noise import Exact, moments_error, slack, step, widened
from dperm.solvers.fits import Fit
from dperm.solvers.fits.secret import Secret, UndeclaredError
from dperm.solvers.records import Records

EVENT = Gaussian(1.0, 3.0, 1, "", "")


def exactly(value, **more):
    return Secret(value, 1.0, error=0.0, **more).released(iter([EVENT]), Exact())


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
    assert abs(beside.std() * math.sqrt(2) / 3 - 1) < 5 / math.sqrt(2 * len(beside))
    many = np.concatenate([np.diag(exactly(np.zeros((50, 50)), symmetric=True)[0])
                           for _ in range(40)])  # fmt: skip
    assert abs(many.std() / 3 - 1) < 5 / math.sqrt(2 * len(many))


def test_small_discrete_noise_has_the_masses_of_the_discrete_law():
    found = np.array(exact_noise.drawn(1.5, 40_000))
    places = np.arange(-4, 5)
    masses = np.exp(-(np.arange(-60, 61) ** 2) / 4.5)
    wanted = np.exp(-(places**2) / 4.5) / masses.sum()
    seen = np.array([(found == k).mean() for k in places])
    assert (np.abs(seen - wanted) < 5 * np.sqrt(wanted / 40_000)).all()


def test_a_lower_triangle_that_differs_in_its_last_bits_shows_nothing(monkeypatch):
    monkeypatch.setattr(exact_noise, "drawn", lambda scale, size: [0] * size)
    value = np.array([[1.0, 0.5], [0.5 + 2.0**-40, 2.0]])
    found = exactly(value, symmetric=True)[0]
    assert found[0, 1] == found[1, 0] == 0.5


# --- the sensitivity ------------------------------------------------------------------


@pytest.mark.parametrize(("shape", "symmetric"), [((7, 1), False), ((5, 5), True)])
def test_neighbours_after_rounding_are_within_what_the_noise_hides(
    shape, symmetric, monkeypatch
):
    """The scale is large enough for the worst rounding of both, in exact numbers."""
    h, scales = step(3.0), []
    low, high = np.full(shape, 0.5 - 1e-9), np.full(shape, 1.5 + 1e-9)
    size = math.sqrt(low.size)

    def noted(scale, size):
        scales.append(scale)
        return [0] * size

    monkeypatch.setattr(exact_noise, "drawn", noted)
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
    records = Records(dperm_problem(X, y))
    bound, total = 1.3, np.zeros((4, 4), dtype=object)
    for x, label in zip(records.rows, records.labels, strict=True):
        t = [Fraction(float(one)) for one in (*x, label)]
        square = sum(one * one for one in t)
        factor = min(Fraction(1), Fraction(169, 100) / square)
        total += np.array([[a * b * factor for b in t] for a in t], dtype=object)
    found = records.moments(bound, 1.0)
    off = [[float(Fraction(float(found[i, j])) - total[i, j]) for j in range(4)]
           for i in range(4)]  # fmt: skip
    assert 0 < np.linalg.norm(off) <= moments_error(60, 3, bound)


def dperm_problem(X, y):
    from dperm.core.erm.penalties import Penalty
    from dperm.core.erm.problem import build

    return build("t", X, y, "least_squares", Penalty(), 1.0, 1e-6, "t", given=("n",))


def test_discrete_numbers_cost_next_to_nothing_of_delta():
    assert slack(1000, 1.0) == pytest.approx((1 + math.e) * 1000 * 2.0**-102)
    assert slack(1, 1e6) > 1


# --- Mironov's attack -----------------------------------------------------------------


def finer(found):
    """Of outputs near 0, the share that are no multiples of 2^-53."""
    near = found[np.abs(found) < 2.0**-6]
    assert len(near) > 50
    return np.mean(np.rint(near * 2.0**53) != near * 2.0**53)


def test_which_doubles_come_out_tells_the_value_unless_noise_is_exact():
    """1 + z near 0 is a multiple of 2^-53, as z near -1 is; 0 + z seldom is one."""
    event, drawing = replace(EVENT, scale=1.0), SimpleNamespace(streams=[streams(0)])
    near, far = (Secret(np.full((40_000, 1), one), 1.0, error=0.0) for one in (0, 1))
    doubles = partial(Fit.normal, drawing)
    assert finer(near.released(iter([event]), doubles)) > 0.9
    assert finer(far.released(iter([event]), doubles)) == 0
    assert finer(near.released(iter([event]), Exact())) == 0
    assert finer(far.released(iter([event]), Exact())) == 0


# --- whole fits -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (3000, 3))
    return X, X @ [1.0, -0.5, 0.25] + 0.05 * rng.standard_normal(3000)


DECLARED = {"bounds": (-1, 1), "label_bounds": (-2, 2), "epsilon": 2.0}


@pytest.mark.parametrize("given", [DECLARED, {"epsilon": 2.0}], ids=["bounds", "none"])
def test_a_fit_for_release_is_as_good(data, given):
    model = dperm.fit(*data, release=True, **given)
    assert model.solver_ == "moments"
    assert model.score(*data) > 0.9
    assert model.epsilon_.high <= 2.0
    assert not np.array_equal(
        model.coef_, dperm.fit(*data, release=True, **given).coef_
    )


def test_a_fit_pays_for_the_error_of_its_sums(data, monkeypatch):
    """The scale exceeds the ledger's by sqrt(2) n gamma_m, a share of C^2 each way."""
    scales = []

    def noted(scale, size):
        scales.append(scale)
        return [0] * size

    monkeypatch.setattr(exact_noise, "drawn", noted)
    model = dperm.fit(*data, release=True, **DECLARED)
    (event,) = model.epsilon_.ledger.events
    excess = scales[0] * step(event.scale) / event.scale - 1
    m = (3000 + 3 * 4 + 120) * 2.0**-53  # three features and the intercept
    assert excess == pytest.approx(math.sqrt(2) * 3000 * m, rel=0.01)


def test_no_number_of_a_fit_for_release_is_drawn_in_doubles(data, monkeypatch):
    from dperm.core.privacy import mechanisms

    kinds = []

    def listener(kind, unit, order):
        kinds.append(kind)
        return unit

    with mechanisms.heard(listener):
        dperm.fit(*data, release=True, epsilon=2.0)
    assert kinds == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"random_state": 0}, "random_state"),
        ({"solver": "dp_gd"}, "moments"),
        ({"epsilon": math.inf}, "finite epsilon"),
        ({"feature_scale": "data"}, "read off the data"),
        ({"epsilon": 60.0}, "delta"),
        ({"loss": "huber"}, "release=True"),
        ({"label_scale": 1e101, "label_bounds": None}, "scales from"),
    ],
)
def test_what_cannot_be_released_is_refused(data, given, said):
    with pytest.raises(ValueError, match=said):
        dperm.fit(*data, release=True, **{**DECLARED, **given})


def test_classes_have_no_noise_for_release_yet(data):
    with pytest.raises(ValueError, match=r"release=True.*moments"):
        dperm.fit(data[0], data[1] > 0, bounds=(-1, 1), release=True)


def test_a_secret_without_a_bound_on_its_error_gets_no_exact_noise():
    with pytest.raises(UndeclaredError, match="exact"):
        Secret(np.ones((2, 1)), 1.0).released(iter([EVENT]), Exact())
