"""Adopt: keep lanes of older code where the code that is there makes the same bits.

An edit of a solver, a renamed variable even, gives its lanes another key. Lanes are
deterministic, so a sample of them is run again. Where every bit of a group agrees, the
group's parts are given the new key, and it is written down in ``adopted.json``; where
one bit differs, nothing of the group is, and it will be computed again.
"""

from __future__ import annotations

import datetime
import io
import json
import logging
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tabulate import tabulate

from dperm.core.erm.problem import Problem
from dperm.core.experiment import config as configuration
from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.core.experiment import tune as tuning
from dperm.core.experiment.files import POINT, Key, Parts
from dperm.core.experiment.locate import available
from dperm.core.experiment.tune import Meter
from dperm.core.experiment.unit import (
    PROVENANCE,
    Job,
    Unit,
    compute,
    missing,
    part_key,
    seed,
)
from dperm.pipeline import digests, inputs
from dperm.pipeline.products import function_of, sweep_problems
from dperm.pipeline.stages import measured, sweep_path, tasks
from dperm.store.folders import locked

log = logging.getLogger(__name__)


LEAST = 2  # of every stage, replayed in every group: its cheapest
EXTRA = 20.0  # seconds, as recorded, for more of them
LONG, FEW = 2.0, 16  # of a unit longer than so many seconds, so many lanes are replayed
NAMED = (*PROVENANCE, "algorithm", "neighbours")
# What is said of a lane, not what it reached: said anew whenever lanes are read. Rows
# of sweeps are read as they were kept, and keep what they say only if it is the same.
SAID = (*NAMED, "given", "epsilon_low", "true_epsilon")

Group = tuple[str, ...]  # what parts have in common that are adopted together


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
    differences: list[str] = []
    for paper in _papers(config):
        for candidate in candidates(paper, differences):
            groups.setdefault(candidate.group, []).append(candidate)
    chosen = {group: _sample(of, EXTRA / len(groups)) for group, of in groups.items()}
    path = plan.results_folder(config, "adopted.json")
    replays = [one for sample in chosen.values() for one in sample]
    count, cost = len(replays), sum(map(_seconds, replays))
    meter = Meter(f"adopt, {len(groups)} groups", count, "replays", cost)
    verdicts = {}
    for group, members in groups.items():
        log.info("adopt: %s, %d of %d", _title(group), len(chosen[group]), len(members))
        verdicts[group] = _judged(members, chosen[group], meter)
        if not verdicts[group].difference:
            _note(path, group, verdicts[group], members[0].key.code)
            _restamp(members)
    _print(verdicts)
    differences += [
        f"{_title(group)}: {verdict.difference}"
        for group, verdict in verdicts.items()
        if verdict.difference
    ]
    if differences:
        raise DifferentBitsError("not adopted:\n" + "\n".join(differences))
    return path


def _papers(config: schema.Config) -> list[schema.Config]:
    """The paper that the command line names, or all."""
    asked = any(override.startswith("paper=") for override in config.overrides)
    names = [config.paper.name] if asked else available("paper")
    given = [text for text in config.overrides if not text.startswith("paper=")]
    return [configuration.compose([f"paper={name}", *given]) for name in names]


def _title(group: Group) -> str:
    return " ".join(group[:-1])


# --- what is kept of other code -----------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """Kept rows of one seed, made by other code than there is."""

    #: one replayed member speaks for all; ends with the code that made them
    group: Group
    stage: str
    problem: str
    name: str  #: for whoever reads of it, seed included
    key: Key  #: what it would be called now
    paths: list[Path]  #: its files
    seconds: float  #: what it took
    #: maps points (step, clip) of it to the rows that the present code makes
    replay: Callable[[pd.DataFrame], pd.DataFrame]

    def rows(self) -> pd.DataFrame:
        """What is kept; without the files that were damaged."""
        tables = [store.read_or_drop(path) for path in self.paths]
        readable = [table for table in tables if table is not None]
        return pd.concat(readable, ignore_index=True) if readable else pd.DataFrame()


