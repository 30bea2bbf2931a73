"""What must not move: weights, prices, jobs and verdicts, computed from today's code.

Each function returns named values, which ``values/`` holds as they were when the file
was written. ``PYTHONPATH=tests python -m golden.write NAME`` writes one anew; a
commit that does so says why the numbers moved. ``--prune`` leaves out what is gone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

from dperm.config import config
from dperm.privacy.accounting import true_epsilon
from dperm.privacy.calibration import calibrate
from dperm.privacy.events import Gaussian, Laplace, Ledger, SampledGaussian
from dperm.privacy.noise import streams
from dperm.problems.penalties import Penalty
from dperm.problems.problem import Problem, build
from dperm.solvers import registry
from dperm.solvers.batched import BatchedSettings
from dperm.solvers.batched.trials import noise
from dperm.workflow.jobs import Jobs

EPSILON, DELTA, SEED, STEPS = 1.0, 1e-5, 11, 240
SETTINGS = {"one": ([0.4], [0.5]), "six": ([0.02, 0.1, 0.4, 1.0, 0.4, 0.1],
                                        [0.1, 0.5, 0.5, 2.0, 1e-3, 30.0])}  # fmt: skip


# --- weights --------------------------------------------------------------------------


def dense(loss: str, penalty: Penalty, n: int = 120, p: int = 17) -> Problem:
    """A problem with imbalanced columns."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, p)) * np.geomspace(0.2, 4.0, p)
    y = X @ rng.standard_normal(p) / 3 + rng.standard_normal(n)
    y = np.sign(y) if loss == "logistic" else y
    return build("dense", X, y, loss, penalty, EPSILON, DELTA)


def sparse(loss: str, penalty: Penalty, n: int = 90, p: int = 200) -> Problem:
    """A problem with few entries a record, and some in every column."""
    rng = np.random.default_rng(4)
    X = scipy.sparse.random_array((n, p), density=0.04, rng=rng).toarray()
    X[np.arange(p) % n, np.arange(p)] += 1.0
    X = scipy.sparse.csr_array(X)
    y = X @ rng.standard_normal(p) + 0.3 * rng.standard_normal(n)
    y = np.sign(y) if loss == "logistic" else y
    return build("sparse", X, y, loss, penalty, EPSILON, DELTA)


SMOOTH = Penalty(l2=0.01)
LASSO = Penalty(l1=0.01)
#: variants of the batched solvers, with the loss and the penalty of their dense problem
VARIANTS: dict[str, tuple[str, Penalty]] = {
    "dp_cd": ("logistic", LASSO),
    "dp_cd_uniform": ("least_squares", LASSO),
    "dp_cd_priv": ("least_squares", SMOOTH),
    "dp_gcd": ("logistic", LASSO),
    "dp_gcd_gumbel": ("least_squares", LASSO),
    "dp_gcd_q": ("least_squares", LASSO),
    "dp_gcd_s": ("logistic", LASSO),
    "dp_sgd": ("logistic", LASSO),
    "dp_sgd_batch": ("least_squares", SMOOTH),
    "dp_svrg": ("logistic", SMOOTH),
    "dp_skgd": ("logistic", SMOOTH),
    "dp_skgd_blocks4": ("least_squares", SMOOTH),
    "dp_skgd_blocks4_importance": ("logistic", SMOOTH),
    "dp_skgd_composite": ("least_squares", LASSO),
    "dp_skgd_full": ("logistic", SMOOTH),
    "dp_skgd_importance": ("least_squares", SMOOTH),
    "dp_skgd_nice4": ("logistic", SMOOTH),
}
SPARSE = (
    "dp_cd",
    "dp_cd_uniform",
    "dp_cd_priv",
    "dp_gcd",
    "dp_gcd_q",
    "dp_sgd",
)
FRANK_WOLFE = ("bcfw", "dp_bcfw", "dp_bcfw_feasible", "dp_fw", "fw")
STREAMS = (
    "noisy_sfw",
    "noisy_sfw_all",
    "phased_sgd",
    "poly_sfw",
    "sco_dp_fw",
    "sco_dp_sgd",
    "sco_mirror_descent",
)
FITS = {
    "ada_ssp": "least_squares",
    "dp_gd": "logistic",
    "dp_gram": "logistic",
    "dp_minibatch": "logistic",
    "dp_selection": "least_squares",
    "hessian_mixing": "least_squares",
    "moments": "least_squares",
    "objective_perturbation": "logistic",
}


