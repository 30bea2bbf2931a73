"""A parameter search that epsilon pays for.

A choice makes a logarithmic number of runs with parameters drawn from a grid. Each
releases its weights and its clipped loss with noise; the run with the least noisy loss
is published (:mod:`dperm.privacy.private_selection`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils.validation import check_is_fitted

from dperm.estimators import ranges
from dperm.estimators.estimators import DPLinear, noise_seed
from dperm.estimators.guarantee import Counted, Guarantee, charge, check_target
from dperm.estimators.methods import Setting, SolverAdapter
from dperm.privacy.accountants.tight import gaussian_epsilon
from dperm.privacy.accounting import true_epsilon
from dperm.privacy.calibration import smallest
from dperm.privacy.events import Gaussian, Ledger, united
from dperm.privacy.noise import gaussian, streams
from dperm.privacy.private_selection import (
    calibrate_choice,
    choice_epsilon,
    drawn_runs,
)
from dperm.problems import door
from dperm.problems.problem import Problem
from dperm.solvers.scales import label_scale

ROOM = 1e-3  # relative, between bounds that are each found by a search
# Share of epsilon for the sums of columns; half of delta is theirs
RANGES = 0.1
SCORE = 0.2  # share of the target's mu with which a score is released
INNER = 0.6  # share of a choice's epsilon that one run has, roughly
SEARCHED = (
    "solver",
    "setting",
    "l1",
    "l2",
)  # losses stay comparable under these


# a point of the grid, its noise, its releases
Paid = tuple[int, float, Ledger]


@cache
def score_event(epsilon: float, delta: float) -> Gaussian:
    """The release of a score, in units of its sensitivity."""
    unit = "b / n, the replace-one change of a mean of losses in [0, b]"
    noise = smallest(lambda z: gaussian_epsilon(1 / z, delta), epsilon, 1e-6)
    return Gaussian(1.0, noise / SCORE, 1, unit, "a private choice's score")


def scored(
    adapter: SolverAdapter,
    setting: Setting,
    noise: float,
    seeds: Any,
    epsilon: float,
) -> tuple[float, np.ndarray]:
    """The noisy loss of one run of a choice within epsilon, and its weights (p,).

    The run, with a noise multiplier, and the noise of its loss have a seed each.
    """
    problem = adapter.problem
    bound = loss_bound(adapter.problem)
    run_seed, loss_seed = map(int, seeds)
    w = adapter.weights(setting, noise, run_seed)
    scale = score_event(epsilon, problem.delta).scale * bound / problem.n
    added = scale * gaussian(streams(loss_seed).noise, ())
    return float(clipped_loss(problem, bound, w) + added), w


def clipped_loss(problem: Problem, bound: float, w: np.ndarray) -> float:
    """Mean over records of the loss at w (p,) clipped to [0, most].

    Replacing a record changes it by at most most / n.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        record_losses = problem.loss.values(
            np.asarray(problem.A @ w) + problem.offset
        )
        return float(
            np.minimum(
                np.where(np.isnan(record_losses), bound, record_losses), bound
            ).mean()
        )


def loss_bound(problem: Problem) -> float:
    """Three times the loss at w = 0 of a label at its public scale."""
    margin = 0.0 if problem.loss.labels == "sign" else -label_scale(problem)
    return 3 * problem.mean_loss(np.full(1, margin))


