"""``dperm verify`` checks that results are those of a run and were not changed since.

The rows of every stage hold their own digest. Users who can write results can also
write digests, so three further checks look at the numbers:

- Consistency: every row of a problem implies the same F*, a mean lies within its
  interval, and rows match their record.
- Derivation: the rows give the tables and the figures' data, and these the verdicts.
- Replay: lanes chosen at random are run again and must give their rows. If a share q
  of the rows is forged, k replayed lanes miss all of them with probability (1 - q)^k.
"""

from __future__ import annotations

import argparse
import importlib
import io
import logging
import random
import secrets
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dperm.core.experiment import config as configuration
from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.core.experiment import tune as tuning
from dperm.core.experiment.files import DIGITS, POINT, write_csv
from dperm.core.experiment.locate import available
from dperm.core.experiment.results import best, sweep_path
from dperm.core.experiment.unit import (
    IDENTITY,
    PROVENANCE,
    Job,
    Unit,
    compute,
)
from dperm.pipeline import completion, products, stages
from dperm.pipeline.graph import FORMATS
from dperm.pipeline.inputs import load_job

log = logging.getLogger(__name__)

RTOL = 1e-9  # relative difference that counts as rounding
SLACK = RTOL + 10.0 ** (1 - DIGITS)  # the same, for numbers rounded in a CSV file
SHARE = 0.01  # default share of the lanes to run again
MEANS = 1e-5  # relative distance of two means of nearly equal numbers
LANE = ["stage", "calibration", "passes", *POINT, "replicate"]
ERRORS = (OSError, RuntimeError, ValueError, LookupError)
NAMED = (*PROVENANCE, "algorithm", "neighbours")
# Columns that describe a lane and not its result. They are filled in again whenever
# lanes are read, but stored with the rows of sweeps, where they are compared.
SAID = (*NAMED, "given", "true_epsilon")


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

    The range of a row is checked only if the row has an interval too. A mean may be
    arithmetic and its interval that of the geometric one, which differ by ``MEANS``.
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
                slack = MEANS * np.abs(mean)
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
    report: Any = importlib.import_module("dperm.report.claims")
    name = config.paper.name
    with tempfile.TemporaryDirectory() as folder:
        again = Path(folder, "claims.csv")
        rows = [*report.judged_paper(configuration.with_paper(config, name))]
        write_csv(again, pd.DataFrame(rows, columns=list(report.COLUMNS)))
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
            ran = rows["status"].isin(["ok", tuning.ONE_RUN, "diverged"])
            rows = rows[ran & rows["step"].notna()]
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
    kept = _table(folder, stage).replace({"status": {tuning.ONE_RUN: "ok"}})
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


# --- bits -----------------------------------------------------------------------------


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
