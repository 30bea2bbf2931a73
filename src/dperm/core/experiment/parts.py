"""Lanes that are kept: a stage that is killed, or whose grid grew, computes the rest.

A finished block of lanes is a part, ``lanes/<identity>-<code>-<points>.parquet``. The
identity is a digest of everything that determines its rows but the grid point and the
code; the code is that of the functions that made them. Parts of other code are found
by their identity, which is how ``dperm adopt`` knows what it may keep.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from dperm.core.experiment.files import digest, read_or_drop, write_table

POINT = ["step", "clip"]


@dataclass(frozen=True)
class Key:
    """What determines the rows of a part."""

    identity: str
    code: str

    def __str__(self) -> str:
        """As in file names and in the column ``config_digest``."""
        return f"{self.identity}-{self.code}"


class Parts:
    """The parts of one (paper, problem, solver), or of one sweep."""

    def __init__(self, folder: Path):
        self.folder = folder / "lanes"

    def read(self, key: Key) -> pd.DataFrame | None:
        """All lanes of a key, each once, or None; an unreadable part is dropped."""
        tables = [
            table
            for path in sorted(self.folder.glob(f"{key}-*.parquet"))
            if (table := read_or_drop(path)) is not None
        ]
        if not tables:
            return None
        rows = pd.concat(tables, ignore_index=True)
        rows = rows[~rows.duplicated([*POINT, "checkpoint"])].reset_index(drop=True)
        return rows.assign(config_digest=str(key))

    def write(self, key: Key, rows: pd.DataFrame) -> None:
        """Keep the rows of a finished block."""
        points = rows[POINT].drop_duplicates().to_numpy().tolist()
        write_table(self.folder / f"{key}-{digest(points)}.parquet", rows)

    def one(self, key: Key) -> Path:
        """The file of a part that is no block of lanes: a point of a sweep."""
        return self.folder / f"{key}.parquet"

    def by_identity(self) -> dict[str, dict[str, list[Path]]]:
        """All parts by their identity and the code that made them."""
        found: dict[str, dict[str, list[Path]]] = {}
        for path in sorted(self.folder.glob("[!.]*-*.parquet")):
            identity, code = path.stem.split("-")[:2]
            found.setdefault(identity, {}).setdefault(code, []).append(path)
        return found

    def restamp(self, path: Path, code: str) -> None:
        """Let a part be one of other code: renamed, whole or not at all."""
        identity, _, *points = path.stem.split("-")
        path.replace(path.with_name("-".join((identity, code, *points)) + path.suffix))
