"""The audit's subjects of every solver, made once in each process."""

from functools import cache
from pathlib import Path

from omegaconf import OmegaConf

from dperm.audit import registry
from dperm.audit.subjects import Subject


@cache
def subjects(path: Path) -> list[Subject]:
    """The subjects of a solver's YAML under both calibrations."""
    found = OmegaConf.to_container(OmegaConf.load(path))
    name, algorithm = found["name"], found["algorithm"]
    return registry.subjects(name, algorithm, found.get("options", {}))
