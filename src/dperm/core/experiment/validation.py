"""What a configuration may say beyond its types: names, ranges, grids.

Every refusal is a ``ConfigError`` whose one-line text names the file, the key, what was
found and what was expected. What needs solvers, losses or papers' code to judge is
checked by ``dperm.pipeline.checks``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from dperm.core.experiment import claimed, grid, schema
from dperm.core.experiment.locate import (
    ConfigError,
    available,
    conf_file,
    group_file,
    hint,
)

CALIBRATIONS = ("paper", "strict")
BACKENDS = ("local", "dask")
SHOWN = "the paper's problems and offline"
MOST_PASSES = 10**6  # over the data: no run would end


def validate(config: schema.Config, narrowed: bool = False) -> None:
    """Check a whole configuration, as far as types cannot.

    Parameters
    ----------
    config : Config
    narrowed : bool
        Whether the paper's problems are not those of its file: then what it says of
        others is no mistake.

    Raises
    ------
    ConfigError
        For the first thing that is wrong.
    """
    for group in SECTIONS:
        validate_section(group, getattr(config, group), narrowed)
    for name, run in config.paper.runs.items():
        where = f"conf/{group_file('paper', config.paper.name)}: runs.{name}.grid"
        check_clips(grid.points(run.grid, where), where, config.problem)
    validate_settings(config)


def validate_section(group: str, section: Any, narrowed: bool = False) -> None:
    """Check one group's section; ``narrowed`` as for all of them.

    Raises
    ------
    ConfigError
        For the first thing that is wrong.
    """
    if group == "paper":
        _validate_paper(section, available("problem") if narrowed else None)
    elif group in SECTIONS:
        SECTIONS[group](section)


def validate_settings(config: schema.Config) -> None:
    """Check what belongs to no group.

    Raises
    ------
    ConfigError
        For the first thing that is wrong.
    """
    _at_least("seed", config.seed, 0)
    _at_least("workers", config.workers, 1)
    _at_least("data.retries", config.data.retries, 0)
    if not 0 < config.data.timeout < float("inf"):
        raise ConfigError(
            f"data.timeout: expected seconds, above 0, found {config.data.timeout}"
        )
    for key in ("data.dir", "output.results", "output.figures"):
        section, name = key.split(".")
        if not getattr(getattr(config, section), name):
            raise ConfigError(f"{key}: expected a folder, found nothing")
    _validate_setting(config.setting)
    one_of("parallel.backend", config.parallel.backend, BACKENDS)
    if config.parallel.backend == "dask" and not config.parallel.scheduler:
        raise ConfigError(
            "parallel.scheduler: expected the address of a Dask scheduler, such as "
            "tcp://host:8786, found none"
        )


def _validate_setting(setting: schema.Setting) -> None:
    one_of("setting.calibration", setting.calibration, CALIBRATIONS)
    for name in ("passes", "step", "clip"):
        value = getattr(setting, name)
        if not value > 0 or (name != "clip" and value == float("inf")):
            raise ConfigError(
                f"setting.{name}: expected a positive number, found {value}"
            )
    if setting.passes > MOST_PASSES:
        _refuse_passes("setting.passes", setting.passes)
    noise = setting.noise_multiplier
    if noise is not None and not 0 <= noise < float("inf"):
        raise ConfigError(
            f"setting.noise_multiplier: expected 0 or more, found {noise}"
        )


def _refuse_passes(where: str, found: float) -> NoReturn:
    raise ConfigError(
        f"{where}: expected at most {MOST_PASSES} passes, found {found:g}"
    )


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


def _at_least(where: str, found: int | None, least: int) -> None:
    """Refuse a number below the least; None stands for another's value."""
    if found is not None and found < least:
        raise ConfigError(f"{where}: expected {least} or more, found {found}")


def _some(
    where: str, found: Sequence[Any] | None, known: Iterable[str], kind: str = ""
) -> None:
    """Refuse an empty list, a name twice, or one that is not known; None passes."""
    known = list(known)
    if found is None:
        return
    if not found:
        raise ConfigError(f"{where}: expected one or more of them, found none")
    for name in found:
        if kind and name not in known:
            listed = f"{kind} ({', '.join(known)})"
            near = hint(str(name), known)
            raise ConfigError(
                f"{where}: expected one of {listed}, found {name!r}{near}"
            )
        one_of(where, name, known)
        if list(found).count(name) > 1:
            raise ConfigError(f"{where}: {name} is named twice; expected once")


def _validate_name(where: str, name: str) -> None:
    """Names become parts of paths: none may lead out of its folder."""
    if not re.fullmatch(r"[A-Za-z0-9_-]+", str(name)):
        raise ConfigError(
            f"conf/{where}: expected letters, digits, _ and -, found {name!r}"
        )


def _validate_scale(scale: schema.Scale) -> None:
    _validate_name("scale: name", scale.name)
    _validate_name("scale: folder", scale.folder or "results")
    where = f"conf/scale/{scale.name}.yaml"
    one_of(f"{where}: problems", scale.problems, ("all", "offline"))
    for key in ("replicates", "fresh"):
        _at_least(f"{where}: {key}", getattr(scale, key), 1)
    for axis, count in scale.keep.items():
        one_of(f"{where}: keep", axis, grid.AXES)
        _at_least(f"{where}: keep.{axis}", count, 1)


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


