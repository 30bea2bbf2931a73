"""The stages before any solver: fetch, prepare, optimum; and a bundle of all data."""

from __future__ import annotations

import logging
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from dperm import data
from dperm.core.erm.optimum import Optimum, solve
from dperm.core.erm.problem import Problem
from dperm.core.experiment import config as configuration
from dperm.core.experiment import files as store
from dperm.core.experiment import inputs, schema
from dperm.core.experiment.locate import available
from dperm.core.experiment.locks import locked
from dperm.data import archives
from dperm.data.fetching import FetchRecord, fetched_folder
from dperm.pipeline import checks, digests, startup

log = logging.getLogger(__name__)


class NothingFetchedError(RuntimeError):
    """No source serves a data set; why has been said."""


def fetch(config: schema.Config) -> FetchRecord:
    """Fetch the problem's data set; unavailable data are recorded, not raised."""
    record = data.fetch(config.problem.dataset, config.data)
    if record.available:
        log.info("%s: %s, digest %s", record.name, record.source, record.digest)
    return record


def fetch_required(config: schema.Config) -> FetchRecord:
    """The same as a command; only a pipeline (``data.required=false``) goes on without.

    Raises
    ------
    NothingFetchedError
        If nothing was fetched, after it has been recorded.
    """
    record = fetch(config)
    if config.data.required and not record.available:
        raise NothingFetchedError(f"data set {record.name}: no source serves it")
    return record


def prepare(config: schema.Config) -> None:
    """Prepare the arrays of the problem."""
    made = data.prepare(config.problem, config.data, checks.usable)
    if made.available:
        log.info(
            "%s: n = %d, p = %d", made.meta["name"], made.meta["n"], made.meta["p"]
        )
    else:
        inputs.say_unavailable(config)


def optimum(config: schema.Config) -> Path:
    """Solve the problem without privacy and store w*, F* and the certificate."""
    folder = inputs.optimum_folder(config)
    with locked(folder):
        problem = inputs.load_problem(config)
        record: dict[str, Any] = {
            "problem": config.problem.name,
            "status": "unavailable",
        }
        if problem is None:
            inputs.say_unavailable(config)
        else:
            found = _certified(problem)
            with store.whole(folder / "w.npy") as beside:
                np.save(beside, found.w)
            record |= _described(config, problem, found)
            log.info(
                "%s: F* = %.9g, relative gap %.1e, relative error at zero %.6g",
                problem.name,
                found.value,
                record["relative_gap"],
                record["relative_error_at_zero"],
            )
        store.write_json(folder / "optimum.json", record)
    return folder / "optimum.json"


def _certified(problem: Problem) -> Optimum:
    """The optimum, by which relative errors can be measured.

    Raises
    ------
    ValueError
        If it cannot be certified, or F* = 0, which nothing is relative to.
    """
    where = f"conf/problem/{problem.name}.yaml: loss, penalty"
    try:
        found = solve(problem)
    except ArithmeticError as error:
        raise ValueError(f"{where}: {error}") from error
    if found.value == 0:
        raise ValueError(
            f"{where}: problem {problem.name}: F* = 0, to which no error is relative; "
            "expected a penalty, or labels that the features do not give exactly"
        )
    return found


def _described(
    config: schema.Config, problem: Problem, found: Optimum
) -> dict[str, Any]:
    """What ``optimum.json`` says."""
    start = float(problem.objective(np.zeros(problem.p))[0])
    return {
        "status": "ok",
        "made_by": digests.optimum(config.problem),
        "digest": problem.digest,
        "w_digest": store.digest(found.w.tolist()),
        "value": found.value,
        "gap": found.gap,
        "relative_gap": found.gap / found.value,
        "start": start,
        "relative_error_at_zero": (start - found.value) / found.value,
        "support_size": int(found.support.sum()),
        "l1_norm": float(np.abs(found.w).sum()),
    }


# --- the bundle -----------------------------------------------------------------------


def bundle(config: schema.Config) -> Path:
    """Fetch the data sets of all papers at the configured scale and pack them.

    Returns
    -------
    Path
        Of ``bundle.zip`` in the data folder. Data that cannot be had are left out,
        with a line that says so.
    """
    folders, contents = {}, {}
    for name, dataset in sorted(_datasets(config).items()):
        record = data.fetch(dataset, config.data)
        contents[name] = _entry(dataset, record)
        if record.available:
            folders[name] = fetched_folder(name, config.data)
    path = Path(config.data.dir) / "bundle.zip"
    with store.whole(path) as beside:
        archives.pack(folders, contents, beside)
    missing = [name for name in contents if name not in folders]
    log.info(
        "%s: %d data sets%s",
        path,
        len(folders),
        f"; not to be had: {', '.join(missing)}" if missing else "",
    )
    return path


def _datasets(config: schema.Config) -> dict[str, schema.Dataset]:
    graph = startup.load_graph(available("paper"), [f"scale={config.scale.name}"])
    problems = {graph.problem_of(name) for name in graph.dataset_of.values()}
    sections = [configuration.read("problem", name).dataset for name in problems]
    return {dataset.name: dataset for dataset in sections}


def _entry(dataset: schema.Dataset, record: FetchRecord) -> dict[str, Any]:
    """What the bundle says of a data set."""
    return {
        "title": dataset.title,
        "status": record.status,
        "reason": record.reason,
        "served_by": record.source,
        "sources": [
            {key: value for key, value in asdict(source).items() if value}
            for source in dataset.sources
        ],
        "digest": record.digest,
        "n": record.n,
        "p": record.p,
        "nnz": record.nnz,
    }
