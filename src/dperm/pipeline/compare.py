"""Compare two trees of results row by row: ``dperm compare A B``.

Every Parquet and CSV file below A and B is compared, all columns but seconds and
provenance; products made of timings are left out. Exit code 1 if anything differs.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from dperm import config as configuration
from dperm import schema
from dperm.locate import available
from dperm.pipeline.solving import IDENTITY, PROVENANCE
from dperm.store import files as store


def differences(one: Path, other: Path, shared: bool = False) -> Iterator[str]:
    """Say where and by how much two trees of results differ, a line each.

    Parameters
    ----------
    one, other : Path
        Folders such as ``results``, ``results/dpcd`` or ``figures/dpcd``.
    shared : bool
        Leave out tables that only one of them has.

    Raises
    ------
    ValueError
        If a folder holds no table, or a table is damaged.
    """
    ours, theirs = _tables(one), _tables(other)
    every = ours.keys() & theirs.keys() if shared else ours.keys() | theirs.keys()
    if not every:
        raise ValueError(f"{one} and {other} have no table in common")
    for name in sorted(every):
        if name not in theirs:
            yield f"{name}: only in {one}"
        elif name not in ours:
            yield f"{name}: only in {other}"
        else:
            found = _differing(_read(ours[name]), _read(theirs[name]))
            yield from (f"{name}: {line}" for line in found)


def _tables(folder: Path) -> dict[str, Path]:
    timed = _timed()
    found = {
        str(path.relative_to(folder)): path
        for kind in ("*.parquet", "*.csv")
        for path in sorted(folder.rglob(kind))
        if "lanes" not in path.parts
        and not path.name.startswith(".")
        and (path.absolute().parent.name, path.stem) not in timed
    }
    if not found:
        raise ValueError(
            f"{folder}: expected Parquet or CSV files below it, found none"
        )
    return found


def _timed() -> set[tuple[str, str]]:
    """(paper, name) of the figures and tables that are made of timings."""
    papers = [configuration.read("paper", name) for name in available("paper")]
    return {
        (paper.name, name)
        for paper in papers
        for name, product in {**paper.figures, **paper.tables}.items()
        if _is_timed(paper, product)
    }


def _is_timed(paper: schema.Paper, product: schema.Product) -> bool:
    kinds = {product.kind, *(paper.sweeps[name].kind for name in product.sweeps)}
    return bool(kinds & {"runtime", "clock"}) or product.options.get("x") == "seconds"


def _read(path: Path) -> pd.DataFrame:
    table = store.read_table(path) if path.suffix == ".parquet" else pd.read_csv(path)
    left_out = [name for name in table if name in PROVENANCE or "seconds" in name]
    return table.drop(columns=left_out)


def _differing(one: pd.DataFrame, other: pd.DataFrame) -> Iterator[str]:
    """Lines on columns, rows and values that differ."""
    for name in one.columns.symmetric_difference(other.columns, sort=False):
        yield f"column {name}: only in {'A' if name in one else 'B'}"
    one, other = _keyed(one), _keyed(other)
    for side, table, against in (("A", one, other), ("B", other, one)):
        lost = table.index.difference(against.index, sort=False)
        if len(lost):
            yield f"{len(lost)} rows only in {side}, first {_place(table, lost[0])}"
    shared = one.index.intersection(other.index, sort=False)
    one, other = one.loc[shared], other.loc[shared]
    for name in one.columns.intersection(other.columns, sort=False):
        line = _column(one[name], other[name])
        if line:
            yield f"{name}: {line}"


def _keyed(table: pd.DataFrame) -> pd.DataFrame:
    """The rows by what they are where that names each once, else by their position."""
    if set(IDENTITY) <= set(table.columns):
        keyed = table.set_index(IDENTITY)
        if keyed.index.is_unique:
            return keyed
    return table.rename_axis("row")


def _place(table: pd.DataFrame, key: object) -> str:
    values = key if isinstance(key, tuple) else (key,)
    return " ".join(
        f"{name}={value}" for name, value in zip(table.index.names, values, strict=True)
    )


def _column(one: pd.Series, other: pd.Series) -> str:
    """How two columns with the same index differ; empty if they do not."""
    equal = (one == other) | (one.isna() & other.isna())
    if equal.all():
        return ""
    where = np.flatnonzero(~equal.to_numpy(dtype=bool))
    first = where[0]
    text = f"{len(where)} of {len(one)} rows differ"
    if all(pd.api.types.is_numeric_dtype(column) for column in (one, other)):
        text += _by_how_much(*(c.to_numpy(float)[where] for c in (one, other)))
    place = _place(one.to_frame(), one.index[first])
    return f"{text}, first {place}: {one.iloc[first]!r} against {other.iloc[first]!r}"


def _by_how_much(one: np.ndarray, other: np.ndarray) -> str:
    both = np.isfinite(one) & np.isfinite(other)
    if not both.any():
        return ""
    gap = np.abs(one[both] - other[both])
    size = np.maximum(np.abs(one[both]), np.abs(other[both]))
    relative = np.divide(gap, size, out=np.zeros_like(gap), where=size > 0)
    return f", by at most {gap.max():.3g} (relative {relative.max():.3g})"


def main() -> None:
    """Print the differences; exit code 1 if there are any."""
    parser = argparse.ArgumentParser(
        prog="dperm compare", description="Compare two trees of results."
    )
    parser.add_argument("A", type=Path, help="folder, such as results/dpcd")
    parser.add_argument("B", type=Path, help="another one")
    parser.add_argument(
        "--shared", action="store_true",
        help="leave out tables that only one has, as Git's results lack Parquet",
    )  # fmt: skip
    given = parser.parse_args()
    try:
        found = list(differences(given.A, given.B, given.shared))
    except (ValueError, OSError) as error:
        raise SystemExit(f"{type(error).__name__}: {error}") from error
    print("\n".join(found) if found else "no difference")
    raise SystemExit(1 if found else 0)
