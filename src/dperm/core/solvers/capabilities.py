"""Check before a run that a solver of lanes supports the problem.

A module declares ``SPARSE`` (:mod:`dperm.core.lanes`), and may have a function
``refuses(options, asked) -> str`` that returns any other obstacle.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dperm.core import solvers
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import Problem

if TYPE_CHECKING:
    from dperm.core.experiment import schema


@dataclass(frozen=True)
class Asked:
    """Properties of a problem that a solver may not support."""

    sparse: bool  #: whether A is a sparse matrix
    #: l1, box: whether the penalty has an L1 norm, or a bound on the weights
    l1: bool
    box: bool


def require(
    refuses: Callable[[Any, Asked], str], options: Any, problem: Problem
) -> None:
    """Refuse a problem that the solver refuses; for runs outside of a run table too.

    Raises
    ------
    ValueError
    """
    reason = refuses(options, _of(problem.penalty, problem.is_sparse))
    if reason:
        raise ValueError(f"problem {problem.name}: {reason}")


def obstacle(
    module: ModuleType,
    options: Any,
    problem: schema.Problem,
    sparse: bool | None = None,
) -> str:
    """Why a solver cannot run lanes on a problem; empty if it can.

    Parameters
    ----------
    module : module of a solver
    options : its Options
    problem : schema.Problem
    sparse : bool, optional
        Whether the prepared data are sparse; None: as inferred from the reader.
    """
    name = module.__name__.rpartition(".")[2]
    kind = solvers.family(module)
    if kind != "lanes":
        return (
            f"{name} is no solver of lanes but of the family {kind}, which takes no "
            "grid of steps and clips: call it from a sweep"
        )
    if sparse is None:
        sparse = kept_sparse(problem.dataset)
    asked = _of(problem.penalty, sparse)
    if asked.sparse and not getattr(module, "SPARSE", False):
        able = " or ".join(_declaring("SPARSE"))
        return (
            f"its data are kept sparse: expected {able}, or a module that declares "
            f"SPARSE = True, found {name}"
        )
    refuses = getattr(module, "refuses", None)
    return refuses(options, asked) if refuses else ""


def kept_sparse(dataset: schema.Dataset) -> bool:
    """Whether a data set's reader is known to return a sparse matrix."""
    given = dataset.reader.options
    if dataset.reader.format == "libsvm":
        return not given.get("dense", False)
    if dataset.reader.format == "nips2003":
        return "n_features" in given
    made = {source.generator for source in dataset.sources}
    return "sparse_classification" in made


def _of(penalty: Penalty | schema.Penalty, sparse: bool) -> Asked:
    return Asked(
        sparse=sparse,
        l1=penalty.l1 not in (0, "0"),
        box=math.isfinite(penalty.lower) or math.isfinite(penalty.upper),
    )


def _declaring(flag: str) -> list[str]:
    """The algorithms of this package that declare a capability."""
    found = (name for name, path in solvers.PLACES.items() if ".lanes." in path)
    return [name for name in found if getattr(solvers.load(name), flag, False)]
