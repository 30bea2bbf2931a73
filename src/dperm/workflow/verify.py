"""``dperm verify`` checks that results are those of a run and were not changed since.

``dperm complete``, the last stage of a paper, does it to what a run has just made.

The manifest of a run has the SHA-256 of every file that Git holds. Users who can edit
results can also edit a manifest, so further checks look at the numbers:

- every row of a problem implies the same F*, evaluations are of the settings that
  tuning chose, and means lie within their intervals,
- rows are those that configuration and ledgers ask for: none doubled, none left out,
- the rows give the tables, the figures' data and, by pixels, the figures,
- these give the verdicts, and verdicts and tables give the report and all pages,
- data, optima and ledgers have their digests, and ledgers their prices,
- settings and points of sweeps chosen at random are run again and must give their rows.
  If a share q of the batches is forged, k of them miss all with probability (1 - q)^k.

What is absent is a fault, unless a part is asked for or a paper has no rows at all, as
in a clone. Then files, intervals, verdicts and pages are checked.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import math
import os
import random
import re
import secrets
from collections import Counter
from collections.abc import (
    Callable,
    Container,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from functools import cache, partial
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dperm.config import config as configuration
from dperm.config import schema
from dperm.config.locate import ConfigError
from dperm.experiments import makers, plan, products
from dperm.experiments import tune as tuning
from dperm.experiments.inputs import Inputs, UnavailableError, load_job
from dperm.experiments.results import best, sweep_path
from dperm.experiments.stages import SweepRun
from dperm.experiments.task import (
    PROVENANCE,
    SETTING_COLUMNS,
    STOPPED_EARLY,
    SolverJob,
    Task,
    compute,
)
from dperm.numerics.parallel import forked
from dperm.privacy.calibration import Calibration
from dperm.solvers.batched import trials
from dperm.storage import files as store
from dperm.storage.files import POINT
from dperm.workflow import layout, manifest, recheck
from dperm.workflow.coverage import (
    ABSENT,
    CHECKED,
    REMADE,
    UNCHECKABLE,
    Coverage,
)
from dperm.workflow.layout import RTOL
from dperm.workflow.options import SHARE

log = logging.getLogger(__name__)
MEANS = 1e-5  # an arithmetic mean may be so far outside the interval of a geometric one
MAX_REMADE = 20  # about so many after a run
TOGETHER = 32  # settings of a batch that are run again
IDENTITY = (*PROVENANCE, "algorithm", "neighbours")
# Columns that describe a setting and not its result. They are filled in again whenever
# settings are read, but stored with the rows of sweeps, where they are compared.
UNCOMPARED = (*IDENTITY, "given", "true_epsilon")
SETTING_KEYS = ["calibration", "passes", *POINT, "replicate"]  # of a setting
CLONE = (
    "no rows here of {}: their tables, figures, ledgers and settings are not made "
    "again; results.zip of a release has the rows"
)
ONLY_PAPERS = (
    "papers were named: what shows all (pages, README, audit) is not looked at"
)


NOTHING = (
    "no results here of {}: run it, unpack results.zip of a release, or name a scale "
    "(scale=smoke)"
)
# It finds faults, one line each, and counts what it has covered.
Check = Callable[[Coverage], Iterator[str]]


class NotVerifiedError(RuntimeError):
    """Results that fail verification; the text has one line per fault."""


def verify(
    config: schema.Config,
    share: float,
    seed: int,
    is_new: bool = False,
    coverage: Coverage | None = None,
) -> list[str]:
    """The faults of a paper's rows, tables, figures and verdicts, one line each.

    A ``share`` of the paper's settings and points of sweeps, chosen by ``seed``, is run
    again. If all ``is_new``, just made, a few are enough, and pictures, data, ledgers
    and verdicts, which come later, are left out. ``coverage`` counts what was checked,
    and says whether what is absent is a fault.
    """
    coverage = coverage or Coverage(is_partial=is_new)
    found = checks(config, share, seed, is_new)
    return faults_of(found, coverage, config.paper.name)


def checks(
    config: schema.Config, share: float, seed: int, is_new: bool = False
) -> list[Check]:
    """The checks of a paper, for ``verify``; those that take longest come last."""
    paper = config.paper
    output = config.output
    folder = Path(output.results, paper.name)
    found: list[Check] = [
        partial(_means, paper.name, output),
        partial(_rows, paper, folder, Path(config.data.dir)),
    ]
    if not is_new:
        inputs = Inputs(config.data, config.overrides)
        is_whole = not config.scale.folder
        found.append(partial(recheck.stored, paper, inputs))
        found.append(partial(_completed, paper, output))
        found.append(partial(_judged, paper, output, is_whole))
        found.append(partial(_laid_out, config))
        found.append(partial(_ledgers, config, seed))
    found.append(partial(_made_again, config, is_new))
    if share > 0:
        found.append(partial(_replayed, config, share, seed, is_new))
    else:
        found.append(partial(_not_replayed, paper, folder))
    return found


def faults_of(
    checks: Iterable[Check], coverage: Coverage, name: str
) -> list[str]:
    """The faults that checks find, each once; a check that fails is a fault too."""
    before = len(coverage.faults)
    for check in checks:
        try:
            coverage.faults.extend(check(coverage))
        except Exception as error:
            # a damaged file, or rows that give no table
            text = " ".join(str(error).split())
            coverage.faults.append(f"{name}: {type(error).__name__}: {text}")
    coverage.faults[before:] = dict.fromkeys(coverage.faults[before:])
    return coverage.faults[before:]


def changed(
    folder: Path,
    scale: str,
    papers: Container[str] = (),
    coverage: Coverage | None = None,
) -> Iterator[str]:
    """Find files that are not as the manifest says: of some papers, or of all.

    The ``folder`` of results has the manifest; ``scale`` is that of the scale in it. A
    manifest that is missing, unless a part is asked for, or damaged is a fault.
    """
    coverage = coverage or Coverage()
    path = folder / manifest.NAME
    now = manifest.tracked_files(scale)
    record = manifest.read(folder)
    if record is None:
        coverage.count("files", UNCHECKABLE, len(now))
        if not coverage.is_partial:
            yield f"{path} is missing: no file has a digest; {manifest.CURE_MISSING}"
        return
    files = record["files"]
    for file in sorted({*files, *now}):
        if papers and not any(
            component in papers for component in Path(file).parts
        ):
            continue
        if file not in now:
            coverage.absent(
                "files", f"{file} of the run", f"`git checkout {file}`"
            )
            continue
        coverage.count("files", CHECKED)
        if file not in files:
            yield (
                f"{file} is not of the run that {path} records: {manifest.CURE_UNKNOWN}"
            )
        elif files[file] != store.file_digest(now[file]):
            yield f"{file} was changed after the run: {manifest.CURE_CHANGED}"


def _means(
    paper: str, output: schema.Output, coverage: Coverage
) -> Iterator[str]:
    """Find tables and figures' data with a mean outside its interval."""
    tables = sorted(Path(output.results, paper).glob("*.csv"))
    figures = sorted(Path(output.figures, paper).glob("*.csv"))
    for path in filter(Path.is_file, [*tables, *figures]):
        table = _parsed(path.read_text("utf-8"))
        group = "figures" if path in figures else "tables"
        coverage.count(group, CHECKED)
        for low in [name for name in table if name.endswith("ci_low")]:
            mean, high = (
                low.replace("ci_low", end) for end in ("mean", "ci_high")
            )
            if {mean, high} <= {*table}:
                slack = MEANS * table[mean].abs()
                is_off = table[mean] < table[low] - slack
                is_off |= table[mean] > table[high] + slack
                for index, row in table[is_off].head(1).iterrows():
                    yield (
                        f"{path}: row {index + 1}: {mean} {row[mean]:.10g} is outside "
                        f"[{row[low]:.10g}, {row[high]:.10g}]"
                    )


