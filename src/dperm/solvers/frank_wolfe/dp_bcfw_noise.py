"""The noise of DP-BCFW: sensitivities of its releases, scales, and privacy cost.

In each step a node releases a selection by report noisy max and, the first time a
feature comes up, its sketch with Gaussian noise. A target is split between the two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy  # its submodules load on first use

from dperm.privacy.accountants import TIGHT
from dperm.privacy.accountants.tight import gaussian_epsilon
from dperm.privacy.accounting import true_epsilon
from dperm.privacy.calibration import calibrate
from dperm.privacy.events import Event, Gaussian, Ledger
from dperm.privacy.mechanisms.noisy_max import NoisyMax
from dperm.problems.problem import Problem
from dperm.solvers.distributed.columns import edges
from dperm.solvers.distributed.node import shared_sketch
from dperm.solvers.distributed.sketch import Sketch
from dperm.solvers.frank_wolfe import Noise
from dperm.solvers.frank_wolfe.dp_fw import (
    MAX_EXACT_EPSILON,
    PURE_EPSILON,
    selections_epsilon,
    valid_lipschitz,
)
from dperm.solvers.options import one_of, positive, share

_INDEX = "Lou and Cheung 2020, Algorithm 2, lines 7 and 8; Section IV-C"
_SKETCH = "Lou and Cheung 2020, equations 16 and 17"
UPDATES = ("published", "feasible")


@dataclass(frozen=True)
class Options:
    """Choices of Algorithm 2."""

    nodes: int = 4  #: K
    radius: float = 1.0  #: eta of the l1 ball
    #: {"published", "feasible"}; the sum of the nodes' K vertices, for which ||x||_1
    #: reaches K eta, or their mean
    update: str = "published"
    #: m, the length of a sketched feature; None: n, no sketch
    sketch: int | None = None
    #: share of the budget for the indices; the rest is for the features
    share: float = 0.5
    #: entry_bound, label_bound: public bounds to which the nodes clip entries and
    #: labels
    entry_bound: float = 1.0
    label_bound: float = 1.0
    sketch_seed: int = 0  #: public seed of J

    def __post_init__(self) -> None:
        one_of("update", self.update, UPDATES)
        positive(self, "nodes", "radius", "entry_bound", "label_bound")
        share(self, "share")

    @property
    def vertex(self) -> float:
        """Size of one node's vertex in the sum: eta, or eta / K."""
        return self.radius / (1 if self.update == "published" else self.nodes)

    @property
    def reach(self) -> float:
        """The largest ||x||_1: K eta, or eta."""
        return self.vertex * self.nodes

    def score_factor(self, scores: str) -> float:
        """Factor of the gradient in a score: eta, or 1 as line 7 prints it."""
        return self.radius if scores == "radius" else 1.0

    def sketch_length(self, n: int) -> int:
        """Length of a sketched feature for n records, at most n."""
        return n if self.sketch is None else min(self.sketch, n)


def sketch_of(n: int, options: Options) -> Sketch:
    """J (m, n), with m at most n."""
    return shared_sketch(n, options.sketch_length(n), options.sketch_seed)


def sensitivities(
    problem: Problem, options: Options, scores: str = "radius"
) -> tuple[float, float]:
    """Replace-one change of a score, and of a sketched feature in l2 norm.

    One record changes one entry of a feature, by at most 2 B; the sketch moves by that
    times the norm of the record's column of J.
    """
    factor = options.score_factor(scores)
    score = 2.0 * factor * valid_lipschitz(problem, options) / problem.n
    sketch = sketch_of(problem.n, options)
    return score, 2.0 * options.entry_bound * float(sketch.column_norms.max())


def releases(p: int, count: int, options: Options) -> tuple[int, int]:
    """Number of selections, and of sketched features at most, in ``count`` steps.

    A record lies on all nodes, so that their selections compose: K T in all. No feature
    is sent twice.
    """
    sizes = np.diff(edges(p, options.nodes))
    return options.nodes * count, int(np.minimum(sizes, count).sum())


def _events(
    moved: tuple[float, float],
    scales: tuple[float, float],
    counts: tuple[int, int],
) -> tuple[NoisyMax, Gaussian]:
    """Everything that leaves the nodes: selections and sketched features."""
    unit = "l2 norm of a sketched feature"
    return (
        NoisyMax(moved[0], scales[0], counts[0], "a score", _INDEX),
        Gaussian(moved[1], scales[1], counts[1], unit, _SKETCH),
    )


def _proportion(
    multiplier: float, counts: tuple[int, int], share: float
) -> tuple[float, float]:
    """Noise over sensitivity of both kinds: root of the count over the share."""
    selections, features = counts
    return (
        multiplier * math.sqrt(selections) / share,
        multiplier * math.sqrt(features) / (1.0 - share),
    )


def ledger_of(
    problem: Problem,
    count: int,
    noise_multiplier: float,
    options: Options,
    scores: str,
) -> Ledger:
    """Both kinds of release, with noise by the budget's split."""
    moved = sensitivities(problem, options, scores)
    counts = releases(problem.p, count, options)
    index, sketch = _proportion(noise_multiplier, counts, options.share)
    events = _events(moved, (index * moved[0], sketch * moved[1]), counts)
    return Ledger(events, given=problem.given)


