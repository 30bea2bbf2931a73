"""How badly a pair fares under frozen noise: a rank, for the order of the search.

Nothing is proved here. Outputs on D and on D' belong to the same seeds, row by row.
"""

from __future__ import annotations

import numpy as np

from dperm.audit.blackbox.events import WIDE, plain, scale_of

Array = np.ndarray

FLOOR = 1e-9  # of a spread
STEP = 0.1  # share of a step that counts as spread: few runs may show none by chance


def score(one: Array, two: Array) -> float:
    """How far the same noise ends on D and D', in units of its spread."""
    finite = np.isfinite(one).all(axis=1) & np.isfinite(two).all(axis=1)
    away = 10.0 * float(np.mean(np.isfinite(one) != np.isfinite(two)))
    if finite.sum() < 2:
        return away
    scale = scale_of(np.concatenate([one, two]))
    one, two = (plain(side[finite], scale) for side in (one, two))
    spreads = [side.std(axis=0) for side in (one, two)]
    floor = STEP * np.maximum(*spreads) + FLOOR
    wider = np.abs(np.log((spreads[0] + floor) / (spreads[1] + floor)))
    return away + float(_moved(one, two).sum() + wider.sum() + _hidden(one, two))


def _moved(one: Array, two: Array) -> Array:
    """By how much of its spread each number moved, on a scale that saturates."""
    by = np.sqrt(np.square(one - two).mean(axis=0))  # rare large moves count
    spread = np.minimum(one.std(axis=0), two.std(axis=0))
    return np.log1p(by / np.maximum(np.hypot(spread, STEP * by), FLOOR))


def rounded(outputs: Array) -> bytes:
    """The same for outputs that differ by rounding."""
    with np.errstate(all="ignore"):
        digits = 10.0 ** np.floor(np.log10(np.abs(outputs) + 1e-300) - 8)
        rounded = np.round(outputs / digits) * digits
    return np.where(np.isfinite(outputs), rounded, outputs).tobytes()


def _hidden(one: Array, two: Array) -> float:
    """The same for differences of two outputs, which shared noise leaves bare."""
    if not 1 < one.shape[1] <= WIDE:
        return 0.0
    return float(_moved(*(side[:, 1:] - side[:, :1] for side in (one, two))).max())
