"""Every solver is its twin: the algorithm as printed, in plain numpy, on one stream."""

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from conftest import PENALTIES, make_problem, raw_data
from dperm.privacy.mechanisms.generalised_gaussian import (
    generalised_gaussian,
    noise_multiplier,
    regularity,
    smooth_order,
)
from dperm.privacy.noise import laplace_rows, streams
from dperm.problems.optimum import solve
from dperm.problems.penalties import Penalty
from dperm.problems.problem import build
from dperm.problems.sets import norms
from dperm.solvers import registry
from dperm.solvers.batched import BatchedSettings, dp_skgd
from dperm.solvers.distributed.columns import Columns
from dperm.solvers.distributed.node import shared_sketch
from dperm.solvers.frank_wolfe import (
    Noise,
    bcfw,
    dp_bcfw,
    dp_bcfw_noise,
    dp_fw,
    silent,
)
from dperm.solvers.full_batch.scaled import Scaled
from dperm.solvers.single_pass import Target
from dperm.solvers.single_pass.setup import Setup
from dperm.solvers.single_pass.sources import Rows
from solvers import twins

# step, clip
SETTINGS = np.array([(0.1, 0.01), (0.5, 0.3), (1.0, 2.0), (0.7, 1e4)])
NOISE, DELTA = 0.7, 1e-6
EXACT = {"rtol": 1e-9, "atol": 1e-10}


