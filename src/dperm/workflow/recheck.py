"""Checks of ``dperm verify`` beside rows, tables and verdicts.

Pictures, pages and tables of the audit are made again in a scratch folder; data and
optima are compared with their digests, the objective at an optimum is computed again,
and ledgers are stated and priced again.
"""

from __future__ import annotations

import functools
import importlib
import json
import random
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from dperm import data
from dperm.config import config as configuration
from dperm.config import schema
from dperm.config.locate import ConfigError, available
from dperm.data import preparing
from dperm.data.arrays import nonzeros
from dperm.data.fetching import fetched_folder, load_fetched, read_record
from dperm.data.preparing import prepared_folder
from dperm.experiments import makers, plan, products
from dperm.experiments.inputs import (
    Inputs,
    load_optimum,
    load_problem,
    optimum_folder,
    titles,
)
from dperm.experiments.task import SolverJob
from dperm.privacy.accountants import TIGHT
from dperm.privacy.accounting import epsilon, true_epsilon
from dperm.privacy.calibration import Calibration
from dperm.privacy.events import RELATION
from dperm.privacy.noise import STUDY
from dperm.problems.optimum import duality_gap
from dperm.storage import files as store
from dperm.workflow import layout, manifest
from dperm.workflow.coverage import (
    ABSENT,
    CHECKED,
    REMADE,
    UNCHECKABLE,
    Coverage,
)

RTOL = 1e-9  # of a value that is computed again
LEAST_GAP = 1e-10  # relative, of a certified optimum
# Chunks of a PNG that no reader sees: its pixels are compared as such
UNSEEN = (b"IDAT", b"tEXtSoftware\0")
MARK = "written by `dperm readme`"  # in the first of the two marks of a block
PICTURES = ("worth", "printed")  # of README
SHARED_FILES = (  # files of all papers together
    "claims.csv",
    "claims.md",
    "report/index.html",
    "audit/epsilon.csv",
    "audit/tuning.csv",
)
# Keys of an entry of a ledger whose values are compared by themselves
OF_ENTRY = ("key", "passes", "code", "calibrated", "digest")
# How a CSV file differs from a table, as text; empty if it does not.
Differ = Callable[[Path, pd.DataFrame], str]


def picture(drawn: Any, rows: Any, path: Path) -> str:
    """How a PNG file differs from a figure, by pixels; empty if it does not."""
    from dperm.plotting import drawing

    with tempfile.TemporaryDirectory() as scratch:
        redrawn = drawing.save(drawn, rows, Path(scratch, path.name))[0]
        try:
            pixels, chunks = _shown(path)
            fresh_pixels, fresh_chunks = _shown(redrawn)
        except (OSError, ValueError, SyntaxError) as error:  # Pillow's
            return f"it is damaged: {error}"
    if pixels.shape != fresh_pixels.shape:
        return f"it is {pixels.shape[1]} x {pixels.shape[0]} pixels"
    count = int((pixels != fresh_pixels).any(axis=-1).sum())
    if count:
        size = pixels.shape[0] * pixels.shape[1]
        return f"{count:,} of {size:,} pixels differ"
    if chunks != fresh_chunks:
        return "it moves, turns, or its colours are shown as others"
    return ""


def _shown(path: Path) -> tuple[Any, list[bytes]]:
    """Pixels of a PNG with their opacity, and what else changes what a reader sees.

    These are all other chunks, known or not, and whatever follows the last.
    """
    content = path.read_bytes()
    with Image.open(BytesIO(content), formats=["PNG"]) as image:
        pixels = np.asarray(image.convert("RGBA"))
    chunks = []
    place = len(b"\x89PNG\r\n\x1a\n")
    while place < len(content):
        size = int.from_bytes(content[place : place + 4], "big")
        chunk = content[place + 4 : place + 8 + size]
        place += 12 + size  # with its length, its name and its checksum
        if not chunk.startswith(UNSEEN):
            chunks.append(chunk)
    return pixels, chunks


# --- data and optima ------------------------------------------------------------------


def problems(paper: schema.Paper) -> list[str]:
    """The problems of a paper's runs and sweeps at its scale."""
    names = paper.problems
    for sweep in paper.sweeps.values():
        names = [*names, *sweep.problems, *sweep.prepared]
    return list(dict.fromkeys(names))


