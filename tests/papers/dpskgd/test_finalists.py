"""The last round of a tuning: more transcripts for its best settings."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from conftest import make_problem
from dperm.experiments.task import setting_rows
from dperm.numerics.intervals import SETTING
from dperm.papers.dpskgd import sweeps
from dperm.problems.optimum import solve
from dperm.solvers.batched import BatchedSettings, dp_skgd

STEPS, CLIPS = (0.05, 0.3, 1.0), (0.5, 4.0)
NOISE = {1.0: 5.0, 4.0: 10.0}  # by passes


@pytest.fixture
def job():
    problem = make_problem("logistic", "l2")
    return SimpleNamespace(
        problem=problem, optimum=solve(problem), module=dp_skgd,
        options=dp_skgd.Options(),
    )  # fmt: skip


def mean_objective(job, at, seeds):
    settings = BatchedSettings(
        np.array([at.step]), np.array([at.clip]), NOISE[at.passes], "tight"
    )
    given = (
        job.module,
        job.options,
        job.problem,
        job.optimum,
        settings,
        at.passes,
    )
    rows = [setting_rows(*given, (at.passes,), seed, 1) for seed in seeds]
    return np.mean([row["objective"].iloc[0] for row in rows])


def tuned():
    """A tuning that found the settings good in the order of step and clip."""
    rows = [
        {"calibration": calibration, "passes": passes, "step": step, "clip": clip,
         "replicate": r, "status": "ok", "noise_multiplier": noise,
         "objective": (10 * i + j + r) * sign, "relative_error": 1.0}
        for calibration, sign in (("published", -1.0), ("tight", 1.0))
        for passes, noise in NOISE.items()
        for i, step in enumerate(STEPS) for j, clip in enumerate(CLIPS)
        for r in range(2)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_the_best_are_those_of_the_tight_tuning_that_never_diverged():
    table = tuned()
    lost = (
        (table["step"] == 0.05)
        & (table["clip"] == 0.5)
        & (table["replicate"] == 1)
    )
    table.loc[lost, "status"] = "diverged"
    found = sweeps._best(table, 3)
    assert len(found) == 3 and set(found["step"]) == {0.05, 0.3}
    assert not ((found["step"] == 0.05) & (found["clip"] == 0.5)).any()
    assert (found["noise_multiplier"] == found["passes"].map(NOISE)).all()


AT = {"problem": "small", "solver": "dp_skgd"}


@pytest.fixture
def swept(job, monkeypatch):
    """The sweep on that job and its tuning."""
    monkeypatch.setattr(sweeps, "load_method", lambda inputs, point: job)
    monkeypatch.setattr(
        sweeps, "tuned", lambda folder, point, calibration: tuned()
    )
    return lambda seed, *given: pd.DataFrame(
        sweeps.finalists(AT, seed, None, None, *given)
    )


def test_the_winner_has_the_least_mean_and_runs_afresh(job, swept):
    found = swept(7, 8, 3, 4, 5)
    chosen, fresh = (
        found[found["stage"] == name] for name in ("choose", "fresh")
    )
    assert len(chosen) == 8 * 3 and len(fresh) == 5
    made = np.random.SeedSequence(7).generate_state(17, np.uint64).tolist()
    means = chosen.groupby(SETTING)["objective"].mean().reset_index()
    for at in means.itertuples():
        assert at.objective == pytest.approx(
            mean_objective(job, at, made[:12])
        )
    winner = means.loc[means["objective"].idxmin()]
    assert (fresh[SETTING] == winner[SETTING]).all(axis=None)
    for seed, row in zip(made[12:], fresh.itertuples(), strict=True):
        assert row.objective == pytest.approx(mean_objective(job, row, [seed]))
    assert winner["step"] != 0.05  # which the tuning held to be the best


def test_a_setting_that_diverges_does_not_win(job):
    job.problem = make_problem("least_squares", "none")
    job.optimum = solve(job.problem)
    settings = pd.DataFrame({"passes": [4.0, 4.0], "step": [0.3, 1e9],
                             "clip": [0.5, 0.5], "noise_multiplier": 1.0})  # fmt: skip
    rows = sweeps.transcripts_of(job, settings, lambda passes: [1, 2], "tight")
    assert np.isinf(rows.loc[rows["step"] == 1e9, "objective"]).all()
    assert np.isfinite(rows.loc[rows["step"] == 0.3, "objective"]).all()