def _runs(
    paper: schema.Paper, folder: Path
) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    """Runs of the paper that have rows: problem and solver, and tables by stage."""
    for run in plan.runs(paper):
        paths = {
            name: folder.joinpath(*run, f"{name}.parquet")
            for name in makers.ROWS
        }
        if all(path.is_file() for path in paths.values()):
            yield (
                run,
                {name: store.read_table(path) for name, path in paths.items()},
            )


def _is_here(paper: schema.Paper, output: schema.Output) -> bool:
    """Whether there is any file of a paper."""
    tops = [Path(top, paper.name) for top in (output.results, output.figures)]
    return any(path.is_file() for top in tops for path in top.rglob("*"))


def has_rows(paper: schema.Paper, folder: Path) -> bool:
    """Whether any file of rows of the paper is in its folder; a clone has none."""
    return any(path.is_file() for path in _row_files(paper, folder))


def _row_files(paper: schema.Paper, folder: Path) -> list[Path]:
    """All files of rows that a run of the paper leaves in its folder."""
    paths = []
    for run in plan.runs(paper):
        paths += [
            folder.joinpath(*run, f"{name}.parquet") for name in makers.ROWS
        ]
    paths += [sweep_path(folder, name) for name in paper.sweeps]
    if makers.clocked(paper):
        paths.append(folder / "timing.parquet")
    return paths


