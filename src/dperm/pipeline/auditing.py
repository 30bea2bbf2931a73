"""``dperm privacy``, the cost of a setting; and ``dperm audit``, of one or all solvers.

Keys of ``dperm privacy``: ``problem``, ``solver``, ``setting.passes``, and
``setting.noise_multiplier`` for the cost of a user's own noise. Sizes come from the
prepared data.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
from tabulate import tabulate

from dperm.accountants.private_choice import MANY, tuned_epsilon
from dperm.accountants.sampled_renyi import renyi_curve
from dperm.audit import tables
from dperm.audit.solvers import NoSubjectError
from dperm.core import solvers
from dperm.core.calibrations import PAPER, STRICT
from dperm.core.erm.problem import Problem
from dperm.core.experiment import files as store
from dperm.core.experiment import plan, results, schema
from dperm.core.experiment.config import with_paper
from dperm.core.experiment.locate import ConfigError, available
from dperm.core.lanes import trials
from dperm.core.privacy.accounting import epsilon, true_epsilon
from dperm.core.privacy.calibration import Calibration, calibrate
from dperm.core.privacy.ledger import Event, Ledger, NonPrivate, as_set, moves_with_data
from dperm.core.privacy.mechanisms import STUDY
from dperm.core.privacy.strict import converted
from dperm.core.solvers.capabilities import obstacle
from dperm.pipeline import inputs
from dperm.solvers.fits.scaled import Scaled

log = logging.getLogger(__name__)

HEAD = (
    "noise from",
    "noise multiplier",
    "published accountant",
    "true epsilon, at most",
)


def audit(config: schema.Config) -> list[Path]:
    """Audit the solver, or write the table that ``product`` names.

    Raises
    ------
    ConfigError
        If there is no table of that name.
    """
    if config.product is None:
        return _solver(config)
    made = PRODUCTS.get(config.product)
    if made is None:
        known = ", ".join(PRODUCTS)
        raise ConfigError(f"product={config.product}: the audit has {known}")
    path = plan.results_folder(config, "audit", f"{config.product}.csv")
    store.write_csv(path, made(config))
    log.info("%s", path)
    return [path]


def _path(config: schema.Config, name: str) -> Path:
    return plan.results_folder(config, "audit", "solvers") / f"{name}.csv"


def _solver(config: schema.Config) -> list[Path]:
    """The findings about the solver, one subject after the other as they come.

    Raises
    ------
    ConfigError
        If it is private and there is no subject to audit.
    """
    chosen, effort = config.solver, tables.FULL
    if config.scale.name != "full":
        effort = tables.SMALL
    given = (chosen.name, chosen.algorithm, chosen.options, effort, config.seed)
    found = [pd.DataFrame()]
    for rows in _audited(*given):
        for row in rows.itertuples():
            sign = "CAUGHT" if row.caught else "passed"
            text = f"{row.measured:.4g} of {row.bound:.4g}"
            names = f"{row.subject}, {row.calibration}"
            log.info("%-40s %-12s %s  %s  %s", names, row.check, sign, text, row.note)
        found.append(rows)
    if len(found) == 1:
        log.info("%s states no privacy: there is nothing to refute", chosen.name)
    path = _path(config, chosen.name)
    store.write_text(path, pd.concat(found).to_csv(index=False))
    return [path]


def _audited(*given: Any) -> Iterator[pd.DataFrame]:
    try:
        yield from tables.solver(*given)
    except NoSubjectError as error:
        raise ConfigError(str(error)) from error


def _epsilon(config: schema.Config) -> pd.DataFrame:
    found = []
    for name in available("solver"):
        try:
            found.append(pd.read_csv(_path(config, name), keep_default_na=False))
        except pd.errors.EmptyDataError:  # the solver states no privacy
            continue
    return tables.epsilons(pd.concat(found, ignore_index=True))


def _tuning(config: schema.Config) -> pd.DataFrame:
    """Costs of every ledger of the papers' runs: of one run, and of private tuning."""
    rows = []
    for name in available("paper"):
        paper = with_paper(config, name)
        for problem, chosen in plan.runs(paper):
            rows += _tuned(paper, problem, chosen)
    return pd.DataFrame(rows)


def _tuned(config: schema.Config, problem: str, chosen: str) -> list[dict]:
    folder = plan.results_folder(config, config.paper.name, problem, chosen)
    config = replace(config, solver=replace(config.solver, name=chosen))
    counts = Counter(point["passes"] for point in plan.grid_points(config))
    try:
        entries = results.ledgers(config, problem, chosen)
    except FileNotFoundError:
        log.info("%s has not run", folder)
        return []
    found = [(e["passes"], Calibration.from_dict(e["calibrated"])) for e in entries]
    return [
        {
            "paper": config.paper.name,
            "problem": problem,
            "solver": chosen,
            "calibration": one.calibration,
            "passes": passes,
            "settings": counts[passes],
            "claimed_epsilon": one.claimed_epsilon,
            "true_epsilon": one.true_epsilon,
            **_costs(one, counts[passes]),
        }
        for passes, one in found
        if counts[passes] > 1 and math.isfinite(one.true_epsilon)
    ]


def _costs(one: Calibration, settings: int) -> dict[str, float]:
    """Epsilon of one run by Rényi accounting, and with random stopping."""
    costs = {"renyi_epsilon": converted(renyi_curve(one.ledger, MANY), MANY, one.delta)}
    for kind in ("logarithmic", "geometric", "poisson"):
        costs[kind] = tuned_epsilon(one.ledger, one.delta, settings, kind)
    return costs