def summary(weights: np.ndarray) -> dict[str, Any]:
    """A digest of the bits, and three numbers."""
    weights = np.ascontiguousarray(weights, dtype=float)
    place = np.cos(np.arange(weights.size)).reshape(weights.shape)
    return {
        "digest": hashlib.sha256(weights.tobytes()).hexdigest()[:16],
        "numbers": [
            float(np.abs(weights).sum()),
            float(weights.ravel()[np.abs(weights).argmax()]),
            float((weights * place).sum()),
        ],
    }


def read(name: str) -> tuple[Any, Any]:
    """The module of a solver's YAML, and its options."""
    spec = config.read("solver", name)
    module = registry.load(spec.algorithm)
    return module, registry.make_options(module, dict(spec.options))


def setting_weights(name: str, problem: Problem, settings: str) -> np.ndarray:
    """Weights (L, p) after a few hundred steps in three pieces."""
    module, options = read(name)
    step, clip = (np.array(values) for values in SETTINGS[settings])
    side = BatchedSettings(step, clip, 0.7, "published")
    run = module.Run(problem, side, streams(SEED), options, total=STEPS)
    for count in (1, 100, STEPS - 101):
        run.advance(count)
    return np.asarray(run.weights)


def frank_wolfe_weights(name: str) -> np.ndarray:
    """Weights after sixty steps under the published noise."""
    module, options = read(name)
    problem = dense("least_squares", Penalty())
    made = module.noise(problem, 60, options, 5.0, DELTA, "published")
    with module.Run(problem, streams(SEED), options, made) as run:
        run.advance(60)
        return np.array(run.weights)


def stream_weights(name: str, calibration: str) -> np.ndarray:
    """Weights (1, p) after a pass over 1500 records."""
    from dperm.solvers.single_pass import Target
    from dperm.solvers.single_pass.setup import Setup
    from dperm.solvers.single_pass.sources import Signs

    module, options = read(name)
    setup = Setup(
        "least_squares", 1.0 if "poly" in name or "fw" in name else 2.0, 6
    )
    given = (setup, [Target(2.0, DELTA, calibration)], streams(SEED))
    return np.asarray(module.Run(*given, Signs(6, 3), 1500, options).solve())


def fit_weights(name: str) -> np.ndarray:
    """Weights (2, p) of two runs of a method under tight noise."""
    from dperm.solvers.full_batch.scaled import Scaled

    module, options = read(name)
    at = Scaled(dense(FITS[name], SMOOTH))
    ledger = module.ledger(at, 0.9, options)
    run = module.Run(at, ledger, [streams(SEED), streams(SEED + 1)], options)
    return np.asarray(run.solve())


def weights() -> Iterator[tuple[str, Callable[[], np.ndarray]]]:
    """How to compute the weights of every solver and variant, by name."""
    for name, (loss, penalty) in VARIANTS.items():
        problem = dense(loss, penalty)
        for settings in SETTINGS:
            case = f"{name}/dense/{settings}"
            yield case, partial(setting_weights, name, problem, settings)
    problem = sparse("least_squares", Penalty(l1=1e-4))
    for name in SPARSE:
        for settings in SETTINGS:
            case = f"{name}/sparse/{settings}"
            yield case, partial(setting_weights, name, problem, settings)
    for name in FRANK_WOLFE:
        yield f"{name}/dense", partial(frank_wolfe_weights, name)
    for name in STREAMS:
        for calibration in ("published", "tight"):
            yield (
                f"{name}/{calibration}",
                partial(stream_weights, name, calibration),
            )
    for name in FITS:
        yield f"{name}/dense", partial(fit_weights, name)


# --- prices ---------------------------------------------------------------------------


def gaussian(sigma: float, count: int = 1) -> Gaussian:
    """Gaussian releases, in units of their sensitivity."""
    return Gaussian(1.0, sigma, count, "gradient", "")


