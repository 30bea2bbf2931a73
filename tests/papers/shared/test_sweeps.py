"""Sweeps that any paper may name, against the same trials made by hand."""

from dataclasses import replace

import numpy as np
import pytest

from dperm.config import grid
from dperm.experiments import inputs
from dperm.papers.shared import sweeps
from dperm.privacy.calibration import UnreachableTargetError
from dperm.solvers.batched import trials

KEEP = {"passes": 1, "step": 2, "clip": 2}
FINER = {"step": [0.5, 1.0], "clip": [1.0]}


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_against_epsilon_is_a_tuning_at_that_true_epsilon(configured, epsilon):
    config = configured("paper=dpcd", "problem=sparse_small", "solver=dp_cd")
    stored = inputs.Inputs(config.data, config.overrides)
    point = {"problem": "sparse_small", "solver": "dp_cd", "epsilon": epsilon}
    rows = sweeps.against_epsilon(
        point, 3, config.paper, stored, KEEP, FINER, 2, 4
    )

    job = inputs.load_job(config)
    problem = replace(job.problem, epsilon=epsilon)
    on = trials.Trials(problem, job.module, job.options, "tight")
    coarse = grid.thin(grid.points(config.paper.runs["dp_cd"].grid), KEEP)
    found = on.refined(
        coarse, grid.points(FINER, "", ("step", "clip")), 3, (2, 4)
    )
    least = job.optimum.value
    errors = [row["relative_error"] for row in rows]
    assert errors == pytest.approx((found.objective - least) / least)
    assert 0.98 * epsilon < rows[0]["true_epsilon"] <= epsilon
    start = job.problem.objective(np.zeros((1, job.problem.p)))[0]
    assert rows[0]["start"] == pytest.approx((start - least) / least)
    assert rows[0]["algorithm"] == "DP-CD"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (trials.DivergedError("all"), "diverged"),
        (UnreachableTargetError("never"), "unreachable"),
    ],
)
def test_a_method_that_ends_nowhere_is_a_row(
    configured, monkeypatch, error, status
):
    def refined(*given):
        raise error

    monkeypatch.setattr(trials.Trials, "refined", refined)
    config = configured("paper=dpcd", "problem=sparse_small", "solver=dp_cd")
    stored = inputs.Inputs(config.data, config.overrides)
    point = {"problem": "sparse_small", "solver": "dp_cd", "epsilon": 1.0}
    (row,) = sweeps.against_epsilon(
        point, 3, config.paper, stored, KEEP, FINER, 2, 4
    )
    assert (row["status"], row["algorithm"]) == (status, "DP-CD")
    assert "relative_error" not in row
