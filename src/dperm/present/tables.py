"""Writing a table: CSV with ten digits, Markdown and LaTeX to read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from tabulate import tabulate

from dperm.store import files as store

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Table:
    """A table twice: the data (CSV) and what a reader is shown (Markdown, LaTeX)."""

    data: pd.DataFrame
    shown: pd.DataFrame


def save(made: Table, stem: Path, caption: str) -> list[Path]:
    """Write CSV, Markdown and LaTeX, each file whole or not at all."""
    # A reason of several lines would break a row in two.
    shown = made.shown.fillna("").map(lambda cell: " ".join(str(cell).split()))
    markdown = tabulate(shown, headers="keys", tablefmt="pipe", showindex=False,
                        disable_numparse=True)  # fmt: skip
    body = tabulate(shown, headers="keys", tablefmt="latex_booktabs", showindex=False,
                    disable_numparse=True)  # fmt: skip
    texts = {
        ".md": f"{caption.strip()}\n\n{markdown}\n" if caption else markdown + "\n",
        ".tex": "".join(f"% {line}\n" for line in caption.splitlines()) + body + "\n",
    }
    store.write_csv(stem.with_suffix(".csv"), made.data)
    for suffix, text in texts.items():
        store.write_text(stem.with_suffix(suffix), text)
    return [stem.with_suffix(suffix) for suffix in (".csv", *texts)]


def made_of(rows: Rows) -> Table:
    """A table of rows, ten digits of them in the data and three to read."""
    data = pd.DataFrame(rows)
    return Table(data, readable(data))


def readable(
    data: pd.DataFrame, form: Callable[[float], str] | None = None
) -> pd.DataFrame:
    """The data with every column of real numbers in words, by default ``number``."""
    shown = data.copy()
    for column in data.columns:
        if data[column].dtype.kind == "f":
            shown[column] = [(form or number)(value) for value in data[column]]
    return shown


def number(value: float | None, digits: int = 3) -> str:
    """A number for readers: so many significant digits, or empty."""
    if value is None or pd.isna(value):
        return ""
    if value != 0 and not 1e-4 <= abs(value) < 1e5:
        return f"{value:.{digits - 1}e}"
    return f"{value:#.{digits}g}".rstrip(".")