def _rows(
    paper: schema.Paper, folder: Path, data_folder: Path, coverage: Coverage
) -> Iterator[str]:
    """Find rows of another F*, evaluations of settings that tuning did not choose."""
    is_clone = not has_rows(paper, folder)
    for path in _row_files(paper, folder):
        if path.is_file():
            columns = [*store.read_table(path)]
            coverage.count("rows", CHECKED)
            if path.parent.name != "sweeps" and columns != SETTING_COLUMNS:
                yield f"{path} has other columns than a run leaves: {layout.AGAIN}"
        elif is_clone:
            coverage.count("rows", ABSENT)
        else:
            coverage.absent("rows", path, f"run `dperm {paper.name}`")
    for (problem, solver), tables in _runs(paper, folder):
        where = folder / problem / solver
        record = data_folder / "optimum" / problem / "optimum.json"
        minimum = (store.known_json(record) or {}).get("value", np.nan)
        for name, table in tables.items():
            pair = table[["objective", "relative_error"]].astype(float)
            pair = pair[np.isfinite(pair).all(axis=1)]
            minima = pair["objective"] / (1.0 + pair["relative_error"])
            minimum = minima.median() if np.isnan(minimum) else minimum
            off = minima[~np.isclose(minima, minimum, rtol=RTOL, atol=0.0)]
            if len(off):
                yield (
                    f"{where / name}.parquet: F* of {problem} is {off.iloc[0]:.12g} "
                    f"by {len(off)} of {len(minima)} rows, where it is {minimum:.12g}"
                )
        tuned = tables["tune"]
        ran = tables["evaluate"]
        if "ok" in set(tuned["status"]) and ran["calibration"].notna().all():
            chosen = tuning.evaluated_settings(paper.evaluated, best(tuned))
            settings = (
                table[SETTING_KEYS[:-1]].drop_duplicates()
                for table in (chosen, ran)
            )
            if len(pd.concat(settings).drop_duplicates(keep=False)):
                yield f"{where}/evaluate.parquet is not of what its tuning chose"


def _made_again(
    config: schema.Config, is_new: bool, coverage: Coverage
) -> Iterator[str]:
    """Find tables, figures and their data that their rows do not give."""
    paper = config.paper
    folder = Path(config.output.results, paper.name)
    for collection in makers.FORMATS:
        for name, product in getattr(paper, collection).items():
            stem = products.stem(config.output, paper.name, collection, name)
            path = stem.with_suffix(".csv")
            image = (
                path.with_suffix(".png") if collection == "figures" else None
            )
            missing = [
                file for file in (path, image) if file and not file.is_file()
            ]
            for absent in missing:
                coverage.absent(collection, absent, f"run `dperm {absent}`")
            rows = makers.read_by(paper, folder, product)
            if missing or not all(file.is_file() for file in rows):
                coverage.count(collection, UNCHECKABLE)  # a clone has no rows
                coverage.count("pictures", UNCHECKABLE, int(image is not None))
                continue
            drawn, fresh = products.made(config, collection, name)
            coverage.count(collection, REMADE)
            if text := _differ(path, fresh):
                yield f"{path} is not what its rows give: {text}"
            if image and not is_new:
                coverage.count("pictures", REMADE)
                if text := recheck.picture(drawn, fresh, image):
                    yield f"{image} is not what its rows give: {text}"
            elif image:
                _close(drawn)


