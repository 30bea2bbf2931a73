"""DP-BCFW: private block-coordinate Frank-Wolfe over distributed features.

Algorithm 2 of Lou and Cheung 2020. Each of K nodes holds a block of features. A step of
node k releases the signed index of its largest partial derivative by report noisy max,
and, the first time an index comes up, its feature sketched and with Gaussian noise. The
server aggregates q, an estimate of J A x / n, and broadcasts it.

What the pseudocode leaves open is settled so: a signed index carries the gradient's
sign, each of the 2 p_k candidates has its own noise, q belongs to the x that is sent
with it, and x is sent as the signed indices that made it, from which it follows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.optimize import brentq

from dperm.erm.bounds import record_bound
from dperm.erm.columns import edges
from dperm.erm.problem import Problem
from dperm.privacy.accounting import gaussian_epsilon, true_epsilon
from dperm.privacy.calibration import calibrate
from dperm.privacy.ledger import Event, Gaussian, Ledger
from dperm.privacy.mechanisms import Streams
from dperm.privacy.noisy_max import NoisyMax
from dperm.solvers.distributed.engines import ENGINES, Engine
from dperm.solvers.distributed.messages import Message
from dperm.solvers.distributed.node import Public, shared_sketch
from dperm.solvers.distributed.starting import started
from dperm.solvers.frank_wolfe.bcfw import step_size

UPDATES = ("published", "feasible")
SCORES = ("gradient", "radius")
LOUD = 2.0  # pure epsilon of one selection; adding costs at most a third more here
HOPELESS = 100.0  # epsilon beyond which the exact one is not computed
_INDEX = "Lou and Cheung 2020, Algorithm 2, lines 7 and 8; Section IV-C"
_SKETCH = "Lou and Cheung 2020, equations 16 and 17"


@dataclass(frozen=True)
class Options:
    """Choices of Algorithm 2.

    Attributes
    ----------
    nodes : int
        K.
    radius : float
        eta of the l1 ball.
    update : {"published", "feasible"}
        The sum of the nodes' K vertices, with which ||x||_1 reaches K eta, or their
        mean.
    sketch : int or None
        m, the length of a sketched feature; None: n, no sketch.
    scores : {"gradient", "radius"}
        What line 7 adds its noise to: the gradient, as printed, or eta times the
        gradient, which is what its scale is made for.
    share : float
        Share of the budget for the indices; the rest is for the features.
    entry_bound, label_bound : float
        Public bounds to which the nodes clip entries and labels.
    sketch_seed : int
        Public seed of J.
    engine : {"local", "dask"}
        Nodes in this process, or as actors on the workers of a Dask cluster.
    """

    nodes: int = 4
    radius: float = 1.0
    update: str = "published"
    sketch: int | None = None
    scores: str = "radius"
    share: float = 0.5
    entry_bound: float = 1.0
    label_bound: float = 1.0
    sketch_seed: int = 0
    engine: str = "local"

    def __post_init__(self) -> None:
        known = {"update": UPDATES, "scores": SCORES, "engine": ENGINES}
        for key, values in known.items():
            if getattr(self, key) not in values:
                raise ValueError(
                    f"options.{key}: expected one of {', '.join(values)}, "
                    f"found {getattr(self, key)!r}"
                )
        for key in ("nodes", "radius", "entry_bound", "label_bound"):
            if not getattr(self, key) > 0:
                raise ValueError(f"options.{key}: expected positive")
        if not 0 < self.share < 1:
            raise ValueError(f"options.share: expected in (0, 1), found {self.share}")

    @property
    def vertex(self) -> float:
        """Size of one node's vertex in the sum: eta, or eta / K."""
        return self.radius / (1 if self.update == "published" else self.nodes)

    @property
    def reach(self) -> float:
        """The largest ||x||_1: K eta, or eta."""
        return self.vertex * self.nodes

    @property
    def score_factor(self) -> float:
        """What the gradient is multiplied with."""
        return self.radius if self.scores == "radius" else 1.0