# --- settings -------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A batched solver with options.

    ``slow`` is a factor of its steps; ``exact`` a number of steps, if any, after which
    it is at the optimum where there is neither noise nor a clip.
    """

    algorithm: str
    options: dict[str, Any]
    count: int = 40
    slow: float = 1.0
    calibration: str = "published"
    exact: int = 0

    @property
    def module(self):
        return registry.load(self.algorithm)

    @property
    def made(self):
        return self.module.Options(**self.options)

    def run(self, problem, settings, count=0, seed=3):
        count = count or self.count
        given = (problem, settings, streams(seed), self.made)
        run = self.module.Run(*given, total=count)
        run.advance(count)
        return run.weights

    def twin(self, X, y, loss, penalty, setting):
        more = {}
        if self.algorithm == "dp_gcd":
            more["inside"] = self.calibration == "published"
        if self.algorithm == "dp_skgd" and self.made.sampling == "blocks":
            problem = build("x", X, y, loss, penalty)
            more["blocks"] = dp_skgd.partition(problem, self.made)
        given = (
            X,
            y,
            loss,
            penalty,
            setting,
            self.count,
            streams(3),
            self.made,
        )
        return getattr(twins, self.algorithm)(*given, **more)


def skgd(**options):
    return Case("dp_skgd", {"composite": True, **options}, 30)


def gcd(calibration="tight", exact=0, **options):
    return Case("dp_gcd", options, 12, 1.0, calibration, exact)


RULES = ("GS-s", "GS-r", "GS-q")
CASES = {
    "cd": Case("dp_cd", {}, exact=20_000),
    "cd uniform": Case("dp_cd", {"sampling": "uniform"}),
    "cd equal": Case("dp_cd", {"thresholds": "equal"}),
    "cd averages": Case("dp_cd", {"sampling": "uniform", "periods": 4}, 42),
    "cd private": Case("dp_cd_priv", {}),
    "sgd": Case("dp_sgd", {}, 50, 0.1),
    "sgd batch": Case("dp_sgd", {"batch": 3}, 50, 0.1),
    "svrg": Case("dp_svrg", {"inner": 0.25}, 130, 0.1),
    "svrg long": Case("dp_svrg", {"inner": 1.0}, 130, 0.1, exact=60_000),
    **{f"gcd {rule}": gcd(exact=3000, rule=rule) for rule in RULES},
    **{f"gcd {rule} paper": gcd("published", rule=rule) for rule in RULES},
    "gcd gumbel": gcd("published", noise="gumbel"),
    "skgd": skgd(),
    "skgd importance": skgd(probabilities="importance"),
    "skgd full": skgd(blocks=1),
    "skgd blocks": skgd(blocks=2),
    "skgd blocks importance": skgd(blocks=3, probabilities="importance"),
    "skgd random": skgd(blocks=2, partition="random", seed=4),
    "skgd nice": skgd(sampling="nice", size=3),
    "skgd averages": skgd(blocks=2, periods=3),
}  # fmt: skip


def thin_data(loss, n=40, p=24):
    """Few entries: a record and a column have one at most, another has no zero."""
    rng = np.random.default_rng(8)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.2)
    X[3], X[:, 5], X[0, 5] = 0.0, 0.0, 1.0
    X[:, 6] = 1.0 + rng.random(n)
    y = X @ rng.standard_normal(p) + 0.3 * rng.standard_normal(n)
    return X, y if loss == "least_squares" else np.where(y > 0, 1.0, -1.0)


def with_indices(A, loss):
    """Indices of 32 bits, as scipy's are, or of 64 with the logistic loss.

    Those of data in files have 64; ``experiments/test_stages`` runs on them.
    """
    if loss == "logistic":
        A.indices = A.indices.astype(np.int64)
        A.indptr = A.indptr.astype(np.int64)
    return A


FORMS = [
    (name, form)
    for name, case in CASES.items()
    for form in ("dense", "sparse")
    if form == "dense" or getattr(case.module, "SPARSE", False)
]


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_settings(name, form, loss):
    """Scales, clips, draws and the order of the steps, under every penalty."""
    case, (X, y) = (
        CASES[name],
        (raw_data if form == "dense" else thin_data)(loss),
    )
    steps, clips = SETTINGS.T * [[case.slow], [1.0]]
    A = X if form == "dense" else with_indices(sparse.csc_array(X), loss)
    for penalty in PENALTIES.values():
        problem = build("small", A, y, loss, penalty, 1.0, 1e-4)
        found = case.run(
            problem, BatchedSettings(steps, clips, NOISE, case.calibration)
        )
        for k, setting in enumerate(zip(steps, clips, strict=True)):
            expected = case.twin(X, y, loss, penalty, (*setting, NOISE))
            np.testing.assert_allclose(found[k], expected, **EXACT)


@pytest.mark.parametrize(
    "name", [name for name, case in CASES.items() if case.exact]
)
def test_without_noise_and_clip_settings_find_the_optimum(name):
    """Whatever the order of the columns."""
    case, (X, y) = CASES[name], raw_data("least_squares")
    settings = BatchedSettings(np.full(1, case.slow), np.full(1, np.inf), 0.0)
    for order in (slice(None), [3, 0, 4, 2, 1]):
        problem = build("x", X[:, order], y, "least_squares", PENALTIES["l1"])
        found = problem.objective(case.run(problem, settings, case.exact))[0]
        assert found == pytest.approx(solve(problem).value, rel=1e-6)


# --- fits -----------------------------------------------------------------------------

SQUARES, SIGNS = "least_squares", "logistic"
FITS = {
    "ada_ssp": ({"radius": 0.8, "label": 0.5}, "l2", 0.02, (SQUARES,)),
    "moments": ({"floor": 1.0, "radius": 0.8}, "l2", 0.05, (SQUARES,)),
    "dp_gd": ({"steps": 3, "step": 2.0, "momentum": 0.5}, "elastic", 0.3,
              (SQUARES, SIGNS)),
    "dp_gd average": ({"steps": 5, "average": True, "clip": 0.6}, "l2", 0.3,
                      (SQUARES,)),
    "dp_minibatch": ({"steps": 3, "share": 0.25, "clip": 0.6}, "elastic", 0.3,
                     (SQUARES, SIGNS)),
    "dp_selection": ({"steps": 3, "features": 2, "clip": 0.6}, "elastic", 0.3,
                     (SQUARES, SIGNS)),
    "dp_adaptive": ({"steps": 3, "radius": 0.7, "quantile": 0.4}, "l2", 0.3,
                    (SQUARES, SIGNS)),
    "dp_newton": ({"steps": 3, "radius": 0.7, "share": 0.6, "trace": 0.2}, "l2", 0.3,
                  (SIGNS,)),
    "dp_gram": ({"steps": 3, "radius": 0.7, "clip": 0.6}, "l2", 0.3, (SQUARES, SIGNS)),
    "hessian_mixing": ({"steps": 2, "radius": 1.5, "clip": 0.6}, "l2", 0.3,
                       (SQUARES,)),
    "objective_perturbation": ({}, "l2", 0.7, (SIGNS,)),
}  # fmt: skip


@pytest.mark.parametrize("form", [np.asarray, sparse.csc_array])
@pytest.mark.parametrize(
    ("name", "loss"),
    [(name, loss) for name in FITS for loss in FITS[name][-1]],
)
def test_fits(name, loss, form):
    """On records and labels beyond their bounds, two runs side by side."""
    given, penalty, z, _ = FITS[name]
    name, problem = name.split()[0], make_problem(loss, penalty)
    module, at = (
        registry.load(name),
        Scaled(replace(problem, A=form(problem.A))),
    )
    options = module.Options(**given)
    own = [streams(seed) for seed in (0, 5)]
    found = module.Run(at, module.ledger(at, z, options), own, options).solve()
    S = np.sqrt((problem.A**2).mean(axis=0))
    label = np.sqrt((problem.offset**2).mean()) if loss == SQUARES else 1.0
    psi = problem.penalty
    d = twins.Data(loss, problem.A / S, -problem.offset, S, label, psi.l1, psi.l2,
                   problem.delta)  # fmt: skip
    tight = (
        {"atol": 1e-5} if name == "objective_perturbation" else {"rtol": 1e-7}
    )
    for run, seed in zip(found, (0, 5), strict=True):
        expected = getattr(twins, name)(d, options, z, streams(seed)) / S
        np.testing.assert_allclose(run, expected, **tight)


# --- Frank-Wolfe ----------------------------------------------------------------------

ON_BALL = [(name, vertices) for name in ("elementary", "distributed")
           for vertices in bcfw.VERTICES]  # fmt: skip
WAYS = [*ON_BALL, *((name, "one") for name in ("uniform_serial", "importance")),
        *((name, "box") for name in bcfw.SAMPLINGS)]  # fmt: skip


@pytest.fixture(params=["least_squares", "logistic", "smoothed_hinge"])
def finite_sum(request):
    """Sparse records beyond their bounds, in blocks of columns for three nodes."""
    X, y = raw_data(request.param, n=40, p=36)
    X *= np.random.default_rng(1).random(X.shape) < 0.5
    problem = build("thin", sparse.csc_array(X), y, request.param, Penalty())
    return problem, problem.A.toarray(), np.arange(36).reshape(3, 12)


@pytest.mark.parametrize(("sampling", "vertices"), WAYS)
def test_bcfw(finite_sum, sampling, vertices):
    problem, A, blocks = finite_sum
    kind = (
        {"constraint": "box"} if vertices == "box" else {"vertices": vertices}
    )
    options = bcfw.Options(sampling, tau=10, nodes=3, radius=1.7, **kind)
    draw, source = bcfw.sampler(options, Columns(problem.A)), streams(5)
    run = bcfw.Run(problem, streams(5), options, silent(25))
    run.advance(10)
    run.advance(15)
    sets = [draw(source) for _ in range(25)]
    chance = bcfw.probabilities(options, Columns(problem.A)).min()
    given = (problem.offset, problem.loss.name, 1.7, sets, chance)
    expected = twins.bcfw(A, *given, blocks, vertices)
    np.testing.assert_allclose(run.weights[0], expected, **EXACT)
    exact = (
        A.T @ problem.derivatives(A @ expected + problem.offset) / problem.n
    )
    np.testing.assert_allclose(run.iterate.gradient(), exact, **EXACT)
    assert run.iterate.objective == pytest.approx(
        problem.objective(expected)[0], rel=1e-12
    )


@pytest.mark.parametrize("update", dp_bcfw_noise.UPDATES)
@pytest.mark.parametrize("scores", ["gradient", "radius"])
@pytest.mark.parametrize("sketch", [None, 12])
def test_dp_bcfw(finite_sum, update, scores, sketch):
    problem, A, blocks = finite_sum
    options = dp_bcfw.Options(nodes=3, radius=1.5, update=update, sketch=sketch,
                              entry_bound=1.2, label_bound=0.8)  # fmt: skip
    run = dp_bcfw.Run(
        problem, streams(4), options, Noise(None, 0.05, 0.3, 0.0, scores)
    )
    run.advance(7)
    run.advance(13)
    J = shared_sketch(40, 12, 0).by_record.T if sketch else np.eye(40)
    nodes = [*map(streams, streams(4).noise.integers(0, 2**62, 3).tolist())]
    vertex, reach = (0.5, 1.8) if update == "feasible" else (1.5, 5.4)
    given = (20, vertex, 1.5 if scores == "radius" else 1.0, (0.05, 0.3))
    x, q = twins.dp_bcfw(A, problem.offset, problem.loss.name, blocks, J, *given,
                         (1.2, 0.8, reach), nodes)  # fmt: skip
    np.testing.assert_allclose(run.weights[0], x, **EXACT)
    np.testing.assert_allclose(run.q, q, **EXACT)


def test_dp_fw():
    X, y = raw_data(SQUARES, n=30, p=6)
    problem = build("small", X, y, SQUARES, Penalty())
    options = dp_fw.Options(1.7, 1.0, 2.0)
    run = dp_fw.Run(problem, streams(3), options, Noise(None, 0.02, 0.0, 0.0))
    run.advance(12)
    given = (X.clip(-1, 1), -y.clip(-2, 2), 1.7, 12, 0.02, streams(3).noise)
    np.testing.assert_allclose(run.weights[0], twins.dp_fw(*given), **EXACT)


# --- streams --------------------------------------------------------------------------

TARGETS = [Target(1.0, DELTA, "published"), Target(1.0, DELTA, "tight"),
           Target(math.inf, DELTA, "none")]  # fmt: skip
STREAMS = ("noisy_sfw", "poly_sfw", "phased_sgd", "sco_dp_fw", "sco_dp_sgd",
           "sco_mirror_descent")  # fmt: skip
LOSSES = ("least_squares", "logistic", "linear")


def records(n, d, q, seed=0, loss="least_squares"):
    """Records of unit l_q norm with a common direction, and labels."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)) + 1.5 * np.where(
        rng.random((n, 1)) < 0.5, -1, 1
    )
    x /= norms(x, q)[:, None]
    y = np.clip(x.sum(axis=1) + 0.3 * rng.standard_normal(n), -1, 1)
    return x, np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y


