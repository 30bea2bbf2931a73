r"""What it costs to choose the best of several private runs, by privacy profiles.

A random number *K* of runs is made, each with a setting drawn uniformly from a grid and
a released score of its own, and the one with the best score is published. *K* is
truncated negative binomial with parameters :math:`\eta > -1` and :math:`\gamma` (
Papernot and Steinke 2022, arXiv:2110.03620, Definition 1). If a run, its score
included, has the profile :math:`\delta(\epsilon)`, the choice has, for any
:math:`\hat\epsilon`,

.. math:: \delta'(\epsilon) \le E[K]\, \delta\Bigl(\epsilon - (1 + \eta) \log\bigl(
          e^{\hat\epsilon} + \tfrac{1 - \gamma}{\gamma} \delta(\hat\epsilon)\bigr)
          \Bigr)

(Koskela, Redberg and Wang 2024, arXiv:2402.06701).

*Proof.* Let Q be the law of one run, and q(y) the chance that a run does no better than
y. The published y has the law :math:`Q(dy) f'(q(y))`, f the generating function of K,
with :math:`f'(q) \propto (1 - (1 - \gamma) q)^{-1-\eta}`. Being no better than y is an
event: the privacy of a run gives :math:`1 - q' \le e^{\hat\epsilon}(1 - q) +
\delta(\hat\epsilon)` both ways, so that :math:`1 - (1 - \gamma) q' = \gamma + (1 -
\gamma)(1 - q') \le (e^{\hat\epsilon} + (1 - \gamma)\delta(\hat\epsilon) / \gamma)(1 -
(1 - \gamma) q)`, and :math:`f'(q) \le f'(q') (e^{\hat\epsilon} + \dots)^{1 + \eta}`.
Hence for every set the chance under D less :math:`e^\epsilon` times that under D' is at
most :math:`\int f'(q) (dQ - e^{\epsilon - \dots} dQ')_+`, and :math:`f' \le f'(1) =
E[K]`. ∎

Here :math:`\eta = 0`, the logarithmic distribution, which costs least.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dperm.privacy.accounting import is_closed_form, true_epsilon
from dperm.privacy.calibration import smallest
from dperm.privacy.ledger import Ledger
from dperm.privacy.random_stopping import expected_runs, tuned_epsilon

GAMMA = 0.1  # 3.9 runs on average
TRIED = (1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)  # deltas of the inner epsilon
TOLERANCE = 1e-4  # relative, of a calibrated noise multiplier


def choice_epsilon(ledger: Ledger, delta: float, gamma: float = GAMMA) -> float:
    """Epsilon of publishing the best of a logarithmic number of runs of a ledger.

    Where the ledger's own epsilon is a closed form by the profile, elsewhere by its
    Rényi curve (``random_stopping``), which costs much less to compute.

    Parameters
    ----------
    ledger : Ledger
        Of one run and its score.
    delta : float
        Of the whole.
    gamma : float
        Of the number of runs.

    Examples
    --------
    >>> from dperm.privacy.ledger import Gaussian
    >>> one = Ledger((Gaussian(1.0, 10.0, 1, "", ""),))
    >>> round(choice_epsilon(one, 1e-6), 3)
    0.603
    """
    runs = expected_runs(0.0, gamma)
    if not is_closed_form(ledger, "strict"):
        return tuned_epsilon(ledger, delta, runs, "logarithmic")
    found = [true_epsilon(ledger, one) for one in TRIED]
    ratio = (1 - gamma) / gamma
    inner = min(
        math.log(math.exp(min(epsilon, 700.0)) + ratio * one)
        for epsilon, one in zip(found, TRIED, strict=True)
    )
    return true_epsilon(ledger, delta / runs) + inner


@dataclass(frozen=True)
class Choice:
    """A noise multiplier of each run, and what the whole choice costs.

    Attributes
    ----------
    noise_multiplier : float
    true_epsilon : float
        Of the whole, at most the target.
    ledger : Ledger
        Of one run and its score.
    """

    noise_multiplier: float
    true_epsilon: float
    ledger: Ledger


def calibrate_choice(
    ledger_of: Callable[[float], Ledger], epsilon: float, delta: float
) -> Choice:
    """The least noise of each run with which the whole choice meets a target.

    Raises
    ------
    UnreachableTargetError
        If no noise does.
    """

    def cost(multiplier: float) -> float:
        return choice_epsilon(ledger_of(multiplier), delta)

    multiplier = smallest(cost, epsilon, TOLERANCE)
    ledger = ledger_of(multiplier)
    return Choice(multiplier, choice_epsilon(ledger, delta), ledger)


def drawn_runs(rng: np.random.Generator, gamma: float = GAMMA) -> int:
    """A number of runs; at least one."""
    return int(rng.logseries(1 - gamma))
