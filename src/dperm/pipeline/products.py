"""The stages that draw: one, several or all figures and tables of a paper.

Their functions, and those of sweeps, are found by the name of their kind, ``kind:`` in
a paper's YAML. Options are checked before anything is computed. Options of a sweep are
arguments of its function; their names and types are read from its source. Options of
figures and tables are looked up while the function runs, so a key that occurs nowhere
in the code behind the function is an error. ``TYPES`` has the types of their values.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from dperm.core.experiment import files as store
from dperm.core.experiment import grid, plan, schema, validation
from dperm.core.experiment.config import small_points
from dperm.core.experiment.locate import ConfigError, group_file
from dperm.core.experiment.results import sweep_path
from dperm.core.experiment.validation import one_of, paper_file
from dperm.core.names import hint
from dperm.pipeline.graph import FORMATS, product_inputs
from dperm.present import tables
from dperm.store import closure
from dperm.store.closure import functions

log = logging.getLogger(__name__)

PASSED = 3  # first arguments of a sweep, no options: configuration, point and seed
TYPES = {
    "against": str,
    "along": str,
    "beside": str,
    "by_passes": bool,
    "calibration": str,
    "column": str,
    "columns": int,
    "d": int,
    "decimals": int,
    "digits": int,
    "ends": bool,
    "epsilon": float,
    "names": dict[str, str],
    "panels": list[list[Any]],
    "published": str,
    "redrawn": dict[str, float],
    "readings": dict[str, Any],
    "shown": list[str],
    "solvers": list[str],
    "spread": float,
    "ties": bool,
    "title": Literal["privacy", "penalty"],
    "x": Literal["passes", "seconds"],
}
_NAMES = {"Any": Any, "Sequence": Sequence, "Mapping": Mapping}


def figure(config: schema.Config) -> list[Path]:
    """Draw ``product=...``, or all figures of the paper."""
    return _made(config, "figures")


def table(config: schema.Config) -> list[Path]:
    """Write ``product=...`` and print it in Markdown, or write all tables."""
    return _made(config, "tables")


def _made(config: schema.Config, kind: str) -> list[Path]:
    from dperm.pipeline import digests  # which reads this module

    written = []
    for name in chosen(config, kind):
        for path, made in digests.rows(config, inputs_of(config, kind, name)).items():
            if path.is_file():
                store.read_table(path, made)
        written += write(config, kind, name)
    return written


def write(config: schema.Config, kind: str, name: str) -> list[Path]:
    """Make a figure or a table from its stages' results and return its files."""
    product = getattr(config.paper, kind)[name]
    content, path = _make(config, kind, product), stem(config, kind, name)
    if kind == "tables":
        written = [path.with_suffix(".csv")]
        store.write_csv(written[0], content.data)
        if config.product is not None:  # asked for by name, by a reader
            print(tables.in_markdown(content, product.caption))
    else:
        from dperm.present import drawing

        drawn, rows = content
        written = drawing.save(drawn, rows, path)
    for path in written:
        log.info("%s", path)
    return written


def data_of(config: schema.Config, kind: str, name: str) -> pd.DataFrame:
    """Compute the content of a product's CSV file again; nothing is written."""
    made = _make(config, kind, getattr(config.paper, kind)[name])
    if kind == "tables":
        return made.data
    from dperm.present import drawing

    drawing.plt.close(made[0])
    return drawing.frame(made[1])


def draw(config: schema.Config) -> list[Path]:
    """Make the products of ``drawn`` in one process.

    Starting a process takes as long as drawing a figure, so Snakemake has one job for
    all products made of the same files.

    Returns
    -------
    list of Path
        Of the files that were written.

    Raises
    ------
    ConfigError
        For an entry that is not ``figures/<name>`` or ``tables/<name>``.
    """
    written = []
    for entry in config.drawn:
        kind, _, name = entry.partition("/")
        if kind not in FORMATS or not name:
            raise ConfigError(f"drawn: expected figures/name, found {entry!r}")
        written += write(config, kind, name)
    return written