def candidates(config: schema.Config, moved: list[str]) -> Iterator[Candidate]:
    """Those of a paper; optima and noise are made anew first if their code changed.

    An optimum that is not what it was is added to ``moved``: no lane of its problem is
    what it was either, since all are measured by F*.
    """
    for run in plan.runs(config):
        folder = plan.results_folder(config, config.paper.name, *run)
        if Parts(folder).by_identity():
            yield from _lanes(plan.at_run(config, *run), moved)
    for name, what in config.paper.sweeps.items():
        yield from _points(config, name, what, moved)


# --- lanes ----------------------------------------------------------------------------


class _Loaded:
    """A job, loaded when it is wanted; one at a time is kept."""

    kept: dict[int, Job | None] = {}

    def __init__(self, config: schema.Config):
        self.config = config

    def job(self) -> Job | None:
        """The job; None without data."""
        if id(self) not in self.kept:
            self.kept.clear()
            self.kept[id(self)] = inputs.load_job(self.config)
        return self.kept[id(self)]

    def again(self, unit: Unit, points: pd.DataFrame) -> pd.DataFrame:
        """The rows of points of a unit."""
        job = self.job()
        assert job is not None
        return compute(job, unit, points, self.config.workers)


def _lanes(config: schema.Config, moved: list[str]) -> Iterator[Candidate]:
    folder = plan.results_folder(
        config, config.paper.name, config.problem.name, config.solver.name
    )
    parts = Parts(folder)
    now = digests.lanes(config.solver.algorithm, config.problem.loss)
    other = {
        identity: kept
        for identity, found in parts.by_identity().items()
        if (kept := {code: paths for code, paths in found.items() if code != now})
    }
    if not other:
        return
    _solve_again(config, moved)
    loaded = _Loaded(config)
    job = loaded.job()
    if job is None:
        return
    seconds = _recorded(folder / "tune.parquet", folder / "evaluate.parquet")
    for unit in _units(job, plan.design(config)):
        key = part_key(job, unit)
        for code, paths in other.get(key.identity, {}).items():
            now_kept = parts.read(key)
            if now_kept is None or len(missing(unit.settings(), now_kept)) > 0:
                yield Candidate(
                    (*_kind(job, unit), code),
                    unit.stage,
                    job.problem.name,
                    f"{unit.stage} {folder}, {unit.passes:g} passes, "
                    f"{unit.calibration.calibration}, seed {seed(job, unit)}",
                    key,
                    paths,
                    seconds.get(f"{key.identity}-{code}", 0.0),
                    partial(loaded.again, unit),
                )


def _solve_again(config: schema.Config, moved: list[str]) -> None:
    """Prepare and solve the problem if what is there was made by other code."""
    path = inputs.optimum_folder(config) / "optimum.json"
    before = store.known_json(path) or {}
    if before.get("made_by") == digests.solved(digests.optimum(config.problem)):
        return
    log.info("%s: its optimum is of other code, solving again", config.problem.name)
    for stage in (inputs.fetch, inputs.prepare, inputs.optimum):
        stage(config)
    now = store.read_json(path)
    for key in ("digest", "value", "w_digest"):
        if key in before and before[key] != now.get(key):
            was = f"{key} {before[key]!r} was kept, {now.get(key)!r} is made"
            moved.append(f"optimum of {config.problem.name}: {was}")
            return


def _units(job: Job, design: plan.Design) -> list[Unit]:
    """All units the paper wants now, with the noise the present accountant finds."""
    with locked(job.folder):
        units = list(tuning.tuning_units(job, design))
        tuned = job.folder / "tune.parquet"
        if tuned.is_file():
            units += tuning.fresh_units(job, design, store.read_table(tuned))
        else:
            log.info("%s: not there, what was evaluated is not looked at", tuned)
    return units


def _kind(job: Job, unit: Unit) -> Group:
    """Lanes of one kind run the same code: solver, options, matrix, loss, penalty."""
    options = json.dumps(asdict(job.options), default=str)
    names = (job.algorithm, options, unit.calibration.calibration)
    problem = job.problem
    matrix = "sparse" if problem.is_sparse else "dense"
    matrix = "centred" if problem.is_centred else matrix
    return *names, matrix, problem.loss.name, _penalty(problem)


def _penalty(problem: Problem) -> str:
    penalty = problem.penalty
    boxed = penalty.upper - penalty.lower < float("inf")
    used = {"l1": penalty.l1 > 0, "l2": penalty.l2 > 0, "box": boxed}
    return "+".join(name for name, there in used.items() if there) or "no penalty"


