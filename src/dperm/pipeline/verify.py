"""``dperm verify`` checks that results are those of a run and were not changed since.

``dperm complete``, the last stage of a paper, does it to what a run has just made.

The manifest of a run has the SHA-256 of every file that Git holds. Users who can edit
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
import functools
import importlib
import logging
import random
import re
import secrets
import tempfile
from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dperm.core.experiment import config as configuration
from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.core.experiment import tune as tuning
from dperm.core.experiment.files import POINT
from dperm.core.experiment.locate import available
from dperm.core.experiment.results import best, sweep_path
from dperm.core.experiment.unit import HOPELESS, PROVENANCE, Job, Unit, compute
from dperm.pipeline import manifest, products
from dperm.pipeline.inputs import UnavailableError, load_job
from dperm.pipeline.options import SHARE
from dperm.pipeline.stages import Swept

log = logging.getLogger(__name__)
RTOL = 2e-9  # relative difference that counts as rounding
MEANS = 1e-5  # an arithmetic mean may be so far outside the interval of a geometric one
FEW = 20  # at most so many after a run
NAMED = (*PROVENANCE, "algorithm", "neighbours")
# Columns that describe a lane and not its result. They are filled in again whenever
# lanes are read, but stored with the rows of sweeps, where they are compared.
SAID = (*NAMED, "given", "true_epsilon")
KEYS = ["calibration", "passes", *POINT, "replicate"]  # of a lane
FAILED = (OSError, RuntimeError, ValueError, LookupError)


class NotVerifiedError(RuntimeError):
    """Results that fail verification; the text has one line per fault."""


def verify(
    config: schema.Config, share: float, seed: int, made: bool = False
) -> list[str]:
    """The faults of a paper's rows, tables, figures and verdicts, one line each.

    A ``share`` of the paper's lanes and points of sweeps, chosen by ``seed``, is run
    again. If all has just been ``made``, a few are enough, and verdicts come later.
    """
    checks = [_means(config), _rows(config), _made_again(config)]
    checks += [_replayed(config, share, seed, made)] if share > 0 else []
    checks += [] if made else [_judged(config)]
    faults: list[str] = []
    for check in checks:
        try:
            faults += check
        except FAILED as error:  # a damaged file, or rows that give no table
            faults.append(f"{config.paper.name}: {type(error).__name__}: {error}")
    return list(dict.fromkeys(faults))


def changed(config: schema.Config, papers: Container[str] = ()) -> Iterator[str]:
    """Find files that are not as the manifest says: of some papers, or of all."""
    scale, path = config.scale.folder, plan.results_folder(config) / manifest.NAME
    known, now = (store.known_json(path) or {}).get("files", {}), manifest.held(scale)
    for file in sorted({*known, *now} if known else ()):
        if papers and not any(part in papers for part in Path(file).parts):
            continue
        if file not in now:
            yield f"{file} of the run is missing"
        elif file not in known:
            yield f"{file} is not of the run that {path} records"
        elif known[file] != store.file_digest(now[file]):
            yield f"{file} was changed after the run"


def _means(config: schema.Config) -> Iterator[str]:
    """Find tables and figures' data with a mean outside its interval."""
    name = config.paper.name
    folders = (plan.results_folder(config, name), plan.figures_folder(config, name))
    for path in (path for folder in folders for path in sorted(folder.glob("*.csv"))):
        table = _parsed(path.read_text("utf-8"))
        for low in [name for name in table if name.endswith("ci_low")]:
            mean, high = (low.replace("ci_low", end) for end in ("mean", "ci_high"))
            if {mean, high} <= {*table}:
                slack = MEANS * table[mean].abs()
                is_off = table[mean] < table[low] - slack
                is_off |= table[mean] > table[high] + slack
                for at, row in table[is_off].head(1).iterrows():
                    yield (
                        f"{path}: row {at + 1}: {mean} {row[mean]:.10g} is outside "
                        f"[{row[low]:.10g}, {row[high]:.10g}]"
                    )


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
            pair = table[["objective", "relative_error"]].astype(float)
            pair = pair[np.isfinite(pair).all(axis=1)]
            found = pair["objective"] / (1.0 + pair["relative_error"])
            value = found.median() if np.isnan(value) else value
            off = found[~np.isclose(found, value, rtol=RTOL, atol=0.0)]
            if len(off):
                yield (
                    f"{where / name}.parquet: F* of {problem} is {off.iloc[0]:.12g} "
                    f"by {len(off)} of {len(found)} rows, where it is {value:.12g}"
                )
        tuned, ran = tables["tune"], tables["evaluate"]
        if "ok" in set(tuned["status"]) and ran["calibration"].notna().all():
            chosen = tuning.evaluated_settings(config.paper.evaluated, best(tuned))
            both = (table[KEYS[:-1]].drop_duplicates() for table in (chosen, ran))
            if len(pd.concat(both).drop_duplicates(keep=False)):
                yield f"{where}/evaluate.parquet is not of what its tuning chose"


