"""The page by data set and by method: who is ahead where, and what there is to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from dperm.report.entries import slug

if TYPE_CHECKING:
    from dperm.report.page import Paper


def data_id(name: str) -> str:
    """Address of a data set in the page."""
    return slug("d", name)


def method_id(name: str) -> str:
    """Address of a method in the page."""
    return slug("m", name)


def data_sets(
    board: pd.DataFrame, papers: list[Paper], titles: dict[str, str]
) -> list[dict[str, Any]]:
    """Every problem with a row on the board or a panel of its own.

    Returns
    -------
    list of dict
        ``name``, ``title``; ``levels``, the leader at each epsilon with the number of
        rows that cannot be told from it; ``figures`` and ``ledgers``; ``claims``, how
        many name it.
    """
    found = []
    for name, title in titles.items():
        rows = board[board["problem"] == name]
        figures = [
            figure
            for paper in papers
            for figure in paper.figures
            if name in figure.problems
        ]
        if len(rows) or figures:
            found.append({
                "name": name, "title": title, "levels": _levels(rows),
                "figures": figures, "ledgers": _ledgers(rows),
                "claims": _claims(papers, "problems", name),
            })  # fmt: skip
    return found


def methods(board: pd.DataFrame, papers: list[Paper]) -> list[dict[str, Any]]:
    """Every method of the board: its rows, and the figures that draw it."""
    found = []
    for name, rows in board.groupby("algorithm", sort=True):
        rivals = rows[rows["of"] > 1]
        figures = [
            figure
            for paper in papers
            for figure in paper.figures
            if _draws(figure.data["panels"], str(name))
        ]
        found.append({
            "name": name, "rows": rows.to_dict("records"), "figures": figures,
            "wins": int((rivals["place"] == 1).sum()), "rivals": len(rivals),
             "ledgers": _ledgers(rows),
            "claims": _claims(papers, "methods", str(name)),
        })  # fmt: skip
    return found


def _draws(panels: list[dict[str, Any]], name: str) -> bool:
    return any(curve["name"] == name for panel in panels for curve in panel["curves"])


def _levels(rows: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {**group.iloc[0].to_dict(), "ties": int(group["tied"].sum()) - 1}
        for _, group in rows.groupby("at")
    ]


def _ledgers(rows: pd.DataFrame) -> list[dict[str, Any]]:
    known = rows.dropna(subset="ledger").drop_duplicates("ledger")
    return known[["paper", "problem", "algorithm", "ledger"]].to_dict("records")


def _claims(papers: list[Paper], key: str, name: str) -> int:
    return sum(name in claim[key] for paper in papers for claim in paper.claims)
