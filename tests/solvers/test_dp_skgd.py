"""DP-SkGD: its twin, its reductions, its release, its noise, its samplings."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from conftest import PENALTIES, make_problem, raw_data
from dperm.core.erm.problem import build
from dperm.core.lanes import Lanes, dp_cd
from dperm.core.lanes.clipping import share
from dperm.core.privacy.accounting import epsilon
from dperm.core.privacy.calibration import calibrate
from dperm.core.privacy.mechanisms import streams
from dperm.solvers.lanes import dp_skgd
from dperm.solvers.lanes.dp_skgd import Options, Sketch, partition
from solvers import checks, twins

STEPS, CLIPS = np.array([0.1, 0.5, 1.0]), np.array([0.01, 0.3, 1e4])
SAMPLINGS = {
    "single": Options(composite=True),
    "single importance": Options(probabilities="importance", composite=True),
    "full": Options(blocks=1, composite=True),
    "blocks": Options(blocks=2, composite=True),
    "blocks importance": Options(blocks=3, probabilities="importance", composite=True),
    "random": Options(blocks=2, partition="random", seed=4, composite=True),
    "groups": Options(groups=((0, 4), (1,), (2, 3)), composite=True),
    "nice": Options(sampling="nice", size=3, composite=True),
}


@pytest.fixture(params=SAMPLINGS)
def options(request):
    return SAMPLINGS[request.param]


def run(problem, options, count, sigma=0.7, lanes=(STEPS, CLIPS), module=dp_skgd):
    found = module.Run(problem, Lanes(*lanes, sigma), streams(3), options, total=count)
    for part in (count // 3, count - count // 3):  # chunks must not matter
        found.advance(part)
    return found.weights


def valid_factor(loss, X, members):
    """Largest eigenvalue of the Hessian's bound on a set, scaled to unit diagonal."""
    H = X[:, members].T @ X[:, members]
    D = np.sqrt(np.diag(H))
    return np.linalg.eigvalsh(H / np.outer(D, D))[-1]


def twin(X, y, loss, penalty, step, clip, sigma, count, streams, blocks, importance,
         size=None, periods=0):  # fmt: skip
    """Algorithm 1 of Maranjyan et al. 2024, as printed, with C = I_S P^-1."""
    n, p = X.shape
    M = twins.smoothness(loss, X)
    valid = M.copy()
    if size:
        valid *= min(size, valid_factor(loss, X, np.arange(p)))
        chance = np.full(p, size / p)
    else:
        for A in blocks:
            valid[A] *= valid_factor(loss, X, A)
        tops = np.array([valid[A].max() for A in blocks])
        q = tops / tops.sum() if importance else np.full(len(blocks), 1 / len(blocks))
        chance = np.empty(p)
        for A, qa in zip(blocks, q, strict=True):
            chance[A] = qa
    gamma = step * chance / valid  # Gamma = P M^-1
    theta, iterates = np.zeros(p), []
    K = count // periods if periods else count + 1
    for _ in range(count):
        if size:
            S = np.sort(streams.sampling.choice(p, size, replace=False))
        elif importance:
            u = streams.sampling.random()
            S = blocks[min(np.searchsorted(np.cumsum(q), u, "right"), len(q) - 1)]
        else:
            S = blocks[streams.sampling.integers(0, len(blocks))]
        C_S = clip * np.sqrt(M[S].sum() / M.sum())
        G = phi(loss, X, y, theta)[:, None] * X[:, S]
        norms = np.linalg.norm(G, axis=1, keepdims=True)
        G = G * np.minimum(1.0, C_S / np.maximum(norms, 1e-300))
        eta = sigma * 2 * C_S / n * streams.noise.standard_normal(len(S))
        theta = theta.copy()
        move = gamma[S] / chance[S] * (G.mean(axis=0) + eta)
        theta[S] = twins.prox(theta[S] - move, step / valid[S], penalty)
        iterates.append(theta)
        if len(iterates) == K:
            theta, iterates = np.mean(iterates, axis=0), []
    return theta


