"""The solvers of the paper by how they draw coordinates, as their YAML says."""

from __future__ import annotations

import functools

from dperm.core.experiment import config as configuration
from dperm.core.experiment import schema

FAMILIES = ("uniform", "importance", "nice")


@functools.cache
def solver(name: str) -> schema.Solver:
    """The section of a solver's YAML."""
    return configuration.read("solver", name)


def family(name: str) -> str:
    """One of ``FAMILIES``; empty for what is no sketch."""
    spec = solver(name)
    if spec.algorithm != "dp_skgd":
        return ""
    if spec.options.get("sampling") == "nice":
        return "nice"
    return spec.options.get("probabilities", "uniform")


def blocks(name: str, p: int) -> float:
    """Number of blocks of p coordinates; p / tau for tau-nice sampling."""
    options = solver(name).options
    if family(name) == "nice":
        return p / options["size"]
    return float(options.get("blocks") or p)
