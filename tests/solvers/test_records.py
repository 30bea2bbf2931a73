"""What a record contributes is within its bound, whatever numbers it holds.

Norms are held against exact fractions, so that no rounding of the primitive is believed
that the test would make too.
"""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from dperm.privacy.events import Gaussian
from dperm.problems.penalties import Penalty
from dperm.problems.problem import build
from dperm.solvers.full_batch.scaled import Scaled
from dperm.solvers.records import (
    ContributionError,
    Records,
    bounded,
    contributions,
    norms,
)

SIZES = (0.0, 5e-324, 1e-310, 1e-200, 3e-162, 1e-120, 1.0, 40.0, 1e120, 1e160, 1e308,
         math.nan, math.inf)  # fmt: skip
SHAPES = ((1.0, 1.0, 1.0), (1.0, -0.7, 0.0), (-1.0, 0.0, 0.0))
LABELS = (0.0, 1.0, -1e308, 1e308, 1e-200, math.nan, -math.inf)
CONTAINERS = (np.asarray, sparse.csc_array)
SLACK = 1 + Fraction(1, 10**8)
FAR = 1e300


def odd():
    """Records of every size and shape, with every label; X (n, 3), y (n,)."""
    with np.errstate(all="ignore"):
        every = [(np.array(shape) * size, label)
                 for size in SIZES for shape in SHAPES for label in LABELS]  # fmt: skip
    return np.array([x for x, _ in every]), np.array([y for _, y in every])


def problem(container, X, y, loss="least_squares"):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return build("odd", container(X), y, loss, Penalty())


def filled(rows):
    return rows.toarray() if sparse.issparse(rows) else rows


def is_within(factor, row, bound):
    """Whether ||factor row|| is at most the bound, to the last digit."""
    if not (math.isfinite(factor) and np.isfinite(row).all()):
        return False
    squares = sum((Fraction(factor) * Fraction(x)) ** 2 for x in row.tolist())
    return squares <= (SLACK * Fraction(bound)) ** 2


def starts():
    """Weights (3, L): nothing, ordinary, and such that margins are no numbers."""
    far = np.array([FAR, FAR, -FAR])
    return np.stack(
        [np.zeros(3), np.ones(3), far, -far, np.full(3, np.inf)], axis=1
    )


# --- contributions --------------------------------------------------------------------


@pytest.mark.parametrize("container", CONTAINERS, ids=["dense", "sparse"])
@pytest.mark.parametrize(("loss", "scale"), [("least_squares", 1.0), ("huber", 1e-3),
                                             ("logistic", 1.0)])  # fmt: skip
def test_every_clipped_gradient_is_within_its_bound(container, loss, scale):
    X, y = odd()
    y = np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y
    found, C, u = (
        Records(problem(container, X, y, loss), np.full(3, scale)),
        0.7,
        starts(),
    )
    rows = filled(found.rows)
    assert np.isfinite(found.gradient(u, C)).all()
    for row, own in zip(rows, found.clipped_slopes(u, C), strict=True):
        assert all(is_within(float(a), row, C) for a in own)


@pytest.mark.parametrize("container", CONTAINERS, ids=["dense", "sparse"])
def test_a_clip_shortens_no_more_than_it_has_to(container):
    rows = np.array([[3.0, -4.0], [0.3, 0.4], [0.0, 0.0]])
    found = Records(problem(container, rows, np.array([-1.0, -1.0, 1.0])))
    gradients = (
        filled(found.rows) * found.clipped_slopes(np.zeros(2), 2.0)[:, None]
    )
    np.testing.assert_allclose(
        gradients, [[1.2, -1.6], [0.3, 0.4], [0.0, 0.0]]
    )
    np.testing.assert_allclose(filled(found.clipped(2.0))[0], [1.2, -1.6])
    some = found.gradient(np.zeros(2), 2.0, np.array([1, 2]))
    np.testing.assert_allclose(some, [0.3, 0.4])


@pytest.mark.parametrize("container", CONTAINERS, ids=["dense", "sparse"])
def test_every_clipped_row_is_within_the_radius(container):
    X, y = odd()
    cut = filled(Records(problem(container, X, y)).clipped(0.9))
    assert all(is_within(1.0, row, 0.9) for row in cut)
    assert (cut != 0).any()