def phi(loss, X, y, w):
    return X @ w - y if loss == "least_squares" else -y * expit(-y * (X @ w))


def twin_of(options, loss, penalty, lane, count, periods=0):
    X, y = raw_data(loss)
    blocks = None
    if options.sampling == "blocks":
        blocks = partition(make_problem(loss), options)
    return twin(X, y, loss, PENALTIES[penalty], STEPS[lane], CLIPS[lane], 0.7, count,
                streams(3), blocks, options.probabilities == "importance",
                options.size if options.sampling == "nice" else None,
                periods)  # fmt: skip


@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_kernel_agrees_with_its_twin(loss, penalty, options):
    found = run(make_problem(loss, penalty), options, 30)
    for lane in range(len(STEPS)):
        expected = twin_of(options, loss, penalty, lane, 30)
        np.testing.assert_allclose(found[lane], expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["full", "blocks importance", "nice", "single"])
def test_periodic_averages(loss, name):
    options = Options(**{**vars(SAMPLINGS[name]), "periods": 3})
    found = run(make_problem(loss, "l2"), options, 30)
    expected = twin_of(options, loss, "l2", 1, 30, periods=3)
    np.testing.assert_allclose(found[1], expected, rtol=1e-10, atol=1e-10)


# --- reductions -----------------------------------------------------------------------


@pytest.mark.parametrize("penalty", PENALTIES)
def test_single_uniform_is_dp_cd_bit_for_bit(loss, penalty):
    problem = make_problem(loss, penalty)
    found = run(problem, Options(composite=True), 200)
    expected = run(problem, dp_cd.Options("uniform"), 200, module=dp_cd)
    np.testing.assert_array_equal(found, expected)


def test_single_uniform_with_averages_is_dp_cd_bit_for_bit(loss):
    problem = make_problem(loss, "l2")
    found = run(problem, Options(periods=5), 200)
    expected = run(problem, dp_cd.Options("uniform", periods=5), 200, module=dp_cd)
    np.testing.assert_array_equal(found, expected)


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
    expected = run(problem, dp_cd.Options("uniform"), 100, module=dp_cd)
    monkeypatch.setattr(Sketch, "single", False)
    found = run(problem, Options(), 100)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_full_sampling_is_noisy_gradient_descent_with_a_step_matrix(loss):
    """Full batch, every coordinate, step gamma / (factor M_j), one clip."""
    X, y = raw_data(loss)
    n, p = X.shape
    M = twins.smoothness(loss, X)
    gamma = STEPS[1] / (valid_factor(loss, X, np.arange(p)) * M)
    noise, w = streams(3).noise, np.zeros(p)
    for _ in range(30):
        G = phi(loss, X, y, w)[:, None] * X
        G *= np.minimum(1, CLIPS[1] / np.linalg.norm(G, axis=1, keepdims=True))
        release = G.mean(axis=0) + 0.7 * 2 * CLIPS[1] / n * noise.standard_normal(p)
        w = (w - gamma * release) / (1 + 0.1 * gamma)
    found = run(make_problem(loss, "l2"), Options(blocks=1), 30)
    np.testing.assert_allclose(found[1], w, rtol=1e-10, atol=1e-12)


def test_full_and_nice_of_all_coordinates_agree(loss):
    problem = make_problem(loss, "l2")
    full = run(problem, Options(blocks=1), 20)
    nice = run(problem, Options(sampling="nice", size=5), 20)
    np.testing.assert_allclose(nice, full, rtol=1e-12)


# --- M on blocks ----------------------------------------------------------------------


def test_m_is_valid_on_the_blocks(loss):
    X, _ = raw_data(loss)
    problem = make_problem(loss)
    H = problem.loss.curvature * X.T @ X / len(X)
    for name, options in SAMPLINGS.items():
        sketch = Sketch(problem, options)
        sets = sketch.draw_nice(streams(0).sampling, 40) if sketch.nice else sketch.sets
        for S in sets:
            slack = np.diag(sketch.smoothness[S]) - H[np.ix_(S, S)]
            assert np.linalg.eigvalsh(slack)[0] >= -1e-12 * H.max(), name


