"""The figure and table stages: one product, or all of a paper."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dperm import schema
from dperm.locate import ConfigError, hint
from dperm.pipeline import plan
from dperm.store import files as store
from dperm.store.closure import functions
from dperm.validation import one_of

log = logging.getLogger(__name__)


def figure(config: schema.Config) -> list[Path]:
    """Draw ``product=...``, or all figures of the paper."""
    from dperm.present import drawing
    from dperm.present.panels import described

    written = []
    for name, product in chosen(config, "figures").items():
        drawn, rows = _make(config, "figures", product)
        path = stem(config, "figures", name)
        written += drawing.save(drawn, rows, path)
        written.append(path.with_suffix(".json"))
        store.write_json(written[-1], described(rows))
    return _report(written)


def table(config: schema.Config) -> list[Path]:
    """Write ``product=...``, or all tables of the paper."""
    from dperm.present import tables as writing

    written = []
    for name, product in chosen(config, "tables").items():
        made = _make(config, "tables", product)
        path = stem(config, "tables", name)
        written += writing.save(made, path, product.caption)
    return _report(written)


def stem(config: schema.Config, kind: str, name: str) -> Path:
    """Where a figure or a table goes, without the ending of its files."""
    folder = plan.figures_folder if kind == "figures" else plan.results_folder
    return folder(config, config.paper.name, name)


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
            f"product={config.product}: conf/paper/{config.paper.name}/paper.yaml has "
            f"the {kind} {', '.join(known)}{hint(config.product, known)}"
        )
    return {config.product: known[config.product]}


def _make(config: schema.Config, kind: str, product: schema.Product) -> Any:
    """What the product's function returns, on the product's problems."""
    maker = function_of(config, kind, product.kind)
    names = plan.problem_names(config)
    return maker(config, product, plan.product_problems(product, names))


def check_kind(config: schema.Config, kind: str, where: str, name: str) -> None:
    """Refuse a product whose function there is not, without importing anything.

    Raises
    ------
    ConfigError
        With the kinds there are, and the nearest.
    """
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
    except ModuleNotFoundError:  # nor is the paper's folder
        return False


def function_of(config: schema.Config, kind: str, name: str) -> Callable[..., Any]:
    """The function of a kind: of the paper's own module, or of the shared one.

    Raises
    ------
    ConfigError
        If there is none of that name.
    """
    return getattr(importlib.import_module(module_of(config, kind, name)), name)


def module_of(config: schema.Config, kind: str, name: str) -> str:
    """The module that has the function of a kind, the paper's own before the shared.

    Raises
    ------
    ConfigError
        If there is none.
    """
    check_kind(config, kind, kind, name)
    found = (each for each in modules(config, kind) if name in functions(each))
    return next(found)
