"""The DP-SCO solvers against their twins, their ledgers and their promises."""

import math

import numpy as np
import pytest

from dperm.accountants.generalised_gaussian import (
    generalised_gaussian,
    noise_multiplier,
    regularity,
    smooth_order,
)
from dperm.accountants.noisy_max import NoisyMax
from dperm.core.erm.sets import norms
from dperm.core.privacy.accounting import epsilon, true_epsilon
from dperm.core.privacy.ledger import Ledger
from dperm.core.privacy.mechanisms import laplace_rows, streams
from dperm.solvers.streams import (
    Target,
    gaussian_releases,
    noisy_sfw,
    phased_sgd,
    poly_sfw,
    sco_dp_fw,
    sco_dp_sgd,
    sco_mirror_descent,
)
from dperm.solvers.streams.setup import Setup
from dperm.solvers.streams.sources import Rows, Signs
from solvers import sco_twins as twins

INF = math.inf
EPSILONS, KINDS = [1.0, 1.0, INF], ["paper", "strict", "none"]
DELTA = 1e-6
BASELINES = {
    "dp_sgd": sco_dp_sgd, "dp_fw": sco_dp_fw, "mirror_descent": sco_mirror_descent,
}  # fmt: skip


def aims(epsilons=EPSILONS, kinds=KINDS, delta=DELTA):
    return [Target(e, delta, kind) for e, kind in zip(epsilons, kinds, strict=True)]


QUIET = aims([INF], [""])


def records(n, d, q, seed=0, loss="least_squares"):
    """Records of unit l_q norm with a common direction, and labels."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)) + 1.5 * np.where(rng.random((n, 1)) < 0.5, -1, 1)
    x /= norms(x, q)[:, None]
    y = np.clip(x.sum(axis=1) + 0.3 * rng.standard_normal(n), -1, 1)
    return x, np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y


class Given(Rows):
    """Records whose labels may be of any size: the solver's clip has to hold."""

    def __init__(self, X, y):
        super().__init__(X, y)
        self.y = y


def trees(setup, x, y, n, options, seed=3, run=noisy_sfw.Run, targets=None):
    own = streams(seed + int(10 * setup.p))
    return run(setup, targets or aims(), own, Given(x, y), n, options)


# --- noisy_sfw ------------------------------------------------------------------------

OPTIONS = [noisy_sfw.Options(), noisy_sfw.Options("consecutive", "all")]


def printed_scale(setup, b, epsilon, delta, depth):
    """Lines 6 and 15 of Algorithm 1."""
    kappa = regularity(setup.q, setup.d)
    L, M = (setup.lipschitz, 1.0) if depth == 0 else (setup.smoothness, setup.diameter)
    factor = 8 if depth == 0 else 128
    square = factor * kappa * L**2 * M**2 * math.log(1 / delta) / (b**2 * epsilon**2)
    return math.sqrt(square)


def strict_scale(setup, b, epsilon, delta, t, depth, leaf, consecutive):
    """The least multiplier times the sensitivity, the latter counted step by step."""
    multiplier = noise_multiplier(setup.q, setup.d, epsilon, delta, "strict")
    if depth == 0:
        return multiplier * 2 * setup.lipschitz / b
    far = 0.0
    for before in range(leaf - 2 ** (t - depth), leaf):
        eta = 2 / (2 ** (t - 1) + before + 1)
        eta = 2 / (2**t + before) if consecutive else eta
        far = (1 - eta) * far + eta * setup.diameter
    return multiplier * 2 * setup.smoothness * far / (b / 2**depth)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("p", [1.0, 1.25, 2.0])