def ended(name, setup, x, y, seed, **options):
    """Where every target ends, and how many records were read."""
    module, source = registry.load(name), Rows(x, y)
    made = module.Options(**options)
    run = module.Run(setup, TARGETS, streams(seed), source, len(y), made)
    return run.solve(), source.taken


def multipliers(name, setup, n):
    """Noise over sensitivity of every target, as the solver defines it."""
    module = registry.load(name)
    made = [
        module.noise(setup, n, target, module.Options()) for target in TARGETS
    ]
    return [noise.scales[0] for noise in made]


def tree_scale(setup, b, target, t, depth, leaf, consecutive):
    """Lines 6 and 15 of Algorithm 1, or a sensitivity counted step by step."""
    if target.calibration == "none":
        return 0.0
    L, reach = setup.lipschitz, setup.smoothness * setup.diameter
    if target.calibration == "published":
        kappa = regularity(setup.q, setup.d)
        square = 8 * L**2 if depth == 0 else 128 * reach**2
        return math.sqrt(square * kappa * math.log(1 / DELTA)) / b
    multiplier = noise_multiplier(setup.q, setup.d, 1.0, DELTA, "tight")
    if depth == 0:
        return multiplier * 2 * L / b
    far = 0.0
    for before in range(leaf - 2 ** (t - depth), leaf):
        eta = 2 / (2 ** (t - 1) + before + 1)
        eta = 2 / (2**t + before) if consecutive else eta
        far = (1 - eta) * far + eta * setup.diameter
    return multiplier * 2 * setup.smoothness * far / (b / 2**depth)


