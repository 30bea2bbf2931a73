"""The stages before any solver (fetch, prepare, optimum) and reading their results.

A job is a problem with its optimum and a solver.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from dperm import data
from dperm.config import config as configuration
from dperm.config import schema
from dperm.config.grid import number
from dperm.config.scope import view
from dperm.data.fetching import FetchRecord
from dperm.experiments import checks, digests, plan, scopes, trace
from dperm.experiments.task import CodeDigests, SolverJob
from dperm.privacy.events import (
    LABEL_MEAN,
    STANDARDISATION,
    ZERO_COLUMNS,
    N,
    missing_values,
)
from dperm.problems.optimum import Optimum, solve
from dperm.problems.penalties import Penalty
from dperm.problems.problem import Problem, build
from dperm.storage import files as store

log = logging.getLogger(__name__)
# The functions whose code is in the keys, with all that it reaches.
PREPARING = f"{__name__}:prepare"
OPTIMISING = f"{__name__}:optimum"


@dataclass(frozen=True)
class Inputs:
    """What finds the problems of a run: their sections, arrays and optima."""

    data: schema.Data  #: folders of arrays and optima
    overrides: Sequence[str]  #: of settings, which sections have


class UnavailableError(LookupError):
    """The data of a problem cannot be had; the text is the reason."""


def load_problem(spec: schema.ProblemSection, folders: schema.Data) -> Problem:
    """The problem on its prepared arrays.

    Raises UnavailableError if its data cannot be had.
    """
    prepared = data.load_prepared(spec.name, folders)
    if not prepared.available:
        raise UnavailableError(prepared.meta["reason"])
    if prepared.meta["made"] != data.made_by(spec.preparation):
        raise ValueError(
            f"problem {spec.name}: its arrays were prepared by other settings or code: "
            f"run `dperm prepare problem={spec.name}`, then `dperm optimum`"
        )
    n = prepared.meta["n"]
    l1 = number(spec.penalty.l1, n)
    l2 = number(spec.penalty.l2, n)
    penalty = Penalty(l1, l2, spec.penalty.lower, spec.penalty.upper)
    epsilon = spec.privacy.epsilon
    delta = number(spec.privacy.delta, n)
    identity = [
        prepared.meta["digest"],
        spec.loss,
        asdict(penalty),
        epsilon,
        delta,
    ]
    return build(
        spec.name,
        prepared.X,
        prepared.y,
        spec.loss,
        penalty,
        epsilon,
        delta,
        store.digest(identity),
        given=public_information(spec),
    )


def titles(
    inputs: Inputs, problems: Iterable[str]
) -> dict[str, schema.ProblemSection]:
    """The problems' sections, for titles and privacy targets."""
    return configuration.sections("problem", problems, inputs.overrides)


def public_information(problem: schema.ProblemSection) -> tuple[str, ...]:
    """Information on all records that reading and preparing take as public, with n."""
    steps = {
        STANDARDISATION: problem.preparation.standardize,
        ZERO_COLUMNS: problem.preparation.drop_zero_columns,
        LABEL_MEAN: problem.preparation.centre,
    }
    prepared = (name for name, is_done in steps.items() if is_done)
    return (N, *prepared, *missing_values(problem.dataset.reader.missing))


def say_unavailable(name: str, reason: object) -> None:
    """Log why a problem is left out, and the commands to run once that is fixed."""
    again = f"run `dperm fetch problem={name}`, prepare and optimum again"
    text = (
        "%s: left out, its data are unavailable.\n%s\nWhen that is mended, %s."
    )
    log.warning(text, name, reason, again)


def optimum_folder(problem: str, folders: schema.Data) -> Path:
    """Folder of a problem's optimum."""
    return Path(folders.dir, "optimum", problem)


def load_optimum(spec: schema.ProblemSection, folders: schema.Data) -> Optimum:
    """The certified optimum that the optimum stage wrote.

    Raises FileNotFoundError if that stage has not run, and ValueError if its files are
    damaged, or of other data or settings.
    """
    record = optimum_record(spec, folders)
    path = optimum_folder(spec.name, folders) / "w.npy"
    try:
        w = np.load(path)
        if record["w_digest"] != store.digest(w.tolist()):
            raise ValueError("other digest")
    except (ValueError, EOFError) as error:
        again = f"delete {path.parent} and run again"
        raise ValueError(f"{path} is damaged ({error}): {again}") from error
    return Optimum(w, record["value"], record["gap"])


def optimum_record(
    spec: schema.ProblemSection, folders: schema.Data
) -> dict[str, Any]:
    """Content of ``optimum.json`` of the problem; without data ``unavailable``.

    Raises as ``load_optimum``.
    """
    name = spec.name
    path = optimum_folder(name, folders) / "optimum.json"
    if not path.is_file():
        raise FileNotFoundError(
            f"{path}: run `dperm optimum problem={name}` first"
        )
    again = f"delete {path.parent} and run again"
    record = store.read_json(path, again)
    content = record.pop("content", None)
    if content != store.digest(record):
        raise ValueError(
            f"{path} was changed after it was made, or made by an old version: {again}"
        )
    identity = _identity(spec, folders)
    if record.get("made", identity) != identity:
        raise ValueError(
            f"{path} was made of other data or settings, or by other code: run "
            f"`dperm prepare problem={name}`, then `dperm optimum`"
        )
    return record