def _close(figure: Any) -> None:
    from dperm.plotting import drawing

    drawing.plt.close(figure)


def _ledgers(
    config: schema.Config, seed: int, coverage: Coverage
) -> Iterator[str]:
    """Find ledgers of the paper's runs, and rows, that are not stated so now."""
    folder = Path(config.output.results, config.paper.name)
    for run, tables in _runs(config.paper, folder):
        run_config = plan.at_run(config, *run)
        try:
            job = load_job(run_config)
        except UnavailableError:
            coverage.count("ledgers", UNCHECKABLE)
            if any(
                (rows["status"] != "unavailable").any()
                for rows in tables.values()
            ):
                yield f"{folder.joinpath(*run)} has rows of data that are not here"
            continue
        design = plan.design(run_config)
        yield from recheck.ledgers(job, design, tables["tune"], seed, coverage)
        if (job.folder / layout.LEDGER).is_file():
            yield from layout.of_run(job, design, tables)


def _laid_out(config: schema.Config, coverage: Coverage) -> Iterator[str]:
    """Find rows of sweeps and of timing that the configuration does not give."""
    folder = Path(config.output.results, config.paper.name)
    checks = [partial(layout.of_timing, config, folder)]
    checks *= (folder / "timing.parquet").is_file()
    for name in config.paper.sweeps:
        if sweep_path(folder, name).is_file():
            checks.append(partial(layout.of_sweep, SweepRun(config, name)))
    for check in checks:
        try:
            yield from check()
        except FileNotFoundError:
            # of a part: rows or optima that these rest on
            coverage.count("rows", UNCHECKABLE)


def _completed(
    paper: schema.Paper, output: schema.Output, coverage: Coverage
) -> Iterator[str]:
    """Find a ``complete.txt`` that the rows do not give."""
    folder = Path(output.results, paper.name)
    path = folder / "complete.txt"
    if not all(file.is_file() for file in _row_files(paper, folder)):
        coverage.count("pages", UNCHECKABLE, int(path.is_file()))
    elif path.is_file():
        coverage.count("pages", REMADE)
        if path.read_text(encoding="utf-8") != completed(paper, output):
            yield f"{path} is not what the rows give: `dperm complete` writes it again"
    elif not dict(_missing(paper, folder)):
        cure = f"run `dperm complete paper={paper.name}`"
        coverage.absent("pages", path, cure)


def _judged(
    paper: schema.Paper,
    output: schema.Output,
    is_whole: bool,
    coverage: Coverage,
) -> Iterator[str]:
    """Find claims whose verdicts are not those of the tables and figures here."""
    path = Path(output.results, "claims.csv")
    name = paper.name
    if not path.is_file() or not paper.claims:
        return
    # The report depends on the pipeline, which must import it by name, like papers.
    report: Any = importlib.import_module("dperm.report.claims")
    rows = [*report.judged_paper(paper, output, is_whole)]
    fresh = pd.DataFrame(rows, columns=[*report.CLAIM_COLUMNS])
    coverage.count("verdicts", REMADE, len(fresh))
    stored = _parsed(path.read_text("utf-8"), dtype=str)
    if text := _other(stored[stored["paper"] == name], fresh, dtype=str):
        yield f"{path} has other verdicts of {name} than are found now: {text}"


def _differ(path: Path, fresh: pd.DataFrame) -> str:
    """How a CSV file differs from a table; empty if it does not."""
    return _other(_parsed(path.read_text("utf-8")), fresh)


