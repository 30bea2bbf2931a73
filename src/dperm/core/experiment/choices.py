"""Whether two trees of results chose the same settings, and what racing saved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from dperm.core.experiment import files as store
from dperm.core.experiment.racing import CANNOT_WIN
from dperm.core.experiment.results import best

CHOSEN = ["calibration", "passes", "step", "clip"]


def choices(one: Path, other: Path) -> pd.DataFrame:
    """Every tuning that both trees have: what it chose in each, what it ran in each.

    Parameters
    ----------
    one, other : Path
        Folders of results; ``dperm tune paper.race=false`` leaves whole grids.

    Returns
    -------
    DataFrame
        tuning, chosen (settings), same (of them), and of either tree the share of the
        lanes' passes that were run: ran_a, ran_b.
    """
    shared = [
        path.relative_to(one)
        for path in sorted(one.rglob("tune.parquet"))
        if (other / path.relative_to(one)).is_file()
    ]
    rows = [_row(path, *(store.read_table(top / path) for top in (one, other)))
            for path in shared]  # fmt: skip
    return pd.DataFrame(rows, columns=["tuning", "chosen", "same", "ran_a", "ran_b"])


def _row(path: Path, one: pd.DataFrame, other: pd.DataFrame) -> dict[str, object]:
    chosen, against = (best(table)[CHOSEN] for table in (one, other))
    return {
        "tuning": str(path.parent), "chosen": max(len(chosen), len(against)),
        "same": len(chosen.merge(against)), "ran_a": _ran(one), "ran_b": _ran(other),
    }  # fmt: skip


def _ran(table: pd.DataFrame) -> float:
    """The share of a tuning's passes, all lanes together, that were run."""
    passes = table["passes"].to_numpy(dtype=float)
    return float(passes[table["status"] != CANNOT_WIN].sum() / np.nansum(passes))


def told(found: pd.DataFrame) -> str:
    """The table, and a line on all of it."""
    from tabulate import tabulate

    same, chosen = found["same"].sum(), found["chosen"].sum()
    ran = ", ".join(f"{found[key].mean():.0%}" for key in ("ran_a", "ran_b"))
    shown = tabulate(found, "keys", "pipe", showindex=False, floatfmt=".3f")
    return (
        f"{shown}\n\n{same} of {chosen} chosen settings are the same in {len(found)} "
        f"tunings; of the lanes' passes A and B ran {ran} (mean of the tunings)"
    )
