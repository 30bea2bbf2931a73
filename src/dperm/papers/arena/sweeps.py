"""Sweeps of the arena: other libraries, beside the methods of ``race`` and its ends."""

from __future__ import annotations

from typing import Any

from dperm.benchmark import peers as libraries
from dperm.benchmark.race import Row
from dperm.experiments.inputs import Inputs
from dperm.papers.comparison.sweeps import case_of
from dperm.solvers.batched.trials import seeds_of


def peers(
    point: dict[str, Any],
    seed: int,
    inputs: Inputs,
    epsilons: list[float],
    fresh: int,
) -> list[Row]:
    """Fits of other libraries at every epsilon, or the reason why there are none."""
    case = case_of(inputs, point)
    drawn = [run_seed % 2**31 for run_seed in seeds_of(seed, fresh)]
    table = []
    for name, (python, reason) in libraries.environments().items():
        library = libraries.LIBRARIES[name]
        if reason:
            gap = {
                **case.known(library.name),
                "status": "gap",
                "reason": reason,
            }
            table.append(gap)
        else:
            table += libraries.rows(case, python, epsilons, drawn, library)
    return table
