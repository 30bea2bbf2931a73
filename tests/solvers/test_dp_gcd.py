"""DP-GCD: the sensitivity of a score, the noise of its selection, what noise costs."""

import numpy as np
import pytest

from conftest import PENALTIES, make_problem, raw_data
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import build
from dperm.core.lanes import Lanes
from dperm.core.privacy.mechanisms import streams
from dperm.solvers.lanes import dp_gcd
from solvers import twins

RULES = dp_gcd.RULES


def started(
    problem, clip, multiplier, calibration="strict", seed=0, step=0.0, **options
):
    """One lane, which stays at w = 0 if its step is 0."""
    lanes = Lanes(np.full(1, step), np.full(1, clip), multiplier, calibration)
    return dp_gcd.Run(problem, lanes, streams(seed), dp_gcd.Options(**options))


def taken(run, trials):
    """How often the run chooses each coordinate."""
    found = np.zeros(run.problem.p, dtype=int)
    for _ in range(trials):
        run.advance(1)
        found[run.chosen[0]] += 1
    return found


# --- scores ---------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("penalty", PENALTIES)
def test_scores_move_as_far_as_the_sensitivity_says(rule, penalty):
    """The constants that the sensitivity D rests on: kept, and attained."""
    rng, psi, reached = np.random.default_rng(0), PENALTIES[penalty], []
    for _ in range(2000):
        M, w = np.exp(rng.normal()), rng.choice([0.0, rng.normal()])
        w, pair = float(np.clip(w, psi.lower, psi.upper)), rng.normal(size=2)
        scores = [twins.greedy_score(rule, g, w, M, psi) for g in pair]
        X = np.full((1, 1), np.sqrt(M))
        one = build("one", X, np.ones(1), "least_squares", psi)
        limit = dp_gcd.steepest(one, rule) * abs(pair[0] - pair[1]) / np.sqrt(M)
        reached.append(abs(scores[0] - scores[1]) / limit)
    assert 0.999 < max(reached) <= 1 + 1e-9


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


# --- the noise of the selection -------------------------------------------------------


@pytest.mark.parametrize("noise", dp_gcd.NOISES)
def test_the_lower_of_two_scores_wins_as_often_as_its_noise_says(noise):
    """At a gap of x b with noise b: e^(-x) (1/2 + x/4) for Laplace, logistic(-x)."""
    rng, clip, n = np.random.default_rng(4), 0.3, 50
    x, y = rng.standard_normal(n), rng.choice([-1.0, 1.0], n)
    problem = build("level", np.tile(x[:, None], (1, 2)), y, "logistic", Penalty())
    M, A = problem.smoothness, problem.A.copy()
    A[:, 1] *= 0.2  # a smaller derivative, but the same M is kept
    object.__setattr__(problem, "A", A)
    bound = clip * np.sqrt(M / M.sum())
    scores = np.abs(np.clip(A * -0.5, -bound, bound).mean(axis=0)) / np.sqrt(M)
    D = 2 * clip / (n * np.sqrt(M.sum()))
    run = started(problem, clip, (scores[0] - scores[1]) / D / 1.5, seed=1, noise=noise)
    gap = 1.5
    expected = (
        np.exp(-gap) * (0.5 + gap / 4) if noise == "laplace" else 1 / (1 + np.exp(gap))
    )
    found = taken(run, 4000)[1] / 4000
    assert abs(found - expected) < 4 * np.sqrt(expected / 4000)


def test_what_is_released_names_the_coordinate():
    run = started(make_problem("logistic"), 0.3, 1.0, step=1.0)
    assert run.chosen[0] == -1 and not run.released.any()
    run.advance(1)
    weights, chosen = run.released[0, :5], run.released[0, 5:]
    assert chosen.sum() == 1 and np.flatnonzero(chosen) == run.chosen[0]
    np.testing.assert_array_equal(weights, run.weights[0])


# --- privacy of the selection ---------------------------------------------------------

TRIALS, PURE = 20_000, 0.3
# Some 4.6 of the other coordinates are expected to leave the flat part of the score.
LEVEL = 0.5 - 0.01 / PURE * np.log(1000 / 2 / 4.6)


def chance_of_first(level, calibration):
    """How often coordinate 0 is taken at w = 0, over fresh noise.

    It rests deep in the flat part of the score; the derivatives of the other thousand
    are ``level``. Each derivative and score has a sensitivity of 0.01.
    """
    A = np.full((200, 1001), 1.0)  # of many records, so that no derivative is clipped
    A[:, 0] = 0.0
    problem = build("x", A, np.full(200, -level), "least_squares", Penalty(l1=0.5))
    object.__setattr__(problem, "smoothness", np.ones(problem.p))
    run = started(problem, 1.0 * 1001**0.5, 1 / PURE, calibration, seed=11)
    return taken(run, TRIALS)[0] / TRIALS


@pytest.mark.long
def test_noise_inside_an_l1_rule_loses_more_than_two_epsilon_and_on_the_score_not():
    """Slip 1c: 0.0101 and 0.0020, a loss of about 1.6 where 0.6 is claimed."""
    first, second = (chance_of_first(LEVEL + by, "paper") for by in (0, 0.01))
    assert first == pytest.approx(0.0101, abs=0.002)
    assert second == pytest.approx(0.0020, abs=0.0009)
    assert 1.0 < np.log(first / second) < 2.4
    exact = 4.6 * (np.exp(PURE) - 1)  # P = exp(-c) turns into exp(-c exp(epsilon'))
    assert exact == pytest.approx(1.6, abs=0.02)
    # noise on the score: within 2 epsilon', up to sampling error
    first, second = (chance_of_first(LEVEL + by, "strict") for by in (0, 0.01))
    error = np.sqrt(1 / (first * TRIALS) + 1 / (second * TRIALS))
    assert abs(np.log(first / second)) < 2 * PURE + 3 * error
