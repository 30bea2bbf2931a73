"""Runs on binomial sums are Algorithm 1 on records of coins, by closed forms."""

import math

import numpy as np
import pytest

from dperm.papers.dpsco import binomials
from dperm.privacy.noise import streams
from dperm.solvers.single_pass import Target, noisy_sfw
from dperm.solvers.single_pass.setup import Setup
from dperm.solvers.single_pass.sources import hard

OPTIONS = [noisy_sfw.Options(), noisy_sfw.Options(steps="consecutive")]
PRIVATE = Target(1.0, 1e-6, "published")
SILENT = Target(math.inf, 1e-6, "none")


def tallied(target, seed, n=1000, d=8, bias=0.3, p=1.5, options=OPTIONS[0]):
    setup, coins = Setup("linear", p, d), hard("all", d, 1, bias)
    return binomials.BinomialRun(
        setup, [target], streams(seed), coins, n, options, seed
    )


@pytest.mark.parametrize("options", OPTIONS)
def test_a_phase_in_closed_form_is_all_its_leaves(options):
    quick = tallied(PRIVATE, 3, options=options).solve()
    slow = tallied(PRIVATE, 3, options=options)
    # every leaf's step on the same estimates
    leaves = [*noisy_sfw.Run.releases(slow)]
    assert len(leaves) > slow.tree.phases
    np.testing.assert_allclose(quick, slow.x, rtol=1e-12)


@pytest.mark.parametrize("options", OPTIONS)
def test_what_a_phase_keeps_is_the_product_of_its_steps(options):
    for t in (1, 2, 5):
        steps = [noisy_sfw.step(t, leaf, options) for leaf in range(2**t)]
        left = math.prod(1 - min(1.0, eta) for eta in steps)
        assert binomials.kept(t, options) == pytest.approx(left, rel=1e-12)


def test_a_sum_has_the_mean_and_the_variance_of_its_records():
    """Entries of the mean are +-1 / d^(1/q), so that their variance is known."""
    d, bias, runs = 8, 0.3, 4000
    drawn = np.array(
        [tallied(SILENT, s).estimate(1, 0, 0)[0] for s in range(runs)]
    )
    setup, coins = Setup("linear", 1.5, d), hard("all", d, 1, bias)
    batch = noisy_sfw.tree(1000, OPTIONS[0]).batch
    size = d ** (-1 / setup.q)
    spread = size * math.sqrt((1 - bias**2) / batch)
    off = np.abs(drawn.mean(axis=0) + coins.means * size)
    assert off.max() < 4.5 * spread / math.sqrt(runs)
    ratios = drawn.std(axis=0) / spread
    assert np.abs(ratios - 1).max() < 4.5 / math.sqrt(2 * runs)


def test_the_noise_of_a_root_is_that_of_algorithm_1():
    """In l2 it is Gaussian with the printed scale; the coins' own spread is known."""
    d, runs, n = 8, 4000, 1000
    drawn = [
        tallied(PRIVATE, seed, n, d, 1.0, 2.0).estimate(1, 0, 0)[0]
        for seed in range(runs)
    ]
    batch = noisy_sfw.tree(n, OPTIONS[0]).batch
    logs = math.log(1 / PRIVATE.delta)
    printed = math.sqrt(8 * logs) / batch  # kappa = 1, L0 = 1, epsilon = 1
    ratio = np.array(drawn).std(axis=0).mean() / printed
    assert ratio == pytest.approx(1, abs=4.5 / math.sqrt(2 * runs * d))


def test_the_mean_excess_is_that_of_runs_on_records():
    d, n, runs = 4, 600, 300
    setup = Setup("linear", 1.5, d)
    excesses = {"records": [], "sums": []}
    for seed in range(runs):
        coins = hard("all", d, seed, 0.2)
        given = (setup, [PRIVATE], streams(seed), coins, n, OPTIONS[0])
        point = noisy_sfw.Run(*given).solve()
        excesses["records"].append(coins.excess(point, setup)[0])
        given = (
            setup,
            [PRIVATE],
            streams(seed + runs),
            coins,
            n,
            OPTIONS[0],
            seed,
        )
        point = binomials.BinomialRun(*given).solve()
        excesses["sums"].append(coins.excess(point, setup)[0])
    first, second = (np.array(values) for values in excesses.values())
    error = math.hypot(first.std(), second.std()) / math.sqrt(runs)
    assert abs(first.mean() - second.mean()) < 4 * error


def test_only_linear_losses_of_whole_records_are_tallied():
    coins = hard("one a record", 4, 1, 0.3)
    given = (
        Setup("linear", 2.0, 4),
        [SILENT],
        streams(1),
        coins,
        1000,
        OPTIONS[0],
        1,
    )
    with pytest.raises(ValueError, match="linear loss"):
        binomials.BinomialRun(*given)
