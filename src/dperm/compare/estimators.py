"""Private linear models from Python, by scikit-learn's conventions.

The guarantee is that of one fit: choosing parameters by looking at several fits of the
same data costs more, and no epsilon here includes it.
"""

from __future__ import annotations

import math
import secrets
import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from dperm.accountants.intervals import epsilon_interval
from dperm.compare import contestants, metrics
from dperm.compare.contestants import Contestant, Job, Setting
from dperm.core.calibrations import STRICT
from dperm.core.erm.cleaning import cleaned
from dperm.core.erm.losses import BOUNDED
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import Problem, build
from dperm.core.privacy.accounting import Interval
from dperm.core.privacy.calibration import calibrate
from dperm.core.privacy.ledger import (
    LABEL_SCALE,
    SMOOTHNESS,
    Ledger,
    N,
    moves_with_data,
    united,
)
from dperm.solvers.scales import declared


@dataclass(frozen=True)
class Guarantee:
    """An epsilon, as an interval whose ends are both proved.

    Attributes
    ----------
    ledger : Ledger
        What the fit released.
    delta : float
    given : tuple of str
        What is public: n, by the relation itself, and what was read off the data
        without being paid for.
    """

    ledger: Ledger
    delta: float
    given: tuple[str, ...]

    def assuming(self, *names: str) -> Guarantee:
        """The same with more taken as public."""
        return replace(self, given=united(self.given, names))

    @cached_property
    def interval(self) -> Interval:
        """Both ends; found when asked for."""
        return epsilon_interval(self.ledger, self.delta)

    @property
    def low(self) -> float:
        """Some mechanism with these releases costs at least that."""
        return self.interval.low

    @property
    def high(self) -> float:
        """Every mechanism with these releases costs at most that."""
        return self.interval.high

    @property
    def unconditional(self) -> bool:
        """Whether nothing is taken as public that moves with a record."""
        return not moves_with_data(self.given)

    @property
    def relation(self) -> str:
        """Of neighbouring data sets: one record replaced."""
        return self.ledger.relation

    def __str__(self) -> str:
        return (
            f"epsilon in [{self.low:.6g}, {self.high:.6g}] at delta {self.delta:.3g}, "
            f"one record replaced, given {', '.join(self.given)}"
        )

    __repr__ = __str__


DATA = "data"  # a scale that is read off the data
RESIDUAL = tuple(name for name in BOUNDED if name not in metrics.SIGNED)


class PrivacyLeakWarning(UserWarning):
    """Something is read off the data that epsilon does not pay for."""


PARAMETERS: Any = dataclass(eq=False, repr=False)  # as scikit-learn compares and prints