def stored(
    paper: schema.Paper, inputs: Inputs, coverage: Coverage
) -> Iterator[str]:
    """Find data and optima that are not what their records and settings say."""
    for name, spec in titles(inputs, problems(paper)).items():
        try:
            yield from _fetched(spec.dataset, inputs.data, coverage)
            if not prepared_folder(name, inputs.data).is_dir():
                coverage.count("data", ABSENT)
                continue
            yield from _prepared(spec, inputs.data, coverage)
        except (OSError, ValueError) as error:
            yield str(error)
        except LookupError as error:
            yield f"{name}: {error!r}: delete {inputs.data.dir} and run again"


def _fetched(
    dataset: schema.Dataset, where: schema.Data, coverage: Coverage
) -> Iterator[str]:
    """Find fetched arrays that are not as recorded, or have not the declared digest."""
    folder = fetched_folder(dataset.name, where)
    record = read_record(dataset.name, where)
    again = f"delete {folder} and run again"
    if record is None and not folder.is_dir():
        coverage.count("data", ABSENT)
        return
    if record is None:
        yield f"{folder}/fetch.json is damaged: {again}"
        return
    coverage.count("data", CHECKED)
    if not record.available:
        return
    X, _ = load_fetched(dataset.name, where)
    if dataset.digest not in (None, record.digest):
        yield (
            f"{folder}: the arrays have digest {record.digest}, but "
            f"{dataset.digest} is declared: {again}"
        )
    sizes = (*X.shape, nonzeros(X))
    if (record.n, record.p, record.nnz) != sizes:
        yield f"{folder}/fetch.json has other sizes than the arrays: {again}"


def _prepared(
    spec: schema.ProblemSection, folders: schema.Data, coverage: Coverage
) -> Iterator[str]:
    """Find prepared arrays that the fetched ones do not give, then a wrong optimum."""
    prepared = data.load_prepared(spec.name, folders)
    folder = prepared_folder(spec.name, folders)
    record = read_record(spec.dataset.name, folders)
    if record is None:
        coverage.count("data", CHECKED)
    else:
        arrays = (
            load_fetched(record.name, folders)
            if record.available
            else (None,) * 2
        )
        coverage.count("data", REMADE)
        if preparing._make(spec, record, *arrays).meta != prepared.meta:
            text = f"is not what {fetched_folder(record.name, folders)} gives"
            yield f"{folder} {text}: delete it and run again"
    if prepared.available:
        yield from _optimum(spec, folders, coverage)


def _optimum(
    spec: schema.ProblemSection, folders: schema.Data, coverage: Coverage
) -> Iterator[str]:
    """Find an optimum whose value or certificate is not what its weights give."""
    path = optimum_folder(spec.name, folders) / "optimum.json"
    if not path.is_file():
        coverage.count("optima", ABSENT)
        return
    problem = load_problem(spec, folders)
    optimum = load_optimum(spec, folders)
    coverage.count("optima", REMADE)
    again = f"delete {path.parent} and run again"
    objective, start = (
        float(problem.objective(w)[0])
        for w in (optimum.w, np.zeros(problem.p))
    )
    remade = {
        "value": objective,
        "start": start,
        "relative_gap": optimum.gap / optimum.value,
        "relative_error_at_zero": (start - objective) / objective,
        "support_size": int(optimum.support.sum()),
        "l1_norm": float(np.abs(optimum.w).sum()),
    }
    record = store.read_json(path)
    if record["status"] != "ok":
        yield f"{path} says {record['status']}, and there are weights: {again}"
    for key, number in remade.items():
        recorded = record[key]
        if not np.isclose(recorded, number, rtol=RTOL, atol=0.0):
            text = f"{key} is {recorded:.12g}, but {number:.12g} at w.npy"
            yield f"{path}: {text}: {again}"
    gap = duality_gap(problem, optimum.w)
    if gap > max(optimum.gap * (1 + 1e-3), LEAST_GAP * abs(objective)):
        yield f"{path}: the gap is {optimum.gap:.3g}, but {gap:.3g} at w.npy: {again}"


# --- ledgers --------------------------------------------------------------------------


