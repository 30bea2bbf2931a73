"""A parameter search that epsilon pays for.

A choice makes a logarithmic number of runs with parameters drawn from a grid. Each
releases its weights and its clipped loss with noise; the run with the least noisy loss
is published (:mod:`dperm.accountants.private_choice`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils.validation import check_is_fitted

from dperm.accountants.private_choice import (
    calibrate_choice,
    choice_epsilon,
    drawn_runs,
)
from dperm.compare import frames, ranges
from dperm.compare.estimators import DPLinear, noise_seed
from dperm.compare.guarantee import Guarantee, charge, check_target
from dperm.compare.methods import Contestant, Setting
from dperm.core.erm.problem import Problem
from dperm.core.privacy.accounting import true_epsilon
from dperm.core.privacy.calibration import smallest
from dperm.core.privacy.ledger import Gaussian, Ledger, united
from dperm.core.privacy.mechanisms import gaussian, streams
from dperm.core.privacy.strict import gaussian_epsilon
from dperm.solvers.scales import label_scale

ROOM = 1e-3  # relative, between bounds that are each found by a search
RANGES = 0.1  # share of epsilon for the sums of columns; half of delta is theirs
SCORE = 0.2  # share of the target's mu with which a score is released
INNER = 0.6  # share of a choice's epsilon that one run has, roughly
SEARCHED = ("solver", "setting", "l1", "l2")  # losses stay comparable under these


class Drawn(NamedTuple):
    """A run of a private choice."""

    choice: int  #: index of its parameters in the grid
    setting: Setting
    noise_multiplier: float
    seed: int
    scored: int  #: seed of the score's noise, independent of the run's other draws


@cache
def score_event(epsilon: float, delta: float) -> Gaussian:
    """The release of a score, in units of its sensitivity."""
    unit = "b / n, the replace-one change of a mean of losses in [0, b]"
    noise = smallest(lambda z: gaussian_epsilon(1 / z, delta), epsilon, 1e-6)
    return Gaussian(1.0, noise / SCORE, 1, unit, "a private choice's score")


def scored(on: Contestant, drawn: Drawn, epsilon: float) -> tuple[float, np.ndarray]:
    """The noisy loss of one run of a choice within epsilon, and its weights (p,)."""
    problem, most = on.problem, loss_bound(on.problem)
    w = on.weights(drawn.setting, drawn.noise_multiplier, drawn.seed)
    scale = score_event(epsilon, problem.delta).scale * most / problem.n
    noise = gaussian(streams(drawn.scored).noise, ())
    return float(clipped_loss(problem, most, w) + scale * noise), w


def clipped_loss(problem: Problem, most: float, w: np.ndarray) -> float:
    """Mean over records of the loss at w (p,) clipped to [0, most].

    Replacing a record changes it by at most most / n.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        each = problem.loss.values(np.asarray(problem.A @ w) + problem.offset)
        return float(np.minimum(np.where(np.isnan(each), most, each), most).mean())


def loss_bound(problem: Problem) -> float:
    """Three times the loss at w = 0 of a label at its public scale."""
    at = 0.0 if problem.loss.labels == "sign" else -label_scale(problem)
    return 3 * problem.mean_loss(np.full(1, at))


