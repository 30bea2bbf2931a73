"""What every solver of lanes promises; each check is seen to notice what breaks it."""

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats

from conftest import PENALTIES, make_problem, raw_data
from dperm.core import solvers
from dperm.core.erm.optimum import solve
from dperm.core.erm.problem import build
from dperm.core.experiment.config import compose
from dperm.core.lanes import Lanes, dp_cd
from dperm.core.privacy.calibration import calibrate
from dperm.core.privacy.mechanisms import streams
from dperm.core.solvers.capabilities import kept_sparse, obstacle
from dperm.solvers.lanes import dp_cd_priv, dp_gcd, dp_sgd, dp_skgd, dp_svrg
from solvers import checks, reference

CLIPS, STEPS = np.array([0.01, 0.3, 2.0, 1e4]), np.array([0.1, 0.5, 1.0, 0.7])
NOISE = 0.7
SOLVERS = (dp_cd, dp_cd_priv, dp_gcd, dp_sgd, dp_skgd, dp_svrg)


@dataclass(frozen=True)
class Case:
    """A solver with options.

    ``slow`` is a factor of its steps; ``exact`` a number of steps, if any, after which
    it is at the optimum where there is neither noise nor a clip.
    """

    module: Any
    options: dict[str, Any]
    count: int = 40
    slow: float = 1.0
    sparse: bool = False
    calibration: str = "paper"
    exact: int = 0

    @property
    def made(self):
        return self.module.Options(**self.options)

    def start(self, problem, lanes, seed=3, workers=1, kind=None):
        given = (problem, lanes, streams(seed), self.made)
        return (kind or self.module.Run)(*given, workers=workers, total=self.count)

    def run(self, problem, lanes, parts=(0.3, 0.7), **more):
        run = self.start(problem, lanes, **more)
        for part in parts:
            run.advance(round(part * self.count))
        return run.weights

    def reference(self, X, y, loss, penalty, lane):
        more = {}
        if self.module is dp_gcd:
            more["inside"] = self.calibration == "paper"
        if self.module is dp_skgd and self.made.sampling == "blocks":
            problem = build("x", X, y, loss, penalty)
            more["blocks"] = dp_skgd.partition(problem, self.made)
        name = self.module.__name__.rpartition(".")[2]
        given = (X, y, loss, penalty, lane, self.count, streams(3), self.made)
        return getattr(reference, name)(*given, **more)


def skgd(**options):
    return Case(dp_skgd, {"composite": True, **options}, 30)


def gcd(**options):
    return Case(dp_gcd, options, 12, sparse=True)


CASES = {
    "cd": Case(dp_cd, {}, sparse=True, exact=20_000),
    "cd uniform": Case(dp_cd, {"sampling": "uniform"}, sparse=True),
    "cd reshuffled": Case(dp_cd, {"sampling": "reshuffled"}, sparse=True),
    "cd equal": Case(dp_cd, {"thresholds": "equal"}, sparse=True),
    "cd averages": Case(dp_cd, {"sampling": "uniform", "periods": 4}, sparse=True),
    "cd uneven": Case(dp_cd, {"sampling": "uniform", "periods": 4}, 42),
    "cd private": Case(dp_cd_priv, {}, sparse=True),
    "sgd": Case(dp_sgd, {}, 50, 0.1, sparse=True),
    "sgd batch": Case(dp_sgd, {"batch": 3}, 50, 0.1, sparse=True),
    "svrg": Case(dp_svrg, {"inner": 0.25}, 130, 0.1),
    "svrg long": Case(dp_svrg, {"inner": 1.0}, 130, 0.1, exact=60_000),
    **{f"gcd {rule}": replace(gcd(rule=rule), calibration="strict", exact=3000)
       for rule in dp_gcd.RULES},
    **{f"gcd {rule} paper": gcd(rule=rule) for rule in dp_gcd.RULES},
    "gcd gumbel": gcd(noise="gumbel"),
    "skgd": skgd(),
    "skgd importance": skgd(probabilities="importance"),
    "skgd full": skgd(blocks=1),
    "skgd blocks": skgd(blocks=2),
    "skgd blocks importance": skgd(blocks=3, probabilities="importance"),
    "skgd random": skgd(blocks=2, partition="random", seed=4),
    "skgd groups": skgd(groups=((0, 4), (1,), (2, 3))),
    "skgd nice": skgd(sampling="nice", size=3),
    "skgd averages": skgd(blocks=2, periods=3),
}  # fmt: skip
FORMS = [(name, "dense") for name in CASES]
FORMS += [(name, "sparse") for name, case in CASES.items() if case.sparse]


