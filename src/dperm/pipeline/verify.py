"""``dperm verify`` checks that results are those of a run and were not changed since.

The rows of every stage hold their own digest. Users who can write results can also
write digests, so three further checks look at the numbers:

- Consistency: every row of a problem implies the same F*, a mean lies within its
  interval, and rows match their record.
- Derivation: the rows give the tables and the figures' data, and these the verdicts.
- Replay: lanes chosen at random are run again and must give their rows. If a share q
  of the rows is forged, k replayed lanes miss all of them with probability (1 - q)^k.

``dperm adopt`` keeps lanes of older code if the current code makes the same bits. Any
edit of a solver, even a renamed variable, changes the key of its lanes. Lanes are
deterministic, so a sample of them is run again. If every bit of a group agrees, the
group's parts get the new key, which is recorded in ``adopted.json``. If one bit
differs, the whole group is computed again.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import io
import json
import logging
import random
import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
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
from dperm.core.experiment.files import DIGITS, POINT, Key, Parts, write_csv
from dperm.core.experiment.locate import available
from dperm.core.experiment.results import best, sweep_path
from dperm.core.experiment.tune import Meter
from dperm.core.experiment.unit import (
    IDENTITY,
    PROVENANCE,
    Job,
    Unit,
    compute,
    missing,
    part_key,
)
from dperm.core.experiment.unit import seed as seed_of
from dperm.pipeline import completion, digests, inputs, products, stages
from dperm.pipeline.graph import FORMATS
from dperm.pipeline.inputs import load_job
from dperm.pipeline.products import function_of, sweep_problems
from dperm.store.folders import locked

log = logging.getLogger(__name__)

RTOL = 1e-9  # relative difference that counts as rounding
SLACK = RTOL + 10.0 ** (1 - DIGITS)  # the same, for numbers rounded in a CSV file
SHARE = 0.01  # default share of the lanes to run again
LANE = ["stage", "calibration", "passes", *POINT, "replicate"]
ERRORS = (OSError, RuntimeError, ValueError, LookupError)
LEAST = 2  # cheapest members of every stage that are replayed in every group
EXTRA = 20.0  # recorded seconds that further replays may take, all groups together
LONG, FEW = 2.0, 16  # of a unit longer than LONG seconds, FEW lanes are replayed
NAMED = (*PROVENANCE, "algorithm", "neighbours")
# Columns that describe a lane and not its result. They are filled in again whenever
# lanes are read, but stored with the rows of sweeps, where they are compared.
SAID = (*NAMED, "given", "true_epsilon")

Group = tuple[str, ...]  # common properties of parts that are adopted together


class NotVerifiedError(RuntimeError):
    """Results that fail verification; the text has one line per fault."""


@dataclass
class Outcome:
    """The checks that were made and the faults found, in words."""

    said: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def add(self, said: str, faults: Iterable[str]) -> None:
        """Add a check: its description, unless empty, and its faults."""
        self.said += [said] if said else []
        self.faults += faults


def verify(config: schema.Config, share: float, seed: int) -> Outcome:
    """Verify the results of a paper.

    Parameters
    ----------
    config : schema.Config
        With the paper and the folders.
    share : float
        Share of the paper's lanes and points of sweeps to run again; 0 for none.
    seed : int
        Seed of the choice among them.
    """
    outcome, name = Outcome(), config.paper.name
    try:
        tables = {path: store.read_table(path) for path in products.rows(config)}
    except ValueError as error:  # damaged
        outcome.add("", [str(error)])
        return outcome
    outcome.add("", _inside(config))
    if tables:
        outcome.add("", [*_optima(config, tables), *_recorded(config, tables)])
        outcome.add("", [*_chosen(config), *_timed(config, tables)])
        outcome.add(*_made_again(config))
        if share > 0:
            outcome.add(*_replayed(config, share, seed))
    else:
        outcome.add("no rows here: nothing can be drawn or run again", [])
    outcome.add(*_judged(config))
    outcome.said = [f"{name}: {'; '.join(outcome.said)}"]
    return outcome


# --- consistency ----------------------------------------------------------------------


def _files(config: schema.Config) -> list[Path]:
    name = config.paper.name
    folders = (of(config, name) for of in (plan.results_folder, plan.figures_folder))
    return [path for folder in folders for path in sorted(folder.glob("*.csv"))]


def _optima(config: schema.Config, tables: dict[Path, pd.DataFrame]) -> Iterator[str]:
    """Find files whose rows imply another F* = F / (1 + relative error)."""
    for problem in plan.problem_names(config):
        folder = plan.results_folder(config, config.paper.name, problem)
        own = {p: _value(t) for p, t in tables.items() if p.is_relative_to(folder)}
        known = [values for values in own.values() if len(values)]
        if not known:
            continue
        path = Path(config.data.dir, "optimum", problem, "optimum.json")
        record = store.known_json(path) or {}
        value = record.get("value", float(np.median(np.concatenate(known))))
        for path, values in own.items():
            off = ~np.isclose(values, value, rtol=RTOL, atol=0.0)
            if off.any():
                yield (
                    f"{path}: F* of {problem} is {values[off][0]:.12g} by "
                    f"{off.sum()} of {len(off)} rows, where it is {value:.12g}"
                )


def _value(table: pd.DataFrame) -> np.ndarray:
    pair = table[["objective", "relative_error"]].dropna().to_numpy(float)
    pair = pair[np.isfinite(pair).all(axis=1)]
    return pair[:, 0] / (1.0 + pair[:, 1])


def _recorded(config: schema.Config, tables: dict[Path, pd.DataFrame]) -> Iterator[str]:
    """Find rows that differ from the paper's record, if there is one."""
    folder = plan.results_folder(config, config.paper.name)
    record = store.known_json(folder / "record.json")
    rows = record["digests"]["rows"] if record else {}
    for path, table in tables.items():
        known = rows.get(path.relative_to(folder).as_posix())
        if record and known != completion.digest_results(table):
            yield f"{path} has other rows than {folder / 'record.json'} says"


