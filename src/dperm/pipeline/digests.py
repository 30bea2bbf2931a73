"""Digests of what every stage depends on: its settings, its inputs and its code.

Code is the closure of the functions that make a stage's numbers
(:mod:`dperm.store.closure`), not of the stage around them. A digest includes the
digests of the stage's inputs, so that an edit of the accountant or of the optimum
reaches all later stages. A stale stage need not compute everything again, because
lanes and points of sweeps have their own keys. These keys contain the versions of the
libraries. So does, by ``solved``, the digest noted for a stage that solves, but not
that of a drawing.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dperm.core import calibrations, solvers
from dperm.core.erm import losses
from dperm.core.experiment import config as configuration
from dperm.core.experiment import plan, schema
from dperm.core.experiment.files import digest
from dperm.core.experiment.grid import Grid
from dperm.core.experiment.validation import paper_file
from dperm.pipeline import products
from dperm.store import closure
from dperm.store.closure import digest as code

PREPARING = ("dperm.data.preparing:_make",)
SOLVING = ("dperm.core.erm.optimum:solve", "dperm.pipeline.inputs:load_problem")
RUNNING = ("dperm.core.experiment.unit:lane_rows", "dperm.core.erm.problem:build")
STAGED = ("dperm.core.experiment.tune:two_stages",)
GRIDS = ("dperm.core.experiment.grid:points", "dperm.core.experiment.grid:thin")
CALIBRATING = ("dperm.core.privacy.calibration:calibrate",)
LOOKUP = "dperm.core.calibrations:load"  # looks up an accountant by name
LOSSES = "dperm.core.erm.losses:named"  # looks up a loss by name
CHOOSING = tuple(
    f"dperm.core.experiment.{name}"
    for name in ("results:best", "unit:Job", "tune:evaluated_settings")
)
SAVING = {
    "figures": "dperm.present.drawing:save",
    "tables": "dperm.present.tables:save",
}
REPORTING = ("dperm.report.claims:write", "dperm.report.page:report")
AUDITING = ("dperm.audit.tables:solver", "dperm.compare.audited:mechanisms")
AUDITED = {  # tables of the audit to the functions that make their numbers
    "epsilon": ("dperm.pipeline.auditing:_epsilon",),
    "tuning": ("dperm.pipeline.auditing:_tuned", "dperm.pipeline.auditing:_costs"),
}


# --- code -----------------------------------------------------------------------------


def lanes(algorithm: str, loss: str | None = None, versioned: bool = True) -> str:
    """Digest of the code that runs a solver's lanes, without its accountant.

    Parameters
    ----------
    loss : str, optional
        Loss of the problem; None leaves the problem out.
    versioned : bool
        Whether to include the versions of the libraries, as the lanes' key does.
    """
    module = _module(algorithm)
    offered = (f"{module}:{name}" for name in ("Run", "Options", "steps"))
    return priced(*RUNNING, *offered, spelt=[loss] if loss else [], versioned=versioned)


def noise(
    algorithm: str, kinds: Iterable[str], loss: str, versioned: bool = True
) -> str:
    """Digest of the code that finds a solver's noise: its ledger and the accountants.

    Parameters
    ----------
    kinds : iterable of str
        Calibrations of the solver.
    loss : str
        Loss of the problem.
    versioned : bool
        As in ``lanes``.
    """
    module = _module(algorithm)
    offered = (f"{module}:{name}" for name in ("ledger", "Options", "steps"))
    places = sorted(map(calibrations.place, kinds))
    entries = (*CALIBRATING, *offered, *places, *_losses([loss]))
    return code(*entries, versioned=versioned)


def priced(*entries: str, spelt: Iterable[str] = (), versioned: bool = False) -> str:
    """Digest of the code behind entry points and of what it looks up by name.

    The package's own accountants are included wherever any accountant is looked up.
    Any other accountant, or a loss, is included if the code or ``spelt`` (strings of
    the settings) contains its name.
    """
    reached = closure.closure(*entries)
    if LOOKUP not in reached and LOSSES not in reached:
        return code(*entries, versioned=versioned)
    words = {*closure.words(*entries), *spelt}
    places: list[str] = []
    if LOOKUP in reached:
        places += map(calibrations.place, calibrations.OURS)
    if LOSSES in reached:
        places += _losses(words)
    return code(*entries, *places, versioned=versioned)


def _losses(words: Iterable[str]) -> list[str]:
    """Entry points of the losses among some words."""
    return [f"{losses.place(name)}:LOSS" for name in losses.names() if name in words]


def swept(
    config: schema.Config,
    what: schema.Sweep,
    names: Iterable[str],
    versioned: bool = True,
) -> str:
    """Digest of the code behind a sweep: its function and its points' solvers."""
    module = products.module_of(config, "sweeps", what.kind)
    named = {_module(solver.algorithm) for solver in _solvers(names)}
    problems = {
        *products.sweep_problems(config, what),
        *products.sweep_prepared(config, what),
    }
    spelt = {loss_of(problem) for problem in problems}
    spelt.update(_strings(asdict(what)))
    entries = (f"{module}:{what.kind}", *sorted(named))
    return priced(*entries, spelt=spelt, versioned=versioned)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _strings([*value, *value.values()])
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _strings(each)


