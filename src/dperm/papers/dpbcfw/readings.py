"""The table of readings: under which of them each figure holds, and in a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd

from dperm.core.experiment import schema
from dperm.papers.dpbcfw import judged
from dperm.papers.dpbcfw.outcomes import read, where

Rows = list[dict[str, Any]]
COLUMNS = [
    *("figure", "reading", "data", "eta", "objective", "epsilon_per", "T", "holds"),
    *("drop", "drop_low", "drop_high", "without_learning", "worst"),
    *("margin", "margin_low", "margin_high", "replicates"),
]
NAMED = 4  # readings that a sentence names


def every(config: schema.Config, sweeps: list[str]) -> pd.DataFrame:
    """A row for every figure, reading and data set; ``COLUMNS``.

    Parameters
    ----------
    sweeps : list of str
        Those that were run, in any order; a figure without its own is left out.
    """
    rows: Rows = []
    for name, judge in _SOURCES.items():
        if name in sweeps and len(table := _available(read(config, name))):
            rows += judge(table)
    data = pd.DataFrame([_told(row) for row in rows])
    return data.reindex(columns=COLUMNS)


def _available(table: pd.DataFrame) -> pd.DataFrame:
    return where(table, status="ok") if "status" in table else table


def _samplings(table: pd.DataFrame) -> Rows:
    """Figure 1 on the box and on the ball of radius ||x_true||_1."""
    ended = table[table["iteration"] == table["iterations"]]
    return _figure1(ended.assign(ball=math.inf))


def _figure1(table: pd.DataFrame) -> Rows:
    data = [
        f"features {100 * density:g} %, variable {100 * active:g} %"
        for density, active in zip(table["density"], table["active"], strict=True)
    ]
    table = table.assign(data=data)
    return [
        {**row, "chances": chances}
        for chances in judged.STATED
        for row in judged.rows_of(
            table, "1", partial(judged.figure1, chances=chances),
            ["constraint", "data"],
        )
    ]  # fmt: skip


def _workers(table: pd.DataFrame) -> Rows:
    """Figures 2 and 5 to 8, of one draw of the data; Figure 2 has no noise."""
    quiet = where(table, objective="mean", per="total")
    rows = judged.rows_of(quiet.drop(columns=["objective", "per"]), "2", judged.figure2)
    rows += judged.rows_of(table, "5", judged.figure5)
    for figure in judged.FAMILIES:
        of = partial(_flat, figure=figure)
        rows += judged.rows_of(table, figure, of)
    return rows


def _flat(runs: pd.DataFrame, figure: str) -> judged.Sentence:
    return judged.flat(judged.family(runs, figure))


def _private(table: pd.DataFrame) -> Rows:
    """Figure 3, a row for each data set and either noise of DP-FW."""
    sizes = zip(table["d"], table["density"], strict=True)
    table = table.assign(data=[f"d = {d:g}, {100 * each:g} %" for d, each in sizes])
    rows = []
    for own in (False, True):
        noise = "of its own paper" if own else "as DP-BCFW's"
        of = partial(judged.figure3, own=own)
        found = judged.rows_of(table, "3", of, ["data"])
        rows += [{**row, "dp_fw": noise} for row in found]
    return rows


def _samples(table: pd.DataFrame) -> Rows:
    rows = judged.rows_of(table, "4", judged.figure4)
    return rows + judged.rows_of(table, "4, rate", judged.rate)


def _real(table: pd.DataFrame) -> Rows:
    """Figure 9: its order and its range, a row for each data set."""
    table = table.assign(data=table["problem"])
    rows = []
    for figure, judge in (("9", judged.figure5), ("9, range", judged.figure9)):
        rows += judged.rows_of(table, figure, judge, ["data", "share"])
    return rows


_SOURCES = {
    "samplings": _samplings,
    "readings_samplings": _figure1,
    "readings": _workers,
    "readings_private": _private,
    "readings_samples": _samples,
    "readings_real": _real,
}


# --- in words -------------------------------------------------------------------------


def _told(row: dict[str, Any]) -> dict[str, Any]:
    """The row with its reading in words and the columns' names for readers."""
    row = {**row, "eta": _eta(row)}
    row |= {"epsilon_per": row.get("per"), "T": row.get("iterations")}
    return {**row, "reading": ", ".join(_parts(row))}