def _inside(config: schema.Config) -> Iterator[str]:
    """Find tables and figures' data with a mean outside its interval or range.

    The range of a row is checked only if the row has an interval too.
    """
    for path in _files(config):
        try:
            table = pd.read_csv(path)
        except ValueError:  # a table without rows may have no columns either
            continue
        stems = [name[:-6] for name in table if name.endswith("ci_low")]
        triples = [(f"{s}ci_low", f"{s}mean", f"{s}ci_high") for s in stems]
        for names in (*triples, ("min", "mean", "max")):
            if {*names} <= {*table.columns}:
                low, mean, high = (table[name].to_numpy(float) for name in names)
                slack = SLACK * np.abs(mean)
                off = (mean < low - slack) | (mean > high + slack)
                if names[0] == "min" and "ci_low" in table:
                    off &= table["ci_low"].notna()  # in a histogram, ends of bins
                if off.any():
                    at = int(np.flatnonzero(off)[0])
                    yield (
                        f"{path}: row {at + 1}: {names[1]} {mean[at]:.10g} is outside "
                        f"[{low[at]:.10g}, {high[at]:.10g}]"
                    )


def _chosen(config: schema.Config) -> Iterator[str]:
    """Find evaluations of settings that tuning did not choose."""
    for folder in _runs(config).values():
        tuned, ran = (_table(folder, name) for name in ("tune", "evaluate"))
        names = ["calibration", "passes", *POINT]
        if "ok" in set(tuned["status"]) and ran["calibration"].notna().all():
            wanted = tuning.evaluated_settings(config.paper.evaluated, best(tuned))
            settings = (table[names].itertuples(index=False) for table in (ran, wanted))
            if len({frozenset(map(tuple, rows)) for rows in settings}) > 1:
                path = folder / "evaluate.parquet"
                yield f"{path} is of other settings than its tuning chose"


