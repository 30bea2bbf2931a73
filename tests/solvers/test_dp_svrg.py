"""DP-SVRG: its twin, its release, its noise, its ledger."""

import math
from dataclasses import replace

import numpy as np
import pytest

from conftest import PENALTIES, make_problem, raw_data
from dperm.core.lanes import Lanes
from dperm.core.privacy.calibration import calibrate
from dperm.core.privacy.ledger import Gaussian, SampledGaussian
from dperm.core.privacy.mechanisms import streams
from dperm.solvers.lanes import dp_svrg
from dperm.solvers.lanes.dp_svrg import Options
from solvers import checks, twins

STEPS, CLIPS = np.array([0.01, 0.05, 0.1]), np.array([0.01, 0.3, 1e4])


def clipped(g, clip):
    norm = np.linalg.norm(g)
    return g * clip / norm if norm > clip else g


def twin(X, y, loss, penalty, step, clip, sigma, count, streams, inner=1.0):
    n, p = X.shape
    m = max(1, round(inner * n))
    curvature = 0.25 if loss == "logistic" else 1.0
    gamma = step / (curvature * np.linalg.norm(X, 2) ** 2 / n)
    w, iterates = np.zeros(p), []

    def gradient(i, at):
        return twins.phi_prime(loss, X[i], y[i], at) * X[i]

    for k in range(count):
        if k % m == 0:
            snapshot = w.copy()
            mu = np.mean([clipped(gradient(i, snapshot), clip) for i in range(n)], 0)
            scale = n / math.sqrt(m) * sigma * 2 * clip / n
            mu = mu + scale * streams.noise.standard_normal(p)
        i = streams.sampling.integers(0, n)
        change = clipped(gradient(i, w) - gradient(i, snapshot), clip)
        eta = sigma * 2 * clip * streams.noise.standard_normal(p)
        w = twins.prox(w - gamma * (change + eta + mu), gamma, penalty)
        iterates.append(w)
        if len(iterates) == m:
            w, iterates = np.mean(iterates, axis=0), []
    return w