def _eta(row: dict[str, Any]) -> str:
    if row.get("constraint") == "box":
        return "max |x_true|"
    if "share" in row:
        return f"{row['share']:g} ||w*||_1"
    return f"{row['ball']:g}" if math.isfinite(row["ball"]) else "||x_true||_1"


def _parts(row: dict[str, Any]) -> Iterator[str]:
    if "constraint" in row:
        yield row["constraint"]
    yield f"eta {row['eta']}"
    if row.get("objective"):
        yield row["objective"]
        yield f"epsilon {'in total' if row['per'] == 'total' else 'an iteration'}"
    yield f"T {row['T']:g}"
    if "chances" in row:
        yield f"p_min in the step {row['chances']}"
    if "dp_fw" in row:
        yield f"DP-FW's noise {row['dp_fw']}"


def sentences(data: pd.DataFrame) -> pd.DataFrame:
    """One row a figure: readings tried, under how many it holds, and a sentence."""
    rows = [
        {"figure": figure, **_counted(part), "sentence": _sentence(figure, part)}
        for figure, part in data.groupby("figure", sort=False)
    ]
    return pd.DataFrame(rows)


def _by_reading(part: pd.DataFrame) -> pd.DataFrame:
    """One row a reading: it holds if it does on all data sets that were tried."""
    ranks = {"yes": 0, "undecided": 1, "no": 2}

    def worst(rows: pd.DataFrame) -> pd.Series:
        ordered = rows.sort_values(["holds", "margin"], key=_ranked(ranks))
        return ordered.iloc[-1]

    groups = part.groupby("reading", sort=False)
    return pd.DataFrame([worst(rows) for _, rows in groups])


def _ranked(ranks: dict[str, int]) -> Any:
    return lambda column: column.map(ranks) if column.name == "holds" else column


def _counted(part: pd.DataFrame) -> dict[str, Any]:
    """Readings tried, holding, undecided; holding but for the learning; learning."""
    one = _by_reading(part)
    learns = one["drop"] >= judged.LEARNT
    return {
        "tried": len(one), "holding": int((one["holds"] == "yes").sum()),
        "undecided": int((one["holds"] == "undecided").sum()),
        "learning": int(learns.sum()),
        "holding_without_learning": int((one["without_learning"] == "yes").sum()),
        "holding_somewhere": part.loc[part["holds"] == "yes", "reading"].nunique(),
    }  # fmt: skip


def _sentence(figure: str, part: pd.DataFrame) -> str:
    one, found = _by_reading(part), _counted(part)
    said = judged.SAYS[figure.removeprefix("Figure ")]
    held = one[one["holds"] == "yes"].sort_values("drop", ascending=False)
    start = f"{figure} ({said}{_on_all(part)}): "
    if len(held):
        named = "; ".join(held["reading"][:NAMED])
        more = f" and {len(held) - NAMED} more" if len(held) > NAMED else ""
        return (
            f"{start}holds with a drop of at least {judged.LEARNT:g} f(0) under "
            f"{len(held)} of {len(one)} readings ({named}{more}); elsewhere "
            f"{_why(one[one['holds'] != 'yes'])}."
        )
    return (
        f"{start}holds under none of {len(one)} readings with a drop of at least "
        f"{judged.LEARNT:g} f(0) ({found['undecided']} undecided, "
        f"{found['holding_without_learning']} if nothing need be learnt"
        f"{_on_some(part, found)}); {_why(one)}."
    )


def _on_all(part: pd.DataFrame) -> str:
    count = part["data"].nunique() if "data" in part else 0
    return f"; on all {count} data sets" if count > 1 else ""


def _on_some(part: pd.DataFrame, found: dict[str, Any]) -> str:
    if not _on_all(part):
        return ""
    return f", {found['holding_somewhere']} on one data set at least"


def _why(one: pd.DataFrame) -> str:
    """How many readings learn too little, and what fails first where they learn."""
    learns = one[one["drop"] >= judged.LEARNT]
    text = f"{len(one) - len(learns)} learn too little"
    if learns.empty:
        return text
    reasons = learns["worst"].value_counts()
    return f"{text}, and in {len(learns)} it is most often this that fails: " + (
        "; ".join(f"{name} ({count})" for name, count in reasons[:2].items())
    )