@PARAMETERS
class DPLinear(BaseEstimator):
    """What classifier and regressor share; see there for parameters and attributes."""

    solver: str = "dp_cd"
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float | None = None
    l1: float = 0.0
    l2: float | None = None
    fit_intercept: bool = True
    feature_scale: Any = 1.0
    setting: Mapping[str, float] | None = None
    random_state: Any = None

    def _arrays(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """X (n, p) and y (n,) as arrays, whatever numbers they hold.

        What a single record holds may not decide whether a fit raises.
        """
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the "
                "target y is None"
            )
        X = validate_data(
            self,
            X,
            accept_sparse="csc",
            dtype=np.float64,
            ensure_min_samples=2,
            ensure_all_finite=False,
        )
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        return X, y

    def prepared(
        self, X: Any, y: Any, method: contestants.Method | None = None
    ) -> tuple[Contestant, Setting]:
        """The solver on the problem of X (n, p) and y (n,), and its setting.

        All that is made of the data before the solver reads them. ``method``: the
        solver's, where it is known already; it is read from the configuration if not.

        Raises
        ------
        ValueError
            For labels, parameters or a solver that do not do.
        """
        X, y = self._labelled(*self._arrays(X, y))
        method = method or contestants.method(self.solver)
        on = method.on(self._problem(X, y))
        reason = on.obstacle()
        if reason:
            raise ValueError(f"solver {method.name}: cannot do this: {reason}")
        setting = {**method.default, **(self.setting or {})}
        contestants.check_setting(method.section, setting)
        return on, setting

    def _fitted(self, X: Any, y: Any) -> Self:
        """Fit to X (n, p) and labels y (n,)."""
        on, setting = self.prepared(X, y)
        read = [name for name, is_read in self._read_off() if is_read]
        for name in read:
            warnings.warn(
                f"{name} is read off the data and not paid for by epsilon: "
                "give feature_scale, label_scale as numbers that do not "
                "come from the data",
                PrivacyLeakWarning,
                3,
            )
        goal = (on.problem.epsilon, on.problem.delta, STRICT)
        found = calibrate(partial(on.ledger, setting), *goal)
        w = _finite(weights(on, setting, found.noise_multiplier, self._seed()))
        labels = (metrics.CLASSES,) if getattr(self, "classes", ()) is None else ()
        known = (*on.public_information(found.ledger), *labels, *read)
        self._guarantee = Guarantee(found.ledger, on.problem.delta, known)
        self._keep(
            w[:-1] if self.fit_intercept else w, w[-1] if self.fit_intercept else 0.0
        )
        return self

    def _problem(self, X: Any, y: np.ndarray) -> Problem:
        """The objective, under declared scales."""
        n, epsilon = X.shape[0], self.epsilon
        delta = 1 / n**2 if self.delta is None else self.delta
        if not epsilon > 0:
            raise ValueError(f"epsilon must be positive, found {epsilon!r}")
        if not 0 < delta < 1:
            raise ValueError(f"delta must lie in (0, 1), found {delta!r}")
        penalty = Penalty(self.l1, 1 / n if self.l2 is None else self.l2)
        if not (penalty.l1 >= 0 and penalty.l2 >= 0):
            raise ValueError(f"l1 and l2 must be 0 or more, found {penalty}")
        scales, label = self._scales(X), self._label(y)
        if self.fit_intercept:
            X, scales = metrics.with_ones(X), np.append(scales, 1.0)
        problem = build(
            "fit", X, y, self.loss, penalty, epsilon, delta, "fit", given=(N,)
        )
        return declared(problem, scales, label)

    def _scales(self, X: Any) -> np.ndarray:
        """S_j, shape (p,)."""
        p, given = X.shape[1], self.feature_scale
        if isinstance(given, str) and given == DATA:
            with np.errstate(over="ignore"):
                squares = X.multiply(X) if hasattr(X, "multiply") else X * X
                found = np.sqrt(np.asarray(squares.mean(axis=0)).ravel())
            return np.where(found > 0, found, 1.0)
        found = np.asarray(given, dtype=float)
        if found.shape not in ((), (p,)) or not np.all(found > 0):
            raise ValueError(
                f"feature_scale must be positive, a number or {p} of them, or 'data'; "
                f"found {given!r}"
            )
        return np.broadcast_to(found, p).copy()

    def _label(self, y: np.ndarray) -> float:
        given = getattr(self, "label_scale", 1.0)
        if isinstance(given, str) and given == DATA:
            return float(np.sqrt(np.mean(y**2))) or 1.0
        if isinstance(given, str) or not 0 < given < math.inf:
            raise ValueError(f"label_scale must be positive or 'data', found {given!r}")
        return float(given)

    def _read_off(self) -> list[tuple[str, bool]]:
        """What would be read off the data, and whether it is."""
        scale, label = self.feature_scale, getattr(self, "label_scale", 1.0)
        return [
            (SMOOTHNESS, isinstance(scale, str) and scale == DATA),
            (LABEL_SCALE, isinstance(label, str) and label == DATA),
        ]

    def _seed(self) -> int:
        """Of this fit's noise; of the operating system unless it is asked for."""
        if self.random_state is None:
            return secrets.randbits(62)
        return int(check_random_state(self.random_state).randint(2**31))

    def _labelled(self, X: Any, y: np.ndarray) -> tuple[Any, np.ndarray]:
        raise NotImplementedError

    def _keep(self, coef: np.ndarray, intercept: float) -> None:
        raise NotImplementedError

    def _check_loss(self, known: tuple[str, ...]) -> None:
        if self.loss not in known:
            raise ValueError(
                f"loss must be one of {', '.join(known)}, found {self.loss!r}"
            )

    @property
    def epsilon_(self) -> Guarantee:
        """What the fit cost: an interval, and what it takes as public."""
        if not hasattr(self, "_guarantee"):
            raise NotFittedError(f"{type(self).__name__} is not fitted yet: call fit")
        return self._guarantee

    def _scores(self, X: Any) -> np.ndarray:
        """<x, w> and the intercept of each record, shape (n,)."""
        check_is_fitted(self, "coef_")
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        found = X @ np.ravel(self.coef_) + np.ravel(self.intercept_)[0]
        return np.asarray(found).ravel()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_guarantee")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@PARAMETERS
