"""What every solver promises, and that each check catches a kernel that breaks it."""

import re

import numpy as np
import pytest

from dperm.core import solvers
from dperm.core.experiment.config import compose
from dperm.core.lanes import Lanes, dp_cd
from dperm.core.privacy.mechanisms import streams
from dperm.core.solvers.capabilities import kept_sparse, obstacle
from dperm.solvers.lanes import dp_cd_priv, dp_gcd, dp_sgd, dp_skgd, dp_svrg
from solvers import checks


def cd_scale(problem, clip):
    """Noise of a DP-CD step in w_j: (1 / M_j) 2 C_j / n (Section 5.1)."""
    M = problem.smoothness
    return 2.0 * np.sqrt(M / M.sum()) * clip / problem.n / M


def sgd_scale(problem, clip):
    """Noise of one DP-SGD step: 2 C / beta, the same in every coordinate."""
    return np.full(problem.p, 2.0 * clip / problem.global_smoothness)


def cd_release(problem, w):
    """The clipped mean derivatives behind a step of size 1 / M_j from zero."""
    return -w * problem.smoothness


def cd_bound(problem, clip):
    return cd_scale(problem, clip) * problem.smoothness


def sgd_release(problem, w):
    """The clipped gradient behind a step of size 1 / beta from zero, as its norm."""
    return np.array([np.linalg.norm(w * problem.global_smoothness)])


def sgd_bound(problem, clip):
    """A record's clipped gradient has norm C at most; two of them differ by 2 C."""
    return np.array([clip])


class OneRecord(dp_sgd.Run):
    """DP-SGD that always reads the record that neighbours differ in."""

    def _batches(self, count):
        return np.zeros((count, 1), dtype=np.int64)


SOLVERS = {
    "dp_cd": (checks.solver(dp_cd, dp_cd.Options()), cd_scale),
    "dp_cd_uniform": (
        checks.solver(dp_cd, dp_cd.Options(sampling="uniform")),
        cd_scale,
    ),
    "dp_sgd": (checks.solver(dp_sgd, dp_sgd.Options()), sgd_scale),
}


def of(run, options):
    def start(problem, lanes, seed):
        return run(problem, lanes, streams(seed), options, total=1)

    return start


@pytest.fixture(params=SOLVERS)
def solver(request):
    return SOLVERS[request.param]


def test_noise_has_the_declared_scale(solver):
    checks.noise_has_the_declared_scale(*solver)


def test_noise_is_fresh(solver):
    checks.noise_is_fresh(solver[0])


def test_lanes_do_not_touch(solver):
    checks.lanes_do_not_touch(solver[0])


def test_private_constants_are_shared_by_the_lanes():
    checks.lanes_do_not_touch(checks.solver(dp_cd_priv, dp_cd_priv.Options()))


def test_sensitivity_of_dp_cd():
    start = checks.solver(dp_cd, dp_cd.Options())
    checks.sensitivity_is_kept(start, cd_release, cd_bound)


def test_sensitivity_of_dp_sgd():
    start = of(OneRecord, dp_sgd.Options())
    checks.sensitivity_is_kept(start, sgd_release, sgd_bound)


# Deliberately broken kernels: each must be caught by the check it names.


class HalfNoiseCD(dp_cd.Run):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.scale = self.scale / 2


class HalfNoiseSGD(dp_sgd.Run):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.constants[:, 2] /= 2


class NoClipCD(dp_cd.Run):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.clip = np.full_like(self.clip, np.inf)


class NoClipSGD(OneRecord):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.constants[:, 1] = np.inf


class SameNoiseEachStep(dp_cd.Run):
    def _steps(self, count):
        self.streams = streams(4)
        super()._steps(count)


class SameNoiseEachStepSGD(dp_sgd.Run):
    def _steps(self, count):
        self.streams = streams(4)
        super()._steps(count)


class LeakyCD(dp_cd.Run):
    def advance(self, count):
        super().advance(count)
        self.weights[1:] += 1e-13 * self.weights[:-1]


class LeakySGD(dp_sgd.Run):
    def advance(self, count):
        super().advance(count)
        self.tiles[:, :, 1:] += 1e-13 * self.tiles[:, :, :-1]


