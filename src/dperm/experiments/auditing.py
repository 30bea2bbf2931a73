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
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
from tabulate import tabulate

from dperm.audit import tables
from dperm.audit.mechanism import Mechanism
from dperm.audit.solvers import mechanisms
from dperm.config import schema
from dperm.config.config import papers
from dperm.config.locate import ConfigError, available
from dperm.config.validation import key_of
from dperm.estimators import audited
from dperm.experiments import inputs, plan, results
from dperm.experiments.capabilities import obstacle
from dperm.privacy.accountants import PUBLISHED, TIGHT
from dperm.privacy.accountants.sampled_renyi import renyi_curve
from dperm.privacy.accountants.tight import converted
from dperm.privacy.accounting import epsilon, true_epsilon
from dperm.privacy.calibration import Calibration, calibrate
from dperm.privacy.events import Ledger, NonPrivate, as_set, moves_with_data
from dperm.privacy.noise import STUDY
from dperm.privacy.private_selection import MANY, tuned_epsilon
from dperm.problems.problem import Problem
from dperm.solvers import registry
from dperm.solvers.full_batch.scaled import Scaled
from dperm.storage import files as store

log = logging.getLogger(__name__)

HEAD = ("noise from", "noise multiplier", "published", "true epsilon, at most")


class CaughtError(SystemExit):
    """A check has caught the solver: exit code 1, when the findings are written."""

    def __init__(self, path: Path) -> None:
        super().__init__(1)
        self.written = [path]


def audit(config: schema.Config) -> list[Path]:
    """Audit the solver, or write the table that ``product`` names.

    Raises
    ------
    ConfigError
        If there is no table of that name.
    CaughtError
        After all checks, if one has caught the solver.
    """
    if config.product is None:
        is_thorough = config.scale.thorough
        effort = tables.FULL_EFFORT if is_thorough else tables.SMALL_EFFORT
        return _solver(
            config.solver, effort, config.seed, _folder(config.output)
        )
    make_table = PRODUCTS.get(config.product)
    if make_table is None:
        names = ", ".join(PRODUCTS)
        raise ConfigError(f"product={config.product}: the audit has {names}")
    path = _folder(config.output) / f"{config.product}.csv"
    store.write_csv(path, make_table(config))
    log.info("%s", path)
    return [path]


def _folder(output: schema.Output) -> Path:
    return Path(output.results, "audit")


def _solver(
    chosen: schema.Solver, effort: dict[str, int], seed: int, folder: Path
) -> list[Path]:
    """The findings about a solver, one subject after the other as they come.

    Raises NoSubjectError if it is private and there is no subject to audit.
    """
    frames = [pd.DataFrame({"caught": []})]
    for rows in tables.solver(chosen.name, _subjects(chosen), effort, seed):
        for row in rows.itertuples():
            sign = "CAUGHT" if row.caught else "passed"
            text = f"{row.measured:.4g} of {row.bound:.4g}"
            names = f"{row.subject}, {row.calibration}"
            log.info(
                "%-40s %-12s %s  %s  %s",
                names,
                row.check,
                sign,
                text,
                row.note,
            )
        frames.append(rows)
    if len(frames) == 1:
        log.info(
            "%s states no privacy: there is nothing to refute", chosen.name
        )
    path = folder / "solvers" / f"{chosen.name}.csv"
    findings = pd.concat(frames[1:] or frames)
    text = "\n"
    if len(findings):
        text = findings.to_csv(index=False)
    store.write_text(path, text)
    if findings.caught.any():
        raise CaughtError(path)
    return [path]


def _subjects(chosen: schema.Solver) -> Iterator[Mechanism]:
    """A solver's own subjects, and the estimators that use it.

    Variants of an algorithm are not tried in estimators.
    """
    yield from mechanisms(chosen.name, chosen.algorithm, chosen.options)
    if chosen.name == chosen.algorithm:
        yield from audited.mechanisms(chosen.name)


def _epsilon(config: schema.Config) -> pd.DataFrame:
    """The table of all solvers; the file of one that states no privacy is empty."""
    folder = _folder(config.output) / "solvers"
    paths = [folder / f"{name}.csv" for name in available("solver")]
    findings = [
        pd.read_csv(path, keep_default_na=False)
        for path in paths
        if path.read_text(encoding="utf-8").strip()
    ]
    return tables.epsilons(pd.concat(findings, ignore_index=True))


def _tuning(config: schema.Config) -> pd.DataFrame:
    """Costs of every ledger of the papers' runs: of one run, and of private tuning."""
    rows: list[dict] = []
    for paper in papers(available("paper"), config.scale, config.overrides):
        folder = Path(config.output.results, paper.name)
        for run in plan.runs(paper):
            rows += _tuned(paper, config.scale, folder, run)
    return pd.DataFrame(rows)


def _tuned(
    paper: schema.Paper,
    scale: schema.Scale,
    folder: Path,
    run: tuple[str, str],
) -> Iterator[dict]:
    """Rows of one run, a problem and a solver; none where it has not run.

    The Rényi epsilon is that of one run, the logarithmic one that of the best of a
    random number of runs.
    """
    problem, chosen = run
    points = plan.grid_points(paper, chosen, scale.keep)
    counts = Counter(point["passes"] for point in points)
    try:
        records = results.ledgers(folder / problem / chosen)
    except FileNotFoundError:
        log.info("%s has not run on %s", chosen, problem)
        return
    for record in records:
        calibrated = Calibration.from_dict(record["calibrated"])
        settings = counts[record["passes"]]
        if settings > 1 and math.isfinite(calibrated.true_epsilon):
            curve = renyi_curve(calibrated.ledger, MANY)
            yield {
                "paper": paper.name,
                "problem": problem,
                "solver": chosen,
                "calibration": calibrated.calibration,
                "passes": record["passes"],
                "settings": settings,
                "claimed_epsilon": calibrated.claimed_epsilon,
                "true_epsilon": calibrated.true_epsilon,
                "renyi_epsilon": converted(curve, MANY, calibrated.delta),
                "logarithmic": tuned_epsilon(
                    calibrated.ledger, calibrated.delta, settings
                ),
            }


