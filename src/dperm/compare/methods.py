"""Private methods by name: the solver, the setting of no tuning, and a small grid.

Settings and grids are the arena's (``conf/paper/arena``), in units of the public
scales, so that one serves every problem. A method that the arena does not have takes
those of its like.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from dperm.compare.contestants import KINDS, Contestant, Setting, contestant
from dperm.core import solvers
from dperm.core.erm.problem import Problem
from dperm.core.experiment import locate, schema
from dperm.core.experiment.config import read
from dperm.core.experiment.grid import points
from dperm.core.experiment.locate import ConfigError, available, hint
from dperm.pipeline import checks

RECORDWISE = ("sgd", "svrg")  # in the names of algorithms that step record by record
KEYS = {"lanes": ("passes", "step", "clip"), "frank_wolfe": ("steps", "radius")}


@dataclass(frozen=True)
class Method:
    """A method that can be put on a problem.

    Attributes
    ----------
    section : schema.Solver
    default : mapping
        The setting of no tuning.
    grid : list of mapping
    """

    section: schema.Solver
    default: Setting
    grid: Sequence[Setting]

    @property
    def name(self) -> str:
        """Of its YAML, or of its file."""
        return self.section.name

    def on(self, problem: Problem) -> Contestant:
        """The method on a problem."""
        return contestant(self.section.algorithm, self.section.options, problem)


def known() -> list[str]:
    """Names of the solvers that solve a composite problem."""
    every = (_section(name) for name in available("solver"))
    return [section.name for section in every if _family(section) in KINDS]


def method(
    name: str,
    defaults: Mapping[str, Any] | None = None,
    grids: Mapping[str, Any] | None = None,
) -> Method:
    """The method of that name.

    Parameters
    ----------
    name : str
        Of a solver's YAML, or of a Python file in the current folder.
    defaults, grids : mapping, optional
        Settings by solver's name that take the place of the arena's.

    Raises
    ------
    ConfigError
        If there is none, or it solves no such problem.
    """
    section = _section(name)
    if _family(section) not in KINDS:
        raise ConfigError(
            f"solver {name}: solves no problem of this kind; expected one of "
            f"{', '.join(known())}"
        )
    checks.held(section)
    like = _like(section)
    default = {**like[0], **(defaults or {}).get(name, {})}
    check_setting(section, default)
    grid = _settings(section, default, like[1], (grids or {}).get(name))
    return Method(section, default, grid)


def check_setting(section: schema.Solver, setting: Mapping[str, Any]) -> None:
    """Refuse a setting that names what the solver has not, or gives it a wrong value.

    Raises
    ------
    ConfigError
        With the nearest known key.
    """
    where = f"solver {section.name}: setting"
    module = solvers.load(section.algorithm)
    options = solvers.make_options(module, section.options)
    family = solvers.family(module)
    able = KEYS.get(family) or [field.name for field in fields(options)]
    for key, value in setting.items():
        if key not in able:
            raise ConfigError(
                f"{where} {key}: expected one of {', '.join(able)}{hint(key, able)}"
            )
        if family in KEYS and not _is_positive(value):
            raise ConfigError(
                f"{where} {key}: expected a positive number, found {value!r}"
            )
    if family not in KEYS:
        try:
            replace(options, **setting)
        except (ValueError, TypeError) as error:
            raise ConfigError(f"{where}: {error}") from error


def _is_positive(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 < value < math.inf


def _settings(
    section: schema.Solver, default: Setting, usual: Any, chosen: Any
) -> list[Setting]:
    """The points of a grid; axes that a chosen one leaves out stay at the default."""
    axes = dict(chosen or usual)
    every = [dict(one) for one in points(axes, f"grids.{section.name}", axes=None)]
    if chosen:
        every = [{**default, **one} for one in every]
    for setting in every:
        check_setting(section, setting)
    return [*every] or [default]


def _section(name: str) -> schema.Solver:
    """What the YAML says, or what a file of that name alone does."""
    names = available("solver")
    if name in names:
        section: schema.Solver = read("solver", name)
    elif name.isidentifier() and Path(f"{name}.py").is_file():
        if str(Path.cwd()) not in sys.path:
            sys.path.append(str(Path.cwd()))
        section = schema.Solver(name=name, label=name, algorithm=name)
    else:
        raise ConfigError(
            f"solver {name}: expected one of {', '.join(names)}, or a file {name}.py "
            f"here{hint(name, names)}"
        )
    checks.solver(section)
    return section


def _family(section: schema.Solver) -> str:
    return solvers.family(solvers.load(section.algorithm))


def _like(section: schema.Solver) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Default and grid of the arena's method that is most like it."""
    defaults, grids = settings()["defaults"], settings()["grids"]
    for name in _alike(section, grids):
        if name in grids:
            return defaults.get(name, {}), grids[name]
    return {}, {}


def _alike(section: schema.Solver, known: Iterable[str]) -> Iterator[str]:
    """Names of what a method is like, the nearest first."""
    algorithm = section.algorithm
    yield section.name
    if algorithm in solvers.places():
        yield from (name for name in known if _section(name).algorithm == algorithm)
    by_record = any(word in algorithm for word in RECORDWISE)
    others = {"lanes": "dp_svrg" if by_record else "dp_cd", "frank_wolfe": "dp_fw"}
    yield others.get(_family(section), "")


def settings() -> dict[str, Any]:
    """The arena's ``work``, ``defaults`` and ``grids`` by solver's name."""
    return _contest(locate.conf_dirs()[0])


@functools.cache
def _contest(folder: Path) -> dict[str, Any]:
    return dict(read("paper", "arena").sweeps["contest"].options)