def ledgers(
    job: SolverJob,
    design: plan.Design,
    rows: Any,
    seed: int,
    coverage: Coverage,
) -> Iterator[str]:
    """Find ledgers of a run that its solver does not state, or that cost otherwise.

    ``rows`` are those of its tuning: their noise and epsilon are those of a ledger.
    The tight price of one is computed again, chosen by the ``seed``: it takes seconds.
    """
    path = job.folder / "ledger.json"
    again = f"delete {path} and run again; finished settings are kept"
    if not path.is_file():
        coverage.absent("ledgers", path, "run the paper again")
        return
    records = store.read_json(path, again, list)
    if len({record.get("key") for record in records}) < len(records):
        yield f"{path} has an entry twice: {again}"
    chance = random.Random(f"{seed} {path}")
    tight = {
        id(record) for record in chance.sample(records, min(1, len(records)))
    }
    settings = set()
    planned = layout.entries(job, design)
    for record in records:
        content = {
            key: field for key, field in record.items() if key != "digest"
        }
        if record.get("digest") != store.digest(content):
            yield f"{path}: an entry was changed after it was made: {again}"
            continue
        calibrated = Calibration.from_dict(record["calibrated"])
        where = (
            f"{path}: {calibrated.calibration}, {record['passes']:g} passes"
        )
        settings.add(
            (calibrated.calibration, record["passes"], _noise(calibrated))
        )
        if record.get("key") in planned:  # not of settings before these
            yield from (
                f"{where}: {text}: {again}" for text in _stated(job, record)
            )
        is_tight = calibrated.calibration == TIGHT
        if is_tight and id(record) not in tight:
            coverage.count("ledgers", CHECKED)
            continue
        coverage.count("ledgers", REMADE)
        text = _priced(calibrated, id(record) in tight)
        yield from [f"{where}: {text}: {again}"] if text else ()
    columns = ["calibration", "passes", "noise_multiplier", "true_epsilon"]
    ran = (
        rows[rows["status"] != "unavailable"][columns]
        .dropna()
        .drop_duplicates()
    )
    for row in ran.itertuples(index=False):
        noise = f"{row.noise_multiplier:.12g}, {row.true_epsilon:.12g}"
        if (row.calibration, row.passes, noise) not in settings:
            yield (
                f"{path}: no entry of calibration {row.calibration} and {row.passes:g} "
                f"passes has the noise and epsilon of the rows ({noise}): {again}"
            )


def _noise(calibrated: Calibration) -> str:
    return (
        f"{calibrated.noise_multiplier:.12g}, {calibrated.true_epsilon:.12g}"
    )


def _stated(job: SolverJob, record: dict[str, Any]) -> Iterator[str]:
    """How an entry differs from the ledger that the solver states at its noise."""
    stated = {
        "steps": job.steps(record["passes"]),
        "neighbours": RELATION,
        "use": " ".join(STUDY.split()),
    }
    if record.keys() != {*OF_ENTRY, *stated}:
        yield f"its keys are {', '.join(record)}"
        return
    for key, expected in stated.items():
        if record[key] != expected:
            yield f"{key} is {record[key]}, not {expected}"
    calibrated = Calibration.from_dict(record["calibrated"])
    problem = job.problem
    targets = calibrated.target_epsilon, calibrated.delta
    if targets != (problem.epsilon, problem.delta):
        yield f"epsilon, delta are {targets}, not {(problem.epsilon, problem.delta)}"
    count = job.steps(record["passes"])
    ledger = job.module.ledger(
        problem,
        count,
        calibrated.noise_multiplier,
        job.options,
        calibrated.calibration,
    ).assuming(*problem.given)
    stored_ledger = json.dumps(record["calibrated"]["ledger"], sort_keys=True)
    if json.dumps(ledger.to_dict(), sort_keys=True) != stored_ledger:
        yield "the solver states other releases at this noise"


def _priced(calibrated: Calibration, is_tight: bool) -> str:
    """How the price of a ledger differs from the stored one; empty if it does not."""
    ledger = calibrated.ledger
    delta = calibrated.delta
    claimed = epsilon(ledger, delta, calibrated.calibration)
    if not np.isclose(claimed, calibrated.claimed_epsilon, rtol=1e-6):
        return f"it costs {claimed:.6g}, not {calibrated.claimed_epsilon:.6g}"
    true = true_epsilon(ledger, delta) if is_tight else calibrated.true_epsilon
    if not np.isclose(true, calibrated.true_epsilon, rtol=1e-6):
        return f"its true epsilon is {true:.6g}, not {calibrated.true_epsilon:.6g}"
    return ""


# --- what follows from all papers' tables ---------------------------------------------


