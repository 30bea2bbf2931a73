"""The tap notes every draw; a run on D' repeats that on D, with shifts as in proofs."""

from dataclasses import replace

import numpy as np
import pytest

from dperm.audit.checks import Audit
from dperm.audit.mechanism import INFLUENTIAL, AuditData, Draw, Pair, Recorder
from dperm.audit.pairs import odd_pairs, pairs
from dperm.audit.replay import Replay, square
from dperm.privacy import noise
from dperm.privacy.mechanisms.generalised_gaussian import generalised_gaussian
from dperm.privacy.mechanisms.sketch import GaussianSketch
from dperm.privacy.noise import listening, streams
from dperm.solvers.full_batch.secret import isometric

from .test_solvers import named, subjects, tight

CALLS = {
    "gaussian": lambda own: noise.gaussian(own.noise, (2, 3)),
    "gumbel": lambda own: noise.gumbel(own.noise, 3),
    "laplace": lambda own: noise.laplace(own.noise, [1.0, 2.0]),
    "laplace_rows": lambda own: noise.laplace_rows(
        own.noise, own.sampling, (2, 3)
    ),
    "unit_laplace": lambda own: noise.unit_laplace(own.noise, (2, 3)),
    "generalised_gaussian": lambda own: generalised_gaussian(
        own.noise, 3.0, (2, 3)
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_tap_notes_draws_and_changes_nothing(name):
    plain, tap = CALLS[name](streams(5)), Recorder()
    with listening(tap):
        seen = CALLS[name](streams(5))
    np.testing.assert_array_equal(plain, seen)
    assert [draw.law for draw in tap.draws] == [
        "laplace" if "lap" in name else name
    ]
    scale = np.array([1.0, 2.0]) if name == "laplace" else 1.0
    np.testing.assert_allclose(tap.draws[0].unit * scale, plain)
    # and is gone
    np.testing.assert_array_equal(CALLS[name](streams(5)), plain)


def test_every_mechanism_is_heard():
    """A function of mechanisms that draws by itself must hand its numbers over."""
    public = {
        name
        for name, value in vars(noise).items()
        if callable(value)
        and getattr(value, "__module__", "") == noise.__name__
    }
    others = {
        "Streams",
        "streams",
        "seeds_of",
        "listening",
        "deliver",
        "signed_noisy_max",
    }
    assert {*CALLS} - {"generalised_gaussian"} == public - others


def test_a_script_is_handed_out_as_long_as_it_fits():
    script = [
        Draw("laplace", np.array([1.0, -1.0])),
        Draw("gaussian", np.zeros(3)),
    ]
    tap = Recorder(script)
    with listening(tap):
        own = streams(0)
        first = noise.laplace(own.noise, [2.0, 3.0])
        second = noise.gaussian(own.noise, 2)  # three were scripted
        third = noise.gaussian(own.noise, 3)
    np.testing.assert_array_equal(first, [2.0, -3.0])
    assert (second != 0).all() and (third != 0).all() and len(tap.draws) == 3


@pytest.mark.parametrize("stem", ["dp_cd", "dp_gcd", "dp_sgd", "dp_cd_priv"])
def test_neighbours_differ_in_one_record_which_may_be_extreme(stem):
    m = next(m for m in subjects(named(stem)) if m.real)
    for pair in pairs(m, 12) + odd_pairs(m):
        differ = (pair.first.X != pair.second.X).any(axis=1)
        differ |= pair.first.y != pair.second.y
        assert set(np.flatnonzero(differ)) <= {pair.position}
        if m.bound is not None:
            assert (
                np.abs(np.nan_to_num(pair.first.X[pair.position])).max()
                <= m.bound.max()
            )
    entries = np.concatenate(
        [pair.first.X[pair.position] for pair in odd_pairs(m)]
    )
    labels = np.array([pair.first.y[pair.position] for pair in odd_pairs(m)])
    for numbers in (entries, labels) if m.bound is None else (labels,):
        assert np.isnan(numbers).any() and np.isinf(numbers).any()
        assert 1e308 in numbers and 5e-324 in np.abs(numbers)


# --- shifts ---------------------------------------------------------------------------


def loud_pair(m, size=INFLUENTIAL):
    record = np.full(m.base.X.shape[1], size)
    sides = (m.base.replaced(0, (s * record, 1.0)) for s in (1, -1))
    return Pair(*sides, 0)


def test_shifts_are_those_of_the_proof():
    """DP-CD: the loudest neighbours need exactly 2 C_j / n, in units of the noise."""
    m = tight("dp_cd")
    coupling = Replay(m, loud_pair(m), 9).couple()
    assert [shift.step for shift in coupling.shifts] == [1, 2, 3, 4]
    for shift in coupling.shifts:
        assert shift.ratio == pytest.approx(1.0, rel=1e-9)
    np.testing.assert_allclose(coupling.other.weights, coupling.seen.weights)


def test_what_no_noise_repeats_is_infinite():
    m = tight("dp_cd")

    def follow(run):
        return (np.append(view, run.problem.A[0, 0]) for view in m.follow(run))

    coupling = Replay(replace(m, follow=follow), loud_pair(m), 1).couple()
    assert coupling.other is None and coupling.shifts[-1].ratio == np.inf


def test_margins_of_a_selection_are_its_sensitivity():
    shifts = Audit(tight("dp_gcd"), neighbours=6).margins
    assert max(shift.ratio for shift in shifts) == pytest.approx(1.0, abs=1e-5)


def test_an_entry_that_wins_without_its_noise_is_no_fault():
    """Noise inside a score's modulus may lower it: then more than one wins so."""
    every = [
        m for m in subjects(named("dp_gcd")) if m.calibration == "published"
    ]
    assert every and not any(Audit(m).sensitivity().caught for m in every)


def test_a_sketch_is_repeated_by_rows_of_the_same_gram_matrix():
    m = tight("hessian_mixing")
    zero = AuditData(0 * m.base.X, m.base.y)
    one, two = (
        np.array([INFLUENTIAL, INFLUENTIAL]),
        np.array([INFLUENTIAL, -INFLUENTIAL]),
    )
    pair = Pair(zero.replaced(0, (one, 1.0)), zero.replaced(0, (two, 1.0)), 0)
    coupling = Replay(m, pair, 3).couple()
    assert coupling.other is not None
    sketched = [
        s for s in coupling.shifts if isinstance(s.event, GaussianSketch)
    ]
    assert sketched and all(0.1 < shift.ratio <= 1 for shift in sketched)
    matrix = np.array([[2.0, 0.5], [0.5, 1.0]])
    np.testing.assert_allclose(square(isometric(matrix[None])[:, 0]), matrix)
