"""DP-GCD: the noise of its selection, and what noise inside the L1 rule costs."""

import numpy as np
import pytest
from scipy import stats

from conftest import PENALTIES, make_problem, raw_data
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import build
from dperm.core.lanes import Lanes
from dperm.core.privacy.mechanisms import streams
from dperm.solvers.lanes import dp_gcd
from solvers import reference

CLIP = 0.3
KINDS = [(noise, kind) for noise in dp_gcd.NOISES for kind in ("paper", "strict")]
BOUND, INSIDE, ON_SCORE = 1, 3, 4  # rows of constants


def started(problem, multiplier, calibration="strict", kind=dp_gcd.Run, step=0.0,
            seed=0, clip=CLIP, **options):  # fmt: skip
    """One lane, which stays at w = 0 if its step is 0."""
    lanes = Lanes(np.full(1, step), np.full(1, clip), multiplier, calibration)
    return kind(problem, lanes, streams(seed), dp_gcd.Options(**options))


def level_problem(p=40, l2=0.0):
    """All columns equal: the scores are equal too, and the noise alone decides."""
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal(50), rng.choice([-1.0, 1.0], 50)
    return build("level", np.tile(x[:, None], (1, p)), y, "logistic", Penalty(l2=l2))


# --- scores ---------------------------------------------------------------------------


@pytest.mark.parametrize("rule", dp_gcd.RULES)
@pytest.mark.parametrize("penalty", PENALTIES)
def test_scores_move_as_far_as_the_sensitivity_says(rule, penalty):
    """The constants that the sensitivity D rests on: kept, and attained."""
    rng, psi, reached = np.random.default_rng(0), PENALTIES[penalty], []
    for _ in range(2000):
        M, w = np.exp(rng.normal()), rng.choice([0.0, rng.normal()])
        w, pair = float(np.clip(w, psi.lower, psi.upper)), rng.normal(size=2)
        scores = [reference.greedy_score(rule, g, w, M, psi) for g in pair]
        X = np.full((1, 1), np.sqrt(M))
        one = build("one", X, np.ones(1), "least_squares", psi)
        limit = dp_gcd.steepest(one, rule) * abs(pair[0] - pair[1]) / np.sqrt(M)
        reached.append(abs(scores[0] - scores[1]) / limit)
    assert 0.999 < max(reached) <= 1 + 1e-9


@pytest.mark.parametrize("penalty", ["none", "l2"])
def test_rules_agree_without_an_l1_norm_or_a_box(penalty):
    """With a ridge and equal M their scores differ by a common factor."""
    X, y = raw_data("logistic")
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    problem = build("even", X, y, "logistic", PENALTIES[penalty], 1.0, 1e-4)
    found = []
    for rule in dp_gcd.RULES if penalty == "none" else dp_gcd.RULES[:2]:
        run = started(problem, 0.4, "paper", step=0.5, rule=rule)
        run.advance(12)
        found.append(run.weights)
    for other in found[1:]:
        np.testing.assert_allclose(found[0], other, rtol=1e-9)


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
def test_where_noise_inside_a_rule_has_a_bound(penalty, rule, standard, sound):
    X, y = raw_data("logistic")
    X = X / np.sqrt((X**2).mean(axis=0)) if standard else X
    problem = build("x", X, y, "logistic", PENALTIES[penalty], 1.0, 1e-4)
    cases = (("laplace", "paper", sound), ("laplace", "strict", True),
             ("gumbel", "paper", True))  # fmt: skip
    for noise, kind, expected in cases:
        options = dp_gcd.Options(rule=rule, noise=noise)
        ledger = dp_gcd.ledger(problem, 3, 20.0, options, kind)
        assert ledger.events[0].sound == expected


# --- the noise itself -----------------------------------------------------------------


def selection_noise_is_declared(kind, noise, calibration):
    """Its scale times what is drawn, in units of what a record moves, is unit noise.

    A derivative moves by 2 C_j / n, a score by 2 C / (n sqrt(sum M)).
    """
    problem = level_problem()
    run = started(problem, 1.7, calibration, kind, noise=noise)
    n, M = problem.n, problem.smoothness
    draws, (inside, on_score) = run.draw(100)[0], run.constants[0, INSIDE:, 0]
    if calibration == "paper" and noise == "laplace":
        unit = draws * inside * run.share / (2 * CLIP * np.sqrt(M / M.sum()) / n)
        assert on_score == 0
    else:
        unit = draws * on_score / (2 * CLIP / (n * np.sqrt(M.sum())))
        assert inside == 0
    law = {"laplace": stats.laplace, "gumbel": stats.gumbel_r}[noise]
    assert stats.kstest(unit.ravel() / 1.7, law.cdf).pvalue > 1e-4
    assert len(np.unique(draws)) == draws.size


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
    derivative = 2 * CLIP / np.sqrt(problem.p) / problem.n
    found = started(problem, 1.0, rule=rule).constants[0, ON_SCORE, 0]
    assert found == pytest.approx(derivative * slope)


def drawing(change):
    """A Run whose noise of scores (count, p) and of values is changed."""

    class Changed(dp_gcd.Run):
        def draw(self, count):
            selection, value, *rest = super().draw(count)
            return *change(selection, value), *rest

    return Changed


BROKEN = {
    "half": drawing(lambda selection, value: (0.5 * selection, value)),
    "none": drawing(lambda selection, value: (0.0 * selection, value)),
    "shared": drawing(lambda s, value: (np.repeat(s[:, :1], s.shape[1], 1), value)),
}


