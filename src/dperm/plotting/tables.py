"""Tables: groups of rows, numbers with intervals, and Markdown for readers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dperm.numerics.intervals import student

Rows = list[dict[str, Any]]


def in_markdown(data: pd.DataFrame, caption: str) -> str:
    """A table for readers below its caption, one line per row, with three digits."""
    from tabulate import tabulate

    text = data.copy()
    for column in data.columns[[dtype.kind == "f" for dtype in data.dtypes]]:
        text[column] = [short(cell) for cell in data[column]]
    style: Any = {"headers": "keys", "tablefmt": "pipe", "showindex": False}
    cells = tabulate(
        text.fillna("").map(plain), disable_numparse=True, **style
    )
    return f"{caption.strip()}\n\n{cells}" if caption else cells


def plain(cell: Any) -> str:
    """A cell in one line, because line breaks would break the row, and without tags."""
    return re.sub(r"<(?=[\w/!?])", "&lt;", " ".join(str(cell).split()))


def where(table: pd.DataFrame, **values: Any) -> pd.DataFrame:
    """The rows whose columns have these values."""
    mask = np.ones(len(table), dtype=bool)
    for key, cell in values.items():
        mask &= (table[key] == cell).to_numpy()
    return table[mask]


def groups(
    table: pd.DataFrame, keys: list[str], sort: bool = False
) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Iterate over the values of the keys, by name, with their rows."""
    for key_cells, group in table.groupby(keys, sort=sort):
        yield dict(zip(keys, key_cells, strict=True)), group


def with_interval(
    values: Any,
    *names: str,
    interval: Callable[..., tuple[float, float]] = student,
) -> dict[str, float]:
    """The mean of an array or column and its interval, as three columns of a row.

    Default names are mean, ci_low and ci_high.
    """
    low, high = interval(np.asarray(values))
    estimates = (values.mean(), low, high)
    return dict(
        zip(names or ("mean", "ci_low", "ci_high"), estimates, strict=True)
    )


def named(name: str, found: Sequence[float]) -> dict[str, float]:
    """A number and the ends of its interval as columns: x, x_low and x_high."""
    return dict(zip((name, f"{name}_low", f"{name}_high"), found, strict=True))


def interval(name: str, values: Any) -> dict[str, float]:
    """Mean of runs as column ``name`` with its 95 % interval; missing without a run."""
    sample = np.asarray(values, float)
    sample = sample[~np.isnan(sample)]
    ends = student(sample) if len(sample) else (math.nan, math.nan)
    return named(name, (sample.mean() if len(sample) else math.nan, *ends))


def number(value: float | None, digits: int = 3) -> str:
    """A number for readers with ``digits`` significant digits; empty if missing."""
    if value is None or pd.isna(value):
        return ""
    if value != 0 and not 1e-4 <= abs(value) < 1e5:
        return f"{value:.{digits - 1}e}"
    return f"{value:#.{digits}g}".rstrip(".")


def short(value: Any) -> str:
    """A value for readers: whole numbers unchanged, others as ``number``."""
    if isinstance(value, bool | str):
        return str(value)
    if value is None or pd.isna(value):
        return ""
    if math.isinf(value) or (value == int(value) and abs(value) < 1e6):
        return f"{value:g}"
    return number(value)