def _timed(config: schema.Config, tables: dict[Path, pd.DataFrame]) -> Iterator[str]:
    """Find timings whose errors differ from those of the same runs in evaluation."""
    path = plan.results_folder(config, config.paper.name) / "timing.parquet"
    timed = tables.get(path)
    if timed is None or timed.empty:
        return
    names = ["problem", "solver", *IDENTITY]
    rows = [t for p, t in tables.items() if p.name == "evaluate.parquet"]
    both = timed.merge(pd.concat(rows), on=names, how="left", suffixes=("", "_run"))
    off = both["objective"].fillna(np.inf) != both["objective_run"].fillna(np.inf)
    if off.any():
        yield f"{path}: {off.sum()} of {len(both)} rows are not those of evaluation"


def _runs(config: schema.Config) -> dict[tuple[str, str], Path]:
    """Folders of the runs that have both of their tables, by problem and solver."""
    folders = {
        run: plan.results_folder(config, config.paper.name, *run)
        for run in plan.runs(config)
    }
    both = ("tune.parquet", "evaluate.parquet")
    return {
        run: folder
        for run, folder in folders.items()
        if all((folder / name).is_file() for name in both)
    }


def _table(folder: Path, name: str) -> pd.DataFrame:
    return store.read_table(folder / f"{name}.parquet")


# --- tables, figures and verdicts, made again -----------------------------------------


def _made_again(config: schema.Config) -> tuple[str, list[str]]:
    faults, equal, near = [], 0, 0
    for kind in FORMATS:
        for name in getattr(config.paper, kind):
            path = products.stem(config, kind, name).with_suffix(".csv")
            read = products.inputs_of(config, kind, name)
            if not path.is_file() or not all(file.is_file() for file in read):
                continue
            try:
                lines = _differing(path, products.data_of(config, kind, name))
            except ERRORS as error:
                faults.append(f"{path} cannot be made again: {error}")
                continue
            equal, near = equal + (lines == []), near + (lines is None)
            faults += [
                f"{path} is not what its rows give: {each}" for each in lines or []
            ]
    text = f"{equal + near} tables and data of figures made again"
    return text + (f", {near} equal but for rounding" if near else ""), faults


def _differing(path: Path, made: pd.DataFrame) -> list[str] | None:
    """First difference of a CSV file from a table, as a list; None for rounding."""
    with tempfile.TemporaryDirectory() as folder:
        again = Path(folder, path.name)
        write_csv(again, made)
        if again.read_bytes() == path.read_bytes():
            return []
        kept, fresh = _numbers(path), _numbers(again)
    difference = first_difference(kept, fresh, ())
    if difference and not is_near(kept, fresh, SLACK):
        return [difference]
    return None if difference else []


def _numbers(path: Path) -> pd.DataFrame:
    """A CSV file without seconds and provenance."""
    # A table without rows may have no columns either.
    table = pd.read_csv(path) if path.read_text("utf-8").strip() else pd.DataFrame()
    left_out = [name for name in table if name in PROVENANCE or "seconds" in name]
    return table.drop(columns=left_out)


def is_near(one: pd.DataFrame, other: pd.DataFrame, rtol: float) -> bool:
    """Whether two tables are equal except for rounding."""
    same = len(one) == len(other) and list(one) == list(other)
    return same and all(_is_near(one[name], other[name], rtol) for name in one)


def _is_near(one: pd.Series, other: pd.Series, rtol: float) -> bool:
    if not all(pd.api.types.is_numeric_dtype(column) for column in (one, other)):
        return bool(((one == other) | (one.isna() & other.isna())).all())
    pair = one.to_numpy(float), other.to_numpy(float)
    return bool(np.isclose(*pair, rtol=rtol, atol=0.0, equal_nan=True).all())


def _judged(config: schema.Config) -> tuple[str, list[str]]:
    path = plan.results_folder(config) / "claims.csv"
    if not path.is_file() or not config.paper.claims:
        return "", []
    # The report depends on the pipeline, which must import it by name, like papers.
    judging: Any = importlib.import_module("dperm.report.judging")
    name = config.paper.name
    with tempfile.TemporaryDirectory() as folder:
        again = Path(folder, "claims.csv")
        rows = [*judging.judged(configuration.with_paper(config, name))]
        write_csv(again, pd.DataFrame(rows, columns=judging.COLUMNS))
        ours, theirs = (pd.read_csv(one, dtype=str) for one in (again, path))
    theirs = theirs[theirs["paper"] == name].reset_index(drop=True)
    if ours.equals(theirs):
        return f"{len(ours)} claims judged again", []
    keys = ["place", "claim", "verdict"]
    apart = set(map(tuple, ours[keys].to_numpy())) ^ set(
        map(tuple, theirs[keys].to_numpy())
    )
    first = f"first {sorted(apart)[0][0]}" if apart else "in their reasons"
    return "", [f"{path} has other verdicts of {name} than are found now: {first}"]


