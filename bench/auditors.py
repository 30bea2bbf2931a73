"""Our audit of functions beside published testers, at equal CPU time.

``python -m bench.auditors [seconds]`` prints the epsilon that each proves with 95 %
confidence of a Laplace mechanism (truth 1) and of a Gaussian one (mu 1, truth 4.377 at
delta 1e-5), whose noise no audit can replay. The testers are written from their papers:

*Hockey stick* (Kong, Muñoz Medina and Ribero 2023, DP-Auditorium, arXiv:2307.05608,
Section 4): half of the samples trains a classifier of the two data sets, whose event
the other half counts, with Hoeffding's bound on the divergence at an epsilon. *Rényi*
testers of the same paper have no bound that holds for all functions. DP-Auditorium is
no package of PyPI. *One run* is Steinke, Nasr and Jagielski 2023, on as many canaries
as there is time for.

All but *one run* are told the worst pair, ours is not. The CPU time of their samples is
that of as many calls of the function.
"""

from __future__ import annotations

import math
import secrets
import sys
import time
from collections.abc import Callable

import numpy as np
from sklearn.linear_model import LogisticRegression
from tabulate import tabulate

from dperm.audit.blackbox import PrivacyClaim, audit
from dperm.audit.canaries import audit_once
from dperm.audit.functions import Domain
from dperm.privacy.accountants.tight import gaussian_epsilon

CONFIDENCE = 0.95
LEVEL = 1 - CONFIDENCE
DELTA = 1e-5
GRID = np.linspace(0.02, 5, 250)  # epsilons at which a divergence is bounded
CANARIES = 2000

Array = np.ndarray
Fit = Callable[[Array, Array, int], Array]


def uniforms(count: int) -> Array:
    """Uniform numbers of the system, whose law no audit knows."""
    words = np.frombuffer(secrets.token_bytes(8 * count), dtype=np.uint64)
    return (words + 0.5) / 2.0**64


def laplace(X: Array, y: Array, seed: int) -> Array:
    """A clipped sum of sensitivity 1 with Laplace noise of scale 1."""
    shares = uniforms(X.shape[1]) - 0.5
    noise = -np.sign(shares) * np.log1p(-2 * np.abs(shares))
    return np.clip(X, 0, 1).sum(axis=0) + noise


def gaussian(X: Array, y: Array, seed: int) -> Array:
    """The same sum with normal noise, by Box and Muller."""
    count = X.shape[1]
    shares = uniforms(2 * count)
    length = np.sqrt(-2 * np.log(shares[:count]))
    noise = length * np.cos(2 * math.pi * shares[count:])
    return np.clip(X, 0, 1).sum(axis=0) + noise


def sampled(fit: Fit, seconds: float) -> tuple[Array, Array]:
    """Outputs on the worst pair for that CPU time."""
    first = np.ones((8, 1))
    second = np.vstack([np.zeros((1, 1)), np.ones((7, 1))])
    y, sides = np.zeros(8), ([], [])
    end = time.process_time() + seconds
    while time.process_time() < end:
        for X, side in zip((first, second), sides, strict=True):
            side.append(fit(X, y, 0))
    return np.array(sides[0]), np.array(sides[1])


def hockey_stick(fit: Fit, delta: float, seconds: float) -> float:
    """Epsilon by a classifier's events and Hoeffding's bound, the best of a grid."""
    one, two = sampled(fit, seconds)
    half = len(one) // 2
    outputs = np.concatenate([one[:half], two[:half]])
    labels = np.repeat([1, 0], half)
    trained = LogisticRegression().fit(outputs, labels)
    scores = [trained.decision_function(side[half:]) for side in (one, two)]
    margin = math.sqrt(math.log(2 / LEVEL) / (2 * (len(one) - half)))
    best = 0.0
    for epsilon in GRID:
        shares = [float((score >= epsilon).mean()) for score in scores]
        stick = shares[0] - margin - math.exp(epsilon) * (shares[1] + margin)
        if stick > delta:
            best = float(epsilon)
    return best


def ours(fit: Fit, delta: float, seconds: float, is_gaussian: bool) -> float:
    """What our audit proves; with the Gaussian trade-off if the noise is told."""
    claim = PrivacyClaim(
        20.0, delta, CONFIDENCE, seconds, gaussian=is_gaussian
    )
    domain = Domain(p=1, x=(0.0, 1.0), y=(0.0, 1.0))
    return audit(fit, claim, domain).epsilon


def one_run(fit: Fit, delta: float, seconds: float) -> float:
    """What canaries prove, many to a run."""
    domain = Domain(CANARIES, CANARIES, x=(0.0, 1.0))
    return audit_once(
        fit, PrivacyClaim(20.0, delta, CONFIDENCE, seconds), domain
    ).epsilon


def main(seconds: float) -> None:
    """Print the table."""
    rows = []
    for name, fit, delta in (
        ("Laplace", laplace, 0.0),
        ("Gaussian", gaussian, DELTA),
    ):
        truth = gaussian_epsilon(1.0, DELTA) if delta else 1.0
        told = ours(fit, delta, seconds, True) if delta else math.nan
        rows.append(
            [
                name,
                truth,
                ours(fit, delta, seconds, False),
                told,
                hockey_stick(fit, delta, seconds),
                one_run(fit, delta, seconds),
            ]
        )
    heads = ["noise", "truth", "ours", "ours, told that it is Gaussian"]
    print(tabulate(rows, [*heads, "hockey stick", "one run"], floatfmt=".3f"))


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10.0)
