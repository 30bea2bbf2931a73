"""Checks of a configuration that need code: losses, algorithms and their options.

They run before a stage computes, and for all sections of the run table.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any, get_type_hints

import numpy as np

from dperm.config import schema, validation
from dperm.config.locate import ConfigError, available
from dperm.config.validation import one_of
from dperm.data.fetching import check_dataset
from dperm.experiments.capabilities import kept_sparse, obstacle
from dperm.problems import losses
from dperm.solvers import registry

# What functions of a solver are called with, by its family.
CALLED = {
    "batched": {
        "steps": "problem passes options",
        "ledger": "problem count noise_multiplier options calibration",
        "bytes_per_setting": "problem",
        "Run": "problem settings streams options workers total",
    },
    "full_batch": {
        "refuses": "options scaled",
        "ledger": "scaled noise_multiplier options",
    },
}


def problem(section: schema.ProblemSection) -> None:
    """Refuse an unknown loss, data that no source could serve, or sparse ones to fill.

    Standardised columns have no zeros, so that sparse data are not standardised.
    """
    where = f"conf/problem/{section.name}.yaml: loss"
    try:
        is_bounded = losses.named(section.loss).bounded
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None
    if not is_bounded:
        one_of(where, section.loss, losses.bounded())
    if section.preparation.standardize and kept_sparse(section.dataset):
        raise ConfigError(
            f"conf/problem/{section.name}.yaml: preparation.standardize: expected "
            "false, found true: standardised, the sparse data would be filled in"
        )
    dataset = str(section.dataset.name)
    shared = available("dataset")
    file = (
        f"dataset/{dataset}"
        if dataset in shared
        else f"problem/{section.name}"
    )
    try:
        check_dataset(section.dataset)
    except ValueError as error:
        raise ConfigError(f"conf/{file}.yaml: {error}") from error


def solver(section: schema.Solver) -> None:
    """Refuse an unknown algorithm, what cannot be called, or options that it lacks."""
    where = f"conf/solver/{section.name}.yaml"
    try:
        module = registry.load(section.algorithm)
        types = get_type_hints(module.Options)
        for key, option in section.options.items():
            if not types:
                raise ValueError(
                    f"options.{key}: expected none: it has no options"
                )
            validation.check(option, types.get(key, Any), f"options.{key}")
            if isinstance(option, float) and not math.isfinite(option):
                raise ValueError(f"options.{key}: expected a finite number")
        registry.make_options(module, section.options)
        _check_calls(module)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{where}: {error}") from error


def _check_calls(module: ModuleType) -> None:
    """Refuse functions of a solver that cannot be called as its family's are."""
    for name, words in CALLED.get(registry.family(module), {}).items():
        function = getattr(module, name)
        validation.check_call(
            function, f"{module.__file__}: {name}", words.split()
        )
    for name in ("advance", "setting_constants", "draw"):
        code = getattr(getattr(module.Run, name, None), "__code__", None)
        if code is not None and "NotImplementedError" in code.co_names:
            raise ValueError(
                f"{module.__file__}: Run.{name}: expected a method, found none"
            )


def check_ledger(section: schema.Solver) -> None:
    """Refuse a user's own solver that leaks on small data."""
    from dperm.audit.leaks import refuse_leaks  # takes a second to import

    refuse_leaks(section.name, section.algorithm, section.options)


def able(
    problem: schema.ProblemSection,
    solver: schema.Solver,
    where: str,
    *is_sparse: bool,
) -> tuple[Any, Any]:
    """Module and options of a solver; one that cannot do the problem is refused."""
    module = registry.load(solver.algorithm)
    options = registry.make_options(module, solver.options)
    if reason := obstacle(module, options, problem, *is_sparse):
        raise ConfigError(f"conf/{where}: problem {problem.name}: {reason}")
    return module, options


def usable(problem: schema.ProblemSection, y: np.ndarray) -> None:
    """Refuse labels y (n,) that do not suit the problem."""
    where = f"conf/problem/{problem.name}.yaml"
    if len(y) < 2:
        raise ConfigError(
            f"{where}: dataset: expected 2 records or more, found {len(y)}"
        )
    if y.min() == y.max():
        raise ConfigError(
            f"{where}: dataset: expected labels that differ, found {y[0]:g} in all "
            f"{len(y)} records: is reader.target the right column?"
        )
    try:
        losses.named(problem.loss).check_labels(problem.name, y)
    except ValueError as error:
        raise ConfigError(
            f"{where}: loss: {error}: reader.positive names the class that is +1"
        ) from error