@dataclass(eq=False, repr=False)  # comparison and repr are scikit-learn's
class PrivateSearch(Counted):
    """The best of a random number of private fits, all within one epsilon.

    A tenth of epsilon and half of delta release the sums that centre and scale columns.
    A logarithmic number of runs, 3.9 on average, takes parameters drawn from the grid;
    that with the least noisy clipped loss is published. ``privacy.private_selection``
    prices the choice (Papernot and Steinke 2022, arXiv:2110.03620; Koskela, Redberg and
    Wang 2024, arXiv:2402.06701).

    Parameters
    ----------
    estimator : DPClassifier of two classes, or DPRegressor
        Its own epsilon and random_state are not used.
    param_grid : mapping or list of mappings
        Lists of values of ``solver``, ``setting``, ``l1`` and ``l2``.
    epsilon : float
        Of the whole search.
    random_state : int, RandomState or None

    Attributes
    ----------
    best_estimator_ : DPClassifier or DPRegressor
    best_params_ : dict
    epsilon_ : Guarantee
        The cost of the search.

    Raises
    ------
    ValueError
        By ``fit``, for parameters that cannot be searched, or an epsilon out of reach.
    BudgetError
        By ``fit``, if an open ``Budget`` has too little left.

    Examples
    --------
    >>> from dperm import DPClassifier, PrivateSearch
    >>> X, y = [[1.0], [-1.0]] * 500, [1, 0] * 500
    >>> model = DPClassifier("dp_gd", classes=(0, 1), bounds=(-1, 1))
    >>> search = PrivateSearch(model, {"l2": [0.01, 0.1]}, random_state=0).fit(X, y)
    >>> search.epsilon_.high <= 1.0
    True
    """

    estimator: Any
    param_grid: Any
    _: KW_ONLY
    epsilon: float = 1.0
    random_state: Any = None

    @np.errstate(all="ignore")  # warnings would depend on the records
    def fit(self, X: Any, y: Any) -> Self:
        """Search on X (n, p) and y (n,).

        Raises ValueError for parameters that cannot be searched or an epsilon out of
        reach, and BudgetError if an open ``Budget`` has too little left.
        """
        self._refuse_elsewhere()
        models, t, labels = self._prepared(X, y)
        base = models[0]
        half = base._delta
        runs = [model._runs(t, labels)[0] for model in models]
        paid, cost = self._priced(runs, half)
        information = [
            runs[k][0].public_information(ledger) for k, _, ledger in paid
        ]
        public = united(*information, base._public)
        seed = noise_seed(self.random_state)
        noise = ranges.whole(RANGES * float(self.epsilon), half)
        sums_ledger = ranges.stated(base._ranges, noise)
        cost += true_epsilon(sums_ledger, half)
        charge(cost, 2 * half, public, seed)
        X, labels, _ = base._standardised(
            t, labels, sums_ledger, ranges.seeded(seed)
        )
        for model in models:
            model._ranges = base._ranges
        runs = [model._runs(X, labels)[0] for model in models]
        with door.silent():
            _, w, k = min(
                self._tried(runs, paid, seed), key=lambda tried: tried[0]
            )
        won = next(ledger for point, _, ledger in paid if point == k)
        self.epsilon_ = Guarantee(sums_ledger + won, 2 * half, public, cost)
        self.best_params_ = ParameterGrid(self.param_grid)[k]
        self.best_estimator_ = models[k]
        self.best_estimator_.epsilon_ = self.epsilon_
        self.best_estimator_._published(np.where(np.isfinite(w), w, 0.0)[None])
        return self

    @property
    def _of_choice(self) -> float:
        """Epsilon of the choice, without the sums of columns."""
        return (1 - RANGES) * float(self.epsilon)

    def _prepared(self, X: Any, y: Any) -> tuple[list[Any], Any, Any]:
        """The model of each point of the grid, columns as t in their ranges, labels."""
        if not isinstance(self.estimator, DPLinear) or self.estimator.release:
            raise ValueError(
                "estimator: expected a DPClassifier or a DPRegressor with no "
                f"release=True, found {door.shown(self.estimator)}"
            )
        check_target(self.epsilon, 0.5)
        if float(self.epsilon) == np.inf:
            raise ValueError("epsilon: expected a finite number, found inf")
        try:
            grid = [*ParameterGrid(self.param_grid)]
        except (TypeError, ValueError) as error:
            raise ValueError(f"param_grid: {error}") from error
        wrong = set[str]().union(*grid) - {*SEARCHED}
        if wrong or not grid:
            raise ValueError(
                f"param_grid: expected some of {', '.join(SEARCHED)}, found "
                f"{', '.join(sorted(map(str, wrong))) or 'none'}"
            )
        inner = INNER * self._of_choice
        models = [
            clone(self.estimator).set_params(**point, epsilon=inner)
            for point in grid
        ]
        for model in models:
            columns, labels = model._cleaned(X, y)
            model._delta /= 2
        if len(labels) > 1:
            raise ValueError("y: a search takes two classes, found more")
        return models, columns, labels

    def _priced(self, runs: Any, delta: float) -> tuple[list[Paid], float]:
        """Affordable points of the grid, and the cost of a search among them."""
        epsilon = self._of_choice
        score = Ledger((score_event(epsilon, delta),))
        ways = [
            lambda noise, adapter=adapter, setting=setting: (
                adapter.ledger(setting, noise) + score
            )
            for adapter, setting in runs
        ]
        noises = enumerate(calibrate_choice(ways, epsilon, delta))
        paid = [(k, z, ways[k](z)) for k, z in noises if z is not None]
        if not paid:
            raise ValueError(
                f"epsilon: no noise keeps a search to {float(self.epsilon):g}"
            )
        cost = choice_epsilon([ledger for _, _, ledger in paid], delta)
        if cost > (1 + ROOM) * epsilon:
            raise ValueError(
                f"param_grid: choosing among these solvers costs {cost:.3g}; search "
                "them apart"
            )
        return paid, cost

    def _tried(self, runs: Any, paid: list[Paid], seed: int) -> Iterator[Any]:
        """Noisy loss, weights and point of each run; no record decides which."""
        rng = np.random.default_rng(seed)
        for _ in range(drawn_runs(rng)):
            k, noise, _ = paid[int(rng.integers(len(paid)))]
            seeds = rng.integers(2**62, size=2)
            adapter, setting = runs[k]
            yield *scored(adapter, setting, noise, seeds, self._of_choice), k

    def predict(self, X: Any) -> np.ndarray:
        """Predictions of the best estimator for records X (n, p); shape (n,)."""
        check_is_fitted(self, "best_estimator_")
        predictions: np.ndarray = self.best_estimator_.predict(X)
        return predictions

    def score(self, X: Any, y: Any) -> float:
        """Accuracy or R^2 of the best estimator."""
        check_is_fitted(self, "best_estimator_")
        return float(self.best_estimator_.score(X, y))
