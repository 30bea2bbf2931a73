"""Draw: figures and tables of a paper that are made of the same files, in one process.

A start takes as long as a figure. So Snakemake has one job for many, which makes those
whose digest has changed, which are not there, or which are older than what they are
made of. The digests lie in ``.snakemake/dperm/drawn``, beside what Snakemake remembers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from dperm import schema
from dperm.locate import ConfigError
from dperm.pipeline import plan, products
from dperm.pipeline.jobs import DRAWN
from dperm.pipeline.results import sweep_path
from dperm.store import files as store

FOLDER = Path(".snakemake/dperm/drawn")
MAKERS = {"figures": products.figure, "tables": products.table}


def draw(config: schema.Config) -> list[Path]:
    """Make those of ``drawn`` that are not up to date.

    Returns
    -------
    list of Path
        Of the files that were written.

    Raises
    ------
    ConfigError
        For anything that is not ``figures/<name>@<digest>`` or ``tables/...``.
    """
    written, new = [], dict[Path, str]()
    for asked in config.drawn:
        key, _, digest = asked.partition("@")
        kind, _, name = key.partition("/")
        if kind not in DRAWN or not name or not digest:
            raise ConfigError(f"drawn: expected figures/name@digest, found {asked!r}")
        if not is_current(config, kind, name, digest):
            written += MAKERS[kind](replace(config, product=name))
            new[_kept(config, kind, name)] = digest
    for path, digest in new.items():  # none if one failed: Snakemake puts all back
        store.write_text(path, digest)
    return written


def is_current(config: schema.Config, kind: str, name: str, digest: str) -> bool:
    """Whether a figure or table was drawn with that digest, from what is there now."""
    kept, files = _kept(config, kind, name), _files(config, kind, name)
    if not all(path.is_file() for path in (kept, *files)):
        return False
    oldest = min(path.stat().st_mtime for path in files)
    product = getattr(config.paper, kind)[name]
    newer = (path.stat().st_mtime > oldest for path in _read(config, product))
    return kept.read_text(encoding="utf-8") == digest and not any(newer)


def _files(config: schema.Config, kind: str, name: str) -> list[Path]:
    made = products.stem(config, kind, name)
    return [made.with_suffix(f".{ending}") for ending in DRAWN[kind][1]]


def _kept(config: schema.Config, kind: str, name: str) -> Path:
    made = products.stem(config, kind, name)
    return FOLDER / made.relative_to(made.anchor)


def _read(config: schema.Config, product: Any) -> Iterator[Path]:
    """What is there of the files that a product is made of."""
    folder = plan.results_folder(config, config.paper.name)
    shown = plan.read_problems(product, plan.problem_names(config))
    for problem, solver in plan.runs(config):
        if problem in shown:
            made = folder / problem / solver
            yield from (made / f"{stage}.parquet" for stage in ("tune", "evaluate"))
    yield from (sweep_path(config, name) for name in product.sweeps)
    if product.timed:
        yield folder / "timing.parquet"