def _solvers(names: Iterable[str]) -> list[schema.Solver]:
    """The sections of some solvers, in the order of their names."""
    return [solver_of(name) for name in sorted(names)]


@functools.cache
def solver_of(name: str) -> schema.Solver:
    """The section in a solver's YAML file."""
    return configuration.read("solver", name)


@functools.cache
def loss_of(problem: str) -> str:
    """The loss in a problem's YAML file."""
    return str(configuration.read("problem", problem).loss)


def _module(algorithm: str) -> str:
    return solvers.PLACES.get(algorithm, algorithm)


# --- stages ---------------------------------------------------------------------------


def solved(made: str) -> str:
    """Digest of a stage that solves: its digest with the libraries' versions."""
    return digest([made, closure.versions()])


def fetch(dataset: schema.Dataset) -> str:
    """Digest of a data set: sources, reader and a user's own files.

    The reader's code is included only if no digest of the arrays is declared.
    """
    sources = [asdict(source) for source in dataset.sources]
    read = [dataset.digest, sources, asdict(dataset.reader), files(dataset)]
    return digest([*read, fetching(dataset)])


def fetching(dataset: schema.Dataset) -> str:
    """Digest of the code that reads a data set; empty if its digest is declared."""
    if dataset.digest:
        return ""
    from dperm.data.fetching import reading_code

    return reading_code(dataset)


def files(dataset: schema.Dataset) -> dict[str, str]:
    """Digests of the user's own files that a data set is read from."""
    from dperm.data.fetching import contents

    return contents(dataset)


def prepare(problem: schema.Problem) -> str:
    """Digest of a problem's arrays; a declared digest stands for the data set."""
    read = problem.dataset.digest or fetch(problem.dataset)
    return digest([read, asdict(problem.preparation), code(*PREPARING)])


def optimum(problem: schema.Problem) -> str:
    """Digest of a problem's optimum."""
    penalty = asdict(problem.penalty)
    made = priced(*SOLVING, spelt=[problem.loss])
    return digest([prepare(problem), problem.loss, penalty, made])


def tune(config: schema.Config) -> str:
    """Digest of tuning the solver on the problem over the paper's grid."""
    problem, solver, paper = config.problem, config.solver, config.paper
    identity: list[Any] = [
        *(optimum(problem), asdict(problem.privacy)),
        [
            solver.name,
            plan.label(config, solver.name),
            solver.algorithm,
            solver.options,
        ],
        plan.run_calibrations(config),
        *(repr(plan.grid_points(config)), code(*GRIDS)),
        *(config.seed, config.scale.replicates or paper.replicates),
        code(*STAGED) if paper.race else None,
    ]
    return digest(
        [
            identity,
            lanes(solver.algorithm, problem.loss, False),
            noise(solver.algorithm, plan.run_calibrations(config), problem.loss, False),
        ]
    )


def evaluate(config: schema.Config, tuned: str) -> str:
    """Digest of evaluating the settings chosen by the tuning of digest ``tuned``."""
    fresh = config.scale.fresh or config.paper.fresh
    return digest([tuned, fresh, config.paper.evaluated, code(*CHOOSING)])


