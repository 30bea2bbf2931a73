"""The bundle stage: every data set that the papers use, in one archive."""

from __future__ import annotations

import logging
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dperm import config as configuration
from dperm import data, schema
from dperm.data import archives
from dperm.data.fetching import FetchRecord, fetched_folder
from dperm.locate import available
from dperm.pipeline.runtable import run_table
from dperm.store import files as store

log = logging.getLogger(__name__)


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
        contents[name] = _described(dataset, record)
        if record.available:
            folders[name] = fetched_folder(name, config.data)
    path = Path(config.data.dir) / "bundle.zip"
    with store.whole(path) as beside:
        archives.pack(folders, contents, beside)
    missing = [name for name in contents if name not in folders]
    log.info(
        "%s: %d data sets%s", path, len(folders),
        f"; not to be had: {', '.join(missing)}" if missing else "",
    )  # fmt: skip
    return path


def _datasets(config: schema.Config) -> dict[str, schema.Dataset]:
    papers = available("paper")
    table = run_table(papers, [f"scale={config.scale.name}"])
    return {
        name: configuration.read("problem", problem).dataset
        for name, problem in table.problem_of.items()
    }


def _described(dataset: schema.Dataset, record: FetchRecord) -> dict[str, Any]:
    """What a reader of the bundle is told of a data set."""
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
