"""The privacy proofs of Lou and Cheung 2020 in numbers: Lemmas 2 and 3."""

from __future__ import annotations

import math

from dperm.core.privacy.published import advanced_epsilon
from dperm.core.privacy.strict import gaussian_epsilon
from dperm.kinds.proofs import Case


def node_selections(
    epsilon: float, delta: float, nodes: float, iterations: float
) -> Case:
    """Lou and Cheung 2020, Lemma 3: a record is on all nodes, K T selections compose.

    Laplace scale 8 G eta sqrt(2 T log(2/delta)) / (n epsilon) on scores that move by
    2 G eta / n: the K of the printed scale cancels.
    """
    pure = epsilon / (2 * math.sqrt(2 * iterations * math.log(2 / delta)))
    spent = advanced_epsilon([(pure, int(nodes * iterations))], delta / 2)
    return Case(spent, epsilon / 2, "advanced composition of all nodes' selections")


def sketched_features(
    epsilon: float,
    delta: float,
    n: float,
    length: float,
    nodes: float,
    iterations: float,
) -> Case:
    """Lou and Cheung 2020, Lemma 2: a sketched feature moves by ||J_:i||, whatever n.

    J is (length, n) with entries N(0, 1/length): columns of norm about 1, largest
    singular value about 1 + sqrt(n / length). An entry of the data changes by 1.
    """
    count = nodes * iterations
    leading = 1 + math.sqrt(n / length)
    logs = math.sqrt(2 * (math.log(1 / delta) + epsilon / 2))
    noise = leading * math.sqrt(count) * logs / (n * epsilon / 2)
    spent = gaussian_epsilon(math.sqrt(count) / noise, delta)
    return Case(spent, epsilon / 2, "exact composition of K T Gaussian releases")