def thin_data(loss, n=40, p=24):
    """Few entries: a record and a column have one at most, another has no zero."""
    rng = np.random.default_rng(8)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.2)
    X[3], X[:, 5], X[0, 5] = 0.0, 0.0, 1.0
    X[:, 6] = 1.0 + rng.random(n)
    y = X @ rng.standard_normal(p) + 0.3 * rng.standard_normal(n)
    return X, y if loss == "least_squares" else np.where(y > 0, 1.0, -1.0)


def data(form, loss, penalty="l1"):
    """A problem, and the X and y that its reference takes."""
    if form == "dense":
        return make_problem(loss, penalty), *raw_data(loss)
    X, y = thin_data(loss)
    given = (y, loss, PENALTIES[penalty], 1.0, 1e-4)
    return build("thin", sparse.csc_array(X), *given), X, y


# --- kernels as the papers print them -------------------------------------------------


def agrees(name, form, loss, penalty, kind=None):
    """Scales, clips, draws and the order of the steps, in every lane."""
    case, (problem, X, y) = CASES[name], data(form, loss, penalty)
    steps = case.slow * STEPS
    lanes = Lanes(steps, CLIPS, NOISE, case.calibration)
    found = case.run(problem, lanes, kind=kind)
    for k, lane in enumerate(zip(steps, CLIPS, strict=True)):
        expected = case.reference(X, y, loss, PENALTIES[penalty], (*lane, NOISE))
        np.testing.assert_allclose(found[k], expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize(("name", "form"), FORMS)
def test_a_kernel_is_its_reference(name, form, loss, penalty):
    agrees(name, form, loss, penalty)


def altered(case, row, factor):
    """A Run with another constant."""

    class Altered(case.module.Run):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.constants[:, row] *= factor

    return Altered


ROWS = {dp_cd: 3, dp_cd_priv: 3, dp_gcd: 4, dp_sgd: 5, dp_skgd: 3, dp_svrg: 6}


@pytest.mark.parametrize(
    ("name", "row"),
    [(name, row) for name, case in CASES.items() for row in range(ROWS[case.module])],
)
def test_every_constant_that_is_wrong_is_noticed(name, row):
    """Step, clip, noise, threshold, shrinkage; a score's noise under strict."""
    case = CASES[name]
    if case.module is dp_gcd and row == 3:
        row += case.calibration == "strict" or case.options.get("noise") is not None
    with pytest.raises(AssertionError):
        agrees(name, "dense", "logistic", "elastic", altered(case, row, 0.5))


@pytest.mark.parametrize("name", [name for name in CASES if name != "cd uneven"])
def test_noise_that_is_drawn_twice_is_noticed(name):
    class Repeated(CASES[name].module.Run):
        def draw(self, count):
            self.streams = streams(4)
            return super().draw(count)

    with pytest.raises(AssertionError):
        agrees(name, "dense", "logistic", "elastic", Repeated)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.exact])
def test_without_noise_and_clip_it_finds_the_optimum(name, loss):
    case, problem = CASES[name], make_problem(loss, "l1")
    lanes = Lanes(np.full(1, case.slow), np.full(1, np.inf), 0.0)
    found = replace(case, count=case.exact).run(problem, lanes)
    best = solve(problem).value
    np.testing.assert_allclose(problem.objective(found)[0], best, rtol=1e-6)


