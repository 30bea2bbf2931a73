"""What a setting costs and the noise it needs: ``dperm privacy ...``.

Keys: ``problem``, ``solver``, ``setting.passes``, and ``setting.noise_multiplier`` to
price a noise of one's own. Sizes come from the prepared data.
"""

import math

from tabulate import tabulate

from dperm.locate import ConfigError
from dperm.pipeline import inputs, ledgers
from dperm.privacy.accounting import epsilon
from dperm.schema import Config


def report(config: Config) -> None:
    """Print the cost of the noise under both accountants, and the ledger."""
    job = inputs.Job.load(config)
    if job is None:
        raise ConfigError(f"problem {config.problem.name}: its data are unavailable")
    passes, problem = config.setting.passes, job.problem
    target = f"epsilon = {problem.epsilon:g}, delta = {problem.delta:.4g}"
    print(f"{config.solver.label} on {problem.name} (n = {problem.n}, p = {problem.p})")
    print(f"{passes:g} passes = {job.steps(passes)} steps; target {target}")
    print("Neighbouring data sets differ by replacing one record.\n")
    rows = [_calibrated(job, kind, passes) for kind in config.paper.calibrations]
    if config.setting.noise_multiplier is not None:
        rows.append(_given(job, passes, config.setting.noise_multiplier))
    head = ("noise from", "noise multiplier", "published accountant", "true epsilon")
    print(tabulate(rows, headers=head, floatfmt=".5g"))
    print()
    if any(math.isinf(row[-1]) for row in rows):
        print("inf: no sound bound is known for a release of that ledger.\n")
    for event in ledgers.one(job, config.setting.calibration, passes).ledger.events:
        kind = type(event).__name__
        print(
            f"{kind} x {event.count}: scale {event.scale:.5g} in units of {event.unit}"
        )
        print(f"    {event.source}")


def _calibrated(job: inputs.Job, kind: str, passes: float) -> tuple:
    found = ledgers.one(job, kind, passes)
    published = epsilon(found.ledger, found.delta, "paper")
    return kind, found.noise_multiplier, published, found.true_epsilon


def _given(job: inputs.Job, passes: float, noise: float) -> tuple:
    count, kind = job.steps(passes), job.config.setting.calibration
    ledger = job.module.ledger(job.problem, count, noise, job.options, kind)
    costs = [epsilon(ledger, job.problem.delta, name) for name in ("paper", "strict")]
    return "given", noise, *costs