@pytest.mark.parametrize("loss", ["least_squares", "logistic", "linear"])
def test_noisy_sfw_agrees_with_its_twin(options, p, loss):
    n, d = 700, 6
    setup = Setup(loss, p, d, 0.8)
    x, y = records(n, d, setup.q, loss=loss)
    run = trees(setup, x, y, n, options)
    found = run.solve()
    T, b = run.tree.phases, run.tree.batch
    consecutive = options.steps == "consecutive"
    for lane in range(3):
        rng = streams(3 + int(10 * p)).noise

        def draw(rng=rng):
            return generalised_gaussian(rng, smooth_order(setup.q, d), (1, d))[0]

        def scales(t, depth, leaf, lane=lane):
            if lane == 0:
                return printed_scale(setup, b, 1.0, DELTA, depth)
            if lane == 1:
                return strict_scale(setup, b, 1.0, DELTA, t, depth, leaf, consecutive)
            return 0.0

        w, used = twins.noisy_sfw(x, y, loss, p, 0.8, setup.lipschitz, T, b, scales,
                                  draw, consecutive)  # fmt: skip
        np.testing.assert_allclose(found[lane], w, rtol=1e-9, atol=1e-10)
        assert used == run.tree.records == run.source.taken <= n


@pytest.mark.parametrize("n", [256, 1000, 31623, 10**6])
def test_the_tree_fits(n):
    published, every = (noisy_sfw.tree(n, options) for options in OPTIONS)
    for tree in (published, every):
        assert tree.batch % 2**tree.phases == 0
        T = tree.phases
        counted = sum(
            tree.batch + sum(2 ** (j - 1) * (tree.batch >> j) for j in range(1, t + 1))
            for t in range(1, T + 1)
        )
        assert counted == tree.records <= n
    assert 2**published.phases <= math.sqrt(n) < 2 ** (published.phases + 1)
    if n >= 1000:
        assert 0.25 < published.records / n < 0.345
        assert every.records / n > 0.7


def test_small_data_are_refused():
    with pytest.raises(ValueError, match="256 or more, found 255"):
        noisy_sfw.tree(255, OPTIONS[0])
    with pytest.raises(ValueError, match=r"options.steps: expected one of sawtooth"):
        noisy_sfw.Options(steps="constant")


def test_sensitivities_of_the_right_children():
    """At most 7.97 L1 M / b where 8 is printed; 4 with the proof's steps."""
    setup, worst = Setup("least_squares", 2.0, 4), []
    for options in OPTIONS:
        tree = noisy_sfw.tree(10**6, OPTIONS[0])
        unit = setup.smoothness * setup.diameter / tree.batch
        found = [
            noisy_sfw.child_sensitivity(
                *(setup, tree.batch, t, noisy_sfw._entered(t, leaf), leaf, options)
            )
            / unit
            for t in range(1, tree.phases + 1)
            for leaf in range(1, 2**t)
        ]
        worst.append(max(found))
    assert worst[0] == pytest.approx(7.97, abs=0.005)
    assert worst[1] == pytest.approx(4.0, abs=1e-9)


class Releases(noisy_sfw.Run):
    """Remembers each node's mean before noise: (t, depth, leaf, lanes)."""

    def __init__(self, *args):
        super().__init__(*args)
        self.kept = []

    def node_sum(self, depth, count):
        sums = super().node_sum(depth, count)
        self.mean = sums / count
        return sums

    def noise_scale(self, t, depth, leaf):
        self.kept.append((t, depth, leaf, self.mean))
        return super().noise_scale(t, depth, leaf)


class NoClip(Releases):
    def __init__(self, *args):
        super().__init__(*args)
        self.setup = Unclipped(self.setup)


class Unclipped:
    """A setup whose gradients are not clipped, declared as if they were."""

    lipschitz = 1e300

    def __init__(self, setup):
        self._setup = setup

    def __getattr__(self, name):
        return getattr(self._setup, name)


