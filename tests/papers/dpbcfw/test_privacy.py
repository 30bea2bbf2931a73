"""Noise, sensitivities and composed epsilons, and that broken nodes are caught."""

import math

import numpy as np
import pytest
from scipy import stats

from dperm.accountants.noisy_max import pure_delta
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import build
from dperm.core.privacy import Ledger, true_epsilon
from dperm.core.privacy.mechanisms import signed_noisy_max, streams, unit_laplace
from dperm.core.privacy.strict import gaussian_epsilon
from dperm.papers.dpbcfw import sweeps
from dperm.papers.dpbcfw.runs import synthetic
from dperm.solvers.distributed.engines import Local, shares
from dperm.solvers.distributed.node import Message, Node, shared_sketch
from dperm.solvers.frank_wolfe import Noise, dp_bcfw, dp_bcfw_noise, dp_fw
from papers.dpbcfw.conftest import SIZES

OPTIONS = dp_bcfw.Options(
    nodes=2, radius=1.5, sketch=12, entry_bound=4.0, label_bound=4.0
)


def node_of(kind, instance, index_scale, sketch_scale, seed, options=OPTIONS):
    noise = Noise(Ledger(), index_scale, sketch_scale)
    public = dp_bcfw.public_of(instance.problem, options, noise)
    return kind(next(shares(instance.problem, 1)), public, seed)


# --- noise ----------------------------------------------------------------------------


def test_unit_laplace_is_laplace():
    drawn = unit_laplace(streams(0).noise, (3, 40_001)).ravel()
    assert stats.kstest(drawn, "laplace").pvalue > 1e-3
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 0.02


