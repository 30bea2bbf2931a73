"""The functions that make a paper's figures, tables and sweeps, and what they read.

Functions are found by their names, ``function:`` in a paper's YAML. Options are
arguments of the function; their names and types are read from its source and checked
before anything is computed.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from dperm.config import grid, schema, validation
from dperm.config.locate import ConfigError, group_file
from dperm.config.validation import one_of
from dperm.experiments import plan
from dperm.experiments.results import sweep_path
from dperm.names import hint
from dperm.storage.source_code import functions, is_beside

# Of products, in a run.
FORMATS = {"figures": ("png", "csv"), "tables": ("csv",)}
ROWS = ("tune", "evaluate")  # tables of a run
# What a function may take by these names; its other parameters are options. Of a
# sweep they are the point of the grid and its seed, and the master seed; of figures
# and tables the product, its problems, and the rows of its sweeps, one below the
# other. ``paper`` and ``scale`` are sections, ``folder`` has the rows of the paper, and
# ``inputs`` finds problems.
_SHOWN = ("product", "problems", "swept", "paper", "folder", "inputs")
PASSED = {
    "sweeps": (
        "point",
        "seed",
        "master",
        "paper",
        "scale",
        "folder",
        "inputs",
    ),
    "figures": _SHOWN,
    "tables": _SHOWN,
}
_NAMES = {
    "Any": Any,
    "Literal": Literal,
    "Sequence": Sequence,
    "Mapping": Mapping,
}


def chosen(
    paper: schema.Paper, collection: str, product: str | None
) -> dict[str, Any]:
    """The figures, tables or sweeps of the paper that ``product`` names; None: all.

    Raises ConfigError if there is no such product, with the nearest known one.
    """
    products = getattr(paper, collection)
    if product is None:
        return products
    if product not in products:
        raise ConfigError(
            f"product={product}: conf/paper/{paper.name}/paper.yaml has the "
            f"{collection} {', '.join(products)}{hint(product, products)}"
        )
    return {product: products[product]}


# --- functions of figures, tables and sweeps ------------------------------------------


def modules(paper: str, collection: str) -> list[str]:
    """Modules of figures, tables or sweeps: the paper's own, then those of all."""
    folders = (paper, "shared", "comparison")
    candidates = (f"dperm.papers.{folder}.{collection}" for folder in folders)
    return [module for module in candidates if functions(module)]


def place_of(paper: str, collection: str, name: str, where: str = "") -> str:
    """``module:function`` of a function of a collection, without importing it.

    The ``name`` is that of a function of the paper, or else of all papers, or it is
    ``module:function`` of a module beside ``conf/``.

    Raises ConfigError if there is no such function, of the file and ``where``.
    """
    places: dict[str, str] = {}
    for module in reversed(modules(paper, collection)):
        places |= {each: f"{module}:{each}" for each in functions(module)}
    own, _, function = name.rpartition(":")
    if own and is_beside(own) and function in functions(own):
        return name
    file = f"conf/{group_file('paper', paper)}"
    place = f"{file}: {where or collection}.function"
    try:
        one_of(place, name, sorted(places))
    except ConfigError as error:
        raise ConfigError(
            f"{error}; or module:function, of a module beside conf/"
        ) from None
    return places[name]


def function_of(paper: str, collection: str, name: str) -> Callable[..., Any]:
    """A collection's function. Raises ConfigError if there is none of that name."""
    module, _, function = place_of(paper, collection, name).partition(":")
    return getattr(importlib.import_module(module), function)


def called(
    function: Callable[..., Any],
    options: Mapping[str, Any],
    passed: dict[str, Any],
) -> Any:
    """Call a function with its options, and with what it takes of what is passed."""
    names = inspect.signature(function).parameters
    taken = {name: passed[name] for name in passed if name in names}
    return function(**taken, **options)


def unlike(
    function: Callable[..., Any], words: str, outcome: Any
) -> ValueError:
    """The error of a function that returns something else than a paper's has to."""
    file = inspect.getsourcefile(function)
    seen = "nothing" if outcome is None else f"a {type(outcome).__name__}"
    return ValueError(
        f"{file}: {function.__name__}: expected {words}, found {seen}"
    )