@pytest.mark.parametrize("container", CONTAINERS, ids=["dense", "sparse"])
def test_every_moment_of_a_record_and_its_label_is_within_its_bound(container):
    X, y = odd()
    for x, label in zip(X[::2], y[::2], strict=True):
        found = Records(
            problem(container, x[None], np.array([label]))
        ).moments(1.3, 0.8)
        assert math.hypot(*found.ravel()) <= 1.3**2 * (1 + 1e-9), (x, label)
    plain = Records(
        problem(container, np.array([[3.0, 0.0]]), np.array([4.0]))
    )
    np.testing.assert_allclose(
        plain.moments(2.5, 1.0), np.outer([1.5, 0, 2], [1.5, 0, 2])
    )


@pytest.mark.parametrize(
    "container", [np.asarray, sparse.csr_array], ids=["dense", "csr"]
)
def test_norms_neither_overflow_nor_underflow(container):
    rows = np.array(
        [x for x, _ in zip(*odd(), strict=True) if np.isfinite(x).all()]
    )
    exact = [math.hypot(*row) for row in rows.tolist()]
    with np.errstate(all="ignore"):
        found = norms(container(rows))
    np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-323)


def test_a_slope_that_is_no_number_is_within_its_bound():
    found = bounded(
        np.array([[np.nan, 5.0], [-np.inf, 0.1], [np.inf, -np.nan]]), 0.5
    )
    assert (np.abs(found) <= 0.5).all() and found[1, 1] == 0.1


@pytest.mark.parametrize("loss", ["logistic", "huber", "least_squares"])
def test_second_derivatives_are_within_their_range(loss):
    labels = np.array([1.0, -1.0, 1.0, 1.0])
    found = Records(problem(np.asarray, np.eye(4), labels, loss))
    bent = found.second(np.array([np.nan, np.inf, -1e308, 0.0]))
    assert ((bent >= 0) & (bent <= found.loss.curvature)).all()
    assert bent[3] == found.loss.curvature


# --- the check ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "container", [np.asarray, sparse.csr_array], ids=["dense", "csr"]
)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_what_is_longer_than_its_bound_is_refused(container, sign):
    """A row's size is told too small by half."""
    rows = container(sign * np.array([[0.0, 3.0], [0.1, 0.0]]))
    contributions(rows, np.array([3.0, 0.1]), 1.0)
    with pytest.raises(ContributionError, match="nothing was released"):
        contributions(rows, np.array([1.5, 0.1]), 1.0)


@pytest.mark.parametrize("name", ["clipped_slopes", "moments"])
def test_a_mistake_in_the_norms_stops_every_sum(name):
    made = Records(problem(np.asarray, -np.eye(3), 9 * np.ones(3)))
    made.norms = made.norms / 100
    given = (np.zeros(3), 0.5) if name == "clipped_slopes" else (0.01, 1e-9)
    with pytest.raises(ContributionError):
        getattr(made, name)(*given)


# --- cleaning, and what is kept -------------------------------------------------------


@pytest.mark.parametrize("container", CONTAINERS, ids=["dense", "sparse"])
def test_a_record_that_is_no_number_over_its_scale_counts_as_zeros(container):
    X, y = np.ones((4, 2)), np.ones(4)
    X[1] = 1e308  # over its scale infinite
    other = np.where(np.arange(4)[:, None] == 1, 0.0, X)
    S, u = np.full(2, 0.1), np.array([0.2, -0.1])
    one = Records(problem(container, X, y), S)
    two = Records(
        problem(container, other, np.where(np.arange(4) == 1, 0.0, y)), S
    )
    assert one.n == 4
    np.testing.assert_array_equal(one.gradient(u, 1.0), two.gradient(u, 1.0))
    np.testing.assert_array_equal(one.moments(1.0, 1.0), two.moments(1.0, 1.0))


def test_what_is_kept_for_one_bound_is_not_used_for_another():
    found = Records(problem(np.asarray, 9 * np.eye(3), np.ones(3)))
    for radius in (2.0, 1.0, 2.0):
        assert norms(found.clipped(radius)) == pytest.approx(
            np.full(3, radius)
        )
    at = Scaled(problem(np.asarray, np.eye(3), np.ones(3)))
    for radius in (1.0, 0.5, 1.0):
        whole = shown(at.second_moments(radius))
        np.testing.assert_allclose(whole, radius**2 * np.eye(3))


def shown(secret):
    """A secret's value, which no method can see: what is released without noise."""
    event = Gaussian(1e9, 0.0, 1, "", "")
    found = secret.released(
        iter([event]), lambda scale, size: np.zeros((size, 1))
    )
    return found[0] if found.ndim == 3 else found[:, 0]