@pytest.mark.parametrize("consecutive", [False, True])
@pytest.mark.parametrize("p", [1.0, 1.25, 2.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_noisy_sfw(loss, p, consecutive):
    setup, module = Setup(loss, p, 6, 0.8), registry.load("noisy_sfw")
    given = {"steps": "consecutive", "batch": "all"} if consecutive else {}
    x, y = records(700, 6, setup.q, loss=loss)
    found, taken = ended("noisy_sfw", setup, x, y, 3, **given)
    tree = module.tree(700, module.Options(**given))
    T, b, order = tree.phases, tree.batch, smooth_order(setup.q, 6)
    for setting, target in enumerate(TARGETS):
        rng = streams(3).noise

        def draw(rng=rng):
            return generalised_gaussian(rng, order, (1, 6))[0]

        def scales(*node, target=target):
            return tree_scale(setup, b, target, *node, consecutive)

        w, used = twins.noisy_sfw(x, y, loss, p, 0.8, setup.lipschitz, T, b, scales,
                                  draw, consecutive)  # fmt: skip
        np.testing.assert_allclose(found[setting], w, **EXACT)
        assert used == tree.records == taken <= 700


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("n", "d"), [(120, 5), (301, 5), (240, 150)])
def test_poly_sfw(loss, n, d):
    """Also with more coordinates than are searched at once, and some left over."""
    radius = 0.8
    setup, module = Setup(loss, 1.0, d, radius), registry.load("poly_sfw")
    x, y = records(n, d, math.inf, loss=loss)
    found, taken = ended("poly_sfw", setup, x, y, 5)
    own = streams(5)
    noise = laplace_rows(own.noise, own.sampling, (n - n // 2 + 1, 2 * d))
    eta = math.log(n / math.log(2 * d)) / n
    L0, L1, M = setup.lipschitz, setup.smoothness, 2 * radius
    unit = math.sqrt(math.log(1 / DELTA))
    printed = (
        4 * L0 * M * unit / math.sqrt(n),  # line 5
        2 * math.sqrt(n) * unit
        * max((1 - eta) * 2 * L0 * M / n, 2 * eta * (L1 * M**2 + L0 * M)),  # line 12
    )  # fmt: skip
    tight = module.noise(setup, n, TARGETS[1], module.Options()).scales
    vertices = radius * np.stack([np.eye(d), -np.eye(d)], axis=1).reshape(
        -1, d
    )
    for setting, scales in enumerate((printed, tight, (0.0, 0.0))):
        w, _, _ = twins.poly_sfw(
            x, y, loss, vertices, np.zeros(d), L0, eta, scales, noise
        )
        np.testing.assert_allclose(found[setting], w, **EXACT)
    assert taken == n


@pytest.mark.parametrize("p", [2.0, 4.0, math.inf])
@pytest.mark.parametrize("loss", LOSSES)
def test_phased_sgd(loss, p):
    n, d = 90, 4
    setup = Setup(loss, p, d, 0.7)
    x, y = records(n, d, setup.q, loss=loss)
    found, taken = ended("phased_sgd", setup, x, y, 3)
    noise, L = streams(3).noise.standard_normal((6, d)), setup.lipschitz
    diameter = 2 * 0.7 * d ** (0.5 - (0 if math.isinf(p) else 1 / p))
    tight = multipliers("phased_sgd", setup, n)[1]
    for setting, target in enumerate(TARGETS):
        private = target.epsilon / (2 * math.sqrt(d * math.log(1 / DELTA)))
        eta = diameter / L * min(4 / math.sqrt(n), private)
        eta = min(eta, 2 / setup.smoothness) if setup.smoothness else eta
        scale = 4 * L * eta * math.sqrt(math.log(1 / DELTA)) / target.epsilon
        scale = 2 * L * eta * tight if target.calibration == "tight" else scale
        w, _, used = twins.phased_sgd(x, y, loss, lambda v: setup.ball.project(v)[0], L,
                                      eta, scale, noise)  # fmt: skip
        np.testing.assert_allclose(found[setting], w, rtol=1e-8, atol=1e-9)
        assert used == taken <= n


@pytest.mark.parametrize(
    ("name", "p"),
    [
        ("sco_dp_fw", 1.0),  # over the vertices of the l_1 ball
        *itertools.product(("sco_dp_sgd", "sco_mirror_descent"), (1.0, 2.0)),
    ],
)
def test_baselines_of_streams(name, p):
    n, d, radius = 90, 4, 0.7
    setup = Setup("logistic", p, d, radius)
    x, y = records(n, d, setup.q, loss="logistic")
    L0, L2 = (
        setup.lipschitz,
        setup.lipschitz * (math.sqrt(d) if p == 1 else 1.0),
    )
    found, _ = ended(name, setup, x, y, 3)
    given = (x, y, "logistic", radius, L0, p, L2)
    for setting, z in enumerate(multipliers(name, setup, n)):
        w = getattr(twins, name)(*given, z, streams(3))
        np.testing.assert_allclose(found[setting], w, rtol=1e-8, atol=1e-10)


# --- all of them ----------------------------------------------------------------------

# that have a twin above
COMPARED = {case.algorithm for case in CASES.values()}
COMPARED |= {
    *(name.split()[0] for name in FITS),
    *STREAMS,
    "bcfw",
    "dp_bcfw",
    "dp_fw",
}