def correlated():
    X, _ = raw_data("least_squares")
    X = X + 20.0 * np.random.default_rng(1).standard_normal((len(X), 1))
    return build("correlated", X, X @ np.ones(5), "least_squares", PENALTIES["none"])


def test_without_it_full_sampling_diverges():
    """The constants of single coordinates, as the paper takes them."""
    problem, printed = correlated(), np.zeros(5)
    lanes, free = (np.ones(1), np.full(1, np.inf)), {"sigma": 0.0}
    start = problem.objective(printed)[0]
    for _ in range(60):
        printed -= problem.gradient(printed) / problem.smoothness
    valid = run(problem, Options(blocks=1), 60, lanes=lanes, **free)
    assert not problem.objective(printed)[0] < 1e6 * start
    assert problem.objective(valid)[0] < start


def test_without_noise_every_sampling_finds_the_optimum(loss, options):
    from dperm.core.erm.optimum import solve

    problem = make_problem(loss)
    lanes = (np.ones(1), np.full(1, np.inf))
    found = run(problem, options, 20000, sigma=0.0, lanes=lanes)
    best = solve(problem).value
    np.testing.assert_allclose(problem.objective(found)[0], best, rtol=1e-9)


# --- privacy --------------------------------------------------------------------------


def drawn_set(problem, options, seed):
    """The set of the first step, drawn a second time from the same stream."""
    sketch, rng = Sketch(problem, options), streams(seed).sampling
    if sketch.nice:
        return sketch.draw_nice(rng, 1)[0]
    return sketch.sets[sketch.draw(rng, 1)[0]]


def scale_on(problem, options, clip, members):
    """(1 / M_j) 2 C_S / n, on a set."""
    M = problem.smoothness
    C_S = clip * np.sqrt(M[members].sum() / M.sum())
    scale = np.zeros(problem.p)
    valid = Sketch(problem, options).smoothness
    scale[members] = 2 * C_S / problem.n / valid[members]
    return scale


def noise_is_declared(start, options, draws=300):
    problem, clip, seen = checks.smooth_problem(), 0.8, []
    for seed in range(draws):
        loud, quiet = (
            checks.one_step(start, problem, sigma, clip, seed)
            for sigma in (checks.SIGMA, 0.0)
        )
        members = drawn_set(problem, options, seed)
        moved = (loud - quiet)[members]
        seen += (moved / checks.SIGMA / scale_on(problem, options, clip, members)[
                 members]).tolist()  # fmt: skip
    assert abs(np.std(seen) - 1) < 5 / np.sqrt(2 * len(seen))
    assert abs(np.mean(seen)) < 5 / np.sqrt(len(seen))


def sensitivity_is_kept(start, options, trials=80):
    """Search over neighbours: the release on S moves by 2 C_S / n in norm at most."""
    X, y = raw_data("logistic")
    rng, worst, clip = np.random.default_rng(5), 0.0, 0.05
    problem = checks.smooth_problem(X, y)
    valid = Sketch(problem, options).smoothness
    for trial in range(trials):
        Z, t = X.copy(), y.copy()
        Z[0] = rng.standard_normal(5) * 10.0 ** rng.uniform(-1, 3)
        t[0] = rng.choice([-1.0, 1.0])
        other = replace(checks.smooth_problem(Z, t), public=problem)
        members = drawn_set(problem, options, trial)
        a, b = (
            checks.one_step(start, one, 0.0, clip, trial) for one in (problem, other)
        )
        if (np.flatnonzero(a) != members).any():
            continue
        M = problem.smoothness
        bound = 2 * clip * np.sqrt(M[members].sum() / M.sum()) / problem.n
        worst = max(worst, np.linalg.norm((a - b) * valid) / bound)
    assert 0.5 < worst <= 1 + 1e-9