def _other(stored: pd.DataFrame, fresh: pd.DataFrame, **options: Any) -> str:
    """How a CSV file differs from a table; empty if it does not."""
    parsed = _parsed(store.as_csv(fresh), **options)
    if [*stored] != [*parsed]:
        return f"columns {[*stored]}, where {[*parsed]} are made"
    return difference(stored, parsed, ())[0]


def _parsed(text: str, **options: Any) -> pd.DataFrame:
    """A table from CSV text; one without rows may have no columns either."""
    return (
        pd.read_csv(StringIO(text), **options)
        if text.strip()
        else pd.DataFrame()
    )


# --- settings and points, run again ---------------------------------------------------


def _replayed(
    config: schema.Config,
    share: float,
    seed: int,
    is_new: bool,
    coverage: Coverage,
) -> Iterator[str]:
    """Run a random choice of settings and points of sweeps again."""
    folder = Path(config.output.results, config.paper.name)
    batches: dict[tuple[Any, ...], list[Any]] = {}
    for run, name, which in _settings(config.paper, folder):
        task: tuple[Any, ...] = (which,)  # a point of a sweep is run alone
        if run is not None:
            task = (which.calibration, which.passes, which.replicate)
        batches.setdefault((run, name, *task), []).append(which)
    total = sum(map(len, batches.values()))
    if is_new:
        share = min(share, MAX_REMADE / max(total, 1))
    chosen_batches = _chosen(batches, share, random.Random(seed))
    count = sum(map(len, chosen_batches.values()))
    coverage.count("settings", UNCHECKABLE, total - count)

    @cache
    def load(*run: str) -> tuple[SolverJob, plan.Design]:
        run_config = plan.at_run(config, *run)
        return load_job(run_config), plan.design(run_config)

    @cache
    def calibrated(
        run: tuple[str, ...], calibration: str, passes: float
    ) -> Calibration:
        """The noise of some settings, found again."""
        job, _ = load(*run)
        return trials.noise(
            job.problem, job.module, job.options, passes, calibration
        )

    @cache
    def swept(name: str) -> tuple[SweepRun, dict[str, Any], pd.DataFrame]:
        run = SweepRun(config, name)
        tasks = {task.key.identity: task for task in run.tasks()}
        return run, tasks, store.read_table(run.path)

    @cache
    def stored(path: Path) -> pd.DataFrame:
        return store.read_table(path).replace(
            {"status": {tuning.ONE_RUN: "ok"}}
        )

    for (run, name, *_), chosen in chosen_batches.items():
        coverage.count("settings", REMADE, len(chosen))
        try:
            if run is None:
                yield from _point(*swept(name), chosen[0])
            else:
                job, design = load(*run)
                noise = calibrated(
                    run, chosen[0].calibration, chosen[0].passes
                )
                path = job.folder / f"{name}.parquet"
                fresh = _again(job, design, noise, name, chosen)
                yield from _differing(path, stored(path), fresh, chosen)
        except UnavailableError:
            yield f"{run[0]}: its data are not here, so no setting of it is run again"


def _chosen(
    batches: dict[tuple[Any, ...], list[Any]],
    share: float,
    chance: random.Random,
) -> dict[tuple[Any, ...], list[Any]]:
    """Settings of some batches, each of which is run at once; at least one.

    Every setting has the chance ``share``. A batch that is chosen runs ``TOGETHER`` of
    its settings, because one costs nearly as much as they do.
    """
    chosen = {}
    for batch, settings in batches.items():
        size = max(
            min(len(settings), TOGETHER), math.ceil(share * len(settings))
        )
        if chance.random() * size < share * len(settings):
            chosen[batch] = chance.sample(settings, size)
    if batches and not chosen:
        batch = chance.choice([*batches])
        chosen[batch] = [chance.choice(batches[batch])]
    return chosen


def _not_replayed(
    paper: schema.Paper, folder: Path, coverage: Coverage
) -> Iterator[str]:
    """Count the settings and points, none of which is run again."""
    coverage.count("settings", UNCHECKABLE, len(_settings(paper, folder)))
    yield from ()