class PrivateSearch(BaseEstimator):
    """The best of a random number of private fits, all within one epsilon.

    A tenth of epsilon and half of delta release the sums that center and scale columns.
    A logarithmic number of runs, 3.9 on average, each takes parameters drawn uniformly
    from the grid. Each releases its weights and a noisy clipped loss; the run with the
    least loss is published. ``dperm.accountants.private_choice`` prices such a choice
    (Papernot and Steinke 2022, arXiv:2110.03620; Koskela, Redberg and Wang 2024,
    arXiv:2402.06701).

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

    Examples
    --------
    >>> from dperm import DPClassifier, PrivateSearch
    >>> X, y = [[1.0], [-1.0]] * 500, [1, 0] * 500
    >>> model = DPClassifier("dp_gd", classes=(0, 1), bounds=(-1, 1))
    >>> search = PrivateSearch(model, {"l2": [0.01, 0.1]}, random_state=0).fit(X, y)
    >>> search.epsilon_.high <= 1.0
    True
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        epsilon: float = 1.0,
        random_state: Any = None,
    ):
        self.estimator, self.param_grid = estimator, param_grid
        self.epsilon, self.random_state = epsilon, random_state

    @np.errstate(all="ignore")  # warnings would depend on the records
    def fit(self, X: Any, y: Any) -> Self:
        """Search on X (n, p) and y (n,).

        Raises
        ------
        ValueError
            For parameters that cannot be searched, or an epsilon out of reach.
        BudgetError
            If an open ``Budget`` has too little left.
        """
        grid = self._grid()
        models = [clone(self.estimator).set_params(**one) for one in grid]
        columns, every = self._cleaned(models, X, y)
        runs, half = self._runs(models, columns, every), models[0]._delta
        able, ledgers, cost = self._priced(runs, half)
        known = [
            runs[k][0].public_information(one)
            for (k, _), one in zip(able, ledgers, strict=True)
        ]
        given, seed = united(*known, models[0]._types), noise_seed(self.random_state)
        noise = ranges.whole(RANGES * self.epsilon, half)
        first = ranges.stated(models[0]._ranges, noise)
        cost += true_epsilon(first, half)
        charge(cost, 2 * half, given, seed)
        standard = models[0]._standardised(columns, every, first, ranges.seeded(seed))
        for model in models:
            model._ranges = models[0]._ranges
        runs = self._runs(models, *standard[:2])
        with frames.silent():
            k, w = self._best(runs, able, seed)
        self.best_params_, self.best_estimator_ = dict(grid[k]), models[k]
        won = ledgers[[one for one, _ in able].index(k)]
        models[k]._guarantee = Guarantee(first + won, 2 * half, given, cost)
        models[k]._published(w[None])
        return self

    def _grid(self) -> list[dict[str, Any]]:
        if not isinstance(self.estimator, DPLinear):
            raise ValueError(
                "estimator: expected a DPClassifier or a DPRegressor, found "
                f"{type(self.estimator).__name__}"
            )
        check_target(self.epsilon, 0.5)
        if self.epsilon == np.inf:
            raise ValueError("epsilon: expected a finite number, found inf")
        grid: list[dict[str, Any]] = [*ParameterGrid(self.param_grid)]
        wrong = {key for one in grid for key in one} - {*SEARCHED}
        if wrong or not grid:
            raise ValueError(
                f"param_grid: expected some of {', '.join(SEARCHED)}, found "
                f"{', '.join(sorted(wrong)) or 'none'}"
            )
        return grid

    @property
    def _of_choice(self) -> float:
        """Epsilon of the choice, without the sums of columns."""
        return (1 - RANGES) * self.epsilon

    def _cleaned(self, models: Sequence[Any], X: Any, y: Any) -> tuple[Any, Any]:
        """Columns and labels as t in their ranges, known to all models."""
        for model in models:
            model.set_params(epsilon=INNER * self._of_choice)
            if model.release:
                raise ValueError("estimator: a search takes no release=True")
            columns, every = model._cleaned(*model._arrays(X, y))
            model._delta /= 2
        if len(every) > 1:
            raise ValueError("y: a search takes two classes, found more")
        return columns, every

    def _runs(
        self, models: Sequence[Any], X: Any, every: Any
    ) -> list[tuple[Contestant, Setting]]:
        """The method at each point of the grid, with the target of a single run."""
        return [model._runs(X, every)[0] for model in models]

    def _priced(
        self, runs: Any, delta: float
    ) -> tuple[list[tuple[int, float]], list[Ledger], float]:
        """Affordable points with noise, their ledgers, and the cost of the search."""
        epsilon = self._of_choice
        score = Ledger((score_event(epsilon, delta),))
        ways = [
            lambda noise, on=on, setting=setting: on.ledger(setting, noise) + score
            for on, setting in runs
        ]
        found = calibrate_choice(ways, epsilon, delta)
        able = [(k, noise) for k, noise in enumerate(found) if noise is not None]
        if not able:
            raise ValueError(f"epsilon: no noise keeps a search to {self.epsilon:g}")
        ledgers = [ways[k](noise) for k, noise in able]
        cost = choice_epsilon(ledgers, delta)
        if cost > (1 + ROOM) * epsilon:
            raise ValueError(
                f"param_grid: choosing among these solvers costs {cost:.3g}; search "
                "them apart"
            )
        return able, ledgers, cost

    def _drawn(
        self, runs: Any, able: list[tuple[int, float]], seed: int
    ) -> list[Drawn]:
        """The runs to make; no record influences them."""
        rng, found = np.random.default_rng(seed), []
        for _ in range(drawn_runs(rng)):
            k, noise = able[int(rng.integers(len(able)))]
            own, scored = (int(one) for one in rng.integers(2**62, size=2))
            found.append(Drawn(k, runs[k][1], noise, own, scored))
        return found

    def _best(
        self, runs: Any, able: list[tuple[int, float]], seed: int
    ) -> tuple[int, np.ndarray]:
        """The point with the least noisy loss, and the weights of that run."""
        tried = [
            (*scored(runs[one.choice][0], one, self._of_choice), one.choice)
            for one in self._drawn(runs, able, seed)
        ]
        _, w, k = min(tried, key=lambda one: one[0])
        return k, np.where(np.isfinite(w), w, 0.0)

    @property
    def epsilon_(self) -> Guarantee:
        """The cost of the search."""
        check_is_fitted(self, "best_estimator_")
        found: Guarantee = self.best_estimator_.epsilon_
        return found

    def predict(self, X: Any) -> np.ndarray:
        """Predictions of the best estimator for records X (n, p); shape (n,)."""
        check_is_fitted(self, "best_estimator_")
        found: np.ndarray = self.best_estimator_.predict(X)
        return found

    def score(self, X: Any, y: Any) -> float:
        """Accuracy or R^2 of the best estimator."""
        check_is_fitted(self, "best_estimator_")
        return float(self.best_estimator_.score(X, y))