@pytest.fixture(autouse=True)
def same_sketch_for_neighbours(monkeypatch, request):
    """Probabilities and M are public: neighbours are compared under the same ones."""
    if "sensitivity" in request.node.name or "broken" in request.node.name:
        known = {}
        inner = Sketch.__init__

        def init(self, problem, options):
            key = repr(options)
            first = known.setdefault(key, problem)
            inner(self, first, options)

        monkeypatch.setattr(Sketch, "__init__", init)


def test_noise_has_the_declared_scale(options):
    noise_is_declared(checks.solver(dp_skgd, options), options)


def test_sensitivity_over_neighbours(options):
    sensitivity_is_kept(checks.solver(dp_skgd, options), options)


def test_lanes_do_not_touch(options):
    checks.lanes_do_not_touch(checks.solver(dp_skgd, options))


def test_noise_is_fresh(options):
    checks.noise_is_fresh(checks.solver(dp_skgd, options))


class HalfNoise(dp_skgd.Run):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.scale = self.scale / 2


class ClipEachCoordinate(dp_skgd.Run):
    """Thresholds of a block that grow with its size: p times the norm."""

    def _inverse_norms(self, sets):
        return super()._inverse_norms(sets) * 3


class NoiseOfTheWhole(dp_skgd.Run):
    """One noise scale for all sets, that of the smallest share."""

    def _block_steps(self, done, order, sets):
        M = self.problem.smoothness
        share = dp_skgd.shares(M, sets)[order[0]]
        kept, self.scale = self.scale, self.scale * np.sqrt(M.min() / M.sum()) / share
        super()._block_steps(done, order, sets)
        self.scale = kept


def broken(kind, options):
    def start(problem, lanes, seed):
        return kind(problem, lanes, streams(seed), options, total=1)

    return start


@pytest.mark.parametrize("name", ["single", "blocks importance", "full", "nice"])
def test_broken_noise_is_caught(name):
    options = SAMPLINGS[name]
    with pytest.raises(AssertionError):
        noise_is_declared(broken(HalfNoise, options), options)


@pytest.mark.parametrize("name", ["blocks", "nice"])
def test_broken_noise_by_block_is_caught(name):
    with pytest.raises(AssertionError):
        noise_is_declared(broken(NoiseOfTheWhole, SAMPLINGS[name]), SAMPLINGS[name])


@pytest.mark.parametrize("name", ["blocks", "full", "nice"])
def test_broken_clip_is_caught(name):
    with pytest.raises(AssertionError):
        sensitivity_is_kept(broken(ClipEachCoordinate, SAMPLINGS[name]),
                            SAMPLINGS[name])  # fmt: skip


@pytest.mark.parametrize("name", ["single", "blocks"])
def test_a_sensitivity_without_its_two_is_caught(name, monkeypatch):
    for module in (dp_skgd, dp_cd):
        declared = module.mean_sensitivity
        halved = lambda *args, declared=declared: declared(*args) / 2  # noqa: E731
        monkeypatch.setattr(module, "mean_sensitivity", halved)
    with pytest.raises(AssertionError):
        noise_is_declared(checks.solver(dp_skgd, SAMPLINGS[name]), SAMPLINGS[name])


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
    assert epsilon(ledger, delta, "strict") == pytest.approx(
        pld.get_epsilon(delta), rel=2e-3
    )
    # dp-accounting converts by a tighter formula than Proposition 3 of Mironov 2017
    assert rdp.get_epsilon(delta) < epsilon(ledger, delta, "paper")
    assert found.claimed_epsilon == pytest.approx(1.0, rel=1e-6)


def test_the_noise_of_theorem_4_1_is_safe_and_loose():
    """Simplified from a Renyi curve that asks for less, and exactly for less still."""
    problem, delta = make_problem("logistic", "l2"), 1e-6
    for count in (1, 30, 1000):
        printed = np.sqrt(3 * count * np.log(1 / delta))  # sigma_U n / (2 L_U)
        paper, strict = (
            calibrate(
                lambda s, k=count: dp_skgd.ledger(problem, k, s, Options()),
                1.0, delta, kind,
            ).noise_multiplier
            for kind in ("paper", "strict")
        )  # fmt: skip
        assert 0.6 * printed < strict < paper < 0.9 * printed
        ledger = dp_skgd.ledger(problem, count, float(printed), Options())
        assert epsilon(ledger, delta, "strict") < epsilon(ledger, delta, "paper") < 1


