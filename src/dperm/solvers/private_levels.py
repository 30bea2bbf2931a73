r"""Levels of text columns, and gaps in columns of numbers, found within epsilon.

One release comes before all others. It counts how often every value of *k* text columns
occurs and how many numbers are missing in each of *g* columns, and adds Gaussian noise.
It publishes the values whose noisy count reaches a threshold, and all counts of gaps.

*Sensitivity.* Replacing a record takes 1 from one value of each text column, adds 1 to
another, and moves each count of gaps by 1 at most. Together this is
:math:`\sqrt{2 k + g}` in the Euclidean norm; attained. At most one value of each text
column is held by the replaced record alone, so that a neighbour lacks it.
:mod:`dperm.accountants.stable_counts` proves the release's cost. It includes the chance
that such a value passes the threshold, a tenth of delta. ∎

Where no bounds are declared, gaps are filled with the mean of the numbers present. With
each number over its column's scale, clipped to [-3, 3], the sums of *m* columns move by
:math:`6 \sqrt m` at most. ∎

*The columns found* determine p, so that later steps depend on a release. All Gaussian
releases compose as if chosen in advance (Smith and Thakurta 2022, arXiv:2210.17520);
another solver is admitted only if its cost is the same for every p.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from dperm.accountants.stable_counts import StableCounts
from dperm.core.privacy.ledger import Gaussian, Ledger
from dperm.solvers.exact_noise import UNIT, Exact
from dperm.solvers.fits.secret import Normal, Secret, require
from dperm.solvers.private_scales import whole

SHARES = (0.01, 0.2)  # least and largest share of the squared budget
RARE = 0.02  # largest threshold as a share of n, if SHARES allow it
DOUBT = 0.1  # share of delta for the threshold
SEEN = 4.0  # deviations of the noise above which a count shows gaps
FILLING = 0.01  # share of the squared budget for means that fill gaps
CLIP = 3.0  # bound on numbers over their scale, for these means


def ledger(k: int, g: int, n: int, epsilon: float, delta: float) -> Ledger:
    """The release of k text columns' values and g columns' gaps, for n records.

    It costs the least share of the squared budget, between 0.01 and 0.2, for which the
    threshold is 2 % of n. The share depends on public numbers only.
    """
    moved, alone = math.sqrt(2 * k + g), max(k, 1)
    high = float(stats.norm.isf(DOUBT * delta / alone))
    noise = moved * whole(epsilon, delta)
    share = float(np.clip((high * noise / (RARE * n)) ** 2, *SHARES))
    scale = noise / math.sqrt(share)
    event = StableCounts(
        sensitivity=moved,
        scale=scale,
        count=1,
        unit="sqrt(2 k + g), the replace-one change of counts of values and gaps",
        source="proved in dperm.solvers.private_levels",
        threshold=1 + high * scale * (1 + 2.0**-30),  # noise for release is wider
        alone=k,
    )
    return Ledger((event,))


def released(
    values: Sequence[Mapping[Any, int]],
    gaps: Sequence[int],
    stated: Ledger,
    normal: Normal | Exact,
) -> tuple[list[dict[Any, float]], np.ndarray]:
    """Noisy counts of the values that reach the threshold, and of gaps.

    Parameters
    ----------
    values : sequence of mapping
        Counts of the values of each of k text columns.
    gaps : sequence of int
        Number of missing numbers in each of g columns.
    stated : Ledger
        Made by ``ledger``.
    normal : callable
        From a scale and size to Gaussian noise, (size, 1); or noise for release.

    Raises
    ------
    UndeclaredError
        If the ledger states a smaller sensitivity, or fewer text columns.
    """
    event: Any = stated.events[0]
    require("text columns", len(values), event.alone)
    cells = [(i, one) for i, column in enumerate(values) for one in column]
    counts = np.array([*(values[i][one] for i, one in cells), *gaps], dtype=float)
    moved = math.sqrt(2 * len(values) + len(gaps))
    noisy = _added(counts, moved, event, normal, 0.0, whole=True)
    found: list[dict[Any, float]] = [{} for _ in values]
    for (i, one), count in zip(cells, noisy[: len(cells)], strict=True):
        if count >= event.threshold:
            found[i][one] = float(count)
    return found, noisy[len(cells) :]


def fill_ledger(m: int, epsilon: float, delta: float) -> Ledger:
    """The release of the means of m columns, in units of their scales."""
    moved = 2 * CLIP * math.sqrt(m)
    event = Gaussian(
        sensitivity=moved,
        scale=moved * whole(epsilon, delta) / math.sqrt(FILLING),
        count=1,
        unit="6 sqrt(m), the replace-one change of sums of m columns within 3 scales",
        source="proved in dperm.solvers.private_levels",
    )
    return Ledger((event,))


def means(
    columns: np.ndarray, present: np.ndarray, stated: Ledger, normal: Normal | Exact
) -> np.ndarray:
    """Noisy means of numbers over their scales, (m,), clipped to [-3, 3].

    Parameters
    ----------
    columns : ndarray (n, m)
        Numbers over their scales, 0 where they are missing.
    present : ndarray, shape (m,)
        How many numbers each column has, as released.
    stated : Ledger
        Made by ``fill_ledger``.
    """
    (n, m), sums = columns.shape, np.clip(columns, -CLIP, CLIP).sum(axis=0)
    error = math.sqrt(m) * (n + 1) * UNIT * n * CLIP  # n additions in any order
    noisy = _added(sums, 2 * CLIP * math.sqrt(m), stated.events[0], normal, error)
    return np.clip(noisy / np.maximum(present, 1.0), -CLIP, CLIP)


def _added(
    values: np.ndarray,
    moved: float,
    event: Any,
    normal: Normal | Exact,
    error: float,
    whole: bool = False,
) -> np.ndarray:
    """Values (m,) with an event's noise; ``error`` bounds that of doubles."""
    plain = Gaussian(event.sensitivity, event.scale, 1, event.unit, event.source)
    secret = Secret(values[:, None], moved, error=error, whole=whole)
    return secret.released(iter([plain]), normal).ravel()


def without_p(one: Ledger, two: Ledger) -> bool:
    """Whether ledgers of one method for two numbers of features cost the same.

    Ledgers of Gaussian releases alone do: noise is calibrated to their joint cost.
    """

    def seen(ledger: Ledger) -> list[Any]:
        found = []
        for event in ledger.events:
            kept = {**event.to_dict(), "scale": event.noise_multiplier}
            for key in ("sensitivity", "unit", "source"):
                kept.pop(key)
            found.append([_rounded(one) for one in kept.values()])
        return found

    if all(isinstance(event, Gaussian) for event in (*one.events, *two.events)):
        return True
    return seen(one) == seen(two)


def _rounded(value: Any) -> Any:
    """Floats to nine digits, so that rounding errors make no difference."""
    return float(f"{value:.9g}") if isinstance(value, float) else value
