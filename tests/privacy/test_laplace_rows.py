"""Fast Laplace noise has the distribution it should have."""

import numpy as np

from dperm.core.privacy.mechanisms import laplace_rows, streams


def test_fast_laplace_noise():
    from scipy import stats

    one = streams(1)
    drawn = laplace_rows(one.noise, one.sampling, (300, 70))
    assert stats.kstest(drawn.ravel(), stats.laplace.cdf).pvalue > 1e-3
    assert stats.kstest(1.03 * drawn.ravel(), stats.laplace.cdf).pvalue < 1e-3
    two = streams(1)
    parts = [laplace_rows(two.noise, two.sampling, (k, 70)) for k in (1, 99, 200)]
    np.testing.assert_array_equal(drawn, np.concatenate(parts))