def test_a_record_of_zeros_is_harmless():
    X, y = raw_data("least_squares")
    X[3] = 0.0
    problem = build("zero", X, y, "least_squares", PENALTIES["none"])
    for name in ("sgd", "svrg"):
        lanes = Lanes(0.1 * STEPS, CLIPS, NOISE)
        assert np.isfinite(CASES[name].run(problem, lanes)).all()


# --- bits -----------------------------------------------------------------------------


def same_bits(name, form, kind=None):
    """Alone, in a block, in chunks, with workers, after others were dropped."""
    case, (problem, *_) = CASES[name], data(form, "logistic")
    rng = np.random.default_rng(2)
    step, clip = rng.uniform(0.01, 1.0, 70), 10.0 ** rng.uniform(-2, 2, 70)
    lanes = Lanes(case.slow * step, clip, NOISE, case.calibration)
    found = case.run(problem, lanes, kind=kind)
    again = case.run(problem, lanes, (1.0,), workers=3, kind=kind)
    np.testing.assert_array_equal(found, again)
    for some in ([0], [7], [8], [63], [69], [0, 1, 2], [*range(9)]):
        apart = case.run(problem, lanes.take(some), kind=kind)
        np.testing.assert_array_equal(found[some], apart)
    run, mask = case.start(problem, lanes, kind=kind), np.arange(70) % 3 == 0
    run.advance(round(0.3 * case.count))
    run.keep(mask)
    run.advance(round(0.7 * case.count))
    np.testing.assert_array_equal(found[mask], run.weights)
    run.keep(np.zeros(mask.sum(), dtype=bool))
    assert run.weights.shape == (0, problem.p)


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_a_lane_has_the_same_bits_wherever_it_runs(name, form):
    same_bits(name, form)


@pytest.mark.parametrize("name", CASES)
def test_lanes_that_touch_are_noticed(name):
    class Leaking(CASES[name].module.Run):
        def advance(self, count):
            super().advance(count)
            side = self.tiles.reshape(len(self.tiles), -1, self.tiles.shape[2])
            side[:, : self.problem.p] += 1e-13 * side.mean()

    with pytest.raises(AssertionError):
        same_bits(name, "dense", Leaking)


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_draws_in_small_pieces_change_no_bit(name, form, monkeypatch):
    """Also where a second thread draws for the steps that follow."""
    case, (problem, *_) = CASES[name], data(form, "logistic")
    lanes = Lanes(case.slow * STEPS, CLIPS, NOISE, case.calibration)
    found = case.run(problem, lanes)
    for workers in (1, 2):
        run = case.start(problem, lanes, workers=workers)
        run.draws, run.step_draws = 7, 1
        run.advance(case.count)
        np.testing.assert_array_equal(found, run.weights)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.sparse])
def test_no_dense_copy_of_sparse_data_is_made(name, monkeypatch):
    case, (problem, *_) = CASES[name], data("sparse", "logistic")
    problem.global_smoothness  # noqa: B018 (n x n or p x p, whichever is smaller)

    def refuse(*args, **kwargs):
        raise AssertionError("a dense copy")

    for kind in (sparse.csc_array, sparse.csr_array):
        for method in ("toarray", "todense"):
            monkeypatch.setattr(kind, method, refuse)
    problem.objective(case.run(problem, Lanes(STEPS, CLIPS, NOISE)))


# --- noise and sensitivity of one release ---------------------------------------------


def set_of(case, problem, seed):
    """The coordinates that the first step touches, drawn a second time."""
    rng, p = streams(seed).sampling, problem.p
    if case.module is dp_cd:
        if case.made.sampling == "reshuffled":
            return rng.permutation(p)[:1]
        return [1 if case.made.sampling == "cyclic" else rng.integers(0, p)]
    if case.module is not dp_skgd:
        return [*range(p)]
    sketch = dp_skgd.Sketch(problem.known, case.made)
    if sketch.nice:
        return sketch.draw_nice(rng, 1)[0]
    return sketch.sets[sketch.draw(rng, 1)[0]]


