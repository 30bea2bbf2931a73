"""What Section 3.4, Remark 3.4 and Lemma A.2 say, on instances."""

from __future__ import annotations

import numpy as np
import pytest

from dperm.papers.dpcd import proofs


@pytest.mark.parametrize("least", [0.01, 1.0, 100.0])
def test_the_better_bound_of_an_imbalanced_problem_is_as_said(least):
    assert proofs.imbalance(1e3, least, printed=0.0).share < 1
    assert proofs.imbalance(10.0, least, printed=0.0).share > 1  # nothing dominates


def test_the_steps_to_it_lack_a_square_and_a_root():
    assert proofs.imbalance(1e5, 1.0, printed=1.0).found == pytest.approx(3.0, rel=0.01)
    assert proofs.imbalance(1e5, 0.01, printed=1.0).found == pytest.approx(10.0)


def test_the_precision_gained_on_inexact_descent():
    assert proofs.inexact(0.01, 0.0).share == pytest.approx(1.0)
    assert proofs.inexact(0.01, 1.0).share == pytest.approx(4.0)


def test_a_derivative_moves_by_twice_its_bound():
    rows = np.array([[2.0], [-2.0]])  # of losses <w, d>, whose derivatives they are
    assert proofs.sensitivity(2.0).found == np.ptp(rows)
    assert proofs.sensitivity(2.0).share == 2
