"""What each job may read of the configuration: the settings that its key holds.

Each function returns settings by their paths, as :class:`~dperm.config.scope`
writes them. The list of jobs makes keys of these, and the stages give their functions a
view of them and of nothing else. A value is None where the setting is read and no
number depends on it, or where the value of another path stands for it.

A sweep, a figure or a table is made by a function of a paper. Of the settings of its
problems and solvers, and of the paper and the scale, its key holds those whose names
occur in the code that the function reaches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import asdict
from typing import Any

from dperm.config import grid, schema
from dperm.config.config import paper_file
from dperm.config.locate import available
from dperm.config.run_spec import of_group
from dperm.config.scope import NAMES, Scope, leaves, plain
from dperm.experiments import digests, makers, plan
from dperm.storage import source_code
from dperm.storage.files import digest

IN_KEYS = "nothing"  # keys come out of it
Settings = dict[str, Any]


def scope(job: str, settings: Iterable[str]) -> Scope:
    """The scope of a job by its settings."""
    return Scope(job, frozenset(settings))


def section(group: str, name: str, overrides: Iterable[str]) -> Any:
    """The section of a problem or a solver with the overrides of the run."""
    return digests.section(group, name, *of_group(group, overrides))


# --- one problem, one solver ----------------------------------------------------------


def prepared(problem: schema.ProblemSection) -> Settings:
    """Settings of the arrays of a problem; those of its data set are in its digest."""
    path = f"problem.{problem.name}"
    return {
        f"{path}.preparation": asdict(problem.preparation),
        **dict.fromkeys((f"{path}.dataset", f"{path}.loss")),
    }


def optimum(problem: schema.ProblemSection) -> Settings:
    """Settings of the optimum of a problem: neither privacy nor public information."""
    path = f"problem.{problem.name}"
    unused = ("privacy", "preparation", "dataset.reader")
    return {
        f"{path}.loss": problem.loss,
        f"{path}.penalty": asdict(problem.penalty),
        **{f"{path}.{name}": None for name in unused},
    }


def solved(
    config: schema.Config, design: plan.Design | None = None
) -> Settings:
    """Settings of the tuning and the evaluation of the chosen solver and problem.

    ``design`` is that of the plan, if it was made.
    """
    problem = config.problem
    solver = config.solver
    design = design or plan.design(config)
    label = plan.label(config.paper, solver)
    run = f"paper.runs.{solver.name}"
    path = f"problem.{problem.name}"
    return {
        "seed": config.seed,
        "paper.calibrations": design.calibrations,
        "paper.replicates": design.replicates,
        "scale.replicates": None,
        "paper.fresh": design.fresh,
        "paper.most": design.most,
        "scale.fresh": None,
        "paper.race": design.race,
        "paper.evaluated": design.evaluated,
        f"{run}.grid": _text(config, design.points),
        "scale.keep": None,
        f"{run}.stop_above": design.stop_above,
        f"{run}.label": label,
        f"solver.{solver.name}.label": None,
        f"solver.{solver.name}.algorithm": solver.algorithm,
        f"solver.{solver.name}.options": solver.options,
        f"{path}.loss": problem.loss,
        f"{path}.penalty": asdict(problem.penalty),
        f"{path}.privacy": asdict(problem.privacy),
        f"{path}.preparation": asdict(problem.preparation),
        f"{path}.dataset.reader.missing": problem.dataset.reader.missing,
    }


def _text(config: schema.Config, points: list[grid.Point]) -> str:
    """The points of the chosen solver, made once for all problems of its grid."""
    run = config.paper.runs[config.solver.name]
    written = repr((run.grid, config.scale.keep))
    if written not in _TEXTS:
        _TEXTS[written] = repr(points)
    return _TEXTS[written]


_TEXTS: dict[str, str] = {}  # of points, by their grid as it is written


def timed(config: schema.Config) -> Settings:
    """The same of runs that are timed."""
    return {**solved(config), "paper.clocked": config.paper.clocked}


# --- sweeps ---------------------------------------------------------------------------


def options_at(
    sweep: schema.Sweep, point: Mapping[str, Any]
) -> dict[str, Any]:
    """Options for a point.

    In a sweep with ``apart``, an option may map names of solvers to values. A mapping
    that has the point's solver is replaced by the value of that solver.
    """
    solver = point.get("solver")
    if not sweep.apart or solver is None:
        return sweep.options
    chosen = {}
    for key, option in sweep.options.items():
        is_named = isinstance(option, Mapping) and solver in option
        chosen[key] = option[solver] if is_named else option
    return chosen


def option_words(
    sweep: schema.Sweep, point: Mapping[str, Any] | None = None
) -> set[str]:
    """Strings in the points and options of a sweep, or of one that stands apart."""
    if point is not None and sweep.apart:
        return digests.texts(dict(point)) | digests.texts(
            options_at(sweep, point)
        )
    # As the grid is written: its points have the same names, and take far longer.
    return digests.texts(sweep.grid) | digests.texts(sweep.options)


def points(sweep: schema.Sweep) -> list[dict[str, Any]]:
    """All points of a sweep."""
    return grid.points(sweep.grid, axes=None)


def problems_of(
    sweep: schema.Sweep, point: Mapping[str, Any] | None = None
) -> list[str]:
    """Problems whose optimum or arrays a sweep needs, or that its settings name."""
    words = option_words(sweep, point)
    named_problems = {*words} & {*available("problem")}
    is_apart = point is not None and sweep.apart and "problem" in point
    needed = () if is_apart else (*sweep.problems, *sweep.prepared)
    return sorted(named_problems.union(needed))


def swept(
    config: schema.Config, name: str, point: Mapping[str, Any] | None = None
) -> Settings:
    """Settings of a sweep, or of one of its points.

    A point with a solver reads nothing of the solvers of other points.
    """
    sweep = config.paper.sweeps[name]
    entry_point = entry_of(config.paper, "sweeps", name)
    read = source_code.fields_read(entry_point)
    own_words = source_code.own_words(entry_point)
    words = option_words(sweep, point) | own_words
    problems = {*problems_of(sweep, point)} | (
        own_words & {*available("problem")}
    )
    if point is not None and "solver" in point:
        words -= {*grid.values(points(sweep), "solver")} - {point["solver"]}
    settings = _common(config, read, sorted(problems), words)
    path = f"paper.sweeps.{name}"
    if point is None or "sweeps" in read:
        settings[path] = asdict(sweep)
    replicates = config.scale.replicates or sweep.replicates
    if point is None:
        settings["scale.replicates"] = replicates
    return settings


def sweeping(
    paper: schema.Paper,
    name: str,
    overrides: Iterable[str],
    solvers: Iterable[str],
    stage: str,
    point: Mapping[str, Any] | None = None,
) -> list[str]:
    """Entry points of the code behind a sweep, or a point of one that stands apart.

    They are its function, the ``stage`` that calls it, the ``solvers`` of its points,
    all solvers that its settings name on any axis, and the losses of its problems.
    """
    sweep = paper.sweeps[name]
    entry_point = entry_of(paper, "sweeps", name)
    words = option_words(sweep, point)
    places = {
        digests.place(digests.solver_of(solver).algorithm)
        for solver in solvers
    }
    places |= {*digests.solver_places(entry_point, option_words=words)}
    losses = {
        section("problem", problem, overrides).loss
        for problem in problems_of(sweep, point)
    }
    strings = losses | words | digests.strings(asdict(sweep))
    return digests.looked_up(
        stage, entry_point, *sorted(places), option_words=strings
    )


def drawing(
    paper: schema.Paper, collection: str, name: str, stage: str
) -> list[str]:
    """Entry points of the code behind a figure or a table, and of its stage."""
    strings = digests.strings(asdict(getattr(paper, collection)[name]))
    return digests.looked_up(
        stage, entry_of(paper, collection, name), option_words=strings
    )


def entry_of(paper: schema.Paper, collection: str, name: str) -> str:
    """The entry point of the function of a figure, a table or a sweep of a paper."""
    function = getattr(paper, collection)[name].function
    return makers.place_of(
        paper.name, collection, function, f"{collection}.{name}"
    )


# --- figures and tables ---------------------------------------------------------------


def product(
    config: schema.Config, collection: str, name: str, stage: str
) -> Settings:
    """Settings of a figure or a table, which a stage makes."""
    paper = config.paper
    spec = getattr(paper, collection)[name]
    entry_point = entry_of(paper, collection, name)
    read = source_code.fields_read(stage, entry_point)
    words = source_code.own_words(entry_point) | digests.texts(asdict(spec))
    sweeps = [sweep for sweep in paper.sweeps if sweep in words]
    problems = {*paper.problems, *(spec.problems or ())}
    problems |= words & {*available("problem")}
    for sweep in sweeps:
        words |= option_words(paper.sweeps[sweep])
        problems |= {*problems_of(paper.sweeps[sweep])}
    settings = _common(
        config, read, sorted(problems), words | {*paper.runs}, False
    )
    settings[f"paper.{collection}.{name}"] = asdict(spec)
    for sweep in sweeps:
        settings[f"paper.sweeps.{sweep}"] = asdict(paper.sweeps[sweep])
    for group in FORMATS_OF_PAPER:  # whether a name is one of the paper's
        settings[f"paper.{group}.{NAMES}"] = None
    return settings


FORMATS_OF_PAPER = ("figures", "tables", "sweeps")


# --- what functions of papers have in common ------------------------------------------


def _common(
    config: schema.Config,
    read: AbstractSet[str],
    problems: list[str],
    words: AbstractSet[str],
    is_solved: bool = True,
) -> Settings:
    """Settings of a paper, the scale, problems and solvers that code may read.

    ``read`` are names of settings that occur in the code, ``words`` strings that may
    name solvers; ``is_solved`` says whether the code runs these.
    """
    paper = config.paper
    separate = {"name", "sweeps", "figures", "tables", "runs", "published"}
    # Figures have titles too: these count where they are read as the paper's.
    titles = {"label", "title", "reference", "thresholds", "claims"}
    titles -= {name for name in titles if f"paper.{name}" in read}
    settings: Settings = {"seed": config.seed}
    settings |= leaves(paper, "paper", read - separate - titles)
    settings |= leaves(config.scale, "scale", read - {"name", "folder"})
    solvers = digests.solvers_in(words)
    if "runs" in read:
        settings |= _runs(
            paper, read, [name for name in solvers if name in paper.runs]
        )
    if "published" in read or "paper_file" in read:
        settings |= published(paper)
    for name in problems:
        chosen = section("problem", name, config.overrides)
        path = f"problem.{name}"
        settings |= leaves(chosen, path, read - {"name", "dataset"})
        if "dataset" in read:
            dataset_fields = read - {"name"}
            settings |= leaves(
                chosen.dataset, f"{path}.dataset", dataset_fields
            )
    run = {"algorithm", "options"}  # products have options too
    run_fields = (
        run
        if is_solved
        else {field for field in run if f"solver.{field}" in read}
    )
    for name in solvers:
        chosen = section("solver", name, config.overrides)
        settings |= leaves(chosen, f"solver.{name}", (read - run) | run_fields)
    return settings


def _runs(
    paper: schema.Paper, read: AbstractSet[str], solvers: list[str]
) -> Settings:
    """Settings of runs: of some solvers, or of all if code names none."""
    settings: Settings = {}
    if not solvers or {*solvers} == {*paper.runs}:
        settings[f"paper.runs.{NAMES}"] = [*paper.runs]
    for name in solvers or paper.runs:
        settings |= leaves(paper.runs[name], f"paper.runs.{name}", read)
    return settings


def published(paper: schema.Paper) -> Settings:
    """The contents of the tables that a paper printed, by their names."""
    settings: Settings = {f"paper.published.{NAMES}": [*paper.published]}
    for name, file in paper.published.items():
        path = paper_file(paper, file)
        text = path.read_text(encoding="utf-8") if path is not None else ""
        settings[f"paper.published.{name}"] = digest([file, text])
    return settings


def everything(
    paper: schema.Paper, scale: schema.Scale, overrides: Iterable[str]
) -> Settings:
    """A paper with its sections, for the pages that show all of it."""
    solvers = sorted({*paper.runs} & {*available("solver")})
    return {
        "paper": plain(paper),
        "scale": plain(scale),
        "problems": [
            section("problem", name, overrides).title
            for name in paper.problems
        ],
        "solvers": [
            section("solver", name, overrides).label for name in solvers
        ],
    }
