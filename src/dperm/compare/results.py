"""The results of a comparison: means with intervals, and text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd

from dperm.present.intervals import student
from dperm.present.tables import number

KEYS = ["problem", "solver", "epsilon", "tuning", "public_scales"]
COLUMNS = [
    *("problem", "algorithm", "epsilon", "tuning", "public_scales", "mean", "ci_low"),
    *("ci_high", "median", "seconds", "test_metric", "test_mean", "true_epsilon"),
    *("solver", "test_ci_low", "test_ci_high", "runs", "settings", "given", "status"),
    "reason",
]
OF_TRY = [  # columns of try.csv
    *("algorithm", "tuning", "epsilon", "true_epsilon", "mean", "ci_low", "ci_high"),
    *("median", "runs", "seconds", "test_metric", "test_mean", "test_ci_low"),
    *("test_ci_high", "setting", "given", "solver", "status", "reason"),
]
NO_RELEASE = (
    "All of these numbers are read off your data, and no epsilon pays for that: they"
    "\nare for you alone and no release. Release a fit by dperm.fit(..., release=True)"
    "\ninstead."
)
WORDS = {
    "default": "without tuning",
    "ten": "best of ten settings, for free",
    "grid": "best of the grid, for free",
    "paid": "grid paid for",
}


# --- means ----------------------------------------------------------------------------


def means(rows: pd.DataFrame, label: Callable[[str], str]) -> pd.DataFrame:
    """One row for every problem, method, epsilon, tuning and kind of scales.

    Gaps without an epsilon have one row each, after all others. Gaps have no numbers.

    Parameters
    ----------
    rows : DataFrame
        One row per run, or with the reason why there is none.
    label : callable
        Maps a solver's name to its label.
    """
    found = []
    if "epsilon" in rows:
        for keys, group in rows[rows["epsilon"].notna()].groupby(KEYS, sort=False):
            known = dict(zip(KEYS, keys, strict=True))  # type: ignore[call-overload]
            found.append({**known, **_mean(group)})
        rows = rows[rows["epsilon"].isna()]
    for row in rows.to_dict("records"):
        found.append({key: row.get(key) for key in (*KEYS, "status", "reason")})
    table = pd.DataFrame(found)
    labels = {name: label(name) for name in table["solver"].unique()}
    return table.assign(algorithm=table["solver"].map(labels)).reindex(columns=COLUMNS)


def _mean(group: pd.DataFrame) -> dict[str, Any]:
    """Means of the runs of a setting with 95 % intervals, and their true epsilon."""
    first = group.iloc[0]
    if first["status"] != "ok":
        return {"status": first["status"], "reason": first["reason"]}
    errors = group["relative_error"].dropna().to_numpy()
    mean, low, high = interval(errors)
    known = group["setting"].dropna().unique()
    found: dict[str, Any] = {
        "mean": mean,
        "ci_low": low,
        "ci_high": high,
        "median": float(np.median(errors)),
        "runs": len(errors),
        "seconds": group["seconds"].mean(),
        "true_epsilon": first["true_epsilon"],
        "given": first["given"],
        "status": "ok",
        "settings": "; ".join(sorted(known)[:1]) if first["tuning"] != "paid" else "",
    }
    if "test" in group:
        tests = group[group["test_metric"].notna()]
        if len(tests):
            mean, low, high = interval(tests["test"].to_numpy())
            found |= {
                "test_metric": tests["test_metric"].iloc[0],
                "test_mean": mean,
                "test_ci_low": low,
                "test_ci_high": high,
            }
    return found


def by_tuning(
    rows: pd.DataFrame, epsilon: float, label: Callable[[str], str]
) -> pd.DataFrame:
    """Means for ``dperm try``: one row per method and tuning, and one per gap."""
    filled = rows.assign(epsilon=epsilon, tuning=rows["tuning"].fillna(""))
    table = means(filled, label)
    paid = (table["tuning"] == "paid") & (table["status"] == "ok")
    table["setting"] = table["settings"].mask(paid, "each run its own")
    return table.reindex(columns=OF_TRY)


def interval(values: np.ndarray) -> tuple[float, float, float]:
    """Mean and Student's 95 % interval; infinite if any value is."""
    if not len(values) or not np.isfinite(values).all():
        return math.inf, math.inf, math.inf
    low, high = student(values)
    return float(values.mean()), float(low), float(high)