def unit(case, problem, clip, S):
    """The paper's sensitivity in w, on the set of a step of size 1, (len(S),)."""
    M, n = problem.smoothness, problem.n
    if case.module in (dp_sgd, dp_svrg):
        batch = getattr(case.made, "batch", 1)
        return np.full(len(S), 2 * clip / batch / problem.global_smoothness)
    valid, share = M, np.sqrt(M[S].sum() / M.sum())
    if case.module is dp_skgd:
        valid = dp_skgd.Sketch(problem.known, case.made).smoothness
    if case.options.get("thresholds") == "equal":
        share = 1 / np.sqrt(problem.p)
    return 2 * clip * share / n / valid[S]


def one_step(case, problem, noise, clip, seed, kind=None):
    lanes = Lanes(np.ones(1), np.full(1, clip), noise, case.calibration)
    run = replace(case, count=1).start(problem, lanes, seed, kind=kind)
    run.advance(1)
    return run.weights[0]


# The noise of DP-CD-priv-cst moves its steps, and that of DP-GCD its choices.
PLAIN = [name for name in CASES if not name.startswith(("gcd", "cd private"))]


@pytest.mark.parametrize("name", PLAIN)
def test_noise_has_the_declared_scale(name):
    """A step less the same step without noise, in units of the sensitivity."""
    case, problem, seen = CASES[name], checks.smooth_problem(), []
    for seed in range(300):
        S = set_of(case, problem, seed)
        loud, quiet = (one_step(case, problem, s, 0.8, seed) for s in (1.7, 0.0))
        assert (np.flatnonzero(loud - quiet) == S).all()
        seen += ((loud - quiet)[S] / unit(case, problem, 0.8, S)).tolist()
    inner = case.options.get("inner")  # a full gradient's noise is that of m steps
    scale = 1.7 * (1 + 1 / round(inner * problem.n) if inner else 1) ** 0.5
    assert stats.kstest(seen, "norm", args=(0, scale)).pvalue > 1e-4
    assert abs(np.std(seen) / scale - 1) < 5 / np.sqrt(2 * len(seen))


def furthest(name, kind=None):
    """How far a replaced record moves a release, in units of the sensitivity."""
    case, clip, worst = CASES[name], 0.05, 0.0
    X, y = raw_data("logistic")
    rng, problem = np.random.default_rng(5), checks.smooth_problem(X, y)
    for trial in range(80):
        i = 0
        if case.module is dp_sgd:  # a record that the first batch reads
            drawn, size = streams(trial).sampling, case.options.get("batch", 1)
            i = drawn.choice(len(y), size, replace=False)[0] if size > 1 else (
                drawn.integers(0, len(y), (1, 1))[0, 0]
            )  # fmt: skip
        Z, t = X.copy(), y.copy()
        Z[i] = rng.standard_normal(5) * 10.0 ** rng.uniform(-1, 3)
        t[i] = rng.choice([-1.0, 1.0])
        other = replace(checks.smooth_problem(Z, t), public=problem)
        both = [one_step(case, one, 0.0, clip, trial, kind) for one in (problem, other)]
        if case.module is dp_gcd and not (both[0] * both[1]).any():
            continue  # other coordinates are chosen
        S = set_of(case, problem, trial)
        if case.module is dp_gcd:
            S = np.flatnonzero(both[0])
        moved = (both[0] - both[1])[S] / unit(case, problem, clip, S)
        worst = max(worst, float(np.linalg.norm(moved)))
    return worst * (len(y) if case.module is dp_svrg else 1)  # a mean of n gradients


QUIET = [name for name in CASES if name != "cd private"]


@pytest.mark.parametrize("name", QUIET)
def test_no_record_moves_a_release_beyond_the_sensitivity(name):
    assert 0.5 < furthest(name) <= 1 + 1e-9


