"""Adopt: keep lanes of older code where the code that is there makes the same bits.

An edit of a solver, a renamed variable even, gives its lanes another key. Lanes are
deterministic, so a sample of them is run again. Where every bit of a group agrees, the
group's parts are given the new key, and it is written down in ``adopted.json``; where
one bit differs, nothing of the group is, and it will be computed again.
"""

from __future__ import annotations

import datetime
import io
import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tabulate import tabulate

from dperm.core.experiment import config as configuration
from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.core.experiment.files import POINT, Parts, locked
from dperm.core.experiment.locate import available
from dperm.core.experiment.tune import Meter
from dperm.core.experiment.unit import PROVENANCE
from dperm.pipeline.candidates import Candidate, Group, candidates

log = logging.getLogger(__name__)

LEAST = 2  # of every stage, replayed in every group: its cheapest
EXTRA = 20.0  # seconds, as recorded, for more of them
LONG, FEW = 2.0, 16  # of a unit longer than so many seconds, so many lanes are replayed
NAMED = (*PROVENANCE, "algorithm", "neighbours")
# What is said of a lane, not what it reached: said anew whenever lanes are read. Rows
# of sweeps are read as they were kept, and keep what they say only if it is the same.
SAID = (*NAMED, "given", "epsilon_low", "true_epsilon")


class DifferentBitsError(RuntimeError):
    """A replayed lane that is not what was kept; the text says which and how."""


@dataclass
class _Verdict:
    """What came of a group."""

    parts: int
    replayed: list[dict[str, Any]]
    difference: str = ""


def adopt(config: schema.Config) -> Path:
    """Adopt what a paper has kept, or all papers; prints a table of what came of it.

    Returns
    -------
    Path
        Of ``adopted.json``, to which every adoption is added.

    Raises
    ------
    DifferentBitsError
        If anything differs; groups that do not differ have been adopted.
    """
    groups: dict[Group, list[Candidate]] = {}
    found: list[str] = []
    for paper in _papers(config):
        for candidate in candidates(paper, found):
            groups.setdefault(candidate.group, []).append(candidate)
    chosen = {group: _sample(of, EXTRA / len(groups)) for group, of in groups.items()}
    path = plan.results_folder(config, "adopted.json")
    count = sum(map(len, chosen.values()))
    meter = Meter(f"adopt, {len(groups)} groups", count, "replays", _cost(chosen))
    verdicts = {}
    for group, members in groups.items():
        log.info("adopt: %s, %d of %d", _title(group), len(chosen[group]), len(members))
        verdicts[group] = _judged(members, chosen[group], meter)
        if not verdicts[group].difference:
            _note(path, group, verdicts[group], members[0].key.code)
            _restamp(members)
    _print(verdicts)
    found += [
        f"{_title(group)}: {verdict.difference}"
        for group, verdict in verdicts.items()
        if verdict.difference
    ]
    if found:
        raise DifferentBitsError("not adopted:\n" + "\n".join(found))
    return path


def _papers(config: schema.Config) -> list[schema.Config]:
    """The paper that the command line names, or all."""
    asked = any(override.startswith("paper=") for override in config.overrides)
    names = [config.paper.name] if asked else available("paper")
    given = [text for text in config.overrides if not text.startswith("paper=")]
    return [configuration.compose([f"paper={name}", *given]) for name in names]


def _title(group: Group) -> str:
    return " ".join(group[:-1])


# --- which are replayed ---------------------------------------------------------------


def _sample(members: list[Candidate], budget: float) -> list[Candidate]:
    """The cheapest of every stage, then of every problem, then others, as time allows.

    The order of the others is drawn from the group's name, the same every time.
    """
    cheap = sorted(members, key=lambda one: (one.seconds, one.name))
    first = [
        one
        for stage in ("tune", "evaluate", "sweep")
        for one in [one for one in cheap if one.stage == stage][:LEAST]
    ]
    seen = {one.problem for one in first}
    others = {one.problem: one for one in reversed(cheap) if one.problem not in seen}
    rest = [one for one in cheap if one not in first and one not in others.values()]
    random.Random(_title(members[0].group)).shuffle(rest)
    for one in (*others.values(), *rest):
        budget -= _seconds(one)
        if budget < 0:
            break
        first.append(one)
    return sorted(first, key=lambda one: one.name)  # jobs are loaded one after another


def _seconds(one: Candidate) -> float:
    return min(one.seconds, LONG) + 0.02


def _cost(chosen: dict[Group, list[Candidate]]) -> float:
    return sum(_seconds(one) for sample in chosen.values() for one in sample)


