"""DP-BCFW: private block-coordinate Frank-Wolfe over distributed features.

Algorithm 2 of Lou and Cheung 2020. Each of K nodes holds a block of features. In each
step node k releases the signed index of its largest partial derivative by report noisy
max. The first time an index comes up, it also releases the feature, sketched and with
Gaussian noise. The server aggregates q, an estimate of J A x / n, and broadcasts it.

What the pseudocode leaves open is settled as follows. A signed index carries the
gradient's sign. Each of the 2 p_k candidates has its own noise. q belongs to the x that
is sent with it, and x is sent as the signed indices that determine it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dperm.privacy.accountants import PUBLISHED, TIGHT
from dperm.privacy.events import GRADIENT, Ledger
from dperm.privacy.noise import Streams
from dperm.problems.problem import Problem
from dperm.solvers.distributed.columns import Columns
from dperm.solvers.distributed.engines import Start, local
from dperm.solvers.distributed.node import Message, Public
from dperm.solvers.frank_wolfe import (
    FrankWolfe,
    Noise,
    require_calibration,
    silent,
)
from dperm.solvers.frank_wolfe.bcfw import step_size
from dperm.solvers.frank_wolfe.dp_bcfw_noise import (
    Options,
    least,
    ledger_of,
    printed,
)
from dperm.solvers.frank_wolfe.dp_fw import (
    published_lipschitz,
    valid_lipschitz,
)


def steps(problem: Problem, passes: float, options: Options) -> int:
    """Number of steps; each pass is one step, which reads all features."""
    return max(1, round(passes))


def ledger(
    problem: Problem,
    count: int,
    noise_multiplier: float,
    options: Options,
    calibration: str = TIGHT,
) -> Ledger:
    """Both kinds of release, with noise by the budget's split."""
    scores = scores_of(calibration)
    return ledger_of(problem, count, noise_multiplier, options, scores)


def scores_of(calibration: str) -> str:
    """Scores that get the noise: the gradient itself for ``stated``, as printed."""
    return "gradient" if calibration == "stated" else "radius"


def noise(
    problem: Problem,
    count: int,
    options: Options,
    epsilon: float,
    delta: float,
    calibration: str = PUBLISHED,
) -> Noise:
    """The printed scales, or the least; ``published`` means ``scaled``."""
    require_calibration(calibration)
    scores = scores_of(calibration)
    if calibration == "none" or math.isinf(epsilon):
        return silent(count, scores)
    if calibration == TIGHT:
        return least(problem, count, options, epsilon, delta)
    goal = (problem, count, options, epsilon, delta)
    if calibration == "valid":
        return printed(*goal, valid_lipschitz(problem, options), scores)
    noise_scales = printed(*goal, published_lipschitz(problem), scores)
    return replace(
        noise_scales,
        ledger=noise_scales.ledger.assuming(*problem.given, GRADIENT),
    )


def public_of(problem: Problem, options: Options, noise: Noise) -> Public:
    """Public parameters that the nodes receive."""
    return Public(
        loss=problem.loss,
        n=problem.n,
        sketch_length=options.sketch_length(problem.n),
        sketch_seed=options.sketch_seed,
        score_factor=options.score_factor(noise.scores),
        index_scale=noise.index_scale,
        sketch_scale=noise.sketch_scale,
        entry_bound=options.entry_bound,
        label_bound=options.label_bound,
        prediction_bound=options.entry_bound * options.reach,
    )


class Run(FrankWolfe):
    """The server of Algorithm 2; it holds no column, as every node has its own.

    The problem's design goes to the nodes of the engine that ``start`` makes, by
    default in this process. Their seeds are drawn from the noise stream.

    Attributes
    ----------
    q : ndarray, shape (m,)
        The aggregate.
    up, down : list of ndarray, shape (K,)
        Bytes from and to each node in each step.
    """

    def __init__(
        self,
        problem: Problem,
        streams: Streams,
        options: Options,
        noise: Noise,
        columns: Columns | None = None,
        start: Start = local,
    ):
        super().__init__(np.zeros(problem.p))
        if options.nodes > problem.p:
            raise ValueError(f"{options.nodes} nodes for {problem.p} features")
        self.n = problem.n
        self.vertex = options.vertex
        public = public_of(problem, options, noise)
        seeds = streams.noise.integers(0, 2**62, options.nodes).tolist()
        self.engine = start(problem, public, seeds)
        self.q = np.zeros(public.sketch_length)
        self.features: dict[int, np.ndarray] = {}
        self.up: list[np.ndarray] = []
        self.down: list[np.ndarray] = []

    def close(self) -> None:
        """Close the engine that holds the nodes."""
        self.engine.close()

    def _step(self) -> Iterator[np.ndarray]:
        """Yield each node's signed index, with its sketched feature if that is new."""
        latest = (
            self.chosen[-1] if self.chosen else np.empty(0, dtype=np.int64)
        )
        content = Message(latest, self.q).pack()
        answers = []
        sizes = []
        for packed in self.engine.exchange(content):
            answer = Message.unpack(packed)
            answers.append(answer)
            sizes.append(len(packed))
            yield np.concatenate([answer.indices, answer.numbers])
        self.down.append(np.full(len(answers), len(content)))
        self.up.append(np.array(sizes))
        self._move(answers)

    def _move(self, answers: list[Message]) -> None:
        """Lines 12 to 14; the sums run in node order."""
        gamma = step_size(len(self.chosen), 1.0)
        self.x *= 1.0 - gamma
        self.q *= 1.0 - gamma
        for answer in answers:
            signed = int(answer.indices[0])
            if answer.numbers.size:
                self.features[abs(signed)] = answer.numbers
            vertex = math.copysign(self.vertex, -signed)
            self.x[abs(signed) - 1] += gamma * vertex
            self.q += (gamma * vertex / self.n) * self.features[abs(signed)]
        self.chosen.append(
            np.array([int(answer.indices[0]) for answer in answers])
        )