@dataclass(frozen=True)
class Noise:
    """Noise scales of a run and what they cost.

    Attributes
    ----------
    index_scale : float
        Of the Laplace noise of a score.
    sketch_scale : float
        Of the Gaussian noise of a sketched feature's entries.
    ledger : Ledger
    true_epsilon : float
        Under a sound accountant, an upper bound beyond ``HOPELESS``; infinity without
        noise.
    index_epsilon, sketch_epsilon : float
        The same of each kind of release alone, each at delta / 2.
    """

    index_scale: float
    sketch_scale: float
    ledger: Ledger
    true_epsilon: float
    index_epsilon: float = math.inf
    sketch_epsilon: float = math.inf


def steps(problem: Problem, passes: float, options: Options) -> int:
    """Steps in so many passes: each reads all features."""
    return max(1, round(passes))


def lane_bytes(problem: Problem) -> int:
    """What server and nodes keep beside the data and the sketch."""
    return 8 * (4 * problem.n + 8 * problem.p)


def valid_lipschitz(problem: Problem, options: Options) -> float:
    """G = B (B R + Y) for least squares, R the largest ||x||_1 of the update."""
    bounds = (options.entry_bound, options.label_bound)
    return record_bound(problem.loss, *bounds, options.entry_bound * options.reach)


def sketch_length(n: int, options: Options) -> int:
    """m, at most n."""
    return n if options.sketch is None else min(options.sketch, n)


def sensitivities(problem: Problem, options: Options) -> tuple[float, float]:
    """Replace-one change of a score, and of a sketched feature in l2 norm.

    One record changes one entry of a feature, by at most 2 B; J then moves by that
    times the norm of the record's column of J.
    """
    score = 2.0 * options.score_factor * valid_lipschitz(problem, options) / problem.n
    length = sketch_length(problem.n, options)
    sketch = shared_sketch(problem.n, length, options.sketch_seed)
    return score, 2.0 * options.entry_bound * float(sketch.column_norms.max())


def releases(p: int, count: int, options: Options) -> tuple[int, int]:
    """Selections, and sketched features at most, in ``count`` steps.

    A record lies on all nodes, so those of all nodes compose: K T selections. A feature
    that comes again is not sent again.
    """
    sizes = np.diff(edges(p, options.nodes))
    return options.nodes * count, int(np.minimum(sizes, count).sum())


def events(
    problem: Problem,
    count: int,
    options: Options,
    index_scale: float,
    sketch_scale: float,
) -> tuple[Event, ...]:
    """Everything that leaves the nodes in ``count`` steps."""
    score, feature = sensitivities(problem, options)
    selections, features = releases(problem.p, count, options)
    return (
        NoisyMax(score, index_scale, selections, "a score", _INDEX),
        Gaussian(
            feature, sketch_scale, features, "l2 norm of a sketched feature", _SKETCH
        ),
    )


def ledger(
    problem: Problem,
    count: int,
    noise_multiplier: float,
    options: Options,
    calibration: str = "strict",
) -> Ledger:
    """Both kinds of release, their noise in the proportion of the budget's split."""
    score, feature = sensitivities(problem, options)
    index, sketch = _multipliers(noise_multiplier, problem.p, count, options)
    found = events(problem, count, options, index * score, sketch * feature)
    return Ledger(found)


def _multipliers(
    noise_multiplier: float, p: int, count: int, options: Options
) -> tuple[float, float]:
    """Noise over sensitivity of both kinds: root of the count over the share."""
    selections, features = releases(p, count, options)
    return (
        noise_multiplier * math.sqrt(selections) / options.share,
        noise_multiplier * math.sqrt(features) / (1.0 - options.share),
    )


