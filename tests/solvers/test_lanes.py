"""Solvers of lanes: ledgers by hand, refusals, sparse data, samplings.

What they all promise is in ``test_contract``, what they compute in ``test_twins``.
"""

import re

import numpy as np
import pytest
from scipy import sparse

from conftest import PENALTIES, make_problem, raw_data
from dperm.core import solvers
from dperm.core.erm.problem import build
from dperm.core.experiment.config import compose
from dperm.core.lanes import Lanes, dp_cd
from dperm.core.privacy.mechanisms import streams
from dperm.core.solvers.capabilities import kept_sparse, obstacle
from dperm.solvers.lanes import dp_cd_priv, dp_gcd, dp_sgd, dp_skgd, dp_svrg
from solvers.test_twins import CASES, LANES, NOISE, thin_data

STEPS, CLIPS = LANES.T
SKETCHES = {n: case.made for n, case in CASES.items() if case.algorithm == "dp_skgd"}


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
    found = module.ledger(problem, 120, 0.7, made, "strict").events
    assert len(found) == len(events)
    for one, (kind, count, multiplier, batch) in zip(found, events, strict=True):
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
def test_sketches_that_do_not_fit_a_problem_are_refused(options, penalty, said):
    problem, lanes = make_problem("logistic", penalty), Lanes(STEPS, CLIPS, 1.0)
    with pytest.raises(ValueError, match=said):
        dp_skgd.Run(problem, lanes, streams(0), dp_skgd.Options(**options))


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
        ("noisy_sfw", "diabetes", {}, "streams"),
    ],
)
def test_what_a_solver_cannot_work_with(algorithm, problem, options, said):
    module = solvers.load(algorithm)
    made = solvers.make_options(module, options)
    found = obstacle(module, made, compose([f"problem={problem}"]).problem)
    assert re.search(said, found) if said else found == ""


def test_what_is_sparse_is_known_before_it_is_read():
    kept = {"sparse_small", "dorothea", "rcv1_train"}
    for name in (*kept, "madelon_l1", "colon_cancer", "diabetes"):
        dataset = compose([f"problem={name}"]).problem.dataset
        assert kept_sparse(dataset) == (name in kept)


# --- sparse problems ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cd", "cd averages", "gcd GS-r", "sgd"])
def test_no_dense_copy_of_sparse_data_is_made(name, monkeypatch):
    X, y = thin_data("logistic")
    problem = build("x", sparse.csc_array(X), y, "logistic", PENALTIES["l1"])
    problem.global_smoothness  # noqa: B018 (n x n or p x p, whichever is smaller)

    def refuse(*args, **kwargs):
        raise AssertionError("a dense copy")

    for kind in (sparse.csc_array, sparse.csr_array):
        for method in ("toarray", "todense"):
            monkeypatch.setattr(kind, method, refuse)
    problem.objective(CASES[name].run(problem, Lanes(STEPS, CLIPS, NOISE)))


# --- the samplings of DP-SkGD, and what it reduces to ---------------------------------


@pytest.mark.parametrize("name", SKETCHES)
def test_a_sketch_draws_as_declared_and_its_constants_are_valid(name, loss):
    X, _ = raw_data(loss)
    problem, rng, draws = make_problem(loss), streams(1).sampling, 20_000
    sketch = dp_skgd.Sketch(problem, SKETCHES[name])
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
    blocks = dp_skgd.partition(make_problem("logistic"), dp_skgd.Options(blocks=count))
    assert sorted(np.concatenate(blocks)) == list(range(5)) and len(blocks) == count
    firsts = [block[0] for block in blocks]
    assert firsts == sorted(firsts)
    assert all((np.diff(block) > 0).all() for block in blocks)


def test_an_epoch_that_is_not_whole_costs_a_whole_one():
    given = (make_problem("logistic"), 121, 0.7, dp_svrg.Options(inner=0.5))
    assert dp_svrg.ledger(*given).events[0].count == 5


def test_a_sparse_problem_has_the_numbers_of_the_dense_one(loss):
    X, y = thin_data(loss)
    thin, full = (build("x", A, y, loss, PENALTIES["elastic"], 1.0, 1e-4)
                  for A in (sparse.csc_array(X), X))  # fmt: skip
    assert thin.is_sparse and not full.is_sparse
    W = np.random.default_rng(0).standard_normal((37, full.p))
    W[5], W[7, 3], W[9, :20] = 0.0, np.inf, 0.0
    for name in ("smoothness", "global_smoothness", "row_norms"):
        np.testing.assert_allclose(getattr(thin, name), getattr(full, name), rtol=1e-10)
    found = thin.objective(W)
    np.testing.assert_allclose(found, full.objective(W), rtol=1e-12)
    for row in (0, 5, 7, 9, 36):
        assert thin.objective(W[row])[0] == found[row]
    np.testing.assert_array_equal(found, thin.objective(W, workers=3))
    np.testing.assert_allclose(thin.gradient(W[0]), full.gradient(W[0]), atol=1e-10)