def _made_again(config: schema.Config) -> Iterator[str]:
    """Find tables and data of figures that their rows do not give."""
    for kind in products.FORMATS:
        for name, product in getattr(config.paper, kind).items():
            path = products.stem(config, kind, name).with_suffix(".csv")
            read = (path, *products.read_by(config, product))  # a clone has no rows
            if all(file.is_file() for file in read):
                kept = _parsed(path.read_text("utf-8"))
                text = _other(kept, products.data_of(config, kind, name))
                yield from [f"{path} is not what its rows give: {text}"] if text else ()


def _judged(config: schema.Config) -> Iterator[str]:
    """Find claims whose verdicts are not those of the tables and figures here."""
    path, name = plan.results_folder(config) / "claims.csv", config.paper.name
    if not path.is_file() or not config.paper.claims:
        return
    # The report depends on the pipeline, which must import it by name, like papers.
    report: Any = importlib.import_module("dperm.report.claims")
    rows = [*report.judged_paper(configuration.with_paper(config, name))]
    made = pd.DataFrame(rows, columns=[*report.COLUMNS])
    kept = _parsed(path.read_text("utf-8"), dtype=str)
    if text := _other(kept[kept["paper"] == name], made, dtype=str):
        yield f"{path} has other verdicts of {name} than are found now: {text}"


def _other(kept: pd.DataFrame, made: pd.DataFrame, **options: Any) -> str:
    """How a CSV file differs from a table, apart from seconds; empty if it does not."""
    seconds = [name for name in kept if "seconds" in name]
    again = _parsed(store.as_csv(made), **options)
    return difference(kept, again, (*PROVENANCE, *seconds))[0]


def _parsed(text: str, **options: Any) -> pd.DataFrame:
    """A table from CSV text; one without rows may have no columns either."""
    return pd.read_csv(StringIO(text), **options) if text.strip() else pd.DataFrame()


# --- lanes and points, run again ------------------------------------------------------


def _replayed(
    config: schema.Config, share: float, seed: int, made: bool
) -> Iterator[str]:
    """Run a random choice of lanes and points of sweeps again."""
    every: list[tuple[Any, str, Any]] = []
    for run, tables in _runs(config):
        for stage, table in tables.items():
            ran = table["status"].isin(["ok", tuning.ONE_RUN, "diverged", HOPELESS])
            lanes = table[ran & table["step"].notna()][KEYS].drop_duplicates()
            every += [(run, stage, lane) for lane in lanes.itertuples(index=False)]
    for name in config.paper.sweeps:
        path = sweep_path(config, name)
        keys = store.read_table(path)["config_digest"] if path.is_file() else []
        every += [(None, name, str(key)) for key in dict.fromkeys(keys)]
    wanted = max(1, round(share * len(every)))
    count = min(len(every), FEW if made else wanted, wanted)

    @functools.cache
    def load(*run: str) -> tuple[Job, plan.Design]:
        own = plan.at_run(config, *run)
        return load_job(own), plan.design(own)

    for run, name, which in sorted(random.Random(seed).sample(every, count), key=str):
        try:
            if run is None:
                yield from _point(config, name, which)
            else:
                yield from _lane(*load(*run), name, which)
        except UnavailableError:
            yield f"{run[0]}: its data are not here, so no lane of it is run again"


def _lane(job: Job, design: plan.Design, stage: str, lane: Any) -> Iterator[str]:
    """How a stored lane differs from the one that the current code makes."""
    kind, passes, replicate = lane.calibration, lane.passes, int(lane.replicate)
    with tempfile.TemporaryDirectory() as scratch:  # to calibrate the noise again
        work = replace(job, folder=Path(scratch))
        noise = tuning.calibrations(work, [kind], [passes])[kind, passes]
    observed = (passes,) if stage == "tune" else job.checkpoints(passes)
    limit = design.limit(stage, replicate)
    unit = Unit(stage, noise, passes, replicate, [], observed, limit)
    fresh = compute(job, unit, pd.DataFrame([lane])[POINT], 1)
    path = job.folder / f"{stage}.parquet"
    kept = store.read_table(path).replace({"status": {tuning.ONE_RUN: "ok"}})
    text, _ = difference(kept[(kept[KEYS] == list(lane)).all(axis=1)], fresh, SAID)
    if text:
        at = ", ".join(f"{key} {value}" for key, value in lane._asdict().items())
        yield f"{path}: {at}: {text}"


def _point(config: schema.Config, name: str, key: str) -> Iterator[str]:
    """How the rows of a sweep's point differ from those that the current code makes."""
    swept, identity = Swept(config, name), key.partition("-")[0]
    task = next((one for one in swept.tasks() if one[2].identity == identity), None)
    if task is None:
        yield f"{swept.path} has a point that the configuration has not"
        return
    fresh, rows = swept.measured(task), store.read_table(swept.path)
    seconds = [column for column in fresh if "seconds" in column]
    own = rows[rows["config_digest"] == key]
    text, _ = difference(own, fresh, (*NAMED, *seconds))
    if text:
        yield f"{swept.path}: {task[0]}, replicate {task[1]}: {text}"