def strict_noise(
    problem: Problem, count: int, options: Options, epsilon: float, delta: float
) -> Noise:
    """The least noise with which the whole run is (epsilon, delta)-private."""
    if math.isinf(epsilon):
        return silent()
    sizes = releases(problem.p, count, options)
    score, feature = sensitivities(problem, options)
    index, sketch = _strict_multipliers(*sizes, options.share, epsilon, delta)
    found = events(problem, count, options, index * score, sketch * feature)
    scales = (index * score, sketch * feature)
    return Noise(*scales, Ledger(found), epsilon, *_apart(found, delta / 2))


@cache
def _strict_multipliers(
    selections: int, features: int, share: float, epsilon: float, delta: float
) -> tuple[float, float]:
    """Noise over sensitivity of indices and features.

    Only these ratios matter to the cost, so sizes decide. Where a selection may cost
    more than ``LOUD`` there is nothing to gain from composing jointly, and pure
    epsilons add up.
    """
    if share * epsilon / selections > LOUD:
        mu = brentq(
            lambda mu: gaussian_epsilon(mu, delta) - (1 - share) * epsilon,
            1e-9, 2 * math.sqrt(2 * epsilon) + 1,
        )  # fmt: skip
        return 2 * selections / (share * epsilon), math.sqrt(features) / mu

    def of(multiplier: float) -> Ledger:
        index = multiplier * math.sqrt(selections) / share
        sketch = multiplier * math.sqrt(features) / (1.0 - share)
        return Ledger(
            (
                NoisyMax(1.0, index, selections, "sensitivity", _INDEX),
                Gaussian(1.0, sketch, features, "sensitivity", _SKETCH),
            )
        )

    with np.errstate(over="ignore"):  # of tilted masses that end as infinity
        multiplier = calibrate(of, epsilon, delta, "strict").noise_multiplier
    return (
        multiplier * math.sqrt(selections) / share,
        multiplier * math.sqrt(features) / (1.0 - share),
    )


def published_noise(
    problem: Problem,
    count: int,
    options: Options,
    epsilon: float,
    delta: float,
    lipschitz: float,
) -> Noise:
    """The printed scales: Section IV-C 2a for the indices, equation 17 for features.

    Parameters
    ----------
    count : int
        T.
    lipschitz : float
        G: ``valid_lipschitz``, or the gradient's sup norm as Theorem 4 has it.
    """
    if math.isinf(epsilon):
        return silent()
    n, K = problem.n, options.nodes
    index_epsilon = options.share * epsilon
    sketch_epsilon = (1.0 - options.share) * epsilon
    root = math.sqrt(2 * count * math.log(1 / (delta / 2)))
    index = (2 * lipschitz * options.radius / (K * n)) * root
    index /= (index_epsilon / K) / 2
    J = shared_sketch(n, sketch_length(n, options), options.sketch_seed)
    sketch = J.leading_singular_value * math.sqrt(K * count)
    sketch *= math.sqrt(2 * (math.log(1 / delta) + sketch_epsilon))
    sketch /= n * sketch_epsilon
    found = Ledger(events(problem, count, options, index, sketch))
    true = _true_epsilon(found, delta)
    return Noise(index, sketch, found, true, *_apart(found.events, delta / 2))


def _true_epsilon(found: Ledger, delta: float) -> float:
    """The least epsilon of a sound accountant; a bound where it is beyond all use."""
    selection, feature = found.events
    assert isinstance(selection, NoisyMax)
    mu = math.sqrt(feature.count) / feature.noise_multiplier
    bound = selection.count * selection.pure + gaussian_epsilon(mu, delta)
    return true_epsilon(found, delta) if bound < HOPELESS else bound


def _apart(found: tuple[Event, ...], delta: float) -> tuple[float, float]:
    """True epsilon of the indices alone and of the features alone."""
    selection, feature = found
    mu = math.sqrt(feature.count) / feature.noise_multiplier
    pure = 2.0 / selection.noise_multiplier
    return selections_epsilon(selection.count, pure, delta), gaussian_epsilon(mu, delta)


