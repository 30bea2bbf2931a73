r"""Levels of text columns, and gaps in columns of numbers, found within epsilon.

One release comes before all others. It counts how often every value of *k* text columns
occurs and how many numbers are missing in each of *g* columns, adds Gaussian noise, and
publishes the values whose noisy count reaches a threshold, and all counts of gaps.

*Sensitivity.* Replacing a record takes 1 from one value of each text column and adds 1
to another, and moves each count of gaps by 1 at most, together :math:`\sqrt{2 k + g}`
in the Euclidean norm; attained. At most one value of each text column is held by the
replaced record alone, so that a neighbour lacks it: :mod:`dperm.accountants
.stable_counts` proves what the release costs, the chance included that such a value
passes the threshold. That chance is a tenth of delta. ∎

What fills gaps, where no bounds say it, is the mean of what is not missing. With each
number over its column's scale, clipped to [-3, 3], the sums of *m* columns move by
:math:`6 \sqrt m` at most. ∎

*Columns that are found* decide p, so that what follows hangs on a release. All Gaussian
releases compose as if chosen in advance (Smith and Thakurta 2022, arXiv:2210.17520);
another solver is taken only if its price is the same for every p.
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

SHARES = (0.01, 0.2)  # of the squared budget, the least and the most
RARE = 0.02  # of n, what the threshold shall be at most, if the share allows it
DOUBT = 0.1  # of delta
SEEN = 4.0  # standard deviations of the noise, from which a column has gaps
FILLING = 0.01  # of the squared budget, the fills'
CLIP = 3.0  # of numbers in their scale, for the fills


def ledger(k: int, g: int, n: int, epsilon: float, delta: float) -> Ledger:
    """The release of k text columns' values and g columns' gaps, for n records.

    As small a share of the squared budget as makes the threshold 2 % of n, between 0.01
    and 0.2: nothing but public numbers decides it.
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
        How often each value of a text column occurs, k of them.
    gaps : sequence of int
        How many numbers of a column are missing, g of them.
    stated : Ledger
        Of ``ledger``.
    normal : callable
        Gaussian noise of a scale and size, (size, 1); or noise for release.

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
    noisy = _added(counts, moved, event, normal, 0.0)
    found: list[dict[Any, float]] = [{} for _ in values]
    for (i, one), count in zip(cells, noisy[: len(cells)], strict=True):
        if count >= event.threshold:
            found[i][one] = float(count)
    return found, noisy[len(cells) :]


def fill_ledger(m: int, epsilon: float, delta: float) -> Ledger:
    """The release of m columns' means, in units of their scales."""
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
    """Noisy means of numbers over their scales, (m,), at most 3 in size.

    Parameters
    ----------
    columns : ndarray (n, m)
        Numbers over their scales, 0 where they are missing.
    present : ndarray, shape (m,)
        How many there are, as released.
    stated : Ledger
        Of ``fill_ledger``.
    """
    (n, m), sums = columns.shape, np.clip(columns, -CLIP, CLIP).sum(axis=0)
    error = math.sqrt(m) * (n + 1) * UNIT * n * CLIP  # n additions in any order
    noisy = _added(sums, 2 * CLIP * math.sqrt(m), stated.events[0], normal, error)
    return np.clip(noisy / np.maximum(present, 1.0), -CLIP, CLIP)


def _added(
    values: np.ndarray, moved: float, event: Any, normal: Normal | Exact, error: float
) -> np.ndarray:
    """Values (m,) with an event's noise; ``error`` is that of doubles, in the norm."""
    plain = Gaussian(event.sensitivity, event.scale, 1, event.unit, event.source)
    secret = Secret(values[:, None], moved, error=error)
    return secret.released(iter([plain]), normal).ravel()


def without_p(one: Ledger, two: Ledger) -> bool:
    """Whether ledgers of one method for two numbers of features cost the same.

    Gaussian releases alone do, since noise is found for what they cost together.
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
    """Floats to nine digits, so that rounding tells nothing apart."""
    return float(f"{value:.9g}") if isinstance(value, float) else value