PRODUCTS: dict[str, Callable[[schema.Config], pd.DataFrame]] = {
    "epsilon": _epsilon,
    "tuning": _tuning,
}


# --- prices -------------------------------------------------------------------------


def report(config: schema.Config) -> None:
    """Print the cost of the noise under both accountants, and the ledger.

    Noise is found under the paper's calibrations and under ``setting.calibration``.

    Raises
    ------
    ConfigError
        If the data are unavailable, or the solver cannot solve the problem.
    """
    module, options, problem = _request(config)
    family = registry.family(module)
    _refuse_unread(config.overrides, config.solver.name, family)
    asked = config.setting.calibration
    calibrations = [*config.paper.calibrations, asked]
    own_noise = config.setting.noise_multiplier
    arguments: tuple[Any, ...] = (Scaled(problem),)
    if family == "full_batch":  # no paper has printed a formula for one
        asked = TIGHT if asked == PUBLISHED else asked
        calibrations = [TIGHT, asked]
    else:
        arguments = (
            problem,
            int(module.steps(problem, config.setting.passes, options)),
        )

    def priced(noise: float, calibration: str) -> Ledger:
        """The ledger under a noise multiplier."""
        terms = [noise, options]
        if family != "full_batch":
            terms.append(calibration)
        releases: Ledger = module.ledger(*arguments, *terms)
        return releases.assuming(*problem.given)

    def least(calibration: str) -> tuple[str, Ledger]:
        """The noise multiplier of a calibration, in words, and its ledger."""
        goal = (problem.epsilon, problem.delta, calibration)
        if family == "frank_wolfe":  # noise on scores and on features differs
            noise = module.noise(*arguments, options, *goal)
            return "see below", noise.ledger.assuming(*problem.given)
        calibrated = calibrate(lambda noise: priced(noise, calibration), *goal)
        return f"{calibrated.noise_multiplier:.5g}", calibrated.ledger

    rows = {name: least(name) for name in dict.fromkeys(calibrations)}
    ledger = rows[asked][1]
    if own_noise is not None:
        rows["given"] = f"{own_noise:.5g}", priced(own_noise, asked)
    delta = problem.delta
    costs = []
    for calibration, (noise, releases) in rows.items():
        claimed = epsilon(releases, delta, PUBLISHED)
        costs.append(
            (calibration, noise, claimed, true_epsilon(releases, delta))
        )
    size = f"n = {problem.n}, p = {problem.p}"
    if family != "full_batch":
        size += f", {arguments[-1]} steps"
    print(f"{config.solver.label} on {problem.name} ({size})")
    print(f"target epsilon = {problem.epsilon:g}, delta = {delta:.4g}\n")
    print(tabulate(costs, headers=HEAD, floatfmt=".5g"))
    if any(math.isinf(row[-1]) for row in costs):
        print("inf: no sound bound is known for a release of that ledger.")
    print(
        f"\nEpsilon by replacing one record, given public {as_set(ledger.given)}."
    )
    moving = moves_with_data(ledger.given)
    if moving:
        print(f"Not charged for: {', '.join(moving)}; without that, infinite.")
    print(f"{STUDY}\n")
    for event in ledger.events:
        size = ""
        if not isinstance(event, NonPrivate):
            size = f"scale {event.scale:.5g} in units of "
        print(f"{type(event).__name__} x {event.count}: {size}{event.unit}")
        print(f"    {event.source}")


def _refuse_unread(overrides: Sequence[str], solver: str, family: str) -> None:
    """Refuse keys of ``setting`` on which the cost of a solver does not depend."""
    read = {"calibration", "noise_multiplier", "passes"}
    if family == "full_batch":
        read -= {"passes"}
    for text in overrides:
        _, _, name = key_of(text).partition("setting.")
        if name and name not in read:
            names = ", ".join(sorted(read))
            raise ConfigError(
                f"{text}: {solver} costs the same whatever it is: expected "
                f"one of {names}"
            )
        if (
            text == f"setting.calibration={PUBLISHED}"
            and family == "full_batch"
        ):
            raise ConfigError(
                f"{text}: no paper prints a formula for {solver}: expected "
                f"{TIGHT}, or a module of yours"
            )


def _request(config: schema.Config) -> tuple[ModuleType, Any, Problem]:
    """The solver's module and options, and the problem, which it can solve."""
    module = registry.load(config.solver.algorithm)
    options = registry.make_options(module, config.solver.options)
    family = registry.family(module)
    reason = ""
    if family == "single_pass":
        raise ConfigError(
            f"solver={config.solver.name}: it reads a stream of records, not a problem"
        )
    problem = inputs.load_problem(config.problem, config.data)
    if family == "batched":
        reason = obstacle(module, options, config.problem, problem.is_sparse)
    elif family == "full_batch":
        reason = module.refuses(options, Scaled(problem))
    if reason:
        raise ConfigError(f"conf/problem/{problem.name}.yaml: {reason}")
    return module, options, problem