def _settings(paper: schema.Paper, folder: Path) -> list[tuple[Any, str, Any]]:
    """All settings and points of sweeps: run, or None, its stage or sweep, and keys."""
    choices: list[tuple[Any, str, Any]] = []
    for run, tables in _runs(paper, folder):
        for stage, table in tables.items():
            ran = table["status"].isin(
                ["ok", tuning.ONE_RUN, "diverged", STOPPED_EARLY]
            )
            rows = table.loc[ran & table["step"].notna(), SETTING_KEYS]
            settings = rows.drop_duplicates()
            choices += [
                (run, stage, setting)
                for setting in settings.itertuples(index=False)
            ]
    for name in paper.sweeps:
        path = sweep_path(folder, name)
        keys = (
            store.read_table(path)["config_digest"] if path.is_file() else []
        )
        choices += [(None, name, str(key)) for key in dict.fromkeys(keys)]
    return choices


def _again(
    job: SolverJob,
    design: plan.Design,
    noise: Calibration,
    stage: str,
    settings: Sequence[Any],
) -> pd.DataFrame:
    """The rows that the current code makes of settings of one task, in one batch."""
    replicate = int(settings[0].replicate)
    passes = settings[0].passes
    observed = (passes,) if stage == "tune" else job.checkpoints(passes)
    limit = design.limit(stage, replicate)
    task = Task(stage, noise, passes, (replicate,), [], observed, limit)
    return compute(job, task, pd.DataFrame(settings)[POINT], 1)


def _differing(
    path: Path,
    table: pd.DataFrame,
    fresh: pd.DataFrame,
    settings: Sequence[Any],
) -> Iterator[str]:
    """How stored settings of one task differ from their fresh rows."""
    names = ["calibration", "passes", "replicate"]
    shared = [getattr(settings[0], name) for name in names]
    rows = table[(table[names] == shared).all(axis=1)]
    points = [(setting.step, setting.clip) for setting in settings]
    if not difference(_at(rows, points), fresh, UNCOMPARED)[0]:
        return
    for setting, point in zip(settings, points, strict=True):
        text, _ = difference(
            _at(rows, [point]), _at(fresh, [point]), UNCOMPARED
        )
        if text:
            place = ", ".join(
                f"{key} {number}" for key, number in setting._asdict().items()
            )
            yield f"{path}: {place}: {text}"


def _at(
    table: pd.DataFrame, points: Sequence[tuple[float, float]]
) -> pd.DataFrame:
    """The rows of some steps and clips."""
    return table[pd.MultiIndex.from_frame(table[POINT]).isin(points)]


def _point(
    swept: SweepRun, tasks: Mapping[str, Any], rows: pd.DataFrame, key: str
) -> Iterator[str]:
    """How rows of a sweep's point differ from those that the current code makes."""
    task = tasks.get(key.partition("-")[0])
    if task is None:
        yield f"{swept.path} has a point that the configuration has not"
        return
    fresh = swept.measured(task)
    seconds = [column for column in fresh if "seconds" in column]
    stored = rows[rows["config_digest"] == key]
    text, _ = difference(stored, fresh, (*IDENTITY, *seconds))
    if text:
        yield f"{swept.path}: {task.point}, replicate {task.replicate}: {text}"


def difference(
    stored: pd.DataFrame,
    fresh: pd.DataFrame,
    apart: Iterable[str] = UNCOMPARED,
) -> tuple[str, bool]:
    """The first difference beyond rounding, and whether all bits are equal.

    Columns of ``apart`` and empty ones are left out. The order of rows counts only if
    the rows are not settings.
    """
    ignored = {*apart}
    stored, fresh = (
        table[[name for name in table if name not in ignored]].dropna(
            axis=1, how="all"
        )
        for table in (stored, fresh)
    )
    if unmatched := {*stored} ^ {*fresh}:
        return f"columns {sorted(map(str, unmatched))}", False
    keys = [*POINT, "checkpoint"]
    if {*keys} <= {*stored}:
        stored = stored.sort_values(keys)
        fresh = fresh.sort_values(keys)
    stored = stored.reset_index(drop=True)
    fresh = fresh.reset_index(drop=True)
    try:
        near: Any = {"rtol": RTOL, "atol": 0.0, "check_dtype": False}
        pd.testing.assert_frame_equal(stored, fresh, check_like=True, **near)
    except AssertionError as error:
        message = " ".join(re.sub(r"\[index\].*", "", str(error)).split())
        message = message.replace("[left]", "was kept").replace(
            "[right]", "is made"
        )
        return message[:400], False
    # -0.0 is not 0.0
    return "", stored.map(repr).equals(fresh[stored.columns].map(repr))


