"""What a guarantee says, and constants that no record moves."""

from dataclasses import replace

import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism
from scipy import sparse

from dperm.estimators.estimators import SIGNED, with_constant
from dperm.estimators.guarantee import Guarantee, calibrated
from dperm.estimators.methods import method
from dperm.privacy.accounting import true_epsilon
from dperm.privacy.events import SMOOTHNESS, Gaussian, Ledger, N
from dperm.problems.losses import bounded
from dperm.problems.penalties import Penalty
from dperm.problems.problem import build
from dperm.solvers.scales import (
    column_scales,
    declared,
    is_declared,
    label_scale,
)

EVENT = Gaussian(1.0, 4.0, 3, "", "")


@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_noise_is_the_least_that_meets_a_target_and_the_cost_is_said(delta):
    exact = from_gaussian_mechanism(
        4.0 / 3**0.5, value_discretization_interval=1e-5
    )
    epsilon = exact.get_epsilon_for_delta(delta)
    found = calibrated(
        lambda z: Ledger((replace(EVENT, scale=z),)), epsilon, delta
    )
    assert found.noise_multiplier == pytest.approx(4.0, rel=1e-3)
    one = Guarantee(found.ledger, delta, (N,), found.true_epsilon)
    assert one.high <= epsilon
    assert f"at most {one.high:.6g} at delta {delta:.3g}" in str(one)


def test_what_is_public_is_said():
    ledger = Ledger((EVENT,), given=(N,))
    assert Guarantee(ledger, 1e-6, (N,), 1.0).unconditional
    read = Guarantee(ledger, 1e-6, (N, SMOOTHNESS), 1.0)
    assert not read.unconditional and str(read).endswith(
        f"given {N}, {SMOOTHNESS}"
    )


def test_noise_is_found_again_where_other_releases_look_alike_at_first():
    """They agree at a multiplier of 1, and not where the noise of the first is."""

    def releases(count):
        return lambda noise: Ledger(
            (Gaussian(1.0, noise, 1 if noise == 1.0 else count, "", ""),)
        )

    one, four = (calibrated(releases(count), 0.5, 1e-6) for count in (1, 4))
    assert four.noise_multiplier == pytest.approx(
        2 * one.noise_multiplier, rel=1e-6
    )
    assert calibrated(releases(4), 0.5, 1e-6) is four
    for found in (one, four):
        assert true_epsilon(found.ledger, 1e-6) <= 0.5


@pytest.mark.parametrize("loss", bounded())
@pytest.mark.parametrize("make", [np.asarray, sparse.csc_array])
def test_declared_constants_are_what_was_declared(loss, make):
    """Whatever the records: also those of clips in units of them."""
    scales, label, rng = (
        np.array([0.5, 2.0, 1.0]),
        3.0,
        np.random.default_rng(0),
    )
    clips = []
    for size in (1e-3, 1.0, 1e3):
        X = np.array(size * rng.standard_normal((30, 2)))
        y = np.sign(X[:, 0]) if loss in SIGNED else 10 * X[:, 0]
        given = (
            "a",
            with_constant(make(X), 1.0),
            y,
            loss,
            Penalty(),
            1.0,
            1e-5,
        )
        problem = declared(build(*given), scales, label)
        assert is_declared(problem) and problem.given == (N,)
        assert column_scales(problem) == pytest.approx(scales)
        known = 1.0 if loss in SIGNED else label
        assert label_scale(problem) == pytest.approx(known)
        beta = problem.loss.curvature * (scales**2).sum()
        assert problem.global_smoothness == pytest.approx(beta)
        on = method("dp_gd").on(problem)
        ledger = on.ledger({}, 1.0)
        assert on.public_information(ledger) == (N,)
        clips.append(ledger.events[0].sensitivity)
    assert len({*clips}) == 1


def test_what_other_data_declare_is_read_off_them():
    """A neighbour with the constants of another data set has no declared ones."""
    rng = np.random.default_rng(0)
    first, second = (
        build("a", rng.standard_normal((9, 2)), rng.standard_normal(9),
                          "least_squares", Penalty(), 1.0, 1e-5)
        for _ in range(2)
    )  # fmt: skip
    second = replace(second, public=first)
    assert not is_declared(second) and label_scale(second) == label_scale(
        first
    )
    on = method("dp_gd").on(second)
    assert {SMOOTHNESS} < {*on.public_information(on.ledger({}, 1.0))}
