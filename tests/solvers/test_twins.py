"""Every kernel agrees with its numpy twin on the same stream, to 1e-10."""

import numpy as np
import pytest

from conftest import PENALTIES, make_problem, raw_data
from dperm.core.lanes import Lanes, dp_cd
from dperm.core.privacy.mechanisms import streams
from dperm.solvers.lanes import dp_cd_priv, dp_sgd
from solvers import twins

STEPS = np.array([0.1, 0.5, 1.0, 1.0])
CLIPS = np.array([0.01, 0.3, 2.0, 1e4])


def run(module, problem, options, count, sigma=0.7, lanes=(STEPS, CLIPS), seed=3):
    chosen = Lanes(*lanes, sigma)
    run = module.Run(problem, chosen, streams(seed), options, total=count)
    for part in (count // 3, count - count // 3):  # chunks must not matter
        run.advance(part)
    return run.weights


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("sampling", dp_cd.SAMPLINGS)
def test_dp_cd(loss, penalty, sampling):
    problem = make_problem(loss, penalty)
    found = run(dp_cd, problem, dp_cd.Options(sampling=sampling), 40)
    for lane, (step, clip) in enumerate(zip(STEPS, CLIPS, strict=True)):
        expected = twins.dp_cd(*raw_data(loss), loss, PENALTIES[penalty], step, clip,
                               0.7, 40, streams(3), sampling)  # fmt: skip
        np.testing.assert_allclose(found[lane], expected, rtol=1e-10, atol=1e-10)


def test_dp_cd_with_equal_thresholds(loss):
    problem = make_problem(loss)
    found = run(dp_cd, problem, dp_cd.Options(thresholds="equal"), 40)
    setting = (STEPS[1], CLIPS[1], 0.7, 40, streams(3))
    expected = twins.dp_cd(*raw_data(loss), loss, PENALTIES["elastic"], *setting,
                           thresholds="equal")  # fmt: skip
    np.testing.assert_allclose(found[1], expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("count", [40, 42])  # 42 steps do not divide by 4
def test_dp_cd_periodic_averages(loss, count):
    problem = make_problem(loss)
    found = run(dp_cd, problem, dp_cd.Options(sampling="uniform", periods=4), count)
    setting = (STEPS[1], CLIPS[1], 0.7, count, streams(3), "uniform")
    expected = twins.dp_cd(
        *raw_data(loss), loss, PENALTIES["elastic"], *setting, periods=4
    )
    np.testing.assert_allclose(found[1], expected, rtol=1e-10, atol=1e-10)


def test_dp_cd_priv_is_dp_cd_with_noisy_constants(loss):
    problem = make_problem(loss)
    options = dp_cd_priv.Options()
    found = run(dp_cd_priv, problem, options, 40)
    X, y = raw_data(loss)
    bound = (0.25 if loss == "logistic" else 1.0) * (2 * np.abs(X).max(axis=0)) ** 2
    scale = 2 * bound * 5 / (len(X) * 0.1 * problem.epsilon)
    noisy = twins.smoothness(loss, X) + streams(3).smoothness.laplace(0.0, scale)
    M = np.maximum(noisy, scale)
    expected = twins.dp_cd(X, y, loss, PENALTIES["elastic"], STEPS[1], CLIPS[1], 0.7,
                           40, streams(3), M=M)  # fmt: skip
    np.testing.assert_allclose(found[1], expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("batch", [1, 3])
def test_dp_sgd(loss, penalty, batch):
    problem = make_problem(loss, penalty)
    lanes = (0.1 * STEPS, CLIPS)
    found = run(dp_sgd, problem, dp_sgd.Options(batch=batch), 50, lanes=lanes)
    for lane, (step, clip) in enumerate(zip(*lanes, strict=True)):
        expected = twins.dp_sgd(*raw_data(loss), loss, PENALTIES[penalty], step, clip,
                                0.7, 50, streams(3), batch)  # fmt: skip
        np.testing.assert_allclose(found[lane], expected, rtol=1e-9, atol=1e-10)


def test_a_record_of_zeros_is_harmless():
    X, y = raw_data("least_squares")
    X[3] = 0.0
    from dperm.core.erm.problem import build

    problem = build("zero", X, y, "least_squares", PENALTIES["none"])
    found = run(dp_sgd, problem, dp_sgd.Options(), 200, lanes=(0.1 * STEPS, CLIPS))
    expected = twins.dp_sgd(X, y, "least_squares", PENALTIES["none"], 0.1 * STEPS[1],
                            CLIPS[1], 0.7, 200, streams(3))  # fmt: skip
    np.testing.assert_allclose(found[1], expected, rtol=1e-9, atol=1e-10)


def test_dp_sgds_ledger_has_batches_of_all_records():
    problem = make_problem("logistic")
    (event,) = dp_sgd.ledger(problem, 7, 2.0, dp_sgd.Options(batch=3)).events
    assert (event.count, event.batch, event.population) == (7, 3, problem.n)
    assert event.noise_multiplier == 2.0