def _recorded(*tables: Path) -> dict[str, float]:
    """Seconds of every part, by its key, as far as a stage's tables know them."""
    seconds: dict[str, float] = {}
    for path in tables:
        if path.is_file():
            rows = store.read_table(path)
            if {"config_digest", "seconds", *POINT} <= set(rows):
                lanes = rows.groupby(["config_digest", *POINT])["seconds"].max()
                seconds |= lanes.groupby(level=0).sum().to_dict()
    return seconds


# --- points of sweeps -----------------------------------------------------------------


def _points(
    config: schema.Config, name: str, what: schema.Sweep, moved: list[str]
) -> Iterator[Candidate]:
    path = sweep_path(config, name)
    parts = Parts(path.parent / name)
    kept, named = parts.by_identity(), parts.named()
    if not kept:
        return
    for problem in sweep_problems(config, what):
        _solve_again(plan.at_problem(config, problem), moved)
    try:
        every = tasks(config, name, what)
    except (FileNotFoundError, ValueError) as error:
        log.info("sweep %s: not looked at: %s", name, error)
        return
    function = function_of(config, "sweeps", what.kind)
    for task in every:
        point, replicate, key = task
        found = {} if str(key) in named else kept.get(key.identity, {})
        for code, paths in found.items():
            yield Candidate(
                (config.paper.name, name, *_named(point), code),
                "sweep",
                "",
                f"sweep {config.paper.name} {name}, {point}, replicate {replicate}",
                key,
                paths,
                _spent(paths),
                partial(_measured_again, config, name, what, function, task),
            )


def _measured_again(*given: Any) -> pd.DataFrame:
    """The rows of a sweep's task, which has no lanes to choose points of."""
    return measured(*given[:-1])


def _named(point: dict[str, Any]) -> Group:
    """What a point chooses by name, such as a method: other code may run for each."""
    return tuple(
        f"{key}={value}"
        for key, value in sorted(point.items())
        if isinstance(value, str | bool)
    )


def _spent(paths: list[Path]) -> float:
    tables = [store.read_or_drop(path) for path in paths]
    return sum(float(table["seconds"].sum()) for table in tables if table is not None)


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
            apart = NAMED if one.stage == "sweep" else SAID
            difference = first_difference(kept, one.replay(points), apart)
            seeds = sorted(map(int, kept["seed"].unique()))
            row = {"part": one.name, "seeds": seeds, "rows": len(kept)}
            verdict.replayed.append(row)
            if difference:
                verdict.difference = f"{one.name}: {difference}"
                return verdict
        meter.advance(1, _seconds(one))
    if not verdict.replayed:
        verdict.difference = "nothing of it could be read"
    return verdict


def first_difference(
    kept: pd.DataFrame, fresh: pd.DataFrame, apart: Sequence[str] = SAID
) -> str:
    """Where the first bit differs, column, lane and both values; empty if none does.

    Columns of ``apart`` are left out; -0.0 is not 0.0, NaN is NaN. The order of rows
    counts where they are no lanes.
    """
    buffer = io.BytesIO()  # as they would be read again
    fresh.to_parquet(buffer, index=False)
    fresh = store.unthreaded(buffer)
    kept, fresh = (_ordered(table, apart) for table in (kept, fresh))
    if list(kept) != list(fresh):
        return f"columns {sorted(set(kept) ^ set(fresh))}"
    if len(kept) != len(fresh):
        return f"{len(kept)} rows were kept, {len(fresh)} are made"
    for name in kept:
        where = np.flatnonzero(_bits(kept[name]) != _bits(fresh[name]))
        if len(where):
            at = int(where[0])
            old, new = kept[name].tolist()[at], fresh[name].tolist()[at]
            return f"{name} at {_place(kept, at)}: {old!r} was kept, {new!r} is made"
    return ""


def _ordered(table: pd.DataFrame, apart: Sequence[str]) -> pd.DataFrame:
    keys = [*POINT, "checkpoint"]
    if set(keys) <= set(table):
        table = table.sort_values(keys)
    left = [name for name in table if name in apart]
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
    known = store.read_json(path, kind=list) if path.exists() else []
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
