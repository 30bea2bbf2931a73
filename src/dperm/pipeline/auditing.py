"""``dperm privacy``, the cost of a setting; and ``dperm audit``, of one or all solvers.

Keys of ``dperm privacy``: ``problem``, ``solver``, ``setting.passes``, and
``setting.noise_multiplier`` for the cost of a user's own noise. Sizes come from the
prepared data.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterator
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
from dperm.core.privacy.ledger import Ledger, NonPrivate, as_set, moves_with_data
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
    """Epsilon of one run by Rényi accounting, and of the best of a random number."""
    return {
        "renyi_epsilon": converted(renyi_curve(one.ledger, MANY), MANY, one.delta),
        "logarithmic": tuned_epsilon(one.ledger, one.delta, settings),
    }


PRODUCTS: dict[str, Callable[[schema.Config], pd.DataFrame]] = {
    "epsilon": _epsilon,
    "tuning": _tuning,
}


# --- prices -------------------------------------------------------------------------


@dataclass(frozen=True)
class Request:
    """A solver on a problem, for a given number of passes; fits have none."""

    problem: Problem
    module: ModuleType
    options: Any
    passes: float

    @cached_property
    def family(self) -> str:
        """The solver's family."""
        return solvers.family(self.module)

    @cached_property
    def count(self) -> int:
        """Number of steps; 0 of a fit."""
        if self.family == "fits":
            return 0
        return int(self.module.steps(self.problem, self.passes, self.options))

    def noise(self, kind: str) -> tuple[str, Ledger]:
        """The noise of a calibration, in words, and its ledger."""
        problem, given = self.problem, (self.options, self.passes, kind)
        goal = (problem.epsilon, problem.delta, kind)
        if self.family == "frank_wolfe":
            noise = self.module.noise(problem, self.count, self.options, *goal)
            return "see below", noise.ledger.assuming(*problem.given)
        if self.family == "lanes":
            found = trials.noise(problem, self.module, *given)
        else:
            found = calibrate(lambda noise: self.ledger(noise, kind), *goal)
        return f"{found.noise_multiplier:.5g}", found.ledger

    def ledger(self, noise: float, kind: str) -> Ledger:
        """The ledger under a noise multiplier."""
        if self.family == "fits":
            ledger = self.module.ledger(Scaled(self.problem), noise, self.options)
        else:
            given = (self.problem, self.count, noise, self.options, kind)
            ledger = self.module.ledger(*given)
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
    kinds = list(dict.fromkeys([*config.paper.calibrations, asked]))
    length = f"{request.passes:g} passes = {request.count} steps"
    if request.family == "fits":  # no paper has printed a formula for one
        kinds, asked, length = [STRICT], STRICT, str(request.options)
    target = f"epsilon = {problem.epsilon:g}, delta = {problem.delta:.4g}"
    print(f"{config.solver.label} on {problem.name} (n = {problem.n}, p = {problem.p})")
    print(f"{length}; target {target}")
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
        size = f"scale {event.scale:.5g} in units of "
        size = "" if isinstance(event, NonPrivate) else size
        print(f"{type(event).__name__} x {event.count}: {size}{event.unit}")
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
    request = Request(problem, module, options, config.setting.passes)
    reason = ""
    if kind == "lanes":
        reason = obstacle(module, options, config.problem, problem.is_sparse)
    elif kind == "fits":
        reason = module.refuses(options, Scaled(problem))
    if reason:
        raise ConfigError(f"conf/problem/{problem.name}.yaml: {reason}")
    return request


def _row(request: Request, kind: str, noise: str, ledger: Ledger) -> tuple:
    delta = request.problem.delta
    return kind, noise, epsilon(ledger, delta, PAPER), true_epsilon(ledger, delta)
