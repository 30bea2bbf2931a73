"""Whether a batched solver supports a problem, before anything runs."""

from __future__ import annotations

import math
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dperm.solvers import registry

if TYPE_CHECKING:
    from dperm.config import schema


def obstacle(
    module: ModuleType,
    options: Any,
    problem: schema.ProblemSection,
    sparse: bool | None = None,
) -> str:
    """Why a solver cannot run a batch on a problem; empty if it can.

    Parameters
    ----------
    module : module of a solver
    options : its Options
    problem : schema.Problem
    sparse : bool, optional
        Whether the prepared data are sparse; None: as inferred from the reader.
    """
    name = module.__name__.rpartition(".")[2]
    family = registry.family(module)
    if family != "batched":
        return (
            f"{name} is no batched solver but of the family {family}, which takes no "
            "grid of steps and clips: call it from a sweep"
        )
    sparse = kept_sparse(problem.dataset) if sparse is None else sparse
    if sparse and not getattr(module, "SPARSE", False):
        return (
            "its data are kept sparse: expected a solver that declares SPARSE = True, "
            f"such as dp_cd, found {name}"
        )
    penalty = problem.penalty
    refuses = getattr(module, "refuses", None)
    ends = (penalty.lower, penalty.upper)
    smooth = penalty.l1 in (0, "0") and not any(map(math.isfinite, ends))
    return refuses(options, smooth) if refuses else ""


def kept_sparse(dataset: schema.Dataset) -> bool:
    """Whether a data set's reader is known to return a sparse matrix."""
    options = dataset.reader.options
    if dataset.reader.format == "libsvm":
        return not options.get("dense", False)
    if dataset.reader.format == "nips2003":
        return "n_features" in options
    generators = {source.generator for source in dataset.sources}
    return "sparse_classification" in generators