# --- words ----------------------------------------------------------------------------


def brief(rows: pd.DataFrame) -> str:
    """Means of a method by tuning, or the reason why there are none."""
    if "relative_error" not in rows:
        return str(rows["reason"].iloc[0])
    by_tuning = rows.groupby("tuning", sort=False)["relative_error"].mean()
    return ", ".join(f"{name} {value:.3g}" for name, value in by_tuning.items())


def recommendations(
    table: pd.DataFrame, zero: float, tunings: tuple[str, ...]
) -> list[str]:
    """Recommend a method per tuning, equally good ones, or none if none beats w = 0.

    Parameters
    ----------
    table : DataFrame
        Of ``means``.
    zero : float
        Relative error of w = 0.
    tunings : tuple of str
        Each gets one sentence.
    """
    sentences = []
    for tuning in tunings:
        some = table[(table["tuning"] == tuning) & (table["status"] == "ok")]
        some = some[np.isfinite(some["mean"])].sort_values("mean")
        what = "no method meets the target" if some.empty else _best(some, zero)
        sentences.append(f"{WORDS[tuning]}: {what}")
    return sentences


def _best(some: pd.DataFrame, zero: float) -> str:
    first = some.iloc[0]
    level = (
        f"relative error {first['mean']:.3g} [{first['ci_low']:.3g}, "
        f"{first['ci_high']:.3g}], true epsilon {first['true_epsilon']:.3g}"
    )
    if not first["ci_high"] < zero:
        return (
            f"none is significantly better than w = 0 ({zero:.3g}); least, {level}: "
            f"{first['algorithm']}"
        )
    near = some[some["ci_low"] <= first["ci_high"]]["algorithm"].tolist()[1:]
    equal = f"; not significantly worse: {', '.join(near)}" if near else ""
    return f"take {first['algorithm']}, {level} (w = 0: {zero:.3g}){equal}"


def words(
    table: pd.DataFrame, zero: float, tunings: tuple[str, ...], more: Iterable[str]
) -> str:
    """Text of a table of ``by_tuning``, with recommendations and what is public."""
    lines = [_line(row) for row in table.to_dict("records")]
    ran = table[table["given"].notna()].drop_duplicates("algorithm")
    public = [
        f"epsilon of {', '.join(some['algorithm'])} holds given: {given}"
        for given, some in ran.groupby("given", sort=False)
    ]
    text = aligned(lines)
    best = recommendations(table, zero, tunings)
    return "\n".join([text, "", *best, *more, *public, NO_RELEASE])


def aligned(rows: list[dict[str, str]]) -> str:
    """Text of the rows under their keys, in aligned columns."""
    columns = [[key, *(row[key] for row in rows)] for key in rows[0]]
    widths = [max(map(len, column)) for column in columns]
    columns = [[c[0], "-" * w, *c[1:]] for c, w in zip(columns, widths, strict=True)]
    lines = zip(*columns, strict=True)
    padded = (map(str.ljust, line, widths) for line in lines)
    return "\n".join("  ".join(line).rstrip() for line in padded)


def _line(row: dict[Any, Any]) -> dict[str, str]:
    ran = row["status"] == "ok"
    ends = f"[{number(row['ci_low'])}, {number(row['ci_high'])}]"
    held = "" if pd.isna(row["test_mean"]) else f"{row['test_metric']} "
    return {
        "algorithm": row["algorithm"],
        "tuning": row["tuning"],
        "relative error": number(row["mean"]),
        "95 % interval": ends if ran else "",
        "true epsilon": number(row["true_epsilon"], 4),
        "held out": held + number(row["test_mean"]),
        "setting": row["setting"] if ran else row["reason"],
        "seconds a run": number(row["seconds"], 2),
    }
