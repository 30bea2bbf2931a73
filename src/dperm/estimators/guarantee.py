"""The cost of a fit, and budgets that several fits share."""

from __future__ import annotations

import copy
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Self

import numpy as np

from dperm.estimators import processes
from dperm.estimators.bases import BaseEstimator
from dperm.privacy.accountants import TIGHT
from dperm.privacy.calibration import Calibration, calibrate
from dperm.privacy.events import Ledger, moves_with_data, united
from dperm.problems.door import number, shown


@dataclass(frozen=True)
class Guarantee:
    """A proved epsilon."""

    ledger: Ledger  #: releases of the fit
    delta: float
    #: public information: n, by the relation itself, and what was read off the data
    #: without being paid for
    given: tuple[str, ...]
    #: every mechanism with these releases costs at most that
    high: float
    slack: float = 0.0  #: share of delta that noise for release costs

    @property
    def unconditional(self) -> bool:
        """Whether nothing that changes with a record is taken as public."""
        return not moves_with_data(self.given)

    def __str__(self) -> str:
        return (
            f"epsilon at most {self.high:.6g} at delta {self.delta:.3g}, "
            f"one record replaced, given {', '.join(self.given) or 'nothing'}"
        )

    __repr__ = __str__


FOUND = 64  # noise levels that are kept
_FOUND: dict[tuple[Ledger, float, float], Calibration] = {}


def calibrated(
    ledger_of: Callable[[float], Ledger], epsilon: float, delta: float
) -> Calibration:
    """The least noise that meets a target, found once for fits with equal releases."""
    key = (ledger_of(1.0), epsilon, delta)
    calibration = _FOUND.get(key)
    if (
        calibration is None
        or ledger_of(calibration.noise_multiplier) != calibration.ledger
    ):
        calibration = calibrate(ledger_of, epsilon, delta, TIGHT)
        if len(_FOUND) >= FOUND:
            _FOUND.clear()
        _FOUND[key] = calibration
    return calibration


class BudgetError(ValueError):
    """A fit costs more than a budget has left, or cannot be counted by it.

    Examples
    --------
    >>> import dperm
    >>> X, y = [[1.0], [-1.0]] * 500, [1.0, -1.0] * 500
    >>> try:
    ...     with dperm.Budget(epsilon=0.5, delta=1e-5):
    ...         model = dperm.fit(X, y, epsilon=1, bounds=(-1, 1), classes=(-1, 1))
    ... except dperm.BudgetError as error:
    ...     print(error)
    epsilon: 0.5 of the budget of 0.5 is left, this fit costs 1
    """


LEAST_DELTA = sys.float_info.min
LEAST_EPSILON = 1e-300  # that calibration finds
CURE = "fit in one process, by n_jobs=None or joblib's threading backend"
ROUNDING = 1e-9  # relative tolerance of a budget's sums
_ACTIVE: list[Budget] = []  # innermost last
_LOCK = threading.Lock()


@dataclass(eq=False)  # budgets with equal numbers differ
class Budget:
    """A budget that all fits in a ``with`` block share.

    A fit that costs more than is left raises ``BudgetError`` before it draws any noise.
    Epsilons and deltas add up, also where later fits depend on earlier releases
    (Rogers, Roth, Ullman and Vadhan 2016, arXiv:1605.08294, Theorem 3.6). Noise must be
    independent, so that a ``random_state`` serves one fit of a budget.

    Fits of this process are counted, in all of its threads. While a budget is open, an
    estimator that is not fitted does not leave the process (``pickle``, joblib and
    ``n_jobs`` raise ``BudgetError``), and no process that this one started fits.

    Parameters
    ----------
    epsilon, delta : float
        What all fits together may cost. ``spent_epsilon`` and ``spent_delta`` say what
        they have cost so far.

    Raises
    ------
    ValueError
        For an epsilon or delta that is no budget.
    BudgetError
        By a fit that costs more than is left.

    Examples
    --------
    >>> import dperm
    >>> X, y = [[1.0], [-1.0]] * 500, [1.0, -1.0] * 500
    >>> settings = {"loss": "logistic", "classes": (-1, 1), "bounds": (-1, 1)}
    >>> with dperm.Budget(epsilon=1.0, delta=1e-5) as budget:
    ...     model = dperm.fit(X, y, epsilon=0.7, **settings)
    ...     model = dperm.fit(X, y, epsilon=0.7, **settings)
    Traceback (most recent call last):
    dperm.estimators.guarantee.BudgetError: epsilon: 0.3 of the budget of 1 is left, \
    this fit costs 0.7
    """

    #: epsilon, delta: totals of all fits
    epsilon: float
    delta: float
    spent_epsilon: float = field(default=0.0, init=False)
    spent_delta: float = field(default=0.0, init=False)
    #: what the fits so far take as public
    given: tuple[str, ...] = field(default=(), init=False)
    _seeds: set[int] = field(default_factory=set, init=False, repr=False)
    _thread: int = field(default=0, init=False, repr=False)  # that opened it

    def __post_init__(self) -> None:
        self.epsilon, self.delta = check_target(self.epsilon, self.delta)

    def __enter__(self) -> Self:
        with _LOCK:
            processes.mark()
            self._thread = threading.get_ident()
            _ACTIVE.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        with _LOCK:
            _ACTIVE.remove(self)
            if not _ACTIVE:
                processes.unmark()

    def _refuse(self, seed: int, **cost: float) -> None:
        if seed in self._seeds:
            raise BudgetError(
                "random_state: expected None or another one in every fit of a budget: "
                "the same noise in two fits can cancel"
            )
        for name, amount in cost.items():
            total = getattr(self, name)
            spent = getattr(self, f"spent_{name}")
            if not spent + amount <= total * (1 + ROUNDING):
                raise BudgetError(
                    f"{name}: {max(total - spent, 0.0):.6g} of the budget of "
                    f"{total:g} is left, this fit costs {amount:.6g}"
                )