@pytest.mark.parametrize("size", [1, 7, 8, 1001])
def test_the_largest_of_both_signs_of_all_scores_with_noise_is_taken(size):
    scores, one, other = np.linspace(-1, 1, size), streams(3).noise, streams(3).noise
    for scale in [0.0, *np.logspace(-2, 2, 30)]:
        drawn = other.standard_exponential((2, size))
        bits = np.frombuffer(other.bytes(-(-2 * size // 8)), dtype=np.uint8)
        drawn.ravel()[np.unpackbits(bits, count=2 * size) == 1] *= -1
        every = np.concatenate([scores + scale * drawn[0], scale * drawn[1] - scores])
        place = int(every.argmax())
        expected = (place % size, 1 if place < size else -1)
        assert signed_noisy_max(scores, scale, one) == expected


def sketch_noise_has_the_declared_scale(kind, instance):
    told = Message(np.empty(0), np.zeros(12)).pack()
    found = []
    for seed in range(60):
        node = node_of(kind, instance, 0.0, 0.7, seed)
        answer = Message.unpack(node.answer(told))
        j = abs(int(answer.indices[0])) - 1
        found += ((answer.numbers - node.sketched_without_noise(j)) / 0.7).tolist()
    assert stats.kstest(found, "norm").pvalue > 1e-4


def index_noise_has_the_declared_scale(kind, instance):
    """The best index wins as often as the best of Laplace noise of that scale does."""
    told = Message(np.empty(0), np.zeros(12)).pack()
    quiet = node_of(kind, instance, 0.0, 0.0, 0)
    scores = quiet.public.score_factor * quiet.gradient(quiet.slopes(np.zeros(12)))
    scale = 0.3 * float(np.abs(scores).max())
    best = Message.unpack(quiet.answer(told)).indices[0]
    hits = sum(
        int(Message.unpack(node_of(kind, instance, scale, 0.0, seed).answer(told))
            .indices[0] == best)
        for seed in range(600)
    )  # fmt: skip
    rng = np.random.default_rng(0)
    noise = rng.laplace(0.0, scale, (20_000, 2, len(scores)))
    noisy = np.concatenate([scores + noise[:, 0], noise[:, 1] - scores], axis=1)
    candidates = np.concatenate([scores, -scores])
    chance = float((noisy.argmax(axis=1) == candidates.argmax()).mean())
    assert stats.binomtest(hits, 600, chance).pvalue > 1e-4


class HalfSketchNoise(Node):
    def _sketched(self, j):
        clean = self.sketched_without_noise(j)
        return clean + (super()._sketched(j) - clean) / 2


class HalfIndexNoise(Node):
    def __init__(self, part, public, seed):
        from dataclasses import replace

        halved = replace(public, index_scale=public.index_scale / 2)
        super().__init__(part, halved, seed)


class Unclipped(Node):
    def __init__(self, part, public, seed):
        from dataclasses import replace

        super().__init__(part, replace(public, entry_bound=1e9, label_bound=1e9), seed)


class UnclippedEstimates(Node):
    def __init__(self, part, public, seed):
        from dataclasses import replace

        super().__init__(part, replace(public, prediction_bound=1e9), seed)


class SendsAgain(Node):
    def reply(self, slopes):
        self.sent.clear()
        return super().reply(slopes)


def test_noise_scales(instance):
    sketch_noise_has_the_declared_scale(Node, instance)
    index_noise_has_the_declared_scale(Node, instance)


def test_half_the_noise_is_caught(instance):
    with pytest.raises(AssertionError):
        sketch_noise_has_the_declared_scale(HalfSketchNoise, instance)
    with pytest.raises(AssertionError):
        index_noise_has_the_declared_scale(HalfIndexNoise, instance)


def features_are_released_once(kind, instance):
    """As many noisy copies of a feature as the ledger counts: one."""
    noise = Noise(Ledger(), 1e-9, 1.0)
    public = dp_bcfw.public_of(instance.problem, OPTIONS, noise)
    engine = Local(shares(instance.problem, 2), public, [1, 2])
    engine.nodes = [
        kind(p, public, k) for k, p in enumerate(shares(instance.problem, 2))
    ]
    run = dp_bcfw.Run(
        instance.problem, streams(0), OPTIONS, noise, start=lambda *_: engine
    )
    run.advance(60)
    sent = sum(int((up > 16).sum()) for up in run.up)
    assert sent == len(run.features) < 120


def test_a_feature_is_released_once(instance):
    features_are_released_once(Node, instance)
    with pytest.raises(AssertionError):
        features_are_released_once(SendsAgain, instance)


# --- sensitivity ----------------------------------------------------------------------


def found_over_declared(monkeypatch=None, kind=Node):
    if monkeypatch:
        monkeypatch.setattr(sweeps, "Node", kind)
    point = SIZES | {"nodes": 2, "update": "feasible", "noise": "scaled",
                     "epsilon": 1.0, "sketch": 12, "share": 0.5}  # fmt: skip
    rows = sweeps.sensitivity(None, point, 7, 20)
    return {row["release"]: row["found"] / row["strict"] for row in rows}, rows


def test_no_replaced_record_moves_a_release_beyond_what_strict_declares():
    found, _ = found_over_declared()
    assert 0.5 < found["score"] <= 1 + 1e-12
    assert 0.5 < found["feature"] <= 1 + 1e-12


@pytest.mark.parametrize("kind", [Unclipped, UnclippedEstimates])
def test_a_node_that_does_not_clip_is_caught(monkeypatch, kind):
    found, _ = found_over_declared(monkeypatch, kind)
    assert found["score"] > 1.5


def test_the_published_sensitivities_are_exceeded():
    _, rows = found_over_declared()
    for row in rows:
        assert row["found"] > 10 * row["published"]


@pytest.mark.parametrize("update", dp_bcfw.UPDATES)
def test_declared_sensitivities(instance, update):
    """2 eta G / n with G = B (B R + Y), and 2 B max ||J_:i||, written out."""
    options = dp_bcfw.Options(
        nodes=3, radius=1.5, update=update, sketch=12, entry_bound=2.0, label_bound=3.0
    )
    reach = 4.5 if update == "published" else 1.5
    score, feature = dp_bcfw_noise.sensitivities(instance.problem, options)
    n = instance.problem.n
    assert score == pytest.approx(2 * 1.5 * 2.0 * (2.0 * reach + 3.0) / n)
    J = shared_sketch(n, 12, 0).by_record.T
    assert feature == pytest.approx(2 * 2.0 * np.linalg.norm(J, axis=0).max())


# --- cost -----------------------------------------------------------------------------


def test_pairs_of_laplace_noisy_maxima_stay_below_the_profile():
    """Two candidates that move against each other, integrated numerically."""
    grid = np.linspace(-60, 60, 40001)
    density = np.exp(-np.abs(grid)) / 2
    cumulated = np.where(grid < 0, np.exp(grid) / 2, 1 - np.exp(-grid) / 2)

    def first_wins(gap):
        return float(
            np.trapezoid(density * np.interp(grid + gap, grid, cumulated), grid)
        )

    for gap in (-20.0, 0.0, 3.0):
        p, q = first_wins(gap), first_wins(gap + 2 * 0.3)  # both scores move by 0.3
        for value in (0.0, 0.2, 0.5):
            exact = max(p - math.exp(value) * q, q - math.exp(value) * p,
                        (1 - p) - math.exp(value) * (1 - q), 0.0)  # fmt: skip
            assert exact <= pure_delta(value, 2 * 0.3) + 1e-6


@pytest.mark.parametrize(("nodes", "expected"), [(1, 0.29), (4, 0.66), (16, 1.50)])
def test_index_noise_as_printed_with_a_valid_lipschitz_constant(nodes, expected):
    """K T selections compose: the cost grows like sqrt(K), target 0.5 (delta / 2)."""
    at = synthetic(0, 800, 1000, 0.01, 0.01)
    options = dp_bcfw.Options(
        nodes=nodes, radius=3.0, sketch=80, entry_bound=4.0, label_bound=4.0
    )
    G = dp_bcfw.valid_lipschitz(at.problem, options)
    noise = dp_bcfw.noise(at.problem, 100, options, 1.0, 1 / 800, "valid")
    root = math.sqrt(2 * 100 * math.log(2 * 800))
    assert noise.index_scale == pytest.approx(8 * G * 3.0 * root / 800)
    index, _ = dp_bcfw_noise.epsilons_apart(noise, 1 / 1600)
    assert index == pytest.approx(expected, abs=0.01)


def test_sketch_noise_as_printed_and_what_it_costs():
    """Equation 17 divides by n; 400 releases cost hundreds where 0.5 was meant."""
    at = synthetic(0, 800, 1000, 0.01, 0.01)
    options = dp_bcfw.Options(
        nodes=4, radius=3.0, sketch=80, entry_bound=0.5, label_bound=4.0
    )  # entries in [-1/2, 1/2] change by 1
    noise = dp_bcfw.noise(at.problem, 100, options, 1.0, 1 / 800, "scaled")
    J = shared_sketch(800, 80, 0)
    top = np.linalg.norm(J.by_record, 2)
    printed = top * math.sqrt(400) * math.sqrt(2 * (math.log(800) + 0.5)) / (800 * 0.5)
    assert noise.sketch_scale == pytest.approx(printed)
    _, sketch = dp_bcfw_noise.epsilons_apart(noise, 1 / 1600)
    assert 500 < sketch < 1000


def test_the_first_step_reveals_no_less_than_its_lower_bound(instance):
    """A record with label 0 moves all K features by their sensitivity, unnoticed."""
    problem, rng = instance.problem, np.random.default_rng(0)
    options = dp_bcfw.Options(nodes=3, radius=2.0, sketch=12, entry_bound=0.5)
    noise = dp_bcfw.noise(problem, 20, options, 1.0, 1e-3, "stated")
    record = int(shared_sketch(problem.n, 12, 0).column_norms.argmax())
    A, y = rng.uniform(-0.5, 0.5, (problem.n, problem.p)), rng.uniform(-1, 1, problem.n)
    y[record] = 0.0
    first = []
    for entry in (-0.5, 0.5):
        A[record] = entry
        data = build("pair", A, y, "least_squares", Penalty())
        with dp_bcfw.Run(data, streams(1), options, noise) as run:
            run.advance(1)
        first.append(run.features)
    assert first[0].keys() == first[1].keys() and len(first[0]) == 3
    moved = [np.linalg.norm(first[1][j] - first[0][j]) for j in first[0]]
    mu = math.hypot(*moved) / noise.sketch_scale
    found = dp_bcfw_noise.first_step_epsilon(noise, 3, 1e-3)
    assert found == pytest.approx(gaussian_epsilon(mu, 1e-3))
    assert 1 < found < noise.true_epsilon


@pytest.mark.parametrize("epsilon_", [0.5, 30.0])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_strict_noise_keeps_its_target(instance, epsilon_, share):
    options = dp_bcfw.Options(nodes=3, sketch=12, share=share)
    noise = dp_bcfw.noise(instance.problem, 20, options, epsilon_, 1e-3, "strict")
    spent = true_epsilon(noise.ledger, 1e-3)
    assert spent <= epsilon_ * (1 + 1e-6)
    assert spent >= 0.7 * epsilon_
    counts = [event.count for event in noise.ledger.events]
    assert counts == [60, 60]
    assert dp_bcfw_noise.releases(90, 50, options) == (150, 90)


def test_loud_strict_noise_splits_its_budget(instance):
    """Where a selection costs much, its budget is share epsilon, the rest Gaussian."""
    options = dp_bcfw.Options(nodes=3, sketch=12, share=0.3)
    noise = dp_bcfw.noise(instance.problem, 20, options, 1e5, 1e-3, "strict")
    selection, feature = noise.ledger.events
    assert selection.count * selection.pure == pytest.approx(0.3e5)
    mu = math.sqrt(feature.count) / feature.noise_multiplier
    assert gaussian_epsilon(mu, 1e-3) == pytest.approx(0.7e5, rel=1e-6)


def test_dp_fw_noise_as_published_costs_more_than_its_target(instance):
    options = dp_fw.Options(radius=2.0, entry_bound=4.0, label_bound=4.0)
    G = dp_fw.valid_lipschitz(instance.problem, options)
    assert G == 4.0 * (4.0 * 2.0 + 4.0)
    n, delta = instance.problem.n, 1e-6
    noise = dp_fw.noise(instance.problem, 100, options, 1.0, delta, "paper")
    assert noise.index_scale == pytest.approx(
        G * 2.0 * math.sqrt(800 * math.log(1e6)) / n
    )
    assert 1.4 < true_epsilon(noise.ledger, delta) == noise.true_epsilon < 1.7