def pages(
    config: schema.Config, differ: Differ, coverage: Coverage
) -> Iterator[str]:
    """Find pages that the verdicts and tables here do not give.

    They are claims.md, the report, the explorer where there is one, the picture of
    prices, and the blocks in README and in the documentation. The report and the
    explorer show products, and cannot be checked where one of these is absent.
    """
    # The report depends on the pipeline, which must import it by name, like papers.
    texts: Any = importlib.import_module("dperm.report.texts")
    page: Any = importlib.import_module("dperm.report.page")
    folder = Path(config.output.results)
    table = folder / "claims.csv"
    listed = folder / "claims.md"
    index = folder / "report" / "index.html"
    is_marked = not config.scale.folder and _has_marks(texts)
    record = store.known_json(folder / manifest.NAME) or {}
    if not table.is_file():
        if listed.is_file() or index.is_file() or is_marked:
            coverage.absent("verdicts", table, "run `dperm claims`")
        else:
            coverage.count("verdicts", ABSENT)
        return
    claims = texts.judged(folder)
    papers = [paper.name for paper in texts.papers(config)]
    if strangers := sorted({*claims["paper"]} - {*papers}):
        names = ", ".join(strangers)
        yield f"{table} judges {names}, no paper here: run `dperm claims`"
    explored = index.with_name("explorer.html")
    contents = {
        listed: lambda: texts.markdown(pd.read_csv(table)),
        index: lambda: page.page(config, claims, index.parent),
    }
    if explored.is_file():
        explorer: Any = importlib.import_module("dperm.report.explorer")
        contents[explored] = lambda: explorer.explorer(config, claims)
    if is_marked:
        contents |= {
            path: lambda path=path, block=block: texts.filled(path, *block)
            for path, block in texts.blocks(config, claims).items()
        }
    versions = _of_maker(record)
    cures = {listed: "claims", index: "report", explored: "report"}
    shown = ("figures", "tables", "pictures")
    is_incomplete = any(coverage.counts[kind, ABSENT] for kind in shown)
    for path, text in contents.items():
        cure = f"run `dperm {cures.get(path, 'readme')}`"
        if not path.is_file():
            # a folder of one's own may have a README and no documentation
            if path in cures:
                coverage.absent("pages", path, cure)
            elif path.parent.is_dir():
                coverage.absent("pages", path, f"`git checkout {path}`")
            else:
                coverage.count("pages", ABSENT)
            continue
        try:
            fresh = text()
        except ConfigError as error:
            coverage.count("pages", UNCHECKABLE)
            if is_marked:  # else they are the user's own
                yield str(error)
            continue
        candidates = fresh, fresh.replace(store.versions(), versions)
        is_same = path.read_bytes().decode() in candidates
        if not is_same and is_incomplete and path in (index, explored):
            coverage.count("pages", UNCHECKABLE)
            continue
        coverage.count("pages", REMADE)
        if not is_same:
            yield f"{path} is not what the verdicts and tables here give: {cure}"
    if not config.scale.folder:
        every = configuration.papers(
            available("paper"), config.scale, config.overrides
        )
        epsilons: Any = importlib.import_module("dperm.report.true_epsilons")
        printed: Any = importlib.import_module("dperm.report.printed")
        note = printed.readings(every)
        draw_printed = functools.partial(printed.printed_picture, note=note)
        pictures = (
            (epsilons.true_epsilons(folder), epsilons.epsilons_picture),
            (printed.numbers(every, folder), draw_printed),
        )
        for name, (rows, draw) in zip(PICTURES, pictures, strict=True):
            stem = Path(config.output.figures, name)
            if is_marked or {*stem.parent.glob(f"{name}.*")}:
                yield from _of_readme(stem, rows, draw, differ, coverage)


def _has_marks(texts: Any) -> bool:
    """Whether a page here has a block of ours: then all are ours."""
    paths = [texts.README, texts.ARTIFACT, *texts.REPORTS.glob("*.md")]
    return any(
        MARK in path.read_text(encoding="utf-8")
        for path in paths
        if path.is_file()
    )


def _of_maker(record: Mapping[str, Any]) -> str:
    """Versions of who made a run, or ours if they are not of the same libraries."""
    ours = store.versions()
    versions = str(record.get("versions"))
    names, our_names = (
        re.sub(r" \d[\w.+!]*", "", text) for text in (versions, ours)
    )
    return versions if names == our_names else ours


