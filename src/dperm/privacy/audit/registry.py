"""One subject for every solver of the configuration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dperm import solvers
from dperm.privacy.audit.subjects import (
    ConstantsSubject,
    LaneSubject,
    StreamSubject,
    Subject,
    Target,
    drive_baseline,
    drive_noisy_sfw,
    drive_phased_sgd,
    drive_poly_sfw,
    small_problem,
)
from dperm.problems.stochastic import Setup

CALIBRATIONS = ("paper", "strict")
STEPS = 4  # of a lane's run
RADIUS = 0.25
DELTA = 1 / 64


def subjects(name: str, algorithm: str, given: dict[str, Any]) -> list[Subject]:
    """The subjects of a solver under both calibrations.

    Parameters
    ----------
    name, algorithm : str
        As in the solver's YAML.
    given : dict
        Its options.
    """
    module = solvers.load(algorithm)
    made = STREAMS.get(algorithm, _lanes)
    options = solvers.make_options(module, given)
    return [one for kind in CALIBRATIONS for one in made(name, module, options, kind)]


def _lanes(name: str, module: Any, options: Any, kind: str) -> list[Subject]:
    selects = hasattr(options, "rule")
    problem = small_problem(p=2 if selects else 3)
    options = _fitting(options, problem.p)
    found: list[Subject] = [
        LaneSubject(name, module, options, kind, STEPS, problem)
    ]
    if hasattr(options, "share"):
        label = f"{name}, constants"
        found.append(ConstantsSubject(label, small_problem(n=2000), kind))
    return found


def _fitting(options: Any, p: int) -> Any:
    """The options with no more blocks or coordinates than there are."""
    from dataclasses import replace

    wanted = {"blocks": p, "size": p}
    return replace(
        options,
        **{key: min(getattr(options, key), most) for key, most in wanted.items()
           if hasattr(options, key)},
    )  # fmt: skip


def _stream(n: int, p: float, d: int, loss: str, kind: str) -> Target:
    return Target(Setup(loss, p, d, RADIUS), n, 1.0, DELTA, kind)


def _noisy_sfw(name: str, module: Any, options: Any, kind: str) -> list[Subject]:
    found: list[Subject] = []
    for p, label in ((2.0, "p = 2"), (1.5, "p = 1.5")):
        at = _stream(256, p, 3, "least_squares", kind)
        multiplier = module.noise_multiplier(at.setup.q, 3, 1.0, DELTA, kind)
        ledger = module.ledger(at.setup, at.n, multiplier, options, kind)
        positions = (0, 20, 40, 60, 75)
        drive = drive_noisy_sfw(options)
        found.append(StreamSubject(f"{name}, {label}", at, ledger, drive, positions))
    return found


def _poly_sfw(name: str, module: Any, options: Any, kind: str) -> list[Subject]:
    at = _stream(8, 1.0, 2, "least_squares", kind)
    given = (at.setup, at.n, 1.0, DELTA, kind, at.setup.radius, 4)
    scales = module.noise_scales(*given)
    ledger = module.ledger(at.setup, at.n, scales, at.setup.radius, 4)
    return [StreamSubject(name, at, ledger, drive_poly_sfw, (0, 4, 5, 7))]


def _phased_sgd(name: str, module: Any, options: Any, kind: str) -> list[Subject]:
    at = _stream(16, 2.0, 3, "least_squares", kind)
    ledger = module.ledger(module.noise_multiplier(1.0, DELTA, kind))
    return [StreamSubject(name, at, ledger, drive_phased_sgd, (0, 7, 8, 13, 14))]


def _baseline(name: str, module: Any, options: Any, kind: str) -> list[Subject]:
    method = options.method
    p, d, n = (1.0, 2, 8) if method == "dp_fw" else (2.0, 3, 16)
    at = _stream(n, p, d, "least_squares", kind)
    target = module.Target(1.0, DELTA, kind)
    count = module.iterations(n, method)
    if method == "dp_fw":
        scale = module.selection_scale(at.setup, n, target, count)
        ledger = module.selection_ledger(at.setup, n, scale, count)
    else:
        steps = 1 if method == "dp_sgd" else count
        ledger = module.gaussian_ledger(module.gaussian_multiplier(target, steps), steps)
    return [StreamSubject(name, at, ledger, drive_baseline(method), (0, n - 1))]


STREAMS: dict[str, Callable[..., list[Subject]]] = {
    "noisy_sfw": _noisy_sfw,
    "poly_sfw": _poly_sfw,
    "phased_sgd": _phased_sgd,
    "sco_baselines": _baseline,
}
