"""What DP-FW and DP-BCFW assume of the data they see to themselves."""

import numpy as np
import pytest

from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import build
from dperm.core.privacy.mechanisms import streams
from dperm.solvers.frank_wolfe import dp_bcfw, dp_fw

STEPS = 3
MADE = {
    "dp_fw": (dp_fw, dp_fw.Options(1.0, 1.0, 1.0)),
    "dp_bcfw": (dp_bcfw, dp_bcfw.Options(radius=1.0, nodes=2)),
}


def released(module, options, X, y):
    problem = build("bounds", X, y, "least_squares", Penalty(), 1.0, 1e-3)
    noise = module.noise(problem, STEPS, options, 1.0, 1e-3, "strict")
    with module.Run(problem, streams(5), options, noise) as run:
        return np.concatenate([np.ravel(one) for one in run.releases(STEPS)])


@pytest.mark.parametrize("name", MADE)
def test_entries_and_labels_beyond_their_bounds_are_clipped(name):
    rng = np.random.default_rng(2)
    X, y = 3 * rng.standard_normal((12, 4)), 3 * rng.standard_normal(12)
    module, options = MADE[name]
    found = released(module, options, X, y)
    clipped = released(module, options, X.clip(-1, 1), y.clip(-1, 1))
    np.testing.assert_array_equal(found, clipped)
