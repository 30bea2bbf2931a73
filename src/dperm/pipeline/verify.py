"""``dperm verify`` checks that results are those of a run and were not changed since.

The manifest of a run has the SHA-256 of every file that it left. Users who can edit
results can also edit a manifest, so four further checks look at the numbers:

- every row of a problem implies the same F*, evaluations are of the settings that
  tuning chose, and means lie within their intervals,
- the rows give the tables and the figures' data,
- these give the verdicts,
- lanes and points of sweeps chosen at random are run again and must give their rows. If
  a share q of the rows is forged, k of them miss all with probability (1 - q)^k.

Without rows, as in a clone, only files, intervals and verdicts are checked.
"""

from __future__ import annotations

import argparse
import importlib
import random
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dperm.core.experiment import config as configuration
from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.core.experiment import tune as tuning
from dperm.core.experiment.files import POINT, write_csv
from dperm.core.experiment.locate import available
from dperm.core.experiment.results import best, sweep_path
from dperm.core.experiment.unit import PROVENANCE, Unit, compute
from dperm.pipeline import completion, products, stages
from dperm.pipeline.inputs import load_job

RTOL = 2e-9  # relative difference that counts as rounding
MEANS = 1e-5  # an arithmetic mean may be so far outside the interval of a geometric one
SHARE = 0.01  # default share of lanes and points that is run again
NAMED = (*PROVENANCE, "algorithm", "neighbours")
# Columns that describe a lane and not its result. They are filled in again whenever
# lanes are read, but stored with the rows of sweeps, where they are compared.
SAID = (*NAMED, "given", "true_epsilon")
KEYS = ["calibration", "passes", *POINT, "replicate"]  # of a lane
FAILED = (OSError, RuntimeError, ValueError, LookupError)


class NotVerifiedError(RuntimeError):
    """Results that fail verification; the text has one line per fault."""


def verify(config: schema.Config, share: float, seed: int) -> list[str]:
    """The faults of a paper's results, one line each.

    Parameters
    ----------
    config : schema.Config
        With the paper and the folders.
    share : float
        Share of the paper's lanes and points of sweeps to run again; 0 for none.
    seed : int
        Seed of the choice among them.
    """
    faults: list[str] = []
    checks = (_files(config), _means(config), _rows(config), _made_again(config))
    replayed = _replayed(config, share, seed) if share > 0 else ()
    for check in (*checks, replayed, _judged(config)):
        try:
            faults += check
        except FAILED as error:  # a damaged file, or rows that give no table
            faults.append(f"{config.paper.name}: {type(error).__name__}: {error}")
    return list(dict.fromkeys(faults))


def _files(config: schema.Config) -> Iterator[str]:
    """Find files that are not as their manifest says; Git has none of the rows."""
    path = plan.results_folder(config, config.paper.name) / completion.MANIFEST
    known = (store.known_json(path) or {}).get("files", {})
    now = completion.listed(config)
    for file in sorted({*known, *now} if known else ()):
        if file not in known:
            yield f"{file} is not of the run that {path} records"
        elif file in now and known[file] != now[file]:
            yield f"{file} was changed after the run"
        elif file not in now and file.endswith((".csv", ".png")):
            yield f"{file} of the run is missing"


def _means(config: schema.Config) -> Iterator[str]:
    """Find tables and figures' data with a mean outside its interval."""
    name = config.paper.name
    folders = (of(config, name) for of in (plan.results_folder, plan.figures_folder))
    for path in (path for folder in folders for path in sorted(folder.glob("*.csv"))):
        table = _read(path)
        for stem in [name[:-6] for name in table if name.endswith("ci_low")]:
            names = [f"{stem}ci_low", f"{stem}mean", f"{stem}ci_high"]
            if not {*names} <= {*table.columns}:
                continue
            low, mean, high = (table[name].to_numpy(float) for name in names)
            slack = MEANS * np.abs(mean)
            for at in np.flatnonzero((mean < low - slack) | (mean > high + slack))[:1]:
                yield (
                    f"{path}: row {at + 1}: {names[1]} {mean[at]:.10g} is outside "
                    f"[{low[at]:.10g}, {high[at]:.10g}]"
                )


def _read(path: Path) -> pd.DataFrame:
    """A CSV file; one without rows may have no columns either."""
    return pd.read_csv(path) if path.read_text("utf-8").strip() else pd.DataFrame()


def _runs(config: schema.Config) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    """Runs of the paper that have rows: problem and solver, and tables by stage."""
    for run in plan.runs(config):
        folder = plan.results_folder(config, config.paper.name, *run)
        paths = {name: folder / f"{name}.parquet" for name in ("tune", "evaluate")}
        if all(path.is_file() for path in paths.values()):
            yield run, {name: store.read_table(path) for name, path in paths.items()}