def _identity(spec: schema.ProblemSection, folders: schema.Data) -> str:
    """Digest of the prepared arrays, and of settings and code of their optimum."""
    meta = Path(folders.dir, "prepared", spec.name, "meta.json")
    arrays = (store.known_json(meta) or {}).get("digest")
    settings = [asdict(spec.preparation), spec.loss, asdict(spec.penalty)]
    return store.digest(
        [
            arrays,
            *settings,
            digests.priced(OPTIMISING, option_words=[spec.loss]),
        ]
    )


class SolverOnProblem(NamedTuple):
    """A solver with its options, and a problem that it can solve, with its optimum."""

    problem: Problem
    optimum: Optimum
    module: ModuleType
    options: Any


def load_solver(
    spec: schema.ProblemSection, solver: schema.Solver, folders: schema.Data
) -> SolverOnProblem:
    """A solver on a problem.

    Raises UnavailableError if the data of the problem cannot be had, and ConfigError if
    the solver cannot run on it.
    """
    problem = load_problem(spec, folders)
    where = f"problem/{problem.name}.yaml"
    module, options = checks.able(spec, solver, where, problem.is_sparse)
    return SolverOnProblem(
        problem, load_optimum(spec, folders), module, options
    )


def load_job(config: schema.Config) -> SolverJob:
    """The paper's job of the chosen solver and problem. Raises as ``load_solver``."""
    spec = config.problem
    solver = config.solver
    loaded = load_solver(spec, solver, config.data)
    names = plan.names_of(config.paper, spec.name, solver)
    name = solver.algorithm
    noise = digests.noise(name, config.paper.calibrations, spec.loss)
    code = CodeDigests(digests.solver(name, spec.loss), noise)
    folder = plan.run_folder(config.paper, config.output, *names[1:3])
    return SolverJob(
        names, name, *loaded, code, config.seed, folder, config.workers
    )


# --- the stages -----------------------------------------------------------------------


class NothingFetchedError(RuntimeError):
    """No source serves a data set, for the reason that it tells."""


def fetch(config: schema.Config) -> FetchRecord:
    """Fetch the problem's data set; unavailable data are recorded with the reason.

    Raises NothingFetchedError, in one line with the cure, if they are required, as they
    are outside of a pipeline.
    """
    record = data.fetch(config.problem.dataset, config.data)
    if record.available:
        log.info(
            "%s: %s, digest %s", record.name, record.source, record.digest
        )
    elif config.data.required:
        raise NothingFetchedError(f"data set {record.reason}")
    return record


def prepare(config: schema.Config) -> None:
    """Prepare the arrays of the problem."""
    settings = scopes.prepared(config.problem)
    scope = scopes.scope(f"prepare {config.problem.name}", settings)
    with trace.kept(scope, [Path(config.data.dir)], lambda: [PREPARING]):
        problem = view(config, "", scope).problem
        meta = data.prepare(problem, config.data, checks.usable).meta
    if meta["status"] == "ok":
        log.info("%s: n = %d, p = %d", meta["name"], meta["n"], meta["p"])
    else:
        say_unavailable(meta["name"], meta["reason"])


def optimum(config: schema.Config) -> Path:
    """Solve the problem without privacy and store w*, F* and the certificate.

    Raises ValueError if it has no minimum, or F* = 0, to which no error is relative.
    """
    name = config.problem.name
    loss = config.problem.loss
    folder = optimum_folder(name, config.data)
    record = {"problem": name, "status": "unavailable"}
    scope = scopes.scope(f"optimum {name}", scopes.optimum(config.problem))
    spec = view(config.problem, f"problem.{name}", scope)
    with store.locked(folder):
        try:
            with trace.kept(
                scope,
                [Path(config.data.dir)],
                lambda: digests.looked_up(OPTIMISING, option_words=[loss]),
            ):
                problem = load_problem(spec, config.data)
                record |= {
                    "status": "ok",
                    "made": _identity(spec, config.data),
                }
                record |= _solved(problem, folder / "w.npy")
        except UnavailableError as error:
            say_unavailable(name, error)
        signed = record | {"content": store.digest(record)}
        store.write_json(folder / "optimum.json", signed)
    return folder / "optimum.json"


def _solved(problem: Problem, path: Path) -> dict[str, Any]:
    """Write the optimum's weights; returns what its record says."""
    where = f"conf/problem/{problem.name}.yaml: loss, penalty"
    try:
        solution = solve(problem)
    except ArithmeticError as error:
        raise ValueError(f"{where}: {error}") from error
    if solution.value == 0:
        raise ValueError(
            f"{where}: problem {problem.name}: F* = 0, to which no error is relative; "
            "expected a penalty, or labels that the features do not give exactly"
        )
    with store.whole(path) as beside:
        np.save(beside, solution.w)
    start = float(problem.objective(np.zeros(problem.p))[0])
    record = {
        "w_digest": store.digest(solution.w.tolist()),
        "value": solution.value,
        "gap": solution.gap,
        "relative_gap": solution.gap / solution.value,
        "start": start,
        "relative_error_at_zero": (start - solution.value) / solution.value,
        "support_size": int(solution.support.sum()),
        "l1_norm": float(np.abs(solution.w).sum()),
    }
    numbers = [
        record[key]
        for key in ("value", "relative_gap", "relative_error_at_zero")
    ]
    text = "%s: F* = %.9g, relative gap %.1e, relative error at zero %.6g"
    log.info(text, problem.name, *numbers)
    return record
