"""The sweeps of DP-SCO: one draw for every norm, disjoint splits, honest rows."""

import math

import pandas as pd
import pytest

from dperm.papers.dpsco import sweeps
from dperm.solvers.single_pass.sources import Signs

TARGETS = [1.0, math.inf]
POINTS = [("noisy_sfw", [1.0, 1.5, 2.0]), ("phased_sgd", [2.0, math.inf])]


def measured(solver, norms, epsilons=TARGETS, n=600, d=6, seed=1):
    point = {"solver": solver, "n": n, "d": d}
    given = {solver: norms}
    return pd.DataFrame(sweeps.rates(point, seed, given, epsilons))


@pytest.mark.parametrize(("solver", "norms"), POINTS)
def test_every_norm_reads_each_record_once(solver, norms, monkeypatch):
    made = []

    class Counted(Signs):
        def __init__(self, *args):
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(sweeps, "Signs", Counted)
    measured(solver, norms)
    assert sum(source.taken > 0 for source in made) == len(norms)
    assert 0 < max(source.taken for source in made) <= 600


@pytest.mark.parametrize(("solver", "norms"), POINTS)
def test_no_norm_or_target_changes_another(solver, norms):
    whole = measured(solver, norms)
    for p in norms:
        alone = measured(solver, [p])
        same = whole[whole["p"] == p].reset_index(drop=True)
        pd.testing.assert_frame_equal(same, alone, check_exact=True)
    single = measured(solver, norms, [1.0])
    same = whole[whole["epsilon"] == 1.0].reset_index(drop=True)
    pd.testing.assert_frame_equal(same, single, check_exact=True)