@pytest.mark.parametrize(("noise", "calibration"), KINDS)
@pytest.mark.parametrize("name", BROKEN)
def test_broken_selection_noise_is_noticed(name, noise, calibration):
    with pytest.raises(AssertionError):
        selection_noise_is_declared(BROKEN[name], noise, calibration)


def the_kernel_follows_the_noise(factor=1.0):
    """Two coordinates, scores apart by a known gap: how often the lower one wins.

    With Laplace noise b on both scores, P = e^(-x) (1/2 + x/4) at a gap of x b.
    """
    problem, count = level_problem(p=2), 4000
    M, n = problem.smoothness, problem.n
    A = problem.A.copy()
    A[:, 1] *= 0.2  # a smaller derivative, but the same M is kept
    object.__setattr__(problem, "A", A)
    bound = CLIP * np.sqrt(M / M.sum())
    scores = np.abs(np.clip(A * -0.5, -bound, bound).mean(axis=0)) / np.sqrt(M)
    D = 2 * CLIP / (n * np.sqrt(M.sum()))
    run = started(problem, (scores[0] - scores[1]) / D / 1.5, seed=1)
    run.constants[:, ON_SCORE] *= factor
    wins = 0
    for _ in range(count):
        run.advance(1)
        wins += run.chosen[0] == 1
    expected = np.exp(-1.5) * (0.5 + 1.5 / 4)
    assert abs(wins / count - expected) < 4 * np.sqrt(expected / count)


def test_the_kernel_adds_the_noise_to_the_score():
    the_kernel_follows_the_noise()


@pytest.mark.parametrize("factor", [0.0, 0.5])
def test_the_kernel_with_less_noise_is_noticed(factor):
    with pytest.raises(AssertionError):
        the_kernel_follows_the_noise(factor)


def value_noise_is_declared(kind):
    """Released less exact derivative of the chosen coordinate, in sensitivities."""
    X, y = raw_data("logistic")
    problem, found = build("x", X, y, "logistic", Penalty()), []
    M = problem.smoothness
    for seed in range(800):
        run = started(problem, 1.7, kind=kind, step=1.0, seed=seed, clip=0.8)
        run.advance(1)
        j = run.chosen[0]
        C = 0.8 * np.sqrt(M[j] / M.sum())
        exact = np.clip(-0.5 * problem.A[:, j], -C, C).mean()
        found.append((-run.weights[0, j] * M[j] - exact) / (2 * C / problem.n))
    assert stats.kstest(np.array(found) / 1.7, "laplace").pvalue > 1e-4


def test_value_noise_has_the_declared_scale():
    value_noise_is_declared(dp_gcd.Run)


@pytest.mark.parametrize(
    "change", [lambda s, value: (s, value / 2), lambda s, value: (s, 0 * value + 1.0)]
)
def test_broken_value_noise_is_noticed(change):
    with pytest.raises(AssertionError):
        value_noise_is_declared(drawing(change))


def test_what_is_released_names_the_coordinate():
    problem = make_problem("logistic")
    run = started(problem, 1.0, step=1.0)
    assert run.chosen[0] == -1 and not run.released.any()
    run.advance(1)
    weights, taken = run.released[0, :5], run.released[0, 5:]
    assert taken.sum() == 1 and np.flatnonzero(taken) == run.chosen[0]
    np.testing.assert_array_equal(weights, run.weights[0])


# --- privacy of the selection ---------------------------------------------------------


def probability_of_first(level, calibration, pure=0.3, trials=40_000):
    """How often coordinate 0 is taken at w = 0, over fresh noise.

    It rests deep in the flat part of the score; the derivatives of the other thousand
    are ``level``. Each derivative and score has a sensitivity of 0.01.
    """
    A = np.full((1, 1001), 1.0)
    A[0, 0] = 0.0
    problem = build("x", A, np.array([-level]), "least_squares", Penalty(l1=0.5))
    object.__setattr__(problem, "smoothness", np.ones(problem.p))
    run = started(problem, 1 / pure, calibration, seed=11, clip=0.005 * 1001**0.5)
    run.constants[:, BOUND] = 1e9  # the derivatives are already as they should be
    wins = 0
    for _ in range(trials):
        run.advance(1)
        wins += run.chosen[0] == 0
    return wins / trials


# Some 4.6 of the other coordinates are expected to leave the flat part of the score.
LEVEL = 0.5 - 0.01 / 0.3 * np.log(1000 / 2 / 4.6)


def test_noise_inside_an_l1_rule_loses_more_than_two_epsilon():
    """Slip 1c: 0.0101 and 0.0020, a loss of about 1.6 where 0.6 is claimed."""
    first, second = (probability_of_first(LEVEL + by, "paper") for by in (0, 0.01))
    assert first == pytest.approx(0.0101, abs=0.002)
    assert second == pytest.approx(0.0020, abs=0.0009)
    assert 1.0 < np.log(first / second) < 2.4
    exact = 4.6 * (np.exp(0.3) - 1)  # P = exp(-c) turns into exp(-c exp(epsilon'))
    assert exact == pytest.approx(1.6, abs=0.02)


def test_noise_on_the_score_does_not():
    """The same data, noise on the score: within 2 epsilon', up to sampling error."""
    first, second = (probability_of_first(LEVEL + by, "strict") for by in (0, 0.01))
    error = np.sqrt(1 / (first * 40_000) + 1 / (second * 40_000))
    assert abs(np.log(first / second)) < 0.6 + 3 * error
