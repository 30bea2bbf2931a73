"""DP-SkGD: its sketches, what they reduce to, and what its releases cost."""

import numpy as np
import pytest

from conftest import PENALTIES, make_problem, raw_data
from dperm.core.erm.optimum import solve
from dperm.core.erm.problem import build
from dperm.core.lanes import Lanes, dp_cd, share
from dperm.core.privacy.accounting import epsilon
from dperm.core.privacy.calibration import calibrate
from dperm.core.privacy.mechanisms import streams
from dperm.solvers.lanes import dp_skgd
from dperm.solvers.lanes.dp_skgd import Options, Sketch, partition
from solvers import reference
from solvers.test_lanes import CASES, CLIPS, NOISE, STEPS

SKETCHES = {
    name: case.made for name, case in CASES.items() if case.module is dp_skgd
}  # fmt: skip


@pytest.fixture(params=SKETCHES)
def options(request):
    return SKETCHES[request.param]


def run(problem, options, count, module=dp_skgd, noise=NOISE, lanes=(STEPS, CLIPS)):
    made = module.Run(problem, Lanes(*lanes, noise), streams(3), options, total=count)
    made.advance(count)
    return made.weights


# --- sketches -------------------------------------------------------------------------


def test_a_sketch_draws_as_declared_and_its_constants_are_valid(options, loss):
    X, _ = raw_data(loss)
    problem, rng, draws = make_problem(loss), streams(1).sampling, 20_000
    sketch = Sketch(problem, options)
    if sketch.nice:
        sets = sketch.draw_nice(rng, draws)
    else:
        sets = [sketch.sets[i] for i in sketch.draw(rng, draws)]
    count = np.bincount(np.concatenate([*sets]), minlength=problem.p) / draws
    np.testing.assert_allclose(count, sketch.probability, atol=0.02)
    assert sketch.probability.sum() == pytest.approx(sketch.expected_size)
    H = problem.loss.curvature * X.T @ X / len(X)
    for S in {tuple(S) for S in sets}:
        slack = np.diag(sketch.smoothness[[*S]]) - H[np.ix_(S, S)]
        assert np.linalg.eigvalsh(slack)[0] >= -1e-12 * H.max()


@pytest.mark.parametrize("split", dp_skgd.PARTITIONS)
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_partitions(split, count):
    blocks = partition(make_problem("logistic"), Options(blocks=count, partition=split))
    assert sorted(np.concatenate(blocks)) == list(range(5)) and len(blocks) == count
    firsts = [block[0] for block in blocks]
    assert firsts == sorted(firsts)
    assert all((np.diff(block) > 0).all() for block in blocks)


def test_importance_follows_the_largest_constant():
    problem = make_problem("logistic")
    sketch = Sketch(problem, Options(probabilities="importance"))
    M = problem.smoothness
    np.testing.assert_allclose(sketch.q, M / M.sum())


def test_thresholds_reduce_to_those_of_dp_cd_and_to_the_clip():
    M = np.array([1.0, 4.0, 9.0])
    single = dp_skgd.shares(M, [np.array([j]) for j in range(3)])
    np.testing.assert_allclose(single, share(M))
    assert dp_skgd.shares(M, [np.arange(3)])[0] == 1.0


@pytest.mark.parametrize(
    ("options", "penalty", "said"),
    [
        ({"blocks": 6}, "l2", r"options\.blocks"),
        ({"sampling": "nice", "size": 6}, "l2", r"options\.size"),
        ({}, "l1", "composite"),
        ({}, "box", "composite"),
    ],
)
def test_sketches_that_do_not_fit_a_problem_are_refused(options, penalty, said):
    problem, lanes = make_problem("logistic", penalty), Lanes(STEPS, CLIPS, 1.0)
    with pytest.raises(ValueError, match=said):
        dp_skgd.Run(problem, lanes, streams(0), Options(**options))


# --- what it reduces to ---------------------------------------------------------------


@pytest.mark.parametrize("periods", [0, 5])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_single_coordinates_are_dp_cd_bit_for_bit(loss, penalty, periods):
    problem = make_problem(loss, penalty)
    found = run(problem, Options(composite=True, periods=periods), 200)
    plain = dp_cd.Options("uniform", periods=periods)
    np.testing.assert_array_equal(found, run(problem, plain, 200, dp_cd))


def test_as_many_blocks_as_coordinates_are_single_sampling(loss):
    problem = make_problem(loss, "l2")
    for probabilities in dp_skgd.PROBABILITIES:
        single = run(problem, Options(probabilities=probabilities), 100)
        for split in dp_skgd.PARTITIONS:
            options = Options(blocks=5, partition=split, probabilities=probabilities)
            np.testing.assert_array_equal(run(problem, options, 100), single)


