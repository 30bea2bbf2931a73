"""Errors of the partitions where smoothness comes in groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from dperm.present.intervals import compared, retuned

ALIGNED = [
    *(("aligned", "misaligned"), ("aligned", "single"), ("aligned IS", "aligned")),
    *(("aligned", "random"), ("random", "misaligned")),
]


def errors(group: pd.DataFrame) -> np.ndarray:
    """Mean error of each replicate (r,), which was tuned anew, over its fresh runs."""
    return group.groupby("replicate")["relative_error"].mean().to_numpy()


def alignment(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Ratios of methods, aligned against misaligned, for each strength of structure."""
    for (correlation, spread), group in table.groupby(["correlation", "ratio"]):
        by = {name: retuned(part) for name, part in group.groupby("method")}
        for first, second in ALIGNED:
            if first in by and second in by:
                found = compared(by[first], by[second])
                yield {"correlation": correlation, "spread": spread,
                       "first": first, "second": second, **found}  # fmt: skip
