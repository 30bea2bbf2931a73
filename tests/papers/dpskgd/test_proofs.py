"""Formulas that the steps around them do not give, by hand."""

import pytest

from dperm.papers.dpskgd import proofs


def test_the_appendix_halves_the_excess_and_the_text_does_not():
    appendix = proofs.halving(convexity=0.1, steepest=10.0, inverted=0.0)
    assert appendix.share == pytest.approx(1)
    text = proofs.halving(convexity=0.1, steepest=10.0, inverted=1.0)
    assert text.found == pytest.approx(101 / 4)  # K = 2 (1 + 1 / (0.1 x 10)) = 4


def test_the_convex_k_lacks_a_twelve():
    case = proofs.convex_length(radius=3.0, noise=0.2)
    assert case.found == pytest.approx(13 * 0.6)
    assert case.share == pytest.approx(13 / (2 * 12**0.5))


def test_a_root_was_lost():
    assert proofs.dominating_block(100.0, within=1.25).share == pytest.approx(8)
    assert proofs.dominating_block(0.25, within=1.25).found == pytest.approx(2)
    assert proofs.dominating_block(1.0, within=1.25).share < 1