@pytest.mark.parametrize("name", QUIET)
def test_a_clip_that_is_too_large_is_noticed(name):
    assert furthest(name, altered(CASES[name], 1, 3.0)) > 1 + 1e-9


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


@pytest.mark.parametrize("kind", ["paper", "strict"])
@pytest.mark.parametrize("module", SOLVERS)
def test_noise_is_calibrated_to_the_target(module, kind):
    problem, made = make_problem("logistic", "l2"), module.Options()
    found = calibrate(
        lambda noise: module.ledger(problem, 24, noise, made, kind), 1.0, 1e-4, kind
    )
    assert 0.95 < found.claimed_epsilon <= 1.0 + 1e-6


@pytest.mark.parametrize(
    ("module", "options", "passes", "steps"),
    [
        (dp_cd, {}, 4, 20), (dp_sgd, {}, 4, 240), (dp_sgd, {"batch": 3}, 4, 80),
        (dp_gcd, {}, 4, 4), (dp_svrg, {}, 4, 120), (dp_svrg, {"inner": 0.5}, 3, 60),
        (dp_skgd, {}, 4, 20), (dp_skgd, {"blocks": 1}, 4, 4),
        (dp_skgd, {"sampling": "nice", "size": 2}, 4, 10), (dp_skgd, {}, 0.01, 1),
    ],
)  # fmt: skip
def test_a_pass_reads_every_record_once(module, options, passes, steps):
    made = module.Options(**options)
    assert module.steps(make_problem("logistic"), passes, made) == steps


# --- refusals -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "options"),
    [
        (dp_gcd, {"rule": "GS"}), (dp_gcd, {"noise": "normal"}),
        (dp_svrg, {"inner": 0}), (dp_skgd, {"sampling": "twice"}),
        (dp_skgd, {"probabilities": "large"}),
        (dp_skgd, {"partition": "odd"}), (dp_skgd, {"blocks": -1}),
        (dp_skgd, {"size": 0}), (dp_sgd, {"batch": 0}), (dp_cd, {"sampling": "odd"}),
        (dp_skgd, {"sampling": "nice", "probabilities": "importance"}),
    ],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(module, options):
    with pytest.raises(ValueError, match=r"options\.|expected one of"):
        module.Options(**options)


SPARSE = ["problem=sparse_small"]


@pytest.mark.parametrize(
    ("algorithm", "overrides", "options", "said"),
    [
        ("dp_cd", SPARSE, {}, ""),
        ("dp_cd_priv", SPARSE, {"periods": 2}, ""),
        ("dp_gcd", SPARSE, {}, ""),
        ("dp_sgd", SPARSE, {}, ""),
        ("dp_svrg", SPARSE, {}, "kept sparse: .*found dp_svrg"),
        ("dp_skgd", ["problem=california_raw"], {}, r"options\.composite: true"),
        ("dp_skgd", ["problem=california_raw"], {"composite": True}, ""),
        ("dp_skgd", ["problem=breast_cancer"], {}, ""),
        ("dp_fw", ["problem=diabetes"], {}, "family frank_wolfe"),
        ("noisy_sfw", ["problem=diabetes"], {}, "family streams"),
    ],
)
def test_what_a_solver_cannot_work_with(algorithm, overrides, options, said):
    module = solvers.load(algorithm)
    made = solvers.make_options(module, options)
    found = obstacle(module, made, compose(overrides).problem)
    assert re.search(said, found) if said else found == ""


def test_what_is_sparse_is_known_before_it_is_read():
    kept = {"sparse_small", "dorothea", "rcv1_train"}
    for name in (*kept, "madelon_l1", "colon_cancer", "diabetes"):
        dataset = compose([f"problem={name}"]).problem.dataset
        assert kept_sparse(dataset) == (name in kept)


# --- sparse problems ------------------------------------------------------------------


def test_a_sparse_problem_has_the_numbers_of_the_dense_one(loss):
    thin, X, y = data("sparse", loss, "elastic")
    full = build("full", X, y, loss, PENALTIES["elastic"], 1.0, 1e-4)
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
