"""Chances of a selection from its scores, against closed forms and counting."""

import numpy as np
import pytest

from dperm.audit.replay import one_sided_chances, two_sided_chances

SCORES = np.array([0.0, -0.7, -3.0])


def test_gumbel_noise_is_the_exponential_mechanism():
    weights = np.exp(SCORES)
    np.testing.assert_allclose(
        one_sided_chances(SCORES, "gumbel"), weights / weights.sum()
    )


@pytest.mark.parametrize("gap", [0.0, 0.3, 4.0])
def test_two_candidates_in_closed_form(gap):
    """The difference of two Laplace numbers; permute-and-flip."""
    scores = np.array([0.0, -gap])
    behind = 0.5 * np.exp(-gap)
    found = one_sided_chances(scores, "laplace")[1]
    assert found == pytest.approx(behind * (1 + gap / 2), rel=1e-9)
    found = one_sided_chances(scores, "exponential")[1]
    assert found == pytest.approx(behind, rel=1e-9)


@pytest.mark.parametrize("kind", ["laplace", "exponential"])
def test_three_candidates_against_counting(kind):
    rng = np.random.default_rng(2)
    noise = getattr(rng, kind)(size=(200_000, 3))
    counted = np.bincount((noise + SCORES).argmax(axis=1), minlength=3) / 200_000
    np.testing.assert_allclose(one_sided_chances(SCORES, kind), counted, atol=5e-3)


def test_noise_inside_an_absolute_value_against_counting():
    """Values 2 and 1: their thresholds above and below are what a run would show."""
    values = np.array([2.0, 1.0])
    up, down = np.array([0.0, 1.0]), np.array([0.0, -3.0])
    found = two_sided_chances(up, down, 0, "laplace")
    noise = np.random.default_rng(2).laplace(size=(200_000, 2))
    counted = np.abs(values + noise).argmax(axis=1).mean()
    assert found[1] == pytest.approx(counted, abs=5e-3)
