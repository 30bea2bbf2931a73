"""The laws of Section 4.3's quadratics against the solvers; grouped smoothness."""

import numpy as np
import pytest
from scipy import stats

from dperm.papers.dpskgd import instances as law
from dperm.papers.dpskgd.instances import SampledMethod
from dperm.papers.dpskgd.sweeps import release_noise
from dperm.privacy.noise import streams

N = 2.0**20


def cases():
    return [
        (regime, name) for regime, pair in law.REGIMES.items() for name in pair
    ]


@pytest.mark.parametrize("count", [1, 12])
@pytest.mark.parametrize(("regime", "name"), cases())
def test_the_solver_follows_the_law(regime, name, count):
    """Excess of 400 runs of the solver and 400 draws of the law: the same sample."""
    f = law.quadratic(regime, 4, 20.0, 0.0)
    method, setting = SampledMethod.of(name, f, N), (0.5, count, 3e3)
    drawn = [
        method.drawn_excess(*setting, streams(seed)) for seed in range(400)
    ]
    ran = [
        method.run_solver(*setting, 8, streams(1000 + seed))
        for seed in range(400)
    ]
    assert stats.ks_2samp(drawn, ran).pvalue > 1e-4
    expected = method.expected_excess(*setting)
    assert np.mean(drawn) == pytest.approx(expected, rel=0.25)


@pytest.mark.parametrize("n", [2.0**20, 2.0**23])
@pytest.mark.parametrize(("regime", "name"), cases())
def test_the_chosen_step_and_length_lie_inside_the_grid(regime, name, n):
    """And nothing on a finer and wider grid is 5 % better."""
    unit = release_noise(1.0, 1 / n**2, 1, "tight")
    f = law.quadratic(regime, 16, 10240.0, 0.0)
    method = SampledMethod.of(name, f, n)
    step, count, expected = method.tuned(unit)
    assert min(law.STEPS) < step < max(law.STEPS)
    assert count < law.MAX_STEPS
    wider = [
        method.expected_excess(s, int(k), unit * np.sqrt(k))
        for s in np.geomspace(1e-4, 1.95, 60) for k in np.geomspace(1, 1e8, 60)
    ]  # fmt: skip
    assert expected < 1.05 * min(wider)
