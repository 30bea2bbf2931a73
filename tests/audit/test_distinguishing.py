"""Betting on what a release tells of a pair, however few runs there are."""

from types import SimpleNamespace

import numpy as np
import pytest

from dperm.audit.rungs import direction, distinguish


def ladder(counts, gap):
    """Rounds of so many runs each; those on D lie ``gap`` above those on D'."""
    rng = np.random.default_rng(0)
    left = iter(counts)

    def sample(rung, pair, always, pick, part):
        size = next(left)
        first = list(rng.standard_normal((size, 3)) + gap)
        return first, list(rng.standard_normal((size, 3)))

    effort = SimpleNamespace(samples=400, level=1e-3)
    subject = SimpleNamespace(delta=1e-5)
    return SimpleNamespace(effort=effort, subject=subject, sample=sample)


@pytest.mark.parametrize("counts", [[1] * 20, [0] * 20, [5] + [0] * 19])
def test_too_few_runs_to_learn_from_win_nothing(counts):
    given = (ladder(counts, 9.0), 3, None, True, None, direction, [(1.0, 1e-5)])
    assert distinguish(*given) == (0.0, 0.0)


def test_learning_waits_for_enough_runs():
    given = (ladder([1, 1, 30] + [40] * 17, 9.0), 3, None, True, None, direction)
    won, _ = distinguish(*given, [(1.0, 1e-5)])
    assert won > 5