def _validate_paper(paper: schema.Paper, problems: list[str] | None = None) -> None:
    _validate_name("paper: name", paper.name)
    for kind in ("figures", "tables", "sweeps"):
        for name in getattr(paper, kind):
            _validate_name(f"paper: {kind}", name)
    where = f"conf/{group_file('paper', paper.name)}"
    if not any((paper.runs, paper.sweeps, paper.figures, paper.tables, paper.claims)):
        raise ConfigError(f"{where}: runs: expected runs, sweeps or tables, found none")
    for key in ("problems", "offline"):
        names = getattr(paper, key)
        for name in names:
            check_name("problem", name, f"{where}: {key}")
        needed = key == "problems" and paper.runs and not problems
        _some(f"{where}: {key}", names if names or needed else None, names)
    _some(f"{where}: calibrations", paper.calibrations, CALIBRATIONS)
    for key in ("replicates", "fresh"):
        _at_least(f"{where}: {key}", getattr(paper, key), 1)
    one_of(f"{where}: evaluated", paper.evaluated, ("all", "best"))
    shown = problems or list(dict.fromkeys([*paper.problems, *paper.offline]))
    _validate_runs(paper, shown, where)
    _validate_files(paper, where)
    _validate_sweeps(paper, where)
    _validate_products(paper, shown, where)


def _validate_runs(paper: schema.Paper, shown: list[str], where: str) -> None:
    for name, run in paper.runs.items():
        check_name("solver", name, f"{where}: runs")
        place = f"{where}: runs.{name}"
        _some(f"{place}.calibrations", run.calibrations, CALIBRATIONS)
        _some(f"{place}.problems", run.problems, shown, SHOWN)
        for problem, left_out in run.leave_out.items():
            one_of(f"{place}.leave_out", problem, shown)
            _some(f"{place}.leave_out.{problem}", left_out, CALIBRATIONS)
        _validate_grid(run.grid, f"{place}.grid")


def _validate_files(paper: schema.Paper, where: str) -> None:
    named = {f"published.{name}": file for name, file in paper.published.items()}
    if paper.claims:
        named["claims"] = paper.claims
    for name, file in named.items():
        if paper_file(paper, file) is None:
            raise ConfigError(
                f"{where}: {name}: no file conf/paper/{paper.name}/{file}"
            )
    path = paper_file(paper, paper.claims) if paper.claims else None
    if path is not None:
        claimed.check(f"conf/paper/{paper.name}/{paper.claims}", path.read_bytes())


def _validate_sweeps(paper: schema.Paper, where: str) -> None:
    for name, sweep in paper.sweeps.items():
        place = f"{where}: sweeps.{name}"
        _at_least(f"{place}.replicates", sweep.replicates, 1)
        specs = {"grid": sweep.grid, "small": sweep.small}
        for key in ("grid", "small") if sweep.small is not None else ("grid",):
            found = _points(specs[key], f"{place}.{key}", axes=None)
            for group in ("problem", "solver"):  # axes that name something
                for value in found.values(group):
                    check_name(group, str(value), f"{place}.{key}.{group}")
        for key in ("problems", "prepared"):
            _some(f"{place}.{key}", getattr(sweep, key) or None, available("problem"))


def _validate_products(paper: schema.Paper, shown: list[str], where: str) -> None:
    for kind in ("figures", "tables"):
        for name, product in getattr(paper, kind).items():
            place = f"{where}: {kind}.{name}"
            one_of(f"{place}.calibration", product.calibration, CALIBRATIONS)
            _some(f"{place}.problems", product.problems, shown, SHOWN)
            _some(f"{place}.sweeps", product.sweeps or None, paper.sweeps)


def paper_file(paper: schema.Paper, name: str) -> Path | None:
    """A file in the paper's folder of configuration; None without one."""
    return conf_file(f"paper/{paper.name}/{name}")


def _points(spec: Any, where: str, **axes: Any) -> grid.Grid:
    try:
        return grid.points(spec, where, **axes)
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _validate_grid(spec: Any, where: str) -> None:
    found = _points(spec, where)
    for name in grid.AXES:
        for value in found.values(name):
            if not value > 0:
                raise ConfigError(f"{where}.{name}: expected positive, found {value}")
            if value == float("inf") and name != "clip":
                _refuse_infinite(f"{where}.{name}")
            if name == "passes" and value > MOST_PASSES:
                _refuse_passes(f"{where}.passes", value)


def check_clips(found: grid.Grid, where: str, problem: schema.Problem) -> None:
    """Refuse an infinite clip on a problem with noise, whose scale is the clip's.

    Raises
    ------
    ConfigError
        If there is one among the points of the grid.
    """
    private = problem.privacy.epsilon != float("inf")
    if private and float("inf") in found.values("clip"):
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
