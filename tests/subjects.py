"""The audit's mechanisms of every solver, made once in each process."""

from functools import cache
from pathlib import Path

from omegaconf import OmegaConf

from dperm.audit.mechanism import Mechanism
from dperm.audit.solvers import mechanisms


@cache
def subjects(path: Path) -> list[Mechanism]:
    """The mechanisms of a solver's YAML under both calibrations."""
    found = OmegaConf.to_container(OmegaConf.load(path))
    return mechanisms(
        found["name"], found["algorithm"], found.get("options", {})
    )
