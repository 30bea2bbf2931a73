"""Composing and checking the configuration.

Hydra composes ``conf/`` into the typed classes of ``dperm.schema``; ``validate``
refuses what types cannot: unknown names, ranges, grids. Every refusal is a
``ConfigError`` whose one-line text names the file, the key, what was found and what was
expected.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf
from yaml import YAMLError

from dperm import grid, schema, solvers
from dperm.erm.losses import BOUNDED as LOSSES
from dperm.locate import (
    ConfigError,
    available,
    conf_dir,
    conf_dirs,
    conf_file,
    group_file,
    hint,
)

GROUPS = ("paper", "dataset", "problem", "solver", "scale")
CALIBRATIONS = ("paper", "strict")
BACKENDS = ("local", "dask")
# What Hydra reads as an order to place settings elsewhere, escaped or not.
_REACHING = re.compile(
    r"@\s*package|(?:^|[\s{\[,'\"])/?[\w/-]+@[\w.]*['\"]?\s*:|\\(x|u00|U000000)40"
)


@functools.cache
def register() -> None:
    """Give Hydra the typed classes and the reader's own folder.

    With the classes it refuses unknown keys and wrong types.
    """
    from hydra.core.config_store import ConfigStore
    from hydra.core.plugins import Plugins
    from hydra.plugins.search_path_plugin import SearchPathPlugin

    class OwnFolder(SearchPathPlugin):
        def manipulate_search_path(self, search_path: Any) -> None:
            for folder in conf_dirs()[:-1]:
                search_path.prepend("own", f"file://{folder}", anchor="main")

    ConfigStore.instance().store(name="schema", node=schema.Config)
    Plugins.instance().register(OwnFolder)


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


def compose(overrides: list[str]) -> schema.Config:
    """Compose one configuration and check it.

    Parameters
    ----------
    overrides : list of str
        Hydra overrides, such as ``problem=california_norm``.

    Raises
    ------
    ConfigError
        For anything that is wrong with it.
    """
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    register()
    _refuse_reach()
    overrides = [
        re.sub(r"(?<=[=,\[])(-?)\.inf\b", r"\1inf", text) for text in overrides
    ]
    for override in overrides:
        group, _, name = override.partition("=")
        if group in GROUPS and name:
            check_name(group, name, "command line")
    try:
        with initialize_config_dir(str(conf_dir()), version_base="1.3"):
            made = typed(hydra_compose("config", [in_folders(o) for o in overrides]))
            _check_own_names(made, overrides)
            return replace(made, overrides=overrides)
    except ConfigError:
        raise
    # Beside its own errors Hydra raises these on files that make no sense.
    except (
        *(HydraException, OmegaConfBaseException, YAMLError),
        *(OSError, ValueError, TypeError, AttributeError, RecursionError),
    ) as error:
        raise ConfigError(explain(error, overrides)) from error


def in_folders(override: str) -> str:
    """The override as Hydra has to read it: a paper is a folder of its own."""
    group, _, names = override.partition("=")
    if group != "paper" or not re.fullmatch(r"[\w,-]+", names):
        return override
    return "paper=" + ",".join(f"{name}/paper" for name in names.split(","))


def _check_own_names(config: schema.Config, overrides: list[str]) -> None:
    """Refuse a file that carries another name than its own."""
    asked = {group: name for group, _, name in (o.partition("=") for o in overrides)}
    for group, name in asked.items():
        made = getattr(config, group, None) if group in GROUPS else None
        if made is not None and made.name != name:
            raise ConfigError(
                f"conf/{group_file(group, name)}: name: expected {name}, "
                f"found {made.name!r}"
            )


def _refuse_reach() -> None:
    """Refuse a group's file that sets more than its group, such as folders of output.

    Raises
    ------
    ConfigError
        For a ``@package`` line, a defaults list that reaches for another package, or
        a file that is no text.
    """
    files = (*conf_dir().glob("*/*.yaml"), *conf_dir().glob("paper/*/paper.yaml"))
    for path in sorted(files):
        where = f"conf/{path.relative_to(conf_dir())}"
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ConfigError(f"{where}: expected UTF-8 text: {error}") from error
        found = _REACHING.search(text.replace("@dataset:", ":"))
        if found:
            raise ConfigError(
                f"{where}: expected settings of its group only, "
                f"found {found[0].strip()!r}"
            )


def explain(error: Exception, overrides: list[str]) -> str:
    """One line for an error of Hydra, OmegaConf or YAML: file, key, what is wrong."""
    text = f"{error}\n{error.__cause__ or ''}"
    file = re.search(r"In '([^']+)'", text)
    place = f"conf/{file[1]}.yaml" if file else " ".join(overrides) or "conf"
    if isinstance(error, YAMLError):
        return f"not valid YAML: {' '.join(str(error).split())}"
    key = re.search(r"full_key: (\S+)", text)
    what = re.search(r"^(Key|Value|Cannot|Missing|Could|Interp|Unsupp).*$", text, re.M)
    unknown = re.search(r"Key '(\w+)' not in '(\w+)'", text)
    parts = [place, key[1] if key else "", what[0] if what else text.splitlines()[0]]
    message = ": ".join(part for part in parts if part)
    return message + (_expected_keys(unknown[1], unknown[2]) if unknown else "")


def _expected_keys(found: str, node: str) -> str:
    """The keys of a typed class, and the one nearest to what was found."""
    if not hasattr(schema, node):  # a class of Hydra's own
        return ""
    known = list(getattr(schema, node).__dataclass_fields__)
    return f"; expected one of {', '.join(known)}{hint(found, known)}"


def _refuse_added_keys(node: Any, value: Any, where: str = "") -> None:
    """Refuse keys that ``+key=value`` put beside those of a typed class."""
    for field in node:
        inner = getattr(value, field, None)
        if field not in value.__dataclass_fields__:
            place = f"{where}{field}"
            expected = _expected_keys(field, type(value).__name__)
            raise ConfigError(f"command line: {place}: unknown key{expected}")
        if hasattr(inner, "__dataclass_fields__"):
            _refuse_added_keys(node[field], inner, f"{where}{field}.")


def typed(config: DictConfig) -> schema.Config:
    """The dataclasses of a composed configuration, checked.

    Raises
    ------
    ConfigError
        See ``validate``.
    """
    result = cast(schema.Config, OmegaConf.to_object(config))
    _refuse_added_keys(config, result)
    mirror = os.environ.get("DPERM_MIRROR")
    if result.data.mirror is None and mirror:
        result.data.mirror = mirror
    validate(result)
    if not result.scale.thorough:
        _leave_out(result.paper)
    return result


def _leave_out(paper: schema.Paper) -> None:
    """Drop what the paper marks as not needed for a smoke run."""
    for kind in ("sweeps", "figures", "tables"):
        kept = {name: made for name, made in getattr(paper, kind).items() if made.smoke}
        setattr(paper, kind, kept)


def validate(config: schema.Config) -> None:
    """Check everything types cannot.

    Raises
    ------
    ConfigError
        For the first thing that is wrong.
    """
    _validate_names(config)
    _validate_problem(config.problem)
    _validate_solver(config.solver)
    _validate_paper(config.paper, config.problem)
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


def _validate_names(config: schema.Config) -> None:
    """Names become parts of paths: none may lead out of its folder."""
    paper = config.paper
    for where, name in (
        ("paper: name", paper.name),
        ("problem: name", config.problem.name),
        ("solver: name", config.solver.name),
        ("scale: folder", config.scale.folder or "results"),
        *((f"paper: {kind}", name) for kind in ("figures", "tables", "sweeps")
          for name in getattr(paper, kind)),
    ):  # fmt: skip
        if not re.fullmatch(r"[A-Za-z0-9_-]+", str(name)):
            raise ConfigError(
                f"conf/{where}: expected letters, digits, _ and -, found {name!r}"
            )


def _validate_problem(problem: schema.Problem) -> None:
    where = f"conf/problem/{problem.name}.yaml"
    one_of(f"{where}: loss", problem.loss, LOSSES)
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


def _validate_solver(solver: schema.Solver) -> None:
    where = f"conf/solver/{solver.name}.yaml"
    try:
        solvers.make_options(solvers.load(solver.algorithm), solver.options)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{where}: {error}") from error


def _validate_paper(paper: schema.Paper, problem: schema.Problem) -> None:
    where = f"conf/{group_file('paper', paper.name)}"
    for name in (*paper.problems, *paper.offline):
        check_name("problem", name, f"{where}: problems")
    for calibration in paper.calibrations:
        one_of(f"{where}: calibrations", calibration, CALIBRATIONS)
    for key in ("replicates", "fresh"):
        if getattr(paper, key) < 1:
            raise ConfigError(f"{where}: {key}: expected 1 or more")
    one_of(f"{where}: evaluated", paper.evaluated, ("all", "best"))
    for name, run in paper.runs.items():
        check_name("solver", name, f"{where}: runs")
        left_out = itertools.chain.from_iterable(run.leave_out.values())
        for calibration in (*(run.calibrations or ()), *left_out):
            one_of(f"{where}: runs.{name}: calibrations", calibration, CALIBRATIONS)
        for chosen in run.problems or ():
            check_name("problem", chosen, f"{where}: runs.{name}.problems")
        _validate_grid(run.grid, f"{where}: runs.{name}.grid", problem)
    named = {f"published.{name}": file for name, file in paper.published.items()}
    if paper.claims:
        named["claims"] = paper.claims
    for name, file in named.items():
        if paper_file(paper, file) is None:
            raise ConfigError(
                f"{where}: {name}: no file conf/paper/{paper.name}/{file}"
            )
    for name, sweep in paper.sweeps.items():
        for spec in (sweep.grid, sweep.small or sweep.grid):
            try:
                grid.points(spec, f"{where}: sweeps.{name}.grid", axes=None)
            except ValueError as error:
                raise ConfigError(str(error)) from error
        for chosen in (*sweep.problems, *sweep.prepared):
            check_name("problem", chosen, f"{where}: sweeps.{name}.problems")
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


def _validate_grid(spec: Any, where: str, problem: schema.Problem) -> None:
    try:
        found = grid.points(spec, where)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    private = problem.privacy.epsilon != float("inf")
    for point in found:
        for name, value in point.items():
            if not value > 0:
                raise ConfigError(f"{where}.{name}: expected positive, found {value}")
            if value == float("inf") and (private or name != "clip"):
                raise ConfigError(
                    f"{where}.{name}: .inf is accepted only for clip, without noise "
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


def read(group: str, name: str) -> Any:
    """One group's section by itself, without a whole configuration around it.

    Parameters
    ----------
    group : {"paper", "problem", "solver", "scale"}
    name : str
        Of its YAML.

    Raises
    ------
    ConfigError
        For anything that is wrong with it.
    """
    return getattr(compose([f"{group}={name}"]), group)
