"""DP-GCD: the twin of each rule, the selection's noise, and what it costs."""

import numpy as np
import pytest
from scipy import stats

from conftest import PENALTIES, make_problem, raw_data
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import build
from dperm.core.lanes import Lanes
from dperm.core.privacy.mechanisms import streams
from dperm.solvers.lanes import dp_gcd
from solvers import checks, twins

STEPS = np.array([0.1, 0.5, 1.0, 1.0, 0.7])
CLIPS = np.array([0.01, 0.3, 2.0, 1e4, 0.05])
MULTIPLIER = 0.4


def run(problem, options, calibration, count=12, seed=3, noise=MULTIPLIER):
    lanes = Lanes(STEPS, CLIPS, noise, calibration)
    run = dp_gcd.Run(problem, lanes, streams(seed), options)
    for part in (count // 3, count - count // 3):
        run.advance(part)
    return run.weights


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("rule", dp_gcd.RULES)
@pytest.mark.parametrize("calibration", ["paper", "strict"])
def test_twin_of_each_rule(loss, penalty, rule, calibration):
    problem = make_problem(loss, penalty)
    found = run(problem, dp_gcd.Options(rule=rule), calibration)
    for lane, (step, clip) in enumerate(zip(STEPS, CLIPS, strict=True)):
        expected = twins.dp_gcd(
            *raw_data(loss), loss, PENALTIES[penalty], step, clip, MULTIPLIER, 12,
            streams(3), rule, inside=calibration == "paper",
        )  # fmt: skip
        np.testing.assert_allclose(found[lane], expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("noise", ["gumbel", "exponential"])
@pytest.mark.parametrize("calibration", ["paper", "strict"])
def test_twin_of_each_noise(loss, noise, calibration):
    problem = make_problem(loss, "l1")
    found = run(problem, dp_gcd.Options(noise=noise), calibration)
    for lane, (step, clip) in enumerate(zip(STEPS, CLIPS, strict=True)):
        expected = twins.dp_gcd(
            *raw_data(loss), loss, PENALTIES["l1"], step, clip, MULTIPLIER, 12,
            streams(3), "GS-r", inside=False, noise=noise,
        )  # fmt: skip
        np.testing.assert_allclose(found[lane], expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("penalty", ["none", "l2"])
def test_rules_agree_without_an_l1_norm_or_a_box(penalty):
    X, y = raw_data("logistic")
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    problem = build("even", X, y, "logistic", PENALTIES[penalty], 1.0, 1e-4)
    found = [run(problem, dp_gcd.Options(rule), "paper") for rule in dp_gcd.RULES]
    if penalty == "none":
        np.testing.assert_allclose(found[0], found[1], rtol=1e-9)
        np.testing.assert_allclose(found[0], found[2], rtol=1e-9)
    else:  # even M: the scores differ by a common factor
        np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


@pytest.mark.parametrize("rule", dp_gcd.RULES)
@pytest.mark.parametrize("penalty", PENALTIES)
def test_scores_are_lipschitz_in_the_gradient(rule, penalty):
    """The constants that the sensitivity D rests on: kept, and attained."""
    rng, psi = np.random.default_rng(0), PENALTIES[penalty]
    reached = []
    for _ in range(2000):
        M, w = np.exp(rng.normal()), rng.choice([0.0, rng.normal()])
        w = float(np.clip(w, psi.lower, psi.upper))
        g, other = rng.normal(size=2)
        scores = [twins.greedy_score(rule, x, w, M, psi) for x in (g, other)]
        flat = dp_gcd.steepest(one_column(M, psi), rule)
        limit = flat * abs(g - other) / np.sqrt(M)
        moved = abs(np.subtract(*scores))
        assert moved <= limit + 1e-9
        reached.append(moved / limit)
    assert max(reached) > 0.999


def one_column(M, penalty):
    """A problem of one record and one feature, with smoothness M."""
    return build("one", np.full((1, 1), np.sqrt(M)), np.ones(1), "least_squares",
                 penalty)  # fmt: skip


# --- the noise itself -----------------------------------------------------------------

CLIP, COUNT = 0.3, 300


def level_problem(p=40, l2=0.0):
    """All columns equal: the scores are equal too, and the noise alone decides."""
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal(50), rng.choice([-1.0, 1.0], 50)
    columns = np.tile(x[:, None], (1, p))
    return build("level", columns, y, "logistic", Penalty(l2=l2))


def selections(start, problem, calibration, noise=1.0, count=COUNT):
    """Coordinates selected in the first iteration, over seeds."""
    found = []
    for seed in range(count):
        lanes = Lanes(np.ones(1), np.full(1, CLIP), noise, calibration)
        found.append(start(problem, lanes, streams(seed)))
    return found


def selection_noise_is_declared(run_class, noise, calibration):
    """The noise on derivatives or scores, recovered from the run, is what it should be.

    The run's scales times its draws, in the unit of the scores' sensitivity
    2 C / (n sqrt(sum M)) or of the derivatives' 2 C_j / n, must have the distribution
    of unit noise times the multiplier, independent over coordinates and iterations.
    """
    problem, multiplier = level_problem(), 1.7
    options = dp_gcd.Options(noise=noise)
    lanes = Lanes(np.ones(1), np.full(1, CLIP), multiplier, calibration)
    run = run_class(problem, lanes, streams(0), options)
    draws = np.stack([run._draw()[0] for _ in range(100)])
    inside, outside = run._selection_scales()
    n, M = problem.n, problem.smoothness
    D = 2 * CLIP / (n * np.sqrt(M.sum()))
    if calibration == "paper" and noise == "laplace":
        bounds = CLIP * np.sqrt(M / M.sum())
        unit = draws * inside[0] * run.share / (2 * bounds / n)
        assert outside[0] == 0
    else:
        unit = draws * outside[0] / D
        assert inside[0] == 0
    law = {"laplace": stats.laplace, "gumbel": stats.gumbel_r,
           "exponential": stats.expon}[noise]  # fmt: skip
    assert stats.kstest(unit.ravel() / multiplier, law.cdf).pvalue > 1e-4
    assert len(np.unique(draws)) == draws.size


KINDS = [(noise, kind) for noise in dp_gcd.NOISES for kind in ("paper", "strict")]


@pytest.mark.parametrize(("noise", "calibration"), KINDS)
def test_selection_noise_has_the_declared_scale(noise, calibration):
    selection_noise_is_declared(dp_gcd.Run, noise, calibration)


@pytest.mark.parametrize("rule", dp_gcd.RULES)
def test_selection_noise_follows_the_steepest_score(rule):
    """Equal M, a ridge of 1: the constants of Appendix C by hand."""
    problem = level_problem(l2=1.0)
    M = problem.smoothness[0]
    slope = {"GS-s": 1 / np.sqrt(M), "GS-r": np.sqrt(M) / (M + 1), "GS-q":
             1 / np.sqrt(M + 1)}[rule]  # fmt: skip
    lanes = Lanes(np.ones(1), np.full(1, CLIP), 1.0, "strict")
    run = dp_gcd.Run(problem, lanes, streams(0), dp_gcd.Options(rule=rule))
    derivative = 2 * CLIP / np.sqrt(problem.p) / problem.n
    assert run._selection_scales()[1] == pytest.approx(derivative * slope)


class NoSelectionNoise(dp_gcd.Run):
    def _draw(self):
        selection, value = super()._draw()
        return 0.0 * selection, value


class HalfSelectionNoise(dp_gcd.Run):
    def _draw(self):
        selection, value = super()._draw()
        return 0.5 * selection, value


class OneDrawForAll(dp_gcd.Run):
    def _draw(self):
        selection, value = super()._draw()
        return np.full_like(selection, selection[0]), value


@pytest.mark.parametrize(("noise", "calibration"), KINDS)
@pytest.mark.parametrize(
    "broken", [NoSelectionNoise, HalfSelectionNoise, OneDrawForAll]
)
def test_broken_selection_noise_is_caught(broken, noise, calibration):
    with pytest.raises(AssertionError):
        selection_noise_is_declared(broken, noise, calibration)


def kernel_follows_the_noise(monkeypatch=None, factor=1.0):
    """Two coordinates, scores apart by a known gap: how often the lower one wins.

    With Laplace noise b on both scores, P = e^(-x) (1/2 + x/4) at a gap of x b.
    """
    problem, wins, count = level_problem(p=2), 0, 4000
    M, D = (
        problem.smoothness,
        2 * CLIP / (problem.n * np.sqrt(problem.smoothness.sum())),
    )
    A = problem.A.copy()
    A[:, 1] *= 0.2  # a smaller derivative, but the same M is kept
    object.__setattr__(problem, "A", A)
    gradient = np.clip(A * -0.5, *(s * CLIP * np.sqrt(M / M.sum()) for s in (-1, 1)))
    scores = np.abs(gradient.mean(axis=0)) / np.sqrt(M)
    multiplier = (scores[0] - scores[1]) / D / 1.5
    run = dp_gcd.Run(problem, Lanes(np.ones(1), np.full(1, CLIP), multiplier, "strict"),
                     streams(1), dp_gcd.Options())  # fmt: skip
    run.multiplier *= factor
    for _ in range(count):
        run.weights[:], run.margins[:] = 0.0, problem.offset
        run.advance(1)
        wins += run.chosen[0] == 1
    expected = np.exp(-1.5) * (0.5 + 1.5 / 4)
    assert abs(wins / count - expected) < 4 * np.sqrt(expected / count)


def test_the_kernel_adds_the_noise_to_the_score():
    kernel_follows_the_noise()


@pytest.mark.parametrize("factor", [0.0, 0.5])
def test_the_kernel_with_less_noise_is_caught(factor):
    with pytest.raises(AssertionError):
        kernel_follows_the_noise(factor=factor)


# --- privacy of the selection ---------------------------------------------------------


def moving_problem(level, p=1001, l1=0.5):
    """Coordinate 0 rests deep in the flat part; all other derivatives are ``level``."""
    A = np.full((1, p), 1.0)
    A[0, 0] = 0.0
    problem = build("moving", A, np.array([-level]), "least_squares", Penalty(l1=l1))
    object.__setattr__(problem, "smoothness", np.ones(p))
    return problem


def probability_of_first(problem, calibration, pure, trials):
    """How often coordinate 0 is taken at w = 0, over fresh noise."""
    sensitivity = 0.01  # of each derivative and score: 2 C_j / n with n = 1
    clip = sensitivity / 2 * np.sqrt(problem.p)
    wide = Lanes(np.full(1, 1e-9), np.full(1, clip), 1 / pure, calibration)
    run = dp_gcd.Run(problem, wide, streams(11), dp_gcd.Options())
    run.clip = np.full(1, 1e9)  # the derivatives are already as they should be
    run._scales = lambda: np.full(1, sensitivity / pure * np.sqrt(problem.p))
    wins = 0
    for _ in range(trials):
        run.weights[:], run.margins[:] = 0.0, problem.offset
        run.advance(1)
        wins += run.chosen[0] == 0
    return wins / trials


def privacy_loss(calibration, trials=40_000, pure=0.3):
    """log P(first | D) / P(first | D'): a thousand derivatives move by one sensitivity.

    The level is such that 4.6 of them are expected to leave the flat part of the score.
    """
    b = 0.01 / pure
    level = 0.5 - b * np.log(1000 / 2 / 4.6)
    found = [
        probability_of_first(moving_problem(at), calibration, pure, trials)
        for at in (level, level + 0.01)
    ]
    return np.log(found[0] / found[1]), found


def test_noise_inside_an_l1_rule_loses_more_than_two_epsilon():
    """Slip 1c: 0.0101 and 0.0020, a loss of about 1.6 where 0.6 is claimed."""
    loss, (first, second) = privacy_loss("paper")
    assert first == pytest.approx(0.0101, abs=0.002)
    assert second == pytest.approx(0.0020, abs=0.0009)
    assert 1.0 < loss < 2.4
    exact = 4.6 * (np.exp(0.3) - 1)  # P = exp(-c) turns into exp(-c exp(epsilon'))
    assert exact == pytest.approx(1.6, abs=0.02)


def test_noise_on_the_score_does_not():
    """The same data, noise on the score: within 2 epsilon', up to sampling error."""
    loss, (first, second) = privacy_loss("strict")
    error = np.sqrt(1 / (first * 40_000) + 1 / (second * 40_000))
    assert abs(loss) < 0.6 + 3 * error


@pytest.mark.parametrize(
    ("penalty", "rule", "standard", "sound"),
    [
        ("none", "GS-r", False, True),
        ("l2", "GS-r", True, True),
        ("l2", "GS-r", False, False),
        ("l2", "GS-s", False, True),
        ("l1", "GS-r", True, False),
        ("l1", "GS-q", True, False),
        ("box", "GS-s", True, False),
    ],
)
def test_where_a_bound_exists(penalty, rule, standard, sound):
    X, y = raw_data("logistic")
    X = X / np.sqrt((X**2).mean(axis=0)) if standard else X
    problem = build("x", X, y, "logistic", PENALTIES[penalty], 1.0, 1e-4)
    options = dp_gcd.Options(rule=rule)
    assert dp_gcd.ledger(problem, 3, 20.0, options, "paper").events[0].sound == sound
    assert dp_gcd.ledger(problem, 3, 20.0, options, "strict").events[0].sound
    other = dp_gcd.Options(rule=rule, noise="gumbel")
    assert dp_gcd.ledger(problem, 3, 20.0, other, "paper").events[0].sound


# --- the contract ---------------------------------------------------------------------

START = checks.solver(dp_gcd, dp_gcd.Options())


def released(start, seed, noise, calibration):
    """Released less exact derivative of the chosen coordinate, in sensitivities."""
    X, y = raw_data("logistic")
    problem = build("x", X, y, "logistic", Penalty())
    run = start(problem, Lanes(np.ones(1), np.full(1, 0.8), noise, calibration),
                streams(seed), dp_gcd.Options())  # fmt: skip
    run.advance(1)
    j, M = run.chosen[0], problem.smoothness
    C = 0.8 * np.sqrt(M[j] / M.sum())
    exact = np.clip(-0.5 * problem.A[:, j], -C, C).mean()
    return (-run.weights[0, j] * M[j] - exact) / (2 * C / problem.n)


def value_noise_is_declared(run_class):
    noise = [released(run_class, seed, 1.7, "strict") / 1.7 for seed in range(800)]
    assert stats.kstest(noise, "laplace").pvalue > 1e-4


def test_value_noise_has_the_declared_scale():
    value_noise_is_declared(dp_gcd.Run)


class HalfValueNoise(dp_gcd.Run):
    def _draw(self):
        selection, value = super()._draw()
        return selection, value / 2


class SameValueNoise(dp_gcd.Run):
    def _draw(self):
        return super()._draw()[0], 1.0


@pytest.mark.parametrize("broken", [HalfValueNoise, SameValueNoise])
def test_broken_value_noise_is_caught(broken):
    with pytest.raises(AssertionError):
        value_noise_is_declared(broken)


@pytest.mark.parametrize("matrix", ["dense", "sparse"])
def test_lanes_do_not_touch(matrix):
    from scipy import sparse as csc

    problem = make_problem("logistic", "l1")
    if matrix == "sparse":
        object.__setattr__(problem, "A", csc.csc_array(problem.A))
    rng = np.random.default_rng(1)
    step, clip = rng.uniform(0.01, 1.0, 250), rng.uniform(0.01, 10.0, 250)
    found = []
    for workers in (1, 3):
        block = dp_gcd.Run(problem, Lanes(step, clip, 3.0), streams(9),
                           dp_gcd.Options(), workers=workers)  # fmt: skip
        block.advance(10)
        found.append(block.weights)
    np.testing.assert_array_equal(*found)
    for lane in (0, 1, 7, 8, 63, 64, 100, 249):
        alone = dp_gcd.Run(problem, Lanes(step[[lane]], clip[[lane]], 3.0), streams(9),
                           dp_gcd.Options())  # fmt: skip
        alone.advance(10)
        np.testing.assert_array_equal(found[0][lane], alone.weights[0])


def test_dropping_lanes_leaves_the_others_alone(loss):
    problem = make_problem(loss)
    lanes = Lanes(np.linspace(0.01, 1, 40), np.linspace(0.1, 5, 40), 0.5)
    whole, thinned = (dp_gcd.Run(problem, lanes, streams(2), dp_gcd.Options())
                      for _ in range(2))  # fmt: skip
    mask = np.arange(40) % 3 == 0
    whole.advance(4)
    thinned.advance(4)
    thinned.keep(mask)
    whole.advance(5)
    thinned.advance(5)
    np.testing.assert_array_equal(whole.weights[mask], thinned.weights)


def test_without_noise_and_clip_the_method_is_the_public_one(loss):
    from dperm.core.erm.optimum import solve

    problem = make_problem(loss, "l1")
    for rule in dp_gcd.RULES:
        lanes = Lanes(np.ones(1), np.full(1, np.inf), 0.0)
        run = dp_gcd.Run(problem, lanes, streams(0), dp_gcd.Options(rule=rule))
        run.advance(3000)
        best = solve(problem).value
        np.testing.assert_allclose(problem.objective(run.weights)[0], best, rtol=1e-10)


def test_options_are_checked():
    with pytest.raises(ValueError, match="rule: expected one of GS-s"):
        dp_gcd.Options(rule="GS")
    with pytest.raises(ValueError, match="noise: expected one of laplace"):
        dp_gcd.Options(noise="normal")