def _rows(config: schema.Config) -> Iterator[str]:
    """Find rows of another F*, evaluations of settings that tuning did not choose."""
    for (problem, solver), tables in _runs(config):
        where = plan.results_folder(config, config.paper.name, problem, solver)
        record = Path(config.data.dir, "optimum", problem, "optimum.json")
        value = (store.known_json(record) or {}).get("value", np.nan)
        for name, table in tables.items():
            pair = table[["objective", "relative_error"]].dropna().to_numpy(float)
            pair = pair[np.isfinite(pair).all(axis=1)]
            found = pair[:, 0] / (1.0 + pair[:, 1])
            if np.isnan(value) and len(found):
                value = float(np.median(found))
            off = ~np.isclose(found, value, rtol=RTOL, atol=0.0)
            if off.any():
                yield (
                    f"{where / name}.parquet: F* of {problem} is {found[off][0]:.12g} "
                    f"by {off.sum()} of {len(off)} rows, where it is {value:.12g}"
                )
        tuned, ran = tables["tune"], tables["evaluate"]
        if "ok" in set(tuned["status"]) and ran["calibration"].notna().all():
            wanted = tuning.evaluated_settings(config.paper.evaluated, best(tuned))
            both = [{*table[KEYS[:-1]].itertuples(index=False)} for table in
                    (ran, wanted)]  # fmt: skip
            if both[0] != both[1]:
                yield f"{where}/evaluate.parquet is not of what its tuning chose"


def _made_again(config: schema.Config) -> Iterator[str]:
    """Find tables and data of figures that their rows do not give."""
    for kind in products.FORMATS:
        for name in getattr(config.paper, kind):
            path = products.stem(config, kind, name).with_suffix(".csv")
            read = products.inputs_of(config, kind, name)
            if path.is_file() and all(file.is_file() for file in read):
                found = _not_made(path, products.data_of(config, kind, name))
                yield from (f"{path} is not what its rows give: {at}" for at in found)


def _not_made(path: Path, made: pd.DataFrame) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        again = Path(folder, path.name)
        write_csv(again, made)
        if again.read_bytes() != path.read_bytes():
            kept, fresh = _read(path), _read(again)
            apart = [name for name in kept if "seconds" in name]
            text, _ = difference(kept, fresh, (*PROVENANCE, *apart))
            yield from [text] if text else []


def _judged(config: schema.Config) -> Iterator[str]:
    """Find claims whose verdicts are not those of the tables and figures here."""
    path = plan.results_folder(config) / "claims.csv"
    if not path.is_file() or not config.paper.claims:
        return
    # The report depends on the pipeline, which must import it by name, like papers.
    report: Any = importlib.import_module("dperm.report.claims")
    name = config.paper.name
    with tempfile.TemporaryDirectory() as folder:
        again = Path(folder, "claims.csv")
        rows = [*report.judged_paper(configuration.with_paper(config, name))]
        write_csv(again, pd.DataFrame(rows, columns=list(report.COLUMNS)))
        ours, theirs = (pd.read_csv(one, dtype=str) for one in (again, path))
    theirs = theirs[theirs["paper"] == name].reset_index(drop=True)
    text, _ = difference(theirs, ours, ())
    if text:
        yield f"{path} has other verdicts of {name} than are found now: {text}"


# --- lanes and points, run again ------------------------------------------------------


def _replayed(config: schema.Config, share: float, seed: int) -> Iterator[str]:
    """Run a random choice of lanes and points of sweeps again."""
    every: list[Any] = []
    for run, tables in _runs(config):
        for stage, table in tables.items():
            ran = table["status"].isin(["ok", tuning.ONE_RUN, "diverged"])
            lanes = table[ran & table["step"].notna()][KEYS].drop_duplicates()
            every += [(run, stage, lane) for lane in lanes.itertuples(index=False)]
    for name in config.paper.sweeps:
        path = sweep_path(config, name)
        keys = store.read_table(path)["config_digest"] if path.is_file() else []
        every += [(None, name, str(key)) for key in dict.fromkeys(keys)]
    count = min(len(every), max(1, round(share * len(every))))
    chosen = random.Random(seed).sample(every, count)
    for run, stage, lane in sorted(chosen, key=str):
        again = _lane(config, run, stage, lane) if run else _point(config, stage, lane)
        yield from again


