"""Figures and tables of a paper, made from the results of its stages."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from dperm.config import schema
from dperm.config.locate import ConfigError
from dperm.config.scope import view
from dperm.experiments import makers, scopes, trace
from dperm.experiments.inputs import Inputs
from dperm.experiments.results import load_sweep
from dperm.plotting import tables
from dperm.storage import files as store

log = logging.getLogger(__name__)

DRAWING = f"{__name__}:draw"  # whose code is in the keys of all products
NOTHING = {"unavailable": "data not available when this was run"}  # by status


# --- making ---------------------------------------------------------------------------


def figure(config: schema.Config) -> list[Path]:
    """Draw ``product=...``, or all figures of the paper, also in other ``formats``."""
    paths = []
    for name in makers.chosen(config.paper, "figures", config.product):
        paths += write(config, "figures", name)
    return paths


def table(config: schema.Config) -> list[Path]:
    """Write ``product=...`` and print it in Markdown, or write all tables."""
    paths = []
    for name in makers.chosen(config.paper, "tables", config.product):
        paths += write(config, "tables", name)
    return paths


def draw(config: schema.Config) -> list[Path]:
    """Make the products of ``drawn`` in one process; returns the files written.

    Starting a process takes as long as drawing a figure, so Snakemake has one job for
    all products made of the same files.

    Raises ConfigError for an entry that is not ``figures/<name>`` or ``tables/<name>``.
    """
    written = []
    for product in config.drawn:
        collection, _, name = product.partition("/")
        if (
            name not in getattr(config.paper, collection, ())
            or collection not in makers.FORMATS
        ):
            raise ConfigError(
                f"drawn: expected figures/name, found {product!r}"
            )
        written += write(config, collection, name)
    return written


def write(config: schema.Config, collection: str, name: str) -> list[Path]:
    """Make a figure or a table from its stages' results and return its files."""
    drawn, rows = made(config, collection, name)
    path = stem(config.output, config.paper.name, collection, name)
    if drawn is None:
        written = [path.with_suffix(".csv")]
        store.write_csv(written[0], rows)
        if config.product is not None:  # asked for by name, by a reader
            print(tables.in_markdown(rows, config.paper.tables[name].caption))
    else:
        from dperm.plotting import drawing

        written = drawing.save(drawn, rows, path, config.formats)
    for path in written:
        log.info("%s", path)
    return written


def made(
    config: schema.Config, collection: str, name: str
) -> tuple[Any, pd.DataFrame]:
    """The picture of a figure, None for a table, and the rows of its CSV file."""
    scope = scopes.scope(f"draw {config.paper.name}/{collection}/{name}",
                         scopes.product(config, collection, name, DRAWING))  # fmt: skip
    behind = functools.partial(
        scopes.drawing, config.paper, collection, name, DRAWING
    )
    folder = Path(config.output.results, config.paper.name)
    inputs = Inputs(config.data, config.overrides)
    product = getattr(config.paper, collection)[name]
    rows = makers.read_by(config.paper, folder, product)
    # of a run all files: folder/problem/solver has its ledger too
    of_runs = {path.parent for path in rows if path.parents[2] == folder}
    by_digest = [*rows, *of_runs, Path(config.data.dir)]
    with trace.kept(scope, by_digest, behind, folder):
        paper = view(config.paper, "paper", scope)
        return _made(paper, folder, inputs, collection, name)


def _made(
    paper: schema.Paper,
    folder: Path,
    inputs: Inputs,
    collection: str,
    name: str,
) -> tuple[Any, pd.DataFrame]:
    """The same by what the product's key holds."""
    product = getattr(paper, collection)[name]
    maker = makers.function_of(paper.name, collection, product.function)
    sweeps = [load_sweep(folder, sweep) for sweep in product.sweeps]
    passed = {
        "product": product,
        "problems": makers.product_problems(paper, product),
        "paper": paper,
        "folder": folder,
        "inputs": inputs,
    }
    if "swept" in inspect.signature(maker).parameters:
        passed["swept"] = pd.concat(sweeps, ignore_index=True)
    call = functools.partial(makers.called, maker, product.options, passed)
    reason = _nothing_ran(sweeps)
    if collection == "tables":
        rows = pd.DataFrame({"reason": [reason]}) if reason else call()
        if not isinstance(rows, pd.DataFrame):
            raise makers.unlike(maker, "a pandas.DataFrame", rows)
        return None, rows
    from dperm.plotting import drawing

    content = drawing.missing(reason) if reason else call()
    if not isinstance(content, drawing.Picture | tuple):
        raise makers.unlike(maker, "a dperm.plotting.drawing.Picture", content)
    try:
        return drawing.made(content)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        place = f"{inspect.getsourcefile(maker)}: {maker.__name__}"
        raise ValueError(
            f"{place}: its picture cannot be drawn: {error}"
        ) from error


def _nothing_ran(sweeps: Sequence[pd.DataFrame]) -> str:
    """Why no row of a product's sweeps has a result; empty if one has."""
    if not sweeps or any((table["status"] == "ok").any() for table in sweeps):
        return ""
    states = set[str]().union(*(table["status"] for table in sweeps))
    return NOTHING.get(
        next(iter(states), ""), f"no run has ended: {', '.join(states)}"
    )


def stem(
    output: schema.Output, paper: str, collection: str, name: str
) -> Path:
    """Path of a figure or a table, without the ending of its files."""
    top = output.figures if collection == "figures" else output.results
    return Path(top, paper, name)
