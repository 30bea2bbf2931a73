"""Checks that every solver must pass and every broken one must fail.

Each takes a way to start a run, ``start(problem, lanes, seed)``, and raises
AssertionError. The formulas of the noise are written here a second time, from the
paper.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import stats

from conftest import PENALTIES, raw_data
from dperm.core.erm.problem import build
from dperm.core.lanes import Lanes

SIGMA = 1.7


def solver(module, options):
    """A way to start runs of a solver."""

    def start(problem, lanes, seed):
        from dperm.core.privacy.mechanisms import streams

        return module.Run(problem, lanes, streams(seed), options, total=1)

    return start


def smooth_problem(X=None, y=None):
    if X is None:
        X, y = raw_data("logistic")
    return build("smooth", X, y, "logistic", PENALTIES["none"], 1.0, 1e-4)


def one_step(start, problem, sigma, clip, seed, step=1.0):
    """Weights after one step of one lane."""
    run = start(problem, Lanes(np.full(1, step), np.full(1, clip), sigma), seed)
    run.advance(1)
    return run.weights[0]


def noise_has_the_declared_scale(start, expected_scale, draws=400):
    """One noisy step less the same step without noise is N(0, expected scale^2).

    ``expected_scale(problem, clip)`` is the scale in each coordinate, (p,).
    """
    problem, clip = smooth_problem(), 0.8
    scale = expected_scale(problem, clip)
    noise = []
    for seed in range(draws):
        moved = one_step(start, problem, SIGMA, clip, seed)
        moved = moved - one_step(start, problem, 0.0, clip, seed)
        touched = moved != 0
        noise += (moved[touched] / (SIGMA * scale[touched])).tolist()
    assert len(noise) >= draws
    assert stats.kstest(noise, "norm").pvalue > 1e-4
    assert abs(np.std(noise) - 1.0) < 5 / np.sqrt(2 * len(noise))


def sensitivity_is_kept(start, release_of, bound_of, trials=60):
    """No replaced record moves a released value beyond the declared sensitivity.

    ``release_of(problem, w)`` turns weights after one step from zero, without noise,
    into the released value; ``bound_of(problem, clip)`` is the declared sensitivity,
    (p,).
    """
    rng = np.random.default_rng(5)
    X, y = raw_data("logistic")
    clip, worst = 0.05, 0.0
    for trial in range(trials):
        Z, t = X.copy(), y.copy()
        Z[0] = X[1] * rng.choice([-1e3, -1.0, 1.0, 1e3])
        t[0] = -y[1] if trial % 2 else y[1]
        problem = smooth_problem(X, y)
        other = replace(smooth_problem(Z, t), public=problem)
        first, second = (
            release_of(one, one_step(start, one, 0.0, clip, trial))
            for one in (problem, other)
        )
        worst = max(
            worst, float((np.abs(first - second) / bound_of(problem, clip)).max())
        )
    assert worst <= 1.0 + 1e-12


def noise_is_fresh(start):
    """Different seeds and different steps draw different noise."""
    problem = smooth_problem()
    lanes = Lanes(np.full(1, 1.0), np.full(1, 0.8), SIGMA)

    def increments(seed, sigma_lanes):
        run, before, found = start(problem, sigma_lanes, seed), 0.0, []
        for _ in range(60):
            run.advance(1)
            found.append(run.weights[0].sum() - before)
            before = run.weights[0].sum()
        return np.array(found)

    quiet = Lanes(lanes.step, lanes.clip, 0.0)
    noise = [increments(seed, lanes) - increments(seed, quiet) for seed in (1, 2)]
    assert len(np.unique(np.round(noise[0], 12))) > 50
    assert abs(np.corrcoef(noise[0], noise[1])[0, 1]) < 0.6


def lanes_do_not_touch(start, count=25):
    """A lane alone has the bits it has in a block of 250, at any place in it."""
    problem = smooth_problem()
    rng = np.random.default_rng(1)
    step, clip = rng.uniform(0.01, 1.0, 250), rng.uniform(0.01, 10.0, 250)
    block = start(problem, Lanes(step, clip, SIGMA), 9)
    block.advance(count)
    for lane in (0, 1, 7, 8, 63, 100, 249):
        alone = start(problem, Lanes(step[[lane]], clip[[lane]], SIGMA), 9)
        alone.advance(count)
        np.testing.assert_array_equal(block.weights[lane], alone.weights[0])


def lanes_may_be_dropped(start, problem=None, lanes=None, counts=(10, 15)):
    """After ``keep`` the lanes that are left have the bits of a whole block."""
    problem = smooth_problem() if problem is None else problem
    if lanes is None:
        lanes = Lanes(np.linspace(0.01, 1, 40), np.linspace(0.1, 5, 40), SIGMA)
    mask = np.arange(len(lanes.step)) % 3 == 0
    whole, thinned = (start(problem, lanes, 2) for _ in range(2))
    for run in (whole, thinned):
        run.advance(counts[0])
    thinned.keep(mask)
    for run in (whole, thinned):
        run.advance(counts[1])
    np.testing.assert_array_equal(whole.weights[mask], thinned.weights)
