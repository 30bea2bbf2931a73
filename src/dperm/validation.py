"""What a configuration may say beyond its types: names, ranges, grids.

Every refusal is a ``ConfigError`` whose one-line text names the file, the key, what was
found and what was expected. What needs solvers, losses or papers' code to judge is
checked by ``dperm.pipeline.checks``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from dperm import grid, schema
from dperm.locate import ConfigError, available, conf_file, group_file, hint

CALIBRATIONS = ("paper", "strict")
BACKENDS = ("local", "dask")


def validate(config: schema.Config) -> None:
    """Check a whole configuration, as far as types cannot.

    Raises
    ------
    ConfigError
        For the first thing that is wrong.
    """
    for group in SECTIONS:
        validate_section(group, getattr(config, group))
    for name, run in config.paper.runs.items():
        where = f"conf/{group_file('paper', config.paper.name)}: runs.{name}.grid"
        check_clips(grid.points(run.grid, where), where, config.problem)
    validate_settings(config)


def validate_section(group: str, section: Any) -> None:
    """Check one group's section.

    Raises
    ------
    ConfigError
        For the first thing that is wrong.
    """
    if group in SECTIONS:
        SECTIONS[group](section)


def validate_settings(config: schema.Config) -> None:
    """Check what belongs to no group.

    Raises
    ------
    ConfigError
        For the first thing that is wrong.
    """
    if config.workers < 1:
        raise ConfigError(f"workers: expected 1 or more, found {config.workers}")
    if not config.setting.passes > 0:
        raise ConfigError(
            f"setting.passes: expected a positive number, found {config.setting.passes}"
        )
    one_of("parallel.backend", config.parallel.backend, BACKENDS)
    if config.parallel.backend == "dask" and not config.parallel.scheduler:
        raise ConfigError(
            "parallel.scheduler: expected the address of a Dask scheduler, such as "
            "tcp://host:8786, found none"
        )
    one_of("setting.calibration", config.setting.calibration, CALIBRATIONS)


def check_name(group: str, name: str, where: str) -> None:
    """Refuse a name that no YAML of the group has.

    Raises
    ------
    ConfigError
        With the nearest known name.
    """
    known = available(group)
    if name not in known:
        raise ConfigError(
            f"{where}: {group} {name!r} is unknown; expected one of "
            f"{', '.join(known)}{hint(name, known)}"
        )


def one_of(where: str, found: str, known: Any) -> None:
    """Refuse a value that is none of the known ones.

    Raises
    ------
    ConfigError
        With the nearest known one.
    """
    if found not in known:
        raise ConfigError(
            f"{where}: expected one of {', '.join(known)}, found {found!r}"
            f"{hint(str(found), known)}"
        )


def _validate_name(where: str, name: str) -> None:
    """Names become parts of paths: none may lead out of its folder."""
    if not re.fullmatch(r"[A-Za-z0-9_-]+", str(name)):
        raise ConfigError(
            f"conf/{where}: expected letters, digits, _ and -, found {name!r}"
        )


def _validate_scale(scale: schema.Scale) -> None:
    _validate_name("scale: name", scale.name)
    _validate_name("scale: folder", scale.folder or "results")


def _validate_solver(solver: schema.Solver) -> None:
    _validate_name("solver: name", solver.name)


def _validate_problem(problem: schema.Problem) -> None:
    _validate_name("problem: name", problem.name)
    where = f"conf/problem/{problem.name}.yaml"
    if not problem.privacy.epsilon > 0:
        raise ConfigError(
            f"{where}: privacy.epsilon: expected a positive number or .inf, "
            f"found {problem.privacy.epsilon}"
        )
    delta = number(problem.privacy.delta, 1000, f"{where}: privacy.delta")
    if not 0 < delta < 1:
        raise ConfigError(f"{where}: privacy.delta: expected in (0, 1), found {delta}")
    for key in ("l1", "l2"):
        strength = number(
            getattr(problem.penalty, key), 1000, f"{where}: penalty.{key}"
        )
        if not 0 <= strength < float("inf"):
            raise ConfigError(
                f"{where}: penalty.{key}: expected 0 or more, found {strength}"
            )
    if not problem.penalty.lower <= 0 <= problem.penalty.upper:
        raise ConfigError(f"{where}: penalty: the box must hold 0, where runs start")


def _validate_paper(paper: schema.Paper) -> None:
    _validate_name("paper: name", paper.name)
    for kind in ("figures", "tables", "sweeps"):
        for name in getattr(paper, kind):
            _validate_name(f"paper: {kind}", name)
    where = f"conf/{group_file('paper', paper.name)}"
    for name in (*paper.problems, *paper.offline):
        check_name("problem", name, f"{where}: problems")
    for calibration in paper.calibrations:
        one_of(f"{where}: calibrations", calibration, CALIBRATIONS)
    for key in ("replicates", "fresh"):
        if getattr(paper, key) < 1:
            raise ConfigError(f"{where}: {key}: expected 1 or more")
    one_of(f"{where}: evaluated", paper.evaluated, ("all", "best"))
    _validate_runs(paper, where)
    _validate_files(paper, where)
    _validate_sweeps(paper, where)
    _validate_products(paper, where)


def _validate_runs(paper: schema.Paper, where: str) -> None:
    for name, run in paper.runs.items():
        check_name("solver", name, f"{where}: runs")
        left_out = itertools.chain.from_iterable(run.leave_out.values())
        for calibration in (*(run.calibrations or ()), *left_out):
            one_of(f"{where}: runs.{name}: calibrations", calibration, CALIBRATIONS)
        for chosen in run.problems or ():
            check_name("problem", chosen, f"{where}: runs.{name}.problems")
        _validate_grid(run.grid, f"{where}: runs.{name}.grid")


def _validate_files(paper: schema.Paper, where: str) -> None:
    named = {f"published.{name}": file for name, file in paper.published.items()}
    if paper.claims:
        named["claims"] = paper.claims
    for name, file in named.items():
        if paper_file(paper, file) is None:
            raise ConfigError(
                f"{where}: {name}: no file conf/paper/{paper.name}/{file}"
            )


def _validate_sweeps(paper: schema.Paper, where: str) -> None:
    for name, sweep in paper.sweeps.items():
        for spec in (sweep.grid, sweep.small or sweep.grid):
            try:
                grid.points(spec, f"{where}: sweeps.{name}.grid", axes=None)
            except ValueError as error:
                raise ConfigError(str(error)) from error
        for chosen in (*sweep.problems, *sweep.prepared):
            check_name("problem", chosen, f"{where}: sweeps.{name}.problems")


def _validate_products(paper: schema.Paper, where: str) -> None:
    for kind in ("figures", "tables"):
        for name, product in getattr(paper, kind).items():
            place = f"{where}: {kind}.{name}"
            one_of(f"{place}.calibration", product.calibration, CALIBRATIONS)
            for chosen in product.problems or ():
                check_name("problem", chosen, f"{place}.problems")
            for chosen in product.sweeps:
                one_of(f"{place}.sweeps", chosen, paper.sweeps)


def paper_file(paper: schema.Paper, name: str) -> Path | None:
    """A file in the paper's folder of configuration; None without one."""
    return conf_file(f"paper/{paper.name}/{name}")


