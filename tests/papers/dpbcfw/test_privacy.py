"""Sensitivities, and noise with its composed epsilon."""

import math

import numpy as np
import pytest

from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import build
from dperm.core.privacy import true_epsilon
from dperm.core.privacy.mechanisms import streams
from dperm.core.privacy.strict import gaussian_epsilon
from dperm.papers.dpbcfw import sweeps
from dperm.papers.dpbcfw.runs import synthetic
from dperm.solvers.distributed.node import shared_sketch
from dperm.solvers.frank_wolfe import dp_bcfw, dp_bcfw_noise, dp_fw
from papers.dpbcfw.conftest import SIZES

LARGE = {"n": 800, "d": 1000, "density": 0.01, "active": 0.01}

# --- sensitivity ----------------------------------------------------------------------


def test_no_replaced_record_moves_a_release_beyond_what_strict_declares():
    point = SIZES | {"nodes": 2, "update": "feasible", "noise": "scaled",
                     "epsilon": 1.0, "sketch": 12, "share": 0.5}  # fmt: skip
    rows = sweeps.sensitivity(None, point, 7, 20)
    assert [row["release"] for row in rows] == ["score", "feature"]
    assert all(0.5 < row["found"] / row["strict"] <= 1 + 1e-12 for row in rows)


# --- cost -----------------------------------------------------------------------------


@pytest.mark.parametrize(("nodes", "expected"), [(1, 0.29), (4, 0.66), (16, 1.50)])
def test_index_noise_as_printed_with_a_valid_lipschitz_constant(nodes, expected):
    """K T selections compose: the cost grows like sqrt(K), target 0.5 (delta / 2)."""
    at = synthetic(LARGE, 0)
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
    at = synthetic(LARGE, 0)
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
