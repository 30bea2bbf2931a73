"""What a solver stage reads: the problem, its optimum, its solver."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from dperm import data
from dperm.core import solvers
from dperm.core.erm.optimum import Optimum
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import Problem, build
from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.core.experiment.locate import ConfigError
from dperm.core.experiment.validation import number
from dperm.core.privacy.given import COLUMNS, STANDARDISATION, N, missing_values
from dperm.core.solvers.capabilities import obstacle

log = logging.getLogger(__name__)


def load_problem(config: schema.Config) -> Problem | None:
    """The problem on its prepared arrays, or None if its data are unavailable."""
    spec = config.problem
    prepared = data.load_prepared(spec.name, config.data)
    if not prepared.available:
        return None
    n = prepared.meta["n"]
    where = f"conf/problem/{spec.name}.yaml"
    penalty = Penalty(
        number(spec.penalty.l1, n, where),
        number(spec.penalty.l2, n, where),
        spec.penalty.lower,
        spec.penalty.upper,
    )
    epsilon, delta = spec.privacy.epsilon, number(spec.privacy.delta, n, where)
    identity = [prepared.meta["digest"], spec.loss, asdict(penalty), epsilon, delta]
    implicit = bool(prepared.meta.get("implicit"))
    if implicit:
        identity.append("standardised implicitly")
    return build(
        spec.name, prepared.X, prepared.y, spec.loss, penalty, epsilon, delta,
        store.digest(identity), standardised=implicit, given=given(spec),
    )  # fmt: skip


def given(problem: schema.Problem) -> tuple[str, ...]:
    """What reading and preparing read off all records and take as public, beside n."""
    found = {
        STANDARDISATION: problem.preparation.standardize,
        COLUMNS: problem.preparation.drop_zero_columns,
    }
    prepared = (name for name, done in found.items() if done)
    return (N, *prepared, *missing_values(problem.dataset.reader.missing))


def unavailable_reason(config: schema.Config) -> str:
    """Why the data of the problem could not be had."""
    return str(data.load_prepared(config.problem.name, config.data).meta["reason"])


def say_unavailable(config: schema.Config) -> None:
    """Say why nothing is done for the problem, and what would help."""
    name, reason = config.problem.name, unavailable_reason(config)
    again = f"`dperm fetch problem={name}`, then prepare and optimum"
    log.warning("%s: left out, its data are unavailable.\n%s", name, reason)
    log.warning("When that is mended, run %s again.", again)


def optimum_folder(config: schema.Config) -> Path:
    """Where the optimum of the problem lies."""
    return Path(config.data.dir, "optimum", config.problem.name)


def load_optimum(config: schema.Config) -> Optimum:
    """The certified optimum that the optimum stage left.

    Raises
    ------
    FileNotFoundError
        If that stage has not run.
    ValueError
        If what it left is damaged.
    """
    record = load_optimum_record(config, config.problem.name)
    path = optimum_folder(config) / "w.npy"
    try:
        w = np.load(path)
    except (ValueError, EOFError) as error:
        raise _damaged(path, str(error)) from error
    # Without a digest: an optimum of a run before there were any.
    if record.get("w_digest") not in (None, store.digest(w.tolist())):
        raise _damaged(path, "other digest")
    return Optimum(w, record["value"], record["gap"])


def load_optimum_record(config: schema.Config, problem: str) -> dict[str, Any]:
    """What ``optimum.json`` of a problem says; status ``unavailable`` without data."""
    path = Path(config.data.dir, "optimum", problem, "optimum.json")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: run `dperm optimum problem={problem}` first")
    return store.read_json(path, _remedy(path))


def _damaged(path: Path, reason: str) -> ValueError:
    return ValueError(f"{path} is damaged ({reason}): {_remedy(path)}")


def _remedy(path: Path) -> str:
    return f"delete {path.parent} and run again"


@dataclass(frozen=True)
class Job:
    """One (paper, problem, solver) with everything loaded."""

    config: schema.Config
    problem: Problem
    optimum: Optimum
    module: ModuleType
    options: Any

    @classmethod
    def load(cls, config: schema.Config) -> Job | None:
        """Load it, or None if the data are unavailable.

        Raises
        ------
        ConfigError
            If the solver cannot run on the problem.
        """
        problem = load_problem(config)
        if problem is None:
            say_unavailable(config)
            return None
        module = solvers.load(config.solver.algorithm)
        options = solvers.make_options(module, config.solver.options)
        reason = obstacle(module, options, config.problem, problem.is_sparse)
        if reason:
            raise ConfigError(f"conf/problem/{problem.name}.yaml: {reason}")
        return cls(config, problem, load_optimum(config), module, options)

    @property
    def folder(self) -> Path:
        """Where its results go."""
        names = (self.config.paper.name, self.problem.name, self.config.solver.name)
        return plan.results_folder(self.config, *names)

    def steps(self, passes: float) -> int:
        """Steps in so many passes."""
        return self.module.steps(self.problem, passes, self.options)