CD, SGD = dp_cd.Options(), dp_sgd.Options()
BROKEN = {
    "half noise, dp_cd": lambda: checks.noise_has_the_declared_scale(
        of(HalfNoiseCD, CD), cd_scale
    ),
    "half noise, dp_sgd": lambda: checks.noise_has_the_declared_scale(
        of(HalfNoiseSGD, SGD), sgd_scale
    ),
    "clip skipped, dp_cd": lambda: checks.sensitivity_is_kept(
        of(NoClipCD, CD), cd_release, cd_bound
    ),
    "clip skipped, dp_sgd": lambda: checks.sensitivity_is_kept(
        of(NoClipSGD, SGD), sgd_release, sgd_bound
    ),
    "noise reused, dp_cd": lambda: checks.noise_is_fresh(of(SameNoiseEachStep, CD)),
    "noise reused, dp_sgd": lambda: checks.noise_is_fresh(
        of(SameNoiseEachStepSGD, SGD)
    ),
    "lanes leak, dp_cd": lambda: checks.lanes_do_not_touch(of(LeakyCD, CD)),
    "lanes leak, dp_sgd": lambda: checks.lanes_do_not_touch(of(LeakySGD, SGD)),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_kernels_are_caught(name):
    with pytest.raises(AssertionError):
        BROKEN[name]()


@pytest.mark.parametrize(
    ("module", "name"), [(dp_cd, "mean_sensitivity"), (dp_sgd, "sum_sensitivity")]
)
def test_a_sensitivity_without_its_two_is_caught(module, name, monkeypatch):
    declared = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *args: declared(*args) / 2)
    start, scale = SOLVERS[module.__name__.rsplit(".", 1)[1]]
    with pytest.raises(AssertionError):
        checks.noise_has_the_declared_scale(start, scale)


def test_without_noise_and_clip_the_method_is_the_public_one(loss):
    """epsilon = infinity: proximal coordinate descent, which finds the optimum."""
    from conftest import make_problem
    from dperm.core.erm.optimum import solve

    problem = make_problem(loss)
    lanes = Lanes(np.ones(1), np.full(1, np.inf), 0.0)
    run = dp_cd.Run(problem, lanes, streams(0), dp_cd.Options())
    run.advance(4000 * problem.p)
    best = solve(problem)
    np.testing.assert_allclose(
        problem.objective(run.weights)[0], best.value, rtol=1e-12
    )


@pytest.mark.parametrize("module", [dp_cd, dp_sgd])
def test_workers_do_not_matter(module, loss):
    from conftest import make_problem

    problem = make_problem(loss)
    lanes = Lanes(np.linspace(0.01, 1, 700), np.linspace(0.1, 5, 700), 0.5)
    found = []
    for workers in (1, 2, 3):
        run = module.Run(problem, lanes, streams(2), module.Options(), workers=workers)
        run.advance(30)
        found.append(run.weights)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("module", [dp_cd, dp_sgd])
def test_dropping_lanes_leaves_the_others_alone(module, loss):
    from conftest import make_problem

    def start(problem, lanes, seed):
        return module.Run(problem, lanes, streams(seed), module.Options())

    checks.lanes_may_be_dropped(start, make_problem(loss))


@pytest.mark.parametrize("module", [dp_cd, dp_gcd, dp_sgd, dp_skgd, dp_svrg])
def test_every_lane_may_be_dropped(module):
    """A lane that runs alone, as in an evaluation, may diverge."""
    from conftest import make_problem

    problem = make_problem("least_squares", "l2")
    lanes = Lanes(np.full(1, 0.1), np.full(1, 1.0), 0.5, "strict")
    run = module.Run(problem, lanes, streams(2), module.Options(), total=4)
    run.advance(2)
    run.keep(np.zeros(1, dtype=bool))
    assert run.weights.shape == (0, problem.p)


# --- what a solver cannot work with, by what it declares ------------------------------


SPARSE = ["problem=sparse_small"]


def why(algorithm, *overrides, **options):
    module = solvers.load(algorithm)
    made = solvers.make_options(module, options)
    return obstacle(module, made, compose(list(overrides)).problem)


@pytest.mark.parametrize(
    ("algorithm", "overrides", "options", "said"),
    [
        ("dp_cd", SPARSE, {}, ""),
        ("dp_gcd", SPARSE, {}, ""),
        ("dp_sgd", SPARSE, {}, ""),
        ("dp_svrg", SPARSE, {}, "kept sparse: .*found dp_svrg"),
        ("dp_cd", SPARSE, {"periods": 2}, r"options\.periods"),
        ("dp_cd_priv", SPARSE, {"periods": 2}, r"options\.periods"),
        ("dp_cd", ["problem=diabetes"], {"periods": 2}, ""),
        ("dp_skgd", ["problem=california_raw"], {}, r"options\.composite: true"),
        ("dp_skgd", ["problem=california_raw"], {"composite": True}, ""),
        ("dp_skgd", ["problem=breast_cancer"], {}, ""),
        ("dp_fw", ["problem=diabetes"], {}, "family frank_wolfe"),
        ("noisy_sfw", ["problem=diabetes"], {}, "family streams"),
    ],
)
def test_obstacles(algorithm, overrides, options, said):
    found = why(algorithm, *overrides, **options)
    assert re.search(said, found) if said else found == ""


def test_what_is_sparse_is_known_before_it_is_read():
    sparse = {"sparse_small", "dorothea", "rcv1_train"}
    for name in (*sparse, "madelon_l1", "colon_cancer", "diabetes"):
        assert kept_sparse(compose([f"problem={name}"]).problem.dataset) == (
            name in sparse
        )