def test_the_block_kernel_agrees_with_dp_cd_on_single_coordinates(loss, monkeypatch):
    """The two kernels clip differently written, not different, quantities."""
    problem = make_problem(loss, "l2")
    expected = run(problem, dp_cd.Options("uniform"), 100, dp_cd)
    monkeypatch.setattr(Sketch, "single", False)
    found = run(problem, Options(), 100)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_full_sampling_is_noisy_gradient_descent_with_a_step_matrix(loss):
    """Full batch, every coordinate, step gamma / (factor M_j), one clip."""
    X, y = raw_data(loss)
    factor = reference.valid_factor(X, np.arange(5))
    gamma = STEPS[1] / (factor * reference.smoothness(loss, X))
    noise, w = streams(3).noise, np.zeros(5)
    for _ in range(30):
        G = reference.phi_prime(loss, X, y, w)[:, None] * X
        mean = reference.clipped(G, CLIPS[1]).mean(axis=0)
        release = mean + NOISE * 2 * CLIPS[1] / len(X) * noise.standard_normal(5)
        w = (w - gamma * release) / (1 + 0.1 * gamma)
    found = run(make_problem(loss, "l2"), Options(blocks=1), 30)
    np.testing.assert_allclose(found[1], w, rtol=1e-10, atol=1e-12)


def test_full_and_nice_of_all_coordinates_agree(loss):
    problem = make_problem(loss, "l2")
    full = run(problem, Options(blocks=1), 20)
    nice = run(problem, Options(sampling="nice", size=5), 20)
    np.testing.assert_allclose(nice, full, rtol=1e-12)


def test_full_sampling_diverges_with_the_constants_of_single_coordinates():
    """The constants as the paper takes them."""
    X, _ = raw_data("least_squares")
    X = X + 20.0 * np.random.default_rng(1).standard_normal((len(X), 1))
    problem = build("x", X, X @ np.ones(5), "least_squares", PENALTIES["none"])
    printed, start = np.zeros(5), problem.objective(np.zeros(5))[0]
    for _ in range(60):
        printed -= problem.gradient(printed) / problem.smoothness
    lanes = (np.ones(1), np.full(1, np.inf))
    valid = run(problem, Options(blocks=1), 60, noise=0.0, lanes=lanes)
    assert not problem.objective(printed)[0] < 1e6 * start
    assert problem.objective(valid)[0] < start


def test_without_noise_every_sampling_finds_the_optimum(loss, options):
    if options.periods:
        pytest.skip("the mean of all iterates is behind the last")
    problem, lanes = make_problem(loss), (np.ones(1), np.full(1, np.inf))
    found = run(problem, options, 20000, noise=0.0, lanes=lanes)
    best = solve(problem).value
    np.testing.assert_allclose(problem.objective(found)[0], best, rtol=1e-9)


# --- what its releases cost -----------------------------------------------------------


@pytest.mark.parametrize("calibration", ["paper", "strict"])
def test_the_ledger_against_dp_accounting(calibration):
    """T K releases of sigma 2 C_S / n cost what dp-accounting says, by RDP and PLD."""
    from dp_accounting import dp_event
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    problem, count, delta = make_problem("logistic", "l2"), 24, 1e-5
    options = Options(blocks=2, probabilities="importance")
    found = calibrate(
        lambda sigma: dp_skgd.ledger(problem, count, sigma, options, calibration),
        1.0, delta, calibration,
    )  # fmt: skip
    release = dp_event.GaussianDpEvent(found.noise_multiplier)
    pld = PLDAccountant(value_discretization_interval=1e-4).compose(release, count)
    rdp = RdpAccountant(np.linspace(1.1, 100, 3000)).compose(release, count)
    ledger = dp_skgd.ledger(problem, count, found.noise_multiplier, options)
    expected = pld.get_epsilon(delta)
    assert epsilon(ledger, delta, "strict") == pytest.approx(expected, rel=2e-3)
    # dp-accounting converts by a tighter formula than Proposition 3 of Mironov 2017
    assert rdp.get_epsilon(delta) < epsilon(ledger, delta, "paper")
    assert found.claimed_epsilon == pytest.approx(1.0, rel=1e-6)


def test_the_noise_of_theorem_4_1_is_safe_and_loose():
    """Simplified from a Renyi curve that asks for less, and exactly for less still."""
    problem, delta = make_problem("logistic", "l2"), 1e-6

    def ledger(noise, count):
        return dp_skgd.ledger(problem, count, noise, Options())

    for count in (1, 30, 1000):
        printed = float(np.sqrt(3 * count * np.log(1 / delta)))  # sigma_U n / (2 L_U)
        paper, strict = (
            calibrate(lambda s, k=count: ledger(s, k), 1.0, delta, kind)
            for kind in ("paper", "strict")
        )
        least = strict.noise_multiplier
        assert 0.6 * printed < least < paper.noise_multiplier < 0.9 * printed
        stated = ledger(printed, count)
        assert epsilon(stated, delta, "strict") < epsilon(stated, delta, "paper") < 1
