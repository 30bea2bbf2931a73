"""What a setting costs and the noise it needs: ``dperm privacy ...``.

Keys: ``problem``, ``solver``, ``setting.passes``, and ``setting.noise_multiplier`` to
price a noise of one's own. Sizes come from the prepared data.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

from tabulate import tabulate

from dperm.accountants.intervals import epsilon_interval
from dperm.core import calibrations, solvers
from dperm.core.calibrations import PAPER, STRICT
from dperm.core.erm.problem import Problem
from dperm.core.experiment.locate import ConfigError
from dperm.core.experiment.schema import Config
from dperm.core.lanes import trials
from dperm.core.privacy.accounting import epsilon, unconditional
from dperm.core.privacy.calibration import calibrate
from dperm.core.privacy.ledger import Event, Ledger, NonPrivate, as_set, moves_with_data
from dperm.core.privacy.mechanisms import STUDY
from dperm.core.solvers.capabilities import obstacle
from dperm.pipeline import inputs
from dperm.solvers.fits.scaled import Scaled

HEAD = (
    "noise from",
    "noise multiplier",
    "published accountant",
    "true epsilon, from",
    "to",
    "nothing but n public",
)


@dataclass(frozen=True)
class Request:
    """A solver on a problem, for so many passes."""

    problem: Problem
    module: ModuleType
    options: Any
    passes: float

    @property
    def count(self) -> int:
        """Steps."""
        steps: int = self.module.steps(self.problem, self.passes, self.options)
        return steps

    @property
    def length(self) -> str:
        """How long a run is, in words."""
        return f"{self.passes:g} passes = {self.count} steps"

    def kinds(self, known: Sequence[str]) -> Sequence[str]:
        """Calibrations it can be priced under, of those of a paper."""
        return known

    def noise(self, kind: str) -> tuple[str, Ledger]:
        """The noise of a calibration, in words, and its ledger."""
        is_lanes = solvers.family(self.module) == "lanes"
        return (self._calibrated if is_lanes else self._uncalibrated)(kind)

    def ledger(self, noise: float, kind: str) -> Ledger:
        """The ledger under a noise multiplier."""
        ledger: Ledger = self.module.ledger(
            self.problem, self.count, noise, self.options, kind
        )
        return ledger.assuming(*self.problem.given)

    def _calibrated(self, kind: str) -> tuple[str, Ledger]:
        found = trials.noise(self.problem, self.module, self.options, self.passes, kind)
        return f"{found.noise_multiplier:.5g}", found.ledger

    def _uncalibrated(self, kind: str) -> tuple[str, Ledger]:
        goal = (self.problem.epsilon, self.problem.delta, kind)
        noise = self.module.noise(self.problem, self.count, self.options, *goal)
        return "see below", noise.ledger.assuming(*self.problem.given)


class Fitted(Request):
    """A method without passes: all of its setting stands in its options."""

    @cached_property
    def at(self) -> Scaled:
        """The problem in units of its public scales."""
        return Scaled(self.problem)

    @property
    def length(self) -> str:
        """Its options."""
        return str(self.options)

    def kinds(self, known: Sequence[str]) -> Sequence[str]:
        """No paper has printed a formula for it."""
        return (STRICT,)

    def noise(self, kind: str) -> tuple[str, Ledger]:
        """The least that the strict accountant proves."""
        goal = (self.problem.epsilon, self.problem.delta, STRICT)
        found = calibrate(lambda noise: self.ledger(noise, kind), *goal)
        return f"{found.noise_multiplier:.5g}", found.ledger

    def ledger(self, noise: float, kind: str) -> Ledger:
        """The ledger under a noise multiplier."""
        ledger: Ledger = self.module.ledger(self.at, noise, self.options)
        return ledger.assuming(*self.problem.given)


def report(config: Config) -> None:
    """Print the cost of the noise under both accountants, and the ledger.

    Raises
    ------
    ConfigError
        If the data are unavailable, or the solver does not solve problems.
    """
    request = _request(config)
    problem, kinds = request.problem, request.kinds(_kinds(config))
    target = f"epsilon = {problem.epsilon:g}, delta = {problem.delta:.4g}"
    print(f"{config.solver.label} on {problem.name} (n = {problem.n}, p = {problem.p})")
    print(f"{request.length}; target {target}")
    print("Neighbouring data sets differ by replacing one record.\n")
    rows = [_row(request, kind, *request.noise(kind)) for kind in kinds]
    own = config.setting.noise_multiplier
    if own is not None:
        ledger = request.ledger(own, config.setting.calibration)
        rows.append(_row(request, "given", f"{own:.5g}", ledger))
    print(tabulate(rows, headers=HEAD, floatfmt=".5g"))
    print("\nTrue epsilon: proved to lie between the two, for some mechanism with that")
    print("ledger the lower, for every one at most the upper.")
    if any(math.isinf(row[-2]) for row in rows):
        print("inf: no sound bound is known for a release of that ledger.")
    ledger = request.noise(config.setting.calibration)[1]
    print(f"\nEpsilon given public {as_set(ledger.given)}.")
    moving = moves_with_data(ledger.given)
    if moving:
        print(f"Not charged for: {', '.join(moving)}; without that, infinite.")
    print(f"{STUDY}\n")
    for event in ledger.events:
        print(_line(event))
        print(f"    {event.source}")


def _kinds(config: Config) -> list[str]:
    """The calibrations of the paper, and a further one that the setting names."""
    own = config.setting.calibration
    return [*config.paper.calibrations, *([] if own in calibrations.OURS else [own])]


def _request(config: Config) -> Request:
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
    ends = epsilon_interval(ledger, delta)
    costs = (epsilon(ledger, delta, PAPER), *ends, unconditional(ledger, delta))
    return kind, noise, *costs


def _line(event: Event) -> str:
    kind = type(event).__name__
    if isinstance(event, NonPrivate):
        return f"{kind} x {event.count}: {event.unit}"
    return f"{kind} x {event.count}: scale {event.scale:.5g} in units of {event.unit}"
