"""What Algorithm 1 does on pairs in expectation, exactly: second moments, no sampling.

Where nothing is clipped a pair's errors follow a random linear map in each step, so
that the second moments of the iterate and of its running sum follow a fixed linear map;
its K-th power takes 2 log2(K) products of small matrices.
"""

from __future__ import annotations

import numpy as np

from dperm.core.lanes import dp_skgd
from dperm.papers.dpskgd.pairs import Pairs

_STATE = 4  # two errors and two sums of a pair


def expected_excess(
    f: Pairs,
    sketch: dp_skgd.Sketch,
    counts: tuple[int, int],
    noise: float,
    n: float,
) -> float:
    """E[f(w^T) - f*] of Algorithm 1 with the steps 1 / M of Assumption 3.6.

    Parameters
    ----------
    f : Pairs
    sketch : Sketch
        Of its problem; a partition.
    counts : tuple of int
        K and T.
    noise : float
        Multiplier of the sensitivity 2 C_S / n.
    n : float
        Records.
    """
    return sum(
        _pair_excess(f, sketch, pair, counts, noise, n) for pair in range(len(f.M))
    )


def _pair_excess(
    f: Pairs,
    sketch: dp_skgd.Sketch,
    pair: int,
    counts: tuple[int, int],
    noise: float,
    n: float,
) -> float:
    inner, periods = counts
    power = np.linalg.matrix_power(_step(f, sketch, pair, noise, n), inner)
    error = f.optimum[pair] * np.array([-1.0, 1.0])
    squares = np.outer(error, error)
    for _ in range(periods):
        state = np.zeros((_STATE, _STATE))
        state[:2, :2] = squares
        moved = power @ np.append(state.ravel(), 1.0)
        squares = moved[:-1].reshape(_STATE, _STATE)[2:, 2:] / inner**2
    return 0.5 * float((f.hessian(pair) * squares).sum())


def _step(
    f: Pairs, sketch: dp_skgd.Sketch, pair: int, noise: float, n: float
) -> np.ndarray:
    """One step on the moments (row by row) and a constant 1, shape (17, 17)."""
    whole = np.zeros((_STATE**2 + 1, _STATE**2 + 1))
    whole[-1, -1] = 1.0
    rest = 1.0
    for chance, touched, deviation in _touches(f, sketch, pair, noise, n):
        rest -= chance
        onto = touched / f.dominating[2 * pair : 2 * pair + 2]
        keeps = np.eye(2) - onto[:, None] * f.hessian(pair)
        moves = np.block([[keeps, np.zeros((2, 2))], [keeps, np.eye(2)]])
        added = np.tile(np.diag((onto * deviation) ** 2), (2, 2))
        whole[:-1, :-1] += chance * np.kron(moves, moves)
        whole[:-1, -1] += chance * added.ravel()
    idle = np.block([[np.eye(2), np.zeros((2, 2))], [np.eye(2), np.eye(2)]])
    whole[:-1, :-1] += rest * np.kron(idle, idle)
    return whole


def _touches(
    f: Pairs, sketch: dp_skgd.Sketch, pair: int, noise: float, n: float
) -> list[tuple[float, np.ndarray, float]]:
    """Sets that touch a pair: chance, which of the two, deviation of the noise."""
    deviations = noise * 2 * f.clip / n * dp_skgd.shares(f.smoothness, sketch.sets)
    both = np.array([2 * pair, 2 * pair + 1])
    found = [
        (float(q), np.isin(both, S).astype(float), float(deviation))
        for q, S, deviation in zip(sketch.q, sketch.sets, deviations, strict=True)
    ]
    return [each for each in found if each[1].any()]