def least(
    problem: Problem,
    count: int,
    options: Options,
    epsilon: float,
    delta: float,
) -> Noise:
    """The least noise with which the whole run is (epsilon, delta)-private."""
    moved = sensitivities(problem, options)
    counts = releases(problem.p, count, options)
    index, sketch, true = _least_multipliers(
        *counts, options.share, epsilon, delta
    )
    scales = (index * moved[0], sketch * moved[1])
    ledger = Ledger(_events(moved, scales, counts), given=problem.given)
    return Noise(ledger, *scales, true)


@cache
def _least_multipliers(
    selections: int, features: int, share: float, epsilon: float, delta: float
) -> tuple[float, float, float]:
    """Noise over sensitivity of indices and features, and their true epsilon.

    The cost depends on these ratios and the counts alone. If a selection may cost more
    than ``PURE_EPSILON``, joint composition gains little, and pure epsilons are added.
    """
    if share * epsilon / selections > PURE_EPSILON:
        mu = scipy.optimize.brentq(
            lambda mu: gaussian_epsilon(mu, delta) - (1 - share) * epsilon,
            1e-9,
            2 * math.sqrt(2 * epsilon) + 1,
        )
        true = share * epsilon + gaussian_epsilon(mu, delta)
        return (
            2 * selections / (share * epsilon),
            math.sqrt(features) / mu,
            true,
        )
    counts = (selections, features)

    def of(multiplier: float) -> Ledger:
        return Ledger(
            _events((1.0, 1.0), _proportion(multiplier, counts, share), counts)
        )

    with np.errstate(over="ignore"):  # tilted masses may become infinite
        noise = calibrate(of, epsilon, delta, TIGHT)
    return *_proportion(
        noise.noise_multiplier, counts, share
    ), noise.true_epsilon


def equation17(
    n: int, leading: float, count: float, epsilon: float, delta: float
) -> float:
    """Gaussian scale that equation 17 prints for ``count`` sketched features.

    ``leading`` is the sketch's leading singular value, ``epsilon`` the features' share.
    """
    logs = math.sqrt(2 * (math.log(1 / delta) + epsilon))
    return leading * math.sqrt(count) * logs / (n * epsilon)


def printed(
    problem: Problem,
    count: int,
    options: Options,
    epsilon: float,
    delta: float,
    lipschitz: float,
    scores: str = "radius",
) -> Noise:
    """The printed scales: Section IV-C 2a for the indices, equation 17 for features.

    They are for T = ``count`` steps. ``lipschitz`` is G: ``valid_lipschitz``, or the
    gradient's sup norm as in Theorem 4. ``scores`` are those of ``Noise``.
    """
    n = problem.n
    K = options.nodes
    index_epsilon = options.share * epsilon
    sketch_epsilon = (1.0 - options.share) * epsilon
    root = math.sqrt(2 * count * math.log(1 / (delta / 2)))
    index = (2 * lipschitz * options.radius / (K * n)) * root
    index /= (index_epsilon / K) / 2
    leading = sketch_of(n, options).leading_singular_value
    sketch = equation17(n, leading, K * count, sketch_epsilon, delta)
    moved = sensitivities(problem, options, scores)
    counts = releases(problem.p, count, options)
    ledger = Ledger(
        _events(moved, (index, sketch), counts), given=problem.given
    )
    # the least epsilon of a sound accountant; a bound where it is uselessly large
    selection, feature = ledger.events
    assert isinstance(selection, NoisyMax)
    bound = selection.count * selection.pure + _gaussian_part(feature, delta)
    lower_bound = (
        true_epsilon(ledger, delta) if bound < MAX_EXACT_EPSILON else bound
    )
    return Noise(ledger, index, sketch, lower_bound, scores)


def _gaussian_part(feature: Event, delta: float) -> float:
    mu = math.sqrt(feature.count) / feature.noise_multiplier
    return gaussian_epsilon(mu, delta)


def epsilons_apart(noise: Noise, delta: float) -> tuple[float, float]:
    """True epsilon of the indices alone and of the features alone, each at delta.

    Infinite without noise.
    """
    if math.isinf(noise.true_epsilon):
        return math.inf, math.inf
    selection, feature = noise.ledger.events
    pure = 2.0 / selection.noise_multiplier
    index = selections_epsilon(selection.count, pure, delta)
    return index, _gaussian_part(feature, delta)


def sent_epsilon(
    noise: Noise, sent: int, delta: float, part: float = 1.0
) -> float:
    """Least epsilon of a run that sends so many sketched features, by their noise.

    An attacker adds up, over the features sent, what each shows of a record's change
    along that record's column of the sketch. Whatever the selections do, each term has
    fresh Gaussian noise given all that was sent before, so that the sum is Gaussian
    with and without the change: together the features cost at least what one Gaussian
    release of all of them costs.

    Parameters
    ----------
    sent : int
        Features that are sent, whichever of two neighbouring data sets is held.
    part : float
        Change of the record's entries over the one that the ledger declares, 2 B.
    """
    feature = noise.ledger.events[1]
    mu = part * math.sqrt(sent) / feature.noise_multiplier
    return gaussian_epsilon(mu, delta)
