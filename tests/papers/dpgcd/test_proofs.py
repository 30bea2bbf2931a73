from __future__ import annotations

import math

import numpy as np
import pytest

from dperm.papers.dpgcd import proofs


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


def test_the_closed_form_of_greedy_descent_is_enough_noise():
    costs = [proofs.greedy_noise(1.0, 1 / 2600**2, rounds).found for rounds in (1, 20)]
    assert costs == pytest.approx([0.19, 0.59], abs=0.01)
