"""The figure and table stages: one product, or all of a paper."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dperm import schema
from dperm.config import ConfigError, one_of
from dperm.experiments import inputs, provenance
from dperm.locate import hint

log = logging.getLogger(__name__)


def figure(config: schema.Config) -> list[Path]:
    """Draw ``product=...``, or all figures of the paper."""
    from dperm.figures import drawing

    folder = inputs.figures_folder(config, config.paper.name)
    written = []
    for name, product in chosen(config, "figures").items():
        drawn, rows = _make(config, "figures", product)
        written += drawing.save(drawn, rows, folder / name)
    return _report(written)


def table(config: schema.Config) -> list[Path]:
    """Write ``product=...``, or all tables of the paper."""
    from dperm.tables import writing

    folder = inputs.results_folder(config, config.paper.name)
    written = []
    for name, product in chosen(config, "tables").items():
        made = _make(config, "tables", product)
        written += writing.save(made, folder / name, product.caption)
    return _report(written)


def _report(written: list[Path]) -> list[Path]:
    for path in written:
        log.info("%s", path)
    return written


def chosen(config: schema.Config, kind: str) -> dict[str, Any]:
    """The figures, tables or sweeps of the paper that ``product`` names.

    Raises
    ------
    ConfigError
        If it names none, with the nearest known one.
    """
    known = getattr(config.paper, kind)
    if config.product is None:
        return known
    if config.product not in known:
        raise ConfigError(
            f"product={config.product}: conf/paper/{config.paper.name}.yaml has the "
            f"{kind} {', '.join(known)}{hint(config.product, known)}"
        )
    return {config.product: known[config.product]}


def _make(config: schema.Config, kind: str, product: schema.Product) -> Any:
    """What the product's function returns, on the product's problems."""
    maker = function_of(config, kind, product.kind)
    names = inputs.problem_names(config)
    return maker(config, product, inputs.product_problems(product, names))


def check_kind(config: schema.Config, kind: str, where: str, name: str) -> None:
    """Refuse a product whose function its module has not, without importing it.

    Raises
    ------
    ConfigError
        If there is no such module, or nothing of that name in it.
    """
    file, module = f"conf/paper/{config.paper.name}.yaml", config.paper.module
    try:
        made, brought = _names(f"dperm.{kind}.{module}")
    except ModuleNotFoundError as error:
        raise ConfigError(f"{file}: module: no {error} in src/") from error
    if name not in made + brought:
        public = [each for each in made if not each.startswith("_")]
        one_of(f"{file}: {where}.kind", name, public)


@functools.cache
def _names(module: str) -> tuple[list[str], list[str]]:
    """The functions that a module defines, and what it imports from others."""
    body = provenance.parsed(module).body
    made = [node.name for node in body if isinstance(node, ast.FunctionDef)]
    imports = [node for node in body if isinstance(node, ast.ImportFrom)]
    return made, [alias.asname or alias.name for n in imports for alias in n.names]


def function_of(config: schema.Config, kind: str, name: str) -> Callable[..., Any]:
    """A public function of ``dperm.<kind>.<module of the paper>``.

    Raises
    ------
    ConfigError
        If there is none of that name.
    """
    module = importlib.import_module(f"dperm.{kind}.{config.paper.module}")
    found = getattr(module, name, None)
    own = getattr(found, "__module__", None) or ""
    ours = inspect.isfunction(found) and own.startswith("dperm.")
    if found is None or not ours or name.startswith("_"):
        raise ConfigError(
            f"conf/paper/{config.paper.name}.yaml: {kind}: kind {name!r} is no "
            f"function of {module.__name__}"
        )
    return found