def _of_readme(
    stem: Path,
    rows: pd.DataFrame,
    draw: Callable[[pd.DataFrame], Any],
    differ: Differ,
    coverage: Coverage,
) -> Iterator[str]:
    """Find a picture of README, or its data, that the tables do not give."""
    files = [stem.with_suffix(f".{ending}") for ending in ("csv", "png")]
    missing = [file for file in files if not file.is_file()]
    if rows.empty:
        coverage.count("pictures", ABSENT)
        return
    if missing:
        coverage.absent("pictures", missing[0], "run `dperm readme`")
        return
    if differ(stem.with_suffix(".csv"), rows):
        yield f"{stem}.csv is not what the tables give: run `dperm readme`"
    if text := picture(draw(rows), rows, stem.with_suffix(".png")):
        yield f"{stem}.png is not what the tables give, {text}: run `dperm readme`"
    coverage.count("pictures", REMADE)


def audits(
    config: schema.Config,
    differ: Differ,
    coverage: Coverage,
    seed: int | None = None,
) -> Iterator[str]:
    """Find tables of the audit that the audits of solvers, or ledgers, do not give.

    Findings are of a solver's subjects at their prices. One subject, chosen by a
    ``seed``, is audited again.
    """
    from dperm.experiments import auditing

    folder = Path(config.output.results, "audit")
    if config.scale.folder or not folder.is_dir():
        return
    solvers = {
        name: folder / "solvers" / f"{name}.csv"
        for name in available("solver")
    }
    existing = {name: path for name, path in solvers.items() if path.is_file()}
    for name, path in solvers.items():
        if name not in existing:
            coverage.absent("audit", path, "run `dperm audit -j 2`")
    yield from _audited(config, existing, coverage, seed)
    papers = configuration.papers(
        available("paper"), config.scale, config.overrides
    )
    sources = {
        "epsilon": len(existing) == len(solvers),
        "tuning": _all_ran(papers, folder.parent),
    }
    for name, is_here in sources.items():
        path = folder / f"{name}.csv"
        if not path.is_file():
            coverage.absent("audit", path, f"run `dperm {path} -j 2`")
        elif not is_here:
            coverage.count("audit", UNCHECKABLE)
        else:
            coverage.count("audit", REMADE)
            if text := differ(path, auditing.PRODUCTS[name](config)):
                cure = f"run `dperm audit product={name}`"
                yield f"{path} is not what its sources give, {text}: {cure}"


def _audited(
    config: schema.Config,
    paths: Mapping[str, Path],
    coverage: Coverage,
    seed: int | None,
) -> Iterator[str]:
    """Find findings that solvers' subjects do not give; audit one of them again."""
    from dperm.audit import tables
    from dperm.experiments import auditing

    places: list[tuple[Path, Any]] = []
    for name, path in paths.items():
        cure = f"run `dperm audit solver={name}`"
        try:
            solver = configuration.read("solver", name)
            subjects = [*auditing._subjects(solver)]
        except (
            Exception
        ):  # a user's solver may raise anything, as its rows say
            coverage.count("audit", UNCHECKABLE)
            continue
        coverage.count("audit", CHECKED)
        faults = [*layout.of_audit(path, subjects)]
        yield from (f"{fault}: {cure}" for fault in faults)
        if not faults:
            places += [(path, subject) for subject in subjects]
    if seed is not None and places:
        path, subject = random.Random(f"{seed} audit").choice(places)
        coverage.count("audit", REMADE)
        fresh = tables.findings(subject, tables.FULL_EFFORT, config.seed)
        for fault in layout.of_subject(path, fresh):
            yield f"{fault}: run `dperm audit solver={path.stem}`"


def of_no_job(
    configs: Iterable[schema.Config], files: Mapping[str, Path]
) -> list[str]:
    """Names of files that no stage makes: they have nothing but their digests.

    They are measurements, such as ``bench.md``, and whatever else lies there.
    """
    remade = set[Path]()
    audited = [f"audit/solvers/{name}.csv" for name in available("solver")]
    for config in configs:
        top = Path(config.output.results)
        stems = [Path(config.output.figures, name) for name in PICTURES]
        remade |= {top / file for file in (*SHARED_FILES, *audited)}
        remade.add(top / config.paper.name / "complete.txt")
        for collection in makers.FORMATS:
            names = getattr(config.paper, collection)
            where = config.output, config.paper.name, collection
            stems += [products.stem(*where, name) for name in names]
        for ending in makers.FORMATS["figures"]:
            remade |= {stem.with_suffix(f".{ending}") for stem in stems}
    return [name for name, path in files.items() if path not in remade]


def _all_ran(papers: Iterable[schema.Paper], folder: Path) -> bool:
    """Whether every run of every paper has its ledgers in the folder of results."""
    for paper in papers:
        for run in plan.runs(paper):
            if not folder.joinpath(paper.name, *run, "ledger.json").is_file():
                return False
    return True