@cache
def selections_epsilon(count: int, pure: float, delta: float) -> float:
    """True epsilon of so many selections; pure epsilons add beyond ``HOPELESS``."""
    if count * pure > HOPELESS:
        return count * pure
    return true_epsilon(
        Ledger((NoisyMax(pure, 2.0, count, "half a pure epsilon", _INDEX),)), delta
    )


def silent() -> Noise:
    """No noise, no privacy."""
    return Noise(0.0, 0.0, Ledger(), math.inf)


def public_of(problem: Problem, options: Options, noise: Noise) -> Public:
    """What the nodes are told."""
    return Public(
        loss=problem.loss,
        n=problem.n,
        sketch_length=sketch_length(problem.n, options),
        sketch_seed=options.sketch_seed,
        score_factor=options.score_factor,
        index_scale=noise.index_scale,
        sketch_scale=noise.sketch_scale,
        entry_bound=options.entry_bound,
        label_bound=options.label_bound,
        prediction_bound=options.entry_bound * options.reach,
    )


class Run:
    """The server of Algorithm 2; it holds no column.

    Parameters
    ----------
    problem : Problem
        Its size is used; its design goes to the nodes through the engine.
    streams : Streams
        The nodes' seeds are drawn from the noise stream.
    options : Options
    noise : Noise
    engine : Engine or None
        One that holds the nodes already; None: start the one of the options.

    Attributes
    ----------
    q : ndarray, shape (m,)
        The aggregate.
    chosen : list of ndarray, shape (K,)
        Signed indices +-(j + 1) of each step.
    up, down : list of ndarray, shape (K,)
        Bytes from and to each node in each step.
    """

    def __init__(
        self,
        problem: Problem,
        streams: Streams,
        options: Options,
        noise: Noise,
        engine: Engine | None = None,
    ):
        if options.nodes > problem.p:
            raise ValueError(f"{options.nodes} nodes for {problem.p} features")
        self.n, self.options, self.noise = problem.n, options, noise
        public = public_of(problem, options, noise)
        seeds = streams.noise.integers(0, 2**62, options.nodes).tolist()
        name = options.engine
        self.engine = engine or started(name, problem, options.nodes, public, seeds)
        self.x = np.zeros(problem.p)
        self.q = np.zeros(public.sketch_length)
        self.features: dict[int, np.ndarray] = {}
        self.chosen: list[np.ndarray] = []
        self.up: list[np.ndarray] = []
        self.down: list[np.ndarray] = []
        self.largest = 0.0

    @property
    def weights(self) -> np.ndarray:
        """x, shape (1, p)."""
        return self.x[None, :]

    def advance(self, count: int) -> None:
        """Take ``count`` more steps."""
        for _ in range(count):
            latest = self.chosen[-1] if self.chosen else np.empty(0, dtype=np.int64)
            content = Message(latest, self.q).pack()
            answers = self.engine.exchange(content)
            self.down.append(np.full(len(answers), len(content)))
            self.up.append(np.array([len(answer) for answer in answers]))
            self._move([Message.unpack(answer) for answer in answers])

    def close(self) -> None:
        """Let go of the nodes."""
        self.engine.close()

    def _move(self, answers: list[Message]) -> None:
        """Lines 12 to 14; the sums run in node order."""
        gamma = step_size(len(self.chosen), 1.0)
        self.x *= 1.0 - gamma
        self.q *= 1.0 - gamma
        for answer in answers:
            signed = int(answer.indices[0])
            if answer.numbers.size:
                self.features[abs(signed)] = answer.numbers
            vertex = math.copysign(self.options.vertex, -signed)
            self.x[abs(signed) - 1] += gamma * vertex
            self.q += (gamma * vertex / self.n) * self.features[abs(signed)]
        self.chosen.append(np.array([int(answer.indices[0]) for answer in answers]))
        self.largest = max(self.largest, float(np.abs(self.x).sum()))