# --- lanes, run again -----------------------------------------------------------------


def _replayed(config: schema.Config, share: float, seed: int) -> tuple[str, list[str]]:
    """Run a random choice of lanes and points of sweeps again."""
    lanes = _lanes(config)
    points = _points(config)
    total = len(lanes) + len(points)
    count = min(total, max(1, round(share * total)))
    picked = sorted(random.Random(seed).sample(range(total), count)) if total else []
    some = lanes.iloc[[at for at in picked if at < len(lanes)]]
    rest = [points[at - len(lanes)] for at in picked if at >= len(lanes)]
    faults, exact = [], 0
    for text, bits in (*_lanes_again(config, some), *_points_again(config, rest)):
        faults += [text] if text else []
        exact += bits
    said = f"{len(picked)} of {total} lanes and points run again (seed {seed}), {exact}"
    return f"{said} equal to the bit", faults


def _lanes(config: schema.Config) -> pd.DataFrame:
    """All lanes that were run to their end, one row per lane."""
    found = [pd.DataFrame(columns=["problem", "solver", *LANE])]
    for (problem, solver), folder in _runs(config).items():
        for stage in ("tune", "evaluate"):
            rows = _table(folder, stage)
            rows = rows[rows["status"].isin(["ok", "diverged"]) & rows["step"].notna()]
            rows = rows.assign(stage=stage, problem=problem, solver=solver)
            found.append(rows[["problem", "solver", *LANE]].drop_duplicates())
    return pd.concat([each for each in found if len(each)] or found, ignore_index=True)


def _lanes_again(
    config: schema.Config, lanes: pd.DataFrame
) -> Iterator[tuple[str, bool]]:
    """Yield for every lane its difference, and whether all bits are equal."""
    for (problem, solver), some in lanes.groupby(["problem", "solver"], sort=False):
        job = load_job(plan.at_run(config, problem, solver))
        if job is None:
            yield (
                f"{problem}: its data are not here, so no lane of it is run again",
                False,
            )
            continue
        with tempfile.TemporaryDirectory() as scratch:  # to calibrate the noise again
            job = replace(job, folder=Path(scratch))
            folder = plan.results_folder(config, config.paper.name, problem, solver)
            keys = ["stage", "calibration", "passes", "replicate"]
            for key, points in some.groupby(keys, sort=False):
                yield from _unit_again(job, folder, key, points[POINT])


def _unit_again(
    job: Job, folder: Path, key: Any, points: pd.DataFrame
) -> Iterator[tuple[str, bool]]:
    stage, kind, passes, replicate = key
    noise = tuning.calibrations(job, [kind], [passes])[kind, passes]
    observed = (passes,) if stage == "tune" else job.checkpoints(passes)
    listed: list[Any] = points.to_dict("records")
    unit = Unit(stage, noise, passes, int(replicate), listed, observed)
    fresh = compute(job, unit, points, job.workers)
    kept = _table(folder, stage)
    own = (
        kept[["calibration", "passes", "replicate"]] == [kind, passes, replicate]
    ).all(axis=1)
    for point in listed:
        at = [(rows[POINT] == [*point.values()]).all(axis=1) for rows in (kept, fresh)]
        text, bits = _apart(kept[own & at[0]], fresh[at[1]], SAID)
        where = (
            f"{kind}, {passes:g} passes, step {point['step']:g}, clip {point['clip']:g}"
        )
        path = folder / f"{stage}.parquet"
        yield text and f"{path}: {where}, replicate {replicate}: {text}", bits