class DPClassifier(ClassifierMixin, DPLinear):
    r"""A private linear classifier of two classes.

    Minimises mean_i phi(y_i (x_i . w + b)) + l1 ||w, b||_1 + (l2 / 2) ||w, b||^2 with a
    solver that meets (epsilon, delta) for neighbours that differ by *replacing* one
    record, under the strict accountant. The intercept is the weight of a column of
    ones, and penalised like the others.

    Parameters
    ----------
    solver : str
        A name of ``conf/solver``, or of a Python file in the current folder.
    epsilon : float
        Positive; ``inf`` runs without noise.
    delta : float, optional
        None: 1 / n^2.
    loss : {"logistic", "smoothed_hinge"}
    l1, l2 : float
        ``l2=None``: 1 / n.
    fit_intercept : bool
    classes : sequence of two, optional
        The labels; the second is +1. None reads them off y, and says so in
        ``epsilon_.given``. A record with another label, or with a number that is not
        finite, counts as one of zeros: no single record makes a fit raise.
    feature_scale : float, ndarray (p,) or "data"
        What the columns' root mean squares are taken for. Data are clipped to what it
        says, so that epsilon holds whatever they are; a scale far off costs accuracy.
        It must not be computed from the data. "data" computes it, warns, and says so in
        ``epsilon_.given``.
    setting : mapping, optional
        Values of the solver, such as ``{"passes": 10, "step": 1, "clip": 1}``.
    random_state : int, RandomState or None
        None draws from the operating system; a seed that others know hides nothing.

    Attributes
    ----------
    coef_ : ndarray, shape (1, p)
    intercept_ : ndarray, shape (1,)
    classes_ : ndarray, shape (2,)
    epsilon_ : Guarantee
    n_features_in_ : int

    Examples
    --------
    >>> from dperm import DPClassifier
    >>> X, y = [[1.0], [-1.0]] * 500, [1, 0] * 500
    >>> model = DPClassifier(epsilon=1.0, classes=(0, 1), random_state=0).fit(X, y)
    >>> model.predict([[2.0], [-2.0]]).tolist(), model.epsilon_.given
    ([1, 0], ('n',))
    """

    _: KW_ONLY
    loss: str = "logistic"
    classes: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to X (n, p), dense or sparse, and labels y (n,) of two classes.

        Raises
        ------
        ValueError
            For labels, parameters or a solver that do not do.
        """
        return self._fitted(X, y)

    def _labelled(self, X: Any, y: np.ndarray) -> tuple[Any, np.ndarray]:
        """Labels as signs; what is neither class is left out."""
        self._check_loss(metrics.SIGNED)
        if self.classes is None:
            check_classification_targets(y)
        known = np.unique(y) if self.classes is None else self.classes
        self.classes_ = np.asarray(known)
        self._check_classes()
        return metrics.signed(X, y, self.classes_)

    def _check_classes(self) -> None:
        known, name = self.classes_, type(self).__name__
        if known.shape == (1,):
            raise ValueError(f"{name} needs two classes, the data have one class")
        if known.shape != (2,) or known[0] == known[1]:
            raise ValueError(
                "Only binary classification is supported: expected two classes, found "
                f"{len(known)}"
            )

    def _keep(self, coef: np.ndarray, intercept: float) -> None:
        self.coef_, self.intercept_ = coef[None, :], np.array([intercept])

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of records X (n, p), positive for the second class; shape (n,)."""
        return self._scores(X)

    def predict(self, X: Any) -> np.ndarray:
        """The classes of records X (n, p); shape (n,)."""
        scores = self._scores(X)
        found: np.ndarray = self.classes_[(scores > 0).astype(int)]
        return found

    @available_if(lambda self: self.loss == "logistic")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of both classes, of the logistic loss alone; shape (n, 2)."""
        scores = self._scores(X)
        second = 0.5 * (1.0 + np.tanh(0.5 * scores))
        return np.column_stack((1.0 - second, second))

    @available_if(lambda self: self.loss == "logistic")
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Their logarithms; shape (n, 2)."""
        scores = self._scores(X)
        return -np.column_stack((np.logaddexp(0, scores), np.logaddexp(0, -scores)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@PARAMETERS
class DPRegressor(RegressorMixin, DPLinear):
    r"""A private linear regression.

    Minimises mean_i phi(x_i . w + b - y_i) + l1 ||w, b||_1 + (l2 / 2) ||w, b||^2; all
    else is as for ``DPClassifier``.

    Parameters
    ----------
    solver, epsilon, delta, l1, l2, fit_intercept, feature_scale, setting, random_state
        As for ``DPClassifier``.
    loss : {"least_squares", "huber"}
    label_scale : float or "data"
        What the labels' root mean square is taken for, as ``feature_scale``.

    Attributes
    ----------
    coef_ : ndarray, shape (p,)
    intercept_ : float
    epsilon_ : Guarantee
    n_features_in_ : int
    """

    _: KW_ONLY
    loss: str = "least_squares"
    label_scale: Any = 1.0

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to X (n, p), dense or sparse, and real labels y (n,).

        Raises
        ------
        ValueError
            For labels, parameters or a solver that do not do.
        """
        return self._fitted(X, y)

    def _labelled(self, X: Any, y: np.ndarray) -> tuple[Any, np.ndarray]:
        """Labels as numbers; a record that is not finite is left out."""
        self._check_loss(RESIDUAL)
        return cleaned(X, np.asarray(y, dtype=np.float64))

    def _keep(self, coef: np.ndarray, intercept: float) -> None:
        self.coef_, self.intercept_ = coef, float(intercept)

    def predict(self, X: Any) -> np.ndarray:
        """Predicted labels of records X (n, p); shape (n,)."""
        return self._scores(X)


def fit(
    X: Any, y: Any, solver: str = "dp_cd", epsilon: float = 1.0, **parameters: Any
) -> DPClassifier | DPRegressor:
    """A fitted private linear model: a classifier of two classes, else a regression.

    Parameters
    ----------
    X : array (n, p) or sparse array
    y : array, shape (n,)
    solver, epsilon
        As for ``DPClassifier``.
    **parameters
        More of ``DPClassifier`` or ``DPRegressor``; ``loss`` or ``classes`` decides
        which, where they are given. Else y does, and ``epsilon_.given`` says so.

    Examples
    --------
    >>> import dperm
    >>> model = dperm.fit([[1.0], [-1.0]] * 500, [1.0, -1.0] * 500, random_state=0)
    >>> type(model).__name__
    'DPClassifier'
    """
    loss = parameters.get("loss")
    told = "classes" in parameters or loss is not None
    signed = "classes" in parameters or loss in metrics.SIGNED
    if not told:
        signed = len(np.unique(np.asarray(y))) == 2
    kind = DPClassifier if signed else DPRegressor
    model = kind(solver, epsilon=epsilon, **parameters).fit(X, y)
    if not told:
        model._guarantee = model.epsilon_.assuming(metrics.TWO)
    return model


def weights(
    on: Contestant, setting: Setting, noise_multiplier: float, seed: int
) -> np.ndarray:
    """The weights of one run, shape (p,)."""
    kept: list[np.ndarray] = []

    def keep(W: np.ndarray) -> dict[str, np.ndarray]:
        kept.append(W.copy())
        return {}

    on.run([Job(setting, noise_multiplier, seed)], keep)
    return kept[-1][0]


def _finite(w: np.ndarray) -> np.ndarray:
    """The weights, or zeros where the run diverged; that is post-processing."""
    if np.isfinite(w).all():
        return w
    warnings.warn(
        "the run diverged: weights are 0; expected a smaller step, or scales "
        "nearer to the data's",
        RuntimeWarning,
        4,
    )
    return np.zeros_like(w)
