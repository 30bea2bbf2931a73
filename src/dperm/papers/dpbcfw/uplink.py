"""Bytes that runs send up, beside what they would without the paper's savings."""

from __future__ import annotations

import pandas as pd

from dperm.papers.dpbcfw.outcomes import last, where

NUMBER = 8  # bytes
HEAD = 16  # bytes of a message beside its numbers: their count and a signed index


def share_of_raw(table: pd.DataFrame) -> float:
    """Bytes of the tuned runs over those of sending n numbers a node and iteration."""
    tuned = where(last(table), rule="tuned")
    raw = float(NUMBER) * tuned["n"] * tuned["nodes"] * tuned["iterations"]
    return float((tuned["bytes_up"] / raw).mean())


def by_records(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Rows with ``bytes_up`` of whole runs, measured and by the printed counts."""
    ends = last(table)
    return {
        "measured, T of Theorem 4": where(ends, rule="theorem 4"),
        "measured, T tuned": where(ends, rule="tuned"),
        "Corollary 1": ends.assign(bytes_up=NUMBER * ends["corollary"]),
        "one-shot sketch": ends.assign(bytes_up=ends["one_shot"]),
    }


def along(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Bytes so far of the tuned runs at the largest n, and if all were sent each time.

    A feature is never sent twice; without that each iteration costs K features.
    """
    shown = where(table, rule="tuned", n=table["n"].max())
    shown = shown[shown["iteration"] > 0]
    K, m = shown["nodes"].iloc[0], shown["sketch"].iloc[0]
    each = shown["iteration"] * K * (HEAD + NUMBER * m)
    return shown, shown.assign(bytes_up=each)