def _points(config: schema.Config) -> list[tuple[str, str]]:
    """All points of sweeps: the name of the sweep and the identity of its rows."""
    found = []
    for name in config.paper.sweeps:
        path = sweep_path(config, name)
        if path.is_file():
            keys = store.read_table(path)["config_digest"].drop_duplicates()
            found += [(name, str(key).partition("-")[0]) for key in keys]
    return found


def _points_again(
    config: schema.Config, points: list[tuple[str, str]]
) -> Iterator[tuple[str, bool]]:
    for name in dict.fromkeys(name for name, _ in points):
        what, path = config.paper.sweeps[name], sweep_path(config, name)
        tasks = {task[2].identity: task for task in stages.tasks(config, name, what)}
        rows = store.read_table(path)
        keys = rows["config_digest"].str.partition("-")[0]
        function = products.function_of(config, "sweeps", what.kind)
        for identity in (each for of, each in points if of == name):
            if identity not in tasks:
                yield f"{path} has a point that the configuration has not", False
                continue
            fresh = stages.measured(config, name, what, function, tasks[identity])
            kept = rows[keys == identity]
            seconds = [column for column in fresh if "seconds" in column]
            text, bits = _apart(kept, fresh, (*NAMED, *seconds))
            point, replicate, _ = tasks[identity]
            yield text and f"{path}: {point}, replicate {replicate}: {text}", bits


def _apart(kept: pd.DataFrame, fresh: pd.DataFrame, but: Any) -> tuple[str, bool]:
    """The first difference beyond rounding, and whether all bits are equal."""
    results = fresh.dropna(axis=1, how="all")
    if lost := [name for name in results if name not in kept and name not in but]:
        return f"column {lost[0]} is missing", False
    both = [name for name in fresh if name in kept]
    kept, fresh = (rows[both].reset_index(drop=True) for rows in (kept, fresh))
    fresh = fresh.astype(kept.dtypes.to_dict(), errors="ignore")
    difference = first_difference(kept, fresh, but)
    if not difference:
        return "", True
    names = [name for name in both if name not in but]
    if is_near(kept[names], fresh[names], RTOL):
        return "", False
    return difference, False


