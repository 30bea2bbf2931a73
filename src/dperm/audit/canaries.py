r"""Many canaries in one run: for training code of which a run takes seconds.

Each of m records is drawn by a fair coin to be one of two opposite ones, and the run's
output has to tell the coins. Of r coins that it calls, at least v are right under an
(epsilon, delta)-private function with a chance of at most

.. math:: P(B \ge v) + 2 m \delta \max_{i \le v} \frac{P(v - i \le B < v)}{i},

B binomial of r calls and chance :math:`e^\epsilon / (1 + e^\epsilon)` (Steinke, Nasr
and Jagielski 2023, arXiv:2305.08846, Theorem 5.2). Every coin is one record's
replacement, so that the theorem's neighbours are ours. Several runs with coins of their
own are one run with all these coins, as each coin still changes one record of one run.
The calls are fixed before the coins are looked at: which are called, and their sign,
is learnt on a run of its own. So the smallest epsilon at which that chance exceeds
1 - confidence is proved with that confidence, whatever the function.
"""

from __future__ import annotations

import io
import math
from contextlib import redirect_stdout
from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats

from dperm.audit.blackbox import AuditVerdict, PrivacyClaim, Progress
from dperm.audit.draws import recorded
from dperm.audit.functions import (
    AuditedFit,
    CannotAuditError,
    Clock,
    Domain,
    Fit,
    TimeUpError,
)
from dperm.audit.mechanism import Array, AuditData, quiet

SHARES = (1.0, 0.5, 0.25, 0.1, 0.05)  # of the canaries that are called
MOST_RUNS = 64
RESERVE = 2.0  # times the pilot's time for each run
MAX_EPSILON = 60.0  # epsilon that is looked for


def called_epsilon(
    right: int, calls: int, canaries: int, level: float, delta: float
) -> float:
    """The largest epsilon that so many right calls refute, at a level; 0 if none."""

    def excess(epsilon: float) -> float:
        """Chance of so many right calls at an epsilon, above the level; it rises."""
        return chance(right, calls, canaries, epsilon, delta) - level

    if not calls or excess(0.0) >= 0:
        return 0.0
    if excess(MAX_EPSILON) < 0:
        return MAX_EPSILON
    return float(optimize.brentq(excess, 0.0, MAX_EPSILON, xtol=1e-9))


def chance(
    right: int, calls: int, canaries: int, epsilon: float, delta: float
) -> float:
    """The largest chance of so many right calls under (epsilon, delta)-privacy."""
    law = stats.binom(calls, 1 / (1 + math.exp(-epsilon)))
    probability = float(law.sf(right - 1))
    if delta and right:
        steps = np.arange(1, right + 1)
        inside = np.cumsum(law.pmf(right - steps))
        probability += 2 * canaries * delta * float((inside / steps).max())
    return min(probability, 1.0)


def audit_once(
    fit: Fit,
    claim: PrivacyClaim,
    domain: Domain,
    seed: int = 0,
    progress: Progress | None = None,
) -> AuditVerdict:
    """Try to refute a claim by records that are drawn by coins, in a few runs.

    Parameters
    ----------
    fit : callable
        ``fit(X, y, seed)``; the first p numbers of its output belong to the features.
    domain : Domain
        n canaries, each along a feature of its own as long as there are as many.
    progress : callable, optional
        Is given the verdict so far after each run.

    Raises
    ------
    CannotAuditError
        If it raises, or returns fewer numbers than there are features.
    """
    target = AuditedFit(fit)
    clock = Clock(claim.seconds)
    rng = np.random.Generator(np.random.PCG64([seed, 9]))
    low, high = domain.x or (-1.0, 1.0)
    if domain.relation != "replace":
        raise CannotAuditError("canaries: expected --relation replace")
    target.clock = clock
    with recorded(), quiet(), redirect_stdout(io.StringIO()):
        coins, scores = _run(target, domain, (low, high), rng)
        pilot_seconds = max(clock.cpu, 1e-6)
        agreement = float(coins @ scores)
        sign = 1.0 if agreement >= 0 else -1.0
        share = _best_share(coins, sign * scores, claim)
        affordable = (claim.seconds - clock.cpu) / (RESERVE * pilot_seconds)
        runs = int(np.clip(min(affordable, claim.runs - 1), 1, MOST_RUNS))
        counts = Counts()
        for _ in range(runs):
            try:
                coins, scores = _run(target, domain, (low, high), rng)
            except TimeUpError:
                break
            counts.add(coins, *_called(coins, sign * scores, share))
            if progress:
                progress(_verdict(counts, claim, target))
    return _verdict(counts, claim, target)


@dataclass
class Counts:
    """Canaries so far, those that were called, and those that were called rightly."""

    runs: int = 0
    canaries: int = 0
    calls: int = 0
    right: int = 0

    def add(self, coins: Array, right: int, calls: int) -> None:
        """Count a run."""
        self.runs += 1
        self.canaries += len(coins)
        self.calls += calls
        self.right += right


def _verdict(
    counts: Counts, claim: PrivacyClaim, target: AuditedFit
) -> AuditVerdict:
    """What the counts prove."""
    level = 1 - claim.confidence
    epsilon = called_epsilon(
        counts.right, counts.calls, counts.canaries, level, claim.delta
    )
    proof = (
        f"of {counts.canaries} canaries in {counts.runs} runs {counts.calls} were "
        f"called, {counts.right} rightly"
    )
    return AuditVerdict(
        refuted=epsilon > claim.epsilon,
        epsilon=epsilon,
        proof=proof,
        seconds=target.clock.cpu,
        runs=target.runs,
    )


def _run(
    target: AuditedFit,
    domain: Domain,
    ends: tuple[float, float],
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Coins of the canaries, and a score of each: how far it moved its feature."""
    n = domain.n
    p = domain.p
    coins = rng.choice((-1.0, 1.0), n)
    X = np.zeros((n, p))
    places = np.arange(n) % p
    X[np.arange(n), places] = np.where(coins > 0, ends[1], ends[0])
    label = max(domain.y) if domain.y else 1.0
    run = target(
        AuditData(X, np.full(n, label)), int(rng.integers(2**32)), (), False
    )
    if run.raised:
        raise CannotAuditError(f"it raised on canaries: {run.raised}")
    if run.output.size < p:
        raise CannotAuditError(
            f"the output: expected a number for each of {p} features, found "
            f"{run.output.size}"
        )
    moved = np.nan_to_num(run.output[:p])
    return coins, (moved - np.median(moved))[places]


def _called(coins: Array, scores: Array, share: float) -> tuple[int, int]:
    """Right calls and calls, of that share of the scores that is most extreme."""
    count = max(int(share * len(coins)) // 2, 1)
    order = np.argsort(scores)
    right = int(
        (coins[order[:count]] < 0).sum() + (coins[order[-count:]] > 0).sum()
    )
    return right, 2 * count


def _best_share(coins: Array, scores: Array, claim: PrivacyClaim) -> float:
    """The share that would have proved most."""

    def proved(share: float) -> float:
        """The epsilon that the calls of a share of the canaries prove."""
        right, calls = _called(coins, scores, share)
        return called_epsilon(right, calls, len(coins), 0.1, claim.delta)

    return max(SHARES, key=proved)