def charge(
    epsilon: float, delta: float, given: tuple[str, ...], seed: int
) -> None:
    """Take the cost of a fit, whose noise has that seed, from every open budget.

    Raises BudgetError if one has less left or knows the seed, or if a process above
    this one has a budget open, which would not see the fit; then nothing is taken.
    """
    parent = processes.marked_parent()
    if parent:
        raise _uncounted(parent)
    with _LOCK:
        for budget in _ACTIVE:
            budget._refuse(seed, epsilon=epsilon, delta=delta)
        for budget in dict.fromkeys(_ACTIVE):  # one may be entered twice
            budget.spent_epsilon += epsilon
            budget.spent_delta += delta
            budget.given = united(budget.given, given)
            budget._seeds.add(seed)


def _uncounted(process: int) -> BudgetError:
    """The refusal of a fit here by a budget that is open there."""
    return BudgetError(
        f"process {process} has a Budget open, which would not count this fit of "
        f"process {os.getpid()}: {CURE}"
    )


class Counted(BaseEstimator):
    """An estimator whose fits are counted by the budgets that are open.

    It is copied within a process as usual. While a budget is open, an estimator that is
    not fitted does not leave the process: pickling raises BudgetError. A library's
    thread that hands tasks to other processes would say so in words of its own. There
    the estimator is pickled, but raises BudgetError where it is fitted.
    """

    _origin: Any = None  # the process that it left while a budget was open

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        if not _ACTIVE or hasattr(self, "epsilon_"):
            return state
        if threading.get_ident() in {budget._thread for budget in _ACTIVE}:
            raise BudgetError(
                f"{type(self).__name__}: a Budget is open, which would not count a fit "
                f"in another process: {CURE}"
            )
        return {**state, "_origin": processes.origin()}

    def _refuse_elsewhere(self) -> None:
        """Refuse a fit in another process than that whose budget should count it."""
        if self._origin and self._origin != processes.origin():
            raise _uncounted(self._origin[0])
        vars(self).pop("_origin", None)

    def __sklearn_clone__(self) -> Any:
        clone = super().__sklearn_clone__()
        clone._origin = self._origin
        return clone

    def __copy__(self) -> Self:
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = type(self).__new__(type(self))
        memo[id(self)] = copied
        copied.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return copied


def check_target(epsilon: Any, delta: Any) -> tuple[float, float]:
    """Epsilon and delta as doubles; ValueError for what is none, or no target."""
    if not (is_number(epsilon) and float(epsilon) > 0):
        raise ValueError(
            f"epsilon: expected a positive number or inf, found {shown(epsilon)}"
        )
    if float(epsilon) < LEAST_EPSILON:
        raise ValueError(
            f"epsilon: expected at least {LEAST_EPSILON:g}, found {shown(epsilon)}"
        )
    if not (is_number(delta) and 0 < float(delta) < 1):
        raise ValueError(
            f"delta: expected a number in (0, 1), found {shown(delta)}"
        )
    if float(delta) < LEAST_DELTA:
        raise ValueError(
            f"delta: expected at least {LEAST_DELTA:.2g}, below which doubles lose "
            f"digits, found {shown(delta)}"
        )
    return float(epsilon), float(delta)


def is_number(entry: Any) -> bool:
    """Whether a parameter is a real number that a double holds, and no truth value."""
    is_real = isinstance(entry, Real) and not isinstance(
        entry, bool | np.bool_
    )
    return is_real and number(entry) is not None