# --- samplings and options ------------------------------------------------------------


@pytest.mark.parametrize("split", dp_skgd.PARTITIONS)
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_partitions(split, count):
    problem = make_problem("logistic")
    blocks = partition(problem, Options(blocks=count, partition=split))
    assert sorted(np.concatenate(blocks)) == list(range(5)) and len(blocks) == count
    firsts = [block[0] for block in blocks]
    assert firsts == sorted(firsts)
    assert all((np.diff(block) > 0).all() for block in blocks)


def test_probabilities_are_those_declared(options):
    sketch = Sketch(make_problem("logistic"), options)
    rng, count, draws = streams(1).sampling, np.zeros(5), 20000
    if sketch.nice:
        sets = sketch.draw_nice(rng, draws)
    else:
        sets = [sketch.sets[i] for i in sketch.draw(rng, draws)]
    for members in sets:
        count[members] += 1
    np.testing.assert_allclose(count / draws, sketch.probability, atol=0.02)
    assert sketch.probability.sum() == pytest.approx(sketch.expected_size)


def test_importance_follows_the_largest_constant():
    problem = make_problem("logistic")
    sketch = Sketch(problem, Options(probabilities="importance"))
    M = problem.smoothness
    np.testing.assert_allclose(sketch.q, M / M.sum())


def test_a_pass_touches_p_coordinates():
    problem = make_problem("logistic")
    assert dp_skgd.steps(problem, 4, Options()) == 20
    assert dp_skgd.steps(problem, 4, Options(blocks=1)) == 4
    assert dp_skgd.steps(problem, 4, Options(sampling="nice", size=2)) == 10
    assert dp_skgd.steps(problem, 0.01, Options()) == 1


def test_thresholds_reduce_to_those_of_dp_cd_and_to_the_clip():
    M = np.array([1.0, 4.0, 9.0])
    single = dp_skgd.shares(M, [np.array([j]) for j in range(3)])
    np.testing.assert_allclose(single, share(M))
    assert dp_skgd.shares(M, [np.arange(3)])[0] == 1.0


@pytest.mark.parametrize(
    "given",
    [
        {"sampling": "twice"},
        {"probabilities": "large"},
        {"partition": "odd"},
        {"blocks": -1},
        {"size": 0},
        {"sampling": "nice", "probabilities": "importance"},
    ],
)
def test_refused_options(given):
    with pytest.raises(ValueError, match=r"options\."):
        Options(**given)


def test_refused_on_a_problem():
    problem = make_problem("logistic", "l2")
    lanes = Lanes(np.ones(1), np.ones(1), 1.0)
    for options in (
        Options(blocks=6),
        Options(sampling="nice", size=6),
        Options(groups=((0, 1), (1, 2, 3, 4))),
    ):
        with pytest.raises(ValueError, match=r"options\."):
            dp_skgd.Run(problem, lanes, streams(0), options)
    for penalty in ("l1", "box"):
        with pytest.raises(ValueError, match="composite"):
            dp_skgd.Run(make_problem("logistic", penalty), lanes, streams(0), Options())


def test_workers_and_dropped_lanes_do_not_matter(options):
    problem = make_problem("logistic")
    lanes = Lanes(np.linspace(0.01, 1, 60), np.linspace(0.1, 5, 60), 0.5)
    found = []
    for workers in (1, 3):
        run = dp_skgd.Run(problem, lanes, streams(2), options, workers=workers)
        run.advance(10)
        if workers == 3:
            run.keep(np.arange(60) % 3 == 0)
        run.advance(15)
        found.append(run.weights)
    np.testing.assert_array_equal(found[0][::3], found[1])
