"""Ranges and scales of columns and labels, as declared by a user.

A column in [low, high] is clipped to it. With an intercept it is centred at the middle,
so that ranges far from 0 lose nothing. Its root mean square is assumed to be that of a
uniform column, (high - low) / sqrt(12).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse


@dataclass(frozen=True)
class Units:
    """The map from columns, or labels, to those that a solver sees."""

    #: low, high: shape (p,); values are clipped to them
    low: np.ndarray
    high: np.ndarray
    centre: np.ndarray  #: shape (p,); subtracted
    scale: np.ndarray  #: shape (p,); assumed root mean square after that

    def applied(self, X: Any) -> Any:
        """Columns X (n, p), or labels (n,), clipped and centred; NaN stays NaN."""
        if sparse.issparse(X):
            X = X.tocsc(copy=True)
            counts = np.diff(X.indptr)
            low, high = np.repeat(self.low, counts), np.repeat(self.high, counts)
            X.data = np.clip(X.data, low, high)
            return X
        return np.clip(X, self.low, self.high) - self.centre


def units(
    name: str,
    bounds: Any,
    columns: Sequence[str] | int,
    centred: bool,
    is_sparse: bool = False,
) -> Units:
    """The units of columns by their bounds.

    Parameters
    ----------
    name : str
        The parameter that holds the bounds, for messages.
    bounds : (low, high) or mapping
        Numbers, or arrays of one per column; by a column's name in a mapping.
    columns : sequence of str, or int
        Names of the columns, or their number.
    centred : bool
        Whether the middle of the range may be subtracted.
    is_sparse : bool
        Whether zeros must stay zeros.

    Raises
    ------
    ValueError
        For invalid bounds.
    """
    p = columns if isinstance(columns, int) else len(columns)
    if isinstance(bounds, Mapping):
        bounds = _by_name(name, bounds, columns)
    low, high = _pair(name, bounds, p)
    if is_sparse and not ((low <= 0) & (high >= 0)).all():
        raise ValueError(f"{name}: a sparse X holds zeros, expected low <= 0 <= high")
    middle = (low + high) / 2
    centre = middle if centred and not is_sparse else np.zeros(p)
    scale = np.sqrt((high - low) ** 2 / 12 + (middle - centre) ** 2)
    return Units(low, high, centre, scale)


def _pair(name: str, bounds: Any, p: int) -> tuple[np.ndarray, np.ndarray]:
    wanted = f"expected (low, high), each a number or {p} of them, low < high"
    try:
        low, high = (np.broadcast_to(np.asarray(one, float), p) for one in bounds)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {wanted}, found {bounds!r}") from error
    if not (np.isfinite([low, high]).all() and (low < high).all()):
        raise ValueError(f"{name}: {wanted} and finite, found {bounds!r}")
    return low.copy(), high.copy()


def _by_name(name: str, bounds: Mapping[str, Any], columns: Sequence[str] | int) -> Any:
    if isinstance(columns, int):
        raise ValueError(f"{name}: columns have no names, expected (low, high)")
    wrong = {*map(str, bounds)} ^ {*columns}
    if wrong:
        raise ValueError(
            f"{name}: expected (low, high) of each of {', '.join(columns)}; wrong or "
            f"left out: {', '.join(sorted(wrong))}"
        )
    pairs = [_pair(f"{name}: {one}", bounds[one], 1) for one in columns]
    low, high = np.concatenate(pairs, axis=1)
    return low, high
