"""Objective perturbation: the bound worked out anew, and exact densities."""

import math

import numpy as np
import pytest
from scipy.special import expit

from dperm.privacy.accountants.pld import composed_epsilon
from dperm.privacy.accountants.tight import profile
from dperm.privacy.accounting import true_epsilon
from dperm.privacy.events import Ledger
from dperm.privacy.mechanisms.perturbed_objective import (
    PerturbedObjective,
    tilted_delta,
)
from weekly import variants

from .laws import gaussian, laplace, tilted, tilted_epsilon


def test_the_profile_agrees_with_the_closed_form():
    (event,) = tilted(5.6, 0.45).events
    closed = true_epsilon(Ledger((event,)), 1e-6)
    assert composed_epsilon([profile(event)], 1e-6) == pytest.approx(
        closed, rel=5e-3
    )
    beside = Ledger((event,)) + laplace(20.0)
    assert closed < true_epsilon(beside, 1e-6) < closed + 1 / 20 + 5e-3


@pytest.mark.parametrize("mu", [0.0, 0.02, 0.3])
@pytest.mark.parametrize(
    ("K", "noise"), [(0.05, 8.0), (0.45, 5.6), (1.6, 20.0)]
)
def test_it_is_the_bound_worked_out_anew(K, noise, mu):
    """The proof's shifts, summed by other code; by grid and jointly."""
    for delta in (1e-9, 1e-3):
        ledger = tilted(noise, K) + (gaussian(1 / mu) if mu else Ledger())
        anew = tilted_epsilon(ledger.events[0], mu, delta)
        assert true_epsilon(ledger, delta) == pytest.approx(anew, rel=1e-6)


# --- exact divergences, by the densities of small problems ----------------------------


def densities(data, grid, sigma, ridge):
    """Of the minimiser on a grid of points (m, p), by change of variables."""
    margins = grid @ data.T
    a = expit(-margins)
    b = a @ data - ridge * grid  # minus the gradient
    H = np.einsum("mi,ij,ik->mjk", a * (1 - a), data, data)
    H = H + ridge * np.eye(grid.shape[1])
    sizes = (b**2).sum(axis=1)
    log = -sizes / (2 * sigma**2) + np.linalg.slogdet(H)[1]
    return np.exp(log) / (math.sqrt(2 * math.pi) * sigma) ** grid.shape[1]


def divergence(one, two, cell, epsilon):
    return float(np.maximum(one - math.exp(epsilon) * two, 0).sum() * cell)


def grid_of(p, reach, size):
    axis = np.linspace(-reach, reach, size)
    cell = (axis[1] - axis[0]) ** p
    return np.stack(np.meshgrid(*[axis] * p), axis=-1).reshape(-1, p), cell


@pytest.mark.parametrize("sigma", variants([0.5, 1.0, 3.0], [0.5, 3.0]))
@pytest.mark.parametrize("ridge", variants([0.2, 1.0, 5.0], [0.2, 5.0]))
@pytest.mark.parametrize("p", [1, 2])
def test_no_pair_of_small_data_sets_exceeds_the_bound(sigma, ridge, p):
    """R = 1; opposite, nearly opposite and equal records in company and without."""
    grid, cell = grid_of(
        p, 8 * (sigma + 2) / ridge**0.8, 4001 if p == 1 else 401
    )
    event = PerturbedObjective(2.0, sigma, 1, "2 R", "", 1 / ridge)
    e = np.eye(p)
    almost = np.array([0.995, 0.1])[:p]
    others = [np.zeros((0, p)), e[:1], np.concatenate([e, -e])]
    largest = 0.0
    for company in others:
        for one, two in (
            (e[0], -e[0]),
            (almost, almost * [-1, 1][:p]),
            (e[0], 0 * e[0]),
        ):
            P, Q = (
                densities(np.vstack([company, x[None]]), grid, sigma, ridge)
                for x in (one, two)
            )
            assert P.sum() * cell == pytest.approx(1, abs=2e-2)
            for at in (0.05, 0.3, 1.0, 3.0):
                for a, b in ((P, Q), (Q, P)):
                    found = divergence(a, b, cell, at)
                    bound = tilted_delta(event, 0.0, at)
                    assert found <= bound * 1.02 + 1e-9
                    largest = max(largest, found / max(bound, 1e-12))
    assert largest > 0.02  # it is not met by being far off
