"""What a solver stage reads: the problem, its optimum, its solver, its folder."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from dperm import data, grid, schema, solvers
from dperm.config import ConfigError, compose, number
from dperm.erm.optimum import Optimum
from dperm.erm.penalties import Penalty
from dperm.erm.problem import Problem, build
from dperm.store import files as store

log = logging.getLogger(__name__)


def results_folder(config: schema.Config, *below: str) -> Path:
    """A folder below results/, or below results/<scale>/."""
    return Path(config.output.results, config.scale.folder, *below)


def figures_folder(config: schema.Config, *below: str) -> Path:
    """A folder below figures/, or below figures/<scale>/."""
    return Path(config.output.figures, config.scale.folder, *below)


def problem_names(config: schema.Config) -> list[str]:
    """The problems of the paper at this scale."""
    offline = config.scale.problems == "offline"
    return config.paper.offline if offline else config.paper.problems


def product_problems(product: schema.Product, names: list[str]) -> list[str]:
    """The product's problems as far as the scale has them; all where it has none."""
    return [name for name in product.problems or () if name in names] or names


def sweep_prepared(config: schema.Config, sweep: schema.Sweep) -> list[str]:
    """Problems whose arrays a sweep reads; at the small scales the offline ones."""
    offline = config.scale.problems == "offline" and sweep.prepared
    return config.paper.offline if offline else sweep.prepared


def runs(config: schema.Config) -> list[tuple[str, str]]:
    """(problem, solver) of every solver job of the paper at this scale."""
    return [
        (problem, solver)
        for problem in problem_names(config)
        for solver, run in config.paper.runs.items()
        if run.problems is None or problem in run.problems
    ]


def grid_points(config: schema.Config) -> list[dict[str, float]]:
    """The grid of the paper for the chosen solver, thinned to the scale.

    Raises
    ------
    ConfigError
        If the paper does not run this solver.
    """
    paper, solver = config.paper, config.solver.name
    if solver not in paper.runs:
        known = ", ".join(paper.runs)
        raise ConfigError(
            f"conf/paper/{paper.name}.yaml: runs: no solver {solver!r}; it has {known}"
        )
    found = grid.points(paper.runs[solver].grid, f"runs.{solver}.grid")
    return grid.thin(found, config.scale.keep)


def run_calibrations(config: schema.Config) -> list[str]:
    """The calibrations of the chosen solver on the chosen problem."""
    run = config.paper.runs[config.solver.name]
    known = config.paper.calibrations if run.calibrations is None else run.calibrations
    left_out = run.leave_out.get(config.problem.name, ())
    return [name for name in known if name not in left_out]


def at_problem(config: schema.Config, name: str) -> schema.Config:
    """The configuration of another problem, with the same places for data."""
    composed = compose([f"problem={name}"])
    composed.data = config.data
    return composed


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
        store.digest(identity), standardised=implicit,
    )  # fmt: skip


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
            If the data are sparse, standardised, and the solver would fill them in.
        """
        problem = load_problem(config)
        if problem is None:
            say_unavailable(config)
            return None
        module = solvers.load(config.solver.algorithm)
        if problem.is_centred and not getattr(module, "CENTRED", False):
            raise ConfigError(
                f"conf/problem/{problem.name}.yaml: preparation.standardize on sparse "
                f"data: expected dp_cd or dp_gcd, found {config.solver.algorithm}, "
                "which would fill them in"
            )
        options = solvers.make_options(module, config.solver.options)
        return cls(config, problem, load_optimum(config), module, options)

    @property
    def folder(self) -> Path:
        """Where its results go."""
        names = (self.config.paper.name, self.problem.name, self.config.solver.name)
        return results_folder(self.config, *names)

    def steps(self, passes: float) -> int:
        """Steps in so many passes."""
        return self.module.steps(self.problem, passes, self.options)