def _lane(
    config: schema.Config, run: tuple[str, str], stage: str, lane: Any
) -> Iterator[str]:
    """How a stored lane differs from the one that the current code makes."""
    path = plan.results_folder(config, config.paper.name, *run) / f"{stage}.parquet"
    job = load_job(plan.at_run(config, *run))
    if job is None:
        yield f"{run[0]}: its data are not here, so no lane of it is run again"
        return
    with tempfile.TemporaryDirectory() as scratch:  # to calibrate the noise again
        job = replace(job, folder=Path(scratch))
        noises = tuning.calibrations(job, [lane.calibration], [lane.passes])
    noise, passes = noises[lane.calibration, lane.passes], lane.passes
    observed = (passes,) if stage == "tune" else job.checkpoints(passes)
    point = {"passes": passes, "step": lane.step, "clip": lane.clip}
    unit = Unit(stage, noise, passes, int(lane.replicate), [point], observed)
    fresh = compute(job, unit, unit.settings(), 1)
    kept = store.read_table(path).replace({"status": {tuning.ONE_RUN: "ok"}})
    text, _ = difference(kept[(kept[KEYS] == list(lane)).all(axis=1)], fresh, SAID)
    if text:
        at = ", ".join(f"{key} {value}" for key, value in lane._asdict().items())
        yield f"{path}: {at}: {text}"


def _point(config: schema.Config, name: str, key: str) -> Iterator[str]:
    """How the rows of a sweep's point differ from those that the current code makes."""
    what, path = config.paper.sweeps[name], sweep_path(config, name)
    identity = key.partition("-")[0]
    tasks = {task[2].identity: task for task in stages.tasks(config, name, what)}
    if identity not in tasks:
        yield f"{path} has a point that the configuration has not"
        return
    function = products.function_of(config, "sweeps", what.kind)
    fresh = stages.measured(config, name, what, function, tasks[identity])
    rows = store.read_table(path)
    seconds = [column for column in fresh if "seconds" in column]
    own = rows[rows["config_digest"] == key]
    text, _ = difference(own, fresh, (*NAMED, *seconds))
    if text:
        point, replicate, _ = tasks[identity]
        yield f"{path}: {point}, replicate {replicate}: {text}"


def difference(
    kept: pd.DataFrame, fresh: pd.DataFrame, apart: Iterable[str] = SAID
) -> tuple[str, bool]:
    """The first difference beyond rounding, and whether all bits are equal.

    Columns of ``apart`` are left out. The order of rows counts only if the rows are not
    lanes.
    """
    kept, fresh = (_ordered(table, apart) for table in (kept, fresh))
    lost = {*fresh.dropna(axis=1, how="all")} ^ {*kept.dropna(axis=1, how="all")}
    if lost:
        return f"columns {sorted(map(str, lost))}", False
    if len(kept) != len(fresh):
        return f"{len(kept)} rows were kept, {len(fresh)} are made", False
    equal = True
    for name in [name for name in fresh if name in kept]:
        old, new = kept[name].to_numpy(object), fresh[name].to_numpy(object)
        same = (old == new) | (pd.isna(old) & pd.isna(new))
        equal &= [*map(repr, old)] == [*map(repr, new)]  # -0.0 is not 0.0
        for at in np.flatnonzero(~same).tolist():
            if not _is_near(old[at], new[at]):
                text = f"{name} at {_place(kept, at)}: {old[at]!r} was kept, "
                return f"{text}{new[at]!r} is made", False
    return "", equal


def _ordered(table: pd.DataFrame, apart: Iterable[str]) -> pd.DataFrame:
    keys = [*POINT, "checkpoint"]
    table = table.sort_values(keys) if {*keys} <= {*table} else table
    left = [name for name in table if name in {*apart}]
    return table.drop(columns=left).reset_index(drop=True)


def _is_near(old: Any, new: Any) -> bool:
    if not all(isinstance(one, Real) for one in (old, new)):
        return False
    return bool(np.isclose(old, new, rtol=RTOL, atol=0.0, equal_nan=True))


def _place(table: pd.DataFrame, row: int) -> str:
    keys = [name for name in (*POINT, "checkpoint", "seed") if name in table]
    return ", ".join(f"{key} {table[key].iloc[row]:g}" for key in keys) or f"row {row}"


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
    papers = [word for word in options.what if "=" not in word] or available("paper")
    given = [word for word in options.what if "=" in word]
    seed = secrets.randbits(32) if options.seed is None else options.seed
    faults = []
    for name in papers:
        config = configuration.compose([f"paper={name}", *given])
        found = verify(config, options.replay, seed)
        said = "rows" if any(products.rows(config)) else "no rows here, the rest"
        print(f"{name}: {said} verified (seed {seed}): {len(found)} faults")
        faults += found
    if faults:
        raise NotVerifiedError("not what a run leaves:\n" + "\n".join(faults))