# --- the command ----------------------------------------------------------------------


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``dperm verify``."""
    parser.add_argument("what", nargs="*", help="papers (default all), and key=value")
    text = f"share of the lanes that is run again ({SHARE}; 0: none)"
    parser.add_argument("--replay", type=float, default=SHARE, help=text)
    parser.add_argument("--seed", type=int, help="that chooses them (default: fresh)")


def main(options: argparse.Namespace) -> None:
    """Verify papers and print one line each.

    Raises
    ------
    NotVerifiedError
        If there are faults, with one line each.
    """
    papers = [word for word in options.what if "=" not in word]
    given = [word for word in options.what if "=" in word]
    verify_all(papers or available("paper"), given, options.replay, options.seed)


def verify_all(
    papers: Iterable[str], overrides: list[str], share: float, seed: int | None = None
) -> None:
    """Verify papers and print one line each.

    Raises
    ------
    NotVerifiedError
        If there are faults, with one line each.
    """
    seed = secrets.randbits(32) if seed is None else seed
    faults = []
    for name in papers:
        config = configuration.compose([f"paper={name}", *overrides])
        outcome = verify(config, share, seed)
        print(*outcome.said, sep="\n")
        faults += outcome.faults
    if faults:
        raise NotVerifiedError("not what a run leaves:\n" + "\n".join(faults))


# --- adopt ------------------------------------------------------------------------


class DifferentBitsError(RuntimeError):
    """A replayed lane that differs from the kept one; the text names both values."""


@dataclass
class _Adoption:
    parts: int
    replayed: list[dict[str, Any]]
    difference: str = ""


def adopt(config: schema.Config) -> Path:
    """Adopt kept parts of a paper, or of all papers, and print a table of the outcome.

    Returns
    -------
    Path
        Of ``adopted.json``, to which every adoption is added.

    Raises
    ------
    DifferentBitsError
        If any group differs; all other groups have been adopted.
    """
    groups: dict[Group, list[Candidate]] = {}
    differences: list[str] = []
    is_named = any(text.startswith("paper=") for text in config.overrides)
    given = [text for text in config.overrides if not text.startswith("paper=")]
    for name in [config.paper.name] if is_named else available("paper"):
        paper = configuration.compose([f"paper={name}", *given])
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
        verdicts[group] = _compared(members, chosen[group], meter)
        if not verdicts[group].difference:
            _note(path, group, verdicts[group], members[0].key.code)
            _restamp(members)
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
    differences += [
        f"{_title(group)}: {verdict.difference}"
        for group, verdict in verdicts.items()
        if verdict.difference
    ]
    if differences:
        raise DifferentBitsError("not adopted:\n" + "\n".join(differences))
    return path


def _restamp(members: list[Candidate]) -> None:
    for one in members:  # if interrupted, the next adoption finds the remaining ones
        folder = one.paths[0].parent.parent
        with locked(folder):
            for path in filter(Path.exists, one.paths):
                Parts(folder).restamp(path, one.key.code)


def _title(group: Group) -> str:
    return " ".join(group[:-1])


# --- parts made by other code ---------------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """Kept rows of one seed that were made by other code than the current."""

    #: members are adopted together; ends with the digest of the code that made them
    group: Group
    stage: str
    problem: str
    name: str  #: for messages, with the seed
    key: Key  #: its key under the current code
    paths: list[Path]  #: its files
    seconds: float  #: seconds it took
    #: maps points (step, clip) to the rows that the current code makes
    replay: Callable[[pd.DataFrame], pd.DataFrame]

    def rows(self) -> pd.DataFrame:
        """The kept rows, without damaged files."""
        tables = [store.read_or_drop(path) for path in self.paths]
        readable = [table for table in tables if table is not None]
        return pd.concat(readable, ignore_index=True) if readable else pd.DataFrame()


def candidates(config: schema.Config, moved: list[str]) -> Iterator[Candidate]:
    """Yield the candidates of a paper.

    Optima and noise are computed again first if their code changed. An optimum that
    differs is added to ``moved``: all lanes of its problem are measured by F*, so they
    differ as well.
    """
    for run in plan.runs(config):
        folder = plan.results_folder(config, config.paper.name, *run)
        if Parts(folder).by_identity():
            yield from _kept_lanes(plan.at_run(config, *run), moved)
    for name, what in config.paper.sweeps.items():
        yield from _kept_points(config, name, what, moved)


# --- lanes ----------------------------------------------------------------------------


_LOADED: list[tuple[schema.Config, Job | None]] = []  # at most one job


def _loaded(config: schema.Config) -> Job | None:
    """The job of a run; None if its data are unavailable."""
    if not any(known is config for known, _ in _LOADED):
        _LOADED.clear()
        _LOADED.append((config, load_job(config)))
    return _LOADED[0][1]


def _again(config: schema.Config, unit: Unit, points: pd.DataFrame) -> pd.DataFrame:
    job = _loaded(config)
    assert job is not None
    return compute(job, unit, points, config.workers)


def _kept_lanes(config: schema.Config, moved: list[str]) -> Iterator[Candidate]:
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
    job = _loaded(config)
    if job is None:
        return
    seconds = _seconds_of(folder / "tune.parquet", folder / "evaluate.parquet")
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
                    f"{unit.calibration.calibration}, seed {seed_of(job, unit)}",
                    key,
                    paths,
                    seconds.get(f"{key.identity}-{code}", 0.0),
                    partial(_again, config, unit),
                )


def _solve_again(config: schema.Config, moved: list[str]) -> None:
    """Prepare and solve the problem again if its optimum was made by other code."""
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
    """All units that the paper needs, with the noise of the current accountant."""
    with locked(job.folder):
        units = list(tuning.tuning_units(job, design))
        tuned = job.folder / "tune.parquet"
        if tuned.is_file():
            units += tuning.fresh_units(job, design, store.read_table(tuned))
        else:
            log.info("%s is missing: its fresh runs are not checked", tuned)
    return units


def _kind(job: Job, unit: Unit) -> Group:
    """Group of a unit by the code it runs: solver, options, matrix, loss, penalty."""
    options = json.dumps(asdict(job.options), default=str)
    names = (job.algorithm, options, unit.calibration.calibration)
    problem = job.problem
    matrix = "sparse" if problem.is_sparse else "dense"
    return *names, matrix, problem.loss.name, _penalty(problem)


def _penalty(problem: Problem) -> str:
    penalty = problem.penalty
    boxed = penalty.upper - penalty.lower < float("inf")
    used = {"l1": penalty.l1 > 0, "l2": penalty.l2 > 0, "box": boxed}
    return "+".join(name for name, there in used.items() if there) or "no penalty"


def _seconds_of(*tables: Path) -> dict[str, float]:
    """Seconds of every part, by its key, as far as a stage's tables have them."""
    seconds: dict[str, float] = {}
    for path in tables:
        if path.is_file():
            rows = store.read_table(path)
            if {"config_digest", "seconds", *POINT} <= set(rows):
                lanes = rows.groupby(["config_digest", *POINT])["seconds"].max()
                seconds |= lanes.groupby(level=0).sum().to_dict()
    return seconds


