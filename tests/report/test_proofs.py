from __future__ import annotations

import math

import numpy as np
import pytest

from dperm.report import proofs, rules
from dperm.report.evidence import Evidence


def test_lists_are_crossed():
    assert list(proofs.crossed({"a": [1, 2], "b": 3})) == [
        {"a": 1.0, "b": 3.0}, {"a": 2.0, "b": 3.0},
    ]  # fmt: skip


def test_a_gaussian_theorem_keeps_its_word_and_its_noise_more_than_that():
    for epsilon in (0.1, 1.0):
        case = proofs.theorem_gaussian(epsilon, 1e-6)
        noise = proofs.theorem_gaussian_noise(epsilon, 1e-6)
        assert noise.found < case.found < epsilon
    rho = 1 / (6 * math.log(1e6))
    direct = min(
        a * rho + math.log(1e6) / (a - 1) for a in np.linspace(1.01, 200, 9999)
    )
    assert proofs.theorem_gaussian(1.0, 1e-6).found == pytest.approx(direct, rel=1e-4)


def test_noisy_max_by_simulation_costs_nearly_twice():
    """Chances of the lower of two scores before and after both move by one."""
    rng = np.random.default_rng(3)
    gap, pure = 4.0, 0.5
    draws = rng.laplace(size=(2, 4_000_000))
    difference = draws[1] - draws[0]
    before, after = (difference > gap).mean(), (difference > gap - 2 * pure).mean()
    case = proofs.noisy_max_step(gap, pure)
    assert case.found == pytest.approx(math.log(after / before), abs=0.01)
    assert case.share > 1.6
    assert proofs.noisy_max_step(200, 0.1).share == pytest.approx(1.99, abs=0.005)


def test_slips_of_proofs_come_out():
    assert proofs.generalised_gaussian(1.0, 1e-6, 1).found == pytest.approx(
        1.0368, 1e-4
    )
    assert proofs.generalised_gaussian(1.0, 1e-6, 4).found == pytest.approx(
        1.0368, 1e-4
    )
    assert proofs.single_pass_selections(1.0, 1e-6, 1000).share > 1.03
    shares = [proofs.node_selections(1.0, 1 / 800, k, 100).share for k in (1, 4, 16)]
    assert shares[0] > 1
    assert shares[2] / shares[1] == pytest.approx(2.1, abs=0.1)  # like sqrt(K)
    assert proofs.sketched_features(1.0, 1 / 800, 800, 80, 4, 100).share > 100


def test_the_closed_form_of_greedy_descent_is_enough_noise():
    costs = [proofs.greedy_noise(1.0, 1 / 2600**2, rounds).found for rounds in (1, 20)]
    assert costs == pytest.approx([0.19, 0.59], abs=0.01)


def test_the_worst_case_decides(config):
    found = rules.proof(Evidence(config), "noisy_max_step", gap=[2, 200], pure=0.1)
    assert found.verdict == rules.NOT
    assert "gap 200" in found.reason
    held = rules.printed_noise(
        Evidence(config), "theorem_gaussian", epsilon=1.0, delta=1e-6
    )
    assert held.verdict == rules.REPRODUCED
