"""Solvers of settings: ledgers by hand, refusals, sparse data, samplings, selections.

What they all promise is in ``test_contract``, what they compute in ``test_twins``.
"""

import re

import numpy as np
import pytest
from scipy import sparse

from conftest import PENALTIES, make_problem, raw_data
from dperm.config.config import compose
from dperm.experiments.capabilities import kept_sparse, obstacle
from dperm.privacy.noise import streams
from dperm.problems.penalties import Penalty
from dperm.problems.problem import build
from dperm.solvers import registry
from dperm.solvers.batched import (
    BatchedSettings,
    dp_cd,
    dp_cd_priv,
    dp_gcd,
    dp_sgd,
    dp_skgd,
    dp_svrg,
)
from solvers import twins
from solvers.test_twins import CASES, NOISE, SETTINGS, thin_data
from weekly import variants

STEPS, CLIPS = SETTINGS.T
SKETCHES = {
    n: case.made for n, case in CASES.items() if case.algorithm == "dp_skgd"
}


# --- ledgers: what is drawn, how often, from how many ---------------------------------


@pytest.mark.parametrize(
    ("module", "options", "events"),
    [
        (dp_cd, {}, [("Gaussian", 120, 0.7, None)]),
        (dp_sgd, {"batch": 3}, [("SampledGaussian", 120, 0.7, (3, 60))]),
        (dp_svrg, {"inner": 0.5}, [("Gaussian", 4, 0.7 * 60 / 30**0.5, None),
                                   ("SampledGaussian", 120, 0.7, (1, 60))]),
        (dp_skgd, {"blocks": 2}, [("Gaussian", 120, 0.7, None)]),
        (dp_gcd, {}, [("NoisyMax", 120, 0.7, None), ("ChosenValue", 120, 0.7, None)]),
        (dp_cd_priv, {}, [("Laplace", 5, 50.0, None), ("Gaussian", 120, 0.7, None)]),
    ],
)  # fmt: skip
def test_a_ledger_states_what_is_drawn(module, options, events):
    problem = make_problem("logistic", "l2")
    made = module.Options(**options)
    found = module.ledger(problem, 120, 0.7, made, "tight").events
    assert len(found) == len(events)
    for one, (kind, count, multiplier, batch) in zip(
        found, events, strict=True
    ):
        assert (type(one).__name__, one.count) == (kind, count)
        assert one.noise_multiplier == pytest.approx(multiplier)
        assert batch is None or (one.batch, one.population) == batch


@pytest.mark.parametrize(
    ("module", "options", "passes", "steps"),
    [
        (dp_cd, {}, 4, 20), (dp_sgd, {}, 4, 240), (dp_sgd, {"batch": 3}, 4, 80),
        (dp_gcd, {}, 4, 4), (dp_svrg, {}, 4, 120), (dp_svrg, {"inner": 0.5}, 3, 60),
        (dp_skgd, {}, 4, 20), (dp_skgd, {"blocks": 1}, 4, 4),
        (dp_skgd, {"sampling": "nice", "size": 2}, 4, 10),
    ],
)  # fmt: skip
def test_a_pass_reads_every_record_once(module, options, passes, steps):
    made = module.Options(**options)
    assert module.steps(make_problem("logistic"), passes, made) == steps


# --- refusals -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "penalty", "said"),
    [
        ({"blocks": 6}, "l2", r"options\.blocks"),
        ({"sampling": "nice", "size": 6}, "l2", r"options\.size"),
        ({}, "l1", "composite"),
        ({}, "box", "composite"),
    ],
)
def test_sketches_that_do_not_fit_a_problem_are_refused(
    options, penalty, said
):
    problem, settings = (
        make_problem("logistic", penalty),
        BatchedSettings(STEPS, CLIPS, 1.0),
    )
    with pytest.raises(ValueError, match=said):
        dp_skgd.Run(problem, settings, streams(0), dp_skgd.Options(**options))


