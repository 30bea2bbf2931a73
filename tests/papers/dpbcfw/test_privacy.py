"""Sensitivities, and noise with its composed epsilon."""

import math

import numpy as np
import pytest

from dperm.papers.dpbcfw import runs, sweeps
from dperm.papers.dpbcfw.runs import synthetic
from dperm.privacy import true_epsilon
from dperm.privacy.accountants.tight import gaussian_epsilon
from dperm.privacy.noise import streams
from dperm.problems.penalties import Penalty
from dperm.problems.problem import build
from dperm.solvers.distributed.node import shared_sketch
from dperm.solvers.frank_wolfe import dp_bcfw, dp_bcfw_noise, dp_fw
from papers.dpbcfw.conftest import SIZES

LARGE = {"n": 800, "d": 1000, "density": 0.01, "active": 0.01}

# --- sensitivity ----------------------------------------------------------------------


def test_no_replaced_record_moves_a_release_beyond_what_tight_declares():
    point = SIZES | {"nodes": 2, "update": "feasible", "noise": "scaled",
                     "epsilon": 1.0, "sketch": 12, "share": 0.5}  # fmt: skip
    rows = sweeps.sensitivity(point, 7, 20)
    assert [row["release"] for row in rows] == ["score", "feature"]
    assert all(0.5 < row["found"] / row["tight"] <= 1 + 1e-12 for row in rows)


# --- cost -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "expected"), [(1, 0.29), (4, 0.66), (16, 1.50)]
)
def test_index_noise_as_printed_with_a_valid_lipschitz_constant(
    nodes, expected
):
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
    printed = (
        top
        * math.sqrt(400)
        * math.sqrt(2 * (math.log(800) + 0.5))
        / (800 * 0.5)
    )
    assert noise.sketch_scale == pytest.approx(printed)
    _, sketch = dp_bcfw_noise.epsilons_apart(noise, 1 / 1600)
    assert 500 < sketch < 1000


def attacked(problem, options, noise, J, record, entry, seeds):
    """Sums that an attacker makes of the features sent, in units of their noise.

    All entries of the record are ``entry``; the attacker knows all other records.
    """
    rng = np.random.default_rng(0)
    A = rng.uniform(-0.5, 0.5, (problem.n, problem.p))
    y = rng.uniform(-1, 1, problem.n)
    others = A.copy()
    others[record] = 0.0
    A[record] = entry
    data, column = (
        build("pair", A, y, "least_squares", Penalty()),
        J[:, record],
    )
    sums, sent = [], []
    for seed in seeds:
        with dp_bcfw.Run(data, streams(seed), options, noise) as run:
            run.advance(20)
        shown = [run.features[j] - J @ others[:, j - 1] for j in run.features]
        size = (
            noise.sketch_scale * np.linalg.norm(column) * math.sqrt(len(shown))
        )
        sums.append(column @ np.sum(shown, axis=0) / size)
        sent.append(len(shown))
    return np.array(sums), np.array(sent)


def test_all_features_sent_reveal_what_their_lower_bound_says(instance):
    """The sum is Gaussian on either data set, as far apart as one Gaussian release."""
    problem = instance.problem
    options = dp_bcfw.Options(nodes=3, radius=2.0, sketch=12, entry_bound=0.5)
    noise = dp_bcfw.noise(problem, 20, options, 1.0, 1e-3, "stated")
    J = shared_sketch(problem.n, 12, 0).by_record.T
    record = int(np.linalg.norm(J, axis=0).argmax())
    means = []
    for entry in (-0.5, 0.5):
        S, sent = attacked(
            problem, options, noise, J, record, entry, range(60)
        )
        assert S.std() == pytest.approx(1.0, abs=4.5 / math.sqrt(120))
        means.append(S)
    gap = means[1].mean() - means[0].mean()
    mu = 2 * 0.5 * np.linalg.norm(J[:, record]) / noise.sketch_scale
    predicted = np.sqrt(sent).mean() * mu
    assert gap == pytest.approx(predicted, abs=4.5 * math.sqrt(2 / 60))
    count = int(sent.min())
    least = dp_bcfw_noise.sent_epsilon(noise, count, 1e-3)
    assert least == pytest.approx(
        gaussian_epsilon(math.sqrt(count) * mu, 1e-3)
    )
    half = dp_bcfw_noise.sent_epsilon(noise, count, 1e-3, 0.5)
    assert half == pytest.approx(
        gaussian_epsilon(math.sqrt(count) * mu / 2, 1e-3)
    )
    assert 1 < least < noise.true_epsilon


def test_a_divided_feature_has_n_times_the_noise_and_its_price(instance):
    given = {"nodes": 3, "epsilon": 1.0, "sketch": 12, "iterations": 20}
    stated = runs.noise_of(instance, runs.RunSetting(noise="stated", **given))
    divided = runs.noise_of(
        instance, runs.RunSetting(noise="divided", **given)
    )
    n = instance.problem.n
    assert divided.sketch_scale == pytest.approx(n * stated.sketch_scale)
    assert divided.index_scale == stated.index_scale
    mu = math.sqrt(60) / (n * stated.ledger.events[1].noise_multiplier)
    _, features = dp_bcfw_noise.epsilons_apart(divided, 1e-3)
    assert features == pytest.approx(gaussian_epsilon(mu, 1e-3))


@pytest.mark.parametrize("epsilon_", [0.5, 30.0])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_tight_noise_keeps_its_target(instance, epsilon_, share):
    options = dp_bcfw.Options(nodes=3, sketch=12, share=share)
    noise = dp_bcfw.noise(
        instance.problem, 20, options, epsilon_, 1e-3, "tight"
    )
    spent = true_epsilon(noise.ledger, 1e-3)
    assert spent <= epsilon_ * (1 + 1e-6)
    assert spent >= 0.7 * epsilon_
    counts = [event.count for event in noise.ledger.events]
    assert counts == [60, 60]
    assert dp_bcfw_noise.releases(90, 50, options) == (150, 90)


def test_loud_tight_noise_splits_its_budget(instance):
    """Where a selection costs much, its budget is share epsilon, the rest Gaussian."""
    options = dp_bcfw.Options(nodes=3, sketch=12, share=0.3)
    noise = dp_bcfw.noise(instance.problem, 20, options, 1e5, 1e-3, "tight")
    selection, feature = noise.ledger.events
    assert selection.count * selection.pure == pytest.approx(0.3e5)
    mu = math.sqrt(feature.count) / feature.noise_multiplier
    assert gaussian_epsilon(mu, 1e-3) == pytest.approx(0.7e5, rel=1e-6)


def test_dp_fw_noise_as_published_costs_more_than_its_target(instance):
    options = dp_fw.Options(radius=2.0, entry_bound=4.0, label_bound=4.0)
    G = dp_fw.valid_lipschitz(instance.problem, options)
    assert G == 4.0 * (4.0 * 2.0 + 4.0)
    n, delta = instance.problem.n, 1e-6
    noise = dp_fw.noise(
        instance.problem, 100, options, 1.0, delta, "published"
    )
    assert noise.index_scale == pytest.approx(
        G * 2.0 * math.sqrt(800 * math.log(1e6)) / n
    )
    assert 1.4 < true_epsilon(noise.ledger, delta) == noise.true_epsilon < 1.7