def _lanes_of(one: Candidate, rows: pd.DataFrame) -> pd.DataFrame:
    """The points that are replayed: all, or the extremes and some between."""
    if not set(POINT) <= set(rows):
        return pd.DataFrame()
    points = rows[POINT].drop_duplicates().sort_values(POINT, ignore_index=True)
    if one.seconds <= LONG or len(points) <= FEW:
        return points
    even = np.linspace(0, len(points) - 1, FEW - 2).astype(int)
    clips = points["clip"].to_numpy()
    return points.iloc[
        sorted({*even.tolist(), int(clips.argmin()), int(clips.argmax())})
    ]


# --- what came of it ------------------------------------------------------------------


def _judged(
    members: list[Candidate], sample: list[Candidate], meter: Meter
) -> _Verdict:
    """Replay a sample up to the first difference."""
    verdict = _Verdict(len(members), [])
    for one in sample:
        kept = one.rows()
        if len(kept):
            points = _lanes_of(one, kept)
            if len(points) and one.stage != "sweep":
                kept = kept.merge(points, on=POINT)
            said = NAMED if one.stage == "sweep" else SAID
            found = first_difference(kept, one.replay(points), said)
            verdict.replayed.append(_described(one, kept))
            if found:
                verdict.difference = f"{one.name}: {found}"
                return verdict
        meter.advance(1, _seconds(one))
    if not verdict.replayed:
        verdict.difference = "nothing of it could be read"
    return verdict


def _described(one: Candidate, kept: pd.DataFrame) -> dict[str, Any]:
    seeds = sorted(int(seed) for seed in kept["seed"].unique())
    return {"part": one.name, "seeds": seeds, "rows": len(kept)}


def first_difference(
    kept: pd.DataFrame, made: pd.DataFrame, said: Sequence[str] = SAID
) -> str:
    """Where the first bit differs, column, lane and both values; empty if none does.

    What is ``said`` apart; -0.0 is not 0.0, NaN is NaN. The rows' order counts
    where they are no lanes.
    """
    kept, made = (_ordered(table, said) for table in (kept, _stored(made)))
    if list(kept) != list(made):
        return f"columns {sorted(set(kept) ^ set(made))}"
    if len(kept) != len(made):
        return f"{len(kept)} rows were kept, {len(made)} are made"
    for name in kept:
        where = np.flatnonzero(_bits(kept[name]) != _bits(made[name]))
        if len(where):
            at = int(where[0])
            old, new = kept[name].tolist()[at], made[name].tolist()[at]
            return f"{name} at {_place(kept, at)}: {old!r} was kept, {new!r} is made"
    return ""


def _stored(table: pd.DataFrame) -> pd.DataFrame:
    """The rows as they would be read again."""
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False)
    return store.unthreaded(buffer)


def _ordered(table: pd.DataFrame, said: Sequence[str]) -> pd.DataFrame:
    keys = [*POINT, "checkpoint"]
    if set(keys) <= set(table):
        table = table.sort_values(keys)
    left = [name for name in table if name in said]
    return table.drop(columns=left).reset_index(drop=True)


def _bits(column: pd.Series) -> np.ndarray:
    if pd.api.types.is_float_dtype(column):
        values = column.to_numpy(np.float64, copy=True)
        values[np.isnan(values)] = np.nan  # of one kind
        return values.view(np.int64)
    return column.map(repr).to_numpy(dtype=object)


def _place(table: pd.DataFrame, row: int) -> str:
    keys = [name for name in (*POINT, "checkpoint", "seed") if name in table]
    return ", ".join(f"{key} {table[key].iloc[row]:g}" for key in keys) or f"row {row}"


# --- restamping -----------------------------------------------------------------------


def _restamp(members: list[Candidate]) -> None:
    """Give every part of a group its present key.

    Each file is renamed, whole or not at all; what an interruption left is found by the
    next adoption, since it is still of other code.
    """
    for one in members:
        folder = one.paths[0].parent.parent
        with locked(folder):
            for path in one.paths:
                if path.exists():
                    Parts(folder).restamp(path, one.key.code)


def _note(path: Path, group: Group, verdict: _Verdict, code: str) -> None:
    """Add an adoption to ``adopted.json``, before anything is renamed."""
    known = store.read_json(path) if path.exists() else []
    entry = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "group": list(group[:-1]),
        "old_code": group[-1],
        "new_code": code,
        "commit": store.commit(),
        "versions": store.versions(),
        "parts": verdict.parts,
        "replayed": verdict.replayed,
    }
    store.write_json(path, [*known, entry])


def _print(verdicts: dict[Group, _Verdict]) -> None:
    rows = [
        [
            _title(group),
            verdict.parts,
            len(verdict.replayed),
            sum(one["rows"] for one in verdict.replayed),
            "refused" if verdict.difference else "adopted",
        ]
        for group, verdict in verdicts.items()
    ]
    head = ["group", "parts", "replayed", "rows compared", ""]
    print(tabulate(rows, headers=head) if rows else "nothing of other code was kept")