@pytest.mark.parametrize(
    ("algorithm", "problem", "options", "said"),
    [
        ("dp_cd", "sparse_small", {}, ""),
        ("dp_cd_priv", "sparse_small", {"periods": 2}, ""),
        ("dp_gcd", "sparse_small", {}, ""),
        ("dp_sgd", "sparse_small", {}, ""),
        ("dp_svrg", "sparse_small", {}, "dp_svrg"),
        ("dp_skgd", "california_raw", {}, r"options\.composite"),
        ("dp_skgd", "california_raw", {"composite": True}, ""),
        ("dp_skgd", "breast_cancer", {}, ""),
        ("dp_fw", "diabetes", {}, "frank_wolfe"),
        ("noisy_sfw", "diabetes", {}, "single_pass"),
    ],
)
def test_what_a_solver_cannot_work_with(algorithm, problem, options, said):
    module = registry.load(algorithm)
    made = registry.make_options(module, options)
    found = obstacle(module, made, compose([f"problem={problem}"]).problem)
    assert re.search(said, found) if said else found == ""


def test_what_is_sparse_is_known_before_it_is_read():
    kept = {"sparse_small", "dorothea", "rcv1_train"}
    for name in (*kept, "madelon_l1", "colon_cancer", "diabetes"):
        dataset = compose([f"problem={name}"]).problem.dataset
        assert kept_sparse(dataset) == (name in kept)


# --- sparse problems ------------------------------------------------------------------


SPARSE = ("cd", "cd averages", "gcd GS-r", "sgd")


@pytest.mark.parametrize("name", variants(SPARSE, ("cd averages", "gcd GS-r")))
def test_no_dense_copy_of_sparse_data_is_made(name, monkeypatch):
    X, y = thin_data("logistic")
    problem = build("x", sparse.csc_array(X), y, "logistic", PENALTIES["l1"])
    problem.global_smoothness  # noqa: B018 (n x n or p x p, whichever is smaller)

    def refuse(*args, **kwargs):
        raise AssertionError("a dense copy")

    for kind in (sparse.csc_array, sparse.csr_array):
        for method in ("toarray", "todense"):
            monkeypatch.setattr(kind, method, refuse)
    problem.objective(
        CASES[name].run(problem, BatchedSettings(STEPS, CLIPS, NOISE))
    )


# --- the samplings of DP-SkGD, and what it reduces to ---------------------------------


@pytest.mark.parametrize("name", SKETCHES)
def test_a_sketch_draws_as_declared_and_its_constants_are_valid(name, loss):
    X, _ = raw_data(loss)
    problem, rng, draws = make_problem(loss), streams(1).sampling, 20_000
    sketch = dp_skgd.SketchLaw(problem, SKETCHES[name])
    places, known = sketch.draw(rng, draws)
    sets = [known[place] for place in places]
    count = np.bincount(np.concatenate([*sets]), minlength=problem.p) / draws
    np.testing.assert_allclose(count, sketch.probability, atol=0.02)
    assert sketch.probability.sum() == pytest.approx(sketch.expected_size)
    H = problem.loss.curvature * X.T @ X / len(X)
    for S in {tuple(S) for S in sets}:
        slack = np.diag(sketch.smoothness[[*S]]) - H[np.ix_(S, S)]
        assert np.linalg.eigvalsh(slack)[0] >= -1e-12 * H.max()


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_partitions(count):
    blocks = dp_skgd.partition(
        make_problem("logistic"), dp_skgd.Options(blocks=count)
    )
    assert (
        sorted(np.concatenate(blocks)) == list(range(5))
        and len(blocks) == count
    )
    firsts = [block[0] for block in blocks]
    assert firsts == sorted(firsts)
    assert all((np.diff(block) > 0).all() for block in blocks)


