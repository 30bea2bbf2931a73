"""All sweeps of all papers that need no data set, at tiny sizes, and what they give."""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg

from dperm.config import grid
from dperm.config.config import compose, read
from dperm.experiments import makers, products, results
from dperm.experiments.inputs import Inputs
from dperm.plotting import drawing
from dperm.storage import files

PAPERS = ("dpcd", "dpgcd", "dpskgd", "dpbcfw", "dpsco")
GONE = {"status": "unavailable", "reason": "no network"}


@functools.cache
def configured(paper, folder):
    scale = [
        "scale=smoke",
        "scale.thorough=true",
    ]  # small sizes, of every product
    return compose([f"paper={paper}", f"output.results={folder}", *scale])


def folder_of(config):
    """The folder of the paper's rows."""
    return Path(config.output.results, config.paper.name)


def needs_data(sweep):
    return bool(sweep.problems or sweep.prepared)


written = functools.cache(functools.partial(read, "paper"))


def made_only_of(collection, ran):
    """The products of a kind whose sweeps, and nothing else, ran or did not."""
    for paper in PAPERS:
        section = written(paper)
        for name, product in getattr(section, collection).items():
            own = [section.sweeps[one] for one in product.sweeps]
            known = [not needs_data(one) for one in own]
            if own and (any(known) if ran else not any(known)):
                yield paper, name


def sweep_all(folder):
    """Write the rows of all sweeps."""
    for paper in PAPERS:
        config = configured(paper, folder)
        for name, sweep in config.paper.sweeps.items():
            store(
                config,
                name,
                [] if needs_data(sweep) else [*rows(config, sweep)],
            )


def rows(config, sweep):
    function = makers.function_of(config.paper.name, "sweeps", sweep.function)
    points = grid.points(sweep.grid, axes=None)
    for point, replicate in itertools.product(points, range(2)):
        passed = {"point": point, "seed": 11 + replicate, "master": config.seed,
                  "scale": config.scale, "inputs": None}  # fmt: skip
        found = makers.called(function, sweep.options, passed)
        for row in found if isinstance(found, list) else [found]:
            yield {"status": "ok", **point, "replicate": replicate, **row}


def store(config, name, found):
    """Write the rows of a sweep; without any its data set is not available."""
    path = results.sweep_path(folder_of(config), name)
    path.parent.mkdir(parents=True, exist_ok=True)
    first = next(
        iter(grid.points(config.paper.sweeps[name].grid, axes=None)), {}
    )
    files.write_table(path, pd.DataFrame(found or [{**first, **GONE}]))


def make(config, collection, name):
    product = getattr(config.paper, collection)[name]
    folder = folder_of(config)
    swept = [results.load_sweep(folder, sweep) for sweep in product.sweeps]
    passed = {"product": product, "problems": list(product.problems or ()),
              "swept": pd.concat(swept, ignore_index=True), "paper": config.paper,
              "folder": folder, "inputs": Inputs(config.data, [])}  # fmt: skip
    maker = makers.function_of(config.paper.name, collection, product.function)
    return makers.called(maker, product.options, passed)


# --- numbers that must not move -------------------------------------------------------


def product(config, collection: str, name: str) -> tuple[Any, pd.DataFrame]:
    """The figure of a product, and what its CSV file holds; nothing is written."""
    drawn, rows = products.made(config, collection, name)
    if drawn is not None:
        drawing.plt.close(drawn)
    return drawn, rows


def frames(
    folder, figures: dict[str, Any] | None = None
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Every sweep, figure and table that needs no data set, by name.

    ``figures`` keeps what was drawn, by the same names.
    """
    for paper in PAPERS:
        config = configured(paper, folder)
        for name, sweep in config.paper.sweeps.items():
            if not needs_data(sweep):
                yield (
                    f"{paper}/sweeps/{name}",
                    results.load_sweep(folder_of(config), name),
                )
    for collection in ("figures", "tables"):
        for paper, name in made_only_of(collection, ran=True):
            config = configured(paper, folder)
            drawn, data = product(config, collection, name)
            if figures is not None and drawn is not None:
                FigureCanvasAgg(drawn)  # its own went when it was closed
                figures[f"{paper}/{collection}/{name}"] = drawn
            yield f"{paper}/{collection}/{name}", data


def summary(table: pd.DataFrame) -> dict[str, Any]:
    """Two sums of every column of numbers, and a digest of every one of text."""
    found: dict[str, Any] = {"rows": len(table)}
    for name in table.columns.drop("seconds", errors="ignore"):
        if table[name].dtype.kind == "O":
            text = ";".join(map(str, table[name]))
            found[name] = hashlib.sha256(text.encode()).hexdigest()[:8]
            continue
        values = table[name].to_numpy(float)
        values = np.where(np.isfinite(values), values, 0.5)
        place = np.cos(np.arange(len(values)))
        sums = np.abs(values).sum(), values @ place
        found[name] = [float(f"{one:.9g}") for one in sums]
    return found


def recorded() -> dict[str, Any]:
    """Summaries of all frames, computed anew."""
    with TemporaryDirectory() as folder:
        sweep_all(Path(folder))
        return {name: summary(table) for name, table in frames(folder)}
