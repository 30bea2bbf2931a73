"""A record that overflows must not get past a clip.

With features of 1e308 a margin is infinite as soon as a weight exceeds one, and the
next margin, infinity less infinity, is no number. Every comparison with it is false.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numba import njit
from scipy import sparse

from dperm.core import solvers
from dperm.core.compiled import KERNEL, clamp
from dperm.core.erm.losses import named
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import build
from dperm.core.lanes import Lanes
from dperm.core.privacy.mechanisms import streams
from dperm.solvers.streams import poly_sfw
from dperm.solvers.streams.gradients import difference_sums, gradient_sums
from dperm.solvers.streams.sources import Rows

N, P, HUGE = 40, 4, 1e308


def test_clamp_bounds_everything():
    """Also in a loop that is made of vector instructions."""

    @njit(**{**KERNEL, "cache": False})
    def each(values, bound):
        out = np.empty_like(values)
        for i in range(values.shape[0]):
            out[i] = clamp(values[i] * 1.0, bound)
        return out

    rng = np.random.default_rng(0)
    plain = rng.standard_normal(67)
    np.testing.assert_array_equal(each(plain, 0.7), np.clip(plain, -0.7, 0.7))
    odd = np.tile([np.nan, np.inf, -np.inf, 0.1, -np.nan], 13)
    found = each(odd, 0.7)
    assert (np.abs(found) <= 0.7).all()
    assert (found[3::5] == 0.1).all()
    assert (found[0::5] == -0.7).all()  # one value for all that is no number
    assert np.isinf(each(odd, np.inf)[0])  # without a clip a diverged run is seen


def pair(loss, sparse_data=False):
    """A problem and its neighbour with a huge record, under the same constants."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((N, P))
    y = np.sign(rng.standard_normal(N))
    base = build("base", X, y, loss, Penalty(), 1.0, 1e-3)
    X[3] = HUGE * np.array([1.0, -1.0, 1.0, -1.0])
    A = np.asfortranarray(X * np.where(loss == "logistic", y, 1.0)[:, None])
    if sparse_data:
        base = build("base", sparse.csc_array(base.A), y, loss, Penalty(), 1.0, 1e-3)
        A = sparse.csc_array(A)
    return base, replace(base, A=A, public=base)


CASES = [
    ("dp_cd", {}, False), ("dp_cd", {}, True),
    ("dp_sgd", {}, False), ("dp_sgd", {}, True), ("dp_svrg", {}, False),
    ("dp_skgd", {"blocks": 2}, False), ("dp_skgd", {"blocks": 1}, False),
    ("dp_gcd", {}, False),
]  # fmt: skip


@pytest.mark.parametrize("loss", ["least_squares", "logistic"])
@pytest.mark.parametrize(("name", "given", "sparse_data"), CASES)
def test_a_huge_record_moves_the_weights_by_a_bounded_amount(
    name, given, sparse_data, loss
):
    """The noise makes weights far above one; the run on the neighbour stays as near."""
    module = solvers.load(name)
    options = solvers.make_options(module, given)
    steps, clip = 3 * N, 1.0
    lanes = Lanes(np.full(2, 0.5), np.full(2, clip), 2000.0, "strict")
    ended = []
    with np.errstate(over="ignore", invalid="ignore"):
        for problem in pair(loss, sparse_data):
            run = module.Run(problem, lanes, streams(5), options, 1, steps)
            run.advance(steps)
            ended.append(np.array(run.weights))
    assert np.abs(ended[0]).max() > 10.0
    assert np.isfinite(ended[1]).all()
    if name != "dp_gcd":  # which may choose other coordinates
        furthest = steps * 0.5 * 2 * clip / pair(loss)[0].smoothness.min()
        assert np.abs(ended[1] - ended[0]).max() <= furthest


def test_sums_of_clipped_gradients_stay_bounded():
    """Where the factor that normalises a record is zero, or would be infinite."""
    for size in (1e308, 5e-324, 1e-200, 1.0):
        rows = np.ones((2, 3))
        rows[0] = size
        source = Rows(rows, np.ones(2))
        batch = source.take(2)
        with np.errstate(over="ignore"):
            factors = source.factors(batch, 2.0)
        W, out = np.full((1, 3), np.inf), np.zeros((1, 3))
        W[0, 1] = -np.inf
        compiled = named("logistic").compiled
        compiled(gradient_sums)(*batch, factors, 0.5, W, out)
        compiled(difference_sums)(*batch, factors, 0.5, W, -W, out)
        assert np.linalg.norm(out) <= 2 * (0.5 + 1.0) * (1 + 1e-9), size


@pytest.mark.parametrize("far", [1e3, 1e300, np.inf])
def test_a_step_of_poly_sfw_clips_both_gradients(far):
    """However far the iterate is, the estimate moves by what the bound allows."""
    eta, bound, d = 0.25, 1.5, 3
    X, D, at = np.full((1, d), far), np.zeros((1, d)), np.zeros(1, dtype=np.int64)
    rows, quiet = np.ones((1, d)), np.zeros((1, 2 * d))
    given = (rows, np.ones(1), np.full(1, 0.5), bound, quiet, np.zeros(1))
    steps = named("least_squares").compiled(poly_sfw._steps)
    steps(*given, eta, 1.0, X, D, at)
    moved = 0.5 * (2 * (1 - eta) + eta) * bound
    assert np.isfinite(D).all() and np.abs(D).max() <= moved * (1 + 1e-9)