@pytest.mark.parametrize("loss", ["logistic", "least_squares"])
@pytest.mark.parametrize(("n", "p"), [(60, 5), (400, 130)])
def test_a_setting_of_dp_svrg_has_the_same_bits_alone(loss, n, p):
    """Alone it has a kernel of its own; both end epochs in between."""
    problem, options = (
        make_problem(loss, "box", n=n, p=p),
        dp_svrg.Options(inner=0.7),
    )
    every = BatchedSettings(
        np.geomspace(1e-4, 1e-1, 3), np.geomspace(0.1, 10, 3), 0.5
    )
    runs = {
        chosen: dp_svrg.Run(
            problem,
            every.take([*chosen]),
            streams(3),
            options,
            workers=1,
            total=2 * n,
        )
        for chosen in ((0, 1, 2), (0,), (1,), (2,))
    }
    for run in runs.values():
        run.advance(n // 3)
        run.advance(2 * n - n // 3)
    together = runs.pop((0, 1, 2)).weights
    for (setting,), run in runs.items():
        assert np.isfinite(together[setting]).all()
        np.testing.assert_array_equal(run.weights[0], together[setting])


def test_an_epoch_that_is_not_whole_costs_a_whole_one():
    given = (make_problem("logistic"), 121, 0.7, dp_svrg.Options(inner=0.5))
    assert dp_svrg.ledger(*given).events[0].count == 5


# --- DP-GCD: scores -------------------------------------------------------------------


def greedy(
    problem, clip, multiplier, calibration="tight", seed=0, step=0.0, **options
):
    """A run of one setting, which stays at w = 0 if its step is 0."""
    settings = BatchedSettings(
        np.full(1, step), np.full(1, clip), multiplier, calibration
    )
    return dp_gcd.Run(
        problem, settings, streams(seed), dp_gcd.Options(**options)
    )


def taken(run, trials):
    """How often the run chooses each coordinate."""
    found = np.zeros(run.problem.p, dtype=int)
    for _ in range(trials):
        run.advance(1)
        found[run.chosen[0]] += 1
    return found


@pytest.mark.parametrize("rule", dp_gcd.RULES)
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
        limit = (
            dp_gcd.steepest(one, rule) * abs(pair[0] - pair[1]) / np.sqrt(M)
        )
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
    cases = (("laplace", "published", sound), ("laplace", "tight", True),
             ("gumbel", "published", True))  # fmt: skip
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
    problem = build(
        "level", np.tile(x[:, None], (1, 2)), y, "logistic", Penalty()
    )
    M, A = problem.smoothness, problem.A.copy()
    A[:, 1] *= 0.2  # a smaller derivative, but the same M is kept
    object.__setattr__(problem, "A", A)
    bound = clip * np.sqrt(M / M.sum())
    scores = np.abs(np.clip(A * -0.5, -bound, bound).mean(axis=0)) / np.sqrt(M)
    D = 2 * clip / (n * np.sqrt(M.sum()))
    run = greedy(
        problem, clip, (scores[0] - scores[1]) / D / 1.5, seed=1, noise=noise
    )
    gap = 1.5
    expected = (
        np.exp(-gap) * (0.5 + gap / 4)
        if noise == "laplace"
        else 1 / (1 + np.exp(gap))
    )
    found = taken(run, 4000)[1] / 4000
    assert abs(found - expected) < 4 * np.sqrt(expected / 4000)


def test_what_is_released_names_the_coordinate():
    run = greedy(make_problem("logistic"), 0.3, 1.0, step=1.0)
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
    # of many records, so that no derivative is clipped
    A = np.full((200, 1001), 1.0)
    A[:, 0] = 0.0
    problem = build(
        "x", A, np.full(200, -level), "least_squares", Penalty(l1=0.5)
    )
    object.__setattr__(problem, "smoothness", np.ones(problem.p))
    run = greedy(problem, 1.0 * 1001**0.5, 1 / PURE, calibration, seed=11)
    return taken(run, TRIALS)[0] / TRIALS


@pytest.mark.long
def test_noise_inside_an_l1_rule_loses_more_than_two_epsilon_and_on_the_score_not():
    """Slip 1c: 0.0101 and 0.0020, a loss of about 1.6 where 0.6 is claimed."""
    first, second = (
        chance_of_first(LEVEL + by, "published") for by in (0, 0.01)
    )
    assert first == pytest.approx(0.0101, abs=0.002)
    assert second == pytest.approx(0.0020, abs=0.0009)
    assert 1.0 < np.log(first / second) < 2.4
    # P = exp(-c) turns into exp(-c exp(epsilon'))
    exact = 4.6 * (np.exp(PURE) - 1)
    assert exact == pytest.approx(1.6, abs=0.02)
    # noise on the score: within 2 epsilon', up to sampling error
    first, second = (chance_of_first(LEVEL + by, "tight") for by in (0, 0.01))
    error = np.sqrt(1 / (first * TRIALS) + 1 / (second * TRIALS))
    assert abs(np.log(first / second)) < 2 * PURE + 3 * error