def difference(
    kept: pd.DataFrame, fresh: pd.DataFrame, apart: Iterable[str] = SAID
) -> tuple[str, bool]:
    """The first difference beyond rounding, and whether all bits are equal.

    Columns of ``apart`` and empty ones are left out. The order of rows counts only if
    the rows are not lanes.
    """
    left = {*apart}
    kept, fresh = (
        table[[name for name in table if name not in left]].dropna(axis=1, how="all")
        for table in (kept, fresh)
    )
    if lost := {*kept} ^ {*fresh}:
        return f"columns {sorted(map(str, lost))}", False
    keys = [*POINT, "checkpoint"]
    if {*keys} <= {*kept}:
        kept, fresh = kept.sort_values(keys), fresh.sort_values(keys)
    kept, fresh = kept.reset_index(drop=True), fresh.reset_index(drop=True)
    try:
        near: Any = {"rtol": RTOL, "atol": 0.0, "check_dtype": False}
        pd.testing.assert_frame_equal(kept, fresh, check_like=True, **near)
    except AssertionError as error:
        said = " ".join(re.sub(r"\[index\].*", "", str(error)).split())
        said = said.replace("[left]", "was kept").replace("[right]", "is made")
        return said[:400], False
    return "", kept.map(repr).equals(fresh[kept.columns].map(repr))  # -0.0 is not 0.0


# --- a paper that is complete ---------------------------------------------------------


class IncompleteError(RuntimeError):
    """Results that could not be made; the text has the reasons."""


def complete(config: schema.Config) -> Path:
    """Verify a paper, and write ``complete.txt`` with the best setting of each problem.

    Raises IncompleteError if a problem's data are unavailable, while all else is there,
    and NotVerifiedError if something is not what its rows and settings give.
    """
    name = config.paper.name
    folder = plan.results_folder(config, name)
    figures = plan.figures_folder(config, name)
    if missing := dict(_missing(config, folder)):
        lines = [f"{of}: {reason}" for of, reason in missing.items()]
        raise IncompleteError("made all but\n" + "\n".join(lines))
    if faults := verify(config, SHARE, secrets.randbits(32), made=True):
        raise NotVerifiedError("\n".join(["not what the rows give:", *faults]))
    lines = [f"{name}: figures in {figures}, tables in {folder}"]
    text = "\n".join([*lines, *_winners(config, folder)]) + "\n"
    store.write_text(folder / "complete.txt", text)
    log.info(text.strip())
    return folder / "complete.txt"


def _missing(config: schema.Config, folder: Path) -> Iterator[tuple[str, str]]:
    """Problems and sweeps without data, with the reasons."""
    runs = {run[0]: folder.joinpath(*run, "tune.parquet") for run in plan.runs(config)}
    paths = runs | {f"sweep {k}": sweep_path(config, k) for k in config.paper.sweeps}
    for name, path in paths.items():
        table = store.read_table(path)
        lost = table["status"] == "unavailable"
        if lost.any():
            yield name, str(table.loc[lost, "reason"].iloc[0])


def _winners(config: schema.Config, folder: Path) -> Iterator[str]:
    """The solver and setting with the least fresh mean, for every problem."""
    paths = [folder.joinpath(*run, "evaluate.parquet") for run in plan.runs(config)]
    if not paths:
        return
    rows = pd.concat(map(store.read_table, paths), ignore_index=True)
    last = rows[rows["checkpoint"] == rows["passes"]]
    last = last[last["calibration"] == config.paper.calibrations[0]]
    keys = ["problem", "algorithm", "passes", *POINT]
    means = last.groupby(keys, sort=False)["relative_error"].mean().reset_index()
    least = means.groupby("problem", sort=False)["relative_error"].idxmin()
    for row in means.loc[least].itertuples():
        at = f"passes {row.passes:g}, step {row.step:g}, clip {row.clip:g}"
        error = f"least relative error {row.relative_error:.3g}"
        yield f"  {row.problem}: {error}, {row.algorithm} ({at})"


# --- the command ----------------------------------------------------------------------


def main(options: argparse.Namespace) -> None:
    """Verify papers and print one line each.

    Raises NotVerifiedError if there are faults, with one line each.
    """
    given = [word for word in options.what if "=" in word]
    papers = [word for word in options.what if "=" not in word]
    seed = secrets.randbits(32) if options.seed is None else options.seed
    faults = [*changed(configuration.settings(given), papers)]
    for name in papers or available("paper"):
        config = configuration.compose([f"paper={name}", *given])
        found = verify(config, options.replay, seed)
        stored = plan.results_folder(config, name).rglob("*.parquet")
        said = "rows" if any(stored) else "no rows here, the rest"
        print(f"{name}: {said} verified (seed {seed}): {len(found)} faults")
        faults += found
    if faults:
        raise NotVerifiedError("not what a run leaves:\n" + "\n".join(faults))