def _validate_grid(spec: Any, where: str) -> None:
    try:
        found = grid.points(spec, where)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    for point in found:
        for name, value in point.items():
            if not value > 0:
                raise ConfigError(f"{where}.{name}: expected positive, found {value}")
            if value == float("inf") and name != "clip":
                _refuse_infinite(f"{where}.{name}")


def check_clips(
    found: list[dict[str, Any]], where: str, problem: schema.Problem
) -> None:
    """Refuse an infinite clip on a problem with noise, whose scale is the clip's.

    Raises
    ------
    ConfigError
        If there is one among the points of the grid.
    """
    private = problem.privacy.epsilon != float("inf")
    if private and any(point["clip"] == float("inf") for point in found):
        _refuse_infinite(f"{where}.clip")


def _refuse_infinite(where: str) -> NoReturn:
    raise ConfigError(
        f"{where}: .inf is accepted only for clip, without noise "
        "(privacy.epsilon: .inf)"
    )


def number(value: Any, n: int, where: str) -> float:
    """A number, or the value of ``1/n`` or ``1/n^2`` for n records.

    Raises
    ------
    ConfigError
        If it is neither.
    """
    named = {"1/n": 1.0 / n, "1/n^2": 1.0 / n**2}
    if isinstance(value, str) and value.replace(" ", "") in named:
        return named[value.replace(" ", "")]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"{where}: expected a number, 1/n or 1/n^2, found {value!r}")
    return float(value)


SECTIONS: dict[str, Callable[[Any], None]] = {
    "paper": _validate_paper,
    "problem": _validate_problem,
    "solver": _validate_solver,
    "scale": _validate_scale,
}