def timing(config: schema.Config, kinds: list[list[str]], read: Iterable[str]) -> str:
    """Digest of a paper's timings; ``read`` are digests of the runs to repeat."""
    return digest([kinds, config.paper.clocked, list(read)])


def sweep(config: schema.Config, name: str, points: Grid, read: Iterable[str]) -> str:
    """Digest of a sweep at its points; ``read`` are digests of its inputs."""
    what = config.paper.sweeps[name]
    replicates = config.scale.replicates or what.replicates
    names = points.values("solver")
    named = [[one.algorithm, one.options] for one in _solvers(names)]
    identity = [asdict(what), repr(points), config.seed, replicates, named]
    return digest([identity, list(read), swept(config, what, names, False)])


def swept_at(config: schema.Config, name: str) -> str:
    """Digest of a sweep, including the problems and tunings that it reads."""
    what = config.paper.sweeps[name]
    read = [
        of(plan.at_problem(config, problem).problem)
        for of, problems in (
            (optimum, products.sweep_problems(config, what)),
            (prepare, products.sweep_prepared(config, what)),
        )
        for problem in problems
    ]
    runs = products.sweep_tuned(config, name)
    read += [tune(plan.at_run(config, *run)) for run in runs]
    return sweep(config, name, products.sweep_points(config, what), read)


def timed(config: schema.Config) -> str:
    """Digest of a paper's timings, including the evaluations that they repeat."""
    clocked = products.clocked(config)
    runs = (plan.at_run(config, *run) for run in clocked)
    kinds = [sorted(kinds) for kinds in clocked.values()]
    return timing(config, kinds, [evaluate(run, tune(run)) for run in runs])


def rows(config: schema.Config, paths: Iterable[Path]) -> dict[Path, str]:
    """Digests of current code and settings, by files of a paper's rows."""
    folder = plan.results_folder(config, config.paper.name)
    made = {}
    for path in paths:
        if path.suffix != ".parquet":
            continue
        *run, name = path.relative_to(folder).with_suffix("").parts
        if name == "timing" and not run:
            made[path] = timed(config)
        elif run == ["sweeps"]:
            made[path] = swept_at(config, name)
        else:
            at = plan.at_run(config, *run)
            made[path] = tune(at) if name == "tune" else evaluate(at, tune(at))
    return made


def product(config: schema.Config, kind: str, name: str, read: Iterable[str]) -> str:
    """Digest of a figure or a table; ``read`` are digests of its inputs."""
    what = getattr(config.paper, kind)[name]
    module = products.module_of(config, kind, what.kind)
    spelt = _strings(asdict(what))
    made = priced(f"{module}:{what.kind}", SAVING[kind], spelt=spelt)
    texts = _texts(config.paper, config.paper.published.values())
    return digest([asdict(what), list(read), texts, made])


def printed(config: schema.Config) -> str:
    """Digest of a paper's printed numbers, its claims and its own proofs."""
    paper = config.paper
    texts = _texts(paper, [*paper.published.values(), paper.claims or ""])
    own = products.modules(config, "proofs")
    return digest([texts, priced(*own) if own else ""])


def _texts(paper: schema.Paper, files: Iterable[str]) -> list[str]:
    paths = [paper_file(paper, file) for file in files if file]
    return [path.read_text(encoding="utf-8") for path in paths if path is not None]


def claims(read: Iterable[str]) -> str:
    """Digest of claims and report; ``read`` are digests of the results judged."""
    return digest([sorted(read), priced(*REPORTING)])


def audit(part: str, read: Iterable[str] = ()) -> str:
    """Digest of the audit of ``solvers/<name>``, or of a table of the audit.

    For a solver it covers the audit's code and all of the solver's code. For a table,
    ``read`` are digests of its inputs.
    """
    folder, _, name = part.rpartition("/")
    if folder:
        solver = configuration.read("solver", name)
        made = priced(*AUDITING, _module(solver.algorithm))
        return digest([solver.algorithm, solver.options, made])
    return digest([list(read), priced(*AUDITED[name])])