def ledgers() -> Iterator[tuple[str, Callable[[], Any]]]:
    """How to price ledgers, and the noise of solvers for epsilon 1; by name."""
    from dperm.privacy.mechanisms.generalised_gaussian import (
        GeneralisedGaussian,
    )
    from dperm.privacy.mechanisms.noisy_max import NoisyMax
    from dperm.privacy.mechanisms.perturbed_objective import PerturbedObjective
    from dperm.privacy.mechanisms.sketch import GaussianSketch
    from dperm.privacy.private_selection import tuned_epsilon

    laplace = Laplace(1.0, 20.0, 40, "derivative", "")
    chosen = NoisyMax(1.0, 30.0, 100, "coordinate", "")
    drawn = SampledGaussian(1.0, 0.8, 50_000, "gradient", "", 1, 20640)
    made = {
        "gaussian": gaussian(5.0),
        "gaussians": gaussian(60.0, 1000),
        "laplace": laplace,
        "noisy_max": chosen,
        "noisy_max_gumbel": NoisyMax(1.0, 30.0, 100, "i", "", noise="gumbel"),
        "sampled": drawn,
        "generalised": GeneralisedGaussian(
            1.0, 9.0, 1, "gradient", "", 2.2, 4.0
        ),
        "sketch": GaussianSketch(1.0, 40.0, 1, "S A", "", rows=400),
        "perturbed": PerturbedObjective(1.0, 6.0, 1, "w", "", curvature=0.05),
    }
    mixed = {
        "laplace and gaussian": (laplace, gaussian(8.0)),
        "noisy_max and laplace": (chosen, laplace),
        "sampled and gaussian": (drawn, gaussian(9.0)),
    }
    for name, events in [
        *((k, (v,)) for k, v in made.items()),
        *mixed.items(),
    ]:
        yield f"tight/{name}", partial(true_epsilon, Ledger(events), DELTA)
    many = Ledger((gaussian(10.0),))
    yield "tuned/logarithmic", partial(tuned_epsilon, many, DELTA, 200)
    problem = dense("logistic", SMOOTH)
    for name in (
        "dp_cd",
        "dp_cd_priv",
        "dp_gcd",
        "dp_sgd",
        "dp_svrg",
        "dp_skgd_nice4",
    ):
        for calibration in ("published", "tight"):
            yield (
                f"{calibration}/{name}",
                partial(priced, problem, name, calibration),
            )
    for name in (
        "ada_ssp",
        "dp_selection",
        "hessian_mixing",
        "objective_perturbation",
    ):
        yield f"fit/{name}", partial(fit_priced, name)


def priced(problem: Problem, name: str, calibration: str) -> list[float]:
    """The noise multiplier of ten passes, and its true epsilon."""
    module, options = read(name)
    found = noise(problem, module, options, 10, calibration)
    return [found.noise_multiplier, found.true_epsilon]


def fit_priced(name: str) -> list[float]:
    """The noise multiplier of a method, and its true epsilon."""
    from dperm.solvers.full_batch.scaled import Scaled

    module, options = read(name)
    at = Scaled(dense(FITS[name], SMOOTH))
    found = calibrate(
        lambda multiplier: module.ledger(at, multiplier, options),
        *(EPSILON, DELTA, "tight"),
    )
    return [found.noise_multiplier, found.true_epsilon]


# --- jobs and claims ------------------------------------------------------------------


def inputs_of(jobs: Jobs) -> dict[str, str]:
    """Inputs of every job, in words or, if many, as a digest."""
    return {name: listed(job.inputs) for name, job in jobs.jobs.items()}


def listed(inputs: list[str]) -> str:
    """Sorted inputs, or their number and digest where there are more than eight."""
    text = " ".join(sorted(inputs))
    if len(inputs) <= 8:
        return text
    return f"{len(inputs)} inputs {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def claims() -> dict[str, list[Any]]:
    """Verdict, number and interval of every claim, from the results in Git."""
    from dperm.report import claims

    rows, faults = claims.judged_all(config.compose([]))
    assert not faults
    columns = ["verdict", "reproduced", "ci_low", "ci_high"]
    return {
        f"{row['paper']} | {row['place']} | {row['claim']}": [
            str(row["verdict"]),
            *(written(row.get(name)) for name in columns[1:]),
        ]
        for row in rows
    }


def written(number: Any) -> str:
    """A number in nine digits; empty where there is none."""
    text = str(number)
    try:
        return "" if np.isnan(value := float(text)) else f"{value:.9g}"
    except ValueError:
        return "" if text in ("None", "nan") else text