PRODUCTS: dict[str, Callable[[schema.Config], pd.DataFrame]] = {
    "epsilon": _epsilon,
    "tuning": _tuning,
}


# --- prices -------------------------------------------------------------------------


@dataclass(frozen=True)
class Request:
    """A solver on a problem, for a given number of passes."""

    problem: Problem
    module: ModuleType
    options: Any
    passes: float

    @property
    def count(self) -> int:
        """Number of steps."""
        steps: int = self.module.steps(self.problem, self.passes, self.options)
        return steps

    @property
    def length(self) -> str:
        """Length of a run, in words."""
        return f"{self.passes:g} passes = {self.count} steps"

    def kinds(self, known: Sequence[str]) -> Sequence[str]:
        """Calibrations of a paper whose cost can be computed."""
        return known

    def noise(self, kind: str) -> tuple[str, Ledger]:
        """The noise of a calibration, in words, and its ledger."""
        problem = self.problem
        if solvers.family(self.module) == "lanes":
            found = trials.noise(problem, self.module, self.options, self.passes, kind)
            return f"{found.noise_multiplier:.5g}", found.ledger
        goal = (problem.epsilon, problem.delta, kind)
        noise = self.module.noise(problem, self.count, self.options, *goal)
        return "see below", noise.ledger.assuming(*problem.given)

    def ledger(self, noise: float, kind: str) -> Ledger:
        """The ledger under a noise multiplier."""
        ledger: Ledger = self.module.ledger(
            self.problem, self.count, noise, self.options, kind
        )
        return ledger.assuming(*self.problem.given)


class Fitted(Request):
    """A method without passes; its options are its whole setting."""

    @cached_property
    def at(self) -> Scaled:
        """The problem in units of its public scales."""
        return Scaled(self.problem)

    @property
    def length(self) -> str:
        """Its options."""
        return str(self.options)

    def kinds(self, known: Sequence[str]) -> Sequence[str]:
        """Strict calibration only: no paper has printed a formula for the method."""
        return (STRICT,)

    def noise(self, kind: str) -> tuple[str, Ledger]:
        """The least noise that the strict accountant allows, and its ledger."""
        goal = (self.problem.epsilon, self.problem.delta, STRICT)
        found = calibrate(lambda noise: self.ledger(noise, kind), *goal)
        return f"{found.noise_multiplier:.5g}", found.ledger

    def ledger(self, noise: float, kind: str) -> Ledger:
        """The ledger under a noise multiplier."""
        ledger: Ledger = self.module.ledger(self.at, noise, self.options)
        return ledger.assuming(*self.problem.given)


def report(config: schema.Config) -> None:
    """Print the cost of the noise under both accountants, and the ledger.

    Noise is found under the paper's calibrations and under ``setting.calibration``.

    Raises
    ------
    ConfigError
        If the data are unavailable, or the solver does not solve problems.
    """
    request = _request(config)
    problem, asked = request.problem, config.setting.calibration
    kinds = request.kinds(list(dict.fromkeys([*config.paper.calibrations, asked])))
    target = f"epsilon = {problem.epsilon:g}, delta = {problem.delta:.4g}"
    print(f"{config.solver.label} on {problem.name} (n = {problem.n}, p = {problem.p})")
    print(f"{request.length}; target {target}")
    print("Neighbouring data sets differ by replacing one record.\n")
    rows = [_row(request, kind, *request.noise(kind)) for kind in kinds]
    own = config.setting.noise_multiplier
    if own is not None:
        ledger = request.ledger(own, asked)
        rows.append(_row(request, "given", f"{own:.5g}", ledger))
    print(tabulate(rows, headers=HEAD, floatfmt=".5g"))
    print("\nTrue epsilon: proved of every mechanism with that ledger.")
    if any(math.isinf(row[-1]) for row in rows):
        print("inf: no sound bound is known for a release of that ledger.")
    ledger = request.noise(asked)[1]
    print(f"\nEpsilon given public {as_set(ledger.given)}.")
    moving = moves_with_data(ledger.given)
    if moving:
        print(f"Not charged for: {', '.join(moving)}; without that, infinite.")
    print(f"{STUDY}\n")
    for event in ledger.events:
        print(_line(event))
        print(f"    {event.source}")


def _request(config: schema.Config) -> Request:
    module = solvers.load(config.solver.algorithm)
    options = solvers.make_options(module, config.solver.options)
    kind = solvers.family(module)
    if kind == "streams":
        raise ConfigError(
            f"solver={config.solver.name}: it reads a stream of records, not a problem"
        )
    problem = inputs.load_problem(config)
    if problem is None:
        raise ConfigError(f"problem {config.problem.name}: its data are unavailable")
    made = Fitted if kind == "fits" else Request
    request = made(problem, module, options, config.setting.passes)
    reason = ""
    if kind == "lanes":
        reason = obstacle(module, options, config.problem, problem.is_sparse)
    elif isinstance(request, Fitted):
        reason = module.refuses(options, request.at)
    if reason:
        raise ConfigError(f"conf/problem/{problem.name}.yaml: {reason}")
    return request


def _row(request: Request, kind: str, noise: str, ledger: Ledger) -> tuple:
    delta = request.problem.delta
    return kind, noise, epsilon(ledger, delta, PAPER), true_epsilon(ledger, delta)


def _line(event: Event) -> str:
    kind = type(event).__name__
    if isinstance(event, NonPrivate):
        return f"{kind} x {event.count}: {event.unit}"
    return f"{kind} x {event.count}: scale {event.scale:.5g} in units of {event.unit}"