def entry_of(paper: schema.Paper, collection: str, name: str) -> str:
    """``module:function`` of a figure, a table or a sweep, whose options are checked.

    Raises ConfigError if there is no such function, or it does not take the options.
    """
    spec = getattr(paper, collection)[name]
    try:
        place = place_of(
            paper.name, collection, spec.function, f"{collection}.{name}"
        )
    except ConfigError as error:
        if functions(f"dperm.papers.{paper.name}.{collection}"):
            raise
        raise ConfigError(
            f"{error}; conf/paper/{paper.name}/{collection}.py has no function"
        ) from error
    module, _, function = place.partition(":")
    where = (
        f"conf/{group_file('paper', paper.name)}: {collection}.{name}.options"
    )
    takes = functions(module)[function]
    _check_options(takes, spec.options, PASSED[collection], where)
    if collection != "sweeps":
        if not spec.sweeps and "swept" in (
            argument.arg for argument in takes.args
        ):
            file = where.removesuffix("options")
            raise ConfigError(
                f"{file}sweeps: expected those whose rows {spec.function} takes, found "
                "none"
            )
        for key in ("solvers", "names"):
            for solver in spec.options.get(key, ()):
                one_of(f"{where}.{key}", solver, list(paper.runs))
    if "published" in spec.options:
        published = list(paper.published)
        one_of(f"{where}.published", spec.options["published"], published)
    return place


def _check_options(
    takes: ast.arguments,
    options: dict[str, Any],
    passed: Sequence[str],
    where: str,
) -> None:
    """Refuse options that a function does not take, or takes as another type.

    ``passed`` are names of parameters that are no options.
    """
    if takes.kwarg is not None:
        return
    positional = takes.args
    keyword_only = takes.kwonlyargs
    defaults = [None] * (
        len(positional) - len(takes.defaults)
    ) + takes.defaults
    parameters = [
        *zip(positional, defaults, strict=True),
        *zip(keyword_only, takes.kw_defaults, strict=True),
    ]
    parameters = [pair for pair in parameters if pair[0].arg not in passed]
    for key in options:
        one_of(where, key, [parameter.arg for parameter, _ in parameters])
    for parameter, default in parameters:
        if parameter.arg in options:
            declared_type = _type_of(parameter.annotation)
            validation.check(
                options[parameter.arg],
                declared_type,
                f"{where}.{parameter.arg}",
            )
        elif default is None:
            raise ConfigError(
                f"{where}.{parameter.arg}: expected a value, found none: without one "
                f"a function may take {', '.join(passed)}"
            )


def _type_of(annotation: ast.expr | None) -> Any:
    """The type that an annotation names; ``Any`` for types defined in the module."""
    try:
        text = ast.unparse(annotation) if annotation else "Any"
        return eval(text, {}, _NAMES)  # noqa: S307  # source about to be run
    except NameError:
        return Any


# --- what products and sweeps read ----------------------------------------------------


def product_problems(
    paper: schema.Paper, product: schema.Product
) -> list[str]:
    """The product's problems at this scale; all problems if none of them is left."""
    names = paper.problems
    return [name for name in product.problems or () if name in names] or names


def read_by(
    paper: schema.Paper, folder: Path, product: schema.Product
) -> list[Path]:
    """Files of rows that a product is made of; of runs none if it shows only sweeps.

    ``folder`` has the rows of the paper.
    """
    runs = []
    if product.problems is not None or not product.sweeps:
        problems = product_problems(paper, product)
        runs = [run for run in plan.runs(paper) if run[0] in problems]
    paths = []
    for run in runs:
        paths += [folder.joinpath(*run, f"{name}.parquet") for name in ROWS]
    paths += [sweep_path(folder, name) for name in product.sweeps]
    if product.timed:
        paths.append(folder / "timing.parquet")
    return paths


def clocked(paper: schema.Paper) -> dict[tuple[str, str], set[str]]:
    """(problem, solver) to the calibrations whose seconds a product shows."""
    calibrations: dict[tuple[str, str], set[str]] = {}
    for product in (*paper.figures.values(), *paper.tables.values()):
        solvers = product.options.get("solvers") or list(paper.runs)
        problems = product_problems(paper, product) if product.timed else []
        for problem, solver in plan.runs(paper):
            if problem in problems and solver in solvers:
                calibrations.setdefault((problem, solver), set()).add(
                    product.calibration
                )
    return calibrations


def sweep_tuned(paper: schema.Paper, name: str) -> list[tuple[str, str]]:
    """(problem, solver) whose tuning a sweep starts from; they must be runs.

    Raises ConfigError if its points lack one of the two, or name no run of the paper.
    """
    sweep = paper.sweeps[name]
    if not sweep.tuned:
        return []
    where = f"conf/{group_file('paper', paper.name)}: sweeps.{name}"
    points = grid.points(sweep.grid, axes=None)
    for key in ("problem", "solver"):
        if any(key not in point for point in points):
            raise ConfigError(
                f"{where}: expected an axis {key!r}, as it is tuned"
            )
    starts = dict.fromkeys(
        (point["problem"], point["solver"]) for point in points
    )
    for problem, solver in starts:
        if (problem, solver) not in plan.runs(paper):
            raise ConfigError(
                f"{where}.grid: expected solvers on problems of runs and problems, "
                f"found {solver} on {problem}"
            )
    return [*starts]
