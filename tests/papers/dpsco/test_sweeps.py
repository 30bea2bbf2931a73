"""The sweeps of DP-SCO: one draw for every norm, disjoint splits, honest rows."""

import math

import numpy as np
import pandas as pd
import pytest

from dperm.core.experiment.schema import Config
from dperm.papers.dpsco import sweeps
from dperm.solvers.streams.sources import Signs

TARGETS = [1.0, math.inf]
POINTS = [("noisy_sfw", [1.0, 1.5, 2.0]), ("phased_sgd", [2.0, math.inf])]


def measured(solver, norms, epsilons=TARGETS, n=600, d=6, seed=1):
    point = {"solver": solver, "n": n, "d": d}
    given = {solver: norms}
    return pd.DataFrame(sweeps.rates(None, point, seed, given, epsilons))


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


def emptied(seed=1, **keys):
    options = {"norms": [1.5], "epsilons": [1.0], "constants": [1.0], "runs": 400}
    point = {"n": 10_000, "d": 64} | keys
    table = pd.DataFrame(sweeps.empirical(None, point, seed, **options))
    return table.set_index(["method", "calibration"])


def test_on_theorem_a2_s_data_set_only_privacy_costs_anything():
    found = emptied()
    n, d, unit = 10_000, 64, math.sqrt(64 * math.log(1e8)) / 10_000
    np.testing.assert_allclose(found["initial"], unit, atol=1 / n)
    assert (found.xs("none", level=1)["excess"].abs() < 1e-12).all()
    # a sign is wrong with the chance that noise of the released mean exceeds it
    least = sweeps.least_multiplier(1.0, 1e-8, "strict", 1)
    size = found.loc[("signs", "strict"), "initial"]
    wrong = 0.5 * math.erfc(size / (least * 2 * math.sqrt(d) / n) / math.sqrt(2))
    assert found.loc[("signs", "strict"), "excess"] == pytest.approx(
        2 * wrong * size, rel=0.02
    )


def sampled():
    rows = [
        row | {"d": d}
        for p in (1.05, 1.25, 1.5) for d in (4, 16, 64)
        for row in sweeps.sampler(Config(seed=0), {"p": p, "d": d}, 1, 10_000)
    ]  # fmt: skip
    return pd.DataFrame(rows).set_index("reading")["p_least"]


def test_the_sampler_is_exact_and_the_printed_radius_is_not():
    found = sampled()
    assert (found["as meant"] > 1e-3).all() and (found["printed"] < 1e-12).all()
