"""Curves of a table: one column against another, and families of ordered curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.colors import to_hex

from dperm.present.drawing import Row, Rows, summary
from dperm.present.looks import Look

MARKERS = "os^DvPX*<>"
STROKES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)))


def against(
    table: pd.DataFrame,
    x: str,
    y: str,
    panel: str,
    algorithm: str,
    summed: Callable[[str, str, float, np.ndarray], Row] = summary,
) -> Rows:
    """The rows behind a curve: what ``summed`` makes of y at each value of x."""
    return [
        summed(panel, algorithm, float(value), group[y].to_numpy())
        for value, group in table.groupby(x)
    ]


def shades(count: int, strokes: Sequence[Any] = STROKES) -> list[Look]:
    """Looks of an ordered family, dark to light; line styles and markers in turn."""
    return [
        {
            "color": to_hex(shade),
            "linestyle": strokes[k % len(strokes)],
            "marker": MARKERS[k % len(MARKERS)],
        }
        for k, shade in enumerate(colormaps["viridis"](np.linspace(0.0, 0.85, count)))
    ]