def inputs_of(config: schema.Config, kind: str, name: str) -> list[Path]:
    """Files that a product is made of: rows, ledgers and published tables."""
    product = getattr(config.paper, kind)[name]
    runs = product_runs(config, product)
    files = product_inputs(
        f"{plan.results_folder(config)}/",
        config.paper.name,
        runs,
        product.sweeps,
        product.timed,
    )
    own = [plan.results_folder(config, config.paper.name, *run) for run in runs]
    texts = (paper_file(config.paper, name) for name in config.paper.published.values())
    ledgers = (folder / "ledger.json" for folder in own)
    return [*map(Path, files), *ledgers, *(text for text in texts if text is not None)]


def rows(config: schema.Config) -> list[Path]:
    """Existing files of a paper's rows at the configured scale."""
    folder = plan.results_folder(config, config.paper.name)
    solved = (folder.joinpath(*run) for run in plan.runs(config))
    files = [one / f"{name}.parquet" for one in solved for name in ("tune", "evaluate")]
    files += [sweep_path(config, name) for name in config.paper.sweeps]
    return [path for path in (*files, folder / "timing.parquet") if path.is_file()]


def stem(config: schema.Config, kind: str, name: str) -> Path:
    """Path of a figure or a table, without the ending of its files."""
    folder = plan.figures_folder if kind == "figures" else plan.results_folder
    return folder(config, config.paper.name, name)


def chosen(config: schema.Config, kind: str) -> dict[str, Any]:
    """The figures, tables or sweeps of the paper that ``product`` names.

    Raises
    ------
    ConfigError
        If there is no such product, with the nearest known one.
    """
    known = getattr(config.paper, kind)
    if config.product is None:
        return known
    if config.product not in known:
        raise ConfigError(
            f"product={config.product}: conf/paper/{config.paper.name}/paper.yaml has "
            f"the {kind} {', '.join(known)}{hint(config.product, known)}"
        )
    return {config.product: known[config.product]}


def _make(config: schema.Config, kind: str, product: schema.Product) -> Any:
    """Call the product's function on the product's problems."""
    maker = function_of(config, kind, product.kind)
    names = plan.problem_names(config)
    return maker(config, product, product_problems(product, names))


def check_kind(config: schema.Config, kind: str, where: str, name: str) -> None:
    """Refuse a product whose function does not exist, without importing anything."""
    known = sorted(
        {each for module in modules(config, kind) for each in functions(module)}
    )
    one_of(f"conf/paper/{config.paper.name}/paper.yaml: {where}.kind", name, known)


def modules(config: schema.Config, kind: str) -> list[str]:
    """Modules of figures, tables or sweeps: the paper's own, then the shared."""
    found = (f"dperm.papers.{config.paper.name}.{kind}", f"dperm.kinds.{kind}")
    return [module for module in found if _is_there(module)]


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the paper has no folder of modules
        return False


def function_of(config: schema.Config, kind: str, name: str) -> Callable[..., Any]:
    """The function of a kind, from the paper's own module or the shared one.

    Raises
    ------
    ConfigError
        If there is no function of that name.
    """
    return getattr(importlib.import_module(module_of(config, kind, name)), name)


def module_of(config: schema.Config, kind: str, name: str) -> str:
    """The module that has the function of a kind; the paper's own comes first.

    Raises
    ------
    ConfigError
        If there is no such module.
    """
    check_kind(config, kind, kind, name)
    found = (each for each in modules(config, kind) if name in functions(each))
    return next(found)


# --- inputs of products ---------------------------------------------------------------


def product_problems(product: schema.Product, names: list[str]) -> list[str]:
    """The product's problems at this scale; all problems if none of them is left."""
    return [name for name in product.problems or () if name in names] or names


def product_runs(
    config: schema.Config, product: schema.Product
) -> list[tuple[str, str]]:
    """(problem, solver) whose results a product shows; none if it shows only sweeps."""
    if product.sweeps and product.problems is None:
        return []
    shown = product_problems(product, plan.problem_names(config))
    return [run for run in plan.runs(config) if run[0] in shown]


def sweep_points(config: schema.Config, what: schema.Sweep) -> grid.Grid:
    """The points of a sweep at the configured scale."""
    if config.scale.problems == "offline":
        return small_points(config.paper, what)
    return grid.points(what.grid, axes=None)


def sweep_problems(config: schema.Config, what: schema.Sweep) -> list[str]:
    """Problems that a sweep needs; at the small scales only the offline ones."""
    offline = config.scale.problems == "offline"
    kept = config.paper.offline if offline else what.problems
    return [name for name in what.problems if name in kept]