# --- points of sweeps -----------------------------------------------------------------


def _swept(
    config: schema.Config,
    name: str,
    what: schema.Sweep,
    function: Callable[..., Any],
    task: stages.Task,
    _: pd.DataFrame,
) -> pd.DataFrame:
    """Rows of a task by the current code; a sweep has no lanes to choose from."""
    return stages.measured(config, name, what, function, task)


def _kept_points(
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
        every = stages.tasks(config, name, what)
    except (FileNotFoundError, ValueError) as error:
        log.info("sweep %s: not looked at: %s", name, error)
        return
    function = function_of(config, "sweeps", what.kind)
    for task in every:
        point, replicate, key = task
        found = {} if str(key) in named else kept.get(key.identity, {})
        for code, paths in found.items():
            tables = (store.read_or_drop(path) for path in paths)
            # Each method that a point names may run other code.
            named_by = sorted(k for k in point if isinstance(point[k], str | bool))
            kind = [f"{key}={point[key]}" for key in named_by]
            yield Candidate(
                (config.paper.name, name, *kind, code),
                "sweep",
                "",
                f"sweep {config.paper.name} {name}, {point}, replicate {replicate}",
                key,
                paths,
                sum(float(t["seconds"].sum()) for t in tables if t is not None),
                partial(_swept, config, name, what, function, task),
            )


# --- choice of replays ----------------------------------------------------------------


def _sample(members: list[Candidate], budget: float) -> list[Candidate]:
    """Choose the cheapest of every stage, then of every problem, then others.

    The choice ends when the recorded seconds exceed the budget. The order of the others
    is random, with the group's name as its seed, so that it is always the same.
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
    return sorted(first, key=lambda one: one.name)  # so that each job is loaded once


def _seconds(one: Candidate) -> float:
    return min(one.seconds, LONG) + 0.02


def _lanes_of(one: Candidate, rows: pd.DataFrame) -> pd.DataFrame:
    """Points to replay: all, or the extremes and some between."""
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


# --- outcome of replays ---------------------------------------------------------------


def _compared(
    members: list[Candidate], sample: list[Candidate], meter: Meter
) -> _Adoption:
    """Replay a sample up to the first difference."""
    verdict = _Adoption(len(members), [])
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
    """Column, lane and both values of the first different bit; empty if none differs.

    Columns of ``apart`` are left out. -0.0 differs from 0.0, but NaN equals NaN. The
    order of rows counts only if the rows are not lanes.
    """
    buffer = io.BytesIO()  # through Parquet, like the kept rows
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
        values[np.isnan(values)] = np.nan  # one bit pattern
        return values.view(np.int64)
    return column.map(repr).to_numpy(dtype=object)


def _place(table: pd.DataFrame, row: int) -> str:
    keys = [name for name in (*POINT, "checkpoint", "seed") if name in table]
    return ", ".join(f"{key} {table[key].iloc[row]:g}" for key in keys) or f"row {row}"


def _note(path: Path, group: Group, verdict: _Adoption, code: str) -> None:
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