def sensitivity_search(setup, options, run=Releases, n=300, trials=40):
    """Largest change of a node's mean over its declared sensitivity, by replacing one
    of its records; the iterates before that node are the same."""
    x, y = records(n, setup.d, setup.q, seed=1)
    rng, worst = np.random.default_rng(2), {"root": 0.0, "child": 0.0}
    for trial in range(trials):
        at, z, t = int(rng.integers(0, n // 4)), x.copy(), y.copy()
        z[at] = x[at] * rng.choice([-1e3, -1.0, 1.0, 1e3])
        t[at] = -np.sign(y[at]) * (1e3 if trial % 3 == 0 else 1.0)
        pair = []
        for rows, labels in ((x, y), (z, t)):
            one = trees(setup, rows, labels, n, options, run=run, targets=QUIET)
            one.solve()
            pair.append(one)
        b = pair[0].tree.batch
        for first, second in zip(pair[0].kept, pair[1].kept, strict=True):
            phase, depth, leaf, before = first
            change = norms(before - second[3], setup.q)[0]
            if change > 0:  # the record's own node; later ones see other iterates
                declared = 2 * setup.lipschitz / b
                if depth:
                    declared = noisy_sfw.child_sensitivity(setup, b, phase, depth, leaf,
                                                           options)  # fmt: skip
                kind = "child" if depth else "root"
                worst[kind] = max(worst[kind], change / declared)
                break
    return worst


def nothing_moves_further_than_declared(*args, **kwargs):
    worst = sensitivity_search(*args, **kwargs)
    assert max(worst.values()) <= 1 + 1e-9
    return worst


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
def test_sensitivity_search_of_noisy_sfw(options, p):
    worst = nothing_moves_further_than_declared(Setup("least_squares", p, 3), options)
    assert worst["root"] > 0.3 and worst["child"] > 0.0


def test_a_skipped_clip_is_caught():
    setup = Setup("least_squares", 2.0, 3)
    with pytest.raises(AssertionError):
        nothing_moves_further_than_declared(setup, OPTIONS[0], run=NoClip)


def test_too_small_a_declared_sensitivity_is_caught(monkeypatch):
    declared = noisy_sfw.root_sensitivity
    monkeypatch.setattr(noisy_sfw, "root_sensitivity", lambda *a: declared(*a) / 2)
    with pytest.raises(AssertionError):
        test_noisy_sfw_agrees_with_its_twin(OPTIONS[0], 2.0, "least_squares")


def watched(monkeypatch, *kernels):
    """The first entries of the records that these kernels read, as they run."""
    seen, compiled = [], Setup.compiled

    def counting(setup, kernel):
        run = compiled(setup, kernel)

        def count(rows, *rest):
            seen.extend(rows[:, 0].tolist())
            return run(rows, *rest)

        return count if kernel in kernels else run

    monkeypatch.setattr(Setup, "compiled", counting)
    return seen


def each_record_is_read_once(run, monkeypatch, n=600):
    """No record may be in two releases: parallel composition hangs on it."""
    seen = watched(monkeypatch, noisy_sfw.gradient_sums, noisy_sfw.difference_sums)
    x = np.random.default_rng(0).standard_normal((n, 4))
    x[:, 0] = np.arange(n)
    made = trees(Setup("least_squares", 2.0, 4), x, np.ones(n), n, OPTIONS[0], run=run)
    made.solve()
    assert len(seen) == len(set(seen)) == made.tree.records


class Rereads(noisy_sfw.Run):
    """Starts every phase from the first record again."""

    def noise_scale(self, t, depth, leaf):
        if leaf == 2**t - 1:
            self.reader.at = 0
        return super().noise_scale(t, depth, leaf)


class OverlapsByOne(noisy_sfw.Run):
    def noise_scale(self, t, depth, leaf):
        if leaf == 2**t - 1:
            self.reader.at = max(0, self.reader.at - 1)
        return super().noise_scale(t, depth, leaf)


def test_batches_are_disjoint(monkeypatch):
    each_record_is_read_once(noisy_sfw.Run, monkeypatch)


@pytest.mark.parametrize("broken", [Rereads, OverlapsByOne])
def test_a_record_used_twice_is_caught(broken, monkeypatch):
    with pytest.raises(AssertionError):
        each_record_is_read_once(broken, monkeypatch)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
def test_ledger_of_noisy_sfw(p):
    setup = Setup("least_squares", p, 50)
    for kind in ("paper", "strict"):
        noise = noisy_sfw.noise(setup, 10**4, Target(1.0, DELTA, kind), OPTIONS[0])
        ledger = noise.ledger
        assert noise.scales[0] == noise_multiplier(setup.q, 50, 1.0, DELTA, kind)
        assert len(ledger.events) == 1 and ledger.events[0].count == 1
        assert true_epsilon(ledger, DELTA) <= 1.01
        if kind == "paper":
            assert epsilon(ledger, DELTA, "paper") == pytest.approx(1.0)
    half = noisy_sfw.ledger(setup, 10**4, (noise.scales[0] / 2,), OPTIONS[0])
    assert true_epsilon(half, DELTA) > 1.5


# --- poly_sfw -------------------------------------------------------------------------


def vertices(d, radius):
    """2j for +radius e_j, 2j + 1 for -radius e_j."""
    found = np.zeros((2 * d, d))
    found[0::2], found[1::2] = radius * np.eye(d), -radius * np.eye(d)
    return found


PLAIN = poly_sfw.Options()


def poly(setup, x, y, n, seed=5):
    return poly_sfw.Run(setup, aims(), streams(seed), Given(x, y), n, PLAIN)


@pytest.mark.parametrize("loss", ["least_squares", "logistic", "linear"])
@pytest.mark.parametrize("n", [120, 301])
def test_poly_sfw_agrees_with_its_twin(loss, n):
    d, radius = 5, 0.8
    setup = Setup(loss, 1.0, d, radius)
    x, y = records(n, d, INF, loss=loss)
    found = poly(setup, x, y, n).solve()
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
    strict = poly_sfw.noise(setup, n, Target(1.0, DELTA, "strict"), PLAIN).scales
    for lane, scales in enumerate((printed, strict, (0.0, 0.0))):
        w, _, _ = twins.poly_sfw(x, y, loss, vertices(d, radius), np.zeros(d), L0, eta,
                                 scales, noise)  # fmt: skip
        np.testing.assert_allclose(found[lane], w, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("late", [0, 1, 40])
def test_sensitivity_of_the_scores(late):
    """On the same choices of vertices, no replaced record moves a score further."""
    n, d, radius = 200, 3, 1.0
    setup = Setup("least_squares", 1.0, d, radius)
    x, y = records(n, d, INF)
    x = np.sign(x)
    eta = poly_sfw.step(n, 2 * d)
    scores = poly_sfw.sensitivities(setup, n)
    at = 10 if late == 0 else n // 2 + late - 1
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(60):
        w = setup.ball.project(2 * rng.standard_normal(d))[0]
        chain = [w]
        for _ in range(n - n // 2 + 1):
            vertex = vertices(d, radius)[rng.integers(0, 2 * d)]
            w = (1 - eta) * w + eta * vertex
            chain.append(w)
        z, t = x.copy(), y.copy()
        z[at], t[at] = rng.choice([-1.0, 1.0], d), rng.choice([-1.0, 1.0])
        pair = [
            estimates(rows, labels, chain, eta) for rows, labels in ((x, y), (z, t))
        ]
        moved = radius * np.abs(pair[0] - pair[1]).max(axis=1)
        steps = np.arange(len(moved))
        bound = scores.first * (1 - eta) ** steps
        if late:
            bound = np.where(
                steps < late, 0.0, scores.own * (1 - eta) ** (steps - late)
            )
        assert (moved <= bound * (1 + 1e-9) + 1e-15).all()
        printed = [poly_sfw.printed_sensitivity(setup, n, k) for k in steps]
        assert (moved <= np.array(printed) * 1.02).all()
        worst = max(worst, (moved[late] / bound[late]))
    assert worst > 0.25


def estimates(x, y, chain, eta):
    """d_0, d_1, ... along given iterates, for clipped least squares."""
    n, half = len(y), len(y) // 2
    found = [twins.gradient("least_squares", x[:half], y[:half], chain[0], 2.0) / half]
    for t in range(1, n - half + 1):
        one = (x[half + t - 1 : half + t], y[half + t - 1 : half + t])
        new, old = (
            twins.gradient("least_squares", *one, chain[k], 2.0) for k in (t, t - 1)
        )
        found.append((1 - eta) * (found[-1] + new - old) + eta * new)
    return np.array(found)


@pytest.mark.parametrize("n", [400, 5000])
def test_ledger_of_poly_sfw(n):
    """Printed: 1.036 by advanced composition, less by PLD, far less for one record."""
    d, delta = 16, n**-2.0
    setup = Setup("least_squares", 1.0, d)
    ratio = 2 * math.sqrt(n * math.log(1 / delta))  # every selection at the printed one
    composed = Ledger((NoisyMax(1.0, ratio, n - n // 2 + 1, "", ""),))
    printed = true_epsilon(composed, delta)
    assert 0.6 < printed < 1.0
    paper, strict = (
        poly_sfw.noise(setup, n, Target(1.0, delta, kind), PLAIN)
        for kind in ("paper", "strict")
    )
    assert true_epsilon(paper.ledger, delta) < 0.3 * printed
    assert 0.75 < true_epsilon(strict.ledger, delta) <= 1.0
    assert 4.5 < paper.scales[1] / strict.scales[1] < 8
    half = tuple(scale / 2 for scale in strict.scales)
    fewer = poly_sfw.ledger(setup, n, half, PLAIN)
    assert true_epsilon(fewer, delta) > 1.5


def test_poly_sfw_charges_the_record_of_larger_epsilon():
    """One loud selection has more energy here, many quiet ones the larger epsilon."""
    setup, n, delta = Setup("least_squares", 1.0, 16), 400, 400**-2.0
    scores = poly_sfw.sensitivities(setup, n)
    scales = (2 * scores.first, 16 * scores.own)
    batch, own = poly_sfw.energies(scores, scales[0] / scales[1])
    assert batch > own
    loud = poly_sfw.of_batch(setup, n, scales)
    many = poly_sfw.of_own(setup, n, scales)
    assert true_epsilon(many, delta) > 1.5 * true_epsilon(loud, delta)
    assert poly_sfw.ledger(setup, n, scales, PLAIN) == many
    assert poly_sfw.costlier(many, loud, delta) == many


def test_energies_are_sums():
    setup, n = Setup("least_squares", 1.0, 8), 300
    scores = poly_sfw.sensitivities(setup, n)
    batch, own = poly_sfw.energies(scores, 2.0)
    keep = (1 - scores.eta) ** np.arange(scores.steps + 1)
    expected = scores.first**2 * (1 / 4 + (keep[1:] ** 2).sum())
    assert batch == pytest.approx(expected)
    assert own == pytest.approx(scores.own**2 * (keep[:-1] ** 2).sum())
    assert scores.own == pytest.approx(
        scores.eta * ((1 - scores.eta) * setup.smoothness * setup.diameter**2
                      + setup.lipschitz * setup.diameter)
    )  # fmt: skip


# --- phased_sgd -----------------------------------------------------------------------


def phased(setup, x, y, n, seed=3):
    given = (setup, aims(), streams(seed), Given(x, y))
    return phased_sgd.Run(*given, n, phased_sgd.Options())


@pytest.mark.parametrize("p", [2.0, 4.0, INF])
@pytest.mark.parametrize("loss", ["least_squares", "logistic", "linear"])
def test_phased_sgd_agrees_with_its_twin(p, loss):
    n, d = 90, 4
    setup = Setup(loss, p, d, 0.7)
    x, y = records(n, d, setup.q, loss=loss)
    run = phased(setup, x, y, n)
    found = run.solve()
    noise = streams(3).noise.standard_normal((6, d))
    diameter = 2 * 0.7 * d ** (0.5 - (0 if p == INF else 1 / p))
    for lane, (target, kind) in enumerate(zip(EPSILONS, KINDS, strict=True)):
        private = target / (2 * math.sqrt(d * math.log(1 / DELTA)))
        eta = diameter / setup.lipschitz * min(4 / math.sqrt(n), private)
        if setup.smoothness:
            eta = min(eta, 2 / setup.smoothness)
        scale = 4 * setup.lipschitz * eta * math.sqrt(math.log(1 / DELTA)) / target
        if kind == "strict":
            strict = Target(1.0, DELTA, "strict")
            (multiplier,) = phased_sgd.noise(setup, n, strict, None).scales
            scale = 2 * setup.lipschitz * eta * multiplier
        w, _, used = twins.phased_sgd(x, y, loss, lambda v: setup.ball.project(v)[0],
                                      setup.lipschitz, eta, scale, noise)  # fmt: skip
        np.testing.assert_allclose(found[lane], w, rtol=1e-8, atol=1e-9)
        assert used == sum(phased_sgd.phases(n)) == run.source.taken <= n


@pytest.mark.parametrize("p", [2.0, INF])
def test_one_record_moves_an_average_by_two_steps_at_most(p):
    n, d = 64, 3
    setup = Setup("least_squares", p, d)
    x, y = records(n, d, setup.q)
    eta, worst = 2 / setup.smoothness, 0.0
    rng = np.random.default_rng(0)
    for at in range(0, 32, 3):
        z, t = x.copy(), y.copy()
        z[at] = (
            setup.ball.oracle(-rng.standard_normal(d))[0] if p == 2 else np.eye(d)[0]
        )
        z[at] /= norms(z[at], setup.q)[0]
        t[at] = -np.sign(y[at])
        first, second = (
            twins.phased_sgd(rows, labels, "least_squares",
                             lambda v: setup.ball.project(v)[0], setup.lipschitz, eta,
                             0.0, np.zeros((6, d)))[1][0]
            for rows, labels in ((x, y), (z, t))
        )  # fmt: skip
        moved = np.linalg.norm(first - second)
        worst = max(worst, moved / phased_sgd.sensitivity(setup, eta / 4))
    assert 0.02 < worst <= 1.0


@pytest.mark.parametrize("p", [1.0, 1.5])
def test_phased_sgd_refuses_norms_that_its_constants_do_not_bound(p):
    """A gradient of unit l_q norm has the l_2 norm d^(1/2 - 1/q), above one here."""
    setup = Setup("least_squares", p, 16)
    z = np.ones(16) / norms(np.ones(16), setup.q)[0]
    assert np.linalg.norm(z) > 1.5
    with pytest.raises(ValueError, match="phased SGD expects 2 or more, found 1"):
        phased_sgd.sensitivity(setup, 0.1)
    for call in (lambda: phased_sgd.noise(setup, 64, Target(1.0, 1e-3, "strict"), None),
                 lambda: phased_sgd.ledger(setup, 64, (1.0,), None)):  # fmt: skip
        with pytest.raises(ValueError, match="phased SGD"):
            call()


class Stutters(Given):
    """Hands out the last record of a batch again with the next one."""

    def take(self, count):
        self.taken = max(0, self.taken - 1)
        return super().take(count)


def records_of_linear_methods(name, source, monkeypatch, n=64):
    """Indices of the records that reach a kernel of the method, in order."""
    module = {"poly_sfw": poly_sfw, "phased_sgd": phased_sgd}[name]
    names = {"poly_sfw": ("gradient_sums", "_steps"), "phased_sgd": ("_steps",)}[name]
    seen = watched(monkeypatch, *(getattr(module, kernel) for kernel in names))
    x = np.random.default_rng(0).standard_normal((n, 4))
    x[:, 0] = np.arange(n)
    setup = Setup("least_squares", 1.0 if name == "poly_sfw" else 2.0, 4)
    given = (setup, QUIET, streams(1), source(x, np.ones(n)))
    module.Run(*given, n, module.Options()).solve()
    return seen


@pytest.mark.parametrize("name", ["poly_sfw", "phased_sgd"])
def test_linear_methods_use_each_record_once(name, monkeypatch):
    seen = records_of_linear_methods(name, Given, monkeypatch)
    assert len(seen) == len(set(seen)) >= 63
    monkeypatch.undo()
    twice = records_of_linear_methods(name, Stutters, monkeypatch)
    assert len(twice) > len(set(twice))


def test_ledger_of_phased_sgd():
    setup, options = Setup("linear", 2.0, 3), phased_sgd.Options()
    for kind in ("paper", "strict"):
        noise = phased_sgd.noise(setup, 64, Target(1.0, DELTA, kind), options)
        assert true_epsilon(noise.ledger, DELTA) <= 1.0
    assert true_epsilon(noise.ledger, DELTA) == pytest.approx(1.0, rel=1e-5)
    half = phased_sgd.ledger(setup, 64, (noise.scales[0] / 2,), options)
    assert true_epsilon(half, DELTA) > 1.5


# --- baselines ------------------------------------------------------------------------


def alone(method, setup, target, source, n):
    module = BASELINES[method]
    return module.Run(setup, [target], streams(1), source, n, module.Options())


@pytest.mark.parametrize("method", BASELINES)
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, INF])
def test_baselines_stay_inside_and_learn(method, p):
    if method == "dp_fw" and p != 1:
        pytest.skip("the vertices of the l_1 ball")
    n, d = 3000, 6
    setup = Setup("least_squares", p, d)
    source = Signs(d, 4)
    (w,) = alone(method, setup, Target(INF, DELTA, "none"), source, n).solve()
    assert norms(w, p)[0] <= 1 + 1e-9
    share = source.excess(w, setup)[0] / source.excess(0 * w, setup)[0]
    assert share < 0.5
    noisy = Target(0.1, DELTA, "strict")
    (v,) = alone(method, setup, noisy, Signs(d, 4), n).solve()
    assert norms(v, p)[0] <= 1 + 1e-9 and not np.array_equal(v, w)


def test_published_noise_of_dp_fw_costs_more_than_it_says(monkeypatch):
    """True epsilon 1.5 to 1.7 at T = 100 for target 1 under replace-one."""
    monkeypatch.setattr(sco_dp_fw, "iterations", lambda n: 100)
    setup = Setup("least_squares", 1.0, 8)
    for n in (800, 20640):
        delta = n**-2.0
        paper, strict = (
            sco_dp_fw.noise(setup, n, Target(1.0, delta, kind), sco_dp_fw.Options())
            for kind in ("paper", "strict")
        )
        assert 1.4 < true_epsilon(paper.ledger, delta) < 1.75
        assert 0.75 < true_epsilon(strict.ledger, delta) <= 1.0


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, INF])
def test_sensitivity_search_of_full_batches(p):
    """A replaced record moves the mean gradient by 2 L / n at most, in both norms."""
    n, d, worst = 40, 5, 0.0
    setup = Setup("least_squares", p, d)
    x, y = records(n, d, setup.q)
    rng = np.random.default_rng(0)

    def mean(rows, labels, w):
        source = Given(rows, labels)
        return alone("mirror_descent", setup, QUIET[0], source, n).gradient(w[None])[0]

    for trial in range(60):
        w = setup.ball.project(3 * rng.standard_normal(d))[0]
        z, t = x.copy(), y.copy()
        z[0] = rng.choice([-1.0, 1.0], d) * (1e3 if trial % 3 else 1.0)
        t[0] = rng.choice([-1.0, 1.0]) * (1e3 if trial % 2 else 1.0)
        moved = mean(x, y, w) - mean(z, t, w)
        euclidean = np.linalg.norm(moved) * n / 2
        assert euclidean <= gaussian_releases.euclidean_lipschitz(setup) * (1 + 1e-9)
        dual = norms(moved, setup.q)[0] * n / 2
        assert dual <= setup.lipschitz * (1 + 1e-9)
        worst = max(worst, dual / setup.lipschitz)
    assert worst > 0.4


def test_ledger_of_full_batches():
    setup, target = Setup("linear", 2.0, 3), Target(1.0, DELTA, "strict")
    noise = sco_mirror_descent.noise(setup, 2500, target, None)
    assert noise.ledger.events[0].count == 50
    assert true_epsilon(noise.ledger, DELTA) == pytest.approx(1.0, rel=1e-5)


def test_without_noise_more_records_are_better():
    """epsilon = infinity: the population risk nears its minimum."""
    d, shares = 12, []
    setup = Setup("least_squares", 1.5, d)
    for n in (1000, 100_000):
        source = Signs(d, 6)
        run = noisy_sfw.Run(setup, QUIET, streams(1), source, n, OPTIONS[0])
        (w,) = run.solve()
        shares.append(source.excess(w, setup)[0])
    assert shares[1] < shares[0] / 3


def test_blocks_of_records_do_not_matter(monkeypatch):
    """Records taken one by one give the bits of records taken in blocks."""
    n, d = 400, 5
    x, y = records(n, d, 2.0)
    setup = Setup("least_squares", 2.0, d)
    whole = trees(setup, x, y, n, OPTIONS[0]).solve()

    monkeypatch.setattr(noisy_sfw, "chunks", lambda count, d: [1] * count)
    cut = trees(setup, x, y, n, OPTIONS[0]).solve()
    np.testing.assert_array_equal(whole, cut)
