from __future__ import annotations

import pytest

from dperm.papers.dpsco import proofs


def test_a_cited_conversion_costs_more_than_the_corollary_says():
    for kappa in (1, 4):
        found = proofs.generalised_gaussian(1.0, 1e-6, kappa).found
        assert found == pytest.approx(1.0368, 1e-4)


def test_a_second_term_of_advanced_composition_is_lost():
    assert proofs.single_pass_selections(1.0, 1e-6, 1000).share > 1.03