def run(problem, options, count, sigma=0.7):
    lanes = Lanes(STEPS, CLIPS, sigma)
    found = dp_svrg.Run(problem, lanes, streams(3), options, total=count)
    for part in (count // 3, count - count // 3):
        found.advance(part)
    return found.weights


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("inner", [0.25, 1.0])
def test_the_kernel_agrees_with_its_twin(loss, penalty, inner):
    found = run(make_problem(loss, penalty), Options(inner), 130)
    for lane, (step, clip) in enumerate(zip(STEPS, CLIPS, strict=True)):
        expected = twin(*raw_data(loss), loss, PENALTIES[penalty], step, clip, 0.7,
                        130, streams(3), inner)  # fmt: skip
        np.testing.assert_allclose(found[lane], expected, rtol=1e-9, atol=1e-10)


def test_a_record_of_zeros_is_harmless():
    from dperm.core.erm.problem import build

    X, y = raw_data("least_squares")
    X[3] = 0.0
    problem = build("zero", X, y, "least_squares", PENALTIES["none"])
    found = run(problem, Options(), 150)
    assert np.isfinite(found).all()


def first_noise(options, seed, problem, kind=dp_svrg.Run):
    """Noise of the first step of an epoch in units of step / beta 2 C sigma."""
    clip, sigma = 0.8, checks.SIGMA
    weights = []
    for multiplier in (sigma, 0.0):
        lanes = Lanes(np.ones(1), np.full(1, clip), multiplier)
        one = kind(problem, lanes, streams(seed), options, total=1)
        one.advance(1)
        weights.append(one.weights[0])
    scale = 2 * clip * sigma / problem.global_smoothness
    return (weights[0] - weights[1]) / scale


def noise_is_declared(kind=dp_svrg.Run, inner=0.5):
    """First step: eta and eta' / sqrt(m) of equal units, so variance 1 + 1 / m."""
    problem = checks.smooth_problem()
    m = round(inner * problem.n)
    seen = [first_noise(Options(inner), seed, problem, kind) for seed in range(400)]
    expected = 1 + 1 / m
    count = np.size(seen)
    assert abs(np.var(seen) / expected - 1) < 5 * math.sqrt(2 / count)


def test_noise_has_the_declared_scale():
    noise_is_declared()
    noise_is_declared(inner=0.02)  # an epoch of one step: the full gradient's noise


class HalfNoise(dp_svrg.Run):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.constants[:, 2] /= 2


class NoFullNoise(dp_svrg.Run):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.constants[:, 5] = 0


class NoClip(dp_svrg.Run):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.constants[:, 1] *= 3


def test_broken_noise_is_caught():
    with pytest.raises(AssertionError):
        noise_is_declared(HalfNoise)
    with pytest.raises(AssertionError):
        noise_is_declared(NoFullNoise, inner=0.02)


def sensitivity_is_kept(kind):
    """Full release: 2 C / n; one record's difference of gradients: norm C at most."""
    X, y = raw_data("logistic")
    rng, clip, full, inner = np.random.default_rng(5), 0.05, 0.0, 0.0
    problem = checks.smooth_problem(X, y)
    lanes = Lanes(np.ones(1), np.full(1, clip), 0.0)
    beta, p = problem.global_smoothness, problem.p
    for _ in range(60):
        Z, t = X.copy(), y.copy()
        Z[0] = rng.standard_normal(5) * 10.0 ** rng.uniform(-1, 3)
        t[0] = rng.choice([-1.0, 1.0])
        other = replace(checks.smooth_problem(Z, t), public=problem)
        mus = []
        for one in (problem, other):
            run = kind(one, lanes, streams(0), Options(), total=1)
            run._begin_epoch()
            mus.append(run.tiles[0, 2 * p : 3 * p, 0] * beta)
        full = max(full, np.linalg.norm(mus[0] - mus[1]) / (2 * clip / problem.n))
        run = kind(other, lanes, streams(0), Options(), total=1)
        run._begin_epoch()
        run.tiles[0, :p, 0] = 10 * rng.standard_normal(p)
        run.tiles[0, 2 * p : 3 * p] = 0.0
        run._batches = lambda count: np.zeros((count, 1), dtype=np.int64)
        before = run.weights[0].copy()
        run._steps(1)
        inner = max(inner, np.linalg.norm(run.weights[0] - before) * beta / clip)
    assert 0.5 < full <= 1 + 1e-9
    assert 0.5 < inner <= 1 + 1e-9


def test_sensitivities_over_neighbours():
    sensitivity_is_kept(dp_svrg.Run)


def test_a_wrong_clip_is_caught():
    with pytest.raises(AssertionError):
        sensitivity_is_kept(NoClip)


def test_the_ledger_counts_epochs_and_steps():
    problem = make_problem("logistic")
    full, inner = dp_svrg.ledger(problem, 130, 0.7, Options(0.5)).events
    assert isinstance(full, Gaussian) and isinstance(inner, SampledGaussian)
    assert full.count == 5 and inner.count == 130  # epochs of 30 steps
    assert full.noise_multiplier == pytest.approx(0.7 * 60 / math.sqrt(30))
    assert (inner.batch, inner.population, inner.noise_multiplier) == (1, 60, 0.7)


@pytest.mark.parametrize("kind", ["paper", "strict"])
def test_calibrated_to_the_target(kind):
    problem, options = make_problem("logistic"), Options()
    found = calibrate(lambda s: dp_svrg.ledger(problem, 300, s, options), 1.0, 1e-4,
                      kind)  # fmt: skip
    assert 0.95 < found.claimed_epsilon <= 1.0


def test_an_epoch_reads_n_plus_m_records():
    problem = make_problem("logistic")
    assert dp_svrg.steps(problem, 4, Options()) == 120
    assert dp_svrg.steps(problem, 3, Options(0.5)) == 60
    with pytest.raises(ValueError, match=r"options\.inner"):
        Options(0.0)


def test_lanes_do_not_touch():
    checks.lanes_do_not_touch(checks.solver(dp_svrg, Options(0.2)))


def test_noise_is_fresh():
    checks.noise_is_fresh(checks.solver(dp_svrg, Options()))


def test_workers_and_dropped_lanes_do_not_matter(loss):
    problem = make_problem(loss)
    lanes = Lanes(np.linspace(0.01, 1, 700), np.linspace(0.1, 5, 700), 0.5)
    found = []
    for workers in (1, 3):
        run = dp_svrg.Run(problem, lanes, streams(2), Options(0.2), workers=workers)
        run.advance(10)
        if workers == 3:
            run.keep(np.arange(700) % 3 == 0)
        run.advance(15)
        found.append(run.weights)
    np.testing.assert_array_equal(found[0][::3], found[1])


def test_without_noise_it_finds_the_optimum(loss):
    from dperm.core.erm.optimum import solve

    problem = make_problem(loss, "l2")
    lanes = Lanes(np.full(1, 0.05), np.full(1, np.inf), 0.0)
    run = dp_svrg.Run(problem, lanes, streams(0), Options(2.0))
    run.advance(120 * 400)
    best = solve(problem).value
    np.testing.assert_allclose(problem.objective(run.weights)[0], best, rtol=1e-6)
