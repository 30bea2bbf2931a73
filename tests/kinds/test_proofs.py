from __future__ import annotations

import math

import numpy as np
import pytest

from dperm.kinds import proofs


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