# --- a paper that is complete ---------------------------------------------------------


class IncompleteError(RuntimeError):
    """Results that could not be made; the text has the reasons."""


def complete(config: schema.Config) -> Path:
    """Verify a paper, and write ``complete.txt`` with the best setting of each problem.

    Raises IncompleteError if a problem's data are unavailable, while all else is there,
    and NotVerifiedError if something is not what its rows and settings give.
    """
    folder = Path(config.output.results, config.paper.name)
    if missing := dict(_missing(config.paper, folder)):
        lines = [f"{name}: {reason}" for name, reason in missing.items()]
        raise IncompleteError("made all but\n" + "\n".join(lines))
    if faults := verify(config, SHARE, secrets.randbits(32), is_new=True):
        raise NotVerifiedError("\n".join(["not what the rows give:", *faults]))
    text = completed(config.paper, config.output)
    store.write_text(folder / "complete.txt", text)
    log.info(text.strip())
    return folder / "complete.txt"


def completed(paper: schema.Paper, output: schema.Output) -> str:
    """The text of ``complete.txt``: where all is, and the best settings."""
    name = paper.name
    folder = Path(output.results, name)
    figures = Path(output.figures, name)
    lines = [f"{name}: figures in {figures}, tables in {folder}"]
    return "\n".join([*lines, *_winners(paper, folder)]) + "\n"


def _missing(paper: schema.Paper, folder: Path) -> Iterator[tuple[str, str]]:
    """Problems and sweeps without data, with the reasons."""
    runs = {
        run[0]: folder.joinpath(*run, "tune.parquet")
        for run in plan.runs(paper)
    }
    paths = runs | {f"sweep {k}": sweep_path(folder, k) for k in paper.sweeps}
    for name, path in paths.items():
        table = store.read_table(path)
        is_missing = table["status"] == "unavailable"
        if is_missing.any():
            yield name, str(table.loc[is_missing, "reason"].iloc[0])


def _winners(paper: schema.Paper, folder: Path) -> Iterator[str]:
    """The solver and setting with the least fresh mean, for every problem."""
    paths = [
        folder.joinpath(*run, "evaluate.parquet") for run in plan.runs(paper)
    ]
    if not paths:
        return
    rows = pd.concat(map(store.read_table, paths), ignore_index=True)
    final = rows[rows["checkpoint"] == rows["passes"]]
    final = final[final["calibration"] == paper.calibrations[0]]
    keys = ["problem", "algorithm", "passes", *POINT]
    means = (
        final.groupby(keys, sort=False)["relative_error"].mean().reset_index()
    )
    winners = means.groupby("problem", sort=False)["relative_error"].idxmin()
    for row in means.loc[winners].itertuples():
        setting = (
            f"passes {row.passes:g}, step {row.step:g}, clip {row.clip:g}"
        )
        error = f"least relative error {row.relative_error:.3g}"
        yield f"  {row.problem}: {error}, {row.algorithm} ({setting})"


# --- the command ----------------------------------------------------------------------


class NamedCheck(NamedTuple):
    """A check of a paper, or of what all papers share."""

    name: str
    number: int  #: among the checks of that name; later ones take longer
    check: Check


