"""What every stage depends on, as a digest: its settings, what it reads, its code.

Code is the closure of the functions that make a stage's numbers
(:mod:`dperm.store.closure`), not of the stage around them. A digest holds the digests
of what the stage reads, so that an edit of the accountant or of the optimum reaches
everything below. What a stage then computes anew is less: lanes and points of sweeps
have keys of their own.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from dperm.core import calibrations, solvers
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
GRIDS = ("dperm.core.experiment.grid:points", "dperm.core.experiment.grid:thin")
CALIBRATING = (
    "dperm.core.privacy.calibration:calibrate",
    "dperm.accountants.intervals:epsilon_interval",
)
LOOKUP = "dperm.core.calibrations:load"  # of an accountant, by name
CHOOSING = tuple(
    f"dperm.core.experiment.{name}"
    for name in ("results:best", "unit:Job", "tune:evaluated_settings")
)
SAVING = {
    "figures": "dperm.present.drawing:save",
    "tables": "dperm.present.tables:save",
}
RULES = ("dperm.report.rules.measures", "dperm.report.rules.special")
REPORTING = ("dperm.report.judging:claims", "dperm.report.page:report", *RULES)
AUDITING = ("dperm.audit.ladder:solver", "dperm.compare.audited:subjects")
AUDITED = {  # tables of the audit, by the functions that make their numbers
    "epsilon": ("dperm.pipeline.auditing:_epsilon",),
    "controls": ("dperm.audit.ladder:controls", "dperm.audit.ladder:alarms"),
    "tuning": ("dperm.pipeline.auditing:_tuned", "dperm.pipeline.auditing:_costs"),
}


# --- code -----------------------------------------------------------------------------


def lanes(algorithm: str) -> str:
    """Digest of the code that runs a solver's lanes, its accountant apart."""
    module = _module(algorithm)
    offered = (f"{module}:{name}" for name in ("Run", "Options", "steps"))
    return code(*RUNNING, *offered)


def noise(algorithm: str, kinds: Iterable[str]) -> str:
    """Digest of the code that finds a solver's noise: its ledger and the accountants.

    Parameters
    ----------
    algorithm : str
    kinds : iterable of str
        Its calibrations.
    """
    module = _module(algorithm)
    offered = (f"{module}:{name}" for name in ("ledger", "Options", "steps"))
    return code(*CALIBRATING, *offered, *sorted(map(calibrations.place, kinds)))


def priced(*entries: str) -> str:
    """Digest of the code behind entry points and of the accountants that it names.

    Those are looked up by name: ours count wherever any is, a further one where the
    code spells its name.
    """
    if LOOKUP not in closure.closure(*entries):
        return code(*entries)
    spelt = closure.words(*entries)
    named = [each for each in calibrations.names() if each in spelt]
    kinds = dict.fromkeys([*calibrations.OURS, *named])
    return code(*entries, *map(calibrations.place, kinds))


def swept(config: schema.Config, what: schema.Sweep, names: Iterable[str]) -> str:
    """Digest of the code behind a sweep: its function, and solvers its points name."""
    module = products.module_of(config, "sweeps", what.kind)
    named = {_module(solver.algorithm) for solver in _solvers(names)}
    return priced(f"{module}:{what.kind}", *sorted(named))


def _solvers(names: Iterable[str]) -> list[schema.Solver]:
    """What the YAML of each of these solvers says."""
    return [solver_of(name) for name in sorted(names)]


@functools.cache
def solver_of(name: str) -> schema.Solver:
    """What a solver's YAML says."""
    return configuration.read("solver", name)


def _module(algorithm: str) -> str:
    return solvers.places().get(algorithm, algorithm)


# --- stages ---------------------------------------------------------------------------


def fetch(dataset: schema.Dataset) -> str:
    """Digest of a data set: sources, reader, files of one's own.

    Code counts only where no digest vouches for the arrays.
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
    """Digests of the files of one's own that a data set is read from."""
    from dperm.data.fetching import contents

    return contents(dataset)


def prepare(problem: schema.Problem) -> str:
    """Digest of a problem's arrays; a declared digest says what is read for them."""
    read = problem.dataset.digest or fetch(problem.dataset)
    return digest([read, asdict(problem.preparation), code(*PREPARING)])


def optimum(problem: schema.Problem) -> str:
    """Digest of a problem's optimum."""
    penalty = asdict(problem.penalty)
    return digest([prepare(problem), problem.loss, penalty, code(*SOLVING)])


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
    ]
    return digest(
        [
            identity,
            lanes(solver.algorithm),
            noise(solver.algorithm, plan.run_calibrations(config)),
        ]
    )


def evaluate(config: schema.Config, tuned: str) -> str:
    """Digest of the evaluation of what tuning with that digest chooses."""
    fresh = config.scale.fresh or config.paper.fresh
    return digest([tuned, fresh, config.paper.evaluated, code(*CHOOSING)])


def timing(config: schema.Config, kinds: list[list[str]], read: Iterable[str]) -> str:
    """Digest of a paper's timings; ``read`` are digests of what is run again."""
    return digest([kinds, config.paper.clocked, list(read)])


def sweep(config: schema.Config, name: str, points: Grid, read: Iterable[str]) -> str:
    """Digest of a sweep at its points; ``read`` are digests of what it reads."""
    what = config.paper.sweeps[name]
    replicates = config.scale.replicates or what.replicates
    names = points.values("solver")
    named = [[one.algorithm, one.options] for one in _solvers(names)]
    identity = [asdict(what), repr(points), config.seed, replicates, named]
    return digest([identity, list(read), swept(config, what, names)])


def product(config: schema.Config, kind: str, name: str, read: Iterable[str]) -> str:
    """Digest of a figure or a table; ``read`` are digests of what it is made of."""
    what = getattr(config.paper, kind)[name]
    module = products.module_of(config, kind, what.kind)
    made = priced(f"{module}:{what.kind}", SAVING[kind])
    texts = _texts(config.paper, config.paper.published.values())
    return digest([asdict(what), list(read), texts, made])


def printed(config: schema.Config) -> str:
    """Digest of a paper's printed numbers, its claims, and rules of its own."""
    paper = config.paper
    texts = _texts(paper, [*paper.published.values(), paper.claims or ""])
    own = [
        one for kind in ("rules", "proofs") for one in products.modules(config, kind)
    ]
    return digest([texts, priced(*own) if own else ""])


def _texts(paper: schema.Paper, files: Iterable[str]) -> list[str]:
    paths = [paper_file(paper, file) for file in files if file]
    return [path.read_text(encoding="utf-8") for path in paths if path is not None]


def claims(read: Iterable[str]) -> str:
    """Digest of claims and report; ``read`` are digests of all that they judge."""
    return digest([sorted(read), priced(*REPORTING)])


def audit(part: str, read: Iterable[str] = ()) -> str:
    """Digest of ``solvers/<name>`` or of a table of the audit, ``read`` what it reads.

    A solver's is that of the audit's code and of all of the solver's, its own or ours.
    """
    folder, _, name = part.rpartition("/")
    if folder:
        solver = configuration.read("solver", name)
        made = priced(*AUDITING, _module(solver.algorithm))
        return digest([solver.algorithm, solver.options, made])
    return digest([list(read), priced(*AUDITED[name])])