def sweep_prepared(config: schema.Config, sweep: schema.Sweep) -> list[str]:
    """Problems whose arrays a sweep reads; at the small scales, the offline ones."""
    offline = config.scale.problems == "offline" and sweep.prepared
    return config.paper.offline if offline else sweep.prepared


def sweep_tuned(config: schema.Config, name: str) -> list[tuple[str, str]]:
    """(problem, solver) whose tuning a sweep starts from, by its points.

    Raises
    ------
    ConfigError
        If its points lack one of the two.
    """
    what = config.paper.sweeps[name]
    if not what.tuned:
        return []
    every = sweep_points(config, what)
    for key in ("problem", "solver"):
        if any(key not in at for at in every):
            raise ConfigError(
                f"conf/paper/{config.paper.name}/paper.yaml: sweeps.{name}: expected "
                f"an axis {key!r}, as tuned: true starts from a tuning"
            )
    return list(dict.fromkeys((at["problem"], at["solver"]) for at in every))


def clocked(config: schema.Config) -> dict[tuple[str, str], set[str]]:
    """(problem, solver) to the calibrations whose seconds a product shows."""
    kinds: dict[tuple[str, str], set[str]] = {}
    names, paper = plan.problem_names(config), config.paper
    for product in (*paper.figures.values(), *paper.tables.values()):
        chosen = product.options.get("solvers") or list(paper.runs)
        shown = product_problems(product, names) if product.timed else []
        for problem, solver in plan.runs(config):
            if problem in shown and solver in chosen:
                kinds.setdefault((problem, solver), set()).add(product.calibration)
    return kinds


# --- options --------------------------------------------------------------------------


def check_options(config: schema.Config, kind: str, name: str) -> None:
    """Refuse options that the function of a figure, table or sweep does not take."""
    what = getattr(config.paper, kind)[name]
    where = f"conf/{group_file('paper', config.paper.name)}: {kind}.{name}.options"
    module = module_of(config, kind, what.kind)
    if kind == "sweeps":
        _check_arguments(closure.parameters(module, what.kind), what.options, where)
    else:
        _check_spelt(f"{module}:{what.kind}", what.options, where)
        _check_named(config.paper, what.options, where)


def _check_arguments(
    takes: dict[str, tuple[str, bool]] | None, options: dict[str, Any], where: str
) -> None:
    if takes is None:
        return
    known = dict(list(takes.items())[PASSED:])
    for key, value in options.items():
        one_of(where, key, list(known))
        validation.check(value, _type_of(known[key][0]), f"{where}.{key}")
    missing = [key for key, (_, needed) in known.items() if needed]
    for key in missing:
        if key not in options:
            raise ConfigError(f"{where}.{key}: expected a value, found none")


def _type_of(annotation: str) -> Any:
    """The type that an annotation names; ``Any`` for types defined in the module."""
    try:
        return eval(annotation, {}, _NAMES)  # noqa: S307  # source about to be run
    except NameError:
        return Any


def _check_spelt(entry: str, options: dict[str, Any], where: str) -> None:
    if not options:
        return
    spelt = closure.words(entry)
    for key, value in options.items():
        if key not in spelt:
            near = hint(str(key), [word for word in TYPES if word in spelt])
            raise ConfigError(f"{where}: {key!r}: {entry} reads no such option{near}")
        validation.check(value, TYPES.get(key, Any), f"{where}.{key}")


def _check_named(paper: schema.Paper, options: dict[str, Any], where: str) -> None:
    """Refuse unknown solvers, unknown published tables and sizes not above 0."""
    for key in ("solvers", "names"):
        for name in options.get(key, ()):
            if name not in paper.runs:
                listed = ", ".join(paper.runs) or "none"
                raise ConfigError(
                    f"{where}.{key}: expected solvers of the paper's runs ({listed}), "
                    f"found {name!r}{hint(str(name), paper.runs)}"
                )
    if "published" in options:
        one_of(f"{where}.published", options["published"], list(paper.published))
    for key in ("columns", "d", "epsilon"):
        if key in options and not options[key] > 0:
            raise ConfigError(f"{where}.{key}: expected above 0, found {options[key]}")