def _in_parallel(
    parts: Sequence[NamedCheck],
    is_partial: bool,
    show: Callable[[str, int], None],
) -> list[Coverage]:
    """What each part covers, by the processors of this machine, the longest first.

    ``show`` is called with a name and the number of its faults when all are done.
    """

    def verified(place: int) -> tuple[int, Coverage]:
        coverage = Coverage(is_partial)
        faults_of([parts[place].check], coverage, parts[place].name)
        return place, coverage

    places = sorted(range(len(parts)), key=lambda place: -parts[place].number)
    work = [2.0**part.number for part in parts]  # roughly, of those with rows
    missing = Counter(part.name for part in parts)
    faults = Counter[str]()
    covered: dict[int, Coverage] = {}
    with (
        tuning.progress("verify", len(parts), "checks", sum(work)) as bar,
        forked(verified, places, os.cpu_count() or 1) as coverages,
    ):
        for place, coverage in coverages:
            covered[place] = coverage
            bar.update(work[place])
            name = parts[place].name
            faults[name] += len(coverage.faults)
            missing[name] -= 1
            if not missing[name]:
                show(name, faults[name])
    return [covered[place] for place in range(len(parts))]


def main(options: argparse.Namespace) -> None:
    """Verify papers; print a line each, and counts of what was covered.

    The first line says what is left out of papers without rows. Raises NotVerifiedError
    if there are faults, with one line each.
    """
    overrides = [word for word in options.what if "=" in word]
    papers = [word for word in options.what if "=" not in word]
    seed = secrets.randbits(32) if options.seed is None else options.seed
    base = configuration.settings(overrides)
    coverage = Coverage(options.partial)
    folder = Path(base.output.results)
    scale = base.scale.folder
    names = papers or plan.papers_here(folder)
    configs = [
        configuration.compose([f"paper={name}", *overrides]) for name in names
    ]
    absent = [
        config.paper.name
        for config in configs
        if not _is_here(config.paper, config.output)
    ]
    if len(absent) == len(configs):
        raise ConfigError(NOTHING.format(", ".join(absent) or "any paper"))
    configs = [config for config in configs if config.paper.name not in absent]
    clones = [
        config.paper.name
        for config in configs
        if not has_rows(config.paper, folder / config.paper.name)
    ]
    notes = [CLONE.format(", ".join(clones))] if clones else []
    notes += [ONLY_PAPERS] * bool(papers)
    tracked = {
        file: path
        for file, path in manifest.tracked_files(scale).items()
        if not papers or {*papers} & {*path.parts}
    }
    if apart := recheck.of_no_job(configs, tracked):
        notes.append(
            f"made by no stage, so by digest alone: {', '.join(apart)}"
        )
    if not options.json:
        print("\n".join(notes), end="\n" * len(notes))
    for name in absent:
        coverage.absent(
            "files", f"every file of {name}", f"run `dperm {name}`"
        )
    shared: list[Check] = [partial(changed, folder, scale, papers)]
    if not papers:
        audit_seed = seed if options.replay else None
        audits = partial(recheck.audits, base, _differ, seed=audit_seed)
        shared.append(audits)
    parts = [NamedCheck("results", *pair) for pair in enumerate(shared)]
    for config in configs:
        own_checks = checks(config, options.replay, seed)
        name = config.paper.name
        parts += [NamedCheck(name, *pair) for pair in enumerate(own_checks)]

    def show(name: str, faults: int) -> None:
        rows = "no rows here" if name in clones else "with its rows"
        text = f"{name}: verified, {rows} (seed {seed}): {faults} faults"
        if name in names and not options.json:
            print(text, flush=True)

    for covered in _in_parallel(parts, options.partial, show):
        coverage.add(covered)
    if not papers:  # pages show products, of which some may be absent by now
        faults_of([partial(recheck.pages, base, _differ)], coverage, "results")
    if options.json:
        summary = {"seed": seed, "left_out": notes, **coverage.summary()}
        print(json.dumps(summary, indent=1))
    else:
        print("\n".join(coverage.lines()))
    if coverage.faults:
        lines = ["not what a run leaves:", *dict.fromkeys(coverage.faults)]
        raise NotVerifiedError("\n".join(lines))
